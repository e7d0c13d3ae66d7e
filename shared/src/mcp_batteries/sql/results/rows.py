"""Rows of a query as answers show them: one text with what was cut, then a JSON array per row.

Rows are sent once: a second, structured copy would double the largest answers, and hosts that show only structured
content fall back to the text where there is none.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mcp_batteries.server.calling.results import is_answering_script, to_compact_json

__all__ = [
    "Results",
    "RowPage",
    "SearchHits",
    "bare_sql",
    "format_count",
    "format_size",
    "to_one_line",
]

# PostgreSQL's names have up to 63 bytes. SQLite gives an expression without AS its whole text as a name.
_MAX_COLUMN_CHARACTERS = 64


def bare_sql(text: str) -> str:
    """Return `text` without the fence that models put around code, and with one final semicolon instead of several."""
    text = text.strip("\ufeff\u200b")
    first, _, fenced = text.strip().partition("\n")
    if first.startswith("```") and fenced.endswith("```"):
        language = first[3:].strip()
        if not language or language.isalnum():
            text = fenced[:-3]
    body = text.rstrip(" \t\r\n\f;")
    if text.count(";", len(body)) > 1:
        return f"{body};"
    return text


@dataclass(frozen=True)
class RowPage:
    """Rows of a result.

    Attributes:
        lines: a JSON array per row, each with its end of line.
        start: number of the first row, from 1.
        cursor: the cursor of the next page; None if these rows are the last.
        cut: cells shortened so far.
        notes: remarks on these rows.
        source_notes: remarks on what they were read from, which an answer makes once.
        more: whether further rows exist without a cursor.
    """

    columns: Sequence[str]
    lines: str
    start: int
    rows: int
    cursor: str | None
    cut: int = 0
    notes: Sequence[str] = ()
    source_notes: Sequence[str] = ()
    more: bool = False

    def text(self) -> str:
        last = self.start + self.rows - 1
        if self.cursor is not None:
            head = f"truncated: rows {self.start} to {last}; the next page: cursor={self.cursor}"
        elif self.start > 1:
            head = f"rows {self.start} to {last}, the last"
        else:
            head = format_count(self.rows, "row")
        facts = [head, *self.notes, *self.source_notes]
        if self.cut:
            facts.append(f"{format_count(self.cut, 'cell')} cut; read more with `max_cell` or substr()")
        columns = self.columns
        if is_answering_script():
            # Its `remark` is one line, and it finds cells by the names of the columns.
            facts = ["; ".join(facts)]
        else:
            columns = [_shorten_column(name) for name in columns]
        return "\n".join([*(f"[{fact}]" for fact in facts), to_compact_json(columns), self.lines])

    def document(self) -> str:
        """Return the same as one JSON document, for a resource."""
        rows = ",\n".join(self.lines.split("\n")[:-1])
        truncated = ',"truncated":true' if self.cursor is not None or self.more else ""
        return f'{{"columns":{to_compact_json(self.columns)},"rows":[\n{rows}]{truncated}}}\n'


def _shorten_column(name: str) -> str:
    """Return the name of a column; of a long one, which is an expression without a name, its beginning."""
    return name if len(name) <= _MAX_COLUMN_CHARACTERS else f"{name[: _MAX_COLUMN_CHARACTERS - 1]}…"


@dataclass(frozen=True)
class Results:
    """The results of several statements of one call at one moment: rows, or why there are none, in their order."""

    results: Sequence[RowPage | str]

    def text(self) -> str:
        total = len(self.results)
        texts: list[str] = []
        known_notes: set[str] = set()
        for number, result in enumerate(self.results, 1):
            text = f"failed: {result}"
            if isinstance(result, RowPage):
                new_notes = [note for note in result.source_notes if note not in known_notes]
                known_notes.update(new_notes)
                text = replace(result, source_notes=new_notes).text().rstrip("\n")
            texts.append(f"{number} of {total}: {text}")
        return "\n".join(texts)


@dataclass(frozen=True)
class SearchHits:
    """Places in the schemas where words occur."""

    lines: Sequence[str]
    more: bool

    def text(self) -> str:
        head = "[truncated: search for something longer]\n" if self.more else ""
        return head + ("\n".join(self.lines) or "Nothing in the schema matches.")


def to_one_line(text: str) -> str:
    """Return `text` with control characters such as line ends escaped: a name must not look like another line."""
    if text.isprintable():
        return text
    return "".join(_escape(letter) for letter in text)


def _escape(letter: str) -> str:
    if letter.isprintable() or unicodedata.category(letter) in ("Zs", "Co", "Cn"):
        return letter
    return letter.encode("unicode_escape", "surrogatepass").decode()


def format_count(number: int, one: str, several: str = "") -> str:
    """Return `1 row`, `1,234 rows`."""
    if number == 1:
        return f"{number:,} {one}"
    return f"{number:,} {several or one + 's'}"


def format_size(number: int) -> str:
    """Return a number of bytes in a form for people."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 10_000 or unit == "GB":
            return f"{number:,} {unit}"
        number //= 1000
    raise AssertionError
