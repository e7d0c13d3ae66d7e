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

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, NotFound, Problem, Refused, TooLarge
from mcp_fs.engine.documents.formats.notebook import Cell, notebook_cells, with_final_newline
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
# Lines from the first to the last that a patch changes: to compare them takes the square of that.
_MAX_COMPARED_LINES = 4000

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
        """Parse the notebook in a file; None of what is none, which is read as it is.

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
        """Return the notebook with other sources of some cells, as they are read: with a line end behind the last line.

        Args:
            sources: by the index of the cell.

        Raises:
            Refused: the file does not say where the source of such a cell is, or it is no text.
        """
        spans = list(_iterate_source_spans(self.json))
        pieces: list[str] = []
        copied_until = 0
        for index in sorted(sources):
            span = spans[index]
            old = self.cells[index].source
            if sources[index] == with_final_newline(old):
                continue
            if span is None:
                raise Refused(f"Cell {index + 1} has no text in the file that could be edited.")
            source = sources[index]
            if not old.endswith("\n"):
                source = source.removesuffix("\n")
            pieces += [self.json[copied_until : span[0]], self._format_source(source, span, spans)]
            copied_until = span[1]
        new = "".join([*pieces, self.json[copied_until:]])
        changed = self.parse(new, new)
        if changed is None:
            raise Refused("What this would leave is not a notebook; nothing was written.")
        return changed

    def _format_source(self, source: str, span: Span, spans: Sequence[Span | None]) -> str:
        """Format a source as JSON: one text, or its lines in a list, as it was before."""
        if self.json[span[0]] == '"':
            return self._quote_text(source)
        lines = source.splitlines(keepends=True)  # as Jupyter parts them
        if not lines:
            return "[]"
        opening, separator, closing = self._list_style(span, spans)
        return "[" + opening + separator.join(map(self._quote_text, lines)) + closing + "]"

    def _quote_text(self, text: str) -> str:
        quoted = json.dumps(text, ensure_ascii=self._escapes_non_ascii)
        return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)

    @cached_property
    def _escapes_non_ascii(self) -> bool:
        """Whether the file has no characters beyond ASCII, and escapes those that its texts have."""
        return self.json.isascii() and _ESCAPED.search(self.json) is not None

    def _list_style(self, span: Span, spans: Sequence[Span | None]) -> tuple[str, str, str]:
        """Return what stands before, between and behind the lines of a source: as in this cell, else in another."""
        others = [other for other in spans if other is not None and other != span]
        for begin, _ in (span, *others):
            items = list(_iterate_items(self.json, begin)) if self.json[begin] == "[" else []
            if items:
                opening = _BLANKS.match(self.json, begin + 1)
                closing = _BLANKS.match(self.json, items[-1][1])
                before = opening[0] if opening else ""
                separator = f",{before or self._separator_blank}"
                if len(items) > 1:
                    separator = self.json[items[0][1] : items[1][0]]
                return before, separator, closing[0] if closing else ""
        return self._style_by_indentation(span[0])

    def _style_by_indentation(self, begin: int) -> tuple[str, str, str]:
        """Return the same by the indentation of the file."""
        line = self.json[self.json.rfind("\n", 0, begin) + 1 : begin]
        unit = _INDENT.search(self.json)
        if unit is None or not line.lstrip().startswith('"'):
            return "", f",{self._separator_blank}", ""
        indent = line[: len(line) - len(line.lstrip())]
        line_end = "\r\n" if "\r\n" in self.json else "\n"
        opening = f"{line_end}{indent}{unit[1]}"
        return opening, f",{opening}", f"{line_end}{indent}"

    @property
    def _separator_blank(self) -> str:
        """What stands behind a comma on one line."""
        return " " if '": ' in self.json else ""


def replace_in_cells(
    notebook: Notebook, replacements: Sequence[Replacement], label: str, cancel: CancelToken
) -> Notebook:
    """Return the notebook with all `replacements` made in its cells, each on the outcome of those before it.

    An old and a new text that both begin with the line before a cell, such as `[cell 3, code]`, mean that cell.

    Raises:
        Problem: as `edit.replace`; lines are those of the text that is read.
    """
    for number, replacement in enumerate(replacements, 1):
        cancel.check()
        edit_label = label_edit(number, replacements)
        check_replacement(replacement, edit_label, is_empty=False)
        replacement, indices = _find_named_cell(replacement, edit_label, notebook)
        if not replacement.old:
            (index,) = indices
            notebook = notebook.with_sources(
                {index: with_final_newline(replacement.new) + with_final_newline(notebook.cells[index].source)}
            )
            continue
        spans_by_cell: dict[int, Sequence[Span]] = {}
        for index in indices:
            spans = find_spans(readable(with_final_newline(notebook.cells[index].source)), replacement)
            if spans:
                spans_by_cell[index] = spans
        total = sum(map(len, spans_by_cell.values()))
        if not total:
            raise _not_in_cells_error(notebook, replacement, edit_label, label, cancel)
        if total > 1 and not replacement.replace_all:
            raise ambiguous_error(edit_label, label, total, _lines_of_spans(notebook, spans_by_cell))
        sources: dict[int, str] = {}
        for index, spans in spans_by_cell.items():
            sources[index] = replace_spans(with_final_newline(notebook.cells[index].source), spans, replacement)
        notebook = notebook.with_sources(sources)
    return notebook


def _lines_of_spans(notebook: Notebook, spans_by_cell: Mapping[int, Sequence[Span]]) -> list[int]:
    """Return in which lines of the text that is read places in cells are."""
    lines: list[int] = []
    for index, spans in spans_by_cell.items():
        first_line = notebook.first_lines[index]
        lines.extend(first_line + line for line in line_numbers_of(notebook.cells[index].source, spans))
    return lines


def _find_named_cell(
    replacement: Replacement, edit_label: str, notebook: Notebook
) -> tuple[Replacement, Sequence[int]]:
    """Return the replacement without the line that names its cell, and the cells that it may be in.

    An old text that is only that line stands before the first one of the cell.
    """
    header = _HEADER.match(replacement.old)
    if header is None or header[0].replace("\r", "") not in {cell.header for cell in notebook.cells}:
        return replacement, range(len(notebook.cells))
    if not replacement.new.startswith(header[0]):
        raise Invalid(
            f"{edit_label} changes the line before a cell, which is not in the file.",
            f"Begin `new_text` with {header[0].strip()}, too, or leave that line out of both texts.",
        )
    old = replacement.old[header.end() :]
    new = replacement.new[header.end() :]
    index = int(header[1]) - 1
    return Replacement(old, new, replacement.replace_all), [index]


def _not_in_cells_error(
    notebook: Notebook, replacement: Replacement, edit_label: str, label: str, cancel: CancelToken
) -> NotFound:
    if any(find_spans(readable(cell.outputs), replacement) for cell in notebook.cells):
        return NotFound(
            f"{edit_label}: the old text is in {label} only in what a cell has put out.",
            "Running the cell changes that.",
        )
    if find_spans(readable(notebook.text), replacement):
        return NotFound(
            f"{edit_label}: the old text is in {label} in no single cell.",
            "Quote text of one cell, without what it has put out; use one edit for each cell.",
        )
    return not_found_error(readable(notebook.text), replacement, edit_label, label, cancel)


def substitute_in_cells(
    notebook: Notebook, substitute: Callable[[str], tuple[str, Sequence[int]]]
) -> tuple[Notebook, Sequence[int]]:
    """Substitute in each cell of a notebook; return it and how often each text was replaced."""
    sources: dict[int, str] = {}
    totals: list[int] = []
    for index, cell in enumerate(notebook.cells):
        sources[index], counts = substitute(with_final_newline(cell.source))
        totals = [one + other for one, other in zip(totals or [0] * len(counts), counts, strict=True)]
    return notebook.with_sources(sources), totals


def apply_patch(notebook: Notebook, apply: Callable[[str], str], label: str) -> Notebook:
    """Apply a patch to a notebook: of the text that is read, else of the file.

    Args:
        apply: makes the new text of the old one.

    Raises:
        Refused: the patch changes what is in no cell, or what it leaves is not a notebook.
        Problem: as `apply`.
    """
    try:
        new = apply(notebook.text)
    except NotFound as problem:
        try:
            written = apply(notebook.json)
        except Problem:
            raise problem from None
        changed = Notebook.parse(written, written)
        if changed is None:
            raise Refused(f"What the patch leaves of {label} is not a notebook; nothing was written.") from None
        return changed
    changed = notebook.with_sources(dict(_find_changed_sources(notebook, new, label)))
    if changed.text != new:
        raise _in_no_cell_error(label)
    return changed


def _find_changed_sources(notebook: Notebook, new: str, label: str) -> Iterator[tuple[int, str]]:
    """Return the sources of the cells in which the lines of the read text differ from `new`."""
    old_lines = split_lines(notebook.text)
    new_lines = split_lines(new)
    prefix_length = common_prefix_length(old_lines, new_lines)
    suffix_length = common_prefix_length(old_lines[prefix_length:][::-1], new_lines[prefix_length:][::-1])
    old_middle = old_lines[prefix_length : len(old_lines) - suffix_length]
    new_middle = new_lines[prefix_length : len(new_lines) - suffix_length]
    if len(old_middle) + len(new_middle) > _MAX_COMPARED_LINES:
        raise TooLarge(f"The patch changes {label} over more than {_MAX_COMPARED_LINES:,} lines.", "Use `edit_file`.")
    changes: dict[int, list[tuple[int, int, list[str]]]] = {}
    ranges = [
        (first, first + len(split_lines(with_final_newline(cell.source))))
        for first, cell in zip(notebook.first_lines, notebook.cells, strict=True)
    ]
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old_middle, new_middle, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        i1 += prefix_length
        i2 += prefix_length
        index = next((index for index, (begin, end) in enumerate(ranges) if begin <= i1 and i2 <= end), None)
        if index is None:
            raise _in_no_cell_error(label)
        changes.setdefault(index, []).append((i1, i2, new_middle[j1:j2]))
    for index, edits in changes.items():
        begin, end = ranges[index]
        lines = old_lines[begin:end]
        for i1, i2, inserted in reversed(edits):
            lines[i1 - begin : i2 - begin] = inserted
        yield index, "".join(lines)


def _in_no_cell_error(label: str) -> Refused:
    return Refused(
        f"The patch changes lines of {label} that are in no cell; nothing was written.",
        "Change only the text of cells: what they have put out, and the lines before them, stay as they are.",
    )


def _iterate_source_spans(text: str) -> Iterator[Span | None]:
    """Find where the source of each cell stands in a notebook; None of a cell that has none as text."""
    document = dict(_iterate_members(text, _skip_blanks(text, 0)))
    if "cells" not in document:
        sheet = next(_iterate_items(text, document["worksheets"][0]))
        document = dict(_iterate_members(text, sheet[0]))
    for begin, _ in _iterate_items(text, document["cells"][0]):
        members = dict(_iterate_members(text, begin))
        span = members.get("source") or members.get("input")
        yield span if span is not None and _is_text_value(text, span) else None


def _is_text_value(text: str, span: Span) -> bool:
    if text[span[0]] == "[":
        return all(text[begin] == '"' for begin, _ in _iterate_items(text, span[0]))
    return text[span[0]] == '"'


def _iterate_members(text: str, position: int) -> Iterator[tuple[str, Span]]:
    """Iterate the keys of the object at `at`, and where their values stand; of equal keys the last one counts."""
    position = _skip_blanks(text, position + 1)
    while text[position] != "}":
        key, position = _DECODER.raw_decode(text, position)
        begin = _skip_blanks(text, _skip_blanks(text, position) + 1)
        end = _DECODER.raw_decode(text, begin)[1]
        yield key, (begin, end)
        position = _skip_comma(text, end)


def _iterate_items(text: str, position: int) -> Iterator[Span]:
    """Find where the items of the list at `at` stand."""
    position = _skip_blanks(text, position + 1)
    while text[position] != "]":
        end = _DECODER.raw_decode(text, position)[1]
        yield position, end
        position = _skip_comma(text, end)


def _skip_comma(text: str, end: int) -> int:
    position = _skip_blanks(text, end)
    return _skip_blanks(text, position + 1) if text[position] == "," else position


def _skip_blanks(text: str, position: int) -> int:
    blanks = _BLANKS.match(text, position)
    return blanks.end() if blanks else position
