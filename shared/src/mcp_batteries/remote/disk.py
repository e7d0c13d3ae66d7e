"""The store that all server processes of one user share: a private folder of small files.

    data/   one file per resource: a line of JSON with the digest, then the body. Changes only when the content does, so
    that this is the folder to watch.
    meta/   one file per resource with the result of each check: validators, when to check again, why it failed.
    locks/  one file per resource, held by the process that fetches it.
    state/  small objects all processes agree on, such as how much of a limit is used.
    tmp/    files being written; they become real by being renamed.

Names are keyed digests: they reveal neither the request nor the account, and accounts never share entries.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import stat
import sys
import time
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, cast

from filelock import FileLock, Timeout

from mcp_batteries.errors import Refused, Unavailable, describe_os_error
from mcp_batteries.remote.entry import Entry
from mcp_batteries.subscriptions.file_watcher import FileWatcher

__all__ = ["DiskStore"]

_BUSY_SECONDS = 0.5
_FOLDERS = ("data", "meta", "locks", "state", "tmp")
_STATE_SECONDS = 10.0
_DAY = 86_400.0
# Entries that were not used for longer are removed.
_MAX_AGE = 30 * _DAY


@dataclass
class _Files:
    """The files of one entry: their size in bytes, and when the younger one was written."""

    size: int = 0
    used_at: float = 0.0


class DiskStore:
    """A `Store` in a folder, which is made if it is not there.

    Args:
        folder: its path; `~` is the user's home.
        identity: stores with different identities in one folder share nothing.
        max_bytes: what `tidy` leaves.

    Raises:
        Refused: others may look into the folder, or it belongs to somebody else.
        Unavailable: it cannot be made or used.
    """

    blocks = True

    def __init__(self, folder: str, identity: Sequence[str], *, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._folder = os.path.abspath(os.path.expanduser(folder))
        self._max_bytes = max_bytes
        try:
            self._make_folders()
            secret = self._read_secret()
        except OSError as error:
            raise Unavailable(
                f"The cache folder cannot be used: {describe_os_error(error)}.",
                "Name another with `--cache`, or keep nothing on disk with `--cache memory`.",
            ) from error
        message = json.dumps(list(identity)).encode()
        self._key = hashlib.blake2b(message, key=secret, digest_size=32).digest()

    def read(self, key: str) -> Entry:
        name = self._name(key)
        try:
            entry = Entry(**self._read_object("meta", name))
        except TypeError:
            entry = Entry()  # Another version's.
        try:
            head, _, body = self._read_file("data", name).partition(b"\n")
            about = json.loads(head)
            digest = str(about["digest"])
            changed_at = float(about["changed_at"])
        except (OSError, ValueError, KeyError, TypeError):
            return Entry(
                error=entry.error,
                failed_at=entry.failed_at,
                failures=entry.failures,
                retry_at=entry.retry_at,
                next_poll_at=entry.next_poll_at if entry.error else 0.0,
            )
        if digest != entry.digest:
            # The process that wrote the body ended before it could say more: the body is good, but due for a check.
            entry = Entry(fetched_at=changed_at)
        return replace(entry, body=body, digest=digest, changed_at=changed_at)

    def write(self, key: str, entry: Entry, *, body: bool) -> None:
        name = self._name(key)
        if body and entry.body is not None:
            head = json.dumps({"digest": entry.digest, "changed_at": entry.changed_at}).encode()
            self._replace("data", name, head + b"\n" + entry.body)
        self._replace("meta", name, json.dumps(asdict(replace(entry, body=None))).encode())

    def drop(self, key: str) -> None:
        name = self._name(key)
        for folder in ("data", "meta"):
            path = self._path(folder, name)
            with contextlib.suppress(FileNotFoundError):
                _retry_while_busy(partial(os.unlink, path))

    def lock(self, key: str) -> Callable[[], None] | None:
        lock = self._lock(self._name(key))
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return None
        return lock.release

    def state(self, name: str) -> dict[str, Any]:
        return self._read_object("state", self._name(name))

    def update(self, name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        file = self._name(name)
        try:
            with self._lock(file).acquire(timeout=_STATE_SECONDS, poll_interval=0.01):
                state = change(self.state(name))
                self._replace("state", file, json.dumps(state).encode())
                return state
        except Timeout:
            raise Unavailable("Another server process holds the cache.", "Try again in a moment.") from None

    def tidy(self) -> None:
        now = time.time()
        self._remove_unfinished(now)
        files = self._list_files()
        total = sum(file.size for file in files.values())
        for name in sorted(files, key=lambda name: files[name].used_at):
            file = files[name]
            if total <= self._max_bytes and now - file.used_at <= _MAX_AGE:
                break
            total -= file.size
            del files[name]
            for folder in ("data", "meta"):
                with contextlib.suppress(OSError):
                    os.unlink(self._path(folder, name))
        self._remove_old_locks(files, now)

    def _remove_unfinished(self, now: float) -> None:
        """Remove files that a process which was ended did not finish writing."""
        for item in os.scandir(os.path.join(self._folder, "tmp")):
            with contextlib.suppress(OSError):
                if now - item.stat().st_mtime > _DAY:
                    os.unlink(item.path)

    def _list_files(self) -> dict[str, _Files]:
        """Return the entries by name, each with the size of both its files."""
        files: dict[str, _Files] = {}
        for folder in ("data", "meta"):
            for item in os.scandir(os.path.join(self._folder, folder)):
                with contextlib.suppress(OSError):
                    status = item.stat()
                    entry = files.setdefault(item.name, _Files())
                    entry.size += status.st_size
                    entry.used_at = max(entry.used_at, status.st_mtime)
        return files

    def _remove_old_locks(self, files: Collection[str], now: float) -> None:
        """Remove the locks of entries that are gone."""
        for item in os.scandir(os.path.join(self._folder, "locks")):
            # A process that opened it a moment ago and locks the unlinked file only fetches once too often.
            with contextlib.suppress(OSError):
                if item.name not in files and now - item.stat().st_mtime > _MAX_AGE:
                    os.unlink(item.path)

    def place(self, key: str) -> Hashable:
        return self._path("data", self._name(key))

    def watch(self) -> FileWatcher:
        return FileWatcher([os.path.join(self._folder, "data")], locate=lambda uri: None, probe=_digest, exact=True)

    def _make_folders(self) -> None:
        _make_private(self._folder)
        for name in _FOLDERS:
            _make_private(os.path.join(self._folder, name))

    def _read_secret(self) -> bytes:
        """Return the key of all names in this folder; the first process makes it."""
        path = os.path.join(self._folder, "key")
        with FileLock(path + ".lock", timeout=_STATE_SECONDS, mode=0o600):
            with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
                secret = file.read()
                if len(secret) == 32:
                    return secret
            secret = secrets.token_bytes(32)
            self._write(path, secret)
            return secret

    def _name(self, key: str) -> str:
        return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), key=self._key, digest_size=20).hexdigest()

    def _path(self, folder: str, name: str) -> str:
        return os.path.join(self._folder, folder, name)

    def _lock(self, name: str) -> FileLock:
        if not os.path.isdir(os.path.join(self._folder, "locks")):
            # `--purge` has removed it; the lock would make it for everybody to see.
            self._make_folders()
        return FileLock(self._path("locks", name), mode=0o600, thread_local=False)

    def _read_object(self, folder: str, name: str) -> dict[str, Any]:
        """Return the JSON object in a file; an empty one if there is none."""
        try:
            value: Any = json.loads(self._read_file(folder, name))
        except (OSError, ValueError):
            return {}
        if not isinstance(value, dict):
            return {}
        return cast("dict[str, Any]", value)

    def _read_file(self, folder: str, name: str) -> bytes:
        with open(self._path(folder, name), "rb") as file:
            return file.read()

    def _replace(self, folder: str, name: str, content: bytes) -> None:
        self._write(self._path(folder, name), content)

    def _write(self, path: str, content: bytes) -> None:
        temporary = os.path.join(self._folder, "tmp", secrets.token_hex(12))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        try:
            handle = os.open(temporary, flags, 0o600)
        except FileNotFoundError:
            # `--purge` has removed the folder under a running server.
            self._make_folders()
            handle = os.open(temporary, flags, 0o600)
        try:
            with open(handle, "wb") as file:
                file.write(content)
            _retry_while_busy(partial(os.replace, temporary, path))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise


def _retry_while_busy(change: Callable[[], None]) -> None:
    """Do `change`; on Windows retry for a while, because it fails while a reader has the file open."""
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            return change()
        except PermissionError:
            if sys.platform != "win32" or time.monotonic() > until:
                raise
        time.sleep(0.01)


def _make_private(folder: str) -> None:
    """Make `folder` if it is not there.

    Raises:
        Refused: It is there and not private.
    """
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode):
        raise Refused("The cache folder is a link or a file.", "Name a folder with `--cache`.")
    if hasattr(os, "geteuid"):
        if status.st_uid != os.geteuid():
            raise Refused("The cache folder belongs to another user.", "Name a folder of your own with `--cache`.")
        if stat.S_IMODE(status.st_mode) & 0o077:
            # Not made private here: it may be a folder that others are meant to see.
            raise Refused("The cache folder is open to other users.", "Name one that is yours alone with `--cache`.")


def _digest(path: str) -> Hashable | None:
    with open(path, "rb") as file:
        return file.readline(400)
