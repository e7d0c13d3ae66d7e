"""A soak: mixed calls with live subscriptions, memory and descriptors watched from outside (Linux).

uv run python tests/benchmarks/soak.py --calls 100000
"""

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import anyio

from mcp_batteries.testing.wire import MODERN, StdioWire

FILES, WIDTH = 50, 32


def resources_of(pid: int) -> tuple[int, int, int]:
    """(resident KiB, descriptors, threads) of a process."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    values = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return int(values["VmRSS"].split()[0]), len(os.listdir(f"/proc/{pid}/fd")), int(values["Threads"])


def a_call(dice: random.Random, served: Path) -> tuple[str, dict[str, object]]:
    number = dice.randrange(FILES)
    path = f"folder/{number}.txt"
    return dice.choice(
        [
            ("read_text", {"path": path}),
            ("read_text", {"path": path, "tail": 3}),
            ("read_text", {"path": "no such file"}),
            ("read_text", {"path": "../outside"}),
            ("read_files", {"paths": [path, "folder/0.txt", "missing"]}),
            ("get_info", {"path": path}),
            ("list_directory", {"path": "folder"}),
            ("list_tree", {}),
            ("find_files", {"glob": f"*{number}.txt"}),
            ("search_text", {"pattern": f"line {number}\\b", "path": "folder"}),
            ("write_file", {"path": path, "content": f"line {dice.random()}\nlast\n", "overwrite": True}),
            ("edit_file", {"path": path, "edits": [{"old_text": "last\n", "new_text": "last\n"}]}),
            ("read_text", {"path": path, "no_such_argument": True}),
        ]
    )


async def soak(calls: int, revision: str, seed: int) -> None:
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as scratch:
        served = Path(scratch)
        (served / "folder").mkdir()
        for number in range(FILES):
            text = "".join(f"line {line}\n" for line in range(number + 1)) + "last\n"
            (served / "folder" / f"{number}.txt").write_text(text, "utf-8")
        command = [sys.executable, "-m", "mcp_fs", str(served)]
        async with StdioWire(command, revision=revision) as wire:
            await wire.open()
            uris = [(served / "folder" / f"{number}.txt").as_uri() for number in range(FILES)]
            for uri in uris:
                await wire.subscribe(uri)
            left, done, notices, readings = calls, 0, 0, []
            started = time.monotonic()

            async def work() -> None:
                nonlocal left, done, notices
                while left > 0:
                    left -= 1
                    name, arguments = a_call(dice, served)
                    await wire.call(name, **arguments)
                    done += 1
                    if done % (calls // 10) == 0:
                        readings.append(resources_of(wire.process.pid))
                        kib, descriptors, threads = readings[-1]
                        rate = done / (time.monotonic() - started)
                        print(
                            f"{done:>8,} calls  {rate:>6,.0f}/s  {notices:>6,} notices  "
                            f"{kib:>7,} KiB  {descriptors} descriptors  {threads} threads",
                            flush=True,
                        )
                    if done % 500 == 0:  # a subscriber that comes and goes
                        uri = dice.choice(uris)
                        await wire.unsubscribe(uri)
                        await wire.subscribe(uri)
                        notices += len(wire.messages)
                        wire.messages.clear()

            async with anyio.create_task_group() as tasks:
                for _ in range(WIDTH):
                    tasks.start_soon(work)
    warm, end = readings[2], readings[-1]
    print(
        f"{revision}: after warm-up {(end[0] - warm[0]) * 1024 / (calls * 0.7):+.1f} bytes a call, "
        f"{end[1] - warm[1]:+d} descriptors, {end[2] - warm[2]:+d} threads"
    )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--calls", type=int, default=100_000)
    options.add_argument("--revision", default=MODERN)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    anyio.run(soak, chosen.calls, chosen.revision, chosen.seed)
