"""Keeps what mv(1) keeps of an entry between file systems: times, owner, mode, and which names are one file."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress

from mcp_fs.engine.handles.path_opening import Folder
from mcp_fs.policy import WritablePath

__all__ = ["MetadataCopier"]


class MetadataCopier:
    """Gives copies what their originals had, and remembers what it could not give."""

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
