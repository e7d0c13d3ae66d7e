"""The user's inbox, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.errors import Invalid
from mcp_batteries.server.declare import tool
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Policy
from mcp_github.requests.account.notifications import Action, Notifications, Watching
from mcp_github.tools.arguments import Cursor, Fields, Limit, OptionalRepo, RepoName, Since

__all__ = ["NotificationTools"]


@dataclass(frozen=True)
class NotificationTools:
    policy: Policy
    notifications: Notifications

    @tool("List notifications", toolset="notifications", open_world=True)
    async def list_notifications(
        self,
        repo: OptionalRepo = None,
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
        where = self.policy.repo(repo) if repo else None
        return await self.notifications.list(where, params, fields=fields, limit=limit, cursor=cursor)

    @tool("Settle notifications", toolset="notifications", effect="write", idempotent=True, open_world=True)
    async def edit_notification(
        self,
        action: Action,
        notification: Annotated[int | None, Field(ge=1, description="Its id; all of them without")] = None,
        repo: OptionalRepo = None,
        before: Since = None,
    ) -> Done:
        """Mark a notification as read or done, or hear no more of it; without an id, mark all as read.

        Ids: `list_notifications`.
        """
        policy = self.policy
        if notification is not None:
            policy.require_write()
            return await self.notifications.act(notification, action)
        if action != "read":
            raise Invalid(f"`{action}` is for one notification.", "Pass its id as `notification`.")
        if repo is None:
            policy.require_everything("Notifications of all repositories")
        where = policy.write_repo(repo) if repo else None
        return await self.notifications.read_all(where, before)

    @tool("Get a subscription", toolset="notifications", open_world=True)
    async def get_subscription(self, repo: RepoName) -> Record:
        """Get whether you watch or ignore a repository. To change it: `edit_subscription`."""
        return await self.notifications.watching(self.policy.repo(repo))

    @tool("Watch a repository", toolset="notifications", effect="write", idempotent=True, open_world=True)
    async def edit_subscription(self, repo: RepoName, state: Watching) -> Done:
        """Set what of a repository you are notified of: everything, what you take part in, or nothing.

        As it is now: `get_subscription`.
        """
        return await self.notifications.watch(self.policy.write_repo(repo), state)
