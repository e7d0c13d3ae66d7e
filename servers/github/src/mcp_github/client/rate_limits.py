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

__all__ = ["EVERYTHING", "RateLimits", "limited"]

EVERYTHING = "everything"


class RateLimits:
    """The limits of one token that are in force, and the turn of writes.

    Args:
        seconds: between the end of one write and the start of the next.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: dict[str, float] = {}
        self._turn = anyio.Lock()
        self._last = float("-inf")

    def reached(self, resource: str, until: float) -> None:
        """Remember that GitHub wants nothing of `resource` before `until`."""
        self._until[resource] = max(until, self._until.get(resource, 0.0))

    def check(self, resource: str) -> None:
        """Raise `Unavailable` while a limit on `resource` is in force."""
        for name in (EVERYTHING, resource):
            left = self._until.get(name, 0.0) - time.time()
            if left > 0:
                raise limited(name, left)

    @asynccontextmanager
    async def write(self) -> AsyncGenerator[None]:
        """The turn to write: one at a time, spaced."""
        async with self._turn:
            await anyio.sleep(max(0.0, self._last + self._seconds - time.monotonic()))
            try:
                yield
            finally:
                self._last = time.monotonic()


def limited(resource: str, seconds: float) -> Unavailable:
    """The answer while a limit is in force."""
    wait = max(1, math.ceil(seconds))
    what = "a secondary rate limit" if resource == EVERYTHING else f"its rate limit for `{resource}`"
    return Unavailable(f"GitHub says that {what} is reached.", f"Try again in {wait} s.", retry_after=float(wait))
