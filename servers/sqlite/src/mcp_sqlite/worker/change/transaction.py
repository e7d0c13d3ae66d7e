"""Runs callers' statements that change something, in one transaction that is kept completely or not at all."""

from __future__ import annotations

import math
import re
import sqlite3
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

from mcp_batteries.sql.language.compared_values import is_empty_result
from mcp_batteries.sql.language.identifiers import unquote_identifier
from mcp_sqlite.worker.change import foreign_keys
from mcp_sqlite.worker.change.dependents import DependentState
from mcp_sqlite.worker.change.objects import SchemaSnapshot, describe_difference, read_objects
from mcp_sqlite.worker.change.replaced_rows import CountBudget, ReplacedRows
from mcp_sqlite.worker.change.samples import sample_changes
from mcp_sqlite.worker.change.schema_undo import UndoRecorder
from mcp_sqlite.worker.connection.authorizer import Mode
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import BUSY_MS, Database
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.tokens import BLANK
from mcp_sqlite.worker.language.values import RowEncoder
from mcp_sqlite.worker.query.absent_values import find_absent_values
from mcp_sqlite.worker.query.errors import explain_error
from mcp_sqlite.worker.query.incomparable_values import find_incomparable_values
from mcp_sqlite.worker.query.statements import (
    Spool,
    allot_parameters,
    describe_full_spool,
    execute,
    iterate_rows,
    load_files_early,
    refuse_misspelled_columns,
    split_statements,
)
from mcp_sqlite.worker.query.texts_in_sums import find_texts_in_sums
from mcp_sqlite.worker.record_files.file_tables import load_named_files
from mcp_sqlite.worker.schema import lookup

__all__ = ["Transaction", "run_change"]

# Rows of RETURNING that are shown, if they are no more than so many bytes; a cursor leads to the others.
_MAX_RETURNED_ROWS = 100
_MAX_RETURNED_BYTES = 10_000
_SPOOL_BUFFER_BYTES = 1 << 18
_LEADING_BLANK = re.compile(BLANK)
_DROP_TABLE = re.compile(BLANK + r"DROP\s+TABLE\b", re.IGNORECASE)
# Statements that make no foreign key point nowhere: to look through all keys may take longer than they do. A column
# that is dropped is part of no key, and of no unique index.
_KEEPS_KEYS = re.compile(
    BLANK
    + r"""(?:CREATE\s+INDEX|CREATE\s+(?:TEMP\s+|TEMPORARY\s+)?(?:VIEW|TRIGGER)|DROP\s+(?:VIEW|TRIGGER)|ANALYZE|REINDEX
    |ALTER\s+TABLE\s+(?:\w+|"[^"]+")\s+(?:DROP|ADD(?!.*\bREFERENCES\b)))\b""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_DROP_INDEX = re.compile(BLANK + r"DROP\s+INDEX\s+(?:IF\s+EXISTS\s+)?(?P<name>\w+|\"[^\"]+\")[\s;]*", re.IGNORECASE)
_UNIQUE_INDEX = """
SELECT 1 FROM sqlite_master m, pragma_index_list(m.tbl_name) i
WHERE m.type = 'index' AND m.name = ?1 COLLATE NOCASE AND i.name = m.name AND i."unique"
"""
# Keys that are named whose rows point nowhere now.
_MAX_BROKEN_KEYS = 10
_MAX_REFUSED_KEYS = 3
# How long the rows are looked for because of which a commit would fail; others can't write in the meantime.
_SEARCH_SECONDS = 2.0
# Statements that take longer say how long they took.
_SLOW_SECONDS = 0.05
# How long a commit waits for readers, and what part of the time left: the answer has to say so.
_COMMIT_SECONDS = 5.0
_COMMIT_SHARE = 0.4
_UNCHANGED = "Nothing was changed."


@dataclass
class _Step:
    """What a statement did.

    Attributes:
        action: its first words, if it is about the schema.
        row_count: rows that it changed itself.
        total_row_count: the same with those that triggers and foreign keys changed.
        replaced_row_count: rows that were removed to make room for these, as far as that is known.
        skipped_triggers: a note on triggers that did not run for those rows.
        tables: the tables whose rows it changed, with the triggers that did.
        tables_written: the same, names only.
        seconds: how long it took, if that was long.
        returned: the frame of the rows it gave back; None where it gives none.
        absent_values: notes on why it found nothing.
        incomparable_values: notes on conditions that mean another thing than they seem to.
    """

    action: str
    row_count: int
    total_row_count: int
    tables: list[str]
    tables_written: list[str]
    seconds: float | None
    returned: dict[str, Any] | None
    replaced_row_count: int = 0
    skipped_triggers: str = ""
    absent_values: list[str] = field(default_factory=list[str])
    incomparable_values: list[str] = field(default_factory=list[str])

    @property
    def found_nothing(self) -> bool:
        """Whether it changed no row, and showed none."""
        return not self.row_count and (self.returned is None or is_empty_result(self.returned["lines"]))

    def to_frame(self) -> dict[str, Any]:
        """Return the step as the server reads it."""
        returned = {"columns": None} if self.returned is None else self.returned
        return {
            "action": self.action,
            "rows": self.row_count,
            "all": self.total_row_count,
            "replaced": self.replaced_row_count,
            "skipped_triggers": self.skipped_triggers,
            "tables": self.tables,
            "seconds": self.seconds,
            "absent": self.absent_values,
            "incomparable": self.incomparable_values,
            **returned,
        }


@dataclass
class _Change:
    """A change under way.

    Attributes:
        parameters: the values for each of the statements.
        steps: what its statements did until now.
        count_budget: for the rows that make room for others.
    """

    connections: Connections
    database: Database
    request: dict[str, Any]
    mode: Mode
    statements: list[str]
    parameters: list[Any]
    steps: list[_Step] = field(default_factory=list[_Step])
    count_budget: CountBudget = field(default_factory=CountBudget)

    @property
    def is_migration(self) -> bool:
        """Whether it may change the schema."""
        return self.mode is not Mode.WRITE

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing of it is kept."""
        return self.request["dry_run"]

    @property
    def defers_keys(self) -> bool:
        """Whether foreign keys are checked at its end only."""
        # A table is rebuilt by a copy that takes its name; until then every key that refers to it points nowhere
        # (https://sqlite.org/lang_altertable.html#otheralter). All keys are checked at the end.
        return self.is_migration and any(map(_DROP_TABLE.match, self.statements))

    def run(self) -> dict[str, Any]:
        """Run the statements in a transaction, and return what they did.

        Of a dry run that fails it returns as `failure` why, with what the statements before did.
        """
        answer: dict[str, Any] = {}
        try:
            with Transaction(self.database, keep=not self.is_dry_run, checks_keys=not self.defers_keys):
                answer = self._run_in_transaction()
        except Failure as failure:
            if not self.is_dry_run or not self.steps or len(self.statements) == 1:
                raise
            answer["failure"] = [failure.kind, failure.message, failure.fix]
        answer["steps"] = [step.to_frame() for step in self.steps]
        return answer

    def _run_in_transaction(self) -> dict[str, Any]:
        """Run the statements, and return what the schema, the keys and the rows tell of them."""
        answer: dict[str, Any] = {}
        self._read_shadow_tables()
        before = self._read_objects()
        undo: UndoRecorder | None = None
        if self.is_migration and self.is_dry_run:
            undo = UndoRecorder(self.database)
        dependents_before: DependentState | None = None
        if self.is_migration:
            dependents_before = DependentState.read(self.database)
        broken_before: foreign_keys.BrokenKeys | None = None
        can_break_keys = any(map(self._can_break_keys, self.statements))
        if self.defers_keys and can_break_keys:
            broken_before = foreign_keys.find_broken(self.database)
        for number in range(len(self.statements)):
            self._run_statement(number, undo)
        # A commit looks for keys that were deferred, which a dry run never gets to.
        if self.is_dry_run and not self.defers_keys and foreign_keys.would_fail_commit(self.database):
            raise self._explain_deferred_keys()
        after = self._read_objects()
        if dependents_before is not None:
            dependents = DependentState.read(self.database)
            answer["dependents"] = dependents_before.compare(dependents, (before, after), self.statements)
        if can_break_keys and self.is_migration:
            answer |= self._check_keys(broken_before, refuses=self.defers_keys)
        if self.is_migration:
            answer["objects"] = describe_difference(before, after)
        if self.is_dry_run:
            changed_tables = self._list_changed_tables(before, after)
            answer["samples"] = sample_changes(self.connections, self.database, changed_tables)
        if undo is not None:
            answer["undo"] = undo.statements
        return answer

    def _can_break_keys(self, statement: str) -> bool:
        """Return whether a foreign key may point nowhere because of a statement."""
        dropped_index = _DROP_INDEX.fullmatch(statement)
        if dropped_index is not None:
            return bool(self.database.run_internal(_UNIQUE_INDEX, [unquote_identifier(dropped_index["name"])]))
        return _KEEPS_KEYS.match(statement) is None

    def _read_objects(self) -> SchemaSnapshot:
        if self.is_migration:
            return read_objects(self.database)
        return SchemaSnapshot({}, {})

    def _read_shadow_tables(self) -> None:
        self.database.authorizer.shadow_tables = lookup.find_shadow_tables(self.database)

    def _list_changed_tables(self, before: SchemaSnapshot, after: SchemaSnapshot) -> set[str]:
        """Return the tables that are new, gone or have another form, and those whose rows were changed."""
        tables: set[str] = set()
        for step in self.steps:
            tables.update(step.tables_written)
        # A name and a definition: what is in one of both sets only was changed.
        shapes_before = {(key, item.sql) for key, item in before.objects.items()}
        shapes_after = {(key, item.sql) for key, item in after.objects.items()}
        tables.update(key.name for key, _ in shapes_before ^ shapes_after if key.is_table)
        return tables

    def _run_statement(self, number: int, undo: UndoRecorder | None) -> None:
        sql = self.statements[number]
        if self.steps and self.database.authorizer.shadow_tables:
            # A full-text table writes what it has gathered when a savepoint begins; in the middle of this
            # statement it would look as if that wrote there.
            self.database.run_internal("SAVEPOINT gathered")
            self.database.run_internal("RELEASE gathered")
        if undo is not None:
            undo.observe_before(sql)
        step = self._take_step(number)
        self.steps.append(step)
        if undo is not None:
            undo.observe_after(step.action, step.tables_written)
        if step.action:  # There may be a virtual table more, or one by another name.
            self._read_shadow_tables()

    def _take_step(self, number: int) -> _Step:
        """Run a statement, once or with each set of values.

        Raises:
            Failure: it failed; the message says which one it was.
        """
        parameters = self.parameters[number]
        spool = f"{self.request['spool']}{number}"
        statement = {**self.request, "sql": self.statements[number], "parameters": parameters, "spool": spool}
        try:
            replaced_rows = ReplacedRows(self.database, self.statements[number], self.count_budget)
            run = _run_with_value_sets if _has_value_sets(parameters) else _run_once
            incomparable_values = find_incomparable_values(self.database, self.statements[number], parameters)
            incomparable_values += find_texts_in_sums(self.database, self.statements[number])
            step = run(self.database, self.mode, statement)
            step.incomparable_values = incomparable_values
            replaced_row_count = replaced_rows.count(step.row_count)
            step.replaced_row_count = replaced_row_count or 0
            step.skipped_triggers = replaced_rows.describe_skipped_triggers(replaced_row_count)
            if step.found_nothing:
                step.absent_values = find_absent_values(self.database, self.statements[number])
            return step
        except Failure as failure:
            message = failure.message
            if len(self.statements) > 1:
                message = f"Statement {number + 1} of {len(self.statements)}: {message}"
            raise Failure(failure.kind, message, f"{failure.fix} {_UNCHANGED}".strip()) from None

    def _explain_deferred_keys(self) -> Failure:
        """Return that the commit would fail, and because of which rows, if they are found in time."""
        try:
            with self.database.interrupt.shorten(_SEARCH_SECONDS):
                before = foreign_keys.find_broken(self.connections.reader(self.database.path))
                broken = foreign_keys.find_newly_broken(before, foreign_keys.find_broken(self.database))
        except (Failure, sqlite3.Error):
            _check_interrupt(self.database)
            return _refuse_broken_keys(["there was no time to find out which"])
        lines = foreign_keys.describe_broken_keys(broken)
        return _refuse_broken_keys(lines or ["of rows that pointed nowhere before and still would (`run_check`)"])

    def _check_keys(self, broken_before: foreign_keys.BrokenKeys | None, *, refuses: bool) -> dict[str, Any]:
        """Return which foreign keys point nowhere now.

        Raises:
            Failure: some do that did not before, if the change `refuses` that; or some refer to what is not unique.
        """
        now = foreign_keys.find_broken(self.database)
        if broken_before is None and (now.rows or now.misfits):
            broken_before = _find_broken_before(self.connections, self.database)
        newly_broken = now.rows
        misfits = now.misfits
        number_before: int | None = None
        if broken_before is not None:
            newly_broken = foreign_keys.find_newly_broken(broken_before, now)
            misfits = now.misfits - broken_before.misfits
            number_before = now.number - sum(rows.number for rows in newly_broken.values())
        lines = foreign_keys.describe_broken_keys(newly_broken)
        if refuses and newly_broken:
            raise _refuse_broken_keys(lines)
        if misfits:
            raise _refuse_misfit(min(misfits))
        return {"broken_keys": {"new": lines[:_MAX_BROKEN_KEYS], "number_before": number_before}}


def _refuse_broken_keys(lines: Sequence[str]) -> Failure:
    return Failure(
        "conflict",
        f"Foreign keys would point nowhere: {'; '.join(lines[:_MAX_REFUSED_KEYS])}.",
        f"Change or delete those rows in the same call. {_UNCHANGED}",
    )


def _refuse_misfit(message: str) -> Failure:
    return Failure(
        "conflict",
        f"SQLite says: `{message}`.",
        f"What a foreign key refers to is a primary key or has a unique index. {_UNCHANGED}",
    )


def run_change(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Return what statements do, in one transaction that is kept unless `dry_run`.

    `mode` is `write`, `schema` or `migrate`; nothing is kept when one statement fails. A dry run shows rows before and
    after too, and how to undo it.
    """
    database = connections.writer(request["path"])
    mode = Mode(request["mode"])
    statements = split_statements(request["sql"])
    if not statements:
        raise Failure("invalid", "There is no statement in `sql`.", "Pass at least one.")
    parameters = allot_parameters(statements, request.get("parameters"))
    started = time.monotonic()
    load_files_early(database, mode, statements)
    answer = _Change(
        connections=connections,
        database=database,
        request=request,
        mode=mode,
        statements=statements,
        parameters=parameters,
    ).run()
    answer["files"] = database.describe_files(request["sql"])
    answer["seconds"] = time.monotonic() - started
    return answer


def _has_value_sets(parameters: Any) -> bool:
    """Return whether values for one statement are several sets of them: no value is a list."""
    if not isinstance(parameters, list):
        return False
    values = cast("list[Any]", parameters)
    return bool(values) and all(isinstance(value, list) for value in values)


def _run_with_value_sets(database: Database, mode: Mode, statement: dict[str, Any]) -> _Step:
    """Return what a statement did, run once with each set of values."""
    value_sets: list[list[Any]] = statement["parameters"]
    total: _Step | None = None
    started = time.monotonic()
    for number, values in enumerate(value_sets, 1):
        try:
            step = _run_once(database, mode, {**statement, "parameters": values})
        except Failure as failure:
            message = f"Set {number} of {len(value_sets)}: {failure.message}"
            raise Failure(failure.kind, message, failure.fix) from None
        if step.returned is not None:
            raise Failure("invalid", "Several sets of values have no RETURNING.", "Leave it out, or send one set.")
        if total is None:
            total = step
        else:
            total.row_count += step.row_count
            total.total_row_count += step.total_row_count
        _check_interrupt(database)
    assert total is not None
    total.seconds = _seconds_if_slow(started)
    return total


def _check_interrupt(database: Database) -> None:
    """Check that there is time left, and that the caller is still there."""
    try:
        database.interrupt.check()
    except sqlite3.Error as error:
        raise explain_error(database, error) from None


def _seconds_if_slow(started: float) -> float | None:
    seconds = time.monotonic() - started
    if seconds > _SLOW_SECONDS:
        return seconds
    return None


def _run_once(database: Database, mode: Mode, statement: dict[str, Any]) -> _Step:
    """Return what a statement did."""
    sql: str = statement["sql"]
    load_named_files(database, mode, sql)
    started = time.monotonic()
    changes_before = database.connection.total_changes
    if mode is Mode.WRITE:
        refuse_misspelled_columns(database, mode, sql, statement["parameters"])
    cursor = execute(database, mode, sql, statement["parameters"])
    returned: dict[str, Any] | None = None
    if cursor.description is not None:
        returned = _read_returned(database, cursor, statement)
    written = dict(database.authorizer.tables_written)
    changes_schema = database.authorizer.changes_schema
    if changes_schema and returned is not None and not returned["shown"]:
        # The columns are those of a check that SQLite itself runs where ALTER TABLE adds a constraint.
        returned = None
    if cursor.description is None and not written and not changes_schema:
        if mode is Mode.WRITE:
            raise Failure("invalid", "There is a statement that does nothing.", "Leave it out.")
        # DROP ... IF EXISTS where there is no such thing, with which many scripts begin.
        changes_schema = True
    visible = _select_visible(database, written)
    action = _name_action(sql) if changes_schema else ""
    row_count = _count_changed_rows(database, cursor, has_written=bool(written))
    # What a virtual table writes for itself is counted too, or begins with, and is nobody's business.
    total_row_count = row_count
    table_phrases = [_describe_written_table(table, trigger) for table, trigger in visible.items()]
    if visible == written and not changes_schema:
        total_row_count = database.connection.total_changes - changes_before
        if total_row_count == row_count:
            # The others are those that a trigger or a foreign key would have changed; its own table comes first.
            del table_phrases[1:]
    return _Step(
        action=action,
        row_count=row_count,
        total_row_count=total_row_count,
        tables=table_phrases,
        tables_written=list(visible),
        seconds=_seconds_if_slow(started),
        returned=returned,
    )


def _select_visible(database: Database, written: dict[str, str | None]) -> dict[str, str | None]:
    """Return the tables of those that were written that a caller knows, with the trigger that wrote there."""
    shadow_tables = database.authorizer.shadow_tables
    return {
        table: trigger
        for table, trigger in written.items()
        if table.lower() not in shadow_tables and database.is_visible(table)
    }


def _name_action(sql: str) -> str:
    """Return the first two words of a statement."""
    words = _LEADING_BLANK.sub("", sql, count=1).split()
    return " ".join(words[:2]).upper()


def _describe_written_table(table: str, trigger: str | None) -> str:
    if trigger is None:
        return table
    return f"{table} (trigger {trigger})"


def _count_changed_rows(database: Database, cursor: sqlite3.Cursor, *, has_written: bool) -> int:
    if cursor.rowcount >= 0:
        return cursor.rowcount
    # sqlite3 knows the number only of statements that begin with INSERT, UPDATE, DELETE or REPLACE.
    return database.read_internal("SELECT changes()") if has_written else 0


def _read_returned(database: Database, cursor: sqlite3.Cursor, statement: dict[str, Any]) -> dict[str, Any]:
    """Return the rows of RETURNING, the first of them to be shown and all others in the file `spool`."""
    encoder = RowEncoder(statement["max_cell"])
    lines: list[str] = []
    bytes_left = _MAX_RETURNED_BYTES
    columns = [column[0] for column in cursor.description]
    spooled: dict[str, Any] = {}
    rows = iterate_rows(database, cursor)
    for row in rows:
        line = encoder.encode_within(row, _MAX_RETURNED_BYTES)
        bytes_left -= len(line.encode())
        if lines and (bytes_left < 0 or len(lines) == _MAX_RETURNED_ROWS):
            with open(statement["spool"], "xb", buffering=_SPOOL_BUFFER_BYTES) as spool:
                spooled["rest"] = _spool_returned(spool, encoder, f"0 {line}", rows, statement["spool_bytes"])
            break
        lines.append(line)
    return {
        "columns": columns,
        **spooled,
        "lines": "".join(lines),
        "shown": len(lines),
        "more": "rest" in spooled,
        "cut": encoder.cut_cells,
    }


def _spool_returned(
    file: BinaryIO, encoder: RowEncoder, first_line: str, rows: Iterator[tuple[Any, ...]], max_bytes: int
) -> dict[str, Any]:
    """Write rows for later pages, as far as there is room; the statement is done to its end in any case.

    Raises:
        Failure: it was stopped before its end, so that nobody knows what it did.
    """
    spool = Spool(file, encoder, _MAX_RETURNED_BYTES, max_bytes)
    stopped: str | None = None
    if not spool.write(first_line, rows):
        stopped = describe_full_spool(max_bytes)
        deque(rows, maxlen=0)
    return {"spooled": spool.count, "stopped": stopped}


class Transaction:
    """A block in one transaction that holds the write lock; kept at its end if `keep` and nothing was raised.

    Inside it the busy timeout is 0 until COMMIT: a second connection opened there may meet our own lock.
    """

    def __init__(self, database: Database, *, keep: bool, checks_keys: bool = True) -> None:
        self._database = database
        self._keep = keep
        self._checks_keys = checks_keys

    def __enter__(self) -> None:
        try:
            if not self._checks_keys:
                self._database.run_internal("PRAGMA foreign_keys = OFF")
            self._database.run_internal("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            self._database.run_internal("PRAGMA foreign_keys = ON")
            raise explain_error(self._database, error) from None
        # Until the commit a lock is wanted only to write pages early. SQLite keeps them where that fails, and would
        # wait anew in each statement for a reader that may be our own.
        self._database.set_busy_timeout(0)

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        database = self._database
        seconds_left = database.interrupt.seconds_left
        if error_type is not None:
            database.interrupt.deadline = math.inf
        database.connection.set_progress_handler(None, 0)
        try:
            if error_type is None:
                self._end(seconds_left)
            elif database.connection.in_transaction:
                database.run_internal("ROLLBACK")
        except sqlite3.Error as error:
            if database.connection.in_transaction:
                database.run_internal("ROLLBACK")
            raise explain_error(database, error) from None
        finally:
            database.run_internal("PRAGMA foreign_keys = ON")
            database.set_busy_timeout(BUSY_MS)
            database.remember_file_state()
            database.check_interrupt_while_running()

    def _end(self, seconds_left: float) -> None:
        """Commit what was done without an error, or roll it back in a dry run."""
        if not self._database.connection.in_transaction:
            raise Failure("conflict", "The statement ended its transaction.", _UNCHANGED)
        if not self._keep:
            self._database.run_internal("ROLLBACK")
            return
        # Who reads holds up the commit; to begin anew would not help, to wait does: no further reader comes in.
        seconds = min(_COMMIT_SECONDS, seconds_left * _COMMIT_SHARE)
        self._database.set_busy_timeout(max(BUSY_MS, round(seconds * 1000)))
        self._database.run_internal("COMMIT")


def _find_broken_before(connections: Connections, database: Database) -> foreign_keys.BrokenKeys | None:
    """Return what was broken before the transaction under way, if it lets others read."""
    try:
        return foreign_keys.find_broken(connections.reader(database.path))
    except (Failure, sqlite3.Error):
        database.interrupt.check()
        return None
