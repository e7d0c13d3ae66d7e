"""Private folders for what a process needs for as long as it runs.

A killed process cannot remove its folder: the next one with such a folder does. A live process holds its folder with
flock(2), which systemd-tmpfiles respects too; on Windows with a file that disappears with its handle. Machines that
share a file system may not see each other's locks: each removes only folders that carry its own name.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import shutil
import socket
import stat
import sys
import tempfile
import threading
import time
import weakref
from contextlib import suppress
from functools import cache, cached_property

if sys.platform != "win32":
    from fcntl import LOCK_EX, LOCK_NB, flock

__all__ = ["Scratch"]

_log = logging.getLogger(__name__)

_HELD = "held"
_MEMORY = "/dev/shm"
# A new folder may be without its holder for this long.
_UNSURE_SECONDS = 60.0


class Scratch:
    """A private folder, created when needed and removed with the process.

    Args:
        name: the beginning of its name; creating this folder removes such folders of killed processes.
    """

    def __init__(self, name: str) -> None:
        self._prefix = f"{name}-held-{_machine()}-"

    @cached_property
    def path(self) -> str:
        """The absolute path, without links.

        Raises:
            OSError: no folder for temporary files can be written.
        """
        try:
            folder = tempfile.mkdtemp(prefix=self._prefix)
        except OSError:
            # In a container whose root can't be written, there is only this.
            if not os.path.isdir(_MEMORY):
                raise
            folder = tempfile.mkdtemp(prefix=self._prefix, dir=_MEMORY)
        path = os.path.realpath(folder)
        weakref.finalize(self, _remove, path, _hold(path))
        parent = os.path.dirname(path)
        threading.Thread(target=_clean, args=(parent, self._prefix), name="leftovers", daemon=True).start()
        return path

    def new(self, ending: str = "") -> str:
        """Return the path of a file that does not exist yet."""
        return os.path.join(self.path, secrets.token_hex(8) + ending)

    def renew(self) -> None:
        """Use a new folder: a system may clean up folders that were unused for days."""
        self.__dict__.pop("path", None)


@cache
def _machine() -> str:
    """Return what identifies the machine: the same for all processes that see each other's locks, and hardly for
    others."""
    names = [socket.gethostname()]
    with suppress(OSError), open("/etc/machine-id", encoding="utf-8", errors="replace") as file:
        names.append(file.read())
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:8]


def _hold(path: str) -> int:
    """Return a descriptor that shows others, as long as it is open, that the folder is in use."""
    if sys.platform == "win32":
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOINHERIT | os.O_TEMPORARY
        return os.open(os.path.join(path, _HELD), flags)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with suppress(OSError):
        flock(fd, LOCK_EX | LOCK_NB)
    return fd


def _is_held(path: str) -> bool:
    """Tell whether a live process uses the folder."""
    if sys.platform == "win32":
        return os.path.lexists(os.path.join(path, _HELD))
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        flock(fd, LOCK_EX | LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def _remove(path: str, fd: int) -> None:
    if sys.platform == "win32":
        os.close(fd)
    shutil.rmtree(path, ignore_errors=True)
    if sys.platform != "win32":
        os.close(fd)


def _clean(parent: str, prefix: str) -> None:
    """Remove the folders in `parent` that no process holds any more."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(prefix):
                with suppress(OSError):
                    if _is_abandoned(entry):
                        _log.info("Removing what a process that was killed has left: %s", entry.path)
                        shutil.rmtree(entry.path, ignore_errors=True)


def _is_abandoned(entry: os.DirEntry[str]) -> bool:
    """Tell whether `entry` is a folder of this user that no process holds any more."""
    status = entry.stat(follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode) or time.time() - status.st_mtime <= _UNSURE_SECONDS:
        return False
    if sys.platform != "win32" and status.st_uid != os.geteuid():
        return False
    return not _is_held(entry.path)
