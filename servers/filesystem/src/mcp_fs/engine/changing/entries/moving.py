"""Moves entries: by handle at both ends, links as the links they are, between file systems as copies.

A deletion is one of these moves, to the old contents, where they are kept.
"""

from __future__ import annotations

import errno
import stat
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Problem, Refused, Unavailable, describe_os_error, quote
from mcp_fs.engine.changing.atomic_write import FileWrite
from mcp_fs.engine.changing.entries.entry_checks import (
    are_on_different_disks,
    describe_link,
    is_same_entry,
    name_taken_error,
    read_status_if_exists,
    refuse_renaming_secret_folder,
    refuse_served_folder,
)
from mcp_fs.engine.changing.entries.entry_copy import TreePlacement, prepare_file_copy, prepare_tree_copy
from mcp_fs.engine.changing.entries.renames import (
    BatchRename,
    Move,
    Rename,
    Respelling,
    read_moved_state,
    to_move_problem,
)
from mcp_fs.engine.changing.targets import check_renamed_text, refuse_read_only, resolve_for_writing
from mcp_fs.engine.handles.locks import lock_names
from mcp_fs.engine.handles.metadata import MetadataCopier
from mcp_fs.engine.handles.path_opening import (
    ResolvedPath,
    open_tree,
    resolve,
    translate_errors,
)
from mcp_fs.engine.handles.temp_files import remove_all, temporary_name
from mcp_fs.engine.journal.journal import JournalEntry
from mcp_fs.engine.journal.operations import Journal, NotDurable, Operation, PlannedChange, apply, fsync_folder
from mcp_fs.engine.journal.states import read_state
from mcp_fs.engine.listing.tree_size import TreeSize
from mcp_fs.models import MoveResult
from mcp_fs.policy import ReadablePath, WritablePath

__all__ = ["Deletion", "move_entry", "relocate", "rename_all"]

# Entries that keep a folder from being moved that the answer names.
_MAX_NAMED = 5


def move_entry(
    source: WritablePath,
    target: WritablePath,
    *,
    overwrite: bool,
    cancel: CancelToken,
    journal_entry: JournalEntry | None = None,
) -> MoveResult:
    """Rename a file, a folder or a link, also to another served folder or file system.

    Args:
        overwrite: whether a file may be replaced; a folder only when it is empty.

    Raises:
        Conflict: the target exists.
        Refused: the source is a served folder itself, or a folder whose name is what protects secrets in it.
    """
    refuse_renaming_secret_folder(source, target)
    link = describe_link(source)
    with (
        resolve(source, follow=False) as resolved_source,
        resolve_for_writing(target, follow=False) as resolved_target,
        lock_names([resolved_source, resolved_target], cancel),
    ):
        refuse_served_folder(resolved_source.path)
        with translate_errors(source):
            status = resolved_source.folder.stat(resolved_source.name)
        try:
            if is_same_entry(resolved_source, resolved_target):
                notes: list[str] = []
                respelled = replace(resolved_target, name=target.name)
                apply([Respelling(respelled, target, resolved_source, overwrite=True)], None)
            else:
                refuse_served_folder(resolved_target.path)
                if not overwrite and (target_status := read_status_if_exists(resolved_target)) is not None:
                    raise name_taken_error(target, target_status, "nothing was moved", overwrite=False)
                if overwrite:
                    refuse_read_only(resolved_target, target)
                if stat.S_ISREG(status.st_mode):
                    check_renamed_text(resolved_source, resolved_target, target)
                move = Relocation(resolved_source, source, resolved_target, target, overwrite, cancel)
                notes = move.run(lambda operation: apply([operation], journal_entry))
        except OSError as error:
            raise to_move_problem(error, source, target, status, resolved_target, overwrite) from error
    if link is not None:
        notes = [*link.describe_at(target), *notes]
    return MoveResult("moved", source.display, target.display, notes)


def relocate(
    resolved_source: ResolvedPath[WritablePath],
    source: ReadablePath,
    resolved_target: ResolvedPath[WritablePath],
    target: WritablePath,
    overwrite: bool,
    cancel: CancelToken,
) -> None:
    """Move what is at the source as a part of another operation, which records it and makes the folders durable.

    Raises:
        OSError: as rename(2).
    """
    move = Relocation(resolved_source, source, resolved_target, target, overwrite, cancel)
    move.run(lambda operation: operation.apply(None))


def rename_all(
    pairs: Sequence[tuple[WritablePath, WritablePath]],
    *,
    cancel: CancelToken,
    journal_entry: JournalEntry | None = None,
) -> list[MoveResult] | None:
    """Rename entries to names that are free, all or none: one record in the journal, one look at each folder's disk.

    Returns:
        None where one of them takes more than that, as a move to another disk does; nothing was moved then.

    Raises:
        Problem: as `move_entry`; nothing was moved.
    """
    with ExitStack() as stack:
        renames: list[BatchRename] = []
        for source, target in pairs:
            cancel.check()
            rename = _prepare_rename(source, target, stack)
            if rename is None:
                return None
            renames.append(rename)
        resolved_paths: list[ResolvedPath[WritablePath]] = []
        for rename in renames:
            resolved_paths += [rename.resolved_source, rename.resolved]
        stack.enter_context(lock_names(resolved_paths, cancel))
        for rename in renames:
            _check_rename(rename)
        links = [describe_link(source) for source, _ in pairs]
        try:
            apply(renames, journal_entry)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            if journal_entry is not None:
                journal_entry.withdraw()
            return None
    results: list[MoveResult] = []
    for (source, target), link in zip(pairs, links, strict=True):
        notes: Sequence[str] = ()
        if link is not None:
            notes = link.describe_at(target)
        results.append(MoveResult("moved", source.display, target.display, notes))
    return results


def _prepare_rename(source: WritablePath, target: WritablePath, stack: ExitStack) -> BatchRename | None:
    """Return the rename of an entry to a free name of its disk; None for any other move. `stack` holds the folders."""
    resolved_source = stack.enter_context(resolve(source, follow=False))
    resolved_target = stack.enter_context(resolve_for_writing(target, follow=False))
    with translate_errors(source):
        status = resolved_source.folder.stat(resolved_source.name)
    if read_status_if_exists(resolved_target) is not None:
        return None
    if are_on_different_disks(resolved_source, resolved_target):
        return None
    return BatchRename(resolved_target, target, resolved_source, False, source, target, status)


def _check_rename(rename: BatchRename) -> None:
    """Check what a rename would do, now that nobody else changes its names.

    Raises:
        Refused: it moves or replaces a served folder, or gives text the name of another form.
    """
    refuse_served_folder(rename.resolved_source.path)
    refuse_served_folder(rename.resolved.path)
    if stat.S_ISREG(rename.status.st_mode):
        check_renamed_text(rename.resolved_source, rename.resolved, rename.target)


@dataclass(frozen=True, slots=True)
class Relocation:
    """A move from one name to another, which is a rename, or between file systems a copy and a removal."""

    resolved_source: ResolvedPath[WritablePath]
    source: ReadablePath
    resolved_target: ResolvedPath[WritablePath]
    target: WritablePath
    overwrite: bool
    cancel: CancelToken

    def run(self, make: Callable[[Operation], None]) -> list[str]:
        """Let the operation be made that it takes; return what could not be kept, in words.

        Raises:
            OSError: as rename(2).
        """
        if not are_on_different_disks(self.resolved_source, self.resolved_target):
            try:
                make(Rename(self.resolved_target, self.target, self.resolved_source, self.overwrite))
            except OSError as error:
                if error.errno != errno.EXDEV:  # what is mounted twice is one file system and yet two
                    raise
            else:
                return []
        metadata_copier = MetadataCopier()
        with self._prepare_copy(metadata_copier) as copied:
            move = MoveBetweenDisks(
                self.resolved_target, self.target, self.resolved_source, copied, self.source, self.cancel
            )
            make(move)
        return metadata_copier.notes

    @contextmanager
    def _prepare_copy(self, metadata_copier: MetadataCopier) -> Generator[FileWrite | TreePlacement]:
        """Copy all of the source under a temporary name, as mv(1) does.

        Raises:
            Refused: something in it can't be copied, and would be lost.
        """
        status = self.resolved_source.folder.stat(self.resolved_source.name)
        ends = (self.resolved_source, self.source, self.resolved_target, self.target)
        if stat.S_ISREG(status.st_mode):
            with prepare_file_copy(
                *ends, overwrite=self.overwrite, cancel=self.cancel, metadata_copier=metadata_copier
            ) as write:
                yield write
            return
        if stat.S_ISDIR(status.st_mode):
            with open_tree(self.resolved_source.folder, self.resolved_source.name) as folder:
                TreeSize(self.cancel).count(folder)  # refuses what would be left out of the copy, and lost
        with prepare_tree_copy(*ends, status, self.cancel, metadata_copier) as placement:
            if placement.skipped:
                names = ", ".join(placement.skipped[:_MAX_NAMED])
                raise Refused(f"{quote(self.source.display)} holds entries that can't be copied: {names}.")
            yield placement


@dataclass(eq=False)
class MoveBetweenDisks(Move):
    """A finished copy that gets its name, before what was copied goes."""

    copied: FileWrite | TreePlacement
    source: ReadablePath
    cancel: CancelToken

    def plan_changes(self, journal_entry: Journal) -> Sequence[PlannedChange]:
        source = self.resolved_source
        new = read_moved_state(self.folder, self.copied.temporary, journal_entry)
        origin = read_state(source.folder, source.name, thorough=True)
        return [PlannedChange(self.resolved.path, self.folder, new, source=source.path, copied_source=origin)]

    def apply(self, content_path: WritablePath | None = None) -> None:
        self.copied.apply()
        try:
            fsync_folder(self.folder, self.display_path, "copied to")
        except NotDurable as failure:  # it was not moved
            raise Unavailable(failure.failure, failure.fix) from failure
        try:
            self._remove_source()
        except OSError as error:
            raise Unavailable(
                f"{quote(self.source.display)} was copied to {quote(self.display_path.display)}, but not all of it "
                f"could be removed: {describe_os_error(error)}.",
                "Delete the rest of it when nothing uses it.",
            ) from error

    def _remove_source(self) -> None:
        folder = self.resolved_source.folder
        name = self.resolved_source.name
        removal_name = temporary_name()
        folder.rename(name, folder, removal_name)  # from here on it is there no more, whatever happens
        try:
            remove_all(folder, removal_name, self.cancel)
        except BaseException:
            with suppress(OSError):
                folder.rename_noreplace(removal_name, folder, name)
            raise


@dataclass(eq=False)
class Deletion(Operation):
    """A deletion of an entry, with all that is in it, which goes to the old contents if they are kept.

    Attributes:
        total_bytes: that it takes.
        journal_entry: hears if it can't be kept, and then it is deleted all the same; None: then it stays.
        notes: what the answer says of it.
    """

    total_bytes: int
    cancel: CancelToken
    journal_entry: JournalEntry | None
    notes: Sequence[str] = ()

    def plan_changes(self, journal_entry: Journal) -> Sequence[PlannedChange]:
        return [PlannedChange(self.resolved.path, self.folder, None, handover_bytes=self.total_bytes)]

    def apply(self, content_path: WritablePath | None) -> None:
        with translate_errors(self.display_path, "part of it may be gone" if self.notes else ""):
            if content_path is None or not self._hand_over(content_path):
                remove_all(self.folder, self.name, self.cancel)

    def _hand_over(self, content_path: WritablePath) -> bool:
        """Move it to the old contents; return False when that can't be and it is still there."""
        try:
            with resolve(content_path, follow=False) as content:
                relocate(self.resolved, self.display_path, content, content_path, overwrite=False, cancel=self.cancel)
        except (OSError, Problem) as failure:
            if self.journal_entry is None:
                raise
            if not self.journal_entry.has_received(content_path):
                self.journal_entry.note_not_kept(self.display_path, failure)
            return False
        return True
