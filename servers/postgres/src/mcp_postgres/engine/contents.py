"""What resources show."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_batteries.sql.language.row_keys import KEY_FORMAT, parse_row_key
from mcp_batteries.sql.results.rows import RowPage
from mcp_postgres.engine.catalog import description, listing
from mcp_postgres.engine.connection.role import COUNT_WRITABLE_TABLES
from mcp_postgres.engine.connection.session import Session
from mcp_postgres.engine.health.checks import run_checks
from mcp_postgres.engine.pools import ConnectionPools
from mcp_postgres.engine.query.pages import ResultPages
from mcp_postgres.engine.query.table_descriptions import read_description
from mcp_postgres.engine.schemas import describe_table
from mcp_postgres.models import TableInfo
from mcp_postgres.policy import (
    ActivityOf,
    Database,
    HealthOf,
    QueryOf,
    Request,
    RoleOf,
    RowOf,
    RowsOf,
    SchemaOf,
    Table,
    TableOf,
    internal_statement,
)

__all__ = ["read_content"]

_MAX_ROWS = 100
# Tables and views whose definitions a schema's resource has.
_MAX_TABLES = 500
_MAX_BYTES = 100_000
_ACTIVITY = """
SELECT pid, usename AS role, application_name AS app, client_addr AS client, state, query_start, xact_start,
    pg_catalog.concat_ws(' ', wait_event_type, wait_event) AS waits, pg_catalog.pg_blocking_pids(pid) AS blocked_by,
    pg_catalog.left(pg_catalog.regexp_replace(query, '\\s+', ' ', 'g'), 500) AS query
FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend' AND state <> 'idle'
    AND datname = pg_catalog.current_database() AND application_name <> 'mcp-postgres' ORDER BY query_start, pid
"""


async def read_content(pools: ConnectionPools, pages: ResultPages, request: Request) -> RowPage | str:
    """Return the content of a resource.

    Raises:
        NotFound: there is no such thing.
    """
    match request:
        case SchemaOf(database, schema):
            return await _describe_schema(pools, database, schema)
        case TableOf(table):
            return (await describe_table(pools, pages, table)).definition() + "\n"
        case HealthOf(database):
            return (await pools.within(database, run_checks)).text() + "\n"
        case RoleOf(database):
            return await _read_role(pools, database)
        case ActivityOf(database):
            return await pages.read_statement(
                internal_statement(database, _ACTIVITY), limit=_MAX_ROWS, max_bytes=_MAX_BYTES
            )
        case QueryOf(statement):
            return await pages.read_statement(statement, limit=_MAX_ROWS, max_bytes=_MAX_BYTES)
        case RowsOf() | RowOf():
            return await _read_table_rows(pools, pages, request)


async def _read_role(pools: ConnectionPools, database: Database) -> str:
    """Return what the role could do, for a person."""
    is_trusted = pools.of(database).is_trusted

    async def report(session: Session) -> str:
        table_counts = json.loads(await session.fetch_value(COUNT_WRITABLE_TABLES) or "{}")
        return session.role.report(table_counts, trusted=is_trusted, caller=database.role)

    return await pools.within(database, report)


async def _read_table_rows(
    pools: ConnectionPools, pages: ResultPages, request: RowsOf[Table] | RowOf[Table]
) -> RowPage:
    """Return the first rows in the order of the key, those with a value in a column, or the one with a key."""
    table = request.table
    description = await read_description(pools, table)
    if description["kind"] == "sequence":
        raise NotFound(f"{quote(table.name)} is a sequence, it has no rows.")
    keys: list[str] = description["key"] or []
    predicate, values = _row_predicate(request, description, keys)
    sql = f"SELECT * FROM {quote_identifier(description['schema'])}.{quote_identifier(description['name'])}"
    if predicate:
        sql += f" WHERE {predicate}"
    sql += _row_order(request, keys)
    statement = internal_statement(table.database, sql, tuple(values))
    if isinstance(request, RowsOf):
        return await pages.read_statement(statement, limit=request.limit, max_bytes=_MAX_BYTES)
    try:
        page = await pages.read_statement(statement, limit=1, max_bytes=_MAX_BYTES)
    except Invalid:
        page = None  # what can't be a value of the key's type is not a row's key
    if page is None or not page.rows:
        raise NotFound(f"{quote(table.name)} has no row with this key: {quote(request.key)}.")
    return page


async def _describe_schema(pools: ConnectionPools, database: Database, schema: str | None) -> str:
    async def describe(session: Session) -> str:
        schemas = await listing.list_schemas(session)
        if schema is not None and schema not in [item["name"] for item in schemas]:
            raise NotFound(f"There is no schema {quote(schema)}.", "`list_objects` lists them.")
        schemas = [item for item in schemas if schema in (None, item["name"])]
        objects = await listing.list_objects(session, "tables", schema, _MAX_TABLES + 1, 0)
        # Sizes and counts come and go; what is told here is what DDL changes.
        lines = list(map(_format_schema, schemas))
        descriptions = await description.describe_all(session, objects[:_MAX_TABLES])
        lines += [TableInfo("", item).definition() for item in descriptions]
        if len(objects) > _MAX_TABLES:
            lines.append(f"[the first {_MAX_TABLES} tables and views; `list_objects` lists the others]")
        return "\n".join(lines) + "\n"

    return await pools.within(database, describe)


def _format_schema(schema: Mapping[str, Any]) -> str:
    """Return the line of a schema, with its comment as SQL writes one."""
    line = f"schema {schema['spelled']}"
    if schema["comment"]:
        line += f" -- {schema['comment']}"
    return line


def _row_predicate(
    request: RowsOf[Table] | RowOf[Table], description: Mapping[str, Any], keys: Sequence[str]
) -> tuple[str, list[str]]:
    """Return the condition of the rows that are asked for, empty for all of them, and the values in it."""
    table = request.table
    columns = {str(column["name"]): str(column["type"]) for column in description["columns"]}
    if isinstance(request, RowOf):
        if not keys:
            raise NotFound(f"Rows of {quote(table.name)} have no key.", "Ask with `?column=...&value=...`.")
        values = parse_row_key(request.key, len(keys))
        if len(keys) != len(values):
            raise NotFound(f"A row of {quote(table.name)} has a key of {len(keys)} values.", KEY_FORMAT)
        conditions = [f"{quote_identifier(key)} = ${number}::{columns[key]}" for number, key in enumerate(keys, 1)]
        return " AND ".join(conditions), values
    if request.column is None:
        return "", []
    if request.column not in columns:
        raise NotFound(f"{quote(table.name)} has no column {quote(request.column)}.", "`get_table` lists them.")
    column = quote_identifier(request.column)
    predicate = f"{column}::text = $1"
    if not re.match(r"text|character varying", columns[request.column]):
        # A cast may say another thing than rows show: of an address, of what is padded.
        predicate += f" OR pg_catalog.format('%s', {column}) = $1"
    return predicate, [request.value]


def _row_order(request: RowsOf[Table] | RowOf[Table], keys: Sequence[str]) -> str:
    """Return the ORDER BY by the key, backwards for the newest rows; empty where there is no key."""
    direction = ""
    if isinstance(request, RowsOf) and request.newest:
        direction = " DESC"
        if not keys:
            raise NotFound(f"{quote(request.table.name)} has no key, so none of its rows is known as the newest.")
    if not keys:
        return ""
    return f" ORDER BY {', '.join(quote_identifier(key) + direction for key in keys)}"
