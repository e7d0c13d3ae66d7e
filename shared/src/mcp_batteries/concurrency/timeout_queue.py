"""Timeouts for many that wait equally long and of which few expire."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable

__all__ = ["Timeout", "TimeoutQueue"]


class Timeout:
    """One pending timeout."""

    __slots__ = ("callback", "context", "when")

    def __init__(self, when: float, callback: Callable[[], object]) -> None:
        self.when = when
        self.context: contextvars.Context | None = contextvars.copy_context()
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        # It stays in line, but keeps nothing of its call alive.
        self.callback = None
        self.context = None

    def end(self) -> None:
        """Call the callback, unless the wait was cancelled."""
        callback = self.callback
        self.callback = None
        if callback is not None:
            callback()


class TimeoutQueue:
    """Calls back after `seconds`, on one event loop.

    The first to begin is the first due, so one timer of the loop serves all; separate timers cost five times as much.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waits: deque[Timeout] = deque()
        self._runs = False
        # The timer of the loop has a context of its own: it would keep alive what the first call held for as long as
        # others come.
        self._context = contextvars.Context()

    def begin(self, callback: Callable[[], object]) -> Timeout:
        """Call `callback`, in the caller's context, unless the returned wait is cancelled first."""
        loop = asyncio.get_running_loop()
        wait = Timeout(loop.time() + self._seconds, callback)
        self._waits.append(wait)
        if not self._runs:
            self._runs = True
            loop.call_at(wait.when, self._call_back, context=self._context)
        return wait

    def _call_back(self) -> None:
        """Call back those whose time has come, and set the timer for the next one."""
        loop = asyncio.get_running_loop()
        waits = self._waits
        now = loop.time()
        while waits and (waits[0].callback is None or waits[0].when <= now):
            wait = waits.popleft()
            if wait.callback is not None:
                # Through the loop, which continues if one of them raises.
                loop.call_soon(wait.end, context=wait.context)
        self._runs = bool(waits)
        if waits:
            loop.call_at(waits[0].when, self._call_back, context=self._context)
