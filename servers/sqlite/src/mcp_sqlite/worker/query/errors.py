"""Explains errors in words for the caller, with the next move."""

from __future__ import annotations

import math
import os
import re
import sqlite3
from typing import NamedTuple

from mcp_sqlite.worker.connection.authorizer import SCHEMA_CHANGE, SET_PRAGMAS, Authorizer, Denial, Mode
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.connection.visible_schema import VisibleSchema
from mcp_sqlite.worker.language.failure import Failure, extended_code, is_locked, primary_code, refuse_half_character
from mcp_sqlite.worker.language.tokens import BLANK
from mcp_sqlite.worker.query.hints import find_hint

__all__ = ["explain_error", "is_damage"]

# Characters of SQLite's own words that are quoted: they repeat the caller's.
_MAX_MESSAGE_LENGTH = 300
_ROWS_FIX = "Rows are changed by `write_rows`, if the operator started the server with `--write`."
_SCHEMA_FIX = "The schema is changed by `edit_schema`, if the operator started the server with `--ddl`."
_CLOSED_FIX = "That stays closed in every mode."
_HOW_TO_LIST = "`list_tables` lists what is served."

# SQLite's own defence of what virtual tables keep, which asks no authorizer.
_DEFENSE = re.compile(r"\bmay not be (?:modified|altered|dropped|indexed)$")
_FIRST_WORD = re.compile(BLANK + r"(\w+)")
_EXPLAIN_ANALYZE = re.compile(BLANK + r"EXPLAIN\s+ANALYZE\b", re.IGNORECASE)
_ROW_ACTIONS = (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE)
_TEMPORARY_ACTIONS = frozenset(
    value for name, value in vars(sqlite3).items() if name.startswith(("SQLITE_CREATE_TEMP", "SQLITE_DROP_TEMP"))
)
_SCHEMA_ACTIONS = (
    frozenset(
        {
            *range(sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_DROP_VIEW + 1),
            sqlite3.SQLITE_ALTER_TABLE,
            sqlite3.SQLITE_REINDEX,
            sqlite3.SQLITE_ANALYZE,
            sqlite3.SQLITE_CREATE_VTABLE,
            sqlite3.SQLITE_DROP_VTABLE,
        }
    )
    - _TEMPORARY_ACTIONS
)


class _OtherWay(NamedTuple):
    """What a statement would do that is done in another way, and how."""

    action: str
    fix: str


_TRANSACTION = _OtherWay(
    "control transactions", "Leave it away: the statements of one call are one transaction already."
)
_OTHER_WAYS = {
    "VACUUM": _OtherWay("rebuild the whole file (`VACUUM`)", "The operator can run it; no statement here can."),
    "ATTACH": _OtherWay(
        "open another file (`ATTACH`)", "Name two served databases as `database` to read both: `one,other`."
    ),
    "BEGIN": _TRANSACTION,
    "COMMIT": _TRANSACTION,
    "END": _TRANSACTION,
    "ROLLBACK": _TRANSACTION,
    "SAVEPOINT": _TRANSACTION,
    "RELEASE": _TRANSACTION,
}


def explain_error(
    database: Database | None, error: BaseException, sql: str = "", *, path_to_write: str | None = None
) -> Failure:
    """Return what went wrong with `sql` on `database`, or while that was opened.

    Args:
        path_to_write: the file, if it was opened to be written.
    """
    if isinstance(error, UnicodeEncodeError):
        return refuse_half_character()
    message = _quote_message(database, error, sql)
    if database is not None and database.authorizer.denial is not None:
        return _explain_denial(database, database.authorizer.denial, sql)
    if database is not None and database.writable:
        path_to_write = database.path
    if database is not None and _is_interrupted(error, message):
        return _explain_time_limit(database.interrupt.limit)
    return _explain_state(error, message, path_to_write) or _explain_statement(database, error, message, sql)


def _is_interrupted(error: BaseException, message: str) -> bool:
    return primary_code(error) == sqlite3.SQLITE_INTERRUPT or message == "interrupted"


def _explain_time_limit(seconds: float) -> Failure:
    """Return that a statement had no more time.

    Args:
        seconds: what the whole call had; infinite where that is not known.
    """
    message = "The statement was stopped at its time limit"
    if math.isfinite(seconds):
        message += f"; a call has {seconds:g} s"
    return Failure("stopped", f"{message}.", "Ask for less: a narrower WHERE, an index.")


def _quote_message(database: Database | None, error: BaseException, sql: str) -> str:
    """Return SQLite's words, as far as the caller may see them."""
    message = str(error)
    if database is not None and database.visible_schema is not None:
        message = database.visible_schema.redact_error(message, sql)
        if extended_code(error) == sqlite3.SQLITE_CONSTRAINT_TRIGGER:
            message = "a trigger refuses it"  # its words may have values in them
    if len(message) <= _MAX_MESSAGE_LENGTH:
        return message
    return message[: _MAX_MESSAGE_LENGTH - 1] + "…"


def _explain_state(error: BaseException, message: str, path_to_write: str | None) -> Failure | None:
    """Return what went wrong if that is not the statement's doing: limits, locks, the file."""
    code = primary_code(error)
    if _is_interrupted(error, message):
        return _explain_time_limit(math.inf)
    if code in (sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_TOOBIG) or isinstance(error, MemoryError):
        cause = message or "out of memory"
        return Failure("too_large", f"A value or an intermediate result is too big: {cause}.", "Ask for less.")
    # A journal that looks as if a program died in it: who only reads takes one for that which a writer has just begun.
    # The next try finds either no such journal, or has it rolled back (`Database.roll_back_hot_journal`).
    if extended_code(error) == sqlite3.SQLITE_READONLY_ROLLBACK or is_locked(error):
        return Failure("locked", "The database is locked", "Try again in a moment.")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
        return _explain_refused_access(message, path_to_write)
    if extended_code(error) == sqlite3.SQLITE_CORRUPT_VTAB:
        return Failure(
            "unavailable",
            f"The index of a virtual table does not fit its rows: {message}.",
            "`INSERT INTO name(name) VALUES ('rebuild')` makes that of a full-text table anew (`write_rows`).",
        )
    if is_damage(error):
        return Failure("unavailable", f"The file is damaged or no database: {message}.", "`run_check` tells more.")
    return None


def _explain_refused_access(message: str, path_to_write: str | None) -> Failure:
    if path_to_write is not None:
        fix = _explain_unwritable(path_to_write)
        return Failure("refused", f"This server may not write the database: {message}.", fix)
    return Failure(
        "refused", f"SQLite can't do that here: {message}.", "The operator can look at the file's permissions."
    )


def _explain_statement(database: Database | None, error: BaseException, message: str, sql: str) -> Failure:
    """Return what is wrong with a statement."""
    code = primary_code(error)
    if "from within a transaction" in message:
        refusal = _refuse_other_way(sql)
        if refusal is not None:
            return refusal
    if code == sqlite3.SQLITE_CONSTRAINT:
        return Failure("conflict", f"A constraint forbids it: {message}.", find_hint(database, message, sql))
    if _DEFENSE.search(message):
        return Failure("refused", f"SQLite says: `{message}`.", _CLOSED_FIX)
    if "one statement at a time" in message:
        return Failure("invalid", "`sql` holds more than one statement.", "Send one at a time.")
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return Failure("unavailable", f"The disk does not do it: {message}.", "Ask the operator to look at the disk.")
    return Failure("invalid", f"SQLite says: `{message}`.", find_hint(database, message, sql))


def is_damage(error: BaseException) -> bool:
    """Return whether the file is damaged, or no database."""
    return primary_code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _explain_denial(database: Database, denial: Denial, sql: str) -> Failure:
    """Return what the statement was refused for. Its text decides nothing; here it shows what its author meant."""
    if denial.name in database.file_tables:
        return Failure(
            "refused", f"`{denial.name}` is a file: statements only read it.", "`copy_to_file` makes new ones."
        )
    authorizer = database.authorizer
    if database.visible_schema is not None:
        refusal = _refuse_invisible(database.visible_schema, authorizer, denial)
        if refusal is not None:
            return refusal
    refusal = _refuse_other_way(sql)
    if refusal is not None:
        return refusal
    if _EXPLAIN_ANALYZE.match(sql):
        return Failure("refused", "SQLite has no EXPLAIN ANALYZE.", "`EXPLAIN QUERY PLAN`, or `explain_query`.")
    if denial.action in _TEMPORARY_ACTIONS or "`sqlite_temp_master`" in denial.description:
        return Failure(
            "refused",
            "The statement would make a temporary object, which other calls would meet.",
            "Write the query with WITH; in a migration make a table, and drop it in the same call.",
        )
    return Failure("refused", f"The statement would {denial.description}.", _find_denial_fix(authorizer, denial))


def _find_denial_fix(authorizer: Authorizer, denial: Denial) -> str:
    """Return by which tool, if any, a statement is run that was refused."""
    if denial.description == SCHEMA_CHANGE:
        return _SCHEMA_FIX
    if denial.action in _ROW_ACTIONS and authorizer.mode not in (Mode.WRITE, Mode.MIGRATE):
        return _ROWS_FIX
    if authorizer.may_change_schema:
        return _CLOSED_FIX
    if denial.action == sqlite3.SQLITE_PRAGMA and denial.name in SET_PRAGMAS:
        return _SCHEMA_FIX
    return _SCHEMA_FIX if denial.action in _SCHEMA_ACTIONS else _CLOSED_FIX


def _refuse_other_way(sql: str) -> Failure | None:
    """Return the refusal of a statement whose work is done in another way, or by the operator."""
    first_word = _FIRST_WORD.match(sql.removeprefix("EXPLAIN QUERY PLAN "))
    if first_word is None:
        return None
    other_way = _OTHER_WAYS.get(first_word[1].upper())
    if other_way is None:
        return None
    return Failure("refused", f"The statement would {other_way.action}.", other_way.fix)


def _refuse_invisible(visible_schema: VisibleSchema, authorizer: Authorizer, denial: Denial) -> Failure | None:
    """Return the refusal of a statement that touches what is not served, or is masked."""
    name = denial.name
    if authorizer.revealing_column:
        return Failure(
            "refused",
            f"`{authorizer.revealing_column}` can't be updated here: a CHECK or a unique index compares it with a "
            "masked column.",
            "Change other columns, or insert the row anew.",
        )
    if authorizer.denied_rows and not visible_schema.is_visible(name):
        return Failure("invalid", f"SQLite says: `no such table: {name}`.", _HOW_TO_LIST)
    if authorizer.denied_rows and visible_schema.is_masked(name) and authorizer.mode is Mode.WRITE:
        return Failure(
            "refused",
            f"`{name}` has masked columns: a change names it first.",
            f"Begin with INSERT INTO {name}, UPDATE {name} or DELETE FROM {name}; WITH may stand in a subquery.",
        )
    if denial.action != sqlite3.SQLITE_READ:
        return None
    table, column = list(authorizer.columns_read)[-1]
    if visible_schema.is_masked(table, column):
        return Failure(
            "refused",
            f"`{table}.{column}` is masked: a change may set it, and do no more with it.",
            "Name the columns that it reads, of the table itself. Where a trigger uses it, that can't be done here.",
        )
    if visible_schema.lacks_rowid(table, column, "temp"):
        return Failure(
            "refused", f"`{table}` has masked columns, and no rowid therefore.", "Name its key, or another column."
        )
    return Failure("refused", "The statement would read what is not served.", _HOW_TO_LIST)


def _explain_unwritable(path: str) -> str:
    folder = os.path.dirname(path)
    if hasattr(os, "statvfs") and os.statvfs(folder).f_flag & os.ST_RDONLY:
        return "It lies on a file system that is mounted read-only; the operator can mount it otherwise."
    thing = "its file"
    if os.access(path, os.W_OK):
        thing = "its folder, where a journal has to be made,"
    return f"The operator can let the server's user write {thing} or leave `--write` and `--ddl` away."
