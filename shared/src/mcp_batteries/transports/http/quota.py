"""How much of the server one caller may have: calls and bytes per minute, calls at once, and no more than its turn.

A caller alone has the server to itself. As soon as there are two, each starts one call at a time, and who has many
under way starts none while somebody with few is starting, so that one call waits behind one and not behind the
hundred that another sent. What has run for a moment does not count as starting any more: it waits for a disk, a
database or a network, and not for this process.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from mcp_batteries.errors import Unavailable

__all__ = ["Quota", "Unwanted"]

_START_SECONDS = 0.003
_RECENT_SECONDS = 1.0
_MOST_WAITING = 1_000
"""Calls of one caller that wait for its others."""
_MOST_REMEMBERED = 10_000


Over = Callable[[], Coroutine[Any, Any, object]]


class Unwanted(Exception):
    """Raised to whoever waits for a turn that nobody wants any more."""


class _Bucket:
    """`rate` per minute, a minute's worth at once; it may go below zero, and lets nobody in until it is above."""

    def __init__(self, rate: int) -> None:
        self._rate, self._level, self._at = rate, float(rate), time.monotonic()

    def missing_seconds(self) -> float:
        """Until something is in it."""
        now = time.monotonic()
        self._level = min(self._rate, self._level + (now - self._at) * self._rate / 60)
        self._at = now
        return 0.0 if self._level >= 1 else (1 - self._level) * 60 / self._rate

    def take(self, amount: float) -> None:
        self._level -= amount


class _Caller:
    """One who calls, with what is under way; a turn is starting until it is over or has run for a moment."""

    def __init__(self) -> None:
        self.running = 0
        self.starting: set[asyncio.TimerHandle] = set()
        self.waiting: deque[asyncio.Future[asyncio.TimerHandle]] = deque()
        self.seen = self.began = 0.0

    def has_far_more_than(self, other: _Caller) -> bool:
        return self.running + len(self.waiting) >= 2 * (other.running + len(other.waiting))


class Quota:
    """The limits of every caller, all alike; 0 is none.

    Args:
        calls: per minute.
        size: bytes per minute, of requests and answers together.
        parallel: calls at work at once; more of them wait.
        streams: held open at once.
    """

    def __init__(self, *, calls: int = 0, size: int = 0, parallel: int = 0, streams: int = 0) -> None:
        self._streams, self._held = streams or math.inf, Counter[str]()
        self._calls, self._size, self._parallel = calls, size, parallel or math.inf
        self._callers: dict[str, _Caller] = {}
        self._starting: set[_Caller] = set()
        self._waiting: dict[_Caller, None] = {}
        self._buckets: OrderedDict[str, tuple[_Bucket | None, _Bucket | None]] = OrderedDict()

    @asynccontextmanager
    async def turn(self, who: str, size: int, over: Over | None = None) -> AsyncGenerator[Callable[[int], None]]:
        """Wait for a turn of `who` for a call of `size` bytes; the block takes what its answer adds.

        Args:
            over: awaited beside the turn where there is one to wait for; once it returns nobody wants the turn.

        Raises:
            Unavailable: A limit is reached; with the seconds until it is not.
            Unwanted: `over` came first.
        """
        spend = self._spend(who, size)
        caller = self._callers.get(who)
        if caller is None:
            caller = self._callers[who] = _Caller()
        caller.seen = time.monotonic()
        turn = await self._begun(caller, over)
        try:
            yield spend
        finally:
            self._end(caller, turn)

    @contextmanager
    def holding(self, who: str) -> Generator[None]:
        """Count a stream of `who` for as long as the block lasts.

        Raises:
            Unavailable: `who` holds as many as one may.
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

    async def _begun(self, caller: _Caller, over: Over | None) -> asyncio.TimerHandle:
        if not caller.waiting and self._may_start(caller):
            return self._begin(caller)
        if len(caller.waiting) >= _MOST_WAITING:
            raise Unavailable(f"{_MOST_WAITING:,} of your calls wait already.", "Send fewer at once.", retry_after=1)
        place: asyncio.Future[asyncio.TimerHandle] = asyncio.get_running_loop().create_future()
        caller.waiting.append(place)
        self._waiting[caller] = None
        ending = asyncio.ensure_future(over()) if over is not None else None
        try:
            if ending is not None:
                await asyncio.wait((place, ending), return_when=asyncio.FIRST_COMPLETED)
                if not place.done():
                    raise Unwanted
            return await place
        except (asyncio.CancelledError, Unwanted):
            if place.done() and not place.cancelled():
                self._end(caller, place.result())  # Its turn had come just then.
            elif place in caller.waiting:
                caller.waiting.remove(place)
            raise
        finally:
            if ending is not None:
                ending.cancel()

    def _begin(self, caller: _Caller) -> asyncio.TimerHandle:
        timer = asyncio.get_running_loop().call_later(_START_SECONDS, lambda: self._started(caller, timer))
        caller.running += 1
        caller.starting.add(timer)
        caller.began = time.monotonic()
        self._starting.add(caller)
        return timer

    def _end(self, caller: _Caller, turn: asyncio.TimerHandle) -> None:
        turn.cancel()
        caller.running -= 1
        caller.seen = time.monotonic()
        self._started(caller, turn)

    def _started(self, caller: _Caller, turn: asyncio.TimerHandle) -> None:
        caller.starting.discard(turn)
        if not caller.starting:
            self._starting.discard(caller)
        for other in list(self._waiting):
            while other.waiting and self._may_start(other):
                place = other.waiting.popleft()
                if not place.done():
                    place.set_result(self._begin(other))
            if not other.waiting:
                del self._waiting[other]

    def _may_start(self, caller: _Caller) -> bool:
        if caller.running >= self._parallel:
            return False
        if self._is_alone(caller):
            return True
        if caller.starting:
            return False
        # Held back, but never for long: those with few may be many.
        held = any(caller.has_far_more_than(other) for other in self._starting if other is not caller)
        return not held or time.monotonic() - caller.began > _START_SECONDS

    def _is_alone(self, caller: _Caller) -> bool:
        """Whether nobody else has called of late; forgets who has not."""
        long_ago = time.monotonic() - _RECENT_SECONDS
        for who, other in list(self._callers.items()):
            if other.running or other.waiting or other.seen > long_ago:
                if other is not caller:
                    return False
            else:
                del self._callers[who]
        return True

    def _spend(self, who: str, size: int) -> Callable[[int], None]:
        if not (self._calls or self._size):
            return lambda more: None
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
            calls.take(1)
        if sizes is None:
            return lambda more: None
        sizes.take(size)
        return sizes.take
