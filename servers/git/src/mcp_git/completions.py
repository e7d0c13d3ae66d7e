"""Completes repositories, revisions and paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mcp_batteries.errors import Problem
from mcp_batteries.server.declaration.decorators import completes
from mcp_git.engine.service import Engine
from mcp_git.policy import Policy

__all__ = ["Completions"]


@dataclass(frozen=True)
class Completions:
    policy: Policy
    engine: Engine

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
        return list(await self._names(typed, others))

    @completes("path", of="resource")
    async def path(self, typed: str, others: Mapping[str, str]) -> list[str]:
        try:
            return list(await self.engine.complete_paths(self.policy.repository(others.get("repo", "")), typed))
        except Problem:
            return []

    async def _names(self, start: str, others: Mapping[str, str]) -> Sequence[str]:
        try:
            return await self.engine.complete_refs(self.policy.repository(others.get("repo", "")), start)
        except Problem:
            return ()
