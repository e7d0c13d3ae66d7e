"""Reads how lines of each kind of file below a folder are written, so that who looks at a tree needs no second look."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Problem
from mcp_fs.engine.documents.source import needs_worker
from mcp_fs.engine.listing.walk import FolderEntries, Skipped, WalkFilter, walk
from mcp_fs.engine.reading.line_forms import LineForms
from mcp_fs.engine.reading.table_forms import TableForms
from mcp_fs.engine.reading.text_page import LineIndex, NamedFile, PageRequest, read_page, read_pages
from mcp_fs.models import FileSlices, TextSlice, escape_line_breaks, pluralize
from mcp_fs.policy import ReadablePath

__all__ = ["read_samples"]

_MAX_BYTES = 5000
_MAX_KINDS = 6
# Where lines are not written alike, as in documents and programs.
_FIRST_LINES = 5
_MIN_BYTES_OF_FIRST_LINES = 200
_WALK_SECONDS = 2.0
# Of each kind.
_READ_SECONDS = 0.5
_MAX_FILES_OF_KIND = 500
_MAX_BYTES_OF_KIND = 2_000_000
_MAX_BYTES_OF_FILE = 200_000
_MIN_BYTES_OF_FILE = 20_000
# Finding their forms takes far longer than reading them.
_MAX_LINES_OF_KIND = 100_000
# What rotation puts behind the name of a log: a number or a day.
_ROTATED = re.compile(r"(?:\.\d[\d-]*)+\Z")
# Their first line mostly has the names of the columns.
_TABLE_SUFFIXES = (".csv", ".tsv")
_LEGEND = "[samples: a line behind how many are alike, and of how many values; `in` how many files if not in all]"


@dataclass(slots=True)
class _Kind:
    """The files whose names end alike, but for numbers and days behind that.

    Attributes:
        has_rotated: whether some have such.
        files: some of them, from the first that a walk comes by to the last.
        step: how many files lie between two of these.
    """

    suffix: str
    files: list[ReadablePath] = field(default_factory=list[ReadablePath])
    file_count: int = 0
    step: int = 1
    has_rotated: bool = False

    def add(self, path: ReadablePath) -> None:
        if self.file_count % self.step == 0:
            self.files.append(path)
        self.file_count += 1
        if len(self.files) > _MAX_FILES_OF_KIND:
            del self.files[1::2]
            self.step *= 2

    @property
    def bytes_of_file(self) -> int:
        """How much is read of each file, so that there is time for all, in whole thousands."""
        share = _MAX_BYTES_OF_KIND // len(self.files) // 1000 * 1000
        return min(max(share, _MIN_BYTES_OF_FILE), _MAX_BYTES_OF_FILE)

    def spread_files(self) -> list[ReadablePath]:
        """Return the files in an order in which each next one lies far from those before.

        Neighbours are called alike and written alike, so those that there is time for should come from everywhere.
        """
        bit_count = len(self.files).bit_length()

        def reverse_bits(number: int) -> str:
            return f"{number:0{bit_count}b}"[::-1]

        return [self.files[number] for number in sorted(range(len(self.files)), key=reverse_bits)]

    @property
    def heading(self) -> str:
        if self.file_count == 1:
            return f"=== {escape_line_breaks(self.files[0].display)}"
        name = "without an ending"
        if self.suffix:
            name = f"*{self.suffix}"
            if self.has_rotated:
                name += "*"
        return f"=== {escape_line_breaks(name)}: {self.file_count:,} files"


def read_samples(start: ReadablePath, walk_filter: WalkFilter, index: LineIndex, cancel: CancelToken) -> str:
    """Return lines of each form of the kinds with the most files; else the first lines of two files.

    What was not looked at is said.

    Raises:
        Problem: the start can't be opened.
    """
    kinds: dict[str, _Kind] = {}
    skipped = Skipped(time.monotonic() + _WALK_SECONDS)
    for entries in walk(start, walk_filter, cancel, skipped):
        _add_files(entries, kinds)
    reader = _SampleReader(index, cancel)
    by_count = sorted(kinds.values(), key=lambda kind: -kind.file_count)
    sections: list[str] = []
    unread_count = len(by_count)
    for kind in by_count:
        if len(sections) == _MAX_KINDS:
            break
        # Of those with more files more is told, and what they leave is for the others.
        share = 2 * reader.remaining_bytes // (min(_MAX_KINDS - len(sections), unread_count) + 1)
        unread_count -= 1
        section = reader.read(kind, share)
        if section:
            sections.append(section)
    notes: list[str] = []
    if unread_count:
        notes.append(f"no samples of {pluralize(unread_count, 'other kind')}, with fewer files")
    # Reading may have ended later than that, of all files.
    if Skipped.late_reason() in skipped.reasons:
        notes.append(f"samples are of what was seen within {_WALK_SECONDS:g} s")
    if not kinds:
        notes.append("no samples: there are no files")
    if notes:
        sections.append(f"[{'; '.join(notes)}]")
    if reader.has_forms:
        sections.insert(0, _LEGEND)
    return "\n".join(sections)


class _SampleReader:
    """Reads samples of one kind of file after the other.

    Attributes:
        remaining_bytes: that samples may still take.
        has_forms: whether lines of some kind were grouped by form.
    """

    def __init__(self, index: LineIndex, cancel: CancelToken) -> None:
        self.remaining_bytes = _MAX_BYTES
        self.has_forms = False
        self._index = index
        self._cancel = cancel

    def read(self, kind: _Kind, max_bytes: int) -> str:
        """Return the samples of a kind; empty if its files hold no text."""
        if needs_worker(kind.files[0]):
            section = self._read_first_lines(kind, max_bytes)
        else:
            section = self._read_forms(kind, max_bytes)
        self.remaining_bytes -= len(section.encode("utf-8", "replace")) + 1
        return section

    def _read_first_lines(self, kind: _Kind, max_bytes: int) -> str:
        examples = dict.fromkeys((kind.files[0], kind.files[-1]))
        files = [NamedFile(path.display, None, (path, 1, _FIRST_LINES)) for path in examples]
        request = PageRequest(max_bytes=max(max_bytes, _MIN_BYTES_OF_FIRST_LINES))
        pages = read_pages(files, request, self._index, self._cancel)
        outcomes = [outcome for outcome in pages.outcomes if not isinstance(outcome[1], Problem)]
        return FileSlices(outcomes).text().rstrip("\n")

    def _read_forms(self, kind: _Kind, max_bytes: int) -> str:
        sample = self._read_sample(kind)
        if not sample.files:
            return ""
        notes = sample.describe_reading(kind)
        max_bytes -= len(kind.heading) + sum(map(len, notes))
        if kind.suffix in _TABLE_SUFFIXES:
            tables = TableForms()
            for lines in sample.files:
                tables.add_file(lines)
            if tables.is_regular():
                notes.append(f"{pluralize(tables.row_count, 'row')} by column")
                return self._format_forms(kind, notes, tables.describe(max_bytes))
        line_forms = LineForms()
        for lines in sample.files:
            line_forms.add_file(lines)
        described = line_forms.describe(max_bytes)
        if described is None:
            return self._read_first_lines(kind, max_bytes)
        dates, rows = described
        if dates:
            notes.append(dates)
        return self._format_forms(kind, notes, rows)

    def _format_forms(self, kind: _Kind, notes: Sequence[str], rows: Sequence[str]) -> str:
        self.has_forms = True
        return "\n".join(["; ".join([kind.heading, *notes]), *rows])

    def _read_sample(self, kind: _Kind) -> _Sample:
        sample = _Sample()
        request = PageRequest(max_bytes=kind.bytes_of_file, with_hash=False)
        deadline = time.monotonic() + _READ_SECONDS
        for path in kind.spread_files():
            if time.monotonic() > deadline or sample.line_count >= _MAX_LINES_OF_KIND:
                break
            try:
                page = read_page(path, request, self._index, self._cancel)
            except Problem:
                continue
            sample.add(page)
        return sample


@dataclass(slots=True)
class _Sample:
    """What was read of the files of a kind.

    Attributes:
        files: the lines of each.
        encodings: how many files have each.
        cut_count: files that were not read to their end.
        line_count: of all files.
    """

    files: list[list[str]] = field(default_factory=list[list[str]])
    encodings: Counter[str] = field(default_factory=Counter[str])
    cut_count: int = 0
    line_count: int = 0

    def add(self, page: TextSlice) -> None:
        lines = _whole_lines(page)
        self.files.append(lines)
        self.line_count += len(lines)
        self.encodings[page.encoding] += 1
        if page.next_line is not None or page.next_column is not None:
            self.cut_count += 1

    def describe_reading(self, kind: _Kind) -> list[str]:
        """Say how much of a kind was read, and in which encodings if that is not UTF-8 alone."""
        notes: list[str] = []
        if len(self.files) < kind.file_count:
            notes.append(f"{len(self.files):,} read")
        if self.cut_count:
            notes.append(f"of {self.cut_count:,} the first {kind.bytes_of_file:,} bytes")
        if set(self.encodings) != {"utf-8"}:
            notes.append(", ".join(f"{name} {count:,}" for name, count in self.encodings.most_common()))
        return notes


def _whole_lines(page: TextSlice) -> list[str]:
    """Return the lines of a page, without one that is cut."""
    lines = [line.removesuffix("\r") for line in page.body.removesuffix("\n").split("\n")]
    if page.next_column is not None and len(lines) > 1:
        lines.pop()
    return lines


def _add_files(entries: FolderEntries, kinds: dict[str, _Kind]) -> None:
    folder = entries.folder.path
    for name in entries.files:
        if name in entries.links or name in entries.special_files or name in entries.not_downloaded:
            continue
        if folder.policy.is_protected((*folder.parts, name)):
            continue
        plain_name = _ROTATED.sub("", name)
        suffix = os.path.splitext(plain_name)[1].lower()
        kind = kinds.setdefault(suffix, _Kind(suffix))
        kind.add(folder / name)
        if plain_name != name:
            kind.has_rotated = True
