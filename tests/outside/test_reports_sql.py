"""What users reported of other servers of databases, tried on mcp-sqlite and mcp-postgres with tables of our own."""

import json
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from postgres import serving as postgres
from sqlite import serving as sqlite

pytestmark = pytest.mark.anyio

_LARGE = [2033735037361704962, 9007199254740993, -7108510333361982070]
_SCHEMA = "CREATE TABLE sales (id bigint PRIMARY KEY, amount bigint);" + "".join(
    f"INSERT INTO sales VALUES ({number}, {number});" for number in _LARGE
)
Rows = Callable[[], list[tuple[Any, ...]]]


@asynccontextmanager
async def _serve_sqlite(folder: Path) -> AsyncGenerator[tuple[Any, Rows]]:
    path = folder / "shop.db"
    sqlite.run(path, _SCHEMA)

    def rows() -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(path)) as connection:
            return connection.execute("SELECT * FROM sales").fetchall()

    async with sqlite.served(path) as wire:
        yield wire, rows


@asynccontextmanager
async def _serve_postgres(_: Path) -> AsyncGenerator[tuple[Any, Rows]]:
    base = postgres.make(_SCHEMA + "GRANT ALL ON sales TO PUBLIC;")
    async with postgres.inside(base.url()) as wire:
        yield wire, lambda: base.rows("SELECT * FROM sales")


_ENGINES = {"mcp_sqlite": _serve_sqlite, "mcp_postgres": _serve_postgres}
each_engine = pytest.mark.parametrize("package", _ENGINES)


def _serve_with_files(package: str, folder: Path, statements: str, *options: str) -> Any:
    """Serve a database that these statements make, whose rows may be changed, with the files of a folder."""
    if package == "mcp_sqlite":
        sqlite.run(folder / "a.db", statements)
        return sqlite.served("--write", *options, "--files", folder, folder / "a.db")
    base = postgres.make(statements)
    return postgres.inside("--write", *options, "--files", folder, base.url("owner"))


@pytest.mark.reported("bytebase/dbhub#279")
@pytest.mark.reported("dbgate/dbgate#1532")
@pytest.mark.reported("StarRocks/mcp-server-starrocks#36")
@each_engine
async def test_integers_beyond_a_double_arrive_exactly(package: str, tmp_path: Path) -> None:
    async with _ENGINES[package](tmp_path) as (wire, _):
        said = postgres.text_of(await wire.call("query_rows", sql="SELECT id FROM sales ORDER BY amount DESC"))
    # A program in JavaScript reads the text, too: it would round a number.
    assert [json.loads(line) for line in said.splitlines()[2:]] == [[str(number)] for number in sorted(_LARGE)[::-1]]


@pytest.mark.reported("ericzakariasson/pg-mcp-server#3")
@pytest.mark.reported("perrypixel/Easy-Postgres-MCP#3")
@pytest.mark.reported("pgEdge/pgedge-postgres-mcp#196")
@each_engine
async def test_no_spelling_of_a_change_passes_for_a_query(package: str, tmp_path: Path) -> None:
    statements = [
        "/* a comment */ UPDATE sales SET amount = 0",
        "-- a comment\nDELETE FROM sales",
        "WITH one AS (SELECT 1) UPDATE sales SET amount = 0",
        "WITH gone AS (DELETE FROM sales RETURNING *) SELECT * FROM gone",
        "SELECT 1; DELETE FROM sales",
        "COMMIT; DELETE FROM sales",
        "SET TRANSACTION READ WRITE; DELETE FROM sales",
        "BEGIN; SET transaction_read_only = off; DELETE FROM sales; COMMIT",
        "(SELECT 1); DROP TABLE sales",
    ]
    async with _ENGINES[package](tmp_path) as (wire, rows):
        before = rows()
        for statement in statements:
            done = await wire.call("query_rows", sql=statement)
            # Of several statements the first may be answered, beside the refusal of the next.
            assert done["isError"] or "would do more than read" in postgres.text_of(done), statement
            assert rows() == before, statement


@pytest.mark.reported("MaterializeInc/materialize#37467")
@each_engine
async def test_a_comment_at_the_end_comments_nothing_of_ours_away(package: str, tmp_path: Path) -> None:
    async with _ENGINES[package](tmp_path) as (wire, _):
        for ending in (" -- all of them", " /* all of them */", ";", "; -- all", "\n--"):
            done = await wire.call("query_rows", sql=f"SELECT count(*) FROM sales{ending}")
            assert not done.get("isError") and "[3]" in postgres.text_of(done), ending


@pytest.mark.reported("TablePlus/TablePlus#3926")
@pytest.mark.reported("pawelsalawa/letos#2608")
@pytest.mark.reported("wireservice/csvkit#977")
@each_engine
async def test_codes_that_become_numbers_are_told(package: str, tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text("batch,rate,label\n07867,1.10,007\n12,1.1,010\n0055,0.5,1\n", "utf-8")
    (tmp_path / "plain.csv").write_text("batch,rate,label\n0,1.10,007\n,0.50,010\n", "utf-8")
    (tmp_path / "codes.jsonl").write_text('{"batch": "0001"}\n{"batch": 7}\n', "utf-8")
    table = "CREATE TABLE codes (batch int, rate numeric, label text)"
    async with _serve_with_files(package, tmp_path, table) as wire:
        for dry_run in (True, False):
            said = postgres.text_of(await wire.call("copy_from_file", file="codes.csv", table="codes", dry_run=dry_run))
            assert "so `007` is 7" in said and "`batch` in 2 records, the first" in said, said
            assert "07867" in said and "`rate`" not in said and "`label`" not in said, said
        said = postgres.text_of(await wire.call("copy_from_file", file="codes.jsonl", table="codes"))
        assert "`batch` in 1 record, the first" in said and "0001" in said, said
        said = postgres.text_of(await wire.call("copy_from_file", file="plain.csv", table="codes"))
        assert "2 rows" in said and "Kept as numbers" not in said, said


@pytest.mark.reported("TablePlus/TablePlus#3926")
async def test_a_column_called_string_makes_numbers_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text("batch,version,hex\n7867,1.10,5E92\n12,1.1,AB12\n", "utf-8")
    sqlite.run(tmp_path / "a.db", "CREATE TABLE codes (batch string, version string, hex string, note any)")
    async with sqlite.served("--write", "--files", tmp_path, tmp_path / "a.db") as wire:
        said = postgres.text_of(await wire.call("copy_from_file", file="codes.csv", table="codes"))
    assert '`1.10` 1.1: `version` in 1 record, the first "1.10" in record 1; `hex` in 1 record' in said, said


@pytest.mark.reported("pawelsalawa/letos#2608")
async def test_versions_in_a_file_that_are_one_number_are_told(tmp_path: Path) -> None:
    (tmp_path / "versions.csv").write_text("id,version,price\n1,1.1,2.50\n2,1.2,2.00\n3,1.10,3.75\n", "utf-8")
    sqlite.run(tmp_path / "a.db", "CREATE TABLE t (id integer)")
    async with sqlite.served("--files", tmp_path, tmp_path / "a.db") as wire:
        said = postgres.text_of(await wire.call("query_rows", sql="SELECT DISTINCT version FROM 'versions.csv'"))
    assert "`version` is numbers, so 1.1 and 1.10 are one value" in said and "price" not in said, said


@pytest.mark.reported("deadlocker8/BudgetMaster#731")
@pytest.mark.reported("jasp-stats/jasp-desktop#403")
@pytest.mark.parametrize("package", _ENGINES)
async def test_dots_beside_decimal_commas_stand_between_thousands(package: str, tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("sales;rate;place\n1.234;1,5;52.5\n2.345.678;2,25;13.25\n;3,0;1.234\n", "utf-8")
    (tmp_path / "plain.csv").write_text("sales;rate\n1.234;1\n2.345;2\n", "utf-8")
    table = "CREATE TABLE known (sales int, rate double precision, place double precision)"
    async with _serve_with_files(package, tmp_path, table, "--ddl") as wire:
        for table in ("known", "made"):
            said = postgres.text_of(await wire.call("copy_from_file", file="sales.csv", table=table))
            assert "a decimal comma, dots between thousands, in `sales`, `rate`" in said, said
            sums = f"SELECT sum(sales) = 2346912, sum(rate) = 6.75, sum(place) = 66.984 FROM {table}"
            said = postgres.text_of(await wire.call("query_rows", sql=sums))
            assert said.splitlines()[-1] in ("[1,1,1]", "[true,true,true]"), said
        said = postgres.text_of(await wire.call("copy_from_file", file="plain.csv", table="plain"))
        assert "decimal comma" not in said, said


@pytest.mark.reported("eventum-generator/eventum#44")
@pytest.mark.reported("rikkertkoppes/json2xls#9")
@pytest.mark.reported("zemirco/json2csv#104")
@pytest.mark.parametrize("package", _ENGINES)
async def test_objects_may_leave_out_fields_that_later_ones_have(package: str, tmp_path: Path) -> None:
    records = [{"id": 1}, {"name": "b", "id": 2}, {"id": 3, "name": None}]
    (tmp_path / "people.json").write_text(json.dumps(records, indent=1), "utf-8")
    (tmp_path / "people.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf-8")
    (tmp_path / "unknown.jsonl").write_text('{"id": 4}\n{"id": 5, "nick": "e"}\n', "utf-8")
    table = "CREATE TABLE people (id int PRIMARY KEY, name text)"
    async with _serve_with_files(package, tmp_path, table) as wire:
        for name in ("people.json", "people.jsonl"):
            said = postgres.text_of(await wire.call("copy_from_file", file=name, table="people"))
            assert "Inserted 3 rows" in said and "(id, name)." in said, said
            said = postgres.text_of(await wire.call("query_rows", sql="SELECT * FROM people ORDER BY id"))
            assert said.endswith('[1,null]\n[2,"b"]\n[3,null]\n'), said
            await wire.call("write_rows", sql="DELETE FROM people")
        refused = await wire.call("copy_from_file", file="unknown.jsonl", table="people")
        assert refused["isError"] and "`people` has no column `nick`" in postgres.text_of(refused), refused


@pytest.mark.reported("dbeaver/dbeaver#37120")
@pytest.mark.reported("pgadmin-org/pgadmin4#9672")
@pytest.mark.reported("mla/pg_sample#52")
@pytest.mark.parametrize("package", _ENGINES)
async def test_rows_with_generated_columns_come_back_without_these(package: str, tmp_path: Path) -> None:
    table = "CREATE TABLE lines (id int PRIMARY KEY, pieces int, twice int GENERATED ALWAYS AS (pieces * 2) STORED);"
    rows = "INSERT INTO lines (id, pieces) VALUES (1, 3), (2, NULL);"
    source = '"lines.csv"' if package == "mcp_sqlite" else "taken"
    async with _serve_with_files(package, tmp_path, table + rows, "--ddl") as wire:
        await wire.call("copy_to_file", sql="SELECT * FROM lines", file="lines.csv")
        await wire.call("copy_to_file", sql="SELECT id, pieces FROM lines", file="plain.csv")
        await wire.call("write_rows", sql="DELETE FROM lines")
        refused = await wire.call("copy_from_file", file="lines.csv", table="lines")
        said = postgres.text_of(refused)
        assert refused["isError"] and "`twice` is a generated column" in said and "INSERT" in said, said
        for way in ("import", "insert"):
            if way == "import":
                await wire.call("copy_from_file", file="plain.csv", table="lines")
            else:
                await wire.call("copy_from_file", file="lines.csv", table="taken")
                await wire.call("write_rows", sql=f"INSERT INTO lines (id, pieces) SELECT id, pieces FROM {source}")
            said = postgres.text_of(await wire.call("query_rows", sql="SELECT * FROM lines ORDER BY id"))
            assert said.endswith("[1,3,6]\n[2,null,null]\n"), said
            await wire.call("write_rows", sql="DELETE FROM lines")
