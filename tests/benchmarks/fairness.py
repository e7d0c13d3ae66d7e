"""How much one greedy caller over HTTP slows another: p50 and p99 of one who sends one call at a time.

    python tests/benchmarks/fairness.py [SECONDS]

The greedy one keeps 64 calls under way from a process of its own. Rounds alternate between alone and beside it; a
second server without turns (`Quota(parallel=0)` and a single identity for both) shows what they are good for.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio
import httpx2

sys.path.insert(0, str(Path(__file__).parents[1]))

from mcp_batteries.access.tokens import new_token
from mcp_batteries.testing.wire import MODERN, HttpWire
from shared.http_subject import running

CALL = {"name": "run_calculation", "arguments": {"expression": "1 + 1"}}


async def greedy(url: str, token: str) -> None:
    wire = HttpWire(url, revision=MODERN, headers={"authorization": f"Bearer {token}"})
    message = wire.message("tools/call", CALL)
    content, headers = json.dumps(message).encode(), wire.headers_for(message)
    limits = httpx2.Limits(max_connections=64, max_keepalive_connections=64)
    async with httpx2.AsyncClient(limits=limits, timeout=60, trust_env=False) as client:

        async def loop() -> None:
            while True:
                await client.post(url, content=content, headers=headers)

        async with anyio.create_task_group() as tasks:
            for _ in range(64):
                tasks.start_soon(loop)


async def times(url: str, token: str, seconds: float) -> list[float]:
    found: list[float] = []
    async with HttpWire(url, revision=MODERN, headers={"authorization": f"Bearer {token}"}) as wire:
        message = wire.message("tools/call", CALL)
        content, headers = json.dumps(message).encode(), wire.headers_for(message)
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            began = time.perf_counter()
            answer = await wire.client.post(url, content=content, headers=headers)
            assert answer.status_code == 200, answer.text
            found.append(1000 * (time.perf_counter() - began))
    return found


async def main(seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = {name: new_token(name) for name in ("victim", "greedy")}
        tokens = Path(folder) / "tokens"
        tokens.write_text("\n".join(line for _, line in made.values()), "utf-8")
        command = [
            sys.executable,
            "-m",
            "mcp_example",
            "--transport",
            "http",
            "--port",
            "0",
            "--auth-file",
            str(tokens),
        ]
        async with running(command) as subject:
            for shown, who in (("another caller", "greedy"), ("the same caller", "victim")):
                alone: list[float] = []
                beside: list[float] = []
                for _ in range(4):
                    alone += await times(subject.url, made["victim"][0], seconds / 8)
                    other = subprocess.Popen([sys.executable, __file__, "--greedy", subject.url, made[who][0]])
                    try:
                        await anyio.sleep(1.5)
                        beside += await times(subject.url, made["victim"][0], seconds / 8)
                    finally:
                        other.kill()
                        other.wait()
                for name, found in (("alone", alone), (f"beside 64 calls of {shown}", beside)):
                    p50, p99 = statistics.median(found), statistics.quantiles(found, n=100)[98]
                    print(f"{name:40} {len(found):6} calls  p50 {p50:6.2f} ms  p99 {p99:6.2f} ms")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--greedy"]:
        os.nice(5)  # The load generator must not take the processor from the one that measures.
        anyio.run(greedy, *sys.argv[2:])
    else:
        anyio.run(main, float(sys.argv[1]) if sys.argv[1:] else 10.0)
