"""Respects GitHub's rate limits: sends nothing that a limit forbids now, and spaces writes.

GitHub asks for a second between writes and for silence after a refusal; ignoring that gets a token banned. So a call
that meets a limit gets the seconds to wait at once, instead of blocking.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from mcp_batteries.errors import Unavailable

__all__ = ["EVERYTHING", "MAX_TURN_SECONDS", "RateLimits", "rate_limit_problem"]

# A write that waits longer for its turn is not begun.
MAX_TURN_SECONDS = 30.0
# A secondary limit, which forbids requests of every kind.
EVERYTHING = "everything"


class RateLimits:
    """The limits of one token that are in force, and the queue of writes.

    Args:
        write_interval: seconds between the end of one write and the start of the next.
    """

    def __init__(self, write_interval: float) -> None:
        self._write_interval = write_interval
        self._blocked_until: dict[str, float] = {}
        self._write_lock = anyio.Lock()
        self._last_write = float("-inf")

    def block_until(self, resource: str, until: float) -> None:
        """Remember that GitHub wants nothing of `resource` before `until`, in seconds since the epoch."""
        self._blocked_until[resource] = max(until, self._blocked_until.get(resource, 0.0))

    def check(self, resource: str) -> None:
        """Raise `Unavailable` while a limit on `resource` is in force."""
        for name in (EVERYTHING, resource):
            remaining = self._blocked_until.get(name, 0.0) - time.time()
            if remaining > 0:
                raise rate_limit_problem(name, remaining)

    @asynccontextmanager
    async def write_slot(self) -> AsyncGenerator[None]:
        """Wait for the turn to write, and hold it: one write at a time, spaced.

        Raises:
            Unavailable: others wrote for `MAX_TURN_SECONDS`.
        """
        with anyio.move_on_after(MAX_TURN_SECONDS) as waiting:
            await self._write_lock.acquire()
        if waiting.cancelled_caught:
            raise Unavailable(
                f"Other changes are still under way after {MAX_TURN_SECONDS:g} s: this one was not begun.",
                "Try again in a moment.",
            )
        try:
            await anyio.sleep(max(0.0, self._last_write + self._write_interval - time.monotonic()))
            try:
                yield
            finally:
                self._last_write = time.monotonic()
        finally:
            self._write_lock.release()


def rate_limit_problem(resource: str, seconds: float) -> Unavailable:
    """Return the problem of a call while a limit on `resource` is in force for so many seconds."""
    wait = max(1, math.ceil(seconds))
    limit = f"its rate limit for `{resource}`"
    if resource == EVERYTHING:
        limit = "a secondary rate limit"
    return Unavailable(f"GitHub says that {limit} is reached.", f"Try again in {wait} s.", retry_after=float(wait))
