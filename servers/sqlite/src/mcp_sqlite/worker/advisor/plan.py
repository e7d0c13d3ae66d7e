"""How SQLite would run a statement, and which index it would use if it existed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcp_sqlite.worker.advisor.indexes import IndexAdvice, advise_indexes
from mcp_sqlite.worker.connection.authorizer import Mode
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.language.parameters import null_parameters
from mcp_sqlite.worker.language.tokens import EXPLAIN_PREFIX
from mcp_sqlite.worker.query.statements import PlanStep, execute
from mcp_sqlite.worker.record_files.file_tables import load_named_files

__all__ = ["explain_plan"]


def explain_plan(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Return the query plan as a tree, the tables it scans whole, and indexes the planner would take."""
    database = connections.reader(request["path"])
    sql = "EXPLAIN QUERY PLAN " + EXPLAIN_PREFIX.sub("", request["sql"])
    mode = Mode(request.get("mode", Mode.EXPLAIN))
    parameters = request.get("parameters")
    if mode is Mode.EXPLAIN and not parameters:
        parameters = null_parameters(sql)
    load_named_files(database, mode, sql)
    with database.interrupt.reach(database.connection):
        steps = [PlanStep(*row) for row in execute(database, mode, sql, parameters)]
    columns_read = list(database.authorizer.columns_read)
    advice = IndexAdvice()
    if steps:
        advice = advise_indexes(database, sql, parameters, columns_read)
    tree_with_indexes = ""
    if advice.indexes:
        tree_with_indexes = _draw_tree(advice.steps_by_ddl_names())
    return {
        "tree": _draw_tree(steps),
        "scans": [step.detail for step in steps if _reads_whole_table(step.detail)],
        "indexes": [index.ddl for index in advice.indexes.values()],
        "tree_with_indexes": tree_with_indexes,
        "candidate_count": advice.candidate_count,
    }


def _reads_whole_table(detail: str) -> bool:
    """Return whether a step reads a whole table.

    Of a virtual one the step says in its module's own words how it is read.
    """
    if not detail.startswith("SCAN ") or "CONSTANT ROW" in detail:
        return False
    _, _, virtual_index = detail.partition(" VIRTUAL TABLE INDEX ")
    return not virtual_index or virtual_index == "0:" or virtual_index.startswith("0:1")


def _draw_tree(steps: Sequence[PlanStep]) -> str:
    depths: dict[int, int] = {0: -1}
    lines: list[str] = []
    for step in steps:
        depths[step.number] = depths.get(step.parent, -1) + 1
        lines.append("  " * depths[step.number] + step.detail)
    return "\n".join(lines)
