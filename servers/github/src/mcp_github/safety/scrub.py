"""Removes what cannot be seen from everything that comes from GitHub: a model would read it, a person would not.

Removed are characters that show nothing and can carry words or reorder them (Unicode's tag block, bidirectional
controls, zero-width characters, stray variation selectors, control characters), and in prose also their spelling as
HTML entities, however often encoded. What scripts and emoji need of them stays, and nothing else is touched. Paths, and
names of files, keep such characters in a spelling that shows them.
"""

from __future__ import annotations

import html
import re
from typing import Any, cast

from mcp_github.invisible import INVISIBLE_CHARACTERS, STRAY_CHARACTERS, escape_path

__all__ = ["scrub", "scrub_text"]

_INVISIBLE = re.compile(f"[{INVISIBLE_CHARACTERS}]")
_STRAY = re.compile(STRAY_CHARACTERS)
_ENTITY = re.compile(r"&(?:amp;|#38;|#x26;)*(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,7}|[A-Za-z]{2,31});?")
_SUSPECT = re.compile(f"[{INVISIBLE_CHARACTERS}\u200c\u200d\ufe00-\ufe0f&]")
# Entities are part of code.
_CODE_FIELDS = {"patch", "diff_hunk", "diffHunk", "content", "text_matches"}
# A path without a character would be another.
_PATH_FIELDS = {"path", "filename", "previous_filename", "manifest_path", "target"}


def scrub_text(text: str, *, code: bool = False) -> tuple[str, int]:
    """Return `text` without what can't be seen, and how many characters that were.

    Args:
        code: leave HTML entities as they are.
    """
    if not _SUSPECT.search(text):
        return text, 0
    removed = 0
    while True:
        # Taking one out can put another together.
        entities = 0
        if not code:
            text, entities = _without_entities(text)
        text, invisible = _INVISIBLE.subn("", text)
        text, stray = _STRAY.subn("", text)
        removed_now = entities + invisible + stray
        if not removed_now:
            return text, removed
        removed += removed_now


def scrub(data: Any) -> tuple[Any, int]:
    """Return JSON `data` with every text in it scrubbed, names too, and how many characters were removed."""
    if isinstance(data, str):
        return scrub_text(data)
    if isinstance(data, dict):
        return _scrub_object(cast("dict[str, Any]", data))
    if isinstance(data, list):
        return _scrub_list(cast("list[Any]", data))
    return data, 0


def _scrub_object(data: dict[str, Any]) -> tuple[dict[str, Any], int]:
    removed = 0
    scrubbed: dict[str, Any] = {}
    for key, value in data.items():
        if not isinstance(value, str):
            clean, count = scrub(value)
        elif key in _PATH_FIELDS:
            clean = escape_path(value)
            count = 0
        else:
            clean, count = scrub_text(value, code=key in _CODE_FIELDS)
        # Names that are not GitHub's own are those of a gist's files.
        scrubbed[escape_path(key)] = clean
        removed += count
    return scrubbed, removed


def _scrub_list(data: list[Any]) -> tuple[list[Any], int]:
    removed = 0
    scrubbed: list[Any] = []
    for item in data:
        clean, count = scrub(item)
        scrubbed.append(clean)
        removed += count
    return scrubbed, removed


def _without_entities(text: str) -> tuple[str, int]:
    """Return `text` without HTML entities that stand for invisible characters, and how many characters those were."""
    removed = 0

    def replace_entity(match: re.Match[str]) -> str:
        nonlocal removed
        decoded = _decode_fully(match[0])
        if decoded and not _INVISIBLE.sub("", decoded):
            removed += len(decoded)
            return ""
        return match[0]

    return _ENTITY.sub(replace_entity, text), removed


def _decode_fully(entity: str) -> str:
    while True:
        decoded = html.unescape(entity)
        if decoded == entity:
            return decoded
        entity = decoded
