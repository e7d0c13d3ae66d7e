"""Schemas, rows and the insights memo as resources; what `changes` tells about is read here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from mcp_types import Resource, TextResourceContents

from mcp_batteries.errors import NotFound, quote
from mcp_batteries.server.declare import lists_resources, resource
from mcp_batteries.sql.saved_queries import SavedQueries, SavedQuery
from mcp_sqlite.engine.insights import Insights
from mcp_sqlite.engine.service import Engine
from mcp_sqlite.policy import Policy, ReadStatement, Subject

__all__ = ["MEMO", "Resources", "query_uri"]

MEMO = "memo://insights"
_QUERIES = "sqlite://.queries/"
_LISTED = 200
"""Tables of one database in the list; all others are read by their URI all the same."""
_SQL, _JSON = "application/sql", "application/json"


@dataclass(frozen=True)
class Resources:
    policy: Policy
    engine: Engine
    insights: Insights
    queries: SavedQueries | None = None

    @lists_resources
    async def databases_and_their_tables(self) -> list[Resource]:
        """The schema of each database, and each of its tables and views."""
        listed: list[Resource] = []
        for query in self.queries.found.values() if self.queries else ():
            if not any(parameter.default is None for parameter in query.parameters):
                about = query.description
                listed.append(Resource(uri=query_uri(query.name), name=query.name, description=about, mime_type=_JSON))
        for database in self.policy.databases.values():
            top = self.policy.subject(f"sqlite://{database.name}/.schema")
            assert top is not None
            listed.append(Resource(uri=top.uri, name=f"{database.name} schema", title="Schema", mime_type=_SQL))
            for name in (await self.engine.names(database, ""))[:_LISTED]:
                table = f"{database.name}.{name}"
                listed.append(Resource(uri=self.policy.table_uri(database, name), name=table, mime_type=_JSON))
        return listed

    @resource("memo://insights", name="insights", title="Insights noted so far", mime_type="text/markdown")
    async def read_insights(self) -> TextResourceContents:
        """What `create_insight` has noted since the start."""
        return TextResourceContents(uri=MEMO, mime_type="text/markdown", text=self.insights.text())

    @resource("sqlite://.queries/{name}", name="query", title="A saved query's result", mime_type=_JSON)
    async def read_query(self, uri: str) -> TextResourceContents:
        """What a saved query finds with the defaults of its parameters, at most 100 rows."""
        return await self._read(uri)

    @resource("sqlite://{database}/.schema", name="schema", title="A database's schema", mime_type=_SQL)
    async def read_schema(self, uri: str) -> TextResourceContents:
        """The definitions of everything in a database, comments included."""
        return await self._read(uri)

    @resource("sqlite://{database}/{table}/.schema", name="table schema", title="A table's schema", mime_type=_SQL)
    async def read_table_schema(self, uri: str) -> TextResourceContents:
        """The definitions of a table, its indexes and its triggers."""
        return await self._read(uri)

    @resource(
        "sqlite://{database}/{table}{?column,value,limit}",
        name="rows",
        title="A table's first rows in the order of its key, or those where a column has a value",
        mime_type=_JSON,
    )
    async def read_rows(self, uri: str) -> TextResourceContents:
        """At most 100 rows as `{"columns": [...], "rows": [[...]], "truncated": ...}`."""
        return await self._read(uri)

    @resource("sqlite://{database}/{table}/{key}", name="row", title="The row with a key", mime_type=_JSON)
    async def read_row(self, uri: str) -> TextResourceContents:
        """One row by its primary key, or rowid where there is none; commas between the parts of a key."""
        return await self._read(uri)

    def statement(self, query: SavedQuery, values: Mapping[str, Any]) -> ReadStatement:
        """A saved query with values for its parameters."""
        return self.policy.read(query.database, query.sql, query.values(values))

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
        page = {"limit": 100, "max_bytes": 100_000, "max_cell": 10_000}
        return Subject(query_uri(query.name), statement.database, {**request, **page})

    async def _read(self, uri: str) -> TextResourceContents:
        subject = self.subject(uri)
        if subject is None:
            raise NotFound(f"No resource has the URI {quote(uri)}.")
        found = await self.engine.read(subject)
        if "sql" in found:
            return TextResourceContents(uri=uri, mime_type=_SQL, text=found["sql"])
        return TextResourceContents(uri=uri, mime_type=_JSON, text=_document(found))


def query_uri(name: str) -> str:
    """The URI of a saved query's result."""
    return _QUERIES + name


def _document(found: dict[str, Any]) -> str:
    columns = json.dumps(found["columns"], ensure_ascii=False, separators=(",", ":"))
    rows = ",\n".join(found["lines"].split("\n")[:-1])
    truncated = ',"truncated":true' if found["more"] else ""
    return f'{{"columns":{columns},"rows":[\n{rows}]{truncated}}}\n'
