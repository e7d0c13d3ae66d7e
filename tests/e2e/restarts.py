"""Rolling restarts under load: every call that was sent is answered.

    uv run python tests/e2e/restarts.py [ROUNDS] [direct|nginx|haproxy] [redis|nats|postgresql]

Two replicas behind the proxy of `deploy/` take turns to end by SIGTERM and start again, while clients of both eras call
without a pause on connections they keep. `direct` is one server and no proxy. nginx and haproxy are Debian's packages.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import asyncio
import re
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext

import anyio
import anyio.to_thread

from benchmarks.bench_http import LEGACY, MODERN, Client
from e2e.services import free_port, serving
from e2e.test_deploy import proxied
from e2e.test_replicas import DIAGNOSTIC

CLIENTS = 16


class Caller:
    """Calls one after the other on a connection that it keeps as long as the other side does; it counts what it got.

    `refused` is a connection that was not had, so that nothing was sent. `lost` is no answer to what was sent.
    """

    def __init__(self, url: str, revision: str, tally: Counter[str]) -> None:
        self._url, self._revision, self._tally = url, revision, tally
        self._client: Client | None = None
        self._closed = False

    async def run(self) -> None:
        while True:
            try:
                await self._call()
            except ConnectionRefusedError:
                self._tally["refused"] += 1
                await asyncio.sleep(0.02)

    async def _call(self) -> None:
        client, kind = self._client, "opening"
        try:
            if client is None:
                client = Client(self._url, self._revision)
                await client.open()
                self._client = client
            if self._closed:
                await client.connect()
                self._closed = False
            kind = "call"
            head, _ = await client.post(client.call)
        except (OSError, asyncio.IncompleteReadError, RuntimeError) as problem:
            self.close()
            if isinstance(problem, ConnectionRefusedError):
                raise
            self._tally[f"lost: {kind}, {self._revision}, {problem!r}"[:200]] += 1
            return
        status = int(head.split(b" ", 2)[1])
        # A session ends with its replica; its client is told so and opens another.
        over = status == 404 and self._revision == LEGACY
        self._tally["answered" if status == 200 else "session over" if over else f"lost: {status}"] += 1
        if status != 200:
            self.close()
        elif re.search(rb"(?i)\r\nconnection: close\r\n", head):
            client.writer.close()
            self._closed = True

    def close(self) -> None:
        if self._client is not None and hasattr(self._client, "writer"):
            self._client.writer.close()
        self._client, self._closed = None, False


@asynccontextmanager
async def calling(url: str, clients: int = CLIENTS) -> AsyncGenerator[Counter[str]]:
    """As many clients of both eras, that call until the end of the block."""
    tally = Counter[str]()
    callers = [Caller(url, (MODERN, LEGACY)[number % 2], tally) for number in range(clients)]
    async with anyio.create_task_group() as tasks:
        for caller in callers:
            tasks.start_soon(caller.run)
        yield tally
        tasks.cancel_scope.cancel()
    for caller in callers:
        caller.close()


def lost(tally: Counter[str]) -> dict[str, int]:
    return {name: times for name, times in tally.items() if name.startswith("lost")}


async def more(tally: Counter[str], calls: int = 200) -> None:
    """Wait until so many more calls are answered."""
    wanted = tally["answered"] + calls
    with anyio.fail_after(120):
        while tally["answered"] < wanted:
            await anyio.sleep(0.01)


class Replica:
    """One server on a port that stays its own."""

    def __init__(self, command: list[str]) -> None:
        self.address = ("127.0.0.1", free_port())
        self.url = f"http://127.0.0.1:{self.address[1]}/mcp"
        self._command = [*command, "--port", str(self.address[1])]
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL)
        with anyio.fail_after(60):
            while True:
                assert self._process.poll() is None, "it ended"
                try:
                    await (await anyio.connect_tcp(*self.address)).aclose()
                    return
                except OSError:
                    await anyio.sleep(0.02)

    async def stop(self) -> int:
        """End it as a deployment does; its exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        with anyio.fail_after(60):
            return await anyio.to_thread.run_sync(self._process.wait)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


async def roll(rounds: int, kind: str, bus: str, folder: Path) -> Counter[str]:
    """The tally of so many restarts."""
    async with AsyncExitStack() as stack:
        command = [*DIAGNOSTIC[: DIAGNOSTIC.index("--port")], "--trusted-proxy", "127.0.0.1", "--drain-seconds", "5"]
        if kind != "direct":
            command += ["--bus", (await stack.enter_async_context(serving(bus))).url]
        replicas = [Replica(command) for _ in range(1 if kind == "direct" else 2)]
        for replica in replicas:
            stack.callback(replica.kill)
            await replica.start()
        proxy = proxied(kind, folder, replicas) if kind != "direct" else nullcontext(replicas[0].url)
        async with calling(await stack.enter_async_context(proxy)) as tally:
            await more(tally)
            for number in range(rounds):
                replica = replicas[number % len(replicas)]
                assert await replica.stop() == 143
                await replica.start()
                await more(tally)
                print(f"{number + 1}: {dict(tally)}", flush=True)
        return tally


if __name__ == "__main__":
    words = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        found = asyncio.run(
            roll(
                int(words[0]) if words else 100,
                words[1] if words[1:] else "direct",
                words[2] if words[2:] else "redis",
                Path(scratch),
            )
        )
    sys.exit(f"lost: {lost(found)}" if lost(found) else 0)
