"""Schemas, rows, health and sessions as resources."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcp_types import Resource

from mcp_batteries.errors import Unavailable
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
from mcp_postgres.engine.contents import read_content
from mcp_postgres.engine.pools import ConnectionPools
from mcp_postgres.engine.query.pages import ResultPages
from mcp_postgres.engine.schemas import ObjectQuery, list_objects
from mcp_postgres.policy import Database, Policy, Request, table_uri

__all__ = ["Resources"]

_TEXT = "text/plain"
_DATABASE = "postgres://{database}"
_TABLE = "postgres://{database}/{schema}/{table}"


@dataclass(frozen=True)
class Resources(resources.Resources[Policy]):
    """What a database holds, how it is doing, and what the server's role could do."""

    pools: ConnectionPools = field(kw_only=True)
    pages: ResultPages = field(kw_only=True)

    TEXT = _TEXT

    read_query = declare_saved_query_reader("postgres")
    read_schema = declare_reader(
        f"{_DATABASE}/.schema",
        "schema",
        "A database's schema",
        _TEXT,
        "Tables with columns, keys, indexes, triggers, policies and comments; views with their definitions.",
    )
    read_health = declare_reader(
        f"{_DATABASE}/.health",
        "health",
        "A database's health",
        _TEXT,
        "What is wrong with a database, as `get_health` tells it.",
    )
    read_activity = declare_reader(
        f"{_DATABASE}/.activity",
        "activity",
        "What other sessions do",
        JSON_MIME_TYPE,
        "Statements and transactions under way, and who blocks whom.",
    )
    read_role = declare_reader(
        f"{_DATABASE}/.role",
        "role",
        "What the server's role could do",
        _TEXT,
        "The role's powers, and what to do about them.",
    )
    read_one_schema = declare_reader(
        f"{_DATABASE}/{{schema}}/.schema", "one schema", "One schema", _TEXT, "The same for one schema."
    )
    read_table_schema = declare_reader(
        f"{_TABLE}/.schema", "table", "A table's schema", _TEXT, "The same for one table."
    )
    read_rows = declare_rows_reader(_TABLE)
    read_row = declare_row_reader(_TABLE)

    async def list_contents(self, database: Database) -> list[Resource]:
        try:
            tables = await list_objects(self.pools, ObjectQuery([database], "tables"), MAX_LISTED)
        except Unavailable:
            return []  # a database that is down shows nothing
        resources: list[Resource] = []
        for kind in ("schema", "role", "health", "activity"):
            uri = f"postgres://{database.uri_name}/.{kind}"
            mime_type = JSON_MIME_TYPE if kind == "activity" else _TEXT
            name = f"{database.name} {kind}"
            resources.append(Resource(uri=uri, name=name, title=kind.capitalize(), mime_type=mime_type))
        for entry in tables.databases:
            for item in entry.objects:
                uri = table_uri(database, item["schema"], item["name"])
                name = f"{database.name}.{item['schema']}.{item['name']}"
                resources.append(Resource(uri=uri, name=name, description=item["comment"], mime_type=JSON_MIME_TYPE))
        return resources

    async def read_content(self, request: Request) -> RowPage | str:
        return await read_content(self.pools, self.pages, request)
