"""Runs callers' statements that change something: in one transaction, kept completely or not at all, or in a dry
run."""

from __future__ import annotations

import re
import sqlite3
import time
from typing import Any, cast

from mcp_sqlite.worker.change import foreign_keys
from mcp_sqlite.worker.change.objects import RenameTrail, build_undo, describe_difference, read_objects
from mcp_sqlite.worker.change.samples import sample_changes
from mcp_sqlite.worker.connection.authorizer import Mode
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import BUSY_MS, Database
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.tokens import BLANK
from mcp_sqlite.worker.language.values import RowEncoder
from mcp_sqlite.worker.query.errors import explain_error
from mcp_sqlite.worker.query.statements import (
    allot_parameters,
    execute,
    iterate_rows,
    load_files_early,
    refuse_misspelled_columns,
    split_statements,
    spool_rows,
)
from mcp_sqlite.worker.record_files.file_tables import load_named_files
from mcp_sqlite.worker.schema import lookup

__all__ = ["Transaction", "run_change"]

_RETURNED = 100
"""Rows of RETURNING that are shown, if they are no more than so many bytes; a cursor leads to the rest."""
_RETURNED_BYTES = 10_000
_BEFORE = re.compile(BLANK)
_DROPS = re.compile(BLANK + r"DROP\s+TABLE\b", re.IGNORECASE)
_LETS_WAIT = "SELECT 1 FROM sqlite_master WHERE sql LIKE '%INITIALLY%DEFERRED%' LIMIT 1"
_BROKEN = 10
"""Keys of whose rows it is told that they point nowhere now."""
_SLOW_SECONDS = 0.05
"""Statements that take longer tell their time."""
_COMMIT_SECONDS = 5.0
_COMMIT_SHARE = 0.4
"""How long a commit waits for readers, and what part of the time left: the answer has to say so."""


def run_change(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """What statements do, in one transaction that is kept unless `dry_run`: rows per statement, objects of the schema.

    `mode` is `write`, `schema` or `migrate`; nothing is kept when one statement fails. A dry run shows rows before and
    after too, and how to undo it.
    """
    database = connections.writer(request["path"])
    mode = Mode(request["mode"])
    reshapes = mode is not Mode.WRITE
    statements = split_statements(request["sql"])
    if not statements:
        raise Failure("invalid", "There is no statement in `sql`.", "Pass at least one.")
    given = allot_parameters(statements, request.get("parameters"))
    steps: list[dict[str, Any]] = []
    found: dict[str, Any] = {"steps": steps}
    begun = time.monotonic()
    # A table is rebuilt by a copy that takes its name; until then every key that refers to it points nowhere
    # (https://sqlite.org/lang_altertable.html#otheralter). All keys are checked at the end.
    load_files_early(database, mode, statements)
    keys_wait = reshapes and any(map(_DROPS.match, statements))
    with Transaction(database, keep=not request["dry_run"], checks_keys=not keys_wait):
        database.authorizer.shadow_tables = lookup.find_shadow_tables(database)
        before = read_objects(database) if reshapes else {}
        trail = RenameTrail(database) if reshapes and request["dry_run"] else None
        # A commit looks for keys that were let wait, which a dry run never gets to.
        looks = keys_wait or (request["dry_run"] and bool(database.run_internal(_LETS_WAIT)))
        broken = foreign_keys.find_broken(database) if looks else None
        for number, sql in enumerate(statements):
            part = {**request, "sql": sql, "parameters": given[number], "spool": f"{request['spool']}{number}"}
            if steps and database.authorizer.shadow_tables:
                # A full-text table writes what it has gathered when a savepoint begins; in the middle of this
                # statement it would look as if that wrote there.
                database.run_internal("SAVEPOINT gathered")
                database.run_internal("RELEASE gathered")
            if trail is not None:
                trail.before(sql)
            try:
                steps.append(
                    _repeated(database, mode, part) if _are_sets(given[number]) else _step(database, mode, part)
                )
            except Failure as failure:
                where = f"Statement {number + 1} of {len(statements)}: " if len(statements) > 1 else ""
                raise Failure(
                    failure.kind, where + failure.message, f"{failure.fix} Nothing was changed.".strip()
                ) from None
            if trail is not None:
                trail.behind(steps[-1]["what"], steps[-1]["written"])
            if steps[-1]["what"]:  # There may be a virtual table more, or one by another name.
                database.authorizer.shadow_tables = lookup.find_shadow_tables(database)
        if looks or reshapes:
            now = foreign_keys.find_broken(database)
            if broken is None and (now.rows or now.misfits):
                broken = _broken_before(connections, database)
            lost = foreign_keys.find_newly_broken(broken, now) if broken is not None else now.rows
            if looks and lost:
                raise Failure(
                    "conflict",
                    f"Foreign keys would point nowhere: {'; '.join(foreign_keys.describe_broken_keys(lost)[:3])}.",
                    "Change or delete those rows in the same call. Nothing was changed.",
                )
            if misfits := sorted(now.misfits - (broken.misfits if broken is not None else set())):
                raise Failure(
                    "conflict",
                    f"SQLite says: `{misfits[0]}`.",
                    "What a foreign key refers to is a primary key or has a unique index. Nothing was changed.",
                )
            if reshapes:
                known = None if broken is None else now.number - sum(rows.number for rows in lost.values())
                found["broken"] = {"lost": foreign_keys.describe_broken_keys(lost)[:_BROKEN], "known": known}
        after = read_objects(database) if reshapes else {}
        if reshapes:
            found["objects"] = describe_difference(before, after)
        if request["dry_run"]:
            written = {name for step in steps for name in step["written"]}
            tables = {name[8:] for name in found.get("objects", ()) if name[2:].startswith("table ")}
            found["samples"] = sample_changes(connections, database, written | tables)
            found["back"] = build_undo(before, after, trail) if trail is not None else []
    return found | {"files": database.describe_files(request["sql"]), "seconds": time.monotonic() - begun}


def _are_sets(given: Any) -> bool:
    """Whether values for one statement are several sets of them: no value is a list."""
    values = cast("list[Any]", given) if isinstance(given, list) else []
    return bool(values) and all(isinstance(item, list) for item in values)


def _repeated(database: Database, mode: Mode, request: dict[str, Any]) -> dict[str, Any]:
    """What a statement did, run once with each set of values."""
    sets: list[list[Any]] = request["parameters"]
    first: dict[str, Any] | None = None
    begun = time.monotonic()
    for number, values in enumerate(sets, 1):
        try:
            step = _step(database, mode, {**request, "parameters": values})
        except Failure as failure:
            raise Failure(failure.kind, f"Set {number} of {len(sets)}: {failure.message}", failure.fix) from None
        if step["columns"] is not None:
            raise Failure("invalid", "Several sets of values have no RETURNING.", "Leave it out, or send one set.")
        if first is None:
            first = step
        else:
            first["rows"] += step["rows"]
            first["all"] += step["all"]
        try:
            database.interrupt.check()
        except sqlite3.Error as error:
            raise explain_error(database, error) from None
    assert first is not None
    seconds = time.monotonic() - begun
    return {**first, "seconds": seconds if seconds > _SLOW_SECONDS else None}


def _step(database: Database, mode: Mode, request: dict[str, Any]) -> dict[str, Any]:
    load_named_files(database, mode, request["sql"])
    begun, started = time.monotonic(), database.connection.total_changes
    if mode is Mode.WRITE:
        refuse_misspelled_columns(database, mode, request["sql"], request["parameters"])
    cursor = execute(database, mode, request["sql"], request["parameters"])
    found: dict[str, Any] = {"columns": None}
    if cursor.description is not None:
        found = _returned(database, cursor, request)
    authorizer = database.authorizer
    if cursor.description is None and not authorizer.tables_written and not authorizer.changes_schema:
        raise Failure("invalid", "There is a statement that does nothing.", "A comment alone is none.")
    rows = cursor.rowcount
    shown = {
        name: trigger
        for name, trigger in authorizer.tables_written.items()
        if name.lower() not in authorizer.shadow_tables
    }
    shown = {name: trigger for name, trigger in shown.items() if database.is_visible(name)}
    written = dict(authorizer.tables_written)
    what = " ".join(_BEFORE.sub("", request["sql"], count=1).split()[:2]).upper() if authorizer.changes_schema else ""
    if rows < 0:  # sqlite3 tells the number only of statements that begin with INSERT, UPDATE, DELETE or REPLACE
        rows = database.run_internal("SELECT changes()")[0][0] if written else 0
    seconds = time.monotonic() - begun
    return {
        "what": what,
        "rows": rows,
        # What a virtual table writes for itself is counted too, and is nobody's business.
        "all": database.connection.total_changes - started if shown == written else rows,
        "tables": [name if trigger is None else f"{name} (trigger {trigger})" for name, trigger in shown.items()],
        "written": list(shown),
        "seconds": seconds if seconds > _SLOW_SECONDS else None,
        **found,
    }


def _returned(database: Database, cursor: sqlite3.Cursor, request: dict[str, Any]) -> dict[str, Any]:
    """The rows of RETURNING, the first of them shown and all others in the file `spool`."""
    lines = RowEncoder(request["max_cell"])
    taken: list[str] = []
    room = _RETURNED_BYTES
    found: dict[str, Any] = {"columns": [column[0] for column in cursor.description]}
    rows = iterate_rows(database, cursor)
    for row in rows:
        text = lines.encode_within(row, _RETURNED_BYTES)
        room -= len(text.encode())
        if taken and (room < 0 or len(taken) == _RETURNED):
            with open(request["spool"], "xb", buffering=1 << 18) as spool:
                first = f"0 {text}"
                found["rest"] = spool_rows(spool, rows, lines, first, _RETURNED_BYTES, request["spool_bytes"])
            # What is not kept is done all the same.
            for _ in rows:
                pass
            break
        taken.append(text)
    return found | {"lines": "".join(taken), "shown": len(taken), "more": "rest" in found, "cut": lines.cut_cells}


class Transaction:
    """A block in one transaction that holds the write lock; kept at its end if `keep` and nothing was raised."""

    def __init__(self, database: Database, *, keep: bool, checks_keys: bool = True) -> None:
        self.database, self.keep, self.checks_keys = database, keep, checks_keys

    def __enter__(self) -> None:
        try:
            if not self.checks_keys:
                self.database.run_internal("PRAGMA foreign_keys = OFF")
            self.database.run_internal("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            self.database.run_internal("PRAGMA foreign_keys = ON")
            raise explain_error(self.database, error) from None
        # Until the commit a lock is wanted only to write pages early. SQLite keeps them where that fails, and would
        # wait anew in each statement for a reader that may be our own.
        self.database.set_busy_timeout(0)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        database, left = self.database, self.database.interrupt.seconds_left
        database.interrupt.deadline = float("inf") if kind else database.interrupt.deadline
        database.connection.set_progress_handler(None, 0)
        try:
            if not database.connection.in_transaction:
                if kind is None:
                    raise Failure("conflict", "The statement ended its transaction.", "Nothing was changed.")
            elif kind is None and self.keep:
                # Who reads holds up the commit; to begin anew would not help, to wait does: no further reader comes in.
                seconds = min(_COMMIT_SECONDS, left * _COMMIT_SHARE)
                database.set_busy_timeout(max(BUSY_MS, round(seconds * 1000)))
                database.run_internal("COMMIT")
            else:
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


def _broken_before(connections: Connections, database: Database) -> foreign_keys.BrokenKeys | None:
    """What was broken before the transaction under way, if it lets others read."""
    try:
        return foreign_keys.find_broken(connections.reader(database.path))
    except (Failure, sqlite3.Error):
        database.interrupt.check()
        return None
