"""How long a server's shutdown may take, measured in time that the machine really gave it.

Calls must get their answers on a busy machine, too.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable

import anyio

__all__ = ["ShutdownBudget"]

_POLL_SECONDS = 0.01
_THREAD_POLL_SECONDS = 0.1
# A second that the machine gave to others counts only this much: the end is late then, and comes all the same.
_LOST_SECOND_WEIGHT = 1 / 3
# No pause counts more than this: what stopped the process had stopped its calls too.
_MAX_PAUSE_SECONDS = 0.3


class ShutdownBudget:
    """Counts the seconds since shutdown began in which the event loop could work.

    Args:
        seconds: after them, the process ends whatever it does.
        silent: how long the event loop may be silent after its `seconds`.

    Attributes:
        spent: the seconds that have counted so far.
    """

    def __init__(self, seconds: float, silent: float) -> None:
        self._seconds = seconds
        self._silent = silent
        self._task: asyncio.Task[None] | None = None
        self.spent = 0.0

    def start(self) -> None:
        """Start to count, on this event loop."""
        self._task = asyncio.create_task(self._count())

    async def wait_until(self, done: Callable[[], bool], seconds: float) -> None:
        """Wait for `done`, for at most `seconds`."""
        end = self.spent + seconds
        while not done() and self.spent < end:  # noqa: ASYNC110 - uvicorn has no event for any of it
            await anyio.sleep(_POLL_SECONDS)

    def exit_with(self, status: int) -> None:
        """End the process when the time is over; callable from any thread or signal handler."""
        # A separate thread, because the event loop or a worker thread may be what does not end.
        threading.Thread(target=self._exit, args=[status], daemon=True).start()

    async def _count(self) -> None:
        last_time = time.monotonic()
        last_work = time.thread_time()
        while True:
            await anyio.sleep(_POLL_SECONDS)
            now = time.monotonic()
            work = time.thread_time()
            elapsed = now - last_time
            received = min(elapsed, work - last_work + 2 * _POLL_SECONDS)
            self.spent += received + min((elapsed - received) * _LOST_SECOND_WEIGHT, _MAX_PAUSE_SECONDS)
            last_time = now
            last_work = work

    def _exit(self, status: int) -> None:
        elapsed = 0.0
        silent = 0.0
        while elapsed < self._seconds or (silent < self._silent and self.spent < self._seconds):
            before = time.monotonic()
            spent = self.spent
            time.sleep(_THREAD_POLL_SECONDS)
            step = min(time.monotonic() - before, 2 * _THREAD_POLL_SECONDS)
            elapsed += step
            if self.spent == spent:
                silent += step
            else:
                silent = 0.0
        os._exit(status)
