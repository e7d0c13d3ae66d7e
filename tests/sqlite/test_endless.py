"""Statements without end: stopped in time, cancelled at once, in nobody's way, and gone when the server is."""

import contextlib
import os
import signal
from pathlib import Path

import anyio
import pytest

from mcp_batteries.testing.wire import StdioWire
from sqlite.serving import make, served, text_of
from sqlite.statements import FOREVER

ONE_OPCODE = "SELECT instr(hex(zeroblob(4000000)), hex(zeroblob(2000000)) || '1')"
"""Not interruptible: one call of a function that takes minutes."""


def workers(wire: StdioWire) -> set[int]:
    """Processes below the server's."""
    found: set[int] = set()
    for task in Path(f"/proc/{wire.process.pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread that has just ended
            found.update(int(word) for word in (task / "children").read_text().split())
    return found


def busy(pid: int) -> bool:
    """Whether the process is running on a processor, by its state (proc(5))."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "R"
    except OSError:
        return False


async def until(condition) -> None:
    with anyio.fail_after(10):
        while not condition():
            await anyio.lowlevel.checkpoint()


needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="looks at processes through /proc")


@pytest.mark.anyio
@pytest.mark.parametrize("sql", [FOREVER, ONE_OPCODE], ids=["loop", "opcode"])
async def test_the_limit_answers_and_others_are_served_meanwhile(sql: str, tmp_path: Path) -> None:
    async with served("--timeout", 5, make(tmp_path / "app.db")) as wire, anyio.create_task_group() as tasks:
        answers: list[str] = []

        async def endless() -> None:
            answers.append(text_of(await wire.call("query_rows", sql=sql)))

        for _ in range(3):
            tasks.start_soon(endless)
        for _ in range(20):
            assert "[1 row]" in text_of(await wire.call("query_rows", sql="SELECT 1"))
            if not wire.modern:
                await wire.request("ping")
        assert answers == []
        with anyio.fail_after(20):
            while len(answers) < 3:
                await anyio.lowlevel.checkpoint()
        assert all("limit" in answer for answer in answers), answers


@needs_proc
@pytest.mark.anyio
@pytest.mark.parametrize("sql", [FOREVER, ONE_OPCODE], ids=["loop", "opcode"])
async def test_a_cancel_stops_the_engine(sql: str, tmp_path: Path) -> None:
    async with served("--timeout", 600, make(tmp_path / "app.db"), revision="2025-11-25") as wire:
        await wire.call("query_rows", sql="SELECT 1")
        number = await wire.begin("tools/call", {"name": "query_rows", "arguments": {"sql": sql}})
        await until(lambda: any(busy(pid) for pid in workers(wire)))
        await wire.notify("notifications/cancelled", {"requestId": number})
        await until(lambda: not any(busy(pid) for pid in workers(wire)))
        assert "[1 row]" in text_of(await wire.call("query_rows", sql="SELECT 1"))


@needs_proc
@pytest.mark.anyio
@pytest.mark.parametrize("end", ["eof", "term", "kill"])
async def test_nothing_is_left_running(end: str, tmp_path: Path) -> None:
    async with served("--timeout", 600, make(tmp_path / "app.db")) as wire:
        await wire.begin("tools/call", {"name": "query_rows", "arguments": {"sql": ONE_OPCODE}})
        await wire.begin("tools/call", {"name": "query_rows", "arguments": {"sql": FOREVER}})
        await until(lambda: sum(busy(pid) for pid in workers(wire)) >= 1)
        left = workers(wire)
        assert left
        if end == "eof":
            # Calls in flight are waited for at the end of input; a host then ends the process.
            await wire.close_stdin()
            wire.process.send_signal(signal.SIGTERM)
        else:
            wire.process.send_signal(signal.SIGTERM if end == "term" else signal.SIGKILL)
        await wire.wait()
        await until(lambda: not any(busy(pid) for pid in left))


@needs_proc
@pytest.mark.anyio
async def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    async with served(make(tmp_path / "app.db")) as wire:
        for _ in range(3):
            assert "[1 row]" in text_of(await wire.call("query_rows", sql="SELECT 1"))
            for pid in workers(wire):
                os.kill(pid, signal.SIGKILL)
            assert "[1 row]" in text_of(await wire.call("query_rows", sql="SELECT 1"))
