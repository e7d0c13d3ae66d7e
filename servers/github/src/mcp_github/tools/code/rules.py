"""A repository's rules for branches and tags, and the custom properties from its organisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.trusted import FreeText, trusted
from mcp_github.client.api import Api
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page
from mcp_github.listing.projections import Item, Projection, pick, pluck, same_names
from mcp_github.models import Done, Listing, Record
from mcp_github.number_forms import Number
from mcp_github.policy import Policy, Ref, Repo
from mcp_github.tools.arguments import (
    Cursor,
    Fields,
    Limit,
    RepoName,
    WriteRepoName,
    refuse_beside,
)

__all__ = ["get_ruleset", "list_rules", "write_properties"]

RuleKind = Literal["rulesets", "branch", "properties"]
Values = Annotated[
    dict[FreeText, FreeText | list[FreeText] | None], Field(min_length=1, description="By name; null clears")
]


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


@tool("List rules or properties", toolset="rules", open_world=True)
async def list_rules(
    api: Api,
    *,
    repo: RepoName,
    kind: RuleKind = "rulesets",
    branch: Annotated[Ref | None, trusted(Policy.ref), Field(description="For its rules")] = None,
    fields: Fields = None,
    limit: Limit = 30,
    cursor: Cursor = None,
) -> Listing:
    """List a repository's rulesets, the rules that apply to a branch, or its custom properties (`kind`).

    One ruleset: `get_ruleset`.
    """
    if kind != "branch":
        refuse_beside(f"kind={kind}", branch=branch)
    options = PageOptions(fields, limit, cursor)
    match kind:
        case "rulesets":
            query = ListQuery(
                f"{repo.path}/rulesets", f"the rulesets of `{repo.full_name}`", _RULESET,
                params={"includes_parents": True}, repo=repo,
            )  # fmt: skip
            return await fetch_page(api, query, options)
        case "branch":
            if branch is None:
                raise Invalid("These are the rules of one branch.", "Pass `branch`.")
            path = f"{repo.path}/rules/branches/{branch.path}"
            query = ListQuery(path, f"the rules of `{repo.full_name}`", _RULE, repo=repo)
            return await fetch_page(api, query, options)
        case "properties":
            return await _list_properties(api, repo, fields)


@tool("Get a ruleset", toolset="rules", open_world=True)
async def get_ruleset(api: Api, *, repo: RepoName, ruleset: Number) -> Record:
    """Get a ruleset: its rules, where it applies, who may bypass it. Ids: `list_rules`."""
    description = f"ruleset `{ruleset}` of `{repo.full_name}`"
    path = f"{repo.path}/rulesets/{ruleset}"
    response = await api.get(path, description, {"includes_parents": True}, repo=repo)
    data = _RULESET_DETAILS.to_record(response.data, list(_RULESET_DETAILS.getters))
    return Record(removed=response.removed or None, data=data)


@tool("Set custom properties", toolset="rules", effect="destroy", idempotent=True, open_world=True)
async def write_properties(api: Api, *, repo: WriteRepoName, properties: Values) -> Done:
    """Set custom properties that the organisation has; others stay. To see them use `list_rules`."""
    description = f"the properties of `{repo.full_name}`"
    path = f"{repo.path}/properties/values"
    response = await api.get(path, description, internal=True)
    set_names = [str(item["property_name"]) for item in response.data]
    for name in properties:
        if name not in set_names:
            await _require_defined(api, repo, name)
    body = {"properties": [{"property_name": name, "value": value} for name, value in properties.items()]}
    await api.write("PATCH", path, description, body, repo=repo)
    return Done(done=f"Set {', '.join(properties)} of {repo.full_name}.", uri=repo.uri)


async def _list_properties(api: Api, repo: Repo, fields: Sequence[str] | None) -> Listing:
    """Return all properties: GitHub does not part them in pages."""
    path = f"{repo.path}/properties/values"
    response = await api.get(path, f"the properties of `{repo.full_name}`", repo=repo)
    columns = _PROPERTY.choose_columns(fields)
    rows = [_PROPERTY.to_row(item, columns) for item in response.data]
    return Listing(removed=response.removed or None, columns=columns, rows=rows)


async def _require_defined(api: Api, repo: Repo, name: str) -> None:
    """Raise `NotFound` for a property that the organisation does not have; one without a value may exist."""
    description = f"the properties of `{repo.owner}`"
    response = await api.get(f"/orgs/{repo.account}/properties/schema", description, internal=True)
    defined_names = [str(item["property_name"]) for item in response.data]
    if name not in defined_names:
        choices = ", ".join(quote(item, 60) for item in defined_names) or "none"
        raise NotFound(f"`{repo.owner}` has no property {quote(name)}.", f"There are: {choices}.")
