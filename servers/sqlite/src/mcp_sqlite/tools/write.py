"""Tools that change rows and schemas; the operator enables each with a switch."""

from __future__ import annotations

from mcp_batteries.server.declaration.decorators import described_by
from mcp_batteries.sql import tools
from mcp_sqlite.engine.service import Engine
from mcp_sqlite.policy import Policy
from mcp_sqlite.tools.arguments import Parameters, Sql

__all__ = ["SchemaTools", "WriteTools"]


@described_by(
    {
        "write_rows": (
            "Insert, update or delete rows: statements separated by `;`, in one transaction, all or none.\n\n"
            "Says how many rows each touched; a SELECT at the end, or RETURNING, shows in the same answer what came "
            "of it. To only look use `query_rows`."
        )
    },
    {"sql": Sql, "parameters": Parameters},
)
class WriteTools(tools.WriteTools[Policy, Engine]):
    """Several statements at once."""


@described_by(
    {
        "edit_schema": (
            "Create, alter or drop tables, indexes, views and triggers, set user_version.\n\nRows too if `write_rows` "
            "is there, and a SELECT at the end shows what came of it. Statements separated by `;`, in one transaction, "
            "all or none. A dry run shows rows before and after, and the way back. For a table as it is use "
            "`get_table`."
        )
    },
    {"sql": Sql},
)
class SchemaTools(tools.SchemaTools[Policy, Engine]):
    """Several statements at once."""
