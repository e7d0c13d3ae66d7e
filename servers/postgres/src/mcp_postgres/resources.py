"""Schemas, rows, health and sessions as resources; what `changes` tells about is read here."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from mcp_types import Resource, TextResourceContents

from mcp_batteries.errors import NotFound, Unavailable, quote
from mcp_batteries.server.declare import lists_resources, resource
from mcp_batteries.sql.rows import RowPage
from mcp_batteries.sql.saved_queries import SavedQueries, SavedQuery
from mcp_postgres.engine.service import Engine
from mcp_postgres.policy import Policy, ReadStatement, Subject

__all__ = ["Resources", "query_uri"]

_QUERIES = "postgres://.queries/"
_LISTED = 200
"""Tables of one database in the list; all others are read by their URI all the same."""
_JSON, _TEXT = "application/json", "text/plain"


@dataclass(frozen=True)
class Resources:
    policy: Policy
    engine: Engine
    queries: SavedQueries | None = None

    @lists_resources
    async def databases_and_their_tables(self) -> list[Resource]:
        """The schema, role, health and sessions of each database, and its tables; no tables of one that is down."""
        listed: list[Resource] = []
        for query in self.queries.found.values() if self.queries else ():
            if not any(parameter.default is None for parameter in query.parameters):
                about = query.description
                listed.append(Resource(uri=query_uri(query.name), name=query.name, description=about, mime_type=_JSON))
        for database in self.policy.databases.values():
            top = f"postgres://{database.name}"
            try:
                found = await self.engine.catalog([database], "tables", None, limit=_LISTED, cursor=None)
            except Unavailable:
                continue
            for what, title in (("schema", "Schema"), ("role", "Role"), ("health", "Health"), ("activity", "Activity")):
                mime = _JSON if what == "activity" else _TEXT
                listed.append(
                    Resource(uri=f"{top}/.{what}", name=f"{database.name} {what}", title=title, mime_type=mime)
                )
            for _, _, _, objects in found.databases:
                for item in objects:
                    uri = self.policy.table_uri(database, item["schema"], item["name"])
                    name = f"{database.name}.{item['schema']}.{item['name']}"
                    listed.append(Resource(uri=uri, name=name, description=item["comment"], mime_type=_JSON))
        return listed

    @resource("postgres://.queries/{name}", name="query", title="A saved query's result", mime_type=_JSON)
    async def read_query(self, uri: str) -> TextResourceContents:
        """What a saved query finds with the defaults of its parameters, at most 100 rows."""
        return await self._read(uri)

    @resource("postgres://{database}/.schema", name="schema", title="A database's schema", mime_type=_TEXT)
    async def read_schema(self, uri: str) -> TextResourceContents:
        """Tables with columns, keys, indexes, triggers, policies and comments; views with their definitions."""
        return await self._read(uri)

    @resource("postgres://{database}/.health", name="health", title="A database's health", mime_type=_TEXT)
    async def read_health(self, uri: str) -> TextResourceContents:
        """What is wrong with a database, as `get_health` tells it."""
        return await self._read(uri)

    @resource("postgres://{database}/.activity", name="activity", title="What other sessions do", mime_type=_JSON)
    async def read_activity(self, uri: str) -> TextResourceContents:
        """Statements and transactions under way, and who blocks whom."""
        return await self._read(uri)

    @resource("postgres://{database}/.role", name="role", title="What the server's role could do", mime_type=_TEXT)
    async def read_role(self, uri: str) -> TextResourceContents:
        """The role's powers, and what to do about them."""
        return await self._read(uri)

    @resource("postgres://{database}/{schema}/.schema", name="one schema", title="One schema", mime_type=_TEXT)
    async def read_one_schema(self, uri: str) -> TextResourceContents:
        """The same for one schema."""
        return await self._read(uri)

    @resource("postgres://{database}/{schema}/{table}/.schema", name="table", title="A table's schema", mime_type=_TEXT)
    async def read_table_schema(self, uri: str) -> TextResourceContents:
        """The same for one table."""
        return await self._read(uri)

    @resource(
        "postgres://{database}/{schema}/{table}{?column,value,limit}",
        name="rows",
        title="A table's first rows in the order of its key, or those where a column has a value",
        mime_type=_JSON,
    )
    async def read_rows(self, uri: str) -> TextResourceContents:
        """At most 100 rows as `{"columns": [...], "rows": [[...]], "truncated": ...}`."""
        return await self._read(uri)

    @resource("postgres://{database}/{schema}/{table}/{key}", name="row", title="The row with a key", mime_type=_JSON)
    async def read_row(self, uri: str) -> TextResourceContents:
        """One row by its primary key; commas between the parts of a key."""
        return await self._read(uri)

    def statement(self, query: SavedQuery, values: dict[str, object]) -> ReadStatement:
        """A saved query with values for its parameters, which are `$1`, `$2` in the order of their declarations."""
        return self.policy.read(query.database, query.sql, list(query.values(values).values()))

    def subject(self, uri: str) -> Subject | None:
        """What a URI means; None for URIs of another kind.

        Raises:
            Problem: there is no such thing.
        """
        if not uri.lower().startswith(_QUERIES):
            return self.policy.subject(uri)
        name = unquote(uri[len(_QUERIES) :])
        query = self.queries.found.get(name) if self.queries else None
        if query is None:
            raise NotFound(f"There is no saved query {quote(name)}.", "`resources/list` has those there are.")
        statement = self.statement(query, {})
        request = {"do": "query", "sql": statement.sql, "parameters": statement.parameters}
        return Subject(query_uri(query.name), statement.database, request)

    async def _read(self, uri: str) -> TextResourceContents:
        subject = self.subject(uri)
        if subject is None:
            raise NotFound(f"No resource has the URI {quote(uri)}.")
        found = await self.engine.read(subject.database, subject.request)
        if isinstance(found, RowPage):
            return TextResourceContents(uri=uri, mime_type=_JSON, text=found.document())
        return TextResourceContents(uri=uri, mime_type=_TEXT, text=found)


def query_uri(name: str) -> str:
    """The URI of a saved query's result."""
    return _QUERIES + name
