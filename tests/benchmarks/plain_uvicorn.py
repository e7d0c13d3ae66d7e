"""What uvicorn gives by itself, alone and behind nginx, and what our listener adds: one application under both.

    python tests/benchmarks/plain_uvicorn.py [RESTARTS]

Prints a table of counts. Rolling restarts need nginx, and are left out without it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import httpx2
import uvicorn

HERE = Path(__file__)
NGINX = HERE.parents[2] / "deploy" / "nginx.conf"
KINDS = ("uvicorn", "ours")
DRAIN_SECONDS = 4
HEAD_SECONDS = 3
DESCRIPTORS = 256
STRANGERS = 400
CLIENTS = 8


async def application(scope: Any, receive: Any, send: Any) -> None:
    """A call of 20 ms, a stream without an end, and a probe."""
    await receive()
    kind = b"text/plain"
    if scope["path"] == "/stream":
        kind = b"text/event-stream"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
    if scope["path"] == "/stream":
        while True:
            await send({"type": "http.response.body", "body": b": ping\r\n\r\n", "more_body": True})
            await asyncio.sleep(0.5)
    await asyncio.sleep(0.02)
    await send({"type": "http.response.body", "body": b"ok\n"})


def serve(kind: str, port: int) -> int:
    """Serve the application in this process."""
    if kind == "uvicorn":
        config = uvicorn.Config(
            application, port=port, http="httptools", lifespan="off", log_level="critical",
            timeout_graceful_shutdown=DRAIN_SECONDS,
        )  # fmt: skip
        uvicorn.Server(config).run()
        return 0
    return anyio.run(_serve_ours, port)


async def _serve_ours(port: int) -> int:
    from mcp_batteries.transports.http.listener.uvicorn_server import UvicornServer, listen_on
    from mcp_batteries.transports.http.refusals import Refusals
    from mcp_batteries.transports.http.requests.in_flight import InFlight

    in_flight = InFlight(Refusals())
    server = UvicornServer(
        in_flight.track_requests(application), "", in_flight, lambda: None,
        max_connections=4096, head_seconds=HEAD_SECONDS, drain_seconds=DRAIN_SECONDS,
    )  # fmt: skip
    await server.serve([listen_on("127.0.0.1", port, public=False)])
    return server.status


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


async def is_up(port: int) -> bool:
    try:
        async with httpx2.AsyncClient(trust_env=False, timeout=2) as client:
            return (await client.get(f"http://127.0.0.1:{port}/readyz")).status_code == 200
    except httpx2.TransportError:
        return False


@contextlib.asynccontextmanager
async def running(kind: str, port: int, *, descriptors: int | None = None) -> AsyncGenerator[subprocess.Popen[bytes]]:
    """A process that serves the application, once it answers."""

    def limit() -> None:
        if descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    process = subprocess.Popen([sys.executable, str(HERE), "serve", kind, str(port)], preexec_fn=limit)
    try:
        with anyio.fail_after(30):
            while not await is_up(port):
                await asyncio.sleep(0.05)
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


async def endless_headers(kind: str) -> str:
    """How much of a request's headers is taken before anything is refused, 64 MiB at most."""
    port = free_port()
    async with running(kind, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /mcp HTTP/1.1\r\nHost: x\r\n")
        taken = 0
        refusal = asyncio.ensure_future(reader.read(64))
        with contextlib.suppress(OSError):
            while taken < 64 * 1024 * 1024 and not refusal.done():
                writer.write(b"x-more: " + b"y" * 65_000 + b"\r\n")
                await writer.drain()
                taken += 65_010
                await asyncio.sleep(0)
        refusal.cancel()
        writer.close()
    return f"{taken / 1024 / 1024:.1f} MiB"


async def headers_that_never_end(kind: str) -> str:
    """Whether a client that sends half a line keeps its connection for more than the limit of ours."""
    port = free_port()
    async with running(kind, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /mcp HT")
        with anyio.move_on_after(HEAD_SECONDS * 4):
            await reader.read()
            return "closed"
        return f"open after {HEAD_SECONDS * 4} s"


async def strangers(kind: str) -> str:
    """Whether a caller is served beside idle connections of others, more than there are descriptors."""
    port = free_port()
    async with running(kind, port, descriptors=DESCRIPTORS):
        held: list[asyncio.StreamWriter] = []
        for _ in range(STRANGERS):
            with anyio.move_on_after(1):
                held.append((await asyncio.open_connection("127.0.0.1", port))[1])
        await asyncio.sleep(0.5)
        served = sum([await is_up(port) for _ in range(10)])
        for writer in held:
            writer.close()
    return f"{served} of 10 calls"


async def end_with_a_stream(kind: str) -> str:
    """Whether a process with an open stream ends in its time, and what a call gets that runs meanwhile."""
    port = free_port()
    result = ""
    async with (
        running(kind, port) as process,
        httpx2.AsyncClient(trust_env=False, timeout=None) as client,
        anyio.create_task_group() as tasks,
    ):

        async def follow() -> None:
            nonlocal result
            try:
                async with client.stream("GET", f"http://127.0.0.1:{port}/stream") as response:
                    async for _ in response.aiter_bytes():
                        pass
                result = "its stream has an end"
            except httpx2.TransportError:
                result = "its stream is cut"

        tasks.start_soon(follow)
        await asyncio.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        with anyio.move_on_after(DRAIN_SECONDS + 6):
            while process.poll() is None or not result:
                await asyncio.sleep(0.05)
        tasks.cancel_scope.cancel()
    return f"exit status {process.returncode}, {result or 'still open'}"


async def rolling_restarts(kind: str, restarts: int) -> str:
    """Calls that fail while two replicas behind nginx are replaced in turn."""
    program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    if program is None:
        return "no nginx here"
    ports = [free_port(), free_port()]
    front = free_port()
    failures: list[str] = []
    calls = 0
    with tempfile.TemporaryDirectory() as folder:
        text = NGINX.read_text("utf-8").replace("listen 8080", f"listen 127.0.0.1:{front}")
        for number, port in enumerate(ports, 1):
            text = text.replace(f"replica-{number}:8000", f"127.0.0.1:{port}")
        text = text.replace(" /tmp/nginx", f" {folder}/nginx").replace("error_log stderr warn", "error_log /dev/null")
        # Calls without a revision go by address in the file; here to either.
        text = text.replace("default $remote_addr;", "default $request_id;")
        (Path(folder) / "nginx.conf").write_text(text, "utf-8")
        words = [program, "-e", "/dev/null", "-c", f"{folder}/nginx.conf", "-g", "daemon off;"]
        async with contextlib.AsyncExitStack() as stack:
            replicas = [await stack.enter_async_context(contextlib.AsyncExitStack()) for _ in ports]
            processes = [
                await replica.enter_async_context(running(kind, port))
                for replica, port in zip(replicas, ports, strict=True)
            ]
            proxy = stack.enter_context(subprocess.Popen(words))
            with anyio.fail_after(30):
                while not await is_up(front):
                    await asyncio.sleep(0.05)
            ended = False

            async def call(client: httpx2.AsyncClient) -> None:
                nonlocal calls
                while not ended:
                    calls += 1
                    try:
                        answer = await client.post(f"http://127.0.0.1:{front}/mcp", content=b"{}")
                        if answer.status_code != 200:
                            failures.append(str(answer.status_code))
                    except httpx2.TransportError as problem:
                        failures.append(type(problem).__name__)

            async with httpx2.AsyncClient(trust_env=False, timeout=30) as client, anyio.create_task_group() as tasks:
                for _ in range(CLIENTS):
                    tasks.start_soon(call, client)
                for number in range(restarts):
                    place = number % 2
                    processes[place].send_signal(signal.SIGTERM)
                    with anyio.fail_after(30):
                        while processes[place].poll() is None:
                            await asyncio.sleep(0.02)
                    processes[place] = await replicas[place].enter_async_context(running(kind, ports[place]))
                ended = True
            proxy.terminate()
    return f"{len(failures)} of {calls:,} calls failed in {restarts} restarts"


async def compare(restarts: int) -> None:
    rows: list[tuple[str, Callable[[str], Coroutine[Any, Any, str]]]] = [
        ("headers without an end", endless_headers),
        ("headers that never end", headers_that_never_end),
        (f"{STRANGERS} idle connections, {DESCRIPTORS} descriptors", strangers),
        ("SIGTERM with an open stream", end_with_a_stream),
        ("rolling restarts behind nginx", lambda kind: rolling_restarts(kind, restarts)),
    ]
    print("| |", " | ".join(KINDS), "|\n| --- | --- | --- |")
    for name, measure in rows:
        results = [await measure(kind) for kind in KINDS]
        print(f"| {name} | {' | '.join(results)} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        sys.exit(serve(sys.argv[2], int(sys.argv[3])))
    asyncio.run(compare(int(sys.argv[1]) if len(sys.argv) > 1 else 10))
