"""A subscriber, the topics it hears of, and the source that watches each of them.

Each subscriber has its own sending task and holds each notice at most once: a stalled subscriber delays nobody, and
needs no more memory than its subscriptions.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection, Hashable
from typing import Protocol, runtime_checkable

import anyio
from mcp.shared.subscriptions import ResourceUpdated, ServerEvent

from mcp_batteries.errors import Problem, Unavailable, quote

__all__ = ["Follower", "PerCaller", "Source", "Subscriber", "Topic", "Watched"]


class Source(Protocol):
    """Something that notices changes, as a server's `changes.py` makes it.

    `add` and `discard` are called one at a time, and a key is not added twice without a `discard` in between.
    """

    @property
    def list_keys(self) -> Collection[Hashable]:
        """Keys whose change changes the answer to `resources/list`."""
        ...

    def key(self, uri: str) -> Hashable | None:
        """Return the one key for all spellings of `uri`; None if another source has it.

        Raises:
            Problem: It may not be watched.
        """
        ...

    async def add(self, keys: Collection[Hashable]) -> None:
        """Watch `keys`; return once no later change can go unnoticed.

        Raises:
            Problem: one of them can't be watched; then none of them is, and each may be added for itself.
        """
        ...

    def discard(self, keys: Collection[Hashable]) -> None:
        """Stop watching `keys`."""
        ...

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        """Call `changed` with the keys that changed, on the event loop, until cancelled; then nothing is watched."""
        ...


@runtime_checkable
class PerCaller(Protocol):
    """A source for which one URI may mean different things to different callers: `key` is for the current call."""

    def keys_of(self, uri: str) -> Collection[Hashable]:
        """Return all keys under which `uri` is watched."""
        ...


class Subscriber:
    """A receiver of notices: a legacy connection, or a stream of the modern era.

    Args:
        send: sends one notice; returns when the transport has taken it.
        echo: seconds after which an update is sent again, unless another came in the meantime; 0 for never.
    """

    def __init__(self, send: Callable[[ServerEvent], Awaitable[None]], *, echo: float = 0.0) -> None:
        self.topics: dict[Topic, None] = {}
        self.uris: dict[str, Topic] = {}
        self._send = send
        self._echo = echo
        self._pending: dict[ServerEvent, None] = {}
        # When to send each update again, soonest first.
        self._echoes: dict[ServerEvent, float] = {}
        self._wake = anyio.Event()
        self._ending = False
        self._scope = anyio.CancelScope()

    def push(self, event: ServerEvent) -> None:
        self._pending[event] = None
        if self._echo and isinstance(event, ResourceUpdated):
            self._echoes.pop(event, None)
            self._echoes[event] = anyio.current_time() + self._echo
        self._wake.set()

    def resync(self) -> None:
        """Send notices for all subscriptions, because some may have reached nobody."""
        for topic in self.topics:
            for event in topic.audience[self]:
                self.push(event)

    def forget(self, event: ServerEvent) -> None:
        self._pending.pop(event, None)
        self._echoes.pop(event, None)

    def end(self) -> None:
        """Let `pump` return once everything is sent."""
        self._ending = True
        self._wake.set()

    def stop(self) -> None:
        """End `pump` now, even in the middle of sending."""
        self._pending.clear()
        self._echoes.clear()
        self.end()
        self._scope.cancel()

    async def pump(self) -> None:
        """Send pushed notices until ended."""
        with anyio.CancelScope() as self._scope:
            while True:
                while self._pending:
                    event = next(iter(self._pending))
                    del self._pending[event]
                    await self._send(event)
                if self._ending:
                    return
                self._wake = anyio.Event()
                with anyio.move_on_after(self._until_echo()):
                    await self._wake.wait()
                self._repeat_due()

    def _repeat_due(self) -> None:
        """Push again the updates whose echo is due."""
        while self._echoes and self._until_echo() <= 0:
            event = next(iter(self._echoes))
            del self._echoes[event]
            self._pending[event] = None

    def _until_echo(self) -> float:
        """Return the seconds until the next update is sent again."""
        return next(iter(self._echoes.values()), math.inf) - anyio.current_time()


class Follower(Subscriber):
    """A client that asks for changes now and then instead of getting notices; it is dropped if it stops asking.

    Args:
        owner: its caller; nobody else may ask.
        let_go: called after `IDLE_SECONDS` without a question.
    """

    IDLE_SECONDS = 3600.0

    def __init__(self, owner: str, let_go: Callable[[Follower], None]) -> None:
        super().__init__(_send_nothing)
        self.owner = owner
        self._on_idle = let_go
        self.restart_idle_time()

    def restart_idle_time(self) -> None:
        """Restart its idle time."""
        self._until = anyio.current_time() + self.IDLE_SECONDS
        self._wake.set()

    def push(self, event: ServerEvent) -> None:
        pass

    async def pump(self) -> None:
        with anyio.CancelScope() as self._scope:
            while self._until > anyio.current_time():
                self._wake = anyio.Event()
                with anyio.CancelScope(deadline=self._until):
                    await self._wake.wait()
            self._on_idle(self)


async def _send_nothing(_: ServerEvent) -> None:
    pass


class Topic:
    """One thing that can change, and its subscribers with their notices."""

    __slots__ = ("audience", "changed_again", "failure", "key", "resting", "unsettled", "watched")

    def __init__(self, watched: Watched | None, key: Hashable) -> None:
        self.watched = watched
        self.key = key
        self.audience: dict[Subscriber, tuple[ServerEvent, ...]] = {}
        self.unsettled = None if watched is None else anyio.Event()
        self.failure: Exception | None = None
        self.resting = False
        self.changed_again = False

    def settle(self, failure: Exception | None = None) -> None:
        self.failure = failure
        if self.unsettled is not None:
            self.unsettled.set()
            self.unsettled = None

    def raise_failure(self, uri: str) -> None:
        """Raise Unavailable if it can't be watched, with what the source says of it."""
        if self.failure is None:
            return
        reason = "."
        fix = ""
        if isinstance(self.failure, Problem):
            reason = f": {self.failure.failure}"
            fix = self.failure.fix
        raise Unavailable(f"{quote(uri)} cannot be watched now{reason}", fix or "Read it again when you need it.")

    async def wait_settled(self) -> None:
        """Return once it is watched, watching has failed (`failure`), or it is not needed any more."""
        if self.unsettled is not None:
            await self.unsettled.wait()

    @property
    def is_followed(self) -> bool:
        return any(isinstance(subscriber, Follower) for subscriber in self.audience)

    def notify(self) -> None:
        for subscriber, events in self.audience.items():
            for event in events:
                subscriber.push(event)


class Watched:
    """A source, the keys it watches, and the keys that it may have to add or drop."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.keys: set[Hashable] = set()
        self.dirty: dict[Hashable, None] = {}
        self.wake = anyio.Event()

    def touch(self, key: Hashable) -> None:
        self.dirty[key] = None
        self.wake.set()
