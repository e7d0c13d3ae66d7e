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
from functools import cached_property
from pathlib import Path

from mcp_fs.paths import file_uri, split_names, to_system_path
from mcp_fs.repositories import is_git_folder

__all__ = ["Root", "open_inner", "open_root"]

_WINDOWS = sys.platform == "win32"
_OPEN_ROOT = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, eq=False)
class Root:
    """A served folder, opened once.

    If something else is at its path later, neither is served, unless `reopen_if_replaced` allows it.

    Attributes:
        name: last component of the path, with a number when two folders share it.
        path: absolute and normalised, links as the operator wrote them.
        real_path: the same with links resolved.
        identity: which file it is, by device and number.
        fd: descriptor good for `dir_fd` only (O_PATH where there is such a thing); -1 on Windows.
        mount_depth: names in the path at which its file system is mounted, if that is known.
    """

    name: str
    path: str
    real_path: str
    identity: tuple[int, int]
    fd: int
    mount_depth: int = field(init=False)

    def __post_init__(self) -> None:
        if self.fd >= 0:
            weakref.finalize(self, os.close, self.fd).atexit = False
        self._read_mount_depth()

    def _read_mount_depth(self) -> None:
        mount = _find_mount(self.real_path)
        object.__setattr__(self, "mount_depth", -1 if mount is None else mount.depth)

    @property
    def uri(self) -> str:
        return file_uri(self.path)

    @cached_property
    def real_names(self) -> tuple[str, ...]:
        """The names down to this folder, with links resolved."""
        return split_names(self.real_path)

    @cached_property
    def _prefixes_upwards(self) -> tuple[str, ...]:
        """The paths from here to the folders that this one lies in, `../` to the nearest first."""
        return tuple("../" * depth for depth in range(1, len(Path(self.real_path).parents) + 1))

    @cached_property
    def _can_query_access(self) -> bool:
        """Whether access(2) tells what there is, which old kernels, and sandboxes that do not know the call, don't."""
        try:
            return _has_access(self.fd, ".")
        except (OSError, NotImplementedError):
            return False

    def has_git_folder(self, parts: Sequence[str], extra_name: str = "") -> bool:
        """Whether Git takes the folder `parts` for one of its own.

        Args:
            extra_name: a name in it that counts as if there were an entry of that name.
        """
        prefix = "".join(f"{part}/" for part in parts)
        return self._is_git_folder(prefix, extra_name)

    def is_in_git_folder(self) -> bool:
        """Whether this folder lies in one that Git takes for its own."""
        return any(map(self._is_git_folder, self._prefixes_upwards))

    def _is_git_folder(self, prefix: str, extra_name: str = "") -> bool:
        return is_git_folder(lambda name: name.casefold() == extra_name.casefold() or self._has_entry(prefix + name))

    def _has_entry(self, path: str) -> bool:
        """Whether there is anything at a path from this folder, whose last name may be a link."""
        if self.fd < 0:
            return os.path.lexists(to_system_path(os.path.normpath(os.path.join(self.real_path, path))))
        # Nearly always there is nothing, and an exception costs more than both system calls.
        if self._can_query_access:
            return _has_access(self.fd, path)
        try:
            os.stat(path, dir_fd=self.fd, follow_symlinks=False)
        except OSError:
            return False
        return True

    def reopen_if_replaced(self) -> bool:
        """Serve what is at the path now, if this folder was deleted and created again, such as by a new clone, or is on
        a file system that was mounted since.

        If the folder was only moved, either may be meant, so neither is served. The new folder must have the same
        owner, and nobody else could have put it there.
        """
        if self.fd < 0:
            return False
        try:
            is_guarded = all(map(_is_guarded, Path(self.real_path).parents))
            new = os.open(self.real_path, _OPEN_ROOT | getattr(os, "O_NOFOLLOW", 0))
        except OSError:
            return False
        try:
            status = os.fstat(new)
            if (
                not is_guarded
                or not self._is_valid_replacement(status)
                or os.path.realpath(self.real_path) != self.real_path
            ):
                return False
            os.dup2(new, self.fd, inheritable=False)
            object.__setattr__(self, "identity", (status.st_dev, status.st_ino))
            self._read_mount_depth()
        finally:
            os.close(new)
        return True

    def _is_valid_replacement(self, status: os.stat_result) -> bool:
        """Whether the folder `found` at this path can only be its intended replacement."""
        try:
            old = os.fstat(self.fd)
        except OSError:  # the file system is gone: a server or a process that does not answer any more
            old = None
        mount = _find_mount(self.real_path) if status.st_dev != self.identity[0] else None
        # What was beneath a file system that is gone, is not meant.
        is_mounted = mount is not None and mount.is_ours and mount.depth >= self.mount_depth
        if old is not None and old.st_uid == status.st_uid:
            return is_mounted or not old.st_nlink
        return is_mounted and status.st_uid in (os.geteuid(), 0)


def open_root(path: str, used_names: set[str]) -> Root:
    """Open the folder at `path`, under a name that is not in use.

    Raises:
        OSError: it cannot be served.
    """
    real_path = os.path.realpath(path)
    if not os.path.isdir(real_path):
        os.stat(real_path)  # says in the kernel's words why it cannot be reached
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    fd = -1 if _WINDOWS else os.open(real_path, _OPEN_ROOT)
    return Root(
        _unique_name(os.path.basename(path) or path, used_names), path, real_path, _read_identity(fd, real_path), fd
    )


def open_inner(root: Root, parts: tuple[str, ...], used_names: set[str]) -> Root:
    """Open the folder at `parts` below `root` to be served separately, under a name that is not in use.

    Raises:
        OSError: it cannot be served.
    """
    if _WINDOWS:
        os.listdir(
            to_system_path(os.path.join(root.real_path, *parts))
        )  # each use compares the path that its handle has
    # `parts` come from a real path: a link found on the way now was put there since, and is not followed.
    fd = -1 if _WINDOWS else os.dup(root.fd)
    try:
        for name in () if _WINDOWS else parts:
            inner_fd = os.open(name, _OPEN_ROOT | getattr(os, "O_NOFOLLOW", 0), dir_fd=fd)
            os.close(fd)
            fd = inner_fd
    except OSError:
        os.close(fd)
        raise
    name = _unique_name(parts[-1], used_names)
    real_path = os.path.join(root.real_path, *parts)
    return Root(name, os.path.join(root.path, *parts), real_path, _read_identity(fd, real_path), fd)


def _has_access(dir_fd: int, path: str) -> bool:
    # With the rights of this process, as for open(2), not those of who started it.
    return os.access(path, os.F_OK, dir_fd=dir_fd, effective_ids=True, follow_symlinks=False)


def _is_guarded(folder: Path) -> bool:
    """Whether only this user and root can replace entries in `folder`."""
    status = folder.lstat()
    is_shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX
    return not is_shared and status.st_uid in (os.geteuid(), 0)


@dataclass(frozen=True, slots=True)
class _Mount:
    """The mount of a path.

    Attributes:
        depth: names in the path at which it is mounted.
        is_ours: whether root or this user mounted it; with FUSE, anybody may.
    """

    depth: int
    is_ours: bool


def _find_mount(path: str) -> _Mount | None:
    """Return the mount of `path`; None if unknown, such as on systems other than Linux."""
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        return None
    mount = None
    for line in lines:  # proc_pid_mountinfo(5): a later one covers those before it
        location, _, options = line.partition(b" - ")
        names = _split_names(re.sub(rb"\\([0-7]{3})", lambda octal: bytes([int(octal[1], 8)]), location.split(b" ")[4]))
        if _split_names(os.fsencode(path))[: len(names)] == names and (mount is None or len(names) >= mount.depth):
            users = map(int, re.findall(rb"\buser_id=(\d+)", options))
            mount = _Mount(len(names), all(user in (0, os.geteuid()) for user in users))
    return mount


def _split_names(path: bytes) -> list[bytes]:
    return [name for name in path.split(b"/") if name]


def _read_identity(fd: int, real_path: str) -> tuple[int, int]:
    status = os.stat(to_system_path(real_path) if fd < 0 else fd)
    return status.st_dev, status.st_ino


def _unique_name(name: str, used_names: set[str]) -> str:
    number = 1
    candidate = name
    while candidate in used_names:
        number += 1
        candidate = f"{name}-{number}"
    return candidate
