"""Whose text was shown so far, so that a write elsewhere can be asked about.

Text that anybody may write can hold instructions; a model that follows them may publish what only its user can read.
The text can't be judged, but the way it would take can be: reading here, writing there. The memory is the process's,
and lasts until it ends; several clients of one server share it, to the safe side.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from mcp_batteries.errors import Problem
from mcp_github.policy import Policy

__all__ = ["Flow"]

_SECONDS = 600.0
"""How long a repository is taken to stay as public or private as it was."""


class Flow:
    """What was read, and what that means for a write.

    Args:
        look: whether the repository of a key is public, by asking GitHub.
    """

    def __init__(self, policy: Policy, look: Callable[[str], Awaitable[bool]]) -> None:
        self._policy, self._look = policy, look
        self._seen: dict[str, None] = {}
        self._public: dict[str, tuple[bool, float]] = {}

    def saw(self, key: str) -> None:
        """Text of the repository (or other place) `key` was shown."""
        self._seen[key.lower()] = None

    def knows(self, key: str, *, public: bool) -> None:
        """GitHub just said whether `key` is public."""
        self._public[key.lower()] = (public, time.monotonic())

    async def public(self, key: str) -> bool:
        """Whether anybody may read, and so perhaps write, `key`; what can't be found out counts as public."""
        known = self._public.get(key)
        if known is not None and time.monotonic() - known[1] < _SECONDS:
            return known[0]
        try:
            self.knows(key, public=await self._look(key))
        except Problem:
            return True
        return self._public[key][0]

    async def question(self, target: str) -> str | None:
        """What to ask the user before a write to `target`; None if nothing.

        Raises:
            Refused: flow control is strict and would have to ask.
        """
        if self._policy.flow == "off" or not self._seen:
            return None
        seen = {key: await self.public(key) for key in list(self._seen)}
        return self._policy.flow_question(target.lower(), seen, public=await self.public(target.lower()))
