"""Looking at databases, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.server.declaration.decorators import described_by, tool
from mcp_batteries.server.declaration.fields import Cursor, Limit
from mcp_batteries.server.declaration.views import DIAGRAM, PLAN, TABLE
from mcp_batteries.sql import tools
from mcp_batteries.sql.arguments import DatabaseName, NamePart, SearchWords
from mcp_batteries.sql.base import Room
from mcp_batteries.sql.results.rows import RowPage
from mcp_batteries.sql.tools import MAX_SECONDS, RENAMED_SQL_ARGUMENTS
from mcp_sqlite.engine.service import Engine
from mcp_sqlite.models import Catalog, Check, Plan
from mcp_sqlite.policy import Policy
from mcp_sqlite.tools.arguments import OptionalSql, PlanParameters, ReadParameters, SearchedTable, Sql, TableName

__all__ = ["ListTools", "ReadTools"]


@dataclass(frozen=True)
class ListTools(Room[Policy, Engine]):
    """Where to begin."""

    @tool("List tables", seconds=MAX_SECONDS, view=DIAGRAM)
    async def list_tables(
        self, database: DatabaseName = None, name: NamePart = None, limit: Limit = 500, cursor: Cursor = None
    ) -> Catalog:
        """List databases with their tables, columns, keys (`-> table` for foreign ones) and row counts.

        Begin here. Counts that take long are estimated or left out. For more of one table use `get_table`.
        """
        return await self.engine.catalog(self.policy.listing(database, cursor, name), limit=limit)


@described_by(
    {
        "get_table": (
            "Get one table's or view's columns with frequent values, keys to and from other tables, indexes, triggers "
            "and definition.\n\nFor SQL over several tables `list_tables` is enough. This tells more of one: joins "
            "through other tables too, with `sample` its first rows. With `compare_with` it tells in which rows two "
            "tables differ instead. For other rows use `query_rows`."
        ),
        "search_schema": (
            "Search the names and SQL definitions, comments included, of tables, columns, indexes and triggers.\n\n"
            "A part of a word is enough, in any letter case; one line per match. For one table use `get_table`, "
            "for rows `query_rows`."
        ),
        "query_rows": (
            "Run statements that only read (SELECT, WITH, VALUES, EXPLAIN, reading PRAGMAs) and get their rows.\n\n"
            "Several statements, separated by `;`, see the same state of the data. With `database` as `one,other` both "
            'can be joined: `other.table`. `FROM "below/a.csv"` reads a file where `copy_to_file` writes. '
            "The answer is the columns, then a line of JSON per row; integers beyond "
            "2^53 are text. If it is truncated, call with `cursor` alone. To see which tables there are use "
            "`list_tables`, why a query is slow `explain_query`."
        ),
    },
    {"sql": OptionalSql, "parameters": ReadParameters, "table": TableName},
)
@dataclass(frozen=True)
class ReadTools(tools.ReadTools[Policy, Engine]):
    """Tables, queries, plans, and whether the file is whole."""

    @tool("Explain a query", seconds=MAX_SECONDS, view=PLAN, adapt=RENAMED_SQL_ARGUMENTS)
    async def explain_query(self, sql: Sql, parameters: PlanParameters = None, database: DatabaseName = None) -> Plan:
        """Explain how SQLite would run a statement, which tables it would read whole, which index would help.

        Does not run it; for its rows use `query_rows`.
        """
        return await self.engine.explain(self.policy.read(database, sql, parameters))

    @tool("Search text", seconds=MAX_SECONDS, view=TABLE)
    async def search_text(
        self,
        query: SearchWords,
        table: SearchedTable = None,
        database: DatabaseName = None,
        limit: Limit = 20,
    ) -> RowPage:
        """Search a full-text (FTS) table by FTS syntax or plain words; best matches first, with snippets.

        For other tables use LIKE in `query_rows`.
        """
        return await self.engine.search(self.policy.text(database, query, table), limit=limit)

    @tool("Check integrity", seconds=MAX_SECONDS)
    async def run_check(
        self,
        database: DatabaseName = None,
        quick: Annotated[bool, Field(description="Do not compare indexes with tables.")] = False,
    ) -> Check:
        """Run SQLite's integrity check and look for foreign keys that point to no row. Repairs nothing.

        For a file that may be damaged: it reads all of it, which takes time; `quick` is faster. For slow
        queries use `explain_query`.
        """
        return await self.engine.check(self.policy.database(database), quick=quick)
