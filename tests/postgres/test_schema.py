"""`edit_schema` where no transaction can hold the statement: it runs alone, or is refused, and says what it left."""

from functools import partial

import anyio
import pytest

from postgres.serving import Base, inside, make, text_of

pytestmark = pytest.mark.anyio
PARTS = "CREATE TABLE p (a int) PARTITION BY RANGE (a); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (1) TO (9)"


def valid(base: Base, index: str) -> bool | None:
    found = base.rows(f"SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('{index}')")
    return found[0][0] if found else None


async def test_what_runs_outside_of_transactions_runs_alone() -> None:
    base = make()
    base.run(PARTS, "owner")
    async with inside("--ddl", f"app={base.url('owner')}") as client:

        async def edit(sql: str, **more: bool) -> str:
            return text_of(await client.call("edit_schema", sql=sql, **more))

        create = "CREATE INDEX CONCURRENTLY t_both ON t (name, id)"
        said = await edit(create, dry_run=True)
        assert "can't be tried" in said and "without `dry_run`" in said
        assert valid(base, "t_both") is None
        said = await edit(create)
        assert said.startswith("Done") and "+ index public.t_both" in said, said
        assert valid(base, "t_both") is True
        assert (await edit("REINDEX INDEX CONCURRENTLY t_both")).startswith("Done")
        assert (await edit("REINDEX (CONCURRENTLY) TABLE t")).startswith("Done")
        assert "- index public.t_both" in await edit("DROP INDEX CONCURRENTLY t_both")
        assert (await edit("VACUUM (ANALYZE) t")).startswith("Done")
        base.run("SELECT pg_stat_force_next_flush()")
        assert "- table public.p1" not in await edit("ALTER TABLE p DETACH PARTITION p1 CONCURRENTLY")
        assert base.rows("SELECT count(*) FROM pg_inherits") == [(0,)]
        # These can be tried.
        for sql in ("REINDEX TABLE t", "ANALYZE t", "REINDEX INDEX t_name"):
            assert "Dry run" in await edit(sql, dry_run=True)
            assert "committed" in await edit(sql)
        for sql in (
            "VACUUM t; DROP TABLE u", "REINDEX TABLE t; COMMIT; DROP TABLE u", "ANALYZE u; COMMIT",
            "CREATE INDEX CONCURRENTLY x ON t (id); DROP TABLE u",
            "/**/VACUUM t, nowhere", "CREATE DATABASE x", "ALTER SYSTEM SET work_mem = '1MB'", "DISCARD ALL",
            "DROP DATABASE postgres", "CREATE SUBSCRIPTION s CONNECTION 'dbname=x' PUBLICATION p",
            "CLUSTER t USING t_name",
            "VACUUM", "ANALYZE pg_catalog.pg_authid", "REINDEX SYSTEM",
        ):  # fmt: skip
            result = await client.call("edit_schema", sql=sql)
            harmless = sql in ("VACUUM", "ANALYZE pg_catalog.pg_authid")
            assert result["isError"] or harmless, f"{sql}: {text_of(result)}"
        assert base.rows("SELECT to_regclass('u') IS NOT NULL, to_regclass('x') IS NULL") == [(True, True)]
        # What a role may not, stays so.
        base.run("CREATE TABLE foreigners (a int); CREATE INDEX theirs ON foreigners (a)")
        assert "The role lacks a right" in await edit("REINDEX INDEX CONCURRENTLY theirs")


@pytest.mark.slow
async def test_one_that_fails_says_what_it_left() -> None:
    base = make()
    base.run("INSERT INTO t VALUES (4, 'a')", "owner")
    async with inside("--ddl", "--timeout", "2", f"app={base.url('owner')}") as client:
        unique = {"sql": "CREATE UNIQUE INDEX CONCURRENTLY t_unique ON t (name)"}
        result = await client.call("edit_schema", **unique)
        said = text_of(result)
        assert result["isError"] and "could not create unique index" in said, said
        assert "left behind what must be dropped first: `index public.t_unique`" in said, said
        assert valid(base, "t_unique") is False
        assert "- index public.t_unique" in text_of(await client.call("edit_schema", sql="DROP INDEX t_unique"))
        with base.connect("owner") as other:
            # It waits for every transaction that may still see the table as it was.
            other.execute("BEGIN; UPDATE t SET name = 'x' WHERE id = 1")
            said = text_of(await client.call("edit_schema", sql="CREATE INDEX CONCURRENTLY t_slow ON t (id, name)"))
            assert "CREATE INDEX CONCURRENTLY was stopped at its time limit, 2 s" in said, said
            assert "`index public.t_slow`" in said
            running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX%' AND state = 'active'"
            assert base.rows(running) == [(0,)]
        assert "- index public.t_slow" in text_of(await client.call("edit_schema", sql="DROP INDEX t_slow"))
        assert "[4]" in text_of(await client.call("query_rows", sql="SELECT count(*) FROM t"))


async def test_one_that_is_cancelled_ends_on_the_server() -> None:
    base = make()
    running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX%' AND state = 'active'"

    async def until(number: int) -> None:
        with anyio.fail_after(30):
            while base.rows(running) != [(number,)]:
                await anyio.sleep(0.02)

    async with inside("--ddl", f"app={base.url('owner')}") as client:
        with base.connect("owner") as other:
            other.execute("BEGIN; UPDATE t SET name = 'x' WHERE id = 1")
            async with anyio.create_task_group() as tasks:
                create = "CREATE INDEX CONCURRENTLY t_slow ON t (id, name)"
                tasks.start_soon(partial(client.call, "edit_schema", sql=create))
                await until(1)
                tasks.cancel_scope.cancel()
            await until(0)
        assert "[3]" in text_of(await client.call("query_rows", sql="SELECT count(*) FROM t"))


DUMP = """--
-- PostgreSQL database dump
--

\\restrict zbJSUKpkhr5fiirgkZOi8xBOVU5O2OMrKflMPb2Jq97CwnVPTon7zs9S9BJyfph

-- Dumped from database version 15.18

SET statement_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: count_dumped(); Type: FUNCTION; Schema: public; Owner: owner
--

CREATE FUNCTION public.count_dumped() RETURNS bigint
    LANGUAGE sql
    AS $$ SELECT count(*) FROM public.dumped $$;

--
-- Name: dumped; Type: TABLE; Schema: public; Owner: owner
--

CREATE TABLE public.dumped (
    id integer NOT NULL
);

ALTER TABLE public.dumped OWNER TO owner;

--
-- PostgreSQL database dump complete
--

\\unrestrict zbJSUKpkhr5fiirgkZOi8xBOVU5O2OMrKflMPb2Jq97CwnVPTon7zs9S9BJyfph

"""


async def test_a_dump_is_made_as_pg_dump_writes_it() -> None:
    base = make()
    async with inside("--ddl", base.url("owner")) as client:
        said = text_of(await client.call("edit_schema", sql=DUMP))
        assert said.startswith("Done") and "+ table public.dumped" in said and "4. ALTER TABLE" in said, said
        for alone in ("SET row_security = off", "SELECT pg_catalog.set_config('search_path', '', false)"):
            said = text_of(await client.call("edit_schema", sql=f"{alone}; DROP TABLE public.dumped"))
            assert "No call can set" in said, said
    assert base.rows("SELECT count_dumped()") == [(0,)]
