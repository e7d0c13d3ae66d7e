"""Finds the entries that a path with `*` means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import NotFound, Problem, TooLarge, quote
from mcp_fs.engine.listing.selection import Chooser, compile_choosers
from mcp_fs.engine.listing.walk import FolderEntries, Skipped, WalkFilter, entry_display_path, walk
from mcp_fs.policy import ReadablePath

__all__ = ["expand_glob"]

_P = TypeVar("_P", bound=ReadablePath)


def expand_glob(start: _P, glob: str, name: str, limit: int, cancel: CancelToken) -> tuple[Sequence[_P], Sequence[str]]:
    """Return the files below `start` whose path fits `glob`, or folders where it ends in a slash; and what is left out.

    Args:
        name: what the caller wrote, for messages.
        limit: of them.

    Raises:
        NotFound: there are none, without hidden and git-ignored ones.
        TooLarge: there are more than `limit`.
        Problem: the start can't be opened, or the glob can't be read.
    """
    (chooses,) = compile_choosers([start], f"/{glob}")
    expansion = _Expansion(start, chooses, folders=glob.endswith("/"))
    for entries in walk(start, WalkFilter(), cancel, expansion.skipped):
        expansion.add(entries)
        if len(expansion.paths) > limit:
            raise TooLarge(f"{quote(name)} means more than {limit}.", "Narrow it, or do a part at a time.")
    if not expansion.paths:
        notes = "".join(f"; {note}" for note in expansion.skipped.notes())
        raise NotFound(
            f"{quote(name)} means no file that is not hidden or git-ignored{notes}.",
            "`find_files` lists those too; then name them one by one. `**/*.x` is at any depth, `x/` a folder.",
        )
    return expansion.paths, expansion.skipped.notes()


class _Expansion(Generic[_P]):
    """What a glob means, folder by folder.

    Attributes:
        paths: what it means.
        skipped: what is left out.
    """

    def __init__(self, start: _P, chooses: Chooser, *, folders: bool) -> None:
        self.paths: list[_P] = []
        self.skipped = Skipped()
        self._start = start
        self._chooses = chooses
        self._folders = folders

    def add(self, entries: FolderEntries) -> None:
        """Add what is meant in one folder."""
        folder = entries.folder.path
        prefix = "".join(part + "/" for part in entries.parts)
        for entry, is_folder in entries.excluded:
            if is_folder == self._folders and self._chooses(prefix + entry):
                self.skipped.add("left out, as hidden or git-ignored", entry_display_path(folder, entry))
        names = entries.files
        if self._folders:
            names = entries.folders
        for name in names:
            if self._chooses(prefix + name):
                self._add_path(folder, name)

    def _add_path(self, folder: ReadablePath, name: str) -> None:
        try:
            self.paths.append(self._start.at(folder.root, (*folder.parts, name)))
        except Problem:
            self.skipped.add("protected", entry_display_path(folder, name))
