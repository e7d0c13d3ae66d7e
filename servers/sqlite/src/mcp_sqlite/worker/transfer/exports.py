"""Exports the rows of a query into a new file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing
from typing import Any, BinaryIO

from mcp_batteries.sql.transfer.files import create_file
from mcp_sqlite.worker.connection.authorizer import Mode
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.failure import Failure, describe_os_error
from mcp_sqlite.worker.language.values import encode_real, encode_record
from mcp_sqlite.worker.query.statements import execute, iterate_rows
from mcp_sqlite.worker.record_files.file_tables import load_named_files
from mcp_sqlite.worker.record_files.parquet import write_parquet

__all__ = ["export_rows"]


def export_rows(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Write all rows of a query into a new file, at most `max_bytes`.

    CSV (RFC 4180, UTF-8) has no types: NULL is an empty field, bytes are `x'...'`. JSON lines keep every value: the
    columns as an array, then an array per row. Parquet has a type for each column.
    """
    database = connections.reader(request["path"])
    load_named_files(database, Mode.READ, request["sql"])
    with (
        database.interrupt.reach(database.connection),
        # An open cursor locks others out, whatever fails below.
        closing(execute(database, Mode.READ, request["sql"], request.get("parameters"))) as cursor,
    ):
        if cursor.description is None:
            raise Failure("invalid", "There is no statement in `sql`.", "Pass one SELECT.")
        columns = [column[0] for column in cursor.description]
        if _has_ending(request, ".parquet"):
            cursor.close()
            return _export_parquet(database, request, columns)
        return _export_text(request, columns, iterate_rows(database, cursor))


def _has_ending(request: dict[str, Any], ending: str) -> bool:
    return request["name"].lower().endswith(ending)


def _create_file(request: dict[str, Any]) -> AbstractContextManager[BinaryIO]:
    return create_file(request["folder"], request["name"], Failure, describe_os_error)


def _export_parquet(database: Database, request: dict[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    def read_rows() -> Iterator[tuple[Any, ...]]:
        cursor = execute(database, Mode.READ, request["sql"], request.get("parameters"))
        return iterate_rows(database, cursor)

    with _create_file(request) as file:
        count = write_parquet(file, database, columns, read_rows, request["max_bytes"])
        return {"columns": columns, "rows": count, "bytes": file.tell()}


def _export_text(request: dict[str, Any], columns: Sequence[str], rows: Iterator[tuple[Any, ...]]) -> dict[str, Any]:
    max_bytes: int = request["max_bytes"]
    is_csv = _has_ending(request, ".csv")
    count = 0
    with _create_file(request) as raw:
        file = io.TextIOWrapper(raw, encoding="utf-8", newline="", write_through=False)
        writer = csv.writer(file)
        if is_csv:
            writer.writerow(columns)
        else:
            file.write(encode_record(columns))
        for row in rows:
            count += 1
            if is_csv:
                writer.writerow([_to_field(value) for value in row])
            else:
                file.write(encode_record(row))
            if raw.tell() > max_bytes:
                raise Failure("too_large", f"The rows fill more than {max_bytes:,} bytes.", "Export them in parts.")
        file.flush()
        size = raw.tell()
        file.detach()
    return {"columns": columns, "rows": count, "bytes": size}


def _to_field(value: Any) -> Any:
    """Return a value as a field of a CSV file."""
    if isinstance(value, float):
        return encode_real(value)
    return f"x'{value.hex()}'" if isinstance(value, bytes) else value
