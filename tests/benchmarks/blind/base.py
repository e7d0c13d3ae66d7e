"""Databases of tasks: how they are made from rows, read, and compared with what should be left in them."""

import sqlite3
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import psycopg
from beside_shell import Place

from blind.ends import answer_faults, folder_faults
from postgres.serving import make

Row = tuple[Any, ...]
Tables = Mapping[str, Sequence[Row]]

_SQLITE_CATALOG = "SELECT tbl_name, type, name, coalesce(sql, '') FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat%'"
_POSTGRES_CATALOG = """
SELECT table_schema || '.' || table_name, 'column', column_name, concat_ws(' ', data_type, is_nullable, column_default)
    FROM information_schema.columns WHERE table_schema NOT IN ('pg_catalog', 'information_schema')
UNION ALL SELECT schemaname || '.' || tablename, 'index', indexname, indexdef FROM pg_indexes
    WHERE schemaname NOT IN ('pg_catalog', 'information_schema')
UNION ALL SELECT n.nspname || '.' || r.relname, 'constraint', c.conname, pg_get_constraintdef(c.oid)
    FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid JOIN pg_namespace n ON n.oid = r.relnamespace
    WHERE n.nspname NOT IN ('pg_catalog', 'information_schema')
UNION ALL SELECT n.nspname || '.' || r.relname, 'rights', a.attname, concat_ws(' ', r.relacl, a.attacl)
    FROM pg_class r JOIN pg_namespace n ON n.oid = r.relnamespace LEFT JOIN pg_attribute a
    ON a.attrelid = r.oid AND a.attacl IS NOT NULL
    WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') AND r.relkind IN ('r', 'v', 'm')
"""


@dataclass(frozen=True)
class World:
    """A task's database before and after, and the right answer.

    Attributes:
        before: the rows by table, referred tables first.
        after: the rows of tables whose rows change.
        solve: SQL that brings about the right end.
        wrong: SQL each that brings about a wrong end instead.
        changes: tables whose definition, indexes or rights may change.
        refused: statements that the database must refuse at the end.
        results: queries with what they must give at the end.
        indexed: a query that must find its rows by an index at the end, and needs no sort.
        files: what lies beside a SQLite database.
        made_files: what is to be made beside it.
    """

    schema: str
    before: Tables
    answer: str
    wrong_answers: Sequence[str]
    after: Tables = field(default_factory=dict[str, Sequence[Row]])
    solve: str = ""
    wrong: Sequence[str] = ()
    changes: Collection[str] = ()
    refused: Sequence[str] = ()
    results: Mapping[str, Sequence[Row]] = field(default_factory=dict[str, Sequence[Row]])
    indexed: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    made_files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


def make_sqlite(folder: Path, world: World) -> Place:
    """Make the world as a SQLite database in a folder."""
    served = folder / "data"
    served.mkdir()
    for name, data in world.files.items():
        (served / name).write_bytes(data)
    with closing(sqlite3.connect(served / "app.db")) as connection, connection:
        connection.executescript(world.schema)
        for table, rows in world.before.items():
            connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    command = ["-m", "mcp_sqlite", "--write", "--ddl", "--files", str(served), str(served / "app.db")]
    return Place(served, {"sqlite": [sys.executable, *command]}, {"XDG_STATE_HOME": str(folder / "state")})


def make_postgres(folder: Path, world: World) -> Place:
    """Make the world as a database of the run's PostgreSQL."""
    url = make(world.schema).url("owner")
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        for table, rows in world.before.items():
            with cursor.copy(f"COPY {table} FROM STDIN".encode()) as copy:
                for row in rows:
                    copy.write_row(row)
        cursor.execute("ANALYZE")
    parts = urlsplit(url)
    variables = {
        "PGHOST": parts.hostname or "",
        "PGPORT": str(parts.port),
        "PGUSER": parts.username or "",
        "PGPASSWORD": parts.password or "",
        "PGDATABASE": parts.path[1:],
    }
    served = folder / "data"
    served.mkdir()
    command = [sys.executable, "-m", "mcp_postgres", "--write", "--ddl", url]
    return Place(served, {"postgres": command}, {"XDG_STATE_HOME": str(folder / "state"), **variables})


def is_postgres(place: Place) -> bool:
    """Return whether the place's database is one of PostgreSQL."""
    return "PGHOST" in place.variables


def _connect(place: Place) -> Any:
    if not is_postgres(place):
        connection = sqlite3.connect(place.folder / "app.db")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection
    keys = {"PGHOST": "host", "PGPORT": "port", "PGUSER": "user", "PGPASSWORD": "password", "PGDATABASE": "dbname"}
    return psycopg.connect(**cast(Any, {keyword: place.variables[name] for name, keyword in keys.items()}))


def run(place: Place, script: str) -> None:
    """Run statements in the place's database."""
    with closing(_connect(place)) as connection, connection:
        if is_postgres(place):
            connection.execute(script.encode())
        else:
            connection.executescript(script)


def _rows(place: Place, query: str) -> list[Row]:
    with closing(_connect(place)) as connection:
        return connection.execute(query).fetchall()


def faults(place: Place, answer: str, world: World) -> list[str]:
    """Compare an answer and a database with what they should be."""
    found = answer_faults(answer, world.answer)
    for table, rows in (dict(world.before) | dict(world.after)).items():
        found += _table_faults(place, table, rows)
    found += _catalog_faults(place, world)
    found += [f"not refused: {statement}" for statement in world.refused if not _refuses(place, statement)]
    for query, rows in world.results.items():
        if _canonical(_rows(place, query)) != _canonical(rows):
            found.append(f"{query} gives other rows")
    if world.indexed and not _is_indexed(place, world.indexed):
        found.append("the query still reads the whole table or sorts")
    return found + folder_faults(place.folder, _expected_files(place.folder, world))


def _expected_files(folder: Path, world: World) -> dict[str, bytes]:
    """Return what should lie beside the database; made tables may differ in line ends and quotes."""
    expected = {path.name: path.read_bytes() for path in folder.glob("app.db*")} | dict(world.files)
    for name, data in world.made_files.items():
        expected[name] = data
        made = folder / name
        if made.is_file() and _lines(made.read_bytes()) == _lines(data):
            expected[name] = made.read_bytes()
    return expected


def _lines(data: bytes) -> list[str]:
    return [line.replace('"', "") for line in data.decode("utf-8-sig").splitlines()]


def _canonical(rows: Iterable[Row]) -> list[tuple[str, ...]]:
    return sorted(tuple("NULL" if value is None else f"{value}" for value in row) for row in rows)


def _table_faults(place: Place, table: str, rows: Sequence[Row]) -> list[str]:
    try:
        actual = _canonical(_rows(place, f"SELECT * FROM {table}"))
    except (sqlite3.Error, psycopg.Error) as error:
        return [f"{table}: {error}"]
    expected = _canonical(rows)
    if actual == expected:
        return []
    differing = list(set(actual) ^ set(expected))[:2]
    return [f"{table} has {len(actual)} rows, not {len(expected)}, or others: {differing}"]


def _catalog_faults(place: Place, world: World) -> list[str]:
    if is_postgres(place):
        catalog = _POSTGRES_CATALOG
        expected = set(make(world.schema).rows(catalog))
        changes = {table if "." in table else f"public.{table}" for table in world.changes}
    else:
        catalog = _SQLITE_CATALOG
        changes = set(world.changes)
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.executescript(world.schema)
            expected = set(connection.execute(catalog).fetchall())
    actual = set(_rows(place, catalog))
    # A table that changes keeps the indexes that it had.
    lost = {entry for entry in expected - actual if entry[0] not in changes or entry[1] == "index"}
    new = {entry for entry in actual - expected if entry[0] not in changes}
    return [f"the schema lost {entry}" for entry in lost] + [f"the schema has {entry}" for entry in new]


def _refuses(place: Place, statement: str) -> bool:
    with closing(_connect(place)) as connection:
        try:
            connection.execute(statement)
        except (sqlite3.IntegrityError, psycopg.Error):
            return True
        finally:
            connection.rollback()
    return False


def _is_indexed(place: Place, query: str) -> bool:
    prefix = "EXPLAIN" if is_postgres(place) else "EXPLAIN QUERY PLAN"
    plan = " ".join(str(row[-1]) for row in _rows(place, f"{prefix} {query}"))
    return not any(part in plan for part in ("Seq Scan", "Sort", "SCAN", "TEMP B-TREE"))
