"""Two files or two folders side by side."""

from __future__ import annotations

import os
import stat
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import NotFound, Problem
from mcp_batteries.progress import report_progress
from mcp_fs.engine.documents.source import list_members, open_content
from mcp_fs.engine.handles.path_opening import read_link, read_status
from mcp_fs.engine.listing.json_diff import diff_json
from mcp_fs.engine.listing.walk import (
    WALK_SECONDS,
    FolderEntries,
    Skipped,
    WalkFilter,
    display_path,
    entry_display_path,
    walk,
)
from mcp_fs.engine.text.edit import unified_diff
from mcp_fs.engine.text.encodings import MAX_EDIT_BYTES, Decoded, decode, is_text, replace_undecodable
from mcp_fs.engine.text.word_diff import mark_long_lines
from mcp_fs.models import Comparison, escape_line_breaks, pluralize
from mcp_fs.policy import ReadablePath

__all__ = ["compare"]

_BLOCK_BYTES = 1024 * 1024
_MAX_DIFFED_BYTES = 64 * 1024
_SAMPLE_BYTES = 8 * 1024
# From here on two JSON files are compared by keys.
_MAX_JSON_DIFF_CHARACTERS = 4000
_LINE_END_NAMES = {"\n": "LF", "\r\n": "CRLF", "\r": "CR", "": "none"}
_YES_OR_NO = {True: "yes", False: "no"}
_Parts = tuple[str, ...]


def compare(
    first: ReadablePath,
    second: ReadablePath,
    max_bytes: int,
    cancel: CancelToken,
    walk_filter: WalkFilter | None = None,
    *,
    names_only: bool = False,
) -> Comparison:
    """Return what differs between two files, as a diff, or between two folders, entry by entry.

    Args:
        walk_filter: what is left out of folders.
        names_only: whether no lines of files are wanted.

    Raises:
        Problem: one of them can't be opened, or only one is a folder.
    """
    names = (display_path(first), display_path(second))
    first_folder = _find_folder(first, second, cancel)
    second_folder = _find_folder(second, first, cancel)
    if first_folder is not None and second_folder is not None:
        max_diff_bytes = None
        if not names_only:
            max_diff_bytes = max_bytes * 2 // 5
        head, lines = _compare_folders(first_folder, second_folder, max_diff_bytes, walk_filter or WalkFilter(), cancel)
    else:
        # Of a folder and a file, opening the folder as a file says what is wrong.
        head, lines = _compare_files(first, second, cancel)
        if names_only:
            lines = []
    return Comparison(names, head, lines, max_bytes)


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder that is compared.

    Attributes:
        start: its path; of an archive the one that the paths in it begin with.
        members: the files below it, if it is an archive or lies in one; None of a folder of the file system.
        is_complete: whether the archive has no more members.
    """

    start: ReadablePath
    members: Sequence[_Parts] | None = None
    is_complete: bool = True


def _find_folder(path: ReadablePath, other: ReadablePath, cancel: CancelToken) -> _Folder | None:
    """Return the folder at a path, which may lie in an archive; None of a file.

    An archive itself is a folder only beside one, since two archives are compared as files.

    Raises:
        Problem: an archive can't be read, or has nothing there.
    """
    if _is_folder(path):
        return _Folder(path)
    if not (_is_folder(other) or any(part.endswith("!") for part in path.parts)):
        return None
    listing = list_members(path, cancel)
    if listing is None:
        return None
    top = listing.archive.parts
    inner = path.parts[len(top) :]
    members: list[_Parts] = []
    for name in listing.sizes:
        parts = tuple(name.split("/"))
        if parts[: len(inner)] == inner and len(parts) > len(inner):
            members.append(parts[len(inner) :])
    return _Folder(_entry_at(listing.archive, inner), members, listing.is_complete)


def _is_folder(path: ReadablePath) -> bool:
    try:
        return stat.S_ISDIR(read_status(path).st_mode)
    except NotFound:
        return False  # perhaps in an archive


def _compare_files(one: ReadablePath, other: ReadablePath, cancel: CancelToken) -> tuple[str, list[str]]:
    """Return what differs between two files in a few words, and their diff."""
    with open_content(one, cancel) as (first, label), open_content(other, cancel) as (second, other_label):
        beginnings = (first.read(MAX_EDIT_BYTES + 1), second.read(MAX_EDIT_BYTES + 1))
        equal_bytes = _common_prefix_length(*beginnings)
        equal_rest: int | None = 0
        if equal_bytes == max(map(len, beginnings)):
            equal_rest = _compare_rest(first, second, cancel)
        if equal_rest is None:
            # The text of a document is not all of it, and the listing of an archive least of all.
            extract_label = label or other_label
            if extract_label is None or _have_same_bytes(one, other, cancel):
                return "same contents", []
            return f"different files, of which this is the same: {extract_label}", []
        sizes = (_size_of(first), _size_of(second))
    before = _decode_whole(beginnings[0])
    after = _decode_whole(beginnings[1])
    if before is not None and after is not None:
        return _diff_texts(before, after, one, other)
    return _describe_sizes(sizes, equal_bytes + equal_rest), []


def _size_of(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _decode_whole(beginning: bytes) -> Decoded | None:
    """Return a file as text; None of a binary one, and of one that is too large for a diff."""
    if len(beginning) > MAX_EDIT_BYTES:
        return None
    return decode(beginning)


def _describe_sizes(sizes: tuple[int, int], equal_bytes: int) -> str:
    """Say how two files differ that have no diff."""
    kind = "not text"
    if max(sizes) > MAX_EDIT_BYTES:
        kind = "too large for a diff"
    return f"{kind}: {sizes[0]:,} and {sizes[1]:,} bytes, different from byte {equal_bytes + 1:,} on"


def _have_same_bytes(one: ReadablePath, other: ReadablePath, cancel: CancelToken) -> bool:
    with open_content(one, cancel, raw=True) as (first, _), open_content(other, cancel, raw=True) as (second, _):
        return _compare_rest(first, second, cancel) is None


def _diff_texts(before: Decoded, after: Decoded, one: ReadablePath, other: ReadablePath) -> tuple[str, list[str]]:
    """Return how two texts differ in a few words, and their diff: of large JSON files by keys where that is shorter."""
    facts = _compare_forms(before, after)
    old_text = _comparable_text(before)
    new_text = _comparable_text(after)
    if old_text == new_text:
        if not facts:
            facts.append("the bytes differ, as in some line ends")
        return "; ".join(["same lines", *facts]), []
    diff = unified_diff(old_text, new_text, display_path(one), to=display_path(other))
    if len(diff) > _MAX_JSON_DIFF_CHARACTERS and _is_json(one) and _is_json(other):
        by_keys = diff_json(old_text, new_text)
        if by_keys is not None and sum(map(len, by_keys.lines)) < len(diff):
            names = [f"--- {display_path(one)}", f"+++ {display_path(other)}"]
            # Of folders only the lines are shown.
            key_lines = by_keys.lines or [by_keys.describe()]
            return "; ".join(["different", *facts, by_keys.describe()]), [*names, *key_lines]
    lines, has_marked = mark_long_lines(diff.rstrip("\n").split("\n"))
    if has_marked:
        facts.append("of long lines (~) only the words that differ, so this is no patch")
    return "; ".join(["different", *facts]), lines


def _compare_forms(before: Decoded, after: Decoded) -> list[str]:
    """Say how two texts differ in what is not their lines."""
    properties = (
        ("encoding", before.encoding, after.encoding),
        ("byte order mark", _YES_OR_NO[before.bom], _YES_OR_NO[after.bom]),
        ("line ends", _LINE_END_NAMES[before.newline], _LINE_END_NAMES[after.newline]),
    )
    facts: list[str] = []
    for name, value, other_value in properties:
        if value != other_value:
            facts.append(f"{name} {value} and {other_value}")
    return facts


def _is_json(path: ReadablePath) -> bool:
    return path.name.lower().endswith(".json")


def _comparable_text(decoded: Decoded) -> str:
    return replace_undecodable(decoded.text).replace("\r\n", "\n")


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


def _compare_rest(one: BinaryIO, other: BinaryIO, cancel: CancelToken) -> int | None:
    """Return how many bytes of the rest of both are the same; None if all are."""
    same = 0
    while True:
        cancel.check()
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
    first: _Folder, second: _Folder, max_diff_bytes: int | None, walk_filter: WalkFilter, cancel: CancelToken
) -> tuple[str, list[str]]:
    """Return what differs between two folders; the diffs of small text files stand behind all the rest.

    Args:
        max_diff_bytes: how much these diffs may take; None where none are wanted.
    """
    comparison = _FolderComparison(first, second, walk_filter, cancel)
    comparison.compare_entries()
    if max_diff_bytes is None:
        return "; ".join(comparison.facts()), comparison.lines()
    diffs, missing_diffs = _collect_diffs(
        first.start, second.start, comparison.changed_files, max_diff_bytes, comparison.deadline, cancel
    )
    facts = comparison.facts()
    if missing_diffs:
        facts.append(f"for the lines of {pluralize(missing_diffs, 'file')} more compare each")
    return "; ".join(facts), [*comparison.lines(), *diffs]


class _FolderComparison:
    """What differs between two folders, entry by entry.

    Attributes:
        changed_files: files on both sides whose contents differ.
        deadline: when, by `time.monotonic`, no more contents are compared.
    """

    def __init__(self, first: _Folder, second: _Folder, walk_filter: WalkFilter, cancel: CancelToken) -> None:
        self.changed_files: list[_Parts] = []
        self.deadline = time.monotonic() + WALK_SECONDS
        self._first = first.start
        self._second = second.start
        self._cancel = cancel
        self._skipped = Skipped.with_deadline()
        one = _Side(first, walk_filter, self._skipped, cancel)
        other = _Side(second, walk_filter, self._skipped, cancel)
        one.add_excluded(other.entries)
        other.add_excluded(one.entries)
        self._first_entries = one.entries
        self._second_entries = other.entries
        self._first_counts = _count_files(self._first_entries)
        self._second_counts = _count_files(self._second_entries)
        # By their signs, in the order of the answer.
        self._rows: dict[str, list[str]] = {"-": [], "+": [], "~": []}
        self._same = 0

    def compare_entries(self) -> None:
        for parts in sorted({*self._first_entries, *self._second_entries}, key="/".join):
            self._cancel.check()
            if parts not in self._second_entries:
                # What a folder holds that the other side lacks goes without saying.
                if len(parts) == 1 or parts[:-1] in self._second_entries:
                    self._add_one_sided("-", parts, self._first_entries, self._first_counts)
            elif parts in self._first_entries:
                self._compare_entry(parts)
            elif len(parts) == 1 or parts[:-1] in self._first_entries:
                self._add_one_sided("+", parts, self._second_entries, self._second_counts)

    def lines(self) -> list[str]:
        """Return a line for each entry that differs: what only the first has, only the second, and what both have."""
        lines: list[str] = []
        for sign, rows in self._rows.items():
            lines += [f"{sign} {row}" for row in rows]
        return lines

    def facts(self) -> list[str]:
        return [
            f"{len(self._rows['-']):,} only in the first (-)",
            f"{len(self._rows['+']):,} only in the second (+)",
            f"{pluralize(len(self._rows['~']), 'file')} (~) differ",
            f"{self._same:,} same",
            *self._skipped.describe_excluded(named=True),
            *self._skipped.notes(),
        ]

    def _add_one_sided(
        self, sign: str, parts: _Parts, entries: dict[_Parts, str], file_counts: Counter[_Parts]
    ) -> None:
        row = escape_line_breaks("/".join(parts))
        if entries[parts] == "folder":
            row += f"/\t{pluralize(file_counts[parts], 'file')}"
        self._rows[sign].append(row)

    def _compare_entry(self, parts: _Parts) -> None:
        """Compare an entry that both sides have."""
        path = escape_line_breaks("/".join(parts))
        kind = self._first_entries[parts]
        other_kind = self._second_entries[parts]
        if kind != other_kind:
            self._rows["~"].append(f"{path}\t{kind}\t{other_kind}")
            return
        if kind == "folder":
            return
        if time.monotonic() > self.deadline:
            self._skipped.add(f"not compared within {WALK_SECONDS:g} s", path)
            return
        try:
            difference = _describe_difference(
                _entry_at(self._first, parts), _entry_at(self._second, parts), kind, self._cancel
            )
        except Problem:
            self._skipped.add("could not be compared", path)
            return
        if difference is None:
            self._same += 1
            report_progress(self._same, None, f"{pluralize(self._same, 'file')} the same")
            return
        self._rows["~"].append(f"{path}{difference}")
        if kind == "file":
            self.changed_files.append(parts)


def _collect_diffs(
    one: ReadablePath,
    other: ReadablePath,
    changed_files: Sequence[_Parts],
    max_bytes: int,
    deadline: float,
    cancel: CancelToken,
) -> tuple[list[str], int]:
    """Return the diffs of files that differ, each whole, at most so many bytes; and of how many text files none is."""
    diffs: list[str] = []
    missing_count = 0
    for parts in changed_files:
        cancel.check()
        lines = None
        if time.monotonic() < deadline:
            with suppress(Problem):
                lines = _diff_small_files(_entry_at(one, parts), _entry_at(other, parts), cancel)
        if lines is None or _bytes_of_lines(lines) > max_bytes:
            missing_count += 1
            continue
        max_bytes -= _bytes_of_lines(lines)
        diffs += lines
    return diffs, missing_count


def _bytes_of_lines(lines: Sequence[str]) -> int:
    return sum(len(line.encode("utf-8", "replace")) + 1 for line in lines)


def _diff_small_files(one: ReadablePath, other: ReadablePath, cancel: CancelToken) -> list[str] | None:
    """Return the diff of two files, of others than text no line; None where it would take long."""
    for path in (one, other):
        with open_content(path, cancel, raw=True) as (file, _):
            if _size_of(file) > _MAX_DIFFED_BYTES:
                if is_text(file.read(_SAMPLE_BYTES)):
                    return None
                return []
    return _compare_files(one, other, cancel)[1]


class _Side:
    """One of two folders that are compared.

    Attributes:
        entries: what each entry below it is.
    """

    def __init__(self, folder: _Folder, walk_filter: WalkFilter, skipped: Skipped, cancel: CancelToken) -> None:
        self.entries: dict[_Parts, str] = {}
        self._start = folder.start
        self._skipped = skipped
        self._cancel = cancel
        # What is hidden or ignored, and whether it is hidden.
        self._excluded: dict[_Parts, bool] = {}
        if folder.members is None:
            self._read((), walk_filter)
        else:
            self._add_members(folder.members, hidden=walk_filter.hidden)
        if not folder.is_complete:
            skipped.add("not listed whole", display_path(folder.start))

    def add_excluded(self, other: Mapping[_Parts, str]) -> None:
        """Add what only this side ignores or hides: one rule holds for both, or it would seem to be missing here.

        Args:
            other: the entries of the other side.
        """
        for parts in [parts for parts in self._excluded if parts in other]:
            is_hidden = self._excluded.pop(parts)
            if is_hidden:
                self._skipped.hidden -= 1
            else:
                self._skipped.ignored -= 1
            with suppress(Problem):
                status = read_status(_entry_at(self._start, parts), follow=False)
                if stat.S_ISDIR(status.st_mode):
                    self.entries[parts] = "folder"
                    self._read(parts, WalkFilter(hidden=True, ignored=True))
                else:
                    self._add_file(parts, _kind_of_mode(status.st_mode))

    def _read(self, parts: _Parts, walk_filter: WalkFilter) -> None:
        """Read what is below a folder of this side."""
        start = self._start
        if parts:
            start = _entry_at(start, parts)
        for entries in walk(start, walk_filter, self._cancel, self._skipped):
            report_progress(len(self.entries), None, f"{len(self.entries):,} entries seen")
            above = (*parts, *entries.parts)
            for name in entries.folders:
                self.entries[*above, name] = "folder"
            for name, _ in entries.excluded:
                self._excluded[*above, name] = name in entries.hidden
            for name in entries.files:
                self._add_file((*above, name), _kind_of_file(entries, name))

    def _add_members(self, members: Sequence[_Parts], *, hidden: bool) -> None:
        """Add the files of an archive, and the folders that their names tell of."""
        hidden_entries: set[_Parts] = set()
        for parts in members:
            if not hidden and any(name.startswith(".") for name in parts):
                depth = next(depth for depth, name in enumerate(parts, 1) if name.startswith("."))
                hidden_entries.add(parts[:depth])
                continue
            for depth in range(1, len(parts)):
                self.entries[parts[:depth]] = "folder"
            self._add_file(parts, "file")
        self._skipped.hidden += len(hidden_entries)

    def _add_file(self, parts: _Parts, kind: str) -> None:
        self.entries[parts] = kind
        start = self._start
        if start.policy.is_protected((*start.parts, *parts)):
            self.entries[parts] = "special"
            folder = start.at(start.root, (*start.parts, *parts[:-1]))
            self._skipped.add("protected", entry_display_path(folder, parts[-1]))


def _kind_of_mode(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "link"
    if stat.S_ISREG(mode):
        return "file"
    return "special"


def _kind_of_file(entries: FolderEntries, name: str) -> str:
    if name in entries.links:
        return "link"
    if name in entries.special_files:
        return "special"
    return "file"


def _count_files(entries: dict[_Parts, str]) -> Counter[_Parts]:
    """Return how many files each folder holds, at any depth."""
    file_counts = Counter[_Parts]()
    for parts in sorted(entries, key=len, reverse=True):
        if entries[parts] == "folder":
            file_counts[parts[:-1]] += file_counts[parts]
        else:
            file_counts[parts[:-1]] += 1
    return file_counts


def _entry_at(start: ReadablePath, parts: _Parts) -> ReadablePath:
    return start.at(start.root, (*start.parts, *parts))


def _describe_difference(one: ReadablePath, other: ReadablePath, kind: str, cancel: CancelToken) -> str | None:
    """Return how two entries of one kind differ; None where they don't."""
    if kind == "link":
        if read_link(one) == read_link(other):
            return None
        return "\tlinks elsewhere"
    if kind != "file":
        return None
    with open_content(one, cancel, raw=True) as (first, _), open_content(other, cancel, raw=True) as (second, _):
        size = _size_of(first)
        other_size = _size_of(second)
        if size == other_size and _compare_rest(first, second, cancel) is None:
            return None
    return f"\t{size:,}\t{other_size:,}"
