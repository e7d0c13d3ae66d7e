"""Why a running statement has to end: its deadline, or the caller's cancel."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["Interrupt"]


class Interrupt:
    """Why the running statement has to end: its deadline, or the caller's cancel, set from another thread."""

    def __init__(self) -> None:
        self.deadline = float("inf")
        self._cancelled = False
        self._running: set[sqlite3.Connection] = set()
        self._lock = threading.Lock()

    def start(self, seconds: float) -> None:
        """A new request, which has `seconds`."""
        self._cancelled = False
        self.deadline = time.monotonic() + seconds

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            for connection in self._running:
                connection.interrupt()

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - time.monotonic()

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled

    @property
    def is_due(self) -> bool:
        return self._cancelled or time.monotonic() > self.deadline

    def check(self) -> None:
        """Return, or raise what SQLite raises when it is interrupted."""
        if self.is_due:
            raise sqlite3.OperationalError("interrupted")

    @contextmanager
    def reach(self, connection: sqlite3.Connection) -> Generator[None]:
        """Let a cancel reach `connection` for as long as the block lasts."""
        with self._lock:
            self._running.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._running.discard(connection)

    @contextmanager
    def shorten(self, seconds: float) -> Generator[None]:
        """An earlier deadline for a part of the work."""
        deadline, self.deadline = self.deadline, min(self.deadline, time.monotonic() + seconds)
        try:
            yield
        finally:
            self.deadline = deadline
