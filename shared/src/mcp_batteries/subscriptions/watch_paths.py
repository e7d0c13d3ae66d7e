"""Finds the folders to watch so that nothing can happen to a path unnoticed.

The kernel reports what happens to the names in a folder, and it watches the folder's inode, not its path. So to watch
a path means to watch every folder in which one of its parts is looked up, links included.
"""

from __future__ import annotations

import os
import stat
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

from mcp_batteries.subscriptions.file_state import read_file_state

__all__ = ["WatchPath", "WatchPaths", "fold"]

# As many as Linux follows (path_resolution(7)).
_MAX_LINKS = 40

# inotify does not report what other users of these file systems change (inotify(7), Limitations).
_UNREPORTED_FILE_SYSTEMS = (
    "9p",
    "afs",
    "ceph",
    "cifs",
    "fuse",
    "lustre",
    "ncpfs",
    "nfs",
    "smb",
    "vboxsf",
    "virtiofs",
    "vmhgfs",
)


@dataclass(frozen=True, slots=True)
class WatchPath:
    """Where a path led when it was followed, as real paths.

    Attributes:
        names: the links on the way; at the end the thing itself, or the first name that is missing.
        folders: where names on the way are looked up, in this order; at the end the thing itself if it is a folder.
        is_reported: whether the kernel reports what happens in all of `folders`.
    """

    names: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    is_reported: bool = False


def fold(path: str) -> str:
    """Return the canonical spelling of `path` for look-ups, because a file system may find a name by several."""
    # Also where a file system takes two compositions for two names, people and programs take them for one.
    if not path.isascii():
        path = unicodedata.normalize("NFC", path)
    if sys.platform == "darwin":
        return path.casefold()
    return os.path.normcase(path)


@dataclass(slots=True)
class _Walk:
    """The state of following a path.

    Attributes:
        folder: where the next name is looked up; empty outside of the roots.
        remaining: the names to look up, the last one first.
        names: as in `WatchPath`.
        folders: as in `WatchPath`.
        links: the links that were followed.
        is_reported: whether the kernel reports what happens in the folders so far.
    """

    folder: str = ""
    remaining: list[str] = field(default_factory=list[str])
    names: list[str] = field(default_factory=list[str])
    folders: list[str] = field(default_factory=list[str])
    links: int = 0
    is_reported: bool = True


class WatchPaths:
    """Follows paths at and below `roots`; blocking, for one worker thread at a time."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = {root: os.path.realpath(root) for root in roots}
        self._roots |= {real: real for real in self._roots.values()}
        self._blind: dict[int, bool] = {}

    def follow(self, path: str) -> WatchPath:
        """Return where `path`, an absolute path, leads; it ends where the roots end."""
        walk = _Walk()
        walk.folder, walk.remaining = self._enter(path)
        try:
            while walk.folder and walk.links <= _MAX_LINKS:
                if not self._step(walk):
                    break
        except (OSError, ValueError):
            pass  # It is missing or not to be entered: the last name is the one to wait for.
        is_reported = walk.is_reported and bool(walk.folders) and all(map(_is_utf8, walk.names))
        return WatchPath(tuple(walk.names), tuple(walk.folders), is_reported)

    def _step(self, walk: _Walk) -> bool:
        """Look up the next name of `walk`; return False at its end."""
        folder = walk.folder
        state = read_file_state(folder, follow=False)
        if folder not in walk.folders:
            walk.folders.append(sys.intern(folder))
            walk.is_reported = walk.is_reported and self._is_reported(folder, state.device)
        if not walk.remaining:
            if folder not in walk.names:
                walk.names.append(folder)
            return False
        name = walk.remaining.pop()
        if name == "..":
            parent = os.path.dirname(folder)
            root, _ = self._enter(parent)
            walk.folder = parent if root else ""
            return True
        path = os.path.join(folder, name)
        walk.names.append(path)
        mode = read_file_state(path, follow=False).mode
        if stat.S_ISLNK(mode):
            walk.links += 1
            self._follow_link(walk, path)
            return True
        if not stat.S_ISDIR(mode):
            return False
        walk.folder = path
        if walk.remaining:
            walk.names.pop()
        return True

    def _follow_link(self, walk: _Walk, path: str) -> None:
        target = os.readlink(path)
        if os.path.isabs(target):
            walk.folder, names = self._enter(target)
            walk.remaining += names
        else:
            walk.remaining += _split_reversed(target)

    def _enter(self, path: str) -> tuple[str, list[str]]:
        """Return the real root that `path` is below, and the names down from there, the last one first.

        The root is empty if the path is outside.
        """
        for root in sorted(self._roots, key=len, reverse=True):
            if path == root or path.startswith(root.rstrip(os.sep) + os.sep):
                return self._roots[root], _split_reversed(path[len(root) :])
        return "", []

    def _is_reported(self, folder: str, device: int) -> bool:
        """Tell whether the kernel reports what happens in `folder`."""
        if device not in self._blind:
            self._blind |= _blind_devices()
            self._blind.setdefault(device, False)
        return not self._blind[device] and os.access(folder, os.R_OK) and _is_utf8(folder)


def _split_reversed(path: str) -> list[str]:
    """Return the names in `path`, the last one first."""
    if os.altsep:
        path = path.replace(os.altsep, os.sep)
    return [part for part in reversed(path.split(os.sep)) if part not in ("", ".")]


def _is_utf8(path: str) -> bool:
    """Tell whether `path` is UTF-8: watchfiles takes and reports only such paths."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _blind_devices() -> dict[int, bool]:
    """Return for each mounted device number whether changes on it may go unreported (proc_pid_mountinfo(5))."""
    devices: dict[int, bool] = {}
    if sys.platform != "linux":
        return devices
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
            for line in mounts:
                fields = line.split(" ")
                major, minor = fields[2].split(":")
                kind = fields[fields.index("-") + 1]
                devices[os.makedev(int(major), int(minor))] = kind.startswith(_UNREPORTED_FILE_SYSTEMS)
    except (OSError, ValueError, IndexError):
        pass  # No /proc: the kernel's own reports it is.
    return devices
