"""Alerts and advisories. A found secret itself is never shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from mcp_batteries.errors import Invalid
from mcp_github.client.api import Api
from mcp_github.listing.pages import Row, Shape, clipped, listing, names, pick, plain, shown
from mcp_github.models import Listing, Record
from mcp_github.policy import Owner, Repo

__all__ = ["Alerts", "Security"]

Alerts = Literal["code_scanning", "secret_scanning", "dependabot", "code_quality"]


_COMMON = {**plain("number", "state", "created_at", "updated_at"), "url": "html_url"}
CODE = Shape(
    {
        **_COMMON, "rule": "rule.id", "severity": "rule.security_severity_level", "level": "rule.severity",
        "about": "rule.description", "tool": "tool.name", "ref": "most_recent_instance.ref",
        "path": "most_recent_instance.location.path", "line": "most_recent_instance.location.start_line",
        "message": clipped("most_recent_instance.message.text", 500), "dismissed": "dismissed_reason",
    },
    ("number", "state", "severity", "level", "rule", "path", "line", "created_at"),
)  # fmt: skip
SECRET = Shape(
    {
        **_COMMON, "kind": "secret_type_display_name", "validity": "validity", "resolution": "resolution",
        "publicly_leaked": "publicly_leaked", "bypassed": "push_protection_bypassed",
        "path": "first_location_detected.path", "line": "first_location_detected.start_line",
    },
    ("number", "state", "kind", "validity", "path", "line", "created_at"),
)  # fmt: skip
DEPENDABOT = Shape(
    {
        **_COMMON, "severity": "security_advisory.severity", "package": "dependency.package.name",
        "ecosystem": "dependency.package.ecosystem", "manifest": "dependency.manifest_path",
        "vulnerable": "security_vulnerability.vulnerable_version_range",
        "patched": "security_vulnerability.first_patched_version.identifier", "ghsa": "security_advisory.ghsa_id",
        "cve": "security_advisory.cve_id", "summary": "security_advisory.summary",
        "details": clipped("security_advisory.description", 3000), "dismissed": "dismissed_reason",
    },
    ("number", "state", "severity", "package", "vulnerable", "patched", "manifest", "summary"),
)  # fmt: skip
QUALITY = Shape(
    {
        **plain("number", "state", "created_at"), "rule": "rule.id", "category": "rule.category",
        "level": "rule.severity", "about": "rule.title", "path": "location.path", "line": "location.start_line",
        "message": clipped("message.text", 500), "help": clipped("rule.help", 3000),
    },
    ("number", "state", "level", "category", "rule", "path", "line", "message"),
)  # fmt: skip
ADVISORY = Shape(
    {
        "ghsa": "ghsa_id", "cve": "cve_id", **plain("severity", "summary", "state", "published_at", "withdrawn_at"),
        "score": "cvss.score", "packages": lambda item: _packages(item), "cwes": names("cwes", "cwe_id"),
        "repo": lambda item: _repo(item),
        "details": clipped("description", 3000), "url": "html_url",
    },
    ("ghsa", "cve", "severity", "summary", "packages", "published_at"),
)  # fmt: skip
_PLACES: Mapping[str, tuple[str, Shape]] = {
    "code_scanning": ("code-scanning/alerts", CODE), "secret_scanning": ("secret-scanning/alerts", SECRET),
    "dependabot": ("dependabot/alerts", DEPENDABOT), "code_quality": ("code-quality/findings", QUALITY),
}  # fmt: skip


@dataclass(frozen=True)
class Security:
    api: Api

    async def list(
        self, repo: Repo, kind: Alerts, *, state: str | None, severity: str | None, ref: str | None,
        fields: Sequence[str] | None, limit: int, cursor: str | None,
    ) -> Listing:  # fmt: skip
        place, shape = _PLACES[kind]
        self._private(repo)
        params: dict[str, Any] = {"state": state}
        if kind == "secret_scanning":
            params["hide_secret"] = True
        elif kind == "dependabot":
            params["severity"] = severity
        elif kind == "code_scanning":
            params["ref"] = ref
        if severity and kind != "dependabot":
            raise Invalid(f"`severity` chooses among alerts of dependabot, not of {kind}.", "Leave it out.")
        return await listing(
            self.api, f"{repo.path}/{place}", f"the {kind} alerts of `{repo.full}`", shape, params=params,
            repo=repo, fields=fields, limit=limit, cursor=cursor,
        )  # fmt: skip

    async def get(self, repo: Repo, kind: Alerts, number: int) -> Record:
        place, shape = _PLACES[kind]
        self._private(repo)
        params = {"hide_secret": True} if kind == "secret_scanning" else None
        what = f"{kind} alert #{number} of `{repo.full}`"
        found = await self.api.get(f"{repo.path}/{place}/{number}", what, params, repo=repo)
        return Record(removed=found.removed or None, data=shape.record(found.data, list(shape.getters)))

    async def advisories(
        self, place: Repo | Owner | None, params: Mapping[str, Any], *, fields: Sequence[str] | None, limit: int,
        cursor: str | None,
    ) -> Listing:  # fmt: skip
        """Advisories of a repository or of all of an organisation's, or GitHub's reviewed ones."""
        where, repo, keep = "/advisories", None, None
        if place is not None:
            self._private(place)
        if isinstance(place, Repo):
            where, repo = f"{place.path}/security-advisories", place
        elif place is not None:
            where, keep = f"/orgs/{place}/security-advisories", self._served
        return await listing(
            self.api, where, "the advisories", ADVISORY, params=params, repo=repo, fields=fields, limit=limit,
            cursor=cursor, keep=keep,
        )  # fmt: skip

    def _served(self, items: Sequence[Row]) -> Sequence[Row]:
        return shown(self.api, items, key=_repo)

    def _private(self, place: Repo | Owner) -> None:
        """Put down that alerts or unpublished advisories are shown: private ones, whatever their repository is."""
        key = f"the alerts of {place.full if isinstance(place, Repo) else place.login}"
        self.api.flow.knows(key, public=False)
        self.api.flow.saw(key)


def _repo(item: Mapping[str, Any]) -> str:
    return "/".join(str(item.get("html_url") or "").split("/")[3:5])


def _packages(item: Mapping[str, Any]) -> list[str]:
    found = cast("list[dict[str, Any]]", item.get("vulnerabilities") or [])
    return [f"{_package(one)} {one.get('vulnerable_version_range') or ''}".strip() for one in found[:5]]


def _package(item: Mapping[str, Any]) -> str:
    return f"{pick(item, 'package.ecosystem')}:{pick(item, 'package.name')}"
