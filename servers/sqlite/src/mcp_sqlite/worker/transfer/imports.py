"""Imports the records of a file into a table."""

from __future__ import annotations

import re
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
from mcp_sqlite.worker.language.values import MAX_SHORT_NUMBER, LongDecimal, parse_decimal
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

__all__ = ["import_rows"]

_MAX_LISTED_COLUMNS = 50
_MAX_QUOTED_NAME = 100
_IS_VIEW = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'view' AND name = ?1 COLLATE NOCASE)"
_UNCHANGED = "Nothing was changed."
# What SQLite reads as an integer, and Python too; shorter ones have no more than 64 bits.
_INTEGER = re.compile(r"\s*[-+]?[0-9]{1,1000}\s*", re.ASCII)
_MIN_LONG_DIGITS = 19
_INTEGER_TYPE = re.compile("INT", re.IGNORECASE)
_REAL_OR_ANY_TYPE = re.compile("REAL|FLOA|DOUB|^ANY$", re.IGNORECASE)
_TEXT_TYPE = re.compile("CHAR|CLOB|TEXT", re.IGNORECASE)
_TEXT_OR_BLOB_TYPE = re.compile("CHAR|CLOB|TEXT|BLOB", re.IGNORECASE)
# Types that are about numbers; SQLite lets texts into their columns, and takes them for 0 in sums.
_NUMBER_TYPE = re.compile("INT|REAL|FLOA|DOUB|NUMERIC|DECIMAL|NUMBER|MONEY", re.IGNORECASE)
_NUMBER = re.compile(r"\s*[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\s*", re.ASCII)
# Numbers that are codes: as a number, one has no zeros in front. Where the type is not about numbers, as STRING, a
# version loses its last zero, and `1E5` its letter.
_CODE = re.compile(r"\s*[-+]?0[0-9].*", re.ASCII)
_CODE_OR_VERSION = re.compile(r"\s*[-+]?(?:0[0-9].*|[0-9]*\.[0-9]*0|.*[eE].*)\s*", re.ASCII)
_MAX_QUOTED_TEXT = 30


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
    with source.open() as file, Transaction(database, keep=not request["dry_run"]):
        replaced_rows = ReplacedRows(database, f"INSERT INTO {quote_identifier(table)}", CountBudget())
        importer.run(file)
        replaced_row_count = replaced_rows.count(importer.row_count)
    answer: dict[str, Any] = {
        "rows": importer.row_count,
        "records": importer.record_count,
        "table": table,
        "columns": importer.columns,
        "new_columns": [],
        "contents": [],
        "dialect": importer.dialect.describe(importer.fields),
        "texts": importer.describe_noted(importer.texts),
        "codes": importer.describe_noted(importer.codes),
        "rounded": importer.describe_noted(importer.rounded),
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
class _NotedValues:
    """Values for a column that come in unlike most: the first of them, the number of its record, and how many."""

    first: str
    record_number: int
    count: int = 0


@dataclass
class _Import:
    """An import under way.

    Attributes:
        fields: the names of the fields in the file.
        columns: the columns that these are for.
        integer_positions: the fields for columns that keep an integer beyond 64 bits only about.
        blob_positions: the fields for columns that bytes may be in: all but those of text, as of UUID or JSONB too.
        untyped_positions: the fields for columns without a type.
        number_positions: the fields for columns of numbers, and whether these have to have a value.
        texts: by the position of the field, what is in such a column and no number.
        code_patterns: by the position of the field, what a column that makes numbers of texts does not keep as it is.
        codes: by the position of the field, what was of this form.
        real_positions: the fields for columns that make reals of integers too.
        rounded: by the position of the field, what has more digits than its column keeps.
        record_count: the number of the record that is inserted now; of all at the end.
        row_count: how many rows came of them: a trigger or a constraint may leave some out.
    """

    database: Database
    source: RecordFile
    table: str
    new_table: _NewTable | None
    is_dry_run: bool = False
    dialect: CsvDialect = field(default_factory=CsvDialect)
    fields: list[Any] = field(default_factory=list[Any])
    columns: list[str] = field(default_factory=list[str])
    integer_positions: list[int] = field(default_factory=list[int])
    blob_positions: list[int] = field(default_factory=list[int])
    untyped_positions: list[int] = field(default_factory=list[int])
    number_positions: dict[int, bool] = field(default_factory=dict[int, bool])
    texts: dict[int, _NotedValues] = field(default_factory=dict[int, _NotedValues])
    code_patterns: dict[int, re.Pattern[str]] = field(default_factory=dict[int, re.Pattern[str]])
    codes: dict[int, _NotedValues] = field(default_factory=dict[int, _NotedValues])
    real_positions: set[int] = field(default_factory=set[int])
    rounded: dict[int, _NotedValues] = field(default_factory=dict[int, _NotedValues])
    record_count: int = 0
    row_count: int = 0

    def run(self, file: BinaryIO) -> None:
        """Insert the records of a file."""
        if self.new_table is not None:
            self.dialect = self.new_table.dialect
            self.database.run_internal(self.new_table.inferred.ddl)
        else:
            self.dialect = self.source.dialect(file)
        open_virtual_tables(self.database)
        columns = read_table_info(self.database, self.table)
        self.database.authorizer.shadow_tables = find_shadow_tables(self.database)
        records = self._read_records(file, columns)
        types = {str(column.name): str(column.type) for column in columns}
        self.integer_positions = [
            position for position, name in enumerate(self.columns) if _rounds_long_integers(types[name])
        ]
        self.blob_positions = [
            position for position, name in enumerate(self.columns) if not _TEXT_TYPE.search(types[name])
        ]
        self.untyped_positions = [
            position for position, name in enumerate(self.columns) if types[name].upper() in ("", "ANY")
        ]
        required = {str(column.name) for column in columns if column.not_null}
        self.number_positions = {
            position: name in required
            for position, name in enumerate(self.columns)
            if _NUMBER_TYPE.search(types[name]) and not _TEXT_OR_BLOB_TYPE.search(types[name])
        }
        self.code_patterns = {
            position: _CODE if _NUMBER_TYPE.search(types[name]) else _CODE_OR_VERSION
            for position, name in enumerate(self.columns)
            if _is_numeric(types[name]) and types[name].upper() != "ANY"
        }
        self.real_positions = {
            position for position in self.code_patterns if not _rounds_long_integers(types[self.columns[position]])
        }
        records = self.source.with_nulls(records, [name not in required for name in self.columns])
        if not self.columns:
            raise Failure(
                "invalid", f"`{self.source.name}` has no records.", "The first line of a .csv names the columns."
            )
        self._insert(records)

    def _read_records(self, file: BinaryIO, columns: list[Column]) -> Iterator[list[Any]]:
        """Return the records, and know for which columns they are."""
        if self.new_table is not None:
            known_fields = self.new_table.inferred.fields
        else:
            known_fields = self.source.fields(file)
        records = self.source.records(file, self.dialect, known_fields)
        self.fields = next(records, list[Any]())
        self.columns = [self._find_column(columns, name) for name in self.fields]
        if len(set(self.columns)) < len(self.columns):
            raise Failure("invalid", "Two fields have the same name.", "Give each column once.")
        if self.dialect.decimals:
            # A text stays as it is.
            numeric = {str(column.name) for column in columns if _is_numeric(str(column.type))}
            positions = (position for position in self.dialect.decimals if self.columns[position] in numeric)
            self.dialect = self.dialect._replace(decimals=frozenset(positions))
            records = self.source.records(file, self.dialect, known_fields)
            next(records)
        return records

    def _find_column(self, columns: list[Column], field_name: Any) -> str:
        """Return the column that a field is for, in any letter case."""
        spellings = {str(column.name).lower(): str(column.name) for column in columns}
        name = spellings.get(str(field_name).lower()) or spellings.get(str(field_name).strip().lower())
        if name is None:
            names = _list_names(list(spellings.values()))
            message = f"`{self.table}` has no column `{str(field_name)[:_MAX_QUOTED_NAME]}`."
            shown_names = map(str.lower, list_column_names(self.database, self.table))
            if str(field_name).strip().lower() in shown_names:
                message = f"`{str(field_name).strip()}` is a generated column: SQLite computes it."
            fix = f"It has: {names}; the file: {_list_names(self.fields)}. {self._spell_insert()}."
            raise Failure("invalid", message, fix + self._describe_file())
        return name

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
        columns = ", ".join(map(quote_identifier, self.columns))
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
        for record in self.source.until_interrupted(records):
            self.record_count += 1
            values = self.source.to_column_values(record, self.blob_positions, self.untyped_positions)
            for position in self.integer_positions:
                self._check_integer(position, values[position])
            for position, is_required in self.number_positions.items():
                self._check_number(position, values[position], is_required=is_required)
            for position, pattern in self.code_patterns.items():
                self._note_code(position, values[position], pattern)
                self._note_rounded(position, values[position])
            yield cast("list[Any]", parse_parameters(values))

    def _check_integer(self, position: int, value: Any) -> None:
        """Check that a column keeps an integer with all of its digits.

        Raises:
            Failure: it is beyond 64 bits, so that SQLite would make a real of it.
        """
        if not isinstance(value, str) or len(value) < _MIN_LONG_DIGITS:
            return
        if _INTEGER.fullmatch(value) and not -(2**63) <= int(value) < 2**63:
            raise Failure(
                "invalid",
                f"Record {self.record_count}: `{self.columns[position]}` would round {value.strip()}, which is beyond "
                "64 bits.",
                "A column of type TEXT keeps all digits.",
            )

    def _check_number(self, position: int, value: Any, *, is_required: bool) -> None:
        """Note a text that SQLite leaves one in a column of numbers.

        Raises:
            Failure: it is an empty field of a CSV file, and the column has no NULL to stand for that.
        """
        if not isinstance(value, str) or _NUMBER.fullmatch(value):
            return
        if is_required and not value and self.source.is_csv:
            raise Failure(
                "conflict",
                f"Record {self.record_count}: `{self.columns[position]}` is empty, and NOT NULL in the table.",
                f"Fill it, leave the field out where the column has a DEFAULT, or {self._spell_insert()}.",
            )
        self._note(self.texts, position, value)

    def _note_code(self, position: int, value: Any, pattern: re.Pattern[str]) -> None:
        """Note a text of which a column keeps only the number."""
        if isinstance(value, str) and pattern.fullmatch(value) and _NUMBER.fullmatch(value):
            self._note(self.codes, position, value)

    def _note_rounded(self, position: int, value: Any) -> None:
        """Note a number with more digits than a real keeps, in a column that makes one of it."""
        if not isinstance(value, str) or len(value) <= MAX_SHORT_NUMBER or _NUMBER.fullmatch(value) is None:
            return
        if _INTEGER.fullmatch(value) and position not in self.real_positions:
            return
        if isinstance(parse_decimal(value.strip()), LongDecimal):
            self._note(self.rounded, position, value)

    def _note(self, noted: dict[int, _NotedValues], position: int, value: str) -> None:
        values = noted.setdefault(position, _NotedValues(value, self.record_count))
        values.count += 1

    def describe_noted(self, noted: dict[int, _NotedValues]) -> list[str]:
        """Return the columns of noted values; with the first, unless only a part of the database is served."""
        descriptions: list[str] = []
        for position, values in noted.items():
            records = "record" if values.count == 1 else "records"
            description = f"`{self.columns[position]}` in {values.count:,} {records}"
            if self.database.visible_schema is None:
                first = values.first
                if len(first) > _MAX_QUOTED_TEXT:
                    first = f"{first[:_MAX_QUOTED_TEXT]}…"
                description += f', the first "{first}" in record {values.record_number:,}'
            descriptions.append(description)
        return descriptions

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


def _rounds_long_integers(type_name: str) -> bool:
    """Return whether a column of a declared type makes a real of an integer beyond 64 bits, without being for reals."""
    if _INTEGER_TYPE.search(type_name):
        return True
    # ANY is the type of STRICT tables that keeps a text.
    return _is_numeric(type_name) and _REAL_OR_ANY_TYPE.search(type_name) is None


def _is_numeric(type_name: str) -> bool:
    """Return whether a column of a declared type makes numbers of texts (https://sqlite.org/datatype3.html#affname)."""
    if _INTEGER_TYPE.search(type_name):
        return True
    return bool(type_name) and not _TEXT_OR_BLOB_TYPE.search(type_name)
