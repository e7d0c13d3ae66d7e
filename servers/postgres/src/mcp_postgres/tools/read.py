"""Looking at databases, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from mcp_batteries.server.declaration.decorators import described_by, tool
from mcp_batteries.server.declaration.fields import Cursor, Limit
from mcp_batteries.server.declaration.views import DIAGRAM, PLAN
from mcp_batteries.sql import tools
from mcp_batteries.sql.arguments import DatabaseName, NamePart
from mcp_batteries.sql.base import Room
from mcp_batteries.sql.tools import MAX_SECONDS, RENAMED_SQL_ARGUMENTS
from mcp_postgres.engine.service import Engine
from mcp_postgres.models import Catalog, Plan
from mcp_postgres.policy import Policy
from mcp_postgres.tools.arguments import Parameters, Several, Sql, TableName

__all__ = ["ListTools", "ReadTools"]

Kind = Literal[
    "tables", "functions", "types", "sequences", "extensions", "triggers", "policies", "grants", "roles",
]  # fmt: skip


@dataclass(frozen=True)
class ListTools(Room[Policy, Engine]):
    """Where to begin."""

    @tool("List objects", seconds=MAX_SECONDS, view=DIAGRAM)
    async def list_objects(
        self,
        schema: Annotated[str | None, Field(description="Only this schema.")] = None,
        kind: Annotated[Kind, Field(description="tables has views too.")] = "tables",
        name: NamePart = None,
        database: DatabaseName = None,
        limit: Limit = 300,
        cursor: Cursor = None,
    ) -> Catalog:
        """List databases and their schemas with tables, columns, keys (`-> table`), sizes, comments, or another `kind`.

        Begin here. Numbers of rows are estimates; of many tables columns are left out, unless `name` narrows them. For
        more of one table use `get_table`.
        """
        return await self.engine.catalog(self.policy.listing(database, kind, schema, name, cursor), limit=limit)


@described_by(
    {
        "get_table": (
            "Get one table's or view's columns, keys to and from other tables, indexes, partitions, triggers, policies "
            "and grants.\n\nFor SQL over several tables `list_objects` is enough. This tells more of one: joins "
            "through other tables too, with `sample` its first rows. With `compare_with` it tells in which rows two "
            "tables differ instead. For other rows use `query_rows`."
        ),
        "search_schema": (
            "Search the names and comments of tables, columns, indexes, functions, types and triggers; best matches "
            "first.\n\nA part of a word is enough, in any letter case; one line per match. For one table use "
            "`get_table`, for rows `query_rows`."
        ),
        "query_rows": (
            "Run statements that only read (SELECT, WITH, VALUES, TABLE, EXPLAIN, SHOW) and get their rows.\n\n"
            "Several statements, separated by `;`, see the same state of the data; `parameters` is then an array of "
            "one array per statement. The answer is the columns, then a line of JSON per row; numeric, and integers "
            "beyond 2^53, are text. If it is truncated, call with `cursor` alone for the next page. To see which "
            "tables there are use `list_objects`, why a query is slow `explain_query`."
        ),
    },
    {"sql": Several, "parameters": Parameters, "table": TableName},
)
@dataclass(frozen=True)
class ReadTools(tools.ReadTools[Policy, Engine]):
    """Tables, queries and plans."""

    @tool("Explain a query", seconds=MAX_SECONDS, view=PLAN, adapt=RENAMED_SQL_ARGUMENTS)
    async def explain_query(
        self,
        sql: Sql,
        parameters: Parameters = None,
        analyze: Annotated[bool, Field(description="Run it, if it only reads, to see real times.")] = False,
        indexes: Annotated[
            list[str] | None,
            Field(max_length=10, description="Plan with these too: `table (columns)`; needs hypopg."),
        ] = None,
        database: DatabaseName = None,
    ) -> Plan:
        """Explain how PostgreSQL would run a statement, and what may make it slow.

        Does not run it, unless `analyze`; for its rows use `query_rows`.
        """
        return await self.engine.explain(self.policy.plan(database, sql, parameters, indexes or ()), analyze=analyze)
