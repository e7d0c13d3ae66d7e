"""Finds files with the same contents."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Sequence

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, Problem
from mcp_batteries.progress import report_progress
from mcp_fs.engine.handles.path_opening import open_file
from mcp_fs.engine.listing.selection import (
    Chooser,
    compile_choosers_or_exclusion,
    compile_relevance,
    find_nested_starts,
)
from mcp_fs.engine.listing.walk import (
    NOT_DOWNLOADED,
    FolderEntries,
    Skipped,
    WalkFilter,
    entry_display_path,
    exclude_folders,
    page_byte_limit,
    walk,
)
from mcp_fs.models import FilePage, format_size, pluralize
from mcp_fs.policy import ReadablePath

__all__ = ["find_duplicates"]

_BLOCK_BYTES = 1024 * 1024
_Candidate = tuple[str, ReadablePath]


def find_duplicates(
    starts: Sequence[ReadablePath],
    glob: str,
    walk_filter: WalkFilter,
    limit: int,
    cursor: str | None,
    cancel: CancelToken,
) -> FilePage:
    """Return the files below `starts` that fit `glob` and whose contents others of them have too, the largest first.

    Only files of one size are read. Empty files, links, and other names of one file are not duplicates.

    Raises:
        Invalid: folders are asked for, or another page: there is one only.
        Problem: as `find_files`.
    """
    if glob.endswith("/") or cursor is not None:
        raise Invalid("`duplicates` finds files, on one page.", "Raise `limit`, or name a folder as `path`.")
    candidates = _FilesBySize(Skipped.with_deadline())
    for start, chooses in zip(starts, compile_choosers_or_exclusion(starts, glob), strict=True):
        candidates.skipped.is_relevant = compile_relevance(starts, start, glob, chooses)
        nested_starts = find_nested_starts(starts, start)
        for entries in walk(start, walk_filter, cancel, candidates.skipped):
            exclude_folders(entries, nested_starts)
            candidates.add_files(entries, start, chooses)
    groups: list[tuple[int, list[str]]] = []
    for size, files in sorted(candidates.by_size.items(), reverse=True):
        for equal_paths in _group_by_digest(list(files.values()), candidates.skipped, cancel):
            groups.append((size, equal_paths))
    return _build_page(groups, limit, candidates.skipped)


class _FilesBySize:
    """Files that may have the same contents.

    Attributes:
        skipped: learns what can't be compared.
        by_size: the files of each size, by device and inode.
    """

    def __init__(self, skipped: Skipped) -> None:
        self.skipped = skipped
        self.by_size: dict[int, dict[tuple[int, int], _Candidate]] = {}
        self._file_count = 0

    def add_files(self, entries: FolderEntries, start: ReadablePath, chooses: Chooser) -> None:
        """Add the files of a folder that are meant."""
        prefix = "/".join((*entries.parts, ""))
        for name in entries.files:
            is_regular = name not in entries.links and name not in entries.special_files
            if is_regular and chooses(prefix + name):
                self._file_count += 1
                report_progress(self._file_count, None, f"{self._file_count:,} files seen")
                self._add_file(entries, name, start)

    def _add_file(self, entries: FolderEntries, name: str, start: ReadablePath) -> None:
        folder = entries.folder.path
        path = entry_display_path(folder, name)
        if name in entries.not_downloaded:
            self.skipped.add(NOT_DOWNLOADED, path)
            return
        try:
            place = start.at(folder.root, (*folder.parts, name))
        except Problem:
            self.skipped.add("protected", path)
            return
        try:
            status = entries.folder.stat(name)
        except OSError:
            return  # removed since
        if status.st_size and stat.S_ISREG(status.st_mode):
            files = self.by_size.setdefault(status.st_size, {})
            files.setdefault((status.st_dev, status.st_ino), (path, place))


def _group_by_digest(files: Sequence[_Candidate], skipped: Skipped, cancel: CancelToken) -> list[list[str]]:
    """Return the paths of files of one size, those of the same contents together; none that is alone."""
    if len(files) < 2:
        return []
    groups: dict[bytes, list[str]] = {}
    for path, place in files:
        if skipped.is_late():
            skipped.add(Skipped.late_reason(), path)
            continue
        try:
            groups.setdefault(_digest(place, cancel), []).append(path)
        except Problem:
            skipped.add("could not be read", path)
    return [paths for paths in groups.values() if len(paths) > 1]


def _digest(path: ReadablePath, cancel: CancelToken) -> bytes:
    digest = hashlib.sha256()
    with open_file(path) as file:
        while block := file.read(_BLOCK_BYTES):
            cancel.check()
            digest.update(block)
    return digest.digest()


def _build_page(groups: Sequence[tuple[int, list[str]]], limit: int, skipped: Skipped) -> FilePage:
    """Return the first paths of equal files, with the number of their group and their size."""
    rows: list[tuple[str, str]] = []
    extra_bytes = 0
    for number, (size, equal_paths) in enumerate(groups, 1):
        extra_bytes += size * (len(equal_paths) - 1)
        for path in equal_paths:
            rows.append((path, f"#{number}\t{format_size(size)}"))
    page = _take_rows(rows[:limit], page_byte_limit(limit))
    notes: list[str] = []
    if groups:
        notes.append(f"{pluralize(len(groups), 'content')} (#) that several have, {extra_bytes:,} bytes too many")
    if len(page) < len(rows):
        notes.append(f"the first {len(page):,}: raise `limit`, or name a folder as `path`")
    notes += [*skipped.notes(), *skipped.describe_excluded(named=not rows)]
    paths = tuple(path for path, _ in page)
    measures = tuple(measure for _, measure in page)
    return FilePage(paths, len(rows), notes, None, measures)


def _take_rows(rows: Sequence[tuple[str, str]], max_bytes: int) -> list[tuple[str, str]]:
    """Return the first rows that take at most `max_bytes` bytes, but one at least."""
    page: list[tuple[str, str]] = []
    for path, measure in rows:
        max_bytes -= len(path.encode("utf-8", "replace")) + len(measure) + 2
        if page and max_bytes < 0:
            break
        page.append((path, measure))
    return page
