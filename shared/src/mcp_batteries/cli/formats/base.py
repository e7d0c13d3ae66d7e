"""What all editors share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

__all__ = [
    "ConfigFormat",
    "Malformed",
    "Path",
    "Splice",
    "apply",
    "is_same",
    "line_break",
    "nested",
    "put_members",
    "value_at",
]

# The keys, and positions in arrays, from the root to a value.
Path = Sequence[str | int]


class Malformed(ValueError):
    """Raised when a file cannot be read, or holds something that the editor cannot change; says where and why."""


class ConfigFormat(Protocol):
    """The editor of one format. Texts come without a byte order mark."""

    def read(self, text: str) -> dict[str, Any]:
        """Return what the host reads.

        Raises:
            Malformed: the host cannot read it.
        """
        ...

    def is_readable(self, text: str) -> bool:
        """Return whether the host can read the text."""
        ...

    def read_leniently(self, text: str) -> dict[str, Any]:
        """Return what the text means, also if this host is stricter than its format.

        Raises:
            Malformed: nobody can read it.
        """
        ...

    def repair(self, text: str) -> str:
        """Return the text without trailing commas if the host does not take them."""
        ...

    def put(self, text: str, path: Path, value: Any) -> str:
        """Return the text with `value` at `path`: what is there already is changed as little as possible.

        Raises:
            Malformed: the text cannot be read, or something else is on the way.
        """
        ...

    def remove(self, text: str, path: Path) -> str:
        """Return the text without what is at `path`.

        Raises:
            Malformed: it is not there, or the text cannot be read.
        """
        ...

    def comments(self, text: str, path: Path = ()) -> list[str]:
        """Return the comments of the whole text, or those that belong to the value at `path`."""
        ...


class Splice(NamedTuple):
    """A part of a text and what is to stand there instead."""

    start: int
    end: int
    text: str = ""


def apply(text: str, splices: Iterable[Splice]) -> str:
    """Return the text with all splices, which do not overlap, done."""
    for splice in sorted(splices, reverse=True):
        text = text[: splice.start] + splice.text + text[splice.end :]
    return text


def line_break(text: str) -> str:
    """Return the line break that all lines of the text end with, or a line feed.

    An editor would make them all alike, and the entry be another than the one that was written.
    """
    if 0 < text.count("\n") == text.count("\r\n"):
        return "\r\n"
    return "\n"


def nested(path: Path, value: Any) -> Any:
    """Return `value` inside an object for each key of the path."""
    for key in reversed(path):
        value = [value] if isinstance(key, int) else {key: value}
    return value


def put_members(
    config_format: ConfigFormat, text: str, path: Path, existing: Iterable[str], members: Mapping[str, Any]
) -> str:
    """Return the text with the object at `path` holding `members`, each edited where it stands.

    Args:
        existing: the keys that the object has.

    Raises:
        Malformed: the text cannot be edited.
    """
    for key in existing:
        if key not in members:
            text = config_format.remove(text, [*path, key])
    for key, item in members.items():
        text = config_format.put(text, [*path, key], item)
    return text


def value_at(value: Any, path: Path) -> Any:
    """Return what is at `path`, or None."""
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def is_same(one: Any, other: Any) -> bool:
    """Return whether two values are written alike, the order of keys aside; unlike `==`, 1 is not true."""
    return json.dumps(one, sort_keys=True, default=repr) == json.dumps(other, sort_keys=True, default=repr)
