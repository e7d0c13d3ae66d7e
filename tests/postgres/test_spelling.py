"""A name that is misspelt, and another dialect's word, are answered with the right spelling."""

import re
from pathlib import Path

import anyio
import psycopg
import pytest

from postgres.serving import Base, inside, make, text_of
from sql.misspelt import misspelt

pytestmark = pytest.mark.anyio

TYPOS = {
    "SELECT * FROM custmers": "Did you mean `customers`?",
    "SELECT * FROM customer": "Did you mean `customers`?",
    "SELECT * FROM public.ordrs": "Did you mean `orders`",
    "SELECT * FROM orderlines": 'Did you mean `"OrderLines"`',
    "SELECT * FROM order_lines": 'Did you mean `"OrderLines"`',
    "SELECT * FROM OrderLines": 'Did you mean `"OrderLines"`',
    "SELECT naem FROM customers": "customers.name",
    "SELECT unitprice FROM \"OrderLines\"": '`"unitPrice"`',
    "SELECT lenght(name) FROM customers": "`length`",
    "SELECT * FROM archived": "`far.archived`",
    'SELECT * FROM customers WHERE name = "Bob"': "Text stands in single quotes: 'Bob'.",
    "SELECT ifnull(name, '') FROM customers": "`coalesce(value, other)`",
    "SELECT group_concat(name) FROM customers": "`string_agg(value, ',')`",
    "SELECT strftime('%Y', now())": "`to_char(time, 'YYYY-MM-DD')`",
    "SELECT year(now())": "`extract(year FROM time)`",
    "SELECT datediff(now(), now())": "a - b",
    "SELECT getdate()": "`now()`",
    "SELECT len(name) FROM customers": "`length(text)`",
    "SELECT iif(true, 1, 2)": "`CASE WHEN condition THEN value ELSE other END`",
    "SELECT json_extract('{}', '$.a')": "`column -> 'key'",
    "SELECT CAST(now() AS datetime)": "`timestamptz`",
    "SELECT 'x'::string": "`text`",
    'SELECT * FROM orders WHERE "iid" = 1': "Text stands in single quotes: 'iid'. Perhaps you meant",
    'SELECT "Name" FROM customers': "Did you mean `name`? In quotes its capitals count.",
    "SELECT zzzz FROM customers": "`customers` (id, name)",
    "hello": "queries only: SELECT, WITH",
    "SELECT * FROM order": "Did you mean `orders`",
    "SELECT id, FROM orders": "There is a comma too many before it.",
    "SELECT group FROM kept": '`"group"`',
    "SELCT 1": "Did you mean `SELECT`",
    "SELECT * FORM orders": "`FROM`",
    "-- all\nDELETE FROM orders": "would do more than read: DELETE. `write_rows` does that",
    "CREATE TABLE x ()": "`edit_schema` does that, if the operator started the server with `--ddl`",
    "SELECT TOP 5 * FROM customers": "LIMIT stands at the end",
    "SELECT `name` FROM customers": "by double quotes",
    "SELECT [name] FROM customers": "by double quotes",
    "SELECT * FROM customers LIMIT 5, 10": "LIMIT count OFFSET start",
    "SELECT * FROM customers WHERE name REGEXP 'a'": "matched by ~",
    "SELECT now() - INTERVAL 7 DAY": "interval '7 days'",
    "SELECT id FROM customers MINUS SELECT 1": "EXCEPT",
    "SELECT 1 FROM customers WHERE id == 1": "AND, OR and =",
    "SELECT * FROM customers WITH (NOLOCK)": "readers wait for nobody",
    "SHOW TABLES": "`list_objects` and `get_table`",
    "PRAGMA table_info(customers)": "`list_objects` and `get_table`",
    "SELECT 1; SELECT * FROM custmers": "Did you mean `customers`?",
    "BEGIN": "one transaction", "SET statement_timeout = 0": "No setting outlives a call",
    "COPY customers TO STDOUT": "`copy_to_file`", "DECLARE c CURSOR FOR SELECT 1": "Send the query itself",
    "PREPARE x AS SELECT 1": "`parameters`", "DO 'BEGIN END'": "`--admin`",
    "REFRESH MATERIALIZED VIEW x": "`edit_schema`",
    "SELECT 1 \\gx": "psql's commands", "EXPLAIN QUERY PLAN SELECT 1": "without QUERY PLAN",
    "SELECT * INTO x FROM customers": "CREATE TABLE name AS", "SELECT * FROM customers JOIN orders o": "ON condition",
    "SELECT * FROM customers WHERE id = ?": "Write $1", "SELECT * FROM customers WHERE id = $id": "Write $1",
    "SELECT\u00a01": "plain ones", "SELECT \u2018a\u2019": "quotes are straight",
    "SELECT sum(name) FROM customers": "`sum` takes other types",
    "SELECT round(1.25::float8, 1)": "`round(value::numeric, digits)`",
    'SELECT * FROM "sub/orders.csv"': "`copy_from_file`", "SELECT * FROM orders.json": "`copy_from_file`",
    "SELECT id + 1 AS next FROM orders WHERE next > 1": "`next` names an output",
    "SELECT name, count(*) many FROM customers GROUP BY name HAVING many > 1": "`many` names an output",
    "SELECT sum(amonut) AS amonut FROM orders": "`orders` (id)",
    "SELECT naem FROM customers WHERE naem = 'x'": "customers.name",
    "SELECT date_trunc(month, now())": "date_trunc('month', ...)", "SELECT datediff(day, now(), now())": "a - b",
    "SELECT 1::integr": "`integer`", "SHOW server_versio": "`server_version`",
    "SELECT name.first FROM customers": "`(name).part`", "SELECT current_timestamp()": "have no ()",
    "SELECT * FROM orders WHERE id IN ()": "an array may be empty", "SELECT 'it's'": "written twice: 'it''s'",
    "SELECT count(max(id)) FROM orders": "Aggregate in a subquery", "SELECT id FROM orders WHERE max(id) > 1": "HAVING",
    "SELECT id FROM orders WHERE row_number() OVER () = 1": "filter around that",
    "SELECT name, count(*) FROM customers ORDER BY 2 DESC LIMIT 1": "Add it to GROUP BY",
    "SELECT array_agg(id ORDER BY id DESC LIMIT 3) FROM orders": 'near "LIMIT"` (SQLSTATE 42601), at character 38.',
    "SELECT * FROM orders JOIN customers USING (idd)": "Did you mean `id`?",
    "SELECT now() > '2026-13-01'": "Write a time as '2026-01-31 12:00'.",
    "SELECT DISTINCT name FROM customers ORDER BY id": "GROUP BY in place of DISTINCT",
}  # fmt: skip
FAR = (
    "SELECT ARRAY[1] && ARRAY[id] FROM orders ORDR BY id",
    "SELECT id FROM orders WHERE ARRAY[id] && ARRAY[1, 2] LIMT 3",
    "SELECT a[id] FROM (SELECT ARRAY[1] AS a, id FROM orders) x WHRE id = 1",
    "SELECT 1 AS glob, 2, 3 AS x FRM orders",
    "SELECT id AS minus FROM orders WHERE id = = 1",
    "SELECT 'x' || true FROM orders GRUOP BY 1",
    "SELECT CASE WHEN id > 1 THEN 'TOP 5' EN FROM orders",
    "SELECT 1 /* MINUS */ FROM orders WHERE id = ) 1",
)
"""A syntax error, and far from it something that another dialect has too."""
RIGHT = (
    "SELECT '`' || 'TOP 5' || 'LIMIT 1, 2' AS \"MINUS\"", "SELECT ARRAY[[1,2],[3,4]] && ARRAY[[1,2]]",
    "SELECT name ILIKE 'b%' FROM customers", "\ufeffSELECT 1", "BEGIN READ ONLY; SELECT 1; COMMIT;",
    "START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; SELECT 1; SELECT 2; END",
    "BEGIN READ ONLY; SELECT 1; ROLLBACK", "START TRANSACTION; SELECT 1", "BEGIN; SELECT 1; SELECT 2; ABORT WORK",
    "SELECT '{\"a\": 1}'::jsonb ? 'a', '\u2018'", "SELECT extract(year FROM now())::int > 2000",
)  # fmt: skip


async def test_what_was_meant_is_said() -> None:
    base = make(
        "CREATE TABLE customers (id integer, name text); CREATE TABLE orders (id integer);"
        'CREATE TABLE kept (id integer, "group" text);'
        'CREATE TABLE "OrderLines" (id integer, "unitPrice" numeric); CREATE SCHEMA far; CREATE TABLE far.archived ()'
    )
    for role in ("owner", "postgres"):
        async with inside("--write", f"app={base.url(role)}") as wire:
            for sql, words in TYPOS.items():
                # Where the role could do harm, statements of the server's own have no path to `public`.
                said = text_of(await wire.call("query_rows", sql=sql)).replace("`public.", "`")
                assert words in said and (" DESC " not in sql or "list_objects" not in said), f"{sql}: {said}"
            for sql in FAR:
                said = text_of(await wire.call("query_rows", sql=sql))
                assert "syntax error" in said and "In PostgreSQL:" not in said, f"{sql}: {said}"
            assert "[7]" in text_of(await wire.call("query_rows", query="SELECT 7"))
            for sql in RIGHT:
                assert not (await wire.call("query_rows", sql=sql))["isError"], sql
            said = text_of(await wire.call("write_rows", sql="INSERT INTO orders VALUES (1); DELETE FROM custmers"))
            assert "Statement 2 of 2 failed" in said and "customers`?" in said, said
            said = text_of(await wire.call("write_rows", sql="INSERT OR REPLACE INTO orders VALUES (1)"))
            assert "ON CONFLICT (key)" in said, said
            said = text_of(await wire.call("write_rows", sql="INSERT INTO orders SELECT id frm customers"))
            assert "`FROM`" in said, said
            assert "orders`" in text_of(await wire.call("explain_query", sql="SELECT * FROM oders"))
            assert "customers`?" in text_of(await wire.call("get_table", table="custmers"))
            assert "Seq Scan on" in text_of(await wire.call("explain_query", sql="EXPLAIN SELECT * FROM orders"))


async def test_a_value_of_another_shape_is_answered_with_the_one_to_send() -> None:
    base = make("CREATE TYPE pair AS (a integer, b text); CREATE TABLE t (id integer, pair pair, doc jsonb)")
    async with inside(base.url("owner")) as wire:
        for sql, value, words in (
            ("SELECT $1::jsonb", [1, 2], 'as its text, such as "[1, 2]"'),
            ("SELECT $1::jsonb", "word", 'as its text, such as "[1, 2]"'),
            ("SELECT $1::pair", {"a": 1}, "`(1,word)`"),
            ("SELECT $1::integer", {"a": 1}, "Send a value of that type."),
            ("SELECT 1 WHERE 'x' = $1::integer::text", ["a"], "= ANY ($1)"),
            ("SELECT $1::text", "a\0", "holds a NUL character"),
            ("SELECT (pair).z, $1::text FROM t", "", "`list_objects` with `kind` types"),
        ):
            said = text_of(await wire.call("query_rows", sql=sql, parameters=[value]))
            assert words in said, f"{sql}: {said}"


MAKERS = """
CREATE TABLE maker (maker_id integer PRIMARY KEY, country text NOT NULL UNIQUE, founded integer CHECK (founded > 0));
CREATE TABLE product (product_id integer PRIMARY KEY, made_by integer REFERENCES maker, price integer, weight integer);
CREATE VIEW expensive AS SELECT * FROM product WHERE price > 10;
CREATE INDEX by_price ON product (price);
CREATE SEQUENCE numbering;
INSERT INTO maker VALUES (1, 'Peru', 1950); INSERT INTO product VALUES (1, 1, 5, 7);
"""
NAMED = {
    "query_rows": [
        "SELECT m.<country>, p.<weight> FROM <maker> m JOIN <product> p ON p.<price> > 1 GROUP BY m.<founded>",
        "WITH x AS (SELECT <price> FROM <expensive>) SELECT 1 FROM x ORDER BY 1",
    ],
    "write_rows": [
        "INSERT INTO <product> (<price>, <weight>) VALUES (1, 2) RETURNING <product_id>",
        "INSERT INTO maker (country) VALUES ('x') ON CONFLICT (<country>) DO UPDATE SET <founded> = 1",
        "UPDATE <product> SET <price> = <weight> WHERE <product_id> = 1",
        "DELETE FROM <product> WHERE <price> IN (SELECT <founded> FROM <maker>)",
    ],
    "edit_schema": [
        "CREATE INDEX x ON <product> (<price>)", "DROP INDEX <by_price>", "DROP VIEW <expensive>",
        "DROP TABLE <product>", "ALTER TABLE <product> RENAME COLUMN <weight> TO x", "DROP SEQUENCE <numbering>",
        "ALTER TABLE product DROP COLUMN <weight>", "ALTER TABLE <maker> RENAME TO x",
        "COMMENT ON COLUMN product.<weight> IS 'x'", "ALTER TABLE product ALTER <weight> SET NOT NULL",
        "CREATE TABLE x (a integer REFERENCES <maker>, b integer REFERENCES maker (<country>))",
    ],
}  # fmt: skip
MOVES = {
    "INSERT INTO product (product_id, made_by) VALUES (2, 9)": "Insert what it points to first",
    "DELETE FROM maker": "delete what points to it",
    "INSERT INTO maker (founded) VALUES (1)": "Give it a value.",
    "INSERT INTO maker VALUES (2, 'Peru', 1)": "ON CONFLICT DO UPDATE SET",
    "INSERT INTO maker VALUES (2, 'Chile', -1)": "It is CHECK (founded > 0).",
    "INSERT INTO maker (nothing) VALUES (1)": "`maker` (maker_id, country, founded)",
    "INSERT INTO maker VALUES ('x', 'Chile', 1)": "a value of that type",
    "UPDATE product SET price = 1 / 0": "nullif(b, 0)",
    "UPDATE product SET price = 99999999999": "choose a larger type",
    "DELETE FROM product WHERE now() > 'yesterdayy'": "'2026-01-31 12:00'",
}
SHAPES = {
    "CREATE TABLE maker (x int)": "`search_schema` finds it",
    "ALTER TABLE maker ADD COLUMN country text": "`search_schema` finds it",
    "DROP INDEX zzzz": "`search_schema`",
    "ALTER TABLE maker ADD COLUMN x integer NOT NULL": "Give it a DEFAULT",
}


@pytest.mark.parametrize("seed", range(2))
async def test_a_misspelt_name_is_answered_with_the_one_that_was_meant(seed: int) -> None:
    base = make(MAKERS)
    async with inside("--write", "--ddl", f"app={base.url('owner')}") as wire:
        for tool, several in NAMED.items():
            for sql, meant in (pair for statement in several for pair in misspelt(statement, seed)):
                answer = text_of(await wire.call(tool, sql=sql)).partition("Tables of")[0]
                said = answer.replace('"', "`").replace(".", "`")
                asked = said.partition("Did you mean")[2] or said.partition("Perhaps you meant")[2]
                assert f"`{meant}`" in asked, f"{sql}: {said}"


async def test_what_postgresql_refuses_is_answered_with_the_next_move() -> None:
    base = make(MAKERS)
    async with inside("--write", "--ddl", f"app={base.url('owner')}") as wire:
        grouped = {"SELECT country, count(*) FROM maker": "Add it to GROUP BY"}
        for tool, several in (("query_rows", grouped), ("write_rows", MOVES), ("edit_schema", SHAPES)):
            for sql, move in several.items():
                said = text_of(await wire.call(tool, sql=sql))
                assert move in said, f"{sql}: {said}"


REFUSED_READS = {
    "SET search_path TO app; SELECT 1": "Name tables with their schemas",
    "SET statement_timeout = '60s'; SELECT 1": "`--timeout`",
    "SET default_transaction_read_only = off; SELECT 1": "`write_rows`",
    "USE app": "`database` says which one",
    "CREATE TEMP TABLE x AS SELECT 1": "Write WITH name AS",
    "SELECT * INTO TEMPORARY x FROM maker": "Write WITH name AS",
    "CREATE TABLE temp AS SELECT 1": "`edit_schema` does that",
    "SELECT currval('maker_id_seq')": "SELECT last_value FROM the sequence",
}
REFUSED_FUNCTIONS = {
    "pg_read_file('x')": ("reaches beyond the database", "No tool reaches files"),
    "lo_import('/x')": ("reaches beyond the database", "No tool reaches files"),
    "pg_reload_conf()": ("reaches beyond the database", "no tool does that"),
    "pg_promote()": ("reaches beyond the database", "no tool does that"),
    "nextval('maker_id_seq')": ("`write_rows` changes rows", "`write_rows` does that"),
}
"""Calls that nobody may make by reading: the way on for a role without powers, and for a superuser."""


async def test_what_no_reader_may_names_a_way_that_is_open_to_it() -> None:
    base = make("CREATE TABLE maker (id serial PRIMARY KEY)")
    for number, role in enumerate(("owner", "postgres")):
        async with inside(f"app={base.url(role)}") as wire:
            for sql, move in REFUSED_READS.items():
                said = text_of(await wire.call("query_rows", sql=sql))
                assert move in said, f"{sql}: {said}"
            for call, moves in REFUSED_FUNCTIONS.items():
                said = text_of(await wire.call("query_rows", sql=f"SELECT {call}"))
                assert moves[number] in said and "--create-reader" not in said, f"{call}: {said}"


async def test_a_function_of_somebody_that_is_closed_can_be_granted() -> None:
    base = make("CREATE FUNCTION lo_rate() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    base.run("REVOKE ALL ON FUNCTION lo_rate() FROM PUBLIC")
    async with inside(f"app={base.url()}") as wire:
        assert "The operator can grant it." in text_of(await wire.call("query_rows", sql="SELECT lo_rate()"))


async def test_a_change_that_ends_in_rollback_is_only_tried() -> None:
    base = make("CREATE TABLE maker (id integer PRIMARY KEY); INSERT INTO maker VALUES (1)")
    async with inside("--write", "--ddl", f"app={base.url('owner')}") as wire:
        for tool, sql in (
            ("write_rows", "BEGIN; DELETE FROM maker; ROLLBACK"),
            ("write_rows", "START TRANSACTION; DELETE FROM maker; ABORT TRANSACTION;"),
            ("edit_schema", "BEGIN; DROP TABLE maker; ROLLBACK"),
        ):
            said = text_of(await wire.call(tool, sql=sql))
            assert said.startswith("Dry run, nothing was changed."), said
        for sql in ("DELETE FROM maker; ROLLBACK", "BEGIN; DELETE FROM maker", "ROLLBACK"):
            assert "nothing was changed" in text_of(await wire.call("write_rows", sql=sql)) or sql == "ROLLBACK"
        assert base.rows("SELECT count(*) FROM maker") == [(1,)]
        assert text_of(await wire.call("write_rows", sql="BEGIN; DELETE FROM maker; COMMIT")).startswith("Done")
    assert base.rows("SELECT count(*) FROM maker") == [(0,)]


TYPES = """
CREATE DOMAIN email AS text CHECK (VALUE LIKE '%@%');
CREATE DOMAIN sure AS integer NOT NULL;
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE TABLE people (id integer PRIMARY KEY, mail email, mood mood, age integer CHECK (age > 0));
CREATE TABLE days (day date) PARTITION BY RANGE (day);
CREATE TABLE days_2026 PARTITION OF days FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
"""
LOOKS: dict[str, tuple[str, dict[str, str], str]] = {
    "INSERT INTO people (id, mail) VALUES (1, 'x')": ("`list_objects` with `kind` types", {"kind": "types"}, "%@%"),
    "SELECT NULL::sure": ("`list_objects` with `kind` types", {"kind": "types"}, "NOT NULL"),
    "INSERT INTO days VALUES ('2030-01-01')": ("`get_table` shows the partitions", {"table": "days"}, "'2027-01-01'"),
    "INSERT INTO days_2026 VALUES ('2030-01-01')": ("`get_table`", {"table": "days_2026"}, "'2027-01-01'"),
}
"""What PostgreSQL refuses: the tool that is named, what it is called with, and what it then shows."""


async def test_a_refused_value_is_answered_with_the_rule_itself() -> None:
    base = make(TYPES)
    rules = {
        "INSERT INTO people (id, mood) VALUES (1, 'x')": "Its values are 'sad', 'happy'.",
        "SELECT 1; UPDATE people SET mood = 'x'": "Its values are 'sad', 'happy'.",
        "INSERT INTO people VALUES (1, 'a@b', 'sad', 0)": "It is CHECK (age > 0).",
    }
    async with inside("--write", base.url("owner")) as wire:
        for sql, rule in rules.items():
            said = text_of(await wire.call("write_rows", sql=sql))
            assert rule in said, said
        assert rules[sql] not in text_of(await wire.call("query_rows", sql="SELECT 'x'::mood"))
    async with inside("--write", "--mask", "public.people.age", f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("write_rows", sql=sql))
        assert "age > 0" not in said, said
    base.run("CREATE SCHEMA other; CREATE TYPE other.mood AS ENUM ('blue')")
    async with inside(base.url("owner")) as wire:
        said = text_of(await wire.call("query_rows", sql="SELECT 'x'::public.mood"))
        assert "blue" not in said and "`get_table`" in said, said


async def test_the_tool_that_an_error_names_shows_what_it_promises() -> None:
    base = make(TYPES)
    async with inside("--write", base.url("owner")) as wire:
        for sql, (named, arguments, shown) in LOOKS.items():
            said = text_of(await wire.call("write_rows", sql=sql))
            assert named in said, f"{sql}: {said}"
            tool = "get_table" if "table" in arguments else "list_objects"
            assert shown in text_of(await wire.call(tool, **arguments)), sql


async def test_rights_to_columns_are_shown_and_told_where_the_table_is_denied() -> None:
    base = make(
        'CREATE TABLE people (id integer PRIMARY KEY, "full name" text, secret text);'
        "CREATE TABLE hidden (id integer); INSERT INTO people VALUES (1, 'Bo', 's')"
    )
    base.run('REVOKE ALL ON people, hidden FROM reader; GRANT SELECT (id, "full name") ON people TO reader', "owner")
    told = 'Of its columns the role may read id, "full name".'
    async with inside(base.url("reader")) as wire:
        assert 'reader: select of id, "full name"' in text_of(await wire.call("get_table", table="people"))
        assert told in text_of(await wire.call("get_table", table="people", sample=1))
        for sql in ("SELECT * FROM people", "SELECT secret FROM public.people", "SELECT * FROM people; SELECT 1"):
            said = text_of(await wire.call("query_rows", sql=sql))
            assert "permission denied" in said and told in said, said
        assert "The operator can grant it." in text_of(await wire.call("query_rows", sql="SELECT * FROM hidden"))
        assert "Bo" in text_of(await wire.call("query_rows", sql='SELECT id, "full name" FROM people'))


async def test_text_that_is_no_utf_8_is_read_as_the_error_says() -> None:
    base = Base("bytes_of_old")
    with Base("postgres").connect() as connection:
        connection.execute(f"CREATE DATABASE {base.name} ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'".encode())
    base.run("CREATE TABLE t (name text); INSERT INTO t VALUES (E'Z\\374rich'); GRANT SELECT ON t TO PUBLIC")
    with psycopg.connect(base.url("postgres"), autocommit=True, client_encoding="SQL_ASCII") as connection:
        connection.execute(
            b'CREATE TABLE "stra\xdfe" (id integer, "Ma\xdf" text); GRANT SELECT ON "stra\xdfe" TO PUBLIC'
        )
    async with inside(base.url("reader")) as wire:
        said = text_of(await wire.call("query_rows", sql="SELECT name FROM t"))
        assert '["Z�rich"]' in said and "[� stands for bytes that are not UTF-8." in said, said
        way = said.partition("is read by ")[2].partition(".]")[0]
        assert "Zürich" in text_of(await wire.call("query_rows", sql=f"SELECT {way} FROM t"))
        # One odd name hides none of the others.
        listed = text_of(await wire.call("list_objects"))
        assert "- public.t " in listed and '"Ma�" text' in listed, listed
        assert "public.t.name text" in text_of(await wire.call("search_schema", query="name"))
        assert "- name: text" in text_of(await wire.call("get_table", table="t"))


async def test_connections_that_are_opened_together_read_text_that_is_no_utf_8() -> None:
    base = Base("bytes_together")
    with Base("postgres").connect() as connection:
        connection.execute(f"CREATE DATABASE {base.name} ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'".encode())
    base.run("CREATE TABLE t (name text); INSERT INTO t VALUES (E'Z\\374rich'); GRANT SELECT ON t TO PUBLIC")
    answers: list[str] = []

    async def query() -> None:
        # Each takes so long that the next needs a connection of its own.
        sql = "SELECT name FROM t, pg_sleep(0.2)"
        answers.append(text_of(await wire.call("query_rows", sql=sql)))

    async with inside(base.url("reader")) as wire, anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(query)
    assert all('["Z�rich"]' in said for said in answers), answers


async def test_a_database_in_another_encoding_is_read_in_every_way(tmp_path: Path) -> None:
    base = Base("letters_of_old")
    with Base("postgres").connect() as connection:
        connection.execute(f"CREATE DATABASE {base.name} ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'".encode())
    labels = ", ".join(f"'label {number}'" for number in range(20))
    with psycopg.connect(base.url("postgres"), autocommit=True, client_encoding="UTF8") as connection:
        connection.execute(
            f"""CREATE TYPE state AS ENUM ({labels}); CREATE TABLE t (id integer PRIMARY KEY, "größe" text, s state);
            INSERT INTO t VALUES (1, 'Zürich', 'label 3'); GRANT SELECT ON t TO PUBLIC;
            CREATE TABLE parent (id integer); GRANT SELECT ON parent TO PUBLIC""".encode()
        )
        for number in range(60):
            connection.execute(f"CREATE TABLE child{number} () INHERITS (parent)".encode())
    async with inside("--files", tmp_path, "--dba", base.url("postgres")) as wire:
        assert "größe" in text_of(await wire.call("list_objects", name="t"))
        assert "child1" in text_of(await wire.call("get_table", table="parent"))
        assert '[1,"Zürich","label 3"]' in text_of(await wire.call("get_table", table="t", sample=1))
        assert "Zürich" in await wire.read(f"postgres://{base.name}/public/t?column=gr%C3%B6%C3%9Fe&value=Z%C3%BCrich")
        assert "größe" in await wire.read(f"postgres://{base.name}/.schema")
        for tool in ("get_health", "list_sessions", "list_settings"):
            said = await wire.call(tool)
            assert not said.get("isError"), text_of(said)
        for name in ("out.csv", "out.jsonl", "out.parquet"):
            said = await wire.call("copy_to_file", sql="SELECT * FROM t", file=name)
            assert not said.get("isError"), text_of(said)
    async with inside("--files", tmp_path, "--mask", "public.t.größe", base.url("postgres")) as wire:
        said = await wire.call("copy_to_file", sql="SELECT * FROM t", file="masked.csv")
        assert (tmp_path / "masked.csv").read_text().splitlines()[1] == "1,***,label 3", text_of(said)


async def test_no_byte_is_replaced_in_a_file(tmp_path: Path) -> None:
    base = Base("bytes_to_file")
    with Base("postgres").connect() as connection:
        connection.execute(f"CREATE DATABASE {base.name} ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'".encode())
    base.run("CREATE TABLE t (name text); INSERT INTO t VALUES (E'Z\\374rich'), ('Zürich')")
    async with inside("--files", tmp_path, base.url("postgres")) as wire:
        for name in ("out.csv", "out.jsonl", "out.parquet"):
            said = text_of(await wire.call("copy_to_file", sql="SELECT * FROM t", file=name))
            assert "SQL_ASCII" in said and not (tmp_path / name).exists(), said
            said = text_of(await wire.call("copy_to_file", sql="SELECT * FROM t WHERE name LIKE 'Zü%'", file=name))
            assert "1 row" in said, said


async def test_odd_names_are_quoted_wherever_they_are_written() -> None:
    base = make(
        'CREATE SCHEMA "Sales Dept";'
        'CREATE TABLE "Sales Dept"."Order Items" (id integer PRIMARY KEY, "Unit Price" integer);'
        'CREATE TABLE "select" ("from" integer); CREATE POLICY "My Rule" ON "select" TO owner'
    )
    mistakes = (
        ("SELECT * FROM Order Items", '`"Sales Dept"."Order Items"`'),
        ("SELECT * FROM order_items", '`"Sales Dept"."Order Items"`'),
        ('SELECT unit_price FROM "Sales Dept"."Order Items"', '`"Unit Price"`'),
        ("SELECT * FROM select", '`"select"`'),
        ('SELECT from FROM "select"', '`"from"`'),
    )
    async with inside(base.url("owner")) as wire:
        for sql, name in mistakes:
            said = text_of(await wire.call("query_rows", sql=sql))
            assert name in said, said
        assert '- "Order Items_pkey": PRIMARY KEY' in text_of(await wire.call("get_table", table="Order Items"))
        assert '- "My Rule" for ALL to owner' in text_of(await wire.call("get_table", table="select"))


async def test_a_statement_that_is_too_long_is_told_what_takes_more() -> None:
    async with inside(make().url()) as wire:
        said = text_of(await wire.call("query_rows", sql="SELECT " + "1" * 100_000))
        assert "`parameters`" in said and "`copy_from_file`" in said, said


async def test_a_comparison_says_that_policies_hide_rows() -> None:
    base = make(
        "CREATE TABLE a (id integer PRIMARY KEY); CREATE TABLE b (id integer PRIMARY KEY);"
        "INSERT INTO a VALUES (1); INSERT INTO b VALUES (1), (2); ALTER TABLE b ENABLE ROW LEVEL SECURITY;"
        "CREATE POLICY few ON b FOR SELECT USING (id < 2)"
    )
    hides = "[of b only the rows that its policies show to the role]"
    for role, said in (("reader", f"{hides}\nNo row differs."), ("owner", "only in b: 1 row")):
        async with inside(base.url(role)) as wire:
            found = text_of(await wire.call("get_table", table="a", compare_with="b")).replace("public.", "")
            assert said in found, found
            assert (hides in found) == (role == "reader")


async def test_a_name_without_its_schema_means_the_same_in_all_tools(tmp_path: Path) -> None:
    base = make(
        "CREATE SCHEMA early; CREATE SCHEMA late; CREATE TABLE early.one (wrong integer);"
        "CREATE TABLE one (id integer); CREATE TABLE early.other (id integer); CREATE TABLE late.other (id integer)"
    )
    (tmp_path / "one.csv").write_text("id\n7\n")
    for role in ("owner", "postgres"):
        async with inside("--write", "--files", tmp_path, f"app={base.url(role)}") as wire:
            assert "table public.one," in text_of(await wire.call("get_table", table="one")), role
            assert "public" in text_of(await wire.call("query_rows", sql="SHOW search_path"))
            said = text_of(await wire.call("copy_from_file", file="one.csv", table="one"))
            assert "Inserted 1 row" in said, said
            said = text_of(await wire.call("query_rows", sql="SELECT * FROM other"))
            assert "Did you mean `early.other` or `late.other`?" in said, said
            said = text_of(await wire.call("query_rows", sql="SELECT wrong FROM public.one"))
            assert "`one` (id)" in said or "`public.one` (id)" in said, said
            for tool, more in (("get_table", {}), ("copy_from_file", {"file": "one.csv"})):
                said = text_of(await wire.call(tool, table="other", **more))
                assert "Name one of them: `early.other`, `late.other`." in said, said
    assert base.rows("SELECT count(*), (SELECT count(*) FROM early.one) FROM one") == [(2, 0)]


async def test_vectors_are_sent_as_text_and_searched_as_far_as_asked() -> None:
    base = make("CREATE TABLE docs (id integer PRIMARY KEY); INSERT INTO docs VALUES (1)")
    base.run("CREATE EXTENSION vector; ALTER TABLE docs ADD at vector(3); UPDATE docs SET at = '[1,2,3]'")
    sql = "SELECT id FROM docs ORDER BY at <=> $1 LIMIT 1"
    for role in ("reader", "postgres"):
        async with inside(base.url(role)) as wire:
            assert '"[0.1, 0.2]"' in text_of(await wire.call("query_rows", sql=sql, parameters=[[1, 2, 3]]))
            assert "`get_table`" in text_of(await wire.call("query_rows", sql=sql, parameters=["[1,2]"]))
            for setting in ("hnsw.ef_search = 100", "ivfflat.probes = 10"):
                said = text_of(await wire.call("query_rows", sql=f"SET {setting}; {sql}", parameters=["[1,2,3]"]))
                assert "[1]" in said, said


async def test_names_that_sql_reads_otherwise_are_told_with_their_quotes() -> None:
    base = make('CREATE TABLE "user" (id integer); CREATE TABLE "Order.Items" (id integer)')
    async with inside(base.url("owner")) as wire:
        assert 'in quotes: `"user"`' in text_of(await wire.call("query_rows", sql="SELECT id FROM user"))
        assert 'Did you mean `"Order.Items"`?' in text_of(await wire.call("get_table", table="order.items"))
        assert "Did you mean `user`" not in text_of(await wire.call("get_table", table="nowhere.users"))


async def test_a_table_that_is_not_there_is_answered_with_those_that_are() -> None:
    base = make(
        'CREATE TABLE kunde (id integer, "Name" text); CREATE TABLE days (day date) PARTITION BY RANGE (day);'
        "CREATE TABLE days_1 PARTITION OF days FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')"
    )
    async with inside("--write", f"app={base.url('owner')}") as wire:
        for tool, sql in (("query_rows", "SELECT * FROM orders"), ("write_rows", "DELETE FROM orders")):
            said = text_of(await wire.call(tool, sql=sql))
            assert re.search(
                r'Tables of this database: `(public\.)?days` \(day\), `(public\.)?kunde` \(id, "Name"\)\.', said
            ), said
        said = text_of(await wire.call("query_rows", sql="SELECT o.id FROM kunde k"))
        assert "Tables of" not in said, said
        base.run("CREATE EXTENSION pg_stat_statements")
        base.run("CREATE TABLE secret (pay integer)")
        said = text_of(await wire.call("query_rows", sql="SELECT * FROM orders"))
        assert "kunde" in said and "pg_stat" not in said and "secret" not in said, said
        base.run("".join(f"CREATE TABLE {letter * 9} (x integer);" for letter in "abcdefghijklmnopqrstu"), "owner")
        said = text_of(await wire.call("query_rows", sql="SELECT * FROM orders"))
        assert "Tables of" not in said and "`search_schema`" in said, said
        for sql in ("SELECT * FROM kunden", "SELECT n FROM kunde"):
            said = text_of(await wire.call("query_rows", sql=sql))
            assert re.search(r'Of its \d+ tables: `(public\.)?kunde` \(id, "Name"\)\.', said), said


async def test_a_wrong_guess_in_any_tool_is_answered_with_tables_and_columns_and_changes_nothing() -> None:
    base = make(MAKERS)
    tables = ("maker` (maker_id, country, founded)", "product` (product_id, made_by, price, weight)")
    first = "UPDATE maker SET country = 'x'; "
    guesses = [
        ("query_rows", "SELECT 1 FROM products"),
        ("query_rows", "SELECT title FROM product"),
        ("query_rows", "SELECT proice FROM product"),
        ("write_rows", first + "UPDATE products SET price = 1"),
        ("write_rows", first + "UPDATE product SET title = 1"),
        ("write_rows", first + "INSERT INTO product (title) VALUES (1)"),
        ("edit_schema", "CREATE TABLE a (b int); CREATE INDEX x ON products (price)"),
        ("edit_schema", "CREATE TABLE a (b int); CREATE INDEX x ON product (title)"),
    ]
    state = "SELECT country FROM maker ORDER BY 1", "SELECT count(*) FROM pg_class"
    before = [base.rows(sql) for sql in state]
    async with inside("--write", "--ddl", f"app={base.url('owner')}") as wire:
        for tool, sql in guesses:
            for name, arguments in ((tool, {"sql": sql}), ("run_script", {"script": f"{tool}({{sql: `{sql}`}})"})):
                answer = await wire.call(name, **arguments)
                assert answer["isError"] and all(table in text_of(answer) for table in tables), text_of(answer)
        answer = await wire.call("get_table", table="products")
        assert "Did you mean `product`?" in text_of(answer), text_of(answer)
        assert all(table in text_of(answer) for table in tables), text_of(answer)
    assert [base.rows(sql) for sql in state] == before
