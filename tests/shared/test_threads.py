"""Threads of our own do what anyio's do."""

import asyncio
import gc
import random
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from mcp_batteries.concurrency import threads
from mcp_batteries.concurrency.threads import ThreadPool

SECONDS = 20
WHO: ContextVar[str] = ContextVar("who")


@pytest.mark.anyio
async def test_work_has_a_copy_of_the_callers_context() -> None:
    def work(name: str) -> str:
        before = WHO.get()
        WHO.set("work")
        return f"{before} {name}"

    pool = ThreadPool(2)
    for who in ("one", "two"):
        WHO.set(who)
        assert await pool.run(work, "called") == f"{who} called"
        assert WHO.get() == who


@pytest.mark.anyio
async def test_one_thread_serves_calls_that_follow_each_other() -> None:
    pool = ThreadPool(4)
    assert len({await pool.run(threading.get_ident) for _ in range(100)}) == 1


@pytest.mark.anyio
async def test_work_can_call_the_event_loop_and_run_one_of_its_own() -> None:
    async def answer() -> int:
        return threading.get_ident()

    def work() -> tuple[int, int]:
        anyio.from_thread.check_cancelled()
        return anyio.from_thread.run(answer), anyio.run(answer)

    there, own = await ThreadPool(1).run(work)
    assert there == threading.get_ident() != own


@pytest.mark.anyio
@pytest.mark.parametrize("error", [ValueError, StopIteration, SystemExit, KeyboardInterrupt, asyncio.CancelledError])
async def test_what_work_raises_comes_back(error: type[BaseException]) -> None:
    def work() -> None:
        raise error

    async def raised(run: Callable[[Callable[[], None]], Awaitable[None]]) -> type[BaseException]:
        with pytest.raises(BaseException) as caught:
            await run(work)
        return caught.type

    pool = ThreadPool(1)
    assert await raised(pool.run) is await raised(anyio.to_thread.run_sync)
    assert await pool.run(lambda: "goes on") == "goes on"


@pytest.mark.anyio
async def test_who_is_cancelled_before_begins_nothing() -> None:
    done: list[int] = []
    with anyio.CancelScope() as scope:
        scope.cancel()
        await ThreadPool(1).run(done.append, 1)
    assert await ThreadPool(1).run(lambda: done) == []


@pytest.mark.anyio
async def test_abandoned_work_holds_nobodys_place() -> None:
    pool, release = ThreadPool(2), threading.Event()
    begun, ended = threading.Semaphore(0), threading.Semaphore(0)

    def work() -> None:
        begun.release()
        release.wait(SECONDS)
        ended.release()

    for _ in range(3):
        async with anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(pool.run, work)
            for _ in range(2):
                assert await anyio.to_thread.run_sync(begun.acquire, True, SECONDS)
            tasks.cancel_scope.cancel()
    with anyio.fail_after(SECONDS):
        assert await pool.run(lambda: "served") == "served"
        release.set()
        # Two of each six had begun.
        for _ in range(6):
            assert await anyio.to_thread.run_sync(ended.acquire, True, SECONDS)


@pytest.mark.anyio
async def test_no_more_work_at_once_than_wanted() -> None:
    pool, at_work, most, lock = ThreadPool(3), 0, 0, threading.Lock()

    def work() -> None:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        with lock:
            at_work -= 1

    async with anyio.create_task_group() as tasks:
        for _ in range(300):
            tasks.start_soon(pool.run, work)
    assert 1 <= most <= 3


@pytest.mark.anyio
async def test_work_that_waits_is_done_in_turn() -> None:
    pool, order = ThreadPool(1), list[int]()
    async with anyio.create_task_group() as tasks:
        for number in range(100):
            tasks.start_soon(pool.run, order.append, number)
    assert order == list(range(100))


@pytest.mark.anyio
@pytest.mark.parametrize("seed", range(20))
async def test_a_storm_of_cancellations_loses_no_work_and_no_place(seed: int) -> None:
    chance, pool = random.Random(seed), ThreadPool(3)
    outcomes = dict[int, str]()

    def work(number: int, kind: str) -> int:
        if kind == "raises":
            raise ValueError(number)
        if kind == "waits":
            end = time.monotonic() + 0.001
            while time.monotonic() < end:
                pass
        return number

    async def call(number: int, kind: str, scope: anyio.CancelScope) -> None:
        with scope:
            try:
                assert await pool.run(work, number, kind) == number
                outcomes[number] = "done"
            except ValueError as error:
                assert error.args == (number,)
                outcomes[number] = "raised"
        outcomes.setdefault(number, "cancelled")

    kinds = [chance.choice(("short", "short", "waits", "raises")) for _ in range(200)]
    scopes = [anyio.CancelScope() for _ in kinds]
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            for number, (kind, scope) in enumerate(zip(kinds, scopes, strict=True)):
                tasks.start_soon(call, number, kind, scope)
                for _ in range(chance.choice((0, 0, 1, 3))):
                    await anyio.lowlevel.checkpoint()
                while chance.random() < 0.3:
                    chance.choice(scopes).cancel()
        assert len(outcomes) == len(kinds)
        for number, (kind, scope) in enumerate(zip(kinds, scopes, strict=True)):
            outcome = outcomes[number]
            assert outcome == ("raised" if kind == "raises" else "done") or (
                outcome == "cancelled" and scope.cancel_called
            )
        # All places are free: as many meet as are wanted.
        meeting = threading.Barrier(3, timeout=SECONDS)
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(pool.run, meeting.wait)


@pytest.mark.anyio
async def test_a_thread_that_cannot_be_had_is_an_error_and_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def cannot_be_had() -> None:
        with pytest.raises(RuntimeError, match="can't start"):
            await pool.run(lambda: "served")

    pool = ThreadPool(1)
    with monkeypatch.context() as patched, anyio.fail_after(SECONDS):
        patched.setattr(threading.Thread, "start", start)
        for _ in range(3):
            await cannot_be_had()
        async with anyio.create_task_group() as tasks:
            for _ in range(2_000):
                tasks.start_soon(cannot_be_had)
    with anyio.fail_after(SECONDS):
        assert await pool.run(lambda: "served") == "served"


class Work:
    """Work that waits until it is released, if it is told to, and the threads that did it."""

    def __init__(self) -> None:
        self.begun, self.release, self.seen = threading.Event(), threading.Event(), list[threading.Thread]()

    def __call__(self, wait: bool) -> None:
        self.seen.append(threading.current_thread())
        if wait:
            self.begun.set()
            self.release.wait(SECONDS)

    async def is_left(self, pool: ThreadPool) -> None:
        """Be done once, and begun by a task that does not wait for its end."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pool.run, self, True)
            assert await anyio.to_thread.run_sync(self.begun.wait, SECONDS)
            await pool.run(self, False)
            tasks.cancel_scope.cancel()

    def ends_on(self, number: int) -> None:
        self.release.set()
        for thread in self.seen:
            thread.join(SECONDS)
            assert not thread.is_alive()
        assert len(self.seen) == number


def test_threads_end_with_their_event_loop() -> None:
    """Also those whose work nobody waits for, once it ends."""
    work = Work()

    async def late(pool: ThreadPool) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
                await pool.run(work, False)

    async def main() -> None:
        pool = ThreadPool(4)
        outsider = asyncio.create_task(late(pool))
        await work.is_left(pool)
        assert not outsider.done()

    anyio.run(main)
    work.ends_on(3)


def test_threads_end_with_a_loop_that_is_left_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that waits for work would keep the process from its end."""
    monkeypatch.setattr(threads, "_LOOK_SECONDS", 0.001)
    work, loop = Work(), asyncio.new_event_loop()

    async def main() -> None:
        await work.is_left(ThreadPool(2))

    try:
        loop.run_until_complete(main())
        work.ends_on(2)
    finally:
        work.release.set()
        loop.close()


def test_a_thread_that_is_begun_in_the_last_turns_of_a_loop_ends_too() -> None:
    seen = list[threading.Thread]()

    async def late(pool: ThreadPool) -> None:
        try:
            await asyncio.sleep(SECONDS)
        finally:
            await pool.run(lambda: seen.append(threading.current_thread()))

    async def main() -> None:
        task = asyncio.create_task(late(ThreadPool(1)))
        await asyncio.sleep(0)
        assert not task.done()

    asyncio.run(main())
    assert len(seen) == 1
    seen[0].join(SECONDS)
    assert not seen[0].is_alive()


def test_an_event_loop_that_has_ended_is_forgotten() -> None:
    async def main() -> weakref.ref[asyncio.AbstractEventLoop]:
        await threads.run_in_thread(lambda stop: None)
        return weakref.ref(asyncio.get_running_loop())

    loop = asyncio.run(main())
    for thread in threading.enumerate():
        if thread.name == "work":
            thread.join(SECONDS)
    thread = None
    gc.collect()
    assert loop() is None


@pytest.mark.anyio
async def test_an_idle_thread_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_IDLE_SECONDS", 0)
    monkeypatch.setattr(threads, "_LOOK_SECONDS", 0.001)
    pool = ThreadPool(2)
    with anyio.fail_after(SECONDS):
        thread = await pool.run(threading.current_thread)
        await anyio.to_thread.run_sync(thread.join, SECONDS)
        assert not thread.is_alive()
        # Nothing is lost where a thread ends just as it is given something.
        for _ in range(300):
            assert await pool.run(int) == 0
            await anyio.sleep(0.001)
