"""A source of changes that reads its resources again and compares digests of what they show.

Resources that change together, as those of one repository or one database, are a group. A group is checked as a whole
and by one task: at intervals, and at once when something wakes it. What wakes it, how a resource is read and when the
next check makes sense is what a server adds.
"""

from __future__ import annotations

import hashlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Mapping
from typing import Any, Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

from mcp_batteries.errors import NotFound, Problem
from mcp_batteries.subscriptions.journal import ABSENT, Change, explain_absence

__all__ = ["DigestGroup", "DigestSource", "compute_digest"]

logger = logging.getLogger(__name__)

# A check that takes long is at most half of the time, up to these seconds of rest.
_MAX_REST_SECONDS = 2.0

S = TypeVar("S")


class DigestGroup(Generic[S]):
    """Resources that are checked together.

    Attributes:
        subjects: what is followed, by its key.
        digests: what the subjects showed at the last check, by their keys.
        wake: set when a check makes sense now.
        turn: held by whoever reads or changes the group.
        has_subjects: set while anything is followed.
    """

    def __init__(self) -> None:
        self.subjects: dict[Hashable, S] = {}
        self.digests: dict[Hashable, str] = {}
        self.wake = anyio.Event()
        self.turn = anyio.Lock()
        self.has_subjects = anyio.Event()

    async def wait_for_wake(self) -> None:
        """Wait until something wakes the group; the next call waits for the next time."""
        await self.wake.wait()
        self.wake = anyio.Event()

    def compare(self, digests: Mapping[Hashable, str]) -> list[Hashable]:
        """Keep the digests of a check, and return the keys of what changed."""
        current = {key: digest for key, digest in digests.items() if key in self.subjects}
        changed = [key for key, digest in current.items() if _differ(self.digests.get(key), digest)]
        self.digests |= current
        return changed

    def clear(self) -> None:
        """Forget everything that is followed."""
        self.subjects.clear()
        self.digests.clear()
        self.has_subjects = anyio.Event()


G = TypeVar("G", bound=DigestGroup[Any])


class DigestSource(ABC, Generic[G, S]):
    """The base of such a source; `topics.Source` says what the hub calls.

    Args:
        groups: the groups by their names; `add_group` adds others.
        interval: seconds from the first subscription in a group to the first check that nothing woke.

    Attributes:
        list_keys: keys whose change changes the answer to `resources/list`.
        changed: announces the keys of what changed.
        known_subjects: what somebody asked for, by its key.
    """

    def __init__(self, groups: Mapping[str, G], interval: float) -> None:
        self.list_keys: Collection[Hashable] = ()
        self.groups = dict(groups)
        self.changed: Callable[[Collection[Hashable]], None] = lambda keys: None
        self.known_subjects: dict[Hashable, S] = {}
        self._interval = interval
        self._tasks: TaskGroup | None = None

    @abstractmethod
    def parse(self, uri: str) -> S | None:
        """Return what a URI means; None if another source has it.

        Raises:
            Problem: It may not be watched.
        """

    @abstractmethod
    def key_of(self, subject: S) -> Hashable:
        """Return the key that all spellings of its URI share."""

    @abstractmethod
    def group_of(self, subject: S) -> G:
        """Return the group that a subject belongs to."""

    @abstractmethod
    async def read_first(self, group: G, subjects: Mapping[Hashable, S]) -> Mapping[Hashable, str]:
        """Return the digests of new subjects, from which on no change goes unnoticed; called in the group's turn."""

    @abstractmethod
    async def check(self, group: G, *, is_woken: bool) -> float:
        """Announce what changed since the last check, and return the seconds until the next one; called in turn.

        Args:
            is_woken: whether something woke the group. If not, the time for the check had come.
        """

    @abstractmethod
    async def check_now(self, group: G) -> None:
        """Announce everything that changed until now; called in the group's turn.

        Raises:
            Problem: It can't be read now.
        """

    def start(self, tasks: TaskGroup) -> None:
        """Start what wakes groups, as tasks that end with the source."""

    def release(self, group: G) -> None:
        """Let go of what only a followed group needs; called when nothing in it is followed any more."""

    def add_group(self, name: str, group: G) -> None:
        """Add a group, which may happen while the source runs."""
        self.groups[name] = group
        if self._tasks is not None:
            self._tasks.start_soon(self._follow, group)

    def key(self, uri: str) -> Hashable | None:
        subject = self.parse(uri)
        if subject is None:
            return None
        key = self.key_of(subject)
        self.known_subjects[key] = subject
        return key

    async def add(self, keys: Collection[Hashable]) -> None:
        new: dict[G, dict[Hashable, S]] = {}
        for key in keys:
            subject = self.known_subjects[key]
            new.setdefault(self.group_of(subject), {})[key] = subject
        try:
            for group, subjects in new.items():
                async with group.turn:
                    group.subjects |= subjects
                    group.digests |= await self.read_first(group, subjects)
                group.has_subjects.set()
        except BaseException:
            # Their subjects stay known: each may be tried for itself.
            self._leave(keys)
            raise

    def discard(self, keys: Collection[Hashable]) -> None:
        self._leave(keys)
        for key in keys:
            if key not in self.list_keys:
                self.known_subjects.pop(key, None)

    def _leave(self, keys: Collection[Hashable]) -> None:
        """Follow no longer what has these keys."""
        for key in keys:
            subject = self.known_subjects.get(key)
            if subject is None:
                continue
            group = self.group_of(subject)
            group.subjects.pop(key, None)
            group.digests.pop(key, None)
            if not group.subjects:
                group.has_subjects = anyio.Event()
                self.release(group)

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        self.changed = changed
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                self.start(tasks)
                for group in self.groups.values():
                    tasks.start_soon(self._follow, group)
        finally:
            self._tasks = None
            for group in self.groups.values():
                group.clear()

    def followed_key(self, uri: str) -> Hashable | None:
        return self.key(uri)

    async def poll(self, keys: Collection[Hashable]) -> None:
        subjects = [self.known_subjects[key] for key in keys if key in self.known_subjects]
        for group in dict.fromkeys(map(self.group_of, subjects)):
            async with group.turn:
                await self.check_now(group)

    def take_changes(self, key: Hashable) -> Iterable[Change]:
        return (Change(),)

    def describe_change(self, change: Change) -> str:
        return ""

    def explain_absence(self, key: Hashable) -> str | None:
        subject = self.known_subjects.get(key)
        if subject is None:
            return None
        return explain_absence(self.group_of(subject).digests.get(key, ""))

    async def _follow(self, group: G) -> None:
        pause = self._interval
        while True:
            await group.has_subjects.wait()
            with anyio.move_on_after(pause) as waiting:
                await group.wait_for_wake()
            started = anyio.current_time()
            async with group.turn:
                pause = await self.check(group, is_woken=not waiting.cancelled_caught)
            await anyio.sleep(min(anyio.current_time() - started, _MAX_REST_SECONDS))


async def compute_digest(content: Awaitable[str]) -> str:
    """Return the digest of what a resource shows.

    What is absent is absent whatever the reason. What can't be read counts as changed with the reason: an extra notice
    is better than a missed one.
    """
    try:
        text = await content
    except NotFound as problem:
        return f"{ABSENT}{problem}"
    except Problem as problem:
        logger.info("Not compared: %s", problem)
        return f"unreadable: {problem}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _differ(before: str | None, now: str) -> bool:
    """Return whether a thing changed; a missing thing does not change."""
    if before is not None and before.startswith(ABSENT) and now.startswith(ABSENT):
        return False
    return before != now
