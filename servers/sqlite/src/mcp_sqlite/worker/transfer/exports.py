"""Exports the rows of a query into a new file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from mcp_batteries.sql.files import new_file
from mcp_sqlite.worker.connection.authorizer import Mode
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.language.failure import Failure, describe_os_error
from mcp_sqlite.worker.language.values import encode_real, encode_record
from mcp_sqlite.worker.query.statements import execute, iterate_rows
from mcp_sqlite.worker.record_files.file_tables import load_named_files
from mcp_sqlite.worker.record_files.parquet import write_parquet

__all__ = ["export_rows"]


def export_rows(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """All rows of a query into a new file, at most `most` bytes.

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
        if _ends(request, ".parquet"):
            cursor.close()

            def rows() -> Iterator[tuple[Any, ...]]:
                cursor = execute(database, Mode.READ, request["sql"], request.get("parameters"))
                return iterate_rows(database, cursor)

            with new_file(request["folder"], request["name"], Failure, describe_os_error) as raw:
                count = write_parquet(raw, database, columns, rows, request["most"])
                return {"rows": count, "bytes": raw.tell()}
        count = 0
        with new_file(request["folder"], request["name"], Failure, describe_os_error) as raw:
            file = io.TextIOWrapper(raw, encoding="utf-8", newline="", write_through=False)
            writer = csv.writer(file)
            is_csv = _ends(request, ".csv")
            if is_csv:
                writer.writerow(columns)
            else:
                file.write(encode_record(columns))
            for row in iterate_rows(database, cursor):
                count += 1
                if is_csv:
                    writer.writerow([_field(value) for value in row])
                else:
                    file.write(encode_record(row))
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
        return encode_real(value)
    return f"x'{value.hex()}'" if isinstance(value, bytes) else value
