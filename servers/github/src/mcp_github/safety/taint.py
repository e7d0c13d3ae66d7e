"""Remembers whose text was shown to whom, so that the user can be asked about a write elsewhere.

Text that anybody may write can hold instructions; a model that follows them may publish what only its user can read.
The text cannot be judged, but its path can: reading here, writing there. What was read is remembered for each reader,
and what would be too much to remember counts for everybody, which is the safe side.
"""

from __future__ import annotations

import sys
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

from mcp_batteries.errors import Problem
from mcp_github.call_context import caller
from mcp_github.policy import Owner, Policy

__all__ = ["GISTS", "Flow", "projects_key", "reader"]

# The key of all gists. Anybody can write one, so they count as public.
GISTS = "gists"

reader: ContextVar[str] = ContextVar("reader", default="")
"""Who reads or writes: the owner of a token, or the session of an older client without one. Empty for those who can't
be told apart, who share what anybody without a token read."""

_SECONDS = 600.0
"""How long a repository is taken to stay as public or private as it was."""
_READERS, _KEYS, _KNOWN = 2000, 200, 5000
"""How much is remembered: readers, what one of them read, and of how many repositories whether they are public."""
_MORE = "some other repository"
"""Stands for what was too much to remember, or was perhaps read through another replica; counts as public."""

_Seen = OrderedDict[str, None]


class Flow:
    """What was read, and what that means for a write.

    Args:
        look: whether the repository of a key is public, by asking GitHub.
        alone: no other process answers the same clients; else any of them may have read anything there.
    """

    def __init__(self, policy: Policy, look: Callable[[str], Awaitable[bool]], *, alone: bool = True) -> None:
        self._policy, self._look = policy, look
        self._seen: OrderedDict[str, _Seen] = OrderedDict()
        self._everybody: _Seen = OrderedDict() if alone else OrderedDict({_MORE: None})
        self._public: OrderedDict[tuple[str, str], tuple[bool, float]] = OrderedDict()
        """By caller, too: that a repository exists is a thing that not each may know."""

    def saw(self, key: str) -> None:
        """Text of the repository (or other place) `key` was shown."""
        who = reader.get()
        # A client of 2026-07-28 without a token may be any of the sessions without one.
        for name in {who} if who.startswith("token ") else {who, ""}:
            seen = self._seen.setdefault(name, OrderedDict())
            self._seen.move_to_end(name)
            _add(seen, sys.intern(key.lower()))
        while len(self._seen) > _READERS:
            for old in self._seen.popitem(last=False)[1]:
                _add(self._everybody, old)

    def knows(self, key: str, *, public: bool) -> None:
        """GitHub just said whether `key` is public."""
        place = caller.get().name, key.lower()
        self._public[place] = (public, time.monotonic())
        self._public.move_to_end(place)
        if len(self._public) > _KNOWN:
            self._public.popitem(last=False)

    def known(self, key: str) -> bool:
        """Whether `key` was public when it was last heard of; False if never."""
        return self._public.get((caller.get().name, key.lower()), (False, 0.0))[0]

    async def public(self, key: str) -> bool:
        """Whether anybody may read, and so perhaps write, `key`; what can't be found out counts as public."""
        place = caller.get().name, key
        known = self._public.get(place)
        if known is not None and time.monotonic() - known[1] < _SECONDS:
            return known[0]
        try:
            self.knows(key, public=await self._look(key))
        except Problem:
            return True
        return self._public[place][0]

    async def question(self, target: str, *, acts: bool = False, public: bool | None = None) -> str | None:
        """What to ask the user before a write to `target`; None if nothing.

        Args:
            acts: whether the write runs or publishes something.
            public: whether `target` will be public, where the write itself decides that.

        Raises:
            Refused: flow control is strict and would have to ask.
        """
        if self._policy.flow == "off":
            return None
        read = [*self._everybody, *self._seen.get(reader.get(), ())]
        if not read:
            return None
        target, seen = target.lower(), dict[str, bool]()
        for key in reversed(read):
            seen[key] = key == _MORE or await self.public(key)
            if seen[key] and key != target and not self._policy.trusts(key):
                break  # One is reason enough; each of the others may cost a request.
        public = await self.public(target) if public is None else public
        return self._policy.flow_question(target, seen, public=public, acts=acts)


def projects_key(owner: Owner) -> str:
    """Return the key of the project boards of `owner`."""
    return f"the projects of {owner.login}".lower()


def _add(seen: _Seen, key: str) -> None:
    seen[key] = None
    seen.move_to_end(key)
    if len(seen) > _KEYS:
        seen.popitem(last=False)
        seen[_MORE] = None
        seen.move_to_end(_MORE)
