"""Who hears of which change. Sources watch only what somebody subscribed to. This module knows events, not requests.

A `Subscriber` subscribes to topics. A topic is one thing that can change; the `Source` that watches it knows it by its
key, and watches it from the first subscription to the last. A change is announced at once. Then the topic rests for
`REST_SECONDS`, and all changes during the rest are announced as one at its end.

Each subscriber has a sending task of its own and holds each notice at most once: a subscriber that stalls delays
nobody, and needs no more memory than its subscriptions.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Hashable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol, runtime_checkable

import anyio
from anyio.abc import TaskGroup
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent

from mcp_batteries.errors import Problem
from mcp_batteries.subscriptions.journal import Change, Journal, Telling

__all__ = ["REST_SECONDS", "Follower", "Source", "Subscriber", "Subscribers", "Topic"]

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


@runtime_checkable
class PerCaller(Protocol):
    """A source to which one URI may mean another thing for each caller: its `key` is that of the call under way."""

    def keys_of(self, uri: str) -> Collection[Hashable]:
        """All keys under which `uri` is watched."""
        ...


class Subscriber:
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

    def look_again(self) -> None:
        """Tell of everything that is subscribed to, for what may have been told to nobody."""
        for topic in self.topics:
            for event in topic.audience[self]:
                self.push(event)

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


class Follower(Subscriber):
    """Who asks now and then what changed, instead of being told; it is let go when it has not asked for a while.

    Args:
        owner: whose it is; nobody else may ask.
        let_go: called when it has not asked for `IDLE_SECONDS`.
    """

    IDLE_SECONDS = 3600.0

    def __init__(self, owner: str, let_go: Callable[[Follower], None]) -> None:
        super().__init__(_tell_nobody)
        self.owner, self._let_go = owner, let_go
        self.asked()

    def asked(self) -> None:
        """Start the time anew after which it is let go."""
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
            self._let_go(self)


async def _tell_nobody(_: ServerEvent) -> None:
    pass


class Topic:
    """One thing that can change, and who wants to hear which notices when it does."""

    __slots__ = ("audience", "changed_again", "failed", "key", "resting", "unsettled", "watched")

    def __init__(self, watched: Watched | None, key: Hashable) -> None:
        self.watched, self.key = watched, key
        self.audience: dict[Subscriber, tuple[ServerEvent, ...]] = {}
        self.unsettled = None if watched is None else anyio.Event()
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

    @property
    def is_followed(self) -> bool:
        return any(isinstance(subscriber, Follower) for subscriber in self.audience)

    def tell(self) -> None:
        for subscriber, events in self.audience.items():
            for event in events:
                subscriber.push(event)


class Watched:
    """A source, the keys it watches, and the keys for which that may have to change."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.keys: set[Hashable] = set()
        self.dirty: dict[Hashable, None] = {}
        self.wake = anyio.Event()

    def touch(self, key: Hashable) -> None:
        self.dirty[key] = None
        self.wake.set()


class Subscribers:
    """All topics of a server, and the tasks that serve them while `running` is entered."""

    def __init__(self, sources: Sequence[Source], missing: Callable[[str], Problem | None]) -> None:
        self._sources = [Watched(source) for source in sources]
        self._missing = missing
        self._topics: dict[tuple[Watched | None, Hashable], Topic] = {}
        self._subscribers: set[Subscriber] = set()
        self._resting: deque[tuple[float, Topic]] = deque()
        self._rest_wake = anyio.Event()
        self._turn = anyio.Lock()
        self._tasks: TaskGroup | None = None
        self._blocks = 0
        self.journal = Journal()

    def subscribe(self, subscriber: Subscriber, uri: str) -> Topic:
        """Let `subscriber` hear that `uri` was updated.

        Raises:
            Problem: It may not be watched, or nobody's URI can't be a resource's.
        """
        if uri not in subscriber.uris:
            watched, key = self._place(uri, followed=isinstance(subscriber, Follower))
            if watched is None and (problem := self._missing(uri)) is not None:
                raise problem
            subscriber.uris[uri] = self._add(subscriber, watched, key, ResourceUpdated(uri))
        return subscriber.uris[uri]

    def follow(self, subscriber: Subscriber, event: ServerEvent) -> list[Topic]:
        """Let `subscriber` hear `event` whenever it is announced, and keep watched what may cause it."""
        topics = [self._add(subscriber, None, event, event)]
        if event == _LIST:
            for watched in self._sources:
                topics += [self._add(subscriber, watched, key, None) for key in watched.source.list_keys]
        return topics

    def unsubscribe(self, subscriber: Subscriber, uri: str) -> None:
        topic = subscriber.uris.pop(uri, None)
        if topic is None:
            return
        event = ResourceUpdated(uri)
        subscriber.forget(event)
        left = topic.audience[subscriber] = tuple(other for other in topic.audience[subscriber] if other != event)
        is_listed = topic.watched is not None and topic.key in topic.watched.source.list_keys
        if not left and not is_listed:
            self._remove(subscriber, topic)

    def unsubscribe_all(self, subscriber: Subscriber) -> None:
        for topic in list(subscriber.topics):
            self._remove(subscriber, topic)
        subscriber.uris.clear()

    def attend(self, subscriber: Subscriber) -> None:
        """Pump `subscriber` in the background until `dismiss`."""
        self._subscribers.add(subscriber)
        if self._tasks is not None:
            self._tasks.start_soon(self._pump, subscriber)

    def dismiss(self, subscriber: Subscriber) -> None:
        self._subscribers.discard(subscriber)
        subscriber.stop()
        self.unsubscribe_all(subscriber)

    def announce(self, event: ServerEvent) -> None:
        """Tell of `event` under whatever spelling of its URI it was asked for."""
        places: list[tuple[Watched | None, Hashable]] = [(None, event)]
        if isinstance(event, ResourceUpdated):
            try:
                place = self._place(event.uri)
            except Problem:
                return
            places = [place]
            if place[0] is not None and isinstance(place[0].source, PerCaller):
                places = [(place[0], key) for key in place[0].source.keys_of(event.uri)]
        for place in places:
            self._changed(self._topics.get(place))

    def __len__(self) -> int:
        """Topics that somebody subscribed to."""
        return len(self._topics)

    def announce_everything(self) -> None:
        """Tell every subscriber of every topic: any of them may have changed unseen."""
        for topic in list(self._topics.values()):
            self._changed(topic)

    async def look(self, subscriber: Subscriber) -> None:
        """Have every source that can be asked look now at what `subscriber` has subscribed to."""
        keys: dict[Watched, list[Hashable]] = {}
        for topic in subscriber.topics:
            if topic.watched is not None:
                keys.setdefault(topic.watched, []).append(topic.key)
        for watched, asked in keys.items():
            if isinstance(watched.source, Telling):
                await watched.source.look(asked)

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

    def _place(self, uri: str, *, followed: bool = False) -> tuple[Watched | None, Hashable]:
        for watched in self._sources:
            source = watched.source
            key = source.followed(uri) if followed and isinstance(source, Telling) else source.key(uri)
            if key is not None:
                return watched, key
        return None, uri

    def _add(self, subscriber: Subscriber, watched: Watched | None, key: Hashable, event: ServerEvent | None) -> Topic:
        if not self._blocks:
            raise RuntimeError("`Hub.running` must be entered for as long as the server serves")
        topic = self._topics.get((watched, key))
        if topic is None:
            topic = self._topics[watched, key] = Topic(watched, key)
            if watched is not None:
                watched.touch(key)
        events = topic.audience.setdefault(subscriber, ())
        subscriber.topics.add(topic)
        if event is not None and event not in events:
            topic.audience[subscriber] = (*events, event)
        return topic

    def _remove(self, subscriber: Subscriber, topic: Topic) -> None:
        subscriber.topics.discard(topic)
        del topic.audience[subscriber]
        if not topic.audience:
            del self._topics[topic.watched, topic.key]
            topic.settle()
            self.journal.forget(topic)
            if topic.watched is not None:
                topic.watched.touch(topic.key)

    async def _run(self) -> None:
        async with self._turn:
            try:
                async with anyio.create_task_group() as tasks:
                    self._tasks = tasks
                    tasks.start_soon(self._wake_rested)
                    for subscriber in self._subscribers:
                        tasks.start_soon(self._pump, subscriber)
                    for watched in self._sources:
                        tasks.start_soon(self._watch, watched)
                        tasks.start_soon(self._settle, watched)
            finally:
                self._tasks = None
                for watched in self._sources:
                    watched.keys.clear()
                    watched.dirty.update(dict.fromkeys(key for at, key in self._topics if at is watched))
                    watched.wake.set()

    async def _pump(self, subscriber: Subscriber) -> None:
        try:
            await subscriber.pump()
        except Exception:
            # Its connection is the one that suffers, and learns of it by itself.
            logger.exception("A connection takes no notices any more.")

    async def _watch(self, watched: Watched) -> None:
        def changed(keys: Collection[Hashable]) -> None:
            for key in keys:
                self._changed(self._topics.get((watched, key)))
                if key in watched.source.list_keys:
                    self._changed(self._topics.get((None, _LIST)))

        try:
            await watched.source.run(changed)
        except Exception:
            # One source that fails is no reason to stop serving what the others watch.
            logger.exception("A source of changes failed; what it watched is not announced any more.")

    async def _settle(self, watched: Watched) -> None:
        """Keep the source watching what is subscribed to, in batches, whatever came and went meanwhile."""
        while True:
            await watched.wake.wait()
            watched.wake = anyio.Event()
            dirty, watched.dirty = watched.dirty, {}
            wanted = [key for key in dirty if (watched, key) in self._topics and key not in watched.keys]
            unwanted = [key for key in dirty if (watched, key) not in self._topics and key in watched.keys]
            failed = False
            if unwanted:
                watched.keys.difference_update(unwanted)
                watched.source.discard(unwanted)
            if wanted:
                try:
                    await watched.source.add(wanted)
                    watched.keys.update(wanted)
                except Exception:
                    logger.exception("A source of changes cannot watch %d of what was asked for.", len(wanted))
                    failed = True
                    watched.source.discard(wanted)
            for key in dirty:
                if (topic := self._topics.get((watched, key))) is not None:
                    topic.settle(failed=failed and key not in watched.keys)

    def _changed(self, topic: Topic | None) -> None:
        if topic is None:
            return
        source = None if topic.watched is None else topic.watched.source
        news = source.news(topic.key) if isinstance(source, Telling) else (Change(),)
        if topic.is_followed:
            for change in news:
                self.journal.note(topic, change)
        self._tell(topic)

    def _tell(self, topic: Topic) -> None:
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
                self._tell(topic)
