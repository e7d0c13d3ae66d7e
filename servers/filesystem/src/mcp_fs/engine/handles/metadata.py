"""Keeps what mv(1) keeps of an entry between file systems: times, owner, mode, and which names are one file."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress

from mcp_fs.engine.handles.path_opening import Folder
from mcp_fs.policy import Writable

if sys.platform == "darwin":
    from mcp_fs.engine.handles.syscalls import copy_metadata

__all__ = ["Belongings", "copy_attributes"]


class Belongings:
    """Gives copies what their originals had, and remembers what it could not give."""

    def __init__(self) -> None:
        self._lost: dict[str, int] = {}
        self._names: dict[tuple[int, int], tuple[str, ...]] = {}
        """By file of several names: the path below the copy's top of the first of them."""

    @property
    def notes(self) -> list[str]:
        """One phrase for each kind of thing that was lost."""
        return [
            f"{what} of {number:,} {'entry' if number == 1 else 'entries'} could not be kept"
            for what, number in self._lost.items()
        ]

    def keep(self, folder: Folder[Writable], name: str, found: os.stat_result) -> None:
        """Give the entry `name` of `folder`, which nobody else knows of yet, what `found` says; its content is whole.

        A new owner takes the bits that let others run it as that owner, as chown(2) does.
        """
        if sys.platform == "win32":
            try:
                folder.set_times(name, found)
            except OSError:
                self._lose("the times")
            return
        fd, is_link = folder.fd, stat.S_ISLNK(found.st_mode)
        mode = stat.S_IMODE(found.st_mode)
        made = folder.stat(name)
        if (made.st_uid, made.st_gid) != (found.st_uid, found.st_gid):
            try:
                os.chown(name, found.st_uid, found.st_gid, dir_fd=fd, follow_symlinks=False)
            except OSError:
                with suppress(OSError):
                    os.chown(name, -1, found.st_gid, dir_fd=fd, follow_symlinks=False)
                mode &= ~(stat.S_ISUID | stat.S_ISGID)
                self._lose("the owner or group")
        if not is_link:
            try:
                opened = folder.open(name, os.O_RDONLY | os.O_NONBLOCK)
            except OSError:
                self._lose("the mode")
            else:
                try:
                    os.fchmod(opened, mode)
                except OSError:
                    self._lose("the mode")
                finally:
                    os.close(opened)
        try:
            os.utime(name, ns=(found.st_atime_ns, found.st_mtime_ns), dir_fd=fd, follow_symlinks=False)
        except OSError:
            self._lose("the times")

    def linked(self, top: Folder[Writable], folder: Folder[Writable], name: str, found: os.stat_result) -> bool:
        """Make `name` in `folder` another name of a file that was copied before below `top`; False if it was not."""
        if found.st_nlink < 2:
            return False
        below = (*folder.place.parts[len(top.place.parts) :], name)
        first = self._names.setdefault((found.st_dev, found.st_ino), below)
        if first == below:
            return False
        try:
            os.link("/".join(first), name, src_dir_fd=top.fd, dst_dir_fd=folder.fd, follow_symlinks=False)
        except OSError:
            self._lose("the hard links")
            return False
        return True

    def _lose(self, what: str) -> None:
        self._lost[what] = self._lost.get(what, 0) + 1


def copy_attributes(source: int, target: int) -> bool:
    """Give one open file the extended attributes of another; False when one is lost."""
    if sys.platform == "darwin":
        return copy_metadata(source, target)
    if sys.platform != "linux":
        return True
    kept = True
    try:
        names = os.listxattr(source)
    except OSError:
        return True  # this file system knows none
    for name in names:
        try:
            os.setxattr(target, name, os.getxattr(source, name))
        except OSError:
            # A label the system gives by itself is not a loss.
            kept = kept and name.startswith(("security.", "trusted."))
    return kept
