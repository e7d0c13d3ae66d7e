"""What goes wrong between a server and its database: it is said clearly, and over when it is over."""

import json
import os
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import anyio.to_thread
import pytest

from e2e.serving import connected_process
from mcp_batteries.testing.wire import MODERN, StdioWire, Wire, WireError
from mcp_postgres.engine.connection.session import Session
from mcp_postgres.engine.demo.cluster import Cluster
from postgres.machine import Machine, place
from postgres.proxy import Proxy, proxied
from postgres.serving import PROGRAMS, Base, cluster, inside, make, served, text_of

ONE = "SELECT count(*) FROM t"
OURS = "FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'mcp-postgres'"


@asynccontextmanager
async def through(base: Base, *arguments: object) -> AsyncGenerator[tuple[StdioWire, Proxy]]:
    async with (
        proxied(cluster().wait_until_ready()) as proxy,
        served(*arguments, f"app={base.url(port=proxy.port, more='?connect_timeout=2')}") as wire,
    ):
        yield wire, proxy


async def answered(wire: Wire, sql: str = ONE) -> None:
    """Ask until there is an answer; what is said until then is clear."""
    with anyio.fail_after(60):
        while (result := await wire.call("query_rows", sql=sql)).get("isError"):
            said = text_of(result)
            assert "can't be reached" in said or "was lost" in said or "does not answer" in said, said
            await anyio.sleep(0.1)
    assert text_of(result).startswith("[1 row]")


async def until(base: Base, sql: str) -> None:
    """Wait until the database says true."""
    with anyio.fail_after(30):
        while not (await anyio.to_thread.run_sync(base.rows, sql))[0][0]:
            await anyio.sleep(0.02)


@pytest.mark.anyio
async def test_a_killed_backend_costs_the_next_call_nothing() -> None:
    base = make()
    async with served(f"app={base.url()}") as wire:
        await answered(wire)
        for _ in range(3):
            base.run(f"SELECT pg_terminate_backend(pid) {OURS}")
            result = await wire.call("query_rows", sql=ONE)
            assert not result.get("isError"), text_of(result)


@pytest.mark.anyio
async def test_a_backend_killed_in_the_middle_is_said_and_over() -> None:
    base = make()
    async with served(f"app={base.url()}") as wire, anyio.create_task_group() as tasks:
        said: list[str] = []

        async def ask() -> None:
            said.append(text_of(await wire.call("query_rows", sql="SELECT pg_sleep(600)")))

        tasks.start_soon(ask)
        await until(base, f"SELECT count(*) > 0 {OURS} AND query LIKE '%pg_sleep(600)%' AND state = 'active'")
        base.run(f"SELECT pg_terminate_backend(pid) {OURS} AND state = 'active'")
        with anyio.fail_after(30):
            while not said:
                await anyio.sleep(0.02)
        assert "was lost" in said[0] and "57P01" in said[0] and "Call again; " in said[0]
        await answered(wire)


@pytest.mark.anyio
async def test_a_cut_network_is_said_and_over() -> None:
    async with through(make()) as (wire, proxy):
        await answered(wire)
        proxy.cut(away=True)
        with anyio.fail_after(30):
            while "can't be reached" not in (said := text_of(await wire.call("query_rows", sql=ONE))):
                assert "was lost" in said or "[1 row]" in said, said
        assert "Try again later: " in said
        proxy.back()
        await answered(wire)


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_network_that_swallows_everything_ends_a_call_in_time() -> None:
    async with through(make(), "--timeout", "1") as (wire, proxy):
        await answered(wire)
        proxy.stall()
        result = await wire.request("tools/call", {"name": "query_rows", "arguments": {"sql": ONE}}, seconds=60)
        assert result.get("isError"), text_of(result)
        assert "does not answer" in text_of(result) or "can't be reached" in text_of(result), text_of(result)
        proxy.resume()
        await answered(wire)


@pytest.mark.anyio
async def test_a_server_that_is_not_up_yet_and_one_that_crashes() -> None:
    own = await anyio.to_thread.run_sync(
        partial(
            Cluster,
            "CREATE ROLE reader LOGIN PASSWORD 'reader'; CREATE TABLE t (id int); GRANT ALL ON t TO reader",
            programs=PROGRAMS,
        )
    )
    try:
        port = await anyio.to_thread.run_sync(own.wait_until_ready)
        async with proxied(port) as proxy:
            proxy.cut(away=True)
            async with served(f"app=postgresql://reader:reader@127.0.0.1:{proxy.port}/postgres") as wire:
                # It starts although the database is down, says so, and lists what it can.
                result = await wire.call("list_objects")
                assert "can't be reached" in text_of(result)
                left = (await wire.request("resources/list"))["resources"]
                assert [item["uri"] for item in left] == ["config://settings"]
                await wire.subscribe("postgres://app/public/t")
                proxy.back()
                await answered(wire)
                if hasattr(signal, "SIGQUIT"):
                    # An immediate shutdown: what a crash looks like from outside.
                    os.kill(own.pid, signal.SIGQUIT)
                    with anyio.fail_after(30):
                        while not (result := await wire.call("query_rows", sql=ONE)).get("isError"):
                            await anyio.sleep(0.05)
                    assert "can't be reached" in text_of(result) or "was lost" in text_of(result), text_of(result)
    finally:
        await anyio.to_thread.run_sync(own.close)


def sockets(wire: Wire) -> int:
    """What a server over stdio holds open that is a socket."""
    assert isinstance(wire, StdioWire)
    folder = f"/proc/{wire.process.pid}/fd"
    return sum(os.readlink(f"{folder}/{name}").startswith("socket:") for name in os.listdir(folder))


@pytest.mark.slow
@pytest.mark.anyio
async def test_the_same_server_is_restarted_under_clients_that_follow_it() -> None:
    """Politely and hard, with a client of each era and transport connected_process all the time."""
    with place() as folder, Machine(folder / "one") as machine:
        machine.start()
        machine.rows("CREATE ROLE reader LOGIN PASSWORD 'reader'; CREATE TABLE t (id int); GRANT ALL ON t TO reader")
        url, uri = f"app={machine.url('reader')}", "postgres://app/public/t"
        async with (
            connected_process("stdio", "2025-11-25", "mcp_postgres", [url]) as old,
            connected_process("http", MODERN, "mcp_postgres", [url]) as new,
        ):
            wires: tuple[Wire, Wire] = (old, new)
            for wire in wires:
                await answered(wire)
                await wire.subscribe(uri)
            open_before = sockets(old)
            for mode in ("fast", "immediate"):
                async with anyio.create_task_group() as tasks:
                    cut: list[str] = []

                    async def ask(wire: Wire, cut: list[str] = cut) -> None:
                        cut.append(text_of(await wire.call("query_rows", sql="SELECT pg_sleep(600)")))

                    for wire in wires:
                        tasks.start_soon(ask, wire)
                    sleeping = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%sleep(600)%'"
                    with anyio.fail_after(30):
                        while machine.rows(sleeping + " AND state = 'active' AND usename = 'reader'") != [(2,)]:
                            await anyio.sleep(0.02)
                    await anyio.to_thread.run_sync(machine.stop, mode)
                assert len(cut) == 2 and all("was lost" in said for said in cut), cut
                for wire in wires:
                    result = await wire.call("query_rows", sql=ONE)
                    assert result["isError"] and "can't be reached" in text_of(result), text_of(result)
                    with pytest.raises(WireError, match="can't be reached"):
                        await wire.request("resources/read", {"uri": uri})
                await anyio.to_thread.run_sync(machine.start)
                for wire in wires:
                    assert "[1 row]" in text_of(await wire.call("query_rows", sql=ONE))
                # That it could not be read and that it can again is told too: two notices at most are not of these.
                for number in range(3):
                    machine.rows(f"INSERT INTO t VALUES ({len(mode)}{number})")
                    for wire in wires:
                        await wire.updated(uri)
                        found = await wire.request("resources/read", {"uri": uri})
                        assert f"[{len(mode)}{number}]" in found["contents"][0]["text"]
            with anyio.fail_after(30):
                # A call, the look whether anything changed, and the reading of what may have: three of each server's.
                while machine.rows("SELECT count(*) <= 6 FROM pg_stat_activity WHERE usename = 'reader'") != [(True,)]:
                    await anyio.sleep(0.05)
            assert sockets(old) <= open_before + 2


@pytest.mark.anyio
async def test_what_a_commit_without_an_answer_did_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    base = make()
    commit = Session.commit
    async with proxied(cluster().wait_until_ready()) as proxy:

        async def commit_into_the_void(session: Session, sql: str) -> None:
            proxy.cut()
            while proxy.open:
                await anyio.lowlevel.checkpoint()
            await commit(session, sql)

        async with inside("--write", f"app={base.url('owner', port=proxy.port)}") as wire:
            change = {"sql": "UPDATE t SET name = 'x' WHERE id = 1"}
            with monkeypatch.context() as broken:
                broken.setattr(Session, "commit", commit_into_the_void)
                said = text_of(await wire.call("write_rows", **change))
            assert "may have been made" in said and "Look whether it is there" in said, said
            assert '["a"]' in text_of(await wire.call("query_rows", sql="SELECT name FROM t WHERE id = 1"))
            assert "committed" in text_of(await wire.call("write_rows", **change))


@pytest.mark.anyio
async def test_200_calls_over_5_connections() -> None:
    base = make()
    async with served(f"app={base.url()}") as wire:
        results: list[str] = []

        async def ask(number: int) -> None:
            sql = f"SELECT {number}" if number % 10 else f"SELECT {number} FROM nothing"
            results.append(text_of(await wire.call("query_rows", sql=sql)))

        async with anyio.create_task_group() as tasks:
            for number in range(200):
                tasks.start_soon(ask, number)
        assert sum("[1 row]" in said for said in results) == 180
        assert sum("does not exist" in said for said in results) == 20
        assert base.rows(f"SELECT count(*) {OURS}")[0][0] <= 5
        # A session is tidied up behind its answer.
        await until(base, f"SELECT count(*) = 0 {OURS} AND state <> 'idle'")


@pytest.mark.anyio
async def test_a_cancelled_call_ends_on_the_server_and_leaves_nothing() -> None:
    base = make()
    async with served(f"app={base.url()}") as wire:
        await answered(wire)
        for _ in range(3):
            message = wire.message("tools/call", {"name": "query_rows", "arguments": {"sql": "SELECT pg_sleep(600)"}})
            await wire.send_raw(json.dumps(message).encode() + b"\n")
            await until(base, f"SELECT count(*) > 0 {OURS} AND state = 'active' AND query LIKE '%pg_sleep(600)%'")
            await wire.notify("notifications/cancelled", {"requestId": message["id"]})
            begun = time.monotonic()
            await until(base, f"SELECT count(*) = 0 {OURS} AND state = 'active'")
            print(f"cancelled after {(time.monotonic() - begun) * 1000:.0f} ms")
            await answered(wire)
        assert base.rows(f"SELECT count(*) {OURS}")[0][0] <= 2


@pytest.mark.slow
@pytest.mark.anyio
async def test_nothing_runs_on_after_the_client_left() -> None:
    base = make()
    async with served(f"app={base.url()}") as wire:
        message = wire.message("tools/call", {"name": "query_rows", "arguments": {"sql": "SELECT pg_sleep(600)"}})
        await wire.send_raw(json.dumps(message).encode() + b"\n")
        await until(base, f"SELECT count(*) > 0 {OURS} AND state = 'active' AND query LIKE '%pg_sleep(600)%'")
    await until(base, f"SELECT count(*) = 0 {OURS}")


@pytest.mark.slow
@pytest.mark.anyio
async def test_what_the_server_runs_out_of_is_said() -> None:
    base = make()
    base.run(
        "CREATE FUNCTION sorted(n integer) RETURNS integer STABLE LANGUAGE plpgsql AS $$ BEGIN IF n > 1 THEN"
        " RAISE 'could not extend file' USING ERRCODE = 'disk_full', HINT = 'Check free disk space.'; END IF;"
        " RETURN n; END $$"
    )
    too_much = {
        "SELECT sorted({})": "ran out of something",
        "SELECT count(*) FROM generate_series(1, {}00000000000)": "time limit",
        "SELECT length(repeat('x', {}00000000))": "requested length too large",
    }
    async with served("--timeout", "1", f"app={base.url()}") as wire:
        for sql, message in too_much.items():
            said = text_of(await wire.call("query_rows", sql=sql.format(20)))
            assert message in said and "Ask for less" in said, said
            less = sql.replace("00000000", "").format(1)
            assert "[1 row]" in text_of(await wire.call("query_rows", sql=less))
        base.run("GRANT ALL ON t TO reader")
        with base.connect() as other:
            other.execute("BEGIN")
            other.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
            said = text_of(await wire.call("query_rows", sql=ONE))
            assert "time limit" in said or "Other sessions hold" in said
        await answered(wire)
