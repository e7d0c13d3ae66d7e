"""The results of the tools: their shapes, and their text forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_batteries.scripts.answer_form import is_answering_rows
from mcp_batteries.server.calling.results import TextResult, to_compact_json
from mcp_git.path_quoting import describe_hidden

__all__ = ["Answer", "Table", "count"]


def count(number: int, noun: str) -> str:
    """Return a number and its noun: `1 file`, `2,000 files`, `3 branches`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {_plural(noun)}"


@dataclass(frozen=True, slots=True)
class Table:
    """What an answer lists, for a script that gets an object for each row."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    @property
    def lines(self) -> list[str]:
        return [to_compact_json(values) for values in (self.columns, *self.rows)]


def _plural(noun: str) -> str:
    if noun.endswith("y"):
        return f"{noun[:-1]}ies"
    if noun.endswith(("ch", "sh")):
        return f"{noun}es"
    return f"{noun}s"


@dataclass(frozen=True, slots=True)
class Answer(TextResult):
    """One text, headed by a line that says what it is, which part is shown and how to continue.

    Attributes:
        facts: the parts of the first line.
        lines: the rest.
        next_cursor: the cursor of the next page.
        view_data: returns the data of its view, which models do not read.
        table: returns the rest where a script asks for rows; None if it has none.
    """

    facts: Sequence[str]
    lines: Sequence[str] = ()
    next_cursor: str | None = None
    view_data: Callable[[], Mapping[str, Any]] = dict[str, Any]
    table: Callable[[], Table] | None = None

    @property
    def for_views(self) -> Mapping[str, Any]:
        return self.view_data()

    def text(self) -> str:
        lines = self.lines
        head = "; ".join(filter(None, [*self.facts, describe_hidden(lines)]))
        if self.table is not None and is_answering_rows():
            # By this word a script knows a table.
            head = f"rows: {head}"
            lines = self.table().lines
        if self.next_cursor is not None:
            head += f'; continue with cursor="{self.next_cursor}"'
        # Behind the last line too, which may be blank.
        return "".join(f"{line}\n" for line in (f"[{head}]", *lines))
