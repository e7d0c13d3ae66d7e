"""What changed, and when: one ring of changes for all followers that ask with a cursor.

A thing that changes again before anybody got a cursor after its last change needs no second entry: no question could
distinguish the two. So the room for a busy log depends on its readers, not on its writes.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, Protocol, runtime_checkable

__all__ = [
    "ABSENT",
    "Change",
    "ChangeKind",
    "DetailedSource",
    "ExistenceSource",
    "Journal",
    "JournalEntry",
    "OmissionSource",
    "explain_absence",
]

_MAX_CHANGES = 20_000
# The characters of earlier texts that changes hold.
_MAX_CHARACTERS = 8_000_000

ChangeKind = Literal["created", "changed", "deleted"]

# The digest of a thing that is not there begins with this; the reason follows.
ABSENT = "absent: "


def explain_absence(digest: str) -> str | None:
    """Return why nothing is there, if the digest says so."""
    if not digest.startswith(ABSENT):
        return None
    return digest.removeprefix(ABSENT)


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to one thing.

    Attributes:
        name: its name for the caller, unique within a source; empty for the followed URI itself.
        kind: whether it appeared, changed or disappeared.
        before: its old text, if kept.
        after: its new text, if kept.
        added: the text added at its end, if only that is known.
        origin: the name it had before, of one that was renamed: it is created, and the old one deleted.
        note: what changed besides its text, in words.
        continues: the thing whose earlier changes are part of this one: a log that got another name.
        is_anew: whether no earlier change of the thing is part of this one.
    """

    name: str = ""
    kind: ChangeKind = "changed"
    before: str | None = None
    after: str | None = None
    added: str | None = None
    origin: str = ""
    note: str = ""
    continues: str = ""
    is_anew: bool = False

    def with_earlier(self, earlier: Change) -> Change:
        """Return the change with an earlier one of the thing that it continues."""
        if earlier.kind != "changed":
            return self
        if earlier.added is not None and self.added is not None:
            return replace(self, added=earlier.added + self.added)
        if earlier.after is None or earlier.after != self.before:
            return self
        return replace(self, before=earlier.before)

    def merge(self, later: Change) -> Change | None:
        """Return both changes as one; None if nothing happened in the end."""
        if self.kind == "created" and later.kind == "deleted":
            return None
        kind = self._merge_kind(later)
        note = later.note or self.note
        is_undone = self.before is not None and self.before == later.after
        if kind == "changed" and is_undone and not note:
            return None
        origin = ""
        if kind == "created":
            origin = self.origin or later.origin
        return replace(
            later, kind=kind, before=self._merge_before(later), added=self._merge_added(later), origin=origin, note=note
        )

    def _merge_kind(self, later: Change) -> ChangeKind:
        """Return what happened from before the first change until after the later one."""
        match self.kind:
            case "created":
                return "created"
            case "deleted":
                return "changed"
            case "changed":
                return later.kind

    def _merge_before(self, later: Change) -> str | None:
        """Return the text before both changes, or before the later one if the first says nothing of it."""
        if later.before is not None and (later.is_anew or self.kind == "deleted"):
            return later.before
        return self.before

    def _merge_added(self, later: Change) -> str | None:
        """Return the text that both changes added, if that of both is known."""
        if self.added is None or later.added is None:
            return None
        return self.added + later.added

    @property
    def weight(self) -> int:
        return len(self.before or "") + len(self.added or "")


@runtime_checkable
class DetailedSource(Protocol):
    """A source that knows details of a change, or can check immediately."""

    def followed_key(self, uri: str) -> Hashable | None:
        """Return the key of what `list_changes` means by `uri`; None if another source has it.

        Raises:
            Problem: It may not be followed.
        """
        ...

    async def poll(self, keys: Collection[Hashable]) -> None:
        """Notice everything that has changed by now, and call `changed` for it before returning."""
        ...

    def take_changes(self, key: Hashable) -> Iterable[Change]:
        """Return the changes behind calls of `changed`, each once."""
        ...

    def describe_change(self, change: Change) -> str:
        """Return details of a change besides its name, such as a diff; called on a worker thread."""
        ...


@runtime_checkable
class ExistenceSource(Protocol):
    """A source that knows from its last check whether anything exists at what it watches."""

    def explain_absence(self, key: Hashable) -> str | None:
        """Return why nothing exists at `key` yet, in words for its reader.

        None if something exists, or it is unknown.
        """
        ...


@runtime_checkable
class OmissionSource(Protocol):
    """A source that knows from its last check what it leaves out of what it watches."""

    def describe_omission(self, key: Hashable) -> str | None:
        """Return what is left out at `key`, in words for its reader; None if nothing is."""
        ...


@dataclass(slots=True)
class JournalEntry:
    """A change in the ring.

    Attributes:
        topic: where it happened.
        at: when, in seconds since the epoch.
        times: how many changes it stands for.
    """

    topic: Hashable
    change: Change
    at: float
    times: int = 1


class Journal:
    """The ring: changes by their numbers, oldest first.

    Attributes:
        now: the number of the latest change.
    """

    def __init__(self) -> None:
        self.now = 0
        self._ring: dict[int, JournalEntry] = {}
        self._latest: dict[tuple[Hashable, str], int] = {}
        # The latest change of which a cursor may tell whether it was before or after.
        self._last_mark = 0
        self._weight = 0
        self._dropped: dict[Hashable, int] = {}

    def mark(self) -> int:
        """Return the number of the latest change, for a cursor that separates later changes from earlier ones."""
        self._last_mark = self.now
        return self.now

    def add(self, topic: Hashable, change: Change) -> None:
        """Add a change of `topic`."""
        self.now += 1
        times = 1
        continued = self._ring.get(self._latest.get((topic, change.continues), 0))
        if change.continues and continued is not None and self._latest[topic, change.continues] > self._last_mark:
            change = change.with_earlier(continued.change)
        previous = self._take_unmarked(topic, change.name)
        if previous is not None:
            merged = previous.change.merge(change)
            if merged is None:
                return
            change = merged
            times += previous.times
        self._ring[self.now] = JournalEntry(topic, change, time.time(), times)
        self._latest[topic, change.name] = self.now
        self._weight += change.weight
        while len(self._ring) > _MAX_CHANGES or (self._weight > _MAX_CHARACTERS and len(self._ring) > 1):
            self._drop(next(iter(self._ring)))

    def _take_unmarked(self, topic: Hashable, name: str) -> JournalEntry | None:
        """Take out the latest change of a thing, if no cursor can tell it from the next one."""
        number = self._latest.pop((topic, name), 0)
        if number <= self._last_mark:
            return None
        entry = self._ring.pop(number, None)
        if entry is not None:
            self._weight -= entry.change.weight
        return entry

    def forget(self, topic: Hashable) -> None:
        """Forget `topic`, which nobody follows any more."""
        numbers = [number for number, entry in self._ring.items() if entry.topic == topic]
        for number in numbers:
            self._drop(number)
        self._dropped.pop(topic, None)

    def between(self, topics: Collection[Hashable], after: int, until: int) -> list[JournalEntry]:
        """Return the changes at `topics` after one number up to another.

        Each thing is there once; the order is that of the last changes.
        """
        merged: dict[tuple[Hashable, str], JournalEntry] = {}
        for number, entry in self._ring.items():
            if not after < number <= until or entry.topic not in topics:
                continue
            key = (entry.topic, entry.change.name)
            continued = merged.get((entry.topic, entry.change.continues))
            if entry.change.continues and continued is not None:
                entry = replace(entry, change=entry.change.with_earlier(continued.change))
            earlier = merged.pop(key, None)
            if earlier is None:
                merged[key] = entry
                continue
            change = earlier.change.merge(entry.change)
            if change is not None:
                merged[key] = JournalEntry(entry.topic, change, entry.at, earlier.times + entry.times)
        return list(merged.values())

    def is_cut(self, topics: Collection[Hashable], after: int) -> bool:
        """Return whether the ring has dropped a change at `topics` after a number."""
        return any(self._dropped.get(topic, 0) > after for topic in topics)

    def _drop(self, number: int) -> None:
        entry = self._ring.pop(number)
        self._weight -= entry.change.weight
        self._dropped[entry.topic] = number
        if self._latest.get((entry.topic, entry.change.name)) == number:
            del self._latest[entry.topic, entry.change.name]
