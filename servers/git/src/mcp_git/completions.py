"""Completes repositories, revisions and paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import Problem
from mcp_batteries.server.declaration.decorators import completes
from mcp_git.engine.history.files import complete_paths
from mcp_git.engine.history.refs import complete_refs
from mcp_git.engine.program.git import Git
from mcp_git.policy import Policy, Repository

__all__ = ["Completions"]


@dataclass(frozen=True)
class Completions:
    """The completions.

    Attributes:
        seconds: until git is stopped.
    """

    policy: Policy
    git: Git
    seconds: float

    @completes("repo", of="prompt")
    async def repository(self, typed: str, others: Mapping[str, str]) -> list[str]:
        return [name for name in self.policy.repositories if name.startswith(typed)]

    @completes("repo", of="resource")
    async def resource_repository(self, typed: str, others: Mapping[str, str]) -> list[str]:
        return await self.repository(typed, others)

    @completes("rev", of="prompt")
    async def revision(self, typed: str, others: Mapping[str, str]) -> list[str]:
        before, dots, start = typed.rpartition("..")
        return [before + dots + name for name in await self._names(start, others)]

    @completes("rev", of="resource")
    async def commit(self, typed: str, others: Mapping[str, str]) -> list[str]:
        return await self._names(typed, others)

    @completes("path", of="resource")
    async def path(self, typed: str, others: Mapping[str, str]) -> list[str]:
        return await self._list(complete_paths, typed, others)

    async def _names(self, start: str, others: Mapping[str, str]) -> list[str]:
        return await self._list(complete_refs, start, others)

    async def _list(
        self,
        complete: Callable[[Git, Repository, str, CancelToken], list[str]],
        start: str,
        others: Mapping[str, str],
    ) -> list[str]:
        """Return what `complete` finds in the repository that is filled in; nothing where it fails."""
        try:
            repository = self.policy.repository(others.get("repo", ""))
            return await run_in_thread(
                lambda cancel: complete(self.git, repository, start, cancel), seconds=self.seconds, long=True
            )
        except Problem:
            return []
