"""What the work alone takes, without a server: a process asked over pipes, one row of PostgreSQL, 1 KB on the disk, a
request over HTTP that uvicorn answers by itself.

    python tests/benchmarks/floors.py

A server adds its own call to that, the first row of `small_calls.py`. On a busy machine compare nothing.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import psycopg

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from bench_http import MODERN, load, started  # noqa: E402
from bench_postgres import ONE, SCHEMA, make  # noqa: E402
from driver import middle  # noqa: E402

HTTP = """
import socket, sys, uvicorn
ANSWER = b'{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"This is a text."}]}}'
async def answer(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(ANSWER))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": ANSWER})
with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    uvicorn.Server(uvicorn.Config(answer, log_level="error", access_log=False, lifespan="off")).run([listener])
"""
ECHO = [sys.executable, "-c", "import os\nwhile data := os.read(0, 65536): os.write(1, data)"]
QUESTION = b"x" * 250
COUNT = 1000
NUMBERS = count()


class Answered(asyncio.SubprocessProtocol):
    """Tells `waiting` of what a process says."""

    waiting: asyncio.Future[None]

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    def process_exited(self) -> None:
        self.ended.set()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.waiting.set_result(None)


def show(name: str, times: list[float]) -> None:
    print(f"{name:46}{1000 * middle(times):8.3f} ms")


def timed(work: Callable[[], object]) -> list[float]:
    times: list[float] = []
    for _ in range(COUNT):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return times


async def awaited() -> list[float]:
    loop, times = asyncio.get_running_loop(), list[float]()
    transport, answered = await loop.subprocess_exec(Answered, *ECHO, stderr=None)
    requests = transport.get_pipe_transport(0)
    assert isinstance(requests, asyncio.WriteTransport)
    for _ in range(COUNT):
        begun = time.perf_counter()
        answered.waiting = loop.create_future()
        requests.write(QUESTION)
        await answered.waiting
        times.append(time.perf_counter() - begun)
    transport.kill()
    await answered.ended.wait()
    transport.close()
    return times


async def rows(url: str) -> list[float]:
    times: list[float] = []
    async with await psycopg.AsyncConnection.connect(url, autocommit=True, prepare_threshold=None) as database:
        for _ in range(COUNT):
            begun = time.perf_counter()
            await (await database.execute(ONE)).fetchall()
            times.append(time.perf_counter() - begun)
    return times


def write(folder: str, *, flushes: bool, keeps: bool = False) -> None:
    """Replace a file; with `keeps`, write down before what was there, as it takes to bring it back."""
    file = os.open(f"{folder}/new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(file, QUESTION * 4)
    if flushes:
        os.fsync(file)
    os.close(file)
    if keeps:
        number = next(NUMBERS)
        note = os.open(f"{folder}/kept/{number}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(note, QUESTION)
        os.close(note)
        os.link(f"{folder}/file", f"{folder}/kept/{number}.0")
    os.rename(f"{folder}/new", f"{folder}/file")
    if flushes:
        above = os.open(folder, os.O_RDONLY)
        os.fsync(above)
        os.close(above)


def main() -> None:
    with subprocess.Popen(ECHO, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as echo:
        assert echo.stdin and echo.stdout
        into, out = echo.stdin.fileno(), echo.stdout.fileno()
        show("a process, blocking", timed(lambda: (os.write(into, QUESTION), os.read(out, 65536))))
        echo.stdin.close()
    show("a process, event loop", asyncio.run(awaited()))
    process, url = started([sys.executable, "-c", HTTP])
    for clients in (1, 64):
        asyncio.run(load(url, MODERN, clients, 1.0))
        times, rate = asyncio.run(load(url, MODERN, clients, 2.0))
        show(f"HTTP, {clients} at once, {rate:,.0f} /s", [time / 1000 for time in times])
    process.kill()
    process.wait()
    url = make(SCHEMA).url()
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as database:
        show("one row of PostgreSQL, blocking", timed(lambda: database.execute(ONE).fetchall()))
    show("one row of PostgreSQL, event loop", asyncio.run(rows(url)))
    with tempfile.TemporaryDirectory() as folder:
        show("1 KB by renaming", timed(lambda: write(folder, flushes=False)))
        show("1 KB by renaming, file and folder flushed", timed(lambda: write(folder, flushes=True)))
        os.mkdir(f"{folder}/kept")
        show("the same, and what was there kept", timed(lambda: write(folder, flushes=True, keeps=True)))


if __name__ == "__main__":
    main()
