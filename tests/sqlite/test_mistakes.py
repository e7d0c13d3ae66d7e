"""What models write that is not quite SQLite: taken where it can mean one thing only, else answered with the way."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from mcp_batteries.settings import load
from mcp_sqlite.server import build
from mcp_sqlite.settings import Settings
from sql.misspelt import misspelt
from sqlite.serving import make, served, text_of

pytestmark = pytest.mark.anyio


async def said(path: Path, tool: str, *options: str, **arguments: Any) -> str:
    async with served(path, *options) as wire:
        return text_of(await wire.request("tools/call", {"name": tool, "arguments": arguments}))


async def test_what_can_mean_one_statement_only_is_run(tmp_path: Path) -> None:
    path = make(tmp_path / "a.db")
    async with served(path) as wire:
        for sql in (
            "SELECT 7;;",
            "SELECT 7 ; ;\n",
            "```sql\nSELECT 7\n```",
            "```\nSELECT 7;\n```",
            "SELECT 7; -- done",
        ):
            answer = await wire.request("tools/call", {"name": "query_rows", "arguments": {"sql": sql}})
            assert "[7]" in text_of(answer), sql
        for values in (7, "7", "[7]", [7]):
            arguments = {"sql": "SELECT ? + 0", "parameters": values}
            answer = await wire.request("tools/call", {"name": "query_rows", "arguments": arguments})
            assert "[7]" in text_of(answer), values
        for sql in ("query", "statement"):
            arguments = {sql: "SELECT 7 WHERE ?", "params": [1]}
            assert "[7]" in text_of(await wire.request("tools/call", {"name": "query_rows", "arguments": arguments}))
        for name in ("a.db", str(path), "A", "", None):
            arguments = {"sql": "SELECT 7", "database": name}
            answer = await wire.request("tools/call", {"name": "query_rows", "arguments": arguments})
            assert "[7]" in text_of(answer), name
        for sql in ("EXPLAIN SELECT * FROM t", "-- why\n explain/**/query plan SELECT * FROM t"):
            answer = await wire.request("tools/call", {"name": "explain_query", "arguments": {"sql": sql}})
            assert text_of(answer).startswith("SCAN t"), sql
        for condition in ("name = ?", "name = :n AND id < @m OR name = :n", "name = $1", "name = ?3 OR id = ?"):
            answer = await wire.request(
                "tools/call", {"name": "explain_query", "arguments": {"sql": f"SELECT * FROM t WHERE {condition}"}}
            )
            assert "SEARCH t" in text_of(answer), (condition, text_of(answer))


async def test_another_dialect_is_answered_with_sqlites_own(tmp_path: Path) -> None:
    aggregate = "string_agg" if sqlite3.sqlite_version_info < (3, 44) else "listagg"
    ways = {
        "SHOW TABLES": "`list_tables`",
        "describe t": "`list_tables`",
        ".tables": "`list_tables`",
        "\\dt": "`list_tables`",
        "SELECT * FROM information_schema.tables": "`list_tables`",
        "SELECT NOW()": "`datetime('now')`",
        f"SELECT {aggregate}(name, ',') FROM t": "`group_concat(value, separator)`",
        "PRAGMA user_version = 7": "The schema is changed by `edit_schema`",
    }
    async with served(make(tmp_path / "a.db")) as wire:
        for sql, way in ways.items():
            answer = await wire.request("tools/call", {"name": "query_rows", "arguments": {"sql": sql}})
            assert way in text_of(answer), sql
        said = text_of(await wire.call("query_rows", sql="SELECT medain(name) FROM t"))
        assert "radians" not in said and "cume_dist" not in said
        said = text_of(await wire.call("query_rows", sql="SELECT ?", parameters=[{"a": 1}]))
        assert "An object as JSON text." in said


async def test_a_word_of_sql_in_the_place_of_a_name_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript('CREATE TABLE orders(id, total, "group"); CREATE TABLE "index"(id);')
    ways = {
        "SELECT * FROM order": "Did you mean `orders`?",
        "SELECT id, FROM orders": "There is a comma too many before it.",
        "SELECT id FROM index": '`"index"`',
        "SELECT id FROM orders WHERE group = 1": '`"group"`',
        "SELECT id FROM orders GRUOP BY id": "Did you mean `GROUP`",
        "SELECT id FROM orders WHERE AND total = 1": "",
        "SELECT * FORM orders": "`FROM`",
        "SELECT 1 +": "",
    }
    async with served(path) as wire:
        for sql, way in ways.items():
            answer = text_of(await wire.request("tools/call", {"name": "query_rows", "arguments": {"sql": sql}}))
            assert answer.startswith("SQLite says: ") and way in answer, answer
            assert way or "Did you mean" not in answer, answer


async def test_a_name_that_sqlite_takes_for_a_text_is_told_and_changes_nothing(tmp_path: Path) -> None:
    """https://sqlite.org/quirks.html: a misspelt column in double quotes finds nothing, or everything."""
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE orders(id, status, \"odd name\"); INSERT INTO orders VALUES (1, 'paid', 1), (2, 'open', 2);"
        )
    told = {
        'SELECT id FROM orders WHERE "statuss" = 1': '"statuss" is not a column',
        'SELECT "id", "nothing" FROM orders': '"nothing" is not a column',
        'SELECT id FROM orders WHERE status = "paid"': '"paid" is not a column',
    }
    silent = (
        'SELECT "id" AS "Id", \'Id\' FROM "orders" WHERE "odd name" > 0 AND status <> \'status\' ORDER BY "Id"',
        'WITH "x" AS (SELECT 1 AS "one") SELECT "one", \'two "three"\' FROM "x" -- "four"',
        "SELECT strftime('%Y', \"status\") FROM orders",
        "SELECT f.\"table\" FROM sqlite_master m, pragma_foreign_key_list(m.name) f WHERE m.type = 'table'",
        'SELECT "key" FROM json_each(\'{"key": "key"}\') WHERE "key" <> \'key\'',
    )
    async with served(path, "--write") as wire:

        async def asked(tool: str, **arguments: Any) -> str:
            return text_of(await wire.request("tools/call", {"name": tool, "arguments": arguments}))

        for sql, words in told.items():
            answer = await asked("query_rows", sql=sql)
            assert words in answer and "took it for the text" in answer, answer
        assert "[1 row]" in answer, "the text that was meant is found"
        for sql in silent:
            said = await asked("query_rows", sql=sql)
            assert "no column" not in said and "not a column" not in said, sql
        for sql in ('DELETE FROM orders WHERE "statuss" <> 1', 'UPDATE orders SET status = 1 WHERE "Statis" > 0'):
            answer = await asked("write_rows", sql=sql)
            assert "would take it for a text. Did you mean `status`?" in answer and "Nothing was changed" in answer
        assert "[2]" in await asked("query_rows", sql="SELECT count(*) FROM orders WHERE status IN ('paid', 'open')")
        assert "1 row in orders" in await asked("write_rows", sql='UPDATE orders SET status = "sent" WHERE id = 1')


async def test_one_statement_takes_several_sets_of_values(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT NOT NULL)")
    async with served(path, "--write") as wire:

        async def write(sql: str, parameters: Any, **more: Any) -> str:
            arguments = {"sql": sql, "parameters": parameters, **more}
            return text_of(await wire.request("tools/call", {"name": "write_rows", "arguments": arguments}))

        insert = "INSERT INTO t VALUES (?, ?)"
        many = [[number, f"name {number}"] for number in range(500)]
        assert "500 rows in t" in await write(insert, many, dry_run=True)
        assert "500 rows in t" in await write(insert, many)
        assert "2 rows in t" in await write("UPDATE t SET name = ? WHERE id = ?", [["x", 1], ["y", 2]])
        answer = await write(insert, [[600, "a"], [601, None], [602, "b"]])
        assert "Set 2 of 3:" in answer and "NOT NULL" in answer and "Nothing was changed." in answer
        assert "no RETURNING" in await write(f"{insert} RETURNING id", [[700, "a"], [701, "b"]])
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT count(*), max(id) FROM t").fetchall() == [(500, 499)]


async def test_rows_changed_behind_a_with_are_counted_as_rows(tmp_path: Path) -> None:
    sql = "WITH x(v) AS (VALUES ('p'), ('q')) INSERT INTO t (name) SELECT v FROM x"
    answer = await said(make(tmp_path / "a.db"), "write_rows", "--write", sql=sql)
    assert "2 rows in t" in answer and "more by triggers" not in answer


async def test_generated_columns_are_among_the_columns(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.executescript(
            'CREATE TABLE "odd name" (a, double AS (a * 2), half AS (a / 2) STORED);'
            "CREATE VIRTUAL TABLE f USING fts5 (x)"
        )
    listed = await said(tmp_path / "a.db", "list_tables")
    assert '"odd name" 0 rows: a, double, half' in listed and "f (full-text) 0 rows: x\n" in f"{listed}\n"
    assert "column odd name.double" in await said(tmp_path / "a.db", "search_schema", query="double")
    shown = await said(tmp_path / "a.db", "get_table", table="odd name")
    assert "sqlite://a/odd%20name" in shown


@pytest.mark.share(1)
@pytest.mark.parametrize("quick", [True, False])
async def test_a_check_that_damage_stops_tells_the_damage(tmp_path: Path, quick: bool) -> None:
    path = make(tmp_path / "a.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE big (x); INSERT INTO big SELECT hex(zeroblob(500)) FROM sqlite_master")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    answer = await said(path, "run_check", quick=quick)
    assert answer.startswith("`a` has problems:") and "`run_check`" not in answer and "backup" in answer


@pytest.mark.anyio
async def test_a_full_text_index_out_of_step_is_no_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("""
            CREATE TABLE t (id integer PRIMARY KEY, word text); INSERT INTO t (word) VALUES ('one'), ('two');
            CREATE VIRTUAL TABLE f USING fts5 (word, content = 't', content_rowid = 'id');
            INSERT INTO f (f) VALUES ('rebuild'); DELETE FROM t WHERE id = 1;
        """)
    async with served("--write", path) as wire:
        for tool, arguments in (
            ("query_rows", {"sql": "SELECT * FROM f WHERE f MATCH 'one'"}), ("search_text", {"query": "one"}),
        ):  # fmt: skip
            answer = await wire.call(tool, **arguments)
            assert answer["isError"] and "does not fit its rows" in text_of(answer), text_of(answer)
            assert "damaged" not in text_of(answer)
        await wire.call("write_rows", sql="INSERT INTO f(f) VALUES ('rebuild')")
        assert '["two"]' in text_of(await wire.call("query_rows", sql="SELECT * FROM f WHERE f MATCH 'two'"))
        assert "[0 rows]" in text_of(await wire.call("search_text", query="one"))


@pytest.mark.anyio
async def test_an_index_that_lacks_rows_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("""
            CREATE TABLE t (v text, w text); INSERT INTO t VALUES ('a', 'x'), ('b', NULL); CREATE INDEX i ON t (v);
            PRAGMA writable_schema = 1; UPDATE sqlite_master SET sql = 'CREATE INDEX i ON t (w)' WHERE name = 'i';
        """)
    async with served("--ddl", path) as wire:
        answer = text_of(await wire.call("run_check"))
        assert "row 1 missing from index i" in answer and "`REINDEX` makes" in answer and "backup" not in answer
        await wire.call("edit_schema", sql="REINDEX")
        assert "is whole" in text_of(await wire.call("run_check"))


@pytest.mark.anyio
async def test_rows_that_a_later_rule_forbids_are_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    changed = "CREATE TABLE t (v text NOT NULL, w text CHECK (w <> ''x''))"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"""
            CREATE TABLE t (v text, w text); INSERT INTO t VALUES (NULL, 'x');
            PRAGMA writable_schema = 1; UPDATE sqlite_master SET sql = '{changed}' WHERE name = 't';
        """)
    async with served("--write", path) as wire:
        answer = text_of(await wire.call("run_check"))
        assert "NULL value in t.v" in answer and "Change them." in answer and "backup" not in answer, answer
        await wire.call("write_rows", sql="UPDATE t SET v = '', w = ''")
        assert "is whole" in text_of(await wire.call("run_check"))


@pytest.mark.anyio
async def test_every_mistake_is_answered_with_the_next_move(tmp_path: Path) -> None:
    path = make(tmp_path / "a.db")
    async with Client(build(load(Settings, [str(path)]))) as client:
        for tool, flag in (("write_rows", "--write"), ("edit_schema", "--ddl"), ("copy_to_file", "--files FOLDER")):
            with pytest.raises(MCPError, match=f"`{tool}`: it is turned off. The operator .*`{flag}`"):
                await client.call_tool(tool, {})
        with pytest.raises(MCPError, match="There are: `call_tools`, `list_tables`, `get_table`, "):
            await client.call_tool("xyz", {})
        with pytest.raises(MCPError) as caught:
            await client.call_tool("list_rows", {})
        assert "Did you mean" in str(caught.value) and "write" not in str(caught.value)
    for tool, arguments, words in (
        ("query_rows", {"sql": "SELECT id FROM t JOIN u ON t.id = u.id"}, "Write the table, or its alias, before it"),
        ("query_rows", {"sql": "SELECT * FROM t WHERE"}, "write it to its end"),
        ("query_rows", {"sql": "SELECT 'a"}, "a quote that is not closed"),
        ("list_changes", {}, "Name some as `sqlite://app/orders`"),
    ):
        assert words in await said(path, tool, **arguments)


MAKERS = """
CREATE TABLE maker (maker_id INTEGER PRIMARY KEY, country TEXT NOT NULL UNIQUE, founded INTEGER CHECK (founded > 0));
CREATE TABLE product (product_id INTEGER PRIMARY KEY, made_by REFERENCES maker, price, weight);
CREATE VIEW expensive AS SELECT * FROM product WHERE price > 10;
CREATE INDEX by_price ON product (price);
CREATE TRIGGER logging AFTER DELETE ON product BEGIN SELECT 1; END;
INSERT INTO maker VALUES (1, 'Peru', 1950); INSERT INTO product VALUES (1, 1, 5, 7);
"""


@pytest.mark.share(1)
@pytest.mark.parametrize("seed", range(3))
async def test_a_misspelt_name_is_answered_with_the_one_that_was_meant(tmp_path: Path, seed: int) -> None:
    statements = {
        "query_rows": [
            "SELECT m.<country>, <weight> FROM <maker> m JOIN <product> p ON p.<price> > 1 GROUP BY <founded>",
            "WITH x AS (SELECT <price> FROM <expensive>) SELECT 1 FROM x ORDER BY 1",
        ],
        "write_rows": [
            "INSERT INTO <product> (<price>, <weight>) VALUES (1, 2) RETURNING <product_id>",
            "INSERT INTO maker (country) VALUES ('x') ON CONFLICT (<country>) DO UPDATE SET <founded> = 1",
            "UPDATE <product> SET <price> = <weight> WHERE <product_id> = 1",
            "DELETE FROM <product> WHERE <price> IN (SELECT <founded> FROM <maker>)",
        ],
        "edit_schema": [
            "CREATE INDEX x ON <product> (<price>)", "DROP INDEX <by_price>", "DROP TRIGGER <logging>",
            "DROP VIEW <expensive>", "DROP TABLE <product>", "ALTER TABLE <product> RENAME COLUMN <weight> TO x",
            "ALTER TABLE product DROP COLUMN <weight>", "ALTER TABLE <maker> RENAME TO x",
        ],
    }  # fmt: skip
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.executescript(MAKERS)
    async with served(tmp_path / "a.db", "--write", "--ddl") as wire:
        for tool, several in statements.items():
            for sql, meant in (pair for statement in several for pair in misspelt(statement, seed)):
                answer = text_of(await wire.request("tools/call", {"name": tool, "arguments": {"sql": sql}}))
                question = answer.partition("Did you mean")[2].partition("Tables of")[0]
                assert f"`{meant}`" in question, f"{sql}: {answer}"


async def test_what_sqlite_refuses_is_answered_with_the_next_move(tmp_path: Path) -> None:
    moves = {
        "INSERT INTO product (made_by) VALUES (9)": "has to be there: `product.made_by` to `maker`",
        "DELETE FROM maker": "Delete what points to it before",
        "INSERT INTO maker (founded) VALUES (1)": "Give `maker.country` a value.",
        "INSERT INTO maker (country) VALUES ('Peru')": "ON CONFLICT DO UPDATE SET",
        "INSERT INTO maker VALUES (2, 'Chile', -1)": "pass the check",
        "INSERT INTO maker VALUES ('x', 'Chile', 1)": "whole numbers",
        "INSERT INTO maker VALUES (2, 'Chile')": "`maker` (maker_id, country, founded), `expensive` (",
        "INSERT INTO maker (zzzz) VALUES (1)": "`maker` (maker_id, country, founded), `expensive` (",
        "UPDATE maker SET weight = 1": "It is a column of `expensive`, `product`.",
        "UPDATE maker SET founded = 1 WHERE p.country = 1": "No table of the statement is called `p`.",
        "UPDATE expensive SET price = 1": "Change the tables that it shows",
        "DELETE FROM product WHERE count(*) > 1": "HAVING",
        "UPDATE product SET price = json_extract('{}', 'a')": "begins with `$`",
    }
    shapes = {
        "CREATE TABLE maker (x)": "`search_schema` finds it",
        "ALTER TABLE maker ADD COLUMN country": "`search_schema` finds it",
        "ALTER TABLE maker ADD COLUMN x NOT NULL": "a DEFAULT that is not NULL",
        "ALTER TABLE maker ADD COLUMN x UNIQUE": "CREATE UNIQUE INDEX",
        "ALTER TABLE maker DROP COLUMN country": "Make a new table",
        "ALTER TABLE product DROP COLUMN price": "",
        "DROP INDEX zzzz": "`search_schema` finds those there are",
        "VACUUM": "no statement here can",
    }
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.executescript(MAKERS)
    async with served(tmp_path / "a.db", "--write", "--ddl") as wire:
        for tool, several in (("write_rows", moves), ("edit_schema", shapes), ("explain_query", {"hello": "SELECT"})):
            for sql, move in several.items():
                answer = text_of(await wire.request("tools/call", {"name": tool, "arguments": {"sql": sql}}))
                assert move in answer, f"{sql}: {answer}"


async def test_names_are_spelled_as_a_statement_takes_them(tmp_path: Path) -> None:
    path = tmp_path / "odd.db"
    names = ["Order Items", "Größe", 'a "b"', "select", "plain", "order", "2nd", "a$", "values", "rowid"]
    quoted = [name.replace('"', '""') for name in names]
    columns = ", ".join(f'"{name}" text' for name in quoted)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f'CREATE TABLE "Order Items" ({columns}, up text REFERENCES "Order Items")')
    async with served(path) as wire:
        said = text_of(await wire.call("list_tables"))
        line = next(line for line in said.splitlines() if line.startswith("- "))
        assert line == (
            '- "Order Items" 0 rows: "Order Items" text, Größe text, "a ""b""" text, "select" text, plain text, '
            '"order" text, "2nd" text, "a$" text, "values" text, rowid text, up -> "Order Items"'
        )
        table, _, listed = line.removeprefix("- ").partition(" 0 rows: ")
        selected = ", ".join(column.removesuffix(" text") for column in listed.split(", ")[:-1])
        answer = await wire.call("query_rows", sql=f"SELECT {selected} FROM {table}")
        assert not answer.get("isError"), text_of(answer)
        for sql, said in (
            ("SELECT * FROM order_items", 'Did you mean `"Order Items"`?'),
            ('SELECT order_item FROM "Order Items"', 'Did you mean `"Order Items"`'),
        ):
            assert said in text_of(await wire.call("query_rows", sql=sql)), sql
        said = text_of(await wire.call("query_rows", sql="SELECT value FROM generate_series(1, 10)"))
        recipe = said.partition("`WITH")[2].partition("`")[0]
        assert "[10 rows]" in text_of(await wire.call("query_rows", sql=f"WITH{recipe}")), said


async def test_a_table_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            'CREATE TABLE kunde (id, "Name ""x"""); CREATE VIEW "Alle Kunden" AS SELECT id FROM kunde;'
            "CREATE VIEW broken AS SELECT * FROM gone"
        )
    async with served(path, "--write") as wire:
        for tool, sql in (("query_rows", "SELECT * FROM orders"), ("write_rows", "DELETE FROM orders")):
            said = text_of(await wire.call(tool, sql=sql))
            assert 'Tables of this database: `"Alle Kunden"` (id), `broken`, `kunde` (id, "Name ""x""").' in said, said
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE wide ({', '.join(f'column_{number}' for number in range(90))})")
    async with served(path) as wire:
        said = text_of(await wire.call("query_rows", sql="SELECT * FROM orders"))
        assert '`"Alle Kunden"` (id), `broken`, `kunde` (id, "Name ""x"""), `wide` (90 columns).' in said, said
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("".join(f"CREATE TABLE {letter * 9} (x);" for letter in "abcdefghijklmnopqr"))
    async with served(path) as wire:
        said = text_of(await wire.call("query_rows", sql="SELECT * FROM orders"))
        assert "Tables of" not in said and "`list_tables`" in said, said
        said = text_of(await wire.call("query_rows", sql="SELECT * FROM kunden"))
        assert 'Of its 22 tables: `"Alle Kunden"` (id), `kunde` (id, "Name ""x""").' in said, said


async def test_a_wrong_guess_in_any_tool_is_answered_with_tables_and_columns_and_changes_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(MAKERS)
    before = path.read_bytes()
    tables = (
        "`expensive` (product_id, made_by, price, weight)",
        "`maker` (maker_id, country, founded)",
        "`product` (product_id, made_by, price, weight)",
    )
    first = "UPDATE maker SET country = 'x'; "
    guesses = [
        ("query_rows", "SELECT 1 FROM products"),
        ("query_rows", "SELECT title FROM product"),
        ("query_rows", "SHOW TABLES"),
        ("write_rows", first + "UPDATE products SET price = 1"),
        ("write_rows", first + "UPDATE product SET title = 1"),
        ("write_rows", first + "INSERT INTO product (title) VALUES (1)"),
        ("write_rows", first + "INSERT INTO product VALUES (1)"),
        ("edit_schema", "CREATE TABLE a (b); CREATE INDEX x ON products (price)"),
        ("edit_schema", "CREATE TABLE a (b); CREATE INDEX x ON product (title)"),
    ]
    async with served(path, "--write", "--ddl") as wire:
        for tool, sql in guesses:
            answer = await wire.call(tool, sql=sql)
            assert answer["isError"] and all(table in text_of(answer) for table in tables), text_of(answer)
            answer = await wire.call("run_script", script=f"{tool}({{sql: `{sql}`}})")
            assert answer["isError"] and all(table in text_of(answer) for table in tables), text_of(answer)
        answer = await wire.call("get_table", table="products")
        assert "Did you mean `product`?" in text_of(answer), text_of(answer)
        assert all(table in text_of(answer) for table in tables), text_of(answer)
    assert path.read_bytes() == before
