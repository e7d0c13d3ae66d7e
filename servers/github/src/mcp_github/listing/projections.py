"""What is kept of GitHub's objects: columns by name, each with a way to find its value."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mcp_batteries.errors import Invalid, quote
from mcp_batteries.server.calling.results import is_answering_script
from mcp_github.safety.lockdown import INSIDERS

__all__ = [
    "Getter",
    "Item",
    "Projection",
    "author_of",
    "clip",
    "clip_note",
    "clip_note_of_rows",
    "is_clipped",
    "pick",
    "pluck",
    "same_names",
    "trust_of",
]

# An object of GitHub's.
Item = Mapping[str, Any]
# A dotted path to a value, or a function of the object.
Getter = str | Callable[[Item], Any]

# Of a text inside a list.
_MAX_TEXT_CHARACTERS = 1500
_CLIP_END = " more characters]"
# Where an answer cut a text, be it a gist's; what is to be added to the text stands below.
_CLIPPED = re.compile(r"… \[(?:\d+ more characters|cut, \d+ bytes)\][ \t\r]*$", re.MULTILINE)
# What GitHub's interfaces call a column of ours.
_COLUMNS_BY_OTHER_NAME = {
    "user": "author", "html_url": "url", "label": "labels", "assignee": "assignees", "is_draft": "draft",
    "head_ref_name": "head", "head_ref_oid": "head_sha", "base_ref_name": "base", "base_ref_oid": "base_sha",
    "latest_reviews": "verdicts", "reviews": "verdicts", "status_check_rollup": "checks",
    "closing_issues_references": "closes", "review_requests": "reviewers", "authored_date": "date",
    "committed_date": "date", "merge_state_status": "mergeable_state", "open_issues": "open_issues_and_pulls",
    "open_issues_count": "open_issues_and_pulls",
}  # fmt: skip


@dataclass(frozen=True)
class Projection:
    """What is kept of a kind of object.

    Attributes:
        getters: where each column's value is.
        default: columns shown unless the caller chooses.
        named: others that descriptions name, because callers often choose them.
    """

    getters: Mapping[str, Getter]
    default: Sequence[str]
    named: Sequence[str] = ()

    def describe_columns(self, noun: str = "") -> str:
        """Return in words which columns there are, for the description of an argument.

        Args:
            noun: whose columns they are, in a tool that lists several kinds.
        """
        of = ""
        if noun:
            of = f" of {noun}"
        text = f"Columns{of}, by default {','.join(self.default)}"
        if self.named:
            text = f"{text}; also {','.join(self.named)}"
        return text

    def choose_columns(self, fields: Sequence[str] | None) -> list[str]:
        """Return the columns for the caller's `fields`.

        Raises:
            Invalid: there is no such column.
        """
        if not fields:
            return list(self.default)
        return list(dict.fromkeys(self._find_column(name) for name in fields))

    def _find_column(self, name: str) -> str:
        """Return the column that `name` means: its own name, one as in `mergedAt`, or the one that GitHub has for it.

        Raises:
            Invalid: there is no such column.
        """
        snake_name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        time_name = re.sub("_date$", "_at", snake_name)
        for column in (name, snake_name, time_name, _COLUMNS_BY_OTHER_NAME.get(snake_name, "")):
            if column in self.getters:
                return column
        choices = ", ".join(f"`{column}`" for column in self.getters)
        raise Invalid(f"There is no field {quote(name)}.", f"There are: {choices}.")

    def to_row(self, item: Item, columns: Sequence[str]) -> list[Any]:
        """Return the values of `item` in the order of `columns`; a text that is the only one is whole."""
        if len(columns) == 1:
            return [pick(item, _unclipped(self.getters[columns[0]]))]
        return [pick(item, self.getters[name]) for name in columns]

    def to_record(self, item: Item, fields: Sequence[str] | None = None) -> dict[str, Any]:
        """Return `item` trimmed to its columns, without what is not set; a script counts an empty list too."""
        columns = self.choose_columns(fields)
        unset: list[Any] = [None]
        if not is_answering_script():
            unset.append([])
        values = dict(zip(columns, self.to_row(item, columns), strict=True))
        return {name: value for name, value in values.items() if value not in unset}

    def missing_columns(self, columns: Sequence[str], members: Collection[str]) -> list[str]:
        """Return those of `columns`, quoted, that no object had anything for.

        Args:
            members: the names of all members that the objects had.
        """
        missing: list[str] = []
        for name in columns:
            path = _unclipped(self.getters[name])
            if isinstance(path, str) and path.split(".")[0] not in members:
                missing.append(f"`{name}`")
        return missing


def pick(item: Item, getter: Getter) -> Any:
    """Return the value that `getter` finds in `item`; None where there is none."""
    if callable(getter):
        return getter(item)
    value: Any = item
    for name in getter.split("."):
        if not isinstance(value, dict):
            return None
        value = cast("dict[str, Any]", value).get(name)
    return value


@dataclass(frozen=True)
class _Clip:
    path: str
    limit: int

    def __call__(self, item: Item) -> Any:
        text = pick(item, self.path)
        if not isinstance(text, str) or len(text) <= self.limit or is_answering_script():
            return text
        return f"{text[: self.limit]}… [{len(text) - self.limit}{_CLIP_END}"


def clip(path: str, limit: int = _MAX_TEXT_CHARACTERS) -> Getter:
    """Return a getter of the text at `path`, cut with a word about it; whole as the only column, and in a script."""
    return _Clip(path, limit)


def is_clipped(text: str) -> bool:
    """Return whether a text, or a part of it, ends where an answer cut it: it would replace the whole one."""
    return _CLIPPED.search(text) is not None


def clip_note(values: Iterable[Any]) -> str | None:
    """Return how to get a body whole, if one of `values` was cut."""
    for value in values:
        if isinstance(value, str) and value.endswith(_CLIP_END):
            return "A text that was cut is whole with fields=body alone."
    return None


def clip_note_of_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str | None:
    """Return how to get a body whole, if one of those in `rows` was cut."""
    if "body" not in columns:
        return None
    body = columns.index("body")
    return clip_note(row[body] for row in rows)


def pluck(path: str, key: str = "name") -> Getter:
    """Return a getter of the `key` of each object in the list at `path`."""

    def pluck_keys(item: Item) -> Any:
        objects = pick(item, path)
        if not isinstance(objects, list):
            return None
        return [one if isinstance(one, str) else pick(one, key) for one in cast("list[Any]", objects)]

    return pluck_keys


def same_names(*columns: str) -> dict[str, Getter]:
    """Return getters for columns that are called the same upstream."""
    return dict(zip(columns, columns, strict=True))


def author_of(item: Item) -> str | None:
    """Return the login of who wrote `item`; those whose account is gone are `ghost`, as on GitHub's pages."""
    for name in ("user", "author"):
        if name in item:
            return str(pick(item, f"{name}.login") or "ghost")
    return None


def trust_of(item: Item) -> str | None:
    """Return whether the author of `item` belongs to the repository; only then their text has any authority there."""
    association = item.get("author_association") or item.get("authorAssociation")
    if association is None:
        return None
    if association in INSIDERS:
        return "insider"
    return "outsider"


def _unclipped(getter: Getter) -> Getter:
    if isinstance(getter, _Clip):
        return getter.path
    return getter
