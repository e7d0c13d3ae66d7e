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
from mcp_postgres.engine.admission.statements import result_columns
from mcp_postgres.engine.catalog.description import RELATION_WORD, USER_SCHEMA
from mcp_postgres.engine.change.catalog_diff import CatalogTraces, read_changed_objects, read_traces, start_tracing
from mcp_postgres.engine.change.objects import diff_objects
from mcp_postgres.engine.change.undo.schema_undo import SchemaChange, describe_change, undo_statements
from mcp_postgres.engine.change.undo.sql_comments import remark
from mcp_postgres.engine.connection.pool import Session
from mcp_postgres.engine.connection.result_values import RowWriter

__all__ = ["Effects"]

logger = logging.getLogger(__name__)
_Result = TypeVar("_Result")

_MAX_SHOWN_ROWS = 3
# Rows of a table that are looked at, to show those that differ.
_MAX_COMPARED_ROWS = 50
# Tables whose rows are shown.
_MAX_SAMPLED_TABLES = 4
# Seconds from which a lock is told that every change of rows takes.
_MIN_LOCK_SECONDS = 1.0
_CELL_CHARACTERS = 100
# Milliseconds that finding rows for a sample may take.
_SAMPLE_MILLISECONDS = 1000

_LOCKS = f"""
SELECT coalesce(json_agg(json_build_array(l.relation::text, l.mode, CASE WHEN c.oid IS NOT NULL THEN
    format('%s %I.%I', {RELATION_WORD}, n.nspname, c.relname) END)), '[]')::text
FROM pg_locks l LEFT JOIN pg_class c ON c.oid = l.relation LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.granted AND l.mode <> 'AccessShareLock'
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.relation >= 16384
    AND coalesce(c.relkind, '?') NOT IN ('i', 'I', 't')
"""
# Modes of locks, the strongest first, and what other sessions can't do meanwhile.
_BLOCKED_BY_LOCK = {
    "AccessExclusiveLock": "stops every read and write", "ExclusiveLock": "stops writes",
    "ShareRowExclusiveLock": "stops writes", "ShareLock": "stops writes",
    "ShareUpdateExclusiveLock": "stops VACUUM and schema changes", "RowExclusiveLock": "stops schema changes",
    "RowShareLock": "stops schema changes",
}  # fmt: skip
_SIZES = "SELECT coalesce(json_object_agg(oid, pg_relation_size(oid)), '{}')::text FROM unnest($1::oid[]) oid"
_ROW_COUNTERS = f"""
SELECT coalesce(json_object_agg(x.oid, json_build_array(x.name, x.made, x.changed, x.gone, x.looked)), '{{}}')::text
FROM (SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS name, pg_stat_get_xact_tuples_inserted(c.oid) AS made,
    pg_stat_get_xact_tuples_updated(c.oid) AS changed, pg_stat_get_xact_tuples_deleted(c.oid) AS gone,
    pg_stat_get_xact_tuples_returned(c.oid) AS looked
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE {USER_SCHEMA} AND c.relkind IN ('r', 'p', 'm')) x WHERE x.made + x.changed + x.gone + x.looked > 0
"""
_SET_SEARCH_PATH = "SELECT pg_catalog.set_config('search_path', $1, true)"
_TRANSACTION_IDS = """
SELECT coalesce(json_agg(transactionid::text), '[]')::text FROM pg_locks
WHERE pid = pg_backend_pid() AND locktype = 'transactionid' AND granted
"""


@dataclass
class Effects:
    """What was seen before and while statements run; `start` first.

    Args:
        changes_schema: objects change too, and not rows only.
    """

    session: Session
    changes_schema: bool
    # What the way back needs to know of the change while it is there.
    schema_change: SchemaChange | None = None
    # Why one of the looks at the objects failed, which stops no change.
    comparison_failure: str = ""
    old_traces: CatalogTraces = field(default_factory=CatalogTraces)
    new_traces: CatalogTraces = field(default_factory=CatalogTraces)
    row_counters: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    # Relations whose file is another one now.
    rewritten: list[str] = field(default_factory=list[str])
    # Whether rows of a table that was there changed.
    changes_rows: bool = False
    # Whether PostgreSQL counted any row that changed: not those of foreign tables, nor with `track_counts` off.
    has_counted_rows: bool = False
    # When each was taken, at the earliest: as its statement began.
    locks: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    # What is locked.
    lock_names: dict[str, str] = field(default_factory=dict[str, str])

    async def start(self) -> None:
        """Look before the first statement."""
        await self._guarded(start_tracing(self.session, objects=self.changes_schema))
        self.row_counters = await self._fetch_json(_ROW_COUNTERS)

    async def record_statement(self, began: float) -> Sequence[str]:
        """Look behind one statement: the tables it locked, for what says of nothing else what it was about."""
        new_tables: list[str] = []
        for oid, mode, name in await self._fetch_json(_LOCKS):
            if (oid, mode) not in self.locks:
                self.locks[oid, mode] = began
                if name:
                    new_tables.append(name)
            if name:
                self.lock_names[oid] = name
        return new_tables

    async def finish(
        self, *, wants_undo: bool, statement_rows: int, sql: str
    ) -> tuple[Sequence[str], Sequence[tuple[str, Sequence[str]]]]:
        """Look behind the last: objects gained, lost and changed; and what stands out.

        Args:
            wants_undo: `undo_statements` will be asked for.
            statement_rows: how many rows the statements themselves say they changed.
            sql: the statements.
        """
        objects: Sequence[str] | None = None
        if not self.comparison_failure and (found := await self._guarded(read_traces(self.session))) is not None:
            self.old_traces, self.new_traces = found
            if self.changes_schema:
                objects = await self._guarded(self._compare_objects(wants_undo=wants_undo))
            else:
                objects = ()
        if objects is None:
            objects = [f"? objects that could not be compared: {self.comparison_failure}"]
        self.rewritten = [
            oid for oid, (_, file) in self.old_traces.relations.items()
            if oid in self.new_traces.relations and self.new_traces.relations[oid][1] != file
        ]  # fmt: skip
        locks, moved = self._summarize_locks()
        touched, read = await self._describe_rows(statement_rows, sql)
        findings = [
            ("Locks, each until the end:", locks),
            ("Written anew, whole:", await self._describe_rewritten()),
            ("Rows, by triggers and cascades too:", touched),
            ("Read whole:", read),
            ("Moved on, which stays so after a dry run:", moved),
        ]
        return objects, [(title, lines) for title, lines in findings if lines]

    def _summarize_locks(self) -> tuple[list[str], list[str]]:
        """Return the locks worth telling, and the sequences that gave numbers."""
        now = time.monotonic()
        held: dict[str, tuple[str, float]] = {}
        for (oid, mode), since in self.locks.items():
            if oid in self.old_traces.relations:
                name = self.old_traces.relations[oid][0]
            else:
                name = self.lock_names.get(oid, "index ")
            # What is new is nobody else's to wait for.
            if self._is_old(oid) and not name.startswith("index "):
                strongest = min(mode, held.get(name, (mode, 0.0))[0], key=list(_BLOCKED_BY_LOCK).index)
                held[name] = strongest, min(since, held.get(name, ("", since))[1])
        # The mode that taking a number from one has, and nothing else.
        moved = [
            what for what, (mode, _) in held.items() if what.startswith("sequence ") and mode == "RowExclusiveLock"
        ]
        locks = [
            f"{what}: {mode} for {1000 * (now - since):.0f} ms, {_BLOCKED_BY_LOCK.get(mode, '')}"
            for what, (mode, since) in held.items()
            if mode != "RowExclusiveLock" or now - since > _MIN_LOCK_SECONDS  # every change of rows takes it
        ]
        return locks, moved

    async def _describe_rewritten(self) -> list[str]:
        sizes: dict[str, int] = (
            await self._fetch_json(_SIZES, "{" + ",".join(self.rewritten) + "}") if self.rewritten else {}
        )
        return [f"{self.new_traces.relations[oid][0]}, {size(sizes[oid])}" for oid in self.rewritten]

    async def _describe_rows(self, statement_rows: int, sql: str) -> tuple[list[str], list[str]]:
        """Return what came of the rows of each table, unless the statements say so themselves.

        And tables read whole.
        """
        touched = list[str]()
        read = list[str]()
        total = 0
        unnamed = False
        written = sql.lower()
        for oid, (table, *numbers) in (await self._fetch_json(_ROW_COUNTERS)).items():
            made, changed, gone, looked = (
                now - was for now, was in zip(numbers, self.row_counters.get(oid, ["", 0, 0, 0, 0])[1:], strict=True)
            )
            said = [
                f"{number:,} {word}" for number, word in ((made, "in"), (changed, "changed"), (gone, "out")) if number
            ]
            if said:
                touched.append(f"{table}: {', '.join(said)}")
            total += made + changed + gone
            # Rows behind a view, or in a partition, are those of a table that the caller did not name.
            unnamed |= bool(said) and table.rpartition(".")[2].strip('"').lower() not in written
            self.changes_rows |= bool(said) and self._is_old(oid)
            if looked > 0 and self._is_old(oid):
                read.append(f"{table}: {count(looked, 'row')}")
        self.has_counted_rows = bool(touched)
        return touched if unnamed or total != statement_rows else [], read

    async def _compare_objects(self, *, wants_undo: bool) -> Sequence[str]:
        """Return the names that came, went and changed."""
        was, now = await read_changed_objects(self.session, self.old_traces, self.new_traces)
        lines = diff_objects(was, now)
        if wants_undo:
            self.schema_change = await self._guarded(
                self._with_qualified_names(describe_change(self.session, was, now))
            )
        return lines

    def _is_old(self, oid: str) -> bool:
        return oid in self.old_traces.relations or oid not in self.new_traces.relations

    async def samples(self, *, keep: str) -> Sequence[Sample]:
        """Return rows of tables that changed, as they were and as they are; ends by going back to the savepoint `keep`.

        Of a table that was written anew the first rows stand for all of them: they keep their order.
        """
        session = self.session
        changed = [
            (self._old_name(oid, str(numbers[0])), str(numbers[0]))
            for oid, numbers in (await self._fetch_json(_ROW_COUNTERS)).items()
            if numbers[1:4] != self.row_counters.get(oid, ["", 0, 0, 0, 0])[1:4]
        ][:_MAX_SAMPLED_TABLES]
        numbers = "{" + ",".join(await self._fetch_json(_TRANSACTION_IDS)) + "}"
        after = {table: await self._read_rows_of_transaction(table, "xmin", numbers) for _, table in changed}
        # Rows that were locked only, for a foreign key, are there still.
        locked = {table: await self._find_locked_rows(table, numbers) for _, table in changed}
        tables = [(self.old_traces.relations[oid][0], self.new_traces.relations[oid][0]) for oid in self.rewritten]
        anew = [
            (one.removeprefix("table "), other.removeprefix("table "))
            for one, other in tables
            if one.startswith("table ") and other.removeprefix("table ") not in after
        ][: _MAX_SAMPLED_TABLES - len(changed)]
        is_now = {
            table: await self._query_quickly(f"SELECT * FROM ONLY {table} LIMIT {_MAX_SHOWN_ROWS}") for _, table in anew
        }
        await session.run(f"ROLLBACK TO SAVEPOINT {keep}")
        was = {
            table: await self._query_quickly(f"SELECT * FROM ONLY {name} LIMIT {_MAX_SHOWN_ROWS}")
            for name, table in anew
        }
        # A row that a rolled back transaction changed still says so.
        before = {
            table: await self._read_rows_of_transaction(name, "xmax", numbers, locked[table]) for name, table in changed
        }
        return [
            Sample(table, (after[table] or before[table])[0], gone, came)
            for _, table in changed
            if any(
                (
                    gone := _rows_missing_in(before[table][1], after[table][1]),
                    came := _rows_missing_in(after[table][1], before[table][1]),
                )
            )
        ] + [
            Sample(table, is_now[table][0], "".join(was[table][1]), "".join(is_now[table][1]), was[table][0])
            for _, table in anew
            if was[table][1]
        ]

    def _old_name(self, oid: str, name: str) -> str:
        """Return the name of a table as it was."""
        if oid in self.old_traces.relations:
            return self.old_traces.relations[oid][0].removeprefix("table ")
        return name

    async def undo_statements(self) -> Sequence[str]:
        """Return statements that undo the change, asked for when it is not there any more."""
        schema_change = self.schema_change
        lines = None
        if schema_change is not None:
            lines = await self._guarded(self._with_qualified_names(undo_statements(self.session, schema_change)))
        if lines is None:
            return [remark(f"no way back could be made: {self.comparison_failure}")]
        return lines

    async def _with_qualified_names(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """What `work` finds, with the schema at each name: who runs the way back may have another `search_path`."""
        session = self.session
        with closing(work):
            path = await session.fetch_value("SELECT pg_catalog.current_setting('search_path')")
            await session.fetch_value(_SET_SEARCH_PATH, "pg_catalog")
            found = await work
        await session.fetch_value(_SET_SEARCH_PATH, path)
        return found

    async def _guarded(self, work: Coroutine[Any, Any, _Result]) -> _Result | None:
        """Return what `work` finds; None where it fails, which undoes nothing but itself."""
        await self.session.run("SAVEPOINT mcp_look")
        try:
            found = await work
        except Exception as error:  # noqa: BLE001 - whatever is wrong here, the caller's change is not
            logger.warning("Objects of the database could not be compared: %s", type(error).__name__)
            message = None
            if isinstance(error, psycopg.Error):
                message = error.diag.message_primary
            self.comparison_failure = (
                self.comparison_failure or message or f"the server failed at it ({type(error).__name__})"
            )
            await self.session.run("ROLLBACK TO SAVEPOINT mcp_look; RELEASE SAVEPOINT mcp_look")
            return None
        await self.session.run("RELEASE SAVEPOINT mcp_look")
        return found

    async def _read_rows_of_transaction(
        self, table: str, mark: str, numbers: str, excluded_rows: str = "{}"
    ) -> tuple[Sequence[str], list[str]]:
        """Return some rows that one of these transactions wrote, or that it took away; none where that takes long."""
        condition = f"{mark}::text = ANY ($1::text[]) AND ctid <> ALL ($2::tid[])"
        sql = f"SELECT * FROM ONLY {table} WHERE {condition} LIMIT {_MAX_COMPARED_ROWS}"
        return await self._query_quickly(sql, numbers, excluded_rows)

    async def _find_locked_rows(self, table: str, numbers: str) -> str:
        sql = f"SELECT ctid::text FROM ONLY {table} WHERE xmax::text = ANY ($1::text[]) LIMIT 1000"
        return "{" + ",".join(f'"{json.loads(row)[0]}"' for row in (await self._query_quickly(sql, numbers))[1]) + "}"

    async def _query_quickly(self, sql: str, *values: str) -> tuple[Sequence[str], list[str]]:
        """Return columns and lines of a query; none where it takes long."""
        session = self.session
        await session.run(
            f"SAVEPOINT mcp_sample; SELECT pg_catalog.set_config('statement_timeout', '{_SAMPLE_MILLISECONDS}', true)"
        )
        try:
            (answer,) = await session.run_pipeline((sql, values))
        except psycopg.Error:
            await session.run("ROLLBACK TO SAVEPOINT mcp_sample")
            return (), []
        columns = result_columns(answer)
        writer = RowWriter(columns, _CELL_CHARACTERS)
        lines = [writer.write(row) for row in answer.rows()]
        await session.run("ROLLBACK TO SAVEPOINT mcp_sample")
        return [column.name for column in columns], lines

    async def _fetch_json(self, sql: str, *values: str) -> Any:
        return json.loads(await self.session.fetch_value(sql, *values) or "null")


def _rows_missing_in(rows: Sequence[str], others: Sequence[str]) -> str:
    """Return the first of `rows` that are not among `others`: an update may leave a row as it was."""
    return "".join(sorted(row for row in rows if row not in others)[:_MAX_SHOWN_ROWS])
