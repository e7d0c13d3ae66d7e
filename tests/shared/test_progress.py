"""What a host hears of a long call: the work's own counts, or that it still runs; always more than before."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
import pytest
from mcp import Client

from mcp_batteries import progress
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import NotFound
from mcp_batteries.progress import ProgressReporter, report_progress
from mcp_batteries.server.assemble import assemble
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.settings import Settings

pytestmark = pytest.mark.anyio

Told = tuple[float, float | None, str | None]


@dataclass
class Heard:
    """A host; `enough` is set once it has heard so often."""

    times: int
    told: list[Told] = field(default_factory=list[Told])
    enough: anyio.Event = field(default_factory=anyio.Event)
    in_threads: threading.Event = field(default_factory=threading.Event)

    async def report(self, done: float, total: float | None, message: str | None) -> None:
        self.told.append((done, total, message))
        if len(self.told) >= self.times:
            self.enough.set()
            self.in_threads.set()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(progress, "_SILENT_SECONDS", 0.15)
    monkeypatch.setattr(progress, "_LOOK_SECONDS", 0.01)


async def within(heard: Heard, work: Callable[[], Awaitable[object]]) -> None:
    with anyio.fail_after(10):
        async with ProgressReporter(heard.report, "read_all"):
            await work()


async def test_silent_work_is_said_to_run_again_and_again() -> None:
    heard = Heard(3)
    await within(heard, heard.enough.wait)
    assert all(re.fullmatch(r"read_all has run for \d s", message or "") for _, _, message in heard.told)
    assert all(total is None for _, total, _ in heard.told)


async def test_what_a_thread_counts_is_told_instead_and_repeated_while_it_is_silent() -> None:
    heard = Heard(3)

    def work(stop: CancelToken) -> bool:
        report_progress(3, 10, "caf\udce9 searched")
        return heard.in_threads.wait(5)

    await within(heard, lambda: run_in_thread(work))
    assert heard.told[0] == (3, 10, "caf\ufffd searched")
    assert {(total, message) for _, total, message in heard.told} == {(10, "caf\ufffd searched")}


async def test_each_notification_exceeds_the_one_before_whatever_is_told() -> None:
    heard = Heard(1)
    counts = [2.0, 1.0, 1.0, 0.0, 5.0, 5.0]

    async def work() -> None:
        for number, count in enumerate(counts, 1):
            heard.times, heard.enough = number, anyio.Event()
            report_progress(count, None, f"step {number}")
            await heard.enough.wait()

    await within(heard, work)
    done = [told[0] for told in heard.told]
    assert len(done) >= len(counts) and all(earlier < later for earlier, later in itertools.pairwise(done))


async def test_an_error_comes_through_as_it_is_and_nothing_is_told_after() -> None:
    heard = Heard(1)

    async def work() -> None:
        raise NotFound("No `x`.")

    with pytest.raises(NotFound):
        await within(heard, work)
    report_progress(9)
    assert heard.told == []


async def test_two_calls_at_once_are_told_apart() -> None:
    heard = [Heard(1), Heard(1)]

    async def call(number: int) -> None:
        async def work() -> None:
            report_progress(10 + number)
            await heard[number].enough.wait()

        await within(heard[number], work)

    async with anyio.create_task_group() as tasks:
        for number in range(2):
            tasks.start_soon(call, number)
    assert [item.told[0][0] for item in heard] == [10, 11]


class Room:
    """A tool that is as slow as its caller wants."""

    def __init__(self, heard: Heard) -> None:
        self.heard = heard

    @tool("Wait")
    async def read_slowly(self) -> str:
        """Wait until the caller has heard enough."""
        await self.heard.enough.wait()
        return "done"


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_every_tool_tells_without_a_word_of_its_own(mode: str) -> None:
    class Own(Settings):
        COMMAND = "mcp-slow"

    heard = Heard(2)
    server = assemble("mcp-slow", Own(), rooms=[Room(heard)], title="Slow", version="0", instructions="Slow.")
    async with Client(server, mode=mode) as client:
        with anyio.fail_after(10):
            await client.call_tool("read_slowly", {}, progress_callback=heard.report)
    assert len(heard.told) >= 2 and heard.told[0][2] == "read_slowly has run for 0 s"
