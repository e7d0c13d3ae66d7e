"""Bytes to text and back without loss: which encoding, which byte order mark, which line ends.

UTF-8 is tried first and byte order marks decide at once; only bytes that are neither load a detector. The first
64 KiB decide, for reading, searching and editing alike. Bytes that do not decode are each a character of their own,
a lone surrogate, which is shown as U+FFFD and written back as the bytes it stands for: an edit can't rewrite what it
did not touch.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from mcp_batteries.errors import Invalid, quote
from mcp_fs.engine.text.detection import (
    ASCII_ENCODINGS,
    BYTE_ORDER_MARKS,
    NARROWER_NAMES,
    SAMPLE_BYTES,
    Encoding,
    can_decode,
    describe_encoding,
    detect_encoding,
    encoding_from_bom,
    is_mostly_control,
    is_utf8,
)

__all__ = [
    "ASCII_ENCODINGS",
    "MAX_EDIT_BYTES",
    "NEWLINE_NAMES",
    "SAMPLE_BYTES",
    "Decoded",
    "Encoding",
    "SizeLimit",
    "TextForm",
    "content_hash",
    "decode",
    "describe_encoding",
    "detect_encoding",
    "encode",
    "encoding_from_bom",
    "is_text",
    "is_text_with_nuls",
    "is_utf8",
    "parse_conversion",
    "parse_encoding",
    "read_text_form",
    "replace_undecodable",
    "uniform_newline",
]

# Size of the largest file that is edited; it is held in memory a few times. No edit makes a larger one, which none
# could edit again.
MAX_EDIT_BYTES = 32 * 1024 * 1024

Newline = Literal["\n", "\r\n", "\r", ""]
# What people call the end of all lines of a text; None where they differ.
NEWLINE_NAMES: Mapping[Newline | None, str] = {"\n": "LF", "\r\n": "CRLF", "\r": "CR", None: "mixed"}

# What Python and other programs call those that begin with their mark.
_NAMES_WITH_BOM = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}
# How they name the mark: `utf-8-sig`, `utf8bom`, `UTF-8 with BOM`.
_NAMED_BOM = re.compile(r"[\s_-]*(?:with[\s_-]+)?(?:bom|sig)\Z")

_END_BYTES = 4096
_NULS = re.compile(b"\0+")
_MIN_TEXT_PER_NUL_RUN = 50  # bytes of text for each run of NUL
_LONG_NUL_RUN_BYTES = 512


def parse_encoding(name: str) -> Encoding:
    """Return the encoding that a name of it means, such as `UTF-8`, `windows-1252` or `utf-16-le BOM`.

    UTF-16 and UTF-32 without their order are written as Windows does, with a mark.

    Raises:
        Invalid: it means none that text is found in.
    """
    plain_name, bom_count = _NAMED_BOM.subn("", name.strip().lower())
    has_bom = bom_count > 0 or plain_name in _NAMES_WITH_BOM
    plain_name = _NAMES_WITH_BOM.get(plain_name, plain_name)
    try:
        codec = codecs.lookup(plain_name).name
    except (LookupError, ValueError):  # ValueError: a name with NUL or a lone surrogate in it
        codec = ""
    marks = {mark_name: mark for mark, mark_name in BYTE_ORDER_MARKS}
    for supported_name in (*marks, *ASCII_ENCODINGS, *sum(NARROWER_NAMES.values(), ())):
        if codecs.lookup(supported_name).name != codec or (has_bom and supported_name not in marks):
            continue
        if has_bom:
            return Encoding(supported_name, marks[supported_name])
        return Encoding(supported_name)
    raise Invalid(
        f"The encoding {quote(name)} is none that text is written in here.",
        f"Use `utf-8`, with BOM `utf-8-sig`, `utf-16-le`, `utf-16-be` or one of {', '.join(ASCII_ENCODINGS)}.",
    )


# How names and programs are spelled, and never files.
_NOT_OF_FILES = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "utf-7"})


def parse_conversion(names: str) -> tuple[Encoding | None, Encoding]:
    """Return what files are read in, if it is named, and what they are written in: `cp1250>utf-8`, or `utf-8`.

    Raises:
        Invalid: as `parse_encoding`.
    """
    old_name, arrow, new_name = names.rpartition(">")
    if not arrow:
        return None, parse_encoding(names)
    return _parse_old_encoding(old_name), parse_encoding(new_name)


def _parse_old_encoding(name: str) -> Encoding:
    """Return any encoding of text by its name: what is only read may be one that nobody would guess.

    Raises:
        Invalid: there is none of that name.
    """
    try:
        codec = codecs.lookup(name.strip()).name
        "a".encode(codec)
    except (LookupError, ValueError):  # a name with NUL in it, and `undefined`, which encodes nothing
        codec = ""
    if not codec or codec in _NOT_OF_FILES:
        raise Invalid(f"The encoding {quote(name)} is not known.", "Name it as Python does: `cp1250`, `mac-roman`.")
    return Encoding(codec)


@dataclass(frozen=True, slots=True)
class Decoded:
    """A whole file as text, and all it takes to write it back as it was.

    Attributes:
        text: every character after the byte order mark, line ends untouched.
        encoding: codec name as in `Encoding.name`.
        bom: whether the bytes begin with a byte order mark.
        newline: the line end used most, the first of equals; empty without any.
        undecodable: bytes that do not decode, by the lone surrogate that stands for them in `text`.
    """

    text: str
    encoding: str
    bom: bool
    newline: Newline
    undecodable: Mapping[str, bytes] = field(default_factory=dict[str, bytes])

    @property
    def encoding_label(self) -> str:
        return describe_encoding(self.encoding, bom=self.bom)

    def in_encoding(self, encoding: Encoding | None) -> Decoded:
        """Return what writes the text in another encoding; None for its own."""
        if encoding is None:
            return self
        return replace(self, encoding=encoding.name, bom=bool(encoding.bom))


@dataclass(frozen=True, slots=True)
class TextForm:
    """How a text file is written down.

    Attributes:
        newline: the end of all its lines; empty where it has none, None where they differ.
    """

    encoding: Encoding
    newline: Newline | None

    def encode(self, text: str) -> bytes:
        """Return `text` in this encoding, behind its byte order mark.

        Raises:
            UnicodeEncodeError: it has no bytes for some character.
        """
        return self.encoding.bom + text.encode(self.encoding.name)


def read_text_form(sample: bytes) -> TextForm | None:
    """Return the form of a text file that begins with `sample`; None for a binary one."""
    encoding = detect_encoding(sample)
    if encoding is None:
        return None
    text = sample[len(encoding.bom) : SAMPLE_BYTES].decode(encoding.name, "ignore")
    return TextForm(encoding, uniform_newline(text))


def uniform_newline(text: str) -> Newline | None:
    """Return the end of all lines of a text; empty where it has none, None where they differ."""
    if "\r" not in text:
        return "\n" if "\n" in text else ""
    newline = _most_frequent_newline(text)
    if newline:
        remainder = text.replace(newline, "")
        if "\r" in remainder or "\n" in remainder:
            return None
    return newline


def decode(data: bytes, old_encoding: Encoding | None = None) -> Decoded | None:
    """Return `data` as text, or None when it is binary; `encode(decoded.text, decoded)` gives `data` again.

    Args:
        old_encoding: what it is read in where its encoding would be a guess.
    """
    encoding = detect_encoding(data)
    if encoding is None:
        return None
    if old_encoding is not None and encoding.is_guess:
        encoding = old_encoding
    body = data[len(encoding.bom) :]
    surrogates: dict[bytes, str] = {}
    _handler_state.surrogates = surrogates
    try:
        text = body.decode(encoding.name, _ERROR_HANDLER)
        decoded = Decoded(
            text,
            encoding.name,
            bool(encoding.bom),
            _most_frequent_newline(text),
            {char: raw for raw, char in surrogates.items()},
        )
        if (encoding.name == "utf-8" and not surrogates) or encode(text, decoded) == data:
            return decoded
    except (UnicodeError, Invalid):
        pass
    return None


def replace_undecodable(text: str) -> str:
    """Return `text` as readers see it, character by character: U+FFFD for what does not decode."""
    if text.isascii():
        return text
    return _SURROGATE.sub("\ufffd", text)


def encode(text: str, like: Decoded) -> bytes:
    """Return `text` in the encoding, and behind the mark, that `like` was read from.

    Raises:
        Invalid: the encoding has no bytes for some character.
    """
    _handler_state.original_bytes = like.undecodable
    try:
        body = text.encode(like.encoding, _ERROR_HANDLER)
    except UnicodeEncodeError as error:
        raise Invalid(
            f"{quote(text[error.start])} can't be written in {like.encoding}, which this file seems to be in.",
            "Use `replace_text` with `encoding`, which converts the file too: `utf-8`, or `cp1250>utf-8` where its "
            "letters are shown wrongly.",
        ) from None
    if not like.bom:
        return body
    return next(mark for mark, name in BYTE_ORDER_MARKS if name == like.encoding) + body


def _carry_undecodable(error: UnicodeError) -> tuple[str | bytes, int]:
    """Carry damaged bytes through text, as an error handler: a lone surrogate for each different piece, and back."""
    if isinstance(error, UnicodeDecodeError):
        piece = error.object[error.start : error.end]
        surrogates = _handler_state.surrogates
        if piece not in surrogates:
            if len(surrogates) == _MAX_SURROGATES:
                raise error
            surrogates[piece] = chr(_FIRST_SURROGATE + len(surrogates))
        return surrogates[piece], error.end
    if isinstance(error, UnicodeEncodeError):
        original = _handler_state.original_bytes.get(error.object[error.start])
        if original is not None:
            return original, error.start + 1
    raise error


class _ErrorHandlerState(threading.local):
    """What `_carry_undecodable` works on; an error handler takes no arguments."""

    surrogates: dict[bytes, str]
    original_bytes: Mapping[str, bytes]


_handler_state = _ErrorHandlerState()
_ERROR_HANDLER = "mcp-fs.keep"
_SURROGATE = re.compile("[\ud800-\udfff]")
_FIRST_SURROGATE = 0xD800
_MAX_SURROGATES = 2048
codecs.register_error(_ERROR_HANDLER, _carry_undecodable)


def is_text_with_nuls(fd: int, size: int) -> bool:
    """Return whether an open file with NUL bytes is text but for them, at its beginning and its end.

    Raises:
        OSError: it can't be read.
    """
    at = os.lseek(fd, 0, os.SEEK_CUR)
    try:
        ends = [_read_at(fd, 0), _read_at(fd, max(0, size - _END_BYTES))]
    finally:
        os.lseek(fd, at, os.SEEK_SET)
    return any(piece.strip(b"\0") for piece in ends) and all(is_text(piece) for piece in ends)


class SizeLimit:
    """How long `text` gets as pieces of it are replaced."""

    def __init__(self, text: str) -> None:
        self._remaining = MAX_EDIT_BYTES - len(text)

    def replace(self, length: int, new: str) -> str:
        """Return `new`, which replaces so many characters.

        Raises:
            OverflowError: all would have more than `MAX_EDIT_BYTES` characters.
        """
        self._remaining -= len(new) - length
        if self._remaining < 0:
            raise OverflowError
        return new


def is_text(piece: bytes) -> bool:
    """Return whether a piece of a file is UTF-8 but for a few runs of NUL bytes and characters cut off at its ends."""
    text = piece.replace(b"\0", b"").lstrip(bytes(range(0x80, 0xC0)))
    nul_runs = len(_NULS.findall(piece))  # of numbers, every other byte is one
    are_few = nul_runs * _MIN_TEXT_PER_NUL_RUN <= len(text)
    is_one_long_run = nul_runs == 1 and len(piece) - len(text) >= _LONG_NUL_RUN_BYTES
    if not are_few and not is_one_long_run:
        return False
    return can_decode(text, "utf-8") and not is_mostly_control(text)


def _read_at(fd: int, offset: int) -> bytes:
    os.lseek(fd, offset, os.SEEK_SET)
    return os.read(fd, _END_BYTES)


def content_hash(data: bytes) -> str:
    """Return what names a file's content in answers: 8 hexadecimal digits of its SHA-256, enough to see a change."""
    return hashlib.sha256(data).hexdigest()[:8]


def _most_frequent_newline(text: str) -> Newline:
    pairs = text.count("\r\n")
    feeds = text.count("\n") - pairs
    returns = text.count("\r") - pairs
    most = max(pairs, feeds, returns)
    if not most:
        return ""
    ends: list[tuple[int, Newline]] = [(pairs, "\r\n"), (feeds, "\n"), (returns, "\r")]
    equals = [pair for pair in ends if pair[0] == most]
    return min(equals, key=lambda pair: text.index(pair[1]))[1]
