"""Bytes of a file as text, and back without loss: UTF-8, Unicode with a byte order mark, and the encodings before.

Nothing says which of the older encodings a file has, so none is guessed: what is not ASCII there is not shown, and an
edit leaves it as it is.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

__all__ = ["MAX_LFS_POINTER_BYTES", "REPLACEMENT", "FileText", "decode_text", "is_lfs_pointer"]

# The longer mark first: that of UTF-32 begins with that of UTF-16.
_ENCODINGS_BY_MARK = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
# What no text holds, in whichever encoding.
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]")
# What stands for a byte that is not UTF-8.
_UNKNOWN_BYTES = re.compile("[\udc80-\udcff]")
REPLACEMENT = "\ufffd"
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
# https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
MAX_LFS_POINTER_BYTES = 1024


def is_lfs_pointer(data: bytes) -> bool:
    """Return whether a file only says which content Git LFS has for it."""
    return len(data) <= MAX_LFS_POINTER_BYTES and data.startswith(_LFS_POINTER)


@dataclass(frozen=True)
class FileText:
    """A file that is text.

    Attributes:
        text: without the mark; bytes that are not UTF-8 are each a lone surrogate.
        encoding: a codec of Python's.
        mark: the byte order mark that the file begins with, or nothing.
    """

    text: str
    encoding: str
    mark: bytes

    @property
    def has_unknown_bytes(self) -> bool:
        """Whether there are bytes that could be any character."""
        return _UNKNOWN_BYTES.search(self.text) is not None

    @property
    def display_text(self) -> str:
        """The text, in which bytes that could be any character are U+FFFD."""
        return _UNKNOWN_BYTES.sub(REPLACEMENT, self.text)

    @property
    def note(self) -> str:
        """What readers have to know of the encoding; empty for UTF-8."""
        if self.has_unknown_bytes:
            return f"not UTF-8: bytes that are not are shown as {REPLACEMENT}"
        if self.encoding == "utf-8":
            return ""
        return self.encoding.upper()

    def encode(self, text: str) -> bytes:
        """Return `text` as the bytes of this file, each unknown byte as it was."""
        if self.encoding == "utf-8":
            return self.mark + text.encode("utf-8", "surrogateescape")
        return self.mark + text.encode(self.encoding)

    def encode_content(self, text: str) -> bytes:
        """Return `text` as a whole new content of this file, in its encoding and with its mark.

        Raises:
            UnicodeEncodeError: the text holds half of a character.
        """
        if self.mark:
            text = text.removeprefix("\ufeff")
        return self.mark + text.encode(self.encoding)


def decode_text(data: bytes) -> FileText | None:
    """Return a file as text; None if it is none."""
    mark = _mark_of(data)
    encoding = _ENCODINGS_BY_MARK.get(mark, "utf-8")
    errors = "strict"
    if encoding == "utf-8":
        errors = "surrogateescape"
    try:
        text = data.removeprefix(mark).decode(encoding, errors)
    except UnicodeDecodeError:
        return None
    file_text = FileText(text, encoding, mark)
    # UTF-8 is seldom met by chance.
    is_sure = encoding == "utf-8" and not file_text.has_unknown_bytes
    if "\0" in text or (not is_sure and _CONTROL_CHARACTERS.search(text)):
        return None
    return file_text


def _mark_of(data: bytes) -> bytes:
    """Return the byte order mark that a file begins with; empty if it has none."""
    for mark in _ENCODINGS_BY_MARK:
        if data.startswith(mark):
            return mark
    return b""
