"""One SQL server of anybody's, measured: its start, one row, a hundred thousand, and its tools."""

import json
import statistics
import time
from collections.abc import Sequence
from contextlib import asynccontextmanager

import anyio
from driver import memory

from mcp_batteries.testing.wire import StdioWire

__all__ = ["ONE", "measure"]

ONE = "SELECT * FROM t WHERE id = 4711"
_ALL = "SELECT * FROM t"


@asynccontextmanager
async def _started(command: Sequence[str], revision: str):
    async with StdioWire(command, revision=revision) as wire:
        begun = time.perf_counter()
        with anyio.fail_after(120):
            await wire.open()
        yield wire, time.perf_counter() - begun
        wire.process.terminate()


async def measure(command: Sequence[str], revision: str, tool: str, argument: str, rounds: int) -> dict[str, float]:
    """The figures of the server that `command` starts on a table `t` of 100,000 rows.

    Args:
        argument: of `tool`, which takes SQL in it.
    """
    starts: list[float] = []
    for _ in range(rounds):
        async with _started(command, revision) as (_, seconds):
            starts.append(seconds)
    async with _started(command, revision) as (wire, _):
        listed = (await wire.request("tools/list"))["tools"]

        async def ask(sql: str) -> dict:
            return await wire.request("tools/call", {"name": tool, "arguments": {argument: sql}}, seconds=60)

        first = await ask(ONE)
        assert "4711" in json.dumps(first) and not first.get("isError"), first
        idle = memory(wire.process.pid)
        ones: list[float] = []
        for _ in range(200):
            begun = time.perf_counter()
            await ask(ONE)
            ones.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        answer = await ask(_ALL)
        seconds = time.perf_counter() - begun
        peak = memory(wire.process.pid)
    return {
        "start, s": statistics.median(starts),
        "memory idle, MB": idle,
        "one row p50, ms": statistics.median(ones) * 1000,
        "100,000 rows asked, s": seconds,
        "its answer, MB": len(json.dumps(answer)) / 1e6,
        "memory behind it, MB": peak,
        "tools": len(listed),
        "tools/list, bytes": len(json.dumps(listed, separators=(",", ":"), ensure_ascii=False).encode()),
    }
