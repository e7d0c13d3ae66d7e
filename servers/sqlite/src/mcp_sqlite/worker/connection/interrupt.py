"""The reasons for which a running statement has to end: its deadline, or the caller's cancel."""

from __future__ import annotations

import math
import sqlite3
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["Interrupt"]


class Interrupt:
    """Ends running statements at their deadline, or when another thread hears the caller's cancel.

    Attributes:
        deadline: when the request has to end, by the monotonic clock.
        limit: the seconds that a whole call has, waiting for a worker included; infinite where that is not known.
    """

    def __init__(self) -> None:
        self.limit: float = math.inf
        self.deadline: float = math.inf
        self._is_cancelled = False
        self._running: set[sqlite3.Connection] = set()
        self._lock = threading.Lock()

    def start(self, seconds: float, limit: float = math.inf) -> None:
        """Begin a new request, which has `seconds` of the `limit` left."""
        self._is_cancelled = False
        self.limit = limit
        self.deadline = time.monotonic() + seconds

    def cancel(self) -> None:
        """Interrupt what runs on any connection, and refuse what would run next."""
        with self._lock:
            self._is_cancelled = True
            for connection in self._running:
                connection.interrupt()

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - time.monotonic()

    @property
    def is_cancelled(self) -> bool:
        """Whether the caller has cancelled the request."""
        return self._is_cancelled

    @property
    def is_due(self) -> bool:
        """Whether the request has to end now."""
        return self._is_cancelled or time.monotonic() > self.deadline

    def check(self) -> None:
        """Raise what SQLite raises when it is interrupted, if the request has to end now."""
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
        """Have an earlier deadline, in `seconds`, while the block lasts."""
        deadline = self.deadline
        self.deadline = min(deadline, time.monotonic() + seconds)
        try:
            yield
        finally:
            self.deadline = deadline
