"""Suggestions while a person types a resource's address or a prompt's argument."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from mcp_batteries.errors import Problem
from mcp_batteries.server.declaration.decorators import completes
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
        """Return owners on the allow-list, or of recently used repositories."""
        owners = [full_name.partition("/")[0] for full_name in await self._repositories()]
        return _starting_with(typed, owners)

    @completes("repo", of="resource")
    async def name(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Return the names of the repositories of the owner typed before."""
        typed_owner = others.get("owner", "").lower()
        names: list[str] = []
        for full_name in await self._repositories():
            owner, _, name = full_name.partition("/")
            if not typed_owner or owner.lower() == typed_owner:
                names.append(name)
        return _starting_with(typed, names)

    @completes("repo", of="prompt")
    async def full_name(self, typed: str, others: Mapping[str, str]) -> list[str]:
        return _starting_with(typed, await self._repositories())

    @completes("ref", of="resource")
    async def ref(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Return branches, then tags."""
        return await self._refs(typed, self._resource_repo(others))

    @completes("ref", of="prompt")
    async def prompt_ref(self, typed: str, others: Mapping[str, str]) -> list[str]:
        return await self._refs(typed, self._prompt_repo(others))

    @completes("since", of="prompt")
    async def since(self, typed: str, others: Mapping[str, str]) -> list[str]:
        tags = await self._list(self._prompt_repo(others), "tags")
        return _starting_with(typed, [str(tag["name"]) for tag in tags])

    @completes("tag", of="resource")
    async def tag(self, typed: str, others: Mapping[str, str]) -> list[str]:
        releases = await self._list(self._resource_repo(others), "releases")
        return _starting_with(typed, [str(release["tag_name"]) for release in releases])

    @completes("number", of="resource")
    async def number(self, typed: str, others: Mapping[str, str]) -> list[str]:
        return await self._numbers(typed, self._resource_repo(others), "issues")

    @completes("number", of="prompt")
    async def prompt_number(self, typed: str, others: Mapping[str, str]) -> list[str]:
        return await self._numbers(typed, self._prompt_repo(others), "pulls")

    @completes("path", of="resource")
    async def path(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Return entries of the folder typed so far."""
        repo = self._resource_repo(others)
        if repo is None:
            return []
        try:
            folder = self.policy.file(typed.rpartition("/")[0])
        except Problem:
            return []
        params = None
        if others.get("ref"):
            params = {"ref": others["ref"]}
        paths: list[str] = []
        for entry in await self._fetch(f"{repo.path}/contents/{folder.path}", params):
            path = str(entry["path"])
            if entry["type"] == "dir":
                path += "/"
            paths.append(path)
        return _starting_with(typed, paths)

    async def _refs(self, typed: str, repo: Repo | None) -> list[str]:
        names: list[str] = []
        for kind in ("branches", "tags"):
            names += [str(ref["name"]) for ref in await self._list(repo, kind)]
        return _starting_with(typed, names)

    async def _numbers(self, typed: str, repo: Repo | None, kind: str) -> list[str]:
        items = await self._list(repo, kind)
        return _starting_with(typed, [str(item["number"]) for item in items])

    async def _repositories(self) -> list[str]:
        """Return the repositories that the allow-list names, then those of the user that are served."""
        names = self.policy.named_repos
        if self.policy.allow_list and len(names) == len(self.policy.allow_list):
            return names
        repositories = await self._fetch("/user/repos", {"per_page": 100, "sort": "pushed"})
        full_names = [str(repository["full_name"]) for repository in repositories]
        others = [name for name in self.policy.only_served(full_names, key=str) if name not in names]
        return names + others

    async def _list(self, repo: Repo | None, kind: str) -> list[dict[str, Any]]:
        """Return the first objects of a kind that a repository has."""
        if repo is None:
            return []
        return await self._fetch(f"{repo.path}/{kind}", {"per_page": 100})

    async def _fetch(self, path: str, params: Mapping[str, Any] | None) -> list[dict[str, Any]]:
        """Return the list at `path`; an empty one if it can't be had."""
        try:
            response = await self.api.get(path, "suggestions", params, internal=True)
        except Problem:
            return []
        data: Any = response.data
        if not isinstance(data, list):
            return []
        return cast("list[dict[str, Any]]", data)

    def _resource_repo(self, others: Mapping[str, str]) -> Repo | None:
        return self._parse_repo(f"{others.get('owner', '')}/{others.get('repo', '')}")

    def _prompt_repo(self, others: Mapping[str, str]) -> Repo | None:
        return self._parse_repo(others.get("repo", ""))

    def _parse_repo(self, text: str) -> Repo | None:
        try:
            return self.policy.repo(text)
        except Problem:
            return None


def _starting_with(typed: str, names: Iterable[str]) -> list[str]:
    """Return those of `names` that begin with what was typed, each once."""
    return [name for name in dict.fromkeys(names) if name.lower().startswith(typed.lower())]
