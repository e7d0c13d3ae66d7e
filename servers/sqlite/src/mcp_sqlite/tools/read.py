"""Looking at databases, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.server.declare import tool
from mcp_batteries.server.fields import Cursor, Limit
from mcp_batteries.server.views import DIAGRAM, PLAN, TABLE
from mcp_batteries.sql import tools
from mcp_batteries.sql.arguments import DatabaseName, NamePart, Words
from mcp_batteries.sql.room import Room
from mcp_batteries.sql.rows import RowPage
from mcp_batteries.sql.tools import LONGEST, in_words_of
from mcp_sqlite.engine.service import Engine
from mcp_sqlite.models import Catalog, Check, Plan
from mcp_sqlite.policy import Policy
from mcp_sqlite.tools.arguments import OptionalSql, OptionalTable, Parameters, Sql, TableName

__all__ = ["ListTools", "ReadTools"]


@dataclass(frozen=True)
class ListTools(Room[Policy, Engine]):
    """Where to begin."""

    @tool("List tables", seconds=LONGEST, view=DIAGRAM)
    async def list_tables(
        self, database: DatabaseName = None, name: NamePart = None, limit: Limit = 500, cursor: Cursor = None
    ) -> Catalog:
        """List databases with their tables, columns, keys (-> table) and row counts.

        Begin here; one table: `get_table`.
        """
        return await self.engine.catalog(self.policy.listing(database, cursor, name), limit=limit)


@in_words_of(
    {
        "get_table": (
            "Get a table's columns with frequent values, keys both ways, indexes, triggers, definition, sample rows. "
            "All: `list_tables`."
        ),
        "search_schema": (
            "Search names of tables, columns, indexes, triggers, and comments in definitions. Rows: `query_rows`."
        ),
        "query_rows": (
            "Query with statements that only read: SELECT, WITH, VALUES, EXPLAIN, reading PRAGMAs.\n\n"
            "Several, separated by `;`, are answered in one call, all of one moment. With "
            "`database` as `one,other` both can be joined: `other.table`. "
            "Answers the columns, then a line of JSON per row. Integers beyond 2^53 are text. If truncated, go on "
            "with\n`cursor` alone."
        ),
    },
    {"sql": OptionalSql, "parameters": Parameters, "table": TableName},
)
@dataclass(frozen=True)
class ReadTools(tools.ReadTools[Policy, Engine]):
    """Tables, queries, plans, and whether the file is whole."""

    @tool("Explain a query", seconds=LONGEST, view=PLAN)
    async def explain_query(self, sql: Sql, parameters: Parameters = None, database: DatabaseName = None) -> Plan:
        """Explain how SQLite would run a statement, what it reads whole and which index would help.

        Runs nothing; rows: `query_rows`.
        """
        return await self.engine.explain(self.policy.read(database, sql, parameters))

    @tool("Search text", seconds=LONGEST, view=TABLE)
    async def search_text(
        self,
        query: Words,
        table: OptionalTable = None,
        database: DatabaseName = None,
        limit: Limit = 20,
    ) -> RowPage:
        """Search a full-text (FTS) table, the best matches first, with snippets. FTS syntax or plain words.

        Other tables: LIKE in `query_rows`.
        """
        return await self.engine.search(self.policy.text(database, query, table), limit=limit)

    @tool("Check integrity", seconds=LONGEST)
    async def run_check(
        self,
        database: DatabaseName = None,
        quick: Annotated[bool, Field(description="Skip comparing indexes with tables.")] = False,
    ) -> Check:
        """Run SQLite's integrity check, which reads the whole file, and look for foreign keys that point nowhere.
        Repairs nothing."""
        return await self.engine.check(self.policy.database(database), quick=quick)
