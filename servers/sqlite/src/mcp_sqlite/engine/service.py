"""The engine: trusted types in, results out; everything that touches SQLite happens in a worker process."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio

from mcp_batteries.errors import Invalid, Problem
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, Cursor
from mcp_batteries.scratch import Scratch
from mcp_batteries.sql.changes import Change, Import, Sample, Step
from mcp_batteries.sql.compared import MAX_CELL, ROWS, Comparison, Side, Words, compared
from mcp_batteries.sql.identifiers import identifier
from mcp_batteries.sql.rows import Hits, Results, RowPage, count, one_line
from mcp_sqlite.engine import demo_database
from mcp_sqlite.engine.result_pages import ResultPages, to_request
from mcp_sqlite.engine.worker_pool import WorkerPool
from mcp_sqlite.models import Backup, Catalog, Check, Export, Plan, TableInfo
from mcp_sqlite.policy import (
    Database,
    ImportTable,
    ListOf,
    NamesOf,
    NewFile,
    NextPage,
    Part,
    QueryOf,
    ReadStatement,
    Request,
    RowOf,
    RowsOf,
    SchemaOf,
    SchemaStatement,
    SearchOf,
    ServedFile,
    Table,
    TextOf,
    WriteStatement,
    internal_statement,
    table_uri,
)

__all__ = ["Engine"]

_CELL = 2000
_COMPARED_BYTES = 500_000
_COMPARES = Words(lambda column, _, __: f"{column} COLLATE BINARY", "IS NOT")
_COUNT_SECONDS = 0.3
_LONG = 10
"""Time limits that what reads or writes a whole database may take: a check, a copy, an import, an export."""
_EXPORT_BYTES = 1_000_000_000
_WORTH_TELLING = 0.1
"""Seconds from which a dry run tells how long it held the lock."""


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
        parts: Mapping[str, Part] | None = None,
        folder: str | None = None,
    ) -> None:
        self._example, self._making = example, anyio.Lock()
        options = ["--sqlite-vec"] if vectors else []
        options += ["--files", folder] if folder else []
        served = {path: part for path, part in (parts or {}).items() if part}
        if served:
            # Told once, before any request: none can forget it.
            tables = {path: [name for (name,) in sorted(part.only)] for path, part in served.items()}
            options += [
                "--parts",
                json.dumps({path: [tables[path], sorted(part.masked)] for path, part in served.items()}),
            ]
        self.pool = WorkerPool(seconds=seconds, most=workers, options=options)
        self._scratch = scratch
        self._pages = ResultPages(self.pool, scratch)
        self._blocks: list[AbstractAsyncContextManager[None]] = []

    async def __aenter__(self) -> None:
        # The SDK's SSE transport enters once per connection, and leaves in any order.
        async with self._making:
            if self._example is not None:
                await demo_database.make_demo_database(self._example)
                self._example = None
        block = self.pool.running()
        await block.__aenter__()
        self._blocks.append(block)

    async def __aexit__(self, *_: object) -> None:
        await self._blocks.pop().__aexit__(None, None, None)
        if not self._blocks:
            self._pages.close()

    async def rows(
        self, wanted: ReadStatement | NextPage, *, limit: int, max_bytes: int, max_cell: int = _CELL
    ) -> RowPage | Results:
        """The first page of each query's rows, or the one behind a cursor."""
        if isinstance(wanted, NextPage):
            return await self._pages.read_next(wanted, limit=limit, max_bytes=max_bytes)
        return await self._pages.read_first(wanted, limit=limit, max_bytes=max_bytes, max_cell=max_cell)

    async def catalog(self, wanted: ListOf, *, limit: int) -> Catalog:
        """Tables and views of databases, with counts as far as a third of a second goes, `limit` of them."""
        names = [database.name for database in wanted.databases]
        scope = [*names, wanted.name or ""]
        match Cursor.decode("tables", wanted.cursor, scope) if wanted.cursor else [names[0], None]:
            case [str() as first, (str() | None) as after] if first in names:
                pass
            case _:
                raise Invalid("The `cursor` is not one that was given.", "Call again without `cursor`.")
        found: list[tuple[str, Any]] = []
        room = DEFAULT_PAGE_BYTES
        for database in wanted.databases[names.index(first) :]:
            request = {
                "do": "catalog", "path": database.address, "after": after, "limit": limit,
                "budget": _COUNT_SECONDS / len(names), "max_bytes": room, "name": wanted.name,
            }  # fmt: skip
            try:
                part = await self._one_of(wanted.databases, request)
            except Problem as problem:
                if len(names) == 1:
                    raise
                found.append((database.name, {"problem": str(problem)}))
                after = None
                continue
            found.append((database.name, part))
            limit -= len(part["tables"])
            room -= part["size"]
            if part["more"] or ((limit <= 0 or room <= 0) and database is not wanted.databases[-1]):
                last = part["tables"][-1]["name"] if part["tables"] else after
                return Catalog(found, Cursor.encode("tables", [database.name, last], scope))
            after = None
        return Catalog(found)

    async def describe(self, table: Table, *, sample: int) -> TableInfo:
        """One table with all that hangs on it, and `sample` of its rows."""
        request = {"do": "describe", "table": table.name, "sample": sample, "max_cell": 200}
        found = await self.pool.call({**request, "path": table.database.address})
        return TableInfo(table_uri(table.database, found["name"]), found)

    async def compare(self, one: Table, other: Table) -> Comparison:
        """In which rows two tables differ."""

        async def run(statements: Sequence[str]) -> RowPage | Results:
            asked = internal_statement(one.database, ";\n".join(statements))
            return await self._pages.read_first(asked, limit=ROWS, max_bytes=_COMPARED_BYTES, max_cell=MAX_CELL)

        return await compared(await self._side(one), await self._side(other), _COMPARES, run)

    async def _side(self, table: Table) -> Side:
        request = {"do": "describe", "table": table.name, "sample": 0, "max_cell": 200}
        found = await self.pool.call({**request, "path": table.database.address})
        columns = {str(column["name"]): "" for column in found["columns"] if column["hidden"] != 1}
        masked = [str(column["name"]) for column in found["columns"] if column["masked"]]
        keys = [[str(c["name"]) for c in sorted(found["columns"], key=lambda c: c["key"]) if c["key"]]]
        keys += [index["columns"] for index in found["indexes"] if index["unique"] and not index["partial"]]
        known = [key for key in keys if key and all(name in columns for name in key)]
        spelled = identifier(found["name"])
        return Side(found["name"], spelled, columns, known[0] if known else (), masked)

    async def find(self, wanted: SearchOf, *, limit: int) -> Hits:
        """Where words occur in the schemas of databases."""
        lines: list[str] = []
        more = False
        for database in wanted.databases:
            request = {"do": "find", "path": database.address, "text": wanted.words, "limit": limit - len(lines)}
            prefix = f"{database.name}: " if len(wanted.databases) > 1 else ""
            try:
                found = await self._one_of(wanted.databases, request)
            except Problem as problem:
                if not prefix:
                    raise
                lines.append(f"{prefix}not searched: {problem}")
                continue
            lines += [one_line(prefix + hit) for hit in found["hits"]]
            more = more or found["more"]
        return Hits(lines, more)

    async def _one_of(self, databases: Sequence[Database], request: Mapping[str, Any]) -> dict[str, Any]:
        """What a call for several databases hears of one: a lock on it must not make it wait long for each."""
        return await self.pool.call(request, patience=None if len(databases) == 1 else _COUNT_SECONDS)

    async def search(self, wanted: TextOf, *, limit: int) -> RowPage:
        """Rows of a full-text table that match, the best first."""
        request = {
            "do": "search", "path": wanted.database.address, "text": wanted.words, "limit": limit,
            "table": wanted.table and wanted.table.name, "max_cell": 500, "max_bytes": DEFAULT_PAGE_BYTES,
        }  # fmt: skip
        found = await self.pool.call(request)
        notes = [f"there are more matches in {found['table']}"] if found["more"] else []
        return RowPage(found["columns"], found["lines"], 1, found["rows"], None, found["cut"], notes)

    async def explain(self, statement: ReadStatement) -> Plan:
        """What SQLite would do for `statement`, which may be one that changes rows."""
        found = await self.pool.call({"do": "explain", **to_request(statement)})
        return Plan(found["tree"], found["scans"], found["indexes"], found["then"], found["tried"])

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
            "do": "change", "path": statement.database.address, "sql": statement.sql, "mode": mode,
            "parameters": statement.parameters, "dry_run": dry_run, "max_cell": _CELL,
        }  # fmt: skip
        found, returned = await self._pages.run_change(request, statement)
        findings: list[tuple[str, list[str]]] = []
        broken: dict[str, Any] = found.get("broken", {})
        if broken.get("lost"):
            since = "now" if broken["known"] is None else "since this change"
            findings.append((f"Foreign keys that point nowhere {since}:", broken["lost"]))
        if broken.get("known"):
            findings.append((f"Foreign keys that pointed nowhere before: {broken['known']:,} (`run_check`).", []))
        if found["files"]:
            findings.append(("Files:", [*map(one_line, found["files"])]))
        if dry_run and found["seconds"] > _WORTH_TELLING:
            findings.append((f"It held the database's write lock for {1000 * found['seconds']:,.0f} ms.", []))
        return Change(
            [_step(step, rows) for step, rows in zip(found["steps"], returned, strict=True)],
            dry_run,
            found.get("objects"),
            [
                Sample(item["table"], item["columns"], item["before"], item["after"], item["had"])
                for item in found.get("samples", ())
            ],
            findings,
            found.get("back", ()),
        )

    async def check(self, database: Database, *, quick: bool) -> Check:
        """Whether the file is whole and its foreign keys hold."""
        request = {"do": "check", "path": database.address, "quick": quick}
        found = await self.pool.call(request, seconds=_LONG * self.pool.seconds)
        return Check(database.name, found["said"], found["keys"])

    async def export(self, statement: ReadStatement, file: NewFile) -> Export:
        """All rows of a query into a new file."""
        request = {"do": "export", **to_request(statement)}
        more = {"folder": file.folder, "name": file.name, "most": _EXPORT_BYTES}
        found = await self.pool.call({**request, **more}, seconds=_LONG * self.pool.seconds)
        return Export(file.name, found["rows"], found["bytes"])

    async def import_rows(self, table: ImportTable, file: ServedFile, *, dry_run: bool) -> Import:
        """All records of a file into a table, or none."""
        request = {"do": "import", "path": table.database.address, "table": table.name, "folder": file.folder}
        found = await self.pool.call(
            {**request, "name": file.name, "dry_run": dry_run, "make": table.make}, seconds=_LONG * self.pool.seconds
        )
        return Import(
            found["table"], found["columns"], found["rows"], dry_run, found["made"], found["seen"], found["written"]
        )

    async def back_up(self, database: Database, file: NewFile) -> Backup:
        """A consistent copy of the database into a new file."""
        request = {"do": "back_up", "path": database.address, "folder": file.folder, "name": file.name}
        found = await self.pool.call(
            {**request, "scratch": self._scratch.new(".db")}, seconds=_LONG * self.pool.seconds
        )
        return Backup(file.name, found["bytes"])

    async def read(self, request: Request) -> RowPage | str:
        """The content of a resource."""
        found = await self.pool.call(_frame(request))
        if "sql" in found:
            return found["sql"]
        return RowPage(found["columns"], found["lines"], 1, found["shown"], None, found["cut"], more=found["more"])

    async def names(self, wanted: NamesOf) -> list[str]:
        """Tables and views, or columns of a table, that begin with what was typed."""
        table = wanted.inside[0] if wanted.kind == "column" else None
        request = {"do": "names", "path": wanted.database.address, "typed": wanted.typed, "table": table}
        return (await self.pool.call(request))["names"]

    async def digest_subjects(
        self, database: Database, requests: Mapping[str, Request], *, new: bool
    ) -> dict[str, Any]:
        """Digests of what `requests` show, by their keys; None where nothing was committed since the last look."""
        subjects = {key: _frame(request) for key, request in requests.items()}
        request = {"do": "watch", "path": database.address, "subjects": subjects, "new": new}
        return await self.pool.call_dedicated(
            f"watch {database.name}", request, seconds=_LONG * self.pool.seconds if new else 30.0
        )


def _step(step: Mapping[str, Any], returned: RowPage | None) -> Step:
    beyond = step["all"] - step["rows"]
    details = [f"and {beyond} more by triggers and foreign keys"] if beyond > 0 else []
    details += [f"in {step['seconds']:.1f} s"] if step["seconds"] is not None else []
    tables = f"in {', '.join(step['tables'])}" if step["tables"] else ""
    if step["what"]:
        return Step(" ".join(filter(None, (step["what"], tables))), None, ", ".join(details), returned)
    if returned is not None and not step["all"]:
        return Step("", None, ", ".join(details), returned)  # It only read, or found nothing to change.
    first = [f"{count(step['rows'], 'row')}{', ' + details[0] if beyond > 0 else ''} {tables}".rstrip()]
    return Step(", ".join([*first, *details[beyond > 0 :]]), None, "", returned)


def _frame(request: Request) -> dict[str, Any]:
    """What a worker is asked for the content of a resource."""
    match request:
        case SchemaOf(database, table):
            return {"do": "schema", "path": database.address, "table": table and table.name}
        case RowsOf(table, limit, column, value, newest):
            where = {} if column is None else {"column": column, "value": value}
            where |= {"newest": True} if newest else {}
            return {"do": "rows", "path": table.database.address, "table": table.name, "limit": limit, **where}
        case RowOf(table, key):
            return {"do": "row", "path": table.database.address, "table": table.name, "key": key}
        case QueryOf(statement):
            page = {"limit": 100, "max_bytes": 100_000, "max_cell": 10_000}
            return {"do": "query", **to_request(statement), **page}
