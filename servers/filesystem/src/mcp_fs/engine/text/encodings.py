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
from itertools import pairwise
from typing import Literal

from mcp_batteries.errors import Invalid, quote

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

# How much of a file's beginning decides what it is.
SAMPLE_BYTES = 65_536

# Size of the largest file that is edited; it is held in memory a few times. No edit makes a larger one, which none
# could edit again.
MAX_EDIT_BYTES = 32 * 1024 * 1024

Newline = Literal["\n", "\r\n", "\r", ""]
# What people call the end of all lines of a text; None where they differ.
NEWLINE_NAMES: Mapping[Newline | None, str] = {"\n": "LF", "\r\n": "CRLF", "\r": "CR", None: "mixed"}

# The longer mark first: that of UTF-32 begins with that of UTF-16.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# What Python and other programs call those that begin with their mark.
_NAMES_WITH_BOM = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
_UNIT_BYTES = {"utf-16-le": 2, "utf-16-be": 2, "utf-32-le": 4, "utf-32-be": 4}
_DETECTABLE = ["gb18030", "cp932", "euc_jp", "euc_kr", "big5", "cp1251", "koi8_r", "cp1252"]
# Every encoding but UTF-8 that text can be found in and in which ASCII is itself.
ASCII_ENCODINGS = (*_DETECTABLE, "latin-1")

# Narrower codecs that say the same of most files, under the names people know.
_NARROWER_NAMES = {"gb18030": ("gbk",), "cp932": ("shift_jis",), "cp1252": ("latin-1",)}
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\v\f\r\b\x1b")) + b"\x7f"

# The euro sign, an ellipsis, quotation marks, a bullet and dashes in Windows-1252.
_WESTERN_PUNCTUATION = b"\x80\x85\x91\x92\x93\x94\x95\x96\x97"
_BEYOND_ASCII = re.compile("[^\\x00-\\x7f]")
_IDEOGRAPH = re.compile("[一-鿿]")
# A word that ends in a letter such as `é` or `ß` of Western encodings. In UTF-8, cut off there, the byte would begin a
# character that seldom follows a Latin letter; not so E2, which begins apostrophes and dashes, and is a rare `â`.
_WESTERN_END = re.compile(rb"[A-Za-z][\xdf-\xe1\xe3-\xf4]\Z")
_SHORT_SAMPLE_BYTES = 16
_END_BYTES = 4096
_NULS = re.compile(b"\0+")
_MIN_TEXT_PER_NUL_RUN = 50  # bytes of text for each run of NUL
_LONG_NUL_RUN_BYTES = 512


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file spells text.

    Attributes:
        name: codec that never writes a mark of its own, such as `utf-8` or `utf-16-le`.
        bom: the byte order mark the file begins with, or nothing.
    """

    name: str
    bom: bytes = b""

    @property
    def unit_bytes(self) -> int:
        """Bytes of one code unit: where a line feed may stand is a multiple of it."""
        return _UNIT_BYTES.get(self.name, 1)

    @property
    def newline(self) -> bytes:
        return "\n".encode(self.name)

    @property
    def is_guess(self) -> bool:
        """Whether bytes that are read in it could be meant in another: all but Unicode's own."""
        return not self.name.startswith("utf-")

    def __str__(self) -> str:
        return describe_encoding(self.name, bom=bool(self.bom))


def describe_encoding(name: str, *, bom: bool) -> str:
    if not bom:
        return name
    return f"{name} with BOM"


def parse_encoding(name: str) -> Encoding:
    """Return the encoding that a name of it means, such as `UTF-8`, `windows-1252` or `utf-16-le with BOM`.

    UTF-16 and UTF-32 without their order are written as Windows does, with a mark.

    Raises:
        Invalid: it means none that text is found in.
    """
    plain_name = name.strip().lower().removesuffix(" with bom")
    has_bom = plain_name != name.strip().lower() or plain_name in _NAMES_WITH_BOM
    plain_name = _NAMES_WITH_BOM.get(plain_name, plain_name)
    try:
        codec = codecs.lookup(plain_name).name
    except LookupError:
        codec = ""
    marks = {mark_name: mark for mark, mark_name in _BYTE_ORDER_MARKS}
    for supported_name in (*marks, *ASCII_ENCODINGS, *sum(_NARROWER_NAMES.values(), ())):
        if codecs.lookup(supported_name).name != codec or (has_bom and supported_name not in marks):
            continue
        if has_bom:
            return Encoding(supported_name, marks[supported_name])
        return Encoding(supported_name)
    raise Invalid(
        f"The encoding {quote(name)} is none that text is written in here.",
        f"Use `utf-8`, `utf-8-sig`, `utf-16-le`, `utf-16-be` or one of {', '.join(ASCII_ENCODINGS)}.",
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
            f"{quote(text[error.start])} can't be written in {like.encoding}, the encoding of this file.",
            "Use other characters, or write the whole file anew with `write_file`, which uses UTF-8.",
        ) from None
    if not like.bom:
        return body
    return next(mark for mark, name in _BYTE_ORDER_MARKS if name == like.encoding) + body


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


def detect_encoding(sample: bytes) -> Encoding | None:
    """Return the encoding of a file that begins with `sample` (any length); None when it is binary.

    A character cut off at the end of the sample is not an objection.
    """
    for mark, name in _BYTE_ORDER_MARKS:
        if sample.startswith(mark) and _can_decode(sample[len(mark) :], name):
            return Encoding(name, mark)
    sample = sample[:SAMPLE_BYTES]
    has_nul = b"\0" in sample
    if sample.startswith(codecs.BOM_UTF8) and not has_nul and not _mostly_control(sample):
        return Encoding("utf-8", codecs.BOM_UTF8)  # nothing else begins so, whatever is damaged behind it
    if has_nul:
        return _detect_utf16_or_utf32(sample)
    if _mostly_control(sample):
        return None
    if is_utf8(sample) or _mostly_utf8(sample):
        return Encoding("utf-8")
    return _detect_legacy(sample)


def encoding_from_bom(sample: bytes) -> Encoding | None:
    """Return the encoding that the byte order mark at the beginning of `sample` names, if there is one."""
    return next((Encoding(name, mark) for mark, name in _BYTE_ORDER_MARKS if sample.startswith(mark)), None)


def is_utf8(sample: bytes) -> bool:
    """Return whether a file that begins with `sample` is UTF-8, but for a character cut off at the end."""
    if sample.isascii():
        return True
    is_whole_file = len(sample) < SAMPLE_BYTES
    if is_whole_file and sample[:-1].isascii() and _WESTERN_END.search(sample):
        return False
    return _can_decode(sample, "utf-8")


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
    return _can_decode(text, "utf-8") and not _mostly_control(text)


def _read_at(fd: int, offset: int) -> bytes:
    os.lseek(fd, offset, os.SEEK_SET)
    return os.read(fd, _END_BYTES)


def content_hash(data: bytes) -> str:
    """Return what names a file's content in answers: 8 hexadecimal digits of its SHA-256, enough to see a change."""
    return hashlib.sha256(data).hexdigest()[:8]


def _detect_utf16_or_utf32(sample: bytes) -> Encoding | None:
    """Detect UTF-32 or UTF-16 without a mark by where the zero bytes of Latin letters and blanks stand."""
    for name in ("utf-32-le", "utf-32-be"):
        if len(sample) >= 4 and _is_readable(sample, name):
            return Encoding(name)
    zeros_at_even = sample[::2].count(0)
    zeros_at_odd = sample[1::2].count(0)
    more_zeros = max(zeros_at_even, zeros_at_odd)
    if len(sample) < _SHORT_SAMPLE_BYTES and (len(sample) % 2 or more_zeros * 2 < len(sample)):
        return None  # so few bytes tell nothing unless each character has its zero
    # Both kinds of bytes at zero often, or seldom any: numbers, not letters.
    if min(zeros_at_even, zeros_at_odd) * 20 > more_zeros or more_zeros * 5 < len(sample) // 2:
        return None
    name = "utf-16-be"
    if zeros_at_odd > zeros_at_even:
        name = "utf-16-le"
    if not _is_readable(sample, name):
        return None
    return Encoding(name)


def _detect_legacy(sample: bytes) -> Encoding | None:
    if len(sample) == SAMPLE_BYTES:
        # Half a character at the end would speak against the very encoding it is in.
        sample = sample[: max(sample.rfind(b"\n"), sample.rfind(b" ")) + 1] or sample
    if _looks_western(sample):
        return Encoding(_narrow_name("cp1252", sample))
    name = _detect_statistically(sample)
    if name is None:
        return None
    return Encoding(_narrow_name(name, sample))


def _detect_statistically(sample: bytes) -> str | None:
    """Return the encoding that the frequency of characters speaks for."""
    # Half of the detector's time is its import, which UTF-8 never pays.
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=_DETECTABLE, threshold=0.3).best()
    if best is None:
        if not _can_decode(sample, "cp1252"):
            return None
        return "cp1252"
    if best.encoding == "euc_kr" and _can_decode(sample, "gb18030") and _IDEOGRAPH.search(str(best)):
        return "gb18030"  # the same two-byte codes; Korean today is written without ideographs
    return best.encoding


def _looks_western(sample: bytes) -> bool:
    """Return whether there are accented letters among plain ones, and no byte that only other encodings use so."""
    high = [index for index, byte in enumerate(sample) if byte >= 0x80][:4096]
    if not high:
        return False
    isolated = sum(1 for previous, following in pairwise([*high, -1]) if following - previous != 1)
    if isolated * 10 < len(high) * 6:
        return False
    return all(sample[index] >= 0xA0 or sample[index] in _WESTERN_PUNCTUATION for index in high)


def _narrow_name(name: str, sample: bytes) -> str:
    if name == "cp1252" and any(0x80 <= byte < 0xA0 for byte in sample):
        if _can_decode(sample, name):
            return name
        return "latin-1"
    for narrower in _NARROWER_NAMES.get(name, ()):
        if _can_decode(sample, narrower):
            return narrower
    return name


def _can_decode(sample: bytes, name: str) -> bool:
    try:
        codecs.getincrementaldecoder(name)().decode(sample)
    except UnicodeError:
        return False
    return True


def _is_readable(sample: bytes, name: str) -> bool:
    if not _can_decode(sample, name):
        return False
    text = codecs.getincrementaldecoder(name)().decode(sample)[:4096]
    # Other data read as such units lands all over the planes; text is nearly all in the first one.
    beyond = sum(1 for char in text if char > "\uffff")
    if "\0" in text or beyond * 10 > len(text) or any(char >= "\U00040000" for char in text):
        return False
    return not _mostly_control(text.encode("utf-8", "replace"))


def _mostly_utf8(sample: bytes) -> bool:
    """Return whether it is UTF-8 with a few stray bytes, as logs of several programs are.

    Other encodings rarely look like it even once.
    """
    text = sample.decode("utf-8", "replace")
    stray = text.count("\ufffd")
    # Of texts of three characters and more in other encodings, one in a thousand.
    return sum(map(_evidence_of, _BEYOND_ASCII.findall(text))) >= 3 * stray


def _evidence_of(character: str) -> int:
    """Return how much a character tells of UTF-8: the more, the more seldom others write its bytes in this order."""
    if character == "\ufffd":
        return 0
    if character > "\uffff":
        return 4
    if character > "\u07ff" or character < "\u0100":
        return 2
    return 1


def _mostly_control(sample: bytes) -> bool:
    return len(sample) - len(sample.translate(None, _CONTROL_BYTES)) > len(sample) // 10


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
