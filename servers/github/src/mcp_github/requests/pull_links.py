"""What only GraphQL tells of a pull request: its reviews and checks, what it closes, its place in the merge queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_batteries.errors import Problem
from mcp_github.client.api import Api
from mcp_github.listing.projections import pick
from mcp_github.policy import Repo
from mcp_github.requests.graphql_queries import PULL_LINKS
from mcp_github.requests.merge_when_ready import queue_place
from mcp_github.requests.pull_facts import to_closed_rows, to_review_facts

__all__ = ["add_pull_links"]


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
    facts = to_review_facts(pull) | {"closes": to_closed_rows(api, pull, repo.full_name)}
    data |= {name: value for name, value in facts.items() if value}
    entry = pull.get("mergeQueueEntry")
    if entry:
        data["merge_queue"] = queue_place(entry)
    elif pull.get("isMergeQueueEnabled"):
        data["merge_queue"] = "its base branch has one; it is not in it"
    return None
