"""Reads the names in a zip archive, whose encoding most programs don't say.

The format knows UTF-8, by a mark, and the code page of the first PCs. Programs write UTF-8 without the mark as well,
and Windows the code page of its language. All names of an archive are in one, which their letters tell.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

__all__ = ["decode_zip_names", "find_names_encoding"]

_UTF8_FLAG = 0x800
_UNMARKED = "cp437"
# Languages with thousands of characters write most names in those that their standards list first, by frequency.
_FREQUENT = {
    "gbk": re.compile(rb"[\xb0-\xd7][\xa1-\xfe]"),
    "cp949": re.compile(rb"[\xb0-\xc8][\xa1-\xfe]"),
    "big5": re.compile(rb"[\xa4-\xc6][\x40-\x7e\xa1-\xfe]"),
    "cp932": re.compile(
        rb"\x82[\x9f-\xf1]|\x83[\x40-\x96]|\x88[\x9f-\xfc]|[\x89-\x97][\x40-\xfc]|\x98[\x40-\x72]|\x81\x5b"
    ),
}
_WORD = re.compile(rb"[A-Za-z\x80-\xff]+")
_FEWEST_CHARACTERS = 2
_FREQUENT_SHARE = 0.8
# A letter of two bytes has one or two beyond ASCII; among letters of Western words, accented ones are fewer.
_HIGH_SHARE = 0.45
# All Hangul is where half of the frequent Chinese characters are too: so many are no accident.
_FEWEST_HANGUL = 6
# The letters of the Cyrillic code page of DOS, capital and small, in words of their own.
_CYRILLIC_WORD = re.compile(rb"[\x80-\x9f\xf0]?[\xa0-\xaf\xe0-\xef\xf1]{2,}|[\x80-\x9f\xf0]{3,}")
_FEWEST_CYRILLIC = 4
# So many names tell what all are in.
_SAMPLE_NAMES = 300


def decode_zip_names(infos: Sequence[zipfile.ZipInfo]) -> list[str]:
    """Return the names of all members of an archive, in order."""
    encoding = find_names_encoding(infos)
    return [_decode_name(info, encoding) for info in infos]


def find_names_encoding(infos: Sequence[zipfile.ZipInfo]) -> str | None:
    """Return the encoding that names look like which are neither marked nor UTF-8; None where the format's own is."""
    names = _sample_names(infos)
    if not names:
        return None
    shares = {encoding: _frequent_share(encoding, names) for encoding in _FREQUENT}
    encoding = max(shares, key=lambda name: shares[name])
    if shares[encoding] >= _FREQUENT_SHARE and all(map(_has_wide_characters, names)):
        if shares["cp949"] == 1 and sum(len(_FREQUENT["cp949"].findall(name)) for name in names) >= _FEWEST_HANGUL:
            return "cp949"
        return encoding
    if _is_cyrillic(names):
        return "cp866"
    return None


def _sample_names(infos: Sequence[zipfile.ZipInfo]) -> list[bytes]:
    """Return the first names that are neither marked nor UTF-8."""
    raw_names = (_raw_name(info) for info in infos if not _is_told(info))
    return list(islice((name for name in raw_names if not _is_utf8(name)), _SAMPLE_NAMES))


def _decode_name(info: zipfile.ZipInfo, encoding: str | None) -> str:
    if _is_told(info):
        return info.filename
    raw_name = _raw_name(info)
    for candidate in ("utf-8", encoding or _UNMARKED):
        with suppress(UnicodeDecodeError):
            return raw_name.decode(candidate)
    return info.filename


def _is_told(info: zipfile.ZipInfo) -> bool:
    """Return whether an archive says what a name is: by the mark, in ASCII, or once more in UTF-8 in a field."""
    if info.flag_bits & _UTF8_FLAG or info.filename.isascii():
        return True
    # On Windows Python writes slashes for the backslashes of a name.
    return info.filename.replace("\\", "/") != _unmarked_name(info).replace("\\", "/")


def _raw_name(info: zipfile.ZipInfo) -> bytes:
    return _unmarked_name(info).encode(_UNMARKED)


def _unmarked_name(info: zipfile.ZipInfo) -> str:
    """Return the name as the format reads its bytes, up to a NUL."""
    return info.orig_filename.partition("\0")[0]


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def _frequent_share(encoding: str, names: Sequence[bytes]) -> float:
    """Return which share of the characters beyond ASCII is frequent; 0 if there are few, or if a name is not in it."""
    character_count = 0
    frequent_count = 0
    for name in names:
        try:
            text = name.decode(encoding)
        except UnicodeDecodeError:
            return 0
        for character in text:
            if character > "\x7f":
                character_count += 1
                frequent_count += _FREQUENT[encoding].fullmatch(character.encode(encoding)) is not None
    if frequent_count < _FEWEST_CHARACTERS:
        return 0
    return frequent_count / character_count


def _has_wide_characters(name: bytes) -> bool:
    words = [word for word in _WORD.findall(name) if not word.isascii()]
    high_count = sum(byte > 0x7F for word in words for byte in word)
    return high_count >= _HIGH_SHARE * sum(map(len, words))


def _is_cyrillic(names: Sequence[bytes]) -> bool:
    words = [word for name in names for word in _WORD.findall(name) if not word.isascii()]
    if sum(map(len, words)) < _FEWEST_CYRILLIC:
        return False
    cyrillic_bytes = sum(len(word) for word in words if _CYRILLIC_WORD.fullmatch(word))
    return cyrillic_bytes >= _FREQUENT_SHARE * sum(map(len, words))
