"""Result shapes: for lists, for one object, for a completed write, and for text.

A list has columns and rows, because repeated field names are half the cost of lists. Text from GitHub stays in its own
field, beside its author and how far to trust them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import ConfigDict

from mcp_batteries.server.calling.results import DataResult

__all__ = ["Done", "Listing", "Record", "Text"]


def _brief(schema: dict[str, Any]) -> None:
    """Say that it is an object: the same schema would stand at most of the tools, and each client pays for all.

    `required` alone would cost 2 kB and help nobody: a generator of types makes the same of an object with it.
    """
    for more in ("properties", "required"):
        del schema[more]


class _Answer(DataResult):
    model_config = ConfigDict(json_schema_extra=_brief)
    LEFT_OUT_OF_SCRIPTS: ClassVar[frozenset[str]] = frozenset({"uri"})


class Listing(_Answer):
    """Objects of one kind.

    Attributes:
        cursor: for the next page; None after the last.
        total: the number of all objects, if GitHub reports it or the last of them are here.
        removed: the number of removed invisible characters.
    """

    cursor: str | None = None
    note: str | None = None
    total: int | None = None
    removed: int | None = None
    columns: list[str]
    rows: list[list[Any]]


class Record(_Answer):
    """One object, reduced to the requested fields.

    Attributes:
        uri: the URI of its resource, to read again or to follow.
    """

    uri: str | None = None
    note: str | None = None
    removed: int | None = None
    data: dict[str, Any]


class Done(_Answer):
    """The result of a write.

    Attributes:
        url: where a person can look at it.
        note: what GitHub did otherwise than it was asked.
    """

    done: str
    note: str | None = None
    uri: str | None = None
    url: str | None = None
    data: dict[str, Any] | None = None


@dataclass(frozen=True)
class Text:
    """Text of a repository after one line that says what it is and how to continue."""

    head: str
    body: str

    def text(self) -> str:
        return f"[{self.head}]\n{self.body}"
