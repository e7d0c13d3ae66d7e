"""Reads mails as Outlook saves them, by olefile: properties of MAPI in a file of OLE (MS-OXMSG)."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO

from mcp_fs.engine.documents.formats.archives import ArchiveEntry, NotInstalled, Unreadable, read_all
from mcp_fs.engine.documents.formats.mails.messages import clean_attachment_name, unique_name
from mcp_fs.engine.documents.formats.mails.rich_text import read_rich_text
from mcp_fs.engine.documents.formats.pages import read_html

__all__ = ["OutlookMail"]

# Properties, by the names of MS-OXPROPS.
_SUBJECT = 0x0037
_CLIENT_SUBMIT_TIME = 0x0039
_MESSAGE_DELIVERY_TIME = 0x0E06
_SENDER_NAME = 0x0C1A
_SENDER_EMAIL_ADDRESS = 0x0C1F
_SENDER_SMTP_ADDRESS = 0x5D01
_DISPLAY_TO = 0x0E04
_DISPLAY_CC = 0x0E03
_BODY = 0x1000
_BODY_HTML = 0x1013
_RTF_COMPRESSED = 0x1009
_INTERNET_CODEPAGE = 0x3FDE
_MESSAGE_CODEPAGE = 0x3FFD
_ATTACH_DATA = 0x3701
_ATTACH_FILENAME = 0x3704
_ATTACH_LONG_FILENAME = 0x3707
_DISPLAY_NAME = 0x3001

# Types of values, as MS-OXCDATA has them.
_TYPE_LONG = 0x0003
_TYPE_EMBEDDED = 0x000D
_TYPE_STRING8 = 0x001E
_TYPE_UNICODE = 0x001F
_TYPE_TIME = 0x0040
_TYPE_BINARY = 0x0102

_PROPERTIES = "__properties_version1.0"
_ATTACHMENT = "__attach_version1.0_"
_ENTRY = struct.Struct("<HHI8s")
# What stands before the first property: of the mail in the file, of a mail in that, of an attachment.
_HEADER_BYTES = 32
_INNER_HEADER_BYTES = 24
_ATTACHMENT_HEADER_BYTES = 8
_UTF8 = 65001
# The code pages that programs on Windows write text in; others are only those of the mail on its way.
_WINDOWS_PAGES = frozenset({874, 932, 936, 949, 950, *range(1250, 1259)})
# Times count units of 100 nanoseconds from here.
_TIME_ORIGIN = datetime(1601, 1, 1, tzinfo=UTC)
_MAX_DEPTH = 10

_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Attachment:
    """What is attached, with its content."""

    name: str
    content: bytes


class OutlookMail:
    """A mail and what is attached to it; a mail that is attached is the text of that."""

    def __init__(self, file: BinaryIO) -> None:
        try:
            import olefile  # pyright: ignore[reportMissingTypeStubs]
        except ImportError:
            raise NotInstalled("a mail of Outlook") from None
        try:
            self._ole: Any = olefile.OleFileIO(read_all(file).read())
        except OSError as error:
            raise Unreadable(f"is damaged: {error}") from None
        if not self._ole.exists(_PROPERTIES):
            raise Unreadable("is no mail of Outlook")

    def text(self) -> Iterator[str]:
        yield from self._read_mail((), _HEADER_BYTES, 0)

    def entries(self) -> Iterator[tuple[ArchiveEntry, BinaryIO | None]]:
        for attachment in self._attachments((), 0):
            content = attachment.content
            yield ArchiveEntry(attachment.name, attachment.name, len(content)), io.BytesIO(content)

    def _read_mail(self, path: _Path, header_bytes: int, depth: int) -> Iterator[str]:
        """Yield the heads, the body and the names of what is attached."""
        item = _Item(self._ole, path, header_bytes)
        for name, value in _list_headers(item):
            if value:
                yield f"{name}: {value}\n"
        yield "\n" + item.body().replace("\r\n", "\n").rstrip("\n") + "\n"
        attachments = self._attachments(path, depth)
        if attachments:
            yield "\n[attached]\n"
        for attachment in attachments:
            yield f"{attachment.name}\t{len(attachment.content):,}\n"

    def _attachments(self, path: _Path, depth: int) -> list[_Attachment]:
        attachments: list[_Attachment] = []
        names: set[str] = set()
        for number, folder in enumerate(self._list_attachment_folders(path), 1):
            attachment = self._read_attachment((*path, folder), number, depth)
            name = unique_name(attachment.name, number, names)
            attachments.append(_Attachment(name, attachment.content))
        return attachments

    def _list_attachment_folders(self, path: _Path) -> list[str]:
        depth = len(path)
        folders: dict[str, None] = {}
        for entry in self._ole.listdir():
            if tuple(entry[:depth]) == path and len(entry) > depth and entry[depth].startswith(_ATTACHMENT):
                folders[entry[depth]] = None
        return sorted(folders)

    def _read_attachment(self, path: _Path, number: int, depth: int) -> _Attachment:
        item = _Item(self._ole, path, _ATTACHMENT_HEADER_BYTES)
        label = item.text(_ATTACH_LONG_FILENAME) or item.text(_ATTACH_FILENAME) or item.text(_DISPLAY_NAME)
        name = clean_attachment_name(label) or f"part{number}"
        mail = (*path, _stream_name(_ATTACH_DATA, _TYPE_EMBEDDED))
        if depth < _MAX_DEPTH and self._ole.exists("/".join((*mail, _PROPERTIES))):
            text = "".join(self._read_mail(mail, _INNER_HEADER_BYTES, depth + 1))
            return _Attachment(f"{name}.txt", text.encode("utf-8", "replace"))
        return _Attachment(name, item.binary(_ATTACH_DATA))


class _Item:
    """A mail or an attachment in the file, by its properties."""

    def __init__(self, ole: Any, path: _Path, header_bytes: int) -> None:
        self._ole = ole
        self._path = path
        self._values = dict(_read_fixed_values(self._stream(_PROPERTIES), header_bytes))

    def text(self, number: int) -> str:
        """Return a property that is text; empty where there is none."""
        data = self._stream(_stream_name(number, _TYPE_UNICODE))
        if data:
            return data.decode("utf-16-le", "replace").rstrip("\0")
        return self._decode(self._stream(_stream_name(number, _TYPE_STRING8)), _MESSAGE_CODEPAGE)

    def binary(self, number: int) -> bytes:
        return self._stream(_stream_name(number, _TYPE_BINARY))

    def time(self, number: int) -> str:
        units = int.from_bytes(self._values.get((number, _TYPE_TIME), b""), "little")
        if not units:
            return ""
        try:
            moment = _TIME_ORIGIN + timedelta(microseconds=units // 10)
        except OverflowError:
            return ""
        return f"{moment:%Y-%m-%d %H:%M:%S} UTC"

    def body(self) -> str:
        """Return what the mail says: as plain text where it has that, else from its page, else from its RTF."""
        plain = self.text(_BODY)
        if plain.strip():
            return plain
        page = self._decode(self.binary(_BODY_HTML), _INTERNET_CODEPAGE) or self.text(_BODY_HTML)
        if page:
            return "".join(read_html(page))
        return _read_compressed_rtf(self.binary(_RTF_COMPRESSED))

    def _decode(self, data: bytes, page_property: int) -> str:
        """Return text in the code page that a property names, else in that of Windows which the mail was sent in."""
        page = self._number(page_property) or self._windows_page()
        encoding = f"cp{page or 1252}"
        if page == _UTF8:
            encoding = "utf-8"
        try:
            text = data.decode(encoding, "replace")
        except LookupError:
            text = data.decode("cp1252", "replace")
        return text.rstrip("\0")

    def _windows_page(self) -> int:
        """Return the code page of Windows that the mail was sent in; 0 if it was none."""
        page = self._number(_INTERNET_CODEPAGE)
        if page in _WINDOWS_PAGES:
            return page
        return 0

    def _number(self, property_number: int) -> int:
        """Return a property that is a number; 0 where there is none."""
        return int.from_bytes(self._values.get((property_number, _TYPE_LONG), b"")[:4], "little")

    def _stream(self, name: str) -> bytes:
        path = "/".join((*self._path, name))
        if not self._ole.exists(path):
            return b""
        return self._ole.openstream(path).read()


def _stream_name(number: int, kind: int) -> str:
    return f"__substg1.0_{number:04X}{kind:04X}"


def _read_fixed_values(data: bytes, header_bytes: int) -> Iterator[tuple[tuple[int, int], bytes]]:
    """Yield the properties of fixed length, by number and type."""
    entries = data[header_bytes:]
    whole_bytes = len(entries) // _ENTRY.size * _ENTRY.size
    for kind, number, _, value in _ENTRY.iter_unpack(entries[:whole_bytes]):
        yield (number, kind), value


def _list_headers(item: _Item) -> list[tuple[str, str]]:
    address = item.text(_SENDER_SMTP_ADDRESS) or item.text(_SENDER_EMAIL_ADDRESS)
    sender = item.text(_SENDER_NAME)
    if "@" in address and address != sender:
        sender = f"{sender} <{address}>".strip()
    return [
        ("From", sender),
        ("To", item.text(_DISPLAY_TO)),
        ("Cc", item.text(_DISPLAY_CC)),
        ("Date", item.time(_CLIENT_SUBMIT_TIME) or item.time(_MESSAGE_DELIVERY_TIME)),
        ("Subject", item.text(_SUBJECT)),
    ]


def _read_compressed_rtf(data: bytes) -> str:
    if not data:
        return ""
    try:
        import compressed_rtf
    except ImportError:
        raise NotInstalled("a mail of Outlook") from None
    library: Any = compressed_rtf
    return read_rich_text(library.decompress(data))
