"""What a server needs stands still for longer than every timeout (SIGSTOP): nothing hangs, nothing is lost.

A process that is stopped keeps its connections and takes new ones; it only never answers. What buses do to the
replicas then is in `test_replicas.py`.
"""

import re
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
import psycopg
import pytest

from e2e.services import Service, serving
from mcp_batteries.testing.wire import MODERN, HttpWire
from shared.http_subject import running

LEGACY = "2025-11-25"
UPDATED = "notifications/resources/updated"
TABLE = "postgres://app/public/t"
LONGEST = 30.0
"""A call that needs what stands still is answered within these seconds."""
pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="no process is stopped there")]


async def until(reached: Callable[[], bool], seconds: float = 120) -> None:
    with anyio.fail_after(seconds):
        while not reached():
            await anyio.sleep(0.02)


def rows(service: Service, sql: str) -> list[tuple[object, ...]]:
    with psycopg.connect(service.url, autocommit=True) as connection:
        cursor = connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []


def is_up(service: Service) -> bool:
    try:
        return bool(rows(service, "SELECT 1"))
    except psycopg.OperationalError:  # It listens before it is ready.
        return False


@asynccontextmanager
async def shop(*arguments: str) -> AsyncGenerator[tuple[Service, list[HttpWire]]]:
    """A database with the table `t` of numbers, and a client of each era of the server that may write to it."""
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(serving("postgresql"))
        with anyio.fail_after(60):
            while not is_up(service):
                await anyio.sleep(0.05)
        rows(service, "CREATE ROLE keeper LOGIN; CREATE TABLE t (n integer); ALTER TABLE t OWNER TO keeper")
        url = service.url.replace("postgres@", "keeper@") + "?connect_timeout=2"
        command = [sys.executable, "-m", "mcp_postgres", "--transport", "http", "--port", "0", "--write", *arguments]
        subject = await stack.enter_async_context(running([*command, f"app={url}"]))
        wires = [
            await stack.enter_async_context(HttpWire(subject.url, revision=revision)) for revision in (LEGACY, MODERN)
        ]
        for wire in wires:
            await wire.open()
            await wire.subscribe(TABLE)
        yield service, wires


class Writer:
    """Writes one number after the other, each once, and keeps what was said of each."""

    def __init__(self, wire: HttpWire, first: int) -> None:
        self._wire, self._next = wire, first
        self.made: list[int] = []
        self.refused: dict[int, str] = {}
        self.longest = 0.0

    async def run(self) -> None:
        while True:
            number, began = self._next, anyio.current_time()
            self._next += 1
            arguments = {"sql": f"INSERT INTO t VALUES ({number})", "dry_run": False}
            call = {"name": "write_rows", "arguments": arguments}
            result = await self._wire.request("tools/call", call, seconds=120)
            self.longest = max(self.longest, anyio.current_time() - began)
            if result.get("isError"):
                self.refused[number] = result["content"][0]["text"]
            else:
                self.made.append(number)


async def test_a_database_that_stands_still_loses_no_change() -> None:
    async with shop("--timeout", "1") as (service, wires):
        writers = [Writer(wire, 1_000_000 * number) for number, wire in enumerate([*wires, *wires], 1)]
        async with anyio.create_task_group() as tasks:
            for writer in writers:
                tasks.start_soon(writer.run)
            await until(lambda: all(len(writer.made) > 5 for writer in writers))
            service.freeze()
            try:
                # Each has waited for as long as that takes, on a connection it had or for a new one.
                await until(lambda: all(len(writer.refused) > 1 for writer in writers))
            finally:
                service.thaw()
            before = [len(writer.made) for writer in writers]
            await until(lambda: all(len(writer.made) > n + 5 for writer, n in zip(writers, before, strict=True)))
            tasks.cancel_scope.cancel()
        assert max(writer.longest for writer in writers) < LONGEST
        there = Counter(int(str(number)) for (number,) in rows(service, "SELECT n FROM t"))
        for writer in writers:
            # What was confirmed is there, once; what was refused is not, unless that was said.
            assert all(there[number] == 1 for number in writer.made)
            for number, said in writer.refused.items():
                assert re.search("does not answer|can't be reached|was lost|did not answer the commit", said), said
                assert "may have been made" in said or not there[number], said
        # And whoever follows it hears of it, of what came meanwhile and of what comes now.
        for wire in wires:
            wire.messages.clear()
        rows(service, "INSERT INTO t VALUES (0)")
        for wire in wires:
            await wire.notification(UPDATED, lambda params: params["uri"] == TABLE)


async def test_a_commit_that_is_not_answered_is_in_doubt() -> None:
    async with shop("--timeout", "20") as (service, wires), anyio.create_task_group() as tasks:
        said: list[str] = []

        async def write(wire: HttpWire, number: int) -> None:
            arguments = {"sql": f"INSERT INTO t VALUES ({number})", "dry_run": False}
            call = {"name": "write_rows", "arguments": arguments}
            result = await wire.request("tools/call", call, seconds=120)
            assert result["isError"]
            said.append(result["content"][0]["text"])

        # They are committed, and wait for the word of a standby that there is not.
        rows(service, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        rows(service, "SELECT pg_reload_conf()")
        for number, wire in enumerate(wires):
            tasks.start_soon(write, wire, number)
        with anyio.fail_after(30):
            while len(rows(service, "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")) < len(wires):
                await anyio.sleep(0.02)
        rows(service, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        await until(lambda: len(said) == len(wires))
        assert all("may have been made" in text and "Look whether" in text for text in said), said
        assert sorted(rows(service, "SELECT n FROM t")) == [(number,) for number in range(len(wires))]
