"""Tells what is in folders after a change, so that nobody has to look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice

from mcp_batteries.errors import Problem
from mcp_fs.engine.handles.path_opening import resolve
from mcp_fs.models import escape_line_breaks, pluralize
from mcp_fs.policy import WritablePath

__all__ = ["describe_contents", "describe_emptied", "describe_remaining"]

# Folders that an answer tells of, and names in one of them.
_MAX_NAMED = 5
_MAX_COUNTED = 1000


def describe_emptied(folders: Iterable[WritablePath]) -> list[str]:
    """Say which of the folders have nothing in them any more."""
    empty: list[str] = []
    for folder in dict.fromkeys(folders):
        if _list_names(folder, 1) == []:
            empty.append(folder.display)
    if not empty:
        return []
    names = ", ".join(empty[:_MAX_NAMED])
    if len(empty) > _MAX_NAMED:
        names += f" and {len(empty) - _MAX_NAMED} more"
    verb = "is"
    if len(empty) > 1:
        verb = "are"
    return [f"{names} {verb} empty now"]


def describe_remaining(folders: Iterable[WritablePath]) -> list[str]:
    """Say what is left in the first of the folders that are not empty, by name if it is little."""
    notes: list[str] = []
    for folder in dict.fromkeys(folders):
        names = _list_names(folder, _MAX_COUNTED)
        if not names:
            continue
        if len(notes) == _MAX_NAMED:
            break
        if len(names) <= _MAX_NAMED:
            notes.append(f"left in {folder.display}: {', '.join(sorted(names))}")
        else:
            notes.append(f"left in {folder.display}: {_count(names)}")
    return notes


def describe_contents(folders: Iterable[WritablePath]) -> list[str]:
    """Say how many entries the first of the folders have now."""
    notes: list[str] = []
    for folder in islice(dict.fromkeys(folders), _MAX_NAMED):
        names = _list_names(folder, _MAX_COUNTED)
        if names:
            notes.append(f"{folder.display} has {_count(names)} now")
    return notes


def _count(names: Sequence[str]) -> str:
    if len(names) == _MAX_COUNTED:
        return f"{_MAX_COUNTED:,} entries or more"
    return pluralize(len(names), "entry")


def _list_names(folder: WritablePath, limit: int) -> list[str] | None:
    """Return the first names in a folder, with a slash behind those of folders; None if it can't be read."""
    with (
        suppress(OSError, Problem),
        resolve(folder, follow=False) as resolved,
        resolved.folder.open_folder(resolved.name) as listed_folder,
    ):
        names: list[str] = []
        for entry in islice(listed_folder.scan(), limit):
            slash = ""
            if entry.is_dir(follow_symlinks=False):
                slash = "/"
            names.append(escape_line_breaks(entry.name) + slash)
        return names
    return None
