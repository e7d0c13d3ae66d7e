"""Repositories themselves: what they are, new ones, forks, and their deletion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcp_github.client.api import Api
from mcp_github.listing.columns import REPOSITORY
from mcp_github.models import Done, Record
from mcp_github.policy import Repo, WriteRepo

__all__ = ["Repositories"]


@dataclass(frozen=True)
class Repositories:
    api: Api

    async def get(self, repo: Repo, fields: Sequence[str] | None) -> Record:
        """Return one repository."""
        hint = "`search_github` with kind=repositories finds it by a word of its name."
        response = await self.api.get(repo.path, f"repository `{repo.full_name}`", repo=repo, hint=hint)
        self.api.taint.record_visibility(repo.key, public=not response.data.get("private", False))
        columns = fields or [name for name in REPOSITORY.getters if name != "size_kb"]
        data = REPOSITORY.to_record(response.data, columns)
        return Record(uri=repo.uri, removed=response.removed or None, data=data)

    async def create(self, repo: WriteRepo, *, description: str | None, private: bool, readme: bool) -> Done:
        """Create a repository of the token's user or of an organisation."""
        body: dict[str, Any] = {"name": repo.name, "private": private, "auto_init": readme}
        if description is not None:
            body["description"] = description
        path = f"/orgs/{repo.account}/repos"
        if await self._is_own(repo):
            path = "/user/repos"
        response = await self.api.write("POST", path, f"repository `{repo.full_name}`", body)
        return Done(done=f"Created {repo.full_name}.", uri=repo.uri, url=response.data.get("html_url"))

    async def fork(self, repo: Repo, target: WriteRepo) -> Done:
        """Fork `repo` as `target`."""
        body: dict[str, Any] = {"name": target.name}
        if not await self._is_own(target):
            body["organization"] = target.owner
        response = await self.api.write("POST", f"{repo.path}/forks", f"a fork of `{repo.full_name}`", body)
        return Done(
            done=f"GitHub is making {response.data.get('full_name')}; it takes a moment.",
            uri=target.uri,
            url=response.data.get("html_url"),
        )

    async def delete(self, repo: WriteRepo) -> Done:
        await self.api.write("DELETE", repo.path, f"repository `{repo.full_name}`")
        return Done(done=f"Deleted {repo.full_name}.")

    async def _is_own(self, repo: Repo) -> bool:
        """Return whether the owner of `repo` is the token's user."""
        user = await self.api.get("/user", "the user of this token", internal=True)
        return str(user.data.get("login", "")).lower() == repo.owner.lower()
