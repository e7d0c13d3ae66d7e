"""Alerts and advisories, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from mcp_batteries.errors import Invalid
from mcp_batteries.server.declaration.decorators import tool
from mcp_github.listing.pages import PageOptions
from mcp_github.models import Listing, Record
from mcp_github.policy import Policy
from mcp_github.requests.automation.security_alerts import AlertKind, SecurityAlerts
from mcp_github.tools.arguments import (
    Cursor,
    Fields,
    Limit,
    Number,
    OptionalRefText,
    OptionalRepoText,
    RepoText,
    refuse_beside,
)

__all__ = ["SecurityTools"]

Severity = Annotated[str | None, Field(description="low, medium, high or critical")]


@dataclass(frozen=True)
class SecurityTools:
    policy: Policy
    alerts: SecurityAlerts

    @tool("List security alerts", toolset="security", open_world=True)
    async def list_alerts(
        self,
        repo: RepoText,
        kind: AlertKind,
        state: Annotated[str | None, Field(description="open, fixed, dismissed or resolved")] = None,
        severity: Severity = None,
        ref: OptionalRefText = None,
        fields: Fields = None,
        limit: Limit = 30,
        cursor: Cursor = None,
    ) -> Listing:
        """List alerts: code scanning, found secrets (never the secrets themselves), dependencies, code quality.

        One with its cure: `get_alert`.
        """
        if kind != "code_scanning":
            refuse_beside(f"kind={kind}", ref=ref)
        ref_name = None
        if ref:
            ref_name = self.policy.ref(ref).name
        return await self.alerts.list(
            self.policy.repo(repo), kind, PageOptions(fields, limit, cursor), state=state, severity=severity,
            ref=ref_name,
        )  # fmt: skip

    @tool("Get a security alert", toolset="security", open_world=True)
    async def get_alert(self, repo: RepoText, kind: AlertKind, number: Number) -> Record:
        """Get one alert: where it is, how severe, what mends it. Its number is from `list_alerts`."""
        return await self.alerts.get(self.policy.repo(repo), kind, number)

    @tool("List advisories", toolset="security", open_world=True)
    async def list_advisories(
        self,
        repo: OptionalRepoText = None,
        org: Annotated[str | None, Field(description="All of its repositories")] = None,
        package: Annotated[str | None, Field(description="name or name@version")] = None,
        ecosystem: Annotated[str | None, Field(description="Such as pip or npm")] = None,
        severity: Severity = None,
        advisory: Annotated[str | None, Field(description="GHSA or CVE id")] = None,
        fields: Fields = None,
        limit: Limit = 20,
        cursor: Cursor = None,
    ) -> Listing:
        """List security advisories of a repository or organisation, or search GitHub's database by the filters.

        What concerns your own code: `list_alerts`.
        """
        if repo is not None and org is not None:
            raise Invalid("Only one of `repo` and `org` can be given.")
        options = PageOptions(fields, limit, cursor)
        if repo is not None or org is not None:
            refuse_beside(
                "`repo` or `org`, whose advisories come all", package=package, ecosystem=ecosystem, severity=severity,
                advisory=advisory,
            )  # fmt: skip
        if repo is not None:
            return await self.alerts.list_advisories(self.policy.repo(repo), options)
        if org is not None:
            return await self.alerts.list_advisories(self.policy.owner(org), options)
        filters: dict[str, Any] = {"affects": package, "ecosystem": ecosystem, "severity": severity}
        if advisory and advisory.upper().startswith("CVE"):
            filters["cve_id"] = advisory
        elif advisory:
            filters["ghsa_id"] = advisory
        return await self.alerts.search_advisories(filters, options)
