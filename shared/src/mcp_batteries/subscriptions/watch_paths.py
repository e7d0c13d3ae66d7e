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
from dataclasses import dataclass

from mcp_batteries.subscriptions.glance import glance

__all__ = ["WatchPath", "WatchPaths", "fold"]

_MOST_LINKS = 40
"""As many as Linux follows (path_resolution(7))."""

_BLIND = ("9p", "afs", "ceph", "cifs", "fuse", "lustre", "ncpfs", "nfs", "smb", "vboxsf", "virtiofs", "vmhgfs")
"""How file systems are named whose other users' changes inotify does not report (inotify(7), Limitations)."""


@dataclass(frozen=True, slots=True)
class WatchPath:
    """Where a path led when it was followed, as real paths."""

    names: tuple[str, ...] = ()
    """The links on the way; at the end the thing itself, or the first name that is missing."""
    folders: tuple[str, ...] = ()
    """Where names on the way are looked up, in this order; at the end the thing itself if it is a folder."""
    told: bool = False
    """True if the kernel reports what happens in all of `folders`."""


def fold(path: str) -> str:
    """The canonical spelling of `path` for look-ups, because a file system may find a name by several."""
    # Also where a file system takes two compositions for two names, people and programs take them for one.
    composed = path if path.isascii() else unicodedata.normalize("NFC", path)
    return composed.casefold() if sys.platform == "darwin" else os.path.normcase(composed)


class WatchPaths:
    """Follows paths at and below `roots`; blocking, for one worker thread at a time."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = {root: os.path.realpath(root) for root in roots}
        self._roots |= {real: real for real in self._roots.values()}
        self._blind: dict[int, bool] = {}

    def follow(self, path: str) -> WatchPath:
        """Where `path`, an absolute path, leads; it ends where the roots end."""
        names: list[str] = []
        folders: list[str] = []
        told = True
        links = 0
        at, parts = self._enter(path)
        try:
            while at and links <= _MOST_LINKS:
                found = glance(at, follow=False)
                if at not in folders:
                    folders.append(sys.intern(at))
                    told = told and self._is_told(at, found.device)
                if not parts:
                    if at not in names:
                        names.append(at)
                    break
                part = parts.pop()
                if part == "..":
                    at = self._enter(os.path.dirname(at))[0] and os.path.dirname(at)
                    continue
                place = os.path.join(at, part)
                names.append(place)
                found = glance(place, follow=False)
                if stat.S_ISDIR(found.mode):
                    at = place
                    if parts:
                        names.pop()
                elif stat.S_ISLNK(found.mode):
                    links += 1
                    target = os.readlink(place)
                    if os.path.isabs(target):
                        at, down = self._enter(target)
                        parts += down
                    else:
                        parts += _parts(target)
                else:
                    break
        except (OSError, ValueError):
            pass  # Missing, or not to be entered: the last name is the one to wait for.
        return WatchPath(tuple(names), tuple(folders), told and bool(folders) and all(map(_is_utf8, names)))

    def _enter(self, path: str) -> tuple[str, list[str]]:
        """The real root that `path` is below, and the way down from there, last part first; "" if it is outside."""
        for root in sorted(self._roots, key=len, reverse=True):
            if path == root or path.startswith(root.rstrip(os.sep) + os.sep):
                return self._roots[root], _parts(path[len(root) :])
        return "", []

    def _is_told(self, folder: str, device: int) -> bool:
        if device not in self._blind:
            self._blind |= _blind_devices()
            self._blind.setdefault(device, False)
        return not self._blind[device] and os.access(folder, os.R_OK) and _is_utf8(folder)


def _parts(path: str) -> list[str]:
    if os.altsep:
        path = path.replace(os.altsep, os.sep)
    return [part for part in reversed(path.split(os.sep)) if part not in ("", ".")]


def _is_utf8(path: str) -> bool:
    # watchfiles takes and reports only such paths.
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _blind_devices() -> dict[int, bool]:
    """For each mounted device number whether changes on it may go unreported (proc_pid_mountinfo(5))."""
    devices: dict[int, bool] = {}
    if sys.platform != "linux":
        return devices
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
            for line in mounts:
                fields = line.split(" ")
                major, minor = fields[2].split(":")
                kind = fields[fields.index("-") + 1]
                devices[os.makedev(int(major), int(minor))] = kind.startswith(_BLIND)
    except (OSError, ValueError, IndexError):
        pass  # No /proc: the kernel's own reports it is.
    return devices
