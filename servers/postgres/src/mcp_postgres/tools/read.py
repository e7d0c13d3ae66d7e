"""Looking at databases, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from mcp_batteries.errors import Invalid
from mcp_batteries.limits import DEFAULT_PAGE_BYTES
from mcp_batteries.server.declare import tool
from mcp_batteries.server.views import DIAGRAM, PLAN, TABLE
from mcp_postgres.engine.service import Engine
from mcp_postgres.models import Catalog, Hits, Plan, RowPage, TableInfo
from mcp_postgres.policy import Database, Policy
from mcp_postgres.tools.arguments import LONGEST, Cursor, DatabaseName, Limit, OptionalSql, Parameters, Sql, TableName

__all__ = ["ReadTools"]

Kind = Literal["tables", "functions", "types", "sequences", "extensions"]


@dataclass(frozen=True)
class ReadTools:
    policy: Policy
    engine: Engine

    @tool("List objects", seconds=LONGEST, view=DIAGRAM)
    async def list_objects(
        self,
        schema: Annotated[str | None, Field(description="Only this schema.")] = None,
        kind: Annotated[Kind, Field(description="tables include views.")] = "tables",
        database: DatabaseName = None,
        limit: Limit = 100,
        cursor: Cursor = None,
    ) -> Catalog:
        """List databases, schemas and tables with columns, sizes and comments. Begin here."""
        return await self.engine.catalog(self._databases(database), kind, schema, limit=limit, cursor=cursor)

    @tool("Describe a table", seconds=LONGEST)
    async def get_table(
        self,
        table: TableName,
        database: DatabaseName = None,
        sample: Annotated[int, Field(ge=0, le=20, description="Rows to show.")] = 0,
    ) -> TableInfo:
        """Get columns, keys both ways, indexes, partitions, triggers, policies, grants, comments, and sample rows."""
        found = self.policy.table(database, table)
        return await self.engine.describe(
            found, lambda schema, name: self.policy.table_uri(found.database, schema, name), sample=sample
        )

    @tool("Search the schema", seconds=LONGEST)
    async def search_schema(
        self,
        query: Annotated[str, Field(min_length=1, max_length=200, description="Part of a name or comment.")],
        database: DatabaseName = None,
        limit: Limit = 50,
    ) -> Hits:
        """Search names and comments of tables, columns, indexes, functions, types and triggers."""
        return await self.engine.find(self._databases(database), query, limit=limit)

    @tool("Query", seconds=LONGEST, view=TABLE)
    async def query_rows(
        self,
        sql: OptionalSql = None,
        parameters: Parameters = None,
        database: DatabaseName = None,
        limit: Limit = 100,
        max_bytes: Annotated[int, Field(ge=1000, le=1_000_000, description="Size of one answer.")] = DEFAULT_PAGE_BYTES,
        max_cell: Annotated[int, Field(ge=1, le=1_000_000, description="Longest cell shown whole.")] = 2000,
        cursor: Cursor = None,
    ) -> RowPage:
        """Query with one statement that only reads: SELECT, WITH, VALUES, TABLE, EXPLAIN or SHOW.

        The answer is a line of JSON per row behind the columns. numeric, and integers beyond 2^53, are text. If
        truncated, call with `cursor` alone for the next page.
        """
        if cursor is not None:
            of = None if database is None else self.policy.database(database)
            return await self.engine.next_rows(cursor, of, limit=limit, max_bytes=max_bytes)
        if sql is None:
            raise Invalid(
                "`query_rows` was given no `sql`.", "Pass one statement, or the `cursor` of an earlier answer."
            )
        statement = self.policy.read(database, sql, parameters)
        return await self.engine.rows(statement, limit=limit, max_bytes=max_bytes, max_cell=max_cell)

    @tool("Explain a query", seconds=LONGEST, view=PLAN)
    async def explain_query(
        self,
        sql: Sql,
        parameters: Parameters = None,
        analyze: Annotated[bool, Field(description="Run it (reads only), to see real times.")] = False,
        indexes: Annotated[
            list[str] | None, Field(max_length=10, description="As if these existed: `table (columns)`; needs hypopg.")
        ] = None,
        database: DatabaseName = None,
    ) -> Plan:
        """Explain how PostgreSQL would run a statement, and what stands out. Runs nothing unless `analyze`."""
        statement = self.policy.read(database, sql, parameters)
        return await self.engine.explain(statement, analyze=analyze, indexes=indexes or ())

    def _databases(self, name: str | None) -> list[Database]:
        return list(self.policy.databases.values()) if name is None else [self.policy.database(name)]
