"""The engine: trusted types in, results out; everything that touches SQLite happens in a worker process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from mcp_batteries.errors import Invalid
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, Cursor
from mcp_sqlite.engine.pages import Pages, Scratch
from mcp_sqlite.engine.pool import Pool
from mcp_sqlite.models import Backup, Catalog, Change, Check, Export, Hits, Import, Plan, RowPage, TableInfo
from mcp_sqlite.policy import (
    Database,
    NewFile,
    ReadStatement,
    SchemaStatement,
    ServedFile,
    Subject,
    Table,
    WriteStatement,
    escaped,
)

__all__ = ["Engine"]

_CELL = 2000
_COUNT_SECONDS = 0.3
_LONG = 10
"""Time limits that what reads or writes a whole database may take: a check, a copy, an import, an export."""
_EXPORT_BYTES = 1_000_000_000


class Engine:
    """Everything the tools and resources can have done.

    Args:
        seconds: a statement's time limit.
        workers: statements that run at once.
    """

    def __init__(self, scratch: Scratch, *, seconds: float, workers: int) -> None:
        self.pool = Pool(seconds=seconds, most=workers)
        self._scratch = scratch
        self._pages = Pages(self.pool, scratch)
        self._blocks: list[AbstractAsyncContextManager[None]] = []

    async def __aenter__(self) -> None:
        # The SDK's SSE transport enters once per connection, and leaves in any order.
        block = self.pool.running()
        await block.__aenter__()
        self._blocks.append(block)

    async def __aexit__(self, *_: object) -> None:
        await self._blocks.pop().__aexit__(None, None, None)
        if not self._blocks:
            self._pages.close()

    async def rows(self, statement: ReadStatement, *, limit: int, max_bytes: int, max_cell: int = _CELL) -> RowPage:
        """The first page of a query's rows."""
        return await self._pages.first(statement, limit=limit, max_bytes=max_bytes, max_cell=max_cell)

    async def next_rows(self, cursor: str, database: Database | None = None, *, limit: int, max_bytes: int) -> RowPage:
        """The page of rows at `cursor`, which is of `database` if one is named."""
        return await self._pages.next(cursor, database, limit=limit, max_bytes=max_bytes)

    async def catalog(self, databases: Sequence[Database], *, limit: int, cursor: str | None) -> Catalog:
        """Tables and views of `databases`, with counts as far as a third of a second goes, `limit` of them."""
        names = [database.name for database in databases]
        match Cursor.decode("tables", cursor, names) if cursor else [names[0], None]:
            case [str() as first, (str() | None) as after] if first in names:
                pass
            case _:
                raise Invalid("The `cursor` is not one that was given.", "Call again without `cursor`.")
        found: list[tuple[str, Any]] = []
        room = DEFAULT_PAGE_BYTES
        for database in databases[names.index(first) :]:
            request = {
                "do": "catalog", "path": database.path, "after": after, "limit": limit,
                "budget": _COUNT_SECONDS / len(databases), "max_bytes": room,
            }  # fmt: skip
            part = await self.pool.call(request)
            found.append((database.name, part))
            limit -= len(part["tables"])
            room -= sum(30 + len(table["name"]) + sum(map(len, table["columns"])) for table in part["tables"])
            if part["more"] or ((limit <= 0 or room <= 0) and database is not databases[-1]):
                last = part["tables"][-1]["name"] if part["tables"] else after
                return Catalog(found, Cursor.encode("tables", [database.name, last], names))
            after = None
        return Catalog(found)

    async def describe(self, table: Table, *, sample: int) -> TableInfo:
        """One table with all that hangs on it, and `sample` of its rows."""
        request = {"do": "describe", "table": table.name, "sample": sample, "max_cell": 200}
        found = await self.pool.call({**request, "path": table.database.path})
        return TableInfo(f"sqlite://{table.database.name}/{escaped(found['name'])}", found)

    async def find(self, databases: Sequence[Database], text: str, *, limit: int) -> Hits:
        """Where `text` occurs in the schemas of `databases`."""
        lines: list[str] = []
        more = False
        for database in databases:
            request = {"do": "find", "path": database.path, "text": text, "limit": limit - len(lines)}
            found = await self.pool.call(request)
            prefix = f"{database.name}: " if len(databases) > 1 else ""
            lines += [prefix + hit for hit in found["hits"]]
            more = more or found["more"]
        return Hits(lines, more)

    async def search(self, database: Database, text: str, *, table: str | None, limit: int) -> RowPage:
        """Rows of a full-text table that match, the best first."""
        request = {"do": "search", "path": database.path, "text": text, "table": table, "limit": limit}
        found = await self.pool.call({**request, "max_cell": 500, "max_bytes": DEFAULT_PAGE_BYTES})
        notes = [f"there are more matches in {found['table']}"] if found["more"] else []
        return RowPage(found["columns"], found["lines"], 1, found["rows"], None, found["cut"], notes)

    async def explain(self, statement: ReadStatement) -> Plan:
        """What SQLite would do for `statement`, which may be one that changes rows."""
        found = await self.pool.call(
            {"do": "explain", "path": statement.database.path, "sql": statement.sql, "parameters": statement.parameters}
        )
        return Plan(found["tree"], found["scans"], found["indexes"])

    async def compile(self, statement: ReadStatement) -> None:
        """Have SQLite compile `statement`, and run nothing.

        Raises:
            Problem: it is wrong, or would do more than read.
        """
        request = {"do": "explain", "path": statement.database.path, "sql": statement.sql, "mode": "read"}
        await self.pool.call({**request, "parameters": statement.parameters})

    async def change(self, statement: WriteStatement | SchemaStatement, *, dry_run: bool) -> Change:
        """Run `statement` in one transaction, and keep what it did unless `dry_run`."""
        mode = "write" if isinstance(statement, WriteStatement) else "schema"
        found = await self.pool.call(
            {
                "do": "change", "path": statement.database.path, "sql": statement.sql, "mode": mode,
                "parameters": statement.parameters, "dry_run": dry_run, "max_cell": _CELL,
            }
        )  # fmt: skip
        return Change(found["statements"], dry_run, found["objects"] if mode == "schema" else None, found["broken"])

    async def check(self, database: Database, *, quick: bool) -> Check:
        """Whether the file is whole and its foreign keys hold."""
        request = {"do": "check", "path": database.path, "quick": quick}
        found = await self.pool.call(request, seconds=_LONG * self.pool.seconds)
        return Check(database.name, found["said"], found["keys"])

    async def export(self, statement: ReadStatement, file: NewFile) -> Export:
        """All rows of a query into a new file."""
        request = {"do": "export", "path": statement.database.path, "sql": statement.sql, "folder": file.folder}
        more = {"parameters": statement.parameters, "name": file.name, "most": _EXPORT_BYTES}
        found = await self.pool.call({**request, **more}, seconds=_LONG * self.pool.seconds)
        return Export(file.name, found["rows"], found["bytes"])

    async def import_rows(self, table: Table, file: ServedFile, *, dry_run: bool) -> Import:
        """All records of a file into a table, or none."""
        request = {"do": "import", "path": table.database.path, "table": table.name, "folder": file.folder}
        found = await self.pool.call(
            {**request, "name": file.name, "dry_run": dry_run}, seconds=_LONG * self.pool.seconds
        )
        return Import(found["table"], found["columns"], found["rows"], dry_run)

    async def back_up(self, database: Database, file: NewFile) -> Backup:
        """A consistent copy of the database into a new file."""
        request = {"do": "back_up", "path": database.path, "folder": file.folder, "name": file.name}
        found = await self.pool.call(
            {**request, "scratch": self._scratch.new(".db")}, seconds=_LONG * self.pool.seconds
        )
        return Backup(file.name, found["bytes"])

    async def read(self, subject: Subject) -> dict[str, Any]:
        """The content of a resource, as the worker has it: `sql`, or `columns` and `lines`."""
        return await self.pool.call({**subject.request, "path": subject.database.path})

    async def names(self, database: Database, typed: str, *, table: str | None = None) -> list[str]:
        """Tables and views, or columns of `table`, that begin with `typed`."""
        found = await self.pool.call({"do": "names", "path": database.path, "typed": typed, "table": table})
        return found["names"]

    async def look(self, database: Database, subjects: dict[str, Any], *, new: bool) -> dict[str, Any]:
        """Digests of what `subjects` (key to request) show, or None where nothing was committed since the last look."""
        request = {"do": "watch", "path": database.path, "subjects": subjects, "new": new}
        return await self.pool.call_own(
            f"watch {database.name}", request, seconds=_LONG * self.pool.seconds if new else 30.0
        )
