"""Suggestions while a person types a resource's address or a prompt's argument."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from mcp_batteries.errors import Problem
from mcp_batteries.server.declare import completes
from mcp_github.client.api import Api
from mcp_github.policy import Policy, Repo

__all__ = ["Completions"]


@dataclass(frozen=True)
class Completions:
    """Suggests names, and nothing if nothing can be found out."""

    policy: Policy
    api: Api

    @completes("owner", of="resource")
    async def owner(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Owners on the allow-list, or of recently used repositories."""
        return _starting({full.partition("/")[0]: None for full in await self._repositories()}, typed)

    @completes("repo", of="resource")
    async def name(self, typed: str, others: Mapping[str, str]) -> list[str]:
        owner = others.get("owner", "").lower()
        found = [full.partition("/") for full in await self._repositories()]
        return _starting({name: None for of, _, name in found if of.lower() == owner or not owner}, typed)

    @completes("repo", of="prompt")
    async def full_name(self, typed: str, others: Mapping[str, str]) -> list[str]:
        return _starting(dict.fromkeys(await self._repositories()), typed)

    @completes("ref", of="resource")
    async def ref(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Branches, then tags."""
        return await self._refs(typed, self._place(others))

    @completes("ref", of="prompt")
    async def prompt_ref(self, typed: str, others: Mapping[str, str]) -> list[str]:
        return await self._refs(typed, self._prompt_place(others))

    @completes("since", of="prompt")
    async def since(self, typed: str, others: Mapping[str, str]) -> list[str]:
        repo = self._prompt_place(others)
        tags = await self._ask(f"{repo.path}/tags", {"per_page": 100}) if repo else []
        return _starting({str(item["name"]): None for item in tags}, typed)

    @completes("tag", of="resource")
    async def tag(self, typed: str, others: Mapping[str, str]) -> list[str]:
        repo = self._place(others)
        found = await self._ask(f"{repo.path}/releases", {"per_page": 100}) if repo else []
        return _starting({str(item["tag_name"]): None for item in found}, typed)

    @completes("number", of="resource")
    async def number(self, typed: str, others: Mapping[str, str]) -> list[str]:
        return await self._numbers(typed, self._place(others), "issues")

    @completes("number", of="prompt")
    async def prompt_number(self, typed: str, others: Mapping[str, str]) -> list[str]:
        return await self._numbers(typed, self._prompt_place(others), "pulls")

    @completes("path", of="resource")
    async def path(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Entries of the folder typed so far."""
        repo = self._place(others)
        if repo is None:
            return []
        try:
            folder = self.policy.file(typed.rpartition("/")[0])
        except Problem:
            return []
        params = {"ref": others["ref"]} if others.get("ref") else None
        found = await self._ask(f"{repo.path}/contents/{folder.path}", params)
        names = {f"{item['path']}{'/' if item['type'] == 'dir' else ''}": None for item in found}
        return _starting(names, typed)

    async def _refs(self, typed: str, repo: Repo | None) -> list[str]:
        if repo is None:
            return []
        names: dict[str, None] = {}
        for kind in ("branches", "tags"):
            names |= {str(item["name"]): None for item in await self._ask(f"{repo.path}/{kind}", {"per_page": 100})}
        return _starting(names, typed)

    async def _numbers(self, typed: str, repo: Repo | None, kind: str) -> list[str]:
        found = await self._ask(f"{repo.path}/{kind}", {"per_page": 100}) if repo else []
        return _starting({str(item["number"]): None for item in found}, typed)

    async def _repositories(self) -> list[str]:
        named = self.policy.named
        if self.policy.allowed and len(named) == len(self.policy.allowed):
            return named
        mine = await self._ask("/user/repos", {"per_page": 100, "sort": "pushed"})
        found = [str(item["full_name"]) for item in mine]
        return named + [full for full in self.policy.only_served(found, key=str) if full not in named]

    async def _ask(self, path: str, params: Mapping[str, Any] | None) -> list[dict[str, Any]]:
        try:
            found = await self.api.get(path, "suggestions", params, quiet=True)
        except Problem:
            return []
        data: Any = found.data
        return cast("list[dict[str, Any]]", data) if isinstance(data, list) else []

    def _place(self, others: Mapping[str, str]) -> Repo | None:
        return self._named(f"{others.get('owner', '')}/{others.get('repo', '')}")

    def _prompt_place(self, others: Mapping[str, str]) -> Repo | None:
        return self._named(others.get("repo", ""))

    def _named(self, text: str) -> Repo | None:
        try:
            return self.policy.repo(text)
        except Problem:
            return None


def _starting(names: Mapping[str, None], typed: str) -> list[str]:
    return [name for name in names if name.lower().startswith(typed.lower())]
