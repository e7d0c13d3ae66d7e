"""Two files or two folders side by side."""

from __future__ import annotations

import os
import stat
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import BinaryIO

from mcp_batteries.errors import NotFound, Problem
from mcp_batteries.limits import Stop
from mcp_batteries.progress import tell
from mcp_fs.engine.documents.source import open_content
from mcp_fs.engine.handles.path_opening import open_file, read_link, read_status
from mcp_fs.engine.listing.walk import WALK_SECONDS, Skipped, WalkFilter, display_path, walk, walk_order
from mcp_fs.engine.listing.walk import entry_display_path as shown_path
from mcp_fs.engine.text.edit import unified_diff
from mcp_fs.engine.text.encodings import MAX_EDIT_BYTES, Decoded, decode, is_text, replace_undecodable
from mcp_fs.models import Comparison, escape_line_breaks, pluralize
from mcp_fs.policy import ReadablePath

__all__ = ["compare"]

_BLOCK_BYTES = 1024 * 1024
_MAX_DIFFED_BYTES = 64 * 1024
_SAMPLE_BYTES = 8 * 1024
_Parts = tuple[str, ...]


def compare(first: ReadablePath, second: ReadablePath, max_bytes: int, stop: Stop) -> Comparison:
    """Return what differs between two files, as a diff, or between two folders, entry by entry.

    Raises:
        Problem: one of them can't be opened, or only one is a folder.
    """
    names = (display_path(first), display_path(second))
    if _is_folder(first) and _is_folder(second):
        head, lines = _compare_folders(first, second, max_bytes * 2 // 5, stop)
    else:
        # Of a folder and a file, opening the folder as a file says what is wrong.
        head, lines = _compare_files(first, second, stop)
    return Comparison(names, head, lines, max_bytes)


def _is_folder(place: ReadablePath) -> bool:
    try:
        return stat.S_ISDIR(read_status(place).st_mode)
    except NotFound:
        return False  # perhaps in an archive


def _compare_files(one: ReadablePath, other: ReadablePath, stop: Stop) -> tuple[str, list[str]]:
    with open_content(one, stop) as (first, label), open_content(other, stop) as (second, other_label):
        begins = first.read(MAX_EDIT_BYTES + 1), second.read(MAX_EDIT_BYTES + 1)
        equal_bytes = _common_prefix_length(*begins)
        equal_rest = 0
        if equal_bytes == max(map(len, begins)):
            equal_rest = _compare_rest(first, second, stop)
        if equal_rest is None:
            # The text of a document is not all of it, and the listing of an archive least of all.
            shown_only = label or other_label
            if shown_only is None or _have_same_bytes(one, other, stop):
                return "same contents", []
            return f"different files, of which this is the same: {shown_only}", []
        sizes = [os.fstat(file.fileno()).st_size for file in (first, second)]
    texts = [None if len(data) > MAX_EDIT_BYTES else decode(data) for data in begins]
    if texts[0] is not None and texts[1] is not None:
        return _diff_texts(texts[0], texts[1], one, other)
    kind = "too large for a diff" if max(sizes) > MAX_EDIT_BYTES else "not text"
    return f"{kind}: {sizes[0]:,} and {sizes[1]:,} bytes, different from byte {equal_bytes + equal_rest + 1:,} on", []


def _have_same_bytes(one: ReadablePath, other: ReadablePath, stop: Stop) -> bool:
    with open_content(one, stop, raw=True) as (first, _), open_content(other, stop, raw=True) as (second, _):
        return _compare_rest(first, second, stop) is None


def _diff_texts(before: Decoded, after: Decoded, one: ReadablePath, other: ReadablePath) -> tuple[str, list[str]]:
    facts: list[str] = []
    for property_name, values in (
        ("encoding", (before.encoding, after.encoding)),
        ("byte order mark", ("yes" if before.bom else "no", "yes" if after.bom else "no")),
        ("line ends", (_line_end_name(before), _line_end_name(after))),
    ):
        if values[0] != values[1]:
            facts.append(f"{property_name} {values[0]} and {values[1]}")
    if _comparable_text(before) == _comparable_text(after):
        return "; ".join(["same lines", *facts]), []
    diff = unified_diff(_comparable_text(before), _comparable_text(after), display_path(one), to=display_path(other))
    return "; ".join(["different", *facts]), diff.rstrip("\n").split("\n")


def _comparable_text(decoded: Decoded) -> str:
    return replace_undecodable(decoded.text).replace("\r\n", "\n")


def _line_end_name(decoded: Decoded) -> str:
    return {"\n": "LF", "\r\n": "CRLF", "\r": "CR", "": "none"}[decoded.newline]


def _common_prefix_length(one: bytes, other: bytes) -> int:
    """Return how many bytes both begin with."""
    equal_bytes = 0
    limit = min(len(one), len(other))
    while equal_bytes < limit:
        half = (equal_bytes + limit + 1) // 2
        if one[equal_bytes:half] == other[equal_bytes:half]:
            equal_bytes = half
        else:
            limit = half - 1
    return equal_bytes


def _compare_rest(one: BinaryIO, other: BinaryIO, stop: Stop) -> int | None:
    """Return how many bytes of the rest of both are the same; None if all are."""
    same = 0
    while True:
        stop.check()
        first = _read_block(one)
        second = _read_block(other)
        if first != second:
            return same + _common_prefix_length(first, second)
        if not first:
            return None
        same += len(first)


def _read_block(file: BinaryIO) -> bytes:
    """Return the next block, short only at the end of the file."""
    data = b""
    while len(data) < _BLOCK_BYTES and (more := file.read(_BLOCK_BYTES - len(data))):
        data += more
    return data


def _compare_folders(
    first: ReadablePath, second: ReadablePath, max_diff_bytes: int, stop: Stop
) -> tuple[str, list[str]]:
    """Return what differs between two folders; the diffs of small text files stand behind all the rest.

    Args:
        max_diff_bytes: how much these diffs may take.
    """
    comparison = _FolderComparison(first, second, stop)
    comparison.compare_entries()
    diffs, missing_diffs = _collect_diffs(
        first, second, comparison.changed_files, max_diff_bytes, comparison.deadline, stop
    )
    facts = comparison.facts()
    if missing_diffs:
        facts.append(f"for the lines of {pluralize(missing_diffs, 'file')} more compare each")
    return "; ".join(facts), [*comparison.lines, *diffs]


class _FolderComparison:
    """What differs between two folders, entry by entry.

    Attributes:
        lines: one for each entry that differs.
        changed_files: files on both sides whose contents differ.
        deadline: when, by `time.monotonic`, no more contents are compared.
    """

    def __init__(self, first: ReadablePath, second: ReadablePath, stop: Stop) -> None:
        self.lines: list[str] = []
        self.changed_files: list[_Parts] = []
        self.deadline = time.monotonic() + WALK_SECONDS
        self._first = first
        self._second = second
        self._stop = stop
        self._skipped = Skipped.with_deadline()
        self._first_entries = _read_entries(first, self._skipped, stop)
        self._second_entries = _read_entries(second, self._skipped, stop)
        self._first_counts = _count_files(self._first_entries)
        self._second_counts = _count_files(self._second_entries)
        self._only_first = 0
        self._only_second = 0
        self._different = 0
        self._same = 0

    def compare_entries(self) -> None:
        for parts in sorted({*self._first_entries, *self._second_entries}, key=walk_order):
            self._stop.check()
            if parts not in self._second_entries:
                # What a folder holds that the other side lacks goes without saying.
                if len(parts) == 1 or parts[:-1] in self._second_entries:
                    self._only_first += 1
                    self._add_one_sided("-", parts, self._first_entries, self._first_counts)
            elif parts not in self._first_entries:
                if len(parts) == 1 or parts[:-1] in self._first_entries:
                    self._only_second += 1
                    self._add_one_sided("+", parts, self._second_entries, self._second_counts)
            else:
                self._compare_entry(parts)

    def facts(self) -> list[str]:
        return [
            f"{pluralize(self._different, 'file')} (~) differ",
            f"{self._only_first:,} only in the first (-)",
            f"{self._only_second:,} only in the second (+)",
            f"{self._same:,} same",
            *self._skipped.describe_excluded(named=False),
            *self._skipped.notes(),
        ]

    def _add_one_sided(
        self, sign: str, parts: _Parts, entries: dict[_Parts, str], file_counts: Counter[_Parts]
    ) -> None:
        line = f"{sign} {escape_line_breaks('/'.join(parts))}"
        if entries[parts] == "folder":
            line += f"/\t{pluralize(file_counts[parts], 'file')}"
        self.lines.append(line)

    def _compare_entry(self, parts: _Parts) -> None:
        """Compare an entry that both sides have."""
        path = escape_line_breaks("/".join(parts))
        kind = self._first_entries[parts]
        other_kind = self._second_entries[parts]
        if kind != other_kind:
            self._different += 1
            self.lines.append(f"~ {path}\t{kind}\t{other_kind}")
            return
        if kind == "folder":
            return
        if time.monotonic() > self.deadline:
            self._skipped.add(f"not compared within {WALK_SECONDS:g} s", path)
            return
        try:
            difference = _describe_difference(
                _entry_at(self._first, parts), _entry_at(self._second, parts), kind, self._stop
            )
        except Problem:
            self._skipped.add("could not be compared", path)
            return
        if difference is None:
            self._same += 1
            tell(self._same, None, f"{pluralize(self._same, 'file')} the same")
            return
        self._different += 1
        self.lines.append(f"~ {path}{difference}")
        if kind == "file":
            self.changed_files.append(parts)


def _collect_diffs(
    one: ReadablePath, other: ReadablePath, changed: Sequence[_Parts], most_bytes: int, until: float, stop: Stop
) -> tuple[list[str], int]:
    """The diffs of files that differ, each whole, at most so many bytes; and how many text files have none here."""
    diffs = list[str]()
    untold = 0
    for parts in changed:
        stop.check()
        lines = None
        with suppress(Problem):
            lines = None
            if time.monotonic() < until:
                lines = _diff_small_files(_entry_at(one, parts), _entry_at(other, parts), stop)
        size = sum(len(line.encode("utf-8", "replace")) + 1 for line in lines or ())
        if lines is None or size > most_bytes:
            untold += 1
        else:
            most_bytes -= size
            diffs += lines
    return diffs, untold


def _diff_small_files(one: ReadablePath, other: ReadablePath, stop: Stop) -> list[str] | None:
    """Return the diff of two files, of others than text no line; None where it would take long."""
    for place in (one, other):
        if read_status(place).st_size > _MAX_DIFFED_BYTES:
            with open_file(place) as file:
                if is_text(file.read(_SAMPLE_BYTES)):
                    return None
                return []
    return _compare_files(one, other, stop)[1]


def _read_entries(start: ReadablePath, skipped: Skipped, stop: Stop) -> dict[_Parts, str]:
    """Return what each entry below a folder is."""
    kinds: dict[_Parts, str] = {}
    for entries in walk(start, WalkFilter(), stop, skipped):
        tell(len(kinds), None, f"{len(kinds):,} entries seen")
        for name in entries.folders:
            kinds[*entries.parts, name] = "folder"
        for name in entries.files:
            if name in entries.links:
                kind = "link"
            else:
                kind = "special" if name in entries.special_files else "file"
            kinds[*entries.parts, name] = kind
            place = entries.folder.path
            if place.policy.is_protected((*place.parts, name)):
                kinds[*entries.parts, name] = "special"
                skipped.add("protected", shown_path(place, name))
    return kinds


def _count_files(entries: dict[_Parts, str]) -> Counter[_Parts]:
    """Return how many files each folder holds, at any depth."""
    file_counts = Counter[_Parts]()
    for parts in sorted(entries, key=len, reverse=True):
        file_counts[parts[:-1]] += file_counts[parts] if entries[parts] == "folder" else 1
    return file_counts


def _entry_at(start: ReadablePath, parts: _Parts) -> ReadablePath:
    return start.at(start.root, (*start.parts, *parts))


def _describe_difference(one: ReadablePath, other: ReadablePath, kind: str, stop: Stop) -> str | None:
    """Return how two entries of one kind differ; None where they don't."""
    if kind == "link":
        return None if read_link(one) == read_link(other) else "\tlinks elsewhere"
    if kind != "file":
        return None
    with open_file(one) as first, open_file(other) as second:
        sizes = [read_status(place).st_size for place in (one, other)]
        if sizes[0] == sizes[1] and _compare_rest(first, second, stop) is None:
            return None
    return f"\t{sizes[0]:,}\t{sizes[1]:,}"
