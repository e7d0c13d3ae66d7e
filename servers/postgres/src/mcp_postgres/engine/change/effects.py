"""What a transaction did to a database, seen from inside it: objects, locks, rewritten files, rows, and the way back.

Two looks, before and after, are compared; PostgreSQL's catalogue and statistics say the rest.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Coroutine, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psycopg

from mcp_batteries.sql.changes import Sample
from mcp_batteries.sql.rows import count, size
from mcp_postgres.engine.admission.statements import columns_of
from mcp_postgres.engine.catalog.description import OWN, RELATION
from mcp_postgres.engine.change.catalog_diff import Traced, remember, traces, was_then
from mcp_postgres.engine.change.objects import difference
from mcp_postgres.engine.change.undo.schema_undo import After, after, way_back
from mcp_postgres.engine.change.undo.sql_comments import remark
from mcp_postgres.engine.connection.pool import Session
from mcp_postgres.engine.connection.result_values import Lines

__all__ = ["Effects"]

logger = logging.getLogger(__name__)
_Found = TypeVar("_Found")

_SHOWN = 3
_COMPARED = 50
"""Rows of a table that are looked at, to show those that differ."""
_SAMPLED = 4
"""Tables whose rows are shown."""
_WORTH_TELLING = 1.0
"""Seconds from which a lock is told that every change of rows takes."""
_CELL = 100
_PATIENCE = 1000
"""Milliseconds that finding rows for a sample may take."""

_LOCKS = f"""
SELECT coalesce(json_agg(json_build_array(l.relation::text, l.mode, CASE WHEN c.oid IS NOT NULL THEN
    format('%s %I.%I', {RELATION}, n.nspname, c.relname) END)), '[]')::text
FROM pg_locks l LEFT JOIN pg_class c ON c.oid = l.relation LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.granted AND l.mode <> 'AccessShareLock'
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.relation >= 16384
    AND coalesce(c.relkind, '?') NOT IN ('i', 'I', 't')
"""
_STOPS = {
    "AccessExclusiveLock": "stops every read and write", "ExclusiveLock": "stops writes",
    "ShareRowExclusiveLock": "stops writes", "ShareLock": "stops writes",
    "ShareUpdateExclusiveLock": "stops VACUUM and schema changes", "RowExclusiveLock": "stops schema changes",
    "RowShareLock": "stops schema changes",
}  # fmt: skip
"""Modes of locks, the strongest first, and what other sessions can't do meanwhile."""
_SIZES = "SELECT coalesce(json_object_agg(oid, pg_relation_size(oid)), '{}')::text FROM unnest($1::oid[]) oid"
_ROWS = f"""
SELECT coalesce(json_object_agg(x.oid, json_build_array(x.name, x.made, x.changed, x.gone, x.looked)), '{{}}')::text
FROM (SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS name, pg_stat_get_xact_tuples_inserted(c.oid) AS made,
    pg_stat_get_xact_tuples_updated(c.oid) AS changed, pg_stat_get_xact_tuples_deleted(c.oid) AS gone,
    pg_stat_get_xact_tuples_returned(c.oid) AS looked
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE {OWN} AND c.relkind IN ('r', 'p', 'm')) x WHERE x.made + x.changed + x.gone + x.looked > 0
"""
_PATH = "SELECT pg_catalog.set_config('search_path', $1, true)"
_NUMBERS = """
SELECT coalesce(json_agg(transactionid::text), '[]')::text FROM pg_locks
WHERE pid = pg_backend_pid() AND locktype = 'transactionid' AND granted
"""


@dataclass
class Effects:
    """What was seen before and while statements run; `begin` first.

    Args:
        reshapes: objects change too, and not rows only.
    """

    session: Session
    reshapes: bool
    seen: After | None = None
    """What the way back needs to know of the change while it is there."""
    trouble: str = ""
    """Why one of the looks at the objects failed, which stops no change."""
    was: Traced = field(default_factory=Traced)
    now: Traced = field(default_factory=Traced)
    rows: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    anew: list[str] = field(default_factory=list[str])
    """Relations whose file is another one now."""
    changes_rows: bool = False
    """Whether rows of a table that was there changed."""
    counted: bool = False
    """Whether PostgreSQL counted any row that changed: not those of foreign tables, nor with `track_counts` off."""
    locks: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    """When each was taken, at the earliest: as its statement began."""
    named: dict[str, str] = field(default_factory=dict[str, str])
    """What is locked."""

    async def begin(self) -> None:
        """Look before the first statement."""
        await self._kept(remember(self.session, objects=self.reshapes))
        self.rows = await self._json(_ROWS)

    async def step(self, began: float) -> Sequence[str]:
        """Look behind one statement: the tables it locked, for what says of nothing else what it was about."""
        fresh: list[str] = []
        for oid, mode, name in await self._json(_LOCKS):
            if (oid, mode) not in self.locks:
                self.locks[oid, mode] = began
                fresh += [name] if name else []
            if name:
                self.named[oid] = name
        return fresh

    async def end(
        self, *, rehearsed: bool, counted: int, sql: str
    ) -> tuple[Sequence[str], Sequence[tuple[str, Sequence[str]]]]:
        """Look behind the last: objects gained, lost and changed; and what stands out.

        Args:
            rehearsed: `back` will be asked for.
            counted: how many rows the statements themselves say they changed.
            sql: the statements.
        """
        objects: Sequence[str] | None = None
        if not self.trouble and (found := await self._kept(traces(self.session))) is not None:
            self.was, self.now = found
            objects = await self._kept(self._objects(rehearsed=rehearsed)) if self.reshapes else ()
        if objects is None:
            objects = [f"? objects that could not be compared: {self.trouble}"]
        self.anew = [
            oid for oid, (_, file) in self.was.relations.items()
            if oid in self.now.relations and self.now.relations[oid][1] != file
        ]  # fmt: skip
        locks, moved = self._held()
        touched, read = await self._rows(counted, sql)
        findings = [
            ("Locks, each until the end:", locks),
            ("Written anew, whole:", await self._rewritten()),
            ("Rows, by triggers and cascades too:", touched),
            ("Read whole:", read),
            ("Moved on, which stays so after a dry run:", moved),
        ]
        return objects, [(title, lines) for title, lines in findings if lines]

    def _held(self) -> tuple[list[str], list[str]]:
        """The locks worth telling, and the sequences that gave numbers."""
        now = time.monotonic()
        held: dict[str, tuple[str, float]] = {}
        for (oid, mode), since in self.locks.items():
            name = self.was.relations[oid][0] if oid in self.was.relations else self.named.get(oid, "index ")
            # What is new is nobody else's to wait for.
            if self._is_old(oid) and not name.startswith("index "):
                strongest = min(mode, held.get(name, (mode, 0.0))[0], key=list(_STOPS).index)
                held[name] = strongest, min(since, held.get(name, ("", since))[1])
        # The mode that taking a number from one has, and nothing else.
        moved = [
            what for what, (mode, _) in held.items() if what.startswith("sequence ") and mode == "RowExclusiveLock"
        ]
        locks = [
            f"{what}: {mode} for {1000 * (now - since):.0f} ms, {_STOPS.get(mode, '')}"
            for what, (mode, since) in held.items()
            if mode != "RowExclusiveLock" or now - since > _WORTH_TELLING  # every change of rows takes it
        ]
        return locks, moved

    async def _rewritten(self) -> list[str]:
        sizes: dict[str, int] = await self._json(_SIZES, "{" + ",".join(self.anew) + "}") if self.anew else {}
        return [f"{self.now.relations[oid][0]}, {size(sizes[oid])}" for oid in self.anew]

    async def _rows(self, counted: int, sql: str) -> tuple[list[str], list[str]]:
        """What came of the rows of each table, unless the statements say so themselves; and tables read whole."""
        touched, read, total, unnamed = list[str](), list[str](), 0, False
        written = sql.lower()
        for oid, (table, *numbers) in (await self._json(_ROWS)).items():
            made, changed, gone, looked = (
                now - was for now, was in zip(numbers, self.rows.get(oid, ["", 0, 0, 0, 0])[1:], strict=True)
            )
            said = [
                f"{number:,} {word}" for number, word in ((made, "in"), (changed, "changed"), (gone, "out")) if number
            ]
            touched += [f"{table}: {', '.join(said)}"] if said else []
            total += made + changed + gone
            # Rows behind a view, or in a partition, are those of a table that the caller did not name.
            unnamed |= bool(said) and table.rpartition(".")[2].strip('"').lower() not in written
            self.changes_rows |= bool(said) and self._is_old(oid)
            read += [f"{table}: {count(looked, 'row')}"] if looked > 0 and self._is_old(oid) else []
        self.counted = bool(touched)
        return touched if unnamed or total != counted else [], read

    async def _objects(self, *, rehearsed: bool) -> Sequence[str]:
        """The names that came, went and changed."""
        was, now = await was_then(self.session, self.was, self.now)
        lines = difference(was, now)
        if rehearsed:
            self.seen = await self._kept(self._qualified(after(self.session, was, now)))
        return lines

    def _is_old(self, oid: str) -> bool:
        return oid in self.was.relations or oid not in self.now.relations

    async def samples(self, *, keep: str) -> Sequence[Sample]:
        """Rows of tables that changed, as they were and as they are; ends by going back to the savepoint `keep`.

        Of a table that was written anew the first rows stand for all of them: they keep their order.
        """
        session = self.session
        changed = [
            (self._then(oid, str(numbers[0])), str(numbers[0]))
            for oid, numbers in (await self._json(_ROWS)).items()
            if numbers[1:4] != self.rows.get(oid, ["", 0, 0, 0, 0])[1:4]
        ][:_SAMPLED]
        numbers = "{" + ",".join(await self._json(_NUMBERS)) + "}"
        after = {table: await self._some(table, "xmin", numbers) for _, table in changed}
        # Rows that were locked only, for a foreign key, are there still.
        locked = {table: await self._locked(table, numbers) for _, table in changed}
        tables = [(self.was.relations[oid][0], self.now.relations[oid][0]) for oid in self.anew]
        anew = [
            (one.removeprefix("table "), other.removeprefix("table "))
            for one, other in tables
            if one.startswith("table ") and other.removeprefix("table ") not in after
        ][: _SAMPLED - len(changed)]
        is_now = {table: await self._quickly(f"SELECT * FROM ONLY {table} LIMIT {_SHOWN}") for _, table in anew}
        await session.simple(f"ROLLBACK TO SAVEPOINT {keep}")
        was = {table: await self._quickly(f"SELECT * FROM ONLY {name} LIMIT {_SHOWN}") for name, table in anew}
        # A row that a rolled back transaction changed still says so.
        before = {table: await self._some(name, "xmax", numbers, locked[table]) for name, table in changed}
        return [
            Sample(table, (after[table] or before[table])[0], gone, came)
            for _, table in changed
            if any(
                (gone := _beyond(before[table][1], after[table][1]), came := _beyond(after[table][1], before[table][1]))
            )
        ] + [
            Sample(table, is_now[table][0], "".join(was[table][1]), "".join(is_now[table][1]), was[table][0])
            for _, table in anew
            if was[table][1]
        ]

    def _then(self, oid: str, name: str) -> str:
        """The name of a table as it was."""
        return self.was.relations[oid][0].removeprefix("table ") if oid in self.was.relations else name

    async def back(self) -> Sequence[str]:
        """Statements that undo the change, asked for when it is not there any more."""
        seen = self.seen
        lines = await self._kept(self._qualified(way_back(self.session, seen))) if seen is not None else None
        return [remark(f"no way back could be made: {self.trouble}")] if lines is None else lines

    async def _qualified(self, work: Coroutine[Any, Any, _Found]) -> _Found:
        """What `work` finds, with the schema at each name: who runs the way back may have another `search_path`."""
        session = self.session
        with closing(work):
            path = await session.value("SELECT pg_catalog.current_setting('search_path')")
            await session.value(_PATH, "pg_catalog")
            found = await work
        await session.value(_PATH, path)
        return found

    async def _kept(self, work: Coroutine[Any, Any, _Found]) -> _Found | None:
        """What `work` finds; None where it fails, which undoes nothing but itself."""
        await self.session.simple("SAVEPOINT mcp_look")
        try:
            found = await work
        except Exception as error:  # noqa: BLE001 - whatever is wrong here, the caller's change is not
            logger.warning("Objects of the database could not be compared: %s", type(error).__name__)
            said = error.diag.message_primary if isinstance(error, psycopg.Error) else None
            self.trouble = self.trouble or said or f"the server failed at it ({type(error).__name__})"
            await self.session.simple("ROLLBACK TO SAVEPOINT mcp_look; RELEASE SAVEPOINT mcp_look")
            return None
        await self.session.simple("RELEASE SAVEPOINT mcp_look")
        return found

    async def _some(self, table: str, mark: str, numbers: str, without: str = "{}") -> tuple[Sequence[str], list[str]]:
        """Some rows that one of these transactions wrote, or that it took away; none where that takes long."""
        which = f"{mark}::text = ANY ($1::text[]) AND ctid <> ALL ($2::tid[])"
        sql = f"SELECT * FROM ONLY {table} WHERE {which} LIMIT {_COMPARED}"
        return await self._quickly(sql, numbers, without)

    async def _locked(self, table: str, numbers: str) -> str:
        sql = f"SELECT ctid::text FROM ONLY {table} WHERE xmax::text = ANY ($1::text[]) LIMIT 1000"
        return "{" + ",".join(f'"{json.loads(row)[0]}"' for row in (await self._quickly(sql, numbers))[1]) + "}"

    async def _quickly(self, sql: str, *values: str) -> tuple[Sequence[str], list[str]]:
        """Columns and lines of a query; none where it takes long."""
        session = self.session
        await session.simple(
            f"SAVEPOINT mcp_sample; SELECT pg_catalog.set_config('statement_timeout', '{_PATIENCE}', true)"
        )
        try:
            (answer,) = await session.together((sql, values))
        except psycopg.Error:
            await session.simple("ROLLBACK TO SAVEPOINT mcp_sample")
            return (), []
        columns = columns_of(answer)
        writer = Lines(columns, _CELL)
        lines = [writer.line(row) for row in answer.rows()]
        await session.simple("ROLLBACK TO SAVEPOINT mcp_sample")
        return [column.name for column in columns], lines

    async def _json(self, sql: str, *values: str) -> Any:
        return json.loads(await self.session.value(sql, *values) or "null")


def _beyond(rows: Sequence[str], others: Sequence[str]) -> str:
    """The first of `rows` that are not among `others`: an update may leave a row as it was."""
    return "".join(sorted(row for row in rows if row not in others)[:_SHOWN])
