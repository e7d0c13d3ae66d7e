"""The user's inbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mcp_batteries.errors import Refused
from mcp_github.engine.api import Api
from mcp_github.engine.pages import Shape, listing, pick, plain
from mcp_github.models import Done, Listing
from mcp_github.policy import Repo, WriteRepo

__all__ = ["Action", "Notifications"]

Action = Literal["read", "done", "ignore", "unsubscribe"]


def _number(item: Mapping[str, Any]) -> int | None:
    last = str(pick(item, "subject.url") or "").rpartition("/")[2]
    return int(last) if last.isdecimal() else None


NOTE = Shape(
    {**plain("id", "reason", "unread", "updated_at"), "repo": "repository.full_name", "kind": "subject.type",
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
        api = self.api

        def served(item: Mapping[str, Any]) -> bool:
            full = str(pick(item, "repository.full_name") or "")
            if not api.policy.permits(*(full.split("/", 1) if "/" in full else (full, ""))):
                return False
            api.flow.saw(full)
            api.flow.knows(full, public=not pick(item, "repository.private"))
            return True

        where = "/notifications" if repo is None else f"{repo.path}/notifications"
        return await listing(
            api, where, "your notifications", NOTE, params=params, keep=served, fields=fields, limit=min(limit, 50),
            cursor=cursor,
        )  # fmt: skip

    async def act(self, thread: int, action: Action) -> Done:
        """Mark one as read or done, or hear no more of it."""
        where, what = f"/notifications/threads/{thread}", f"notification `{thread}`"
        if self.api.policy.allowed:
            found = await self.api.get(where, what, quiet=True)
            full = str(pick(found.data, "repository.full_name") or "/")
            if not self.api.policy.permits(*full.split("/", 1)):
                raise Refused(f"The {what} is of a repository that is not served here.")
        if action == "read":
            await self.api.write("PATCH", where, what)
        elif action == "done":
            await self.api.write("DELETE", where, what)
        elif action == "ignore":
            await self.api.write("PUT", f"{where}/subscription", what, {"ignored": True})
        else:
            await self.api.write("DELETE", f"{where}/subscription", what)
        return Done(done=f"Notification {thread}: {action}.")

    async def read_all(self, repo: WriteRepo | None, before: str | None) -> Done:
        """Mark everything as read that is older than `before`, of one repository or of all."""
        body = {"last_read_at": before} if before else {}
        where = "/notifications" if repo is None else f"{repo.path}/notifications"
        await self.api.write("PUT", where, "your notifications", body)
        return Done(done="Marked as read.")
