"""Deadlines that stop the work, pages that cannot be forged."""

import threading
from functools import partial

import anyio
import pytest

from mcp_batteries.clipping import clip
from mcp_batteries.concurrency.cancellation import CancelToken, WorkCancelled
from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import Invalid, NotFound, Unavailable


@pytest.mark.anyio
async def test_the_result_of_work_comes_back() -> None:
    assert await run_in_thread(lambda stop: 5) == 5


@pytest.mark.anyio
async def test_a_problem_comes_back_unwrapped() -> None:
    def work(stop: CancelToken) -> None:
        raise NotFound("No `x`.")

    with pytest.raises(NotFound):
        await run_in_thread(work)


@pytest.mark.anyio
async def test_past_the_deadline_the_work_itself_ends() -> None:
    ended = threading.Event()

    def work(stop: CancelToken) -> None:
        try:
            while True:
                stop.check()
        except WorkCancelled:
            ended.set()
            raise

    with pytest.raises(Unavailable, match=r"Counting was stopped after 0.05 s"):
        await run_in_thread(work, seconds=0.05, description="Counting")
    assert ended.is_set()


@pytest.mark.anyio
async def test_cancelling_the_caller_ends_the_work() -> None:
    started, ended = threading.Event(), threading.Event()

    def work(stop: CancelToken) -> None:
        started.set()
        while not stop.is_set():
            pass
        ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_in_thread, work)
        await anyio.to_thread.run_sync(started.wait, 5)
        tasks.cancel_scope.cancel()
    assert await anyio.to_thread.run_sync(ended.wait, 5)


def test_a_cursor_returns_its_position() -> None:
    cursor = Cursor.encode("files", [5, "caf\udce9"], {"path": "a"})
    assert Cursor.decode("files", cursor, {"path": "a"}) == [5, "caf\udce9"]


@pytest.mark.parametrize("cursor", ["", "garbage", "A" * 40, "é", "=", "a\n"])
def test_a_cursor_from_elsewhere_is_refused(cursor: str) -> None:
    with pytest.raises(Invalid, match="Call again without `cursor`"):
        Cursor.decode("files", cursor)


def test_a_cursor_is_bound_to_its_listing_and_arguments() -> None:
    cursor = Cursor.encode("files", 5, {"path": "a"})
    for kind, scope in (("tools", {"path": "a"}), ("files", {"path": "b"}), ("files", None)):
        with pytest.raises(Invalid):
            Cursor.decode(kind, cursor, scope)


def test_clipping_is_said_first() -> None:
    assert clip("abc", 3, "continue") == "abc"
    assert clip("abcdef", 3, "continue with start=4") == "[truncated: 3 of 6 characters; continue with start=4]\nabc"


@pytest.mark.anyio
@pytest.mark.parametrize("long", [False, True])
async def test_work_that_nobody_waits_for_lets_calls_go_on_and_is_done_all_the_same(
    monkeypatch: pytest.MonkeyPatch, long: bool
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("mcp_batteries.concurrency.threads.time.sleep", pauses.append)
    begun, release = threading.Event(), threading.Event()

    def call(stop: CancelToken) -> None:
        begun.set()
        release.wait(30)

    def last(stop: CancelToken) -> int:
        stop.check()
        return len(pauses)

    assert await run_in_thread(last, background=True) == 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(run_in_thread, call, long=long))
        await anyio.to_thread.run_sync(begun.wait, 30)
        assert await run_in_thread(last, background=True) == 1
        release.set()
    assert await run_in_thread(last, background=True) == 1


@pytest.mark.anyio
async def test_long_work_leaves_threads_to_quick_calls() -> None:
    release = threading.Event()
    async with anyio.create_task_group() as tasks:
        for _ in range(100):
            tasks.start_soon(partial(run_in_thread, lambda stop: release.wait(30), long=True))
        with anyio.fail_after(20):
            assert await run_in_thread(lambda stop: "served") == "served"
        release.set()
