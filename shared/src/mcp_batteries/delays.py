"""Timeouts for many that wait equally long and of which few expire."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable

__all__ = ["Delay", "Wait"]


class Wait:
    """One pending timeout."""

    __slots__ = ("context", "then", "when")

    def __init__(self, when: float, then: Callable[[], object]) -> None:
        self.when = when
        self.context: contextvars.Context | None = contextvars.copy_context()
        self.then: Callable[[], object] | None = then

    def cancel(self) -> None:
        # It stays in line: what its call held does not.
        self.then = None
        self.context = None

    def end(self) -> None:
        """Call the callback, unless the wait was cancelled."""
        then = self.then
        self.then = None
        if then is not None:
            then()


class Delay:
    """Calls back after `seconds`, on one event loop.

    The first to begin is the first due, so one timer of the loop serves all; separate timers cost five times as much.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waits: deque[Wait] = deque()
        self._runs = False
        self._context = contextvars.Context()
        """Of the loop's timer, which would keep what the first call held for as long as others come."""

    def begin(self, then: Callable[[], object]) -> Wait:
        """Call `then`, in the caller's context, unless the wait is cancelled first."""
        loop = asyncio.get_running_loop()
        wait = Wait(loop.time() + self._seconds, then)
        self._waits.append(wait)
        if not self._runs:
            self._runs = True
            loop.call_at(wait.when, self._due, context=self._context)
        return wait

    def _due(self) -> None:
        loop = asyncio.get_running_loop()
        waits = self._waits
        now = loop.time()
        while waits and (waits[0].then is None or waits[0].when <= now):
            wait = waits.popleft()
            if wait.then is not None:
                # Through the loop, which continues if one of them raises.
                loop.call_soon(wait.end, context=wait.context)
        self._runs = bool(waits)
        if waits:
            loop.call_at(waits[0].when, self._due, context=self._context)
