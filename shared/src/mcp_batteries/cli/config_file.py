"""Read a host's configuration file, and replace it in one step if it is still what was read."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mcp_batteries.errors import Unavailable, describe_os_error

__all__ = ["Changed", "ConfigFile", "NewFile", "give_to_owner", "make_folders"]

_BUSY_SECONDS = 1.0
# Some editors on Windows put this mark before a file in UTF-8; it stays there.
_MARK = "\ufeff"


class Changed(Exception):
    """Raised when a file is no longer what was read."""


@dataclass(frozen=True)
class ConfigFile:
    """A file as it was read.

    Attributes:
        path: without links; a link, as managers of dotfiles make it, stays one.
        contents: None if it is not there.
    """

    path: Path
    contents: bytes | None

    @classmethod
    def read(cls, path: Path) -> ConfigFile:
        """Read the file behind `path`.

        Raises:
            Unavailable: it is no file, or cannot be read.
        """
        path = Path(os.path.realpath(path))
        try:
            return cls(path, _contents(path))
        except OSError as error:
            raise Unavailable(
                f"{path} cannot be read: {describe_os_error(error)}.", "Mend the file, then try again."
            ) from None

    @property
    def mark(self) -> str:
        """The byte order mark, or nothing."""
        if (self.contents or b"").startswith(_MARK.encode()):
            return _MARK
        return ""

    @property
    def text(self) -> str:
        """What is in the file, without a byte order mark; empty if it is not there.

        Raises:
            Unavailable: it is not UTF-8.
        """
        try:
            return (self.contents or b"").decode("utf-8").removeprefix(_MARK)
        except UnicodeDecodeError as error:
            raise Unavailable(
                f"{self.path} cannot be read: {error}.", "Save the file as UTF-8, then try again."
            ) from None

    @contextmanager
    def stage(self, contents: bytes) -> Generator[NewFile]:
        """Write new contents beside the file, as they will stand in it; remove them if they are not committed.

        Raises:
            Unavailable: they cannot be written.
        """
        try:
            self._require_writable()
            make_folders(self.path.parent)
            new = NewFile(self, _write_beside(self.path, contents))
        except OSError as error:
            raise _not_written(self.path, error) from None
        try:
            yield new
        finally:
            with suppress(OSError):
                os.unlink(new.temporary)

    def remove(self) -> None:
        """Remove the file if it is still what was read.

        Raises:
            Changed: it is not.
            Unavailable: it cannot be removed.
        """
        try:
            self.require_unchanged()
            self.path.unlink()
        except OSError as error:
            raise _not_written(self.path, error) from None

    def require_unchanged(self) -> None:
        if _contents(self.path) != self.contents:
            raise Changed

    def _require_writable(self) -> None:
        # A folder that may be written would let its files be replaced all the same.
        if self.contents is None:
            return
        if not os.stat(self.path).st_mode & 0o222 or not os.access(self.path, os.W_OK):
            raise PermissionError(errno.EACCES, "it is read-only")


@dataclass(frozen=True)
class NewFile:
    """Contents that were written and are not yet in their place."""

    file: ConfigFile
    temporary: str

    def commit(self) -> None:
        """Put them in the place of the file if that is still what was read.

        Raises:
            Changed: it is not.
            Unavailable: they cannot be put there.
        """
        try:
            self.file.require_unchanged()
            _replace(self.temporary, self.file.path)
        except OSError as error:
            raise _not_written(self.file.path, error) from None


def _not_written(path: Path, error: OSError) -> Unavailable:
    return Unavailable(
        f"{path} cannot be written: {describe_os_error(error)}.", "See who may write it, then try again."
    )


def _contents(path: Path) -> bytes | None:
    # Without waiting for the other end of a named pipe, which may never come.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOCTTY", 0)
    try:
        _require_file(os.stat(path))
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        _require_file(os.fstat(descriptor))
        return file.read()


def _require_file(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is a pipe, a socket or a device, not a file")


def make_folders(folder: Path) -> None:
    """Make a folder with those above it, for the owner of the lowest one that is there."""
    missing: list[Path] = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for one in reversed(missing):
        with suppress(FileExistsError):
            one.mkdir()
            give_to_owner(one, os.stat(folder))


def give_to_owner(path: str | Path, like: os.stat_result) -> None:
    """Give a file that root made to the owner whose it would be."""
    if sys.platform == "win32":
        return
    status = os.stat(path)
    if status.st_uid != like.st_uid:
        os.chown(path, like.st_uid, like.st_gid)
    elif status.st_gid != like.st_gid:
        # Only members of a group can give it a file.
        with suppress(PermissionError):
            os.chown(path, -1, like.st_gid)


def _write_beside(path: Path, contents: bytes) -> str:
    """Write contents into a temporary file with the owner and mode of `path`; a new file is for its owner only."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            if path.exists():
                give_to_owner(temporary, os.stat(path))
                shutil.copystat(path, temporary)
            else:
                give_to_owner(temporary, os.stat(path.parent))
            file.write(contents)
            file.flush()
            os.fsync(descriptor)
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary


def _replace(temporary: str, path: Path) -> None:
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            os.replace(temporary, path)
            break
        except PermissionError:
            # On Windows it fails while the host has the file open.
            if sys.platform != "win32" or time.monotonic() > until:
                raise
        time.sleep(0.01)
    if sys.platform != "win32":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            # Some file systems cannot do this for a folder; the file is in its place all the same.
            with suppress(OSError):
                os.fsync(folder)
        finally:
            os.close(folder)
