"""The engine: trusted types in, results out; each call is a separate transaction on one of a database's connections."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import anyio.to_thread

from mcp_batteries.errors import Invalid, NotFound, Problem, Refused, Unavailable, quote
from mcp_batteries.limits import Cursor
from mcp_batteries.sql.changes import Change, Import
from mcp_batteries.sql.compared import Comparison
from mcp_batteries.sql.identifiers import identifier
from mcp_batteries.sql.keys import FORM, values_of
from mcp_batteries.sql.rows import Hits, Results, RowPage
from mcp_postgres.engine.admission.statements import Limits, admit, opening
from mcp_postgres.engine.advisor.indexes import Found, Looked, advised, looked_at, report
from mcp_postgres.engine.advisor.plan import explained
from mcp_postgres.engine.catalog import description, listing
from mcp_postgres.engine.catalog.suggestions import helped
from mcp_postgres.engine.change.transaction import change, reaches_far
from mcp_postgres.engine.connection.passwords import Passwords
from mcp_postgres.engine.connection.pool import ITSELF, Connections, Session, apart
from mcp_postgres.engine.connection.role import WRITABLE
from mcp_postgres.engine.demo.cluster import Cluster
from mcp_postgres.engine.demo.shop import SCRIPT
from mcp_postgres.engine.health import checks, workload
from mcp_postgres.engine.query.comparison import compare
from mcp_postgres.engine.query.pages import Pages
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
    Part,
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
    Writes,
    WriteStatement,
    of_ours,
    table_uri,
)

__all__ = ["Engine"]

T = TypeVar("T")

_BYTES = 100_000
_CELL = 10_000
_RETURNED = 50
"""Rows of a change that are shown at once."""
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
        limits: Limits,
        *,
        connections: int,
        passwords: Passwords,
        demo: bool,
        trusted: bool = False,
        callers: bool = False,
        parts: Mapping[str, Part],
        trusted_functions: Mapping[str, frozenset[tuple[str, ...]]],
    ) -> None:
        self.limits = limits
        self._demo, self._cluster = demo, None
        self._pages = Pages(limits)
        make = functools.partial(Connections, password=passwords, trusted=trusted, callers=callers)
        self._to: dict[str, Connections] = {}
        self.following: dict[str, Connections] = {}
        """A connection of its own for who follows changes: it waits for no query."""
        for name, database in databases.items():
            locate = self._demo_address if demo and name == "demo" else None
            make_one = functools.partial(
                make, database, part=parts[name], trusted_functions=trusted_functions[name], locate=locate
            )
            self._to[name] = make_one(most=connections)
            self.following[name] = make_one(most=1, announces=False)
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
            for connections in (*self._to.values(), *self.following.values()):
                await connections.close()
            self._pages.close()
            if self._cluster is not None:
                await anyio.to_thread.run_sync(self._cluster.close)
                self._cluster = None

    async def _demo_address(self) -> str:
        if self._cluster is None:
            raise Unavailable("The database `demo` is not running.")
        if self._cluster.lost:
            ended, self._cluster = self._cluster, Cluster(SCRIPT)
            await anyio.to_thread.run_sync(ended.close)
        port = await anyio.to_thread.run_sync(self._cluster.wait, abandon_on_cancel=True)
        return f"host=127.0.0.1 port={port} dbname=demo user=demo password={self._cluster.password}"

    async def within(self, database: Database, work: Callable[[Session], Awaitable[T]]) -> T:
        """Do `work` in a read-only transaction."""

        return await apart(self._within(database, work, database.role))

    async def _within(self, database: Database, work: Callable[[Session], Awaitable[T]], role: object) -> T:
        first, seconds = opening(self.limits), self.limits.seconds
        async with self._to[database.name].session(first, seconds=seconds, role=role) as session:
            return await work(session)

    async def rows(
        self, wanted: ReadStatement | NextPage, *, limit: int, max_bytes: int, max_cell: int = _CELL
    ) -> RowPage | Results:
        """The first page of a query's rows, or of each of several queries, or the one behind a cursor."""
        if isinstance(wanted, Reads):
            connections = self._to[wanted.database.name]
            found = self._pages.several(connections, wanted, limit=limit, max_bytes=max_bytes, max_cell=max_cell)
            return await apart(found)
        page = self._page(wanted, limit=limit, max_bytes=max_bytes, max_cell=max_cell)
        return await page if isinstance(wanted, NextPage) else await self._helped(wanted.database, wanted.sql, page)

    async def _helped(
        self, database: Database, sql: str, work: Coroutine[Any, Any, T], *, is_schema: bool = False
    ) -> T:
        """What `work` gives; its problem says what was meant by a name or word that PostgreSQL does not know."""
        try:
            return await work
        except (Invalid, NotFound, Refused) as unclear:
            within = functools.partial(self.within, database)
            raise await helped(unclear, sql, within, is_schema=is_schema) from unclear

    async def _page(
        self, wanted: ReadStatement | NextPage, *, limit: int, max_bytes: int, max_cell: int = _CELL
    ) -> RowPage:
        if isinstance(wanted, NextPage):
            name, shown, statement = self._pages.known(wanted)
            connections = self._to[statement.database.name]
            return await apart(self._pages.next(connections, name, shown, limit=limit, max_bytes=max_bytes))
        connections = self._to[wanted.database.name]
        return await apart(self._pages.first(connections, wanted, limit=limit, max_bytes=max_bytes, max_cell=max_cell))

    async def compile(self, statement: ReadStatement) -> None:
        """Have PostgreSQL look at a query without running it.

        Raises:
            Problem: it would refuse it.
        """
        work = self._within(statement.database, lambda session: admit(session, statement), ITSELF)
        try:
            await apart(work)
        except Refused:
            # Callers may read what the server's own role may not; each is asked anew.
            if not self._to[statement.database.name].callers:
                raise

    async def catalog(self, wanted: ListOf, *, limit: int) -> Catalog:
        """Schemas and objects of a kind, `limit` of them, of one database after the other."""
        databases, kind, schema, part = wanted.databases, wanted.kind, wanted.schema, wanted.name
        names = [database.name for database in databases]
        match Cursor.decode("objects", wanted.cursor, [kind, schema, part, names]) if wanted.cursor else [names[0], 0]:
            case [str() as first, int() as offset] if first in names and offset >= 0:
                pass
            case _:
                raise Invalid("The `cursor` is not one that was given.", "Call again without `cursor`.")
        found: list[tuple[str, str, Sequence[Any], Sequence[Any]]] = []
        for place, database in enumerate(databases[names.index(first) :], names.index(first)):
            look = functools.partial(
                _listed, kind=kind, schema=schema, name=part, limit=limit, offset=offset, alone=len(names) == 1
            )
            try:
                held, objects = await self.within(database, look)
            except Unavailable as down:
                if len(databases) == 1:
                    raise
                found.append((database.name, str(down), [], []))
                offset = 0
                continue
            role = self._to[database.name].role
            found.append((database.name, role.sentence(database.role) if role else "", held, objects[:limit]))
            position = [database.name, offset + limit] if len(objects) > limit else None
            limit, offset = limit - len(objects), 0
            if position is None and limit <= 0 and place + 1 < len(names):
                position = [names[place + 1], 0]
            if position is not None:
                return Catalog(found, Cursor.encode("objects", position, [kind, schema, part, names]))
        return Catalog(found)

    async def describe(self, table: Table, *, sample: int) -> TableInfo:
        """One table, with `sample` of its rows."""
        found = await self.described(table)
        page = None
        if sample and found["kind"] != "sequence":
            sql = f"SELECT * FROM {identifier(found['schema'])}.{identifier(found['name'])} LIMIT {sample}"
            try:
                rows = self._page(of_ours(table.database, sql), limit=sample, max_bytes=20_000, max_cell=200)
                page = await self._helped(table.database, sql, rows)
            except Problem as why:
                page = str(why)
        return TableInfo(table_uri(table.database, found["schema"], found["name"]), found, page)

    async def compare(self, one: Table, other: Table) -> Comparison:
        """In which rows two tables differ."""
        return await compare(self, one, other)

    async def described(self, table: Table) -> dict[str, Any]:
        """What the catalogue says of a table.

        Raises:
            NotFound: there is none.
        """
        found = self.within(table.database, lambda session: description.describe(session, table))
        return await self._helped(table.database, "", found)

    async def find(self, wanted: SearchOf, *, limit: int) -> Hits:
        """Where words occur in names and comments."""
        lines: list[str] = []
        for database in wanted.databases:
            found = await self.within(database, lambda session: description.find(session, wanted.words, limit + 1))
            lines += [f"{database.name}: {line}" if len(wanted.databases) > 1 else line for line in found]
        return Hits(lines[:limit], len(lines) > limit)

    async def names(self, wanted: NamesOf) -> list[str]:
        """Schemas, tables or columns that begin with what was typed."""
        return await self.within(
            wanted.database, lambda session: description.names(session, wanted.kind, wanted.typed, *wanted.inside)
        )

    async def explain(self, wanted: PlanOf, *, analyze: bool) -> Plan:
        """The plan of a statement, and what would make it cheaper."""
        statement = wanted.statement

        async def look(session: Session) -> tuple[Plan, Looked | None]:
            plan, top = await explained(session, wanted, analyze=analyze)
            if wanted.indexes:
                return plan, None
            return plan, await looked_at(session, [(statement, 1.0)], strict=False, plans=[top])

        plan, looked = await self._helped(statement.database, statement.sql, self.within(statement.database, look))
        if looked is None:
            return plan
        found = await self._advised(statement.database, looked, limit=5)
        return replace(plan, findings=[*plan.findings, *looked.first(), *found.lines()])

    async def _advised(self, database: Database, looked: Looked, *, limit: int) -> Found:
        first, seconds = opening(self.limits, write=looked.schema is None), self.limits.seconds
        opened = self._to[database.name].session(first, seconds=seconds, role=database.role)
        return await apart(advised(opened, looked, limit=limit, seconds=seconds / 2))

    async def change(self, statement: WriteStatement | SchemaStatement, *, dry_run: bool) -> Change:
        """Change rows or the schema, in one transaction."""
        assert isinstance(statement, Writes | Migration)  # as this server's policy makes them
        dry_run = dry_run or (isinstance(statement, Writes) and statement.role is not None)
        connections = self._to[statement.database.name]
        work = change(connections, statement, self.limits, self._pages, dry_run=dry_run, limit=_RETURNED)
        is_schema = isinstance(statement, Migration)
        return await self._helped(statement.database, statement.sql, apart(work), is_schema=is_schema)

    async def export(self, statement: ReadStatement, file: NewFile) -> Export:
        """All rows of a query into a new file."""
        work = export_rows(self._to[statement.database.name], statement, file, self.limits)
        return await self._helped(statement.database, statement.sql, apart(work))

    async def import_rows(self, table: ImportTable, file: ServedFile, *, dry_run: bool) -> Import:
        """All records of a file into a table, or none."""
        return await apart(import_rows(self._to[table.database.name], table, file, self.limits, dry_run=dry_run))

    async def closed_to_schema(self, database: Database) -> str | None:
        """Why no change of the schema would be taken from this server's role; None where some would."""

        async def look(session: Session) -> str | None:
            return session.role.because() if reaches_far(session) else None

        return await self.within(database, look)

    async def health(self, wanted: HealthOf) -> Report:
        """What is wrong with a database."""
        areas = wanted.areas or tuple(checks.AREAS)
        return await self.within(wanted.database, lambda session: checks.report(session, areas))

    async def top(self, database: Database, order: str, limit: int) -> Report:
        """The statements that cost most."""
        return await self.within(database, lambda session: workload.top(session, order, limit))

    async def sessions(self, database: Database, which: str, limit: int) -> Report:
        """Who does what now."""
        return await self.within(database, lambda session: workload.sessions(session, which, limit))

    async def settings(self, wanted: SearchOf) -> Report:
        """Settings that matter, or that have words in their names or meanings."""
        return await self.within(wanted.databases[0], lambda session: workload.settings(session, wanted.words))

    async def advice(self, wanted: Advice, limit: int) -> Report:
        """Indexes that would help."""

        async def look(session: Session) -> Looked:
            return await looked_at(session, await workload.asked(session, wanted), strict=bool(wanted.statements))

        looked = await self.within(wanted.database, look)
        return report(looked, await self._advised(wanted.database, looked, limit=limit))

    async def role(self, database: Database) -> str:
        """What the role could do, for a person."""

        trusted = self._to[database.name].trusted

        async def look(session: Session) -> str:
            found = json.loads(await session.value(WRITABLE) or "{}")
            return session.role.report(found, trusted=trusted, caller=database.role)

        return await self.within(database, look)

    async def read(self, request: Request) -> RowPage | str:
        """The content of a resource.

        Raises:
            NotFound: there is no such thing.
        """
        match request:
            case SchemaOf(database, schema):
                return await self._schema(database, schema)
            case TableOf(table):
                return (await self.describe(table, sample=0)).definition() + "\n"
            case HealthOf():
                return (await self.health(request)).text() + "\n"
            case RoleOf(database):
                return await self.role(database)
            case ActivityOf(database):
                return await self._page(of_ours(database, _ACTIVITY), limit=100, max_bytes=_BYTES)
            case QueryOf(statement):
                return await self._page(statement, limit=100, max_bytes=_BYTES)
            case RowsOf() | RowOf():
                return await self._rows(request)

    async def _rows(self, request: RowsOf[Table] | RowOf[Table]) -> RowPage:
        """The first rows in the order of the key, those with a value in a column, or the one with a key."""
        table = request.table
        found = await self.described(table)
        if found["kind"] == "sequence":
            raise NotFound(f"{quote(table.name)} is a sequence, it has no rows.")
        columns = {str(column["name"]): str(column["type"]) for column in found["columns"]}
        keys: list[str] = found["key"] or []
        where, values = "", []
        if isinstance(request, RowOf):
            if not keys:
                raise NotFound(f"Rows of {quote(table.name)} have no key.", "Ask with `?column=...&value=...`.")
            values = values_of(request.key, len(keys))
            if len(keys) != len(values):
                raise NotFound(f"A row of {quote(table.name)} has a key of {len(keys)} values.", FORM)
            where = " AND ".join(f"{identifier(key)} = ${n}::{columns[key]}" for n, key in enumerate(keys, 1))
        elif request.column is not None:
            if request.column not in columns:
                raise NotFound(f"{quote(table.name)} has no column {quote(request.column)}.", "`get_table` lists them.")
            where, values = f"{identifier(request.column)}::text = $1", [request.value]
            if not re.match(r"text|character varying", columns[request.column]):
                # A cast may say another thing than rows show: of an address, of what is padded.
                where += f" OR pg_catalog.format('%s', {identifier(request.column)}) = $1"
        sql = f"SELECT * FROM {identifier(found['schema'])}.{identifier(found['name'])}"
        sql += f" WHERE {where}" if where else ""
        turned = " DESC" if isinstance(request, RowsOf) and request.newest else ""
        if turned and not keys:
            raise NotFound(f"{quote(table.name)} has no key, so none of its rows is known as the newest.")
        sql += f" ORDER BY {', '.join(identifier(key) + turned for key in keys)}" if keys else ""
        statement = of_ours(table.database, sql, tuple(values))
        if isinstance(request, RowsOf):
            return await self._page(statement, limit=request.limit, max_bytes=_BYTES)
        try:
            page = await self._page(statement, limit=1, max_bytes=_BYTES)
        except Invalid:
            page = None  # what can't be a value of the key's type is not a row's key
        if page is None or not page.rows:
            raise NotFound(f"{quote(table.name)} has no row with this key: {quote(request.key)}.")
        return page

    async def _schema(self, database: Database, schema: str | None) -> str:
        async def look(session: Session) -> str:
            held = await listing.schemas(session)
            if schema is not None and schema not in [item["name"] for item in held]:
                raise NotFound(f"There is no schema {quote(schema)}.", "`list_objects` lists them.")
            shown = [item for item in held if schema in (None, item["name"])]
            objects = await listing.listing(session, "tables", schema, 500, 0)
            # Sizes and counts come and go; what is told here is what DDL changes.
            lines = [
                f"schema {item['spelled']}" + (f" -- {item['comment']}" if item["comment"] else "") for item in shown
            ]
            lines += [TableInfo("", told).definition() for told in await description.describe_all(session, objects)]
            return "\n".join(lines) + "\n"

        return await self.within(database, look)


async def _listed(
    session: Session, *, kind: str, schema: str | None, name: str | None, limit: int, offset: int, alone: bool
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The schemas, where they are to be shown, and one object more than `limit` if there is."""
    held = [] if schema or name or offset or kind != "tables" else await listing.schemas(session)
    objects = await listing.listing(session, kind, schema, limit + 1, offset, name)
    if schema and not objects and alone:
        there = await listing.schemas(session)
        if schema not in [item["name"] for item in there]:
            names = ", ".join(quote(item["name"]) for item in there[:20])
            raise NotFound(f"There is no schema {quote(schema)}.", f"There are: {names}.")
    return held, objects
