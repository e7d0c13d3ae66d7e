"""Runs blocking work on threads of our own, each piece with a token that ends it.

The SDK's transports share anyio's default limiter, so a slow call there would keep others from their answers. Here,
when the caller cancels, the deadline passes or the connection ends, the work itself ends, not only the waiting for it.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from contextvars import Context, copy_context
from queue import Empty, SimpleQueue
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import anyio.lowlevel

# No public name says that no loop runs on a thread, or which one it can call.
from anyio._core._eventloop import (
    set_current_async_library,  # pyright: ignore[reportUnknownVariableType]
    threadlocals,
)

from mcp_batteries.concurrency.cancellation import CancelToken, WorkCancelled
from mcp_batteries.errors import Unavailable

__all__ = ["ThreadPool", "run_in_thread"]

T = TypeVar("T")
_IDLE_SECONDS = 10
_PAUSE_SECONDS = 0.005
_LOOK_SECONDS = 0.5  # How often an idle thread checks whether its event loop has ended.
_NEXT_AFTER_DEADLINE = (
    "Ask for less: a smaller folder, a narrower filter. If that takes as long, leave it: what is read does not answer."
)


class ThreadPool:
    """Runs at most `most` pieces of work at once, on one event loop; others wait in order.

    Abandoned work keeps its thread but does not count. A round trip takes half as long as with `anyio.to_thread`, whose
    limiter and checkpoints cost turns of the loop and whose queues are written in Python. The threads end with the
    loop, however it ends, and after a while without work.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._working = 0
        self._ending = False
        self._idle: deque[_Thread] = deque()
        self._waiting: deque[_Job] = deque()
        self._end: AsyncGenerator[None] | None = None

    @property
    def are_working(self) -> bool:
        """Whether work is running; callable from any thread."""
        return self._working > 0

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run `work` in a copy of the caller's context; a cancelled caller stops waiting."""
        await anyio.lowlevel.checkpoint_if_cancelled()
        if self._end is None and not self._ending:
            self._end = self._until_end()
            await anext(self._end)
        job = _Job(work, arguments)
        self._waiting.append(job)
        self._begin()
        try:
            return await job.future
        finally:
            if job.future.cancelled():
                self._abandon(job)
            del job  # An error holds this frame, and the future the error.

    async def _until_end(self) -> AsyncGenerator[None]:
        """Wait for the end of the event loop.

        It closes started generators like this one after all tasks have ended.
        """
        try:
            yield
        finally:
            self._ending = True
            self._end = None  # It holds the loop.
            with suppress(IndexError):
                while True:
                    self._idle.pop().jobs.put(None)

    def _begin(self) -> None:
        while self._waiting and self._working < self._most:
            job = self._waiting.popleft()
            self._working += 1
            job.has_begun = True
            try:
                thread = self._idle.pop()
            except IndexError:
                thread = _Thread(self)
                try:
                    # Not in the context of the call that happens to need it first.
                    Context().run(thread.start)
                except RuntimeError as error:
                    # The system has no more threads.
                    if not job.future.cancelled():
                        self._set_result(job, None, error)
                    continue
            thread.jobs.put(job)

    def _abandon(self, job: _Job) -> None:
        if job.has_begun:
            self._working -= 1
            self._begin()
        else:
            self._waiting.remove(job)

    def take_back(self, thread: _Thread) -> bool:
        """Take a thread back, on that thread; return False if it should end."""
        if self._ending or len(self._idle) >= self._most:
            return False
        self._idle.append(thread)
        return True

    def release(self, thread: _Thread) -> bool:
        """Forget an idle thread, on that thread; return False if it is not idle."""
        try:
            self._idle.remove(thread)
        except ValueError:
            return False
        return True

    def done(self, job: _Job, result: Any, error: BaseException | None) -> None:
        """Give the result of a job to its waiting caller."""
        if not job.future.cancelled():
            self._set_result(job, result, error)
            self._begin()

    def _set_result(self, job: _Job, result: Any, error: BaseException | None) -> None:
        self._working -= 1
        if error is None:
            job.future.set_result(result)
        elif isinstance(error, StopIteration):
            # No future takes one.
            replacement = RuntimeError("The work raised StopIteration.")
            replacement.__cause__ = error
            job.future.set_exception(replacement)
        else:
            job.future.set_exception(error)


class _Job:
    __slots__ = ("arguments", "context", "future", "has_begun", "work")

    def __init__(self, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.work = work
        self.arguments = arguments
        self.has_begun = False
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.context = copy_context()
        self.context.run(_leave_loop)


def _leave_loop() -> None:
    set_current_async_library(None)


class _Thread(threading.Thread):
    def __init__(self, threads: ThreadPool) -> None:
        super().__init__(name="work")
        self.jobs = SimpleQueue[_Job | None]()
        self._threads = threads
        self._loop = asyncio.get_running_loop()
        self._token = anyio.lowlevel.current_token()

    def run(self) -> None:
        # So that what it runs can call back into the loop, as on threads of anyio.
        threadlocals.current_token = self._token
        threadlocals.current_cancel_scope = None
        is_kept = True
        while is_kept:
            job = self._next()
            if job is None:
                return
            result = None
            error = None
            if not job.future.cancelled():
                try:
                    result = job.context.run(job.work, *job.arguments)
                except BaseException as problem:  # noqa: BLE001 - the waiting task gets it
                    error = problem
            is_kept = self._threads.take_back(self)
            try:
                self._loop.call_soon_threadsafe(self._threads.done, job, result, error)
            except RuntimeError:  # The loop is closed.
                self._threads.release(self)
                return
            del job, result, error

    def _next(self) -> _Job | None:
        """Return the next job, or None to end."""
        end = time.monotonic() + _IDLE_SECONDS
        while True:
            try:
                return self.jobs.get(timeout=_LOOK_SECONDS)
            except Empty:
                # A loop may be abandoned without closing what waits on it.
                if self._loop.is_running() and time.monotonic() < end:
                    continue
                # A thread that is not idle is about to get a job, if anybody is left to give it one.
                if self._threads.release(self) or self._loop.is_closed():
                    return None


_MAX_THREADS = max(4, min(16, (os.cpu_count() or 1) * 2))


class _Workers:
    """The threads of one event loop."""

    def __init__(self) -> None:
        self.short = ThreadPool(_MAX_THREADS)
        self.long = ThreadPool(_MAX_THREADS)
        self.background = ThreadPool(_MAX_THREADS)


_workers: WeakKeyDictionary[asyncio.AbstractEventLoop, _Workers] = WeakKeyDictionary()


class _BackgroundToken(CancelToken):
    """The token of work that nobody waits for; each check pauses while calls work.

    Two threads that read folders fight for the interpreter's lock at every name.
    """

    __slots__ = ("_calls",)

    def __init__(self, seconds: float | None, *calls: ThreadPool) -> None:
        super().__init__(seconds)
        self._calls = calls

    def check(self) -> None:
        super().check()
        if any(threads.are_working for threads in self._calls):
            time.sleep(_PAUSE_SECONDS)


async def run_in_thread(
    work: Callable[[CancelToken], T],
    *,
    seconds: float | None = None,
    description: str = "The call",
    long: bool = False,
    background: bool = False,
    next_move: str = _NEXT_AFTER_DEADLINE,
) -> T:
    """Run `work(cancel)` on a worker thread and return its result.

    When the awaiting task is cancelled, this sets the token and returns at once; the thread ends at its next
    `cancel.check()`. After `seconds` the work is ended in the same way. `progress.report_progress` inside the work
    reaches the caller of the tool.

    Args:
        description: names the work in the message of a deadline.
        long: whether the work can take seconds: it has separate threads, so that quick calls always find one.
        background: whether nobody waits for the work; it slows down while calls run.
        next_move: what the message of a deadline says to do then.

    Raises:
        Unavailable: The deadline passed; `description` names the work in the message.
    """
    loop = asyncio.get_running_loop()
    workers = _workers.get(loop)
    if workers is None:
        workers = _Workers()
        _workers[loop] = workers
    if background:
        pool = workers.background
        cancel = _BackgroundToken(seconds, workers.short, workers.long)
    else:
        pool = workers.long if long else workers.short
        cancel = CancelToken(seconds)
    try:
        return await pool.run(work, cancel)
    except WorkCancelled:
        raise Unavailable(f"{description} was stopped after {seconds:g} s, its time limit.", next_move) from None
    finally:
        cancel.set()
