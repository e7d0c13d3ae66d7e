"""Invisible characters in texts, and how a path with such characters is written so that it can be named.

In prose they are taken out. A path without them would be another file's, or nobody's: there each is written as
`\\u{200b}`, and what is asked for under that spelling is the path it stands for.
"""

from __future__ import annotations

import re

__all__ = ["INVISIBLE_CHARACTERS", "STRAY_CHARACTERS", "escape_path", "unescape_path"]

# Characters, for a set of a regular expression, that show nothing wherever they stand.
INVISIBLE_CHARACTERS = (
    "\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x84\\x86-\\x9f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f"
    "\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff0-\\ufffb\\U0001bca0-\\U0001bca3"
    "\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff"
)
# An expression for those that show nothing where they stand: joiners are letters of Persian and of Indic scripts and
# glue of emoji, and a variation selector follows a symbol, once.
STRAY_CHARACTERS = (
    r"(?<![^\x00-\u02ff])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\u02ff])|(?<![^\x00-\x22])[\ufe00-\ufe0f]"
    r"|(?<=[\u200c\u200d\ufe00-\ufe0f])[\u200c\ufe00-\ufe0f]"
)

_EMOJI = r"\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff\xa9\xae"
_JOINED_SCRIPTS = r"\u0590-\u109f\u1700-\u18af"
# Line ends, and all that looks like a space or like nothing at all where it stands.
_IN_PATHS = re.compile(
    f"[{INVISIBLE_CHARACTERS}"
    r"\t\n\r\x85\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u2800\u3000\ue000-\uf8ff\U00013430-\U0001345f"
    r"\U00016fe4\U000f0000-\U0010ffff\ufe00-\ufe0e]|"
    rf"(?<![{_EMOJI}{_JOINED_SCRIPTS}\ufe0f])[\u200c\u200d]|[\u200c\u200d](?![{_EMOJI}{_JOINED_SCRIPTS}])|(?<![{_EMOJI}])\ufe0f(?!\u20e3)"
)
_ESCAPE = re.compile(r"\\u\{([0-9a-fA-F]{1,6})\}")


def escape_path(path: str) -> str:
    """Return `path` as people and models see it."""
    if path.isascii() and path.isprintable() and "\\u{" not in path:
        # Nearly all are, and so is every name in GitHub's answers.
        return path
    escaped = path.replace(r"\u{", r"\u{5c}u{")
    while True:
        before = escaped
        escaped = _IN_PATHS.sub(lambda match: f"\\u{{{ord(match[0]):x}}}", escaped)
        # What an escaped character stood beside may show nothing now.
        if escaped == before:
            return escaped


def unescape_path(escaped: str) -> str:
    """Return the path that is shown as `escaped`."""
    return _ESCAPE.sub(lambda match: _character(int(match[1], 16)) or match[0], escaped)


def _character(number: int) -> str:
    """Return the character with this number; empty if there is none that a path can have."""
    if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        return ""
    return chr(number)
