"""Copies one file, link or folder under a temporary name, for a copy and for a move between file systems."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, quote
from mcp_fs.engine.changing.atomic_write import FileWrite, prepare_write, set_new_file_metadata
from mcp_fs.engine.changing.entries.entry_checks import absolute_names, name_taken_error
from mcp_fs.engine.changing.targets import read_regular_status
from mcp_fs.engine.handles.flushing import TreeFlush
from mcp_fs.engine.handles.metadata import MetadataCopier
from mcp_fs.engine.handles.path_opening import (
    Folder,
    ResolvedPath,
    not_a_file_error,
    open_regular,
    open_tree,
    to_problem,
    translate_errors,
)
from mcp_fs.engine.handles.syscalls import copy_blocks
from mcp_fs.engine.handles.temp_files import mark_in_use, remove_quietly, temporary_name
from mcp_fs.engine.journal.operations import Journal, Operation, PlannedChange
from mcp_fs.engine.journal.states import read_state
from mcp_fs.engine.listing.tree_size import TreeSize
from mcp_fs.policy import ReadablePath, WritablePath

__all__ = ["TreePlacement", "prepare_file_copy", "prepare_tree_copy"]

# Entries left out of a copy that the answer names.
_MAX_NAMED = 10


@contextmanager
def prepare_file_copy(
    resolved_source: ResolvedPath[ReadablePath],
    source: ReadablePath,
    resolved_target: ResolvedPath[WritablePath],
    target: WritablePath,
    *,
    overwrite: bool,
    cancel: CancelToken,
    metadata_copier: MetadataCopier | None = None,
) -> Generator[FileWrite]:
    """Copy a regular file under a temporary name.

    Raises:
        Conflict: the target exists, and may not be replaced.
    """
    old_status = read_regular_status(resolved_target, target)
    if old_status is not None and not overwrite:
        raise name_taken_error(target, old_status, "nothing was copied", overwrite=False)
    with translate_errors(source):
        opened_file = open_regular(resolved_source.folder, resolved_source.name, source)
    with ExitStack() as stack:
        with opened_file as file:
            status = os.fstat(file.fileno())
            fill = partial(_fill_file, source_fd=file.fileno(), source=source, cancel=cancel)
            write = stack.enter_context(
                prepare_write(
                    resolved_target,
                    fill,
                    old_status,
                    target,
                    verb="copied to",
                    overwrite=overwrite,
                    template_fd=file.fileno(),
                )
            )
        if metadata_copier is not None:
            metadata_copier.copy_to(resolved_target.folder, write.temporary, status)
        yield write  # the source is closed: a move removes it, which Windows does of none that is open


@dataclass(eq=False)
class TreePlacement(Operation):
    """A link or a folder, copied or unpacked, that waits under a temporary name: it appears in one step.

    Attributes:
        temporary: its name until then.
        outcome: what it means if that fails, in words.
        skipped: what was left out of it.
    """

    temporary: str
    outcome: str
    skipped: Sequence[str] = ()

    @property
    def notes(self) -> list[str]:
        """What was left out, in words."""
        if not self.skipped:
            return []
        remainder = f" and {len(self.skipped) - _MAX_NAMED} more" if len(self.skipped) > _MAX_NAMED else ""
        return [f"without {', '.join(self.skipped[:_MAX_NAMED])}{remainder}"]

    def plan_changes(self, journal_entry: Journal) -> Sequence[PlannedChange]:
        new = read_state(self.folder, self.temporary, thorough=True)
        return [PlannedChange(self.resolved.path, self.folder, new)]

    def apply(self, content_path: WritablePath | None = None) -> None:
        try:
            self.folder.rename_noreplace(self.temporary, self.folder, self.name)
        except FileExistsError as error:
            with translate_errors(self.display_path):
                target_status = self.folder.stat(self.name)
            raise name_taken_error(self.display_path, target_status, self.outcome, overwrite=True) from error
        except OSError as error:
            raise to_problem(error, self.display_path, self.outcome) from error


@contextmanager
def prepare_tree_copy(
    resolved_source: ResolvedPath[ReadablePath],
    source: ReadablePath,
    resolved_target: ResolvedPath[WritablePath],
    target: WritablePath,
    status: os.stat_result,
    cancel: CancelToken,
    metadata_copier: MetadataCopier | None = None,
) -> Generator[TreePlacement]:
    """Copy a link or a folder under a temporary name.

    Args:
        status: of the source.
    """
    target_folder = resolved_target.folder
    temporary = temporary_name()
    skipped: Sequence[str] = ()
    with ExitStack() as stack:
        stack.callback(remove_quietly, target_folder, temporary)
        if stat.S_ISLNK(status.st_mode):
            target_folder.make_link(resolved_source.folder.read_link(resolved_source.name), temporary)
        elif stat.S_ISDIR(status.st_mode):
            with translate_errors(source):
                opened_folder = open_tree(resolved_source.folder, resolved_source.name)
            with opened_folder as folder:
                _refuse_copy_into_itself(source, folder, target_folder)
                target_folder.make_folder(temporary, 0o700)
                skipped = _fill_folder(folder, target_folder, temporary, status, cancel, metadata_copier)
        else:
            raise not_a_file_error(source, stat.S_IFMT(status.st_mode))
        if metadata_copier is not None:
            metadata_copier.copy_to(target_folder, temporary, status)
        yield TreePlacement(resolved_target, target, temporary, "nothing was copied", skipped, verb="copied to")


def _fill_folder(
    source_folder: Folder[ReadablePath],
    target_folder: Folder[WritablePath],
    name: str,
    status: os.stat_result,
    cancel: CancelToken,
    metadata_copier: MetadataCopier | None,
) -> Sequence[str]:
    """Copy what is in a folder to the new one called `name`; return what was left out."""
    with open_tree(target_folder, name) as new_folder:
        mark_in_use(new_folder.fd)
        copier = _TreeCopier(cancel, metadata_copier, new_folder)
        skipped = copier.copy(source_folder, new_folder)
        copier.flush.finish(new_folder)
        new_folder.set_mode(stat.S_IMODE(status.st_mode))
    return skipped


def _refuse_copy_into_itself(
    source: ReadablePath, folder: Folder[ReadablePath], target_folder: Folder[WritablePath]
) -> None:
    names = absolute_names(folder.path)
    if absolute_names(target_folder.path)[: len(names)] == names:
        raise Invalid(f"{quote(source.display)} can't be copied into itself.", "Choose a place outside of it.")


class _TreeCopier(TreeSize):
    """Copies what is in a folder; what it left out, secrets and what is not a file, link or folder, is in `skipped`."""

    def __init__(
        self, cancel: CancelToken, metadata_copier: MetadataCopier | None, top_folder: Folder[WritablePath]
    ) -> None:
        super().__init__(cancel)
        self.skipped: list[str] = []
        self._metadata_copier = metadata_copier
        self._top_folder = top_folder
        self.flush = TreeFlush()

    def copy(self, source: Folder[ReadablePath], target: Folder[WritablePath], depth: int = 0) -> list[str]:
        for entry in source.scan():
            self.count_entry(source.path, depth)
            if source.path.policy.is_protected((*source.path.parts, entry.name)):
                self.skipped.append(entry.name)
            elif entry.is_symlink():
                target.make_link(source.read_link(entry.name), entry.name)
                self._copy_metadata(target, entry)
            elif entry.is_dir():
                target.make_folder(entry.name, 0o700)
                with translate_errors(source.path / entry.name):
                    opened_folder = source.open_folder(entry.name)
                with opened_folder as source_subfolder, target.open_folder(entry.name) as target_subfolder:
                    self.copy(source_subfolder, target_subfolder, depth + 1)
                    target_subfolder.set_mode(stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode))
                self._copy_metadata(target, entry)
            elif entry.is_file():
                status = entry.stat(follow_symlinks=False)
                if self._metadata_copier is None or not self._metadata_copier.link_to_first_copy(
                    self._top_folder, target, entry.name, status
                ):
                    self.copy_file(source, target, entry.name)
                    self._copy_metadata(target, entry)
            else:
                self.skipped.append(entry.name)
        self.flush.flush_folder(target)
        return self.skipped

    def _copy_metadata(self, target: Folder[WritablePath], entry: os.DirEntry[str]) -> None:
        if self._metadata_copier is not None:
            self._metadata_copier.copy_to(target, entry.name, entry.stat(follow_symlinks=False))

    def copy_file(self, source: Folder[ReadablePath], target: Folder[WritablePath], name: str) -> None:
        fd = target.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        try:
            with translate_errors(source.path / name):
                opened_file = open_regular(source, name)
            with opened_file as file:
                _fill_file(fd, file.fileno(), source.path / name, self.cancel)
                set_new_file_metadata(fd, file.fileno())
            self.flush.flush_file(fd)
        finally:
            os.close(fd)


def _fill_file(fd: int, source_fd: int, source: ReadablePath, cancel: CancelToken) -> None:
    copy_blocks(source_fd, fd, cancel.check, partial(translate_errors, source))  # or else the target would be blamed
