"""Waits for what GitHub runs: checks less and less often, until it has ended or the caller's time is over."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import anyio

from mcp_batteries.progress import tell

__all__ = ["LONGEST", "Wait"]

T = TypeVar("T")

LONGEST = 3000
"""Seconds one call waits at most."""
_LONGEST_PAUSE = 20.0


@dataclass(frozen=True)
class Wait:
    """How long to wait, and how long between the first two looks."""

    seconds: float
    pause: float = 2.0

    async def ended(self, look: Callable[[], Awaitable[T]], going: Callable[[T, float], str | None]) -> T:
        """What `look` finds in the end.

        Args:
            going: says of what was found after so many seconds how it goes on; None once it has ended.
        """
        began, pause = time.monotonic(), self.pause
        while True:
            found = await look()
            passed = time.monotonic() - began
            state = going(found, passed)
            if state is None or passed >= self.seconds:
                return found
            tell(passed, self.seconds, state)
            # An unchanged answer costs nothing of the limit, but each look is a request all the same.
            await anyio.sleep(min(pause, max(0.0, self.seconds - passed)))
            pause = min(pause * 1.5, _LONGEST_PAUSE)
