"""Tools for dependencies and duplicates of issues, and for assigning one to Copilot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.errors import Invalid
from mcp_batteries.server.declaration.decorators import tool
from mcp_github.models import Done, Listing
from mcp_github.policy import Policy, Repo
from mcp_github.requests.work.issue_relations import DependencyAction, IssueRelations
from mcp_github.tools.arguments import (
    Limit,
    Number,
    OptionalBody,
    OptionalNumber,
    OptionalRefText,
    OptionalTitle,
    RepoText,
    parse_ref,
)

__all__ = ["IssueRelationTools"]


@dataclass(frozen=True)
class IssueRelationTools:
    policy: Policy
    relations: IssueRelations

    @tool("Set what an issue waits for", toolset="planning", effect="write", idempotent=True, open_world=True)
    async def edit_dependency(
        self,
        repo: RepoText,
        number: Number,
        blocked_by: Number,
        action: DependencyAction = "add",
        other_repo: Annotated[str | None, Field(description="If elsewhere")] = None,
    ) -> Done:
        """Mark an issue as blocked by another, or no longer.

        `get_issue` shows both directions. Parts of an issue: `edit_sub_issue`.
        """
        trusted_repo = self.policy.write_repo(repo)
        other: Repo = trusted_repo
        if other_repo:
            other = self.policy.repo(other_repo)
        return await self.relations.edit_dependency(trusted_repo, number, other, blocked_by, action)

    @tool("Find duplicates", toolset="planning", open_world=True)
    async def find_duplicates(
        self,
        repo: RepoText,
        number: OptionalNumber = None,
        title: OptionalTitle = None,
        body: OptionalBody = None,
        limit: Limit = 10,
    ) -> Listing:
        """Find issues that may say the same as issue `number`, or as one with this title and body would.

        Compares words, of closed ones too. Your own words: `search_github`.
        """
        if (number is None) == (title is None):
            raise Invalid("One of `number` and `title` has to be given.")
        trusted_repo = self.policy.repo(repo)
        if number is not None:
            return await self.relations.find_duplicates_of(trusted_repo, number, limit=limit)
        return await self.relations.find_duplicates_of_text(trusted_repo, title or "", body or "", limit=limit)

    @tool("Hand to Copilot", toolset="planning", effect="write", open_world=True)
    async def run_copilot(
        self,
        repo: RepoText,
        number: Number,
        base: OptionalRefText = None,
        instructions: Annotated[OptionalBody, Field(description="Beside what the issue says")] = None,
    ) -> Done:
        """Have GitHub's Copilot work on an issue: it starts from the branch `base` and opens a pull request."""
        trusted_repo = self.policy.write_repo(repo)
        return await self.relations.assign_copilot(trusted_repo, number, parse_ref(self.policy, base), instructions)
