"""Calls over HTTP beside the TypeScript SDK's server and the Python SDK's own: p50, p99 and calls per second.

    uv run python tests/benchmarks/bench_http.py [SECONDS]

The same tool on all; 1 and 64 clients, both eras; all take turns, round after round. The client is a socket and a few
bytes that were made before, in a process of its own: it is not what is measured.
"""

import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[1]))

from e2e import npm

HERE = Path(__file__).parent
TYPESCRIPT = ("@modelcontextprotocol/server@2.4.0", "@modelcontextprotocol/node@2.1.2")
LEGACY, MODERN = "2025-11-25", "2026-07-28"
ROUNDS = 5
TOOL: dict[str, object] = {"name": "test_simple_text", "arguments": {}}
CLIENT = {"name": "bench", "version": "1"}


def commands() -> dict[str, list[str]]:
    diagnostic = str(HERE.parent / "e2e" / "diagnostic")
    return {
        "ours": [sys.executable, diagnostic, "--transport", "http", "--port", "0"],
        "ours, json": [sys.executable, diagnostic, "--transport", "http", "--port", "0", "--json-response"],
        "python sdk": [sys.executable, str(HERE / "stock_http.py")],
        "typescript": [npm.NODE, str(HERE / "typescript-http.mjs"), str(npm.installed(*TYPESCRIPT))],
    }


def started(command: list[str]) -> tuple[subprocess.Popen[bytes], str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    said = subprocess.PIPE
    process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, env=environment)
    assert process.stdout is not None
    while line := process.stdout.readline().decode():
        if found := re.search(r"listening on (http://\S+)", line):
            return process, found[1]
    raise RuntimeError(f"{command} did not start")


class Client:
    """One connection, one call at a time."""

    def __init__(self, url: str, revision: str, token: str = "", tool: dict[str, object] = TOOL) -> None:
        self.address, self.revision, self.session = urlsplit(url), revision, ""
        self.token, self.tool = token, tool

    async def connect(self) -> None:
        self.reader, self.writer = await asyncio.open_connection(self.address.hostname, self.address.port)

    async def open(self) -> None:
        await self.connect()
        if self.revision == LEGACY:
            opening = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}
            head, _ = await self.post(self.request({"id": 1, "method": "initialize", "params": opening}))
            found = re.search(rb"mcp-session-id: (\S+)", head, re.IGNORECASE)
            self.session = found[1].decode() if found else ""
            await self.post(self.request({"method": "notifications/initialized"}))
        self.call = self.calling(self.tool)
        _, body = await self.post(self.call)
        if b'"result"' not in body or b'"isError":true' in body:
            raise RuntimeError(body.decode())

    def calling(self, tool: dict[str, object]) -> bytes:
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": CLIENT,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = tool if self.revision == LEGACY else {**tool, "_meta": meta}
        return self.request({"id": 2, "method": "tools/call", "params": params})

    def request(self, message: dict[str, object]) -> bytes:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        head = [
            f"POST {self.address.path} HTTP/1.1",
            f"Host: {self.address.netloc}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"Content-Length: {len(body)}",
        ]
        if message["method"] != "initialize":
            head.append(f"MCP-Protocol-Version: {self.revision}")
        if self.token:
            head.append(f"Authorization: Bearer {self.token}")
        if self.session:
            head.append(f"Mcp-Session-Id: {self.session}")
        if self.revision == MODERN:
            head += [f"Mcp-Method: {message['method']}", f"Mcp-Name: {self.tool['name']}"]
        return "\r\n".join([*head, "", ""]).encode() + body

    async def post(self, request: bytes) -> tuple[bytes, bytes]:
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        lower = head.lower()
        if b"transfer-encoding: chunked" in lower:
            body = b""
            while size := int(await self.reader.readuntil(b"\r\n"), 16):
                body += (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readexactly(2)
            return head, body
        length = re.search(rb"content-length: (\d+)", lower)
        return head, await self.reader.readexactly(int(length[1])) if length else b""


async def load(url: str, revision: str, clients: int, seconds: float) -> tuple[list[float], float]:
    """Milliseconds of each call, and calls per second."""
    everybody = [Client(url, revision) for _ in range(clients)]
    for client in everybody:
        await client.open()
    times: list[float] = []
    began = time.perf_counter()

    async def calls(client: Client) -> None:
        while (now := time.perf_counter()) < began + seconds:
            await client.post(client.call)
            times.append(1000 * (time.perf_counter() - now))

    await asyncio.gather(*map(calls, everybody))
    passed = time.perf_counter() - began
    for client in everybody:
        client.writer.close()
    return times, len(times) / passed


def main(seconds: float) -> None:
    servers = {name: started(command) for name, command in commands().items()}
    shape = [(revision, clients) for revision in (MODERN, LEGACY) for clients in (1, 64)]
    turn = seconds / (ROUNDS * len(servers) * len(shape))
    found: defaultdict[tuple[str, int, str], list[tuple[float, float, float]]] = defaultdict(list)
    try:
        for _ in range(ROUNDS):
            for revision, clients in shape:
                for name, (_, url) in servers.items():
                    times, rate = asyncio.run(load(url, revision, clients, turn))
                    p99 = statistics.quantiles(times, n=100)[98]
                    found[revision, clients, name].append((statistics.median(times), p99, rate))
    finally:
        for process, _ in servers.values():
            process.kill()
            process.wait()
    print(f"{'':12}{'clients':>8} {'server':14}{'p50 ms':>9}{'p99 ms':>9}{'calls/s':>9}{'rate / typescript':>19}")
    for revision, clients in shape:
        base = statistics.median(rate for *_, rate in found[revision, clients, "typescript"])
        for name in servers:
            p50, p99, rate = (statistics.median(column) for column in zip(*found[revision, clients, name], strict=True))
            print(f"{revision:12}{clients:8} {name:14}{p50:9.2f}{p99:9.2f}{rate:9.0f}{rate / base:19.2f}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if sys.argv[1:] else 120)
