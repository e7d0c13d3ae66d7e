"""What the tools answer: exact values, pages, caps, names, plans, changes."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_batteries.settings import load
from mcp_batteries.testing.wire import StdioWire
from mcp_postgres.engine.demo import process
from mcp_postgres.engine.demo.cluster import _find_programs
from mcp_postgres.server import build
from mcp_postgres.settings import Settings
from postgres.serving import Base, Inside, cluster, inside, make, served, served_process, text_of
from tools.docs import snapshot

VALUES = {
    "9007199254740992::bigint": 9007199254740992, "9007199254740993::bigint": "9007199254740993",
    "1.50::numeric": "1.50", "12345678901234567890.123456789::numeric": "12345678901234567890.123456789",
    "0.1::float8": 0.1, "1e300::float8": 1e+300, "'NaN'::float8": "NaN", "'-Infinity'::real": "-Infinity",
    "'NaN'::numeric": "NaN", "true": True, "NULL": None, "'x'::text": "x", "'infinity'::timestamptz": "infinity",
    "'-infinity'::date": "-infinity", "'0044-03-15 BC'::date": "0044-03-15 BC", "'24:00'::time": "24:00:00",
    "'20000-01-01'::date": "20000-01-01", "interval '1 year 2 days'": "1 year 2 days", "'[1,5)'::int4range": "[1,5)",
    "'{[1,2),[4,5)}'::int4multirange": "{[1,2),[4,5)}", "ARRAY[1, NULL, 3]": "{1,NULL,3}",
    'ARRAY[\'a b\', \'"\']': '{"a b","\\""}', '\'{"a": [1, 2]}\'::json': {"a": [1, 2]},
    'E\'{"a":\\n1}\'::json': {"a": 1}, '\'"x"\'::jsonb': "x", "'null'::jsonb": None,
    "'\\xdeadbeef'::bytea": {"base64": "3q2+7w=="}, "'happy'::mood": "happy", "'ab'::char(4)": "ab  ",
    "inet '10.0.0.1'": "10.0.0.1", "inet '10.0.0.1/8'": "10.0.0.1/8",
    "'a1b2c3d4-0000-0000-0000-000000000000'::uuid": "a1b2c3d4-0000-0000-0000-000000000000",
    "ROW(1, 'a b')": '(1,"a b")', "'(1,2)'::point": "(1,2)", "B'101'": "101", "'t'::regclass": "t",
    "'12.30'::money": "$12.30", "E'line\\nend \\u00e9 \\u2028'": "line\nend é \u2028",
    "'-9223372036854775808'::bigint": "-9223372036854775808", "5::smallint": 5, "4294967295::oid": 4294967295, "''": "",
    "'\\x'::bytea": {"base64": ""}, r"'a\b'": r"a\b", "'{NULL}'::text[] = ARRAY[NULL::text]": True,
    "quote_ident('t')": "t", "0.1::float8 + 0.2": 0.30000000000000004, "current_setting('xmloption')": "content",
}  # fmt: skip


def rows(result: dict[str, Any]) -> list[list[Any]]:
    """The rows of an answer; the last line of its head are the columns."""
    assert not result.get("isError"), text_of(result)
    lines = [line for line in text_of(result).split("\n") if line.startswith("[") and line.endswith("]")]
    found: list[list[Any]] = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            found.clear()
    return found[1:]


@pytest.mark.anyio
@pytest.mark.parametrize("role", ["reader", "postgres"])
async def test_values_are_exact(role: str) -> None:
    base = make()
    for name, other in (
        ("DateStyle", "German"), ("IntervalStyle", "sql_standard"), ("bytea_output", "escape"),
        ("extra_float_digits", "-10"), ("xmloption", "document"),
        ("standard_conforming_strings", "off"), ("array_nulls", "off"), ("quote_all_identifiers", "on"),
    ):  # fmt: skip
        base.run(f"ALTER DATABASE {base.name} SET {name} = '{other}'")
    async with inside(f"app={base.url(role)}") as wire:
        for sql, value in VALUES.items():
            result = await wire.call("query_rows", sql=f"SELECT {sql}")
            assert rows(result) == [[value]], f"{sql}: {text_of(result)}"
        assert rows(await wire.call("query_rows", sql="SELECT 1 AS a, 2 AS a")) == [[1, 2]]


@pytest.mark.anyio
async def test_an_error_ends_no_connection_whatever_a_database_or_role_is_set_to() -> None:
    base = make()
    base.run(f"ALTER DATABASE {base.name} SET exit_on_error = on; ALTER DATABASE {base.name} SET search_path = ''")
    async with inside("--write", "--ddl", "--connections", "1", f"app={base.url('owner')}") as wire:
        pid = rows(await wire.call("query_rows", sql="SELECT pg_backend_pid()"))
        for tool, sql, said in (
            ("query_rows", "SELECT 1 / 0", "division by zero"),
            ("query_rows", "SELECT id FROM t", "Did you mean `public.t`?"),
            ("explain_query", "SELECT id FROM t", "Did you mean `public.t`?"),
            ("write_rows", "INSERT INTO public.t (id) VALUES (1)", "duplicate key"),
            ("edit_schema", "CREATE TABLE made (a int)", "such as `public.NAME`"),
            ("edit_schema", "CREATE TABLE public.t (a int)", "already exists"),
        ):
            result = await wire.call(tool, sql=sql)
            assert result["isError"] and said in text_of(result), text_of(result)
        made = text_of(await wire.call("edit_schema", sql="CREATE TABLE public.made (a int)"))
        assert "+ table public.made" in made, made
        assert rows(await wire.call("query_rows", sql="SELECT pg_backend_pid()")) == pid


@pytest.mark.anyio
async def test_parameters_are_bound() -> None:
    base = make()
    async with inside(f"app={base.url()}") as wire:
        for sql, parameters, value in (
            ("SELECT $1::int + 1", [41], 42),
            ("SELECT name FROM t WHERE id = $1", [2], "b"),
            ("SELECT count(*) FROM t WHERE id = ANY ($1)", [[1, 2]], 2),
            ("SELECT count(*) FROM t WHERE name = ANY ($1)", [["a", 'q"\\', None]], 1),
            ("SELECT $1::text", ["'; DROP TABLE t; --"], "'; DROP TABLE t; --"),
            ("SELECT $1::jsonb -> 'a'", [{"a": [1]}], [1]),
            ("SELECT $1::bytea", [{"base64": "3q0="}], {"base64": "3q0="}),
            ("SELECT $1::boolean", [True], True),
            ("SELECT $1::text", [None], None),
            ("SELECT 'x' LIKE '%x%' AND $1::text = 'a%'", ["a%"], True),
        ):
            assert rows(await wire.call("query_rows", sql=sql, parameters=parameters)) == [[value]], sql
        for sql, parameters in (("SELECT $1::int", ["x"]), ("SELECT $1", []), ("SELECT $2::int", [1])):
            assert (await wire.call("query_rows", sql=sql, parameters=parameters)).get("isError")
        for sql, way in (
            ("SELECT $1::int", "one value for each of $1"),
            ("SELECT :a", "Write $1 in place of `:a`"),
            ("SELECT %s", "Write $1 in place of `%s`"),
            ("\\d t", "`get_table`"),
            ("DESCRIBE t", "`get_table`"),
        ):
            said = await wire.call("query_rows", sql=sql)
            assert said["isError"] and way in text_of(said) and "was lost" not in text_of(said), sql


@pytest.mark.anyio
async def test_pages_show_every_row_once() -> None:
    base = make()
    async with inside(f"app={base.url()}") as wire:
        sql = "SELECT g FROM generate_series(1, 5000) g"
        seen: list[int] = []
        result = await wire.call("query_rows", sql=sql, limit=900, max_bytes=100_000)
        while True:
            seen += [row[0] for row in rows(result)]
            head = text_of(result).partition("\n")[0]
            if "truncated" not in head:
                break
            cursor = head.rpartition("cursor=")[2].rstrip("]")
            result = await wire.call("query_rows", cursor=cursor, limit=900, max_bytes=100_000)
        assert seen == list(range(1, 5001))
        exact = text_of(await wire.call("query_rows", sql=sql + " LIMIT 100", limit=100))
        assert exact.startswith("[100 rows]")
        assert "truncated" in text_of(await wire.call("query_rows", sql=sql + " LIMIT 101", limit=100))


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_large_answer_is_capped_and_costs_little_memory() -> None:
    base = make("CREATE TABLE big AS SELECT g AS id, repeat('x', 100) AS pad FROM generate_series(1, 100000) g")
    async with served_process(f"app={base.url()}") as wire:
        await wire.call("query_rows", sql="SELECT 1")
        before = memory(wire)
        result = await wire.call("query_rows", sql="SELECT * FROM big", limit=5000, max_bytes=1_000_000)
        assert len(rows(result)) == 5000 and "truncated" in text_of(result)
        result = await wire.call("query_rows", sql="SELECT repeat('x', 100000000), repeat('y', 100000000)::bytea")
        assert "2 cells cut" in text_of(result) and len(text_of(result)) < 10_000
        grown = memory(wire) - before
        print(f"memory grew by {grown / 1e6:.0f} MB")
        assert grown < 50_000_000


def memory(wire: StdioWire) -> int:
    import psutil

    return psutil.Process(wire.process.pid).memory_info().rss


@pytest.mark.anyio
async def test_looking_around() -> None:
    base = make()
    base.run(
        "CREATE TABLE parts (id int, day date) PARTITION BY RANGE (day);"
        "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');"
        "CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');"
        "GRANT SELECT ON parts TO reader; ALTER TABLE u ENABLE ROW LEVEL SECURITY;"
        "CREATE POLICY only_one ON u USING (id = 1)",
        "owner",
    )
    async with inside(f"app={base.url()}") as wire:
        listed = text_of(await wire.call("list_objects"))
        assert "public.t " in listed and "Things with names" in listed and "(view)" in listed
        assert "2 partitions" in listed and "parts_1" not in listed
        assert "no special powers" in listed
        page = text_of(await wire.call("list_objects", limit=2))
        assert page.startswith("[truncated")
        cursor = page.partition("cursor=")[2].partition("]")[0]
        assert "public.t " in text_of(await wire.call("list_objects", limit=50, cursor=cursor))
        assert "twice(n integer) returns integer" in text_of(await wire.call("list_objects", kind="functions"))
        assert "'sad', 'ok', 'happy'" in text_of(await wire.call("list_objects", kind="types"))
        told = text_of(await wire.call("get_table", table="t", sample=2))
        for words in (
            "primary key",
            "referred to by",
            "u: FOREIGN KEY (id)",
            "t_name",
            "What people call it",
            '[1,"a"]',
            "\n- t_pkey: 16 kB, ",
            "\n- t_name: btree (name); 16 kB, ",
        ):
            assert words.lower() in told.lower(), f"{words}: {told}"
        assert "only_one" in text_of(await wire.call("get_table", table="public.u"))
        assert '"a b": integer' in text_of(await wire.call("get_table", table='public."Odd name"'))
        assert "partitions:" in text_of(await wire.call("get_table", table="PARTS"))
        found = text_of(await wire.call("search_schema", query="people call"))
        assert found.startswith("public.t.name text")
        assert "no table" in text_of(await wire.call("get_table", table="t; DROP TABLE t"))


@pytest.mark.anyio
async def test_plans() -> None:
    base = make("CREATE TABLE big AS SELECT g AS id, g % 1000 AS k FROM generate_series(1, 50000) g")
    base.run("VACUUM ANALYZE big")  # from then on an index alone may answer
    async with inside(f"app={base.url()}") as wire:
        plan = text_of(
            await wire.call("explain_query", sql="SELECT * FROM big WHERE k = $1", analyze=True, parameters=[7])
        )
        assert (
            "Seq Scan on big" in plan and "an index on what it filters by may help" in plan and "Execution Time" in plan
        )
        assert (
            "\nCREATE INDEX ON big (k) INCLUDE (id);\nThe plan then: Index Only Scan" in plan and "on a sample" in plan
        )
        plan = text_of(await wire.call("explain_query", sql="SELECT * FROM big WHERE k = $1"))
        assert "for any values" in plan and "Seq Scan" in plan and "CREATE INDEX ON big (k) INCLUDE (id);" in plan
        base.run(f"REVOKE TEMPORARY ON DATABASE {base.name} FROM PUBLIC")
        said = text_of(await wire.call("explain_query", sql="SELECT * FROM big WHERE k = 5"))
        assert "No index was tried: The role may not make temporary tables" in said
        assert "lacks a right" in text_of(await wire.call("explain_query", sql="DELETE FROM big"))
        assert "hypopg" in text_of(await wire.call("explain_query", sql="SELECT 1", indexes=["big (k)"]))


@pytest.mark.anyio
async def test_several_databases_and_one_that_is_down() -> None:
    base = make()
    down = f"postgresql://reader:secretword@127.0.0.1:1/{base.name}"
    async with inside(f"app={base.url()}", f"down={down}", f"again={base.url()}") as wire:
        listed = text_of(await wire.call("list_objects"))
        assert (
            "down: " in listed
            and "can't be reached" in listed
            and "again: role" in listed
            and "secretword" not in listed
        )
        assert "Name one as `database`" in text_of(await wire.call("query_rows", sql="SELECT 1"))
        assert rows(await wire.call("query_rows", sql="SELECT 1", database="again")) == [[1]]
        said = text_of(await wire.call("query_rows", sql="SELECT 1", database="down"))
        assert "can't be reached" in said and "secretword" not in said


@pytest.mark.anyio
async def test_passwords_come_from_files_and_variables(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    base = make()
    url = base.url().replace("reader:reader@", "reader@")
    assert "reader@" in url
    (tmp_path / "password").write_text("reader\n", "utf-8")
    async with served("--password-file", tmp_path / "password", url) as wire:
        assert rows(await wire.call("query_rows", sql="SELECT current_user")) == [["reader"]]
    service = tmp_path / "service.conf"
    port = cluster().wait_until_ready()
    service.write_text(f"[mine]\nhost=127.0.0.1\nport={port}\nuser=reader\ndbname={base.name}\n", "utf-8")
    monkeypatch.setenv("PGSERVICEFILE", str(service))
    monkeypatch.setenv("PGSERVICE", "mine")
    monkeypatch.setenv("PGPASSWORD", "reader")
    async with served() as wire:
        assert rows(await wire.call("query_rows", sql="SELECT current_user")) == [["reader"]]
        assert "mine: role `reader`" in text_of(await wire.call("list_objects"))


@pytest.mark.anyio
async def test_a_command_gives_the_password_at_each_connect(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, script = make(), tmp_path / "token maker.py"
    monkeypatch.setenv("PGUSER", "reader")
    words = [sys.executable, str(script), "{host}:{port}", "{user}", "{dbname} $HOME"]
    command = subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)
    url = f"postgresql://127.0.0.1:{cluster().wait_until_ready()}/{base.name}"

    async def asked(says: str) -> str:
        script.write_text(f"import sys\n{says}", "utf-8")
        async with inside("--password-command", command, url) as wire:
            return text_of(await wire.call("query_rows", sql="SELECT current_user"))

    given = [f"127.0.0.1:{cluster().wait_until_ready()}", "reader", f"{base.name} $HOME"]
    assert "reader" in await asked(f"assert sys.argv[1:] == {given!r}, sys.argv\nprint('reader')")
    assert "password authentication failed" in await asked("print('another')")
    assert "ended with 3" in await asked("print('reader'); sys.stderr.write('secretly\\n'); sys.exit(3)")
    assert "secretly" in caplog.text
    for says in ("", "print()"):
        assert "it printed nothing" in await asked(says)
    assert "not UTF-8 at byte 7" in await asked("sys.stdout.buffer.write(b'reader\\xe9')")
    command = str(tmp_path / "none there")
    assert "gave no password" in await asked("")


@pytest.mark.anyio
async def test_rows_are_changed_only_as_asked() -> None:
    base = make()
    async with inside("--write", f"app={base.url('owner')}") as wire:
        said = text_of(
            await wire.call("write_rows", sql="UPDATE t SET name = $1 RETURNING id", parameters=["z"], dry_run=True)
        )
        assert "Dry run" in said and "UPDATE: 3 rows" in said and "[1]" in said
        assert base.rows("SELECT name FROM t WHERE id = 1") == [("a",)]
        await wire.call("write_rows", sql="UPDATE t SET name = $1 WHERE id = $2", parameters=["z", 1])
        assert base.rows("SELECT name FROM t WHERE id = 1") == [("z",)]
        said = text_of(await wire.call("write_rows", sql="DELETE FROM t"))
        assert "u_id_fkey" in said and "23503" in said


@pytest.mark.anyio
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_the_user_is_asked_where_the_operator_wants_that(revision: str) -> None:
    base = Base(make().name)
    async with served("--write", "--confirm", f"app={base.url('owner')}", revision=revision) as wire:
        said = text_of(await wire.call("write_rows", sql="DELETE FROM u"))
        assert "consent" in said
        assert base.rows("SELECT count(*) FROM u") == [(1,)]
        assert "Dry run" in text_of(await wire.call("write_rows", sql="DELETE FROM u", dry_run=True))


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users")
def test_programs_that_others_cannot_look_at_are_copied_with_their_libraries(tmp_path: Path) -> None:
    programs = process._copy_programs(_find_programs(), str(tmp_path / "copy"))
    for name in ("initdb", "postgres", "psql"):
        done = subprocess.run([os.path.join(programs, name), "--version"], capture_output=True, text=True, check=True)
        assert "PostgreSQL" in done.stdout


@pytest.mark.anyio
async def test_names_are_spelled_so_that_they_can_be_used() -> None:
    base = make()
    base.run(
        '''CREATE SCHEMA "Sales EU"; GRANT USAGE ON SCHEMA "Sales EU" TO reader;
        CREATE TABLE "Sales EU"."Order ""1""" ("Total" numeric, "user" text, plain int);
        COMMENT ON TABLE "Sales EU"."Order ""1""" IS E'two\nlines'; CREATE SCHEMA nothing_here;
        CREATE UNLOGGED TABLE fast (a int); ALTER TABLE fast ENABLE ROW LEVEL SECURITY;
        CREATE TABLE more () INHERITS (fast); CREATE MATERIALIZED VIEW later AS SELECT 1 AS a WITH NO DATA;
        CREATE TYPE pair AS (a int, "B" text); CREATE TYPE span AS RANGE (subtype = float8);
        GRANT SELECT ON ALL TABLES IN SCHEMA "Sales EU", public TO reader;
        GRANT USAGE ON SCHEMA nothing_here TO reader''',
        "postgres",
    )
    async with inside(f"app={base.url()}") as client:
        said = text_of(await client.call("list_objects"))
        name = '"Sales EU"."Order ""1"""'
        assert (
            f'{name} not analyzed, 8,192 bytes: "Total" numeric, "user" text, plain integer -- two lines\n' in said
        ), said
        for table in (name, 'Sales EU."Order ""1"""'):
            assert '- "Total": numeric\n- "user": text\n- plain: integer' in text_of(
                await client.call("get_table", table=table)
            )
        assert not (await client.call("query_rows", sql=f'SELECT "Total", "user", plain FROM {name}'))["isError"]
        assert f'{name}."Total" numeric' in text_of(await client.call("search_schema", query="total"))
        for wrong in ('order "1"', "FAST2", 'sales eu."ORDER ""1"""'):
            result = await client.call("get_table", table=wrong)
            assert result["isError"]
        assert f"Did you mean `{name}`?" in text_of(await client.call("get_table", table='sales eu."ORDER ""1"""'))
        assert "There are: `Sales EU`" in text_of(await client.call("list_objects", schema="sales eu"))
        assert "nothing of that kind" in text_of(await client.call("list_objects", schema="nothing_here"))
        types = text_of(await client.call("list_objects", kind="types"))
        assert 'public.pair(a integer, "B" text)' in types and "public.span over double precision" in types
        assert "span(" not in text_of(await client.call("list_objects", kind="functions"))
        fast = text_of(await client.call("get_table", table="fast"))
        assert fast.startswith("unlogged table public.fast") and "inherited by: more" in fast
        assert "row security is on, not for the owner; no policy lets anybody see rows" in fast
        later = await client.call("get_table", table="later", sample=1)
        assert not later["isError"] and "no sample rows: " in text_of(later) and "- a: integer" in text_of(later)


@pytest.mark.anyio
async def test_a_plan_over_many_partitions_shows_those_that_cost() -> None:
    base = make("CREATE TABLE parts (a int) PARTITION BY RANGE (a)")
    for number in range(30):
        bounds = f"FROM ({number * 10}) TO ({number * 10 + 10})"
        base.run(f"CREATE TABLE part_{number} PARTITION OF parts FOR VALUES {bounds}")
    base.run("INSERT INTO parts SELECT 175 FROM generate_series(1, 5000); ANALYZE; GRANT SELECT ON parts TO reader")
    async with inside(f"app={base.url()}") as client:
        said = text_of(await client.call("explain_query", sql="SELECT * FROM parts"))
        assert said.count("Seq Scan on part_") == 8 and "on part_17 " in said and "… 22 more parts" in said, said


@pytest.mark.anyio
async def test_vectors_are_short_and_a_similarity_search_uses_its_index() -> None:
    base = make()
    if not base.rows("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"):
        pytest.skip("this PostgreSQL has no pgvector")
    base.run(
        "CREATE EXTENSION vector; CREATE TABLE notes (id integer, at vector(60));"
        "INSERT INTO notes SELECT g, ARRAY(SELECT sin(g * i) FROM generate_series(1, 60) i)::real[]::vector"
        " FROM generate_series(1, 4000) g; CREATE INDEX ON notes USING hnsw (at vector_l2_ops); ANALYZE notes;"
        "GRANT SELECT ON notes TO reader"
    )
    near = "SELECT id, at FROM notes ORDER BY at <-> (SELECT at FROM notes WHERE id = 7) LIMIT 2"
    async with inside(f"app={base.url()}") as wire:
        first, _ = rows(await wire.call("query_rows", sql=near, max_cell=100_000))
        assert (
            first[0] == 7 and first[1].startswith("[0.6569866,") and first[1].endswith(",… 60 numbers, all by ::text]")
        )
        assert len(first[1]) < 80
        assert "all by ::text" in text_of(await wire.call("get_table", table="notes", sample=1))
        whole = rows(await wire.call("query_rows", sql="SELECT at::text FROM notes WHERE id = 7", max_cell=100_000))
        assert whole[0][0].count(",") == 59
        assert rows(await wire.call("query_rows", sql="SELECT '[1,2,3]'::vector")) == [["[1,2,3]"]]
        given = {"sql": "SELECT id FROM notes ORDER BY at <-> $1 LIMIT 3", "parameters": [whole[0][0]]}
        assert rows(await wire.call("query_rows", **given))[0] == [7]
        assert "Index Scan using notes_at_idx" in text_of(await wire.call("explain_query", **given))


def test_what_a_model_reads_of_all_tools_has_a_bound() -> None:
    assert snapshot(build(load(Settings, ["postgresql://localhost/app"])))["bytes"]["tools_list"] <= 2250 * 4


@pytest.mark.anyio
async def test_a_dry_run_says_which_sequences_it_has_moved() -> None:
    base = make("CREATE TABLE numbered (id integer GENERATED ALWAYS AS IDENTITY, word text); CREATE SEQUENCE other")
    async with inside("--write", "--ddl", base.url("owner")) as wire:
        sql = "INSERT INTO numbered (word) VALUES ('x') RETURNING id"
        for number in (1, 2):
            said = text_of(await wire.call("write_rows", sql=sql, dry_run=True))
            assert f"[{number}]" in said and "stays so after a dry run:\nsequence public.numbered_id_seq\n" in said, (
                said
            )
        for tool, still in (("write_rows", "UPDATE numbered SET word = 'y'"), ("edit_schema", "DROP SEQUENCE other")):
            assert "Moved on" not in text_of(await wire.call(tool, sql=still, dry_run=True))


@pytest.mark.anyio
async def test_a_plan_is_shown_as_if_the_planner_had_other_settings() -> None:
    base = make("CREATE TABLE many AS SELECT g AS id FROM generate_series(1, 9) g; CREATE INDEX ON many (id)")
    base.run("ANALYZE many", "owner")
    for role in ("postgres", "owner"):
        async with inside(f"app={base.url(role)}") as wire:

            async def planned(**settings: object) -> str:
                sql = "SELECT * FROM many WHERE id = 1"
                return text_of(await wire.call("explain_query", sql=sql, settings=settings))

            assert "Seq Scan on many" in await planned(work_mem="1MB")
            said = await planned(enable_seqscan=False, enable_bitmapscan="off")
            assert "using many_id_idx" in said and "with enable_seqscan = False, enable_bitmapscan = off" in said, said
            for name, value, why in (
                ("search_path", "x", "is no setting of the planner"), ("app.user", "x", "is no setting of the planner"),
                ("enable_nothing", "on", "unrecognized configuration parameter"),
                ("work_mem", "much", "invalid value for parameter"), ("session_preload_libraries", "x", "no setting"),
            ):  # fmt: skip
                assert why in await planned(**{name: value}), await planned(**{name: value})
            assert "Seq Scan on many" in await planned(), "no setting outlives a call"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("is_parallel", "sql"),
    [
        (False, "SELECT id FROM large WHERE id % 7 > 0"),
        (True, "SELECT id FROM large WHERE id % 7 > 0"),
        (True, "WITH m AS (SELECT max(id) AS last FROM large) SELECT id FROM large, m WHERE id <= last AND id % 7 > 0"),
        (True, "SELECT id FROM large WHERE id % 7 > 0 ORDER BY id"),
        (True, "SELECT DISTINCT id FROM large WHERE id % 7 > 0"),
    ],
)
async def test_the_pages_of_a_large_table_hold_each_row_once(is_parallel: bool, sql: str) -> None:
    base = make()
    if is_parallel:
        for setting in ("min_parallel_table_scan_size", "parallel_setup_cost", "parallel_tuple_cost"):
            base.run(f"ALTER DATABASE {base.name} SET {setting} = 0")
    # PostgreSQL begins a scan of a table where the last one stopped if it is larger than a quarter of its buffers.
    base.run("CREATE TABLE large AS SELECT i AS id, repeat('x', 400) AS pad FROM generate_series(1, 100000) i", "owner")
    ids: list[int] = []
    async with inside(f"app={base.url('owner')}") as wire:
        arguments: dict[str, Any] = {"sql": sql}
        planned = text_of(await wire.call("query_rows", sql=f"EXPLAIN {sql}"))
        assert ("Gather" in planned) == is_parallel, planned
        for _ in range(6):
            said = text_of(await wire.call("query_rows", limit=1500, **arguments))
            ids += [json.loads(line)[0] for line in said.splitlines() if re.fullmatch(r"\[\d+\]", line)]
            arguments = {"cursor": said.partition("cursor=")[2].partition("]")[0]}
    assert len(ids) > 5000 and len({*ids}) == len(ids)
    if "DISTINCT" not in sql:
        assert ids == [number for number in range(1, ids[-1] + 1) if number % 7]


@pytest.mark.anyio
async def test_a_value_that_no_row_has_is_told_where_nothing_was_found() -> None:
    base = make(
        "CREATE TYPE kind AS ENUM ('a', 'b'); CREATE TABLE jobs (id integer PRIMARY KEY, state text, level smallint,"
        " \"Kind\" kind, price numeric); INSERT INTO jobs VALUES (1, 'open', 1, 'a', 1.50),"
        " (2, 'it''s done', 2, 'a', 2), (3, NULL, 2, 'a', 3);"
        "CREATE TABLE job (state text); INSERT INTO job VALUES ('another')"
    )
    note = "`jobs.state` is never 'Open', only 'open', 'it''s done', NULL"

    async def asked(wire: Inside, tool: str, **arguments: object) -> str:
        # PostgreSQL tells values in an order of its own.
        answer = text_of(await wire.call(tool, **arguments)).rstrip("\n").replace("public.", "")
        return re.sub("only .*?(?=[]\\n]|$)", "only …", answer)

    masked = note.partition("only")[0] + "only …"
    for role in ("owner", "reader", "postgres"):
        async with inside("--write", "--ddl", f"app={base.url(role)}") as wire:
            answer = text_of(await wire.call("query_rows", sql="SELECT id FROM jobs WHERE state = 'Open'"))
            for value in ("'open'", "'it''s done'", "NULL"):
                assert value in answer.partition("never 'Open', only ")[2], answer
            for sql in (
                "SELECT count(*), sum(level) FROM public.jobs j WHERE j.state IN ('Open')",
                "SELECT 1; SELECT id FROM jobs WHERE state = 'Open'",
            ):
                assert (await asked(wire, "query_rows", sql=sql)).count(f"[{masked}]") == 1, sql
            answer = await asked(wire, "query_rows", sql="""SELECT id FROM jobs WHERE "Kind" = 'b' AND level = 3""")
            assert "`jobs.\"Kind\"` is never 'b'" in answer and "`jobs.level` is never 3" in answer, answer
            for sql in (
                "SELECT id FROM jobs WHERE price = 1.5 AND level = 1 AND id = 7",
                "SELECT id FROM jobs WHERE state = 'open' AND level = 2",
            ):
                answer = await asked(wire, "query_rows", sql=sql)
                assert "jobs.price" not in answer and "jobs.state" not in answer and "jobs.level" not in answer, answer
    async with inside("--write", "--ddl", f"app={base.url('owner')}") as wire:
        change = "UPDATE jobs SET state = 'closed' WHERE state = 'Open'"
        for tool, more in (("write_rows", {}), ("edit_schema", {}), ("write_rows", {"dry_run": True})):
            answer = await asked(wire, tool, sql=change, **more)
            assert f"UPDATE: 0 rows, {masked}" in answer and "'closed'" not in answer, answer
        sql = f"INSERT INTO jobs (id, state) VALUES (9, 'Open'); {change} AND id = 1"
        assert "never" not in await asked(wire, "write_rows", sql=sql, dry_run=True)
    async with inside("--mask", "public.jobs.state", f"app={base.url('reader')}") as wire:
        answer = await asked(wire, "query_rows", sql="SELECT id FROM jobs WHERE state = 'Open'")
        assert "never" not in answer and "done" not in answer, answer


@pytest.mark.anyio
@pytest.mark.parametrize("role", ["owner", "postgres"])
async def test_no_value_is_called_absent_that_the_statement_may_mean(role: str) -> None:
    base = make(
        "CREATE TABLE jobs (id integer PRIMARY KEY, state text, level integer);"
        "INSERT INTO jobs VALUES (1, 'open', 5), (2, 'done', 6); CREATE SCHEMA old;"
        "CREATE TABLE old.jobs (id integer, state text); INSERT INTO old.jobs VALUES (1, 'Open');"
        "CREATE TABLE wide (v text); INSERT INTO wide SELECT letter || repeat('x', 9000)"
        " FROM unnest('{a,b,c,d}'::text[]) letter UNION ALL VALUES ('e');"
        "CREATE TABLE parent (state text); CREATE TABLE child () INHERITS (parent); INSERT INTO child VALUES ('open');"
    )
    async with inside("--write", f"app={base.url(role)}") as wire:

        async def has_note(sql: str) -> bool:
            return "never" in text_of(await wire.call("query_rows", sql=sql))

        for table, condition in (
            ("jobs", "level = 05"),
            ("jobs", "level = 5.0"),
            ("jobs", "level IN ('05', ' 6 ')"),
            ("old.jobs", "state = 'Open'"),
            ("wide", "v = 'zz'"),
            ("parent", "state = 'zz'"),
            ("jobs", f"id IN ({', '.join(map(str, range(100, 500)))})"),
        ):
            assert not await has_note(f"SELECT 1 FROM {table} WHERE {condition} AND random() > 2"), condition
        assert not await has_note("WITH jobs AS (SELECT 'X' AS state) SELECT 1 FROM jobs WHERE state = 'X' AND 1 = 2")
        assert not await has_note("SET app.tenant = '2'; SELECT 1 FROM jobs WHERE state = 'zz'")
        assert await has_note("SELECT 1 FROM jobs WHERE level = 07")
        assert await has_note("SELECT 1 FROM old.jobs WHERE state = 'open'")
        # What the second statement does is no reason for what the first did not find.
        sql = (
            "UPDATE jobs SET level = 9 WHERE state = 'open' AND id = 2;"
            "UPDATE jobs SET state = 'closed' WHERE state = 'open'"
        )
        answer = text_of(await wire.call("write_rows", sql=sql))
        assert "UPDATE: 1 row" in answer and "never" not in answer, answer


@pytest.mark.anyio
async def test_the_values_of_an_enum_are_told_unless_they_are_many() -> None:
    labels = ", ".join(f"'label {number}'" for number in range(100))
    base = make(
        f"CREATE TYPE many AS ENUM ({labels}); CREATE TYPE few AS ENUM ('a', 'b'); CREATE TABLE e (m many, f few)"
    )
    async with inside(f"app={base.url('owner')}") as wire:
        answer = text_of(await wire.call("query_rows", sql="SELECT 1 FROM e WHERE m = 'x'"))
        assert "label 1" not in answer and "`get_table` shows the values" in answer, answer
        answer = text_of(await wire.call("query_rows", sql="SELECT 1 FROM e WHERE f = 'x'"))
        assert "Its values are 'a', 'b'." in answer, answer


@pytest.mark.anyio
async def test_a_stopped_statement_says_how_much_time_a_call_has() -> None:
    async with inside("--timeout", 1, make("").url("owner")) as wire:
        said = text_of(await wire.call("query_rows", sql="SELECT pg_sleep(20)"))
        assert "stopped at its time limit" in said and "A call has 1 s." in said, said
