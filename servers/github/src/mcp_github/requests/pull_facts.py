"""What REST does not tell of pull requests, such as verdicts and checks: one request of GraphQL's for one or a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from mcp_batteries.errors import Problem, Unavailable
from mcp_github.call_context import current_call
from mcp_github.client.api import Api
from mcp_github.listing.projections import Item, pick
from mcp_github.policy import Repo
from mcp_github.requests.graphql_queries import PULL_FACTS, PULL_LINKS
from mcp_github.requests.merge_when_ready import queue_place
from mcp_github.requests.related_issues import to_related_row

__all__ = ["GRAPHQL_COLUMNS", "add_pull_facts", "add_pull_links"]

# Of more, GitHub could not work out all that was asked for in its 10 seconds.
_MAX_PULLS_AT_ONCE = 50
# Columns that no object of REST's has.
GRAPHQL_COLUMNS = ("review_decision", "verdicts", "checks", "closes")
# The member of REST's object that a column is made of, by the variable of the query that asks for it.
_MEMBERS_BY_VARIABLE: Mapping[str, Mapping[str, str]] = {
    "branches": {"head": "head", "head_repo": "head", "head_sha": "head", "base": "base", "base_sha": "base"},
    "size": {name: name for name in ("commits", "changed_files", "additions", "deletions", "comments")},
    "merge": {name: name for name in ("mergeable", "mergeable_state", "merged_by", "auto_merge")},
    "requests": {"reviewers": "requested_reviewers", "teams": "requested_teams"},
    "reviews": {"review_decision": "review_decision", "verdicts": "verdicts"},
    "checks": {"checks": "checks"},
    "closes": {"closes": "closes"},
}
_MERGEABLE = {"MERGEABLE": True, "CONFLICTING": False}


async def add_pull_facts(api: Api, items: Sequence[Item | None], columns: Sequence[str]) -> Sequence[Item | None]:
    """Return `items` with the members that the pull requests among them lack for `columns`, as REST would have them.

    Args:
        items: of a list of REST's; None stands for one that is not shown.
    """
    pulls = {str(item.get("node_id")): item for item in items if item and _is_pull(item)}
    variables: dict[str, bool] = {}
    for name, members in _MEMBERS_BY_VARIABLE.items():
        needed = {member for column, member in members.items() if column in columns}
        variables[name] = any(_is_missing(member, pulls.values()) for member in needed)
    if not any(variables.values()):
        return items
    facts = await _fetch_facts(api, list(pulls), variables)
    missing = [f"#{item['number']}" for node_id, item in pulls.items() if node_id not in facts]
    if missing:
        current_call().add_note(f"GitHub tells no details of {', '.join(missing)}: null there is not known.")
    completed: list[Item | None] = []
    for item in items:
        if item is not None:
            item = {**facts.get(str(item.get("node_id")), {}), **item}
        completed.append(item)
    return completed


async def _fetch_facts(api: Api, ids: Sequence[str], variables: Mapping[str, bool]) -> dict[str, dict[str, Any]]:
    """Return what was asked for of each pull request that GraphQL shows, by its id."""
    facts: dict[str, dict[str, Any]] = {}
    for start in range(0, len(ids), _MAX_PULLS_AT_ONCE):
        part = {"ids": ids[start : start + _MAX_PULLS_AT_ONCE], **variables}
        try:
            response = await api.graphql(PULL_FACTS, part, "details of these pull requests")
        except Unavailable as problem:
            # What the list itself told is known, and GitHub may not work out so much in its time.
            current_call().add_note(f"{problem.failure} Ask for fewer with `limit`.")
            break
        for node in response.data["nodes"]:
            if "id" in node:
                facts[str(node["id"])] = _to_rest(api, node, variables)
    return facts


async def add_pull_links(api: Api, data: dict[str, Any], repo: Repo, number: int) -> str | None:
    """Add to a pull request's `data` its reviews and checks, what its merge `closes` and its place in `merge_queue`.

    Returns:
        what is missing; None if nothing is.
    """
    variables = {"owner": repo.owner, "name": repo.name, "number": number}
    try:
        response = await api.graphql(PULL_LINKS, variables, f"pull request #{number} of `{repo.full_name}`", repo=repo)
    except Problem as problem:
        # The pull request itself is known, and older servers have no merge queue.
        return f"Its verdicts, checks and merge queue and which issues it closes are not known: {problem.failure}"
    pull: Mapping[str, Any] = pick(response.data, "repository.pullRequest") or {}
    facts = _to_review_facts(pull) | {"closes": _to_closed_rows(api, pull, repo.full_name)}
    data |= {name: value for name, value in facts.items() if value}
    entry = pull.get("mergeQueueEntry")
    if entry:
        data["merge_queue"] = queue_place(entry)
    elif pull.get("isMergeQueueEnabled"):
        data["merge_queue"] = "its base branch has one; it is not in it"
    return None


def _to_review_facts(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return what reviews and checks of a pull request of GraphQL's come to.

    Verdicts are approvals, wishes for changes and dismissals, the last one of each person.
    """
    verdicts: list[str] = []
    for review in _nodes(node, "latestOpinionatedReviews"):
        verdicts.append(f"{pick(review, 'author.login') or 'ghost'} {str(review['state']).lower()}")
    return {
        "review_decision": _lower(node.get("reviewDecision")),
        "verdicts": verdicts,
        "checks": _lower(pick(node, "statusCheckRollup.state")),
    }


def _to_closed_rows(api: Api, node: Mapping[str, Any], repo_name: str) -> list[list[str]]:
    """Return name, state and title of the issues that a pull request of GraphQL's in `repo_name` closes."""
    issues = _nodes(node, "closingIssuesReferences")
    more = int(pick(node, "closingIssuesReferences.totalCount") or 0) - len(issues)
    if more > 0:
        current_call().add_note(f"#{node['number']} closes {more} more issues.")
    return [to_related_row(api, _issue_to_rest(issue), repo_name) for issue in issues]


def _is_pull(item: Item) -> bool:
    return "head" in item or "pull_request" in item


def _is_missing(member: str, items: Iterable[Item]) -> bool:
    return any(member not in item for item in items)


def _to_rest(api: Api, node: Mapping[str, Any], included: Mapping[str, bool]) -> dict[str, Any]:
    """Return what a query had of a pull request, with the names that REST has for the same.

    Args:
        included: which groups of `_MEMBERS_BY_VARIABLE` the query selected.
    """
    facts: dict[str, Any] = {}
    if included["branches"]:
        head_repo = {"full_name": pick(node, "headRepository.nameWithOwner")}
        base_repo = {"full_name": pick(node, "repository.nameWithOwner")}
        facts["head"] = {
            "ref": node["headRefName"], "sha": node["headRefOid"], "repo": head_repo,
            "user": node.get("headRepositoryOwner"),
        }  # fmt: skip
        facts["base"] = {"ref": node["baseRefName"], "sha": node["baseRefOid"], "repo": base_repo}
    if included["size"]:
        facts |= {name: node[name] for name in ("additions", "deletions")}
        facts["changed_files"] = node["changedFiles"]
        facts |= {name: pick(node, f"{name}.totalCount") for name in ("commits", "comments")}
    if included["merge"]:
        facts["mergeable"] = _MERGEABLE.get(node["mergeable"])
        facts["mergeable_state"] = _lower(node["mergeStateStatus"])
        facts["merged_by"] = node["mergedBy"]
        facts["auto_merge"] = {"merge_method": _lower(pick(node, "autoMergeRequest.mergeMethod"))}
    if included["requests"]:
        facts["requested_reviewers"] = _reviewers_with("login", node)
        facts["requested_teams"] = _reviewers_with("slug", node)
    if included["closes"]:
        facts["closes"] = _to_closed_rows(api, node, str(pick(node, "repository.nameWithOwner")))
    return facts | _to_review_facts(node)


def _reviewers_with(member: str, node: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return those who are asked to review: people have a login, teams a slug."""
    reviewers: list[dict[str, Any]] = []
    for request in _nodes(node, "reviewRequests"):
        reviewer: dict[str, Any] | None = request.get("requestedReviewer")
        if reviewer and member in reviewer:
            reviewers.append(reviewer)
    return reviewers


def _issue_to_rest(issue: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "number": issue["number"],
        "title": issue["title"],
        "state": str(issue["state"]).lower(),
        "repository": {"full_name": pick(issue, "repository.nameWithOwner")},
    }


def _nodes(node: Mapping[str, Any], connection: str) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", pick(node, f"{connection}.nodes") or [])


def _lower(value: Any) -> str | None:
    if value is None:
        return None
    return str(value).lower()
