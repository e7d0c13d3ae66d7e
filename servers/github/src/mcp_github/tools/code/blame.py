"""Who last changed which line, which only GraphQL has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, cast

from pydantic import Field

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.errors import NotFound, quote
from mcp_batteries.server.declaration.decorators import tool
from mcp_github.client.api import Api
from mcp_github.client.errors import empty_repository_problem
from mcp_github.listing.pages import count_fitting_rows
from mcp_github.listing.projections import pick
from mcp_github.models import Listing
from mcp_github.policy import HEAD
from mcp_github.requests.files import require_path
from mcp_github.requests.graphql_queries import BLAME
from mcp_github.tools.arguments import OptionalRefName, PathName, RepoName

__all__ = ["read_blame"]

_COLUMNS = ("from", "to", "sha", "author", "date", "message")


@tool("Read blame", toolset="code", open_world=True)
async def read_blame(
    api: Api,
    *,
    repo: RepoName,
    path: PathName,
    ref: OptionalRefName = None,
    start_line: Annotated[int, Field(ge=1)] = 1,
    lines: Annotated[int, Field(ge=1, le=5000)] = 500,
) -> Listing:
    """Read which commit last changed each line of a file, by whom and when.

    Lines of one commit are one row. Its changes: `read_diff`.
    """
    description = f"{quote(path.display_name)} in `{repo.full_name}`"
    variables = {"owner": repo.owner, "name": repo.name, "ref": (ref or HEAD).name, "path": path.name}
    response = await api.graphql(BLAME, variables, description, repo=repo)
    if pick(response.data, "repository.isEmpty"):
        raise empty_repository_problem(description)
    line_ranges = _line_ranges_of(response.data)
    if not line_ranges:
        # GraphQL does not say what is missing; REST does, with what there is instead.
        await require_path(api, repo, path, ref)
    last_line = start_line + lines - 1
    rows: list[list[Any]] = []
    for line_range in line_ranges:
        if line_range["endingLine"] >= start_line and line_range["startingLine"] <= last_line:
            rows.append(_to_row(line_range, start_line, last_line))
    if not rows:
        raise NotFound(f"There is nothing to tell about {description} there.", "Look at `start_line`, and at `ref`.")
    fitting = count_fitting_rows(rows, DEFAULT_PAGE_BYTES)
    note = None
    if fitting < len(rows):
        first_line_left, *_ = rows[fitting]
        note = f"truncated, continue with start_line={first_line_left}"
    return Listing(note=note, removed=response.removed or None, columns=list(_COLUMNS), rows=rows[:fitting])


def _line_ranges_of(data: Any) -> list[dict[str, Any]]:
    """Return the ranges of lines that GitHub has of a file, each of one commit; none where there is no such file."""
    commit = cast("dict[str, Any]", pick(data, "repository.object") or {})
    if commit.get("__typename") == "Tag":
        # An annotated tag is an object of its own, which points to the commit.
        commit = cast("dict[str, Any]", commit.get("target") or {})
    return cast("list[dict[str, Any]]", pick(commit, "blame.ranges") or [])


def _to_row(line_range: Mapping[str, Any], start_line: int, last_line: int) -> list[Any]:
    commit = line_range["commit"]
    return [
        max(start_line, line_range["startingLine"]),
        min(last_line, line_range["endingLine"]),
        commit["oid"],
        pick(commit, "author.user.login") or pick(commit, "author.name"),
        commit["committedDate"],
        commit["messageHeadline"],
    ]
