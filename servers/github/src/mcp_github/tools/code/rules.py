"""Rulesets and custom properties, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.server.declaration.decorators import tool
from mcp_github.listing.pages import PageOptions
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Policy
from mcp_github.requests.code.rules import RuleKind, Rules
from mcp_github.tools.arguments import Cursor, Fields, Limit, Number, RepoText, parse_ref, refuse_beside

__all__ = ["RuleTools"]

Values = Annotated[dict[str, str | list[str] | None], Field(min_length=1, description="By name; null clears")]


@dataclass(frozen=True)
class RuleTools:
    policy: Policy
    rules: Rules

    @tool("List rules or properties", toolset="rules", open_world=True)
    async def list_rules(
        self,
        repo: RepoText,
        kind: RuleKind = "rulesets",
        branch: Annotated[str | None, Field(description="For its rules")] = None,
        fields: Fields = None,
        limit: Limit = 30,
        cursor: Cursor = None,
    ) -> Listing:
        """List a repository's rulesets, the rules that apply to a branch, or its custom properties (`kind`).

        One ruleset: `get_ruleset`.
        """
        if kind != "branch":
            refuse_beside(f"kind={kind}", branch=branch)
        trusted_branch = parse_ref(self.policy, branch)
        return await self.rules.list(self.policy.repo(repo), kind, trusted_branch, PageOptions(fields, limit, cursor))

    @tool("Get a ruleset", toolset="rules", open_world=True)
    async def get_ruleset(self, repo: RepoText, ruleset: Number) -> Record:
        """Get a ruleset: its rules, where it applies, who may bypass it. Ids: `list_rules`."""
        return await self.rules.get(self.policy.repo(repo), ruleset)

    @tool("Set custom properties", toolset="rules", effect="destroy", idempotent=True, open_world=True)
    async def write_properties(self, repo: RepoText, properties: Values) -> Done:
        """Set custom properties that the organisation has; others stay. To see them use `list_rules`."""
        return await self.rules.write_properties(self.policy.write_repo(repo), properties)
