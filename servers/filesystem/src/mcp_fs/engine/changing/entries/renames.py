"""Renames entries: a move within one file system, alone or as one of several.

Nothing is ever replaced by accident: whether a name is free is decided by the kernel in the same step that takes
it, so of two moves to one name one fails.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from mcp_batteries.errors import Conflict, Invalid, quote
from mcp_fs.engine.changing.entries.entry_checks import name_taken_error
from mcp_fs.engine.handles.path_opening import Folder, ResolvedPath, is_held_open, to_problem
from mcp_fs.engine.handles.temp_files import BACKUP_PREFIX, temporary_name
from mcp_fs.engine.journal.entry_state import EntryState
from mcp_fs.engine.journal.operations import Journal, Operation, PlannedChange
from mcp_fs.engine.journal.states import read_state
from mcp_fs.policy import WritablePath

__all__ = ["BatchRename", "Move", "Rename", "Respelling", "read_moved_state", "to_move_problem"]


@dataclass(eq=False)
class Move(Operation):
    """A move, which changes the folder that an entry leaves too."""

    resolved_source: ResolvedPath[WritablePath]
    verb: str = field(default="moved to", kw_only=True)

    @property
    def changed_folders(self) -> Sequence[Folder[WritablePath]]:
        return [self.folder, self.resolved_source.folder]


@dataclass(eq=False)
class Rename(Move):
    """A move within one file system.

    Attributes:
        overwrite: whether it replaces what rename(2) replaces.
    """

    overwrite: bool

    def plan_changes(self, journal_entry: Journal) -> Sequence[PlannedChange]:
        source = self.resolved_source
        new = read_moved_state(source.folder, source.name, journal_entry)
        return [PlannedChange(self.resolved.path, self.folder, new, source=source.path)]

    def apply(self, content_path: WritablePath | None = None) -> None:
        source = self.resolved_source
        if not self.overwrite:
            source.folder.rename_noreplace(source.name, self.folder, self.name)
            return
        are_links = _are_links_to_one_file(source, self.resolved)
        source.folder.rename(source.name, self.folder, self.name)
        if are_links:  # rename(2) leaves both, without an error
            source.folder.remove(source.name)


@dataclass(eq=False)
class Respelling(Rename):
    """Another spelling of a name, where both may be one name to the file system."""

    def apply(self, content_path: WritablePath | None = None) -> None:
        source = self.resolved_source
        source.folder.rename(source.name, self.folder, self.name)
        if self.name in self.folder.list_names():
            return
        # On FAT, exFAT and SMB shares, rename(2) of Linux takes the two for links to one file, and does nothing.
        between = temporary_name(BACKUP_PREFIX)
        source.folder.rename_noreplace(source.name, self.folder, between)
        try:
            self.folder.rename_noreplace(between, self.folder, self.name)
        except BaseException:
            self.folder.rename_noreplace(between, source.folder, source.name)
            raise


def _are_links_to_one_file(source: ResolvedPath[WritablePath], target: ResolvedPath[WritablePath]) -> bool:
    """Whether two names, of which neither is a spelling of the other, are hard links to one file."""
    source_status = source.folder.stat(source.name)
    if source_status.st_nlink < 2 or stat.S_ISDIR(source_status.st_mode):
        return False
    try:
        target_status = target.folder.stat(target.name)
    except FileNotFoundError:
        return False
    return os.path.samestat(source_status, target_status)


@dataclass(eq=False)
class BatchRename(Rename):
    """One of several renames, all or none: it says itself what stopped it, and can be taken back.

    Attributes:
        source: as the caller knows it.
        target: the same.
        status: of what is moved.
    """

    source: WritablePath
    target: WritablePath
    status: os.stat_result

    def apply(self, content_path: WritablePath | None = None) -> None:
        try:
            super().apply(content_path)
        except OSError as error:
            if error.errno == errno.EXDEV:
                raise
            raise to_move_problem(
                error, self.source, self.target, self.status, self.resolved, self.overwrite
            ) from error

    def take_back(self) -> None:
        source = self.resolved_source
        self.folder.rename_noreplace(self.name, source.folder, source.name)

    @property
    def backup_note(self) -> str:
        return f", where {quote(self.source.display)} is now"


def read_moved_state(folder: Folder[WritablePath], name: str, journal_entry: Journal) -> EntryState | None:
    """Read the state that what is `name` in `folder` will have where it is moved to."""
    # What was moved to another disk and back is another file, and known again by its content.
    thorough = journal_entry.is_on_other_disk(folder) or _is_other_disk_served(folder)
    state = read_state(folder, name, thorough=thorough)
    if state is not None and state.kind == "folder":
        state = replace(state, kind="tree")
    return state


def _is_other_disk_served(folder: Folder[WritablePath]) -> bool:
    device = folder.stat(".").st_dev
    return any(root.identity[0] != device for root in folder.path.policy.roots)


def to_move_problem(
    error: OSError,
    source: WritablePath,
    target: WritablePath,
    status: os.stat_result,
    resolved_target: ResolvedPath[WritablePath],
    overwrite: bool,
) -> Exception:
    if error.errno == errno.EINVAL and stat.S_ISDIR(status.st_mode):
        return Invalid(f"{quote(source.display)} can't be moved into itself.", "Choose a place outside of it.")
    if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.EISDIR):
        with suppress(OSError):
            return name_taken_error(
                target, resolved_target.folder.stat(resolved_target.name), "nothing was moved", overwrite=overwrite
            )
    if error.errno == errno.ENOTDIR and stat.S_ISDIR(status.st_mode):
        return Conflict(
            f"{quote(target.display)} is a file, which a folder can't replace; nothing was moved.",
            "Choose another name, or delete the file first.",
        )
    # Of two names Windows tells when the first is held; that the second is has been found out.
    about_source = error.errno == errno.ENOENT or (is_held_open(error) and error.filename2 is not None)
    return to_problem(error, source if about_source else target, "nothing was moved")
