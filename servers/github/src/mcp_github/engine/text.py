"""What can't be seen is taken out of everything that comes from GitHub: a model reads it, a person does not.

Removed are characters that show nothing and can carry words or reorder them (Unicode's tag block, bidirectional
controls, zero-width characters, stray variation selectors, control characters), and in prose also their spelling as
HTML entities, however often encoded. What scripts and emoji need of them stays, and nothing else is touched.
"""

from __future__ import annotations

import html
import re
from typing import Any, cast

__all__ = ["scrub", "scrub_text"]

_ALWAYS = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_INVISIBLE = re.compile(f"[{_ALWAYS}]")
# Joiners are letters of Persian and of Indic scripts and glue of emoji; a variation selector follows a symbol, once.
_STRAY = re.compile(
    r"(?<![^\x00-\u02ff])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\u02ff])|(?<![^\x00-\x22])[\ufe00-\ufe0f]"
    r"|(?<=[\u200c\u200d\ufe00-\ufe0f])[\u200c\ufe00-\ufe0f]"
)
_ENTITY = re.compile(r"&(?:amp;|#38;|#x26;)*(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,7}|[A-Za-z]{2,31});?")
_SUSPECT = re.compile(f"[{_ALWAYS}\u200c\u200d\ufe00-\ufe0f&]")
_CODE = {"patch", "diff_hunk", "diffHunk", "content", "text_matches"}
"""Fields that hold code: their entities are theirs."""


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
                if isinstance(value, str):
                    clean, count = scrub_text(value, code=key in _CODE)
                else:
                    clean, count = scrub(value)
                name, more = scrub_text(key)
                kept[name] = clean
                removed += count + more
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
