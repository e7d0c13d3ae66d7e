"""Runs callers' statements that read: pages of rows, from one statement or from several at one moment."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from mcp_batteries.sql.misspelt import near
from mcp_sqlite.worker.connection.authorizer import Mode, find_closed_module_in_full_join
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.parameters import parse_parameters
from mcp_sqlite.worker.language.tokens import EMPTY_STATEMENT, EXPLAIN_PREFIX
from mcp_sqlite.worker.language.values import RowEncoder
from mcp_sqlite.worker.query.errors import explain_error
from mcp_sqlite.worker.record_files.file_tables import load_named_files
from mcp_sqlite.worker.schema import lookup

__all__ = [
    "Send",
    "allot_parameters",
    "execute",
    "find_names_taken_as_text",
    "iterate_rows",
    "load_files_early",
    "refuse_misspelled_columns",
    "run_query",
    "run_statements",
    "split_statements",
    "spool_rows",
]

Send = Callable[[dict[str, Any]], None]

_MOST = 50
"""Statements of one call."""
_PROGRAM = ["addr", "opcode", "p1", "p2", "p3", "p4", "p5", "comment"]
_ADDRESS = re.compile(r"\A(vtab):[0-9A-Fa-fx]+\Z")
_NAMES = re.compile(
    r"""'(?:[^']|'')*'|--[^\n]*|/\*.*?(?:\*/|\Z)|`[^`]*`|\[[^\]]*\]|\bAS\s+"(?:[^"]|"")*"|"(\w+(?:\ \w+)*)\"""",
    re.DOTALL | re.IGNORECASE,
)
_LIKE_A_COLUMN = 0.7
_MOST_OF_IT = 0.8
"""What part of the time left a statement may take while others wait behind it."""
_PLAN_SECONDS = 0.2
_DATABASE_LIST = re.compile(r"\s*PRAGMA\s+database_list\s*;?\s*", re.IGNORECASE)
"""Answered without the path of the file, which is the operator's business."""


def run_statements(connections: Connections, request: dict[str, Any], send: Send) -> dict[str, Any]:
    """The first page of each statement in `sql`, all of one moment, as `results`; of one statement that of `query`.

    What fails is told in its place as `error`, unless it would do more than read: that fails the call.
    """
    statements = split_statements(request["sql"])
    if len(statements) <= 1:
        return run_query(connections, request | ({"sql": statements[0]} if statements else {}), send)
    given = allot_parameters(statements, request.get("parameters"))
    database = connections.reader(request["path"])
    results: list[dict[str, Any]] = []
    left: int = request["max_bytes"]
    load_files_early(database, Mode.READ, statements)
    database.run_internal("BEGIN")
    try:
        for number, sql in enumerate(statements):
            # What one leaves of its share goes to those behind it.
            room = max(1000, left // (len(statements) - number))
            part = {**request, "sql": sql, "parameters": given[number], "max_bytes": room}
            part |= {"spool": f"{request['spool']}{number}", "spool_bytes": request["spool_bytes"] // len(statements)}
            page: dict[str, Any] = {}
            last = number + 1 == len(statements)
            try:
                with database.interrupt.shorten(database.interrupt.seconds_left * (1 if last else _MOST_OF_IT)):
                    end = run_query(connections, part, page.update)
                page = page | {"rest": end} if page else end
            except Failure as failure:
                if failure.kind in ("refused", "locked"):
                    where = f"Statement {number + 1} of {len(statements)}: "
                    raise Failure(failure.kind, where + failure.message, failure.fix) from None
                page = {"error": [failure.kind, failure.message, failure.fix]}
            results.append(page)
            left -= len(page.get("lines", "").encode())
    finally:
        if database.connection.in_transaction:
            database.run_internal("ROLLBACK")
    return {"results": results}


def allot_parameters(statements: list[str], given: Any) -> list[Any]:
    """The values for each of `statements`; names serve all of them.

    Raises:
        Failure: an array has not one entry for each.
    """
    if len(statements) == 1 or not given or isinstance(given, dict):
        return [given] * len(statements)
    if len(given) != len(statements) or not all(isinstance(item, list | dict | None) for item in given):
        raise Failure(
            "invalid",
            f"`sql` holds {len(statements)} statements, and `parameters` no array of values for each.",
            "Pass an array with one entry per statement: an array, an object or null. Or an object with names for all.",
        )
    return list(given)


def run_query(connections: Connections, request: dict[str, Any], send: Send) -> dict[str, Any]:
    """The first page of a query's rows; all others go to the file `spool`, from which later pages are read.

    The page is sent as soon as it is full. The rest is read to its end then and there, within the deadline and
    `spool_bytes`, so that all pages show one moment and no lock outlives the query. A line there begins with the
    number of its cells that were cut. No row has more than `max_bytes`, or six times `max_cell`, unless
    it has that many columns.
    """
    database = connections.reader(request["path"])
    try:
        return _query(database, request, send)
    except Failure as failure:
        if failure.kind == "stopped" and (again := _read_again(database, request["sql"], request.get("parameters"))):
            raise Failure("stopped", failure.message, again) from None
        raise


def _query(database: Database, request: dict[str, Any], send: Send) -> dict[str, Any]:
    lines = RowEncoder(request["max_cell"])
    # Who asks for a long cell gets it whole; who asks for a hundred of them gets what an answer can hold.
    room = max(request["max_bytes"], 6 * request["max_cell"])
    load_named_files(database, Mode.READ, request["sql"])
    with database.interrupt.reach(database.connection):
        texts = find_names_taken_as_text(database, Mode.READ, request["sql"], request.get("parameters"))
        cursor = execute(database, Mode.READ, request["sql"], request.get("parameters"))
        if cursor.description is None:
            raise Failure("invalid", "There is no statement in `sql`.", "Pass one SELECT.")
        page: dict[str, Any] = {
            "columns": [column[0] for column in cursor.description],
            "immutable": database.immutable,
            "masks": list(database.authorizer.masked_columns_read),
            "texts": texts,
            "files": database.describe_files(request["sql"]),
        }
        rows = iterate_rows(database, cursor)
        if page["columns"] == _PROGRAM and EXPLAIN_PREFIX.match(request["sql"]):
            rows = map(_without_addresses, rows)
        taken: list[str] = []
        size = 0
        more: str | None = None
        for row in rows:
            cut = lines.cut_cells
            text = lines.encode_within(row, room)
            size += len(text.encode())
            if taken and (size > request["max_bytes"] or len(taken) == request["limit"]):
                more, lines.cut_cells = f"{lines.cut_cells - cut} {text}", cut
                break
            taken.append(text)
        page |= {"lines": "".join(taken), "shown": len(taken), "more": more is not None, "cut": lines.cut_cells}
        if more is None or not request.get("spool"):
            cursor.close()
            return page
        with open(request["spool"], "xb", buffering=1 << 18) as spool:
            # There before the page is sent: the server opens it then, and takes its name away.
            send(page)
            return spool_rows(spool, rows, lines, more, room, request["spool_bytes"])


def spool_rows(
    file: BinaryIO, rows: Iterator[tuple[Any, ...]], lines: RowEncoder, text: str, longest: int, most: int
) -> dict[str, Any]:
    """Write the line `text`, and one for each of `rows`, to a file for later pages; at most `most` bytes."""
    room = most
    count = 0
    stopped: str | None = None
    try:
        while True:
            data = text.encode()
            room -= len(data)
            if room < 0:
                stopped = f"only {most:,} bytes of a result are kept"
                break
            file.write(data)
            count += 1
            row = next(rows, None)
            if row is None:
                break
            lines.cut_cells = 0
            text = lines.encode_within(row, longest)
            text = f"{lines.cut_cells} {text}"
    except Failure as failure:
        stopped = failure.message
    return {"spooled": count, "stopped": stopped}


def load_files_early(database: Database, mode: Mode, statements: list[str]) -> None:
    """Have the files that statements name read before a transaction begins, which would lock others out meanwhile.

    What goes wrong is told when the statement's turn comes.
    """
    for sql in statements:
        with suppress(Failure):
            load_named_files(database, mode, sql)


def execute(database: Database, mode: Mode, sql: str, given: Any) -> sqlite3.Cursor:
    """The cursor of one statement of a caller's, compiled under `mode`; its first row may have been read.

    Raises:
        Failure: It may not run, is wrong, or was stopped.
    """
    values = parse_parameters(given, sql)
    if (closed := find_closed_module_in_full_join(sql)) is not None:
        raise Failure("refused", f"It would read `{closed}`, which is closed.", "")
    if mode is Mode.READ and _DATABASE_LIST.fullmatch(sql):
        sql = "SELECT 0 AS seq, 'main' AS name, '' AS file"
    if (part := database.visible_schema) is not None:
        sql = part.hide_masked_order(
            database.run_internal,
            lambda sql: _planned(database, mode, f"EXPLAIN QUERY PLAN {sql}", values),
            part.rewrite(sql),
        )
    try:
        if EXPLAIN_PREFIX.match(sql):
            lookup.reread_schema(database)
        database.authorizer.begin(mode)
        try:
            return database.connection.execute(sql, values)
        except sqlite3.Error:
            if not database.authorizer.denied_rows:
                raise
            # Perhaps it was a virtual table that prepares its own writes when it is first used, as an R-Tree does.
            lookup.open_virtual_tables(database)
            database.authorizer.begin(mode)
            return database.connection.execute(sql, values)
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
        raise explain_error(database, error, sql) from None


def _without_addresses(row: tuple[Any, ...]) -> tuple[Any, ...]:
    # Of a virtual table EXPLAIN tells where in this process's memory it is.
    return tuple(_ADDRESS.sub(r"\1", cell) if isinstance(cell, str) else cell for cell in row)


def _planned(database: Database, mode: Mode, sql: str, values: Any) -> list[Any]:
    """What EXPLAIN tells of a caller's statement; nothing where it is wrong, as its caller is about to hear."""
    try:
        lookup.reread_schema(database)
        database.authorizer.begin(mode)
        return database.connection.execute(sql, values).fetchall()
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError):
        return []


def _read_again(database: Database, sql: str, given: Any) -> str:
    """What a statement reads whole again and again, and how it need not; empty where its plan says nothing of it.

    SQLite indexes what it joins by itself, but only by plain columns, and never inside of a correlated subquery
    (https://sqlite.org/optoverview.html#automatic_query_time_indexes).
    """
    if database.visible_schema is not None or database.interrupt.is_cancelled:
        return ""
    database.interrupt.deadline = max(database.interrupt.deadline, time.monotonic() + _PLAN_SECONDS)
    steps: list[tuple[int, int, int, str]] = _planned(
        database, Mode.READ, f"EXPLAIN QUERY PLAN {sql}", parse_parameters(given, sql)
    )
    inside: set[int] = set()
    looping: set[int] = set()
    subqueries: list[str] = []
    joined: list[str] = []
    for step, parent, _, detail in steps:
        if parent in inside or detail.startswith("CORRELATED"):
            inside.add(step)
        word, _, name = detail.partition(" ")
        if word == "SCAN" and "CONSTANT ROW" not in detail and " USING " not in detail and " VIRTUAL " not in detail:
            (subqueries if parent in inside else joined if parent in looping else []).append(f"`{name}`")
        if word in ("SCAN", "SEARCH"):
            looping.add(parent)
    said: list[str] = []
    if subqueries:
        said.append(
            f"For each row a subquery reads all of {_and(subqueries)}: join it, or write `x IN (SELECT y FROM ...)`."
        )
    if joined:
        said.append(
            f"For each row before it all of {_and(joined)} is read: compare columns, not expressions; "
            "`WITH m AS MATERIALIZED (SELECT lower(x) AS k, ...)` makes one a column."
        )
    return " ".join([*said, "Or an index: `explain_query` says which."]) if said else ""


def _and(names: list[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def find_names_taken_as_text(database: Database, mode: Mode, sql: str, given: Any) -> list[str]:
    """Names in double quotes that SQLite found nowhere, so that it took them for texts.

    That is a quirk of SQLite (https://sqlite.org/quirks.html): a misspelt column finds nothing, or everything.
    """
    if '"' not in sql or not (names := dict.fromkeys(found[1] for found in _NAMES.finditer(sql) if found[1])):
        return []
    program = _planned(database, mode, f"EXPLAIN {sql}", parse_parameters(given, sql))
    texts = names.keys() & {row[5] for row in program if row[1] == "String8"}
    return [name for name in names if name in texts and not _is_name(database, mode, sql, name, given)]


def _is_name(database: Database, mode: Mode, sql: str, name: str, given: Any) -> bool:
    """Whether `sql` has a meaning with `name` in brackets, which SQLite never takes for a text."""
    bracketed = _NAMES.sub(lambda found: f"[{name}]" if found[1] == name else found[0], sql)
    return bool(_planned(database, mode, f"EXPLAIN {bracketed}", parse_parameters(given, sql)))


def refuse_misspelled_columns(database: Database, mode: Mode, sql: str, given: Any) -> None:
    """Return if no text in a statement that changes rows looks like a column that is misspelt.

    Raises:
        Failure: one does.
    """
    for name in find_names_taken_as_text(database, mode, sql, given):
        if meant := near(name, _columns(database, sql), _LIKE_A_COLUMN):
            what = f'There is no column `"{name}"`, and SQLite would take it for a text.'
            raise Failure("not_found", what, f"{meant} A text stands in '...'.")


def _columns(database: Database, sql: str) -> list[str]:
    tables = lookup.find_named_tables(sql, lookup.list_table_names(database))
    return [str(row[1]) for table in tables for row in lookup.list_columns(database, table)]


def iterate_rows(database: Database, cursor: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
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
        raise explain_error(database, error) from None


def split_statements(sql: str) -> list[str]:
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
    found = [item for item in statements if not EMPTY_STATEMENT.fullmatch(item)]
    if len(found) > _MOST:
        raise Failure("too_large", f"`sql` holds {len(found)} statements, the limit is {_MOST}.", "Send them in parts.")
    return found
