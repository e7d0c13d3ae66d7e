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

__all__ = [
    "READ_FILE_SUFFIXES",
    "ROW_FILE_SUFFIXES",
    "Fails",
    "create_file",
    "is_relative_path",
    "list_files",
    "open_served_file",
    "to_posix_path",
]

# Rows are copied to files with these endings.
ROW_FILE_SUFFIXES = (".csv", ".jsonl", ".parquet")
# Rows are read from files with these.
READ_FILE_SUFFIXES = (*ROW_FILE_SUFFIXES, ".json", ".tsv")
_WINDOWS = sys.platform == "win32"
# Tells whether O_EXCL refuses a link that leads to nothing, as POSIX requires; Windows creates the file behind it.
_EXCLUSIVE_REFUSES_LINKS = sys.platform != "win32"
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)

_PATH = re.compile(r"(?:[^/\\:\0.][^/\\:\0]*/)*[^/\\:\0.][^/\\:\0]*")
_MAX_NAME_CHARACTERS = 500
# If a name is not there, so many names are compared with it, and so many are listed.
_MAX_COMPARED_NAMES = 5000
_MAX_LISTED_NAMES = 20
_MAX_SUBFOLDERS = 500
# Makes the exception for a kind of `Problem` (in snake case) from what failed and the next move.
Fails = Callable[[str, str, str], Exception]


def to_posix_path(name: str) -> str:
    """Return the `name` of a file with `/` between its parts: Windows takes a backslash, too."""
    if _WINDOWS:
        return name.replace("\\", "/")
    return name


def is_relative_path(name: str) -> bool:
    """Return whether a file can have this name: parts separated by `/`, none with a leading dot."""
    return bool(_PATH.fullmatch(name)) and len(name) <= _MAX_NAME_CHARACTERS


@contextmanager
def open_served_file(folder: str, name: str, fails: Fails, reason: Callable[[OSError], str]) -> Generator[BinaryIO]:
    """Open the file `name` in `folder` or below it for reading."""
    path = os.path.join(folder, *name.split("/"))
    quoted_name = _quote(name)
    try:
        descriptor = _open(folder, name)
    except OSError as error:
        raise fails(
            "not_found", f"{quoted_name} can't be read: {reason(error)}.", _suggest_names(folder, name)
        ) from None
    with open(descriptor, "rb") as raw:
        status = os.fstat(raw.fileno())
        # Windows has no O_NOFOLLOW: there the opened file must be what the name itself means.
        if sys.platform == "win32" and not os.path.samestat(status, os.lstat(path)):
            raise fails("refused", f"{quoted_name} is a link.", "Name a file of the folder itself.")
        if not stat.S_ISREG(status.st_mode):
            raise fails("refused", f"{quoted_name} is not a regular file.", "Name a file of records.")
        yield raw


def _open(folder: str, name: str) -> int:
    """Open a file whose path contains no link.

    Raises:
        OSError: it can't be opened.
    """
    flags = os.O_RDONLY | _NO_LINKS | getattr(os, "O_NONBLOCK", 0)
    *folders, last = name.split("/")
    if os.open not in os.supports_dir_fd:
        real = os.path.join(folder, *folders)
        if os.path.normcase(os.path.realpath(real)) != os.path.normcase(real):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return os.open(os.path.join(real, last), flags)
    folder_descriptor: int | None = None
    try:
        for name_part in folders:
            path = name_part if folder_descriptor is not None else os.path.join(folder, name_part)
            descriptor = os.open(path, os.O_RDONLY | _NO_LINKS | os.O_DIRECTORY, dir_fd=folder_descriptor)
            if folder_descriptor is not None:
                os.close(folder_descriptor)
            folder_descriptor = descriptor
        path = last if folder_descriptor is not None else os.path.join(folder, last)
        return os.open(path, flags, dir_fd=folder_descriptor)
    finally:
        if folder_descriptor is not None:
            os.close(folder_descriptor)


@contextmanager
def create_file(folder: str, name: str, fails: Fails, reason: Callable[[OSError], str]) -> Generator[BinaryIO]:
    """Create a file directly in `folder`, and remove it if the block fails; existing files are never opened."""
    path = os.path.join(folder, name)
    temporary_path = path
    quoted_name = _quote(name)

    def exists_already() -> Exception:
        return fails("conflict", f"{quoted_name} exists already.", "Choose another name.")

    if not _EXCLUSIVE_REFUSES_LINKS:
        temporary_path = os.path.join(folder, f".{secrets.token_hex(8)}.tmp")
    try:
        if os.path.lexists(path):
            raise exists_already()
        descriptor = os.open(temporary_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINKS, 0o666)
    except FileExistsError:
        raise exists_already() from None
    except OSError as error:
        raise fails("refused", f"{quoted_name} can't be created: {reason(error)}.", "Choose another name.") from None
    try:
        with open(descriptor, "wb") as file:
            yield file
        if temporary_path != path:
            os.rename(temporary_path, path)  # where it replaces nothing
    except BaseException as error:
        os.unlink(temporary_path)
        if isinstance(error, FileExistsError):
            raise exists_already() from None
        if isinstance(error, OSError) and not isinstance(error, TimeoutError):
            raise fails(
                "unavailable", f"{quoted_name} can't be written: {reason(error)}.", "Nothing was kept."
            ) from None
        raise


def _suggest_names(folder: str, name: str) -> str:
    """Return the next move if `folder` has no file `name`: the most similar names, otherwise the first ones."""
    import difflib

    names = list_files(folder)
    if name in names:  # It is there, and can't be opened.
        return "Name another file of the folder."
    last = name.rpartition("/")[2]
    similar = [other for other in names if other.rpartition("/")[2] == last][:3]
    if not similar:
        similar = difflib.get_close_matches(name, names, n=3)
    if similar:
        return f"Did you mean {' or '.join(map(_quote, similar))}?"
    if not names:
        return "The folder has no files."
    ending = os.path.splitext(name)[1].lower()
    names = [other for other in names if other.lower().endswith(ending)] or names
    more = ", ..." if len(names) > _MAX_LISTED_NAMES else ""
    return f"There are: {', '.join(map(_quote, names[:_MAX_LISTED_NAMES]))}{more}."


def list_files(folder: str) -> list[str]:
    """Return files of `folder` and below it, those of the upper folders first."""
    names: list[str] = []
    prefixes = [""]
    for prefix in prefixes:
        try:
            with os.scandir(os.path.join(folder, prefix)) as scan:
                entries = sorted(
                    (entry for entry in scan if is_relative_path(entry.name)), key=lambda entry: entry.name
                )
        except OSError:
            continue
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                names.append(prefix + entry.name)
            elif entry.is_dir(follow_symlinks=False):
                prefixes.append(f"{prefix}{entry.name}/")
        if len(names) >= _MAX_COMPARED_NAMES or len(prefixes) > _MAX_SUBFOLDERS:
            break
    return names[:_MAX_COMPARED_NAMES]


def _quote(name: str) -> str:
    return f"`{' '.join(name.splitlines())}`"
