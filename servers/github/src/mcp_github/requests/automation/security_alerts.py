"""Alerts and advisories. A found secret itself is never shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

from mcp_batteries.errors import Invalid
from mcp_github.client.api import Api
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page, keep_served
from mcp_github.listing.projections import Getter, Item, Projection, clip, pick, pluck, same_names
from mcp_github.models import Listing, Record
from mcp_github.policy import Owner, Repo
from mcp_github.safety.taint import alerts_key

__all__ = ["AlertKind", "SecurityAlerts"]

AlertKind = Literal["code_scanning", "secret_scanning", "dependabot", "code_quality"]

_MAX_PACKAGES = 5


def _repo_of(advisory: Item) -> str:
    """Return the `owner/name` in the address of an advisory."""
    return "/".join(str(advisory.get("html_url") or "").split("/")[3:5])


def _packages_of(advisory: Item) -> list[str]:
    """Return the first packages that an advisory is about, each with the versions."""
    packages: list[str] = []
    for vulnerability in cast("list[dict[str, Any]]", advisory.get("vulnerabilities") or [])[:_MAX_PACKAGES]:
        name = f"{pick(vulnerability, 'package.ecosystem')}:{pick(vulnerability, 'package.name')}"
        packages.append(f"{name} {vulnerability.get('vulnerable_version_range') or ''}".strip())
    return packages


_COMMON: dict[str, Getter] = {**same_names("number", "state", "created_at", "updated_at"), "url": "html_url"}
_CODE_SCANNING = Projection(
    {
        **_COMMON,
        "rule": "rule.id",
        "severity": "rule.security_severity_level",
        "level": "rule.severity",
        "about": "rule.description",
        "tool": "tool.name",
        "ref": "most_recent_instance.ref",
        "path": "most_recent_instance.location.path",
        "line": "most_recent_instance.location.start_line",
        "message": clip("most_recent_instance.message.text", 500),
        "dismissed": "dismissed_reason",
    },
    ("number", "state", "severity", "level", "rule", "path", "line", "created_at"),
)
_SECRET_SCANNING = Projection(
    {
        **_COMMON,
        "kind": "secret_type_display_name",
        "validity": "validity",
        "resolution": "resolution",
        "publicly_leaked": "publicly_leaked",
        "bypassed": "push_protection_bypassed",
        "path": "first_location_detected.path",
        "line": "first_location_detected.start_line",
    },
    ("number", "state", "kind", "validity", "path", "line", "created_at"),
)
_DEPENDABOT = Projection(
    {
        **_COMMON,
        "severity": "security_advisory.severity",
        "package": "dependency.package.name",
        "ecosystem": "dependency.package.ecosystem",
        "manifest": "dependency.manifest_path",
        "vulnerable": "security_vulnerability.vulnerable_version_range",
        "patched": "security_vulnerability.first_patched_version.identifier",
        "ghsa": "security_advisory.ghsa_id",
        "cve": "security_advisory.cve_id",
        "summary": "security_advisory.summary",
        "details": clip("security_advisory.description", 3000),
        "dismissed": "dismissed_reason",
    },
    ("number", "state", "severity", "package", "vulnerable", "patched", "manifest", "summary"),
)
_CODE_QUALITY = Projection(
    {
        **same_names("number", "state", "created_at"),
        "rule": "rule.id",
        "category": "rule.category",
        "level": "rule.severity",
        "about": "rule.title",
        "path": "location.path",
        "line": "location.start_line",
        "message": clip("message.text", 500),
        "help": clip("rule.help", 3000),
    },
    ("number", "state", "level", "category", "rule", "path", "line", "message"),
)
_ADVISORY = Projection(
    {
        "ghsa": "ghsa_id",
        "cve": "cve_id",
        **same_names("severity", "summary", "state", "published_at", "withdrawn_at"),
        "score": "cvss.score",
        "packages": _packages_of,
        "cwes": pluck("cwes", "cwe_id"),
        "repo": _repo_of,
        "details": clip("description", 3000),
        "url": "html_url",
    },
    ("ghsa", "cve", "severity", "summary", "packages", "published_at"),
)


class _AlertList(NamedTuple):
    """Where the alerts of a kind are, below a repository, and what is kept of one."""

    path: str
    projection: Projection


_ALERT_LISTS: Mapping[AlertKind, _AlertList] = {
    "code_scanning": _AlertList("code-scanning/alerts", _CODE_SCANNING),
    "secret_scanning": _AlertList("secret-scanning/alerts", _SECRET_SCANNING),
    "dependabot": _AlertList("dependabot/alerts", _DEPENDABOT),
    "code_quality": _AlertList("code-quality/findings", _CODE_QUALITY),
}


@dataclass(frozen=True)
class SecurityAlerts:
    api: Api

    async def list(
        self, repo: Repo, kind: AlertKind, options: PageOptions, *, state: str | None, severity: str | None,
        ref: str | None,
    ) -> Listing:  # fmt: skip
        self._record_read(repo)
        params: dict[str, Any] = {"state": state}
        match kind:
            case "secret_scanning":
                params["hide_secret"] = True
            case "dependabot":
                params["severity"] = severity
            case "code_scanning":
                params["ref"] = ref
            case "code_quality":
                pass
        if severity and kind != "dependabot":
            raise Invalid(f"`severity` chooses among alerts of dependabot, not of {kind}.", "Leave it out.")
        alerts = _ALERT_LISTS[kind]
        query = ListQuery(
            f"{repo.path}/{alerts.path}", f"the {kind} alerts of `{repo.full_name}`", alerts.projection,
            params=params, repo=repo,
        )  # fmt: skip
        return await fetch_page(self.api, query, options)

    async def get(self, repo: Repo, kind: AlertKind, number: int) -> Record:
        self._record_read(repo)
        alerts = _ALERT_LISTS[kind]
        params = None
        if kind == "secret_scanning":
            params = {"hide_secret": True}
        description = f"{kind} alert #{number} of `{repo.full_name}`"
        response = await self.api.get(f"{repo.path}/{alerts.path}/{number}", description, params, repo=repo)
        data = alerts.projection.to_record(response.data, list(alerts.projection.getters))
        return Record(removed=response.removed or None, data=data)

    async def list_advisories(self, place: Repo | Owner, options: PageOptions) -> Listing:
        """Return a page of the advisories of a repository, or of all of an organisation's."""
        self._record_read(place)
        if isinstance(place, Repo):
            query = ListQuery(f"{place.path}/security-advisories", "the advisories", _ADVISORY, repo=place)
        else:
            query = ListQuery(
                f"/orgs/{place}/security-advisories", "the advisories", _ADVISORY, select=self._select_served
            )
        return await fetch_page(self.api, query, options)

    async def search_advisories(self, filters: Mapping[str, Any], options: PageOptions) -> Listing:
        """Return a page of the advisories that GitHub reviewed.

        Args:
            filters: as GitHub names them: affects, ecosystem, severity, cve_id, ghsa_id.
        """
        query = ListQuery("/advisories", "the advisories", _ADVISORY, params=filters)
        return await fetch_page(self.api, query, options)

    def _select_served(self, advisories: Sequence[Item]) -> Sequence[Item]:
        return keep_served(self.api, advisories, repo_getter=_repo_of)

    def _record_read(self, place: Repo | Owner) -> None:
        """Put down that alerts or unpublished advisories are shown: private ones, whatever their repository is."""
        key = alerts_key(place)
        self.api.taint.record_visibility(key, public=False)
        self.api.taint.record_read(key)
