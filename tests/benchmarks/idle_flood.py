"""What strangers who only open connections cost the others: p50 and p99 of calls, quiet and under the flood.

    uv run python tests/benchmarks/idle_flood.py [CONNECTIONS] [DESCRIPTORS]

The server asks for tokens, speaks https and has so many descriptors. One caller with a token works from ::1. Another
process opens the connections, each from another address of one IPv6 /64, and keeps the last 800: a quarter is silent, a
quarter begins a handshake, a quarter sends half a head, a quarter half a body. Printed are the caller's times, its
failures, how much the server's memory grew, and how much it wrote.

All of it has a network of its own, so it needs Linux with `unshare` and `ip`.
"""

import asyncio
import random
import resource
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.bench_http import MODERN, Client
from e2e.test_replicas import DIAGNOSTIC
from mcp_batteries.transports.http.auth.tokens import create_token
from shared.certificates import certificate

ALONE = ["unshare", "--map-root-user", "--net", "sh", "-c"]
NETWORK = "2001:db8:1:2::"
SET_UP = f'ip link set lo up && ip -6 route add local {NETWORK}/64 dev lo && exec "$@"'
IPV6_FREEBIND = 78  # linux/in6.h; Python has no name for it.
KEPT = 800
HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
BODY = HEAD + b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
SENT = (b"", b"\x16\x03\x01", HEAD, BODY)


class Caller(Client):
    """One with a token, over https."""

    def __init__(self, url: str, token: str, trusting: ssl.SSLContext) -> None:
        super().__init__(url, MODERN, token)
        self._trusting = trusting

    async def connect(self) -> None:
        host, port = self.address.hostname, self.address.port
        self.reader, self.writer = await asyncio.open_connection(
            host, port, ssl=self._trusting, server_hostname="localhost"
        )


async def flood(port: int, connections: int) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    kept: list[asyncio.StreamWriter] = []
    for number in range(connections):
        sent = SENT[number % len(SENT)]
        stream = socket.socket(socket.AF_INET6)
        stream.setblocking(False)
        stream.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
        try:
            stream.bind((f"{NETWORK}{random.randrange(1, 2**16):x}", 0))
            await asyncio.get_running_loop().sock_connect(stream, ("::1", port))
            shaken = sent in (HEAD, BODY)
            _, writer = await asyncio.open_connection(
                sock=stream, ssl=context if shaken else None, server_hostname="localhost" if shaken else None
            )
        except OSError:
            stream.close()
            await asyncio.sleep(0.01)
            continue
        writer.write(sent)
        kept.append(writer)
        if len(kept) > KEPT:
            kept.pop(0).transport.abort()
    await asyncio.sleep(5)  # The last of them are still waiting to be taken.


async def times(made: Caller, until: "subprocess.Popen[bytes] | None", least: int) -> tuple[list[float], int]:
    """Milliseconds of calls until so many are made and the flood is over, and how many failed."""
    found: list[float] = []
    failed, opened = 0, False
    began = time.monotonic()
    while len(found) < least or (until is not None and until.poll() is None and time.monotonic() < began + 600):
        now = time.perf_counter()
        try:
            if not opened:
                await made.open()
                opened = True
            head, _ = await made.post(made.call)
            failed += b" 200 " not in head[:20]
        except (OSError, asyncio.IncompleteReadError, RuntimeError):
            failed, opened = failed + 1, False
        found.append(1000 * (time.perf_counter() - now))
        await asyncio.sleep(0.002)
    return found, failed


def memory(process: "subprocess.Popen[bytes]") -> float:
    text = Path(f"/proc/{process.pid}/status").read_text("utf-8")
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


def main(connections: int, descriptors: int) -> None:
    with tempfile.TemporaryDirectory() as scratch, (Path(scratch) / "said").open("wb") as said:
        folder = Path(scratch)
        certificate(folder, "flooded")
        token, line = create_token("caller")
        (folder / "tokens").write_text(line, "utf-8")
        words = ["--host", "::1", "--auth-file", str(folder / "tokens")]
        words += ["--tls-certificate", str(folder / "cert.pem"), "--tls-key", str(folder / "key.pem")]
        trusting = ssl.create_default_context(cafile=str(folder / "cert.pem"))
        server = subprocess.Popen(
            [*DIAGNOSTIC, *words],
            stderr=said,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors)),
        )
        try:
            while b"listening on" not in (text := (folder / "said").read_bytes()):
                assert server.poll() is None, text.decode()
                time.sleep(0.05)
            url = text.split(b"listening on ")[1].split()[0].decode()
            quiet, failed = asyncio.run(times(Caller(url, token, trusting), None, 1000))
            print(_line("quiet", quiet, failed))
            before = memory(server)
            with subprocess.Popen(
                [sys.executable, __file__, "flood", str(urlsplit(url).port), str(connections)]
            ) as them:
                began = time.monotonic()
                flooded, failed = asyncio.run(times(Caller(url, token, trusting), them, 100))
                took = time.monotonic() - began
                known = f"{connections:,}"
                if them.poll() is None:
                    known = f"fewer than {known}"
                    them.kill()
                print(_line("flood", flooded, failed))
                print(f"{known} connections in {took:.0f} s; memory {memory(server) - before:+.1f} MB;", end=" ")
                print(f"log {len((folder / 'said').read_bytes()):,} bytes")
        finally:
            server.kill()
            server.wait()


def _line(name: str, found: list[float], failed: int) -> str:
    p99 = statistics.quantiles(found, n=100)[98]
    return f"{name}: p50 {statistics.median(found):.2f} ms, p99 {p99:.2f} ms, {len(found)} calls, {failed} failed"


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == ["flood"]:
        asyncio.run(flood(int(words[1]), int(words[2])))
    elif words[:1] == ["alone"]:
        main(int(words[1]), int(words[2]))
    else:
        asked = [*words, *("50000", "1024")[len(words) :]]
        sys.exit(subprocess.run([*ALONE, SET_UP, "sh", sys.executable, __file__, "alone", *asked]).returncode)
