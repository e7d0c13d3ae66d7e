"""Followers that ask for changes with a cursor: the base of `list_changes`."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from mcp_batteries.errors import Conflict, TooLarge
from mcp_batteries.subscriptions.subscribers import Subscribers
from mcp_batteries.subscriptions.topics import Follower

__all__ = ["Followers"]

# URIs of one follower.
_MAX_FOLLOWED_URIS = 1000
# Followers at once; the one that has not asked for the longest time makes room.
_MOST = 64


class Followers:
    """The followers of a server, by unguessable names."""

    def __init__(self, subscribers: Subscribers) -> None:
        self._subscribers = subscribers
        # The follower that asked last is the last.
        self._by_name: dict[str, Follower] = {}

    async def begin(self, owner: str, uris: Sequence[str]) -> tuple[str, Follower]:
        """Return a new follower of `uris`, and its name.

        Raises:
            Problem: One of them can't be followed.
        """
        follower = Follower(owner, self._drop)
        await self.extend(follower, uris)
        while len(self._by_name) >= _MOST:
            self._drop(next(iter(self._by_name.values())))
        name = secrets.token_hex(12)
        self._by_name[name] = follower
        self._subscribers.start(follower)
        return name, follower

    async def extend(self, follower: Follower, uris: Sequence[str]) -> None:
        """Let `follower` follow `uris` too, all or none.

        Raises:
            Problem: One of them can't be followed.
        """
        new = [uri for uri in dict.fromkeys(uris) if uri not in follower.uris]
        try:
            if len(follower.uris) + len(new) > _MAX_FOLLOWED_URIS:
                raise TooLarge(
                    f"One call follows at most {_MAX_FOLLOWED_URIS:,} URIs.", "Follow folders or lists instead."
                )
            for uri in new:
                self._subscribers.subscribe(follower, uri)
            # What is watched for others was looked at some time ago: what has changed since is not news to this one.
            was_watched = any(follower.uris[uri].unsettled is None for uri in new)
            for uri in new:
                await follower.uris[uri].wait_settled()
                follower.uris[uri].raise_failure(uri)
            if was_watched:
                await self._subscribers.poll(follower)
        except BaseException:
            for uri in new:
                self._subscribers.unsubscribe(follower, uri)
            raise

    def find(self, owner: str, name: str) -> Follower:
        """Return the follower of a name.

        Raises:
            Conflict: It no longer exists, or belongs to another caller.
        """
        follower = self._by_name.get(name)
        if follower is None or follower.owner != owner:
            minutes = round(Follower.IDLE_SECONDS / 60)
            raise Conflict(
                f"What this `since` followed was let go: {minutes} minutes passed without a question, or the server "
                "was restarted.",
                "Read again what you need, and call without `since` to follow it anew.",
            )
        follower.restart_idle_time()
        self._by_name[name] = self._by_name.pop(name)
        return follower

    def _drop(self, follower: Follower) -> None:
        name = next(name for name, other in self._by_name.items() if other is follower)
        del self._by_name[name]
        self._subscribers.stop(follower)
