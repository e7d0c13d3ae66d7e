"""Decodes text whose encoding stands beside it or in it, as in mails and pages, or nowhere."""

from __future__ import annotations

import codecs
import re

from mcp_fs.engine.text.detection import detect_encoding

__all__ = ["decode_page", "decode_text", "guess_codec", "repair_header"]

# Programs write more than the encoding has that they name: browsers and mail programs read these names so (WHATWG).
_NAMED_TOO_NARROW = {
    "ascii": "utf-8",
    "big5": "big5hkscs",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
}
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# A page names its encoding within its first KiB (HTML), and in its first line where it is XML.
_PAGE_HEAD_BYTES = 1024
_NAMED_IN_PAGE = re.compile(rb"""<(?:\?xml[^>]*?\sencoding|meta[^>]*?charset)\s*=\s*["']?([\w.:-]+)""", re.IGNORECASE)
# Of an encoded word (RFC 2047), up to the name of its encoding.
_ENCODED_WORD = re.compile(r"=\?([^?*\s]+)(?=(?:\*[^?]*)?\?[BbQq]\?)")
_UNDECODED = re.compile("[\udc80-\udcff]")


def decode_text(data: bytes, declared: str | None) -> str:
    """Return text in the encoding that is declared for it; what does not decode is U+FFFD.

    Args:
        declared: None, or a name that nobody knows, leaves UTF-8 or what the bytes look like.
    """
    name = _find_codec(declared or "")
    if name is not None and name != "utf-8":
        try:
            return data.decode(name, "replace")
        except UnicodeError:
            pass  # idna and the like know no replacement
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode(guess_codec(data) or "utf-8", "replace")


def decode_page(data: bytes, declared: str | None = None) -> str:
    """Return a page of HTML or XHTML as text.

    Args:
        declared: the encoding that goes before the one which the page names.
    """
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    named = _NAMED_IN_PAGE.search(data, 0, _PAGE_HEAD_BYTES)
    # It could not be read so far if it were UTF-16.
    if declared is None and named is not None and not named[1].lower().startswith(b"utf-16"):
        declared = named[1].decode("ascii", "replace")
    return decode_text(data, declared)


def repair_header(value: str) -> str:
    """Return a header of a mail that can be decoded: with encodings that have all it uses, and no raw bytes.

    Args:
        value: its bytes beyond ASCII are lone surrogates.
    """
    if _UNDECODED.search(value):
        value = decode_text(value.encode("utf-8", "surrogateescape"), None)
    return _ENCODED_WORD.sub(_widen_encoded_word, value)


def _widen_encoded_word(match: re.Match[str]) -> str:
    return f"=?{_find_codec(match[1]) or match[1]}"


def _find_codec(name: str) -> str | None:
    """Return the codec that an encoding is read with; None for what is no encoding."""
    try:
        codec = codecs.lookup(name).name
        b"a".decode(codec, "replace")  # not of bytes into bytes
    except (LookupError, ValueError):
        return None
    return _NAMED_TOO_NARROW.get(codec, codec)


def guess_codec(data: bytes) -> str | None:
    """Return the codec that bytes look like; None where that is none of text."""
    encoding = detect_encoding(data)
    if encoding is None:
        return None
    return encoding.name
