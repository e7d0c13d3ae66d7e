"""Decides whose call starts next: a single caller has the server to itself, several take turns.

With two or more callers, each starts one call at a time, and only one before the process has checked for newcomers. A
caller with many running calls starts none while one with few is starting, so that one call waits behind one and not
behind another caller's hundred. A call that has run for a moment does not count as starting any more: it waits for a
disk, a database or a network, and not for this process.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Generic, TypeVar

from mcp_batteries.delays import Delay, Wait
from mcp_batteries.errors import Unavailable

__all__ = ["Gone", "Turn", "Turns", "Unwanted"]

T = TypeVar("T")

_START_SECONDS = 0.003
_RECENT_SECONDS = 1.0
_MOST_WAITING = 1_000
"""Calls of one caller that wait for its others."""


Gone = Callable[[], Coroutine[Any, Any, object]]
"""Returns once nobody wants the answer any more."""


class Unwanted(Exception):
    """Raised in the waiter for a turn that is no longer wanted."""


class _Caller:
    """One caller with its running calls; a turn is starting until it is over or has run for a moment."""

    def __init__(self) -> None:
        self.running = 0
        self.starting: set[Wait] = set()
        self.waiting: deque[asyncio.Future[Wait]] = deque()
        self.seen = 0.0
        self.began = 0.0
        self.has_begun = False
        """In this turn of the event loop."""

    def has_far_more_than(self, other: _Caller) -> bool:
        return self.running + len(self.waiting) >= 2 * (other.running + len(other.waiting))


class Turn(Generic[T]):
    """The block of `Turns.turn`, as a class: a generator for each call costs twice as much."""

    __slots__ = ("_caller", "_gives", "_gone", "_turns", "_wait")

    def __init__(self, turns: Turns, caller: _Caller, gives: T, gone: Gone | None) -> None:
        self._turns = turns
        self._caller = caller
        self._gives = gives
        self._gone = gone

    async def __aenter__(self) -> T:
        self._wait = await self._turns.begun(self._caller, self._gone)
        return self._gives

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._turns.end(self._caller, self._wait)


class Turns:
    """The turns of all callers.

    Args:
        parallel: concurrent calls of one caller; further ones wait. 0 means no limit.
    """

    def __init__(self, parallel: int = 0) -> None:
        self._parallel = parallel or math.inf
        self._start = Delay(_START_SECONDS)
        self._callers: dict[str, _Caller] = {}
        self._starting: set[_Caller] = set()
        self._waiting: dict[_Caller, None] = {}

    def turn(self, who: str, gives: T, gone: Gone | None = None) -> Turn[T]:
        """A block that waits for a turn of `who` and holds it for as long as the block lasts.

        Args:
            gives: the block's value.
            gone: awaited together with the turn, if it has to wait.

        Raises:
            Unavailable: On entering: too many calls of `who` wait already.
            Unwanted: On entering: `gone` returned first.
        """
        caller = self._callers.get(who)
        if caller is None:
            caller = _Caller()
            self._callers[who] = caller
        caller.seen = time.monotonic()
        return Turn(self, caller, gives, gone)

    async def begun(self, caller: _Caller, gone: Gone | None) -> Wait:
        if not caller.waiting and self._may_start(caller):
            return self._begin(caller)
        if len(caller.waiting) >= _MOST_WAITING:
            raise Unavailable(f"{_MOST_WAITING:,} of your calls wait already.", "Send fewer at once.", retry_after=1)
        place: asyncio.Future[Wait] = asyncio.get_running_loop().create_future()
        caller.waiting.append(place)
        self._waiting[caller] = None
        ending = asyncio.ensure_future(gone()) if gone is not None else None
        try:
            if ending is not None:
                await asyncio.wait((place, ending), return_when=asyncio.FIRST_COMPLETED)
                if not place.done():
                    raise Unwanted
            return await place
        except (asyncio.CancelledError, Unwanted):
            if place.done() and not place.cancelled():
                self.end(caller, place.result())  # Its turn had come just then.
            elif place in caller.waiting:
                caller.waiting.remove(place)
            raise
        finally:
            if ending is not None:
                ending.cancel()

    def _begin(self, caller: _Caller) -> Wait:
        timer = self._start.begin(lambda: self._started(caller, timer))
        if not caller.has_begun:
            caller.has_begun = True
            asyncio.get_running_loop().call_soon(self._looked, caller)
        caller.running += 1
        caller.starting.add(timer)
        caller.began = time.monotonic()
        self._starting.add(caller)
        return timer

    def end(self, caller: _Caller, turn: Wait) -> None:
        turn.cancel()
        caller.running -= 1
        caller.seen = time.monotonic()
        self._started(caller, turn)

    def _started(self, caller: _Caller, turn: Wait) -> None:
        caller.starting.discard(turn)
        if not caller.starting:
            self._starting.discard(caller)
        self._start_others()

    def _looked(self, caller: _Caller) -> None:
        caller.has_begun = False
        self._start_others()

    def _start_others(self) -> None:
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
        if caller.starting or caller.has_begun:
            return False
        # Held back, but never for long: those with few may be many.
        held = any(caller.has_far_more_than(other) for other in self._starting if other is not caller)
        return not held or time.monotonic() - caller.began > _START_SECONDS

    def _is_alone(self, caller: _Caller) -> bool:
        """Whether no other caller was active recently; forgets inactive ones."""
        long_ago = time.monotonic() - _RECENT_SECONDS
        for who, other in list(self._callers.items()):
            if other.running or other.waiting or other.seen > long_ago:
                if other is not caller:
                    return False
            else:
                del self._callers[who]
        return True
