"""Looking at databases, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.errors import Invalid
from mcp_batteries.limits import DEFAULT_PAGE_BYTES
from mcp_batteries.server.declare import tool
from mcp_batteries.server.views import DIAGRAM, PLAN, TABLE
from mcp_sqlite.engine.service import Engine
from mcp_sqlite.models import Catalog, Check, Hits, Plan, RowPage, TableInfo
from mcp_sqlite.policy import Database, Policy
from mcp_sqlite.tools.arguments import Cursor, DatabaseName, OptionalSql, OptionalTable, Parameters, Sql, TableName

__all__ = ["LONGEST", "ReadTools"]

LONGEST = 6100.0
"""Seconds: above every time limit an operator can set, which is what really ends a statement."""

Limit = Annotated[int, Field(ge=1, le=5000, description="Most entries at once.")]
Words = Annotated[str, Field(min_length=1, max_length=1000, description="What to look for.")]


@dataclass(frozen=True)
class ReadTools:
    policy: Policy
    engine: Engine

    @tool("List tables", seconds=LONGEST, view=DIAGRAM)
    async def list_tables(self, database: DatabaseName = None, limit: Limit = 200, cursor: Cursor = None) -> Catalog:
        """List databases with their tables, columns and row counts. Begin here."""
        return await self.engine.catalog(self._databases(database), limit=limit, cursor=cursor)

    @tool("Describe a table", seconds=LONGEST)
    async def get_table(
        self,
        table: TableName,
        database: DatabaseName = None,
        sample: Annotated[int, Field(ge=0, le=20, description="Rows to show.")] = 0,
    ) -> TableInfo:
        """Get a table's columns, keys both ways, indexes, triggers, definition with comments, sample rows."""
        return await self.engine.describe(self.policy.table(database, table), sample=sample)

    @tool("Search the schema", seconds=LONGEST)
    async def search_schema(self, query: Words, database: DatabaseName = None, limit: Limit = 100) -> Hits:
        """Search names of tables, columns, indexes and triggers, and comments in definitions."""
        return await self.engine.find(self._databases(database), query, limit=limit)

    @tool("Query", seconds=LONGEST, view=TABLE)
    async def query_rows(
        self,
        sql: OptionalSql = None,
        parameters: Parameters = None,
        database: DatabaseName = None,
        limit: Limit = 100,
        max_bytes: Annotated[int, Field(ge=1000, le=1_000_000, description="Size of an answer.")] = DEFAULT_PAGE_BYTES,
        max_cell: Annotated[int, Field(ge=1, le=1_000_000, description="Longest whole cell.")] = 2000,
        cursor: Cursor = None,
    ) -> RowPage:
        """Query with one statement that only reads: SELECT, WITH, VALUES, EXPLAIN or a reading PRAGMA.

        Answers the columns, then a line of JSON per row. Integers beyond 2^53 are text. If truncated, go on with
        `cursor` alone.
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
    async def explain_query(self, sql: Sql, parameters: Parameters = None, database: DatabaseName = None) -> Plan:
        """Explain how SQLite would run a statement, what it reads whole and which index would help. Runs nothing."""
        return await self.engine.explain(self.policy.read(database, sql, parameters))

    @tool("Search text", seconds=LONGEST, view=TABLE)
    async def search_text(
        self,
        query: Words,
        table: OptionalTable = None,
        database: DatabaseName = None,
        limit: Limit = 20,
    ) -> RowPage:
        """Search a full-text (FTS) table, the best matches first, with snippets. FTS syntax or plain words."""
        where = self.policy.database(database)
        name = None if table is None else self.policy.table(database, table).name
        return await self.engine.search(where, query, table=name, limit=limit)

    @tool("Check integrity", seconds=LONGEST)
    async def run_check(
        self,
        database: DatabaseName = None,
        quick: Annotated[bool, Field(description="Skip comparing indexes with tables.")] = False,
    ) -> Check:
        """Run SQLite's integrity check and look for foreign keys that point nowhere."""
        return await self.engine.check(self.policy.database(database), quick=quick)

    def _databases(self, name: str | None) -> list[Database]:
        return list(self.policy.databases.values()) if name is None else [self.policy.database(name)]
