"""Statements with bad intent, in every mode and as every kind of role, judged by the database; and good ones."""

import os
import tempfile
import time
from collections.abc import Generator, Sequence
from pathlib import Path

import psycopg
import pytest

from mcp_batteries.testing.wire.base import SECONDS
from postgres.serving import Base, Inside, inside, make, text_of
from postgres.statements import CLOSED, HARMLESS, READS, ROWS, SCHEMA, TRANSACTIONS

_CATALOGS = (
    "pg_class", "pg_attribute", "pg_attrdef", "pg_constraint", "pg_index", "pg_proc", "pg_type", "pg_namespace",
    "pg_trigger",
    "pg_rewrite", "pg_policy", "pg_extension", "pg_default_acl", "pg_description", "pg_enum", "pg_authid",
    "pg_database",
    "pg_auth_members", "pg_db_role_setting", "pg_shdescription", "pg_largeobject_metadata", "pg_publication",
    "pg_subscription",
    "pg_foreign_server", "pg_foreign_data_wrapper", "pg_tablespace", "pg_event_trigger", "pg_statistic_ext",
    "pg_replication_origin",
    "pg_am", "pg_collation",
)  # fmt: skip
_STATE = f"""
SELECT concat_ws(' ',
    (SELECT md5(string_agg(t::text, ',' ORDER BY id)) FROM t),
    (SELECT md5(string_agg(u::text, ',' ORDER BY id)) FROM u),
    (SELECT last_value || '/' || is_called FROM s),
    {", ".join(f"(SELECT count(*) || '/' || coalesce(sum(xmin::text::bigint), 0) FROM {name})" for name in _CATALOGS)},
    (SELECT count(*) FROM pg_replication_slots), (SELECT count(*) FROM pg_prepared_xacts),
    (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'),
    (SELECT count(*) FROM pg_stat_activity a JOIN pg_locks l USING (pid)
        WHERE application_name = 'mcp-postgres' AND locktype <> 'virtualxid'),
    (SELECT md5(string_agg(name || setting, ',' ORDER BY name)) FROM pg_file_settings),
    (SELECT stats_reset FROM pg_stat_database WHERE datname = current_database()), pg_conf_load_time(),
    (SELECT relfilenode || '/' || relpages FROM pg_class WHERE relname = 't'))
"""
_QUICK = """
SELECT pg_snapshot_xmax(pg_current_snapshot())::text, (SELECT last_value || '/' || is_called FROM s),
    (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'),
    (SELECT count(*) FROM pg_stat_activity a JOIN pg_locks l USING (pid)
        WHERE application_name = 'mcp-postgres' AND locktype <> 'virtualxid'),
    (SELECT count(*) FROM pg_replication_slots), pg_conf_load_time()::text
"""
"""Every open transaction locks its own virtual number, which holds nobody up.

Nothing transactional can have happened unless the first of these moved."""


class Target:
    """A database, a folder the server's own user can write to, and another role's session in the middle of its work."""

    def __init__(self, base: Base, away: Path) -> None:
        self.base, self.away = base, away
        self.observer = base.connect()
        self.victim = base.connect("monitor")
        self.victim.execute("BEGIN")
        self.begin()

    def begin(self) -> None:
        """From here on nothing may change."""
        self.before = self.state()
        self.quick = self.observer.execute(_QUICK.encode()).fetchone()

    def state(self) -> str:
        row = self.observer.execute(_STATE.encode()).fetchone()
        assert row is not None
        return row[0]

    def filled(self, sql: str) -> str:
        return sql.replace("{away}", str(self.away)).replace("{victim}", str(self.victim.info.backend_pid))

    def unharmed(self, sql: str) -> None:
        quick = self.observer.execute(_QUICK.encode()).fetchone()
        if quick != self.quick:
            # Somebody took a transaction's number: whatever it was, it may not have changed anything.
            deadline = time.monotonic() + SECONDS
            while (state := self.state()) != self.before and time.monotonic() < deadline:
                pass  # A session may hold its locks for a moment after its answer; an effect stays.
            assert state == self.before, sql
            self.quick = quick
        assert os.listdir(self.away) == [], sql
        assert self.victim.execute("SELECT 1").fetchone() == (1,), sql

    def close(self) -> None:
        assert self.state() == self.before
        self.observer.close()
        self.victim.close()


@pytest.fixture
def target() -> Generator[Target]:
    with tempfile.TemporaryDirectory() as away:
        os.chmod(away, 0o777)
        made = Target(make(), Path(away))
        yield made
        made.close()


MODES = {
    "superuser": ("postgres", []),
    "superuser, everything": ("postgres", ["--write", "--ddl", "--dba"]),
    "read role": ("reader", []),
    "read role, everything": ("reader", ["--write", "--ddl"]),
}


async def attack(
    wire: Inside,
    target: Target,
    tool: str,
    statements: Sequence[str],
    spared: frozenset[str] | set[str] = frozenset(),
    **more: str,
) -> None:
    for sql in statements:
        result = await wire.call(tool, sql=target.filled(sql), **more)
        said = text_of(result)
        assert result.get("isError") or ": failed: " in said or sql in spared, f"{tool}: {sql}\n{said}"
        assert "Traceback" not in said and "failed inside" not in said, f"{sql}: {said}"
        target.unharmed(sql)


def test_there_are_enough() -> None:
    assert len({*TRANSACTIONS, *ROWS, *SCHEMA, *CLOSED}) >= 150
    assert len(set(READS)) >= 60


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_no_query_has_an_effect(mode: str, target: Target) -> None:
    role, flags = MODES[mode]
    spared = {"SELECT"} if role == "postgres" else HARMLESS
    async with inside(*flags, f"app={target.base.url(role)}") as wire:
        settings = text_of(
            await wire.call(
                "query_rows",
                sql="SELECT string_agg(name || '=' || setting, ' ') FROM pg_settings WHERE source = 'session'",
            )
        )
        await attack(wire, target, "query_rows", [*TRANSACTIONS, *ROWS, *SCHEMA, *CLOSED], spared)
        # Nothing is left in the sessions either.
        again = text_of(
            await wire.call(
                "query_rows",
                sql="SELECT string_agg(name || '=' || setting, ' ') FROM pg_settings WHERE source = 'session'",
            )
        )
        assert again == settings


@pytest.mark.anyio
async def test_a_change_is_sent_to_the_tool_that_makes_it() -> None:
    changes = {
        "write_rows": ("INSERT INTO t", "UPDATE t", "DELETE FROM t", "MERGE INTO t", "TRUNCATE t"),
        "edit_schema": (
            "CREATE TABLE x ()", "ALTER TABLE t", "DROP TABLE t", "COMMENT ON TABLE t IS ''", "GRANT ALL ON t TO x",
            "REVOKE ALL ON t FROM x", "REINDEX TABLE t", "VACUUM", "ANALYZE",
        ),
    }  # fmt: skip
    async with inside(f"app={make().url()}") as wire:
        for tool, statements in changes.items():
            for sql in statements:
                said = text_of(await wire.call("query_rows", sql=f"/* a */ -- b\n{sql.lower()}"))
                flag = "--write" if tool == "write_rows" else "--ddl"
                assert f"more than read: {sql.split()[0]}. `{tool}` does that" in said, f"{sql}: {said}"
                assert f"started the server with `{flag}`" in said, f"{sql}: {said}"
        said = text_of(await wire.call("query_rows", sql="WITH d AS (DELETE FROM u RETURNING *) SELECT * FROM d"))
        assert "more than read" in said and "`write_rows` changes rows" in said, said
        said = text_of(await wire.call("query_rows", sql="CALL proc()"))
        assert "`edit_schema` runs it" in said and "`--admin`" in said, said
        said = text_of(await wire.call("query_rows", sql="CHECKPOINT"))
        assert "queries only: SELECT, WITH, VALUES, TABLE, EXPLAIN, SHOW." in said, said


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("role", ["postgres", "owner"])
async def test_explaining_changes_nothing(role: str, target: Target) -> None:
    async with inside("--write", "--ddl", f"app={target.base.url(role)}") as wire:
        for sql in [*TRANSACTIONS, *ROWS, *SCHEMA, *CLOSED]:
            for more in ({}, {"analyze": True}) if sql not in HARMLESS else ({},):
                await wire.call("explain_query", sql=target.filled(sql) or " ", **more)
                target.unharmed(sql)


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("role", ["postgres", "owner"])
async def test_changing_rows_changes_nothing_else(role: str, target: Target) -> None:
    changing = ("writer()", "definer()", "xtval", "setval", "pg_notify", "xml", "DELETE FROM t; --")
    closed = [sql for sql in CLOSED if not any(word in sql for word in changing)]
    async with inside("--write", f"app={target.base.url(role)}") as wire:
        spared = {"SELECT"} if role == "postgres" else {*HARMLESS, "SELECT"}
        await attack(wire, target, "write_rows", [*SCHEMA, *TRANSACTIONS, *closed], spared)


@pytest.mark.anyio
async def test_a_function_that_defines_is_no_change_of_rows(target: Target) -> None:
    target.base.run(
        "CREATE FUNCTION sly() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN"
        " BEGIN CREATE TABLE IF NOT EXISTS x (a int); EXCEPTION WHEN division_by_zero THEN NULL; END; RETURN 1; END $$;"
        "CREATE FUNCTION slier() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM lo_create(4242); RETURN 1; END $$;"
        "CREATE FUNCTION setting() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM set_config('search_path', 'pg_catalog', false); RETURN 1; END $$",
        "owner",
    )
    target.begin()
    async with inside("--write", f"app={target.base.url('owner')}") as wire:
        for sql in ("SELECT sly()", "UPDATE t SET id = id + 0 * sly()", "SELECT slier()"):
            result = await wire.call("write_rows", sql=sql)
            assert result.get("isError") and "more than rows" in text_of(result), text_of(result)
            target.unharmed(sql)
        # What it sets for the session does not stay.
        assert "committed" in text_of(await wire.call("write_rows", sql="SELECT setting()"))
        assert "public" in text_of(await wire.call("query_rows", sql="SHOW search_path"))


@pytest.mark.slow
@pytest.mark.anyio
async def test_changing_the_schema_changes_nothing_else(target: Target) -> None:
    async with inside("--ddl", f"app={target.base.url('owner')}") as wire:
        closed = [sql for sql in CLOSED if not sql.startswith(("REFRESH", "VACUUM", "ANALYZE", "REINDEX"))]
        await attack(wire, target, "edit_schema", [*ROWS, *TRANSACTIONS, *closed])
        for sql in SCHEMA:
            result = await wire.call("edit_schema", sql=sql, dry_run=True)
            assert not result.get("isError") or sql.startswith(("SELECT", "CREATE TEMP")), f"{sql}: {text_of(result)}"
            target.unharmed(sql)


@pytest.mark.anyio
async def test_a_superuser_changes_no_schema(target: Target) -> None:
    # Where a database is served by another role too, the tool is offered.
    also = f"also={make().url('owner')}"
    target.begin()
    async with inside("--ddl", f"app={target.base.url('postgres')}", also) as wire:
        await attack(wire, target, "edit_schema", [*SCHEMA, *ROWS, *CLOSED], database="app")


@pytest.mark.anyio
async def test_what_a_mode_is_for_works(target: Target) -> None:
    async with inside("--write", "--ddl", f"app={target.base.url('owner')}") as wire:
        for sql in ("DELETE FROM u", "UPDATE t SET name = 'x'", "INSERT INTO t VALUES (9, 'x')", ROWS[5], ROWS[6]):
            result = await wire.call("write_rows", sql=sql, dry_run=True)
            assert "Dry run" in text_of(result), f"{sql}: {text_of(result)}"
            target.unharmed(sql)
        assert "Done and committed" in text_of(
            await wire.call("write_rows", sql="UPDATE t SET name = 'x' WHERE id = 1")
        )
        assert "column public.t.x" in text_of(await wire.call("edit_schema", sql="ALTER TABLE t ADD x integer"))
    assert target.base.rows("SELECT name, x FROM t WHERE id = 1") == [("x", None)]
    target.begin()


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["superuser, everything", "read role"])
async def test_every_legitimate_read_is_answered(mode: str, target: Target) -> None:
    role, flags = MODES[mode]
    # A superuser runs no other role's functions.
    target.base.run("ALTER FUNCTION twice(integer) OWNER TO postgres")
    target.begin()
    async with inside(*flags, f"app={target.base.url(role)}") as wire:
        for sql in READS:
            result = await wire.call("query_rows", sql=sql)
            assert not result.get("isError"), f"{sql}: {text_of(result)}"
        target.unharmed("reading")


@pytest.mark.anyio
async def test_a_role_that_may_quiet_the_log_is_judged_too() -> None:
    base = make()
    if base.rows("SELECT current_setting('server_version_num')::int")[0][0] >= 150000:
        base.run("GRANT SET ON PARAMETER log_min_messages TO reader")
        try:
            with psycopg.connect(base.url("reader"), autocommit=True) as mate:
                async with inside(f"app={base.url('reader')}") as wire:
                    sql = f"SELECT pg_terminate_backend({mate.info.backend_pid})"
                    assert "may do more than read" in text_of(await wire.call("query_rows", sql=sql))
                assert mate.execute("SELECT 1").fetchone() == (1,)
        finally:
            base.run("REVOKE SET ON PARAMETER log_min_messages FROM reader")
