"""What only GraphQL tells of a pull request: the issues that it closes, and its place in the merge queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from mcp_batteries.errors import Problem
from mcp_github.client.api import Api
from mcp_github.listing.projections import pick
from mcp_github.policy import Repo
from mcp_github.requests.graphql_queries import PULL_LINKS
from mcp_github.requests.merge_when_ready import queue_place
from mcp_github.requests.related_issues import to_related_row

__all__ = ["add_pull_links"]


async def add_pull_links(api: Api, data: dict[str, Any], repo: Repo, number: int) -> str | None:
    """Add to a pull request's `data` what its merge closes (`closes`) and where it waits (`merge_queue`).

    Returns:
        what is missing; None if nothing is.
    """
    variables = {"owner": repo.owner, "name": repo.name, "number": number}
    try:
        response = await api.graphql(PULL_LINKS, variables, f"pull request #{number} of `{repo.full_name}`", repo=repo)
    except Problem as problem:
        # The pull request itself is known, and older servers have no merge queue.
        return f"Which issues it closes and the merge queue are not known: {problem.failure}"
    pull: Mapping[str, Any] = pick(response.data, "repository.pullRequest") or {}
    entry = pull.get("mergeQueueEntry")
    if entry:
        data["merge_queue"] = queue_place(entry)
    elif pull.get("isMergeQueueEnabled"):
        data["merge_queue"] = "its base branch has one; it is not in it"
    closes = cast("list[dict[str, Any]]", pick(pull, "closingIssuesReferences.nodes") or [])
    if not closes:
        return None
    data["closes"] = [to_related_row(api, _as_in_rest(issue), repo) for issue in closes]
    more = int(pick(pull, "closingIssuesReferences.totalCount") or 0) - len(closes)
    if more > 0:
        return f"It closes {more} more issues."
    return None


def _as_in_rest(issue: Mapping[str, Any]) -> dict[str, Any]:
    """Return an issue of GraphQL's with the names that REST has for the same."""
    return {
        "number": issue["number"],
        "title": issue["title"],
        "state": str(issue["state"]).lower(),
        "repository": {"full_name": pick(issue, "repository.nameWithOwner")},
    }
