"""Who last changed which line, which only GraphQL has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.errors import NotFound, quote
from mcp_github.client.api import Api
from mcp_github.listing.pages import count_fitting_rows
from mcp_github.listing.projections import pick
from mcp_github.models import Listing
from mcp_github.policy import HEAD, FilePath, Ref, Repo
from mcp_github.requests.graphql_queries import BLAME

__all__ = ["Blame"]

_COLUMNS = ("from", "to", "sha", "author", "date", "message")


@dataclass(frozen=True)
class Blame:
    api: Api

    async def read(self, repo: Repo, path: FilePath, ref: Ref | None, *, start_line: int, max_lines: int) -> Listing:
        """Return which commit last changed the lines of a file; lines of one commit are one row."""
        description = f"{quote(path.display_name)} in `{repo.full_name}`"
        variables = {"owner": repo.owner, "name": repo.name, "ref": (ref or HEAD).name, "path": path.name}
        response = await self.api.graphql(BLAME, variables, description, repo=repo)
        commit = cast("dict[str, Any]", pick(response.data, "repository.object") or {})
        last_line = start_line + max_lines - 1
        line_ranges = cast("list[dict[str, Any]]", pick(commit, "blame.ranges") or [])
        rows = [
            _to_row(line_range, start_line, last_line)
            for line_range in line_ranges
            if line_range["endingLine"] >= start_line and line_range["startingLine"] <= last_line
        ]
        if not rows:
            raise NotFound(
                f"There is nothing to tell about {description} there.", "Look at `ref`, `path` and `start_line`."
            )
        fitting = count_fitting_rows(rows, DEFAULT_PAGE_BYTES)
        note = None
        if fitting < len(rows):
            first_line_left, *_ = rows[fitting]
            note = f"truncated, continue with start_line={first_line_left}"
        return Listing(note=note, removed=response.removed or None, columns=list(_COLUMNS), rows=rows[:fitting])


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
