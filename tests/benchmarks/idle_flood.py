"""What strangers who only open connections cost the others: p50 and p99 of calls, quiet and under the flood.

    uv run python tests/benchmarks/idle_flood.py [CONNECTIONS] [DESCRIPTORS]

One caller works from 127.0.0.1. Another process opens the connections from 127.0.0.2, and keeps the last 800: a third
is silent, a third sends half a head, a third half a body. The server has so many descriptors. Printed are the caller's
times, its failures, how much the server's memory grew, and how much it wrote.
"""

import asyncio
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.bench_http import MODERN, Client
from shared.http_subject import TOY

CALL: dict[str, object] = {"name": "echo", "arguments": {"text": "x"}}
HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
BODY = HEAD + b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"


async def flood(host: str, port: int, connections: int) -> None:
    kept: list[asyncio.StreamWriter] = []
    for number in range(connections):
        try:
            _, writer = await asyncio.open_connection(host, port, local_addr=("127.0.0.2", 0))
        except OSError:
            await asyncio.sleep(0.01)
            continue
        writer.write((b"", HEAD, BODY)[number % 3])
        kept.append(writer)
        if len(kept) > 800:
            kept.pop(0).transport.abort()
    await asyncio.sleep(5)  # The last of them are still waiting to be taken.


async def times(url: str, until: "subprocess.Popen[bytes] | None", least: int) -> tuple[list[float], int]:
    """Milliseconds of calls until so many are made and the flood is over, and how many failed."""
    found: list[float] = []
    failed, client = 0, None
    began = time.monotonic()
    while len(found) < least or (until is not None and until.poll() is None and time.monotonic() < began + 600):
        now = time.perf_counter()
        try:
            if client is None:
                client = Client(url, MODERN, tool=CALL)
                await client.open()
            head, _ = await client.post(client.call)
            failed += b" 200 " not in head[:20]
        except (OSError, asyncio.IncompleteReadError, RuntimeError):
            failed, client = failed + 1, None
        found.append(1000 * (time.perf_counter() - now))
        await asyncio.sleep(0.002)
    return found, failed


def memory(process: "subprocess.Popen[bytes]") -> float:
    text = Path(f"/proc/{process.pid}/status").read_text("utf-8")
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


def main(connections: int, descriptors: int) -> None:
    with tempfile.NamedTemporaryFile("ab") as said:
        server = subprocess.Popen(
            TOY,
            stderr=said,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors)),
        )
        try:
            while b"listening on" not in (text := _read(said)):
                time.sleep(0.05)
            url = text.split(b"listening on ")[1].split()[0].decode()
            parts = urlsplit(url)
            quiet, failed = asyncio.run(times(url, None, 1000))
            print(_line("quiet", quiet, failed))
            before = memory(server)
            words = [sys.executable, __file__, "flood", str(parts.hostname), str(parts.port), str(connections)]
            with subprocess.Popen(words) as stranger:
                began = time.monotonic()
                flooded, failed = asyncio.run(times(url, stranger, 100))
                took = time.monotonic() - began
                print(_line("flood", flooded, failed))
                print(
                    f"{connections:,} connections in {took:.0f} s; memory {memory(server) - before:+.1f} MB;", end=" "
                )
                print(f"log {len(_read(said)):,} bytes")
        finally:
            server.kill()
            server.wait()


def _line(name: str, found: list[float], failed: int) -> str:
    p99 = statistics.quantiles(found, n=100)[98]
    return f"{name}: p50 {statistics.median(found):.2f} ms, p99 {p99:.2f} ms, {len(found)} calls, {failed} failed"


def _read(file: "tempfile._TemporaryFileWrapper[bytes]") -> bytes:
    return Path(file.name).read_bytes()


if __name__ == "__main__":
    if sys.argv[1:2] == ["flood"]:
        asyncio.run(flood(sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
    else:
        main(*(int(word) for word in (*sys.argv[1:], *("50000", "1024")[len(sys.argv) - 1 :])))
