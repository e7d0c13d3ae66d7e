"""What is to be written: its path resolved, and what is there already read and checked, before anything is changed."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import BinaryIO

from mcp_batteries.errors import Conflict, NotFound, Problem, Refused, quote
from mcp_fs.engine.changing.binary_formats import binary_format, check_text_for, is_text_file
from mcp_fs.engine.handles.locks import LockedFile
from mcp_fs.engine.handles.path_opening import (
    ResolvedPath,
    not_a_file_error,
    open_descriptor,
    open_regular,
    refuse_archived,
    resolve,
)
from mcp_fs.engine.text.encodings import SAMPLE_BYTES
from mcp_fs.policy import ReadablePath, WritablePath

__all__ = [
    "check_renamed_text",
    "open_locked",
    "read_head",
    "read_regular_status",
    "refuse_read_only",
    "resolve_for_writing",
]

_CREATE_FOLDER_FIX = "Create it first, with `create_directory`."


def read_head(resolved: ResolvedPath[WritablePath], locked_file: LockedFile | None = None) -> bytes:
    """Read how a file begins; nothing of one that may not be read.

    Args:
        locked_file: the file there, if it was locked just now.
    """
    try:
        if locked_file is not None:
            return os.pread(locked_file.fd, SAMPLE_BYTES, 0)
        with open_regular(resolved.folder, resolved.name) as file:
            return file.read(SAMPLE_BYTES)
    except (OSError, Problem):
        return b""


def open_locked(resolved: ResolvedPath[WritablePath], locked_file: LockedFile | None, path: ReadablePath) -> BinaryIO:
    """Open the regular file at a path for reading, unbuffered.

    Args:
        locked_file: the file there, if it was locked just now; it stays open.
        path: how the caller knows it, for messages.

    Raises:
        OSError: it can't be opened.
    """
    if locked_file is None:
        return open_regular(resolved.folder, resolved.name, path)
    return open_descriptor(locked_file.fd, path, closes=False)


def check_renamed_text(
    source: ResolvedPath[ReadablePath], resolved_target: ResolvedPath[WritablePath], target: WritablePath
) -> None:
    """Check that text does not get a name that promises something else by being copied or moved.

    Raises:
        Refused: it would.
    """
    if binary_format(target.name) is None or binary_format(source.name) == binary_format(target.name):
        return
    try:
        with open_regular(source.folder, source.name) as file:
            head = file.read(SAMPLE_BYTES)
    except (OSError, Problem):
        return
    if is_text_file("", head):
        check_text_for(target, head, read_head(resolved_target))


@contextmanager
def resolve_for_writing(path: WritablePath, *, follow: bool = True) -> Generator[ResolvedPath[WritablePath]]:
    """Resolve the path of an entry to be made or changed; as `resolve`, saying which folder is missing."""
    refuse_archived(path)
    with ExitStack() as stack:
        try:
            resolved = stack.enter_context(resolve(path, follow=follow, for_listing=True))
        except NotFound as missing:
            if not path.parts:
                raise
            parent_type = _read_file_type(path.parent)
            if parent_type is None:
                raise NotFound(
                    f"The folder {quote(path.parent.display)} does not exist.", _CREATE_FOLDER_FIX
                ) from missing
            if parent_type != stat.S_IFDIR:
                raise Conflict(
                    f"{quote(path.parent.display)} is a file; nothing can be made below it.", "Choose another path."
                ) from missing
            raise
        yield resolved


def read_regular_status(
    resolved: ResolvedPath[WritablePath], path: ReadablePath, locked_file: LockedFile | None = None
) -> os.stat_result | None:
    """Return what lstat(2) says of the regular file at the path, which may be replaced; None when there is nothing.

    Args:
        locked_file: the file there, if it was locked just now.

    Raises:
        Refused: there is something else, or the file is read-only: a rename over it would need no permission.
    """
    try:
        if locked_file is not None:
            status = locked_file.status
        else:
            status = resolved.folder.stat(resolved.name)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise not_a_file_error(path, stat.S_IFMT(status.st_mode))
    _refuse_read_only(resolved, path, status)
    return status


def refuse_read_only(resolved: ResolvedPath[WritablePath], path: ReadablePath) -> None:
    """Check that there is no regular file at the path, or one that may be written.

    Raises:
        Refused: there is one that may not.
    """
    try:
        status = resolved.folder.stat(resolved.name)
    except FileNotFoundError:
        return
    if stat.S_ISREG(status.st_mode):
        _refuse_read_only(resolved, path, status)


def _refuse_read_only(resolved: ResolvedPath[WritablePath], path: ReadablePath, status: os.stat_result) -> None:
    if not (status.st_mode & 0o222 and _may_write(resolved)):
        raise Refused(
            f"{quote(path.display)} is read-only ({stat.filemode(status.st_mode)}); nothing was changed.",
            "Leave it out, write to another name, or ask the person to make it writable.",
        )


def _may_write(resolved: ResolvedPath[WritablePath]) -> bool:
    """Whether the kernel would let this process write into the file at the path."""
    if sys.platform == "win32" or os.access not in os.supports_dir_fd:
        return True  # there the mode says it
    effective = os.access in os.supports_effective_ids
    return os.access(resolved.name, os.W_OK, dir_fd=resolved.folder.fd, effective_ids=effective)


def _read_file_type(path: ReadablePath) -> int | None:
    """File type, as `stat.S_IFMT`, of what is there; None for nothing."""
    try:
        with resolve(path) as resolved:
            return stat.S_IFMT(resolved.folder.stat(resolved.name).st_mode)
    except Problem:
        return None
