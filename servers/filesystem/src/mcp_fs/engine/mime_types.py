"""What a file is, by its first bytes.

Its name decides only where those say nothing: a wrong MIME type makes hosts and models refuse a result.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Callable

from mcp_batteries.media.picture_types import brands_of, picture_type
from mcp_fs.engine.text.encodings import SAMPLE_BYTES, detect_encoding

__all__ = ["UNKNOWN", "mime_type"]

# True of any file.
UNKNOWN = "application/octet-stream"

# (offset, bytes, MIME type); the first that fits and that `_CONFIRMATIONS` do not deny.
_MAGIC = (
    (8, b"WAVE", "audio/wav"),
    (8, b"AIFF", "audio/aiff"),
    (8, b"AIFC", "audio/aiff"),
    (0, b"fLaC", "audio/flac"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"\xff\xfa", "audio/mpeg"),
    (0, b"\xff\xf3", "audio/mpeg"),
    (0, b"\xff\xf2", "audio/mpeg"),
    (0, b"\xff\xf1", "audio/aac"),
    (0, b"\xff\xf9", "audio/aac"),
    (0, b"OggS", "audio/ogg"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"PK\3\4", "application/zip"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"SQLite format 3\0", "application/vnd.sqlite3"),
    (0, b"\x7fELF", "application/x-elf"),
)
# Where the first bytes are few or common: what must follow them.
_CONFIRMATIONS: dict[str, Callable[[bytes], bool]] = {
    "audio/wav": lambda head: head.startswith((b"RIFF", b"RF64")),
    "audio/aiff": lambda head: head.startswith(b"FORM"),
    # A bit rate and a sample rate that exist (ISO/IEC 11172-3, 2.4.2.3).
    "audio/mpeg": lambda head: head.startswith(b"ID3") or (0 < head[2] >> 4 < 15 and head[2] & 12 != 12),
}
_MAIN_BRANDS = {b"M4A ": "audio/mp4", b"M4B ": "audio/mp4", b"M4P ": "audio/mp4", b"qt  ": "video/quicktime"}


def mime_type(head: bytes, name: str) -> str:
    """Return the MIME type of a file: by its first bytes, else for what is not an image or sound by its name."""
    certain_type = picture_type(head) or _film_type(head) or _magic_type(head, name)
    if certain_type is not None:
        return certain_type
    guessed = mimetypes.guess_type(name, strict=False)[0]
    if detect_encoding(head[:SAMPLE_BYTES]) is not None:
        return _text_type(guessed)
    if guessed is not None and guessed.startswith("application/"):
        return guessed
    return UNKNOWN


def _film_type(head: bytes) -> str | None:
    """Return the type of sound and film in a container of ISO/IEC 14496-12."""
    brands = brands_of(head)
    if not brands:
        return None
    return _MAIN_BRANDS.get(brands[0], "video/mp4")


def _magic_type(head: bytes, name: str) -> str | None:
    for offset, magic, kind in _MAGIC:
        if head.startswith(magic, offset) and _CONFIRMATIONS.get(kind, bool)(head):
            if kind == "application/zip":
                return _zip_mime_type(name)
            return kind
    return None


def _text_type(guessed: str | None) -> str:
    """Return the type of what is text, by the type of its name: no name makes a picture of it, but that of SVG."""
    if guessed is None:
        return "text/plain"
    if guessed != "image/svg+xml" and guessed.startswith(("audio", "image", "video")):
        return "text/plain"
    return guessed


def _zip_mime_type(name: str) -> str:
    guessed = mimetypes.guess_type(name, strict=False)[0]
    if guessed is not None and guessed.startswith("application/"):
        return guessed
    return "application/zip"
