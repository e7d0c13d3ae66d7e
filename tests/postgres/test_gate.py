"""What a role that could do harm is held to: no code of other roles, nothing left behind; a sample of `prove_gate`."""

import itertools
import random
import re
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mcp_postgres.engine.audit.function_audit import CodeAudit
from mcp_postgres.engine.audit.visible_schema import VisibleObjects
from mcp_postgres.engine.connection.session import Session
from mcp_postgres.operator_sql import reader_role_sql
from mcp_postgres.policy import VisibleSchema
from postgres.prove_gate import extensions, prove
from postgres.serving import Base, cluster, inside, major, make, text_of
from proofs.tally import Tally

_numbers = itertools.count(1)


def role(attributes: str = "", *grants: str) -> str:
    """A role of its own, that may read the tables of `public`."""
    name = f"part{next(_numbers)}"
    Base("postgres").run(f"CREATE ROLE {name} LOGIN PASSWORD '{name}' {attributes}")
    for grant in grants:
        Base("postgres").run(f"GRANT {grant} TO {name}")
    return name


async def asked(base: Base, who: str, *statements: str, flags: tuple[str, ...] = ()) -> list[str]:
    async with inside(*flags, f"app={base.url(who)}") as wire:
        return [text_of(await wire.call("query_rows", sql=sql)) for sql in statements]


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_sample_of_the_proof() -> None:
    tally = await prove(0.0005, 7, roles=["postgres"], shown=0.08, follow=False)
    assert tally.wrong == []
    assert tally.counts["evil refused"] > 50 and tally.counts["fine answered"] > 40, tally.counts


@pytest.mark.share(2)
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("attributes", "grants", "power"),
    [
        ("", ["pg_signal_backend"], "`pg_signal_backend`"),
        ("", ["pg_execute_server_program"], "`pg_execute_server_program`"),
        ("", ["pg_read_server_files"], "`pg_read_server_files`"),
        ("REPLICATION", [], "`replication`"),
        ("NOINHERIT", ["postgres"], "is a superuser, or may become one"),
        ("", ["EXECUTE ON FUNCTION pg_catalog.pg_switch_wal()"], "`pg_switch_wal()`"),
    ],
)
async def test_a_power_that_nothing_could_hold_back_is_not_served(
    attributes: str, grants: list[str], power: str
) -> None:
    base = make()
    on_cluster = [grant for grant in grants if "FUNCTION" not in grant]
    who = role(attributes, *on_cluster)
    for grant in set(grants) - set(on_cluster):
        base.run(f"GRANT {grant} TO {who}")
    for said in await asked(base, who, "SELECT 1", "SELECT pg_cancel_backend(1)"):
        assert "is not served" in said and power in said and "--trust-database" in said, said
    assert "[1]" in (await asked(base, who, "SELECT 1", flags=("--trust-database",)))[0]
    if major() >= 15:
        Base("postgres").run(f"GRANT SET ON PARAMETER log_min_messages TO {who}")
        one, ends, strange = await asked(base, who, "SELECT 1", "SELECT pg_cancel_backend(1)", "SELECT twice(1)")
        assert "[1]" in one and "may do more than read" in ends and "twice() of owner" in strange


@pytest.mark.anyio
async def test_powers_that_do_no_harm_are_served() -> None:
    base = make()
    for who in (role("CREATEDB CREATEROLE"), role("", "pg_monitor"), role("", "pg_read_all_data"), role("BYPASSRLS")):
        assert "[1]" in (await asked(base, who, "SELECT 1"))[0]


@pytest.mark.anyio
async def test_a_sequence_is_not_advanced_by_reading() -> None:
    base = make("CREATE SEQUENCE counted")
    said = await asked(base, "postgres", "SELECT nextval('counted')")
    assert "`nextval()` may do more than read" in said[0]


@pytest.mark.anyio
async def test_no_function_looks_into_tables_by_their_names() -> None:
    base = make()
    functions = base.rows("SELECT proname, pronargs FROM pg_proc WHERE proname ~ '_to_xml'")
    assert len(functions) >= 14
    calls = [f"SELECT {name}({', '.join(['NULL'] * count)})" for name, count in functions]
    for (name, _), said in zip(functions, await asked(base, "postgres", *calls), strict=True):
        assert f"`{name}()` may do more than read" in said, said


@pytest.mark.anyio
async def test_a_statement_that_is_not_shown_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_postgres.engine.admission.statements._QUERY_TREE", re.compile("written in another way"))
    assert "did not show what `sql` would run" in (await asked(make(), "postgres", "SELECT 1"))[0]


@pytest.mark.anyio
async def test_trust_is_the_operators_word() -> None:
    base = make()
    said = await asked(base, "postgres", "SELECT twice(21)", "SELECT writer()", flags=("--trust-database",))
    assert "[42]" in said[0] and "may do more than read" in said[1]
    said = await asked(base, "postgres", "SELECT twice(21)")
    assert "twice() of owner" in said[0] and "--create-reader" in said[0] and "--trust-database" in said[0]


@pytest.mark.anyio
async def test_what_is_known_of_a_database_is_as_new_as_the_database() -> None:
    base = make("CREATE TABLE t (id integer); INSERT INTO t VALUES (1)")
    async with inside(f"app={base.url('postgres')}") as wire:

        async def read() -> str:
            return text_of(await wire.call("query_rows", sql="SELECT * FROM t WHERE id > 0"))

        assert "[1]" in await read()
        base.run("CREATE FUNCTION f(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 1'", "owner")
        assert "[1]" in await read()
        base.run("CREATE INDEX laid ON t ((id + f(1)))", "owner")
        said = await read()
        assert "index public.laid" in said and "f() of owner" in said, said
        base.run("ALTER FUNCTION f(integer) OWNER TO postgres")
        assert "[1]" in await read()
        base.run("ALTER FUNCTION f(integer) OWNER TO owner")
        assert "f() of owner" in await read()
        base.run("DROP INDEX laid")
        assert "[1]" in await read()


@pytest.mark.anyio
async def test_what_is_laid_while_a_statement_is_judged_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    base = make("CREATE TABLE t (id integer); INSERT INTO t VALUES (1)")
    base.run("CREATE FUNCTION f(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 1'", "owner")
    real, laying = Session.run_pipeline, iter(["CREATE INDEX laid ON t ((id + f(1)))"])

    async def together(session: Session, *statements: Any) -> Any:
        if any(sql.startswith("PREPARE") for sql, _ in statements):
            base.run(next(laying, "SELECT 1"), "owner")
        return await real(session, *statements)

    monkeypatch.setattr(Session, "run_pipeline", together)
    said = (await asked(base, "postgres", "SELECT * FROM t WHERE id > 0"))[0]
    assert "f() of owner" in said, said


@pytest.mark.slow
@pytest.mark.anyio
async def test_every_view_of_postgresqls_own_is_read_by_a_superuser() -> None:
    base = make()
    views = base.rows(
        "SELECT c.oid::regclass::text FROM pg_class c WHERE c.oid < 16384 AND c.relkind = 'v' AND c.relnamespace IN"
        " ('pg_catalog'::regnamespace, 'information_schema'::regnamespace) ORDER BY 1"
    )
    assert len(views) > 100
    async with inside(f"app={base.url('postgres')}") as wire:
        for start in range(0, len(views), 15):
            some = [f"(SELECT 1 FROM {view} LIMIT 0)" for (view,) in views[start : start + 15]]
            said = text_of(await wire.call("query_rows", sql=f"SELECT {', '.join(some)}"))
            assert said.startswith("[1 row]"), f"{some}: {said}"
        for call in (
            "random()", "pg_sleep(0)", "pg_sleep_for('0')", "setseed(0)", "pg_database_size(current_database())",
            "pg_table_size('t'::regclass)", "pg_indexes_size('t'::regclass)", "pg_relation_size('t'::regclass)",
            "pg_tablespace_size('pg_default')", "pg_blocking_pids(1)", "pg_safe_snapshot_blocking_pids(1)",
            "pg_is_in_recovery()", "pg_current_wal_lsn()", "pg_current_wal_insert_lsn()", "pg_current_wal_flush_lsn()",
            "pg_last_wal_receive_lsn()", "pg_last_wal_replay_lsn()", "pg_last_xact_replay_timestamp()",
            "pg_sequence_last_value('s'::regclass)", "pg_control_system()", "pg_control_checkpoint()",
            "pg_control_recovery()", "pg_control_init()", "pg_notification_queue_usage()", "pg_jit_available()",
            "pg_partition_tree('t'::regclass)", "pg_partition_ancestors('t'::regclass)", "timeofday()",
            "pg_relation_filenode('t'::regclass)", "pg_relation_filepath('t'::regclass)", "clock_timestamp()",
            "pg_stat_clear_snapshot()", "gen_random_uuid()", "(SELECT count(*) FROM t TABLESAMPLE SYSTEM (50))",
        ):  # fmt: skip
            said = text_of(await wire.call("query_rows", sql=f"SELECT {call}"))
            assert not said.startswith("The role"), f"{call}: {said}"


@pytest.mark.anyio
async def test_a_superusers_function_is_read_for_what_it_could_reach() -> None:
    base = make()
    base.run(
        "CREATE FUNCTION clean(integer) RETURNS integer LANGUAGE plpgsql STABLE AS 'BEGIN RETURN $1 + 1; END';"
        "CREATE FUNCTION naming(integer) RETURNS integer LANGUAGE plpgsql STABLE AS 'BEGIN RETURN Twice($1); END';"
        "CREATE FUNCTION calling(integer) RETURNS integer LANGUAGE sql STABLE AS 'SELECT naming($1)';"
        "CREATE FUNCTION dynamic(text) RETURNS integer LANGUAGE plpgsql STABLE AS"
        " 'DECLARE found integer; BEGIN EXECUTE $1 INTO found; RETURN found; END'"
    )
    said = await asked(
        base,
        "postgres",
        "SELECT clean(1)",
        "SELECT naming(1)",
        "SELECT calling(1)",
        "SELECT dynamic('SELECT twice(1)')",
    )
    assert "[2]" in said[0]
    for refused in said[1:]:
        assert "whose body may reach what belongs to others" in refused, refused
    base.run("DROP FUNCTION twice, writer, definer; DROP PROCEDURE proc")
    (said,) = await asked(base, "postgres", "SELECT dynamic('SELECT 1')")
    assert "its body has `EXECUTE`" in said and "--trust-functions public.dynamic" in said, said
    (said,) = await asked(base, "postgres", "SELECT dynamic('SELECT 1')", flags=("--trust-functions", "public.dynamic"))
    assert "[1]" in said, said


@pytest.mark.anyio
async def test_functions_of_extensions(open_folder: Path) -> None:
    """From PostgreSQL 18 on an extension can be made for a test; before, the system's own are there."""
    base, path = make(), ""
    if major() >= 18:
        folder = open_folder / "extension"
        folder.mkdir()
        own = "RETURNS integer LANGUAGE sql {} AS 'SELECT 1'"
        for name, script in {
            "pgcrypto": f"CREATE FUNCTION gen_random_bytes(integer) {own.format('VOLATILE')};",
            "pg_stat_statements": f"CREATE FUNCTION pg_stat_statements_reset() {own.format('VOLATILE')};",
            "dblink": f"CREATE FUNCTION dblink_get_connections() {own.format('STABLE')};",
            "citext": f"CREATE FUNCTION regexp_match(text) {own.format('IMMUTABLE')};"
            f"CREATE FUNCTION writes(text) {own.format('VOLATILE')};",
        }.items():
            (folder / f"{name}.control").write_text("default_version = '1'\n", "ascii")
            (folder / f"{name}--1.sql").write_text(script, "ascii")
        path = f"SET extension_control_path = '{open_folder}:$system';"
    for name in ("pgcrypto", "pg_stat_statements", "dblink", "citext"):
        base.run(f"{path} CREATE EXTENSION {name}")
    said = await asked(
        base, "postgres", "SELECT gen_random_bytes(4)", "SELECT regexp_match('a')" if path else "SELECT 'a'::citext",
        "SELECT pg_stat_statements_reset()", "SELECT dblink_get_connections()",
    )  # fmt: skip
    assert "[1 row]" in said[0] and "[1 row]" in said[1], said
    assert "`pg_stat_statements_reset()` may do more" in said[2]
    assert "functions of the extension dblink do is not known" in said[3], said[3]
    if path:
        assert "`writes()` may do more" in (await asked(base, "postgres", "SELECT writes('a')"))[0]
    # An extension's function counts as its owner's: whoever owns it can replace it.
    base.run(f"ALTER FUNCTION gen_random_bytes{'(integer)' if path else ''} OWNER TO owner")
    assert "gen_random_bytes() of owner" in (await asked(base, "postgres", "SELECT gen_random_bytes(4)"))[0]


@pytest.mark.weekly
@pytest.mark.anyio
async def test_functions_of_extensions_that_are_here_leave_no_trace() -> None:
    tally = Tally()
    await extensions(tally, 0.02, random.Random(7))
    assert not tally.wrong and tally.counts["functions of extensions"] > 50, tally.wrong


@pytest.mark.anyio
async def test_bodies_are_read_whether_or_not_there_are_strangers() -> None:
    base = make("CREATE TABLE t (id integer)")
    base.run(
        "CREATE FUNCTION runs(text) RETURNS integer LANGUAGE plpgsql STABLE AS"
        " 'DECLARE found integer; BEGIN EXECUTE $1 INTO found; RETURN found; END';"
        "CREATE FUNCTION passes(text) RETURNS integer LANGUAGE sql STABLE AS 'SELECT public.\"runs\" ($1)';"
        "CREATE FUNCTION parsed(text) RETURNS integer LANGUAGE sql STABLE RETURN runs($1);"
        "CREATE FUNCTION step(integer, text) RETURNS integer LANGUAGE sql STABLE AS 'SELECT passes($2)';"
        "CREATE AGGREGATE gathers(text) (SFUNC = step, STYPE = integer);"
        "CREATE FUNCTION equal(text, text) RETURNS boolean LANGUAGE sql STABLE AS 'SELECT runs($1) = runs($2)';"
        "CREATE OPERATOR ~=~ (LEFTARG = text, RIGHTARG = text, FUNCTION = equal);"
        "CREATE VIEW seen AS SELECT passes('SELECT 1') AS x;"
        "CREATE FUNCTION executed(text) RETURNS integer LANGUAGE sql STABLE AS 'SELECT length($1)'"
    )
    said = await asked(
        base, "postgres", "SELECT executed('abc')", "SELECT runs('SELECT 1')", "SELECT passes('SELECT 1')",
        "SELECT parsed('SELECT 1')", "SELECT gathers('SELECT 1')", "SELECT 'SELECT 1' OPERATOR(public.~=~) 'SELECT 1'",
        "SELECT * FROM seen", "EXPLAIN SELECT passes('SELECT 1')",
    )  # fmt: skip
    assert "[3]" in said[0], said[0]
    for refused in said[1:]:
        assert "may run what it is given" in refused, refused
    trusted = await asked(
        base, "postgres", "SELECT passes('SELECT 1')", "SELECT runs('SELECT 1')",
        flags=("--trust-functions", "app=public.nothing", "--trust-functions", "public.passes"),
    )  # fmt: skip
    assert "[1]" in trusted[0] and "may run what it is given" in trusted[1], trusted


@pytest.mark.anyio
async def test_a_cast_is_followed_from_its_source_only() -> None:
    """As with `topology.geometry()`: nobody could read a geometry beside a function of any other role."""
    base = make()
    base.run(
        "CREATE TYPE feature AS (id integer); CREATE TYPE outline AS (points text);"
        "CREATE FUNCTION outline(feature) RETURNS outline LANGUAGE plpgsql STABLE AS"
        " $$ DECLARE found outline; BEGIN EXECUTE 'SELECT ROW(''a'')::public.outline' INTO found; RETURN found; END $$;"
        "CREATE CAST (feature AS outline) WITH FUNCTION outline(feature);"
        "CREATE TABLE shapes (shape outline); INSERT INTO shapes VALUES (ROW('a'));"
        "CREATE TABLE features (one feature); INSERT INTO features VALUES (ROW(1))"
    )
    shapes, features, cast = await asked(
        base, "postgres", "SELECT * FROM shapes", "SELECT * FROM features", "SELECT one::outline FROM features"
    )
    assert "[1 row]" in shapes, shapes
    assert "whose body may reach what belongs to others" in features and "outline()" in cast, (features, cast)


@pytest.mark.anyio
async def test_a_foreign_table_of_a_stranger_is_not_read() -> None:
    base = make()
    base.run(
        "CREATE FOREIGN DATA WRAPPER away; CREATE SERVER there FOREIGN DATA WRAPPER away;"
        "GRANT USAGE ON FOREIGN SERVER there TO owner"
    )
    base.run("CREATE FOREIGN TABLE far (id integer) SERVER there", "owner")
    base.run("CREATE FOREIGN TABLE ours (id integer) SERVER there")
    strange, own = await asked(base, "postgres", "SELECT * FROM far", "SELECT * FROM ours")
    assert "foreign table public.far of owner" in strange and "has no handler" in own, (strange, own)
    base.run("ALTER SERVER there OWNER TO owner")
    assert "server there of owner" in (await asked(base, "postgres", "SELECT * FROM ours"))[0]


@pytest.mark.anyio
async def test_a_role_given_in_the_options_does_not_hide_who_connected() -> None:
    base = make()
    address = base.url("postgres", more="?options=-c%20role%3Dreader")
    async with inside(f"app={address}") as wire:
        said = text_of(await wire.call("query_rows", sql="SELECT set_config('role', 'none', false)"))
        assert "is not served" in said and "may become one" in said, said
    async with inside("--trust-database", f"app={address}") as wire:
        for _ in range(2):
            assert '["reader"]' in text_of(await wire.call("query_rows", sql="SELECT current_user"))


@pytest.mark.anyio
async def test_nothing_temporary_stays_in_a_connection() -> None:
    base = make()
    base.run(
        "CREATE FUNCTION leaves() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'LISTEN heard';"
        " EXECUTE 'PREPARE kept AS SELECT 1'; PERFORM set_config('search_path', 'pg_temp', false);"
        " PERFORM pg_advisory_lock(7); RETURN 1; END $$",
        "owner",
    )
    left = (
        "SELECT pg_backend_pid(), (SELECT count(*) FROM pg_prepared_statements),"
        " (SELECT count(*) FROM pg_listening_channels()), current_setting('search_path'),"
        " (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),"
        " (SELECT count(*) FROM pg_class WHERE relnamespace = pg_my_temp_schema())"
    )
    # One connection: whoever asks afterwards meets what is left in it.
    async with inside("--write", "--ddl", "--connections", 1, f"app={base.url('owner')}") as wire:
        before = text_of(await wire.call("query_rows", sql=left))
        for sql in (
            "CREATE TEMP TABLE t (id integer, name text)", "CREATE TEMPORARY VIEW t AS SELECT 1 AS id",
            "CREATE TABLE pg_temp.t (id integer)", "CREATE TEMP SEQUENCE s",
            "CREATE FUNCTION pg_temp.lower(text) RETURNS text LANGUAGE sql AS $$SELECT 'forged'$$",
            "CREATE DOMAIN pg_temp.d AS integer", "CREATE TEMP TABLE x AS SELECT 1 AS id",
        ):  # fmt: skip
            for dry_run in (True, False):
                said = text_of(await wire.call("edit_schema", sql=sql, dry_run=dry_run))
                assert "temporary object" in said.lower(), f"{sql}: {said}"
            assert text_of(await wire.call("query_rows", sql=left)) == before
        assert "committed" in text_of(await wire.call("write_rows", sql="SELECT leaves()"))
        assert text_of(await wire.call("query_rows", sql=left)) == before
        assert '[1,"a"]' in text_of(await wire.call("query_rows", sql="SELECT * FROM t WHERE id = 1"))


@pytest.mark.anyio
async def test_changing_rows_makes_no_role() -> None:
    base, who = make(), role("CREATEROLE")
    base.run(f"GRANT CREATE ON SCHEMA public TO {who}; GRANT ALL ON ALL TABLES IN SCHEMA public TO {who}")
    base.run(
        "CREATE FUNCTION makes() RETURNS integer LANGUAGE plpgsql AS 'BEGIN CREATE ROLE made_by_rows; RETURN 1; END'",
        who,
    )
    async with inside("--write", f"app={base.url(who)}") as wire:
        said = text_of(await wire.call("write_rows", sql="SELECT makes()"))
    assert "more than rows" in said and "pg_authid" in said, said
    assert base.rows("SELECT count(*) FROM pg_roles WHERE rolname = 'made_by_rows'") == [(0,)]


WRITE_LARGE_OBJECTS = (
    "SELECT lo_from_bytea(0, 'x')", "SELECT lo_put(1, 0, 'x')", "SELECT lo_create(0)", "SELECT lo_creat(-1)",
    "SELECT lo_unlink(1)", "SELECT lowrite(0, 'x')", "SELECT lo_truncate(0, 1)",
)  # fmt: skip


@pytest.mark.anyio
async def test_the_printed_role_can_only_read() -> None:
    base, name = make(), f"part{next(_numbers)}"
    base.run(reader_role_sql().replace("mcp_reader", name).replace("change me", name))
    try:
        with psycopg.connect(base.url(name), autocommit=True) as mate:
            message, ends, reads = await asked(
                base, name, "SELECT pg_logical_emit_message(false, 'a', 'b')",
                f"SELECT pg_terminate_backend({mate.info.backend_pid})", "SELECT count(*) FROM t",
            )  # fmt: skip
            assert "permission denied" in message and "permission denied" in ends and "[3]" in reads
            writes = await asked(base, name, *WRITE_LARGE_OBJECTS)
            refused = "permission denied for function" if major() < 16 else "read-only transaction"
            assert all(refused in said for said in writes), writes
            assert mate.execute("SELECT 1").fetchone() == (1,)
    finally:
        base.run(f"REVOKE pg_monitor FROM {name}")


def test_the_name_of_an_armed_type_is_found_wherever_it_stands() -> None:
    world = CodeAudit(closed=True, visible=VisibleObjects(VisibleSchema()))
    world.harmful_names = {"dom": "d", 'od"d': "o", "x" * 63: "long", "öl": "oil", "%%%": "sign"}
    for text in (
        "'{1}'::dom[]", '"dom"', "a.DOM", "(dom)", "1dom", "'{}'::evil.Dom", "-dom", '\'{1}\'::"od""d"[]',
        "1 %%% '{1}'", "x" * 63, "x" * 80, "ÖL", 'u&"\\0064om"', "dom\n", "$1::dom",
    ):  # fmt: skip
        assert world.harm_of_literals(text), text
    for text in ("domain", "kingdom", "dom_one", "dom2", "_dom", "SELECT 1", "od d", "x" * 62):
        assert world.harm_of_literals(text) is None, text
    assert cluster().wait_until_ready()
