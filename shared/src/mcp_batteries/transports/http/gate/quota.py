"""How much of the server one caller may use: calls and bytes per minute, concurrent calls, open streams."""

from __future__ import annotations

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import NamedTuple

from mcp_batteries.errors import Unavailable
from mcp_batteries.transports.http.gate.fair_queue import Cancellation, FairQueue, Slot

__all__ = ["Quota"]

_MAX_CALLERS = 10_000


class _Bucket:
    """A token bucket with a burst of one minute; its level may go below zero, and then it admits nobody.

    Args:
        rate: what it gains in a minute.
        unit: what it counts, for messages.
    """

    def __init__(self, rate: int, unit: str) -> None:
        self._rate = rate
        self._unit = unit
        self._level = float(rate)
        self._filled_at = time.monotonic()

    def check(self) -> None:
        """Raise unless it admits now.

        Raises:
            Unavailable: It is empty; with the seconds until it admits again.
        """
        now = time.monotonic()
        self._level = min(self._rate, self._level + (now - self._filled_at) * self._rate / 60)
        self._filled_at = now
        if self._level >= 1:
            return
        seconds = (1 - self._level) * 60 / self._rate
        raise Unavailable(
            f"You have {self._rate:,} {self._unit} a minute, and used them.",
            f"Try again in {math.ceil(seconds)} s.",
            retry_after=seconds,
        )

    def take(self, amount: float) -> None:
        """Spend `amount`."""
        self._level -= amount


def _new_bucket(rate: int, unit: str) -> _Bucket | None:
    if not rate:
        return None
    return _Bucket(rate, unit)


class _Buckets(NamedTuple):
    """The buckets of one caller; None where there is no limit."""

    calls: _Bucket | None
    size: _Bucket | None


class Quota:
    """The limits of every caller, the same for all; 0 means no limit.

    Args:
        calls: calls per minute.
        size: bytes per minute, of requests and answers together.
        parallel: concurrent calls; further ones wait.
        streams: concurrent open streams.
    """

    def __init__(self, *, calls: int = 0, size: int = 0, parallel: int = 0, streams: int = 0) -> None:
        self._calls = calls
        self._size = size
        self._max_streams = streams or math.inf
        self._streams: Counter[str] = Counter()
        self._turns = FairQueue(parallel)
        self._buckets: OrderedDict[str, _Buckets] = OrderedDict()

    def turn(
        self, caller: str, size: int, cancelled: Cancellation | None = None, *, calls: int = 1
    ) -> Slot[Callable[[int], None] | None]:
        """Return a block with a turn of `caller` for a request of `size` bytes.

        The block gets a function for the size of its answer, if that counts.

        Args:
            calls: how many calls it is.
            cancelled: as in `FairQueue.turn`.

        Raises:
            Unavailable: A limit is reached; with the seconds until it ends.
            Abandoned: `cancelled` returned first.
        """
        return self._turns.turn(caller, self.spend(caller, size, calls=calls), cancelled)

    @contextmanager
    def hold_stream(self, caller: str) -> Generator[None]:
        """Count a stream of `caller` for as long as the block lasts.

        Raises:
            Unavailable: `caller` already holds the maximum.
        """
        if self._streams[caller] >= self._max_streams:
            raise Unavailable(f"You hold {self._max_streams:,} streams, the limit.", "Close some.", retry_after=60)
        self._streams[caller] += 1
        try:
            yield
        finally:
            self._streams[caller] -= 1
            if not self._streams[caller]:
                del self._streams[caller]

    def spend(self, caller: str, size: int = 0, *, calls: int = 0) -> Callable[[int], None] | None:
        """Count a request; return the function that counts the size of its answer, if that is limited.

        Raises:
            Unavailable: A limit is reached; with the seconds until it ends.
        """
        if not (self._calls or self._size):
            return None
        buckets = self._buckets_of(caller)
        for bucket in buckets:
            if bucket is not None:
                bucket.check()
        if buckets.calls is not None:
            buckets.calls.take(calls)
        if buckets.size is None:
            return None
        buckets.size.take(size)
        return buckets.size.take

    def _buckets_of(self, caller: str) -> _Buckets:
        buckets = self._buckets.get(caller)
        if buckets is None:
            buckets = _Buckets(_new_bucket(self._calls, "calls"), _new_bucket(self._size, "bytes"))
            self._buckets[caller] = buckets
            if len(self._buckets) > _MAX_CALLERS:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(caller)
        return buckets
