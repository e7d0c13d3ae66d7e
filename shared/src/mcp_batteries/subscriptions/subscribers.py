"""Decides who hears of which change. Sources watch only what somebody subscribed to. This module knows events, not
requests.

A `Subscriber` subscribes to topics. A topic is one thing that can change; the `Source` that watches it knows it by its
key, and watches it from the first subscription to the last. A change is announced at once. Then the topic rests for
`REST_SECONDS`, and all changes during the rest are announced as one at its end.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Hashable, Sequence
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent

from mcp_batteries.errors import Problem
from mcp_batteries.subscriptions.journal import Change, Journal, Seeing, Telling
from mcp_batteries.subscriptions.topics import Follower, PerCaller, Source, Subscriber, Topic, Watched

__all__ = ["REST_SECONDS", "Subscribers"]

logger = logging.getLogger(__name__)

REST_SECONDS = 0.05
"""Between two notices of one topic, so that a burst is a handful of notices."""

_LIST = ResourcesListChanged()


class Subscribers:
    """All topics of a server, and the tasks that serve them while `running` is entered."""

    def __init__(self, sources: Sequence[Source], missing: Callable[[str], Problem | None]) -> None:
        self._sources = [Watched(source) for source in sources]
        self._missing = missing
        self._topics: dict[tuple[Watched | None, Hashable], Topic] = {}
        self._subscribers: dict[Subscriber, None] = {}
        self._resting: deque[tuple[float, Topic]] = deque()
        self._rest_wake = anyio.Event()
        self._turn = anyio.Lock()
        self._tasks: TaskGroup | None = None
        self._blocks = 0
        self.journal = Journal()

    def subscribe(self, subscriber: Subscriber, uri: str) -> Topic:
        """Let `subscriber` hear that `uri` was updated.

        Raises:
            Problem: It may not be watched, or no source has it and no resource can.
        """
        if uri not in subscriber.uris:
            watched, key = self._place(uri, followed=isinstance(subscriber, Follower))
            if watched is None and (problem := self._missing(uri)) is not None:
                raise problem
            subscriber.uris[uri] = self._add(subscriber, watched, key, ResourceUpdated(uri))
        return subscriber.uris[uri]

    def follow(self, subscriber: Subscriber, event: ServerEvent) -> list[Topic]:
        """Let `subscriber` hear `event` whenever it is announced, and keep watching what may cause it."""
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
        left = tuple(other for other in topic.audience[subscriber] if other != event)
        topic.audience[subscriber] = left
        is_listed = topic.watched is not None and topic.key in topic.watched.source.list_keys
        if not left and not is_listed:
            self._remove(subscriber, topic)

    def unsubscribe_all(self, subscriber: Subscriber) -> None:
        for topic in list(subscriber.topics):
            self._remove(subscriber, topic)
        subscriber.uris.clear()

    def attend(self, subscriber: Subscriber) -> None:
        """Pump `subscriber` in the background until `dismiss`."""
        self._subscribers[subscriber] = None
        if self._tasks is not None:
            self._tasks.start_soon(self._pump, subscriber)

    def dismiss(self, subscriber: Subscriber) -> None:
        self._subscribers.pop(subscriber, None)
        subscriber.stop()
        self.unsubscribe_all(subscriber)

    def announce(self, event: ServerEvent) -> None:
        """Announce `event` with the spelling of its URI that each subscriber used."""
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
        """The number of topics with subscribers."""
        return len(self._topics)

    def announce_everything(self) -> None:
        """Notify every subscriber of every topic, because any may have changed unnoticed."""
        for topic in list(self._topics.values()):
            self._changed(topic)

    async def look(self, subscriber: Subscriber) -> None:
        """Let every source that can check immediately do so for the subscriptions of `subscriber`."""
        keys: dict[Watched, list[Hashable]] = {}
        for topic in subscriber.topics:
            if topic.watched is not None:
                keys.setdefault(topic.watched, []).append(topic.key)
        for watched, asked in keys.items():
            if isinstance(watched.source, Telling):
                await watched.source.look(asked)

    def absent(self, subscriber: Subscriber, uris: Sequence[str]) -> dict[str, str]:
        """Those of `uris` at which their sources saw nothing, each with the reason."""
        found: dict[str, str] = {}
        for uri in dict.fromkeys(uris):
            topic = subscriber.uris[uri]
            source = topic.watched and topic.watched.source
            if isinstance(source, Seeing) and (why := source.absent(topic.key)) is not None:
                found[uri] = why
        return found

    def hurry(self) -> None:
        """Announce now what waits for the end of a rest."""
        for _, topic in self._resting:
            if topic.changed_again:
                topic.changed_again = False
                topic.tell()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Watch and notify for as long as the block lasts; of several blocks one does it, then the next takes over."""
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
            topic = Topic(watched, key)
            self._topics[watched, key] = topic
            if watched is not None:
                watched.touch(key)
        events = topic.audience.setdefault(subscriber, ())
        subscriber.topics[topic] = None
        if event is not None and event not in events:
            topic.audience[subscriber] = (*events, event)
        return topic

    def _remove(self, subscriber: Subscriber, topic: Topic) -> None:
        subscriber.topics.pop(topic, None)
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
            # One source that fails is not a reason to stop serving what the others watch.
            logger.exception("A source of changes failed; what it watched is not announced any more.")

    async def _settle(self, watched: Watched) -> None:
        """Keep the source watching what is subscribed to, in batches, whatever came and went in the meantime."""
        while True:
            await watched.wake.wait()
            watched.wake = anyio.Event()
            dirty = watched.dirty
            watched.dirty = {}
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
