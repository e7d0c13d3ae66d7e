"""Copies one file, link or folder, for a copy and for a move between file systems; what is recorded is the caller's."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, Invalid, quote
from mcp_fs.engine.changing.atomic_write import fsync_file, prepare_write, read_regular_status, set_new_file_metadata
from mcp_fs.engine.handles.metadata import MetadataCopier
from mcp_fs.engine.handles.path_opening import (
    Folder,
    ResolvedPath,
    exists,
    not_a_file_error,
    open_regular,
    open_tree,
    resolve,
    to_problem,
    translate_errors,
)
from mcp_fs.engine.handles.syscalls import copy_blocks
from mcp_fs.engine.handles.temp_files import mark_in_use, remove_quietly, temporary_name
from mcp_fs.engine.listing.tree_size import TreeSize
from mcp_fs.policy import ReadablePath, WritablePath

__all__ = [
    "Announce",
    "absolute_names",
    "copy_file",
    "copy_link_or_folder",
    "describe_link",
    "name_taken_error",
    "read_status_if_exists",
]

# Is told, before anything appears at the target, in which folder and under which name it stands until then.
Announce = Callable[[Folder[Any], str], None]


def copy_file(
    resolved_source: ResolvedPath[ReadablePath],
    source: ReadablePath,
    resolved_target: ResolvedPath[WritablePath],
    target: WritablePath,
    overwrite: bool,
    cancel: CancelToken,
    announce: Announce | None = None,
    metadata_copier: MetadataCopier | None = None,
) -> list[str]:
    old_status = read_regular_status(resolved_target, target)
    if old_status is not None and not overwrite:
        raise name_taken_error(target, old_status, "nothing was copied", overwrite=False)
    with translate_errors(source):
        opened = open_regular(resolved_source.folder, resolved_source.name, source)
    with opened as file:
        status = os.fstat(file.fileno())
        fill = partial(_fill_file, source_fd=file.fileno(), source=source, cancel=cancel)
        with prepare_write(
            resolved_target, fill, old_status, target, overwrite=overwrite, template_fd=file.fileno()
        ) as write:
            if metadata_copier is not None:
                metadata_copier.copy_to(resolved_target.folder, write.temporary, status)
            if announce is not None:
                announce(resolved_target.folder, write.temporary)
            write.apply()
            write.is_done = True
    return write.notes


def copy_link_or_folder(
    resolved_source: ResolvedPath[ReadablePath],
    source: ReadablePath,
    resolved_target: ResolvedPath[WritablePath],
    target: WritablePath,
    status: os.stat_result,
    cancel: CancelToken,
    announce: Announce | None = None,
    metadata_copier: MetadataCopier | None = None,
) -> list[str]:
    """Copy a link or a folder: under a temporary name first, so that it appears in one step."""
    temporary = temporary_name()
    skipped: list[str] = []
    with ExitStack() as stack:
        stack.callback(remove_quietly, resolved_target.folder, temporary)
        if stat.S_ISLNK(status.st_mode):
            resolved_target.folder.make_link(resolved_source.folder.read_link(resolved_source.name), temporary)
            if metadata_copier is not None:
                metadata_copier.copy_to(resolved_target.folder, temporary, status)
        elif stat.S_ISDIR(status.st_mode):
            with translate_errors(source):
                folder = stack.enter_context(open_tree(resolved_source.folder, resolved_source.name))
            if absolute_names(resolved_target.folder.path)[: len(absolute_names(folder.path))] == absolute_names(
                folder.path
            ):
                raise Invalid(f"{quote(source.display)} can't be copied into itself.", "Choose a place outside of it.")
            resolved_target.folder.make_folder(temporary, 0o700)
            with open_tree(resolved_target.folder, temporary) as new_folder:
                mark_in_use(new_folder.fd)
                skipped = _TreeCopier(cancel, metadata_copier, new_folder).copy(folder, new_folder)
                new_folder.set_mode(stat.S_IMODE(status.st_mode))
            if metadata_copier is not None:
                metadata_copier.copy_to(resolved_target.folder, temporary, status)
        else:
            raise not_a_file_error(source, stat.S_IFMT(status.st_mode))
        if announce is not None:
            announce(resolved_target.folder, temporary)
        try:
            resolved_target.folder.rename_noreplace(temporary, resolved_target.folder, resolved_target.name)
        except FileExistsError as error:
            with translate_errors(target):
                raise name_taken_error(
                    target, resolved_target.folder.stat(resolved_target.name), "nothing was copied", overwrite=True
                ) from error
        except OSError as error:
            raise to_problem(error, target, "nothing was copied") from error
    return skipped


class _TreeCopier(TreeSize):
    """Copies what is in a folder; what it left out, secrets and what is not a file, link or folder, is in `skipped`."""

    def __init__(
        self, cancel: CancelToken, metadata_copier: MetadataCopier | None, top_folder: Folder[WritablePath]
    ) -> None:
        super().__init__(cancel)
        self.skipped: list[str] = []
        self._metadata_copier = metadata_copier
        self._top_folder = top_folder

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
                    opened = source.open_folder(entry.name)
                with opened as source_subfolder, target.open_folder(entry.name) as target_subfolder:
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
        target.sync()
        return self.skipped

    def _copy_metadata(self, target: Folder[WritablePath], entry: os.DirEntry[str]) -> None:
        if self._metadata_copier is not None:
            self._metadata_copier.copy_to(target, entry.name, entry.stat(follow_symlinks=False))

    def copy_file(self, source: Folder[ReadablePath], target: Folder[WritablePath], name: str) -> None:
        fd = target.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        try:
            with translate_errors(source.path / name):
                opened = open_regular(source, name)
            with opened as file:
                _fill_file(fd, file.fileno(), source.path / name, self.cancel)
                set_new_file_metadata(fd, file.fileno())
            fsync_file(fd)
        finally:
            os.close(fd)


def _fill_file(fd: int, source_fd: int, source: ReadablePath, cancel: CancelToken) -> None:
    copy_blocks(source_fd, fd, cancel.check, partial(translate_errors, source))  # or else the target would be blamed


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


def read_status_if_exists(resolved: ResolvedPath[WritablePath]) -> os.stat_result | None:
    """Return what lstat(2) says of what is at a path; None for nothing."""
    try:
        return resolved.folder.stat(resolved.name)
    except FileNotFoundError:
        return None


def name_taken_error(target: WritablePath, target_status: os.stat_result, outcome: str, *, overwrite: bool) -> Conflict:
    """Build the answer when something has the target's name already; `overwrite` when that can't be replaced at all."""
    label = quote(target.display)
    if stat.S_ISDIR(target_status.st_mode):
        return Conflict(
            f"{label} is a folder that exists already; {outcome}.",
            f"Write {quote(target.display + '/')} to put it in there; a full folder is never replaced.",
        )
    if overwrite:
        return Conflict(f"{label} exists already; {outcome}.", "Choose another name, or delete that first.")
    return Conflict(f"{label} exists already; {outcome}.", "Set `overwrite` to replace it, or choose another name.")


def absolute_names(path: ReadablePath) -> list[str]:
    return [*path.root.real_path.split(os.sep), *path.parts] if path.root.real_path != os.sep else ["", *path.parts]
