"""Merging that GitHub does by itself: through the merge queue of the base branch, or as soon as its rules allow it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_batteries.errors import Conflict
from mcp_github.call_context import current_call
from mcp_github.client.api import Api
from mcp_github.listing.projections import pick
from mcp_github.models import Done
from mcp_github.policy import Repo, WriteRepo
from mcp_github.requests.graphql_queries import AUTO_MERGE, ENQUEUE, MERGE_STATE

__all__ = ["merge_when_ready", "queue_place"]


async def merge_when_ready(
    api: Api, repo: WriteRepo, number: int, pull: Mapping[str, Any], *, method: str, title: str | None,
    body: str | None,
) -> Done:  # fmt: skip
    """Put a pull request into the merge queue if its base branch has one; else have it merged once its rules allow."""
    description = f"pull request #{number} of `{repo.full_name}`"
    variables = {"owner": repo.owner, "name": repo.name, "number": number}
    response = await api.graphql(MERGE_STATE, variables, description, internal=True)
    state: Mapping[str, Any] = pick(response.data, "repository.pullRequest") or {}
    head = {"pullRequestId": str(pull["node_id"]), "expectedHeadOid": pick(pull, "head.sha")}
    if state.get("isMergeQueueEnabled"):
        if method != "merge" or title is not None or body is not None:
            current_call().add_note("A merge queue has its own method and messages: those named here were not used.")
        entry = state.get("mergeQueueEntry")
        if not entry:
            response = await api.graphql(ENQUEUE, {"input": head}, description, repo=repo, writes=True)
            entry = response.data["enqueuePullRequest"]["mergeQueueEntry"]
        return _queued(repo, number, entry)
    method_input = {**head, "mergeMethod": method.upper()}
    if title is not None:
        method_input["commitHeadline"] = title
    if body is not None:
        method_input["commitBody"] = body
    response = await api.graphql(AUTO_MERGE, {"input": method_input}, description, repo=repo, writes=True)
    request = pick(response.data, "enablePullRequestAutoMerge.pullRequest.autoMergeRequest")
    if not request:
        raise Conflict(f"GitHub did not turn on auto-merge for {description}.", "Look at it with `get_pull_request`.")
    return Done(
        done=f"GitHub merges #{number} ({str(request['mergeMethod']).lower()}) once its checks and reviews are there, "
        "with what is pushed until then.",
        uri=f"{repo.uri}/pulls/{number}",
    )


def queue_place(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return where a pull request stands in the merge queue, and in how many seconds GitHub expects to merge it."""
    place = {"position": entry.get("position"), "state": str(entry.get("state")).lower()}
    seconds = entry.get("estimatedTimeToMerge")
    if seconds is not None:
        place["estimated_s"] = seconds
    return place


def _queued(repo: Repo, number: int, entry: Mapping[str, Any]) -> Done:
    return Done(done=f"#{number} is in the merge queue.", uri=f"{repo.uri}/pulls/{number}", data=queue_place(entry))
