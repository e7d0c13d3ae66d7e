"""What a single statement of a change does: run once or with several sets of values, and the rows that it returns."""

from __future__ import annotations

import re
import sqlite3
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

from mcp_batteries.sql.language.compared_values import is_empty_result
from mcp_sqlite.worker.connection.authorizer import Mode
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.tokens import BLANK
from mcp_sqlite.worker.language.values import RowEncoder
from mcp_sqlite.worker.query.errors import explain_error
from mcp_sqlite.worker.query.statements import (
    Spool,
    describe_full_spool,
    execute,
    iterate_rows,
    refuse_misspelled_columns,
)
from mcp_sqlite.worker.record_files.file_tables import load_named_files

__all__ = ["Step", "check_interrupt", "run_statement"]

# Rows of RETURNING that are shown, if they are no more than so many bytes; a cursor leads to the others.
_MAX_RETURNED_ROWS = 100
_MAX_RETURNED_BYTES = 10_000
_SPOOL_BUFFER_BYTES = 1 << 18
_LEADING_BLANK = re.compile(BLANK)
# Statements that take longer say how long they took.
_SLOW_SECONDS = 0.05


@dataclass
class Step:
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


def run_statement(database: Database, mode: Mode, statement: dict[str, Any]) -> Step:
    """Return what a statement did, run once or with each set of values.

    Args:
        statement: `sql`, `parameters`, and for what it returns `max_cell`, `spool` and `spool_bytes`.
    """
    if _has_value_sets(statement["parameters"]):
        return _run_with_value_sets(database, mode, statement)
    return _run_once(database, mode, statement)


def _has_value_sets(parameters: Any) -> bool:
    """Return whether values for one statement are several sets of them: no value is a list."""
    if not isinstance(parameters, list):
        return False
    values = cast("list[Any]", parameters)
    return bool(values) and all(isinstance(value, list) for value in values)


def _run_with_value_sets(database: Database, mode: Mode, statement: dict[str, Any]) -> Step:
    """Return what a statement did, run once with each set of values."""
    value_sets: list[list[Any]] = statement["parameters"]
    total: Step | None = None
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
        check_interrupt(database)
    assert total is not None
    total.seconds = _seconds_if_slow(started)
    return total


def check_interrupt(database: Database) -> None:
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


def _run_once(database: Database, mode: Mode, statement: dict[str, Any]) -> Step:
    """Return what a statement did."""
    sql: str = statement["sql"]
    load_named_files(database, mode, sql)
    started = time.monotonic()
    changes_before = database.connection.total_changes
    if mode is Mode.WRITE:
        refuse_misspelled_columns(database, mode, sql, statement["parameters"])
    cursor = execute(database, mode, sql, statement["parameters"])
    returned = _read_returned(database, cursor, statement)
    written = dict(database.authorizer.tables_written)
    changes_schema = database.authorizer.changes_schema
    if cursor.description is None and not written and not changes_schema:
        if mode is Mode.WRITE:
            raise Failure("invalid", "There is a statement that does nothing.", "Leave it out.")
        # DROP ... IF EXISTS where there is no such thing, with which many scripts begin.
        changes_schema = True
    visible = _select_visible(database, written)
    tables = [_describe_written_table(table, trigger) for table, trigger in visible.items()]
    row_count = _count_changed_rows(database, cursor, has_written=bool(written))
    total_row_count = row_count
    # What a virtual table writes for itself is counted too, or begins with, and is nobody's business.
    if visible == written and not changes_schema:
        total_row_count = database.connection.total_changes - changes_before
        if total_row_count == row_count:
            # The others are those that a trigger or a foreign key would have changed; its own table comes first.
            tables = tables[:1]
    return Step(
        action=_name_action(sql) if changes_schema else "",
        row_count=row_count,
        total_row_count=total_row_count,
        tables=tables,
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
    """Return the first words of a statement: the verb and a kind of object, as in `CREATE UNIQUE INDEX`."""
    words = _LEADING_BLANK.sub("", sql, count=1).upper().split()
    word_count = 3 if words[1:2] in (["UNIQUE"], ["VIRTUAL"]) else 2
    return " ".join(words[:word_count])


def _describe_written_table(table: str, trigger: str | None) -> str:
    if trigger is None:
        return table
    return f"{table} (trigger {trigger})"


def _count_changed_rows(database: Database, cursor: sqlite3.Cursor, *, has_written: bool) -> int:
    if cursor.rowcount >= 0:
        return cursor.rowcount
    # sqlite3 knows the number only of statements that begin with INSERT, UPDATE, DELETE or REPLACE.
    return database.read_internal("SELECT changes()") if has_written else 0


def _read_returned(database: Database, cursor: sqlite3.Cursor, statement: dict[str, Any]) -> dict[str, Any] | None:
    """Return the rows of RETURNING, the first of them to be shown and all others in the file `spool`.

    None of a statement that gives none back.
    """
    if cursor.description is None:
        return None
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
    if database.authorizer.changes_schema and not lines:
        # The columns are those of a check that SQLite itself runs where ALTER TABLE adds a constraint.
        return None
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
