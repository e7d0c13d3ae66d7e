"""The engine: trusted types in, results out; each call is a separate transaction on one of a database's connections."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import anyio.to_thread

from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import Invalid, NotFound, Problem, Refused, Unavailable, quote
from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_batteries.sql.language.row_keys import KEY_FORMAT, parse_row_key
from mcp_batteries.sql.results.changes import Change, Import
from mcp_batteries.sql.results.comparison import Comparison
from mcp_batteries.sql.results.rows import Results, RowPage, SearchHits
from mcp_postgres.engine.admission.statements import TransactionLimits, admit, transaction_opening
from mcp_postgres.engine.advisor.indexes import AdvisorInput, AdvisorResult, advise, analyze_statements, format_report
from mcp_postgres.engine.advisor.plan import explain
from mcp_postgres.engine.catalog import description, listing
from mcp_postgres.engine.catalog.suggestions import add_suggestion
from mcp_postgres.engine.change.commit import can_reach_server
from mcp_postgres.engine.change.transaction import run_change
from mcp_postgres.engine.connection.passwords import Passwords
from mcp_postgres.engine.connection.pool import SERVER_ROLE, ConnectionPool, run_shielded
from mcp_postgres.engine.connection.role import COUNT_WRITABLE_TABLES
from mcp_postgres.engine.connection.session import Session
from mcp_postgres.engine.demo.cluster import Cluster
from mcp_postgres.engine.demo.shop import SCRIPT
from mcp_postgres.engine.health import checks, workload
from mcp_postgres.engine.query.comparison import compare_rows
from mcp_postgres.engine.query.pages import ResultPages
from mcp_postgres.engine.transfer.files import export_rows, import_rows
from mcp_postgres.models import Catalog, Export, Plan, Report, TableInfo
from mcp_postgres.policy import (
    ActivityOf,
    Advice,
    Database,
    HealthOf,
    ImportTable,
    ListOf,
    Migration,
    NamesOf,
    NewFile,
    NextPage,
    PlanOf,
    QueryOf,
    Reads,
    ReadStatement,
    Request,
    RoleOf,
    RowOf,
    RowsOf,
    SchemaOf,
    SchemaStatement,
    SearchOf,
    ServedFile,
    Table,
    TableOf,
    VisibleSchema,
    Writes,
    WriteStatement,
    internal_statement,
    table_uri,
)

__all__ = ["Engine"]

T = TypeVar("T")

_MAX_BYTES = 100_000
_CELL_CHARACTERS = 10_000
# Rows of a change that are shown at once.
_MAX_RETURNED_ROWS = 50
_ACTIVITY = """
SELECT pid, usename AS role, application_name AS app, client_addr AS client, state, query_start, xact_start,
    pg_catalog.concat_ws(' ', wait_event_type, wait_event) AS waits, pg_catalog.pg_blocking_pids(pid) AS blocked_by,
    pg_catalog.left(pg_catalog.regexp_replace(query, '\\s+', ' ', 'g'), 500) AS query
FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend' AND state <> 'idle'
    AND datname = pg_catalog.current_database() AND application_name <> 'mcp-postgres' ORDER BY query_start, pid
"""


class Engine:
    """Everything the tools and resources can have done; entered with the server.

    Args:
        connections: to each database at most.
        passwords: asked at each connect, where nothing else has the password.
        demo: start a PostgreSQL for the database `demo`.
        trusted: the operator vouches for all code in the databases.
        callers: everybody who asks has a role of their own in the databases.
        parts: what of each database is served.
        trusted_functions: for each database, functions and extensions that the operator vouches for.
    """

    def __init__(
        self,
        databases: Mapping[str, Database],
        limits: TransactionLimits,
        *,
        connections: int,
        passwords: Passwords,
        demo: bool,
        trusted: bool = False,
        callers: bool = False,
        parts: Mapping[str, VisibleSchema],
        trusted_functions: Mapping[str, frozenset[tuple[str, ...]]],
    ) -> None:
        self.limits = limits
        self._demo = demo
        self._cluster = None
        self._pages = ResultPages(limits)
        make = functools.partial(ConnectionPool, passwords=passwords, is_trusted=trusted, has_callers=callers)
        self._pools: dict[str, ConnectionPool] = {}
        # A connection of its own for who follows changes: it waits for no query.
        self.following: dict[str, ConnectionPool] = {}
        for name, database in databases.items():
            locate = None
            if demo and name == "demo":
                locate = self._demo_address
            make_one = functools.partial(
                make,
                database,
                visible_schema=parts[name],
                trusted_functions=trusted_functions[name],
                find_address=locate,
            )
            self._pools[name] = make_one(max_connections=connections)
            self.following[name] = make_one(max_connections=1, announces=False)
        self._entered = 0

    async def __aenter__(self) -> None:
        # The SDK's SSE transport enters once per connection, and leaves in any order.
        self._entered += 1
        if self._entered == 1 and self._demo:
            self._cluster = Cluster(SCRIPT)

    async def __aexit__(self, *_: object) -> None:
        self._entered -= 1
        if self._entered:
            return
        with anyio.CancelScope(shield=True):
            for connections in (*self._pools.values(), *self.following.values()):
                await connections.close()
            self._pages.close()
            if self._cluster is not None:
                await anyio.to_thread.run_sync(self._cluster.close)
                self._cluster = None

    async def _demo_address(self) -> str:
        if self._cluster is None:
            raise Unavailable("The database `demo` is not running.")
        if self._cluster.has_crashed:
            old_cluster = self._cluster
            self._cluster = Cluster(SCRIPT)
            await anyio.to_thread.run_sync(old_cluster.close)
        port = await anyio.to_thread.run_sync(self._cluster.wait_until_ready, abandon_on_cancel=True)
        return f"host=127.0.0.1 port={port} dbname=demo user=demo password={self._cluster.password}"

    async def within(self, database: Database, work: Callable[[Session], Awaitable[T]]) -> T:
        """Do `work` in a read-only transaction."""

        return await run_shielded(self._within(database, work, database.role))

    async def _within(self, database: Database, work: Callable[[Session], Awaitable[T]], role: object) -> T:
        first = transaction_opening(self.limits)
        seconds = self.limits.statement_seconds
        async with self._pools[database.name].session(first, seconds=seconds, role=role) as session:
            return await work(session)

    async def rows(
        self, wanted: ReadStatement | NextPage, *, limit: int, max_bytes: int, max_cell: int = _CELL_CHARACTERS
    ) -> RowPage | Results:
        """Return the first page of a query's rows, or of each of several queries, or the one behind a cursor."""
        if isinstance(wanted, Reads):
            connections = self._pools[wanted.database.name]
            pages = self._pages.first_pages(connections, wanted, limit=limit, max_bytes=max_bytes, max_cell=max_cell)
            return await run_shielded(pages)
        page = self._read_page(wanted, limit=limit, max_bytes=max_bytes, max_cell=max_cell)
        if isinstance(wanted, NextPage):
            return await page
        return await self._with_suggestion(wanted.database, wanted.sql, page)

    async def _with_suggestion(
        self, database: Database, sql: str, work: Coroutine[Any, Any, T], *, is_schema: bool = False
    ) -> T:
        """Return what `work` gives; its problem says what was meant by a name or word that PostgreSQL does not know."""
        try:
            return await work
        except (Invalid, NotFound, Refused) as unclear:
            within = functools.partial(self.within, database)
            raise await add_suggestion(unclear, sql, within, is_schema=is_schema) from unclear

    async def _read_page(
        self, wanted: ReadStatement | NextPage, *, limit: int, max_bytes: int, max_cell: int = _CELL_CHARACTERS
    ) -> RowPage:
        if isinstance(wanted, NextPage):
            name, shown_rows, statement = self._pages.find_result(wanted)
            connections = self._pools[statement.database.name]
            return await run_shielded(
                self._pages.next_page(connections, name, shown_rows, limit=limit, max_bytes=max_bytes)
            )
        connections = self._pools[wanted.database.name]
        return await run_shielded(
            self._pages.first_page(connections, wanted, limit=limit, max_bytes=max_bytes, max_cell=max_cell)
        )

    async def compile(self, statement: ReadStatement) -> None:
        """Have PostgreSQL look at a query without running it.

        Raises:
            Problem: it would refuse it.
        """
        work = self._within(statement.database, lambda session: admit(session, statement), SERVER_ROLE)
        try:
            await run_shielded(work)
        except Refused:
            # Callers may read what the server's own role may not; each is asked anew.
            if not self._pools[statement.database.name].has_callers:
                raise

    async def catalog(self, wanted: ListOf, *, limit: int) -> Catalog:
        """Return schemas and objects of a kind, `limit` of them, of one database after the other."""
        names = [database.name for database in wanted.databases]
        request = [wanted.kind, wanted.schema, wanted.name, names]
        first, offset = _decode_position(wanted.cursor, request, names)
        entries: list[tuple[str, str, Sequence[Any], Sequence[Any]]] = []
        for place in range(names.index(first), len(names)):
            database = wanted.databases[place]
            read_page = functools.partial(_list_page, request=wanted, limit=limit, offset=offset)
            try:
                schemas, objects = await self.within(database, read_page)
            except Unavailable as down:
                if len(names) == 1:
                    raise
                entries.append((database.name, str(down), [], []))
                offset = 0
                continue
            entries.append((database.name, self._describe_role(database), schemas, objects[:limit]))
            if len(objects) > limit:
                return Catalog(entries, Cursor.encode("objects", [database.name, offset + limit], request))
            limit -= len(objects)
            offset = 0
            if limit <= 0 and place + 1 < len(names):
                return Catalog(entries, Cursor.encode("objects", [names[place + 1], 0], request))
        return Catalog(entries)

    def _describe_role(self, database: Database) -> str:
        """Return what the server's role, or the caller's, is there; empty before the first connection."""
        role = self._pools[database.name].role
        if role is None:
            return ""
        return role.describe(database.role)

    async def describe(self, table: Table, *, sample: int) -> TableInfo:
        """Return one table, with `sample` of its rows."""
        description = await self.described(table)
        page = None
        if sample and description["closed"] and (description["locked"] or description["kind"] == "view"):
            page = description["closed"]
        elif sample and description["kind"] != "sequence":
            schema = quote_identifier(description["schema"])
            sql = f"SELECT * FROM {schema}.{quote_identifier(description['name'])} LIMIT {sample}"
            try:
                rows = self._read_page(
                    internal_statement(table.database, sql), limit=sample, max_bytes=20_000, max_cell=200
                )
                page = await self._with_suggestion(table.database, sql, rows)
            except Problem as why:
                page = str(why)
        return TableInfo(table_uri(table.database, description["schema"], description["name"]), description, page)

    async def compare(self, one: Table, other: Table) -> Comparison:
        """Return in which rows two tables differ."""
        return await compare_rows(self, one, other)

    async def described(self, table: Table) -> dict[str, Any]:
        """Return what the catalogue says of a table.

        Raises:
            NotFound: there is none.
        """
        found = self.within(table.database, lambda session: description.describe(session, table))
        return await self._with_suggestion(table.database, "", found)

    async def find(self, wanted: SearchOf, *, limit: int) -> SearchHits:
        """Return where words occur in names and comments."""
        lines: list[str] = []
        for database in wanted.databases:
            found = await self.within(
                database, lambda session: description.search_names(session, wanted.words, limit + 1)
            )
            lines += [f"{database.name}: {line}" if len(wanted.databases) > 1 else line for line in found]
        return SearchHits(lines[:limit], len(lines) > limit)

    async def names(self, wanted: NamesOf) -> list[str]:
        """Return schemas, tables or columns that begin with what was typed."""
        return await self.within(
            wanted.database,
            lambda session: description.complete_names(session, wanted.kind, wanted.typed, *wanted.inside),
        )

    async def explain(self, wanted: PlanOf, *, analyze: bool) -> Plan:
        """Return the plan of a statement, and what would make it cheaper."""
        statement = wanted.statement

        async def look(session: Session) -> tuple[Plan, AdvisorInput | None]:
            plan, top = await explain(session, wanted, analyze=analyze)
            if wanted.indexes:
                return plan, None
            return plan, await analyze_statements(session, [(statement, 1.0)], strict=False, plans=[top])

        plan, advice = await self._with_suggestion(
            statement.database, statement.sql, self.within(statement.database, look)
        )
        if advice is None:
            return plan
        result = await self._advise(statement.database, advice, limit=5)
        return replace(plan, findings=[*plan.findings, *advice.format_prerequisites(), *result.format_lines()])

    async def _advise(self, database: Database, advice: AdvisorInput, *, limit: int) -> AdvisorResult:
        first = transaction_opening(self.limits, write=advice.hypopg_schema is None)
        seconds = self.limits.statement_seconds
        session_context = self._pools[database.name].session(first, seconds=seconds, role=database.role)
        return await run_shielded(advise(session_context, advice, limit=limit, search_seconds=seconds / 2))

    async def change(self, statement: WriteStatement | SchemaStatement, *, dry_run: bool) -> Change:
        """Change rows or the schema, in one transaction."""
        assert isinstance(statement, Writes | Migration)  # as this server's policy makes them
        dry_run = dry_run or (isinstance(statement, Writes) and statement.role is not None)
        connections = self._pools[statement.database.name]
        work = run_change(connections, statement, self.limits, self._pages, dry_run=dry_run, limit=_MAX_RETURNED_ROWS)
        is_schema = isinstance(statement, Migration)
        return await self._with_suggestion(statement.database, statement.sql, run_shielded(work), is_schema=is_schema)

    async def export(self, statement: ReadStatement, file: NewFile) -> Export:
        """Write all rows of a query into a new file."""
        work = export_rows(self._pools[statement.database.name], statement, file, self.limits)
        return await self._with_suggestion(statement.database, statement.sql, run_shielded(work))

    async def import_rows(self, table: ImportTable, file: ServedFile, *, dry_run: bool) -> Import:
        """Insert all records of a file into a table, or none."""
        return await run_shielded(
            import_rows(self._pools[table.database.name], table, file, self.limits, dry_run=dry_run)
        )

    async def closed_to_schema(self, database: Database) -> str | None:
        """Return why no change of the schema would be taken from this server's role; None where some would."""

        async def look(session: Session) -> str | None:
            if can_reach_server(session):
                return session.role.explain_judging()
            return None

        return await self.within(database, look)

    async def health(self, wanted: HealthOf) -> Report:
        """Return what is wrong with a database."""
        areas = wanted.areas or tuple(checks.CHECKS_BY_AREA)
        return await self.within(wanted.database, lambda session: checks.run_checks(session, areas))

    async def top(self, database: Database, order: str, limit: int) -> Report:
        """Return the statements that cost most."""
        return await self.within(database, lambda session: workload.list_top_statements(session, order, limit))

    async def sessions(self, database: Database, which: str, limit: int) -> Report:
        """Return who does what now."""
        return await self.within(database, lambda session: workload.list_sessions(session, which, limit))

    async def settings(self, wanted: SearchOf) -> Report:
        """Return settings that matter, or that have words in their names or meanings."""
        return await self.within(wanted.databases[0], lambda session: workload.list_settings(session, wanted.words))

    async def advice(self, wanted: Advice, limit: int) -> Report:
        """Return indexes that would help."""

        async def look(session: Session) -> AdvisorInput:
            return await analyze_statements(
                session, await workload.read_statements(session, wanted), strict=bool(wanted.statements)
            )

        advice = await self.within(wanted.database, look)
        return format_report(advice, await self._advise(wanted.database, advice, limit=limit))

    async def role(self, database: Database) -> str:
        """Return what the role could do, for a person."""

        trusted = self._pools[database.name].is_trusted

        async def look(session: Session) -> str:
            found = json.loads(await session.fetch_value(COUNT_WRITABLE_TABLES) or "{}")
            return session.role.report(found, trusted=trusted, caller=database.role)

        return await self.within(database, look)

    async def read(self, request: Request) -> RowPage | str:
        """Return the content of a resource.

        Raises:
            NotFound: there is no such thing.
        """
        match request:
            case SchemaOf(database, schema):
                return await self._describe_schema(database, schema)
            case TableOf(table):
                return (await self.describe(table, sample=0)).definition() + "\n"
            case HealthOf():
                return (await self.health(request)).text() + "\n"
            case RoleOf(database):
                return await self.role(database)
            case ActivityOf(database):
                return await self._read_page(internal_statement(database, _ACTIVITY), limit=100, max_bytes=_MAX_BYTES)
            case QueryOf(statement):
                return await self._read_page(statement, limit=100, max_bytes=_MAX_BYTES)
            case RowsOf() | RowOf():
                return await self._read_table_rows(request)

    async def _read_table_rows(self, request: RowsOf[Table] | RowOf[Table]) -> RowPage:
        """Return the first rows in the order of the key, those with a value in a column, or the one with a key."""
        table = request.table
        description = await self.described(table)
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
            return await self._read_page(statement, limit=request.limit, max_bytes=_MAX_BYTES)
        try:
            page = await self._read_page(statement, limit=1, max_bytes=_MAX_BYTES)
        except Invalid:
            page = None  # what can't be a value of the key's type is not a row's key
        if page is None or not page.rows:
            raise NotFound(f"{quote(table.name)} has no row with this key: {quote(request.key)}.")
        return page

    async def _describe_schema(self, database: Database, schema: str | None) -> str:
        async def look(session: Session) -> str:
            held = await listing.list_schemas(session)
            if schema is not None and schema not in [item["name"] for item in held]:
                raise NotFound(f"There is no schema {quote(schema)}.", "`list_objects` lists them.")
            shown = [item for item in held if schema in (None, item["name"])]
            objects = await listing.list_objects(session, "tables", schema, 500, 0)
            # Sizes and counts come and go; what is told here is what DDL changes.
            lines = [
                f"schema {item['spelled']}" + (f" -- {item['comment']}" if item["comment"] else "") for item in shown
            ]
            lines += [TableInfo("", told).definition() for told in await description.describe_all(session, objects)]
            return "\n".join(lines) + "\n"

        return await self.within(database, look)


def _decode_position(cursor: str | None, request: Any, names: Sequence[str]) -> tuple[str, int]:
    """Return the database where a page of the catalog begins, and how many of its objects were shown.

    Raises:
        Invalid: the cursor is of another request, or none.
    """
    if not cursor:
        return names[0], 0
    match Cursor.decode("objects", cursor, request):
        case [str() as name, int() as offset] if name in names and offset >= 0:
            return name, offset
        case _:
            raise Invalid("The `cursor` is not one that was given.", "Call again without `cursor`.")


async def _list_page(
    session: Session, *, request: ListOf, limit: int, offset: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the schemas, where they are to be shown, and one object more than `limit` if there is."""
    schemas: list[dict[str, Any]] = []
    if request.kind == "tables" and not (request.schema or request.name or offset):
        schemas = await listing.list_schemas(session)
    objects = await listing.list_objects(session, request.kind, request.schema, limit + 1, offset, request.name)
    if request.schema and not objects and len(request.databases) == 1:
        await _check_schema(session, request.schema)
    return schemas, objects


async def _check_schema(session: Session, schema: str) -> None:
    """Raise `NotFound` for a schema that there is not."""
    names = [item["name"] for item in await listing.list_schemas(session)]
    if schema not in names:
        raise NotFound(f"There is no schema {quote(schema)}.", f"There are: {', '.join(map(quote, names[:20]))}.")


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
