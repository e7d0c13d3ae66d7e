"""What a file shows to one who does not open it, as a journal needs.

On Windows `os.stat` opens a handle, and a journal that is deleted meanwhile, which is how another program's commit
ends, is gone only when that is closed.
"""

from __future__ import annotations

import os
import sys

__all__ = ["glance"]

if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _BEFORE_1970_SECONDS = 11_644_473_600

    class _Attributes(ctypes.Structure):
        _fields_ = (
            ("attributes", wintypes.DWORD),
            ("created", wintypes.FILETIME),
            ("read", wintypes.FILETIME),
            ("written", wintypes.FILETIME),
            ("size_high", wintypes.DWORD),
            ("size_low", wintypes.DWORD),
        )


def glance(path: str) -> tuple[int, float]:
    """Size and time of the last change.

    Raises:
        OSError: there is no such file.
    """
    if sys.platform != "win32":
        found = os.stat(path)
        return found.st_size, found.st_mtime
    seen = _Attributes()
    if not ctypes.windll.kernel32.GetFileAttributesExW(path, 0, ctypes.byref(seen)):
        raise ctypes.WinError()
    ticks = (seen.written.dwHighDateTime << 32) + seen.written.dwLowDateTime
    return (seen.size_high << 32) + seen.size_low, ticks / 10_000_000 - _BEFORE_1970_SECONDS
