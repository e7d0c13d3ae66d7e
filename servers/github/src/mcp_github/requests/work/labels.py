"""Creates, changes and removes labels and milestones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote as percent

from mcp_batteries.errors import Invalid, quote
from mcp_github.client.api import Api
from mcp_github.listing.columns import LABEL, MILESTONE
from mcp_github.models import Done
from mcp_github.policy import WriteRepo

__all__ = ["Labels"]


@dataclass(frozen=True)
class Labels:
    api: Api

    async def create(self, repo: WriteRepo, body: dict[str, Any]) -> Done:
        description = _describe(repo, str(body["name"]))
        response = await self.api.write("POST", f"{repo.path}/labels", description, body, repo=repo)
        return Done(done=f"Created label {response.data['name']}.", data=LABEL.to_record(response.data))

    async def edit(self, repo: WriteRepo, name: str, changes: dict[str, Any]) -> Done:
        response = await self.api.write("PATCH", _path(repo, name), _describe(repo, name), changes, repo=repo)
        return Done(done=f"Changed label {response.data['name']}.", data=LABEL.to_record(response.data))

    async def delete(self, repo: WriteRepo, name: str) -> Done:
        await self.api.write("DELETE", _path(repo, name), _describe(repo, name), repo=repo)
        return Done(done=f"Deleted label {name}.")

    async def create_milestone(self, repo: WriteRepo, body: dict[str, Any]) -> Done:
        if "title" not in body:
            raise Invalid("A new milestone needs a `title`.")
        description = f"the milestones of `{repo.full_name}`"
        response = await self.api.write("POST", f"{repo.path}/milestones", description, body, repo=repo)
        return _milestone_done("Created", response.data)

    async def edit_milestone(self, repo: WriteRepo, number: int, changes: dict[str, Any]) -> Done:
        description = f"milestone `{number}` of `{repo.full_name}`"
        response = await self.api.write("PATCH", f"{repo.path}/milestones/{number}", description, changes, repo=repo)
        return _milestone_done("Changed", response.data)


def _milestone_done(verb: str, milestone: dict[str, Any]) -> Done:
    return Done(
        done=f"{verb} milestone {milestone['number']}.",
        url=milestone.get("html_url"),
        data=MILESTONE.to_record(milestone),
    )


def _path(repo: WriteRepo, name: str) -> str:
    if name in (".", ".."):
        raise Invalid(f"{quote(name)} is not a label.")
    return f"{repo.path}/labels/{percent(name, safe='')}"


def _describe(repo: WriteRepo, name: str) -> str:
    return f"label {quote(name)} of `{repo.full_name}`"
