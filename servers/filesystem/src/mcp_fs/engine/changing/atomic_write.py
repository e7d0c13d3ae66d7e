"""Files written so that every moment of a crash leaves the old content or the new one, whole.

A new content is built beside the file in a private temporary file, given what the old file had (owner, mode,
attributes), made durable and only then renamed over it; the folder is made durable last. Until the rename nothing has
happened; after it everything has. The disk begins with the content while it is written down what is about to happen.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from mcp_batteries.errors import Conflict, quote
from mcp_fs.engine.handles.locks import LockedFile
from mcp_fs.engine.handles.path_opening import Folder, ResolvedPath, to_problem, translate_errors
from mcp_fs.engine.handles.syscalls import copy_attributes, fsync_file, start_flush, write_all
from mcp_fs.engine.handles.temp_files import (
    BACKUP_PREFIX,
    clean_folder_once,
    mark_in_use,
    remove_quietly,
    temporary_name,
)
from mcp_fs.engine.journal.entry_state import EntryState
from mcp_fs.engine.journal.operations import Journal, Operation, PlannedChange
from mcp_fs.engine.journal.states import MAX_HASHED_BYTES, file_state, hash_content, read_state
from mcp_fs.policy import ReadablePath, WritablePath

__all__ = ["FileRemoval", "FileWrite", "prepare_write", "set_new_file_metadata", "set_new_folder_mode"]

_UMASK = os.umask(0o077)  # can only be read by setting it, which no thread should meet: done at import
os.umask(_UMASK)
_BINARY_FLAG = getattr(os, "O_BINARY", 0)


def _is_same_file(one: os.stat_result, other: os.stat_result) -> bool:
    """Whether nobody has changed or replaced the file between two looks at it."""
    return (one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns) == (
        other.st_dev,
        other.st_ino,
        other.st_size,
        other.st_mtime_ns,
    )


@dataclass(eq=False)
class _FileOperation(Operation):
    """What happens to one regular file; of several in one call, each can be taken back.

    Attributes:
        old_status: what stood there when it was made; None for nothing.
        checks_old: whether that must still stand there.
        locked_file: the same, open, if it is.
    """

    old_status: os.stat_result | None
    locked_file: LockedFile | None = field(default=None, kw_only=True)
    checks_old: bool = field(default=False, kw_only=True)

    def plan_changes(self, journal_entry: Journal) -> Sequence[PlannedChange]:
        fd = None if self.locked_file is None else self.locked_file.fd
        return [PlannedChange(self.resolved.path, self.folder, self.read_new_state(), fd=fd)]

    def read_new_state(self) -> EntryState | None:
        """Return what will stand there."""
        raise NotImplementedError

    def check_unchanged(self) -> None:
        if not self.checks_old:
            return
        if not self._is_unchanged():
            raise Conflict(
                f"{quote(self.display_path.display)} was changed by somebody else meanwhile; nothing was written.",
                "Read it again, then repeat the change.",
            )

    def _is_unchanged(self) -> bool:
        """Whether there is still what stood there, or still nothing."""
        try:
            status = self.folder.stat(self.name)
        except FileNotFoundError:
            return self.old_status is None
        return self.old_status is not None and _is_same_file(status, self.old_status)

    def keep_backup(self) -> None:
        if self.old_status is None:
            return
        backup = temporary_name(BACKUP_PREFIX)
        with translate_errors(self.display_path, "it was not changed"):
            self.move_to_backup(backup)
        self.backup = backup

    def move_to_backup(self, backup: str) -> None:
        """Give the old contents a second name, at least."""
        raise NotImplementedError

    def take_back(self) -> None:
        if self.backup is None:
            self.folder.remove(self.name)
        else:
            self.folder.rename(self.backup, self.folder, self.name)
        self.is_done = False

    @property
    def backup_note(self) -> str:
        if self.backup is None:
            return " (it was new)"
        return f" (old contents: `{self.backup}` beside it)"


@dataclass(eq=False)
class FileWrite(_FileOperation):
    """A finished temporary file that waits for its name.

    Attributes:
        temporary: its name until then.
        status: its status.
        content: what it holds, if that was at hand as a whole.
        unflushed_fd: its descriptor until it is durable.
        overwrite: whether it may replace a file that has appeared since.
        notes: what could not be kept, for the answer.
    """

    temporary: str
    status: os.stat_result
    content: bytes | None
    unflushed_fd: int | None
    overwrite: bool
    notes: list[str]

    def read_new_state(self) -> EntryState | None:
        if self.content is None or sys.platform == "win32":  # where closing a file changes its time
            return read_state(self.folder, self.temporary, thorough=True)
        return file_state(self.status, hash_content(self.content))

    def flush(self) -> None:
        if self.unflushed_fd is None:
            return
        try:
            fsync_file(self.unflushed_fd)
        except OSError as error:
            raise to_problem(error, self.display_path, "nothing was changed") from error
        self.unflushed_fd = None

    def move_to_backup(self, backup: str) -> None:
        self.folder.add_name(self.name, self.folder, backup)

    def apply(self, content_path: WritablePath | None = None) -> None:
        """Rename over the old file, now that the new content is durable.

        Raises:
            Conflict: the name was taken meanwhile.
        """
        folder = self.folder
        try:
            if self.old_status is None and not self.overwrite:
                folder.rename_noreplace(self.temporary, folder, self.name)
            else:
                folder.rename(self.temporary, folder, self.name)
        except OSError as error:
            if not self._has_arrived():
                raise to_problem(error, self.display_path, "nothing was changed") from error

    def _has_arrived(self) -> bool:
        """Whether the rename has happened after all: a failing disk may report either way."""
        with suppress(OSError):
            status = self.folder.stat(self.name)
            return os.path.samestat(status, self.status)
        return False


@dataclass(eq=False)
class FileRemoval(_FileOperation):
    """A file that goes; of several operations it goes to its backup first."""

    def read_new_state(self) -> None:
        return None

    def move_to_backup(self, backup: str) -> None:
        self.folder.rename(self.name, self.folder, backup)

    def apply(self, content_path: WritablePath | None = None) -> None:
        if self.backup is None:
            with translate_errors(self.display_path, "it was not changed"):
                self.folder.remove(self.name)


@contextmanager
def prepare_write(
    resolved: ResolvedPath[WritablePath],
    data: bytes | Callable[[int], None],
    old_status: os.stat_result | None,
    display_path: ReadablePath,
    *,
    verb: str = "written",
    overwrite: bool = False,
    checks_old: bool = False,
    locked_file: LockedFile | None = None,
    template_fd: int | None = None,
    executable: bool = False,
) -> Generator[FileWrite]:
    """Write `data` to a temporary file beside the target, removed at the end unless it was applied.

    Args:
        data: the content, or what writes it to a descriptor.
        old_status: status of the file it is to replace, whose owner, mode and attributes it gets; None for a new one.
        display_path: how the caller knows the file, for messages.
        verb: what will have been done to it, for messages.
        overwrite: whether it may replace a file that has appeared since.
        checks_old: whether the old file must still be the one of `old_status`.
        locked_file: the old file, if it is open.
        template_fd: descriptor of a file whose mode and attributes a new one gets.
        executable: whether a new one can be run.

    Raises:
        TooLarge: no space.
        Problem: the temporary file can't be written; nothing was changed.
    """
    clean_folder_once(resolved.folder)
    temporary = temporary_name()
    write = None

    def remove_unless_renamed() -> None:
        if write is None or not write.is_done:
            remove_quietly(resolved.folder, temporary)

    with ExitStack() as stack:
        try:
            fd = resolved.folder.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY_FLAG, 0o600)
            stack.callback(remove_unless_renamed)
            closing = stack.enter_context(ExitStack())
            closing.callback(os.close, fd)
            mark_in_use(fd)
            if isinstance(data, bytes):
                content = data
                write_all(fd, content)
            else:
                content = None
                data(fd)
            notes: list[str] = []
            if old_status is not None:
                old_fd = None if locked_file is None else locked_file.fd
                notes = _copy_old_metadata(fd, temporary, resolved, old_status, old_fd)
            elif sys.platform != "win32":
                set_new_file_metadata(fd, template_fd, 0o777 if executable else 0o666)
            unflushed_fd = _begin_flush(fd, content)
            status = os.fstat(fd)
            if sys.platform == "win32":
                closing.close()  # what is open there can't be renamed
        except OSError as error:
            raise to_problem(error, display_path, "nothing was changed") from error
        write = FileWrite(
            resolved,
            display_path,
            old_status,
            temporary=temporary,
            status=status,
            content=content,
            unflushed_fd=unflushed_fd,
            overwrite=overwrite,
            notes=notes,
            verb=verb,
            locked_file=locked_file,
            checks_old=checks_old,
        )
        yield write


def _begin_flush(fd: int, content: bytes | None) -> int | None:
    """Let the disk begin with a new file; return its descriptor until it is durable, None if it is already.

    Args:
        content: what the file holds, if that is at hand as a whole.
    """
    if content is None or len(content) > MAX_HASHED_BYTES or sys.platform == "win32":
        # Its time tells later which file it is, and a file server may set that when it has it all.
        fsync_file(fd)
        return None
    start_flush(fd)
    return fd


def set_new_folder_mode(folder: Folder[Any]) -> None:
    """Give an open folder the mode of any new one."""
    if sys.platform != "win32":
        folder.set_mode(0o777 & ~_UMASK)


def set_new_file_metadata(fd: int, template_fd: int | None, mode: int = 0o666) -> None:
    """Give a new file the mode of any new file or, as cp(1) does, mode and attributes of the one it copies."""
    if template_fd is not None:
        copy_attributes(template_fd, fd)
        mode = os.fstat(template_fd).st_mode & 0o777
    if sys.platform != "win32":
        os.fchmod(fd, mode & ~_UMASK)


def _copy_old_metadata(
    fd: int,
    temporary: str,
    resolved: ResolvedPath[WritablePath],
    old_status: os.stat_result,
    old_fd: int | None,
) -> list[str]:
    """Give a new file what the old one had; return what could not be kept, in words.

    Args:
        fd: of the new file.
        temporary: its name.
        resolved: the old file.
        old_fd: of the old file, if it is open.
    """
    notes: list[str] = []
    if old_status.st_nlink > 1:
        notes.append(f"it had {old_status.st_nlink} hard links; the other names keep the old content")
    if sys.platform == "win32":
        if not resolved.folder.inherit(temporary, resolved.name):
            notes.append("who may read and write it could not be kept")
        return notes
    mode = stat.S_IMODE(old_status.st_mode)
    if not _copy_owner(fd, old_status):
        notes.append("it belongs to another user now: the old owner could not be kept")
        mode &= ~(stat.S_ISUID | stat.S_ISGID)
    if not _copy_attributes(fd, resolved, old_fd):
        notes.append("some extended attributes could not be kept")
    os.fchmod(fd, mode)
    return notes


def _copy_owner(fd: int, status: os.stat_result) -> bool:
    """Give a file the owner and group of another, or at least its group; False when it does not have both."""
    if sys.platform == "win32" or (status.st_uid, status.st_gid) == (os.geteuid(), os.fstat(fd).st_gid):
        return True
    try:
        os.fchown(fd, status.st_uid, status.st_gid)
    except PermissionError:
        with suppress(PermissionError):
            os.fchown(fd, -1, status.st_gid)
        return False
    return True


def _copy_attributes(fd: int, resolved: ResolvedPath[WritablePath], source_fd: int | None) -> bool:
    """Give a file the extended attributes of another, and with them access control lists; False when one is lost.

    Args:
        source_fd: of the other one, if it is open.
    """
    if source_fd is not None:
        return copy_attributes(source_fd, fd)
    try:
        source_fd = resolved.folder.open(resolved.name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return False
    try:
        return copy_attributes(source_fd, fd)
    finally:
        os.close(source_fd)
