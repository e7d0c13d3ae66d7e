"""Media files: images, sound, pages of PDFs; any other file is returned as bytes, page by page.

The first bytes decide what a file is, not its name: a wrong MIME type makes hosts and models refuse a result.
"""

from __future__ import annotations

import importlib.util
import mimetypes
import os
import struct
from collections.abc import Callable
from typing import BinaryIO

from mcp_batteries.errors import Invalid, Problem, TooLarge, quote
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, Stop
from mcp_fs.engine.documents.content import is_document, open_content
from mcp_fs.engine.documents.converter import taken
from mcp_fs.engine.documents.kinds import HEAD_BYTES, LABELS, kind_of
from mcp_fs.engine.files.text import SAMPLE_BYTES, sniff
from mcp_fs.engine.walk import spoken
from mcp_fs.models import Media, counted
from mcp_fs.policy import Readable

__all__ = ["MOST_WHOLE", "mime_type", "view"]

MOST_WHOLE = 10 * 1024 * 1024
"""Bytes of a file that can be read whole, as a resource."""

_LONGEST_SIDE = 8000
"""Pixels that every model takes."""
_MOST_SHOWN = 3_750_000  # 5 MB in base64: as much as every model takes
_MOST_REDUCED = 256 * 1024 * 1024
_MOST_PDF = 64 * 1024 * 1024
_BLOCK = DEFAULT_PAGE_BYTES * 3 // 4  # in base64 a page
_PNG = b"\x89PNG\r\n\x1a\n"

# (offset, bytes, MIME type); the first that fits and that `_CERTAIN` does not deny.
_MAGIC = (
    (0, _PNG, "image/png"),
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


def mime_type(head: bytes, name: str) -> str:
    """The MIME type of a file: by its first bytes, else for what is not an image or sound by its name."""
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
    stop = stop or Stop()
    with open_content(place, stop, raw=True) as (file, _):
        size = os.fstat(file.fileno()).st_size
        head = file.read(SAMPLE_BYTES)
        kind = mime_type(head, place.name)
        if not head:
            raise Invalid(f"{quote(place.display)} is empty.", "There is nothing to show.")
        if sniff(head) is not None and kind != "application/pdf":
            raise Invalid(f"{quote(place.display)} is text ({kind}).", "Use `read_text`.")
        family = kind.partition("/")[0]
        facts = f"{spoken(place)}: {kind}, {size:,} bytes"
        if is_document(place.name) and kind_of(place.name, head[:HEAD_BYTES]) in LABELS and kind != "application/pdf":
            facts += "; its text: `read_text`"
        limit = _MOST_PDF if kind == "application/pdf" else _MOST_SHOWN if family in ("image", "audio") else 0
        if size <= limit:
            if kind != "application/pdf":
                data = head + file.read(limit)
                _refuse_beyond(place, page, 1)
                if family == "image" and _is_too_wide(place, file, kind, head, stop):
                    return [_too_large(place, file, size, kind, facts, stop)]
                return [Media(family, place.display, place.uri, kind, size, facts, data)]
            shown = _page(place, file, page, facts, stop)
            if isinstance(shown, Media):
                return [shown]
            facts += f"; {shown}"
        elif family in ("image", "audio"):
            _refuse_beyond(place, page, 1)
            return [_too_large(place, file, size, kind, facts, stop)]
        elif limit:
            facts += f"; too large to show (limit {limit:,})"
        return [_bytes(place, file, size, page, kind, facts)]


def _too_large(place: Readable, file: BinaryIO, size: int, kind: str, facts: str, stop: Stop) -> Media:
    """What can be said of a picture or a sound that is too large to show: the picture in small, if that can be."""
    facts += f"; too large to show whole (limit {_MOST_SHOWN:,} bytes, {_LONGEST_SIDE:,} pixels a side)"
    if size <= MOST_WHOLE:
        facts += f"; whole as the resource {place.uri}"
    if kind.startswith("image"):
        if not _has("PIL"):
            facts += "; shown in small once mcp-fs is installed as mcp-fs[images]"
        elif size > _MOST_REDUCED:
            facts += f", nor in small (limit {_MOST_REDUCED:,})"
        else:
            try:
                found = taken(file, place.name, (), "picture", place.display, stop)
            except Invalid:
                facts += "; not known or damaged"
            except TooLarge:
                facts += "; takes too long or too much memory to show in small"
            else:
                facts += "; {:,} × {:,} pixels".format(*map(int, found.label.split()))
                if found.data:
                    facts += ", shown in small"
                    return Media("image", place.display, place.uri, "image/jpeg", size, facts, found.data)
                facts += ", too many to show in small"
    return Media("text", place.display, place.uri, kind, size, facts)


def _is_too_wide(place: Readable, file: BinaryIO, kind: str, head: bytes, stop: Stop) -> bool:
    """Whether a picture has a longer side than models take; False where that can't be told."""
    if kind == "image/png" and len(head) >= 24:  # most of them, known without another process
        return max(struct.unpack_from(">II", head, 16)) > _LONGEST_SIDE
    if not _has("PIL"):
        return False
    try:
        found = taken(file, place.name, (), "pixels", place.display, stop)
    except Problem:
        return False
    return max(map(int, found.label.split())) > _LONGEST_SIDE


def _has(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


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


def _page(place: Readable, file: BinaryIO, number: int, facts: str, stop: Stop) -> Media | str:
    """A page of a PDF, or why it can't be shown."""
    if not _has("pypdfium2"):
        return "its pages can be read once mcp-fs is installed as mcp-fs[pdf]"
    try:
        found = taken(file, place.name, (), "page", place.display, stop, page=number)
    except Invalid as problem:
        return "it " + problem.what.removeprefix(quote(place.display)).strip(" .")
    except TooLarge:
        return "its pages take too long or too much memory to show"
    pages = int(found.label)
    _refuse_beyond(place, number, pages)
    more = f"; continue with page={number + 1}" if number < pages else ""
    note, size = f"{facts}; page {number} of {pages}{more}", os.fstat(file.fileno()).st_size
    if found.data.startswith(_PNG):
        return Media("image", place.display, place.uri, "image/png", size, note + "; no text on it", found.data)
    return Media("text", place.display, place.uri, "application/pdf", size, note, body=found.data.decode())
