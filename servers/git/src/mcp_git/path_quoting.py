"""Names of files as one line of text, with git's own escapes where needed."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Generator, Iterable

from mcp_batteries.errors import Invalid, quote

__all__ = [
    "LINE_BREAKS",
    "describe_hidden",
    "escape_hidden",
    "escape_line_breaks",
    "quote_path",
    "quote_paths",
    "unquote_path",
]

_ESCAPES = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}
_UNESCAPES = {letter: bytes([code]) for code, letter in _ESCAPES.items()}
# What turns the text around it into another order.
_DIRECTIONS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
# What shows nothing: fillers, joiners that join nothing, tags and variations of no character.
_UNSEEN = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\uffa0\ufff0-\ufffb"
    "\U000e0000-\U000e0fff"
)
# What stands between the two names of a file that was renamed.
_ARROW = "->"
_LINE_ENDS = "\x00-\x1f\x7f-\x9f\u2028\u2029"
_ODD = re.compile(f'[{_LINE_ENDS}"\\\\{_DIRECTIONS}{_UNSEEN}\ud800-\udfff]')
# What could pass for the end of a line, turns what follows around, or is text that nobody sees.
LINE_BREAKS = re.compile(f"[{_LINE_ENDS}{_DIRECTIONS}{_UNSEEN}]")
_HIDDEN = re.compile(f"[{_DIRECTIONS}{_UNSEEN}]")
_MAX_HIDDEN_NAMES = 5
# A letter with 30 marks, the most that Unicode's stream-safe text has: more would take the square of their number.
_MAX_MARKED_LETTER = 31
_ESCAPED = re.compile(rb"\\([abtnvfr\"\\]|[0-3][0-7]{2})|[^\\\"]+")


def quote_path(name: bytes) -> str:
    """Return a name as in answers: unchanged, or in double quotes with C's escapes, as git writes it."""
    text = name.decode("utf-8", "surrogateescape")
    is_composed = text.isascii() or unicodedata.is_normalized("NFC", text)
    if is_composed and not _ODD.search(text) and not text.endswith(" ") and _ARROW not in text:
        return text
    if is_composed:
        return '"' + "".join(_escaped(character) for character in text) + '"'
    return '"' + "".join(_list_uncomposed(text)) + '"'


def quote_paths(names: Iterable[bytes]) -> list[str]:
    """Return names as in answers, in their order."""
    return [quote_path(name) for name in names]


def _escaped(character: str) -> str:
    if len(character) == 1 and (letter := _ESCAPES.get(ord(character))):
        return "\\" + letter
    if _ODD.match(character):
        return _escape_bytes(character)
    return character


def _escape_bytes(character: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogateescape"))


def _list_uncomposed(text: str) -> Generator[str]:
    """Yield the characters of a name, with those escaped that a reader would write as another one, such as an accent.

    A name with `e` and an accent looks like one with `é`, which is another file to git.
    """
    letter_with_marks = ""
    for character in text:
        if unicodedata.is_normalized("NFC", letter_with_marks + character):
            yield _escaped(character)
        else:
            yield _escape_bytes(character)
        if unicodedata.combining(character):
            marked = unicodedata.normalize("NFC", letter_with_marks + character)
            letter_with_marks = marked[:_MAX_MARKED_LETTER]
        else:
            letter_with_marks = unicodedata.normalize("NFC", character)


def unquote_path(text: str) -> str:
    """Return the name that a caller's `text` means, undecodable bytes as `os.fsdecode` has them.

    Raises:
        Invalid: it begins with a double quote and is not what git would write.
    """
    if not text.startswith('"'):
        return text
    inside = text[1:-1].encode("utf-8", "surrogateescape")
    pieces = list(_ESCAPED.finditer(inside))
    if len(text) < 2 or not text.endswith('"') or sum(len(piece[0]) for piece in pieces) != len(inside):
        raise Invalid(f"{quote(text)} begins with a quote and is not a quoted name.", "Take it as an answer shows it.")
    return os.fsdecode(b"".join(_unescaped(piece) for piece in pieces))


def _unescaped(piece: re.Match[bytes]) -> bytes:
    if piece[1] is None:
        return piece[0]
    escape = piece[1].decode("ascii")
    if escape in _UNESCAPES:
        return _UNESCAPES[escape]
    return bytes([int(escape, 8)])


def escape_line_breaks(text: str) -> str:
    """Return a text with everything escaped that could look like a line end, that turns text around or is not seen."""
    return LINE_BREAKS.sub(_escape_match, text)


def escape_hidden(text: str) -> str:
    """Return a text with its lines as they are, and everything escaped that turns text around or is not seen."""
    return _HIDDEN.sub(_escape_match, text)


def _escape_match(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def describe_hidden(lines: Iterable[str]) -> str:
    """Return what to know of lines that are shown exactly as they are; empty where all of them can be seen."""
    hidden: list[str] = []
    for line in lines:
        hidden += _HIDDEN.findall(line)
    if not hidden:
        return ""
    names = [f"U+{ord(character):04X}" for character in dict.fromkeys(hidden)]
    listed = ", ".join(names[:_MAX_HIDDEN_NAMES])
    if len(names) > _MAX_HIDDEN_NAMES:
        listed += ", ..."
    return f"{len(hidden):,} characters that show nothing or turn text around: {listed}"
