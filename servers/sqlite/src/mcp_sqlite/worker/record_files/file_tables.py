"""Files that statements name as tables (`FROM "exports/a.csv"`): temporary tables, as long as a call lasts.

It does not parse statements for that. When SQLite compiles a statement, it names a missing table; if that is the name
of a served file, the file is loaded, and the statement compiled again. So a caller's statement goes through
`load_named_files` before it is compiled. The connection that loaded one is closed when the call ends
(`Connections.end_request`), so nothing is left for another call.
"""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import sqlite3
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_batteries.sql.transfer.csv_records import CsvDialect
from mcp_batteries.sql.transfer.files import is_relative_path, to_posix_path
from mcp_sqlite.worker.connection.authorizer import Mode, find_closed_module_in_full_join, set_defensive
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.connection.visible_schema import temporary_objects_allowed
from mcp_sqlite.worker.language.failure import Failure, primary_code, refuse_half_character
from mcp_sqlite.worker.language.parameters import parse_parameters
from mcp_sqlite.worker.language.tokens import EXPLAIN_PREFIX
from mcp_sqlite.worker.record_files.infer_schema import (
    InferredTable,
    find_merged_numbers,
    find_numeric_texts,
    infer_table,
)
from mcp_sqlite.worker.record_files.record_file import ENDINGS, RecordFile
from mcp_sqlite.worker.schema import lookup

__all__ = ["load_named_files"]

# The bytes of the files of one call.
_MAX_FILE_BYTES = 64_000_000
# The pages of the temporary tables of one call: what a compressed file holds can be much more.
_MAX_TABLE_PAGES = 65_536
# Records among which text columns that hold numbers are looked for.
_MAX_SAMPLE_RECORDS = 1000
# How many of those columns are named.
_MAX_NAMED_COLUMNS = 8
_ENDING = re.compile("|".join(map(re.escape, ENDINGS)), re.IGNORECASE)
_NO_SUCH_TABLE = re.compile(r"no such table: (.+)", re.DOTALL)
_COMPILE_ERRORS = (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError)


class _LoadedFile(NamedTuple):
    """A file that is a table now.

    Attributes:
        sample: some of its records, if all their values are texts.
    """

    dialect: CsvDialect
    table: InferredTable
    sample: list[list[Any]]


def load_named_files(database: Database, mode: Mode, sql: str) -> None:
    """Make tables of the files that a statement of a caller's names, unless the database has tables of these names.

    Raises:
        Failure: one can't be read.
    """
    if database.folder is None or not _ENDING.search(sql):
        return
    while True:
        name = _find_missing_file(database, mode, sql)
        if name is None:
            break
        try:
            _load_file(database, database.folder, name)
        except Failure:
            if name.startswith("main."):
                return  # a view that names a file means a table of the database
            raise
    for name in database.file_tables:
        _refuse_other_spellings(database.folder, name, sql)


def _refuse_other_spellings(folder: str, name: str, sql: str) -> None:
    """Raise a failure if another file is meant by another spelling of `name`, which is the same table to SQLite."""
    spellings = {match[0] for match in re.finditer(re.escape(name), sql, re.IGNORECASE | re.ASCII)}
    path = os.path.join(folder, *name.split("/"))
    for spelling in spellings - {name}:
        other_path = os.path.join(folder, *spelling.split("/"))
        if os.path.exists(other_path) and not os.path.samefile(path, other_path):
            raise Failure(
                "refused", f"`{name}` and `{spelling}` are one name in SQL, and two files.", "Read them in two calls."
            )


def _find_missing_file(database: Database, mode: Mode, sql: str) -> str | None:
    """Return the file that a statement needs, as far as it is understood without; None if it needs none."""
    if database.visible_schema is not None:
        database.visible_schema.rewrite(sql)
    if find_closed_module_in_full_join(sql) is not None:
        return None
    error = _try_compiling(database, mode, sql)
    if error is not None and database.authorizer.denied_rows:
        lookup.open_virtual_tables(database)
        error = _try_compiling(database, mode, sql)
    if error is None:
        return None
    match = _NO_SUCH_TABLE.fullmatch(str(error))
    if match is None or match[1] in database.file_tables or not match[1].lower().endswith(ENDINGS):
        return None
    return match[1]


def _try_compiling(database: Database, mode: Mode, sql: str) -> Exception | None:
    """Return what SQLite says against a statement."""
    try:
        lookup.reread_schema(database)
        database.authorizer.begin(mode)
        database.connection.execute(f"EXPLAIN {EXPLAIN_PREFIX.sub('', sql)}").close()
    except _COMPILE_ERRORS as error:
        return error
    return None


def _load_file(database: Database, folder: str, name: str) -> None:
    path = to_posix_path(name)
    if not is_relative_path(path):
        raise Failure(
            "refused",
            f"`{name[:200]}` is not a name of a file here.",
            "Name it from the folder for files on: `a.csv`, `sub/a.csv`.",
        )
    source = RecordFile(folder, path, database.interrupt)
    file = source.read_snapshot(_MAX_FILE_BYTES - database.file_bytes_read)
    database.file_bytes_read += file.seek(0, io.SEEK_END)
    file.seek(0)
    try:
        loaded = _fill_table(database, name, source, file)
    except Failure as failure:
        raise Failure(failure.kind, f"`{name}`: {failure.message}", failure.fix) from None
    except UnicodeEncodeError:
        raise refuse_half_character(f"`{name}`: ") from None
    except _COMPILE_ERRORS as error:
        raise _explain_load_error(name, error) from None
    numeric_texts = find_numeric_texts(loaded.table.columns, loaded.sample)
    notes = [
        loaded.dialect.describe(loaded.table.fields),
        *_describe_numeric_texts(database, name, loaded, numeric_texts),
        *_describe_merged_numbers(loaded),
    ]
    database.file_tables[name] = ", ".join(filter(None, notes))


def _explain_load_error(name: str, error: Exception) -> Exception:
    """Return why a file could not be loaded; the error itself where its words are for the caller."""
    if str(error) == "interrupted":
        return Failure(
            "stopped", f"Reading `{name}` was stopped at the time limit.", "`copy_from_file` may take longer."
        )
    if primary_code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_TOOBIG):
        return Failure("too_large", f"`{name}` holds more than a statement can read.", "`copy_from_file` imports it.")
    return error


def _fill_table(database: Database, name: str, source: RecordFile, file: BinaryIO) -> _LoadedFile:
    """Make the table for a file, and insert its records."""
    dialect = source.dialect(file)
    records = source.until_interrupted(source.records(file, dialect))
    sample: list[list[Any]] = []
    if source.is_csv:
        # The names come first.
        sample = [list(record) for record in itertools.islice(records, 1 + _MAX_SAMPLE_RECORDS)]
        records = itertools.chain(sample, records)
    table = infer_table(name, records, typed=not source.is_csv, types=source.types(file))
    records = source.until_interrupted(source.records(file, dialect, table.fields))
    next(records)
    records = source.with_nulls(records, [True] * len(table.fields))
    with temporary_objects_allowed(database.run_internal, lambda on: set_defensive(database.connection, on)):
        _insert_records(database, name, source, table, records)
    return _LoadedFile(dialect, table, sample[1:])


def _insert_records(
    database: Database, name: str, source: RecordFile, table: InferredTable, records: Iterator[list[Any]]
) -> None:
    marks = ", ".join("?" * len(table.fields))
    blob_positions = [position for position, column in enumerate(table.columns) if column.endswith(" BLOB")]
    untyped_positions = [position for position, column in enumerate(table.columns) if column.endswith('"')]
    values = (
        parse_parameters(source.to_column_values(record, blob_positions, untyped_positions)) for record in records
    )
    database.run_internal(f"PRAGMA temp.max_page_count = {_MAX_TABLE_PAGES}")
    database.run_internal("SAVEPOINT file")
    try:
        database.run_internal(table.ddl.replace("CREATE", "CREATE TEMP", 1))
        database.authorizer.begin(Mode.INTERNAL)
        with database.interrupt.reach(database.connection):
            database.connection.executemany(
                f"INSERT INTO temp.{quote_identifier(name)} VALUES ({marks})", values
            ).close()
    except BaseException:
        if database.connection.in_transaction:  # SQLite itself ends it where the disk is full
            database.run_internal("ROLLBACK TO file")
        raise
    finally:
        if database.connection.in_transaction:
            database.run_internal("RELEASE file")


def _describe_merged_numbers(loaded: _LoadedFile) -> list[str]:
    """Return notes on columns of numbers that may be versions or other codes."""
    merged = find_merged_numbers(loaded.table.columns, loaded.sample)
    return [
        f"`{str(loaded.table.fields[position]).strip()}` is numbers, so {first} and {second} are one value"
        for position, (first, second) in [*merged.items()][:_MAX_NAMED_COLUMNS]
    ]


def _describe_numeric_texts(database: Database, table: str, loaded: _LoadedFile, positions: list[int]) -> list[str]:
    """Return notes on columns whose numbers stay texts: `WHERE amount > 50` compares them letter by letter."""
    patterns = ["*[^-0-9.]*"]
    if loaded.dialect.delimiter != ",":
        # All others would be numbers with a decimal comma.
        patterns.insert(0, "*[^-0-9.,]*")
    notes: list[str] = []
    for position in positions[:_MAX_NAMED_COLUMNS]:
        name = str(loaded.table.fields[position]).strip()
        column = quote_identifier(name)
        cause = ""
        for pattern in patterns:
            rows = database.run_internal(
                f"SELECT substr({column}, 1, 24) FROM temp.{quote_identifier(table)} WHERE {column} GLOB ? LIMIT 1",
                [pattern],
            )
            if rows:
                cause = f" because of {json.dumps(str(rows[0][0]), ensure_ascii=False)}"
                break
        notes.append(f"`{name}` is text{cause}, and compared as text")
    return notes
