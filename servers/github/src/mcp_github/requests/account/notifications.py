"""The user's inbox, and what of a repository they are notified of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from mcp_batteries.errors import NotFound
from mcp_github.client.api import Api
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page, keep_served
from mcp_github.listing.projections import Item, Projection, pick, same_names
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Repo, WriteRepo

__all__ = ["NotificationAction", "Notifications", "SubscriptionState"]

NotificationAction = Literal["read", "done", "ignore", "unsubscribe"]
SubscriptionState = Literal["watching", "participating", "ignoring"]

# GitHub lists no more of them on a page.
_MAX_LIMIT = 50
_REPO_PATH = "repository.full_name"


def _is_private(notification: Item) -> bool:
    return bool(pick(notification, "repository.private"))


def _number_of(notification: Item) -> int | None:
    """Return the number of the issue or pull request that a notification is about."""
    number = str(pick(notification, "subject.url") or "").rpartition("/")[2]
    if not number.isdecimal():
        return None
    return int(number)


_NOTIFICATION = Projection(
    {
        **same_names("id", "reason", "unread", "updated_at"),
        "repo": _REPO_PATH,
        "kind": "subject.type",
        "title": "subject.title",
        "number": _number_of,
    },
    ("id", "repo", "kind", "number", "title", "reason", "unread", "updated_at"),
)


@dataclass(frozen=True)
class Notifications:
    api: Api

    async def list(self, repo: Repo | None, params: Mapping[str, Any], options: PageOptions) -> Listing:
        def select(items: Sequence[Item]) -> Sequence[Item]:
            return keep_served(self.api, items, repo_getter=_REPO_PATH, private_getter=_is_private)

        query = ListQuery(_path(repo), "your notifications", _NOTIFICATION, params=params, select=select)
        return await fetch_page(self.api, query, replace(options, limit=min(options.limit, _MAX_LIMIT)))

    async def settle(self, thread: int, action: NotificationAction) -> Done:
        """Mark a notification as read or done, or hear no more of it."""
        path = f"/notifications/threads/{thread}"
        description = f"notification `{thread}`"
        if self.api.policy.allow_list:
            notification = await self.api.get(path, description, internal=True)
            self.api.policy.require_served(str(pick(notification.data, _REPO_PATH) or ""), description)
        match action:
            case "read":
                await self.api.write("PATCH", path, description)
            case "done":
                await self.api.write("DELETE", path, description)
            case "ignore":
                await self.api.write("PUT", f"{path}/subscription", description, {"ignored": True})
            case "unsubscribe":
                await self.api.write("DELETE", f"{path}/subscription", description)
        return Done(done=f"Notification {thread}: {action}.")

    async def settle_all(self, repo: WriteRepo | None, before: str | None) -> Done:
        """Mark everything as read that is older than `before`, of one repository or of all."""
        body: dict[str, str] = {}
        if before:
            body["last_read_at"] = before
        await self.api.write("PUT", _path(repo), "your notifications", body)
        return Done(done="Marked as read.")

    async def get_subscription(self, repo: Repo) -> Record:
        """Return whether the user is notified of everything in a repository."""
        description = f"your subscription of `{repo.full_name}`"
        data: dict[str, Any] = {"repo": repo.full_name, "state": "participating"}
        try:
            response = await self.api.get(f"{repo.path}/subscription", description, internal=True)
        except NotFound:
            return Record(data=data)
        subscription = response.data
        if subscription.get("ignored"):
            data["state"] = "ignoring"
        elif subscription.get("subscribed"):
            data["state"] = "watching"
        data["since"] = subscription.get("created_at")
        return Record(data=data)

    async def set_subscription(self, repo: WriteRepo, state: SubscriptionState) -> Done:
        """Have the user notified of everything in a repository, of nothing, or of what they take part in."""
        path = f"{repo.path}/subscription"
        description = f"your subscription of `{repo.full_name}`"
        if state == "participating":
            await self.api.write("DELETE", path, description, repo=repo)
        else:
            body = {"subscribed": state == "watching", "ignored": state == "ignoring"}
            await self.api.write("PUT", path, description, body, repo=repo)
        return Done(done=f"{repo.full_name}: {state}.")


def _path(repo: Repo | None) -> str:
    if repo is None:
        return "/notifications"
    return f"{repo.path}/notifications"
