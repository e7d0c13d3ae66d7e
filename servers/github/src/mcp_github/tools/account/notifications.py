"""The user's inbox, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.errors import Invalid
from mcp_batteries.server.declaration.decorators import tool
from mcp_github.listing.pages import PageOptions
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Policy
from mcp_github.requests.account.notifications import NotificationAction, Notifications, SubscriptionState
from mcp_github.tools.arguments import Cursor, Fields, Limit, OptionalRepoText, RepoText, Since

__all__ = ["NotificationTools"]


@dataclass(frozen=True)
class NotificationTools:
    policy: Policy
    notifications: Notifications

    @tool("List notifications", toolset="notifications", open_world=True)
    async def list_notifications(
        self,
        repo: OptionalRepoText = None,
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
        trusted_repo = None
        if repo:
            trusted_repo = self.policy.repo(repo)
        return await self.notifications.list(trusted_repo, params, PageOptions(fields, limit, cursor))

    @tool("Settle notifications", toolset="notifications", effect="write", idempotent=True, open_world=True)
    async def edit_notification(
        self,
        action: NotificationAction,
        notification: Annotated[int | None, Field(ge=1, description="Its id; all of them without")] = None,
        repo: OptionalRepoText = None,
        before: Since = None,
    ) -> Done:
        """Mark a notification as read or done, or hear no more of it; without an id, mark all as read.

        Ids: `list_notifications`.
        """
        if notification is not None:
            self.policy.require_write()
            return await self.notifications.settle(notification, action)
        if action != "read":
            raise Invalid(f"`{action}` is for one notification.", "Pass its id as `notification`.")
        if repo is None:
            self.policy.require_no_allow_list("Notifications of all repositories")
        trusted_repo = None
        if repo:
            trusted_repo = self.policy.write_repo(repo)
        return await self.notifications.settle_all(trusted_repo, before)

    @tool("Get a subscription", toolset="notifications", open_world=True)
    async def get_subscription(self, repo: RepoText) -> Record:
        """Get whether you watch or ignore a repository. To change it: `edit_subscription`."""
        return await self.notifications.get_subscription(self.policy.repo(repo))

    @tool("Watch a repository", toolset="notifications", effect="write", idempotent=True, open_world=True)
    async def edit_subscription(self, repo: RepoText, state: SubscriptionState) -> Done:
        """Set what of a repository you are notified of: everything, what you take part in, or nothing.

        As it is now: `get_subscription`.
        """
        return await self.notifications.set_subscription(self.policy.write_repo(repo), state)
