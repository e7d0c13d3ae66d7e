"""From places to handles: the one path from a trusted place to the kernel, and from its errors to ours.

Everything that touches files goes through `resolve` or what stands on it here. The handle that was opened is
the handle that is used; no path is looked up twice, so nothing can be swapped in between.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import BinaryIO, TypeVar, cast

from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, Refused, TooLarge, Unavailable, quote, reason
from mcp_fs.engine.handles.suggestions import advice, below_file
from mcp_fs.policy import Readable, Root, Writable

if sys.platform == "win32":
    from mcp_fs.engine.handles import windows as _platform
    from mcp_fs.engine.handles.windows import Folder, Spot
else:
    from mcp_fs.engine.handles import posix as _platform
    from mcp_fs.engine.handles.posix import Folder, Spot

__all__ = [
    "Folder",
    "Spot",
    "is_held_open",
    "not_a_file",
    "open_file",
    "open_folder",
    "open_regular",
    "open_tree",
    "problem",
    "read_link",
    "resolve",
    "spelled_names",
    "status",
    "told",
]

P = TypeVar("P", bound=Readable)

# Neither waits for a writer of a FIFO nor takes a terminal; fstat then tells what was opened.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_IN_USE = (32, 33)  # ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
}


@contextmanager
def resolve(place: P, *, follow: bool = True, lists: bool = False) -> Generator[Spot[P]]:
    """The spot of `place`, an open folder and one name in it; the name need not exist.

    An `OSError` raised in the body is told as a `Problem` with this place.

    Args:
        follow: whether a link in the last name is followed; those before it always are.
        lists: whether to open the folder for listing, where that is allowed.

    Raises:
        Refused: a link leads outside the served folders, to a protected secret, or for a place to be written to what
            belongs to a repository itself.
        NotFound: a folder on the way does not exist.
    """
    _refuse_replaced(place.root)
    try:
        spot = _platform.resolve(place, follow=follow, lists=lists)
        try:
            if isinstance(place, Writable) and spot.name != ".":
                place.policy.check_folders(spot.place)
            yield spot
        finally:
            spot.folder.close()
    except OSError as error:
        raise problem(error, place) from error


def _refuse_replaced(root: Root) -> None:
    """Raise for a served folder that was moved, removed or replaced: neither it nor what stands there now is meant."""
    try:
        now = os.stat(root.real)
    except FileNotFoundError:
        now = None
    except OSError:
        return
    if now is None or ((now.st_dev, now.st_ino) != root.identity and not root.serve_again()):
        raise Unavailable(
            f"The served folder {quote(root.name)} was moved, removed or replaced since the server started.",
            "The operator can restart the server, which then serves what is there now.",
        )


def open_file(place: Readable) -> BinaryIO:
    """The regular file at `place`, open for reading, unbuffered; links are followed beneath the served folders.

    Raises:
        NotFound: there is none.
        Refused: it is a folder, a pipe, a socket or a device; none of them is waited for.
    """
    with resolve(place) as spot:
        return open_regular(spot.folder, spot.name, place)


def open_regular(folder: Folder[P], name: str, shown: Readable | None = None) -> BinaryIO:
    """The regular file `name` of an open folder, as `open_file`; `name` may not be a link.

    Args:
        shown: how the caller knows it, for messages.

    Raises:
        OSError: it can't be opened.
    """
    place = shown or folder.place / name
    fd = folder.open(name, _READ)
    try:
        kind = stat.S_IFMT(os.fstat(fd).st_mode)
        if kind != stat.S_IFREG:
            raise not_a_file(place, kind)
        return os.fdopen(fd, "rb", buffering=0)
    except BaseException:
        os.close(fd)
        raise


def open_folder(place: P) -> Folder[P]:
    """The folder at `place`, open for listing; close it (`with`)."""
    _refuse_replaced(place.root)
    if (folder := _platform.folder_at(place)) is not None:
        return folder
    with resolve(place) as spot:
        return spot.folder.folder(spot.name)


def open_tree(folder: Folder[P], name: str) -> Folder[P]:
    """The folder `name` in `folder`, to be gone through for a copy, a move or a deletion of all that is in it."""
    opened = folder.folder(name)
    if isinstance(opened.place, Writable):
        opened.place = cast("P", opened.place.as_tree())  # what may be written may be gone through
    return opened


def status(place: Readable, *, follow: bool = True) -> os.stat_result:
    """What stat(2) says of `place`, or lstat(2)."""
    with resolve(place, follow=follow) as spot:
        found = spot.folder.stat(spot.name)
        if follow and stat.S_ISLNK(found.st_mode):  # put there since the way was resolved
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return found


def read_link(place: Readable) -> str:
    """The text of the link at `place`."""
    with resolve(place, follow=False) as spot:
        return spot.folder.read_link(spot.name)


def spelled_names(place: Readable) -> tuple[str, ...]:
    """The names down to `place` as the file system has them, links not followed: what its events name."""
    names: tuple[str, ...] = ()
    for name in place.parts:
        try:
            with resolve(place.at(place.root, (*names, name)), follow=False) as spot:
                names = (*names, name if spot.name == "." else spot.name)
        except Problem:
            names = (*names, name)
    return names


def not_a_file(place: Readable, kind: int) -> Problem:
    """The refusal for a place of the file type `kind` (as `stat.S_IFMT`) where a regular file is needed."""
    fix = "Use `list_directory` to see what is in it." if kind == stat.S_IFDIR else "Only regular files are served."
    return Refused(f"{quote(place.display)} is {_KINDS.get(kind, 'no regular file')}, not a file.", fix)


@contextmanager
def told(place: Readable) -> Generator[None]:
    """Turn an `OSError` of the body into a `Problem` about `place`, without the kernel's paths."""
    try:
        yield
    except OSError as error:
        raise problem(error, place) from error


def is_held_open(error: OSError) -> bool:
    """Whether Windows said that another program has open what `error` is about."""
    return getattr(error, "winerror", 0) in _IN_USE


def problem(error: OSError, place: Readable, outcome: str = "") -> Problem:
    """What an `OSError` about `place` means to a caller.

    Args:
        outcome: what it left behind, a few words; for changes that failed.
    """
    shown = quote(place.display)
    end = f"; {outcome}." if outcome else "."
    if is_held_open(error):
        return Conflict(f"Another program has {shown} open{end}", "Close it there, then try again.")
    match error.errno:
        case errno.ENOENT:
            return NotFound(f"{shown} does not exist{end}", advice(place))
        case errno.ENOTDIR:
            return NotFound(f"{shown} is not a folder, or lies below a file{end}", below_file(place))
        case errno.EISDIR:
            return not_a_file(place, stat.S_IFDIR)
        case errno.EEXIST:
            return Conflict(f"{shown} exists already{end}", "Choose another name.")
        case errno.ENOTEMPTY:
            return Conflict(f"{shown} is a folder that is not empty{end}", "Choose another name.")
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return Refused(f"The operating system does not allow this on {shown}: {reason(error)}{end}")
        case errno.ENXIO | errno.ENODEV | errno.EOPNOTSUPP:
            return Refused(f"{shown} is a pipe, a socket or a device{end}", "Only regular files are served.")
        case errno.ELOOP | errno.EMLINK:
            return Invalid(f"{shown} runs through too many links, or is being changed now{end}")
        case errno.ENAMETOOLONG:
            return Invalid(f"{shown} is too long a name{end}", "Most file systems take 255 bytes a name.")
        case errno.EILSEQ | errno.EINVAL:
            return Invalid(f"{shown} is not a name this file system can hold{end}", advice(place))
        case errno.ENOSPC | errno.EDQUOT:
            return TooLarge(f"There is no space left for {shown}{end}", "Free some space first.")
        case errno.EFBIG:
            return TooLarge(f"{shown} would be larger than the file system allows{end}")
        case errno.EMFILE | errno.ENFILE:
            return Unavailable(f"Too many files are open just now{end}", "Try again shortly.")
        case _:
            return Unavailable(f"{shown} failed: {reason(error)}{end}")
