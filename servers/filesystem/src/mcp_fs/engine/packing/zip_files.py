"""Packs files and folders into a new zip archive: within limits, and nothing protected."""

from __future__ import annotations

import os
import stat
import time
import zipfile
from typing import IO, BinaryIO

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, Problem, TooLarge, quote
from mcp_batteries.progress import report_progress
from mcp_fs.engine.handles.named_entries import PackedEntry, Packing
from mcp_fs.engine.handles.path_opening import open_file, open_regular, read_status, translate_errors
from mcp_fs.engine.handles.temp_files import TEMPORARY_PREFIX
from mcp_fs.engine.listing.walk import FolderEntries, Skipped, WalkFilter, entry_display_path, walk
from mcp_fs.policy import ReadablePath, WritablePath

__all__ = ["ZipWriter"]

# What goes into one archive, so that it can be unpacked again.
MAX_BYTES = 4 << 30
MAX_ENTRIES = 100_000
_BLOCK_BYTES = 1 << 20
# Of a file of which the system does not say how long it is: with less, the entry needs no longer head.
_MAX_UNKNOWN_BYTES = 1 << 30
_EVERYTHING = WalkFilter(hidden=True, ignored=True)
# The years that a zip archive can tell.
_FIRST_TIME = (1980, 1, 1, 0, 0, 0)
_LAST_TIME = (2107, 12, 31, 23, 59, 58)
# How entries in an archive say that they are folders to DOS.
_DOS_FOLDER = 0x10


class ZipWriter:
    """Writes one archive.

    Args:
        archive: its path, links resolved: it is not packed into itself.

    Attributes:
        count: files in it.
        hidden_count: those of them that are hidden, or in a hidden folder.
    """

    def __init__(self, packing: Packing, archive: WritablePath, cancel: CancelToken) -> None:
        self.count = 0
        self.hidden_count = 0
        self._packing = packing
        self._archive = archive
        self._cancel = cancel
        self._skipped = Skipped()
        self._names: dict[str, None] = {}
        self._bytes = 0

    def write(self, fd: int) -> None:
        """Write the archive to an empty file.

        Raises:
            TooLarge: there is too much for one archive.
            Problem: a file can't be read.
        """
        with (
            os.fdopen(os.dup(fd), "wb") as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive,
        ):
            for entry in self._packing.entries:
                self._add(archive, entry)

    def top_names(self) -> list[str]:
        """Return the names at the top of the archive, those of folders with a slash."""
        names: list[str] = []
        for name in self._names:
            top, slash, _ = name.partition("/")
            names.append(top + slash)
        return list(dict.fromkeys(names))

    def notes(self) -> list[str]:
        """Return what was left out, one phrase a reason, the first few named."""
        return self._skipped.notes()

    def _add(self, archive: zipfile.ZipFile, entry: PackedEntry) -> None:
        if stat.S_ISDIR(read_status(entry.path).st_mode):
            for entries in walk(entry.path, _EVERYTHING, self._cancel, self._skipped):
                self._add_folder(archive, entries, (*entry.names, *entries.parts))
            return
        with open_file(entry.path) as file:
            self._add_file(archive, file, entry.path, entry.names or (entry.path.name,))

    def _add_folder(self, archive: zipfile.ZipFile, entries: FolderEntries, names: tuple[str, ...]) -> None:
        """Add a folder and the files directly in it."""
        if names:
            info = self._describe((*names, ""), read_status(entries.folder.path))
            if info is not None:
                info.external_attr |= _DOS_FOLDER
                archive.writestr(info, b"")
        for name in entries.files:
            if not name.startswith(TEMPORARY_PREFIX):
                self._add_file_of(archive, entries, name, (*names, name))

    def _add_file_of(self, archive: zipfile.ZipFile, entries: FolderEntries, name: str, names: tuple[str, ...]) -> None:
        folder = entries.folder
        display = entry_display_path(folder.path, name)
        if name in entries.links:
            self._skipped.add("links", display)
            return
        if name in entries.special_files:
            self._skipped.add("not files", display)
            return
        try:
            path = folder.path / name
        except Problem:
            self._skipped.add("protected", display)
            return
        if (path.root, path.parts) == (self._archive.root, self._archive.parts):
            return
        with translate_errors(path), open_regular(folder, name) as file:
            self._add_file(archive, file, path, names)

    def _add_file(self, archive: zipfile.ZipFile, file: BinaryIO, path: ReadablePath, names: tuple[str, ...]) -> None:
        status = os.fstat(file.fileno())
        info = self._describe(names, status)
        if info is None:
            return
        info.compress_type = zipfile.ZIP_DEFLATED
        info.file_size = status.st_size
        # What is added to a file meanwhile stays out of it; some systems say of every file that it is empty.
        with archive.open(info, "w") as target:
            self._copy(file, path, target, status.st_size or _MAX_UNKNOWN_BYTES)
        self.count += 1
        if any(name.startswith(".") for name in names):
            self.hidden_count += 1
        report_progress(self.count, None, f"{self.count:,} files")

    def _copy(self, file: BinaryIO, path: ReadablePath, target: IO[bytes], max_bytes: int) -> None:
        remaining_bytes = max_bytes
        while remaining_bytes:
            self._cancel.check()
            with translate_errors(path):
                block = file.read(min(_BLOCK_BYTES, remaining_bytes))
            if not block:
                return
            remaining_bytes -= len(block)
            self._bytes += len(block)
            if self._bytes > MAX_BYTES:
                raise self._too_large_error()
            target.write(block)

    def _describe(self, names: tuple[str, ...], status: os.stat_result) -> zipfile.ZipInfo | None:
        """Return what the archive says of an entry; None of one that can't be in it."""
        name = "/".join(names)
        if not name.isprintable() and _has_surrogates(name):
            self._skipped.add("names that are not text", name.encode("utf-8", "replace").decode())
            return None
        if name in self._names:
            raise Invalid(
                f"Two entries would be {quote(name)} in {quote(self._archive.display)}; nothing was packed.",
                "Give each a name of its own in the archive, such as `a.zip!/b/`.",
            )
        self._names[name] = None
        if len(self._names) > MAX_ENTRIES:
            raise self._too_large_error()
        info = zipfile.ZipInfo(name, _dos_time(status.st_mtime))
        info.external_attr = (status.st_mode & 0xFFFF) << 16
        return info

    def _too_large_error(self) -> TooLarge:
        return TooLarge(
            f"{quote(self._archive.display)} would hold more than {MAX_BYTES:,} bytes or {MAX_ENTRIES:,} entries; "
            "nothing was packed.",
            "Pack a part at a time.",
        )


def _has_surrogates(name: str) -> bool:
    """Return whether a name has bytes that are not UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return True
    return False


def _dos_time(seconds: float) -> tuple[int, int, int, int, int, int]:
    """Return a time as an archive has it, in the time zone of this machine."""
    try:
        moment = time.localtime(seconds)[:6]
    except (OSError, OverflowError, ValueError):
        return _FIRST_TIME
    return min(max(moment, _FIRST_TIME), _LAST_TIME)
