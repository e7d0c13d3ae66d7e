"""Files beside the database: new ones directly in the folder for files; none is replaced or read through a link.

This module imports nothing of the common package, so that a small process can import it alone.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import BinaryIO

__all__ = ["Fails", "as_path", "is_path", "new_file", "served_file"]

_WINDOWS = sys.platform == "win32"
# Tells whether O_EXCL refuses a link that leads to nothing, as POSIX requires; Windows creates the file behind it.
_NEW_MEANS_NEW = sys.platform != "win32"
_OWN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)

_PATH = re.compile(r"(?:[^/\\:\0.][^/\\:\0]*/)*[^/\\:\0.][^/\\:\0]*")
_LONGEST = 500
_COMPARED = 5000
_LISTED = 20
"""Names in a folder that are looked at and told where one is not there."""
_SUBFOLDERS = 500
# Makes the exception for a kind of `Problem` (in snake case) from what failed and the next move.
Fails = Callable[[str, str, str], Exception]


def as_path(name: str) -> str:
    """The `name` of a file below the folder for files, with `/` between its parts: Windows takes a backslash, too."""
    return name.replace("\\", "/") if _WINDOWS else name


def is_path(name: str) -> bool:
    """Whether a file below the folder for files can have this name: parts separated by `/`, none with a leading dot."""
    return bool(_PATH.fullmatch(name)) and len(name) <= _LONGEST


@contextmanager
def served_file(folder: str, name: str, fails: Fails, reason: Callable[[OSError], str]) -> Generator[BinaryIO]:
    """Open the file `name` in `folder` or below it for reading."""
    path = os.path.join(folder, *name.split("/"))
    shown = _shown(name)
    try:
        descriptor = _open(folder, name)
    except OSError as error:
        raise fails("not_found", f"{shown} can't be read: {reason(error)}.", _near(folder, name)) from None
    with open(descriptor, "rb") as raw:
        found = os.fstat(raw.fileno())
        # Windows has no O_NOFOLLOW: there the opened file must be what the name itself means.
        if sys.platform == "win32" and not os.path.samestat(found, os.lstat(path)):
            raise fails("refused", f"{shown} is a link.", "Name a file of the folder itself.")
        if not stat.S_ISREG(found.st_mode):
            raise fails("refused", f"{shown} is not a regular file.", "Name a file of records.")
        yield raw


def _open(folder: str, name: str) -> int:
    """A descriptor of a file whose path contains no link.

    Raises:
        OSError: it can't be opened.
    """
    flags = os.O_RDONLY | _OWN | getattr(os, "O_NONBLOCK", 0)
    *above, last = name.split("/")
    if os.open not in os.supports_dir_fd:
        real = os.path.join(folder, *above)
        if os.path.normcase(os.path.realpath(real)) != os.path.normcase(real):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return os.open(os.path.join(real, last), flags)
    inside: int | None = None
    try:
        for part in above:
            path = part if inside is not None else os.path.join(folder, part)
            found = os.open(path, os.O_RDONLY | _OWN | os.O_DIRECTORY, dir_fd=inside)
            if inside is not None:
                os.close(inside)
            inside = found
        return os.open(last if inside is not None else os.path.join(folder, last), flags, dir_fd=inside)
    finally:
        if inside is not None:
            os.close(inside)


@contextmanager
def new_file(folder: str, name: str, fails: Fails, reason: Callable[[OSError], str]) -> Generator[BinaryIO]:
    """Create a file directly in `folder`, and remove it if the block fails; existing files are never opened."""
    path = made = os.path.join(folder, name)
    shown = _shown(name)

    def taken() -> Exception:
        return fails("conflict", f"{shown} exists already.", "Choose another name.")

    if not _NEW_MEANS_NEW:
        made = os.path.join(folder, f".{secrets.token_hex(8)}.tmp")
    try:
        if os.path.lexists(path):
            raise taken()
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OWN, 0o666)
    except FileExistsError:
        raise taken() from None
    except OSError as error:
        raise fails("refused", f"{shown} can't be created: {reason(error)}.", "Choose another name.") from None
    try:
        with open(descriptor, "wb") as file:
            yield file
        if made != path:
            os.rename(made, path)  # where it replaces nothing
    except BaseException as error:
        os.unlink(made)
        if isinstance(error, FileExistsError):
            raise taken() from None
        if isinstance(error, OSError) and not isinstance(error, TimeoutError):
            raise fails("unavailable", f"{shown} can't be written: {reason(error)}.", "Nothing was kept.") from None
        raise


def _near(folder: str, name: str) -> str:
    """The next move if `folder` has no file `name`: the most similar names, otherwise the first ones."""
    import difflib

    names = _names(folder)
    if name in names:  # It is there, and can't be opened.
        return "Name another file of the folder."
    last = name.rpartition("/")[2]
    same = [known for known in names if known.rpartition("/")[2] == last]
    if close := same[:3] or difflib.get_close_matches(name, names, n=3):
        return f"Did you mean {' or '.join(map(_shown, close))}?"
    ending = os.path.splitext(name)[1].lower()
    names = [known for known in names if known.lower().endswith(ending)] or names
    more = ", ..." if len(names) > _LISTED else ""
    return f"There are: {', '.join(map(_shown, names[:_LISTED]))}{more}." if names else "The folder has no files."


def _names(folder: str) -> list[str]:
    """Files of `folder` and below it, those of the upper folders first."""
    names: list[str] = []
    folders = [""]
    for above in folders:
        try:
            with os.scandir(os.path.join(folder, above)) as found:
                inside = sorted((one for one in found if is_path(one.name)), key=lambda one: one.name)
        except OSError:
            continue
        names += [above + one.name for one in inside if one.is_file(follow_symlinks=False)]
        folders += [f"{above}{one.name}/" for one in inside if one.is_dir(follow_symlinks=False)]
        if len(names) >= _COMPARED or len(folders) > _SUBFOLDERS:
            break
    return names[:_COMPARED]


def _shown(name: str) -> str:
    return f"`{' '.join(name.splitlines())}`"
