"""Runs callers' statements that read: pages of rows, from one statement or from several at one moment."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NamedTuple, cast

from mcp_batteries.clipping import count_fitting, share_bytes
from mcp_batteries.sql.language.compared_values import is_empty_result
from mcp_batteries.sql.language.suggestions import suggest_similar
from mcp_sqlite.worker.connection.authorizer import Mode, find_closed_module_in_full_join
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.parameters import parse_parameters
from mcp_sqlite.worker.language.tokens import EMPTY_STATEMENT, EXPLAIN_PREFIX
from mcp_sqlite.worker.language.values import RowEncoder
from mcp_sqlite.worker.query.absent_values import find_absent_values
from mcp_sqlite.worker.query.errors import explain_error
from mcp_sqlite.worker.query.incomparable_values import find_incomparable_values
from mcp_sqlite.worker.query.letter_case import may_miss_other_case
from mcp_sqlite.worker.query.texts_in_sums import find_texts_in_sums
from mcp_sqlite.worker.record_files.file_tables import load_named_files
from mcp_sqlite.worker.schema import lookup

__all__ = [
    "PlanStep",
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
]

Send = Callable[[dict[str, Any]], None]

_MAX_STATEMENTS = 50
_MIN_PAGE_BYTES = 1000
_PROGRAM_COLUMNS = ["addr", "opcode", "p1", "p2", "p3", "p4", "p5", "comment"]
_ADDRESS = re.compile(r"\A(vtab):[0-9A-Fa-fx]+\Z")
# A name in double quotes, and all that could be mistaken for one.
_QUOTED_NAME = re.compile(
    r"""'(?:[^']|'')*'|--[^\n]*|/\*.*?(?:\*/|\Z)|`[^`]*`|\[[^\]]*\]|\bAS\s+"(?:[^"]|"")*"|"(\w+(?:\ \w+)*)\"""",
    re.DOTALL | re.IGNORECASE,
)
_MIN_COLUMN_SIMILARITY = 0.7
# What part of the time left a statement may take while others wait behind it.
_SHARE_OF_TIME = 0.8
_PLAN_SECONDS = 0.2
# It is answered without the path of the file, which is the operator's business.
_DATABASE_LIST = re.compile(r"\s*PRAGMA\s+database_list\s*;?\s*", re.IGNORECASE)
_DATABASE_LIST_ANSWER = "SELECT 0 AS seq, 'main' AS name, '' AS file"
_ROWS_BETWEEN_CHECKS = 256
_SPOOL_BUFFER_BYTES = 1 << 18
_EXECUTION_ERRORS = (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError)


class PlanStep(NamedTuple):
    """A row of EXPLAIN QUERY PLAN (https://sqlite.org/eqp.html)."""

    number: int
    parent: int
    unused: int
    detail: str


class _Instruction(NamedTuple):
    """A row of EXPLAIN (https://sqlite.org/opcode.html)."""

    address: int
    opcode: str
    p1: int
    p2: int
    p3: int
    p4: str | None
    p5: int
    comment: str | None


def run_statements(connections: Connections, request: dict[str, Any], send: Send) -> dict[str, Any]:
    """Return the first page of each statement in `sql`, all of one moment, as `results`; of one that of `run_query`.

    What fails has an `error` in its place, unless it would do more than read: that fails the call.
    """
    statements = split_statements(request["sql"])
    if not statements:
        return run_query(connections, request, send)
    if len(statements) == 1:
        return run_query(connections, request | {"sql": statements[0]}, send)
    parameters = allot_parameters(statements, request.get("parameters"))
    database = connections.reader(request["path"])
    results: list[dict[str, Any]] = []
    load_files_early(database, Mode.READ, statements)
    database.run_internal("BEGIN")
    try:
        for number, sql in enumerate(statements):
            query = {
                **request,
                "sql": sql,
                "parameters": parameters[number],
                "shares_room": True,
                "max_row_bytes": max(_MIN_PAGE_BYTES, request["max_bytes"] // len(statements)),
                "spool": f"{request['spool']}{number}",
                "spool_bytes": request["spool_bytes"] // len(statements),
            }
            is_last = number + 1 == len(statements)
            page = _run_one_of_several(connections, database, query, f"{number + 1} of {len(statements)}", is_last)
            results.append(page)
    finally:
        if database.connection.in_transaction:
            database.run_internal("ROLLBACK")
    _share_room(results, request)
    return {"results": results}


def _share_room(results: Sequence[dict[str, Any]], request: dict[str, Any]) -> None:
    """Shorten pages that have together more than one answer may have: short ones stay whole."""
    sizes = [len(result.get("lines", "").encode()) for result in results]
    for number, share in enumerate(share_bytes(sizes, request["max_bytes"])):
        if "lines" in results[number]:
            _shorten_page(results[number], max(share, _MIN_PAGE_BYTES), f"{request['spool']}{number}")


def _shorten_page(result: dict[str, Any], max_bytes: int, spool: str) -> None:
    """Let the first page of a result end where it has `max_bytes`; later pages begin there.

    Its lines stand at the beginning of the file of those later pages, which is written here if there was no need.
    """
    cuts: list[int] = result.pop("cuts")
    lines = [f"{line}\n" for line in result["lines"].split("\n")[:-1]]
    count = count_fitting(lines, max_bytes)
    if count < len(lines):
        if "rest" not in result:
            with open(spool, "xb", buffering=_SPOOL_BUFFER_BYTES) as file:
                file.write(_join_spooled(cuts, lines))
            result["rest"] = {"spooled": len(lines), "stopped": None}
        result["lines"] = "".join(lines[:count])
        result["shown"] = count
        result["cut"] = sum(cuts[:count])
        result["more"] = True
    result["offset"] = len(_join_spooled(cuts[:count], lines[:count]))


def _join_spooled(cuts: Sequence[int], lines: Sequence[str]) -> bytes:
    """Return lines as they stand in a file, each behind the number of its cells that were cut."""
    return "".join(f"{cut} {line}" for cut, line in zip(cuts, lines, strict=True)).encode()


def _run_one_of_several(
    connections: Connections, database: Database, query: dict[str, Any], number: str, is_last: bool
) -> dict[str, Any]:
    """Return the first page of a statement, with what became of the others as `rest`; or why it fails."""
    page: dict[str, Any] = {}
    share = 1 if is_last else _SHARE_OF_TIME
    try:
        with database.interrupt.shorten(database.interrupt.seconds_left * share):
            last_frame = run_query(connections, query, page.update)
    except Failure as failure:
        if failure.kind in ("refused", "locked"):
            raise Failure(failure.kind, f"Statement {number}: {failure.message}", failure.fix) from None
        return {"error": [failure.kind, failure.message, failure.fix]}
    if page:
        return page | {"rest": last_frame}
    return last_frame


def allot_parameters(statements: list[str], parameters: Any) -> list[Any]:
    """Return the values for each of `statements`; names serve all of them.

    Raises:
        Failure: an array has not one entry for each.
    """
    if len(statements) == 1 or not parameters or isinstance(parameters, dict):
        return [parameters] * len(statements)
    entries = cast("list[Any]", parameters)
    if len(entries) != len(statements) or not all(isinstance(entry, list | dict | None) for entry in entries):
        raise Failure(
            "invalid",
            f"`sql` holds {len(statements)} statements, and `parameters` no array of values for each.",
            "Pass an array with one entry per statement: an array, an object or null. Or an object with names for all.",
        )
    return list(entries)


def run_query(connections: Connections, request: dict[str, Any], send: Send) -> dict[str, Any]:
    """Return the first page of a query's rows; all others go to the file `spool`, from which later pages are read.

    The page is sent as soon as it is full. The others are read to their end then and there, within the deadline and
    `spool_bytes`, so that all pages show one moment and no lock outlives the query. A line there begins with the
    number of its cells that were cut. Of one of several queries, which share the room of an answer, the file has the
    first page too. No row has more than `max_bytes`, or six times `max_cell`, unless
    it has that many columns.
    """
    database = connections.reader(request["path"])
    try:
        return _run_query(database, request, send)
    except Failure as failure:
        if failure.kind != "stopped":
            raise
        advice = _explain_repeated_scans(database, request["sql"], request.get("parameters"))
        if not advice:
            raise
        raise Failure("stopped", failure.message, advice) from None


@dataclass
class _Page:
    """The first page of a result.

    Attributes:
        cuts: the number of cells that were cut of each line.
        next_line: the first line that does not fit, as it is spooled; None where all lines fit.
    """

    lines: list[str] = field(default_factory=list[str])
    cuts: list[int] = field(default_factory=list[int])
    next_line: str | None = None


def _run_query(database: Database, request: dict[str, Any], send: Send) -> dict[str, Any]:
    sql = request["sql"]
    encoder = RowEncoder(request["max_cell"])
    # Who asks for a long cell gets it whole; who asks for a hundred of them gets what an answer can hold.
    max_row_bytes = max(request.get("max_row_bytes", request["max_bytes"]), 6 * request["max_cell"])
    load_named_files(database, Mode.READ, sql)
    with database.interrupt.reach(database.connection):
        names_taken_as_text = find_names_taken_as_text(database, Mode.READ, sql, request.get("parameters"))
        misses_case = may_miss_other_case(database, sql, request.get("parameters"))
        incomparable_values = find_incomparable_values(database, sql, request.get("parameters"))
        incomparable_values += find_texts_in_sums(database, sql, set())
        cursor = execute(database, Mode.READ, sql, request.get("parameters"))
        if cursor.description is None:
            raise Failure("invalid", "There is no statement in `sql`.", "Pass one SELECT.")
        columns = [column[0] for column in cursor.description]
        masked_columns = list(database.authorizer.masked_columns_read)
        rows = iterate_rows(database, cursor)
        if columns == _PROGRAM_COLUMNS and EXPLAIN_PREFIX.match(sql):
            rows = map(_remove_addresses, rows)
        page = _fill_page(rows, encoder, max_row_bytes, request["max_bytes"], request["limit"])
        frame: dict[str, Any] = {
            "columns": columns,
            "immutable": database.immutable,
            "masks": masked_columns,
            "texts": names_taken_as_text,
            "misses_case": misses_case,
            "incomparable": incomparable_values,
            "files": database.describe_files(sql),
            "lines": "".join(page.lines),
            "shown": len(page.lines),
            "more": page.next_line is not None,
            "cut": encoder.cut_cells,
        }
        if request.get("shares_room"):
            frame["cuts"] = page.cuts
        if page.next_line is None or not request.get("spool"):
            cursor.close()
            if is_empty_result(frame["lines"]):
                frame["absent"] = find_absent_values(database, sql)
            return frame
        with open(request["spool"], "xb", buffering=_SPOOL_BUFFER_BYTES) as spool:
            if request.get("shares_room"):
                spool.write(_join_spooled(page.cuts, page.lines))
            # There before the page is sent: the server opens it then, and takes its name away.
            send(frame)
            return _spool_rows(Spool(spool, encoder, max_row_bytes, request["spool_bytes"]), page.next_line, rows)


def _spool_rows(spool: Spool, first_line: str, rows: Iterator[tuple[Any, ...]]) -> dict[str, Any]:
    """Write the rows of a query for later pages, as far as SQLite gets."""
    stopped: str | None = None
    max_bytes = spool.bytes_left
    try:
        if not spool.write(first_line, rows):
            stopped = describe_full_spool(max_bytes)
    except Failure as failure:
        stopped = failure.message
    return {"spooled": spool.count, "stopped": stopped}


def _fill_page(
    rows: Iterable[tuple[Any, ...]], encoder: RowEncoder, max_row_bytes: int, max_bytes: int, limit: int
) -> _Page:
    """Return the rows that fit on the first page, at least one."""
    page = _Page()
    size = 0
    for row in rows:
        cut_before = encoder.cut_cells
        line = encoder.encode_within(row, max_row_bytes)
        size += len(line.encode())
        if page.lines and (size > max_bytes or len(page.lines) == limit):
            page.next_line = f"{encoder.cut_cells - cut_before} {line}"
            encoder.cut_cells = cut_before
            break
        page.lines.append(line)
        page.cuts.append(encoder.cut_cells - cut_before)
    return page


@dataclass
class Spool:
    """Rows that are written to a file, for later pages.

    Attributes:
        max_row_bytes: of one row, beyond which its cells are cut.
        bytes_left: how many bytes may still be written.
        count: rows that were written.
    """

    file: BinaryIO
    encoder: RowEncoder
    max_row_bytes: int
    bytes_left: int
    count: int = 0

    def write(self, first_line: str, rows: Iterator[tuple[Any, ...]]) -> bool:
        """Write `first_line`, and a line for each of `rows`; return whether there was room for all.

        Raises:
            Failure: SQLite stopped on the way.
        """
        line = first_line
        while True:
            encoded = line.encode()
            self.bytes_left -= len(encoded)
            if self.bytes_left < 0:
                return False
            self.file.write(encoded)
            self.count += 1
            row = next(rows, None)
            if row is None:
                return True
            self.encoder.cut_cells = 0
            line = self.encoder.encode_within(row, self.max_row_bytes)
            line = f"{self.encoder.cut_cells} {line}"


def describe_full_spool(max_bytes: int) -> str:
    """Return why the rows behind those in a spool are not kept."""
    return f"only {max_bytes:,} bytes of a result are kept"


def load_files_early(database: Database, mode: Mode, statements: list[str]) -> None:
    """Have the files that statements name read before a transaction begins, which would lock others out meanwhile.

    What goes wrong is told when the statement's turn comes.
    """
    for sql in statements:
        with suppress(Failure):
            load_named_files(database, mode, sql)


def execute(database: Database, mode: Mode, sql: str, parameters: Any) -> sqlite3.Cursor:
    """Return the cursor of one statement of a caller's, compiled under `mode`; its first row may have been read.

    Raises:
        Failure: it may not run, is wrong, or was stopped.
    """
    values = parse_parameters(parameters, sql)
    closed_module = find_closed_module_in_full_join(sql)
    if closed_module is not None:
        raise Failure("refused", f"It would read `{closed_module}`, which is closed.", "")
    if mode is Mode.READ and _DATABASE_LIST.fullmatch(sql):
        sql = _DATABASE_LIST_ANSWER
    if database.visible_schema is not None:
        sql = database.visible_schema.rewrite(sql)
        sql = database.visible_schema.hide_masked_order(
            database.run_internal, lambda sql: _plan(database, mode, sql, values), sql
        )
    try:
        if EXPLAIN_PREFIX.match(sql):
            lookup.reread_schema(database)
        return _compile_and_start(database, mode, sql, values)
    except _EXECUTION_ERRORS as error:
        raise explain_error(database, error, sql) from None


def _compile_and_start(database: Database, mode: Mode, sql: str, values: Any) -> sqlite3.Cursor:
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


def _remove_addresses(row: tuple[Any, ...]) -> tuple[Any, ...]:
    # Of a virtual table EXPLAIN says where in this process's memory it is.
    return tuple(_ADDRESS.sub(r"\1", cell) if isinstance(cell, str) else cell for cell in row)


def _plan(database: Database, mode: Mode, sql: str, values: Any) -> list[PlanStep]:
    """Return the plan of a caller's statement; nothing where it is wrong, as its caller is about to hear."""
    return [PlanStep(*row) for row in _explain(database, mode, f"EXPLAIN QUERY PLAN {sql}", values)]


def _compile(database: Database, mode: Mode, sql: str, values: Any) -> list[_Instruction]:
    """Return the program of a caller's statement; nothing where it is wrong, as its caller is about to hear."""
    rows = _explain(database, mode, f"EXPLAIN {sql}", values)
    # A text that begins with QUERY PLAN makes it another statement.
    return [_Instruction(*row) for row in rows if len(row) == len(_PROGRAM_COLUMNS)]


def _explain(database: Database, mode: Mode, sql: str, values: Any) -> list[Any]:
    try:
        lookup.reread_schema(database)
        database.authorizer.begin(mode)
        return database.connection.execute(sql, values).fetchall()
    except _EXECUTION_ERRORS:
        return []


@dataclass
class _RepeatedScans:
    """Tables that are read whole again and again: by subqueries for each row, and by joins."""

    subqueries: list[str] = field(default_factory=list[str])
    joins: list[str] = field(default_factory=list[str])


def _explain_repeated_scans(database: Database, sql: str, parameters: Any) -> str:
    """Return what a statement reads whole again and again, and how it need not; nothing if its plan has no such thing.

    SQLite indexes what it joins by itself, but only by plain columns, and never inside of a correlated subquery
    (https://sqlite.org/optoverview.html#automatic_query_time_indexes).
    """
    if database.visible_schema is not None or database.interrupt.is_cancelled:
        return ""
    database.interrupt.deadline = max(database.interrupt.deadline, time.monotonic() + _PLAN_SECONDS)
    scans = _find_repeated_scans(_plan(database, Mode.READ, sql, parse_parameters(parameters, sql)))
    sentences: list[str] = []
    if scans.subqueries:
        tables = ", ".join(dict.fromkeys(scans.subqueries))
        sentences.append(
            f"For each row a subquery reads all of {tables}: join it, or write `x IN (SELECT y FROM ...)`."
        )
    if scans.joins:
        tables = ", ".join(dict.fromkeys(scans.joins))
        sentences.append(
            f"For each row before it all of {tables} is read: compare columns, not expressions; "
            "`WITH m AS MATERIALIZED (SELECT lower(x) AS k, ...)` makes one a column."
        )
    if not sentences:
        return ""
    return " ".join([*sentences, "Or an index: `explain_query` says which."])


def _find_repeated_scans(steps: Iterable[PlanStep]) -> _RepeatedScans:
    scans = _RepeatedScans()
    inside_subqueries: set[int] = set()
    loops: set[int] = set()
    for step in steps:
        if step.parent in inside_subqueries or step.detail.startswith("CORRELATED"):
            inside_subqueries.add(step.number)
        operation, _, table = step.detail.partition(" ")
        if operation == "SCAN" and _is_plain_scan(step.detail):
            if step.parent in inside_subqueries:
                scans.subqueries.append(f"`{table}`")
            elif step.parent in loops:
                scans.joins.append(f"`{table}`")
        if operation in ("SCAN", "SEARCH"):
            loops.add(step.parent)
    return scans


def _is_plain_scan(detail: str) -> bool:
    return not any(word in detail for word in ("CONSTANT ROW", " USING ", " VIRTUAL "))


def find_names_taken_as_text(database: Database, mode: Mode, sql: str, parameters: Any) -> list[str]:
    """Return names in double quotes that SQLite found nowhere, so that it took them for texts.

    That is a quirk of SQLite (https://sqlite.org/quirks.html): a misspelt column finds nothing, or everything.
    """
    if '"' not in sql:
        return []
    names: dict[str, None] = dict.fromkeys(match[1] for match in _QUOTED_NAME.finditer(sql) if match[1])
    if not names:
        return []
    program = _compile(database, mode, sql, parse_parameters(parameters, sql))
    texts = {instruction.p4 for instruction in program if instruction.opcode == "String8"}
    return [name for name in names if name in texts and not _is_name(database, mode, sql, name, parameters)]


def _is_name(database: Database, mode: Mode, sql: str, name: str, parameters: Any) -> bool:
    """Return whether `sql` has a meaning with `name` in brackets, which SQLite never takes for a text."""
    bracketed = _QUOTED_NAME.sub(lambda match: f"[{name}]" if match[1] == name else match[0], sql)
    return bool(_compile(database, mode, bracketed, parse_parameters(parameters, sql)))


def refuse_misspelled_columns(database: Database, mode: Mode, sql: str, parameters: Any) -> None:
    """Check that no text in a statement that changes rows looks like a column that is misspelt.

    Raises:
        Failure: one does.
    """
    for name in find_names_taken_as_text(database, mode, sql, parameters):
        suggestion = suggest_similar(name, _list_named_columns(database, sql), _MIN_COLUMN_SIMILARITY)
        if suggestion:
            message = f'There is no column `"{name}"`, and SQLite would take it for a text.'
            raise Failure("not_found", message, f"{suggestion} A text stands in '...'.")


def _list_named_columns(database: Database, sql: str) -> list[str]:
    columns: list[str] = []
    for table in lookup.find_named_tables(sql, lookup.list_table_names(database)):
        columns += lookup.list_column_names(database, table)
    return columns


def iterate_rows(database: Database, cursor: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
    """Return the rows left in `cursor`.

    Raises:
        Failure: SQLite stopped on the way.
    """
    try:
        for number, row in enumerate(cursor, 1):
            if number % _ROWS_BETWEEN_CHECKS == 0:
                database.interrupt.check()
            yield row
    except (sqlite3.Error, sqlite3.Warning, ValueError, MemoryError) as error:
        raise explain_error(database, error) from None


def split_statements(sql: str) -> list[str]:
    """Return the statements in `sql`, told apart by SQLite's own tokenizer."""
    statements: list[str] = []
    start = 0
    position = sql.find(";")
    while position >= 0:
        if sqlite3.complete_statement(sql[start : position + 1]):
            statements.append(sql[start : position + 1])
            start = position + 1
        position = sql.find(";", position + 1)
    statements.append(sql[start:])
    statements = [statement for statement in statements if not EMPTY_STATEMENT.fullmatch(statement)]
    if len(statements) > _MAX_STATEMENTS:
        message = f"`sql` holds {len(statements)} statements, the limit is {_MAX_STATEMENTS}."
        raise Failure("too_large", message, "Send them in parts.")
    return statements
