"""Invisible characters in texts, and how a path with such characters is written so that it can be named.

In prose they are taken out. A path without them would be another file's, or nobody's: there each is written as
`\\u{200b}`, and what is asked for under that spelling is the path it stands for.
"""

from __future__ import annotations

import re

__all__ = ["INVISIBLE", "STRAY", "meant_path", "shown_path"]

INVISIBLE = (
    "\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x84\\x86-\\x9f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f"
    "\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff0-\\ufffb\\U0001bca0-\\U0001bca3"
    "\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff"
)
"""Characters, for a set of a regular expression, that show nothing wherever they stand."""
STRAY = (
    r"(?<![^\x00-\u02ff])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\u02ff])|(?<![^\x00-\x22])[\ufe00-\ufe0f]"
    r"|(?<=[\u200c\u200d\ufe00-\ufe0f])[\u200c\ufe00-\ufe0f]"
)
"""An expression for those that show nothing where they stand: joiners are letters of Persian and of Indic scripts and
glue of emoji, and a variation selector follows a symbol, once."""

_EMOJI, _JOINED = r"\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff\xa9\xae", r"\u0590-\u109f\u1700-\u18af"
# Line ends, and all that looks like a space or like nothing at all where it stands.
_IN_PATHS = re.compile(
    f"[{INVISIBLE}"
    r"\t\n\r\x85\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u2800\u3000\ue000-\uf8ff\U00013430-\U0001345f"
    r"\U00016fe4\U000f0000-\U0010ffff\ufe00-\ufe0e]|"
    rf"(?<![{_EMOJI}{_JOINED}\ufe0f])[\u200c\u200d]|[\u200c\u200d](?![{_EMOJI}{_JOINED}])|(?<![{_EMOJI}])\ufe0f(?!\u20e3)"
)
_SPELT = re.compile(r"\\u\{([0-9a-fA-F]{1,6})\}")


def shown_path(path: str) -> str:
    """`path` as people and models see it."""
    if path.isascii() and path.isprintable() and "\\u{" not in path:
        return path  # nearly all are, and so is every name in GitHub's answers
    shown = path.replace(r"\u{", r"\u{5c}u{")
    while True:
        before, shown = shown, _IN_PATHS.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", shown)
        # What an escaped character stood beside may show nothing now.
        if shown == before:
            return shown


def meant_path(shown: str) -> str:
    """The path that is shown as `shown`."""
    return _SPELT.sub(lambda found: _char(int(found[1], 16)) or found[0], shown)


def _char(number: int) -> str:
    return "" if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF else chr(number)
