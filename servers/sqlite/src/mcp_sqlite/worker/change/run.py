"""Runs callers' statements that change something, in one transaction that is kept completely or not at all."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp_batteries.sql.language.identifiers import unquote_identifier
from mcp_sqlite.worker.change import foreign_keys
from mcp_sqlite.worker.change.dependents import DependentState
from mcp_sqlite.worker.change.objects import SchemaSnapshot, describe_difference, read_objects
from mcp_sqlite.worker.change.replaced_rows import CountBudget, ReplacedRows
from mcp_sqlite.worker.change.samples import sample_changes
from mcp_sqlite.worker.change.schema_undo import UndoRecorder
from mcp_sqlite.worker.change.steps import Step, check_interrupt, run_statement
from mcp_sqlite.worker.change.transaction import Transaction
from mcp_sqlite.worker.connection.authorizer import Mode
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.tokens import BLANK
from mcp_sqlite.worker.query.absent_values import find_absent_values
from mcp_sqlite.worker.query.incomparable_values import find_incomparable_values
from mcp_sqlite.worker.query.statements import allot_parameters, load_files_early, split_statements
from mcp_sqlite.worker.query.texts_in_sums import find_texts_in_sums
from mcp_sqlite.worker.schema import lookup

__all__ = ["run_change"]

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
_UNCHANGED = "Nothing was changed."


@dataclass
class _Change:
    """A change under way.

    Attributes:
        parameters: the values for each of the statements.
        steps: what its statements did until now.
        count_budget: for the rows that make room for others.
        summed_columns: those that were looked at for texts, each with its table before it.
    """

    connections: Connections
    database: Database
    request: dict[str, Any]
    mode: Mode
    statements: list[str]
    parameters: list[Any]
    steps: list[Step] = field(default_factory=list[Step])
    count_budget: CountBudget = field(default_factory=CountBudget)
    summed_columns: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

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
                self._read_shadow_tables()
                if self.is_migration:
                    answer = self._migrate()
                else:
                    answer = self._write_rows()
        except Failure as failure:
            if not self.is_dry_run or not self.steps or len(self.statements) == 1:
                raise
            answer["failure"] = [failure.kind, failure.message, failure.fix]
        answer["steps"] = [step.to_frame() for step in self.steps]
        return answer

    def _write_rows(self) -> dict[str, Any]:
        """Run statements that leave the schema as it is, and return what a dry run tells of the rows."""
        self._run_statements()
        if not self.is_dry_run:
            return {}
        return {"samples": sample_changes(self.connections, self.database, self._list_written_tables())}

    def _migrate(self) -> dict[str, Any]:
        """Run the statements, and return what the schema, the keys and the rows tell of them."""
        before = read_objects(self.database)
        undo = UndoRecorder(self.database) if self.is_dry_run else None
        dependents_before = DependentState.read(self.database)
        can_break_keys = any(map(self._can_break_keys, self.statements))
        broken_before: foreign_keys.BrokenKeys | None = None
        if self.defers_keys and can_break_keys:
            broken_before = foreign_keys.find_broken(self.database)
        self._run_statements(undo)
        after = read_objects(self.database)
        answer: dict[str, Any] = {}
        dependents = DependentState.read(self.database)
        answer["dependents"] = dependents_before.compare(dependents, (before, after), self.statements)
        if can_break_keys:
            answer |= self._check_keys(broken_before, refuses=self.defers_keys)
        answer["objects"] = describe_difference(before, after)
        if undo is not None:
            changed_tables = self._list_written_tables() | _list_reshaped_tables(before, after)
            answer["samples"] = sample_changes(self.connections, self.database, changed_tables)
            answer["undo"] = undo.statements
        return answer

    def _run_statements(self, undo: UndoRecorder | None = None) -> None:
        """Run all statements, each for `undo` to see.

        Raises:
            Failure: one failed, or a commit would.
        """
        for number in range(len(self.statements)):
            self._run_statement(number, undo)
        # A commit looks for keys that were deferred, which a dry run never gets to.
        if self.is_dry_run and not self.defers_keys and foreign_keys.would_fail_commit(self.database):
            raise self._explain_deferred_keys()

    def _can_break_keys(self, statement: str) -> bool:
        """Return whether a foreign key may point nowhere because of a statement."""
        dropped_index = _DROP_INDEX.fullmatch(statement)
        if dropped_index is not None:
            return bool(self.database.run_internal(_UNIQUE_INDEX, [unquote_identifier(dropped_index["name"])]))
        return _KEEPS_KEYS.match(statement) is None

    def _read_shadow_tables(self) -> None:
        self.database.authorizer.shadow_tables = lookup.find_shadow_tables(self.database)

    def _list_written_tables(self) -> set[str]:
        """Return the tables whose rows were changed."""
        tables: set[str] = set()
        for step in self.steps:
            tables.update(step.tables_written)
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

    def _take_step(self, number: int) -> Step:
        """Run a statement, once or with each set of values.

        Raises:
            Failure: it failed; the message says which one it was.
        """
        parameters = self.parameters[number]
        spool = f"{self.request['spool']}{number}"
        statement = {**self.request, "sql": self.statements[number], "parameters": parameters, "spool": spool}
        try:
            replaced_rows = ReplacedRows(self.database, self.statements[number], self.count_budget)
            incomparable_values = find_incomparable_values(self.database, self.statements[number], parameters)
            incomparable_values += find_texts_in_sums(self.database, self.statements[number], self.summed_columns)
            step = run_statement(self.database, self.mode, statement)
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
            check_interrupt(self.database)
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


def _list_reshaped_tables(before: SchemaSnapshot, after: SchemaSnapshot) -> set[str]:
    """Return the tables that are new, gone or have another form."""
    # A name and a definition: what is in one of both sets only was changed.
    shapes_before = {(key, item.sql) for key, item in before.objects.items()}
    shapes_after = {(key, item.sql) for key, item in after.objects.items()}
    return {key.name for key, _ in shapes_before ^ shapes_after if key.is_table}


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


def _find_broken_before(connections: Connections, database: Database) -> foreign_keys.BrokenKeys | None:
    """Return what was broken before the transaction under way, if it lets others read."""
    try:
        return foreign_keys.find_broken(connections.reader(database.path))
    except (Failure, sqlite3.Error):
        database.interrupt.check()
        return None
