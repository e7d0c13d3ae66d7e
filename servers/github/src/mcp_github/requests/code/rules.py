"""A repository's rules for branches and tags, and the custom properties from its organisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_github.client.api import Api
from mcp_github.listing.pages import Shape, listing, names, pick, plain
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Ref, Repo, WriteRepo

__all__ = ["Kind", "Rules"]

Kind = Literal["rulesets", "branch", "properties"]

RULESET = Shape(
    {"ruleset": "id", **plain("name", "target", "enforcement", "source", "source_type", "created_at", "updated_at")},
    ("ruleset", "name", "target", "enforcement", "source"),
)
RULE = Shape(
    {"rule": "type", "parameters": "parameters", "ruleset": "ruleset_id", "source": "ruleset_source"},
    ("rule", "parameters", "ruleset", "source"),
)
PROPERTY = Shape({"name": "property_name", "value": "value"}, ("name", "value"))
DETAILS = Shape(
    {
        **RULESET.getters, "include": "conditions.ref_name.include", "exclude": "conditions.ref_name.exclude",
        "rules": lambda item: _rules(item), "bypass": names("bypass_actors", "actor_type"),
        "you_can_bypass": "current_user_can_bypass", "url": "_links.html.href",
    },
    (),
)  # fmt: skip


@dataclass(frozen=True)
class Rules:
    api: Api

    async def list(
        self, repo: Repo, kind: Kind, branch: Ref | None, *, fields: Sequence[str] | None, limit: int,
        cursor: str | None,
    ) -> Listing:  # fmt: skip
        where, shape, params = f"{repo.path}/rulesets", RULESET, {"includes_parents": True}
        if kind == "branch":
            if branch is None:
                raise Invalid("These are the rules of one branch.", "Pass `branch`.")
            where, shape, params = f"{repo.path}/rules/branches/{branch.path}", RULE, {}
        elif kind == "properties":
            where, shape, params = f"{repo.path}/properties/values", PROPERTY, {}
        what = f"the {'rules' if kind == 'branch' else kind} of `{repo.full}`"
        if kind == "properties":
            found = await self.api.get(where, what, repo=repo)
            columns = shape.choose(fields)
            rows = [shape.row(item, columns) for item in found.data]
            return Listing(removed=found.removed or None, columns=columns, rows=rows)
        return await listing(
            self.api, where, what, shape, params=params, repo=repo, fields=fields, limit=limit, cursor=cursor
        )

    async def get(self, repo: Repo, ruleset: int) -> Record:
        """One ruleset with its rules, where it applies and who may bypass it."""
        what = f"ruleset `{ruleset}` of `{repo.full}`"
        found = await self.api.get(f"{repo.path}/rulesets/{ruleset}", what, {"includes_parents": True}, repo=repo)
        return Record(removed=found.removed or None, data=DETAILS.record(found.data, list(DETAILS.getters)))

    async def write_properties(self, repo: WriteRepo, values: Mapping[str, str | Sequence[str] | None]) -> Done:
        """Set custom properties; None takes one back to its default."""
        what = f"the properties of `{repo.full}`"
        found = await self.api.get(f"{repo.path}/properties/values", what, quiet=True)
        known = [str(item["property_name"]) for item in found.data]
        for name in values:
            # A name that does not exist yet is one without a value here: only the organisation's list tells.
            if name not in known and name not in (defined := await self._defined(repo)):
                there = ", ".join(quote(item, 60) for item in defined) or "none"
                raise NotFound(f"`{repo.owner}` has no property {quote(name)}.", f"There are: {there}.")
        body = {"properties": [{"property_name": name, "value": value} for name, value in values.items()]}
        await self.api.write("PATCH", f"{repo.path}/properties/values", what, body, repo=repo)
        return Done(done=f"Set {', '.join(values)} of {repo.full}.", uri=repo.uri)

    async def _defined(self, repo: Repo) -> Sequence[str]:
        what = f"the properties of `{repo.owner}`"
        found = await self.api.get(f"/orgs/{repo.account}/properties/schema", what, quiet=True)
        return [str(item["property_name"]) for item in found.data]


def _rules(item: Mapping[str, Any]) -> list[Any]:
    found = cast("list[Mapping[str, Any]]", item.get("rules") or [])
    return [[str(pick(rule, "type")), rule.get("parameters")] for rule in found]
