"""Reads a small file on the event loop if that needs no wait for a device.

Passing work to a thread and back costs several times as much as reading a small file. On Linux the path is looked up
only in caches (openat2(2), RESOLVE_CACHED) and the content read only from memory (preadv2(2), RWF_NOWAIT). If that
fails, or the file system may fetch data from elsewhere, a thread reads.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.concurrency.threads import run_in_thread
from mcp_fs.engine.handles.syscalls import file_system_type, open_cached
from mcp_fs.policy import ReadablePath, Root

__all__ = ["is_in_page_cache", "run_where_quickest"]

_T = TypeVar("_T")

_MAX_BYTES = 65_536
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_NOFOLLOW", 0)
_TMPFS = 0x01021994
# statfs(2): ext2 to ext4, XFS, Btrfs, F2FS, ZFS, overlayfs.
_LOCAL_FILE_SYSTEMS = {_TMPFS, 0xEF53, 0x58465342, 0x9123683E, 0xF2F52010, 0x2FC12FC1, 0x794C7630}
_file_system_types: WeakKeyDictionary[Root, int] = WeakKeyDictionary()


async def run_where_quickest(path: ReadablePath, read: Callable[[CancelToken], _T]) -> _T:
    """Call what reads `path`: here if that is in memory, else on a thread."""
    if is_in_page_cache(path):
        return read(CancelToken())
    return await run_in_thread(read)


def is_in_page_cache(path: ReadablePath) -> bool:
    """Return whether `path` is a small file in UTF-8 whose path and content are in memory now.

    Of at most 64 KiB. Only a hint about time: who reads it afterwards checks all that has to be checked.
    """
    if sys.platform != "linux":
        return False
    file_system = _file_system_of(path.root)
    if file_system not in _LOCAL_FILE_SYSTEMS:
        return False
    fd = open_cached("/".join(path.parts) or ".", _OPEN_FLAGS, path.root.fd)
    if fd is None:
        return False
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_BYTES:
            return False
        return _read_from_cache(fd, status.st_size, file_system)
    finally:
        os.close(fd)


def _file_system_of(root: Root) -> int:
    kind = _file_system_types.get(root)
    if kind is None:
        kind = file_system_type(root.fd)
        _file_system_types[root] = kind
    return kind


if sys.platform == "linux":

    def _read_from_cache(fd: int, size: int, kind: int) -> bool:
        buffer = bytearray(size)
        try:
            length = 0
            if size:
                length = os.preadv(fd, [buffer], 0, os.RWF_NOWAIT)
        except OSError as error:
            if kind != _TMPFS or error.errno != errno.EOPNOTSUPP:
                return False
            length = os.preadv(fd, [buffer], 0)
        if length != size or b"\0" in buffer:  # a database may be all ASCII, and is read by another process
            return False
        try:
            buffer.decode()
        except UnicodeDecodeError:  # telling which other encoding it is takes longer than the way to a thread
            return False
        return True
