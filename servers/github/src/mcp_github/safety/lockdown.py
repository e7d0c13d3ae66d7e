"""For `--lockdown`: hides texts of people who do not belong to a repository.

GitHub reports the association of most authors. If it does not for a text that anybody may have written, such as a
notification's title, that text is hidden too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

__all__ = ["HIDDEN", "INSIDERS", "hidden", "is_outsiders"]

HIDDEN = "[hidden by --lockdown]"
INSIDERS = {"OWNER", "MEMBER", "COLLABORATOR"}
_BOTS = {"dependabot[bot]", "github-actions[bot]"}
"""GitHub's own, which no outsider can be."""
_TEXTS = {"title", "body", "body_text", "body_html", "bodyText", "bodyHTML", "diff_hunk", "diffHunk"}
_OWN_EVENTS = {
    "push", "schedule", "workflow_dispatch", "repository_dispatch", "release", "merge_group", "dynamic", "create",
    "delete", "deployment",
}  # fmt: skip
"""What starts runs whose title somebody with the right to push chose."""


def is_outsiders(item: Mapping[str, Any]) -> bool:
    """Whether GitHub says of the author of `item` that they do not belong to the repository."""
    association = item.get("author_association") or item.get("authorAssociation")
    if association is None or association in INSIDERS:
        return False
    user: Any = item.get("user")
    return not (isinstance(user, dict) and cast("dict[str, Any]", user).get("login") in _BOTS)


def hidden(data: Any) -> Any:
    """JSON `data` of GitHub's with the texts of outsiders replaced."""
    if isinstance(data, list):
        return [hidden(item) for item in cast("list[Any]", data)]
    if not isinstance(data, dict):
        return data
    item = cast("dict[str, Any]", data)
    names = _TEXTS if is_outsiders(item) else _unsigned(item)
    kept: dict[str, Any] = {}
    for name, value in item.items():
        if name in names and isinstance(value, str) and value:
            kept[name] = HIDDEN
        elif name == "text_matches" and names:
            kept[name] = []
        else:
            kept[name] = hidden(value)
    return kept


def _unsigned(item: Mapping[str, Any]) -> set[str]:
    """The fields of `item` that anybody may have written, where nothing is said of who did."""
    if "run_attempt" in item and item.get("event") not in _OWN_EVENTS:
        return {"display_title"}
    if "latest_comment_url" in item:
        # The subject of a notification.
        return {"title"}
    if "ghsa_id" in item and item.get("state") == "triage":
        return {"summary", "description"}
    return set()
