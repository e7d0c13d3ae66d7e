"""Files beside the database: exports, imports, backups; each directly in a served folder, none replaced."""

from __future__ import annotations

import collections
import re
import sqlite3
from collections.abc import Iterator
from typing import Any

from mcp_batteries.sql.identifiers import identifier
from mcp_batteries.sql.records import Dialect, Seen
from mcp_sqlite.worker.change.transaction import Transaction
from mcp_sqlite.worker.connection.authorizer import Mode
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.parameters import parse_parameters
from mcp_sqlite.worker.query.errors import explain_error
from mcp_sqlite.worker.record_files.infer_schema import infer_table
from mcp_sqlite.worker.record_files.record_file import RecordFile
from mcp_sqlite.worker.schema.lookup import find_shadow_tables, find_table, open_virtual_tables

__all__ = ["import_rows"]


def import_rows(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Insert the rows of a file into a table, all or none; into a new one, if `make` allows it.

    What `export_rows` has written comes back: from JSON lines exactly, from CSV as text that the columns' types
    convert, an empty field as NULL where the column takes it, from Parquet as each column's type has it.
    """
    database = connections.writer(request["path"])
    source = RecordFile(request["folder"], request["name"], database.interrupt)
    made: str | None = None
    dialect: Dialect | None = None
    fields: list[Any] | None = None
    added: list[str] = []
    seen = Seen()
    try:
        table = find_table(database, request["table"])
    except Failure as failure:
        if not request["make"]:
            way = "With `--write` and `--ddl` a new one can be made of the file."
            raise Failure(failure.kind, failure.message, f"{failure.fix} {way}") from None
        table = request["table"]
        with source.open() as file:
            types = source.types(file)
            dialect = source.dialect(file)
            looked = source.until_interrupted(source.records(file, dialect, grows=True))
            if request["dry_run"] and database.visible_schema is None:
                looked = seen.through(looked)
            fields, added, made = infer_table(table, looked, typed=not source.is_csv, types=types)
            collections.deque(looked if types and request["dry_run"] else (), maxlen=0)
    count = 0
    columns: list[str] = []

    def values(records: Iterator[list[Any]]) -> Iterator[list[Any]]:
        nonlocal count
        for count, item in enumerate(source.until_interrupted(records), 1):  # noqa: B007
            yield parse_parameters(source.to_column_values(item, is_new=made is not None))  # pyright: ignore[reportReturnType]

    with source.open() as file, Transaction(database, keep=not request["dry_run"]):
        dialect = dialect or source.dialect(file)
        if made is not None:
            database.run_internal(made)
        open_virtual_tables(database)
        info = database.run_internal(f"PRAGMA main.table_info({identifier(table)})")
        known = {str(row[1]).lower(): str(row[1]) for row in info}
        needed = {str(row[1]) for row in info if row[3]}
        numeric = {str(row[1]) for row in info if _is_numeric(str(row[2]))}
        database.authorizer.shadow_tables = find_shadow_tables(database)
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
        records = source.with_nulls(records, [name not in needed for name in columns])
        if columns:
            marks = ", ".join("?" * len(columns))
            statement = f"INSERT INTO main.{identifier(table)} ({', '.join(map(identifier, columns))}) VALUES ({marks})"
            database.authorizer.begin(Mode.WRITE)
            try:
                with database.interrupt.reach(database.connection):
                    database.connection.executemany(statement, values(records)).close()
            except Failure as failure:
                where = f"Record {count}: " if failure.message.startswith("Parameter") else ""
                raise Failure(
                    failure.kind, where + failure.message, f"{failure.fix} Nothing was changed.".strip()
                ) from None
            except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
                failure = explain_error(database, error)
                raise Failure(
                    failure.kind, f"Record {count}: {failure.message}", f"{failure.fix} Nothing was changed.".strip()
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


def _is_numeric(kind: str) -> bool:
    """Whether a column of a declared type makes numbers of texts (https://sqlite.org/datatype3.html#affname)."""
    return bool(re.search("INT", kind, re.I) or (kind and not re.search("CHAR|CLOB|TEXT|BLOB", kind, re.I)))
