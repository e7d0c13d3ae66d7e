"""Chinese names in the other of the two ways to write them.

The characters are in `chinese_variants.txt`, which `servers/weather/write_chinese_variants.py` writes.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import NamedTuple

__all__ = ["list_chinese_variants", "simplify_chinese"]


class _Tables(NamedTuple):
    """What `str.translate` takes, for each direction."""

    to_simplified: dict[int, str]
    to_traditional: dict[int, str]


def simplify_chinese(text: str) -> str:
    """Return `text` in simplified characters, in which names are compared."""
    return text.translate(_load_tables().to_simplified)


def list_chinese_variants(text: str) -> list[str]:
    """Return `text` in simplified and in traditional characters, without what it is itself: `廣州` is `广州`."""
    tables = _load_tables()
    variants = [text.translate(tables.to_simplified), text.translate(tables.to_traditional)]
    return [variant for variant in dict.fromkeys(variants) if variant != text]


@cache
def _load_tables() -> _Tables:
    content = resources.files("mcp_weather.geography").joinpath("chinese_variants.txt").read_text("utf-8")
    traditional, simplified = content.splitlines()
    pairs = list(zip(traditional, simplified, strict=True))
    return _Tables(
        to_simplified={ord(one): other for one, other in pairs},
        to_traditional={ord(other): one for one, other in pairs},
    )
