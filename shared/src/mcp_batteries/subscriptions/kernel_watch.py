"""The kernel's reports of what happens to the names in some folders, read on a thread."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

from watchfiles._rust_notify import RustNotify

__all__ = ["DEBOUNCE_MS", "STEP_MS", "KernelWatch"]

STEP_MS = 5
DEBOUNCE_MS = 20
_STALL_SECONDS = 0.1
"""A pause of this process in which others may have filled the queue; equal events count once in a batch, so that its
size does not tell."""


class KernelWatch:
    """Armed watches on `folders`; constructed and read on worker threads."""

    def __init__(self, folders: Iterable[str]) -> None:
        # The outer ones first: what happens to an inner one before it is armed is then an event.
        self.folders = sorted(folders, key=len)
        self._notify = RustNotify(self.folders, False, False, 0, False, False)
        self._steps_left = math.inf
        self._last_step = time.monotonic()
        self._stalled = False

    def read(self) -> set[tuple[int, str]] | None:
        """Wait for events; None at the end."""
        events = self._notify.watch(DEBOUNCE_MS, STEP_MS, 0, self)
        return None if isinstance(events, str) else events

    def end(self, after_steps: int = 0) -> None:
        self._steps_left = min(self._steps_left, after_steps)

    def may_be_cut(self) -> bool:
        """Whether events may have been lost since this was last asked: the process was not running for a while."""
        stalled = self._stalled
        self._stalled = False
        return stalled

    @property
    def ending(self) -> bool:
        return self._steps_left < math.inf

    def is_set(self) -> bool:
        """`RustNotify` calls this in each step; if true, it drops what it has not yet reported."""
        now = time.monotonic()
        self._stalled = self._stalled or now - self._last_step > _STALL_SECONDS
        self._last_step = now
        self._steps_left -= 1
        return self._steps_left < 0
