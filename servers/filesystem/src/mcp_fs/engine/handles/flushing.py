"""Makes a new tree of many files durable in little time."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

from mcp_fs.engine.handles.path_opening import Folder
from mcp_fs.engine.handles.syscalls import fsync_file

__all__ = ["TreeFlush"]

# Files and folders that are flushed one by one: of more, a disk takes all at once in less time.
_MAX_FLUSHED_ENTRIES = 200
_libc: Any = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class TreeFlush:
    """Makes a new tree durable: entry by entry, and where there are many the rest of them by syncfs(2)."""

    def __init__(self) -> None:
        self._count = 0

    def flush_file(self, fd: int) -> None:
        self._count += 1
        if self._is_flushed_alone():
            fsync_file(fd)

    def flush_folder(self, folder: Folder[Any]) -> None:
        self._count += 1
        if self._is_flushed_alone():
            folder.sync()

    def finish(self, folder: Folder[Any]) -> None:
        """Make durable what is not yet; call it before the tree gets its name.

        Args:
            folder: the top of the tree, opened for listing.

        Raises:
            OSError: the disk does not confirm it.
        """
        if not self._is_flushed_alone() and _libc.syncfs(folder.fd) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def _is_flushed_alone(self) -> bool:
        return _libc is None or self._count <= _MAX_FLUSHED_ENTRIES
