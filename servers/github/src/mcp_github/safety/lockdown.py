"""For `--lockdown`: hides texts of people who do not belong to a repository.

GitHub reports the association of most authors. If it does not for a text that anybody may have written, such as a
notification's title, that text is hidden too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

__all__ = ["HIDDEN", "INSIDERS", "hide_outsiders", "is_by_outsider"]

HIDDEN = "[hidden by --lockdown]"
INSIDERS = {"OWNER", "MEMBER", "COLLABORATOR"}
# GitHub's own, which no outsider can be.
_BOTS = {"dependabot[bot]", "github-actions[bot]"}
_TEXT_FIELDS = {"title", "body", "body_text", "body_html", "bodyText", "bodyHTML", "diff_hunk", "diffHunk"}
# These start runs whose title somebody with the right to push chose.
_INSIDER_EVENTS = {
    "push", "schedule", "workflow_dispatch", "repository_dispatch", "release", "merge_group", "dynamic", "create",
    "delete", "deployment",
}  # fmt: skip


def is_by_outsider(item: Mapping[str, Any]) -> bool:
    """Return whether GitHub says of the author of `item` that they do not belong to the repository."""
    association = item.get("author_association") or item.get("authorAssociation")
    if association is None or association in INSIDERS:
        return False
    user: Any = item.get("user")
    is_bot = isinstance(user, dict) and cast("dict[str, Any]", user).get("login") in _BOTS
    return not is_bot


def hide_outsiders(data: Any) -> Any:
    """Return JSON `data` of GitHub's with the texts of outsiders replaced."""
    if isinstance(data, list):
        return [hide_outsiders(item) for item in cast("list[Any]", data)]
    if not isinstance(data, dict):
        return data
    item = cast("dict[str, Any]", data)
    hidden_fields = _unsigned_fields(item)
    if is_by_outsider(item):
        hidden_fields = _TEXT_FIELDS
    visible: dict[str, Any] = {}
    for name, value in item.items():
        if name in hidden_fields and isinstance(value, str) and value:
            visible[name] = HIDDEN
        elif name == "text_matches" and hidden_fields:
            visible[name] = []
        else:
            visible[name] = hide_outsiders(value)
    return visible


def _unsigned_fields(item: Mapping[str, Any]) -> set[str]:
    """Return the fields of `item` that anybody may have written, where GitHub does not say who did."""
    if "run_attempt" in item and item.get("event") not in _INSIDER_EVENTS:
        return {"display_title"}
    if "latest_comment_url" in item:
        # The subject of a notification.
        return {"title"}
    if "ghsa_id" in item and item.get("state") == "triage":
        return {"summary", "description"}
    return set()
