"""What other programs commit, told to those it concerns: both eras, both transports, with triggers and without."""

import json
from pathlib import Path

import anyio
import pytest

from e2e.following import UPDATED, changes_since, told
from e2e.serving import TRANSPORTS, connected
from mcp_batteries.testing.wire import MODERN, WireError
from mcp_postgres.operator_sql import notify_sql
from postgres.serving import Base, cluster, make, served

LISTED = "notifications/resources/list_changed"
TOP = "postgres://app/public"
T, ROW, OTHER, U = f"{TOP}/t", f"{TOP}/t/1", f"{TOP}/t/2", f"{TOP}/u"
BY_VALUE = f"{TOP}/t?column=name&value=b"
SCHEMA, T_SCHEMA = "postgres://app/.schema", f"{TOP}/t/.schema"


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.diagonal
@pytest.mark.anyio
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_foreign_commit_reaches_those_it_concerns(transport: str, revision: str) -> None:
    base = make()
    async with connected(transport, revision, "mcp_postgres", [f"app={base.url()}"]) as wire:
        await wire.request("resources/list")
        if wire.modern:
            await wire.listen({"resourcesListChanged": True})
        for uri in (T, ROW, OTHER, U, BY_VALUE, SCHEMA, T_SCHEMA):
            await wire.subscribe(uri)
        base.run("UPDATE t SET name = 'A' WHERE id = 1")
        await told(wire, T, ROW)
        base.run("UPDATE u SET note = 'new'")
        await told(wire, U)
        base.run("UPDATE t SET name = 'b2' WHERE id = 2")
        await told(wire, T, OTHER, BY_VALUE)
        base.run("CREATE TABLE later (a integer); GRANT SELECT ON later TO reader")
        await wire.notification(LISTED)
        await told(wire, SCHEMA)
        base.run("CREATE INDEX t_id ON t (id)")
        await told(wire, SCHEMA, T_SCHEMA)
        # A commit that changes nothing of what is followed, then one that does: only the second is heard.
        base.run("INSERT INTO later VALUES (1)")
        base.run("UPDATE u SET note = 'newer'")
        await told(wire, U)


@pytest.mark.anyio
async def test_a_row_beyond_the_hundredth_is_heard_newest_first() -> None:
    base = make()
    base.run("CREATE TABLE log (id serial PRIMARY KEY, note text); GRANT SELECT ON log TO reader")
    base.run("INSERT INTO log (note) SELECT g::text FROM generate_series(0, 249) g")
    base.run("CREATE TABLE keyless (note text); GRANT SELECT ON keyless TO reader")
    first, newest = f"{TOP}/log", f"{TOP}/log?order=newest&limit=2"
    async with served(f"app={base.url()}") as wire:
        for uri in (first, newest):
            await wire.subscribe(uri)
        base.run("INSERT INTO log (note) VALUES ('one more')")
        await wire.notification(UPDATED, lambda params: "order=newest" in params["uri"])
        shown = json.loads(await wire.read(newest))
        assert [row[-1] for row in shown["rows"]] == ["one more", "249"] and shown["truncated"]
        with pytest.raises(WireError, match="no key"):
            await wire.request("resources/read", {"uri": f"{TOP}/keyless?order=newest"})


@pytest.mark.anyio
async def test_a_rollback_and_an_open_transaction_tell_nothing() -> None:
    base = make()
    async with served(f"app={base.url()}") as wire:
        await wire.subscribe(T)
        await wire.subscribe(U)
        with base.connect() as writer:
            writer.execute("BEGIN")
            writer.execute("UPDATE t SET name = 'x'")
            writer.execute("ROLLBACK")
            base.run("UPDATE u SET note = 'marks the end'")
            await told(wire, U)
            writer.execute("BEGIN")
            writer.execute("UPDATE t SET name = 'y'")
            base.run("UPDATE u SET note = 'marks the middle'")
            await told(wire, U)
            writer.execute("COMMIT")
            await told(wire, T)


@pytest.mark.anyio
async def test_nobody_is_asked_while_nobody_follows() -> None:
    base = make()
    connections = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'mcp-postgres'"
    )
    async with served("--poll", "50", f"app={base.url()}") as wire:
        await wire.request("tools/list")
        assert base.rows(connections) == [(0,)]
        await wire.subscribe(T)
        base.run("UPDATE t SET name = 'x' WHERE id = 1")
        await told(wire, T)
        await wire.unsubscribe(T)
        with anyio.fail_after(30):
            # Looks go on only as long as somebody listens: from some moment on the last one stays the last one.
            last = None
            while last != (last := base.rows(_LOOKED)):
                await anyio.sleep(0.5)
        assert base.rows(_LOOKED) == last


_LOOKED = (
    "SELECT max(query_start) FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name = 'mcp-postgres'"
)


@pytest.mark.anyio
async def test_triggers_wake_the_look() -> None:
    base = make()
    base.run(notify_sql("mcp_changes").replace("public.my_table", "public.t"), "owner")
    # So seldom that only the triggers can have told.
    async with served("--poll", "60000", "--listen", "mcp_changes", f"app={base.url()}") as wire:
        await wire.subscribe(T)
        await wire.subscribe(U)
        with anyio.fail_after(30):
            while not base.rows(
                "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()"
            ):
                await anyio.sleep(0.05)
        for number in range(3):
            base.run(f"UPDATE t SET name = 'n{number}' WHERE id = 1")
            await told(wire, T)


@pytest.mark.anyio
async def test_our_own_changes_are_told_too() -> None:
    base = make()
    async with served("--write", f"app={base.url('owner')}") as wire:
        await wire.subscribe(T)
        await wire.call("write_rows", sql="UPDATE t SET name = 'x' WHERE id = 1", dry_run=True)
        await wire.call("write_rows", sql="UPDATE t SET name = 'x' WHERE id = 1")
        await told(wire, T)


@pytest.mark.anyio
async def test_activity_is_told_without_a_commit() -> None:
    base = make()
    async with served(f"app={base.url('monitor')}") as wire:
        await wire.subscribe("postgres://app/.activity")
        with base.connect() as busy:
            busy.execute("BEGIN")
            await wire.updated("postgres://app/.activity")
            found = await wire.request("resources/read", {"uri": "postgres://app/.activity"})
            assert "idle in transaction" in found["contents"][0]["text"]


@pytest.mark.anyio
async def test_a_backend_that_is_killed_costs_no_notice() -> None:
    base = make()
    async with served(f"app={base.url()}") as wire:
        await wire.subscribe(T)
        base.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'mcp-postgres'"
        )
        base.run("UPDATE t SET name = 'x' WHERE id = 1")
        await told(wire, T)


@pytest.mark.anyio
async def test_saved_queries_come_change_and_go(tmp_path: Path) -> None:
    base = Base(make().name)
    file = tmp_path / "by_name.sql"
    file.write_text("-- Things with a name.\n-- :name text = 'a'  Which.\nSELECT id FROM t WHERE name = $1", "utf-8")
    async with served("--queries", tmp_path, f"app={base.url()}") as wire:
        assert "run_by_name" in {tool["name"] for tool in (await wire.request("tools/list"))["tools"]}
        found = await wire.call("run_by_name", name="b")
        assert "[2]" in found["content"][0]["text"]
        uri = "postgres://.queries/by_name"
        assert "[1]" in await wire.read(uri)
        await wire.subscribe(uri)
        base.run("UPDATE t SET id = 7 WHERE id = 3; UPDATE t SET name = 'a' WHERE id = 2")
        await wire.updated(uri)
        if wire.modern:
            await wire.listen({"toolsListChanged": True})
        (tmp_path / "second.sql").write_text("-- All.\nSELECT * FROM t", "utf-8")
        await wire.notification("notifications/tools/list_changed")
        file.write_text("-- Broken.\nDELETE FROM t", "utf-8")
        await wire.notification("notifications/tools/list_changed")
        tools = {tool["name"]: tool["description"] for tool in (await wire.request("tools/list"))["tools"]}
        assert "last good version" in tools["run_by_name"] and "run_second" in tools
    assert cluster().wait_until_ready()


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_what_changed_since_is_known_at_once(revision: str) -> None:
    base = make()
    async with connected("stdio", revision, "mcp_postgres", [f"app={base.url()}"]) as wire:
        _, since = await changes_since(wire, None, T, U)
        for _ in range(20):
            base.run("UPDATE t SET name = name || 'x' WHERE id = 1")
            found, since = await changes_since(wire, since)
            assert found == {T}
        base.run("UPDATE t SET name = 'z' WHERE id = 1")
        base.run("UPDATE u SET note = 'new'")
        first = since
        found, since = await changes_since(wire, since)
        assert found == {T, U}
        assert await changes_since(wire, since) == (set(), since)
        assert (await changes_since(wire, first))[0] == {T, U}
