"""Lists an archive, and reads one member of it. Nothing is ever written, so no member's name can lead anywhere."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, BinaryIO, Literal, NamedTuple, Protocol, cast, runtime_checkable

from mcp_fs.engine.document_kinds import HEAD_BYTES, MAX_OUTPUT_BYTES, OLE, Kind, kind_of
from mcp_fs.engine.documents.formats.charsets import guess_codec
from mcp_fs.engine.zip_names import decode_zip_names, find_names_encoding

__all__ = [
    "Archive",
    "ArchiveEntry",
    "DocumentParts",
    "MemberNotFound",
    "NotInstalled",
    "OutOfTime",
    "OutputTooLarge",
    "Unreadable",
    "decompress",
    "is_truncated",
    "open_archive",
    "peek_head",
    "read_all",
    "read_beginning",
    "refuse_locked_package",
]

_BLOCK_BYTES = 256 * 1024
_TAR_BLOCK_BYTES = 512
_NAMES_SAMPLE_BYTES = 2048
_DAMAGE_ERRORS = (EOFError, OSError, zlib.error, lzma.LZMAError)
_LOCKED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
_NOT_TEXT = re.compile("[\ud800-\udfff]")


class NotInstalled(Exception):
    """What the file is; the library for it is not there."""


class Unreadable(Exception):
    """What is wrong with a file, as the end of a sentence that begins with its name."""


class MemberNotFound(Exception):
    """There is no such member; what there is instead."""


class OutOfTime(Exception):
    """Reading all takes too long; why the rest is missing, and the way to it."""


class OutputTooLarge(Exception):
    """More than `MOST_BYTES`."""


class ArchiveEntry(NamedTuple):
    """A member.

    Attributes:
        name: with slashes, as it is asked for; empty for one that can't be.
        raw_name: as the archive has it.
        link_target: where it leads, if it is a link: never followed.
    """

    name: str
    raw_name: str
    size: int
    is_file: bool = True
    link_target: str = ""


class Archive(Protocol):
    """What holds members."""

    def entries(self) -> Iterator[tuple[ArchiveEntry, BinaryIO | None]]:
        """Yield all members in order, each with its content while it is the latest; None for what is not a file."""
        ...


@runtime_checkable
class DocumentParts(Protocol):
    """A document, of which parts can be read by names of their own."""

    def part(self, name: str) -> Iterator[str] | None:
        """Return the text of what `name` means, piece by piece; None where that is a member."""
        ...


def open_archive(file: BinaryIO, kind: Kind) -> Archive | None:
    """Return `file` as an archive; None when it is none."""
    if kind in ("zip", "word", "slides", "odf", "epub", "sheet"):
        return Zip(file)
    if kind != "tar":
        return None
    return Tar(file)


def peek_head(file: BinaryIO) -> bytes:
    """Return the first bytes, which are read again next."""
    head = file.read(HEAD_BYTES)
    file.seek(0)
    return head


_OPENERS: dict[Kind | None, Callable[[BinaryIO, Literal["rb"]], Any]] = {
    "gzip": gzip.open,
    "bzip2": bz2.open,
    "xz": lzma.open,
}
_INNER_SUFFIXES = {"tgz": ".tar", "tbz": ".tar", "tbz2": ".tar", "txz": ".tar"}


def decompress(file: BinaryIO, name: str) -> tuple[BinaryIO, str, Kind | None]:
    """Return `file` without the compression around it, its name then, and what it is then."""
    kind = kind_of(name, peek_head(file))
    if kind not in _OPENERS:
        return file, name, kind
    plain = _OPENERS[kind](file, "rb")
    stem, _, suffix = name.rpartition(".")
    inner_name = stem + _INNER_SUFFIXES.get(suffix.lower(), "")
    stream = cast("BinaryIO", io.BufferedReader(_Decompressed(plain), _BLOCK_BYTES))
    inner_kind = kind_of(inner_name, stream.read(HEAD_BYTES))
    stream.seek(0)
    if inner_kind in _OPENERS:
        inner_kind = None  # what is compressed twice is shown as it is inside
    return stream, inner_name, inner_kind


class _Decompressed(io.RawIOBase):
    """What was compressed, as far as it is whole: a log that is being packed, or half a download, ends early.

    Attributes:
        is_truncated: whether the end that was read is where the damage is.
    """

    def __init__(self, packed: Any) -> None:
        super().__init__()
        self._compressed = packed
        self.is_truncated = False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        try:
            return self._compressed.seek(offset, whence)
        except _DAMAGE_ERRORS:
            self.is_truncated = True
            return self._compressed.tell()

    def readinto(self, buffer: Any) -> int:
        try:
            # `read` would lose what it has when it comes to the damage.
            data = self._compressed.read1(len(buffer))
        except _DAMAGE_ERRORS:
            if not self._compressed.tell():
                raise
            self.is_truncated = True
            data = b""
        buffer[: len(data)] = data
        return len(data)


def is_truncated(stream: BinaryIO) -> bool:
    """Return whether `stream`, read to its end, lacks what is behind some damage."""
    plain = getattr(stream, "raw", None)
    return isinstance(plain, _Decompressed) and plain.is_truncated


def read_beginning(stream: BinaryIO) -> BinaryIO:
    """Return the beginning of what `stream` still has, in memory.

    A byte more than `MAX_OUTPUT_BYTES` tells that there is more.
    """
    data = io.BytesIO()
    while (remaining := MAX_OUTPUT_BYTES + 1 - data.tell()) and (block := stream.read(min(_BLOCK_BYTES, remaining))):
        data.write(block)
    data.seek(0)
    return data


def read_all(stream: BinaryIO) -> BinaryIO:
    """Return what `stream` still has, in memory.

    Raises:
        OutputTooLarge: that is more than `MAX_OUTPUT_BYTES`.
    """
    data = io.BytesIO()
    while block := stream.read(_BLOCK_BYTES):
        data.write(block)
        if data.tell() > MAX_OUTPUT_BYTES:
            raise OutputTooLarge
    data.seek(0)
    return data


def _member_path(written: str) -> str:
    """Return the name to ask for a member by; empty where it would lead out of the archive or can't be spelled."""
    parts = [part for part in written.replace("\\", "/").split("/") if part not in ("", ".")]
    outside = ".." in parts or written.startswith(("/", "\\")) or "\0" in written or _NOT_TEXT.search(written)
    if outside:
        return ""
    return "/".join(parts)


class Zip:
    """A zip archive, which is also what office documents are."""

    def __init__(self, file: BinaryIO) -> None:
        try:
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            file.seek(0)
            refuse_locked_package(file)
            file.seek(0)
            if peek_head(file).startswith(OLE):
                raise Unreadable("is of a program before 2007 under a newer name, or locked by a password") from None
            raise Unreadable(f"is damaged: {error}") from None
        infos = self._zip.infolist()
        self._members = dict(zip(decode_zip_names(infos), infos, strict=True))

    @property
    def names_encoding(self) -> str | None:
        """What the names look like that don't say it; None where the format does."""
        return find_names_encoding(self._zip.infolist())

    def entries(self) -> Iterator[tuple[ArchiveEntry, BinaryIO | None]]:
        for name, info in self._members.items():
            path = _member_path(name)
            if stat.S_ISLNK(info.external_attr >> 16):
                yield ArchiveEntry(path, name, info.file_size, False, "something"), None
            elif info.is_dir():
                yield ArchiveEntry(path, name, info.file_size, False, ""), None
            else:
                content = cast("BinaryIO", _LazyMember(self._zip, info))
                yield ArchiveEntry(path, name, info.file_size, True, ""), content

    def names(self) -> list[str]:
        return list(self._members)

    def member(self, name: str) -> BinaryIO | None:
        """Return the content of a member by the name in the archive; None where there is none."""
        info = self._members.get(name)
        if info is None:
            return None
        return cast("BinaryIO", _LazyMember(self._zip, info))


def refuse_locked_package(file: BinaryIO) -> None:
    """Raise for a document with a password: a file of OLE that has a stream of a certain name (MS-OFFCRYPTO)."""
    head = file.read(len(OLE))
    if head == OLE and _LOCKED_PACKAGE in file.read(MAX_OUTPUT_BYTES):
        raise Unreadable("is locked by a password")


class _LazyMember:
    """A member that is opened when it is read: most are only listed."""

    def __init__(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
        self._archive = archive
        self._info = info
        self._stream: BinaryIO | None = None

    def read(self, size: int) -> bytes:
        try:
            if self._stream is None:
                self._stream = cast("BinaryIO", self._archive.open(self._info))
            return self._stream.read(size)
        except NotImplementedError:
            raise Unreadable("is packed in a way that is not known here") from None
        except RuntimeError:
            raise Unreadable("is locked by a password") from None


class Tar:
    """A tar archive, read from one end to the other each time."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = _LastRead(file)

    def entries(self) -> Iterator[tuple[ArchiveEntry, BinaryIO | None]]:
        self._file.seek(0)
        names = _NameDecoder()
        try:
            with closing(tarfile.open(fileobj=cast("BinaryIO", self._file), mode="r:")) as archive:
                for info in archive:
                    content = None
                    if info.isreg():
                        content = cast("BinaryIO", archive.extractfile(info))
                    yield _tar_entry(info, names), content
        except tarfile.TarError as error:
            raise Unreadable(f"is damaged: {error}") from None
        # `tarfile` takes a header that is cut or damaged for the end; that is two blocks of zeros (POSIX, pax).
        end = self._file.last
        if len(end) < _TAR_BLOCK_BYTES or any(end) or any(self._file.read(_TAR_BLOCK_BYTES)):
            raise Unreadable("is damaged or ends too early")


def _tar_entry(info: tarfile.TarInfo, names: _NameDecoder) -> ArchiveEntry:
    link_target = ""
    if info.issym() or info.islnk():
        link_target = info.linkname
    name = names.decode(info.name)
    return ArchiveEntry(_member_path(name), name, info.size, info.isreg(), link_target)


class _NameDecoder:
    """Reads names of an old archive, which does not say in which encoding they are: what the first look like."""

    def __init__(self) -> None:
        self._sample = b""
        self._codec = "utf-8"

    def decode(self, name: str) -> str:
        """Return a name as text.

        Args:
            name: its bytes that are not UTF-8 are lone surrogates.
        """
        if not _NOT_TEXT.search(name):
            return name
        raw_name = name.encode("utf-8", "surrogateescape")
        if len(self._sample) < _NAMES_SAMPLE_BYTES:
            self._sample += raw_name + b"\n"
            self._codec = guess_codec(self._sample) or self._codec
        return raw_name.decode(self._codec, "replace")


class _LastRead:
    """A file that knows what was read of it last."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.last = b""
        self.seek = file.seek
        self.tell = file.tell

    def read(self, size: int = -1) -> bytes:
        self.last = self._file.read(size)
        return self.last
