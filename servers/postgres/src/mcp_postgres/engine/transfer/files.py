"""Copies rows between tables and files in the operator's folder, by COPY through the connection.

The files of the database's own machine are never meant: what COPY writes and reads there is `TO STDOUT` and `FROM
STDIN`. A query is admitted as every query is, and only then stands inside of COPY, which takes no second statement.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator, Sequence
from contextlib import aclosing, closing
from typing import Any, BinaryIO, cast

import psycopg

from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, Refused, TooLarge, Unavailable, quote, reason
from mcp_batteries.limits import Stop, in_thread
from mcp_batteries.sql.changes import Import
from mcp_batteries.sql.files import new_file, served_file
from mcp_batteries.sql.identifiers import identifier
from mcp_batteries.sql.records import Dialect, Seen, csv_records, csv_texts, dialect_of, json_records
from mcp_postgres.engine.admission.statements import Limits, admit, judge, opening
from mcp_postgres.engine.catalog.description import as_json, find_table
from mcp_postgres.engine.change.transaction import COMMIT, DEFERRED, MARK, TOUCHED
from mcp_postgres.engine.connection.errors import Missing, placed, problem
from mcp_postgres.engine.connection.pool import Connections, Session
from mcp_postgres.engine.connection.result_values import MASK, Column
from mcp_postgres.engine.connection.session import own_names
from mcp_postgres.engine.query.pages import rows_of
from mcp_postgres.engine.transfer.parquet import parquet_records, types_of, write_parquet
from mcp_postgres.engine.transfer.records import column_name, created, loaded
from mcp_postgres.input_values import as_record, as_text, json_text
from mcp_postgres.models import Export
from mcp_postgres.policy import ImportTable, NewFile, ReadStatement, ServedFile, of_ours
from mcp_postgres.statement_splitter import split

__all__ = ["export_rows", "import_rows"]

_MOST = 1_000_000_000
"""Bytes of an export."""
_ENDS = {"\\.": '"\\."'}
"""What PostgreSQL before version 18 takes for the end of the records, and how it is a text."""
_BATCH = 500
"""Records that are read at once."""
_AS_CSV = "COPY (\n{sql}\n) TO STDOUT (FORMAT csv, HEADER, ENCODING 'UTF8')"
# JSON escapes control characters, so no value holds what would be quoted, and line ends stand between its parts only.
_AS_JSON = (
    "COPY (SELECT pg_catalog.translate(pg_catalog.row_to_json(mcp_row)::pg_catalog.text, E'\\n\\r', '  ')"
    " FROM (\n{sql}\n) AS mcp_row) TO STDOUT (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02', ENCODING 'UTF8')"
)
_COLUMNS = """
SELECT coalesce(json_agg(json_build_object('name', a.attname, 'spelled', quote_ident(a.attname), 'category',
    t.typcategory, 'never_empty', t.typcategory IN ('N', 'B', 'D', 'T') OR t.oid IN (114, 2950, 3802),
    'json', t.oid IN (114, 3802), 'needed', a.attnotnull, 'fields', (SELECT json_agg(f.attname ORDER BY
        f.attnum) FROM pg_attribute f JOIN pg_type r ON r.typrelid = f.attrelid WHERE r.oid IN (t.oid, t.typelem)
        AND r.typtype = 'c' AND f.attnum > 0 AND NOT f.attisdropped)) ORDER BY a.attnum), '[]')::text
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped
"""


async def export_rows(connections: Connections, statement: ReadStatement, file: NewFile, limits: Limits) -> Export:
    """All rows of a query into a new file: CSV with a header, or an object per line.

    Raises:
        Problem: the query is refused or fails, there is such a file, or it would be too large; no file is left then.
    """
    sql = statement.sql.rstrip().rstrip(";")
    if len(split(sql)) != 1:
        raise Invalid("`copy_to_file` takes one statement.", "Send each by a call of its own.")
    form = _AS_CSV if file.name.lower().endswith(".csv") else _AS_JSON
    as_parquet = file.name.lower().endswith(".parquet")
    size = count = 0
    first, role = opening(limits), statement.database.role
    async with connections.session(first, seconds=limits.seconds, role=role) as session:
        columns = await admit(session, statement)
        if any(column.masked for column in columns):
            sql = _masked(sql, columns)
        if form is _AS_JSON and len({column.name for column in columns}) < len(columns):
            raise Invalid("Two columns have the same name, and an object has each field once.", "Name them with AS.")
        with new_file(file.folder, file.name, _fails, reason) as written:
            cursor = session.cursor()
            try:
                if as_parquet:
                    async with aclosing(rows_of(session, sql, statement)) as rows:
                        count = await write_parquet(written, columns, rows, _MOST)
                    return Export(file.name, count, written.tell())
                async with cursor.copy(form.format(sql=sql).encode()) as copy:
                    async for block in copy:
                        size += len(block)
                        if size > _MOST:
                            raise TooLarge(f"The rows fill more than {_MOST:,} bytes.", "Export them in parts.")
                        written.write(block)
            except psycopg.Error as error:
                raise problem(error, statement.database.name) from error
    return Export(file.name, max(0, cursor.rowcount), size)


def _masked(sql: str, columns: Sequence[Column]) -> str:
    names = [f"c{number}" for number in range(len(columns))]
    values = [
        f"'{MASK}'::pg_catalog.text" if column.masked else f"q.{name}"
        for name, column in zip(names, columns, strict=True)
    ]
    shown = [f"{value} AS {identifier(column.name)}" for value, column in zip(values, columns, strict=True)]
    return f"SELECT {', '.join(shown)} FROM (\n{sql}\n) AS q({', '.join(names)})"


async def import_rows(
    connections: Connections, table: ImportTable, file: ServedFile, limits: Limits, *, dry_run: bool
) -> Import:
    """Insert the rows of a file into a table, all or none; into a new one, if `make` allows it.

    Raises:
        Problem: the file can't be read, or its records don't fit; nothing is changed then.
    """
    is_csv, is_parquet = _is_csv(file), file.name.lower().endswith(".parquet")
    dialect = Dialect()
    types: list[str | None] = []
    fields: list[Any] | None = None
    added: list[str] = []
    seen = Seen() if dry_run else None
    first, role, name = opening(limits, write=True), table.database.role, table.database.name
    with served_file(file.folder, file.name, _fails, reason) as raw:
        if is_csv:
            dialect = await in_thread(lambda stop: _dialect(raw, file, stop))
        if not (header := await in_thread(lambda stop: _first(raw, file, dialect))):
            raise Invalid(f"{quote(file.name)} has no records.", "The first line of a .csv names the columns.")
    async with connections.session(first, seconds=limits.seconds, role=role) as session:
        mark = await session.value(MARK) or ""
        made: str | None = None
        try:
            found = await find_table(session, table)
        except Missing as missing:
            if not table.make:
                way = "With `--write` and `--ddl` a new one can be made of the file."
                raise NotFound(missing.what, f"{missing.fix} {way}") from None
            spelled = ".".join(identifier(part) for part in (table.schema or "public", table.name))
            with served_file(file.folder, file.name, _fails, reason) as raw:
                if is_parquet:
                    types = await in_thread(lambda stop: types_of(raw))
                seen = None if session.world.part.part else seen
                fields, added, made = await in_thread(
                    lambda stop: _guessed(spelled, raw, file, dialect, stop, seen, typed=not is_csv, types=types)
                )
            try:
                await session.together((made, ()))
            except psycopg.Error as error:
                raise problem(error, name) from error
            found = await find_table(session, table)
        if found["kind"] not in ("table", "partitioned table"):
            raise Refused(f"{quote(table.name)} is a {found['kind']}.", "Rows are copied into tables.")
        fields = header if fields is None else fields
        columns = _matched(table, await as_json(session, _COLUMNS, found["oid"]), fields)
        if made is None:  # a text stays as it is
            numbers = frozenset(place for place in dialect.decimals if columns[place]["category"] == "N")
            dialect = dialect._replace(decimals=numbers)
        names = ", ".join(column["spelled"] for column in columns)
        try:
            # What hangs on the table runs as for any other change.
            nothing = (
                f"INSERT INTO {found['spelled']} ({names}) SELECT {', '.join(['NULL'] * len(columns))} WHERE false"
            )
            await judge(session, of_ours(table.database, nothing), sequences=True)
            target = f"{found['spelled']} ({names}) FROM STDIN"
            with served_file(file.folder, file.name, _fails, reason) as raw:
                if is_csv:
                    count = await _copy_csv(session, target, raw, dialect, columns)
                else:
                    # Parquet has JSON as text, where JSON has texts.
                    records = _records_of(raw, file, dialect, fields)
                    count = await _copy_records(session, target, records, columns, spelled=is_parquet)
            await session.simple(DEFERRED)
            await own_names(session)
            if made is None and (touched := await session.value(TOUCHED, mark)):
                raise Refused(f"It would change more than rows: {quote(touched)}.", "`edit_schema` changes the schema.")
        except psycopg.Error as error:
            where = next(iter((error.diag.context or "").splitlines()), "")
            where = where if where.startswith("COPY ") or not session.world.part.part else ""
            raise placed(problem(error, name), f"{where[:200]}: " if where else "") from error
        if dry_run:
            await session.simple("ROLLBACK")
        else:
            await session.commit(COMMIT)
    told = seen.told() if seen else ()
    listed = [column["name"] for column in columns]
    return Import(found["spelled"], listed, count, dry_run, added, told, dialect.told(header))


def _is_csv(file: ServedFile) -> bool:
    return file.name.lower().endswith((".csv", ".tsv"))


def _dialect(raw: BinaryIO, file: ServedFile, stop: Stop) -> Dialect:
    return dialect_of(raw, _fails, tabs=file.name.lower().endswith(".tsv"), through=lambda rows: _polled(rows, stop))


def _polled(records: Iterator[list[Any]], stop: Stop) -> Iterator[list[Any]]:
    for number, record in enumerate(records):
        if not number % _BATCH:
            stop.check()
        yield record


def _records_of(
    raw: BinaryIO, file: ServedFile, dialect: Dialect, fields: list[Any] | None = None, *, grows: bool = False
) -> Generator[list[Any]]:
    if _is_csv(file):
        return csv_records(raw, _fails, dialect)
    if file.name.lower().endswith(".parquet"):
        return parquet_records(raw)
    return json_records(raw, _fails, loaded, fields, grows=grows)


def _first(raw: BinaryIO, file: ServedFile, dialect: Dialect) -> list[Any]:
    """The names of the fields."""
    with closing(_records_of(raw, file, dialect)) as records:
        return next(records, list[Any]())


def _guessed(
    table: str,
    raw: BinaryIO,
    file: ServedFile,
    dialect: Dialect,
    stop: Stop,
    seen: Seen | None,
    *,
    typed: bool,
    types: Sequence[str | None],
) -> tuple[list[Any], list[str], str]:
    with closing(_records_of(raw, file, dialect, grows=True)) as records:
        polled = _polled(records, stop)
        return created(table, seen.through(polled) if seen else polled, typed=typed, types=types)


async def _copy_csv(
    session: Session, target: str, raw: BinaryIO, dialect: Dialect, columns: Sequence[dict[str, Any]]
) -> int:
    """An empty field is NULL, but text where the column takes no NULL; an empty text is NULL where no type has one."""
    options = ["FORMAT csv", "HEADER", "ENCODING 'UTF8'"]
    for option, names in (
        ("FORCE_NOT_NULL", [column["spelled"] for column in columns if column["needed"] and column["category"] == "S"]),
        ("FORCE_NULL", [column["spelled"] for column in columns if column["never_empty"]]),
    ):
        options += [f"{option} ({', '.join(names)})"] if names else []
    cursor, sent, ended = session.cursor(), 0, False
    with closing(csv_texts(raw, _fails, dialect)) as records:
        async with cursor.copy(f"COPY {target} ({', '.join(options)})".encode()) as copy:
            while batch := await in_thread(lambda stop: list(itertools.islice(records, _BATCH))):
                sent += len(batch)
                ended = ended or any("\\." in text.splitlines() for _, text in batch if "\\." in text)
                # PostgreSQL wants all lines to end as the first does.
                await copy.write("".join(f"{_ENDS.get(text, text)}\n" for _, text in batch).encode())
    if ended and cursor.rowcount != sent - 1:  # PostgreSQL before 18 takes a line of two characters for the end
        raise Invalid(
            f"PostgreSQL reads {cursor.rowcount:,} of {sent - 1:,} records.",
            "A line that is `\\.` ends them: change it.",
        )
    return cursor.rowcount


async def _copy_records(
    session: Session, target: str, records: Generator[list[Any]], columns: Sequence[dict[str, Any]], *, spelled: bool
) -> int:
    cursor = session.cursor()
    with closing(records):
        await in_thread(lambda stop: next(records))
        async with cursor.copy(f"COPY {target}".encode()) as copy:
            while batch := await in_thread(lambda stop: list(itertools.islice(records, _BATCH))):
                for row in batch:
                    pairs = zip(row, columns, strict=True)
                    await copy.write_row([_text(value, column, spelled=spelled) for value, column in pairs])
    return cursor.rowcount


def _text(value: Any, column: dict[str, Any], *, spelled: bool) -> str | None:
    """A JSON value as PostgreSQL reads one of the column's type."""
    if column["json"] and not (spelled and isinstance(value, str)):
        return None if value is None else json_text(value)
    if column["fields"]:
        value = _records(value, column["fields"], quote(column["name"]))
    if isinstance(value, list) and column["category"] != "A":
        return json_text(value)
    return as_text(value, quote(column["name"]))


def _records(value: Any, fields: Sequence[str], where: str) -> Any:
    """JSON's objects as PostgreSQL writes the rows of a composite type."""
    if isinstance(value, list):
        return [_records(item, fields, where) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        given = cast("dict[str, Any]", value)
        return as_record([given.get(name) for name in fields], where) if given.keys() <= {*fields} else given
    return value


def _matched(table: ImportTable, columns: Sequence[dict[str, Any]], fields: Sequence[Any]) -> list[dict[str, Any]]:
    """The column for each field, whatever the case."""
    exact = {column["name"]: column for column in columns}
    known = {column["name"].lower(): column for column in columns} | exact
    found: list[dict[str, Any]] = []
    for field in fields:
        word = str(field)
        column = exact.get(word) or exact.get(column_name(word)) or known.get(word.strip().lower())
        if column is None:
            listed = ", ".join(quote(column["name"]) for column in columns[:50])
            raise Invalid(f"{quote(table.name)} has no column {quote(word)}.", f"It has: {listed}.")
        found.append(column)
    if len({column["name"] for column in found}) < len(found):
        raise Invalid("Two fields have the same name.", "Give each column once.")
    return found


_KINDS = {
    "conflict": Conflict, "invalid": Invalid, "not_found": NotFound, "refused": Refused, "too_large": TooLarge,
    "unavailable": Unavailable,
}  # fmt: skip


def _fails(kind: str, what: str, fix: str) -> Problem:
    return _KINDS[kind](what, fix)
