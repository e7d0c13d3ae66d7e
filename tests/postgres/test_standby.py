"""A primary and its streaming standby: what their health says, and the server connected to the standby itself."""

import re
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from mcp_batteries.errors import Unavailable
from mcp_batteries.settings import load
from mcp_postgres.reader_role import prepare
from mcp_postgres.settings import Settings
from postgres.machine import Machine, place
from postgres.serving import Inside, inside, served, text_of

pytestmark = pytest.mark.anyio
ROLES = """
CREATE ROLE owner LOGIN PASSWORD 'owner'; CREATE ROLE monitor LOGIN PASSWORD 'monitor' IN ROLE pg_monitor;
CREATE TABLE t (id integer PRIMARY KEY, name text); ALTER TABLE t OWNER TO owner; GRANT SELECT ON t TO monitor;
INSERT INTO t VALUES (1, 'a')
"""
MUCH = "SELECT count(pg_logical_emit_message(false, 'test', repeat('x', 10000000))) FROM generate_series(1, 12)"
"""120 MB of WAL that no table holds."""


@dataclass(frozen=True)
class Pair:
    primary: Machine
    standby: Machine

    async def level(self) -> None:
        """Wait until the standby has replayed all there is."""
        await self.until(self.primary, "SELECT bool_and(replay_lsn >= pg_current_wal_lsn()) FROM pg_stat_replication")

    async def until(self, where: Machine, sql: str) -> None:
        with anyio.fail_after(60):
            while where.rows(sql) != [(True,)]:
                await anyio.sleep(0.05)


@pytest.fixture(scope="module")
def pair() -> Generator[Pair]:
    with place() as folder, Machine(folder / "primary") as primary:
        primary.start()
        primary.rows(ROLES)
        with Machine(folder / "standby", of=primary) as standby:
            standby.start()
            yield Pair(primary, standby)


async def said(client: Inside, database: str) -> str:
    return text_of(await client.call("get_health", areas=["replication"], database=database)).strip()


@pytest.mark.slow
async def test_what_health_says_of_both(pair: Pair) -> None:
    nothing = "Nothing found in: replication."
    primary, standby = pair.primary, pair.standby
    async with inside("--dba", f"p={primary.url('monitor')}", f"s={standby.url('monitor')}") as client:
        await pair.level()
        assert await said(client, "p") == nothing
        assert await said(client, "s") == nothing
        # Much, but replayed.
        primary.rows(MUCH)
        await pair.level()
        assert await said(client, "p") == nothing
        standby.rows("SELECT pg_wal_replay_pause()")
        await pair.until(standby, "SELECT pg_get_wal_replay_pause_state() = 'paused'")
        primary.rows(MUCH)
        await pair.until(primary, "SELECT pg_wal_lsn_diff(write_lsn, replay_lsn) > 110000000 FROM pg_stat_replication")
        found = await said(client, "p")
        assert re.search(
            r"- replication: standby standby \(127.0.0.1\) is behind by 1\d\d MB, 1\d\d MB of that is there", found
        ), found
        assert re.search(r"- replication: replay is paused on this standby, 1\d\d MB wait", await said(client, "s"))
        standby.rows("SELECT pg_wal_replay_resume()")
        await pair.level()
        assert await said(client, "p") == nothing
        assert await said(client, "s") == nothing
        # Its slot is inactive as long as the standby is away, and keeps what it will need.
        standby.stop()
        await pair.until(primary, "SELECT NOT active FROM pg_replication_slots WHERE slot_name = 'standby'")
        primary.rows(MUCH)
        assert re.search(r"- replication: slot standby is inactive and keeps 1\d\d MB of WAL", await said(client, "p"))
        primary.stop()
        standby.start()
        await pair.until(standby, "SELECT count(*) = 0 FROM pg_stat_wal_receiver")
        assert "this standby receives nothing" in await said(client, "s")
        primary.start()
        await pair.until(standby, "SELECT count(*) = 1 FROM pg_stat_wal_receiver WHERE status = 'streaming'")
        await pair.level()
        assert await said(client, "p") == nothing
        assert await said(client, "s") == nothing


@pytest.mark.parametrize("role", ["monitor", "owner", "postgres"])
async def test_a_standby_is_served_like_any_other(pair: Pair, role: str) -> None:
    await pair.level()
    async with inside("--dba", "--write", "--ddl", f"app={pair.standby.url(role)}") as client:
        assert "(a standby)" in text_of(await client.call("list_objects"))
        assert '[1,"a"]' in text_of(
            await client.call("query_rows", sql="SELECT * FROM t WHERE id = $1", parameters=[1])
        )
        assert "Index" in text_of(await client.call("explain_query", sql="SELECT * FROM t WHERE id = 1", analyze=True))
        assert "integer" in text_of(await client.call("get_table", table="t", sample=1))
        health = text_of(await client.call("get_health"))
        assert "could not be looked at" not in health, health
        for tool in ("list_sessions", "list_settings"):
            assert not (await client.call(tool))["isError"]
        for sql in ("DELETE FROM t", "SELECT nextval('s')", "SELECT pg_promote()", "DROP TABLE t"):
            assert (await client.call("query_rows", sql=sql))["isError"], sql
        # A superuser's role is offered no `edit_schema`.
        for tool in ("write_rows",) if role == "postgres" else ("write_rows", "edit_schema"):
            sql = "UPDATE t SET name = 'b'" if tool == "write_rows" else "ALTER TABLE t ADD extra text"
            result = await client.call(tool, sql=sql)
            found = text_of(result)
            assert result["isError"]
            assert "a standby, which only reads" in found, found
    assert pair.standby.rows("SELECT pg_is_in_recovery()") == [(True,)]


def test_no_reader_is_made_on_a_standby(pair: Pair, tmp_path: Path) -> None:
    settings = load(Settings, ["--create-reader", pair.standby.url()])
    with pytest.raises(Unavailable, match=r"it is a standby.*Name the primary"):
        prepare(settings, tmp_path)


async def test_what_the_primary_commits_reaches_who_follows_the_standby(pair: Pair) -> None:
    uri = "postgres://app/public/t"
    async with served(f"app={pair.standby.url('monitor')}", "--listen", "mcp_changes") as wire:
        await wire.subscribe(uri)
        pair.primary.rows("UPDATE t SET name = 'b' WHERE id = 1")
        await wire.updated(uri)
        found = await wire.request("resources/read", {"uri": uri})
        assert '"b"' in found["contents"][0]["text"]


@pytest.mark.slow
async def test_a_failover_is_followed_by_who_knows_both_hosts() -> None:
    with place() as folder, Machine(folder / "primary") as primary:
        primary.start()
        primary.rows(ROLES)
        with Machine(folder / "standby", of=primary) as standby:
            standby.start()
            ports = f"{standby.port},{primary.port}"
            both = (
                f"app=postgresql://owner:owner@127.0.0.1,127.0.0.1/postgres?port={ports}&target_session_attrs=primary"
            )
            async with (
                inside("--write", both) as client,
                inside("--write", f"app={standby.url('owner')}") as one,
            ):
                change = {"sql": "UPDATE t SET name = name || '+' WHERE id = 1"}
                assert "committed" in text_of(await client.call("write_rows", **change))
                assert (await one.call("write_rows", **change))["isError"]
                primary.stop("immediate")
                assert "can't be reached" in text_of(await client.call("write_rows", **change))
                standby.promote()
                assert "committed" in text_of(await client.call("write_rows", **change))
                assert "committed" in text_of(await one.call("write_rows", **change))
                assert "(a standby)" not in text_of(await one.call("list_objects"))
            assert standby.rows("SELECT name FROM t") == [("a+++",)]
