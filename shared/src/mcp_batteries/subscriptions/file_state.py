"""Checks files without opening them, so that a check disturbs no other program.

On Windows `os.stat` opens a handle, and while it is open, a file that its owner deletes or replaces keeps its name
(before Windows 10 1809, and wherever a disk is not NTFS), which fails the next commit or save of another program.
"""

from __future__ import annotations

import os
import stat
import sys
from typing import NamedTuple

__all__ = ["FileState", "read_file_state"]


class FileState(NamedTuple):
    """The state of a file or folder.

    Attributes:
        changed_ns: the latest of all times that are kept.
        inode: 0 where it takes a handle to know it.
        device: likewise.
    """

    modified_ns: int
    changed_ns: int
    size: int
    inode: int
    device: int
    mode: int


def read_file_state(path: str, *, follow: bool = True) -> FileState:
    """Return the state of `path`, or of its target if `follow`.

    Raises:
        OSError: there is nothing.
        ValueError: it cannot be a path.
    """
    if sys.platform == "win32":
        state = _unopened(path)
        if state is not None:
            return state
    status = os.stat(path, follow_symlinks=follow)
    return FileState(
        modified_ns=status.st_mtime_ns,
        changed_ns=status.st_ctime_ns,
        size=status.st_size,
        inode=status.st_ino,
        device=status.st_dev,
        mode=status.st_mode,
    )


if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    class _Attributes(ctypes.Structure):
        _fields_ = (
            ("attributes", wintypes.DWORD),
            ("created", wintypes.FILETIME),
            ("read", wintypes.FILETIME),
            ("written", wintypes.FILETIME),
            ("size_high", wintypes.DWORD),
            ("size_low", wintypes.DWORD),
        )

    _kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    _kernel.GetFileAttributesExW.argtypes = (wintypes.LPCWSTR, ctypes.c_int, ctypes.POINTER(_Attributes))
    # ERROR_FILE_NOT_FOUND, ERROR_PATH_NOT_FOUND
    _MISSING = (2, 3)
    _BEFORE_1970 = 116_444_736_000_000_000

    def _unopened(path: str) -> FileState | None:
        """Return the state of `path`; None for a link, and for what only a handle can tell."""
        if "\0" in path:
            raise ValueError("embedded null character")
        attributes = _Attributes()
        if not _kernel.GetFileAttributesExW(path, 0, ctypes.byref(attributes)):
            error = ctypes.get_last_error()
            if error in _MISSING:
                raise FileNotFoundError(0, "", path, error)
            return None
        if attributes.attributes & stat.FILE_ATTRIBUTE_REPARSE_POINT:
            return None
        mode = stat.S_IFREG
        if attributes.attributes & stat.FILE_ATTRIBUTE_DIRECTORY:
            mode = stat.S_IFDIR
        written = _since_1970_ns(attributes.written)
        created = _since_1970_ns(attributes.created)
        size = (attributes.size_high << 32) + attributes.size_low
        # Python shows as st_ctime when a file was made; for what changed just now, both times count.
        return FileState(written, max(written, created), size, 0, 0, mode)

    def _since_1970_ns(time: wintypes.FILETIME) -> int:
        return ((time.dwHighDateTime << 32) + time.dwLowDateTime - _BEFORE_1970) * 100
