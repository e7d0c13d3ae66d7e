"""A question in three calls: keys and values told with the tables, and wrong words answered with the right ones."""

import os
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from mcp_batteries.sdk import tool_table
from mcp_batteries.settings import load
from mcp_batteries.testing.wire import WireError
from mcp_batteries.testing.wire.base import SECONDS
from mcp_sqlite.server import build
from mcp_sqlite.settings import Settings
from sqlite.serving import make, run, served, text_of
from tools.docs import snapshot

pytestmark = pytest.mark.anyio

SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, state TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id REFERENCES customers (id), title TEXT, placed TEXT);
INSERT INTO customers WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c LIMIT 60)
    SELECT x, 'n' || x, CASE x % 3 WHEN 0 THEN 'gone' ELSE 'active' END FROM c;
"""
MEANT = {
    "SELEC 1": "`SELECT`",
    "SELECT 1 FORM customers": "`FROM`",
    "SELECT nmae FROM customers": "`name`",
    "SELECT c.stat FROM customers c": "`state`",
    "SELECT * FROM customer": "`customers`",
    "SELECT lenght(name) FROM customers": "`length`",
    "SELECT TOP 5 * FROM customers": "LIMIT n",
    "SELECT * FROM customers FETCH FIRST 5 ROWS ONLY": "LIMIT n",
    "SELECT * FROM customers WHERE name ILIKE 'x%'": "`LIKE`",
    "SELECT * FROM customers WHERE name ~ 'x'": "`GLOB`",
    "SELECT name REGEXP 'x' FROM customers": "`GLOB`",
    "SELECT id::text FROM customers": "CAST(value AS type)",
    "SELECT CONVERT(id, CHAR) FROM customers": "CAST(value AS type)",
    "SELECT EXTRACT(YEAR FROM placed) FROM orders": "strftime('%Y', time)",
    "SELECT date_trunc('month', placed) FROM orders": "strftime('%Y-%m', time)",
    "SELECT placed + INTERVAL '1 day' FROM orders": "datetime(time, '+1 day')",
    "SELECT DATEDIFF(day, placed, placed) FROM orders": "julianday(a)",
    "SELECT * FROM orders WHERE placed > DATE '2026-01-01'": "times as text",
    "SELECT NVL(name, 'x') FROM customers": "ifnull(value, other)",
    "SELECT ISNULL(name, 'x') FROM customers": "ifnull(value, other)",
    "SELECT DISTINCT ON (state) * FROM customers": "row_number()",
    "SELECT * FROM customers FOR UPDATE": "no row locks",
    "SELECT json_agg(name) FROM customers": "json_group_array(value)",
    "SELECT strpos(name, 'x') FROM customers": "instr(text, part)",
    "SELECT median(id) FROM customers": "row_number() OVER (ORDER BY x)",
    "SELECT var_samp(id) FROM customers": "avg(x * x)",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id) FROM customers": "row_number() OVER (ORDER BY x)",
    "EXPLAIN ANALYZE SELECT 1": "EXPLAIN QUERY PLAN",
    **dict.fromkeys(
        ["SELECT group_concat(name ORDER BY id) FROM customers"] if sqlite3.sqlite_version_info < (3, 44) else [],
        "before 3.44",
    ),
    "SELECT * INTO copy FROM customers": "CREATE TABLE name AS SELECT",
    "VACUUM": "rebuild the whole file",
    "ATTACH 'x' AS y": "open another file",
    "BEGIN": "one transaction already",
    "CREATE TEMP TABLE x (a)": "temporary object",
    "INSERT INTO customers (name) VALUES ('x')": "`write_rows`",
    "CREATE TABLE x (a)": "`edit_schema`",
}
CHANGES = {
    "TRUNCATE TABLE orders": "DELETE FROM table",
    "INSERT IGNORE INTO customers VALUES (1, 'x', 'y')": "INSERT OR IGNORE",
    "INSERT INTO customers VALUES (1, 'x', 'y') ON DUPLICATE KEY UPDATE name = 'x'": "ON CONFLICT",
    "MERGE INTO customers USING orders ON 1 WHEN MATCHED THEN DELETE": "ON CONFLICT",
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.executescript(SHOP)
    return tmp_path / "shop.db"


async def test_wrong_words_are_answered_with_the_right_ones(shop: Path) -> None:
    async with served("--write", "--ddl", shop) as wire:
        for tool, asked in (("query_rows", MEANT), ("write_rows", CHANGES)):
            for sql, way in asked.items():
                result = await wire.call(tool, sql=sql)
                assert result.get("isError") and way in text_of(result), f"{sql}: {text_of(result)}"
        for tool in ("query_rows", "write_rows", "edit_schema"):
            for sql in ("VACUUM", "ATTACH 'x' AS y", "BEGIN"):
                for spelt in (sql, f"/* done */ {sql.lower()}"):
                    said = text_of(await wire.call(tool, sql=spelt))
                    assert MEANT[sql] in said, f"{tool} {spelt}: {said}"
        assert MEANT["BEGIN"] in text_of(await wire.call("explain_query", sql="BEGIN"))
        # What stands in a text is nobody's dialect.
        said = text_of(await wire.call("query_rows", sql="SELECT 'ILIKE ::' FROM customers WHERE nmae = 1"))
        assert "`name`" in said and "CAST" not in said


async def test_tables_tell_keys_and_frequent_values(shop: Path) -> None:
    async with served(shop) as wire:
        said = text_of(await wire.call("list_tables"))
        assert "- orders 0 rows: id (key), customer_id -> customers, title text, placed text\n" in said
        assert '- customers 60 rows: id (key), name text ("n1" to "n9"), state ("active":40|"gone":20)\n' in said
        legend = said.splitlines()[1]
        assert legend.startswith("(no indexes, CHECK, ON DELETE or triggers; a|b: all values, :rows of each; ")
        assert "x to y: least and greatest as ORDER BY sorts, null:rows if any)" in legend and "NOT NULL" not in said
        described = text_of(await wire.call("get_table", table="customers"))
        assert 'frequent values:\n- state: "active" (40), "gone" (20)\n' in described
        assert ";\nfrequent" in described and "- name" not in described and "columns:" not in described


async def test_a_list_of_some_tables_says_that_there_are_others(shop: Path) -> None:
    async with served(shop) as wire:
        assert "shop: 1 table or view of that name, 1 other, " in text_of(await wire.call("list_tables", name="custo"))
        assert "shop: 0 tables and views of that name, 2 others, " in text_of(await wire.call("list_tables", name="zz"))


async def test_a_short_list_tells_types_nulls_and_times(shop: Path) -> None:
    run(
        shop,
        "CREATE TABLE visits (id INTEGER PRIMARY KEY, day DATE NOT NULL, at TEXT, code TEXT, free,"
        " k VARCHAR(9) NOT NULL);"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000) INSERT INTO visits"
        " SELECT i, date('2025-01-01', i || ' days'), iif(i > 9, datetime('2025-01-01', i || ' hours'), NULL),"
        " iif(i = 7, '2025-01-01', 'x' || i), i, i % 4 FROM n;",
    )
    async with served(shop) as wire:
        said = text_of(await wire.call("list_tables"))
        days = '("2025-01-02" to "2033-03-20")'
        at = '("2025-01-01 10:00:00" to "2025-05-06 00:00:00", null:9)'
        code = '("2025-01-01" to "x999")'
        visits = f"- visits 3,000 rows: id (key), day date! {days}, at text {at}, code text {code}, free (1 to 3000), "
        assert f'{visits}k! ("0":750|"1":750|"2":750|"3":750)\n' in said, said
        assert "(!: NOT NULL; no indexes" in said and '"gone":20' in said
        assert "null:rows if any; times have the form of the earliest unless others are named)" in said
    run(shop, "UPDATE visits SET day = '2025-01-31 10:00' WHERE id = 30")
    async with served(shop) as wire:
        assert '2033-03-20", 1 of another form than the first, as "2025-01-31 10:00")' in text_of(
            await wire.call("list_tables")
        )
    run(shop, "".join(f"CREATE TABLE more_{chr(97 + n)} (id INTEGER PRIMARY KEY, c{n} TEXT);" for n in range(20)))
    async with served(shop) as wire:
        said = text_of(await wire.call("list_tables"))
        assert " k (~" in said and "day, at, code, free" in said and ":20" not in said, said
        assert "UNIQUE" not in said and "least" not in said, said


async def test_a_short_list_tells_what_a_change_may_meet(shop: Path) -> None:
    run(
        shop,
        "CREATE TABLE parts (id INTEGER PRIMARY KEY, of REFERENCES orders ON DELETE CASCADE, code text UNIQUE,"
        " n int CHECK(n > 0), CHECK (code <> ')' /* CHECK (no) */ AND (of > 0)));"
        "CREATE UNIQUE INDEX parts_n ON parts (n, lower(code)) WHERE n > 5;"
        'CREATE INDEX plain ON parts (n); CREATE INDEX "x ON (y)" ON parts (lower(code)) WHERE n > 1;'
        "CREATE TABLE log (at);"
        "CREATE TRIGGER noted AFTER DELETE ON parts BEGIN INSERT INTO log VALUES (1); END;"
        "CREATE VIEW both AS SELECT * FROM parts;"
        "CREATE TRIGGER put INSTEAD OF INSERT ON both BEGIN SELECT 1; END;"
        "CREATE TABLE child (parts_id, note DEFAULT 'CHECK (x)')",
    )
    async with served(shop) as wire:
        said = text_of(await wire.call("list_tables"))
        assert "(behind `;` all indexes, CHECK, ON DELETE, triggers; a|b" in said and "; ->?: by its name)" in said
        parts = (
            "; UNIQUE (n, …) WHERE …; UNIQUE (code); INDEX (n); INDEX (lower(code)) WHERE n > 1; CHECK(n > 0); "
            "CHECK (code <> ')' /* CHECK (no) */ AND (of > 0)); of ON DELETE CASCADE; 1 trigger\n"
        )
        assert parts in said, said
        assert re.search(r"- both \(view\): .*; 1 trigger\n", said), said
        assert "- child 0 rows: parts_id -> parts?, note default 'CHECK (x)'\n" in said, said
    async with served("--mask", "parts.n", shop) as wire:
        said = text_of(await wire.call("list_tables", name="parts"))
        assert "; UNIQUE (n, …) WHERE …; UNIQUE (code); INDEX (…) WHERE …; INDEX (n)" in said, said
        assert "> 1" not in said and "> 5" not in said, said


async def test_tables_tell_how_they_are_joined(shop: Path) -> None:
    run(
        shop,
        "CREATE TABLE products (id INTEGER PRIMARY KEY, name);"
        "CREATE TABLE items (order_id REFERENCES orders, product_id, n)",
    )
    async with served(shop) as wire:
        assert "- items 0 rows: order_id -> orders, product_id -> products?, n\n" in text_of(
            await wire.call("list_tables")
        )
        said = text_of(await wire.call("get_table", table="customers")).partition("joined through others:\n")[2]
        ways = [
            "orders ON orders.customer_id = customers.id", "items ON items.order_id = orders.id",
            "products ON items.product_id = products.id /* by name */",
        ]  # fmt: skip
        assert said.startswith(f"- through {ways[0]}: {ways[1]}\n- through items: {ways[2]}\n"), said
        way = " ".join(f"JOIN {way}" for way in ways)
        assert not (await wire.call("query_rows", sql=f"SELECT products.* FROM customers {way}")).get("isError")


async def test_values_in_the_list_are_few_short_and_soon_there(shop: Path) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 400000)"
    run(
        shop,
        "CREATE TABLE wide (id INTEGER PRIMARY KEY, few, many, long, state);"
        f"INSERT INTO wide SELECT i, i % 3, i % 9, printf('%020d', i % 2), NULL FROM ({numbers} SELECT i FROM n);"
        + "".join(f"CREATE TABLE copy_{number} AS SELECT * FROM wide LIMIT 20000;" for number in range(30)),
    )
    async with served(shop) as wire:
        await wire.call("query_rows", sql="SELECT 1")
        values = r"few \(~[012]\|[012]\|[012]\), many \(~(?:[0-8]\|){8}[0-8]\), long \(~\S+\), state \(~null\)"
        line = rf"^- wide 400,000 rows: id \(key\), {values}$"
        # A busy machine reads some of the values in time.
        said = ""
        with anyio.fail_after(SECONDS):
            while not re.search(line, said, re.MULTILINE):
                said = text_of(await wire.call("list_tables", name="wide"))
        assert "a|b: all values; ~: only those of about 1,000 rows)" in said
        assert len(text_of(await wire.call("list_tables")).encode()) < 12_000


async def test_a_hundred_tables_are_listed_compactly_and_found_by_name(shop: Path) -> None:
    run(shop, "".join(f"CREATE TABLE part_{n:03} (a REFERENCES orders (id), b{n});" for n in range(300)))
    async with served(shop) as wire:
        said = text_of(await wire.call("list_tables"))
        assert said.startswith("shop: 302 tables") and len(said.encode()) < 12_000
        # A slow machine has not counted all of them in time.
        counts = r"(0 rows each|many rows|rows not counted \(there are many tables\))"
        assert re.search(rf"\n- part_000 … part_299 \(300 of them\) {counts} -> orders\n", said), said
        assert "cursor=" not in said
        said = text_of(await wire.call("list_tables", name="CUST"))
        assert '- customers 60 rows: id (key), name text ("n1" to "n9"), state ("active":40|"gone":20)\n' in said
        assert "orders" not in said


async def test_tables_that_differ_by_a_number_are_one_line(shop: Path) -> None:
    numbers = [*range(8, 12), 13]
    run(
        shop,
        "".join(f"CREATE TABLE archive_{n:02} (id INTEGER PRIMARY KEY, state TEXT);" for n in numbers)
        + "INSERT INTO archive_09 (state) VALUES ('a'), ('a');"
        + "CREATE TABLE archive_12 (id INTEGER PRIMARY KEY, other)",
    )
    async with served(shop) as wire:
        said = text_of(await wire.call("list_tables"))
        assert re.findall(r"- (archive.*)\n", said) == [
            "archive_08 … archive_11 (4 of them) 0 to 2 rows each: id (key), state text",
            "archive_12 0 rows: id (key), other",
            "archive_13 0 rows: id (key), state text",
        ], said
        # A page cut anywhere leaves none out.
        first = text_of(await wire.call("list_tables", limit=3))
        second = text_of(await wire.call("list_tables", limit=500, cursor=first.partition("cursor=")[2].split("]")[0]))
        assert "archive_08 … archive_10 (3 of them)" in first and "- archive_11 0 rows" in second


async def test_odd_names_and_keys_are_told_and_read(tmp_path: Path) -> None:
    path = make(tmp_path / "a.db")
    run(
        path,
        'CREATE TABLE "odd\n- fake 9 rows: a" ("x\ny" TEXT);'
        "CREATE TABLE k (k TEXT PRIMARY KEY, note); INSERT INTO k VALUES ('', 'the empty one'), ('.empty', 'another')",
    )
    async with served(path) as wire:
        listed = text_of(await wire.call("list_tables"))
        assert '- "odd\\n- fake 9 rows: a" 0 rows: "x\\ny" text\n' in listed and "\n- fake" not in listed
        assert "\n- fake" not in text_of(await wire.call("search_schema", query="fake"))
        assert "x\\ny: TEXT" in text_of(await wire.call("get_table", table="odd\n- fake 9 rows: a"))
        for uri, note in (("sqlite://a/k/.empty", "the empty one"), ("sqlite://a/k/%2Eempty", "another")):
            await wire.subscribe(uri)
            found = await wire.request("resources/read", {"uri": uri})
            assert note in found["contents"][0]["text"]


@pytest.mark.share(1)
@pytest.mark.skipif(sys.platform == "win32", reason="a database that is open can't be replaced there")
@pytest.mark.parametrize("what", ["folder", "pipe"])
async def test_what_stands_in_a_databases_place_is_named(what: str, tmp_path: Path) -> None:
    path = make(tmp_path / "a.db")
    async with served("--timeout", 5, path) as wire:
        await wire.call("query_rows", sql="SELECT 1")
        path.unlink()
        path.mkdir() if what == "folder" else os.mkfifo(path)
        result = await wire.call("query_rows", sql="SELECT * FROM t")
        assert result.get("isError") and f"A {what} is where the database's file was" in text_of(result)
        with pytest.raises(WireError, match=f"A {what}"):
            await wire.request("resources/read", {"uri": "sqlite://a/t"})


@pytest.mark.slow
async def test_one_locked_database_makes_no_other_wait(tmp_path: Path) -> None:
    locked, free = make(tmp_path / "locked.db"), make(tmp_path / "free.db")
    async with served("--workers", 1, "--timeout", 30, locked, free) as wire:
        with closing(sqlite3.connect(locked, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            number = await wire.begin(
                "tools/call", {"name": "query_rows", "arguments": {"sql": "SELECT * FROM t", "database": "locked"}}
            )
            # Answered while the other waits, on the only worker there is.
            said = text_of(await wire.call("query_rows", sql="SELECT count(*) FROM t", database="free"))
            assert "[3]" in said
            said = text_of(await wire.call("list_tables"))
            assert "locked: not read: The database is locked" in said and "- t 3 rows" in said
            answer = await wire.next_message(lambda message: message.get("id") == number, seconds=60)
            said = text_of(answer["result"])
            assert "locked by another program" in said and "for at least " in said
            if sys.platform == "linux" and Path("/proc/locks").exists():
                assert f"(process {os.getpid()}), which writes" in said
            other.execute("ROLLBACK")


def test_what_a_model_reads_of_all_tools_has_a_bound() -> None:
    assert snapshot(build(load(Settings, ["--demo"])))["bytes"]["tools_list"] <= 2025 * 4


@pytest.mark.parametrize(("toolset", "offered"), [("insights", False), ("read", True)])
def test_several_calls_in_one_are_offered_where_one_could_read(toolset: str, offered: bool) -> None:
    server = build(load(Settings, ["--demo", "--tools", toolset]))
    assert ("call_tools" in tool_table(server)) == offered


@pytest.mark.parametrize(("options", "offered"), [([], False), (["--files", "."], True), (["--write"], True)])
def test_a_note_alone_is_no_reason_for_scripts_that_make_changes(options: list[str], offered: bool) -> None:
    table = tool_table(build(load(Settings, ["--demo", *options])))
    assert "create_insight" in table and ("run_script" in table) == offered


@pytest.fixture
def patient_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts do not stop because the machine is busy."""
    if sys.platform == "linux":  # elsewhere a worker does not find the modules of the tests
        monkeypatch.setattr("mcp_sqlite.engine.workers.launcher._MODULE", "sqlite.patient_worker")
    monkeypatch.setattr("mcp_sqlite.engine.schemas._COUNT_SECONDS", 60.0)


@pytest.mark.usefixtures("patient_workers")
async def test_counts_of_a_sample_are_called_so_and_the_sample_is_of_the_whole_table(shop: Path) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 120000) SELECT i FROM n"
    rows = f"SELECT i, CASE WHEN i <= 90000 THEN 'early' ELSE 'late' END FROM ({numbers})"
    run(
        shop,
        f"CREATE TABLE many (id INTEGER PRIMARY KEY, state text); INSERT INTO many {rows};"
        "CREATE TABLE gaps (id INTEGER PRIMARY KEY, state text); INSERT INTO gaps SELECT id * 1000000, state FROM many;"
        "CREATE TABLE odd (rowid text, oid text, state text); INSERT INTO odd SELECT id, id, state FROM many;"
        "CREATE TABLE keyed (id integer PRIMARY KEY, state text) WITHOUT ROWID; INSERT INTO keyed SELECT * FROM many;"
        "CREATE TABLE few AS SELECT * FROM many WHERE id > 89000 AND id <= 93000",
    )
    async with served(shop) as wire:
        await wire.call("query_rows", sql="SELECT 1")
        for table in ("many", "gaps", "odd"):
            said = text_of(await wire.call("get_table", table=table))
            found = re.search(
                r'in a sample, (4,9\d\d|5,000) rows from all over the table:\n.*"early" \((\d+)\), "late" \((\d+)', said
            )
            assert found and abs(int(found[2]) - 3750) < 100, said
            assert int(found[2]) + int(found[3]) == int(found[1].replace(",", "")), said
        said = text_of(await wire.call("get_table", table="keyed"))
        assert 'in a sample, the first 5,000 rows:\n- state: "early" (5000)' in said
        said = text_of(await wire.call("get_table", table="few"))
        assert 'frequent values:\n- state: "late" (3000), "early" (1000)' in said
        listed = text_of(await wire.call("list_tables"))
        assert 'state (~"early"|"late")' in listed and "~: only those of about 1,000 rows" in listed
