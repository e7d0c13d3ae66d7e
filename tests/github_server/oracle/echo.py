"""What GitHub's answer to a write shows of what was asked for; the examples of its description show something else."""

from typing import Any

__all__ = ["mutated", "shown"]

_SHOWN_AS = {
    "reviewers": "requested_reviewers", "team_reviewers": "requested_teams", "new_name": "name", "event": "state",
}  # fmt: skip
_STATES = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}
_NAMES = ("login", "slug", "name", "sha")
_OTHERS = {"comments", "tree"}
"""What the answer has under the same name is something else."""
_MADE: dict[str, dict[str, Any]] = {
    "resolveReviewThread": {"isResolved": True}, "unresolveReviewThread": {"isResolved": False},
    "convertPullRequestToDraft": {"isDraft": True}, "markPullRequestReadyForReview": {"isDraft": False},
    "unmarkDiscussionCommentAsAnswer": {"answer": None},
}  # fmt: skip
"""What a mutation makes of a thing, besides what its input has."""


def shown(verb: str, body: Any, data: Any) -> Any:
    """The answer `data` to a write, with what was asked for in `body` in the place of the example's values."""
    if not isinstance(body, dict) or not isinstance(data, dict):
        return data
    made = dict(data)
    for asked, value in body.items():
        name = _SHOWN_AS.get(asked, asked)
        if name not in data or name in _OTHERS or (name == "content" and isinstance(data[name], dict)):
            continue
        if asked == "files":
            made[name] = {file: text for file, text in value.items() if text is not None}
            continue
        if asked == "event":
            value = _STATES.get(value, value)
        found = _as(data[name], value)
        if verb == "DELETE":
            found = [item for item in data[name] if not any(item.get(key) in value for key in _NAMES)]
        made[name] = found
    for values in ("fields", "issue_field_values"):
        if isinstance(body.get(values), list):
            made[values] = [
                {("issue_field_id" if name == "field_id" else name): item[name] for name in item}
                for item in body[values]
            ]
    return made


def _as(example: Any, value: Any) -> Any:
    """`value` as objects of the shape of `example`, if that has objects in it."""
    if isinstance(value, list) and isinstance(example, list):
        first = example[0] if example else {}
        return [_as(first, item) for item in value]
    if not isinstance(example, dict) or value is None or isinstance(value, dict):
        return value
    if isinstance(value, int):
        return {**example, "number": value}
    if "ref" in example:
        owner, _, ref = str(value).rpartition(":")
        return {**example, "ref": ref, "label": f"{owner or 'octo'}:{ref}"}
    names = [key for key in _NAMES if key in example] or ["name", "login"]
    return {**example, **dict.fromkeys(names, value)}


def mutated(mutation: str, given: dict[str, Any]) -> dict[str, Any]:
    """The fields of the object that a mutation with the input `given` answers with."""
    made = {**given, **_MADE.get(mutation, {})}
    if "side" in given:
        made["diffSide"] = given["side"]
    if "categoryId" in given:
        made["category"] = {"id": given["categoryId"]}
    if mutation == "enablePullRequestAutoMerge":
        made["autoMergeRequest"] = given
    if mutation == "markDiscussionCommentAsAnswer":
        made["answer"] = {"id": given["id"]}
    # The ids of what it is about are not its own.
    return {name: value for name, value in made.items() if name != "id"}
