"""Metadata of new entries: of any new file, of one that replaces another, and of a copy on another file system."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from typing import Any

from mcp_fs.engine.handles.path_opening import Folder, ResolvedPath
from mcp_fs.engine.handles.syscalls import copy_attributes
from mcp_fs.policy import WritablePath

__all__ = ["MetadataCopier", "copy_old_metadata", "set_new_file_metadata", "set_new_folder_mode"]

_UMASK = os.umask(0o077)  # can only be read by setting it, which no thread should meet: done at import
os.umask(_UMASK)


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


def copy_old_metadata(
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


class MetadataCopier:
    """Gives copies what their originals had, as mv(1) does between file systems: times, owner, mode, hard links.

    It remembers what it could not give.
    """

    def __init__(self) -> None:
        self._lost_counts: dict[str, int] = {}
        # By file of several names: the path below the copy's top of the first of them.
        self._first_names: dict[tuple[int, int], tuple[str, ...]] = {}

    @property
    def notes(self) -> list[str]:
        """One phrase for each kind of thing that was lost."""
        notes: list[str] = []
        for property_name, count in self._lost_counts.items():
            entries = "entry" if count == 1 else "entries"
            notes.append(f"{property_name} of {count:,} {entries} could not be kept")
        return notes

    def copy_to(self, folder: Folder[WritablePath], name: str, status: os.stat_result) -> None:
        """Give the entry `name` of `folder`, which nobody else knows of yet, what `status` says; its content is whole.

        A new owner takes the bits that let others run it as that owner, as chown(2) does.
        """
        if sys.platform == "win32":
            try:
                folder.set_times(name, status)
            except OSError:
                self._count_loss("the times")
            return
        fd = folder.fd
        is_link = stat.S_ISLNK(status.st_mode)
        mode = stat.S_IMODE(status.st_mode)
        current = folder.stat(name)
        if (current.st_uid, current.st_gid) != (status.st_uid, status.st_gid):
            try:
                os.chown(name, status.st_uid, status.st_gid, dir_fd=fd, follow_symlinks=False)
            except OSError:
                with suppress(OSError):
                    os.chown(name, -1, status.st_gid, dir_fd=fd, follow_symlinks=False)
                mode &= ~(stat.S_ISUID | stat.S_ISGID)
                self._count_loss("the owner or group")
        if not is_link:
            try:
                entry_fd = folder.open(name, os.O_RDONLY | os.O_NONBLOCK)
            except OSError:
                self._count_loss("the mode")
            else:
                try:
                    os.fchmod(entry_fd, mode)
                except OSError:
                    self._count_loss("the mode")
                finally:
                    os.close(entry_fd)
        try:
            os.utime(name, ns=(status.st_atime_ns, status.st_mtime_ns), dir_fd=fd, follow_symlinks=False)
        except OSError:
            self._count_loss("the times")

    def link_to_first_copy(
        self, top: Folder[WritablePath], folder: Folder[WritablePath], name: str, status: os.stat_result
    ) -> bool:
        """Make `name` in `folder` another name of a file that was copied before below `top`; False if it was not."""
        if status.st_nlink < 2:
            return False
        relative_names = (*folder.path.parts[len(top.path.parts) :], name)
        first = self._first_names.setdefault((status.st_dev, status.st_ino), relative_names)
        if first == relative_names:
            return False
        try:
            os.link("/".join(first), name, src_dir_fd=top.fd, dst_dir_fd=folder.fd, follow_symlinks=False)
        except OSError:
            self._count_loss("the hard links")
            return False
        return True

    def _count_loss(self, property_name: str) -> None:
        self._lost_counts[property_name] = self._lost_counts.get(property_name, 0) + 1
