"""Files beside the database: exports, imports, backups; each directly in a served folder, none replaced."""

from __future__ import annotations

import collections
import csv
import io
import os
import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from typing import Any, BinaryIO

from mcp_batteries.sql.files import new_file
from mcp_batteries.sql.identifiers import identifier
from mcp_batteries.sql.records import Dialect, Seen
from mcp_sqlite.worker.authorizer import Mode
from mcp_sqlite.worker.cells import Failure, parameters, real, record
from mcp_sqlite.worker.change import transaction
from mcp_sqlite.worker.connections import Connections
from mcp_sqlite.worker.errors import explained, reason
from mcp_sqlite.worker.file_tables import bring_files
from mcp_sqlite.worker.guess import created
from mcp_sqlite.worker.parquet import write_parquet
from mcp_sqlite.worker.schema import name_of, open_virtual, shadows
from mcp_sqlite.worker.source import Source
from mcp_sqlite.worker.statements import execute, rows_of

__all__ = ["back_up", "export_rows", "import_rows"]

_PAGES = 256


def export_rows(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """All rows of a query into a new file, at most `most` bytes.

    CSV (RFC 4180, UTF-8) has no types: NULL is an empty field, bytes are `x'...'`. JSON lines keep every value: the
    columns as an array, then an array per row. Parquet has a type for each column.
    """
    database = connections.reader(request["path"])
    bring_files(database, Mode.READ, request["sql"])
    with (
        database.interrupt.over(database.connection),
        # An open cursor locks others out, whatever fails below.
        closing(execute(database, Mode.READ, request["sql"], request.get("parameters"))) as cursor,
    ):
        if cursor.description is None:
            raise Failure("invalid", "There is no statement in `sql`.", "Pass one SELECT.")
        columns = [column[0] for column in cursor.description]
        if _ends(request, ".parquet"):
            cursor.close()

            def rows() -> Iterator[tuple[Any, ...]]:
                cursor = execute(database, Mode.READ, request["sql"], request.get("parameters"))
                return rows_of(database, cursor)

            with _new(request) as raw:
                count = write_parquet(raw, database, columns, rows, request["most"])
                return {"rows": count, "bytes": raw.tell()}
        count = 0
        with _new(request) as raw:
            file = io.TextIOWrapper(raw, encoding="utf-8", newline="", write_through=False)
            writer = csv.writer(file)
            is_csv = _ends(request, ".csv")
            if is_csv:
                writer.writerow(columns)
            else:
                file.write(record(columns))
            for row in rows_of(database, cursor):
                count += 1
                if is_csv:
                    writer.writerow([_field(value) for value in row])
                else:
                    file.write(record(row))
                if raw.tell() > request["most"]:
                    raise Failure(
                        "too_large", f"The rows fill more than {request['most']:,} bytes.", "Export them in parts."
                    )
            file.flush()
            size = raw.tell()
            file.detach()
    return {"rows": count, "bytes": size}


def _ends(request: dict[str, Any], ending: str) -> bool:
    return request["name"].lower().endswith(ending)


def _field(value: Any) -> Any:
    if isinstance(value, float):
        return real(value)
    return f"x'{value.hex()}'" if isinstance(value, bytes) else value


def import_rows(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Insert the rows of a file into a table, all or none; into a new one, if `make` allows it.

    What `export_rows` has written comes back: from JSON lines exactly, from CSV as text that the columns' types
    convert, an empty field as NULL where the column takes it, from Parquet as each column's type has it.
    """
    database = connections.writer(request["path"])
    source = Source(request["folder"], request["name"], database.interrupt)
    made: str | None = None
    dialect: Dialect | None = None
    fields: list[Any] | None = None
    added: list[str] = []
    seen = Seen()
    try:
        table = name_of(database, request["table"])
    except Failure as failure:
        if not request["make"]:
            way = "With `--write` and `--ddl` a new one can be made of the file."
            raise Failure(failure.kind, failure.what, f"{failure.fix} {way}") from None
        table = request["table"]
        with source.opened() as file:
            types = source.types(file)
            dialect = source.dialect(file)
            looked = source.polled(source.records(file, dialect, grows=True))
            if request["dry_run"] and database.part is None:
                looked = seen.through(looked)
            fields, added, made = created(table, looked, typed=not source.is_csv, types=types)
            collections.deque(looked if types and request["dry_run"] else (), maxlen=0)
    count = 0
    columns: list[str] = []

    def values(records: Iterator[list[Any]]) -> Iterator[list[Any]]:
        nonlocal count
        for count, item in enumerate(source.polled(records), 1):  # noqa: B007
            yield parameters(source.stored(item, is_new=made is not None))  # pyright: ignore[reportReturnType]

    with source.opened() as file, transaction(database, keep=not request["dry_run"]):
        dialect = dialect or source.dialect(file)
        if made is not None:
            database.own(made)
        open_virtual(database)
        info = database.own(f"PRAGMA main.table_info({identifier(table)})")
        known = {str(row[1]).lower(): str(row[1]) for row in info}
        needed = {str(row[1]) for row in info if row[3]}
        numeric = {str(row[1]) for row in info if _is_numeric(str(row[2]))}
        database.authorizer.shadows = shadows(database)
        records = source.records(file, dialect, fields)
        names = next(records, list[Any]())
        columns = [_column(table, known, name) for name in names]
        if len(set(columns)) < len(columns):
            raise Failure("invalid", "Two fields have the same name.", "Give each column once.")
        if dialect.decimals:
            # A text stays as it is.
            dialect = dialect._replace(decimals=frozenset(p for p in dialect.decimals if columns[p] in numeric))
            records = source.records(file, dialect, fields)
            next(records)
        records = source.nulls(records, [name not in needed for name in columns])
        if columns:
            marks = ", ".join("?" * len(columns))
            statement = f"INSERT INTO main.{identifier(table)} ({', '.join(map(identifier, columns))}) VALUES ({marks})"
            database.authorizer.begin(Mode.WRITE)
            try:
                with database.interrupt.over(database.connection):
                    database.connection.executemany(statement, values(records)).close()
            except Failure as failure:
                where = f"Record {count}: " if failure.what.startswith("Parameter") else ""
                raise Failure(
                    failure.kind, where + failure.what, f"{failure.fix} Nothing was changed.".strip()
                ) from None
            except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
                failure = explained(database, error)
                raise Failure(
                    failure.kind, f"Record {count}: {failure.what}", f"{failure.fix} Nothing was changed.".strip()
                ) from None
    return {
        "rows": count,
        "table": table,
        "columns": columns,
        "made": added,
        "seen": seen.told(),
        "written": dialect.told(names),
    }


def _column(table: str, known: dict[str, str], word: Any) -> str:
    name = known.get(str(word).lower()) or known.get(str(word).strip().lower())
    if name is None:
        listed = ", ".join(f"`{name}`" for name in list(known.values())[:50])
        raise Failure("invalid", f"`{table}` has no column `{str(word)[:100]}`.", f"It has: {listed}.")
    return name


def _new(request: dict[str, Any]) -> AbstractContextManager[BinaryIO]:
    return new_file(request["folder"], request["name"], Failure, reason)


def _is_numeric(kind: str) -> bool:
    """Whether a column of a declared type makes numbers of texts (https://sqlite.org/datatype3.html#affname)."""
    return bool(re.search("INT", kind, re.I) or (kind and not re.search("CHAR|CLOB|TEXT|BLOB", kind, re.I)))


def back_up(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """A consistent copy into a new file by the online backup API, while others read and write."""
    database = connections.reader(request["path"])
    scratch = request["scratch"]
    target = sqlite3.connect(scratch)

    def step(status: int, remaining: int, total: int) -> None:
        database.interrupt.check()

    try:
        with database.interrupt.over(database.connection):
            database.authorizer.begin(Mode.OWN)
            database.connection.backup(target, pages=_PAGES, progress=step, sleep=0.01)
    except sqlite3.Error as error:
        raise explained(database, error) from None
    finally:
        target.close()
        if sys.exc_info()[0] is not None:
            os.unlink(scratch)
    try:
        with open(scratch, "rb") as copied, _new(request) as file:
            size = os.fstat(copied.fileno()).st_size
            while block := copied.read(1 << 20):
                database.interrupt.check()
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
    finally:
        os.unlink(scratch)
    return {"bytes": size}
