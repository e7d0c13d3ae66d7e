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
from mcp_sqlite.worker.vectors import load_into

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
    scans = [detail for _, _, _, detail in steps if _is_whole(detail)]
    advice = _advice(database, sql, request, reads) if steps else _Planned([], {})
    indexes = [ddl for ddl, _ in advice.made.values()]
    return {"tree": _tree(steps), "scans": scans, "indexes": indexes, "then": advice.tree() if indexes else ""}


def _is_whole(detail: str) -> bool:
    """Whether a step reads a whole table. Of a virtual one the step tells in its module's own words how it is read."""
    if not detail.startswith("SCAN ") or "CONSTANT ROW" in detail:
        return False
    _, _, way = detail.partition(" VIRTUAL TABLE INDEX ")
    return not way or way == "0:" or way.startswith("0:1")


def _tree(steps: list[tuple[int, int, int, str]]) -> str:
    depth: dict[int, int] = {0: -1}
    lines: list[str] = []
    for step, parent, _, detail in steps:
        depth[step] = depth.get(parent, -1) + 1
        lines.append("  " * depth[step] + detail)
    return "\n".join(lines)


def _advice(database: Database, sql: str, request: dict[str, Any], reads: list[tuple[str, str]]) -> _Planned:
    """The plan with those of all plausible indexes that the planner would use."""
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
        return _Planned([], {})
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    authorizer = Authorizer()
    try:
        load_into(copy)
        apply_limits(copy, authorizer, read_only=False)
        copy.set_progress_handler(lambda: database.interrupt.is_due, 1000)
        objects = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type = 'index', rowid"
        for (statement,) in database.own(objects):
            authorizer.begin(Mode.SCHEMA)
            try:
                copy.execute(statement)
            except sqlite3.Error:
                continue  # sqlite_* tables, shadow tables that their virtual table has made already
        authorizer.begin(Mode.OWN)
        _copy_statistics(database, copy)
        values = parameters(request.get("parameters"))
        made: dict[str, tuple[str, str]] = {}
        single = _planned(copy, authorizer, sql, values, [item for item in candidates if len(item[1]) == 1], made)
        double = _planned(copy, authorizer, sql, values, [item for item in candidates if len(item[1]) == 2], made)
        # Two columns only where both narrow the search, save the table or save a sort.
        narrower = any(f"{_PREFIX}2" in step and (" AND " in step or "COVERING" in step) for step in double.steps)
        sorts = [any("TEMP B-TREE" in step for step in plan.steps) for plan in (single, double)]
        return double if narrower or sorts == [True, False] else single
    except sqlite3.Error:
        return _Planned([], {})
    finally:
        authorizer.begin(Mode.OWN)
        copy.close()


def _copy_statistics(database: Database, copy: sqlite3.Connection) -> None:
    """What ANALYZE has told the planner of the database, if anybody ran it: a small table is best read whole."""
    if not database.own("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_stat1'"):
        return
    copy.execute("ANALYZE").close()
    copy.execute("DELETE FROM sqlite_stat1").close()
    found = database.own("SELECT tbl, idx, stat FROM sqlite_stat1 LIMIT 10000")
    copy.executemany("INSERT INTO sqlite_stat1 VALUES (?, ?, ?)", found).close()
    copy.execute("ANALYZE sqlite_master").close()


@dataclass(frozen=True)
class _Planned:
    """Attributes: rows: of EXPLAIN QUERY PLAN; made: candidates in it: their DDL and the name that gives them."""

    rows: list[tuple[int, int, int, str]]
    made: dict[str, tuple[str, str]]

    @property
    def steps(self) -> list[str]:
        return [row[3] for row in self.rows]

    def tree(self) -> str:
        """The plan, with candidates called as their DDL calls them."""
        words = re.compile("|".join(map(re.escape, self.made)) or r"(?!)")
        return _tree([(*row[:3], words.sub(lambda found: self.made[found[0]][1], row[3])) for row in self.rows])


def _planned(
    copy: sqlite3.Connection,
    authorizer: Authorizer,
    sql: str,
    values: Any,
    candidates: list[tuple[str, tuple[str, ...]]],
    made: dict[str, tuple[str, str]],
) -> _Planned:
    """The plan once `candidates` exist too, beside those of `made`, which they join; and those it uses."""
    authorizer.begin(Mode.OWN)
    for table, columns in candidates:
        name = f"{_PREFIX}{len(columns)}_{len(made)}"
        try:
            copy.execute(f"CREATE INDEX {name} ON {quoted(table)}({', '.join(map(quoted, columns))})")
        except sqlite3.Error:
            continue
        made[name] = _ddl(table, columns), "_".join((table, *columns))
    authorizer.begin(Mode.EXPLAIN)
    rows = [(row[0], row[1], row[2], str(row[3])) for row in copy.execute(sql, values)]
    used = dict.fromkeys(word for row in rows for word in row[3].split() if word in made)
    return _Planned(rows, {name: made[name] for name in used})


def _ddl(table: str, columns: tuple[str, ...]) -> str:
    listed = ", ".join(quoted(column) for column in columns)
    return f"CREATE INDEX {quoted('_'.join((table, *columns)))} ON {quoted(table)} ({listed});"
