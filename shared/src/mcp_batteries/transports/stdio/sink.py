"""Writes bytes to a descriptor whose writes may block, on a thread. Standard library only."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

__all__ = ["Sink"]


class Sink:
    """Accepts bytes while there is room, and writes them in order on its own thread.

    Args:
        descriptor: the target.
        capacity: how many bytes may wait.
        on_progress: called by that thread after each write, and when one fails.

    Attributes:
        broken: True once a write has failed: nobody reads any more.
    """

    def __init__(self, descriptor: int, capacity: int, on_progress: Callable[[], None] = lambda: None) -> None:
        self._descriptor = descriptor
        self._capacity = capacity
        self._on_progress = on_progress
        self._backlog = bytearray()
        self._writing = 0
        self._change = threading.Condition()
        self.broken = False
        threading.Thread(target=self._write_backlog, name=f"writes to {descriptor}", daemon=True).start()

    @property
    def pending(self) -> int:
        """How many accepted bytes are not written yet."""
        with self._change:
            return len(self._backlog) + self._writing

    def offer(self, data: bytes | memoryview) -> int:
        """Accept as much of `data` as there is room for; return the number of bytes.

        Raises:
            BrokenPipeError: Nobody reads any more.
        """
        with self._change:
            if self.broken:
                raise BrokenPipeError
            free = max(0, self._capacity - len(self._backlog) - self._writing)
            accepted = data[:free]
            if accepted:
                self._backlog += accepted
                self._change.notify_all()
            return len(accepted)

    def flush(self, seconds: float) -> bool:
        """Wait until everything is written or failed; return False if that takes longer than `seconds`."""
        with self._change:
            return self._change.wait_for(lambda: self.broken or not (self._backlog or self._writing), seconds)

    def _write_backlog(self) -> None:
        while not self.broken:
            with self._change:
                self._change.wait_for(lambda: self._backlog)
                chunk = self._backlog
                self._backlog = bytearray()
                self._writing = len(chunk)
            try:
                with memoryview(chunk) as unwritten:
                    while unwritten:
                        unwritten = unwritten[os.write(self._descriptor, unwritten) :]
            except OSError:
                self.broken = True
            with self._change:
                self._writing = 0
                self._change.notify_all()
            self._on_progress()
