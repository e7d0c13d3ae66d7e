"""Decides which subscriber hears of which change. Sources watch only what somebody subscribed to.

This module knows events, not requests.

A `Subscriber` subscribes to topics. A topic is one thing that can change; the `Source` that watches it knows it by its
key, and watches it from the first subscription to the last. A change is announced at once. Then the topic rests for
`REST_SECONDS`, and all changes during the rest are announced as one at its end.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import anyio
from anyio.abc import TaskGroup
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent

from mcp_batteries.errors import Problem
from mcp_batteries.subscriptions.journal import (
    Change,
    DetailedSource,
    ExistenceSource,
    Journal,
    OmissionSource,
)
from mcp_batteries.subscriptions.topics import Follower, PerCaller, Source, Subscriber, Topic, Watched

__all__ = ["REST_SECONDS", "Subscribers"]

logger = logging.getLogger(__name__)

# The interval between two notices of one topic, so that a burst is a handful of notices.
REST_SECONDS = 0.05

_LIST = ResourcesListChanged()


class _Address(NamedTuple):
    """Identifies a topic: its key at the source that watches it.

    Attributes:
        watched: None for an event, and for a URI that no source has.
    """

    watched: Watched | None
    key: Hashable


class Subscribers:
    """All topics of a server, and the tasks that serve them while `running` is entered."""

    def __init__(self, sources: Sequence[Source], missing: Callable[[str], Problem | None]) -> None:
        self._sources = [Watched(source) for source in sources]
        self._missing = missing
        self._topics: dict[_Address, Topic] = {}
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
            address = self._locate(uri, followed=isinstance(subscriber, Follower))
            if address.watched is None:
                problem = self._missing(uri)
                if problem is not None:
                    raise problem
            subscriber.uris[uri] = self._add(subscriber, address, ResourceUpdated(uri))
        return subscriber.uris[uri]

    def follow(self, subscriber: Subscriber, event: ServerEvent) -> list[Topic]:
        """Let `subscriber` hear `event` whenever it is announced, and keep watching what may cause it."""
        topics = [self._add(subscriber, _Address(None, event), event)]
        if event == _LIST:
            for watched in self._sources:
                topics += [self._add(subscriber, _Address(watched, key), None) for key in watched.source.list_keys]
        return topics

    def unsubscribe(self, subscriber: Subscriber, uri: str) -> None:
        topic = subscriber.uris.pop(uri, None)
        if topic is None:
            return
        event = ResourceUpdated(uri)
        subscriber.forget(event)
        events = tuple(other for other in topic.audience[subscriber] if other != event)
        topic.audience[subscriber] = events
        is_listed = topic.watched is not None and topic.key in topic.watched.source.list_keys
        if not events and not is_listed:
            self._remove(subscriber, topic)

    def unsubscribe_all(self, subscriber: Subscriber) -> None:
        for topic in list(subscriber.topics):
            self._remove(subscriber, topic)
        subscriber.uris.clear()

    def start(self, subscriber: Subscriber) -> None:
        """Pump `subscriber` in the background until `stop`."""
        self._subscribers[subscriber] = None
        if self._tasks is not None:
            self._tasks.start_soon(self._pump, subscriber)

    def stop(self, subscriber: Subscriber) -> None:
        self._subscribers.pop(subscriber, None)
        subscriber.stop()
        self.unsubscribe_all(subscriber)

    def announce(self, event: ServerEvent) -> None:
        """Announce `event` with the spelling of its URI that each subscriber used."""
        addresses = [_Address(None, event)]
        if isinstance(event, ResourceUpdated):
            try:
                addresses = self._addresses_of(event.uri)
            except Problem:
                return
        for address in addresses:
            self._handle_change(self._topics.get(address))

    def _addresses_of(self, uri: str) -> list[_Address]:
        """Return all topics' addresses for `uri`, which may mean different things to different callers."""
        address = self._locate(uri)
        watched = address.watched
        if watched is not None and isinstance(watched.source, PerCaller):
            return [_Address(watched, key) for key in watched.source.keys_of(uri)]
        return [address]

    def __len__(self) -> int:
        """The number of topics with subscribers."""
        return len(self._topics)

    def announce_everything(self) -> None:
        """Notify every subscriber of every topic, because any may have changed unnoticed."""
        for topic in list(self._topics.values()):
            self._handle_change(topic)

    async def poll(self, subscriber: Subscriber) -> None:
        """Let every source that can check immediately do so for the subscriptions of `subscriber`."""
        keys: dict[Watched, list[Hashable]] = {}
        for topic in subscriber.topics:
            if topic.watched is not None:
                keys.setdefault(topic.watched, []).append(topic.key)
        for watched, source_keys in keys.items():
            if isinstance(watched.source, DetailedSource):
                await watched.source.poll(source_keys)

    def find_absent(self, subscriber: Subscriber, uris: Sequence[str]) -> dict[str, str]:
        """Return those of `uris` at which their sources saw nothing, each with the reason."""
        reasons: dict[str, str] = {}
        for uri in dict.fromkeys(uris):
            topic = subscriber.uris[uri]
            if topic.watched is None or not isinstance(topic.watched.source, ExistenceSource):
                continue
            reason = topic.watched.source.explain_absence(topic.key)
            if reason is not None:
                reasons[uri] = reason
        return reasons

    def find_omitted(self, subscriber: Subscriber) -> list[str]:
        """Return what the sources leave out of what `subscriber` follows, each thing once."""
        omissions: dict[str, None] = {}
        for topic in subscriber.topics:
            if topic.watched is not None and isinstance(topic.watched.source, OmissionSource):
                omission = topic.watched.source.describe_omission(topic.key)
                if omission is not None:
                    omissions[omission] = None
        return list(omissions)

    def flush(self) -> None:
        """Announce now what waits for the end of a rest."""
        for _, topic in self._resting:
            if topic.changed_again:
                topic.changed_again = False
                topic.notify()

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

    def _locate(self, uri: str, *, followed: bool = False) -> _Address:
        """Return the source that has `uri`, and its key there."""
        for watched in self._sources:
            source = watched.source
            if followed and isinstance(source, DetailedSource):
                key = source.followed_key(uri)
            else:
                key = source.key(uri)
            if key is not None:
                return _Address(watched, key)
        return _Address(None, uri)

    def _add(self, subscriber: Subscriber, address: _Address, event: ServerEvent | None) -> Topic:
        """Let `subscriber` hear `event` when the topic at `address` changes."""
        if not self._blocks:
            raise RuntimeError("`Hub.running` must be entered for as long as the server serves")
        topic = self._topics.get(address)
        if topic is None:
            topic = Topic(address.watched, address.key)
            self._topics[address] = topic
            if address.watched is not None:
                address.watched.touch(address.key)
        events = topic.audience.setdefault(subscriber, ())
        subscriber.topics[topic] = None
        if event is not None and event not in events:
            topic.audience[subscriber] = (*events, event)
        return topic

    def _remove(self, subscriber: Subscriber, topic: Topic) -> None:
        subscriber.topics.pop(topic, None)
        del topic.audience[subscriber]
        if not topic.audience:
            del self._topics[_Address(topic.watched, topic.key)]
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
                    for address in self._topics:
                        if address.watched is watched:
                            watched.dirty[address.key] = None
                    watched.wake.set()

    async def _pump(self, subscriber: Subscriber) -> None:
        try:
            await subscriber.pump()
        except Exception:
            # Its connection is the one that suffers, and learns of it by itself.
            logger.exception("A connection takes no notices any more.")

    async def _watch(self, watched: Watched) -> None:
        """Run a source of changes, and announce what it notices."""

        def changed(keys: Collection[Hashable]) -> None:
            for key in keys:
                self._handle_change(self._topics.get(_Address(watched, key)))
                if key in watched.source.list_keys:
                    self._handle_change(self._topics.get(_Address(None, _LIST)))

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
            new: list[Hashable] = []
            unneeded: list[Hashable] = []
            for key in dirty:
                is_needed = _Address(watched, key) in self._topics
                if is_needed and key not in watched.keys:
                    new.append(key)
                elif not is_needed and key in watched.keys:
                    unneeded.append(key)
            if unneeded:
                watched.keys.difference_update(unneeded)
                watched.source.discard(unneeded)
            failures: Mapping[Hashable, Exception] = {}
            if new:
                failures = await self._start_to_watch(watched, new)
            for key in dirty:
                topic = self._topics.get(_Address(watched, key))
                if topic is not None:
                    topic.settle(failures.get(key))

    async def _start_to_watch(self, watched: Watched, keys: Sequence[Hashable]) -> Mapping[Hashable, Exception]:
        """Let the source watch `keys` too; return those that it can't watch, with the reason."""
        try:
            await watched.source.add(keys)
        except Problem as failure:
            if len(keys) > 1:
                return await self._start_to_watch_each(watched, keys)
            watched.source.discard(keys)
            logger.info("Not watched: %s", failure)
            return {keys[0]: failure}
        except Exception as failure:
            # A defect of the source, which need not be met with each of them.
            watched.source.discard(keys)
            logger.exception("A source of changes cannot watch %d of what was asked for.", len(keys))
            return dict.fromkeys(keys, failure)
        watched.keys.update(keys)
        return {}

    async def _start_to_watch_each(self, watched: Watched, keys: Sequence[Hashable]) -> Mapping[Hashable, Exception]:
        """Let the source watch each of `keys` for itself, where one of them can't be watched."""
        failures: dict[Hashable, Exception] = {}
        for key in keys:
            failures.update(await self._start_to_watch(watched, [key]))
        return failures

    def _handle_change(self, topic: Topic | None) -> None:
        """Note what has changed, and announce it."""
        if topic is None:
            return
        changes: Iterable[Change] = (Change(),)
        if topic.watched is not None and isinstance(topic.watched.source, DetailedSource):
            changes = topic.watched.source.take_changes(topic.key)
        if topic.is_followed:
            for change in changes:
                self.journal.add(topic, change)
        self._notify(topic)

    def _notify(self, topic: Topic) -> None:
        """Announce that `topic` has changed, now or at the end of its rest."""
        if topic.resting:
            topic.changed_again = True
            return
        topic.notify()
        topic.resting = True
        self._resting.append((anyio.current_time() + REST_SECONDS, topic))
        self._rest_wake.set()

    async def _wake_rested(self) -> None:
        """End the rests of topics, and announce those that changed again."""
        while True:
            while not self._resting:
                self._rest_wake = anyio.Event()
                await self._rest_wake.wait()
            await anyio.sleep_until(self._resting[0][0])
            _, topic = self._resting.popleft()
            topic.resting = False
            if topic.changed_again:
                topic.changed_again = False
                self._notify(topic)
