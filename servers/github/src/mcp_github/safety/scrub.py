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

from mcp_github.invisible import INVISIBLE, STRAY, shown_path

__all__ = ["scrub", "scrub_text"]

_INVISIBLE, _STRAY = re.compile(f"[{INVISIBLE}]"), re.compile(STRAY)
_ENTITY = re.compile(r"&(?:amp;|#38;|#x26;)*(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,7}|[A-Za-z]{2,31});?")
_SUSPECT = re.compile(f"[{INVISIBLE}\u200c\u200d\ufe00-\ufe0f&]")
_CODE = {"patch", "diff_hunk", "diffHunk", "content", "text_matches"}
"""Fields that hold code: their entities are theirs."""
_PATHS = {"path", "filename", "previous_filename", "manifest_path", "target"}
"""Fields that hold a path: without a character it would be another."""


def scrub_text(text: str, *, code: bool = False) -> tuple[str, int]:
    """`text` without what can't be seen, and how many characters that were.

    Args:
        code: leave HTML entities as they are.
    """
    if not _SUSPECT.search(text):
        return text, 0
    removed = 0
    while True:
        # Taking one out can put another together.
        text, entities = (text, 0) if code else _without_entities(text)
        text, plain = _INVISIBLE.subn("", text)
        text, stray = _STRAY.subn("", text)
        if not entities + plain + stray:
            return text, removed
        removed += entities + plain + stray


def scrub(data: Any) -> tuple[Any, int]:
    """JSON `data` with every text in it scrubbed, names too, and how many characters went."""
    match data:
        case str():
            return scrub_text(data)
        case dict():
            removed = 0
            kept: dict[str, Any] = {}
            for key, value in cast("dict[str, Any]", data).items():
                if isinstance(value, str) and key in _PATHS:
                    clean, count = shown_path(value), 0
                elif isinstance(value, str):
                    clean, count = scrub_text(value, code=key in _CODE)
                else:
                    clean, count = scrub(value)
                # Names that are not GitHub's own are those of a gist's files.
                kept[shown_path(key)] = clean
                removed += count
            return kept, removed
        case list():
            pairs = [scrub(item) for item in cast("list[Any]", data)]
            return [item for item, _ in pairs], sum(count for _, count in pairs)
        case _:
            return data, 0


def _without_entities(text: str) -> tuple[str, int]:
    removed = 0

    def judge(found: re.Match[str]) -> str:
        nonlocal removed
        decoded, before = found[0], ""
        while decoded != before:
            before, decoded = decoded, html.unescape(decoded)
        if decoded and not _INVISIBLE.sub("", decoded):
            removed += len(decoded)
            return ""
        return found[0]

    return _ENTITY.sub(judge, text), removed
