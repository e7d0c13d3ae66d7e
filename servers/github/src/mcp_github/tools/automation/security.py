"""Alerts and advisories. A found secret itself is never shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, NamedTuple, cast

from pydantic import Field

from mcp_batteries.errors import Invalid
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.trusted import FreeText, trusted
from mcp_github.client.api import Api
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page, join_notes, keep_served
from mcp_github.listing.projections import Getter, Item, Projection, clip, pick, pluck, same_names
from mcp_github.models import Listing, Record
from mcp_github.number_forms import Number
from mcp_github.policy import Owner, Policy, Repo
from mcp_github.safety.taint import alerts_key
from mcp_github.tools.arguments import (
    Cursor,
    Fields,
    Limit,
    OptionalRefName,
    OptionalRepoName,
    RepoName,
    refuse_beside,
)

__all__ = ["get_alert", "list_advisories", "list_alerts"]

AlertKind = Literal["code_scanning", "secret_scanning", "dependabot", "code_quality"]
Severity = Annotated[FreeText | None, Field(description="low, medium, high or critical")]

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
        **same_names("type", "severity", "summary", "state", "published_at", "withdrawn_at"),
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


@tool("List security alerts", toolset="security", open_world=True)
async def list_alerts(
    api: Api,
    *,
    repo: RepoName,
    kind: AlertKind,
    state: Annotated[FreeText | None, Field(description="open, fixed, dismissed or resolved")] = None,
    severity: Severity = None,
    ref: OptionalRefName = None,
    fields: Fields = None,
    limit: Limit = 30,
    cursor: Cursor = None,
) -> Listing:
    """List alerts: code scanning, found secrets (never the secrets themselves), dependencies, code quality.

    One: `get_alert`.
    """
    if kind != "code_scanning":
        refuse_beside(f"kind={kind}", ref=ref)
    _record_read(api, repo)
    params: dict[str, Any] = {"state": state}
    match kind:
        case "secret_scanning":
            params["hide_secret"] = True
        case "dependabot":
            params["severity"] = severity
        case "code_scanning":
            params["severity"] = severity
            if ref is not None:
                params["ref"] = ref.name
        case "code_quality":
            pass
    if severity and "severity" not in params:
        raise Invalid(f"`severity` does not choose among {kind} alerts.", "Leave it out.")
    alerts = _ALERT_LISTS[kind]
    query = ListQuery(
        f"{repo.path}/{alerts.path}", f"the {kind} alerts of `{repo.full_name}`", alerts.projection,
        params=params, repo=repo,
    )  # fmt: skip
    return await fetch_page(api, query, PageOptions(fields, limit, cursor))


@tool("Get a security alert", toolset="security", open_world=True)
async def get_alert(api: Api, *, repo: RepoName, kind: AlertKind, number: Number) -> Record:
    """Get one alert: where it is, how severe, what mends it. Its number is from `list_alerts`."""
    _record_read(api, repo)
    alerts = _ALERT_LISTS[kind]
    params = None
    if kind == "secret_scanning":
        params = {"hide_secret": True}
    description = f"{kind} alert #{number} of `{repo.full_name}`"
    response = await api.get(f"{repo.path}/{alerts.path}/{number}", description, params, repo=repo)
    data = alerts.projection.to_record(response.data, list(alerts.projection.getters))
    return Record(removed=response.removed or None, data=data)


@tool("List advisories", toolset="security", open_world=True)
async def list_advisories(
    api: Api,
    *,
    repo: OptionalRepoName = None,
    org: Annotated[Owner | None, trusted(Policy.owner), Field(description="All of its repositories")] = None,
    package: Annotated[FreeText | None, Field(description="name or name@version")] = None,
    ecosystem: Annotated[FreeText | None, Field(description="Such as pip or npm")] = None,
    severity: Severity = None,
    advisory: Annotated[FreeText | None, Field(description="GHSA or CVE id")] = None,
    fields: Fields = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Listing:
    """List security advisories of a repository or organisation, or search GitHub's database by the filters.

    Of your code: `list_alerts`.
    """
    if repo is not None and org is not None:
        raise Invalid("Only one of `repo` and `org` can be given.")
    place = repo or org
    if place is None:
        filters: dict[str, Any] = {"affects": package, "ecosystem": ecosystem, "severity": severity}
        if advisory and advisory.upper().startswith("CVE"):
            filters["cve_id"] = advisory
        elif advisory:
            filters["ghsa_id"] = advisory
        query = ListQuery("/advisories", "the advisories", _ADVISORY, params=filters)
        if cursor is None and (package or advisory):
            return await _search_all_types(api, query, PageOptions(fields, limit))
    else:
        refuse_beside(
            "`repo` or `org`, whose advisories come all", package=package, ecosystem=ecosystem, severity=severity,
            advisory=advisory,
        )  # fmt: skip
        query = _query_own_advisories(api, place)
        _record_read(api, place)
    return await fetch_page(api, query, PageOptions(fields, limit, cursor))


async def _search_all_types(api: Api, query: ListQuery, options: PageOptions) -> Listing:
    """Return advisories about a package, or with an id, whatever their type: GitHub searches the reviewed alone.

    Malware comes first. The unreviewed name no package, so they are found by an id alone.
    """
    page = await fetch_page(api, query, options)
    is_of_package = query.params["affects"] is not None
    if page.rows and not is_of_package:
        return page
    malware = await fetch_page(api, _of_type(query, "malware"), options)
    if malware.rows:
        total = None
        if page.total is not None and malware.total is not None:
            total = page.total + malware.total
        note = join_notes(f"About malware: the first {len(malware.rows)}.", malware.note, page.note)
        return page.model_copy(update={"rows": malware.rows + page.rows, "total": total, "note": note})
    if is_of_package:
        return page
    return await fetch_page(api, _of_type(query, "unreviewed"), options)


def _of_type(query: ListQuery, advisory_type: str) -> ListQuery:
    return replace(query, params={**query.params, "type": advisory_type})


def _query_own_advisories(api: Api, place: Repo | Owner) -> ListQuery:
    """Return the list of the advisories of a repository, or of all of an organisation's."""
    if isinstance(place, Repo):
        return ListQuery(f"{place.path}/security-advisories", "the advisories", _ADVISORY, repo=place)

    def select(advisories: Sequence[Item]) -> Sequence[Item]:
        return keep_served(api, advisories, repo_getter=_repo_of)

    return ListQuery(f"/orgs/{place}/security-advisories", "the advisories", _ADVISORY, select=select)


def _record_read(api: Api, place: Repo | Owner) -> None:
    """Put down that alerts or unpublished advisories are shown: private ones, whatever their repository is."""
    key = alerts_key(place)
    api.taint.record_visibility(key, public=False)
    api.taint.record_read(key)
