"""What changed, and when: one ring of changes for all who ask with a cursor what is new since then.

A thing that changes again before anybody got a cursor after its last change needs no second place in the ring: no
question could tell the two apart. So a busy log takes as much room as it has readers, not as it has writes.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, Protocol, runtime_checkable

__all__ = ["ABSENT", "Change", "Journal", "Noted", "Seeing", "Telling", "why_absent"]

_MOST = 20_000
_MOST_CHARACTERS = 8_000_000
"""Of earlier texts that changes hold."""

What = Literal["created", "changed", "deleted"]

ABSENT = "absent: "
"""What the digest of something begins with that is not there; why is the rest."""


def why_absent(digest: str) -> str | None:
    """Why nothing is there, if that is what a digest says."""
    return digest.removeprefix(ABSENT) if digest.startswith(ABSENT) else None


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to one thing.

    Attributes:
        name: how the caller knows it, one for each thing of a source; empty for the URI that is followed itself.
        before: its text before, if that is kept.
        after: its text after, if that is kept.
        added: what was added at its end, where only that is known.
    """

    name: str = ""
    what: What = "changed"
    before: str | None = None
    after: str | None = None
    added: str | None = None

    def then(self, later: Change) -> Change | None:
        """Both as one; None if in the end nothing happened."""
        what: What = later.what
        if self.what == "created":
            if later.what == "deleted":
                return None
            what = "created"
        elif self.what == "deleted":
            what = "changed"
        added = None if self.added is None or later.added is None else self.added + later.added
        if what == "changed" and self.before is not None and self.before == later.after:
            return None
        return replace(later, what=what, before=self.before, added=added)

    @property
    def weight(self) -> int:
        return len(self.before or "") + len(self.added or "")


@runtime_checkable
class Telling(Protocol):
    """A source that knows more of a change than that there was one, or can be asked to look at once."""

    def followed(self, uri: str) -> Hashable | None:
        """The key of what `list_changes` means by `uri`; None if it is not this source's.

        Raises:
            Problem: It may not be followed.
        """
        ...

    async def look(self, keys: Collection[Hashable]) -> None:
        """Notice all that has changed by now, and call `changed` for it before this returns."""
        ...

    def news(self, key: Hashable) -> Iterable[Change]:
        """What `changed` was called for, once."""
        ...

    def shown(self, change: Change) -> str:
        """What a reader wants to know of a change beside its name, such as a diff; called on a worker thread."""
        ...


@runtime_checkable
class Seeing(Protocol):
    """A source that knows from its last look whether there is anything at what it watches."""

    def absent(self, key: Hashable) -> str | None:
        """Why there is nothing at `key` yet, as who reads it is told; None if there is something, or nobody knows."""
        ...


@dataclass(slots=True)
class Noted:
    """A change in the ring."""

    place: Hashable
    change: Change
    at: float
    times: int = 1


class Journal:
    """The ring: changes by their numbers, oldest first."""

    def __init__(self) -> None:
        self.now = 0
        """The number of the latest change."""
        self._ring: dict[int, Noted] = {}
        self._latest: dict[tuple[Hashable, str], int] = {}
        self._asked = 0
        """The latest change of which a cursor may tell whether it was before or after."""
        self._weight = 0
        self._dropped: dict[Hashable, int] = {}

    def mark(self) -> int:
        """The number of the latest change, for a cursor: what comes later is told apart from what came before."""
        self._asked = self.now
        return self.now

    def note(self, place: Hashable, change: Change) -> None:
        """Add a change of `place`."""
        self.now += 1
        known = self._latest.pop((place, change.name), 0)
        times = 1
        if known > self._asked and (before := self._ring.pop(known, None)) is not None:
            self._weight -= before.change.weight
            merged, times = before.change.then(change), before.times + 1
            if merged is None:
                return
            change = merged
        self._ring[self.now] = Noted(place, change, time.time(), times)
        self._latest[place, change.name] = self.now
        self._weight += change.weight
        while len(self._ring) > _MOST or (self._weight > _MOST_CHARACTERS and len(self._ring) > 1):
            self._drop(next(iter(self._ring)))

    def forget(self, place: Hashable) -> None:
        """Nobody follows `place` any more."""
        for number in [number for number, noted in self._ring.items() if noted.place == place]:
            self._drop(number)
        self._dropped.pop(place, None)

    def between(self, places: Collection[Hashable], after: int, until: int) -> list[Noted]:
        """What changed at `places` after one number and until another, each thing once, in the order of the last."""
        folded: dict[tuple[Hashable, str], Noted] = {}
        for number, noted in self._ring.items():
            if not after < number <= until or noted.place not in places:
                continue
            key = (noted.place, noted.change.name)
            earlier = folded.pop(key, None)
            if earlier is None:
                folded[key] = noted
            elif (change := earlier.change.then(noted.change)) is not None:
                folded[key] = Noted(noted.place, change, noted.at, earlier.times + noted.times)
        return list(folded.values())

    def is_cut(self, places: Collection[Hashable], after: int) -> bool:
        """Whether something that changed at `places` after a number is not in the ring any more."""
        return any(self._dropped.get(place, 0) > after for place in places)

    def _drop(self, number: int) -> None:
        noted = self._ring.pop(number)
        self._weight -= noted.change.weight
        self._dropped[noted.place] = number
        if self._latest.get((noted.place, noted.change.name)) == number:
            del self._latest[noted.place, noted.change.name]
