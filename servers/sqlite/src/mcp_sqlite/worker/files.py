"""Files beside the database: exports, imports, backups; each directly in a served folder, none replaced."""

from __future__ import annotations

import csv
import io
import json
import os
import sqlite3
import stat
from collections.abc import Iterator
from typing import Any

from mcp_sqlite.worker.cells import Failure, Lines, NotUtf8
from mcp_sqlite.worker.connections import Connections
from mcp_sqlite.worker.guard import Mode
from mcp_sqlite.worker.schema import name_of, quoted, shadows
from mcp_sqlite.worker.statements import create_exclusively, execute, explained, transaction

__all__ = ["back_up", "export_rows", "import_rows"]

_PAGES = 256
_NO_CUT = 1 << 62


def export_rows(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """All rows of a query into a new file: CSV (RFC 4180, UTF-8, NULL an empty field) or JSON lines of arrays."""
    database = connections.reader(request["path"])
    with database.interrupt.over(database.connection):
        cursor = execute(database, Mode.READ, request["sql"], request.get("parameters"))
        if cursor.description is None:
            raise Failure("invalid", "There is no statement in `sql`.", "Pass one SELECT.")
        columns = [column[0] for column in cursor.description]
        lines = Lines(_NO_CUT)
        count = 0
        descriptor = create_exclusively(request["folder"], request["name"])
        try:
            with open(descriptor, "w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                is_csv = request["name"].endswith(".csv")
                if is_csv:
                    writer.writerow(columns)
                else:
                    file.write(lines.line(columns))
                for row in cursor:
                    count += 1
                    if not count % 256:
                        database.interrupt.check()
                    if is_csv:
                        writer.writerow([_field(value) for value in row])
                    else:
                        file.write(lines.line(row))
                size = file.tell()
        except BaseException as error:
            os.unlink(os.path.join(str(request["folder"]), str(request["name"])))
            if isinstance(error, sqlite3.Error):
                raise explained(database, error) from None
            if isinstance(error, OSError):
                raise Failure(
                    "unavailable", f"The file can't be written: {error.strerror}.", "Nothing was kept."
                ) from None
            raise
    return {"rows": count, "bytes": size}


def _field(value: Any) -> Any:
    if isinstance(value, NotUtf8):
        return value.decode("utf-8", "replace")
    return f"x'{value.hex()}'" if isinstance(value, bytes) else value


def import_rows(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Insert the rows of a CSV, JSON or JSON lines file into a table, all or none."""
    database = connections.writer(request["path"])
    table = name_of(database, request["table"])
    known = [row[1] for row in database.own(f"PRAGMA table_info({quoted(table)})")]
    count = 0
    with transaction(database, keep=not request["dry_run"]):
        database.guard.shadows = shadows(database)
        statement, columns = "", []
        for record in _records(request["folder"], request["name"]):
            count += 1
            if not statement:
                columns = list(record)
                if missing := [name for name in columns if name not in known]:
                    raise Failure(
                        "invalid",
                        f"`{table}` has no column `{str(missing[0])[:100]}`.",
                        f"It has: {', '.join(f'`{name}`' for name in known[:50])}.",
                    )
                marks = ", ".join("?" * len(columns))
                statement = f"INSERT INTO {quoted(table)} ({', '.join(map(quoted, columns))}) VALUES ({marks})"
            if list(record) != columns:
                raise Failure("invalid", f"Record {count} has other fields than the first.", "Give all the same.")
            with database.interrupt.over(database.connection):
                try:
                    execute(database, Mode.WRITE, statement, list(record.values())).close()
                except Failure as failure:
                    raise Failure(failure.kind, f"Record {count}: {failure.what}", "Nothing was changed.") from None
            database.interrupt.check()
    return {"rows": count, "table": table, "columns": columns}


def _records(folder: str, name: str) -> Iterator[dict[str, Any]]:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(os.path.join(folder, name), flags)
    except OSError as error:
        raise Failure(
            "not_found", f"`{name}` can't be read: {error.strerror}.", "Name a file of the served folder."
        ) from None
    with open(descriptor, "rb") as raw:
        if not stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
            raise Failure("refused", f"`{name}` is no regular file.", "Name a CSV or JSON file.")
        file = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
        number = 0
        try:
            if name.endswith(".csv"):
                reader = csv.reader(file, strict=True)
                header: list[str] = next(reader, list[str]())
                for number, row in enumerate(reader, 1):
                    if len(row) != len(header):
                        raise Failure(
                            "invalid", f"Record {number} has {len(row)} fields, the header {len(header)}.", ""
                        )
                    yield dict(zip(header, row, strict=True))
                return
            start = file.read(1)
            file.seek(0)
            records = json.load(file) if start == "[" else (json.loads(line) for line in file if line.strip())
            for number, record in enumerate(records, 1):
                if not isinstance(record, dict):
                    raise Failure("invalid", f"Record {number} is no object.", "Give an array, or lines, of objects.")
                yield record
        except (ValueError, csv.Error) as error:
            raise Failure("invalid", f"Behind record {number} the file can't be read: {error}.", "") from None


def back_up(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """A consistent copy into a new file by the online backup API, while others read and write."""
    database = connections.reader(request["path"])
    scratch = request["scratch"]
    target = sqlite3.connect(scratch)

    def step(status: int, remaining: int, total: int) -> None:
        database.interrupt.check()

    try:
        with database.interrupt.over(database.connection):
            database.guard.begin(Mode.OWN)
            database.connection.backup(target, pages=_PAGES, progress=step, sleep=0.01)
    except sqlite3.Error as error:
        raise explained(database, error) from None
    finally:
        target.close()
    try:
        with open(scratch, "rb") as copied:
            size = os.fstat(copied.fileno()).st_size
            descriptor = create_exclusively(request["folder"], request["name"])
            with open(descriptor, "wb") as file:
                while block := copied.read(1 << 20):
                    file.write(block)
                file.flush()
                os.fsync(file.fileno())
    finally:
        os.unlink(scratch)
    return {"bytes": size}
