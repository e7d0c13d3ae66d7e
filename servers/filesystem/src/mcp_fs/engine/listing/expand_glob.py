"""Finds the entries that a path with `*` means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from mcp_batteries.errors import NotFound, Problem, TooLarge, quote
from mcp_batteries.limits import Stop
from mcp_fs.engine.listing.selection import compile_choosers
from mcp_fs.engine.listing.walk import Skipped, WalkFilter, walk
from mcp_fs.engine.listing.walk import entry_display_path as shown_path
from mcp_fs.policy import ReadablePath

__all__ = ["expand_glob"]

_P = TypeVar("_P", bound=ReadablePath)


def expand_glob(start: _P, glob: str, name: str, limit: int, stop: Stop) -> tuple[Sequence[_P], Sequence[str]]:
    """The files below `start` whose path fits `glob`, or folders where it ends in a slash; and what was left out.

    Args:
        name: what the caller wrote, for messages.
        limit: of them.

    Raises:
        NotFound: there are none, without hidden and git-ignored ones.
        TooLarge: there are more than `limit`.
        Problem: the start can't be opened, or the glob can't be read.
    """
    (chooses,) = compile_choosers([start], f"/{glob}")
    skipped = Skipped()
    paths = list[_P]()
    folders = glob.endswith("/")
    for entries in walk(start, WalkFilter(), stop, skipped):
        folder = entries.folder.path
        prefix = "".join(part + "/" for part in entries.parts)
        for entry, is_folder in entries.excluded:
            if is_folder == folders and chooses(prefix + entry):
                skipped.add("left out, as hidden or git-ignored", shown_path(folder, entry))
        for entry in entries.folders if folders else entries.files:
            if not chooses(prefix + entry):
                continue
            try:
                paths.append(start.at(folder.root, (*folder.parts, entry)))
            except Problem:
                skipped.add("protected", shown_path(folder, entry))
        if len(paths) > limit:
            raise TooLarge(f"{quote(name)} means more than {limit}.", "Narrow it, or do a part at a time.")
    if not paths:
        notes = "".join(f"; {note}" for note in skipped.notes())
        raise NotFound(
            f"{quote(name)} means no file that is not hidden or git-ignored{notes}.",
            "`find_files` lists those too; then name them one by one. `**/*.x` is at any depth, `x/` a folder.",
        )
    return paths, skipped.notes()
