"""Files that statements name as tables (`FROM "exports/a.csv"`): temporary tables, as long as a call lasts.

It does not parse statements for that. When SQLite compiles a statement, it names a missing table; if that is the name
of a served file, the file is loaded, and the statement compiled again. The connection that loaded one is closed when
the call ends (`Connections.finish`), so nothing is left for another call.
"""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import sqlite3
from typing import Any

from mcp_batteries.sql.files import as_path, is_path
from mcp_batteries.sql.identifiers import identifier
from mcp_sqlite.worker.connection.authorizer import Mode, find_closed_module_in_full_join, set_defensive
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.connection.visible_schema import temporary_objects_allowed
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.parameters import parse_parameters
from mcp_sqlite.worker.language.tokens import EXPLAIN_PREFIX
from mcp_sqlite.worker.record_files.infer_schema import find_numeric_texts, infer_table
from mcp_sqlite.worker.record_files.record_file import ENDINGS, RecordFile
from mcp_sqlite.worker.schema import lookup

__all__ = ["load_named_files"]

_MAX_FILE_BYTES = 64_000_000
"""Of the files of one call."""
_MAX_TABLE_PAGES = 65_536
"""Of the temporary tables of one call: what a compressed file holds can be much more."""
_LOOKED_AT, _TOLD = 1000, 8
"""Records among which text columns that hold numbers are looked for, and how many of those are told."""
_NAMED = re.compile("|".join(map(re.escape, ENDINGS)), re.IGNORECASE)
_MISSING = re.compile(r"no such table: (.+)", re.DOTALL)


def load_named_files(database: Database, mode: Mode, sql: str) -> None:
    """Make tables of the files that a statement of a caller's names, unless the database has tables of these names.

    Raises:
        Failure: one can't be read.
    """
    if database.folder is None or not _NAMED.search(sql):
        return
    while (name := _missing(database, mode, sql)) is not None:
        try:
            _load(database, database.folder, name)
        except Failure:
            if name.startswith("main."):
                return  # A view that names a file means a table of the database.
            raise
    for name in database.file_tables:
        _refuse_twins(database.folder, name, sql)


def _refuse_twins(folder: str, name: str, sql: str) -> None:
    """Return when no other file is meant by another spelling of `name`, which is the same table to SQLite."""
    for spelt in {found[0] for found in re.finditer(re.escape(name), sql, re.IGNORECASE | re.ASCII)} - {name}:
        one, other = (os.path.join(folder, *path.split("/")) for path in (name, spelt))
        if os.path.exists(other) and not os.path.samefile(one, other):
            raise Failure(
                "refused", f"`{name}` and `{spelt}` are one name in SQL, and two files.", "Read them in two calls."
            )


def _missing(database: Database, mode: Mode, sql: str) -> str | None:
    """The file that a statement needs, as far as it is understood without."""
    if database.visible_schema is not None:
        database.visible_schema.rewrite(sql)
    if find_closed_module_in_full_join(sql) is not None:
        return None
    for again in (True, False):
        try:
            lookup.reread_schema(database)
            database.authorizer.begin(mode)
            database.connection.execute(f"EXPLAIN {EXPLAIN_PREFIX.sub('', sql)}").close()
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
            if again and database.authorizer.denied_rows:
                lookup.open_virtual_tables(database)
                continue
            found = _MISSING.fullmatch(str(error))
            named = found is not None and found[1].lower().endswith(ENDINGS) and found[1] not in database.file_tables
            return found[1] if found and named else None
        return None
    return None


def _load(database: Database, folder: str, name: str) -> None:
    path = as_path(name)
    if not is_path(path):
        raise Failure(
            "refused",
            f"`{name[:200]}` is not a name of a file here.",
            "Name it from the folder for files on: `a.csv`, `below/a.csv`.",
        )
    source = RecordFile(folder, path, database.interrupt)
    file = source.read_snapshot(_MAX_FILE_BYTES - database.file_bytes_read)
    database.file_bytes_read += file.seek(0, io.SEEK_END)
    file.seek(0)
    try:
        dialect = source.dialect(file)
        looked = source.until_interrupted(source.records(file, dialect, grows=True))
        sample: list[list[Any]] = []
        if source.is_csv:
            sample = [list(record) for record in itertools.islice(looked, 1 + _LOOKED_AT)]
            looked = itertools.chain(sample, looked)
        fields, columns, made = infer_table(name, looked, typed=not source.is_csv, types=source.types(file))
        records = source.until_interrupted(source.records(file, dialect, fields))
        next(records)
        records = source.with_nulls(records, [True] * len(fields))
        marks = ", ".join("?" * len(fields))
        with temporary_objects_allowed(database.run_internal, lambda on: set_defensive(database.connection, on)):
            database.run_internal(f"PRAGMA temp.max_page_count = {_MAX_TABLE_PAGES}")
            database.run_internal("SAVEPOINT file")
            try:
                database.run_internal(made.replace("CREATE", "CREATE TEMP", 1))
                database.authorizer.begin(Mode.INTERNAL)
                with database.interrupt.reach(database.connection):
                    database.connection.executemany(
                        f"INSERT INTO temp.{identifier(name)} VALUES ({marks})",
                        (parse_parameters(source.to_column_values(record, is_new=True)) for record in records),
                    ).close()
            except BaseException:
                if database.connection.in_transaction:  # SQLite itself ends it where the disk is full
                    database.run_internal("ROLLBACK TO file")
                raise
            finally:
                if database.connection.in_transaction:
                    database.run_internal("RELEASE file")
    except Failure as failure:
        raise Failure(failure.kind, f"`{name}`: {failure.message}", failure.fix) from None
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if str(error) == "interrupted":
            raise Failure(
                "stopped", f"Reading `{name}` was stopped at the time limit.", "`copy_from_file` may take longer."
            ) from None
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_TOOBIG):
            raise Failure(
                "too_large", f"`{name}` holds more than a statement can read.", "`copy_from_file` imports it."
            ) from None
        raise
    told = [dialect.told(fields), *_texts(database, name, fields, find_numeric_texts(columns, sample[1:]))]
    database.file_tables[name] = ", ".join(filter(None, told))


def _texts(database: Database, name: str, fields: list[Any], places: list[int]) -> list[str]:
    """What is told of columns whose numbers stay texts: `WHERE amount > 50` compares them letter by letter."""
    found: list[str] = []
    for place in places[:_TOLD]:
        column = identifier(str(fields[place]).strip())
        rows = database.run_internal(
            f"SELECT substr({column}, 1, 24) FROM temp.{identifier(name)} WHERE {column} GLOB '*[^-0-9.]*' LIMIT 1"
        )
        why = f" because of {json.dumps(str(rows[0][0]), ensure_ascii=False)}" if rows else ""
        found.append(f"`{str(fields[place]).strip()}` is text{why}, and compared as text")
    return found
