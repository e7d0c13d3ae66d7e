"""A repository's rules for branches and tags, and the custom properties from its organisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_github.client.api import Api
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page
from mcp_github.listing.projections import Item, Projection, pick, pluck, same_names
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Ref, Repo, WriteRepo

__all__ = ["RuleKind", "Rules"]

RuleKind = Literal["rulesets", "branch", "properties"]


def _rules_of(ruleset: Item) -> list[Any]:
    rules = cast("list[Mapping[str, Any]]", ruleset.get("rules") or [])
    return [[str(pick(rule, "type")), rule.get("parameters")] for rule in rules]


_RULESET = Projection(
    {
        "ruleset": "id",
        **same_names("name", "target", "enforcement", "source", "source_type", "created_at", "updated_at"),
    },
    ("ruleset", "name", "target", "enforcement", "source"),
)
_RULE = Projection(
    {"rule": "type", "parameters": "parameters", "ruleset": "ruleset_id", "source": "ruleset_source"},
    ("rule", "parameters", "ruleset", "source"),
)
_PROPERTY = Projection({"name": "property_name", "value": "value"}, ("name", "value"))
_RULESET_DETAILS = Projection(
    {
        **_RULESET.getters,
        "include": "conditions.ref_name.include",
        "exclude": "conditions.ref_name.exclude",
        "rules": _rules_of,
        "bypass": pluck("bypass_actors", "actor_type"),
        "you_can_bypass": "current_user_can_bypass",
        "url": "_links.html.href",
    },
    (),
)


@dataclass(frozen=True)
class Rules:
    api: Api

    async def list(self, repo: Repo, kind: RuleKind, branch: Ref | None, options: PageOptions) -> Listing:
        """Return a page of a repository's rulesets, of the rules of a branch, or its custom properties."""
        match kind:
            case "rulesets":
                query = ListQuery(
                    f"{repo.path}/rulesets", f"the rulesets of `{repo.full_name}`", _RULESET,
                    params={"includes_parents": True}, repo=repo,
                )  # fmt: skip
                return await fetch_page(self.api, query, options)
            case "branch":
                if branch is None:
                    raise Invalid("These are the rules of one branch.", "Pass `branch`.")
                path = f"{repo.path}/rules/branches/{branch.path}"
                query = ListQuery(path, f"the rules of `{repo.full_name}`", _RULE, repo=repo)
                return await fetch_page(self.api, query, options)
            case "properties":
                return await self._list_properties(repo, options.fields)

    async def _list_properties(self, repo: Repo, fields: Sequence[str] | None) -> Listing:
        """Return all properties: GitHub does not part them in pages."""
        path = f"{repo.path}/properties/values"
        response = await self.api.get(path, f"the properties of `{repo.full_name}`", repo=repo)
        columns = _PROPERTY.choose_columns(fields)
        rows = [_PROPERTY.to_row(item, columns) for item in response.data]
        return Listing(removed=response.removed or None, columns=columns, rows=rows)

    async def get(self, repo: Repo, ruleset: int) -> Record:
        """Return one ruleset with its rules, where it applies and who may bypass it."""
        description = f"ruleset `{ruleset}` of `{repo.full_name}`"
        path = f"{repo.path}/rulesets/{ruleset}"
        response = await self.api.get(path, description, {"includes_parents": True}, repo=repo)
        data = _RULESET_DETAILS.to_record(response.data, list(_RULESET_DETAILS.getters))
        return Record(removed=response.removed or None, data=data)

    async def write_properties(self, repo: WriteRepo, values: Mapping[str, str | Sequence[str] | None]) -> Done:
        """Set custom properties; None takes one back to its default."""
        description = f"the properties of `{repo.full_name}`"
        path = f"{repo.path}/properties/values"
        response = await self.api.get(path, description, internal=True)
        set_names = [str(item["property_name"]) for item in response.data]
        for name in values:
            if name not in set_names:
                await self._require_defined(repo, name)
        body = {"properties": [{"property_name": name, "value": value} for name, value in values.items()]}
        await self.api.write("PATCH", path, description, body, repo=repo)
        return Done(done=f"Set {', '.join(values)} of {repo.full_name}.", uri=repo.uri)

    async def _require_defined(self, repo: Repo, name: str) -> None:
        """Raise `NotFound` for a property that the organisation does not have; one without a value may exist."""
        description = f"the properties of `{repo.owner}`"
        response = await self.api.get(f"/orgs/{repo.account}/properties/schema", description, internal=True)
        defined_names = [str(item["property_name"]) for item in response.data]
        if name not in defined_names:
            choices = ", ".join(quote(item, 60) for item in defined_names) or "none"
            raise NotFound(f"`{repo.owner}` has no property {quote(name)}.", f"There are: {choices}.")
