"""How SQLite would run a statement, and which index it would use if it existed."""

from __future__ import annotations

from typing import Any

from mcp_sqlite.worker.advisor.indexes import IndexAdvice, advise_indexes
from mcp_sqlite.worker.connection.authorizer import Mode
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.language.parameters import null_parameters
from mcp_sqlite.worker.language.tokens import EXPLAIN_PREFIX
from mcp_sqlite.worker.query.statements import execute
from mcp_sqlite.worker.record_files.file_tables import load_named_files

__all__ = ["explain_plan"]


def explain_plan(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """The query plan as a tree, the tables it scans whole, and indexes the planner would take."""
    database = connections.reader(request["path"])
    sql = "EXPLAIN QUERY PLAN " + EXPLAIN_PREFIX.sub("", request["sql"])
    mode = Mode(request.get("mode", Mode.EXPLAIN))
    given = request.get("parameters")
    if mode is Mode.EXPLAIN and not given:
        given = null_parameters(sql)
    load_named_files(database, mode, sql)
    with database.interrupt.reach(database.connection):
        steps = execute(database, mode, sql, given).fetchall()
    reads = list(database.authorizer.columns_read)
    scans = [detail for _, _, _, detail in steps if _is_whole(detail)]
    advice = advise_indexes(database, sql, given, reads) if steps else IndexAdvice()
    indexes = [ddl for ddl, _ in advice.made.values()]
    then = _tree(advice.named_rows()) if indexes else ""
    return {"tree": _tree(steps), "scans": scans, "indexes": indexes, "then": then, "tried": advice.tried}


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
