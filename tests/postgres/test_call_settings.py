"""What a call sets holds for its own statements, and for no other call's: a role, what policies read, a plan."""

import pytest

from mcp_batteries.errors import Invalid
from mcp_postgres.engine.query import row_counts
from mcp_postgres.policy.call_settings import CallSetting, parse_call_setting
from postgres.serving import Base, Inside, inside, make, text_of

pytestmark = pytest.mark.anyio

SCHEMA = """
CREATE TABLE notes (id integer PRIMARY KEY, tenant integer, note text);
INSERT INTO notes SELECT g, g % 3, 'n' || g FROM generate_series(1, 9) g;
ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON notes USING (tenant = current_setting('app.tenant', true)::integer);
CREATE TABLE counted (id integer PRIMARY KEY);
INSERT INTO counted SELECT generate_series(1, 1234);
"""
PARSED = [
    ("SET app.tenant = '1'", CallSetting("app.tenant", "1")),
    ("set local App.Tenant to 7", CallSetting("app.tenant", "7")),
    ("/* a */ SET SESSION app.x TO 'it''s'", CallSetting("app.x", "it's")),
    ("SET work_mem = '64MB'", CallSetting("work_mem", "64MB")),
    ("SET enable_seqscan TO off", CallSetting("enable_seqscan", "off")),
    ("SET TIME ZONE 'UTC'", CallSetting("timezone", "UTC")), ("SET timezone = 'UTC'", CallSetting("timezone", "UTC")),
    ("SET ROLE Reader", CallSetting("role", "reader")), ('SET LOCAL ROLE "Reader"', CallSetting("role", "Reader")),
    ("SET role = 'Reader'", CallSetting("role", "Reader")), ("RESET ROLE", CallSetting("role", "none")),
    ("SELECT set_config('app.tenant', '1', false)", CallSetting("app.tenant", "1")),
    ("SELECT pg_catalog.set_config('role', 'reader', true)", CallSetting("role", "reader")),
    ("SELECT set_config('app.tenant', '1', true) FROM notes", None), ("SELECT 1", None), ("SETS", None),
]  # fmt: skip
REFUSED = [
    "SET search_path TO x", "SET statement_timeout = 0", "SET SESSION AUTHORIZATION x", "SET session_authorization = x",
    "SET transaction_read_only = off", "SET TRANSACTION READ WRITE", "RESET ALL", "SET app.x = 1, 2", "SET app.x = '1",
    "SELECT set_config('log_statement', 'all', true)", "SET CONSTRAINTS ALL DEFERRED",
    "SET default_transaction_read_only = off",
]  # fmt: skip


@pytest.mark.parametrize(("sql", "setting"), PARSED)
def test_what_a_statement_sets_is_read(sql: str, setting: CallSetting | None) -> None:
    assert parse_call_setting(sql) == setting


@pytest.mark.parametrize("sql", REFUSED)
def test_what_no_call_can_set_stops_it(sql: str) -> None:
    with pytest.raises(Invalid, match="call can set"):
        parse_call_setting(sql)


async def query(wire: Inside, sql: str, **arguments: object) -> str:
    return text_of(await wire.call("query_rows", sql=sql, **arguments))


def with_tenant() -> Base:
    base = make(SCHEMA)
    base.run("DO $$BEGIN IF to_regrole('tenant') IS NULL THEN CREATE ROLE tenant; END IF; END$$; GRANT tenant TO owner")
    base.run("GRANT SELECT ON notes TO tenant", "owner")
    return base


async def test_policies_read_what_the_call_sets_and_the_next_call_finds_nothing_of_it() -> None:
    async with inside(f"app={with_tenant().url()}") as wire:
        for setting in ("SET app.tenant = '1'", "SELECT set_config('app.tenant', '1', true)"):
            said = await query(wire, f"{setting}; SELECT id FROM notes WHERE id > $1", parameters=[2])
            assert said == '[2 rows]\n["id"]\n[4]\n[7]\n', said
            said = await query(wire, f"{setting}; SELECT count(*) FROM notes; SELECT max(id) FROM notes")
            assert '1 of 2: [1 row]\n["count"]\n[3]\n2 of 2: [1 row]\n["max"]\n[7]' in said, said
            # It is missing again, and not empty, which would be no number.
            assert "[null]" in await query(wire, "SELECT current_setting('app.tenant', true)")
            assert "[0 rows]" in await query(wire, "SELECT id FROM notes")
        said = await query(wire, "SELECT set_config('app.tenant', '1', true), 2")
        assert '["1",2]' in said and "[0 rows]" in await query(wire, "SELECT id FROM notes")
        said = await query(wire, "SELECT set_config('app.tenant', '1', true), 2; SELECT id FROM notes")
        assert "would not hold for the other statements" in said, said


async def test_a_setting_alone_is_sent_with_what_it_is_for() -> None:
    async with inside(f"app={with_tenant().url('owner')}") as wire:
        refused = await query(wire, "SET app.tenant = '1'; SET app.x = '2'")
        assert "Send `SET ...; SELECT ...`." in refused, refused
        assert "[1 row]" in await query(wire, "SET app.tenant = '1'; SELECT count(*) FROM notes")


async def test_later_pages_keep_the_settings_of_their_query() -> None:
    base = make(SCHEMA)
    base.run("INSERT INTO notes SELECT g, g % 3, repeat('n', 2000) FROM generate_series(10, 9000) g", "owner")
    async with inside(f"app={base.url()}") as wire:
        said = await query(wire, "SET app.tenant = '1'; SELECT id, note FROM notes ORDER BY id", limit=1800)
        while "cursor=" in said:
            cursor = said.partition("cursor=")[2].partition("]")[0]
            said = text_of(await wire.call("query_rows", cursor=cursor, limit=1800, max_bytes=1_000_000))
            assert "failed" not in said and '["id","note"]' in said, said[:300]
        assert "\n[8998," in said and "\n[8999," not in said


@pytest.mark.parametrize("role", ["owner", "postgres"])
async def test_a_query_looks_as_another_role(role: str) -> None:
    async with inside("--write", f"app={with_tenant().url(role)}") as wire:
        sql = (
            "SET ROLE tenant; SET app.tenant = '2'; SELECT id, current_user FROM notes; RESET ROLE; SELECT current_user"
        )
        said = await query(wire, sql)
        assert '[2,"tenant"]\n[5,"tenant"]\n[8,"tenant"]\n2 of 2' in said and f'["{role}"]' in said, said
        assert "permission denied for table counted" in await query(wire, "SET ROLE tenant; SELECT * FROM counted")
        assert '"nobody_here" does not exist' in await query(wire, "SET ROLE nobody_here; SELECT 1")
        assert (
            "Subquery" in (said := await query(wire, "SET ROLE tenant; EXPLAIN SELECT * FROM notes"))
            or "Filter" in said
        )
        assert f'["{role}"]' in await query(wire, "SELECT current_user")
        said = text_of(await wire.call("write_rows", sql="SET ROLE tenant; DELETE FROM notes"))
        assert "`as_role` tries it" in said, said
        said = text_of(
            await wire.call("write_rows", sql="SET app.tenant = '2'; SELECT id FROM notes", as_role="tenant")
        )
        assert "2. SELECT: 3 rows" in said, said


async def test_a_superuser_sets_nothing_of_a_library() -> None:
    base = make(SCHEMA)
    base.run("CREATE EXTENSION hstore")
    async with inside(f"app={base.url('postgres')}") as wire:
        assert "[1]" in await query(wire, "SET app.tenant = '1'; SELECT 1")
        for name in ("plpgsql.extra_warnings", "PLpgSQL.x", "hstore.anything"):
            assert "a library's settings may begin" in await query(wire, f"SET {name} = 'all'; SELECT 1"), name
        assert "Write `SET app.user = '7';`" in await query(wire, "SELECT set_config('app.tenant', '1', true)")


async def test_a_setting_of_the_planner_holds_for_explain() -> None:
    async with inside(f"app={make(SCHEMA).url('owner')}") as wire:
        said = await query(
            wire, "SET enable_indexscan = off; SET enable_bitmapscan = off; EXPLAIN SELECT FROM counted WHERE id = 3"
        )
        assert "Seq Scan" in said, said


async def test_rows_are_counted_exactly_and_what_policies_hide_is_said() -> None:
    base = make(SCHEMA)
    for role, notes in (
        ("owner", "9 rows\n"),
        ("postgres", "9 rows\n"),
        ("reader", "0 rows that its policies show to the role"),
    ):
        async with inside(f"app={base.url(role)}") as wire:
            listed = text_of(await wire.call("list_objects", kind="counts"))
            assert "- public.counted 1,234 rows\n" in listed and f"- public.notes {notes}" in listed, listed
    async with inside(f"app={base.url('owner')}") as wire:
        with base.connect() as connection:
            connection.execute("BEGIN")
            connection.execute("LOCK TABLE notes")
            listed = text_of(await wire.call("list_objects", kind="counts"))
            assert "- public.notes not counted: locked by pid" in listed and "1,234 rows" in listed, listed


async def test_a_count_without_time_left_says_what_was_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_counts, "_TIME_SHARE", 0)
    base = make(SCHEMA)
    base.run("ANALYZE counted", "owner")
    async with inside(f"app={base.url('owner')}") as wire:
        listed = text_of(await wire.call("list_objects", kind="counts"))
        assert "- public.counted not counted: no time is left, about 1,234 by the last ANALYZE" in listed, listed


async def test_a_dry_run_looks_as_a_role_that_it_makes() -> None:
    base = with_tenant()
    sql = (
        "CREATE ROLE just_tried; GRANT SELECT ON notes TO just_tried; CREATE POLICY first ON notes TO just_tried"
        " USING (id < 3); SET ROLE just_tried; SELECT id FROM notes"
    )
    base.run(
        "DO $$BEGIN IF to_regrole('maker') IS NULL THEN CREATE ROLE maker LOGIN CREATEROLE PASSWORD 'maker';"
        "END IF; END$$;"
        "GRANT owner TO maker"
    )
    async with inside("--write", "--ddl", "--trust-database", f"app={base.url('maker')}") as wire:
        said = text_of(await wire.call("edit_schema", sql=sql, dry_run=True))
        assert '5. SELECT: 2 rows\n["id"]\n[1]\n[2]' in said and "+ role just_tried" in said, said
        assert "reaches beyond" in text_of(await wire.call("edit_schema", sql=sql))
        for refused in ("CREATE ROLE x IN ROLE pg_read_server_files", "CREATE ROLE x SUPERUSER", "DROP ROLE tenant"):
            assert "reaches beyond" in text_of(await wire.call("edit_schema", sql=refused, dry_run=True)), refused
    async with inside("--write", "--ddl", f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("edit_schema", sql=sql, dry_run=True))
        assert "permission denied to create role" in said and "FORCE ROW LEVEL SECURITY" in said, said
        said = text_of(await wire.call("edit_schema", sql="SET ROLE tenant; SELECT 1"))
        assert "Set `dry_run`" in said, said
        said = text_of(
            await wire.call(
                "edit_schema", dry_run=True, sql="SET ROLE tenant; SET app.tenant = '1'; SELECT count(*) FROM notes"
            )
        )
        assert "[3]" in said, said
    assert base.rows("SELECT to_regrole('just_tried')") == [(None,)]


async def test_a_dry_run_changes_no_schema_as_another_role() -> None:
    """It would run as the server's own role, and so succeed where that role could not do it."""
    async with inside("--write", "--ddl", f"app={with_tenant().url('owner')}") as wire:
        for statement in ("DROP TABLE counted", "CREATE TABLE made (a int)", "ANALYZE counted"):
            said = text_of(await wire.call("edit_schema", sql=f"SET ROLE tenant; {statement}", dry_run=True))
            assert "not tried as another role" in said and "RESET ROLE" in said, said
        sql = "SET ROLE tenant; SELECT 1; RESET ROLE; DROP TABLE counted"
        assert "- table public.counted" in text_of(await wire.call("edit_schema", sql=sql, dry_run=True))


async def test_rows_that_a_policy_hides_are_not_shown_as_removed() -> None:
    base = make(SCHEMA)
    policies = (
        "DROP POLICY own ON notes; CREATE POLICY one ON notes USING (id = 9);ALTER TABLE notes FORCE ROW LEVEL SECURITY"
    )
    async with inside("--write", "--ddl", f"app={base.url('owner')}") as wire:
        said = text_of(await wire.call("edit_schema", sql=f"UPDATE notes SET note = 'x'; {policies}", dry_run=True))
        assert '- [1,1,"n1"]' in said and '+ [1,1,"x"]' in said and said.count("\n+ [") == said.count("\n- ["), said
        said = text_of(
            await wire.call("edit_schema", sql=f"CREATE TABLE new AS SELECT 1 AS a; {policies}", dry_run=True)
        )
        assert "+ [1]" in said and "\n- [" not in said, said
