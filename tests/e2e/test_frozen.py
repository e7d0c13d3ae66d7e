"""What a server needs stands still for longer than every timeout (SIGSTOP): nothing hangs, nothing is lost.

A process that is stopped keeps its connections and takes new ones; it only never answers. What buses do to the
replicas then is in `test_replicas.py`.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from subprocess import PIPE

import anyio
import anyio.to_thread
import httpx2
import psycopg
import pytest

from e2e.services import Service, free_port, serving
from mcp_batteries.testing.wire import MODERN, HttpWire, StdioWire
from shared.http_subject import running
from shared.test_issuer import KEY, RESOURCE, good, sign

LEGACY = "2025-11-25"
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


@pytest.mark.weekly
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
            await wire.updated(TABLE)


@pytest.mark.slow
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


def documents(folder: Path) -> Service:
    """A process that serves the files of `folder`, as an issuer publishes its keys."""
    port = free_port()
    command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(folder)]
    return Service(command, port, f"http://127.0.0.1:{port}")


@pytest.mark.weekly
async def test_an_issuer_that_stands_still_shuts_nobody_out_and_blames_no_token(tmp_path: Path) -> None:
    issuer = documents(tmp_path)
    (tmp_path / ".well-known").mkdir()
    about = {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/jwks"}
    (tmp_path / ".well-known" / "oauth-authorization-server").write_text(json.dumps(about), "utf-8")
    (tmp_path / "jwks").write_text(json.dumps({"keys": [KEY]}), "utf-8")
    words = ["--auth-issuer", issuer.url, "--auth-audience", RESOURCE]
    command = [sys.executable, "-m", "mcp_example", "--transport", "http", "--port", "0", *words]
    known, new = sign(good(issuer.url)), sign(good(issuer.url), kid="new")
    async with AsyncExitStack() as stack:
        stack.callback(issuer.kill)
        await issuer.start()
        early, late = [await stack.enter_async_context(running(command)) for _ in range(2)]
        client = await stack.enter_async_context(httpx2.AsyncClient(trust_env=False, timeout=2 * LONGEST))

        async def ask(url: str, token: str) -> httpx2.Response:
            wire = HttpWire(url, revision=MODERN)
            message = wire.message("tools/list")
            headers = {**wire.headers_for(message), "authorization": f"Bearer {token}"}
            return await client.post(url, json=message, headers=headers)

        assert (await ask(early.url, known)).status_code == 200
        issuer.freeze()
        try:
            answers: list[tuple[httpx2.Response, float]] = []

            async def timed(url: str, token: str) -> None:
                began = anyio.current_time()
                answers.append((await ask(url, token), anyio.current_time() - began))

            async with anyio.create_task_group() as tasks:
                for url, token in ((early.url, new), (late.url, known), (late.url, known)):
                    tasks.start_soon(timed, url, token)
                # Who has a key that is known does not wait for others' keys.
                while len(answers) < 3:
                    assert (await ask(early.url, known)).status_code == 200
            for answer, took in answers:
                assert (answer.status_code, int(answer.headers["retry-after"]) > 0) == (503, True)
                assert took < LONGEST
        finally:
            issuer.thaw()
        (tmp_path / "jwks").write_text(json.dumps({"keys": [KEY, {**KEY, "kid": "new"}]}), "utf-8")
        for url, token in ((early.url, new), (late.url, known)):
            with anyio.fail_after(120):
                while (answer := await ask(url, token)).status_code != 200:
                    assert answer.status_code == 503
                    await anyio.sleep(0.2)


_WEATHER = """
from weather.upstream import Upstream
with Upstream() as upstream:
    print(json.dumps(upstream.arguments), flush=True)
    sys.stdin.read()
"""
_GITHUB = """
from github_server.oracle import Oracle
with Oracle() as oracle:
    print(json.dumps(["--api-url", oracle.url, "--write", "--write-interval", "0", "--flow", "off"]), flush=True)
    sys.stdin.read()
"""
_NO_ANSWER = re.compile("did not answer|took longer than")
_READS = {
    "mcp_weather": ("get_weather", lambda n: {"place": f"47.{n:02},8.55"}),
    "mcp_github": ("get_issue", lambda n: {"repo": "o/r", "number": n}),
}


@asynccontextmanager
async def beside(member: str, script: str) -> AsyncGenerator[tuple[subprocess.Popen[bytes], StdioWire]]:
    """A process in the place of a service, and a client of the server that asks it."""
    tests = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    script = f"import json, sys\n{script}"
    with subprocess.Popen([sys.executable, "-c", script], stdin=PIPE, stdout=PIPE, env=tests) as upstream:
        assert upstream.stdout is not None
        try:
            words = json.loads(await anyio.to_thread.run_sync(upstream.stdout.readline))
            words += ["--cache", "memory", "--timeout", "1"]
            environment = {**os.environ, "GITHUB_TOKEN": "ghp_nobodys"}
            async with StdioWire([sys.executable, "-m", member, *words], revision=MODERN, env=environment) as wire:
                await wire.open()
                yield upstream, wire
        finally:
            upstream.kill()


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.parametrize(("member", "script"), [("mcp_weather", _WEATHER), ("mcp_github", _GITHUB)])
async def test_an_upstream_that_stands_still_ends_calls_in_time(member: str, script: str) -> None:
    async with beside(member, script) as (upstream, wire):

        async def ask(tool: str, arguments: dict[str, object]) -> tuple[str, float]:
            began = anyio.current_time()
            result = await wire.request("tools/call", {"name": tool, "arguments": arguments}, seconds=120)
            return result["content"][0]["text"], anyio.current_time() - began

        tool, arguments = _READS[member]
        assert not _NO_ANSWER.search((await ask(tool, arguments(1)))[0])
        upstream.send_signal(signal.SIGSTOP)
        os.waitpid(upstream.pid, os.WUNTRACED)  # until then it may still answer
        said, took = await ask(tool, arguments(2))
        assert _NO_ANSWER.search(said), said
        assert took < LONGEST
        if member == "mcp_github":
            said, took = await ask("create_comment", {"repo": "o/r", "number": 1, "body": "Hello"})
            assert "may have been done" in said
            assert took < LONGEST
        upstream.send_signal(signal.SIGCONT)
        with anyio.fail_after(60):
            while _NO_ANSWER.search((await ask(tool, arguments(2)))[0]):
                await anyio.sleep(0.2)
