"""Rolling restarts under load: every call that was sent is answered, and every change is heard of.

Two replicas behind the proxy of `deploy/` take turns to end by SIGTERM and start again, while clients of both eras call
without a pause on connections they keep, one of them announces changes, and followers of both eras hear of each or were
connected again after it. `direct` is one server and no proxy. nginx and haproxy are Debian's packages; what they say
goes to standard error.
"""

import asyncio
import json
import re
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2

from benchmarks.bench_http import LEGACY, MODERN, Client
from e2e.services import KINDS, free_port, serving
from e2e.test_deploy import proxied
from e2e.test_replicas import DIAGNOSTIC
from mcp_batteries.testing.wire import HttpWire
from mcp_batteries.testing.wire.base import SECONDS
from proofs.tally import Tally

CLIENTS = 16
FOLLOWERS = 32
"""Streams that end while calls go on are what a restart has to get right."""
URIS = [f"test://template/{number}/data" for number in range(20)]
HEARD_SECONDS = 20.0
"""For machines at work with something else; a notice takes milliseconds."""


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
            head, body = await client.post(self.message(client))
        except (OSError, asyncio.IncompleteReadError, RuntimeError) as problem:
            self.close()
            if isinstance(problem, ConnectionRefusedError):
                raise
            if "Session not found" in str(problem):
                self._tally["session over"] += 1
                return
            self._tally[f"lost: {kind}, {self._revision}, {problem!r}"[:200]] += 1
            return
        status = int(head.split(b" ", 2)[1])
        if status == 200 and b'"isError":true' in body:
            self._tally["lost: an error"] += 1
        # A session ends with its replica; its client is told so and opens another.
        over = status == 404 and self._revision == LEGACY
        self._tally["answered" if status == 200 else "session over" if over else f"lost: {status}"] += 1
        if status == 200:
            await self.answered()
        else:
            self.close()
            return
        if re.search(rb"(?i)\r\nconnection: close\r\n", head):
            client.writer.close()
            self._closed = True

    def message(self, client: Client) -> bytes:
        return client.call

    async def answered(self) -> None:
        pass

    def close(self) -> None:
        if self._client is not None and hasattr(self._client, "writer"):
            self._client.writer.close()
        self._client, self._closed = None, False


class Follower:
    """Follows all `URIS`, and does again as soon as it is cut off; `seen` has the changes that it knows of.

    It reads what is announced, and everything once it follows again, which has what changed in between.
    """

    def __init__(self, url: str, revision: str, made: dict[str, int], tally: Counter[str]) -> None:
        self._wire = HttpWire(url, revision=revision)
        self._made, self._tally = made, tally
        self.revision = revision
        self.seen = dict.fromkeys(URIS, 0)
        self.follows = False

    async def run(self) -> None:
        async with httpx2.AsyncClient(timeout=httpx2.Timeout(30, read=None), trust_env=False) as client:
            while True:
                with suppress(httpx2.TransportError, httpx2.HTTPStatusError):
                    await (self._listen(client) if self._wire.modern else self._subscribe(client))
                self.follows = False
                self._tally["followed again"] += 1
                await asyncio.sleep(0.02)

    async def _listen(self, client: httpx2.AsyncClient) -> None:
        asked = self._wire.message("subscriptions/listen", {"notifications": {"resourceSubscriptions": URIS}})
        headers = self._wire.headers_for(asked)
        async with client.stream("POST", self._wire.url, json=asked, headers=headers) as response:
            await self._hear(response)

    async def _subscribe(self, client: httpx2.AsyncClient) -> None:
        self._wire.headers.pop("mcp-session-id", None)
        about = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "follower", "version": "1"}}
        opened = await self._post(client, self._wire.message("initialize", about))
        self._wire.headers["mcp-session-id"] = opened.headers["mcp-session-id"]
        await self._post(client, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        headers = {**self._wire.headers_for({}), "accept": "text/event-stream"}
        async with client.stream("GET", self._wire.url, headers=headers) as response:
            response.raise_for_status()
            for uri in URIS:
                await self._post(client, self._wire.message("resources/subscribe", {"uri": uri}))
            self._look()
            await self._hear(response)

    async def _post(self, client: httpx2.AsyncClient, message: dict[str, Any]) -> httpx2.Response:
        response = await client.post(self._wire.url, json=message, headers=self._wire.headers_for(message))
        return response.raise_for_status()

    async def _hear(self, response: httpx2.Response) -> None:
        response.raise_for_status()
        async for event in httpx2.EventSource(response):
            message: dict[str, Any] = json.loads(event.data or "{}")
            if message.get("method") == "notifications/subscriptions/acknowledged":
                self._look()
            elif message.get("method") == "notifications/resources/updated":
                uri: str = message["params"]["uri"]
                self.seen[uri] = self._made[uri]
                self._tally["notices"] += 1

    def _look(self) -> None:
        self.seen = dict(self._made)
        self.follows = True


class Announcer(Caller):
    """Changes one URI after the other, and waits after each lap until all followers know: no change hides another."""

    def __init__(self, url: str, tally: Counter[str], followers: Sequence[Follower], made: dict[str, int]) -> None:
        super().__init__(url, MODERN, tally)
        self._followers, self._made = followers, made
        self._at = 0
        self._change()

    def _change(self) -> None:
        self._made[URIS[self._at]] += 1

    def message(self, client: Client) -> bytes:
        tool: dict[str, object] = {"name": "announce", "arguments": {"uri": URIS[self._at]}}
        client.tool = tool  # Its name is a header.
        return client.calling(tool)

    async def answered(self) -> None:
        self._tally["changes"] += 1
        self._at = (self._at + 1) % len(URIS)
        if self._at == 0:
            since = anyio.current_time()
            while any(follower.seen != self._made for follower in self._followers):
                if not all(follower.follows for follower in self._followers):
                    since = anyio.current_time()  # Who is not back yet will look at everything.
                elif anyio.current_time() > since + HEARD_SECONDS:
                    break
                await anyio.sleep(0.01)
            for follower in self._followers:
                missed = sum(follower.seen[uri] != self._made[uri] for uri in URIS)
                if missed:
                    self._tally[f"lost: notices, {follower.revision}"] += missed
                    follower.seen = dict(self._made)
            self._tally["laps"] += 1
        self._change()
        await anyio.sleep(0.02)


@asynccontextmanager
async def calling(url: str, clients: int = CLIENTS, followers: int = FOLLOWERS) -> AsyncGenerator[Counter[str]]:
    """As many clients and followers of both eras, that call and follow until the end of the block."""
    tally = Counter[str]()
    made = dict.fromkeys(URIS, 0)
    following = [Follower(url, (MODERN, LEGACY)[number % 2], made, tally) for number in range(followers)]
    callers = [Caller(url, (MODERN, LEGACY)[number % 2], tally) for number in range(clients)]
    callers.append(Announcer(url, tally, following, made))
    async with anyio.create_task_group() as tasks:
        for follower in following:
            tasks.start_soon(follower.run)
        with anyio.fail_after(2 * SECONDS):
            while not all(follower.follows for follower in following):
                await anyio.sleep(0.01)
        for caller in callers:
            tasks.start_soon(caller.run)
        yield tally
        tasks.cancel_scope.cancel()
    for caller in callers:
        caller.close()


def lost(tally: Counter[str]) -> dict[str, int]:
    return {name: times for name, times in tally.items() if name.startswith("lost")}


async def more(tally: Counter[str], calls: int = 200) -> None:
    """Wait until so many more calls are answered, and all is known of the changes so far."""
    calls, laps = tally["answered"] + calls, tally["laps"] + 1
    with anyio.fail_after(4 * SECONDS):
        while tally["answered"] < calls or tally["laps"] < laps:
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
        with anyio.fail_after(2 * SECONDS):
            while True:
                assert self._process.poll() is None, "it ended"
                try:
                    await (await anyio.connect_tcp(*self.address)).aclose()
                    return
                except OSError:
                    await anyio.sleep(0.02)

    async def serves(self) -> None:
        """Wait until a call has come to it: the next one may end only when the proxy knows that this one is there."""
        async with httpx2.AsyncClient(trust_env=False) as client:
            with anyio.fail_after(2 * SECONDS):
                while 'method="tools/call"' not in (await client.get(self.url.replace("/mcp", "/metrics"))).text:
                    await anyio.sleep(0.02)

    async def stop(self) -> int:
        """End it as a deployment does; its exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        with anyio.fail_after(2 * SECONDS):
            return await anyio.to_thread.run_sync(self._process.wait)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


async def roll(rounds: int, kind: str, bus: str, folder: Path) -> Counter[str]:
    """The tally of so many restarts."""
    async with AsyncExitStack() as stack:
        command = [*DIAGNOSTIC[: DIAGNOSTIC.index("--port")], "--trusted-proxy", "127.0.0.1", "--drain-seconds", "5"]
        command.append("--metrics")
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
                await replica.serves()
                await more(tally)
                print(f"{number + 1}: {dict(tally)}", flush=True)
        return tally


async def prove(count: int, seed: int) -> Tally:
    """Restart so often, shared out among each proxy with each bus."""
    pairs = [(proxy, bus) for bus in KINDS for proxy in ("nginx", "haproxy")]
    counts: Counter[str] = Counter()
    missed: list[str] = []
    for number, (proxy, bus) in enumerate(pairs):
        share = count // len(pairs) + (number < count % len(pairs))
        with tempfile.TemporaryDirectory() as scratch:
            tally = await roll(share, proxy, bus, Path(scratch))
        missed += [f"{proxy}, {bus}, {name}: {times}" for name, times in lost(tally).items()]
        counts += Counter(restarts=share, calls=tally["answered"], notices=tally["notices"])
    return Tally.of(counts, missed)
