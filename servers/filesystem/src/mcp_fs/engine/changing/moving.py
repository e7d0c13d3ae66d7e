"""Moves entries: by handle at both ends, links as the links they are.

Nothing is ever replaced by accident: whether a name is free is decided by the kernel in the same step that takes
it, so of two moves to one name one fails.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, Invalid, Refused, Unavailable, describe_os_error, quote
from mcp_fs.engine.changing.atomic_write import (
    check_renamed_text,
    refuse_read_only,
    resolve_for_writing,
)
from mcp_fs.engine.changing.entry_copy import (
    Announce,
    absolute_names,
    copy_file,
    copy_link_or_folder,
    describe_link,
    name_taken_error,
    read_status_if_exists,
)
from mcp_fs.engine.changing.operations import NotDurable, fsync_folder
from mcp_fs.engine.handles.locks import lock_names
from mcp_fs.engine.handles.metadata import MetadataCopier
from mcp_fs.engine.handles.path_opening import (
    ResolvedPath,
    is_held_open,
    open_tree,
    resolve,
    to_problem,
    translate_errors,
)
from mcp_fs.engine.handles.temp_files import remove_all, temporary_name
from mcp_fs.engine.journal.journal import ExpectedState, JournalEntry
from mcp_fs.engine.listing.tree_size import TreeSize
from mcp_fs.engine.name_folding import fold_name
from mcp_fs.models import MoveResult
from mcp_fs.policy import ReadablePath, WritablePath

__all__ = [
    "move_entry",
    "refuse_renaming_secret_folder",
    "refuse_served_folder",
    "relocate",
]


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
        notes: list[str] = []
        try:
            if _is_same_entry(resolved_source, resolved_target):
                resolved_source.folder.rename(resolved_source.name, resolved_target.folder, target.name)
            else:
                refuse_served_folder(resolved_target.path)
                if not overwrite and (target_status := read_status_if_exists(resolved_target)) is not None:
                    raise name_taken_error(target, target_status, "nothing was moved", overwrite=False)
                if overwrite:
                    refuse_read_only(resolved_target, target)
                if stat.S_ISREG(status.st_mode):
                    check_renamed_text(resolved_source, resolved_target, target)
                notes = relocate(
                    resolved_source,
                    source,
                    resolved_target,
                    target,
                    overwrite,
                    cancel,
                    ExpectedState(resolved_target, journal_entry, resolved_source).expect,
                )
        except OSError as error:
            raise _to_move_problem(error, source, target, status, resolved_target, overwrite) from error
        for folder in (resolved_target.folder, resolved_source.folder):
            fsync_folder(folder, target, "moved to")
    if link is not None:
        notes = [*link.describe_at(target), *notes]
    return MoveResult("moved", source.display, target.display, notes)


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


def relocate(
    resolved_source: ResolvedPath[WritablePath],
    source: WritablePath,
    resolved_target: ResolvedPath[WritablePath],
    target: WritablePath,
    overwrite: bool,
    cancel: CancelToken,
    announce: Announce | None = None,
) -> list[str]:
    """Rename, or between file systems copy and delete, what is at the source; return what could not be kept, in words.

    Raises:
        OSError: as rename(2).
    """
    if _are_on_different_disks(resolved_source, resolved_target):
        return _move_between_disks(resolved_source, source, resolved_target, target, overwrite, cancel, announce)
    try:
        if announce is not None:
            announce(resolved_source.folder, resolved_source.name)
        if overwrite:
            resolved_source.folder.rename(resolved_source.name, resolved_target.folder, resolved_target.name)
        else:
            resolved_source.folder.rename_noreplace(resolved_source.name, resolved_target.folder, resolved_target.name)
    except OSError as error:
        if error.errno != errno.EXDEV:  # what is mounted twice is one file system and yet two
            raise
        return _move_between_disks(resolved_source, source, resolved_target, target, overwrite, cancel, announce)
    return []


def _are_on_different_disks(one: ResolvedPath[WritablePath], other: ResolvedPath[WritablePath]) -> bool:
    return one.folder.stat(".").st_dev != other.folder.stat(".").st_dev


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


def _is_same_entry(resolved_source: ResolvedPath[WritablePath], resolved_target: ResolvedPath[WritablePath]) -> bool:
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


def _to_move_problem(
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


def _move_between_disks(
    resolved_source: ResolvedPath[WritablePath],
    source: WritablePath,
    resolved_target: ResolvedPath[WritablePath],
    target: WritablePath,
    overwrite: bool,
    cancel: CancelToken,
    announce: Announce | None,
) -> list[str]:
    """Move between file systems: copy all of it as mv(1) does, then delete the old one; what was not kept, in words."""
    status = resolved_source.folder.stat(resolved_source.name)
    metadata_copier = MetadataCopier()
    if stat.S_ISREG(status.st_mode):
        copy_file(resolved_source, source, resolved_target, target, overwrite, cancel, announce, metadata_copier)
    else:
        if stat.S_ISDIR(status.st_mode):
            with open_tree(resolved_source.folder, resolved_source.name) as folder:
                TreeSize(cancel).count(folder)  # refuses what would be left out of the copy, and lost
        if skipped := copy_link_or_folder(
            resolved_source, source, resolved_target, target, status, cancel, announce, metadata_copier
        ):
            remove_all(resolved_target.folder, resolved_target.name)
            raise Refused(f"{quote(source.display)} holds entries that can't be copied: {', '.join(skipped[:5])}.")
    try:
        fsync_folder(resolved_target.folder, target, "copied to")
    except NotDurable as failure:  # it was not moved
        raise Unavailable(failure.failure, failure.fix) from failure
    removal_name = temporary_name()
    try:
        resolved_source.folder.rename(
            resolved_source.name, resolved_source.folder, removal_name
        )  # from here on it is there no more, whatever happens
        try:
            remove_all(resolved_source.folder, removal_name, cancel)
        except BaseException:
            with suppress(OSError):
                resolved_source.folder.rename_noreplace(removal_name, resolved_source.folder, resolved_source.name)
            raise
    except OSError as error:
        raise Unavailable(
            f"{quote(source.display)} was copied to {quote(target.display)}, but not all of it could be removed: "
            f"{describe_os_error(error)}.",
            "Delete the rest of it when nothing uses it.",
        ) from error
    return metadata_copier.notes
