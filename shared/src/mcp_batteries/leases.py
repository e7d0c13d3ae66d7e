"""Who is told of what, and that only what somebody wants to know is watched. Knows events, but no requests.

A `Reader` leases topics. A topic is one thing that can change, known by its key to the `Source` that watches it;
the source watches from a topic's first lease to its last. A change is told at once, then the topic rests for
`REST_SECONDS`, and whatever happens meanwhile is told as one change at the end of the rest.

Each reader has a task of its own that sends, and holds a notice at most once: a reader that stalls delays nobody
and needs no more memory than its leases.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Hashable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import anyio
from anyio.abc import TaskGroup
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent

from mcp_batteries.errors import Problem

__all__ = ["REST_SECONDS", "Leases", "Reader", "Source", "Topic"]

logger = logging.getLogger(__name__)

REST_SECONDS = 0.05
"""Between two notices of one topic, so that a burst is a handful of notices."""

_LIST = ResourcesListChanged()


class Source(Protocol):
    """Something that notices changes, as a server's `changes.py` makes it.

    `add` and `discard` are called one at a time, and a key is not added twice without a `discard` in between.
    """

    @property
    def list_keys(self) -> Collection[Hashable]:
        """Keys whose change means that `resources/list` has another answer."""
        ...

    def key(self, uri: str) -> Hashable | None:
        """The one key for all spellings of `uri`; None if it is not this source's.

        Raises:
            Problem: It may not be watched.
        """
        ...

    async def add(self, keys: Collection[Hashable]) -> None:
        """Watch `keys`; return once no later change can go unnoticed."""
        ...

    def discard(self, keys: Collection[Hashable]) -> None:
        """Stop watching `keys`."""
        ...

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        """Call `changed` with the keys that changed, on the event loop, until cancelled; then nothing is watched."""
        ...


class Reader:
    """Who is told: a legacy connection, or a stream of the modern era.

    Args:
        send: sends one notice; returns when the transport has taken it.
        echo: seconds after which an update is told again, unless another came meanwhile; 0 for never.
    """

    def __init__(self, send: Callable[[ServerEvent], Awaitable[None]], *, echo: float = 0.0) -> None:
        self.topics: set[Topic] = set()
        self.uris: dict[str, Topic] = {}
        self._send, self._echo = send, echo
        self._pending: dict[ServerEvent, None] = {}
        self._echoes: dict[ServerEvent, float] = {}
        """When to tell again, soonest first."""
        self._wake = anyio.Event()
        self._ending = False
        self._scope = anyio.CancelScope()

    def push(self, event: ServerEvent) -> None:
        self._pending[event] = None
        if self._echo and isinstance(event, ResourceUpdated):
            self._echoes.pop(event, None)
            self._echoes[event] = anyio.current_time() + self._echo
        self._wake.set()

    def forget(self, event: ServerEvent) -> None:
        self._pending.pop(event, None)
        self._echoes.pop(event, None)

    def end(self) -> None:
        """Let `pump` return once everything is told."""
        self._ending = True
        self._wake.set()

    def stop(self) -> None:
        """End `pump` now, even in the middle of sending."""
        self._pending.clear()
        self._echoes.clear()
        self.end()
        self._scope.cancel()

    async def pump(self) -> None:
        """Send what is pushed, until ended."""
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
                while self._echoes and self._until_echo() <= 0:
                    event = next(iter(self._echoes))
                    del self._echoes[event]
                    self._pending[event] = None

    def _until_echo(self) -> float:
        return next(iter(self._echoes.values()), math.inf) - anyio.current_time()


class Topic:
    """One thing that can change, and who wants to hear which notices when it does."""

    __slots__ = ("audience", "changed_again", "failed", "key", "origin", "resting", "unsettled")

    def __init__(self, origin: Origin | None, key: Hashable) -> None:
        self.origin, self.key = origin, key
        self.audience: dict[Reader, tuple[ServerEvent, ...]] = {}
        self.unsettled = None if origin is None else anyio.Event()
        self.failed = False
        self.resting = False
        self.changed_again = False

    def settle(self, *, failed: bool = False) -> None:
        self.failed = failed
        if self.unsettled is not None:
            self.unsettled.set()
            self.unsettled = None

    async def settled(self) -> None:
        """Return once it is watched, has `failed` to be, or need not be any more."""
        if self.unsettled is not None:
            await self.unsettled.wait()

    def tell(self) -> None:
        for reader, events in self.audience.items():
            for event in events:
                reader.push(event)


class Origin:
    """A source, the keys it watches, and the keys for which that may have to change."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.watched: set[Hashable] = set()
        self.dirty: dict[Hashable, None] = {}
        self.wake = anyio.Event()

    def touch(self, key: Hashable) -> None:
        self.dirty[key] = None
        self.wake.set()


class Leases:
    """All topics of a server, and the tasks that serve them while `running` is entered."""

    def __init__(self, sources: Sequence[Source], missing: Callable[[str], Problem | None]) -> None:
        self._origins = [Origin(source) for source in sources]
        self._missing = missing
        self._topics: dict[tuple[Origin | None, Hashable], Topic] = {}
        self._readers: set[Reader] = set()
        self._resting: deque[tuple[float, Topic]] = deque()
        self._rest_wake = anyio.Event()
        self._turn = anyio.Lock()
        self._tasks: TaskGroup | None = None
        self._blocks = 0

    def lease_uri(self, reader: Reader, uri: str) -> Topic:
        """Let `reader` hear that `uri` was updated.

        Raises:
            Problem: It may not be watched, or nobody's URI can't be a resource's.
        """
        if uri not in reader.uris:
            origin, key = self._place(uri)
            if origin is None and (problem := self._missing(uri)) is not None:
                raise problem
            reader.uris[uri] = self._lease(reader, origin, key, ResourceUpdated(uri))
        return reader.uris[uri]

    def lease_event(self, reader: Reader, event: ServerEvent) -> list[Topic]:
        """Let `reader` hear `event` whenever it is announced, and keep watched what may cause it."""
        topics = [self._lease(reader, None, event, event)]
        if event == _LIST:
            for origin in self._origins:
                topics += [self._lease(reader, origin, key, None) for key in origin.source.list_keys]
        return topics

    def release_uri(self, reader: Reader, uri: str) -> None:
        topic = reader.uris.pop(uri, None)
        if topic is None:
            return
        event = ResourceUpdated(uri)
        reader.forget(event)
        left = topic.audience[reader] = tuple(other for other in topic.audience[reader] if other != event)
        is_listed = topic.origin is not None and topic.key in topic.origin.source.list_keys
        if not left and not is_listed:
            self._release(reader, topic)

    def release_all(self, reader: Reader) -> None:
        for topic in list(reader.topics):
            self._release(reader, topic)
        reader.uris.clear()

    def attend(self, reader: Reader) -> None:
        """Pump `reader` in the background until `dismiss`."""
        self._readers.add(reader)
        if self._tasks is not None:
            self._tasks.start_soon(self._pump, reader)

    def dismiss(self, reader: Reader) -> None:
        self._readers.discard(reader)
        reader.stop()
        self.release_all(reader)

    def announce(self, event: ServerEvent) -> None:
        """Tell of `event` under whatever spelling of its URI it was asked for."""
        place: tuple[Origin | None, Hashable] = (None, event)
        if isinstance(event, ResourceUpdated):
            try:
                place = self._place(event.uri)
            except Problem:
                return
        self._changed(self._topics.get(place))

    def __len__(self) -> int:
        """The topics that are leased."""
        return len(self._topics)

    def announce_everything(self) -> None:
        """Tell every reader of every topic: any of them may have changed unseen."""
        for topic in list(self._topics.values()):
            self._changed(topic)

    def hurry(self) -> None:
        """Tell now what waits for the end of a rest."""
        for _, topic in self._resting:
            if topic.changed_again:
                topic.changed_again = False
                topic.tell()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Watch and tell for as long as the block lasts; of several blocks one does it, then the next takes over."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._run)
            self._blocks += 1
            try:
                yield
            finally:
                self._blocks -= 1
                tasks.cancel_scope.cancel()

    def _place(self, uri: str) -> tuple[Origin | None, Hashable]:
        for origin in self._origins:
            if (key := origin.source.key(uri)) is not None:
                return origin, key
        return None, uri

    def _lease(self, reader: Reader, origin: Origin | None, key: Hashable, event: ServerEvent | None) -> Topic:
        if not self._blocks:
            raise RuntimeError("`Changes.running` must be entered for as long as the server serves")
        topic = self._topics.get((origin, key))
        if topic is None:
            topic = self._topics[origin, key] = Topic(origin, key)
            if origin is not None:
                origin.touch(key)
        events = topic.audience.setdefault(reader, ())
        reader.topics.add(topic)
        if event is not None and event not in events:
            topic.audience[reader] = (*events, event)
        return topic

    def _release(self, reader: Reader, topic: Topic) -> None:
        reader.topics.discard(topic)
        del topic.audience[reader]
        if not topic.audience:
            del self._topics[topic.origin, topic.key]
            topic.settle()
            if topic.origin is not None:
                topic.origin.touch(topic.key)

    async def _run(self) -> None:
        async with self._turn:
            try:
                async with anyio.create_task_group() as tasks:
                    self._tasks = tasks
                    tasks.start_soon(self._wake_rested)
                    for reader in self._readers:
                        tasks.start_soon(self._pump, reader)
                    for origin in self._origins:
                        tasks.start_soon(self._watch, origin)
                        tasks.start_soon(self._settle, origin)
            finally:
                self._tasks = None
                for origin in self._origins:
                    origin.watched.clear()
                    origin.dirty.update(dict.fromkeys(key for at, key in self._topics if at is origin))
                    origin.wake.set()

    async def _pump(self, reader: Reader) -> None:
        try:
            await reader.pump()
        except Exception:
            # Its connection is the one that suffers, and learns of it by itself.
            logger.exception("A connection takes no notices any more.")

    async def _watch(self, origin: Origin) -> None:
        def changed(keys: Collection[Hashable]) -> None:
            for key in keys:
                self._changed(self._topics.get((origin, key)))
                if key in origin.source.list_keys:
                    self._changed(self._topics.get((None, _LIST)))

        try:
            await origin.source.run(changed)
        except Exception:
            # One source that fails is no reason to stop serving what the others watch.
            logger.exception("A source of changes failed; what it watched is not announced any more.")

    async def _settle(self, origin: Origin) -> None:
        """Keep the source watching what is leased, in batches, whatever came and went meanwhile."""
        while True:
            await origin.wake.wait()
            origin.wake = anyio.Event()
            dirty, origin.dirty = origin.dirty, {}
            leased = [key for key in dirty if (origin, key) in self._topics and key not in origin.watched]
            unleased = [key for key in dirty if (origin, key) not in self._topics and key in origin.watched]
            failed = False
            if unleased:
                origin.watched.difference_update(unleased)
                origin.source.discard(unleased)
            if leased:
                try:
                    await origin.source.add(leased)
                    origin.watched.update(leased)
                except Exception:
                    logger.exception("A source of changes cannot watch %d of what was asked for.", len(leased))
                    failed = True
                    origin.source.discard(leased)
            for key in dirty:
                if (topic := self._topics.get((origin, key))) is not None:
                    topic.settle(failed=failed and key not in origin.watched)

    def _changed(self, topic: Topic | None) -> None:
        if topic is None:
            return
        if topic.resting:
            topic.changed_again = True
            return
        topic.tell()
        topic.resting = True
        self._resting.append((anyio.current_time() + REST_SECONDS, topic))
        self._rest_wake.set()

    async def _wake_rested(self) -> None:
        while True:
            while not self._resting:
                self._rest_wake = anyio.Event()
                await self._rest_wake.wait()
            await anyio.sleep_until(self._resting[0][0])
            _, topic = self._resting.popleft()
            topic.resting = False
            if topic.changed_again:
                topic.changed_again = False
                self._changed(topic)
