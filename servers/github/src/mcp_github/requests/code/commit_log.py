"""Commits of a branch or a pull request, and one commit with its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from mcp_batteries.errors import quote
from mcp_github.client.api import Api
from mcp_github.listing.columns import COMMIT
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page
from mcp_github.listing.projections import clip, pick
from mcp_github.models import Listing, Record
from mcp_github.policy import Ref, Repo

__all__ = ["CommitLog"]

# Commits of a pull request that GitHub lists.
_MAX_PULL_COMMITS = 250
_MAX_MESSAGE_CHARACTERS = 4000
_MAX_FILES = 60


@dataclass(frozen=True)
class CommitLog:
    api: Api

    async def list(self, repo: Repo, ref: Ref | None, filters: Mapping[str, Any], options: PageOptions) -> Listing:
        """Return a page of the commits of a branch, newest first.

        Args:
            filters: as GitHub names them: path, author, since, until.
        """
        description = f"the commits of `{repo.full_name}`"
        params: dict[str, Any] = {"sha": None, **filters}
        if ref is not None:
            description = f"the commits of {quote(ref.name)} in `{repo.full_name}`"
            params["sha"] = ref.name
        query = ListQuery(
            f"{repo.path}/commits", description, COMMIT, params=params, repo=repo,
            hint="`list_refs` shows branches and tags.",
        )  # fmt: skip
        return await fetch_page(self.api, query, options)

    async def list_of_pull(self, repo: Repo, number: int, options: PageOptions) -> Listing:
        """Return a page of the commits of a pull request."""
        pull_path = f"{repo.path}/pulls/{number}"
        description = f"pull request #{number} of `{repo.full_name}`"
        await self.api.require_insiders(pull_path, description)
        query = ListQuery(f"{pull_path}/commits", description, COMMIT, repo=repo, max_items=_MAX_PULL_COMMITS)
        return await fetch_page(self.api, query, options)

    async def get(self, repo: Repo, ref: Ref) -> Record:
        """Return one commit with the files it touched."""
        response = await self.api.get(
            f"{repo.path}/commits/{ref.path}",
            f"commit {quote(ref.name)} of `{repo.full_name}`",
            repo=repo,
            hint="`list_refs` shows branches and tags, `list_commits` commits.",
        )
        data = COMMIT.to_record(response.data, ("sha", "author", "name", "date", "verified", "parents", "url"))
        data["message"] = pick(response.data, clip("commit.message", _MAX_MESSAGE_CHARACTERS))
        data["stats"] = response.data.get("stats")
        files = cast("list[dict[str, Any]]", response.data.get("files") or [])
        data["files"] = [_describe_change(file) for file in files[:_MAX_FILES]]
        note = None
        more = len(files) - _MAX_FILES
        if more > 0:
            note = f"{more} more files: use read_diff."
            if response.next_page:
                note = f"At least {note}"
        return Record(note=note, removed=response.removed or None, data=data)


def _describe_change(file: Mapping[str, Any]) -> str:
    return f"{file['filename']} {file['status']} +{file['additions']} -{file['deletions']}"
