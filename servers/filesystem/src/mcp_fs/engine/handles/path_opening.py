"""From paths to handles: the one way from a trusted path to the kernel, and from its errors to ours.

Everything that touches files goes through `resolve` or what stands on it here. The handle that was opened is
the handle that is used; no path is looked up twice, so nothing can be swapped in between.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, TypeVar, cast

from mcp_batteries.errors import (
    Conflict,
    Invalid,
    NotFound,
    Problem,
    Refused,
    TooLarge,
    Unavailable,
    describe_os_error,
    quote,
)
from mcp_fs.engine.handles.suggestions import is_in_archive, suggest_below_file, suggest_next_move
from mcp_fs.policy import ReadablePath, Root, WritablePath

if sys.platform == "win32":
    from mcp_fs.engine.handles import windows as _platform
    from mcp_fs.engine.handles.windows import Folder, ResolvedPath
else:
    from mcp_fs.engine.handles import posix as _platform
    from mcp_fs.engine.handles.posix import Folder, ResolvedPath

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = [
    "Folder",
    "ResolvedPath",
    "describe_cause",
    "exists",
    "is_held_open",
    "list_readable_names",
    "not_a_file_error",
    "open_descriptor",
    "open_file",
    "open_folder",
    "open_regular",
    "open_tree",
    "read_link",
    "read_status",
    "refuse_archived",
    "resolve",
    "spell_names",
    "to_problem",
    "translate_errors",
]

P = TypeVar("P", bound=ReadablePath)

# Neither waits for a writer of a FIFO nor takes a terminal; fstat then tells what was opened.
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_IN_USE_ERRORS = (32, 33)  # ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What an error of the kernel means to a caller, whatever the path.

    Attributes:
        failure: a sentence without its end, with `{}` for the path.
    """

    problem_type: type[Problem]
    failure: str
    fix: str = ""


_SPECIAL_FILE = _Meaning(Refused, "{} is a pipe, a socket or a device", "Only regular files are served.")
_LINK_LOOP = _Meaning(Invalid, "{} runs through too many links, or is being changed now")
_NO_SPACE = _Meaning(TooLarge, "There is no space left for {}", "Free some space first.")
_TOO_MANY_OPEN = _Meaning(Unavailable, "Too many files are open just now", "Try again in a moment.")
_MEANINGS: Mapping[int | None, _Meaning] = {
    errno.EEXIST: _Meaning(Conflict, "{} exists already", "Choose another name."),
    errno.ENOTEMPTY: _Meaning(Conflict, "{} is a folder that is not empty", "Choose another name."),
    errno.ENXIO: _SPECIAL_FILE,
    errno.ENODEV: _SPECIAL_FILE,
    errno.EOPNOTSUPP: _SPECIAL_FILE,
    errno.ELOOP: _LINK_LOOP,
    errno.EMLINK: _LINK_LOOP,
    errno.ENAMETOOLONG: _Meaning(Invalid, "{} is too long a name", "Most file systems take 255 bytes a name."),
    errno.ENOSPC: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
    errno.EFBIG: _Meaning(TooLarge, "{} would be larger than the file system allows"),
    errno.EMFILE: _TOO_MANY_OPEN,
    errno.ENFILE: _TOO_MANY_OPEN,
}
_KIND_NAMES = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
}


@contextmanager
def resolve(path: P, *, follow: bool = True, for_listing: bool = False) -> Generator[ResolvedPath[P]]:
    """Resolve `path` to an open folder and one name in it, which need not exist.

    An `OSError` raised in the body is told as a `Problem` with this path.

    Args:
        follow: whether a link in the last name is followed; those before it always are.
        for_listing: whether to open the folder for listing, where that is allowed.

    Raises:
        Refused: a link leads outside the served folders, to a protected secret, or for a path to be written to what
            belongs to a repository itself.
        NotFound: a folder on the way does not exist.
    """
    _refuse_replaced_root(path.root)
    try:
        resolved = _platform.resolve(path, follow=follow, for_listing=for_listing)
        try:
            if isinstance(path, WritablePath) and resolved.name != ".":
                path.policy.check_folders(resolved.path)
            yield resolved
        finally:
            resolved.folder.close()
    except OSError as error:
        raise to_problem(error, path) from error


def _refuse_replaced_root(root: Root) -> None:
    """Raise for a served folder that was moved, removed or replaced: neither it nor what stands there now is meant."""
    try:
        status = os.stat(root.real_path)
    except FileNotFoundError:
        status = None
    except OSError:
        return
    if status is None or ((status.st_dev, status.st_ino) != root.identity and not root.reopen_if_replaced()):
        raise Unavailable(
            f"The served folder {quote(root.name)} was moved, removed or replaced since the server started.",
            "The operator can restart the server, which then serves what is there now.",
        )


def open_file(path: ReadablePath) -> BinaryIO:
    """Open the regular file at `path` for reading, unbuffered; links are followed beneath the served folders.

    Raises:
        NotFound: there is none.
        Refused: it is a folder, a pipe, a socket or a device; none of them is waited for.
    """
    with resolve(path) as resolved:
        return open_regular(resolved.folder, resolved.name, path)


def open_regular(folder: Folder[P], name: str, display_path: ReadablePath | None = None) -> BinaryIO:
    """Open the regular file `name` of an open folder, as `open_file`; `name` may not be a link.

    Args:
        display_path: how the caller knows it, for messages.

    Raises:
        OSError: it can't be opened.
    """
    path = display_path or folder.path / name
    fd = folder.open(name, _READ_FLAGS)
    try:
        kind = stat.S_IFMT(os.fstat(fd).st_mode)
        if kind != stat.S_IFREG:
            raise not_a_file_error(path, kind)
        return open_descriptor(fd, path)
    except BaseException:
        os.close(fd)
        raise


def open_descriptor(fd: int, path: ReadablePath, *, closes: bool = True) -> BinaryIO:
    """Return the regular file behind a descriptor, unbuffered.

    Args:
        path: how the caller knows it, for messages.
        closes: whether the descriptor is closed with it.
    """
    return cast("BinaryIO", _RegularFile(fd, path, closes=closes))


class _RegularFile(io.FileIO):
    """A file open for reading: a read is short only at its end, and names the path when the disk or network fails."""

    def __init__(self, fd: int, path: ReadablePath, *, closes: bool) -> None:
        super().__init__(fd, "rb", closefd=closes)
        self._path = path

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            return self.readall()
        blocks: list[bytes] = []
        missing_bytes = size
        while missing_bytes:
            block = self._read_block(missing_bytes)
            if not block:
                break
            blocks.append(block)
            missing_bytes -= len(block)
        return b"".join(blocks)

    def _read_block(self, size: int) -> bytes | None:
        try:
            return super().read(size)
        except OSError as error:
            raise to_problem(error, self._path) from error

    def readall(self) -> bytes:
        try:
            return super().readall()
        except OSError as error:
            raise to_problem(error, self._path) from error

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        try:
            return super().readinto(buffer)
        except OSError as error:
            raise to_problem(error, self._path) from error


def open_folder(path: P) -> Folder[P]:
    """Open the folder at `path` for listing; close it (`with`)."""
    _refuse_replaced_root(path.root)
    if (folder := _platform.open_folder_directly(path)) is not None:
        return folder
    with resolve(path) as resolved:
        return resolved.folder.open_folder(resolved.name)


def open_tree(folder: Folder[P], name: str) -> Folder[P]:
    """Open the folder `name` in `folder` for a copy, a move or a deletion of all that is in it."""
    tree = folder.open_folder(name)
    if isinstance(tree.path, WritablePath):
        tree.path = cast("P", tree.path.as_tree())  # what may be written may be gone through
    return tree


def read_status(path: ReadablePath, *, follow: bool = True) -> os.stat_result:
    """Return what stat(2) says of `path`, or lstat(2)."""
    with resolve(path, follow=follow) as resolved:
        status = resolved.folder.stat(resolved.name)
        if follow and stat.S_ISLNK(status.st_mode):  # put there since the way was resolved
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return status


def exists(path: ReadablePath, *, follow: bool = True) -> bool:
    """Return whether there is anything at `path` that can be reached; without `follow`, be it a link to nowhere."""
    try:
        read_status(path, follow=follow)
    except Problem:
        return False
    return True


def read_link(path: ReadablePath) -> str:
    """Return the text of the link at `path`."""
    with resolve(path, follow=False) as resolved:
        return resolved.folder.read_link(resolved.name)


def spell_names(path: ReadablePath) -> tuple[str, ...]:
    """Return the names down to `path` as the file system and its events have them, links not followed."""
    names: tuple[str, ...] = ()
    for name in path.parts:
        try:
            with resolve(path.at(path.root, (*names, name)), follow=False) as resolved:
                names = (*names, name if resolved.name == "." else resolved.name)
        except Problem:
            names = (*names, name)
    return names


def list_readable_names(path: ReadablePath) -> list[str] | None:
    """List what the folder `path` holds and may be read; None when it is not a folder that can be listed."""
    try:
        resolved = _platform.resolve(path)
        with resolved.folder, resolved.folder.open_folder(resolved.name) as folder:
            return [name for name in folder.list_names() if not path.policy.is_protected((*folder.path.parts, name))]
    except (OSError, Problem):
        return None


def refuse_archived(path: WritablePath) -> None:
    """Check that what is to be changed is not in an archive.

    Raises:
        Refused: it is.
    """
    if is_in_archive(path, list_readable_names):
        raise Refused(
            f"{quote(path.display)} means what is in an archive, which can't be changed.",
            "Unpack it with `copy_file`, source `a.zip!/`, or choose a path beside it.",
        )


def not_a_file_error(path: ReadablePath, kind: int) -> Problem:
    """Build the refusal of what has the file type `kind` (as `stat.S_IFMT`) where a regular file is needed."""
    fix = "Use `list_directory` to see what is in it." if kind == stat.S_IFDIR else "Only regular files are served."
    return Refused(f"{quote(path.display)} is {_KIND_NAMES.get(kind, 'no regular file')}, not a file.", fix)


@contextmanager
def translate_errors(path: ReadablePath, outcome: str = "") -> Generator[None]:
    """Turn an `OSError` of the body into a `Problem` about `path`, without the kernel's paths.

    Args:
        outcome: as for `to_problem`.
    """
    try:
        yield
    except OSError as error:
        raise to_problem(error, path, outcome) from error


def is_held_open(error: OSError) -> bool:
    """Whether Windows said that another program has open what `error` is about."""
    return getattr(error, "winerror", 0) in _IN_USE_ERRORS


def describe_cause(problem: Problem) -> str:
    """Return what the system said of an entry, without its path, which several can share; empty if it said nothing."""
    if isinstance(problem.__cause__, OSError):
        return describe_os_error(problem.__cause__).lower()
    return ""


def to_problem(error: OSError, path: ReadablePath, outcome: str = "") -> Problem:
    """Translate an `OSError` about `path` to what it means to a caller.

    Args:
        outcome: what it left behind, a few words; for changes that failed.
    """
    label = quote(path.display)
    ending = f"; {outcome}." if outcome else "."
    if is_held_open(error):
        return Conflict(f"Another program has {label} open{ending}", "Close it there, then try again.")
    match error.errno:
        case errno.ENOENT:
            return NotFound(f"{label} does not exist{ending}", suggest_next_move(path, list_readable_names))
        case errno.ENOTDIR:
            return NotFound(
                f"{label} is not a folder, or lies below a file{ending}", suggest_below_file(path, list_readable_names)
            )
        case errno.EISDIR:
            return not_a_file_error(path, stat.S_IFDIR)
        case errno.EILSEQ | errno.EINVAL:
            return Invalid(
                f"{label} is not a name this file system can hold{ending}", suggest_next_move(path, list_readable_names)
            )
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return Refused(f"The operating system does not allow this on {label}: {describe_os_error(error)}{ending}")
        case number:
            meaning = _MEANINGS.get(number)
    if meaning is None:
        return Unavailable(f"{label} failed: {describe_os_error(error)}{ending}")
    return meaning.problem_type(meaning.failure.format(label) + ending, meaning.fix)
