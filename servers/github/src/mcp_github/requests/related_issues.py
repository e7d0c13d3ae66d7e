"""Issues that belong to another issue or pull request, and may be of another repository."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_github.client.api import Api
from mcp_github.listing.columns import ISSUE
from mcp_github.listing.pages import keep_served
from mcp_github.listing.projections import pick

__all__ = ["to_related_row"]


def to_related_row(api: Api, issue: Mapping[str, Any], repo_name: str) -> list[str]:
    """Return name, state and title of an issue that is related to one of `repo_name`."""
    full_name = str(pick(issue, ISSUE.getters["repo"]) or repo_name)
    name = f"{full_name}#{issue['number']}"
    if full_name.lower() == repo_name.lower():
        name = f"#{issue['number']}"
    if not keep_served(api, [issue], repo_getter=lambda item: full_name):
        return [name, "not served here"]
    return [name, issue["state"], issue["title"]]
