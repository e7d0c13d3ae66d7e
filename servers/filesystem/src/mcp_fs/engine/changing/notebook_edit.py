"""Edits a notebook by the text as which it is read: in the cell, and nowhere else in its JSON.

Only the value that holds the source of a changed cell is written anew, in the manner of the file; every other byte
stays. What the cells have put out can't be edited: running a cell changes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

from mcp_batteries.errors import Invalid, NotFound, Problem, Refused, TooLarge
from mcp_batteries.limits import Stop
from mcp_fs.engine.documents.notebook import Cell, notebook_cells, with_final_newline
from mcp_fs.engine.text.edit import (
    Replacement,
    ambiguous_error,
    check_replacement,
    common_prefix_length,
    find_spans,
    label_edit,
    line_numbers_of,
    not_found_error,
    replace_spans,
    split_lines,
)
from mcp_fs.engine.text.encodings import replace_undecodable as readable

__all__ = ["Notebook", "apply_patch", "replace_in_cells", "substitute_in_cells"]

_DECODER = json.JSONDecoder()
_BLANKS = re.compile(r"[ \t\n\r]*")
_ESCAPED = re.compile(r"\\u(?!00[0-7])[0-9a-fA-F]{4}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_INDENT = re.compile(r"\n([ \t]+)")
_HEADER = re.compile(r"\[cell (\d+), \w+\]\r?\n")
_MOST_COMPARED = 4000
"""Lines from the first to the last that a patch changes: to compare them takes the square of that."""

Span = tuple[int, int]


@dataclass(frozen=True)
class Notebook:
    """A notebook and the text as which it is read.

    Attributes:
        json: the whole file.
    """

    json: str
    cells: Sequence[Cell]

    @classmethod
    def parse(cls, data: bytes | str, text: str) -> Notebook | None:
        """The notebook in a file; None of what is none, which is read as it is.

        Args:
            text: what `data` decodes to.
        """
        cells = notebook_cells(data)
        return None if cells is None else cls(text, cells)

    @cached_property
    def text(self) -> str:
        """What a reader sees."""
        return "".join(cell.text for cell in self.cells)

    @property
    def first_lines(self) -> list[int]:
        """Of each cell, at which line of `text` its source begins, from 0."""
        lines: list[int] = []
        line = 0
        for cell in self.cells:
            lines.append(line + 1)
            line += len(split_lines(cell.text))
        return lines

    def with_sources(self, sources: Mapping[int, str]) -> Notebook:
        """The notebook with other sources of some cells, as they are read: with a line end behind the last line.

        Args:
            sources: by the index of the cell.

        Raises:
            Refused: the file does not say where the source of such a cell is, or it is no text.
        """
        spans = list(_source_spans(self.json))
        pieces: list[str] = []
        done = 0
        for index in sorted(sources):
            span, old = spans[index], self.cells[index].source
            if sources[index] == with_final_newline(old):
                continue
            if span is None:
                raise Refused(f"Cell {index + 1} has no text in the file that could be edited.")
            source = sources[index]
            if not old.endswith("\n"):
                source = source.removesuffix("\n")
            pieces += [self.json[done : span[0]], self._written(source, span, spans)]
            done = span[1]
        new = "".join([*pieces, self.json[done:]])
        changed = self.parse(new, new)
        if changed is None:
            raise Refused("What this would leave is not a notebook; nothing was written.")
        return changed

    def _written(self, source: str, span: Span, spans: Sequence[Span | None]) -> str:
        """A source as JSON: one text, or its lines in a list, as it was before."""
        if self.json[span[0]] == '"':
            return self._quoted(source)
        lines = source.splitlines(keepends=True)  # as Jupyter parts them
        if not lines:
            return "[]"
        opening, separator, closing = self._list_style(span, spans)
        return "[" + opening + separator.join(map(self._quoted, lines)) + closing + "]"

    def _quoted(self, text: str) -> str:
        quoted = json.dumps(text, ensure_ascii=self._is_escaped)
        return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)

    @cached_property
    def _is_escaped(self) -> bool:
        """Whether the file has no characters beyond ASCII, and escapes those that its texts have."""
        return self.json.isascii() and _ESCAPED.search(self.json) is not None

    def _list_style(self, span: Span, spans: Sequence[Span | None]) -> tuple[str, str, str]:
        """What stands before, between and behind the lines of a source: as in this cell, else in another."""
        others = [other for other in spans if other is not None and other != span]
        for begin, _ in (span, *others):
            items = list(_items(self.json, begin)) if self.json[begin] == "[" else []
            if items:
                opening = _BLANKS.match(self.json, begin + 1)
                closing = _BLANKS.match(self.json, items[-1][1])
                before = opening[0] if opening else ""
                separator = f",{before or self._blank}"
                if len(items) > 1:
                    separator = self.json[items[0][1] : items[1][0]]
                return before, separator, closing[0] if closing else ""
        return self._usual_style(span[0])

    def _usual_style(self, begin: int) -> tuple[str, str, str]:
        """The same by the indentation of the file."""
        line = self.json[self.json.rfind("\n", 0, begin) + 1 : begin]
        unit = _INDENT.search(self.json)
        if unit is None or not line.lstrip().startswith('"'):
            return "", f",{self._blank}", ""
        indent = line[: len(line) - len(line.lstrip())]
        line_end = "\r\n" if "\r\n" in self.json else "\n"
        opening = f"{line_end}{indent}{unit[1]}"
        return opening, f",{opening}", f"{line_end}{indent}"

    @property
    def _blank(self) -> str:
        """What stands behind a comma on one line."""
        return " " if '": ' in self.json else ""


def replace_in_cells(book: Notebook, replacements: Sequence[Replacement], shown: str, stop: Stop) -> Notebook:
    """The notebook with all `replacements` made in its cells, each on the outcome of those before it.

    An old and a new text that both begin with the line before a cell, such as `[cell 3, code]`, mean that cell.

    Raises:
        Problem: as `edit.replace`; lines are those of the text that is read.
    """
    for number, item in enumerate(replacements, 1):
        stop.check()
        which = label_edit(number, replacements)
        check_replacement(item, which, is_empty=False)
        item, indices = _in_named_cell(item, which, book)
        if not item.old:
            (index,) = indices
            book = book.with_sources(
                {index: with_final_newline(item.new) + with_final_newline(book.cells[index].source)}
            )
            continue
        found = {index: find_spans(readable(with_final_newline(book.cells[index].source)), item) for index in indices}
        found = {index: places for index, places in found.items() if places}
        total = sum(map(len, found.values()))
        if not total:
            raise _not_in_cells(book, item, which, shown, stop)
        if total > 1 and not item.replace_all:
            first = book.first_lines
            lines = [
                first[index] + line
                for index, places in found.items()
                for line in line_numbers_of(book.cells[index].source, places)
            ]
            raise ambiguous_error(which, shown, total, lines)
        sources = {
            index: replace_spans(with_final_newline(book.cells[index].source), places, item)
            for index, places in found.items()
        }
        book = book.with_sources(sources)
    return book


def _in_named_cell(item: Replacement, which: str, book: Notebook) -> tuple[Replacement, Sequence[int]]:
    """The replacement without the line that names its cell, and the cells that it may be in.

    An old text that is only that line stands before the first one of the cell.
    """
    header = _HEADER.match(item.old)
    if header is None or header[0].replace("\r", "") not in {cell.header for cell in book.cells}:
        return item, range(len(book.cells))
    if not item.new.startswith(header[0]):
        raise Invalid(
            f"{which} changes the line before a cell, which is not in the file.",
            f"Begin `new_text` with {header[0].strip()}, too, or leave that line out of both texts.",
        )
    old, new = item.old[header.end() :], item.new[header.end() :]
    index = int(header[1]) - 1
    return Replacement(old, new, item.replace_all), [index]


def _not_in_cells(book: Notebook, item: Replacement, which: str, shown: str, stop: Stop) -> NotFound:
    if any(find_spans(readable(cell.outputs), item) for cell in book.cells):
        return NotFound(
            f"{which}: the old text is in {shown} only in what a cell has put out.", "Running the cell changes that."
        )
    if find_spans(readable(book.text), item):
        return NotFound(
            f"{which}: the old text is in {shown} in no single cell.",
            "Quote text of one cell, without what it has put out; use one edit for each cell.",
        )
    return not_found_error(readable(book.text), item, which, shown, stop)


def substitute_in_cells(
    book: Notebook, substitute: Callable[[str], tuple[str, Sequence[int]]]
) -> tuple[Notebook, Sequence[int]]:
    """The notebook with a substitution made in each of its cells, and how often each text was replaced."""
    sources: dict[int, str] = {}
    totals: list[int] = []
    for index, cell in enumerate(book.cells):
        sources[index], counts = substitute(with_final_newline(cell.source))
        totals = [one + other for one, other in zip(totals or [0] * len(counts), counts, strict=True)]
    return book.with_sources(sources), totals


def apply_patch(book: Notebook, apply: Callable[[str], str], shown: str) -> Notebook:
    """The notebook with a patch applied: of the text that is read, else of the file.

    Args:
        apply: makes the new text of the old one.

    Raises:
        Refused: the patch changes what is in no cell, or what it leaves is not a notebook.
        Problem: as `apply`.
    """
    try:
        new = apply(book.text)
    except NotFound as problem:
        try:
            written = apply(book.json)
        except Problem:
            raise problem from None
        changed = Notebook.parse(written, written)
        if changed is None:
            raise Refused(f"What the patch leaves of {shown} is not a notebook; nothing was written.") from None
        return changed
    changed = book.with_sources(dict(_sources_of(book, new, shown)))
    if changed.text != new:
        raise _in_no_cell(shown)
    return changed


def _sources_of(book: Notebook, new: str, shown: str) -> Iterator[tuple[int, str]]:
    """The sources of the cells in which the lines of the read text differ from `new`."""
    old_lines, new_lines = split_lines(book.text), split_lines(new)
    head = common_prefix_length(old_lines, new_lines)
    tail = common_prefix_length(old_lines[head:][::-1], new_lines[head:][::-1])
    old_middle, new_middle = old_lines[head : len(old_lines) - tail], new_lines[head : len(new_lines) - tail]
    if len(old_middle) + len(new_middle) > _MOST_COMPARED:
        raise TooLarge(f"The patch changes {shown} over more than {_MOST_COMPARED:,} lines.", "Use `edit_file`.")
    changes: dict[int, list[tuple[int, int, list[str]]]] = {}
    ranges = [
        (first, first + len(split_lines(with_final_newline(cell.source))))
        for first, cell in zip(book.first_lines, book.cells, strict=True)
    ]
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old_middle, new_middle, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        i1, i2 = i1 + head, i2 + head
        index = next((index for index, (begin, end) in enumerate(ranges) if begin <= i1 and i2 <= end), None)
        if index is None:
            raise _in_no_cell(shown)
        changes.setdefault(index, []).append((i1, i2, new_middle[j1:j2]))
    for index, edits in changes.items():
        begin, end = ranges[index]
        lines = old_lines[begin:end]
        for i1, i2, inserted in reversed(edits):
            lines[i1 - begin : i2 - begin] = inserted
        yield index, "".join(lines)


def _in_no_cell(shown: str) -> Refused:
    return Refused(
        f"The patch changes lines of {shown} that are in no cell; nothing was written.",
        "Change only the text of cells: what they have put out, and the lines before them, stay as they are.",
    )


def _source_spans(text: str) -> Iterator[Span | None]:
    """Where the source of each cell stands in a notebook; None of a cell that has none as text."""
    top = dict(_members(text, _skip(text, 0)))
    if "cells" not in top:
        sheet = next(_items(text, top["worksheets"][0]))
        top = dict(_members(text, sheet[0]))
    for begin, _ in _items(text, top["cells"][0]):
        members = dict(_members(text, begin))
        span = members.get("source") or members.get("input")
        yield span if span is not None and _is_text(text, span) else None


def _is_text(text: str, span: Span) -> bool:
    if text[span[0]] == "[":
        return all(text[begin] == '"' for begin, _ in _items(text, span[0]))
    return text[span[0]] == '"'


def _members(text: str, at: int) -> Iterator[tuple[str, Span]]:
    """The keys of the object at `at`, and where their values stand; of equal keys the last one counts."""
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        begin = _skip(text, _skip(text, at) + 1)
        end = _DECODER.raw_decode(text, begin)[1]
        yield key, (begin, end)
        at = _next(text, end)


def _items(text: str, at: int) -> Iterator[Span]:
    """Where the items of the list at `at` stand."""
    at = _skip(text, at + 1)
    while text[at] != "]":
        end = _DECODER.raw_decode(text, at)[1]
        yield at, end
        at = _next(text, end)


def _next(text: str, end: int) -> int:
    at = _skip(text, end)
    return _skip(text, at + 1) if text[at] == "," else at


def _skip(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at
