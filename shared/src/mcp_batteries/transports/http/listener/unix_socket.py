"""Listens on a Unix socket: manages its file, and identifies the peer."""

from __future__ import annotations

import os
import socket
import stat
import struct
import sys
from contextlib import suppress

from mcp_batteries.errors import Unavailable, describe_os_error, quote

if sys.platform != "win32":
    import fcntl

__all__ = ["UnixListener", "peer_user"]

_ANSWER_SECONDS = 1.0
_UCRED = struct.Struct("iII")


class UnixListener(socket.socket):
    """Listens on a file that only this user can open, and removes it on close.

    Raises:
        Unavailable: Another server listens on it, the file is not a socket, or it cannot be created.
    """

    def __init__(self, path: str, backlog: int) -> None:
        super().__init__(socket.AF_UNIX, socket.SOCK_STREAM)
        self._path: str | None = None
        try:
            folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY | os.O_CLOEXEC)
            try:
                # Without the lock, two servers that start together would both find the file stale, and the second would
                # remove the file of the first.
                fcntl.flock(folder, fcntl.LOCK_EX)
                _remove_stale(path)
                self.bind(path)
                # Nobody gets in before this, because a socket that does not listen refuses every connection.
                os.chmod(path, 0o600)
                self.listen(backlog)
            finally:
                os.close(folder)
        except BaseException as problem:
            super().close()
            if isinstance(problem, OSError):
                raise Unavailable(
                    f"Cannot listen on {quote(path)}: {describe_os_error(problem)}.", "Choose another --socket."
                ) from None
            raise
        self._path = path

    def remove(self) -> None:
        """Remove the file: from now on clients find nothing, or the next server."""
        path = self._path
        self._path = None
        if path is not None:
            with suppress(FileNotFoundError):
                os.unlink(path)

    def close(self) -> None:
        self.remove()
        super().close()


def peer_user(connection: socket.socket) -> str | None:
    """Return the user at the other end of a Unix socket, such as `uid 1000`; None if the system does not report it."""
    if sys.platform != "linux" or connection.family != socket.AF_UNIX:
        return None
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    _, uid, _ = _UCRED.unpack(credentials)
    return f"uid {uid}"


def _remove_stale(path: str) -> None:
    """Remove the socket that a killed server left at `path`."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise Unavailable(f"{quote(path)} is there, and no socket.", "Choose another --socket.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
        trial.settimeout(_ANSWER_SECONDS)
        try:
            trial.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except (TimeoutError, BlockingIOError):
            pass  # Its queue is full: somebody has it.
    raise Unavailable(f"Another server listens on {quote(path)}.", "Choose another --socket, or stop that one.")
