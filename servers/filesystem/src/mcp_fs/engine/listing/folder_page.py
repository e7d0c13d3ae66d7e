"""Lists one page of a folder.

A page is chosen by a heap, so that a folder of a million entries is never sorted nor held; by name only the
entries shown are looked at more closely.
"""

from __future__ import annotations

import heapq
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import Invalid, NotFound, Problem, describe_os_error
from mcp_batteries.progress import report_progress
from mcp_fs.engine.handles.file_attributes import is_hidden
from mcp_fs.engine.handles.path_opening import Folder, open_folder, read_status, translate_errors
from mcp_fs.engine.listing.walk import (
    FolderEntries,
    Skipped,
    WalkFilter,
    display_path,
    entry_display_path,
    page_byte_limit,
    walk,
)
from mcp_fs.engine.name_folding import fold_name
from mcp_fs.engine.patterns.ignore import IGNORE_FILES, Rules
from mcp_fs.models import Entry, FolderPage
from mcp_fs.policy import ReadablePath

__all__ = ["FolderSort", "complete_names", "format_time", "list_folder", "list_roots"]

FolderSort = Literal["name", "size", "modified"]

_ENTRIES_PER_CHECK = 1000
_MAX_COMPLETIONS = 1000
_KINDS = {stat.S_IFDIR: "folder", stat.S_IFREG: "file", stat.S_IFLNK: "link"}


def list_folder(
    path: ReadablePath,
    cancel: CancelToken,
    *,
    sort: FolderSort = "name",
    walk_filter: WalkFilter | None = None,
    folder_sizes: bool = False,
    limit: int = 200,
    cursor: str | None = None,
) -> FolderPage:
    """Return a page of the folder's entries: by name, or the largest or newest first.

    Args:
        folder_sizes: whether a folder has the size of all that is in it.

    Raises:
        Invalid: the cursor is none of this listing.
        Problem: the folder can't be opened.
    """
    walk_filter = walk_filter or WalkFilter(hidden=True, ignored=True)
    scope = [path.uri, sort, str(walk_filter), folder_sizes]
    after = None
    if cursor is not None:
        after = _Key(*Cursor.decode("folder", cursor, scope))
    with open_folder(path) as folder, translate_errors(path):
        sizes = None
        if folder_sizes:
            sizes = _FolderSizes(folder.path, walk_filter, cancel)
        keys_of_entries = _EntryKeys(folder, sort, walk_filter, cancel, sizes)
        keys: Iterable[_Key] = keys_of_entries
        if after is not None:
            keys = (key for key in keys_of_entries if key > after)
        page = heapq.nsmallest(limit + 1, keys)
        entries = _take_entries((_read_entry(folder, key.name, sizes) for key in page[:limit]), page_byte_limit(limit))
    next_cursor = None
    if len(page) > len(entries):
        last = page[len(entries) - 1]
        next_cursor = Cursor.encode("folder", [last.rank, last.name], scope)
    return FolderPage(
        display_path(path),
        entries,
        keys_of_entries.total,
        sort,
        keys_of_entries.excluded_count,
        next_cursor,
        path.uri,
    )


def list_roots(paths: Sequence[ReadablePath]) -> FolderPage:
    """Return the served folders, as entries."""
    entries = tuple(
        Entry(display_path(path), "folder", None, format_time(read_status(path).st_mtime)) for path in paths
    )
    return FolderPage("served folders", entries, len(entries), "name", 0, None)


def complete_names(path: ReadablePath, prefix: str, cancel: CancelToken) -> list[tuple[str, ReadablePath]]:
    """Return the names in a folder that begin with `prefix`, as a shell completes them, folders with a slash.

    None of a folder that can't be listed; at most 1,000.
    """
    names: list[tuple[str, ReadablePath]] = []
    with suppress(OSError, Problem), open_folder(path) as folder:
        for entry in folder.scan():
            cancel.check()
            if not _completes(entry, prefix) or path.policy.is_protected((*folder.path.parts, entry.name)):
                continue
            name = entry.name
            if entry.is_dir():
                name += "/"
            names.append((name, folder.path / entry.name))
            if len(names) == _MAX_COMPLETIONS:
                break
    return names


def _completes(entry: os.DirEntry[str], prefix: str) -> bool:
    """Return whether an entry's name begins with `prefix`; that of a hidden one only where something is typed."""
    if not fold_name(entry.name).startswith(fold_name(prefix)):
        return False
    return bool(prefix) or not is_hidden(entry)


def _take_entries(entries: Iterable[Entry], max_bytes: int) -> tuple[Entry, ...]:
    """Return the first of `entries` that take at most `max_bytes` bytes, but one at least."""
    taken_entries: list[Entry] = []
    for entry in entries:
        max_bytes -= _line_bytes(entry.line())
        if taken_entries and max_bytes < 0:
            break
        taken_entries.append(entry)
    return tuple(taken_entries)


@dataclass(frozen=True, slots=True, order=True)
class _Key:
    """Where an entry stands in a listing: by rank, the same rank by name."""

    rank: int
    name: str


@dataclass
class _EntryKeys:
    """The keys of a folder's entries, unsorted, counted on the way."""

    folder: Folder[ReadablePath]
    sort: FolderSort
    walk_filter: WalkFilter
    cancel: CancelToken
    sizes: _FolderSizes | None = None
    total: int = 0
    excluded_count: int = 0

    def __iter__(self) -> Iterator[_Key]:
        rules = None
        if not self.walk_filter.ignored:
            rules = _load_rules(self.folder)
        prefix = "/".join((*self.folder.path.parts, ""))
        for number, entry in enumerate(self.folder.scan()):
            if not number % _ENTRIES_PER_CHECK:
                self.cancel.check()
            if rules is not None and self._is_excluded(entry, rules, prefix):
                self.excluded_count += 1
                continue
            self.total += 1
            yield _Key(self._rank(entry), entry.name)

    def _is_excluded(self, entry: os.DirEntry[str], rules: Rules, prefix: str) -> bool:
        hidden = set[str]()
        if not self.walk_filter.hidden and is_hidden(entry):
            hidden = {entry.name}
        return bool(rules.exclude(prefix, [entry.name], entry.is_dir(follow_symlinks=False), hidden))

    def _rank(self, entry: os.DirEntry[str]) -> int:
        if self.sort == "name":
            return 0
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            return 1  # removed since
        if self.sort == "size" and self.sizes is not None and entry.is_dir(follow_symlinks=False):
            return -self.sizes.size_of(entry.name).size
        if self.sort == "size":
            return -status.st_size
        return -status.st_mtime_ns


class _FolderSize(NamedTuple):
    """The bytes of a folder, and whether these are all of them."""

    size: int
    is_complete: bool


class _FolderSizes:
    """The bytes of the files in folders, at any depth; a file with several names counts once."""

    def __init__(self, above: ReadablePath, walk_filter: WalkFilter, cancel: CancelToken) -> None:
        self._above = above
        self._walk_filter = walk_filter
        self._cancel = cancel
        self._skipped = Skipped.with_deadline()
        self._sizes: dict[str, _FolderSize] = {}

    def size_of(self, name: str) -> _FolderSize:
        folder_size = self._sizes.get(name)
        if folder_size is None:
            folder_size = self._sum_folder(name)
            self._sizes[name] = folder_size
        return folder_size

    def _sum_folder(self, name: str) -> _FolderSize:
        size = 0
        counted_inodes = set[tuple[int, int]]()
        self._skipped.reasons.clear()
        try:
            for entries in walk(self._above / name, self._walk_filter, self._cancel, self._skipped):
                size += self._sum_files(entries, counted_inodes)
        except Problem:
            return _FolderSize(size, is_complete=False)
        return _FolderSize(size, is_complete=not self._skipped.reasons)

    def _sum_files(self, entries: FolderEntries, counted_inodes: set[tuple[int, int]]) -> int:
        report_progress(len(self._sizes), None, f"{len(self._sizes):,} folders summed up")
        size = 0
        for name in entries.files:
            try:
                status = entries.folder.stat(name)
            except OSError:
                continue  # removed since
            if status.st_nlink > 1:
                if (status.st_dev, status.st_ino) in counted_inodes:
                    continue
                counted_inodes.add((status.st_dev, status.st_ino))
            size += status.st_size
        return size


def _line_bytes(line: str) -> int:
    return len(line.encode("utf-8", "replace")) + 1


def _read_entry(folder: Folder[ReadablePath], name: str, sizes: _FolderSizes | None) -> Entry:
    place = folder.path
    path = entry_display_path(place, name)
    try:
        status = folder.stat(name)
    except FileNotFoundError:
        return Entry(path, "gone", None, "", "removed just now")
    except OSError as error:
        return Entry(path, "special", None, "", f"can't be looked at: {describe_os_error(error).lower()}")
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), "special")
    size = None
    note = ""
    if place.policy.is_protected((*place.parts, name)):
        note = "protected"
    match kind:
        case "link":
            note = _describe_link(folder, name, note)
        case "special":
            note = "not a regular file"
        case "file":
            size = status.st_size
        case _ if sizes is not None:
            size, is_complete = sizes.size_of(name)
            if not is_complete:
                note = ", ".join(filter(None, ("at least", note)))
        case _:
            pass
    return Entry(path, kind, size, format_time(status.st_mtime), note)


def _describe_link(folder: Folder[ReadablePath], name: str, note: str) -> str:
    if note:
        return f"link, {note}"
    try:
        target = folder.read_link(name)
        read_status(folder.path / name)
    except (NotFound, Invalid):
        return "link, dangling"
    except Problem as problem:
        if "outside" in problem.failure or "protected" in problem.failure:
            return "link, leads outside or to something protected"
        return "link, unreadable"
    except OSError:
        return "link, unreadable"
    if target.startswith("/"):
        return "link"
    return f"link to {ascii(target)[1:-1]}"


def format_time(seconds: float) -> str:
    """Return a time of the file system as UTC, to the second."""
    try:
        # Windows's own function takes nothing before 1970.
        return f"{(datetime(1970, 1, 1) + timedelta(seconds=int(seconds))).isoformat()}Z"
    except OverflowError:
        return "out of the calendar"  # One odd file is not a reason to list none.


def _load_rules(folder: Folder[ReadablePath]) -> Rules:
    names: list[str] = []
    for name in (".git", *IGNORE_FILES):
        try:
            folder.stat(name)
            names.append(name)
        except OSError:
            continue
    return Rules.load(folder, names, Rules.load_above(folder.path))
