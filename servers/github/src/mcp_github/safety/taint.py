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
from dataclasses import dataclass

from mcp_batteries.errors import Problem
from mcp_github.call_context import current_call
from mcp_github.policy import Owner, Policy, Repo

__all__ = ["GISTS", "TaintTracker", "alerts_key", "projects_key"]

# The key of all gists. Anybody can write one, so they count as public.
GISTS = "gists"

# A repository is taken to stay as public or private as it was for so long.
_VISIBILITY_SECONDS = 600.0
_MAX_READERS = 2000
# Of what one reader read.
_MAX_KEYS = 200
_MAX_VISIBILITIES = 5000
# Stands for what was too much to remember, or was perhaps read through another replica; counts as public.
_SOME_OTHER = "some other repository"

# Keys in the order in which they were read, the latest last.
_Keys = OrderedDict[str, None]


@dataclass(frozen=True)
class _Visibility:
    is_public: bool
    checked_at: float


class TaintTracker:
    """What was read, and what that means for a write.

    Args:
        fetch_is_public: asks GitHub whether the repository of a key is public.
        is_only_process: no other process answers the same clients; else any of them may have read anything there.
    """

    def __init__(
        self, policy: Policy, fetch_is_public: Callable[[str], Awaitable[bool]], *, is_only_process: bool = True
    ) -> None:
        self._policy = policy
        self._fetch_is_public = fetch_is_public
        self._reads: OrderedDict[str, _Keys] = OrderedDict()
        self._shared_reads: _Keys = OrderedDict()
        if not is_only_process:
            self._shared_reads[_SOME_OTHER] = None
        # By caller, too: not each of them may know that a repository exists.
        self._visibilities: OrderedDict[tuple[str, str], _Visibility] = OrderedDict()

    def record_read(self, key: str) -> None:
        """Remember that text of the repository (or other place) `key` was shown to the reader of the call."""
        reader = current_call().reader
        self._add_read(reader, key)
        if reader and not reader.startswith("token "):
            # A client of 2026-07-28 without a token may be any of the sessions without one.
            self._add_read("", key)
        while len(self._reads) > _MAX_READERS:
            _, forgotten_keys = self._reads.popitem(last=False)
            for forgotten in forgotten_keys:
                _add_key(self._shared_reads, forgotten)

    def record_visibility(self, key: str, *, public: bool) -> None:
        """Remember what GitHub just said of whether `key` is public."""
        visibility_key = self._visibility_key(key)
        self._visibilities[visibility_key] = _Visibility(public, time.monotonic())
        self._visibilities.move_to_end(visibility_key)
        if len(self._visibilities) > _MAX_VISIBILITIES:
            self._visibilities.popitem(last=False)

    def was_public(self, key: str) -> bool:
        """Return whether `key` was public when it was last heard of; False if never."""
        visibility = self._visibilities.get(self._visibility_key(key))
        return visibility is not None and visibility.is_public

    async def is_public(self, key: str) -> bool:
        """Return whether anybody may read, and so perhaps write, `key`; what can't be found out counts as public."""
        visibility = self._visibilities.get((current_call().caller.name, key))
        if visibility is not None and time.monotonic() - visibility.checked_at < _VISIBILITY_SECONDS:
            return visibility.is_public
        try:
            public = await self._fetch_is_public(key)
        except Problem:
            return True
        self.record_visibility(key, public=public)
        return public

    async def question_before_write(self, target: str, *, acts: bool = False, public: bool | None = None) -> str | None:
        """Return what to ask the user before a write to `target`; None if nothing.

        Args:
            acts: whether the write runs or publishes something.
            public: whether `target` will be public, where the write itself decides that.

        Raises:
            Refused: flow control is strict and would have to ask.
        """
        if self._policy.flow == "off":
            return None
        keys = [*self._shared_reads, *self._reads.get(current_call().reader, ())]
        if not keys:
            return None
        target = target.lower()
        visibilities: dict[str, bool] = {}
        for key in reversed(keys):
            visibilities[key] = key == _SOME_OTHER or await self.is_public(key)
            if visibilities[key] and key != target and not self._policy.trusts(key):
                # One is reason enough; each of the others may cost a request.
                break
        if public is None:
            public = await self.is_public(target)
        return self._policy.flow_question(target, visibilities, public=public, acts=acts)

    @staticmethod
    def _visibility_key(key: str) -> tuple[str, str]:
        return current_call().caller.name, key.lower()

    def _add_read(self, reader: str, key: str) -> None:
        keys = self._reads.setdefault(reader, OrderedDict())
        self._reads.move_to_end(reader)
        _add_key(keys, sys.intern(key.lower()))


def projects_key(owner: Owner) -> str:
    """Return the key of the project boards of `owner`."""
    return f"the projects of {owner.login}".lower()


def alerts_key(place: Repo | Owner) -> str:
    """Return the key of the security alerts of `place`, which are private whatever their repository is."""
    if isinstance(place, Repo):
        return f"the alerts of {place.full_name}"
    return f"the alerts of {place.login}"


def _add_key(keys: _Keys, key: str) -> None:
    keys[key] = None
    keys.move_to_end(key)
    if len(keys) > _MAX_KEYS:
        keys.popitem(last=False)
        keys[_SOME_OTHER] = None
        keys.move_to_end(_SOME_OTHER)
