"""The served folders: each is opened once, and only a permitted replacement is served instead later."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mcp_fs.paths import file_uri, for_system
from mcp_fs.repositories import is_git_folder

__all__ = ["Root", "open_inner", "open_root"]

_WINDOWS = sys.platform == "win32"
_OPEN_ROOT = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, eq=False)
class Root:
    """A served folder, opened once; if something else is at its path later, neither is served, except by `serve_again`.

    Attributes:
        name: last component of the path, with a number when two folders share it.
        path: absolute and normalised, links as the operator wrote them.
        real: the same with links resolved.
        identity: which file it is, by device and number.
        fd: descriptor good for `dir_fd` only (O_PATH where there is such a thing); -1 on Windows.
        mount_depth: names in the path at which its file system is mounted, if that is known.
    """

    name: str
    path: str
    real: str
    identity: tuple[int, int]
    fd: int
    mount_depth: int = field(init=False)

    def __post_init__(self) -> None:
        if self.fd >= 0:
            weakref.finalize(self, os.close, self.fd).atexit = False
        self._look_at_mount()

    def _look_at_mount(self) -> None:
        mount = _mount_of(self.real)
        object.__setattr__(self, "mount_depth", -1 if mount is None else mount.depth)

    @property
    def uri(self) -> str:
        return file_uri(self.path)

    def has_git_folder(self, parts: Sequence[str], new: str = "") -> bool:
        """Whether Git takes the folder `parts` for one of its own.

        Args:
            new: a name in it that counts as if there were an entry of that name.
        """
        return is_git_folder(lambda name: name.casefold() == new.casefold() or self._has((*parts, name)))

    def is_in_git_folder(self) -> bool:
        """Whether this folder lies in one that Git takes for its own."""
        return any(
            is_git_folder(lambda name, above=above: os.path.lexists(above / name)) for above in Path(self.real).parents
        )

    def _has(self, parts: Sequence[str]) -> bool:
        """Whether there is anything at a path below this folder."""
        try:
            if self.fd < 0:
                os.lstat(for_system(os.path.join(self.real, *parts)))
            else:
                os.stat(os.path.join(*parts), dir_fd=self.fd, follow_symlinks=False)
        except OSError:
            return False
        return True

    def serve_again(self) -> bool:
        """Serve what is at the path now, if this folder was deleted and created again, such as by a new clone, or is on
        a file system that was mounted since.

        If the folder was only moved, either may be meant, so neither is served. The new folder must have the same
        owner, and nobody else could have put it there.
        """
        if self.fd < 0:
            return False
        try:
            guarded = all(map(_is_guarded, Path(self.real).parents))
            new = os.open(self.real, _OPEN_ROOT | getattr(os, "O_NOFOLLOW", 0))
        except OSError:
            return False
        try:
            found = os.fstat(new)
            if not guarded or not self._is_followed_by(found) or os.path.realpath(self.real) != self.real:
                return False
            os.dup2(new, self.fd, inheritable=False)
            object.__setattr__(self, "identity", (found.st_dev, found.st_ino))
            self._look_at_mount()
        finally:
            os.close(new)
        return True

    def _is_followed_by(self, found: os.stat_result) -> bool:
        """Whether the folder `found` at this path can only be its intended replacement."""
        try:
            old = os.fstat(self.fd)
        except OSError:  # the file system is gone: a server or a process that does not answer any more
            old = None
        mount = _mount_of(self.real) if found.st_dev != self.identity[0] else None
        # What was beneath a file system that is gone, is not meant.
        is_mounted = mount is not None and mount.is_ours and mount.depth >= self.mount_depth
        if old is not None and old.st_uid == found.st_uid:
            return is_mounted or not old.st_nlink
        return is_mounted and found.st_uid in (os.geteuid(), 0)


def open_root(path: str, taken: set[str]) -> Root:
    """The folder at `path`, under a name that is not in `taken`.

    Raises:
        OSError: it cannot be served.
    """
    real = os.path.realpath(path)
    if not os.path.isdir(real):
        os.stat(real)  # says in the kernel's words why it cannot be reached
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    fd = -1 if _WINDOWS else os.open(real, _OPEN_ROOT)
    return Root(_unique(os.path.basename(path) or path, taken), path, real, _identity(fd, real), fd)


def open_inner(root: Root, parts: tuple[str, ...], taken: set[str]) -> Root:
    """The folder at `parts` below `root`, not empty, to be served separately under a name that is not in `taken`.

    Raises:
        OSError: it cannot be served.
    """
    if _WINDOWS:
        os.listdir(for_system(os.path.join(root.real, *parts)))  # each use compares the path that its handle has
    # `parts` come from a real path: a link found on the way now was put there since, and is not followed.
    fd = -1 if _WINDOWS else os.dup(root.fd)
    try:
        for part in () if _WINDOWS else parts:
            inner = os.open(part, _OPEN_ROOT | getattr(os, "O_NOFOLLOW", 0), dir_fd=fd)
            os.close(fd)
            fd = inner
    except OSError:
        os.close(fd)
        raise
    name, real = _unique(parts[-1], taken), os.path.join(root.real, *parts)
    return Root(name, os.path.join(root.path, *parts), real, _identity(fd, real), fd)


def _is_guarded(folder: Path) -> bool:
    """Whether only this user and root can replace entries in `folder`."""
    found = folder.lstat()
    is_shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX
    return not is_shared and found.st_uid in (os.geteuid(), 0)


@dataclass(frozen=True, slots=True)
class _Mount:
    """The mount of a path.

    Attributes:
        depth: names in the path at which it is mounted.
        is_ours: whether root or this user mounted it; with FUSE, anybody may.
    """

    depth: int
    is_ours: bool


def _mount_of(path: str) -> _Mount | None:
    """The mount of `path`; None if unknown, such as on systems other than Linux."""
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        return None
    found = None
    for line in lines:  # proc_pid_mountinfo(5): a later one covers those before it
        place, _, how = line.partition(b" - ")
        names = _names(re.sub(rb"\\([0-7]{3})", lambda octal: bytes([int(octal[1], 8)]), place.split(b" ")[4]))
        if _names(os.fsencode(path))[: len(names)] == names and (found is None or len(names) >= found.depth):
            users = map(int, re.findall(rb"\buser_id=(\d+)", how))
            found = _Mount(len(names), all(user in (0, os.geteuid()) for user in users))
    return found


def _names(path: bytes) -> list[bytes]:
    return [name for name in path.split(b"/") if name]


def _identity(fd: int, real: str) -> tuple[int, int]:
    found = os.stat(for_system(real) if fd < 0 else fd)
    return found.st_dev, found.st_ino


def _unique(name: str, taken: set[str]) -> str:
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = f"{name}-{number}"
    return candidate
