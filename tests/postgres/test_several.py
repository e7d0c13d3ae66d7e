"""Several statements in one call: told apart as PostgreSQL does it, all of one moment, each with its result."""

import random
import re
from typing import Any

import anyio
import psycopg
import pytest

from mcp_postgres.statement_splitter import split_statements, strip_leading_comments
from postgres.serving import inside, make, text_of

PIECES = (
    "'a;b'", "'it''s;'", "E'\\';'", "E'\\\\'", "$$;$$", "$a$ $$;$$ ; $a$", "$ä1$;$ä1$", '"a;b"', '"q"";"', "(1)",
    "((';'))",
    "/* ; */ 1", "/* /* ; */ ' */ 2", "-- ; '\n3", "'a'\n'b;'", "U&'\\0041;'", "B'101'", "1::int4", "ARRAY[1,2]",
    "n1.\"x;\"",
    "a$b$c", "$1", "e1", "'\\'", "--\n''", "CASE WHEN true THEN ';' END", "X'1F'", "1e5", "N'x;'", "'$$'", "1--;\n",
)  # fmt: skip
BODY = """CREATE FUNCTION made(a integer) RETURNS integer LANGUAGE sql
BEGIN ATOMIC SELECT 1; SELECT CASE WHEN a > 1 THEN 2 ELSE 3 END; END"""


def test_statements_are_told_apart_as_postgresql_does() -> None:
    """PostgreSQL itself says of each part whether it is one statement, and of the whole how many there are."""
    base, chance = make(), random.Random(5)
    with base.connect() as connection:
        tried = 0
        for _ in range(1500):
            written = [
                "SELECT " + ", ".join(f"{chance.choice(PIECES)} AS c" for _ in range(chance.randint(1, 4)))
                for _ in range(chance.randint(1, 5))
            ]
            good = [text for text in written if runs(connection, text)]
            if not good:
                continue
            ends = [chance.choice((";", " ;", "; ;", "\n;\n", "; -- ;\n", ";/* ; */")) for _ in good]
            sql = "".join(text + ("\n" if "--" in text else "") + end for text, end in zip(good, ends, strict=True))
            found = split_statements(sql)
            assert len(found) == len(good), sql
            for part, text in zip(found, good, strict=True):
                assert runs(connection, part) and part.endswith(text.strip()), (sql, part)
            tried += 1
        print(f"{tried} texts")
        assert tried > 500


def runs(connection: psycopg.Connection[Any], sql: str) -> bool:
    """Whether PostgreSQL takes `sql` for one statement, by the protocol that takes no more."""
    try:
        connection.cursor().execute(f"PREPARE one AS {sql}".encode(), binary=True)
        connection.execute("DEALLOCATE one")
    except psycopg.Error:
        return False
    return True


def test_bodies_and_comments() -> None:
    assert split_statements(f"{BODY}; SELECT 1; {BODY.replace('FUNCTION', 'OR REPLACE FUNCTION')};") == [
        BODY, "SELECT 1", BODY.replace("FUNCTION", "OR REPLACE FUNCTION"),
    ]  # fmt: skip
    rule = "CREATE RULE r AS ON INSERT TO t DO ALSO (SELECT 1; SELECT 2)"
    assert split_statements(f"{rule};BEGIN;END") == [rule, "BEGIN", "END"]
    assert split_statements(" ; ;-- x") == [] == split_statements("") and split_statements("SELECT 1 /* open ;") == [
        "SELECT 1 /* open ;"
    ]
    assert (
        strip_leading_comments("-- a\n/* b /* c */ */ CREATE TABLE x ()") == "CREATE TABLE x ()"
        and strip_leading_comments("--") == ""
    )


@pytest.mark.anyio
async def test_each_has_its_result_of_one_moment() -> None:
    base = make()
    async with inside(f"app={base.url('owner')}") as wire:

        async def ask(sql: str, **more: Any) -> str:
            return text_of(await wire.call("query_rows", sql=sql, **more))

        said = await ask(
            "SELECT $1::int + 1; SELECT nope FROM t; EXPLAIN SELECT 1; SHOW work_mem;"
            "SELECT name FROM t WHERE id = $1 OR id = $2 ORDER BY 1",
            parameters=[[41], None, None, None, [1, 2]],
        )
        assert [line.partition(":")[0] for line in said.split("\n") if " of 5: " in line] == [
            f"{number} of 5" for number in range(1, 6)
        ]
        assert "[42]" in said and 'failed: `column "nope" does not exist`' in said and '["a"]\n["b"]' in said
        # A long result takes what the short ones leave, and goes on by a cursor of its own.
        said = await ask("SELECT 1; SELECT repeat('x', 90) FROM generate_series(1, 500)", max_bytes=20_000, limit=1000)
        assert 150 < said.count('xxx"]') < 220, said.count("xxx")
        cursor = re.findall(r"cursor=([\w-]+)", said)[0]
        assert "xxx" in text_of(await wire.call("query_rows", cursor=cursor))
        for refused in ("SELECT 1; SELECT 2", "; ".join(["SELECT 1"] * 21)):
            result = await wire.call("query_rows", sql=refused, parameters=[[1]])
            assert result["isError"], text_of(result)
        said = await ask("SELECT 1; INSERT INTO t VALUES (9, 'x'); COMMIT; INSERT INTO t VALUES (9, 'x')")
        assert said.count("failed: ") == 3 and base.rows("SELECT count(*) FROM t") == [(3,)]
        async with anyio.create_task_group() as tasks:
            moment = "SELECT count(*) FROM t; SELECT pg_sleep(0.5); SELECT count(*) FROM t"

            async def read() -> None:
                assert (await ask(moment)).count("[3]") == 2

            tasks.start_soon(read)
            asleep = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
            with anyio.fail_after(20):
                while base.rows(asleep) != [(1,)]:
                    await anyio.sleep(0.01)
            base.run("INSERT INTO t VALUES (4, 'd')")
        assert "[4]" in await ask("SELECT count(*) FROM t")


@pytest.mark.anyio
async def test_what_stands_behind_a_statement_that_was_stopped_has_time_left() -> None:
    base = make()
    async with inside("--timeout", 2, f"app={base.url('reader')}") as wire:
        said = text_of(
            await wire.call("query_rows", sql="SELECT pg_sleep(600); SELECT 43 FROM pg_sleep(0.1); SELECT 5")
        )
        assert "stopped at its time limit" in said and "[43]" in said and "[5]" in said, said


@pytest.mark.anyio
async def test_a_refusal_of_one_is_one_of_all() -> None:
    base = make()
    async with inside(f"app={base.url('postgres')}") as wire:
        result = await wire.call("query_rows", sql="SELECT 1; SELECT writer(); SELECT 2")
        assert result["isError"] and text_of(result).startswith("2 of 3: The role is a superuser"), text_of(result)
        said = text_of(await wire.call("query_rows", sql="SELECT 1; SELECT id FROM t; SELECT 'x'"))
        assert "not all of the same state of the data" in said and said.count("3 of 3: [1 row]") == 1
        said = text_of(await wire.call("query_rows", sql="SELECT nope; SELECT id FROM t; SELECT 'x'"))
        assert "2 of 3: [3 rows]\n[not all of the same state of the data" in said, said
        assert base.rows("SELECT count(*) FROM t") == [(3,)]


@pytest.mark.anyio
async def test_room_that_short_results_leave_is_for_those_before_them_too() -> None:
    async with inside(f"app={make().url('owner')}") as wire:
        long = "SELECT repeat('x', 90) FROM generate_series(1, {})"
        sql = f"{long.format(50)}; SELECT 1; SELECT 2; SELECT 3; {long.format(20)}"
        said = text_of(await wire.call("query_rows", sql=sql, max_bytes=10_000))
        assert "truncated" not in said and said.count('xxx"]') == 70, said
        said = text_of(await wire.call("query_rows", sql=f"{long.format(500)}; {sql}", max_bytes=10_000, limit=1000))
        assert said.count("truncated") == 2 and said.count("[20 rows]") == 1, said
        assert 80 < said.count('xxx"]') <= 108, said.count('xxx"]')
