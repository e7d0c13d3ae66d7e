"""Which source tells which URIs to refresh: looks at GitHub, of what somebody subscribed to and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable

import anyio

from mcp_batteries.remote import RemoteSource
from mcp_github.engine.remote import Remote
from mcp_github.engine.subjects import Subject, subject
from mcp_github.policy import Policy
from mcp_github.settings import Settings

__all__ = ["Followed", "demonstration"]


class Followed:
    """The source of changes for `github://` URIs. Token and cache are looked for at the first subscription."""

    list_keys: Collection[Hashable] = ()

    def __init__(self, policy: Policy, remote: Remote) -> None:
        self._policy, self._remote = policy, remote
        self._running = anyio.Event()
        self._subjects: dict[Hashable, Subject] = {}
        self._source: RemoteSource | None = None

    def key(self, uri: str) -> Hashable | None:
        found = subject(self._policy, uri)
        return None if found is None else found.uri

    async def add(self, keys: Collection[Hashable]) -> None:
        await self._running.wait()
        if self._source is None:
            self._source = RemoteSource(await self._remote.cache(), str, self._keys)
            self._tasks.start_soon(self._source.run, self._changed)
        for key in keys:
            found = subject(self._policy, str(key))
            if found is not None:
                self._subjects[key] = found
                self._remote.follow(found, more=1)
        await self._source.add(keys)

    async def _keys(self, uri: str) -> Collection[str]:
        return [self._subjects[uri].key]

    def discard(self, keys: Collection[Hashable]) -> None:
        for key in keys:
            if found := self._subjects.pop(key, None):
                self._remote.follow(found, more=-1)
        if self._source is not None:
            self._source.discard(keys)

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        self._changed = changed
        try:
            async with anyio.create_task_group() as self._tasks:
                self._running.set()
                await anyio.sleep_forever()
        finally:
            self._running, self._source = anyio.Event(), None
            self._subjects.clear()


def demonstration(settings: Settings) -> tuple[str, Callable[[], None]] | None:
    """For `--check`: nothing on GitHub is changed to show that changes are seen."""
    return None
