"""Whatever is stored comes back the same: by pages, by parameters, through files; the engine with real workers."""

import base64
import itertools
import json
import math
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_batteries.scratch import Scratch
from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_batteries.sql.results.rows import RowPage
from mcp_sqlite.engine.files import export_rows, import_rows
from mcp_sqlite.engine.lifetime import Lifetime
from mcp_sqlite.engine.result_pages import ResultPages
from mcp_sqlite.engine.workers.launcher import WorkerLauncher
from mcp_sqlite.engine.workers.pool import WorkerPool
from mcp_sqlite.policy import Database, ImportTable, NewFile, NextPage, ReadStatement, ServedFile

INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)])
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(
    ["", "\0", "a\0b", "\ufeffx", "\u2028", '"', "'", ",", "\r\n", "NULL", "Infinity", "x'00'", "12345678901234567890"]
)
REALS = st.floats() | st.sampled_from([math.inf, -math.inf, math.nan, -0.0, 5e-324, 1.7976931348623157e308])
VALUES = st.none() | INTEGERS | REALS | TEXT | st.binary(max_size=40)
KEYS = st.none() | st.integers(-5, 5) | st.sampled_from(["a", "b", "é", ""]) | st.binary(max_size=1)
FEW = settings(
    max_examples=settings.default.max_examples * 2 // 5,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


class Place:
    """Workers in a loop of their own, and databases one after another."""

    def __init__(self, folder: Path, portal: BlockingPortal, pool: WorkerPool, results: ResultPages) -> None:
        self.folder = folder
        self.portal = portal
        self.pool = pool
        self.results = results
        self._numbers = itertools.count()

    def database(self, schema: str, table: str = "t", rows: Sequence[Sequence[Any]] = ()) -> Database:
        path = self.folder / f"{next(self._numbers)}.db"
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(schema)
            for row in rows:
                connection.execute(f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * len(row))})", row)
            connection.commit()
        return Database("app", str(path))

    def copy(self, database: Database, ending: str) -> None:
        """Export the table `t` into a file, and import that into `copy`."""
        file = Path(database.address).with_suffix(ending).name

        async def there_and_back() -> None:
            everything = ReadStatement(database, "SELECT * FROM t ORDER BY rowid", None)
            await export_rows(self.pool, everything, NewFile(str(self.folder), file))
            table = ImportTable(database, "copy", make=False)
            await import_rows(self.pool, table, ServedFile(str(self.folder), file), dry_run=False)

        self.portal.call(there_and_back)

    def pages(self, database: Database, sql: str, parameters: Any = None, **bounds: int) -> Generator[RowPage]:
        async def first() -> RowPage:
            page = await self.results.read(ReadStatement(database, sql, parameters), **bounds)
            assert isinstance(page, RowPage)
            return page

        page = self.portal.call(first)
        yield page
        while (cursor := page.cursor) is not None:

            async def following(cursor: str = cursor) -> RowPage:
                page = await self.results.read(NextPage(cursor, None), **bounds)
                assert isinstance(page, RowPage)
                return page

            page = self.portal.call(following)
            yield page


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Generator[Place]:
    folder, scratch = tmp_path_factory.mktemp("properties"), Scratch("mcp-sqlite")
    pool = WorkerPool(WorkerLauncher([str(folder / "app.db")], scratch), seconds=60, max_workers=2)
    results = ResultPages(pool, scratch)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Lifetime(pool, results)):
        yield Place(folder, portal, pool, results)


def shown(value: Any) -> Any:
    """How a value stands in an answer; SQLite keeps no NaN."""
    match value:
        case float() if math.isnan(value):
            return None
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case int() if abs(value) > 2**53:
            return str(value)
        case bytes():
            return {"base64": base64.b64encode(value).decode()}
        case _:
            return value


def sent(value: Any) -> Any:
    """How a caller spells it as a parameter."""
    return shown(value) if isinstance(value, bytes) else value


def lines(page: RowPage) -> list[Any]:
    return [json.loads(line) for line in page.lines.split("\n")[:-1]]


@FEW
@given(rows=st.lists(st.lists(VALUES, min_size=3, max_size=3), max_size=20))
def test_values_come_back_as_they_were_stored(rows: list[list[Any]], place: Place) -> None:
    database = place.database("CREATE TABLE t (a, a2, b)", rows=rows)
    page = next(place.pages(database, "SELECT a, a2 AS a, b FROM t ORDER BY rowid", limit=100, max_bytes=1_000_000))
    assert page.columns == ["a", "a", "b"]
    assert lines(page) == [[shown(value) for value in row] for row in rows]


@FEW
@given(values=st.lists(VALUES, min_size=1, max_size=5))
def test_parameters_mean_what_they_say(values: list[Any], place: Place) -> None:
    database = place.database("")
    marks = [f"?{number}" for number in range(1, len(values) + 1)]
    sql = f"SELECT {', '.join([*marks, *(f'typeof({mark})' for mark in marks)])}"
    finite = [None if isinstance(value, float) and not math.isfinite(value) else value for value in values]
    page = next(place.pages(database, sql, [sent(value) for value in finite], limit=1, max_bytes=1_000_000))
    names = {int: "integer", float: "real", str: "text", bytes: "blob", type(None): "null"}
    assert lines(page) == [[*map(shown, finite), *(names[type(value)] for value in finite)]]


@FEW
@given(
    rows=st.lists(st.tuples(KEYS, KEYS), max_size=30),
    schema=st.sampled_from(
        [
            "CREATE TABLE t (a, b)",
            "CREATE TABLE t (a, b, PRIMARY KEY (a, b)) WITHOUT ROWID",
            "CREATE TABLE t (a UNIQUE, b)",
            "CREATE TABLE t (a TEXT COLLATE NOCASE, b REAL); CREATE INDEX i ON t (a)",
        ]
    ),
    order=st.sampled_from(["", "ORDER BY a", "ORDER BY b DESC, a", "ORDER BY random()"]),
    limit=st.integers(1, 7),
    max_bytes=st.integers(1, 200),
    journal=st.sampled_from(["delete", "wal"]),
)
def test_paging_gives_each_row_once_while_another_program_writes(
    rows: list[Any], schema: str, order: str, limit: int, max_bytes: int, journal: str, place: Place
) -> None:
    database = place.database(f"PRAGMA journal_mode = {journal}; {schema}", rows=rows)
    with closing(sqlite3.connect(database.address)) as writer:
        stored = [[shown(value) for value in row] for row in writer.execute("SELECT * FROM t")]
        taken: list[Any] = []
        numbers: list[int] = []
        for page in place.pages(database, f"SELECT * FROM t {order}", limit=limit, max_bytes=max_bytes):
            writer.execute("DELETE FROM t WHERE rowid % 2" if "WITHOUT" not in schema else "DELETE FROM t WHERE a = 1")
            writer.execute("INSERT OR REPLACE INTO t VALUES ('new', random())")
            writer.commit()
            found = lines(page)
            assert len(found) == page.rows <= limit
            assert page.cursor is None or page.rows > 0
            numbers.append(page.start)
            taken += found
    assert sorted(map(repr, taken)) == sorted(map(repr, stored))
    assert numbers == sorted(set(numbers))


@FEW
@given(
    rows=st.lists(st.lists(VALUES, min_size=2, max_size=2), max_size=10),
    name=st.sampled_from(["b", "é ü", 'a"b', "a,b", "'"]),
)
def test_json_lines_bring_back_every_value(rows: list[list[Any]], name: str, place: Place) -> None:
    column = quote_identifier(name)
    schema = f"CREATE TABLE t (a, {column}); CREATE TABLE copy AS SELECT * FROM t"
    database = place.database(schema, rows=rows)
    place.copy(database, ".jsonl")
    with closing(sqlite3.connect(database.address)) as connection:
        columns = f"a, {column}, typeof(a), typeof({column})"
        before, after = (
            connection.execute(f"SELECT {columns} FROM {table} ORDER BY rowid").fetchall() for table in ("t", "copy")
        )
    assert list(map(repr, after)) == list(map(repr, before))


@FEW
@given(rows=st.lists(st.lists(st.none() | TEXT, min_size=2, max_size=2), max_size=10))
def test_csv_brings_back_every_text(rows: list[list[Any]], place: Place) -> None:
    database = place.database("CREATE TABLE t (a TEXT, b TEXT NOT NULL); CREATE TABLE copy (a TEXT, b TEXT NOT NULL)")
    rows = [[a, b or ""] for a, b in rows]
    with closing(sqlite3.connect(database.address)) as connection:
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
        connection.commit()
    place.copy(database, ".csv")
    with closing(sqlite3.connect(database.address)) as connection:
        copied = connection.execute("SELECT a, b FROM copy ORDER BY rowid").fetchall()
    # An empty field is NULL where the column takes it.
    assert copied == [(a or None, b) for a, b in rows]
