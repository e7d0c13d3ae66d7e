"""What SQLite would do for a statement, and which index it would use if it had it.

The advice is SQLite's own: in an empty copy of the schema every plausible index on the columns that the statement
reads is made, and the planner is asked again; what it then uses would help. (The method of SQLite's `.expert`.)
"""

from __future__ import annotations

import itertools
import re
import sqlite3
from dataclasses import dataclass
from typing import Any

from mcp_sqlite.worker.authorizer import Authorizer, Mode, apply_limits
from mcp_sqlite.worker.cells import parameters
from mcp_sqlite.worker.connections import Connections, Database
from mcp_sqlite.worker.schema import quoted
from mcp_sqlite.worker.statements import execute

__all__ = ["explain"]

_MOST_CANDIDATES = 60
_PREFIX = "mcp_candidate_"
_EXPLAIN = re.compile(r"\A\s*EXPLAIN\s+(?:QUERY\s+PLAN\s+)?", re.IGNORECASE)


def explain(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """The query plan as a tree, the tables it scans whole, and indexes the planner would take."""
    database = connections.reader(request["path"])
    sql = "EXPLAIN QUERY PLAN " + _EXPLAIN.sub("", request["sql"], count=1)
    with database.interrupt.over(database.connection):
        steps = execute(database, Mode(request.get("mode", Mode.EXPLAIN)), sql, request.get("parameters")).fetchall()
    reads = list(database.authorizer.reads)
    scans = [detail for _, _, _, detail in steps if detail.startswith("SCAN ") and "CONSTANT ROW" not in detail]
    return {"tree": _tree(steps), "scans": scans, "indexes": _advice(database, sql, request, reads) if steps else []}


def _tree(steps: list[tuple[int, int, int, str]]) -> str:
    depth: dict[int, int] = {0: -1}
    lines: list[str] = []
    for step, parent, _, detail in steps:
        depth[step] = depth.get(parent, -1) + 1
        lines.append("  " * depth[step] + detail)
    return "\n".join(lines)


def _advice(database: Database, sql: str, request: dict[str, Any], reads: list[tuple[str, str]]) -> list[str]:
    columns: dict[str, list[str]] = {}
    tables = {
        str(name) for (name,) in database.own("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
    }
    for table, column in reads:
        if table in tables and column and column != "ROWID" and not table.startswith("sqlite_"):
            columns.setdefault(table, []).append(column)
    candidates = [
        (table, combination)
        for size in (1, 2)
        for table, names in columns.items()
        for combination in itertools.permutations(names[:6], size)
    ][:_MOST_CANDIDATES]
    if not candidates:
        return []
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    authorizer = Authorizer()
    try:
        apply_limits(copy, authorizer, read_only=False)
        copy.set_progress_handler(lambda: database.interrupt.is_due, 1000)
        objects = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type = 'index', rowid"
        for (statement,) in database.own(objects):
            authorizer.begin(Mode.SCHEMA)
            try:
                copy.execute(statement)
            except sqlite3.Error:
                continue  # sqlite_* tables, shadow tables that their virtual table has made already
        values = parameters(request.get("parameters"))
        single = _planned(copy, authorizer, sql, values, [item for item in candidates if len(item[1]) == 1])
        double = _planned(copy, authorizer, sql, values, [item for item in candidates if len(item[1]) == 2])
        # Two columns only where both narrow the search, save the table or save a sort.
        narrower = any(_PREFIX in step and (" AND " in step or "COVERING" in step) for step in double.steps)
        sorts = [any("TEMP B-TREE" in step for step in plan.steps) for plan in (single, double)]
        return (double if narrower or sorts == [True, False] else single).used
    except sqlite3.Error:
        return []
    finally:
        authorizer.begin(Mode.OWN)
        copy.close()


@dataclass(frozen=True)
class _Planned:
    steps: list[str]
    used: list[str]


def _planned(
    copy: sqlite3.Connection,
    authorizer: Authorizer,
    sql: str,
    values: Any,
    candidates: list[tuple[str, tuple[str, ...]]],
) -> _Planned:
    """The plan once `candidates` exist too, and the DDL of those it uses."""
    made: dict[str, str] = {}
    authorizer.begin(Mode.OWN)
    for table, columns in candidates:
        name = f"{_PREFIX}{len(columns)}_{len(made)}"
        try:
            copy.execute(f"CREATE INDEX {name} ON {quoted(table)}({', '.join(map(quoted, columns))})")
        except sqlite3.Error:
            continue
        made[name] = _ddl(table, columns)
    authorizer.begin(Mode.EXPLAIN)
    steps = [str(step[3]) for step in copy.execute(sql, values)]
    return _Planned(steps, list(dict.fromkeys(made[word] for step in steps for word in step.split() if word in made)))


def _ddl(table: str, columns: tuple[str, ...]) -> str:
    listed = ", ".join(quoted(column) for column in columns)
    return f"CREATE INDEX {quoted('_'.join((table, *columns)))} ON {quoted(table)} ({listed});"
