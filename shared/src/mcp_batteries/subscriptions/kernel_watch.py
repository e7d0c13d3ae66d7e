"""The kernel's reports of what happens to the names in some folders, read on a thread."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

from watchfiles._rust_notify import RustNotify

__all__ = ["DEBOUNCE_MS", "STEP_MS", "KernelWatch"]

STEP_MS = 5
DEBOUNCE_MS = 20
# In a pause of this process as long as this, others may have filled the queue. Equal events count once in a batch, so
# its size does not show it.
_STALL_SECONDS = 0.1


class KernelWatch:
    """Armed watches on `folders`; constructed and read on worker threads."""

    def __init__(self, folders: Iterable[str]) -> None:
        # Outer folders come first, because then a change of an inner one before it is armed is an event.
        self.folders = sorted(folders, key=len)
        self._notify = RustNotify(self.folders, False, False, 0, False, False)
        self._steps_left = math.inf
        self._last_step = time.monotonic()
        self._stalled = False

    def read(self) -> set[tuple[int, str]] | None:
        """Wait for events; return None at the end."""
        events = self._notify.watch(DEBOUNCE_MS, STEP_MS, 0, self)
        if isinstance(events, str):
            return None
        return events

    def end(self, after_steps: int = 0) -> None:
        self._steps_left = min(self._steps_left, after_steps)

    def may_be_cut(self) -> bool:
        """Tell whether events may have been lost since the last call, because the process did not run for a while."""
        stalled = self._stalled
        self._stalled = False
        return stalled

    @property
    def ending(self) -> bool:
        return self._steps_left < math.inf

    def is_set(self) -> bool:
        """Count a step of `RustNotify`, which drops what it has not yet reported if this returns True."""
        now = time.monotonic()
        self._stalled = self._stalled or now - self._last_step > _STALL_SECONDS
        self._last_step = now
        self._steps_left -= 1
        return self._steps_left < 0
