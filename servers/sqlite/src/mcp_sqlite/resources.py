"""Schemas, rows and the insights memo as resources."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcp_types import Resource, TextResourceContents

from mcp_batteries.server.declaration.decorators import resource
from mcp_batteries.sql import resources
from mcp_batteries.sql.resources import (
    JSON_MIME_TYPE,
    MAX_LISTED,
    declare_reader,
    declare_row_reader,
    declare_rows_reader,
    declare_saved_query_reader,
)
from mcp_batteries.sql.results.rows import RowPage
from mcp_sqlite.engine import contents, schemas
from mcp_sqlite.engine.insights import Insights
from mcp_sqlite.engine.workers.pool import WorkerPool
from mcp_sqlite.policy import Database, Policy, Request, table_uri

__all__ = ["MEMO", "Resources"]

MEMO = "memo://insights"
_SQL = "application/sql"
_TABLE = "sqlite://{database}/{table}"


@dataclass(frozen=True)
class Resources(resources.Resources[Policy]):
    """What a database holds, and what was found in it."""

    pool: WorkerPool = field(kw_only=True)
    insights: Insights = field(kw_only=True)

    TEXT = _SQL

    @resource("memo://insights", name="insights", title="Insights noted so far", mime_type="text/markdown")
    async def read_insights(self) -> TextResourceContents:
        """What `create_insight` has noted."""
        return TextResourceContents(uri=MEMO, mime_type="text/markdown", text=await self.insights.text())

    read_query = declare_saved_query_reader("sqlite")
    read_schema = declare_reader(
        "sqlite://{database}/.schema",
        "schema",
        "A database's schema",
        _SQL,
        "The definitions of everything in a database, comments included.",
    )
    read_table_schema = declare_reader(
        f"{_TABLE}/.schema",
        "table schema",
        "A table's schema",
        _SQL,
        "The definitions of a table, its indexes and its triggers.",
    )
    read_rows = declare_rows_reader(_TABLE)
    read_row = declare_row_reader(_TABLE)

    async def list_contents(self, database: Database) -> list[Resource]:
        uri = f"sqlite://{database.uri_name}/.schema"
        resources = [Resource(uri=uri, name=f"{database.name} schema", title="Schema", mime_type=_SQL)]
        names = await schemas.complete_names(self.pool, self.policy.names(database.name, "table", ""))
        for name in names[:MAX_LISTED]:
            uri = table_uri(database, name)
            resources.append(Resource(uri=uri, name=f"{database.name}.{name}", mime_type=JSON_MIME_TYPE))
        return resources

    async def read_content(self, request: Request) -> RowPage | str:
        return await contents.read_content(self.pool, request)
