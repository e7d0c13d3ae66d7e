"""Stars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_github.client.api import Api
from mcp_github.listing.columns import REPOSITORY
from mcp_github.listing.pages import Shape, listing, shown
from mcp_github.models import Done, Listing
from mcp_github.policy import Owner, WriteRepo

__all__ = ["Stars"]

_STARRED = Shape({**REPOSITORY.getters, "starred_at": "starred_at"}, ("repo", "description", "language", "starred_at"))


@dataclass(frozen=True)
class Stars:
    api: Api

    async def list(
        self, user: Owner | None, *, fields: Sequence[str] | None, limit: int, cursor: str | None
    ) -> Listing:
        """What is starred of what is served, the latest first."""
        path, whose = ("/user", "you") if user is None else (f"/users/{user}", f"`{user.login}`")
        return await listing(
            self.api, f"{path}/starred", f"what {whose} starred", _STARRED, fields=fields, limit=limit,
            cursor=cursor, accept="application/vnd.github.star+json",
            keep=lambda items: shown(self.api, items, key="full_name", private=lambda item: item.get("private", False)),
            inside=lambda data: [{**item.get("repo", item), "starred_at": item.get("starred_at")} for item in data],
        )  # fmt: skip

    async def edit(self, repo: WriteRepo, *, starred: bool) -> Done:
        verb, path = "PUT" if starred else "DELETE", repo.path.removeprefix("/repos")
        await self.api.write(verb, f"/user/starred{path}", f"repository `{repo.full}`", repo=repo)
        return Done(done=f"{'Starred' if starred else 'Unstarred'} {repo.full}.", uri=repo.uri)
