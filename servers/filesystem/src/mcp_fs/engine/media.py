"""Files for eyes and ears: images, sound, pages of PDF; what is none of these is handed over, page by page.

What a file is, its first bytes say, not its name: a wrong MIME type makes hosts and models refuse a result.
"""

from __future__ import annotations

import mimetypes
import os
import struct
import threading
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO

from mcp_batteries.errors import Invalid, quote
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, Stop
from mcp_fs.engine.documents.content import is_document, open_content
from mcp_fs.engine.files.text import SAMPLE_BYTES, sniff
from mcp_fs.engine.pictures import LONGEST_SIDE, can_reduce, is_too_wide, reduced
from mcp_fs.engine.walk import spoken
from mcp_fs.models import Media, counted
from mcp_fs.policy import Readable

__all__ = ["MOST_WHOLE", "mime_type", "view"]

MOST_WHOLE = 10 * 1024 * 1024
"""Bytes of a file that can be read whole, as a resource."""

_MOST_SHOWN = 3_750_000  # 5 MB in base64: as much as every model takes
_MOST_REDUCED = 256 * 1024 * 1024
_MOST_PDF = 64 * 1024 * 1024
_BLOCK = DEFAULT_PAGE_BYTES * 3 // 4  # in base64 a page
_RENDER_SCALE = 1.5  # 108 dots per inch: readable, and below the size at which hosts scale images down

# (offset, bytes, MIME type); the first that fits and that `_CERTAIN` does not deny.
_MAGIC = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"BM", "image/bmp"),
    (0, b"II*\0", "image/tiff"),
    (0, b"MM\0*", "image/tiff"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftypheic", "image/heic"),
    (0, b"\0\0\1\0", "image/vnd.microsoft.icon"),
    (8, b"WAVE", "audio/wav"),
    (8, b"AIFF", "audio/aiff"),
    (0, b"fLaC", "audio/flac"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"\xff\xf3", "audio/mpeg"),
    (0, b"\xff\xf2", "audio/mpeg"),
    (0, b"\xff\xf1", "audio/aac"),
    (0, b"\xff\xf9", "audio/aac"),
    (0, b"OggS", "audio/ogg"),
    (4, b"ftypM4A", "audio/mp4"),
    (4, b"ftyp", "video/mp4"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"PK\3\4", "application/zip"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"SQLite format 3\0", "application/vnd.sqlite3"),
    (0, b"\x7fELF", "application/x-elf"),
)
# Where the first bytes are few or common: what must follow them.
_CERTAIN: dict[str, Callable[[bytes], bool]] = {
    "image/png": lambda head: head[12:16] == b"IHDR",
    "image/bmp": lambda head: head[6:10] == b"\0\0\0\0",
    "image/webp": lambda head: head.startswith(b"RIFF"),
    "audio/wav": lambda head: head.startswith((b"RIFF", b"RF64")),
    "audio/aiff": lambda head: head.startswith(b"FORM"),
    # A bit rate and a sample rate that exist (ISO/IEC 11172-3, 2.4.2.3).
    "audio/mpeg": lambda head: head.startswith(b"ID3") or (0 < head[2] >> 4 < 15 and head[2] & 12 != 12),
}
_pdfium = threading.Lock()  # PDFium is not thread-safe


def mime_type(head: bytes, name: str) -> str:
    """The MIME type of a file: by its first bytes, else for what is no image or sound by its name."""
    for offset, magic, kind in _MAGIC:
        if head.startswith(magic, offset) and _CERTAIN.get(kind, bool)(head):
            return _zipped(name) if kind == "application/zip" else kind
    guessed = mimetypes.guess_type(name, strict=False)[0]
    if sniff(head[:SAMPLE_BYTES]) is not None:
        is_shown = guessed != "image/svg+xml" and (guessed or "image").startswith(("audio", "image", "video"))
        return "text/plain" if guessed is None or is_shown else guessed
    return guessed if guessed is not None and guessed.startswith("application/") else "application/octet-stream"


def view(place: Readable, page: int = 1, stop: Stop | None = None) -> list[Media]:
    """The file at `place` as what can be shown of it; never nothing.

    Args:
        page: from 1. Of a PDF: its text, or its picture when there is no text on it. Of what can't be shown: its
            bytes, 7,500 a page.

    Raises:
        Invalid: the file is empty or text, or has no such page.
        Problem: it can't be opened.
    """
    with open_content(place, stop or Stop(), raw=True) as (file, _):
        size = os.fstat(file.fileno()).st_size
        head = file.read(SAMPLE_BYTES)
        kind = mime_type(head, place.name)
        if not head:
            raise Invalid(f"{quote(place.display)} is empty.", "There is nothing to show.")
        if sniff(head) is not None and kind != "application/pdf":
            raise Invalid(f"{quote(place.display)} is text ({kind}).", "Use `read_text`.")
        family = kind.partition("/")[0]
        facts = f"{spoken(place)}: {kind}, {size:,} bytes"
        if is_document(place.name) and kind != "application/pdf":
            facts += "; its text: `read_text`"
        limit = _MOST_PDF if kind == "application/pdf" else _MOST_SHOWN if family in ("image", "audio") else 0
        if size <= limit:
            data = head + file.read(limit)
            if kind != "application/pdf":
                _refuse_beyond(place, page, 1)
                if family == "image" and is_too_wide(file):
                    return [_too_large(place, file, size, kind, facts)]
                return [Media(family, place.display, place.uri, kind, size, facts, data)]
            if (shown := _page(place, data, page, facts)) is not None:
                return [shown]
            facts += "; its pages can be read once mcp-fs is installed as mcp-fs[pdf]"
        elif family in ("image", "audio"):
            _refuse_beyond(place, page, 1)
            return [_too_large(place, file, size, kind, facts)]
        elif limit:
            facts += f"; too large to show (limit {limit:,})"
        return [_bytes(place, file, size, page, kind, facts)]


def _too_large(place: Readable, file: BinaryIO, size: int, kind: str, facts: str) -> Media:
    """What can be said of a picture or a sound that is too large to show: the picture in small, if that can be."""
    facts += f"; too large to show whole (limit {_MOST_SHOWN:,} bytes, {LONGEST_SIDE:,} pixels a side)"
    if size <= MOST_WHOLE:
        facts += f"; whole as the resource {place.uri}"
    if kind.startswith("image"):
        if not can_reduce():
            facts += "; shown in small once mcp-fs is installed as mcp-fs[images]"
        elif size > _MOST_REDUCED:
            facts += f", nor in small (limit {_MOST_REDUCED:,})"
        else:
            pixels, picture = reduced(file)
            if picture:
                facts += f"; {pixels}, shown in small"
                return Media("image", place.display, place.uri, "image/jpeg", size, facts, picture)
            facts += f"; {pixels}, too many to show in small" if pixels else "; not known or damaged"
    return Media("text", place.display, place.uri, kind, size, facts)


def _bytes(place: Readable, file: BinaryIO, size: int, page: int, kind: str, facts: str) -> Media:
    """The file's bytes, whole when they are a page at most."""
    pages = max(1, -(-size // _BLOCK))
    _refuse_beyond(place, page, pages)
    begin = (page - 1) * _BLOCK
    file.seek(begin)
    data = file.read(_BLOCK)
    if pages == 1:
        return Media("blob", place.display, place.uri, kind, size, facts, data)
    end = begin + len(data)
    note = f"{facts}; bytes {begin + 1:,}-{end:,}, page {page} of {pages:,}"
    if page < pages:
        note += f", continue with page={page + 1}"
    if size <= MOST_WHOLE:
        note += f"; whole as the resource {place.uri}"
    part = f"{place.uri}#bytes={begin}-{end - 1}"  # what a part of a file is, its first bytes do not say
    return Media("blob", place.display, part, "application/octet-stream", size, note, data)


def _refuse_beyond(place: Readable, page: int, pages: int) -> None:
    if page > pages:
        raise Invalid(f"{quote(place.display)} has {counted(pages, 'page')}.", "Use a smaller `page`.")


def _zipped(name: str) -> str:
    guessed = mimetypes.guess_type(name, strict=False)[0] or ""
    return guessed if guessed.startswith("application/") else "application/zip"


def _page(place: Readable, data: bytes, number: int, facts: str) -> Media | None:
    """A page of a PDF; None where the library for it is not installed."""
    try:
        import pypdfium2  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        return None
    pdfium: Any = pypdfium2
    with _pdfium:
        try:
            document = pdfium.PdfDocument(data)
        except pdfium.PdfiumError:
            raise Invalid(f"{quote(place.display)} is damaged or locked by a password.") from None
        try:
            _refuse_beyond(place, number, len(document))
            page = document[number - 1]
            text = str(page.get_textpage().get_text_range()).replace("\r\n", "\n")
            picture = b"" if text.strip() else _png(page.render(scale=_RENDER_SCALE, rev_byteorder=True))
            more = f"; continue with page={number + 1}" if number < len(document) else ""
            note = f"{facts}; page {number} of {len(document)}{more}"
        finally:
            document.close()
    if picture:
        return Media("image", place.display, place.uri, "image/png", len(data), note + "; no text on it", picture)
    return Media("text", place.display, place.uri, "application/pdf", len(data), note, body=text)


def _png(bitmap: Any) -> bytes:
    """A bitmap in RGB as PNG (RFC 2083): small enough here to need no imaging library."""
    width, height, channels = bitmap.width, bitmap.height, bitmap.n_channels
    pixels = bytes(bitmap.buffer)
    rows = (pixels[at : at + width * channels] for at in range(0, height * bitmap.stride, bitmap.stride))
    raw = b"".join(b"\0" + row for row in rows)
    colour = {1: 0, 3: 2, 4: 6}[channels]

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
