"""Folders by descriptor on Linux, macOS and BSD: down from the root one name at a time, never a path twice.

`resolve` alone follows links. It reads each link by the handle it lies in and goes on from
there itself, so that a link may lead anywhere beneath a served folder and nowhere else, whoever swaps what
while it walks: a name that changes its kind between two calls only makes the second call fail.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from mcp_batteries.errors import Conflict, Refused, quote
from mcp_fs.engine.handles import syscalls
from mcp_fs.engine.name_folding import fold_name, may_have_another_spelling
from mcp_fs.policy import ReadablePath

__all__ = ["Folder", "ResolvedPath", "open_folder_directly", "resolve"]

P = TypeVar("P", bound=ReadablePath)
P_co = TypeVar("P_co", bound=ReadablePath, covariant=True)

_PATH_ONLY = getattr(os, "O_PATH", os.O_RDONLY)
_FOLDER_FLAGS = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_LINKS = 40  # as Linux counts, path_resolution(7)
_LINK_ERRORS = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)  # EMLINK: FreeBSD's answer to O_NOFOLLOW


class Folder(Generic[P_co]):
    """An open folder and the trusted path it was reached by; every name is used by its handle, links unfollowed.

    A context manager that closes the descriptor. `name` is always one entry, never a path.
    """

    __slots__ = ("_identity", "can_list", "fd", "path")

    def __init__(self, fd: int, path: P_co, *, can_list: bool = True) -> None:
        self.fd = fd
        self.path = path
        self.can_list = can_list
        self._identity: tuple[int, int] | None = None

    def __enter__(self) -> Folder[P_co]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.fd >= 0:
            fd = self.fd
            self.fd = -1
            os.close(fd)

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        if self._identity is None:
            status = os.fstat(self.fd)
            self._identity = status.st_dev, status.st_ino
        return self._identity

    def open_folder(self, name: str) -> Folder[P_co]:
        """Open the folder `name` in this one for listing."""
        path = self.path if name == "." else self.path / name
        return Folder(os.open(name, os.O_RDONLY | _FOLDER_FLAGS, dir_fd=self.fd), path)

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        """Open a descriptor for the entry `name`; a link is an error (ELOOP)."""
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=self.fd)

    def scan(self) -> Iterator[os.DirEntry[str]]:
        """Iterate the entries, unsorted; each is good while this folder is open. Needs a folder opened for listing."""
        with os.scandir(self.fd) as entries:
            yield from entries

    def list_entries(self) -> list[os.DirEntry[str]]:
        """`scan`, all at once."""
        with os.scandir(self.fd) as entries:
            return list(entries)

    def list_names(self) -> list[str]:
        """List all names in the folder, unsorted."""
        with self.open_folder(".") as folder:
            return os.listdir(folder.fd)

    def stat(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self.fd, follow_symlinks=False)

    def read_link(self, name: str) -> str:
        return os.readlink(name, dir_fd=self.fd)

    def make_folder(self, name: str, mode: int = 0o777) -> None:
        os.mkdir(name, mode, dir_fd=self.fd)

    def set_mode(self, mode: int) -> None:
        """Give this folder, opened for listing, permission bits."""
        os.fchmod(self.fd, mode)

    def make_link(self, text: str, name: str) -> None:
        os.symlink(text, name, dir_fd=self.fd)

    def remove(self, name: str) -> None:
        os.unlink(name, dir_fd=self.fd)

    def remove_folder(self, name: str) -> None:
        os.rmdir(name, dir_fd=self.fd)

    def add_name(self, name: str, folder: Folder[Any], new: str) -> None:
        """Give the file `name` a second name in `folder`; link(2)."""
        os.link(name, new, src_dir_fd=self.fd, dst_dir_fd=folder.fd, follow_symlinks=False)

    def rename(self, name: str, folder: Folder[Any], new: str) -> None:
        """Rename into `folder`, replacing what rename(2) replaces."""
        os.rename(name, new, src_dir_fd=self.fd, dst_dir_fd=folder.fd)

    def rename_noreplace(self, name: str, folder: Folder[Any], new: str) -> None:
        """Rename into `folder`; FileExistsError when `new` is taken, decided by the kernel."""
        syscalls.rename_noreplace(name, self.fd, new, folder.fd)

    def sync(self) -> None:
        """Make the folder's entries durable; fsync(2)."""
        if not self.can_list:
            with self.open_folder(".") as folder:
                folder.sync()
            return
        try:
            os.fsync(self.fd)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # network folders that know no such thing
                raise


@dataclass(frozen=True)
class ResolvedPath(Generic[P_co]):
    """Where a path really leads: an open folder and the one name in it, which was not a link when it was looked at.

    `name` is `.` when the path is the served folder itself or a link that ends in `..`.

    Attributes:
        status: lstat(2) of the entry then, if that was asked.
    """

    folder: Folder[P_co]
    name: str
    status: os.stat_result | None = field(default=None, compare=False)

    @cached_property
    def path(self) -> P_co:
        """The path with every link resolved."""
        return self.folder.path if self.name == "." else self.folder.path / self.name

    def __enter__(self) -> ResolvedPath[P_co]:
        return self

    def __exit__(self, *_: object) -> None:
        self.folder.close()


def resolve(path: P, *, follow: bool = True, for_listing: bool = False) -> ResolvedPath[P]:
    """Resolve `path`, whose last name need not exist. Close it (`with`).

    Args:
        follow: whether a link in the last name is followed; those before it always are.
        for_listing: whether to open the folder for listing, where that is allowed: it can then be made durable.

    Raises:
        Refused: a link leads outside the served folders, or to a protected secret.
        OSError: as open(2), without an errno of links but ELOOP for more than 40 of them.
    """
    if not path.parts:
        return ResolvedPath(Folder(os.dup(path.root.fd), path, can_list=False), ".")
    *parent_names, last_name = path.parts
    flags = os.O_RDONLY if for_listing else _PATH_ONLY
    fd = syscalls.open_beneath("/".join(parent_names) or ".", flags | os.O_DIRECTORY, path.root.fd)
    if fd is not None:
        folder = Folder(fd, path.parent, can_list=for_listing)
        # A missing name may be there in another spelling, which the walk finds.
        with suppress(OSError):
            status = folder.stat(last_name)
            if not (follow and stat.S_ISLNK(status.st_mode)):
                return ResolvedPath(folder, last_name, status)
        folder.close()
    return _PathWalk(path).walk(follow)


def open_folder_directly(path: P) -> Folder[P] | None:
    """Open the folder at `path` for listing in one call; return None where only `resolve` can tell."""
    fd = syscalls.open_beneath("/".join(path.parts) or ".", os.O_RDONLY | _FOLDER_FLAGS, path.root.fd)
    return None if fd is None else Folder(fd, path)


class _PathWalk(Generic[P]):
    """One way down, link by link."""

    def __init__(self, path: P) -> None:
        self.path = path
        self.root = path.root
        self.remaining_names = list(reversed(path.parts))
        self.open_folders: list[tuple[str, int]] = []  # names below the root and their descriptors
        self.link_count = 0

    @property
    def current_fd(self) -> int:
        return self.open_folders[-1][1] if self.open_folders else self.root.fd

    def walk(self, follow: bool) -> ResolvedPath[P]:
        try:
            name = "."
            while self.remaining_names:
                name = self.walk_one_name(follow)
            folder = self.path.at(self.root, tuple(above for above, _ in self.open_folders))
            if name != ".":
                self.path.at(self.root, (*folder.parts, name))
            return ResolvedPath(
                Folder(os.open(".", _PATH_ONLY | _FOLDER_FLAGS, dir_fd=self.current_fd), folder, can_list=False), name
            )
        finally:
            self.close_below(0)

    def walk_one_name(self, follow: bool) -> str:
        """Take one name off the way; the name itself when it is the last and stays, else `.`."""
        name = self.remaining_names.pop()
        if name == "..":
            if self.open_folders:
                self.close_below(len(self.open_folders) - 1)
            else:
                self.restart_at("/".join((os.path.dirname(self.root.real_path), *reversed(self.remaining_names))))
            return "."
        name = _find_spelling(self.current_fd, name)
        if not self.remaining_names:
            if follow and (target := self.read_link(name)) is not None:
                self.follow_link(target)
                return "."
            return name
        try:
            self.open_folders.append((name, os.open(name, _PATH_ONLY | _FOLDER_FLAGS, dir_fd=self.current_fd)))
        except OSError as error:
            target = self.read_link(name) if error.errno in _LINK_ERRORS else None
            if target is None:
                raise
            self.follow_link(target)
        return "."

    def read_link(self, name: str) -> str | None:
        try:
            return os.readlink(name, dir_fd=self.current_fd)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.EINVAL:  # not a link
                return None
            raise

    def follow_link(self, target: str) -> None:
        self.link_count += 1
        if self.link_count > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.startswith("/"):
            self.restart_at("/".join((target, *reversed(self.remaining_names))))
        else:
            self.remaining_names.extend(part for part in reversed(target.split("/")) if part not in ("", "."))

    def restart_at(self, absolute: str) -> None:
        """Go on at an absolute path, from the served folder it lies beneath."""
        located = self.path.policy.locate(absolute)
        if located is None:
            raise Refused(f"{quote(self.path.display)} leads outside the served folders through a link.")
        self.close_below(0)
        self.root, parts = located
        self.remaining_names = list(reversed(parts))

    def close_below(self, depth: int) -> None:
        while len(self.open_folders) > depth:
            os.close(self.open_folders.pop()[1])


def _find_spelling(dir_fd: int, name: str) -> str:
    """Return the one existing name that reads like `name`, else `name`.

    macOS composes accents its own way and puts a no-break space into the names of screenshots; people and
    models type the other form.

    Raises:
        Conflict: several names read alike and none is exact.
    """
    if not may_have_another_spelling(name):
        return name
    try:
        os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        folded_name = fold_name(name)
    else:
        return name
    try:
        fd = os.open(".", os.O_RDONLY | _FOLDER_FLAGS, dir_fd=dir_fd)
    except PermissionError:
        return name
    try:
        similar_names = [other for other in os.listdir(fd) if fold_name(other) == folded_name]
    finally:
        os.close(fd)
    if len(similar_names) > 1:
        raise Conflict(f"{len(similar_names)} names read like {quote(name)} and none is exactly that.", "Use the URI.")
    return similar_names[0] if similar_names else name
