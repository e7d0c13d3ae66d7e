"""Reads how files of each kind below a folder begin, so that who looks at a tree needs no second look."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Problem
from mcp_fs.engine.listing.walk import FolderEntries, Skipped, WalkFilter, walk
from mcp_fs.engine.reading.text_page import LineIndex, NamedFile, PageRequest, read_pages
from mcp_fs.models import FileSlices
from mcp_fs.policy import ReadablePath

__all__ = ["read_samples"]

_LINES = 5
_MAX_BYTES = 5000
_MAX_KINDS = 6
_WALK_SECONDS = 2.0


@dataclass(slots=True)
class _Kind:
    """The files whose names end alike.

    Attributes:
        first: the one that a walk comes by first; `last` is the last.
    """

    first: ReadablePath
    last: ReadablePath
    file_count: int = 0

    @property
    def examples(self) -> Sequence[ReadablePath]:
        if self.file_count == 1:
            return [self.first]
        return [self.first, self.last]


def read_samples(
    start: ReadablePath, walk_filter: WalkFilter, depth: int, index: LineIndex, cancel: CancelToken
) -> str:
    """Return the first lines of two files of each kind, the kinds with the most files first; of binary ones none.

    What was not looked at is said at the end.

    Args:
        depth: levels of folders that are looked at.

    Raises:
        Problem: the start can't be opened.
    """
    kinds: dict[str, _Kind] = {}
    skipped = Skipped(time.monotonic() + _WALK_SECONDS)
    for entries in walk(start, walk_filter, cancel, skipped):
        _add_files(entries, kinds)
        if len(entries.parts) + 1 >= depth:
            entries.folders = []
    samples: list[NamedFile] = []
    by_count = sorted(kinds.values(), key=lambda kind: -kind.file_count)
    for kind in by_count[:_MAX_KINDS]:
        for path in kind.examples:
            samples.append(NamedFile(path.display, None, (path, 1, _LINES)))
    pages = read_pages(samples, PageRequest(max_bytes=_MAX_BYTES), index, cancel)
    text = FileSlices([outcome for outcome in pages.outcomes if not isinstance(outcome[1], Problem)]).text()
    notes: list[str] = []
    if len(by_count) > _MAX_KINDS:
        notes.append(f"samples are of {_MAX_KINDS} of {len(by_count):,} kinds, those with the most files")
    if skipped.is_late():
        notes.append(f"samples are of what was seen within {_WALK_SECONDS:g} s")
    if notes:
        text += f"[{'; '.join(notes)}]\n"
    return text


def _add_files(entries: FolderEntries, kinds: dict[str, _Kind]) -> None:
    folder = entries.folder.path
    for name in entries.files:
        if name in entries.links or name in entries.special_files or name in entries.not_downloaded:
            continue
        if folder.policy.is_protected((*folder.parts, name)):
            continue
        path = folder / name
        kind = kinds.setdefault(os.path.splitext(name)[1].lower(), _Kind(path, path))
        kind.last = path
        kind.file_count += 1
