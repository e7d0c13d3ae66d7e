"""The user's inbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mcp_batteries.errors import NotFound
from mcp_github.client.api import Api
from mcp_github.listing.pages import Shape, listing, pick, plain, shown
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Repo, WriteRepo

__all__ = ["Action", "Notifications", "Watching"]

Action = Literal["read", "done", "ignore", "unsubscribe"]
Watching = Literal["watching", "participating", "ignoring"]


_REPO = "repository.full_name"


def _is_private(item: Mapping[str, Any]) -> bool:
    return bool(pick(item, "repository.private"))


def _number(item: Mapping[str, Any]) -> int | None:
    last = str(pick(item, "subject.url") or "").rpartition("/")[2]
    return int(last) if last.isdecimal() else None


NOTE = Shape(
    {**plain("id", "reason", "unread", "updated_at"), "repo": _REPO, "kind": "subject.type",
     "title": "subject.title", "number": _number},
    ("id", "repo", "kind", "number", "title", "reason", "unread", "updated_at"),
)  # fmt: skip


@dataclass(frozen=True)
class Notifications:
    api: Api

    async def list(
        self, repo: Repo | None, params: Mapping[str, Any], *, fields: Sequence[str] | None, limit: int,
        cursor: str | None,
    ) -> Listing:  # fmt: skip
        where = "/notifications" if repo is None else f"{repo.path}/notifications"
        return await listing(
            self.api, where, "your notifications", NOTE, params=params, fields=fields, limit=min(limit, 50),
            cursor=cursor, keep=lambda items: shown(self.api, items, key=_REPO, private=_is_private),
        )  # fmt: skip

    async def act(self, thread: int, action: Action) -> Done:
        """Mark one as read or done, or hear no more of it."""
        where, what = f"/notifications/threads/{thread}", f"notification `{thread}`"
        if self.api.policy.allowed:
            found = await self.api.get(where, what, quiet=True)
            self.api.policy.require_served(str(pick(found.data, _REPO) or ""), what)
        if action == "read":
            await self.api.write("PATCH", where, what)
        elif action == "done":
            await self.api.write("DELETE", where, what)
        elif action == "ignore":
            await self.api.write("PUT", f"{where}/subscription", what, {"ignored": True})
        else:
            await self.api.write("DELETE", f"{where}/subscription", what)
        return Done(done=f"Notification {thread}: {action}.")

    async def watching(self, repo: Repo) -> Record:
        """Whether one hears of everything in a repository."""
        what = f"your subscription of `{repo.full}`"
        try:
            found = (await self.api.get(f"{repo.path}/subscription", what, quiet=True)).data
        except NotFound:
            return Record(data={"repo": repo.full, "state": "participating"})
        state = "ignoring" if found.get("ignored") else "watching" if found.get("subscribed") else "participating"
        return Record(data={"repo": repo.full, "state": state, "since": found.get("created_at")})

    async def watch(self, repo: WriteRepo, state: Watching) -> Done:
        """Hear of everything in a repository, of nothing, or of what one takes part in."""
        where, what = f"{repo.path}/subscription", f"your subscription of `{repo.full}`"
        if state == "participating":
            await self.api.write("DELETE", where, what, repo=repo)
        else:
            body = {"subscribed": state == "watching", "ignored": state == "ignoring"}
            await self.api.write("PUT", where, what, body, repo=repo)
        return Done(done=f"{repo.full}: {state}.")

    async def read_all(self, repo: WriteRepo | None, before: str | None) -> Done:
        """Mark everything as read that is older than `before`, of one repository or of all."""
        body = {"last_read_at": before} if before else {}
        where = "/notifications" if repo is None else f"{repo.path}/notifications"
        await self.api.write("PUT", where, "your notifications", body)
        return Done(done="Marked as read.")
