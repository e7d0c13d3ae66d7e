"""The engine: trusted types in, results out; everything that touches SQLite happens in a worker process."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple

import anyio

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import Invalid, Problem
from mcp_batteries.scratch import Scratch
from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_batteries.sql.results.changes import Change, Import, Sample, Step
from mcp_batteries.sql.results.comparison import (
    MAX_CELL_CHARACTERS,
    MAX_ROWS,
    Comparison,
    ComparisonDialect,
    TableRef,
    compare_tables,
)
from mcp_batteries.sql.results.rows import Results, RowPage, SearchHits, format_count, to_one_line
from mcp_sqlite.engine import demo_database
from mcp_sqlite.engine.requests import to_content_request, to_request
from mcp_sqlite.engine.result_pages import ResultPages
from mcp_sqlite.engine.worker_pool import WorkerPool
from mcp_sqlite.models import Backup, Catalog, Check, Export, Plan, TableInfo
from mcp_sqlite.policy import (
    Database,
    ImportTable,
    ListOf,
    NamesOf,
    NewFile,
    NextPage,
    ReadStatement,
    Request,
    SchemaStatement,
    SearchOf,
    ServedFile,
    Table,
    TextOf,
    VisibleSchema,
    WriteStatement,
    internal_statement,
    table_uri,
)

__all__ = ["Engine"]

_MAX_CELL = 2000
_MAX_DESCRIBED_CELL = 200
_MAX_FOUND_CELL = 500
_MAX_COMPARED_BYTES = 500_000
_MAX_EXPORT_BYTES = 1_000_000_000
_DIALECT = ComparisonDialect(lambda column, _, __: f"{column} COLLATE BINARY", "IS NOT")
_COUNT_SECONDS = 0.3
# Time limits that what reads or writes a whole database may take: a check, a copy, an import, an export.
_LONG_OPERATION_LIMITS = 10
_POLL_SECONDS = 30.0
# From here on a dry run says how long it held the lock.
_SLOW_DRY_RUN_SECONDS = 0.1


class Engine:
    """Everything the tools and resources can have done.

    Args:
        seconds: a statement's time limit.
        workers: statements that run at once.
        example: where to make the demo database, if it is served.
        vectors: whether sqlite-vec is to be there.
        parts: what is served of the databases at these addresses, of others everything.
        folder: whose files statements can read as tables.
    """

    def __init__(
        self,
        scratch: Scratch,
        *,
        seconds: float,
        workers: int,
        example: str | None = None,
        vectors: bool = False,
        parts: Mapping[str, VisibleSchema] | None = None,
        folder: str | None = None,
    ) -> None:
        self._example = example
        self._making_example = anyio.Lock()
        options: list[str] = []
        if vectors:
            options.append("--sqlite-vec")
        if folder:
            options += ["--files", folder]
        visible_names = _describe_parts(parts or {})
        if visible_names:
            # Each worker knows it before any request, so none can forget it.
            options += ["--parts", json.dumps(visible_names)]
        self.pool = WorkerPool(seconds=seconds, max_workers=workers, options=options)
        self._scratch = scratch
        self._pages = ResultPages(self.pool, scratch)
        self._running_pools: list[AbstractAsyncContextManager[None]] = []

    async def __aenter__(self) -> None:
        # The SDK's SSE transport enters once per connection, and leaves in any order.
        async with self._making_example:
            if self._example is not None:
                await demo_database.make_demo_database(self._example)
                self._example = None
        running_pool = self.pool.running()
        await running_pool.__aenter__()
        self._running_pools.append(running_pool)

    async def __aexit__(self, *_: object) -> None:
        await self._running_pools.pop().__aexit__(None, None, None)
        if not self._running_pools:
            self._pages.close()

    async def _call_long(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request that reads or writes a whole database."""
        return await self.pool.call(request, seconds=_LONG_OPERATION_LIMITS * self.pool.seconds)

    async def rows(
        self, wanted: ReadStatement | NextPage, *, limit: int, max_bytes: int, max_cell: int = _MAX_CELL
    ) -> RowPage | Results:
        """Return the first page of each query's rows, or the one behind a cursor."""
        if isinstance(wanted, NextPage):
            return await self._pages.read_next(wanted, limit=limit, max_bytes=max_bytes)
        return await self._pages.read_first(wanted, limit=limit, max_bytes=max_bytes, max_cell=max_cell)

    async def catalog(self, listing: ListOf, *, limit: int) -> Catalog:
        """Return tables and views of databases, with counts as far as a third of a second goes, `limit` of them."""
        names = [database.name for database in listing.databases]
        scope = [*names, listing.name or ""]
        start = _decode_listing_cursor(listing.cursor, names, scope)
        after = start.after
        entries: list[tuple[str, Any]] = []
        bytes_left = DEFAULT_PAGE_BYTES
        for database in listing.databases[names.index(start.database) :]:
            request = {
                "do": "catalog",
                "path": database.address,
                "after": after,
                "limit": limit,
                "budget": _COUNT_SECONDS / len(names),
                "max_bytes": bytes_left,
                "name": listing.name,
            }
            after_before = after
            after = None
            try:
                answer = await self._call_one_of(listing.databases, request)
            except Problem as problem:
                if len(names) == 1:
                    raise
                entries.append((database.name, {"problem": str(problem)}))
                continue
            entries.append((database.name, {**answer, "folder": database.folder}))
            limit -= len(answer["tables"])
            bytes_left -= answer["size"]
            is_full = limit <= 0 or bytes_left <= 0
            if answer["more"] or (is_full and database is not listing.databases[-1]):
                last_table = answer["tables"][-1]["name"] if answer["tables"] else after_before
                return Catalog(entries, Cursor.encode("tables", [database.name, last_table], scope))
        return Catalog(entries)

    async def describe(self, table: Table, *, sample: int) -> TableInfo:
        """Return one table with all that depends on it, and `sample` of its rows."""
        description = await self._describe(table, sample)
        return TableInfo(table_uri(table.database, description["name"]), description)

    async def _describe(self, table: Table, sample: int) -> dict[str, Any]:
        return await self.pool.call(
            {
                "do": "describe",
                "path": table.database.address,
                "table": table.name,
                "sample": sample,
                "max_cell": _MAX_DESCRIBED_CELL,
            }
        )

    async def compare(self, one: Table, other: Table) -> Comparison:
        """Return in which rows two tables differ."""

        async def run(statements: Sequence[str]) -> RowPage | Results:
            statement = internal_statement(one.database, ";\n".join(statements))
            return await self._pages.read_first(
                statement, limit=MAX_ROWS, max_bytes=_MAX_COMPARED_BYTES, max_cell=MAX_CELL_CHARACTERS
            )

        return await compare_tables(await self._read_side(one), await self._read_side(other), _DIALECT, run)

    async def _read_side(self, table: Table) -> TableRef:
        description = await self._describe(table, sample=0)
        columns = {str(column["name"]): "" for column in description["columns"] if column["hidden"] != 1}
        masked = [str(column["name"]) for column in description["columns"] if column["masked"]]
        key = _find_unique_key(description, columns)
        return TableRef(description["name"], quote_identifier(description["name"]), columns, key, masked)

    async def find(self, wanted: SearchOf, *, limit: int) -> SearchHits:
        """Return where words occur in the schemas of databases."""
        lines: list[str] = []
        has_more = False
        for database in wanted.databases:
            request = {
                "do": "find",
                "path": database.address,
                "text": wanted.words,
                "limit": limit - len(lines),
            }
            prefix = f"{database.name}: " if len(wanted.databases) > 1 else ""
            try:
                answer = await self._call_one_of(wanted.databases, request)
            except Problem as problem:
                if not prefix:
                    raise
                lines.append(f"{prefix}not searched: {problem}")
                continue
            lines += [to_one_line(prefix + hit) for hit in answer["hits"]]
            has_more = has_more or answer["more"]
        return SearchHits(lines, has_more)

    async def _call_one_of(self, databases: Sequence[Database], request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what one of several databases answers: a lock on it must not make the call wait long for each."""
        return await self.pool.call(request, patience=None if len(databases) == 1 else _COUNT_SECONDS)

    async def search(self, search: TextOf, *, limit: int) -> RowPage:
        """Return rows of a full-text table that match, the best first."""
        answer = await self.pool.call(
            {
                "do": "search",
                "path": search.database.address,
                "text": search.words,
                "limit": limit,
                "table": search.table and search.table.name,
                "max_cell": _MAX_FOUND_CELL,
                "max_bytes": DEFAULT_PAGE_BYTES,
            }
        )
        notes: list[str] = []
        if answer["more"]:
            notes.append(f"there are more matches in {answer['table']}")
        return RowPage(answer["columns"], answer["lines"], 1, answer["rows"], None, answer["cut"], notes)

    async def explain(self, statement: ReadStatement) -> Plan:
        """Return what SQLite would do for `statement`, which may be one that changes rows."""
        answer = await self.pool.call({"do": "explain", **to_request(statement)})
        return Plan(
            answer["tree"],
            answer["scans"],
            answer["indexes"],
            answer["tree_with_indexes"],
            answer["candidate_count"],
        )

    async def compile(self, statement: ReadStatement) -> None:
        """Have SQLite compile `statement`, and run nothing.

        Raises:
            Problem: it is wrong, or would do more than read.
        """
        await self.pool.call({"do": "explain", "mode": "read", **to_request(statement)})

    async def change(self, statement: WriteStatement | SchemaStatement, *, dry_run: bool) -> Change:
        """Run `statement` in one transaction, and keep what it did unless `dry_run`."""
        mode = "write"
        if isinstance(statement, SchemaStatement):
            mode = "migrate" if statement.rows else "schema"
        request = {
            "do": "change",
            "path": statement.database.address,
            "sql": statement.sql,
            "mode": mode,
            "parameters": statement.parameters,
            "dry_run": dry_run,
            "max_cell": _MAX_CELL,
        }
        answer, returned = await self._pages.run_change(request, statement)
        return Change(
            [_to_step(step, page) for step, page in zip(answer["steps"], returned, strict=True)],
            dry_run,
            answer.get("objects"),
            [_to_sample(sample) for sample in answer.get("samples", ())],
            _list_findings(answer, dry_run=dry_run),
            answer.get("undo", ()),
        )

    async def check(self, database: Database, *, quick: bool) -> Check:
        """Return whether the file is whole and its foreign keys hold."""
        answer = await self._call_long({"do": "check", "path": database.address, "quick": quick})
        return Check(database.name, answer["complaints"], answer["broken_keys"])

    async def export(self, statement: ReadStatement, file: NewFile) -> Export:
        """Write all rows of a query into a new file."""
        answer = await self._call_long(
            {
                "do": "export",
                **to_request(statement),
                "folder": file.folder,
                "name": file.name,
                "max_bytes": _MAX_EXPORT_BYTES,
            }
        )
        return Export(file.name, answer["rows"], answer["bytes"])

    async def import_rows(self, table: ImportTable, file: ServedFile, *, dry_run: bool) -> Import:
        """Insert all records of a file into a table, or none."""
        answer = await self._call_long(
            {
                "do": "import",
                "path": table.database.address,
                "table": table.name,
                "folder": file.folder,
                "name": file.name,
                "dry_run": dry_run,
                "make": table.make,
            }
        )
        return Import(
            answer["table"],
            answer["columns"],
            answer["rows"],
            dry_run,
            answer["new_columns"],
            answer["contents"],
            answer["dialect"],
        )

    async def back_up(self, database: Database, file: NewFile) -> Backup:
        """Make a consistent copy of the database in a new file."""
        answer = await self._call_long(
            {
                "do": "back_up",
                "path": database.address,
                "folder": file.folder,
                "name": file.name,
                "scratch": self._scratch.new(".db"),
            }
        )
        return Backup(file.name, answer["bytes"])

    async def read(self, request: Request) -> RowPage | str:
        """Return the content of a resource."""
        answer = await self.pool.call(to_content_request(request))
        if "sql" in answer:
            return answer["sql"]
        return RowPage(answer["columns"], answer["lines"], 1, answer["shown"], None, answer["cut"], more=answer["more"])

    async def names(self, wanted: NamesOf) -> list[str]:
        """Return tables and views, or columns of a table, that begin with what was typed."""
        table = wanted.inside[0] if wanted.kind == "column" else None
        request = {"do": "names", "path": wanted.database.address, "typed": wanted.typed, "table": table}
        return (await self.pool.call(request))["names"]

    async def digest_subjects(
        self, database: Database, requests: Mapping[str, Request], *, new: bool
    ) -> dict[str, Any]:
        """Return digests of what `requests` show, by their keys; None where nothing was committed since the last time.

        Args:
            new: whether somebody has subscribed to these only now.
        """
        return await self.pool.call_dedicated(
            f"watch {database.name}",
            {
                "do": "watch",
                "path": database.address,
                "subjects": {key: to_content_request(request) for key, request in requests.items()},
                "new": new,
            },
            seconds=_LONG_OPERATION_LIMITS * self.pool.seconds if new else _POLL_SECONDS,
        )


class _ListingStart(NamedTuple):
    """Where a page of the list of tables begins: in a database, behind a table."""

    database: str
    after: str | None


def _decode_listing_cursor(cursor: str | None, names: Sequence[str], scope: Sequence[str]) -> _ListingStart:
    if not cursor:
        return _ListingStart(names[0], None)
    match Cursor.decode("tables", cursor, scope):
        case [str() as database, (str() | None) as after] if database in names:
            return _ListingStart(database, after)
        case _:
            raise Invalid("The `cursor` is not one that was given.", "Call again without `cursor`.")


def _describe_parts(parts: Mapping[str, VisibleSchema]) -> dict[str, Any]:
    """Return what is served of databases, as a worker reads it: tables, and masked columns, by address."""
    visible_names: dict[str, Any] = {}
    for address, part in parts.items():
        if part:
            visible_names[address] = [[table for (table,) in sorted(part.only)], sorted(part.masked)]
    return visible_names


def _find_unique_key(description: Mapping[str, Any], columns: Mapping[str, str]) -> list[str]:
    """Return the columns of the primary key, or of another unique key, of those that are there."""
    key_columns = [column for column in description["columns"] if column["key"]]
    key_columns.sort(key=lambda column: column["key"])
    keys = [[str(column["name"]) for column in key_columns]]
    keys += [index["columns"] for index in description["indexes"] if index["unique"] and not index["partial"]]
    for key in keys:
        if key and all(name in columns for name in key):
            return key
    return []


def _list_findings(answer: Mapping[str, Any], *, dry_run: bool) -> list[tuple[str, list[str]]]:
    """Return what is remarkable about a change."""
    findings: list[tuple[str, list[str]]] = []
    broken_keys: dict[str, Any] = answer.get("broken_keys", {})
    new = broken_keys.get("new")
    number_before = broken_keys.get("number_before")
    if new:
        since = "now" if number_before is None else "since this change"
        findings.append((f"Foreign keys that point nowhere {since}:", new))
    if number_before:
        findings.append((f"Foreign keys that pointed nowhere before: {number_before:,} (`run_check`).", []))
    if answer["files"]:
        findings.append(("Files:", [to_one_line(note) for note in answer["files"]]))
    if dry_run and answer["seconds"] > _SLOW_DRY_RUN_SECONDS:
        milliseconds = 1000 * answer["seconds"]
        findings.append((f"It held the database's write lock for {milliseconds:,.0f} ms.", []))
    return findings


def _to_sample(sample: Mapping[str, Any]) -> Sample:
    return Sample(sample["table"], sample["columns"], sample["before"], sample["after"], sample["columns_before"])


def _to_step(step: Mapping[str, Any], returned: RowPage | None) -> Step:
    """Return a statement's line: what it did, in which tables, to how many rows, and what else is to be said."""
    indirect = ""
    if step["all"] > step["rows"]:
        indirect = f"and {step['all'] - step['rows']} more by triggers and foreign keys"
    seconds = ""
    if step["seconds"] is not None:
        seconds = f"in {step['seconds']:.1f} s"
    tables = ""
    if step["tables"]:
        tables = f"in {', '.join(step['tables'])}"
    details = ", ".join(filter(None, [indirect, seconds]))
    if step["action"]:
        return Step(" ".join(filter(None, [step["action"], tables])), None, details, returned)
    if returned is not None and not step["all"]:
        # It only read, or found nothing to change.
        return Step("", None, details, returned)
    rows = ", ".join(filter(None, [format_count(step["rows"], "row"), indirect]))
    subject = f"{rows} {tables}".rstrip()
    return Step(", ".join(filter(None, [subject, seconds])), None, "", returned)
