"""Storms of changes that overflow the kernel's queue while the server can't run; the last state must still be told.

On a busy machine set MCP_TEST_SECONDS to more than 60: a server's start and the last state are waited for so long.
A storm writes 20,000 times to two files in turn, so that no two events are equal and merged, and once, somewhere in
between, to the file that is subscribed to: directly, through another hard link or through a memory map. The client
reads the file when it is told of a change, as hosts do; a last state that it has not read by then is missed.
"""

from __future__ import annotations

import mmap
import os
import random
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import anyio

from mcp_batteries.testing.wire import StdioWire
from mcp_batteries.testing.wire.base import SECONDS
from proofs.tally import Tally

_WRITES = 20_000
_SERVERS = 4
HANDICAPS = ("stopped", "niced", "busy")


async def storm(wire: StdioWire, file: Path, number: int, chance: random.Random) -> bool:
    """Whether the last state was read."""
    handicap = HANDICAPS[number % len(HANDICAPS)]
    pid, text = wire.process.pid, f"{number:08}"
    if handicap == "stopped":
        os.kill(pid, signal.SIGSTOP)
    elif handicap == "niced":
        os.setpriority(os.PRIO_PROCESS, pid, 19)
    await anyio.to_thread.run_sync(_write_all, file, text, chance.random(), chance.choice(("plain", "link", "map")))
    if handicap == "stopped":
        os.kill(pid, signal.SIGCONT)
    with anyio.move_on_after(SECONDS):
        while True:
            await wire.updated(file.as_uri())
            contents = (await wire.request("resources/read", {"uri": file.as_uri()}))["contents"]
            if contents[0]["text"] == text:
                return True
    return False


def _write_all(file: Path, text: str, when: float, how: str) -> None:
    # Somewhere in the storm: where the queue is full, the event is lost.
    at = int(when * _WRITES)
    first, second = (os.open(file.with_name(name), os.O_WRONLY | os.O_CREAT) for name in ("b", "c"))
    try:
        for number in range(_WRITES):
            os.pwrite((first, second)[number % 2], b"x", 0)
            if number == at:
                _write(file, text, how)
    finally:
        os.close(first)
        os.close(second)


def _write(file: Path, text: str, how: str) -> None:
    if how == "map":
        with file.open("r+b") as opened, mmap.mmap(opened.fileno(), len(text)) as mapped:
            mapped[:] = text.encode()
            mapped.flush()
    else:
        path = file.parent.parent / "link" if how == "link" else file
        with path.open("r+") as opened:
            opened.write(text)


async def missed(folder: Path, storms: range, seed: int = 0) -> list[int]:
    """The numbers of the storms whose last state was not read, of one server on `folder`."""
    served = folder / "served"
    served.mkdir(parents=True)
    file = served / "a"
    file.write_text("--------")
    os.link(file, folder / "link")
    chance, wrong = random.Random(f"{seed} {storms.start}"), list[int]()
    async with StdioWire([sys.executable, "-m", "mcp_fs", str(served)]) as wire:
        await wire.open()
        await wire.subscribe(file.as_uri())
        for number in storms:
            if not await storm(wire, file, number, chance):
                wrong.append(number)
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, wire.process.pid, 0)
    return wrong


async def prove(count: int, seed: int) -> Tally:
    """Make so many storms, with several servers at a time."""
    wrong: list[int] = []

    async def make_some(folder: Path, storms: range) -> None:
        wrong.extend(await missed(folder, storms, seed))

    with tempfile.TemporaryDirectory() as folder:
        async with anyio.create_task_group() as tasks:
            for number in range(_SERVERS):
                storms = range(number * count // _SERVERS, (number + 1) * count // _SERVERS)
                tasks.start_soon(make_some, Path(folder) / str(number), storms)
    return Tally.of({"storms": count}, [f"storm {number} was missed" for number in sorted(wrong)])
