"""Compares what a write asked for with what GitHub answered: it leaves out without a word what a token may not set.

Only what both sides show is judged: most answers lack a part of what was asked for, such as the message of a commit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mcp_batteries.errors import quote
from mcp_github.safety.scrub import scrub_text

__all__ = ["ADDED_NAMES", "UnsetField", "describe_unset", "find_unset", "is_everything_unset", "needs_rights"]

# Requests that only add names to something: where none of them is there, nothing was done.
ADDED_NAMES = frozenset({"reviewers", "team_reviewers", "assignees"})

# Where the answer has a field under another name, or inside another.
_ANSWERED_AS: Mapping[str, str] = {
    "reviewers": "requested_reviewers",
    "team_reviewers": "requested_teams",
    "new_name": "name",
    "event": "state",
    "side": "diffSide",
    "categoryId": "category",
    "mergeMethod": "autoMergeRequest.mergeMethod",
    "commitHeadline": "autoMergeRequest.commitHeadline",
    "commitBody": "autoMergeRequest.commitBody",
}
# What only steers a request or has another meaning in the answer, such as the comments of a review and their number.
_NOT_A_STATE = frozenset({"comments", "id", "message", "sha", "tree"})
# Objects that a request names by one of their own fields.
_REFERENCES = frozenset(
    {"milestone", "type", "base", "head", "organization", "categoryId", "answer", "owner", "parent"}
)
# Lists of values by the ids of their fields.
_FIELD_LISTS = frozenset({"issue_field_values", "fields"})
_REFERENCE_KEYS = ("name", "login", "slug", "title", "number", "ref", "label", "id", "sha", "raw")
# What a request calls otherwise than the answer does.
_SAME_VALUES: Mapping[str, str] = {
    "approve": "approved",
    "request_changes": "changes_requested",
    "comment": "commented",
    "copilot-pull-request-reviewer[bot]": "copilot",
    "copilot-swe-agent[bot]": "copilot",
    "copilot-swe-agent": "copilot",
}
# What only those may set who may push or triage; GitHub drops it for others.
_PRIVILEGED = frozenset({"labels", "assignees", "milestone", "type", "issue_field_values"})
_SHOWN_NAMES: Mapping[str, str] = {
    "team_reviewers": "reviewers",
    "new_name": "name",
    "issue_field_values": "custom fields",
    "fields": "value",
    "target_commitish": "ref",
    "categoryId": "category",
    "mergeMethod": "method",
    "commitHeadline": "title",
    "commitBody": "body",
    "isDraft": "draft",
    "isResolved": "resolved",
    "isAnswered": "answer",
}
# A longer value is a text, which the caller knows.
_MAX_SHOWN_CHARACTERS = 60
_DAY = re.compile(r"\d{4}-\d\d-\d\d(?:T[\d:.]+Z?)?$")
_DAY_CHARACTERS = len("2026-01-31")


@dataclass(frozen=True)
class UnsetField:
    """A field that is not as it was asked for.

    Attributes:
        missing: the values that are not there.
        remaining: the values that should be there no more.
        is_whole: whether nothing of what was asked for is there.
    """

    name: str
    missing: Sequence[str]
    remaining: Sequence[str]
    is_whole: bool

    def describe(self) -> str:
        """Return it with its values, as a part of a sentence."""
        words = [_SHOWN_NAMES.get(self.name, self.name)]
        words += [quote(value) for value in self.missing if value and len(value) <= _MAX_SHOWN_CHARACTERS]
        if self.remaining:
            words.append(f"(still {', '.join(quote(value, _MAX_SHOWN_CHARACTERS) for value in self.remaining)})")
        return " ".join(words)


def find_unset(requested: Any, answered: Any, *, method: str) -> list[UnsetField]:
    """Return the fields of a request that the answer shows otherwise.

    Args:
        requested, answered: the bodies of both, as JSON.
        method: that of the request. A PATCH or PUT replaces lists, a POST adds to them, a DELETE takes from them.
    """
    if not isinstance(requested, dict) or not isinstance(answered, dict):
        return []
    unset: list[UnsetField] = []
    for name, value, answer in _pair_fields(cast("dict[str, Any]", requested), cast("dict[str, Any]", answered)):
        if _are_files(name, value):
            field = _compare_files(value, answer or {})
        elif name in _FIELD_LISTS:
            field = _compare_field_values(name, value, answer)
        elif isinstance(value, list):
            field = _compare_lists(name, cast("list[Any]", value), cast("list[Any]", answer or []), method)
        else:
            field = _compare(name, value, answer)
        if field is not None:
            unset.append(field)
    return unset


def is_everything_unset(requested: Any, unset: Sequence[UnsetField]) -> bool:
    """Return whether nothing of what was asked for came about."""
    if not isinstance(requested, dict) or not requested:
        return False
    names = {field.name for field in unset if field.is_whole}
    return names == set(cast("dict[str, Any]", requested))


def needs_rights(unset: Sequence[UnsetField]) -> bool:
    """Return whether one of the fields takes rights that GitHub does not name."""
    return any(field.name in _PRIVILEGED for field in unset)


def describe_unset(unset: Sequence[UnsetField]) -> str:
    """Return what was not set, as a sentence."""
    return f"GitHub did not set: {'; '.join(field.describe() for field in unset)}."


def _pair_fields(requested: dict[str, Any], answered: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, value and answer of the fields that can be compared."""
    for name, value in requested.items():
        if name in _NOT_A_STATE:
            continue
        if name == "body" and requested.get("generate_release_notes"):
            # The notes follow the text.
            continue
        holder, _, key = _ANSWERED_AS.get(name, name).rpartition(".")
        fields = answered
        if holder:
            fields = cast("dict[str, Any]", answered.get(holder) or {})
        if key in fields and _is_comparable(name, value, fields[key]):
            yield name, value, fields[key]


def _is_comparable(name: str, value: Any, answer: Any) -> bool:
    """Return whether both are lists or neither is, and an answer that is an object is one that a request names."""
    if value is not None and answer is not None and isinstance(value, list) != isinstance(answer, list):
        return False
    return not isinstance(answer, dict) or name in _REFERENCES or _are_files(name, value)


def _are_files(name: str, value: Any) -> bool:
    """Return whether these are the files of a gist by their names; elsewhere they are a list."""
    return name == "files" and isinstance(value, dict)


def _compare_files(files: dict[str, Any], answer: dict[str, Any]) -> UnsetField | None:
    """Return which files of a gist are not there with their text, and which are though they were deleted."""
    missing: list[str] = []
    remaining: list[str] = []
    for name, file in files.items():
        answered = answer.get(name)
        if file is None and answered is not None:
            remaining.append(name)
        elif file is not None and (answered is None or _has_other_text(file, answered)):
            missing.append(name)
    if not missing and not remaining:
        return None
    return UnsetField("files", missing, remaining, is_whole=len(missing) + len(remaining) == len(files))


def _has_other_text(file: dict[str, Any], answered: dict[str, Any]) -> bool:
    """Return whether GitHub shows another text of a file than it was sent; it cuts long ones."""
    if "content" not in file or "content" not in answered or answered.get("truncated"):
        return False
    return _plain(file["content"]) != _plain(answered["content"])


def _compare_field_values(name: str, values: list[dict[str, Any]], answer: list[dict[str, Any]]) -> UnsetField | None:
    """Return which values of fields, which are named by their ids, are not there; one that was cleared is."""
    answered: dict[Any, set[str]] = {}
    for item in answer or []:
        options: list[Any] = [item.get("value"), item.get("single_select_option")]
        options += item.get("multi_select_options") or []
        keys = answered.setdefault(item.get("issue_field_id", item.get("id")), set())
        keys.update(_keys_of(options))
    missing: list[str] = []
    for item in values:
        keys = answered.get(item.get("field_id", item.get("id")), set())
        missing += [text for text in _texts_of(item["value"]) if _key(text) not in keys]
    if not missing:
        return None
    return UnsetField(name, missing, [], is_whole=len(missing) >= len(values))


def _compare(name: str, value: Any, answer: Any) -> UnsetField | None:
    """Return what of a field is not as it was asked for; None if all is."""
    names = _names_of(answer)
    if _is_empty(value):
        if not names:
            return None
        return UnsetField(name, [], names[:1], is_whole=True)
    text = _plain(value)
    if _key(text) in map(_key, names):
        return None
    return UnsetField(name, [text], [], is_whole=True)


def _keys_of(items: Iterable[Any]) -> set[str]:
    """Return the keys of all names that GitHub gives things."""
    keys: set[str] = set()
    for item in items:
        keys.update(map(_key, _names_of(item)))
    return keys


def _compare_lists(name: str, value: list[Any], answer: list[Any], method: str) -> UnsetField | None:
    """Return which items of a list are not there, and which are though they should be there no more.

    Args:
        method: as in `find_unset`.
    """
    requested: dict[str, str] = {}
    for item in value:
        requested.update((_key(text), text) for text in _names_of(item)[:1])
    answered_keys = _keys_of(answer)
    present = [text for key, text in requested.items() if key in answered_keys]
    absent = [text for key, text in requested.items() if key not in answered_keys]
    match method:
        case "DELETE":
            field = UnsetField(name, [], present, is_whole=not absent)
        case "PATCH" | "PUT":
            field = UnsetField(name, absent, _names_of_others(answer, requested.keys()), is_whole=not present)
        case _:
            field = UnsetField(name, absent, [], is_whole=not present)
    if not field.missing and not field.remaining:
        return None
    return field


def _names_of_others(answer: list[Any], keys: KeysView[str]) -> list[str]:
    """Return a name of each item that has none of the keys."""
    others: list[str] = []
    for item in answer:
        names = _names_of(item)
        if names and keys.isdisjoint(map(_key, names)):
            others.append(names[0])
    return others


def _names_of(value: Any) -> list[str]:
    """Return what a request may call a value; nothing for one that is empty."""
    if isinstance(value, dict):
        item = cast("dict[str, Any]", value)
        return [_plain(item[key]) for key in _REFERENCE_KEYS if not _is_empty(item.get(key))]
    if _is_empty(value):
        return []
    return [_plain(value)]


def _texts_of(value: Any) -> list[str]:
    """Return a value, or each of several, as texts; those that are empty are left out."""
    values: list[Any] = [value]
    if isinstance(value, list):
        values = cast("list[Any]", value)
    return [_plain(each) for each in values if not _is_empty(each)]


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or value is False


def _plain(value: Any) -> str:
    """Return a value as a text without what is invisible, its white space as GitHub may keep it."""
    text, _ = scrub_text(str(value))
    return " ".join(text.split())


def _key(text: str) -> str:
    """Return what is equal for spellings that GitHub takes for the same."""
    if _DAY.match(text):
        # GitHub keeps some times as days.
        return text[:_DAY_CHARACTERS]
    key = text.casefold().removesuffix(".0")
    return _SAME_VALUES.get(key, key)
