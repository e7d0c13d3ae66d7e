"""Files beside the database: each directly in the folder for files, none replaced, none read through a link.

This module imports nothing of the common package, so that a process that has to stay small can import it alone.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import BinaryIO

__all__ = ["Fails", "new_file", "served_file"]

_NEW_MEANS_NEW = sys.platform != "win32"
"""Whether O_EXCL refuses a link that leads to nothing, as POSIX asks; Windows makes the file it leads to."""
_OWN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)

_COMPARED, _LISTED = 5000, 20
"""Names of a folder that are looked at and told where one is not there."""
Fails = Callable[[str, str, str], Exception]
"""Makes the exception for a kind of `Problem` in snake case, what failed, and the next move."""


@contextmanager
def served_file(folder: str, name: str, fails: Fails, reason: Callable[[OSError], str]) -> Generator[BinaryIO]:
    """The file `name` directly in `folder`, to be read."""
    path, shown = os.path.join(folder, name), _shown(name)
    try:
        descriptor = os.open(path, os.O_RDONLY | _OWN | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise fails("not_found", f"{shown} can't be read: {reason(error)}.", _near(folder, name)) from None
    with open(descriptor, "rb") as raw:
        found = os.fstat(raw.fileno())
        # Windows has no O_NOFOLLOW: there what was opened must be what the name itself stands for.
        if sys.platform == "win32" and not os.path.samestat(found, os.lstat(path)):
            raise fails("refused", f"{shown} is a link.", "Name a file of the folder itself.")
        if not stat.S_ISREG(found.st_mode):
            raise fails("refused", f"{shown} is no regular file.", "Name a file of records.")
        yield raw


@contextmanager
def new_file(folder: str, name: str, fails: Fails, reason: Callable[[OSError], str]) -> Generator[BinaryIO]:
    """A new file directly in `folder`, taken away again when the block fails; nothing that exists is opened."""
    path = made = os.path.join(folder, name)
    shown = _shown(name)
    taken = fails("conflict", f"{shown} exists already.", "Choose another name.")
    if not _NEW_MEANS_NEW:
        made = os.path.join(folder, f".{secrets.token_hex(8)}.tmp")
    try:
        if os.path.lexists(path):
            raise taken
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OWN, 0o666)
    except FileExistsError:
        raise taken from None
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
            raise taken from None
        if isinstance(error, OSError) and not isinstance(error, TimeoutError):
            raise fails("unavailable", f"{shown} can't be written: {reason(error)}.", "Nothing was kept.") from None
        raise


def _near(folder: str, name: str) -> str:
    """The next move where `name` is no file of `folder`: those most like it, else the first there are."""
    import difflib

    try:
        with os.scandir(folder) as found:
            names = sorted(one.name for one in found if one.name[0] != "." and one.is_file(follow_symlinks=False))
    except OSError:
        names = [name]
    if name in names:  # It is there, and can't be opened.
        return "Name another file of the folder."
    if close := difflib.get_close_matches(name, names[:_COMPARED], n=3):
        return f"Did you mean {' or '.join(map(_shown, close))}?"
    more = ", ..." if len(names) > _LISTED else ""
    return f"There are: {', '.join(map(_shown, names[:_LISTED]))}{more}." if names else "The folder has no files."


def _shown(name: str) -> str:
    return f"`{' '.join(name.splitlines())}`"
