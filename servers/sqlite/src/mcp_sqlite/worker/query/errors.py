"""Errors in words for the caller, with the next move."""

from __future__ import annotations

import os
import re
import sqlite3

from mcp_sqlite.worker.connection.authorizer import SCHEMA_CHANGE, SET_PRAGMAS, Authorizer, Mode
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.connection.visible_schema import VisibleSchema
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.tokens import BLANK
from mcp_sqlite.worker.query.hints import find_hint

__all__ = ["explain_error", "is_damage"]

_SAID = 300
"""Characters of SQLite's own words that are told: they repeat the caller's."""
_WAYS = {
    "rows": "Rows are changed by `write_rows`, if the operator started the server with `--write`.",
    "schema": "The schema is changed by `edit_schema`, if the operator started the server with `--ddl`.",
    "other": "That stays closed in every mode.",
}


def explain_error(
    database: Database | None, error: BaseException, sql: str = "", *, to_write: str | None = None
) -> Failure:
    """What went wrong with `sql`, in words for the caller; on `database`, or while it was opened.

    Args:
        to_write: the file, if it was opened to be written.
    """
    said = str(error)
    if database is not None and database.visible_schema is not None:
        said = database.visible_schema.redact_error(said, sql)
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_CONSTRAINT_TRIGGER:
            said = "a trigger refuses it"  # its words may have values in them
    said = said if len(said) <= _SAID else said[: _SAID - 1] + "…"
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    authorizer = database.authorizer if database else None
    if authorizer is not None and authorizer.denied is not None:
        if database is not None and authorizer.denied_name in database.file_tables:
            name = authorizer.denied_name
            return Failure("refused", f"`{name}` is a file: statements only read it.", "`copy_to_file` makes new ones.")
        return _refusal(authorizer, sql)
    if code == sqlite3.SQLITE_INTERRUPT or said == "interrupted":
        return Failure(
            "stopped", "The statement was stopped at its time limit.", "Ask for less: a narrower WHERE, an index."
        )
    if code in (sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_TOOBIG) or isinstance(error, MemoryError):
        return Failure(
            "too_large", f"A value or an intermediate result is too big: {said or 'out of memory'}.", "Ask for less."
        )
    # A journal that looks as if a program died in it: who only reads takes one for that which a writer has just begun.
    # The next try finds either no such journal, or has it rolled back (`Database.check_journal`).
    begun = getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_ROLLBACK
    if begun or code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Failure("locked", "The database is locked", "Try again in a moment.")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
        path = database.path if database is not None and database.writable else to_write
        if path is not None:
            return Failure("refused", f"This server may not write the database: {said}.", _unwritable(path))
        return Failure(
            "refused", f"SQLite can't do that here: {said}.", "The operator can look at the file's permissions."
        )
    if is_damage(error):
        return Failure("unavailable", f"The file is damaged or no database: {said}.", "`run_check` tells more.")
    if "from within a transaction" in said and (refusal := _meant(sql)):
        return refusal
    if code == sqlite3.SQLITE_CONSTRAINT:
        fix = find_hint(database, said, sql) if database else ""
        return Failure("conflict", f"A constraint forbids it: {said}.", fix)
    if _DEFENDED.search(said):  # SQLite's own defence, which asks no authorizer
        return Failure("refused", f"SQLite says: `{said}`.", _WAYS["other"])
    if "one statement at a time" in said:
        return Failure("invalid", "`sql` holds more than one statement.", "Send one at a time.")
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return Failure("unavailable", f"The disk does not do it: {said}.", "Ask the operator to look at the disk.")
    return Failure("invalid", f"SQLite says: `{said}`.", find_hint(database, said, sql) if database else "")


def is_damage(error: BaseException) -> bool:
    """Whether the file is damaged, or no database."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _way(authorizer: Authorizer) -> str:
    action, mode = authorizer.denied_action, authorizer.mode
    if authorizer.denied == SCHEMA_CHANGE:
        return "schema"
    rows = action in (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE)
    if rows and mode not in (Mode.WRITE, Mode.MIGRATE):
        return "rows"
    if action == sqlite3.SQLITE_PRAGMA and authorizer.denied_name in SET_PRAGMAS and not authorizer.may_change_schema:
        return "schema"
    schema = range(sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_DROP_VIEW + 1)
    temporary = "TEMP" in _NAMES.get(action, "")
    more = (sqlite3.SQLITE_ALTER_TABLE, sqlite3.SQLITE_REINDEX, sqlite3.SQLITE_ANALYZE)
    vtables = (sqlite3.SQLITE_CREATE_VTABLE, sqlite3.SQLITE_DROP_VTABLE)
    opens = (
        not temporary and (action in schema or action in more or action in vtables) and not authorizer.may_change_schema
    )
    return "schema" if opens else "other"


_NAMES = {
    value: name for name, value in vars(sqlite3).items() if name.startswith(("SQLITE_CREATE_TEMP", "SQLITE_DROP_TEMP"))
}


_DEFENDED = re.compile(r"\bmay not be (?:modified|altered|dropped|indexed)$")
_WORD = re.compile(BLANK + r"(\w+)")
_ANALYZES = re.compile(BLANK + r"EXPLAIN\s+ANALYZE\b", re.IGNORECASE)
_OTHER_WAYS = {
    "VACUUM": ("rebuild the whole file (`VACUUM`)", "The operator can run it; no statement here can."),
    "ATTACH": ("open another file (`ATTACH`)", "Name two served databases as `database` to read both: `one,other`."),
    **dict.fromkeys(
        ("BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE"),
        ("control transactions", "Leave it away: the statements of one call are one transaction already."),
    ),
}


def _refusal(authorizer: Authorizer, sql: str) -> Failure:
    """What the statement was refused for. Its text decides nothing; it tells here what its author meant."""
    if authorizer.visible_schema is not None and (refusal := _not_served(authorizer.visible_schema, authorizer)):
        return refusal
    if refusal := _meant(sql):
        return refusal
    if _ANALYZES.match(sql):
        return Failure("refused", "SQLite has no EXPLAIN ANALYZE.", "`EXPLAIN QUERY PLAN`, or `explain_query`.")
    if "TEMP" in _NAMES.get(authorizer.denied_action, "") or "`sqlite_temp_master`" in (authorizer.denied or ""):
        return Failure(
            "refused",
            "The statement would make a temporary object, which other calls would meet.",
            "Write the query with WITH; in a migration make a table, and drop it in the same call.",
        )
    return Failure("refused", f"The statement would {authorizer.denied}.", _WAYS[_way(authorizer)])


def _meant(sql: str) -> Failure | None:
    """The refusal of a statement whose work is done in another way, or by the operator."""
    found = _WORD.match(sql.removeprefix("EXPLAIN QUERY PLAN "))
    would, way = _OTHER_WAYS.get(found[1].upper() if found else "", ("", ""))
    return Failure("refused", f"The statement would {would}.", way) if would else None


def _not_served(part: VisibleSchema, authorizer: Authorizer) -> Failure | None:
    name = authorizer.denied_name
    if authorizer.denied_rows and not part.is_visible(name):
        return Failure("invalid", f"SQLite says: `no such table: {name}`.", "`list_tables` lists what is served.")
    if authorizer.denied_rows and part.is_masked(name) and authorizer.mode is Mode.WRITE:
        return Failure(
            "refused",
            f"`{name}` has masked columns: a change names it first.",
            f"Begin with INSERT INTO {name}, UPDATE {name} or DELETE FROM {name}; WITH may stand in a subquery.",
        )
    if authorizer.denied_action != sqlite3.SQLITE_READ:
        return None
    table, column = list(authorizer.columns_read)[-1]
    if part.is_masked(table, column):
        return Failure(
            "refused",
            f"`{table}.{column}` is masked: a change may set it, and do no more with it.",
            "Name the columns that it reads, of the table itself. Where a trigger uses it, that can't be done here.",
        )
    return Failure("refused", "The statement would read what is not served.", "`list_tables` lists what is served.")


def _unwritable(path: str) -> str:
    folder = os.path.dirname(path)
    if hasattr(os, "statvfs") and os.statvfs(folder).f_flag & os.ST_RDONLY:
        return "It lies on a file system that is mounted read-only; the operator can mount it otherwise."
    what = "its folder, where a journal has to be made," if os.access(path, os.W_OK) else "its file"
    return f"The operator can let the server's user write {what} or leave `--write` and `--ddl` away."
