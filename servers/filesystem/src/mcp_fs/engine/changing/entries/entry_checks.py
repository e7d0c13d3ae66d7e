"""Looks at what is at the source and at the target of a change of entries, and refuses what may not be."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from mcp_batteries.errors import Conflict, Refused, quote
from mcp_fs.engine.handles.path_opening import ResolvedPath, exists, resolve
from mcp_fs.engine.name_folding import fold_name
from mcp_fs.policy import ReadablePath, WritablePath

__all__ = [
    "absolute_names",
    "are_on_different_disks",
    "describe_link",
    "is_same_entry",
    "name_taken_error",
    "read_status_if_exists",
    "refuse_renaming_secret_folder",
    "refuse_served_folder",
]


def refuse_renaming_secret_folder(source: ReadablePath, target: WritablePath) -> None:
    """Check that the name of `source` protects nothing, or stays.

    Raises:
        Refused: secrets in it are known by it.
    """
    if source.policy.is_secret_folder(source.parts) and source.name != target.name:
        raise Refused(
            f"{quote(source.display)} may hold credentials, which are known by the folder's name.",
            "Only the operator can rename it.",
        )


def refuse_served_folder(path: ReadablePath) -> None:
    """Refuse `path` if it is a served folder or holds one.

    Raises:
        Refused: it is, or does.
    """
    names = absolute_names(path)
    for root in path.policy.roots:
        if absolute_names(path.policy.root_path(root))[: len(names)] == names:
            description = (
                "is a served folder itself" if root.real_path == path.root.real_path and not path.parts else None
            )
            raise Refused(
                f"{quote(path.display)} {description or f'holds the served folder {quote(root.name)}'}.",
                "Name something in it.",
            )


def name_taken_error(target: ReadablePath, target_status: os.stat_result, outcome: str, *, overwrite: bool) -> Conflict:
    """Build the answer when something has the target's name already; `overwrite` when that can't be replaced at all."""
    label = quote(target.display)
    if stat.S_ISDIR(target_status.st_mode):
        return Conflict(
            f"{label} is a folder that exists already; {outcome}.",
            f"Write {quote(target.display + '/')} to put it in there; a full folder is never replaced.",
        )
    if overwrite:
        return Conflict(f"{label} exists already; {outcome}.", "Choose another name, or delete that first.")
    return Conflict(
        f"{label} exists already; {outcome}.",
        "Set `overwrite` to replace it, `skip_existing` to leave out what exists, or choose another name.",
    )


def read_status_if_exists(resolved: ResolvedPath[WritablePath]) -> os.stat_result | None:
    """Return what lstat(2) says of what is at a path; None for nothing."""
    try:
        return resolved.folder.stat(resolved.name)
    except FileNotFoundError:
        return None


def is_same_entry(resolved_source: ResolvedPath[WritablePath], resolved_target: ResolvedPath[WritablePath]) -> bool:
    """Whether both are one entry, found by two spellings of its name."""
    try:
        source_status = resolved_source.folder.stat(resolved_source.name)
        target_status = resolved_target.folder.stat(resolved_target.name)
    except FileNotFoundError:
        return False
    source_folder = resolved_source.folder.stat(".")
    target_folder = resolved_target.folder.stat(".")
    has_same_name = fold_name(resolved_source.name).casefold() == fold_name(resolved_target.name).casefold()
    return (
        has_same_name
        and os.path.samestat(source_status, target_status)
        and os.path.samestat(source_folder, target_folder)
    )


def are_on_different_disks(one: ResolvedPath[WritablePath], other: ResolvedPath[WritablePath]) -> bool:
    return one.folder.stat(".").st_dev != other.folder.stat(".").st_dev


def absolute_names(path: ReadablePath) -> list[str]:
    return [*path.root.real_path.split(os.sep), *path.parts] if path.root.real_path != os.sep else ["", *path.parts]


@dataclass(frozen=True, slots=True)
class Link:
    """A link that is copied or moved as it is.

    Attributes:
        text: where it leads, as it is written in it.
        reaches: whether there is something that is served.
    """

    text: str
    reaches: bool

    def describe_at(self, path: ReadablePath) -> list[str]:
        """Say where the link leads, now that it is at `path`."""
        note = f"a link to {quote(self.text)}"
        if self.reaches and not exists(path):
            note += ", which leads nowhere from there"
        return [note]


def describe_link(path: ReadablePath) -> Link | None:
    """Return the link at a path; None for anything else."""
    with resolve(path, follow=False) as resolved:
        try:
            if not stat.S_ISLNK(resolved.folder.stat(resolved.name).st_mode):
                return None
        except FileNotFoundError:
            return None
        text = resolved.folder.read_link(resolved.name)
    return Link(text, exists(path))
