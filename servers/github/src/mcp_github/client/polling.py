"""Waits for what GitHub runs: checks less and less often, until it has ended or the caller's time is over."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import anyio

from mcp_batteries.progress import report_progress
from mcp_github.call_context import current_call

__all__ = ["MAX_WAIT_SECONDS", "Poller"]

T = TypeVar("T")

# One call waits no longer.
MAX_WAIT_SECONDS = 3000
_MAX_PAUSE_SECONDS = 20.0


@dataclass(frozen=True)
class Poller:
    """How long to wait, and how long between the first two checks, in seconds."""

    seconds: float
    pause: float = 2.0

    async def poll_until_done(
        self, fetch: Callable[[], Awaitable[T]], describe_progress: Callable[[T, float], str | None]
    ) -> T:
        """Return what `fetch` gives in the end.

        Args:
            describe_progress: says of a state after so many seconds how it goes on; None once it has ended.
        """
        start = time.monotonic()
        pause = self.pause
        while True:
            # Each check has the time of a call: that a run takes long is no fault of GitHub's.
            current_call().github_seconds = 0.0
            state = await fetch()
            elapsed = time.monotonic() - start
            progress = describe_progress(state, elapsed)
            if progress is None or elapsed >= self.seconds:
                return state
            report_progress(elapsed, self.seconds, progress)
            # An unchanged answer costs nothing of the limit, but each check is a request all the same.
            await anyio.sleep(min(pause, max(0.0, self.seconds - elapsed)))
            pause = min(pause * 1.5, _MAX_PAUSE_SECONDS)
