"""Alerts and advisories, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from mcp_batteries.errors import Invalid
from mcp_batteries.server.declare import tool
from mcp_github.models import Listing, Record
from mcp_github.policy import Policy
from mcp_github.requests.automation.security_alerts import Alerts, Security
from mcp_github.tools.arguments import Cursor, Fields, Limit, Number, OptionalRef, OptionalRepo, RepoName, refuse_beside

__all__ = ["SecurityTools"]

Severity = Annotated[str | None, Field(description="low, medium, high or critical")]


@dataclass(frozen=True)
class SecurityTools:
    policy: Policy
    security: Security

    @tool("List security alerts", toolset="security", open_world=True)
    async def list_alerts(
        self,
        repo: RepoName,
        kind: Alerts,
        state: Annotated[str | None, Field(description="open, fixed, dismissed or resolved")] = None,
        severity: Severity = None,
        ref: OptionalRef = None,
        fields: Fields = None,
        limit: Limit = 30,
        cursor: Cursor = None,
    ) -> Listing:
        """List alerts: code scanning, found secrets (never the secrets themselves), dependencies, code quality.

        One with its cure: `get_alert`.
        """
        if kind != "code_scanning":
            refuse_beside(f"kind={kind}", ref=ref)
        at = self.policy.ref(ref).name if ref else None
        return await self.security.list(
            self.policy.repo(repo), kind, state=state, severity=severity, ref=at, fields=fields, limit=limit,
            cursor=cursor,
        )  # fmt: skip

    @tool("Get a security alert", toolset="security", open_world=True)
    async def get_alert(self, repo: RepoName, kind: Alerts, number: Number) -> Record:
        """Get one alert: where it is, how severe, what mends it. Its number is from `list_alerts`."""
        return await self.security.get(self.policy.repo(repo), kind, number)

    @tool("List advisories", toolset="security", open_world=True)
    async def list_advisories(
        self,
        repo: OptionalRepo = None,
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
        if repo is not None or org is not None:
            asked = {"package": package, "ecosystem": ecosystem, "severity": severity, "advisory": advisory}
            refuse_beside("`repo` or `org`, whose advisories come all", **asked)
            place = self.policy.repo(repo) if repo is not None else self.policy.owner(org or "")
            return await self.security.advisories(place, {}, fields=fields, limit=limit, cursor=cursor)
        params: dict[str, Any] = {"affects": package, "ecosystem": ecosystem, "severity": severity}
        if advisory:
            params["cve_id" if advisory.upper().startswith("CVE") else "ghsa_id"] = advisory
        return await self.security.advisories(None, params, fields=fields, limit=limit, cursor=cursor)
