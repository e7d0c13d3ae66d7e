"""Copies rows between tables and files in the operator's folder, by COPY through the connection.

The files of the database's own machine are never meant: what COPY writes and reads there is `TO STDOUT` and `FROM
STDIN`. A query is admitted as every query is, and only then stands inside of COPY, which takes no second statement.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, closing
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple, cast

import psycopg

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import (
    Conflict,
    Invalid,
    NotFound,
    Problem,
    Refused,
    TooLarge,
    Unavailable,
    describe_os_error,
    quote,
)
from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_batteries.sql.results.changes import Export, Import
from mcp_batteries.sql.transfer.column_summary import ColumnSummary, describe_file
from mcp_batteries.sql.transfer.csv_detection import detect_dialect
from mcp_batteries.sql.transfer.csv_records import CsvDialect, read_csv_lines, read_csv_records
from mcp_batteries.sql.transfer.files import create_file, open_served_file
from mcp_batteries.sql.transfer.json_records import read_json_records
from mcp_postgres.engine.admission.statements import admit, judge
from mcp_postgres.engine.catalog.description import find_table
from mcp_postgres.engine.change.commit import CHECK_CONSTRAINTS, COMMIT, FIND_CHANGED_CATALOGS, READ_TRANSACTION_ID
from mcp_postgres.engine.change.lagging_sequences import (
    LaggingSequence,
    explain_duplicate,
    find_lagging_sequences,
)
from mcp_postgres.engine.connection.errors import DuplicateKey, MissingName, locate_problem, to_problem
from mcp_postgres.engine.connection.pool import run_shielded
from mcp_postgres.engine.connection.result_values import MASK, NO_ENCODING, Column
from mcp_postgres.engine.connection.session import Session, fetch_json, use_catalog_path
from mcp_postgres.engine.pools import ConnectionPools
from mcp_postgres.engine.query.pages import stream_statement
from mcp_postgres.engine.transfer.number_values import NumberValues
from mcp_postgres.engine.transfer.parquet import read_records, read_types, write_parquet
from mcp_postgres.engine.transfer.records import RELATED_KINDS, choose_classifier, column_name, design_table, parse_json
from mcp_postgres.engine.transfer.time_values import TimeValues
from mcp_postgres.input_values import encode_json, encode_record, encode_value
from mcp_postgres.policy import ImportTable, NewFile, ReadStatement, ServedFile, internal_statement
from mcp_postgres.statement_splitter import split_statements

__all__ = ["export_rows", "import_rows"]

# Bytes of an export.
_MAX_EXPORT_BYTES = 1_000_000_000
_MAX_LISTED_COLUMNS = 50
# What PostgreSQL before version 18 takes for the end of the records, and how it is a text.
_ESCAPED_ENDS = {"\\.": '"\\."'}
# A text is none of a column's type.
_NOT_OF_THE_TYPE = ("22P02", "22007", "22008")
_QUOTED_VALUE = re.compile(r': "(.*)"', re.DOTALL)
# Records that are read at once.
_BATCH_RECORDS = 500
# Other encodings of databases lack the characters of `MASK`.
_ENCODINGS_WITH_MASK = ("UTF8", NO_ENCODING)
_ASCII_MASK = "***"
_WANTS_VALUES = "08P01"
_AS_CSV = "COPY (\n{sql}\n) TO STDOUT (FORMAT csv, HEADER, ENCODING 'UTF8')"
# JSON escapes control characters, so no value holds what would be quoted, and line ends stand between its parts only.
_AS_JSON = (
    "COPY (SELECT pg_catalog.translate(pg_catalog.row_to_json(mcp_row)::pg_catalog.text, E'\\n\\r', '  ')"
    " FROM (\n{sql}\n) AS mcp_row) TO STDOUT (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02', ENCODING 'UTF8')"
)
# The modifier of a column's type; that of a domain stands with the domain.
_MODIFIER = "CASE WHEN a.atttypmod >= 0 THEN a.atttypmod ELSE t.typtypmod END"
_COLUMNS = f"""
SELECT coalesce(json_agg(json_build_object('name', a.attname, 'spelled', quote_ident(a.attname), 'category',
    t.typcategory, 'never_empty', t.typcategory IN ('N', 'B', 'D', 'T') OR t.oid IN (114, 2950, 3802),
    'time', CASE coalesce(nullif(t.typbasetype, 0), t.oid) WHEN 'date'::regtype THEN 'date'
        WHEN 'timestamp'::regtype THEN 'local' WHEN 'timestamptz'::regtype THEN 'zoned' END,
    'scale', CASE WHEN 'numeric'::regtype IN (t.oid, t.typbasetype) AND {_MODIFIER} >= 4 THEN
        ((({_MODIFIER} - 4) & 2047) # 1024) - 1024 END,
    'json', t.oid IN (114, 3802), 'needed', a.attnotnull, 'generated', a.attgenerated <> '',
    'fields', (SELECT json_agg(f.attname ORDER BY f.attnum) FROM pg_attribute f
        JOIN pg_type r ON r.typrelid = f.attrelid WHERE r.oid IN (t.oid, t.typelem) AND r.typtype = 'c'
        AND f.attnum > 0 AND NOT f.attisdropped)) ORDER BY a.attnum), '[]')::text
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped
"""


async def export_rows(pools: ConnectionPools, statement: ReadStatement, file: NewFile) -> Export:
    """Write all rows of a query into a new file: CSV with a header, or an object per line.

    Raises:
        Problem: the query is refused or fails, there is such a file, or it would be too large; no file is left then.
    """
    export = run_shielded(_export_rows(pools, statement, file))
    return await pools.run_with_suggestion(statement.database, statement.sql, export)


async def _export_rows(pools: ConnectionPools, statement: ReadStatement, file: NewFile) -> Export:
    sql = statement.sql.rstrip().rstrip(";")
    if len(split_statements(sql)) != 1:
        raise Invalid("`copy_to_file` takes one statement.", "Send each by a call of its own.")
    name = file.name.lower()
    is_csv = name.endswith(".csv")
    async with pools.session(statement.database) as session:
        columns = await _admit(session, statement)
        if any(column.masked for column in columns):
            sql = _mask_columns(session, sql, columns)
        if not is_csv and len({column.name for column in columns}) < len(columns):
            raise Invalid("Two columns have the same name, and an object has each field once.", "Name them with AS.")
        with create_file(file.folder, file.name, _make_problem, describe_os_error) as output:
            try:
                if name.endswith(".parquet"):
                    count = await _export_parquet(session, sql, statement, columns, output)
                else:
                    count = await _export_text(session, _AS_CSV if is_csv else _AS_JSON, sql, output)
            except psycopg.Error as error:
                raise to_problem(error, statement.database.name) from error
            return Export(file.name, [column.name for column in columns], count, output.tell())


async def _admit(session: Session, statement: ReadStatement) -> list[Column]:
    """Return the columns of a query that only reads.

    Raises:
        Problem: it does more, or it wants a value for what stands as `$1`.
    """
    try:
        return await admit(session, statement)
    except Problem as problem:
        if isinstance(problem.__cause__, psycopg.Error) and problem.__cause__.sqlstate == _WANTS_VALUES:
            raise Invalid("`copy_to_file` takes no `parameters`.", "Write the values into `sql`.") from problem
        raise


async def _export_parquet(
    session: Session, sql: str, statement: ReadStatement, columns: Sequence[Column], output: BinaryIO
) -> int:
    # A file gets no byte replaced: PostgreSQL refuses one that is not UTF-8.
    await session.fetch_value("SELECT pg_catalog.set_config('client_encoding', 'UTF8', true)")
    async with aclosing(stream_statement(session, sql, statement)) as rows:
        return await write_parquet(output, columns, rows, _MAX_EXPORT_BYTES)


async def _export_text(session: Session, form: str, sql: str, output: BinaryIO) -> int:
    """Write rows as PostgreSQL spells them; returns how many there were."""
    cursor = session.cursor()
    size = 0
    async with cursor.copy(form.format(sql=sql).encode()) as copy:
        async for block in copy:
            size += len(block)
            if size > _MAX_EXPORT_BYTES:
                raise TooLarge(f"The rows fill more than {_MAX_EXPORT_BYTES:,} bytes.", "Export them in parts.")
            output.write(block)
    return max(0, cursor.rowcount)


def _mask_columns(session: Session, sql: str, columns: Sequence[Column]) -> str:
    """Return the query with a word in the place of each masked value."""
    mask = MASK
    if session.connection.info.parameter_status("server_encoding") not in _ENCODINGS_WITH_MASK:
        mask = _ASCII_MASK
    names = [f"c{number}" for number in range(len(columns))]
    outputs: list[str] = []
    for name, column in zip(names, columns, strict=True):
        value = f"'{mask}'::pg_catalog.text" if column.masked else f"q.{name}"
        outputs.append(f"{value} AS {quote_identifier(column.name)}")
    return f"SELECT {', '.join(outputs)} FROM (\n{sql}\n) AS q({', '.join(names)})"


@dataclass
class _ImportSource:
    """A file to import, and what is known of it.

    Attributes:
        fields: the names of its fields, from its header or its records, when the table is known.
        summary: what a dry run tells of its columns; None where it tells nothing.
    """

    file: ServedFile
    dialect: CsvDialect
    fields: list[Any]
    summary: ColumnSummary | None

    @property
    def is_csv(self) -> bool:
        return _is_csv(self.file)

    @property
    def is_parquet(self) -> bool:
        return self.file.name.lower().endswith(".parquet")

    def open(self) -> AbstractContextManager[BinaryIO]:
        """Open the file for reading."""
        return open_served_file(self.file.folder, self.file.name, _make_problem, describe_os_error)


class _Copied(NamedTuple):
    """How many rows came of how many records: a trigger may leave some out.

    Attributes:
        notes: sentences about values that are others in the table.
    """

    rows: int
    records: int
    notes: Sequence[str]


async def import_rows(pools: ConnectionPools, table: ImportTable, file: ServedFile, *, dry_run: bool) -> Import:
    """Insert the rows of a file into a table, all or none; into a new one, if `make` allows it.

    Raises:
        Problem: the file can't be read, or its records don't fit; nothing is changed then.
    """
    source = await _inspect_file(file, dry_run=dry_run)
    try:
        return await run_shielded(_import_rows(pools, table, source, dry_run=dry_run))
    except DuplicateKey as duplicate:
        filled_columns = {str(field).strip().lower() for field in source.fields}
        raise await explain_duplicate(pools, table.database, duplicate, filled_columns=filled_columns) from duplicate


async def _import_rows(pools: ConnectionPools, table: ImportTable, source: _ImportSource, *, dry_run: bool) -> Import:
    async with pools.session(table.database, writes=True) as session:
        transaction_id = await session.fetch_value(READ_TRANSACTION_ID) or ""
        target, new_columns = await _find_or_create_table(session, table, source)
        if new_columns is None:
            source.fields = await _read_fields(source)
        try:
            columns = _match_columns(table, await fetch_json(session, _COLUMNS, target["oid"]), source.fields)
        except Invalid as mismatch:
            raise Invalid(mismatch.failure, mismatch.fix + await _describe_contents(session, source)) from mismatch
        if new_columns is None:
            _keep_texts(source, columns)
        session.take_warnings()
        try:
            copied = await _copy_into(session, table, target, columns, source)
            if new_columns is None:
                await _refuse_other_changes(session, transaction_id)
        except psycopg.Error as error:
            problem = to_problem(error, table.database.name)
            if source.is_csv and error.sqlstate in _NOT_OF_THE_TYPE:
                problem = Invalid(problem.failure, _advise_on_value(error.diag.context or ""))
            raise locate_problem(problem, _copy_context(session, error)) from error
        warnings = session.take_warnings()
        names = [column["name"] for column in columns]
        lagging = await find_lagging_sequences(session, table.database, target["oid"], names)
        if dry_run:
            await session.run("ROLLBACK")
        else:
            await session.commit(COMMIT)
    summary: Sequence[str] = ()
    if source.summary:
        summary = source.summary.describe()
    return Import(
        table=target["spelled"],
        columns=names,
        rows=copied.rows,
        dry_run=dry_run,
        new_columns=new_columns or [],
        descriptions=summary,
        dialect=source.dialect.describe(source.fields),
        records=copied.records,
        notes=[*copied.notes, *map(_describe_lag, lagging), *(f"Warning: {warning}" for warning in warnings)],
    )


def _describe_lag(sequence: LaggingSequence) -> str:
    return f"The sequence of {quote(sequence.column)} is behind the rows: {sequence.remedy}."


async def _find_or_create_table(
    session: Session, table: ImportTable, source: _ImportSource
) -> tuple[dict[str, str], list[str] | None]:
    """Return the table, and the columns that it was created with; None where it was there.

    Raises:
        Refused: rows can't be copied into it.
    """
    new_columns: list[str] | None = None
    try:
        target = await find_table(session, table)
    except MissingName as missing:
        new_columns = await _create_table(session, table, source, missing)
        target = await find_table(session, table)
    if target["kind"] not in ("table", "partitioned table"):
        raise Refused(f"{quote(table.name)} is a {target['kind']}.", "Rows are copied into tables.")
    return target, new_columns


async def _describe_contents(session: Session, source: _ImportSource) -> str:
    """Return what the file's values are like, in a dry run; nothing where a part of the database is served."""
    summary = source.summary
    if summary is None or session.audit.visible.schema:
        return ""
    with source.open() as raw:
        records = _open_records(raw, source.file, source.dialect)
        return await run_in_thread(lambda cancel: describe_file(_check_cancelled(records, cancel), summary))


def _keep_texts(source: _ImportSource, columns: Sequence[dict[str, Any]]) -> None:
    """Read decimal commas in numbers only: in a table that was there, a text stays as it is."""
    numbers = frozenset(place for place in source.dialect.decimals if columns[place]["category"] == "N")
    source.dialect = source.dialect._replace(decimals=numbers)


async def _inspect_file(file: ServedFile, *, dry_run: bool) -> _ImportSource:
    """Read how a file is written."""
    stated = CsvDialect(encoding=file.encoding, null_words=frozenset(file.null_words))
    source = _ImportSource(file, stated, [], None)
    if dry_run:
        source.summary = ColumnSummary(choose_classifier(typed=not source.is_csv), RELATED_KINDS)
    with source.open() as raw:
        if source.is_csv:
            source.dialect = await run_in_thread(lambda cancel: _detect_dialect(raw, file, stated, cancel))
    return source


async def _create_table(session: Session, table: ImportTable, source: _ImportSource, missing: MissingName) -> list[str]:
    """Create the table that is missing as the file's records need it, and return its columns.

    Raises:
        NotFound: it may not be created.
    """
    if not table.make:
        hint = "With `--write` and `--ddl` a new one can be made of the file."
        raise NotFound(missing.failure, f"{missing.fix} {hint}") from None
    name = ".".join(quote_identifier(part) for part in (table.schema or "public", table.name))
    types: list[str | None] = []
    if session.audit.visible.schema:
        source.summary = None
    with source.open() as raw:
        if source.is_parquet:
            types = await run_in_thread(lambda cancel: read_types(raw))
        source.fields, new_columns, create_sql = await run_in_thread(
            lambda cancel: _infer_table(
                name, raw, source.file, source.dialect, cancel, source.summary, typed=not source.is_csv, types=types
            )
        )
    try:
        await session.run_pipeline((create_sql, ()))
    except psycopg.Error as error:
        raise to_problem(error, table.database.name) from error
    return new_columns


async def _copy_into(
    session: Session,
    table: ImportTable,
    target: Mapping[str, str],
    columns: Sequence[dict[str, Any]],
    source: _ImportSource,
) -> _Copied:
    """Copy the file's records into the table, and return how many there were."""
    names = ", ".join(column["spelled"] for column in columns)
    nulls = ", ".join(["NULL"] * len(columns))
    # What hangs on the table runs as for any other change.
    insert_nothing = f"INSERT INTO {target['spelled']} ({names}) OVERRIDING SYSTEM VALUE SELECT {nulls} WHERE false"
    await judge(session, internal_statement(table.database, insert_nothing), allow_sequences=True)
    copy_target = f"{target['spelled']} ({names}) FROM STDIN"
    with source.open() as raw:
        if source.is_csv:
            copied = await _copy_csv(session, copy_target, raw, source.dialect, columns)
        else:
            # Parquet has JSON as text, where JSON has texts.
            records = _open_records(raw, source.file, source.dialect, source.fields)
            copied = await _copy_records(session, copy_target, records, columns, json_as_text=source.is_parquet)
    await session.run(CHECK_CONSTRAINTS)
    await use_catalog_path(session)
    return copied


async def _refuse_other_changes(session: Session, transaction_id: str) -> None:
    catalogs = await session.fetch_value(FIND_CHANGED_CATALOGS, transaction_id)
    if catalogs:
        raise Refused(f"It would change more than rows: {quote(catalogs)}.", "`edit_schema` changes the schema.")


def _copy_context(session: Session, error: psycopg.Error) -> str:
    """Return which record an error is about, as the beginning of a message; not what could show masked values."""
    context = next(iter((error.diag.context or "").splitlines()), "")
    if not context.startswith("COPY ") and session.audit.visible.schema:
        return ""
    if context:
        return f"{context[:200]}: "
    return ""


def _advise_on_value(context: str) -> str:
    """Return what to do about a value that is not of its column's type, which the context of an error ends with."""
    name_it = "If that stands for nothing, name it in `nulls`."
    value = _QUOTED_VALUE.search(context)
    if value is None or not any(map(str.isdigit, value[1])):
        return name_it
    return (
        f"{name_it} Else import it into a new table, where `edit_schema` is offered, and INSERT from that: "
        "to_date(name, 'DD.MM.YYYY') reads a date, to_number(name, '999G999D99') a number."
    )


def _is_csv(file: ServedFile) -> bool:
    return file.name.lower().endswith((".csv", ".tsv"))


def _detect_dialect(raw: BinaryIO, file: ServedFile, stated: CsvDialect, cancel: CancelToken) -> CsvDialect:
    return detect_dialect(
        raw,
        _make_problem,
        stated=stated,
        tabs=file.name.lower().endswith(".tsv"),
        pass_on=lambda rows: _check_cancelled(rows, cancel),
    )


def _check_cancelled(records: Iterator[list[Any]], cancel: CancelToken) -> Iterator[list[Any]]:
    for number, record in enumerate(records):
        if not number % _BATCH_RECORDS:
            cancel.check()
        yield record


def _open_records(
    raw: BinaryIO, file: ServedFile, dialect: CsvDialect, fields: list[Any] | None = None
) -> Generator[list[Any]]:
    if _is_csv(file):
        return read_csv_records(raw, _make_problem, dialect)
    if file.name.lower().endswith(".parquet"):
        return read_records(raw)
    return read_json_records(raw, _make_problem, parse_json, fields, encoding=dialect.encoding)


async def _read_fields(source: _ImportSource) -> list[Any]:
    """Return the names of the fields; of JSON all that any record has.

    Raises:
        Invalid: there are none.
    """
    with source.open() as raw, closing(_open_records(raw, source.file, source.dialect)) as records:
        fields = await run_in_thread(lambda cancel: next(records, list[Any]()))
        if not source.is_csv and not source.is_parquet:
            # The list grows in place.
            await run_in_thread(lambda cancel: deque(_check_cancelled(records, cancel), maxlen=0))
    if not fields:
        raise Invalid(f"{quote(source.file.name)} has no records.", "The first line of a .csv names the columns.")
    return fields


def _infer_table(
    table: str,
    raw: BinaryIO,
    file: ServedFile,
    dialect: CsvDialect,
    cancel: CancelToken,
    summary: ColumnSummary | None,
    *,
    typed: bool,
    types: Sequence[str | None],
) -> tuple[list[Any], list[str], str]:
    with closing(_open_records(raw, file, dialect)) as records:
        inspected = _check_cancelled(records, cancel)
        if summary is not None:
            inspected = summary.pass_on(inspected)
        return design_table(table, inspected, typed=typed, types=types)


async def _copy_csv(
    session: Session, target: str, raw: BinaryIO, dialect: CsvDialect, columns: Sequence[dict[str, Any]]
) -> _Copied:
    """Copy the records of a CSV file, and return how many there were.

    An empty field is NULL, but text where the column takes no NULL. An empty text is NULL where no type has one.
    """
    cursor = session.cursor()
    times = TimeValues(columns)
    numbers = NumberValues(columns)
    sent_records = 0
    has_end_mark = False
    with closing(read_csv_lines(raw, _make_problem, dialect)) as records:
        async with cursor.copy(f"COPY {target} ({', '.join(_csv_options(columns))})".encode()) as copy:
            while batch := await run_in_thread(lambda cancel: list(itertools.islice(records, _BATCH_RECORDS))):
                texts = [text for _, text in batch]
                for number, (record, _) in enumerate(batch, sent_records):
                    # The header is the first.
                    if number:
                        times.check(record, number)
                        numbers.check(record, number)
                sent_records += len(texts)
                has_end_mark = has_end_mark or any(map(_holds_end_mark, texts))
                # PostgreSQL wants all lines to end as the first does.
                await copy.write("".join(f"{_ESCAPED_ENDS.get(text, text)}\n" for text in texts).encode())
    # PostgreSQL before 18 takes a line of two characters for the end.
    if has_end_mark and cursor.rowcount != sent_records - 1:
        raise Invalid(
            f"PostgreSQL reads {cursor.rowcount:,} of {sent_records - 1:,} records.",
            "A line that is `\\.` ends them: change it.",
        )
    return _Copied(cursor.rowcount, sent_records - 1, [*times.describe(), *numbers.describe()])


def _csv_options(columns: Sequence[dict[str, Any]]) -> list[str]:
    """Return the options of COPY for these columns."""
    options = ["FORMAT csv", "HEADER", "ENCODING 'UTF8'"]
    never_null = [column["spelled"] for column in columns if column["needed"] and column["category"] == "S"]
    if never_null:
        options.append(f"FORCE_NOT_NULL ({', '.join(never_null)})")
    never_empty = [column["spelled"] for column in columns if column["never_empty"]]
    if never_empty:
        options.append(f"FORCE_NULL ({', '.join(never_empty)})")
    return options


def _holds_end_mark(text: str) -> bool:
    return "\\." in text and "\\." in text.splitlines()


async def _copy_records(
    session: Session,
    target: str,
    records: Generator[list[Any]],
    columns: Sequence[dict[str, Any]],
    *,
    json_as_text: bool,
) -> _Copied:
    cursor = session.cursor()
    times = TimeValues(columns)
    numbers = NumberValues(columns)
    sent_records = 0
    with closing(records):
        await run_in_thread(lambda cancel: next(records))
        async with cursor.copy(f"COPY {target}".encode()) as copy:
            while batch := await run_in_thread(lambda cancel: list(itertools.islice(records, _BATCH_RECORDS))):
                for number, row in enumerate(batch, sent_records + 1):
                    times.check(row, number)
                    numbers.check(row, number)
                    pairs = zip(row, columns, strict=True)
                    await copy.write_row(
                        [_encode_value(value, column, json_as_text=json_as_text) for value, column in pairs]
                    )
                sent_records += len(batch)
    return _Copied(cursor.rowcount, sent_records, [*times.describe(), *numbers.describe()])


def _encode_value(value: Any, column: dict[str, Any], *, json_as_text: bool) -> str | None:
    """Return a JSON value as PostgreSQL reads one of the column's type."""
    if column["json"] and not (json_as_text and isinstance(value, str)):
        if value is None:
            return None
        return encode_json(value)
    if column["fields"]:
        value = _encode_records(value, column["fields"], quote(column["name"]))
    if isinstance(value, list) and column["category"] != "A":
        return encode_json(value)
    return encode_value(value, quote(column["name"]))


def _encode_records(value: Any, fields: Sequence[str], label: str) -> Any:
    """Return objects of JSON as PostgreSQL writes the rows of a composite type."""
    if isinstance(value, list):
        return [_encode_records(item, fields, label) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        record = cast("dict[str, Any]", value)
        if record.keys() <= {*fields}:
            return encode_record([record.get(name) for name in fields], label)
        return record
    return value


def _match_columns(
    table: ImportTable, columns: Sequence[dict[str, Any]], fields: Sequence[Any]
) -> list[dict[str, Any]]:
    """Return the column for each field, whatever the case."""
    exact = {column["name"]: column for column in columns}
    lower = {column["name"].lower(): column for column in columns}
    matches: list[dict[str, Any]] = []
    for field in map(str, fields):
        column = _match_column(field, exact, lower | exact)
        if column is None:
            names = _list_names([column["name"] for column in columns])
            raise Invalid(
                f"{quote(table.name)} has no column {quote(field)}.",
                f"It has: {names}; the file: {_list_names(fields)}. Import it into a new table, where `edit_schema` "
                "is offered, and INSERT from that.",
            )
        if column["generated"]:
            raise Invalid(
                f"{quote(column['name'])} is a generated column: PostgreSQL computes it.",
                "Export the others alone. Or import the file into a new table, where `edit_schema` is offered, and "
                "INSERT from that without it.",
            )
        matches.append(column)
    if len({column["name"] for column in matches}) < len(matches):
        raise Invalid("Two fields have the same name.", "Give each column once.")
    return matches


def _list_names(names: Sequence[Any]) -> str:
    return ", ".join(quote(str(name)) for name in names[:_MAX_LISTED_COLUMNS])


def _match_column(
    field: str, exact: Mapping[str, dict[str, Any]], any_case: Mapping[str, dict[str, Any]]
) -> dict[str, Any] | None:
    """Return the column of a field: by its name, by that which a new table would have, or whatever the case."""
    return exact.get(field) or exact.get(column_name(field)) or any_case.get(field.strip().lower())


_PROBLEM_CLASSES = {
    "conflict": Conflict, "invalid": Invalid, "not_found": NotFound, "refused": Refused, "too_large": TooLarge,
    "unavailable": Unavailable,
}  # fmt: skip


def _make_problem(kind: str, failure: str, fix: str) -> Problem:
    return _PROBLEM_CLASSES[kind](failure, fix)
