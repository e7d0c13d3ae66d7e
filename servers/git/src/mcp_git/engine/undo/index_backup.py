"""Keeps the index as it is, to put it back if an operation fails after it staged something."""

from __future__ import annotations

import os
from contextlib import suppress

from mcp_git.repository_paths import Layout

__all__ = ["IndexBackup"]


class IndexBackup:
    """The index as it was when this was made, with its times.

    The times matter: git looks again into files that were written no earlier than the index, and with a later time of
    the index there would be none.
    """

    def __init__(self, layout: Layout) -> None:
        self._index = os.path.join(layout.git_dir, "index")
        self._lock = os.path.join(layout.git_dir, "index.lock")
        self._data: bytes | None = None
        self._times = (0, 0)
        with suppress(FileNotFoundError), open(self._index, "rb") as file:
            self._data = file.read()
            status = os.fstat(file.fileno())
            self._times = (status.st_atime_ns, status.st_mtime_ns)

    def restore(self) -> None:
        """Put the index back; do nothing where another program is writing it."""
        with suppress(FileExistsError), open(self._lock, "xb") as file:
            try:
                file.write(self._data or b"")
            except OSError:
                os.unlink(self._lock)
                raise
            file.close()
            if self._data is None:
                with suppress(FileNotFoundError):
                    os.unlink(self._index)
                os.unlink(self._lock)
            else:
                os.utime(self._lock, ns=self._times)
                os.replace(self._lock, self._index)
