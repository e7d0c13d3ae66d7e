"""How much of the server one caller may use: calls and bytes per minute, concurrent calls, open streams."""

from __future__ import annotations

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager

from mcp_batteries.errors import Unavailable
from mcp_batteries.transports.http.turns import Gone, Turn, Turns

__all__ = ["Quota"]

_MOST_REMEMBERED = 10_000


class _Bucket:
    """A token bucket of `rate` per minute, with a burst of one minute; it may go below zero, and then admits nobody."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._level = float(rate)
        self._at = time.monotonic()

    def missing_seconds(self) -> float:
        """Seconds until it admits again."""
        now = time.monotonic()
        self._level = min(self._rate, self._level + (now - self._at) * self._rate / 60)
        self._at = now
        return 0.0 if self._level >= 1 else (1 - self._level) * 60 / self._rate

    def take(self, amount: float) -> None:
        self._level -= amount


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
        self._streams = streams or math.inf
        self._held: Counter[str] = Counter()
        self._turns = Turns(parallel)
        self._buckets: OrderedDict[str, tuple[_Bucket | None, _Bucket | None]] = OrderedDict()

    def turn(
        self, who: str, size: int, gone: Gone | None = None, *, calls: int = 1
    ) -> Turn[Callable[[int], None] | None]:
        """A block with a turn of `who` for a request of `size` bytes.

        The block gets a function for the size of its answer, if that counts.

        Args:
            calls: how many calls it is.
            gone: as in `Turns.turn`.

        Raises:
            Unavailable: A limit is reached; with the seconds until it ends.
            Unwanted: `gone` returned first.
        """
        return self._turns.turn(who, self._spend(who, size, calls), gone)

    @contextmanager
    def holding(self, who: str) -> Generator[None]:
        """Count a stream of `who` for as long as the block lasts.

        Raises:
            Unavailable: `who` already holds the maximum.
        """
        if self._held[who] >= self._streams:
            raise Unavailable(f"You hold {self._streams:,} streams, the limit.", "Close some.", retry_after=60)
        self._held[who] += 1
        try:
            yield
        finally:
            self._held[who] -= 1
            if not self._held[who]:
                del self._held[who]

    def _spend(self, who: str, size: int, amount: int) -> Callable[[int], None] | None:
        if not (self._calls or self._size):
            return None
        if who not in self._buckets:
            made = (_Bucket(self._calls) if self._calls else None, _Bucket(self._size) if self._size else None)
            self._buckets[who] = made
            if len(self._buckets) > _MOST_REMEMBERED:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(who)
        calls, sizes = self._buckets[who]
        for bucket, limit in ((calls, f"{self._calls:,} calls"), (sizes, f"{self._size:,} bytes")):
            if bucket is not None and (seconds := bucket.missing_seconds()):
                raise Unavailable(
                    f"You have {limit} a minute, and used them.",
                    f"Try again in {math.ceil(seconds)} s.",
                    retry_after=seconds,
                )
        if calls is not None:
            calls.take(amount)
        if sizes is None:
            return None
        sizes.take(size)
        return sizes.take
