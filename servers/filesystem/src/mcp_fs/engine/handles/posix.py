"""Folders by descriptor on Linux, macOS and BSD: down from the root one name at a time, never a path twice.

`resolve` is the one place that follows links. It reads each link by the handle it lies in and goes on from
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
from typing import Any, Generic, TypeVar

from mcp_batteries.errors import Conflict, Refused, quote
from mcp_fs.engine.handles import syscalls
from mcp_fs.engine.name_folding import fold_name, may_have_another_spelling
from mcp_fs.policy import Readable

__all__ = ["Folder", "Spot", "folder_at", "resolve"]

P = TypeVar("P", bound=Readable)
P_co = TypeVar("P_co", bound=Readable, covariant=True)

_PASS = getattr(os, "O_PATH", os.O_RDONLY)
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_LINKS = 40  # as Linux counts, path_resolution(7)
_IS_LINK = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)  # EMLINK: FreeBSD's answer to O_NOFOLLOW


class Folder(Generic[P_co]):
    """An open folder and the trusted place it was reached as; every name is used by its handle, links unfollowed.

    A context manager that closes the descriptor. `name` is always one entry, never a path.
    """

    __slots__ = ("_identity", "can_list", "fd", "place")

    def __init__(self, fd: int, place: P_co, *, can_list: bool = True) -> None:
        self.fd = fd
        self.place = place
        self.can_list = can_list
        self._identity: tuple[int, int] | None = None

    def __enter__(self) -> Folder[P_co]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            os.close(fd)

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        if self._identity is None:
            found = os.fstat(self.fd)
            self._identity = found.st_dev, found.st_ino
        return self._identity

    def folder(self, name: str) -> Folder[P_co]:
        """The folder `name` in this one, open for listing."""
        place = self.place if name == "." else self.place / name
        return Folder(os.open(name, os.O_RDONLY | _FOLDER, dir_fd=self.fd), place)

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        """A descriptor for the entry `name`; a link is an error (ELOOP)."""
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=self.fd)

    def scan(self) -> Iterator[os.DirEntry[str]]:
        """The entries, unsorted; each is good while this folder is open. Needs a folder opened for listing."""
        with os.scandir(self.fd) as entries:
            yield from entries

    def entries(self) -> list[os.DirEntry[str]]:
        """`scan`, all at once."""
        with os.scandir(self.fd) as entries:
            return list(entries)

    def names(self) -> list[str]:
        """All names in the folder, unsorted."""
        with self.folder(".") as folder:
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

    def rename_new(self, name: str, folder: Folder[Any], new: str) -> None:
        """Rename into `folder`; FileExistsError when `new` is taken, decided by the kernel."""
        syscalls.rename_new(name, self.fd, new, folder.fd)

    def sync(self) -> None:
        """Make the folder's entries durable; fsync(2)."""
        if not self.can_list:
            with self.folder(".") as folder:
                folder.sync()
            return
        try:
            os.fsync(self.fd)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # network folders that know no such thing
                raise


@dataclass(frozen=True)
class Spot(Generic[P_co]):
    """Where a place really is: an open folder and the one name in it, which was not a link when it was looked at.

    `name` is `.` when the place is the served folder itself or a link that ends in `..`.

    Attributes:
        found: lstat(2) of the entry then, if that was asked.
    """

    folder: Folder[P_co]
    name: str
    found: os.stat_result | None = field(default=None, compare=False)

    @property
    def place(self) -> P_co:
        """The place with every link resolved."""
        return self.folder.place if self.name == "." else self.folder.place / self.name

    def __enter__(self) -> Spot[P_co]:
        return self

    def __exit__(self, *_: object) -> None:
        self.folder.close()


def resolve(place: P, *, follow: bool = True, lists: bool = False) -> Spot[P]:
    """The spot of `place`; its last name need not exist. Close it (`with`).

    Args:
        follow: whether a link in the last name is followed; those before it always are.
        lists: whether to open the folder for listing, where that is allowed: it can be made durable as it is then.

    Raises:
        Refused: a link leads outside the served folders, or to a protected secret.
        OSError: as open(2), without an errno of links but ELOOP for more than 40 of them.
    """
    if not place.parts:
        return Spot(Folder(os.dup(place.root.fd), place, can_list=False), ".")
    *above, last = place.parts
    flags = os.O_RDONLY if lists else _PASS
    fd = syscalls.open_beneath("/".join(above) or ".", flags | os.O_DIRECTORY, place.root.fd)
    if fd is not None:
        folder = Folder(fd, place.parent, can_list=lists)
        # A missing name may be there in another spelling, which the walk finds.
        with suppress(OSError):
            found = folder.stat(last)
            if not (follow and stat.S_ISLNK(found.st_mode)):
                return Spot(folder, last, found)
        folder.close()
    return _Walk(place).to_end(follow)


def folder_at(place: P) -> Folder[P] | None:
    """The folder at `place`, open for listing, in one call; None where only `resolve` can tell."""
    fd = syscalls.open_beneath("/".join(place.parts) or ".", os.O_RDONLY | _FOLDER, place.root.fd)
    return None if fd is None else Folder(fd, place)


class _Walk(Generic[P]):
    """One way down, link by link."""

    def __init__(self, place: P) -> None:
        self.place = place
        self.root = place.root
        self.todo = list(reversed(place.parts))
        self.trail: list[tuple[str, int]] = []  # names below the root and their descriptors
        self.links = 0

    @property
    def here(self) -> int:
        return self.trail[-1][1] if self.trail else self.root.fd

    def to_end(self, follow: bool) -> Spot[P]:
        try:
            name = "."
            while self.todo:
                name = self.step(follow)
            folder = self.place.at(self.root, tuple(above for above, _ in self.trail))
            if name != ".":
                self.place.at(self.root, (*folder.parts, name))
            return Spot(Folder(os.open(".", _PASS | _FOLDER, dir_fd=self.here), folder, can_list=False), name)
        finally:
            self.forget(0)

    def step(self, follow: bool) -> str:
        """Take one name off the way; the name itself when it is the last and stays, else `.`."""
        part = self.todo.pop()
        if part == "..":
            if self.trail:
                self.forget(len(self.trail) - 1)
            else:
                self.jump("/".join((os.path.dirname(self.root.real), *reversed(self.todo))))
            return "."
        part = _spelled(self.here, part)
        if not self.todo:
            if follow and (target := self.link(part)) is not None:
                self.follow(target)
                return "."
            return part
        try:
            self.trail.append((part, os.open(part, _PASS | _FOLDER, dir_fd=self.here)))
        except OSError as error:
            target = self.link(part) if error.errno in _IS_LINK else None
            if target is None:
                raise
            self.follow(target)
        return "."

    def link(self, name: str) -> str | None:
        try:
            return os.readlink(name, dir_fd=self.here)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.EINVAL:  # not a link
                return None
            raise

    def follow(self, target: str) -> None:
        self.links += 1
        if self.links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.startswith("/"):
            self.jump("/".join((target, *reversed(self.todo))))
        else:
            self.todo.extend(part for part in reversed(target.split("/")) if part not in ("", "."))

    def jump(self, absolute: str) -> None:
        """Go on at an absolute path, from the served folder it lies beneath."""
        located = self.place.policy.locate(absolute)
        if located is None:
            raise Refused(f"{quote(self.place.display)} leads outside the served folders through a link.")
        self.forget(0)
        self.root, parts = located
        self.todo = list(reversed(parts))

    def forget(self, depth: int) -> None:
        while len(self.trail) > depth:
            os.close(self.trail.pop()[1])


def _spelled(dir_fd: int, name: str) -> str:
    """The one existing name that reads like `name`, else `name`.

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
        wanted = fold_name(name)
    else:
        return name
    try:
        fd = os.open(".", os.O_RDONLY | _FOLDER, dir_fd=dir_fd)
    except PermissionError:
        return name
    try:
        alike = [other for other in os.listdir(fd) if fold_name(other) == wanted]
    finally:
        os.close(fd)
    if len(alike) > 1:
        raise Conflict(f"{len(alike)} names read like {quote(name)} and none is exactly that.", "Use the URI.")
    return alike[0] if alike else name
