"""Callers' statements: rows by page, changes in one transaction."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from mcp_sqlite.worker import schema
from mcp_sqlite.worker.authorizer import SCHEMA_CHANGE, Authorizer, Mode
from mcp_sqlite.worker.cells import Failure, Lines, parameters
from mcp_sqlite.worker.connections import BUSY_MS, Connections, Database

__all__ = ["change", "is_damage", "query", "split"]

Send = Callable[[dict[str, Any]], None]

_SAID = 300
"""Characters of SQLite's own words that are told: they repeat the caller's."""
_RETURNED = 100
"""Rows of RETURNING that are shown, if they are no more than so many bytes; the rest is counted."""
_RETURNED_BYTES = 10_000
_COMMIT_SECONDS = 5.0
_COMMIT_SHARE = 0.4
"""How long a commit waits for readers, and what part of the time left: the answer has to say so."""
_HINTED = 200
"""Tables among whose columns a misspelt one is looked for."""


def query(connections: Connections, request: dict[str, Any], send: Send) -> dict[str, Any]:
    """The first page of a query's rows; all others go to the file `spool`, from which later pages are read.

    The page is sent as soon as it is full. The rest is read to its end then and there, within the deadline and
    `spool_bytes`, so that all pages show one moment and no lock outlives the query. A line there begins with the
    number of its cells that were cut. No row has more than `max_bytes`, or six times `max_cell`, unless
    it has that many columns.
    """
    database = connections.reader(request["path"])
    lines = Lines(request["max_cell"])
    # Who asks for a long cell gets it whole; who asks for a hundred of them gets what an answer can hold.
    room = max(request["max_bytes"], 6 * request["max_cell"])
    with database.interrupt.over(database.connection):
        cursor = execute(database, Mode.READ, request["sql"], request.get("parameters"))
        if cursor.description is None:
            raise Failure("invalid", "There is no statement in `sql`.", "Pass one SELECT.")
        page: dict[str, Any] = {
            "columns": [column[0] for column in cursor.description],
            "immutable": database.immutable,
        }
        rows = rows_of(database, cursor)
        taken: list[str] = []
        size = 0
        more: str | None = None
        for row in rows:
            cut = lines.cut
            text = lines.fitted(row, room)
            size += len(text.encode())
            if taken and (size > request["max_bytes"] or len(taken) == request["limit"]):
                more, lines.cut = f"{lines.cut - cut} {text}", cut
                break
            taken.append(text)
        page |= {"lines": "".join(taken), "rows": len(taken), "more": more is not None, "cut": lines.cut}
        if more is None or not request.get("spool"):
            cursor.close()
            return page
        with open(request["spool"], "xb", buffering=1 << 18) as spool:
            # There before the page is sent: the server opens it then, and takes its name away.
            send(page)
            return _spool(spool, rows, lines, more, room, request)


def _spool(
    file: BinaryIO,
    rows: Iterator[tuple[Any, ...]],
    lines: Lines,
    text: str,
    longest: int,
    request: dict[str, Any],
) -> dict[str, Any]:
    room: int = request["spool_bytes"]
    count = 0
    stopped: str | None = None
    try:
        while True:
            data = text.encode()
            room -= len(data)
            if room < 0:
                stopped = f"only {request['spool_bytes']:,} bytes of a result are kept"
                break
            file.write(data)
            count += 1
            row = next(rows, None)
            if row is None:
                break
            lines.cut = 0
            text = lines.fitted(row, longest)
            text = f"{lines.cut} {text}"
    except Failure as failure:
        stopped = failure.what
    return {"spooled": count, "stopped": stopped}


def change(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """What statements do, in one transaction that is kept unless `dry_run`: rows per statement, objects of the schema.

    `mode` is `write` or `schema`; nothing is kept when one statement fails.
    """
    database = connections.writer(request["path"])
    mode = Mode(request["mode"])
    statements = split(request["sql"])
    if not statements:
        raise Failure("invalid", "There is no statement in `sql`.", "Pass at least one.")
    given = request.get("parameters")
    if given and len(statements) > 1:
        raise Failure("invalid", "`parameters` go with one statement.", "Send the statements one at a time.")
    done: list[dict[str, Any]] = []
    with transaction(database, keep=not request["dry_run"]):
        database.authorizer.shadows = schema.shadows(database)
        before = _objects(database) if mode is Mode.SCHEMA else {}
        lines = Lines(request["max_cell"])
        for number, sql in enumerate(statements, 1):
            try:
                done.append(_step(database, mode, sql, given, lines))
            except Failure as failure:
                where = f"Statement {number} of {len(statements)}: " if len(statements) > 1 else ""
                raise Failure(
                    failure.kind, where + failure.what, f"{failure.fix} Nothing was changed.".strip()
                ) from None
        after = _objects(database) if mode is Mode.SCHEMA else {}
        broken = _broken_keys(database) if mode is Mode.SCHEMA else []
    objects = [f"+ {name}" for name in after.keys() - before.keys()]
    objects += [f"- {name}" for name in before.keys() - after.keys()]
    objects += [f"~ {name}" for name in after.keys() & before.keys() if after[name] != before[name]]
    return {"statements": done, "objects": sorted(objects), "broken": broken}


def _step(database: Database, mode: Mode, sql: str, given: Any, lines: Lines) -> dict[str, Any]:
    started = database.connection.total_changes
    cursor = execute(database, mode, sql, given)
    returned: list[str] = []
    count, room = 0, _RETURNED_BYTES
    for row in rows_of(database, cursor):
        count += 1
        if count <= _RETURNED and len(returned) == count - 1:
            text = lines.fitted(row, _RETURNED_BYTES)
            room -= len(text.encode())
            if room >= 0 or not returned:
                returned.append(text)
    authorizer = database.authorizer
    if cursor.description is None and not authorizer.written and not authorizer.reshapes:
        raise Failure("invalid", "There is a statement that does nothing.", "A comment alone is none.")
    rows = cursor.rowcount
    shown = {name: trigger for name, trigger in authorizer.written.items() if name.lower() not in authorizer.shadows}
    written = dict(authorizer.written)
    if rows < 0:  # sqlite3 tells the number only of statements that begin with INSERT, UPDATE, DELETE or REPLACE
        rows = database.own("SELECT changes()")[0][0] if written else 0
    return {
        "rows": rows,
        # What a virtual table writes for itself is counted too, and is nobody's business.
        "all": database.connection.total_changes - started if shown == written else rows,
        "tables": [name if trigger is None else f"{name} (trigger {trigger})" for name, trigger in shown.items()],
        "columns": [column[0] for column in cursor.description] if cursor.description else None,
        "lines": "".join(returned),
        "returned": count,
    }


class transaction:
    """A block in one transaction that holds the write lock; kept at its end if `keep` and nothing was raised."""

    def __init__(self, database: Database, *, keep: bool) -> None:
        self.database, self.keep = database, keep

    def __enter__(self) -> None:
        try:
            self.database.own("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise explained(self.database, error) from None
        # Who reads holds up the commit; to begin anew would not help, to wait does: no further reader comes in.
        self.database.be_patient(round(min(_COMMIT_SECONDS, self.database.interrupt.left * _COMMIT_SHARE) * 1000))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        database = self.database
        database.interrupt.deadline = float("inf") if kind else database.interrupt.deadline
        database.connection.set_progress_handler(None, 0)
        try:
            if not database.connection.in_transaction:
                if kind is None:
                    raise Failure("conflict", "The statement ended its transaction.", "Nothing was changed.")
            elif kind is None and self.keep:
                database.own("COMMIT")
            else:
                database.own("ROLLBACK")
        except sqlite3.Error as error:
            if database.connection.in_transaction:
                database.own("ROLLBACK")
            raise explained(database, error) from None
        finally:
            database.be_patient(BUSY_MS)
            database.settle()
            database.watch()


def execute(database: Database, mode: Mode, sql: str, given: Any) -> sqlite3.Cursor:
    """The cursor of one statement of a caller's, compiled under `mode`; its first row may have been read.

    Raises:
        Failure: It may not run, is wrong, or was stopped.
    """
    values = parameters(given)
    database.authorizer.begin(mode)
    try:
        try:
            return database.connection.execute(sql, values)
        except sqlite3.Error:
            if not database.authorizer.denied_rows:
                raise
            # Perhaps it was a virtual table that prepares its own writes when it is first used, as an R-Tree does.
            schema.open_virtual(database)
            database.authorizer.begin(mode)
            return database.connection.execute(sql, values)
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
        raise explained(database, error) from None


def rows_of(database: Database, cursor: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
    """The rows left in `cursor`.

    Raises:
        Failure: SQLite stopped on the way.
    """
    try:
        for number, row in enumerate(cursor):
            if number % 256 == 255:
                database.interrupt.check()
            yield row
    except (sqlite3.Error, sqlite3.Warning, ValueError, MemoryError) as error:
        raise explained(database, error) from None


_WAYS = {
    "rows": "Rows are changed by `write_rows`, if the operator started the server with `--write`.",
    "schema": "The schema is changed by `edit_schema`, if the operator started the server with `--ddl`.",
    "other": "That stays closed in every mode.",
}


def explained(database: Database | None, error: BaseException) -> Failure:
    """What went wrong, in words for the caller; on `database`, or while it was opened."""
    said = str(error)
    said = said if len(said) <= _SAID else said[: _SAID - 1] + "…"
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    authorizer = database.authorizer if database else None
    if authorizer is not None and authorizer.denied is not None:
        return Failure("refused", f"The statement would {authorizer.denied}.", _WAYS[_way(authorizer)])
    if code == sqlite3.SQLITE_INTERRUPT or said == "interrupted":
        return Failure(
            "stopped", "The statement was stopped at its time limit.", "Ask for less: a narrower WHERE, an index."
        )
    if code in (sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_TOOBIG) or isinstance(error, MemoryError):
        return Failure(
            "too_large", f"A value or an intermediate result is too big: {said or 'out of memory'}.", "Ask for less."
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Failure("locked", "The database is locked", "Try again in a moment.")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
        return Failure(
            "refused", f"SQLite can't do that here: {said}.", "The operator can look at the file's permissions."
        )
    if is_damage(error):
        return Failure("unavailable", f"The file is damaged or no database: {said}.", "`run_check` tells more.")
    if code == sqlite3.SQLITE_CONSTRAINT:
        return Failure("conflict", f"A constraint forbids it: {said}.", "")
    if "one statement at a time" in said:
        return Failure("invalid", "`sql` holds more than one statement.", "Send one at a time.")
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return Failure("unavailable", f"The disk does not do it: {said}.", "Ask the operator to look at the disk.")
    return Failure("invalid", f"SQLite says: `{said}`.", _hint(database, said) if database else "")


def is_damage(error: BaseException) -> bool:
    """Whether the file is damaged, or no database."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _way(authorizer: Authorizer) -> str:
    action, mode = authorizer.denied_action, authorizer.mode
    if authorizer.denied == SCHEMA_CHANGE:
        return "schema"
    if action in (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE) and mode is not Mode.WRITE:
        return "rows"
    schema = range(sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_DROP_VIEW + 1)
    temporary = "TEMP" in _NAMES.get(action, "")
    more = (sqlite3.SQLITE_ALTER_TABLE, sqlite3.SQLITE_REINDEX, sqlite3.SQLITE_ANALYZE)
    vtables = (sqlite3.SQLITE_CREATE_VTABLE, sqlite3.SQLITE_DROP_VTABLE)
    opens = not temporary and (action in schema or action in more or action in vtables) and mode is not Mode.SCHEMA
    return "schema" if opens else "other"


_NAMES = {
    value: name for name, value in vars(sqlite3).items() if name.startswith(("SQLITE_CREATE_TEMP", "SQLITE_DROP_TEMP"))
}


_OTHER_DIALECT = re.compile(
    r'near "(?:SHOW|DESCRIBE|DESC|USE|\.)"|unrecognized token: "\\|no such table: (?:information_schema|pg_catalog)\.',
    re.IGNORECASE,
)
_FUNCTIONS = {
    **dict.fromkeys(("now", "getdate", "sysdate"), "`datetime('now')`"),
    **dict.fromkeys(("curdate", "today"), "`date('now')`"),
    **dict.fromkeys(
        ("date_format", "date_part", "date_trunc", "extract", "month", "to_char", "to_date", "year"),
        "`strftime(format, time)`",
    ),
    **dict.fromkeys(("datediff", "date_diff"), "`julianday(a) - julianday(b)`"),
    **dict.fromkeys(("date_add", "date_sub", "dateadd"), "`date(time, '+1 day')`"),
    **dict.fromkeys(("concat", "concat_ws"), "`a || b`"),
    **dict.fromkeys(("left", "right", "mid"), "`substr(text, start, length)`"),
    **dict.fromkeys(("string_agg", "array_agg", "listagg"), "`group_concat(value, separator)`"),
    **dict.fromkeys(("len", "char_length"), "`length(text)`"),
    **dict.fromkeys(("isnull", "nvl"), "`ifnull(value, other)`"),
    "if": "`iif(condition, value, other)`",
    "greatest": "`max(a, b)`",
    "least": "`min(a, b)`",
    "regexp_replace": "`replace(text, old, new)`",
    "stddev": "no such aggregate: compute it from `avg(x * x)` and `avg(x)`",
    "rand": "`random()`",
}


def _hint(database: Database, said: str) -> str:
    import difflib

    if " binding" in said:  # sqlite3's words for a value too few or too many
        return "Pass one value for each parameter of the statement as `parameters`."
    if "supplied a sequence" in said:  # from Python 3.14; up to 3.13 names took the values of a list in order
        return "Pass an object of names and values as `parameters`."
    if "supplied a dictionary" in said:
        return "Pass a list of values as `parameters`."
    kind, _, name = said.partition(": ")
    if kind == "no such function":
        return f"SQLite has {_FUNCTIONS[name.lower()]}." if name.lower() in _FUNCTIONS else ""
    if _OTHER_DIALECT.match(said):
        return "`list_tables` and `get_table` tell what there is."
    if kind not in ("no such table", "no such column"):
        return ""
    known = schema.table_names(database)
    if kind == "no such column":
        known = [str(row[1]) for table in known[:_HINTED] for row in schema.columns_of(database, table)]
    near = difflib.get_close_matches(name.rpartition(".")[2], dict.fromkeys(known), n=3, cutoff=0.5)
    said = " or ".join(f"`{item}`" for item in near)
    return f"Did you mean {said}?" if near else "`list_tables` and `get_table` tell the names."


def split(sql: str) -> list[str]:
    """The statements in `sql`, told apart by SQLite's own tokenizer."""
    statements: list[str] = []
    start = 0
    position = sql.find(";")
    while position >= 0:
        if sqlite3.complete_statement(sql[start : position + 1]):
            statements.append(sql[start : position + 1])
            start = position + 1
        position = sql.find(";", position + 1)
    statements.append(sql[start:])
    return [item for item in statements if item.strip(" \t\r\n\f;")]


def _objects(database: Database) -> dict[str, str]:
    rows = database.own(
        "SELECT type || ' ' || name, coalesce(sql, '') FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
    )
    hidden = {f"table {name}" for name in schema.shadows(database)}
    return {str(name): str(sql) for name, sql in rows if str(name).lower() not in hidden}


def _broken_keys(database: Database) -> list[str]:
    rows = database.own('SELECT "table", rowid, parent FROM pragma_foreign_key_check LIMIT 10')
    return [f"{table} row {rowid} refers to a missing row of {parent}" for table, rowid, parent in rows]
