"""What a transaction did to a database, seen from inside it: objects, locks, rewritten files, rows, and the way back.

Two looks, before and after, are compared; PostgreSQL's catalogue and statistics say the rest.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import psycopg

from mcp_batteries.sql.results.changes import Sample
from mcp_batteries.sql.results.rows import format_size
from mcp_postgres.engine.audit.visible_schema import RELATION_LISTED
from mcp_postgres.engine.catalog.relation_sql import RELATION_WORD, USER_SCHEMA
from mcp_postgres.engine.change.catalog_diff import CatalogTraces, read_changed_objects, read_traces, start_tracing
from mcp_postgres.engine.change.database_object import ObjectKind, ObjectsByKey, has_kind
from mcp_postgres.engine.change.object_report import describe_object_changes
from mcp_postgres.engine.change.objects import array_literal, diff_objects, read_dependencies
from mcp_postgres.engine.change.row_samples import MAX_SAMPLED_TABLES, TableNames, sample_changed_rows
from mcp_postgres.engine.change.schema_undo import build_undo
from mcp_postgres.engine.connection.session import Session, fetch_json

__all__ = ["Effects", "RowChanges"]

logger = logging.getLogger(__name__)
_Result = TypeVar("_Result")

# Seconds from which a lock is told that every change of rows takes.
_MIN_LOCK_SECONDS = 1.0

# A sequence of a column is listed with its table.
_LISTED = f"""({RELATION_LISTED} OR EXISTS (SELECT 1 FROM pg_depend d JOIN pg_class c ON c.oid = d.refobjid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE d.objid = l.relation AND d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
    AND {RELATION_LISTED}))"""
_LOCKS = f"""
SELECT coalesce(json_agg(json_build_array(l.relation::text, l.mode, CASE WHEN c.oid IS NOT NULL AND {_LISTED} THEN
    format('%s %I.%I', {RELATION_WORD}, n.nspname, c.relname) END)), '[]')::text
FROM pg_locks l LEFT JOIN pg_class c ON c.oid = l.relation LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.granted AND l.mode <> 'AccessShareLock'
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.relation >= 16384
    AND coalesce(c.relkind, '?') NOT IN ('i', 'I', 't')
"""
_MIN_LOCKS_OF_A_LINE = 8
# Modes of locks, the strongest first, and what other sessions can't do meanwhile.
_BLOCKED_BY_LOCK = {
    "AccessExclusiveLock": "stops every read and write", "ExclusiveLock": "stops writes",
    "ShareRowExclusiveLock": "stops writes", "ShareLock": "stops writes",
    "ShareUpdateExclusiveLock": "stops VACUUM and schema changes", "RowExclusiveLock": "stops schema changes",
    "RowShareLock": "stops schema changes",
}  # fmt: skip
_SIZES = "SELECT coalesce(json_object_agg(oid, pg_relation_size(oid)), '{}')::text FROM unnest($1::oid[]) oid"
_ROW_COUNTERS = f"""
SELECT coalesce(json_object_agg(x.oid, json_build_array(x.name, x.made, x.changed, x.gone, x.looked)), '{{{{}}}}')::text
FROM (SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS name, pg_stat_get_xact_tuples_inserted(c.oid) AS made,
    pg_stat_get_xact_tuples_updated(c.oid) AS changed, pg_stat_get_xact_tuples_deleted(c.oid) AS gone,
    pg_stat_get_xact_tuples_returned(c.oid) AS looked
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE {USER_SCHEMA} AND c.relkind IN ('r', 'p', 'm') AND {RELATION_LISTED}{{condition}}) x
WHERE x.made + x.changed + x.gone + x.looked > 0
"""
# Who changes rows holds this lock until the end, which spares a look at every relation.
_IS_CHANGED = """ AND c.oid IN (SELECT l.relation FROM pg_locks l
        WHERE l.pid = pg_backend_pid() AND l.mode IN ('RowExclusiveLock', 'AccessExclusiveLock'))"""
# What TRUNCATE locked, which alone empties a table without a row to count.
_EMPTIED = f"""
SELECT coalesce(json_agg(format('%I.%I', n.nspname, c.relname) ORDER BY c.oid), '[]')::text
FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE l.pid = pg_backend_pid() AND l.mode = 'AccessExclusiveLock' AND c.relkind IN ('r', 'p') AND {RELATION_LISTED}
"""
# Relations with contents that a change of the schema replaces, and that no change of the catalog shows.
_REFILLED = ("sequence ", "materialized view ")
_CHANGED_ROWS_TITLE = "Rows, by triggers and cascades too:"
# The mode that taking a number from a sequence has, and that every change of rows takes.
_ROW_LOCK = "RowExclusiveLock"


class _RowCounters(NamedTuple):
    """How many rows of a relation this transaction has changed and read so far."""

    name: str
    inserted: int
    updated: int
    deleted: int
    read: int

    @property
    def changes(self) -> tuple[int, int, int]:
        return self.inserted, self.updated, self.deleted


_UNTOUCHED = _RowCounters("", 0, 0, 0, 0)


class _HeldLock(NamedTuple):
    """The strongest lock on a relation, and since when any is held."""

    mode: str
    since: float


@dataclass
class Effects:
    """What was seen before and while statements run; `start` first.

    Attributes:
        session: the transaction.
        changes_schema: objects change too, and not rows only.
        undo: statements that undo the change of the schema; None where no inverse is certain.
        comparison_failure: why one of the looks at the objects failed, which stops no change.
        old_traces: what the rows of the catalog that the transaction changed were about.
        new_traces: what they are about now.
        row_counters: what was counted before the first statement, by the numbers of relations.
        rewritten: relations whose file is another one now.
        changes_rows: rows of a table that was there changed.
        has_counted_rows: PostgreSQL counted the rows that changed: not those of foreign tables, nor with
            `track_counts` off.
        locks: when each was taken, at the earliest: as its statement began.
        lock_names: what is locked.
    """

    session: Session
    changes_schema: bool
    undo: Sequence[str] | None = None
    comparison_failure: str = ""
    old_traces: CatalogTraces = field(default_factory=CatalogTraces)
    new_traces: CatalogTraces = field(default_factory=CatalogTraces)
    row_counters: dict[str, _RowCounters] = field(default_factory=dict[str, _RowCounters])
    rewritten: list[str] = field(default_factory=list[str])
    changes_rows: bool = False
    has_counted_rows: bool = False
    locks: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    lock_names: dict[str, str] = field(default_factory=dict[str, str])

    async def start(self) -> None:
        """Look before the first statement."""
        await self._guarded(start_tracing(self.session, objects=self.changes_schema))
        self.row_counters = await _read_row_counters(self.session)

    async def record_statement(self, began: float) -> Sequence[str]:
        """Look behind one statement: the tables it locked, for what says of nothing else what it was about."""
        new_tables: list[str] = []
        for oid, mode, name in await self._fetch_json(_LOCKS):
            is_new = (oid, mode) not in self.locks
            if is_new:
                self.locks[oid, mode] = began
            if name:
                self.lock_names[oid] = name
            if is_new and name:
                new_tables.append(name)
        return new_tables

    async def finish(
        self, *, wants_undo: bool, statement_rows: int, sql: str
    ) -> tuple[Sequence[str], Sequence[tuple[str, Sequence[str]]]]:
        """Look behind the last: objects gained, lost and changed; and what stands out.

        Args:
            wants_undo: `undo` will be asked for.
            statement_rows: how many rows the statements themselves say they changed.
            sql: the statements.
        """
        objects = await self._compare_catalogs(wants_undo=wants_undo)
        if objects is None:
            objects = [f"? objects that could not be compared: {self.comparison_failure}"]
        self.rewritten = self._find_rewritten()
        now = time.monotonic()
        locks = self._find_old_locks()
        counters = await self._count_rows()
        findings = [
            ("Locks, each until the end:", _describe_locks(locks, now)),
            ("Written anew, whole:", await self._describe_rewritten()),
            (_CHANGED_ROWS_TITLE, self._describe_changed_rows(counters, statement_rows, sql)),
            ("Read whole:", self._describe_reads(counters)),
            ("Moved on, which stays so after a dry run:", _find_moved_sequences(locks)),
        ]
        return objects, [(title, lines) for title, lines in findings if lines]

    async def _compare_catalogs(self, *, wants_undo: bool) -> Sequence[str] | None:
        """Return the objects that came, went and changed; None where they can't be compared."""
        if self.comparison_failure:
            return None
        traces = await self._guarded(read_traces(self.session))
        if traces is None:
            return None
        self.old_traces, self.new_traces = traces
        if not self.changes_schema:
            return ()
        return await self._guarded(self._compare_objects(wants_undo=wants_undo))

    async def _compare_objects(self, *, wants_undo: bool) -> Sequence[str]:
        """Return lines for the objects that came, went and changed."""
        was, now = await read_changed_objects(self.session, self.old_traces, self.new_traces)
        if wants_undo:
            self.undo = await self._guarded(self._build_undo(was, now))
        return describe_object_changes(diff_objects(was, now))

    async def _build_undo(self, was: ObjectsByKey, now: ObjectsByKey) -> list[str] | None:
        """Return statements that undo the change of the objects; None where no inverse is certain."""
        if any(self.old_traces.relations[oid][0].startswith(_REFILLED) for oid in self._find_rewritten()):
            return None
        new = [key for key in now if key not in was]
        renamed = [key for key, item in was.items() if key in now and now[key].name != item.name]
        keys = [key for key in (*new, *renamed) if not has_kind(key, ObjectKind.GRANT, ObjectKind.COMMENT)]
        return build_undo(was, now, await read_dependencies(self.session, keys) if keys else ())

    def _find_rewritten(self) -> list[str]:
        """Return the relations whose file is another one now."""
        old_relations = self.old_traces.relations
        new_relations = self.new_traces.relations
        return [oid for oid in old_relations if oid in new_relations and new_relations[oid][1] != old_relations[oid][1]]

    def _find_old_locks(self) -> dict[str, _HeldLock]:
        """Return the locks on what was there, by its name: what is new is nobody else's to wait for."""
        strength = list(_BLOCKED_BY_LOCK)
        locks: dict[str, _HeldLock] = {}
        for (oid, mode), since in self.locks.items():
            name = self._locked_name(oid)
            if not self._is_old(oid) or name.startswith("index "):
                continue
            earlier = locks.get(name, _HeldLock(mode, since))
            locks[name] = _HeldLock(min(mode, earlier.mode, key=strength.index), min(since, earlier.since))
        return locks

    def _locked_name(self, oid: str) -> str:
        """Return what is locked; `index` for what is not worth telling."""
        if oid in self.old_traces.relations:
            return self.old_traces.relations[oid][0]
        return self.lock_names.get(oid, "index ")

    async def _describe_rewritten(self) -> list[str]:
        if not self.rewritten:
            return []
        sizes: dict[str, int] = await self._fetch_json(_SIZES, array_literal(self.rewritten))
        return [f"{self.new_traces.relations[oid][0]}, {format_size(sizes[oid])}" for oid in self.rewritten]

    async def _count_rows(self) -> dict[str, _RowCounters]:
        """Return how many rows of each relation were changed and read since `start`."""
        return _subtract(await _read_row_counters(self.session), self.row_counters)

    def _describe_changed_rows(self, counters: Mapping[str, _RowCounters], statement_rows: int, sql: str) -> list[str]:
        """Return what came of the rows of each table, unless the statements say so themselves."""
        self.changes_rows = any(any(rows.changes) and self._is_old(oid) for oid, rows in counters.items())
        self.has_counted_rows = sum(sum(rows.changes) for rows in counters.values()) >= statement_rows
        return _describe_rows(counters.values(), statement_rows, sql)

    def _describe_reads(self, counters: Mapping[str, _RowCounters]) -> list[str]:
        """Return the tables that were read as a whole.

        How many rows that were is not known: what parallel workers read is counted elsewhere, and old versions count.
        """
        return [relation.name for oid, relation in counters.items() if relation.read > 0 and self._is_old(oid)]

    def _is_old(self, oid: str) -> bool:
        return oid in self.old_traces.relations or oid not in self.new_traces.relations

    async def samples(self, *, keep: str) -> Sequence[Sample]:
        """Return rows of tables that changed, as they were and as they are.

        Ends by going back to the savepoint `keep`.
        """
        changed: list[TableNames] = []
        for oid, now in (await _read_row_counters(self.session)).items():
            if now.changes != self.row_counters.get(oid, _UNTOUCHED).changes:
                changed.append(TableNames(self._old_name(oid, now.name), now.name))
        return await sample_changed_rows(
            self.session, changed[:MAX_SAMPLED_TABLES], self._rewritten_tables(), keep=keep
        )

    def _rewritten_tables(self) -> Iterator[TableNames]:
        for oid in self.rewritten:
            old_label = self.old_traces.relations[oid][0]
            new_label = self.new_traces.relations[oid][0]
            if old_label.startswith("table "):
                yield TableNames(old_label.removeprefix("table "), new_label.removeprefix("table "))

    def _old_name(self, oid: str, name: str) -> str:
        """Return the name of a table as it was."""
        if oid in self.old_traces.relations:
            return self.old_traces.relations[oid][0].removeprefix("table ")
        return name

    async def _guarded(self, work: Coroutine[Any, Any, _Result]) -> _Result | None:
        """Return what `work` finds; None where it fails, which undoes nothing but itself."""
        await self.session.run("SAVEPOINT mcp_look")
        try:
            result = await work
        except Exception as error:  # noqa: BLE001 - whatever is wrong here, the caller's change is not
            logger.warning("Objects of the database could not be compared: %s", type(error).__name__)
            if not self.comparison_failure:
                self.comparison_failure = _explain_failure(error)
            await self.session.run("ROLLBACK TO SAVEPOINT mcp_look; RELEASE SAVEPOINT mcp_look")
            return None
        await self.session.run("RELEASE SAVEPOINT mcp_look")
        return result

    async def _fetch_json(self, sql: str, *values: str) -> Any:
        return json.loads(await self.session.fetch_value(sql, *values) or "null")


class RowChanges:
    """What came of rows in a change that is kept and of whose effects nothing else is looked at."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._counters: dict[str, _RowCounters] = {}

    async def start(self) -> None:
        """Look before the first statement: PostgreSQL's counts begin in earlier transactions of the connection."""
        self._counters = await _read_row_counters(self._session)

    async def finish(
        self, *, statement_rows: int, sql: str, has_truncated: bool
    ) -> Sequence[tuple[str, Sequence[str]]]:
        """Return what came of the rows of each table, unless the statements say so themselves.

        Args:
            statement_rows: how many rows the statements themselves say they changed.
            sql: the statements.
            has_truncated: whether they are TRUNCATE. Others may lock a table as it does, and a trigger of theirs.
        """
        findings: list[tuple[str, Sequence[str]]] = []
        counters = await _read_row_counters(self._session, _IS_CHANGED)
        changed_rows = _describe_rows(_subtract(counters, self._counters).values(), statement_rows, sql)
        if changed_rows:
            findings.append((_CHANGED_ROWS_TITLE, changed_rows))
        if not has_truncated:
            return findings
        # All, as the statement may name a table of the same name in another schema.
        emptied: list[str] = await fetch_json(self._session, _EMPTIED)
        if emptied:
            findings.append(("Emptied:", emptied))
        return findings


async def _read_row_counters(session: Session, condition: str = "") -> dict[str, _RowCounters]:
    rows: dict[str, list[Any]] = await fetch_json(session, _ROW_COUNTERS.format(condition=condition))
    return {oid: _RowCounters(*counters) for oid, counters in rows.items()}


def _subtract(
    new_counters: Mapping[str, _RowCounters], old_counters: Mapping[str, _RowCounters]
) -> dict[str, _RowCounters]:
    """Return how many rows of each relation were changed and read since `old_counters`."""
    counters: dict[str, _RowCounters] = {}
    for oid, now in new_counters.items():
        was = old_counters.get(oid, _UNTOUCHED)
        counters[oid] = _RowCounters(
            now.name,
            now.inserted - was.inserted,
            now.updated - was.updated,
            now.deleted - was.deleted,
            now.read - was.read,
        )
    return counters


def _is_named(table: str, sql: str) -> bool:
    """Return whether the caller named a table: rows behind a view, or in a partition, are those of another one.

    One of the same name in another schema is another one, too.
    """
    schema, _, name = table.rpartition(".")
    qualifier = re.escape(schema.strip('"'))
    word = re.escape(name.strip('"'))
    return re.search(rf'(?<![\w."])(?:"?{qualifier}"?\s*\.\s*)?"?{word}(?!\w)', sql, re.IGNORECASE) is not None


def _describe_rows(counters: Iterable[_RowCounters], statement_rows: int, sql: str) -> list[str]:
    """Return what came of the rows of each table, unless the statements say so themselves."""
    lines: list[str] = []
    has_unnamed_table = False
    total_changes = 0
    for relation in counters:
        if not any(relation.changes):
            continue
        total_changes += sum(relation.changes)
        lines.append(f"{relation.name}: {_describe_changes(relation)}")
        if not _is_named(relation.name, sql):
            has_unnamed_table = True
    if has_unnamed_table or total_changes != statement_rows:
        return lines
    return []


def _explain_failure(error: Exception) -> str:
    """Return what PostgreSQL says, or that it was a mistake of ours."""
    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        return error.diag.message_primary
    return f"the server failed at it ({type(error).__name__})"


def _describe_locks(locks: Mapping[str, _HeldLock], now: float) -> list[str]:
    """Return the locks worth telling: every change of rows takes one, which is told if it lasts.

    Many that are alike, as those on partitions, share a line.
    """
    names_by_lock: dict[str, list[str]] = defaultdict(list)
    for name, lock in locks.items():
        seconds = now - lock.since
        if lock.mode != _ROW_LOCK or seconds > _MIN_LOCK_SECONDS:
            text = f"{lock.mode} for {1000 * seconds:.0f} ms, {_BLOCKED_BY_LOCK.get(lock.mode, '')}"
            names_by_lock[text].append(name)
    lines: list[str] = []
    for text, names in names_by_lock.items():
        if len(names) >= _MIN_LOCKS_OF_A_LINE:
            lines.append(f"{', '.join(name.removeprefix('table ') for name in names)}: {text}")
        else:
            lines += [f"{name}: {text}" for name in names]
    return lines


def _find_moved_sequences(locks: Mapping[str, _HeldLock]) -> list[str]:
    """Return the sequences that gave numbers."""
    return [name for name, lock in locks.items() if name.startswith("sequence ") and lock.mode == _ROW_LOCK]


def _describe_changes(relation: _RowCounters) -> str:
    counts = ((relation.inserted, "in"), (relation.updated, "changed"), (relation.deleted, "out"))
    return ", ".join(f"{number:,} {word}" for number, word in counts if number)
