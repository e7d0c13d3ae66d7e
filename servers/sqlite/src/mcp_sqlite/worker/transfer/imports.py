"""Imports the records of a file into a table."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

from mcp_batteries.sql.language.identifiers import quote_identifier, spell_identifier
from mcp_batteries.sql.transfer.column_summary import ColumnSummary, describe_file
from mcp_batteries.sql.transfer.csv_records import CsvDialect
from mcp_sqlite.worker.change.replaced_rows import CountBudget, ReplacedRows
from mcp_sqlite.worker.change.transaction import Transaction
from mcp_sqlite.worker.connection.authorizer import Mode
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.parameters import parse_parameters
from mcp_sqlite.worker.query.errors import explain_error
from mcp_sqlite.worker.record_files.infer_schema import NUMBER_KINDS, InferredTable, choose_classifier, infer_table
from mcp_sqlite.worker.record_files.record_file import RecordFile
from mcp_sqlite.worker.schema.lookup import (
    Column,
    find_shadow_tables,
    find_table,
    list_column_names,
    open_virtual_tables,
    read_table_info,
)
from mcp_sqlite.worker.transfer.imported_columns import ImportedColumn, NotedValues

__all__ = ["import_rows"]

_MAX_LISTED_COLUMNS = 50
_MAX_QUOTED_NAME = 100
_IS_VIEW = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'view' AND name = ?1 COLLATE NOCASE)"
_UNCHANGED = "Nothing was changed."


def import_rows(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Insert the rows of a file into a table, all or none; into a new one, if `make` allows it.

    What `export_rows` has written comes back: from JSON lines exactly, from CSV as text that the columns' types
    convert, an empty field as NULL where the column takes it, from Parquet as each column's type has it.
    """
    database = connections.writer(request["path"])
    stated_dialect = CsvDialect(
        encoding=request.get("encoding", ""), null_words=frozenset(request.get("null_words", ()))
    )
    source = RecordFile(request["folder"], request["name"], database.interrupt, stated_dialect)
    new_table: _NewTable | None = None
    try:
        table = find_table(database, request["table"])
    except Failure as failure:
        if not request["make"]:
            fix = f"{failure.fix} With `--write` and `--ddl` a new one can be made of the file."
            raise Failure(failure.kind, failure.message, fix) from None
        table = request["table"]
        new_table = _plan_table(database, source, table, is_dry_run=request["dry_run"])
    importer = _Import(database, source, table, new_table, is_dry_run=request["dry_run"])
    with source.open() as file:
        importer.inspect(file)
        with Transaction(database, keep=not request["dry_run"]):
            replaced_rows = ReplacedRows(database, f"INSERT INTO {quote_identifier(table)}", CountBudget())
            importer.run(file)
            replaced_row_count = replaced_rows.count(importer.row_count)
    quotes_first = database.visible_schema is None
    answer: dict[str, Any] = {
        "rows": importer.row_count,
        "records": importer.record_count,
        "table": table,
        "columns": [column.name for column in importer.columns],
        "new_columns": [],
        "contents": [],
        "dialect": importer.dialect.describe(importer.fields),
        "texts": importer.texts.describe(quotes_first=quotes_first),
        "codes": importer.codes.describe(quotes_first=quotes_first),
        "rounded": importer.rounded.describe(quotes_first=quotes_first),
        "replaced": replaced_row_count or 0,
        "skipped_triggers": replaced_rows.describe_skipped_triggers(replaced_row_count),
    }
    if new_table is not None:
        answer["new_columns"] = new_table.inferred.columns
        answer["contents"] = new_table.contents.describe()
    return answer


@dataclass
class _NewTable:
    """The table that is made for a file.

    Attributes:
        dialect: how the file is written.
        contents: what its values are like, for a dry run.
    """

    inferred: InferredTable
    dialect: CsvDialect
    contents: ColumnSummary


def _plan_table(database: Database, source: RecordFile, table: str, *, is_dry_run: bool) -> _NewTable:
    contents = ColumnSummary(choose_classifier(typed=not source.is_csv), NUMBER_KINDS)
    with source.open() as file:
        types = source.types(file)
        dialect = source.dialect(file)
        records = source.until_interrupted(source.records(file, dialect))
        if is_dry_run and database.visible_schema is None:
            records = contents.pass_on(records)
        inferred = infer_table(table, records, typed=not source.is_csv, types=types)
        if types and is_dry_run:
            # Where the file has types no record was read for them.
            deque(records, maxlen=0)
    return _NewTable(inferred, dialect, contents)


@dataclass
class _Import:
    """An import under way.

    Attributes:
        known_fields: the names of the fields, where they are known before the records are read.
        fields: the names of the fields in the file.
        columns: the columns that these are for.
        texts: what is in a column of numbers and no number.
        codes: of what a column keeps only the number, and not how it is written.
        rounded: what has more digits than its column keeps.
        record_count: the number of the record that is inserted now; of all at the end.
        row_count: how many rows came of them: a trigger or a constraint may leave some out.
    """

    database: Database
    source: RecordFile
    table: str
    new_table: _NewTable | None
    is_dry_run: bool = False
    dialect: CsvDialect = field(default_factory=CsvDialect)
    known_fields: list[Any] | None = None
    fields: list[Any] = field(default_factory=list[Any])
    columns: list[ImportedColumn] = field(default_factory=list[ImportedColumn])
    texts: NotedValues = field(default_factory=NotedValues)
    codes: NotedValues = field(default_factory=NotedValues)
    rounded: NotedValues = field(default_factory=NotedValues)
    record_count: int = 0
    row_count: int = 0

    def inspect(self, file: BinaryIO) -> None:
        """Learn how the file is written; others can write to the database meanwhile."""
        if self.new_table is not None:
            self.dialect = self.new_table.dialect
            self.known_fields = self.new_table.inferred.fields
        else:
            self.dialect = self.source.dialect(file)
            self.known_fields = self.source.fields(file)

    def run(self, file: BinaryIO) -> None:
        """Insert the records of a file."""
        if self.new_table is not None:
            self.database.run_internal(self.new_table.inferred.ddl)
        open_virtual_tables(self.database)
        columns = read_table_info(self.database, self.table)
        self.database.authorizer.shadow_tables = find_shadow_tables(self.database)
        records = self._read_records(file, columns)
        records = self.source.with_nulls(records, [not column.is_required for column in self.columns])
        if not self.columns:
            raise Failure(
                "invalid", f"`{self.source.name}` has no records.", "The first line of a .csv names the columns."
            )
        self._insert(records)

    def _read_records(self, file: BinaryIO, columns: list[Column]) -> Iterator[list[Any]]:
        """Return the records, and know for which columns they are."""
        records = self.source.records(file, self.dialect, self.known_fields)
        self.fields = next(records, list[Any]())
        self.columns = [
            ImportedColumn.of(position, self._find_column(columns, name)) for position, name in enumerate(self.fields)
        ]
        if len({column.name for column in self.columns}) < len(self.columns):
            raise Failure("invalid", "Two fields have the same name.", "Give each column once.")
        if self.dialect.decimals:
            # A text stays as it is.
            positions = (position for position in self.dialect.decimals if self.columns[position].is_numeric)
            self.dialect = self.dialect._replace(decimals=frozenset(positions))
            records = self.source.records(file, self.dialect, self.known_fields)
            next(records)
        return records

    def _find_column(self, columns: list[Column], field_name: Any) -> Column:
        """Return the column that a field is for, in any letter case."""
        by_name = {str(column.name).lower(): column for column in columns}
        column = by_name.get(str(field_name).lower()) or by_name.get(str(field_name).strip().lower())
        if column is None:
            names = _list_names([column.name for column in by_name.values()])
            message = f"`{self.table}` has no column `{str(field_name)[:_MAX_QUOTED_NAME]}`."
            shown_names = map(str.lower, list_column_names(self.database, self.table))
            if str(field_name).strip().lower() in shown_names:
                message = f"`{str(field_name).strip()}` is a generated column: SQLite computes it."
            fix = f"It has: {names}; the file: {_list_names(self.fields)}. {self._spell_insert()}."
            raise Failure("invalid", message, fix + self._describe_file())
        return column

    def _describe_file(self) -> str:
        """Return what the file's values are like, in a dry run; nothing where a part of the database is served."""
        if not self.is_dry_run or self.database.visible_schema is not None:
            return ""
        summary = ColumnSummary(choose_classifier(typed=not self.source.is_csv), NUMBER_KINDS)
        with self.source.open() as file:
            records = self.source.records(file, self.dialect)
            return describe_file(self.source.until_interrupted(records), summary)

    def _insert(self, records: Iterator[list[Any]]) -> None:
        database = self.database
        columns = ", ".join(quote_identifier(column.name) for column in self.columns)
        marks = ", ".join("?" * len(self.columns))
        database.authorizer.begin(Mode.WRITE)
        try:
            with database.interrupt.reach(database.connection):
                cursor = database.connection.executemany(
                    f"INSERT INTO main.{quote_identifier(self.table)} ({columns}) VALUES ({marks})",
                    self._count_and_convert(records),
                )
                self.row_count = cursor.rowcount
                cursor.close()
            if database.read_internal(_IS_VIEW, [self.table]):
                # SQLite counts no row of a view, and its triggers may do with a record what they like.
                self.row_count = self.record_count
        except Failure as failure:
            # Other failures name the place in the file themselves.
            raise self._locate(failure, names_record=failure.message.startswith("Parameter")) from None
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
            raise self._locate(explain_error(database, error), names_record=True) from None

    def _count_and_convert(self, records: Iterator[list[Any]]) -> Iterator[list[Any]]:
        blob_positions = [column.position for column in self.columns if column.may_hold_bytes]
        untyped_positions = [column.position for column in self.columns if column.is_untyped]
        integer_columns = [column for column in self.columns if column.rounds_long_integers]
        number_columns = [column for column in self.columns if column.is_for_numbers]
        converting_columns = [column for column in self.columns if column.code_pattern is not None]
        for record in self.source.until_interrupted(records):
            self.record_count += 1
            values = self.source.to_column_values(record, blob_positions, untyped_positions)
            for column in integer_columns:
                column.check_integer(values[column.position], self.record_count)
            for column in number_columns:
                self._check_number(column, values[column.position])
            for column in converting_columns:
                self._note_conversion(column, values[column.position])
            yield cast("list[Any]", parse_parameters(values))

    def _check_number(self, column: ImportedColumn, value: Any) -> None:
        """Note a text that SQLite leaves one in a column of numbers.

        Raises:
            Failure: it is an empty field of a CSV file, and the column has no NULL to stand for that.
        """
        if not column.leaves_text(value):
            return
        if column.is_required and not value and self.source.is_csv:
            raise Failure(
                "conflict",
                f"Record {self.record_count}: `{column.name}` is empty, and NOT NULL in the table.",
                f"Fill it, leave the field out where the column has a DEFAULT, or {self._spell_insert()}.",
            )
        self.texts.add(column, value, self.record_count)

    def _note_conversion(self, column: ImportedColumn, value: Any) -> None:
        """Note a text of which a column makes a number that is not all of it."""
        if column.drops_code(value):
            self.codes.add(column, value, self.record_count)
        if column.rounds(value):
            self.rounded.add(column, value, self.record_count)

    def _spell_insert(self) -> str:
        insert = f'INSERT INTO {spell_identifier(self.table)} (…) SELECT … FROM "{self.source.name}"'
        return f"`write_rows` takes `{insert}`"

    def _locate(self, failure: Failure, *, names_record: bool) -> Failure:
        message = failure.message
        if names_record:
            message = f"Record {self.record_count}: {message}"
        return Failure(failure.kind, message, f"{failure.fix} {_UNCHANGED}".strip())


def _list_names(names: Sequence[Any]) -> str:
    return ", ".join(f"`{str(name)[:_MAX_QUOTED_NAME]}`" for name in names[:_MAX_LISTED_COLUMNS])
