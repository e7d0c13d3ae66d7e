"""The user's inbox, and what of a repository they are notified of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from mcp_batteries.errors import Invalid, NotFound
from mcp_batteries.server.declaration.decorators import tool
from mcp_github.client.api import Api
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page, keep_served
from mcp_github.listing.projections import Item, Projection, pick, same_names
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Repo, WriteRepo
from mcp_github.requests.release_commits import find_tag
from mcp_github.tools.arguments import (
    Cursor,
    Fields,
    Limit,
    OptionalRepoName,
    OptionalWriteRepoName,
    RepoName,
    Since,
    WriteRepoName,
)

__all__ = ["edit_notification", "edit_subscription", "fetch_inbox", "get_subscription", "list_notifications"]

NotificationAction = Literal["read", "done", "ignore", "unsubscribe"]
SubscriptionState = Literal["watching", "participating", "ignoring"]

# GitHub lists no more of them on a page.
_MAX_LIMIT = 50
# Of a page, the releases whose tags are looked up.
_MAX_RELEASES = 10
_REPO_PATH = "repository.full_name"


def _is_private(notification: Item) -> bool:
    return bool(pick(notification, "repository.private"))


def _number_of(notification: Item) -> int | None:
    """Return the number of the issue or pull request that a notification is about; a release has an id of its own."""
    if pick(notification, "subject.type") == "Release":
        return None
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


@tool("List notifications", toolset="notifications", open_world=True)
async def list_notifications(
    api: Api,
    *,
    repo: OptionalRepoName = None,
    include_read: bool = False,
    participating: bool = False,
    since: Since = None,
    fields: Fields = None,
    limit: Limit = 30,
    cursor: Cursor = None,
) -> Listing:
    """List your notifications; `participating` leaves out what you only watch.

    To settle them: `edit_notification`.
    """
    params = {"all": include_read, "participating": participating, "since": since}
    return await fetch_inbox(api, repo, params, PageOptions(fields, limit, cursor))


@tool("Settle notifications", toolset="notifications", effect="write", idempotent=True, open_world=True)
async def edit_notification(
    api: Api,
    *,
    action: NotificationAction,
    notification: Annotated[int | None, Field(ge=1, description="Its id; all of them without")] = None,
    repo: OptionalWriteRepoName = None,
    before: Since = None,
) -> Done:
    """Mark a notification as read or done, or hear no more of it; without an id, mark all as read.

    Ids: `list_notifications`.
    """
    if notification is not None:
        return await _settle(api, notification, action)
    if action != "read":
        raise Invalid(f"`{action}` is for one notification.", "Pass its id as `notification`.")
    return await _settle_all(api, repo, before)


@tool("Get a subscription", toolset="notifications", open_world=True)
async def get_subscription(api: Api, *, repo: RepoName) -> Record:
    """Get whether you watch or ignore a repository. To change it: `edit_subscription`."""
    data: dict[str, Any] = {"repo": repo.full_name, "state": "participating"}
    try:
        response = await api.get(f"{repo.path}/subscription", _describe_subscription(repo), internal=True)
    except NotFound:
        return Record(data=data)
    subscription = response.data
    if subscription.get("ignored"):
        data["state"] = "ignoring"
    elif subscription.get("subscribed"):
        data["state"] = "watching"
    data["since"] = subscription.get("created_at")
    return Record(data=data)


@tool("Watch a repository", toolset="notifications", effect="write", idempotent=True, open_world=True)
async def edit_subscription(api: Api, *, repo: WriteRepoName, state: SubscriptionState) -> Done:
    """Set what of a repository you are notified of: everything, what you take part in, or nothing.

    As it is now: `get_subscription`.
    """
    path = f"{repo.path}/subscription"
    description = _describe_subscription(repo)
    if state == "participating":
        await api.write("DELETE", path, description, repo=repo)
    else:
        body = {"subscribed": state == "watching", "ignored": state == "ignoring"}
        await api.write("PUT", path, description, body, repo=repo)
    return Done(done=f"{repo.full_name}: {state}.")


async def fetch_inbox(api: Api, repo: Repo | None, params: Mapping[str, Any], options: PageOptions) -> Listing:
    """Return a page of the notifications of what is served, or of one repository.

    Args:
        params: as GitHub names them: all, participating, since.
    """

    releases: dict[str, Item] = {}

    def select(items: Sequence[Item]) -> Sequence[Item]:
        served_items = keep_served(api, items, repo_getter=_REPO_PATH, private_getter=_is_private)
        for item in served_items:
            if pick(item, "subject.type") == "Release":
                releases[str(item["id"])] = item
        return served_items

    query = ListQuery(_path(repo), "your notifications", _NOTIFICATION, params=params, select=select)
    page = await fetch_page(api, query, replace(options, limit=min(options.limit, _MAX_LIMIT)))
    if not releases or not {"id", "number"} <= set(page.columns):
        return page
    id_column = page.columns.index("id")
    number_column = page.columns.index("number")
    rows = [list(row) for row in page.rows]
    for row in [row for row in rows if str(row[id_column]) in releases][:_MAX_RELEASES]:
        row[number_column] = await _find_tag(api, releases[str(row[id_column])])
    return page.model_copy(update={"rows": rows})


async def _find_tag(api: Api, notification: Item) -> str | None:
    """Return the tag of the release that a notification is about; None if it is not shown."""
    release = str(pick(notification, "subject.url") or "").rpartition("/")[2]
    if not release.isdecimal():
        return None
    return await find_tag(api, str(pick(notification, _REPO_PATH)), int(release))


async def _settle(api: Api, thread: int, action: NotificationAction) -> Done:
    """Mark a notification as read or done, or hear no more of it."""
    api.policy.require_write()
    path = f"/notifications/threads/{thread}"
    description = f"notification `{thread}`"
    if api.policy.allow_list:
        notification = await api.get(path, description, internal=True)
        api.policy.require_served(str(pick(notification.data, _REPO_PATH) or ""), description)
    match action:
        case "read":
            await api.write("PATCH", path, description)
        case "done":
            await api.write("DELETE", path, description)
        case "ignore":
            await api.write("PUT", f"{path}/subscription", description, {"ignored": True})
        case "unsubscribe":
            await api.write("DELETE", f"{path}/subscription", description)
    return Done(done=f"Notification {thread}: {action}.")


async def _settle_all(api: Api, repo: WriteRepo | None, before: str | None) -> Done:
    """Mark everything as read that is older than `before`, of one repository or of all."""
    if repo is None:
        api.policy.require_no_allow_list("Notifications of all repositories")
    body: dict[str, str] = {}
    if before:
        body["last_read_at"] = before
    await api.write("PUT", _path(repo), "your notifications", body)
    return Done(done="Marked as read.")


def _path(repo: Repo | None) -> str:
    if repo is None:
        return "/notifications"
    return f"{repo.path}/notifications"


def _describe_subscription(repo: Repo) -> str:
    return f"your subscription of `{repo.full_name}`"
