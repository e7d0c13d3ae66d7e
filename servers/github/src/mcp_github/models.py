"""Result shapes: one for lists, one for a thing, one for what was done, one for text.

A list is columns and rows, because the names of fields repeated per object are half of what lists cost. Text that comes
from GitHub stays in its own field, beside who wrote it, how they belong to the repository and what that is worth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict

from mcp_batteries.server.results import DataResult

__all__ = ["Done", "Listing", "Record", "Text"]


def _brief(schema: dict[str, Any]) -> None:
    """Say that it is an object: the same schema would stand at most of the tools, and each client pays for all.

    `required` alone would cost 2 kB and help nobody: a generator of types makes the same of an object with it.
    """
    for more in ("properties", "required"):
        del schema[more]


class _Answer(DataResult):
    model_config = ConfigDict(json_schema_extra=_brief)


class Listing(_Answer):
    """Objects of one kind.

    Attributes:
        cursor: for the next page; None after the last.
        total: all there are, where GitHub tells.
        removed: characters taken out because nobody could have seen them.
    """

    cursor: str | None = None
    note: str | None = None
    total: int | None = None
    removed: int | None = None
    columns: list[str]
    rows: list[list[Any]]


class Record(_Answer):
    """One object, trimmed to what is asked about it.

    Attributes:
        uri: of its resource, to read again or to follow.
    """

    uri: str | None = None
    note: str | None = None
    removed: int | None = None
    data: dict[str, Any]


class Done(_Answer):
    """What a write did.

    Attributes:
        url: where a person can look at it.
    """

    done: str
    uri: str | None = None
    url: str | None = None
    data: dict[str, Any] | None = None


@dataclass(frozen=True)
class Text:
    """Text of a repository behind one line that says what it is and how to go on."""

    head: str
    body: str

    def text(self) -> str:
        return f"[{self.head}]\n{self.body}"
