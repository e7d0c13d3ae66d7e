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

from mcp_batteries.concurrency.timeout_queue import Timeout, TimeoutQueue
from mcp_batteries.errors import Unavailable

__all__ = ["Abandoned", "Cancellation", "FairQueue", "Slot"]

T = TypeVar("T")

_START_SECONDS = 0.003
_RECENT_SECONDS = 1.0
# Calls of one caller that may wait for its others.
_MAX_WAITING = 1_000


# Returns once nobody wants the answer any more.
Cancellation = Callable[[], Coroutine[Any, Any, object]]


class Abandoned(Exception):
    """Raised in the waiter for a turn that is no longer wanted."""


class _Caller:
    """One caller with its running calls; a turn is starting until it is over or has run for a moment.

    Attributes:
        last_active: when it was last heard of, by the monotonic clock.
        began: when its latest call began.
        has_begun: whether one began in this turn of the event loop.
    """

    def __init__(self) -> None:
        self.running = 0
        self.starting: set[Timeout] = set()
        self.waiting: deque[asyncio.Future[Timeout]] = deque()
        self.last_active = 0.0
        self.began = 0.0
        self.has_begun = False

    def has_far_more_than(self, other: _Caller) -> bool:
        return self.running + len(self.waiting) >= 2 * (other.running + len(other.waiting))


class Slot(Generic[T]):
    """Context manager that holds one turn.

    A class, because a generator for each call costs twice as much.
    """

    __slots__ = ("_caller", "_cancelled", "_turns", "_value", "_wait")

    def __init__(self, turns: FairQueue, caller: _Caller, value: T, cancelled: Cancellation | None) -> None:
        self._turns = turns
        self._caller = caller
        self._value = value
        self._cancelled = cancelled

    async def __aenter__(self) -> T:
        self._wait = await self._turns.acquire(self._caller, self._cancelled)
        return self._value

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._turns.release(self._caller, self._wait)


class FairQueue:
    """The turns of all callers.

    Args:
        parallel: concurrent calls of one caller; further ones wait. 0 means no limit.
    """

    def __init__(self, parallel: int = 0) -> None:
        self._parallel = parallel or math.inf
        self._start = TimeoutQueue(_START_SECONDS)
        self._callers: dict[str, _Caller] = {}
        self._starting: set[_Caller] = set()
        self._waiting: dict[_Caller, None] = {}

    def turn(self, name: str, value: T, cancelled: Cancellation | None = None) -> Slot[T]:
        """Return a block that waits for a turn of the caller `name` and holds it for as long as the block lasts.

        Args:
            value: the block's value.
            cancelled: awaited together with the turn, if it has to wait.

        Raises:
            Unavailable: On entering: too many calls of this caller wait already.
            Abandoned: On entering: `cancelled` returned first.
        """
        caller = self._callers.get(name)
        if caller is None:
            caller = _Caller()
            self._callers[name] = caller
        caller.last_active = time.monotonic()
        return Slot(self, caller, value, cancelled)

    async def acquire(self, caller: _Caller, cancelled: Cancellation | None) -> Timeout:
        """Wait for a turn of `caller`, and begin it."""
        if not caller.waiting and self._may_start(caller):
            return self._begin(caller)
        if len(caller.waiting) >= _MAX_WAITING:
            raise Unavailable(f"{_MAX_WAITING:,} of your calls wait already.", "Send fewer at once.", retry_after=1)
        turn: asyncio.Future[Timeout] = asyncio.get_running_loop().create_future()
        caller.waiting.append(turn)
        self._waiting[caller] = None
        try:
            if cancelled is not None:
                await _wait_for_either(turn, cancelled)
            return await turn
        except (asyncio.CancelledError, Abandoned):
            if turn.done() and not turn.cancelled():
                self.release(caller, turn.result())  # Its turn had come just then.
            elif turn in caller.waiting:
                caller.waiting.remove(turn)
            raise

    def release(self, caller: _Caller, turn: Timeout) -> None:
        """End a turn of `caller`."""
        turn.cancel()
        caller.running -= 1
        caller.last_active = time.monotonic()
        self._end_start(caller, turn)

    def _begin(self, caller: _Caller) -> Timeout:
        timer = self._start.begin(lambda: self._end_start(caller, timer))
        if not caller.has_begun:
            caller.has_begun = True
            asyncio.get_running_loop().call_soon(self._end_loop_turn, caller)
        caller.running += 1
        caller.starting.add(timer)
        caller.began = time.monotonic()
        self._starting.add(caller)
        return timer

    def _end_start(self, caller: _Caller, turn: Timeout) -> None:
        """Count `turn` as starting no more: it is over or has run for a moment."""
        caller.starting.discard(turn)
        if not caller.starting:
            self._starting.discard(caller)
        self._start_others()

    def _end_loop_turn(self, caller: _Caller) -> None:
        """Let `caller` begin again, because the loop has checked for newcomers."""
        caller.has_begun = False
        self._start_others()

    def _start_others(self) -> None:
        for caller in list(self._waiting):
            while caller.waiting and self._may_start(caller):
                turn = caller.waiting.popleft()
                if not turn.done():
                    turn.set_result(self._begin(caller))
            if not caller.waiting:
                del self._waiting[caller]

    def _may_start(self, caller: _Caller) -> bool:
        if caller.running >= self._parallel:
            return False
        if self._is_alone(caller):
            return True
        if caller.starting or caller.has_begun:
            return False
        # A caller with few calls comes first, but not for long, because those with few may be many.
        if time.monotonic() - caller.began > _START_SECONDS:
            return True
        return not any(caller.has_far_more_than(other) for other in self._starting if other is not caller)

    def _is_alone(self, caller: _Caller) -> bool:
        """Tell whether no other caller was active recently; forget inactive ones."""
        long_ago = time.monotonic() - _RECENT_SECONDS
        for name, other in list(self._callers.items()):
            if other.running or other.waiting or other.last_active > long_ago:
                if other is not caller:
                    return False
            else:
                del self._callers[name]
        return True


async def _wait_for_either(turn: asyncio.Future[Timeout], cancelled: Cancellation) -> None:
    """Wait until `turn` has come or `cancelled` returns.

    Raises:
        Abandoned: `cancelled` returned first.
    """
    cancellation = asyncio.ensure_future(cancelled())
    try:
        await asyncio.wait((turn, cancellation), return_when=asyncio.FIRST_COMPLETED)
        if not turn.done():
            raise Abandoned
    finally:
        cancellation.cancel()
