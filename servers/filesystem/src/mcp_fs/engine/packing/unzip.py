"""Unpacks zip archives, which anybody may have made: nothing outside the folder, nothing protected, within limits."""

from __future__ import annotations

import errno
import os
import stat
import struct
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import BinaryIO

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, NotFound, Problem, TooLarge, describe_os_error, quote
from mcp_batteries.progress import report_progress
from mcp_fs.engine.handles.flushing import TreeFlush
from mcp_fs.engine.handles.path_opening import Folder
from mcp_fs.engine.handles.syscalls import write_all
from mcp_fs.engine.zip_names import decode_zip_names, find_names_encoding
from mcp_fs.models.formatting import escape_line_breaks
from mcp_fs.policy import WritablePath
from mcp_fs.repositories import COMPLETES_GIT_FOLDER, is_git_folder

__all__ = ["Archive", "open_archive"]

# What one archive may unpack to.
MAX_BYTES = 4 << 30
MAX_ENTRIES = 100_000
_MAX_DEPTH = 100
_MAX_NAMED = 5
_MAX_DIRECTORY_BYTES = 32 << 20
_BLOCK_BYTES = 1 << 20
_END_BYTES = 66_000
_END_MARK = b"PK\x05\x06"
_END64_MARK = b"PK\x06\x06"
# Whose memory has a bound, whatever the archive says.
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_MAX_LABEL_CHARACTERS = 120
# What a file system says of a name that it can't hold: too long, or not of its characters.
_NAME_ERRORS = (errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL)
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, struct.error)


@dataclass(frozen=True, slots=True)
class _Member:
    """What an archive holds.

    Attributes:
        label: its name as the archive has it.
        names: those of the folders to it, and its own.
    """

    label: str
    names: tuple[str, ...]
    info: zipfile.ZipInfo


@dataclass
class Archive:
    """An open archive, or a file or folder in it.

    Attributes:
        label: how the caller knows it.
        inner: names down to the file or folder; none for all.
        skipped: what was left out, with the reason.
    """

    label: str
    inner: tuple[str, ...]
    _file: zipfile.ZipFile
    _cancel: CancelToken
    skipped: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    _written_bytes: int = 0

    def is_file(self) -> bool:
        """Return whether one file is meant, and not a folder or all.

        Raises:
            NotFound: there is neither.
        """
        if not self.inner:
            return False
        members = self._members
        if any(member.names == self.inner and not member.info.is_dir() for member in members):
            return True
        if not any(member.names[: len(self.inner)] == self.inner for member in members):
            raise NotFound(f"{quote(self.label)} is not in the archive.", "Read the archive itself for its list.")
        return False

    def write_file(self, fd: int) -> None:
        """Write the one file that is meant to a descriptor."""
        member = next(member for member in self._members if member.names == self.inner and not member.info.is_dir())
        self._write(member, fd)

    def unpack(self, folder: Folder[WritablePath]) -> int:
        """Unpack into an empty folder that is open; return how many files there are."""
        members = [member for member in self._members if member.names[: len(self.inner)] == self.inner]
        depth = len(self.inner)
        repository_folders = _find_repositories([member.names for member in members])
        count = 0
        with ExitStack() as stack:
            flush = TreeFlush()
            open_folders = _OpenFolders(folder, stack, flush)
            for member in members:
                self._cancel.check()
                names = member.names[depth:]
                if not names:
                    continue
                if member.names[:-1] in repository_folders and names[-1].casefold() in COMPLETES_GIT_FOLDER:
                    self._skip("protected", member)
                elif self._unpack_member(member, names, open_folders, flush):
                    count += 1
                    report_progress(count, None, f"{count:,} files")
            open_folders.sync()
        return count

    def notes(self) -> list[str]:
        """Return how names were read, and what was left out, one phrase a reason, the first few named."""
        notes: list[str] = []
        encoding = find_names_encoding(self._file.infolist())
        if encoding is not None:
            notes.append(f"names read as {encoding}, which they look like")
        for reason, names in self.skipped.items():
            more = ""
            if len(names) > _MAX_NAMED:
                more = f" and {len(names) - _MAX_NAMED:,} more"
            notes.append(f"{reason}: {', '.join(map(_label, names[:_MAX_NAMED]))}{more}")
        return notes

    @cached_property
    def _members(self) -> Sequence[_Member]:
        members: dict[tuple[tuple[str, ...], bool], _Member] = {}
        infos = self._file.infolist()
        for label, info in zip(decode_zip_names(infos), infos, strict=True):
            raw_names = label.replace("\\", "/").split("/")
            names = tuple(name for name in raw_names if name not in ("", "."))
            member = _Member(label, names, info)
            if self.inner and names[: len(self.inner)] != self.inner:
                continue
            if _leads_out(label, raw_names):
                self._skip("a place outside", member)
            elif len(names) > _MAX_DEPTH:
                self._skip("too deep", member)
            elif stat.S_ISLNK(info.external_attr >> 16):
                self._skip("links", member)
            elif names:
                # The last of a name is what `read_text` shows, and what other programs leave.
                key = (names, info.is_dir())
                if key in members and not info.is_dir():
                    self._skip("earlier ones of the same name", member)
                members[key] = member
        return list(members.values())

    def _unpack_member(
        self, member: _Member, names: tuple[str, ...], open_folders: _OpenFolders, flush: TreeFlush
    ) -> bool:
        """Unpack one member; return whether it is a file that is there now."""
        try:
            if member.info.is_dir():
                open_folders.folder_of(names)
                return False
            folder = open_folders.folder_of(names[:-1])
            path = folder.path / names[-1]
            fd = folder.open(path.name, _NEW_FILE, 0o600)
        except Problem:
            self._skip("protected", member)
            return False
        except NotADirectoryError:
            self._skip("below a file", member)
            return False
        except FileExistsError:
            self._skip("twice in the archive", member)
            return False
        except OSError as error:
            if error.errno not in _NAME_ERRORS:
                raise
            self._skip("names that can't be here", member)
            return False
        try:
            self._write(member, fd)
            _set_metadata(fd, member.info)
            flush.flush_file(fd)
        finally:
            os.close(fd)
        return True

    def _write(self, member: _Member, fd: int) -> None:
        if member.info.compress_type not in _COMPRESSIONS:
            raise Invalid(
                f"{quote('/'.join(member.names))} in {quote(self.label)} is packed in a way that is not read."
            )
        try:
            with self._file.open(member.info) as source:
                while block := source.read(_BLOCK_BYTES):
                    self._cancel.check()
                    self._written_bytes += len(block)
                    if self._written_bytes > MAX_BYTES:
                        raise _too_large_error(self.label)
                    write_all(fd, block)
        except _DAMAGE as error:
            reason = "is encrypted" if member.info.flag_bits & 1 else f"can't be unpacked: {error}"
            raise Invalid(f"{quote('/'.join(member.names))} in {quote(self.label)} {reason}.") from None

    def _skip(self, reason: str, member: _Member) -> None:
        names = self.skipped.setdefault(reason, [])
        if member.label not in names[-1:]:
            names.append(member.label)


class _OpenFolders:
    """The folders on the way to the member that is unpacked, open.

    Members come in any order, but nearly always folder by folder.
    """

    def __init__(self, top: Folder[WritablePath], stack: ExitStack, flush: TreeFlush) -> None:
        self._top = top
        self._flush = flush
        self._stack = stack
        self._names: tuple[str, ...] = ()
        self._open: list[Folder[WritablePath]] = []

    def folder_of(self, names: tuple[str, ...]) -> Folder[WritablePath]:
        """Return the folder at `names`, made if it is missing.

        Raises:
            Problem: it is protected.
            OSError: a file has its name.
        """
        shared_depth = 0
        for name, open_name in zip(names, self._names, strict=False):
            if name != open_name:
                break
            shared_depth += 1
        while len(self._open) > shared_depth:
            self._close_last()
        for name in names[shared_depth:]:
            parent = self._deepest
            _ = parent.path / name  # refuses what is protected
            with suppress(FileExistsError):
                parent.make_folder(name)
            self._open.append(self._stack.enter_context(parent.open_folder(name)))
            self._names = (*self._names, name)
        return self._deepest

    @property
    def _deepest(self) -> Folder[WritablePath]:
        if self._open:
            return self._open[-1]
        return self._top

    def sync(self) -> None:
        while self._open:
            self._close_last()
        self._flush.flush_folder(self._top)
        self._flush.finish(self._top)

    def _close_last(self) -> None:
        folder = self._open.pop()
        self._names = self._names[:-1]
        self._flush.flush_folder(folder)
        folder.close()


def open_archive(file: BinaryIO, label: str, inner: tuple[str, ...], cancel: CancelToken, stack: ExitStack) -> Archive:
    """Open a zip archive.

    Args:
        label: how the caller knows it, with what is meant in it.
        stack: keeps it open.

    Raises:
        Invalid: it is none, or damaged.
        TooLarge: it would unpack to more than is allowed.
    """
    _check_directory(file, label)
    try:
        archive = stack.enter_context(zipfile.ZipFile(file))
    except (*_DAMAGE, OSError) as error:
        reason = describe_os_error(error) if isinstance(error, OSError) else str(error)
        raise Invalid(f"{quote(label)} is no zip archive that can be read: {reason}.") from None
    infos = archive.infolist()
    if len(infos) > MAX_ENTRIES or sum(info.file_size for info in infos) > MAX_BYTES:
        raise _too_large_error(label)
    return Archive(label, inner, archive, cancel)


def _check_directory(file: BinaryIO, label: str) -> None:
    """Check the size of the list of members, which is read into memory as a whole."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _END_BYTES))
    end = file.read(_END_BYTES)
    file.seek(0)
    at = end.rfind(_END_MARK)
    if at < 0 or at + 16 > len(end):
        raise Invalid(f"{quote(label)} is no zip archive.", "Only zip archives are unpacked.")
    (directory_bytes,) = struct.unpack_from("<I", end, at + 12)
    at64 = end.rfind(_END64_MARK)
    if 0 <= at64 <= len(end) - 48:
        (directory_bytes,) = struct.unpack_from("<Q", end, at64 + 40)
    if directory_bytes > _MAX_DIRECTORY_BYTES:
        raise _too_large_error(label)


def _leads_out(path: str, names: Sequence[str]) -> bool:
    """Return whether the path of a member, split into names, is none below the folder that it is unpacked to."""
    return ".." in names or "\0" in path or path.startswith(("/", "\\")) or ":" in names[0]


def _label(name: str) -> str:
    """Return a name of an archive on one line, the beginning of a long one."""
    if len(name) > _MAX_LABEL_CHARACTERS:
        name = name[: _MAX_LABEL_CHARACTERS - 1] + "…"
    return escape_line_breaks(name)


def _too_large_error(label: str) -> TooLarge:
    return TooLarge(
        f"{quote(label)} unpacks to more than {MAX_BYTES:,} bytes or {MAX_ENTRIES:,} entries.",
        "Name a folder or a file in it, such as `a.zip!/b`.",
    )


def _find_repositories(all_names: Sequence[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Return the folders that Git would take for its own, whose hooks programs run."""
    entries: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for names in all_names:
        for depth in range(len(names)):
            entries[names[:depth]].add(names[depth].casefold())
    repositories: set[tuple[str, ...]] = set()
    for folder, present in entries.items():
        if is_git_folder(lambda name, present=present: name.casefold() in present):
            repositories.add(folder)
    return repositories


def _set_metadata(fd: int, info: zipfile.ZipInfo) -> None:
    """Give a file the time that the archive tells, and let it be run if it could."""
    if hasattr(os, "fchmod"):
        mode = 0o777 if (info.external_attr >> 16) & stat.S_IXUSR else 0o666
        os.fchmod(fd, mode & ~_UMASK)
    if os.utime in os.supports_fd:
        try:
            seconds = datetime(*info.date_time).timestamp()
        except (ValueError, OverflowError):
            return
        os.utime(fd, (seconds, seconds))


_UMASK = os.umask(0o077)
os.umask(_UMASK)
