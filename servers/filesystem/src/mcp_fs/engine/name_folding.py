"""Decides when two spellings are one name, for all look-ups and locks."""

from __future__ import annotations

import unicodedata

__all__ = ["fold_name", "may_have_another_spelling"]

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
