"""How much one greedy caller over HTTP slows another: p50 and p99 of one who sends one call at a time.

    python tests/benchmarks/fairness.py [SECONDS]

The greedy one keeps 64 calls under way from a process of its own. Rounds alternate between alone and beside it. The
same once more with the token of the one who is measured: nothing protects a caller from himself, which shows what the
turns are good for. And once more with a server of its own: what the machine alone makes of it.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench_http import MODERN, Client

from mcp_batteries.transports.http.auth.tokens import create_token
from shared.http_subject import running

CALL: dict[str, object] = {"name": "run_calculation", "arguments": {"expression": "1 + 1"}}
ROUNDS = 8


async def greedy(url: str, token: str) -> None:
    async def loop() -> None:
        client = Client(url, MODERN, token, CALL)
        await client.open()
        while True:
            await client.post(client.call)

    await asyncio.gather(*(loop() for _ in range(64)))


async def times(url: str, token: str, seconds: float) -> list[float]:
    found: list[float] = []
    client = Client(url, MODERN, token, CALL)
    await client.open()
    until = time.perf_counter() + seconds
    while (began := time.perf_counter()) < until:
        await client.post(client.call)
        found.append(1000 * (time.perf_counter() - began))
    client.writer.close()
    return found


async def main(seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = {name: create_token(name) for name in ("victim", "greedy")}
        tokens = Path(folder) / "tokens"
        tokens.write_text("\n".join(line for _, line in made.values()), "utf-8")
        serve = ["-m", "mcp_example", "--transport", "http", "--port", "0", "--auth-file", str(tokens)]
        command = [sys.executable, *serve]
        async with running(command) as subject, running(command) as elsewhere:
            for shown, who, url in (
                ("another caller", "greedy", subject.url),
                ("the same caller", "victim", subject.url),
                ("another server", "greedy", elsewhere.url),
            ):
                alone: list[float] = []
                beside: list[float] = []
                for _ in range(ROUNDS):
                    alone += await times(subject.url, made["victim"][0], seconds / 6 / ROUNDS)
                    other = subprocess.Popen([sys.executable, __file__, "--greedy", url, made[who][0]])
                    try:
                        await anyio.sleep(1.5)
                        beside += await times(subject.url, made["victim"][0], seconds / 6 / ROUNDS)
                    finally:
                        other.kill()
                        other.wait()
                for name, found in (("alone", alone), (f"beside 64 calls of {shown}", beside)):
                    p50, p99 = statistics.median(found), statistics.quantiles(found, n=100)[98]
                    print(f"{name:40} {len(found):6} calls  p50 {p50:6.2f} ms  p99 {p99:6.2f} ms")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--greedy"]:
        os.nice(5)  # The load generator must not take the processor from the one that measures.
        asyncio.run(greedy(*sys.argv[2:]))
    else:
        anyio.run(main, float(sys.argv[1]) if sys.argv[1:] else 40.0)
