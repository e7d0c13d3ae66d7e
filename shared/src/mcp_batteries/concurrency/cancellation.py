"""A token that tells blocking work on another thread to end, because nobody waits for it any more."""

from __future__ import annotations

import time

__all__ = ["CancelToken", "WorkCancelled"]


class WorkCancelled(Exception):
    """Raised inside blocking work when nobody waits for it any more."""


class CancelToken:
    """A stop sign for work on another thread: set once, polled by the work.

    Args:
        seconds: also stop this long from now; None for no deadline.
    """

    __slots__ = ("_is_set", "deadline")

    def __init__(self, seconds: float | None = None) -> None:
        self._is_set = False  # An event costs fifteen times as much, and nobody waits for this.
        self.deadline: float | None = None
        if seconds is not None:
            self.deadline = time.monotonic() + seconds

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        """Tell whether it is set, or past the deadline."""
        return self._is_set or (self.deadline is not None and time.monotonic() > self.deadline)

    def check(self) -> None:
        """Raise `WorkCancelled` if set. Cheap enough for every few hundred items of a loop."""
        if self.is_set():
            raise WorkCancelled
