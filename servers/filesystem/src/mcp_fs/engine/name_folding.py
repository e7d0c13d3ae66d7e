"""Decides when two spellings are one name, for all look-ups and locks."""

from __future__ import annotations

import unicodedata
import zipfile

__all__ = ["decode_zip_name", "fold_name", "may_have_another_spelling"]

# macOS puts the first into the names of screenshots and the second is what keyboards make of Option-blank.
_BLANKS = str.maketrans({"\u202f": " ", "\u00a0": " "})


def fold_name(name: str) -> str:
    """Return `name` without what only spellings differ in: composed (NFC), every blank a plain one."""
    if name.isascii():
        return name
    return unicodedata.normalize("NFC", name).translate(_BLANKS)


def may_have_another_spelling(name: str) -> bool:
    """False for names, nearly all of them, that no other name folds to."""
    return " " in name or not name.isascii()


def decode_zip_name(info: zipfile.ZipInfo) -> str:
    """Return the name of a member: UTF-8 also where that is not said, as zip on Linux has it, else as DOS reads it."""
    if info.flag_bits & 0x800 or info.filename.isascii():
        return info.filename
    try:
        return info.filename.encode("cp437").decode()
    except UnicodeError:
        return info.filename
