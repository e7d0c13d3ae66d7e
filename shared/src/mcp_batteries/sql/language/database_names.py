"""The names under which databases are served: letters of every script, digits, `_` and `-`."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["NAME_PATTERN", "fold_name", "to_name"]

# A name that an operator puts before `=` and the address.
NAME_PATTERN = r"[^\s=:/\\?@#%'\",]+"


def fold_name(text: str) -> str:
    """Return the form in which names are compared: composed, as macOS does not store file names, in lower case."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).lower())


def to_name(text: str) -> str:
    """Return `text` as the name of a database; empty where nothing in it can be one."""
    return re.sub("_{2,}", "_", "".join(map(_keep_or_replace, fold_name(text)))).strip("_")


def _keep_or_replace(character: str) -> str:
    # Vowel signs of Indic scripts and Arabic's are marks, which are no letters for Python.
    if character.isalnum() or character == "-" or unicodedata.category(character).startswith("M"):
        return character
    return "_"
