"""Publishing releases; reading them is among `repositories`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcp_batteries.errors import quote
from mcp_github.engine.api import Api
from mcp_github.models import Done
from mcp_github.policy import Ref, WriteRepo

__all__ = ["Releases"]


@dataclass(frozen=True)
class Releases:
    api: Api

    async def create(self, repo: WriteRepo, body: dict[str, Any]) -> Done:
        what = f"release {quote(str(body['tag_name']))} of `{repo.full}`"
        made = await self.api.write("POST", f"{repo.path}/releases", what, body, repo=repo)
        return self._done(repo, "Created", made.data)

    async def edit(self, repo: WriteRepo, tag: Ref, changes: dict[str, Any]) -> Done:
        what = f"release {quote(tag.name)} of `{repo.full}`"
        made = await self.api.write(
            "PATCH", f"{repo.path}/releases/{await self._id(repo, tag)}", what, changes, repo=repo
        )
        return self._done(repo, "Changed", made.data)

    async def delete(self, repo: WriteRepo, tag: Ref) -> Done:
        what = f"release {quote(tag.name)} of `{repo.full}`"
        await self.api.write("DELETE", f"{repo.path}/releases/{await self._id(repo, tag)}", what, repo=repo)
        return Done(done=f"Deleted release {tag.name}; the tag stays.")

    async def _id(self, repo: WriteRepo, tag: Ref) -> int:
        what = f"release {quote(tag.name)} of `{repo.full}`"
        found = await self.api.get(f"{repo.path}/releases/tags/{tag.path}", what, quiet=True)
        return int(found.data["id"])

    @staticmethod
    def _done(repo: WriteRepo, verb: str, data: dict[str, Any]) -> Done:
        tag = data.get("tag_name")
        return Done(done=f"{verb} release {tag}.", uri=f"{repo.uri}/releases/{tag}", url=data.get("html_url"))
