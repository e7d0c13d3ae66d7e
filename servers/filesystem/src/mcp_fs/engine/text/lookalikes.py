"""Finds a text that stands in a file in characters that look the same: other blanks, other dashes, nothing to see."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from mcp_batteries.errors import quote

__all__ = ["LookalikeMatch", "find_lookalikes", "strip_line_numbers"]

_BLANKS = " \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_INVISIBLE = "\u00ad\u200b-\u200d\u2060\ufeff"
_ALIKE = (_BLANKS, "'\u2018\u2019\u02bc", '"\u201c\u201d', "-\u2010\u2011\u2212")
_INVISIBLE_CHARACTER = re.compile(f"[{_INVISIBLE}]")
_LINE_END = re.compile(r"\r\n|\n|\r")
_CLASSES = [(re.compile(f"[{alike}]"), f"[{alike}]") for alike in _ALIKE]
# A number as `line_numbers`, cat(1), grep(1) and other editors write it before a line.
_LINE_NUMBER = re.compile(r"[ ]*\d+(?:\t|:|\u2192|[ ]?\|[ ]?)")
# Characters of an old text and of a file that are looked through for it.
_MAX_OLD_CHARACTERS = 20_000
_MAX_TEXT_CHARACTERS = 4_000_000
_MAX_MATCHES = 2


@dataclass(frozen=True, slots=True)
class LookalikeMatch:
    """A place where a text stands but for characters that look the same.

    Attributes:
        start: of it in the file's text.
        end: behind it.
        offset: in the file's text, of the first character that differs.
        expected: what the searched text has there; empty for nothing.
    """

    start: int
    end: int
    offset: int
    expected: str

    def describe(self, text: str) -> str:
        """Say where it stands in `text`, and which character differs."""
        line_start = max(text.rfind("\n", 0, self.offset), text.rfind("\r", 0, self.offset)) + 1
        line = len(_LINE_END.findall(text[:line_start])) + 1
        actual = _name_character(text[self.offset : self.offset + 1])
        expected = "nothing"
        if self.expected:
            expected = _name_character(self.expected)
        return f"line {line}, column {self.offset - line_start + 1} has {actual}, the old text {expected}"


def find_lookalikes(text: str, searched: str) -> list[LookalikeMatch]:
    """Return the first places where `text` has `searched`, or what looks like it."""
    if len(searched) > _MAX_OLD_CHARACTERS or len(text) > _MAX_TEXT_CHARACTERS:
        return []
    if text.isascii() and searched.isascii():
        return []
    visible = unicodedata.normalize("NFC", _INVISIBLE_CHARACTER.sub("", searched))
    if not visible.strip():
        return []
    pattern = re.compile("".join(_character_patterns(visible)))
    matches: list[LookalikeMatch] = []
    for match in pattern.finditer(text):
        offset, expected = _first_difference(match[0], searched)
        matches.append(LookalikeMatch(match.start(), match.end(), match.start() + offset, expected))
        if len(matches) == _MAX_MATCHES:
            break
    return matches


def strip_line_numbers(text: str) -> str | None:
    """Return a text without the number and the mark before each line; None if some line has none."""
    lines = text.split("\n")
    numbers = [_LINE_NUMBER.match(line) for line in lines]
    if lines[-1] == "":
        numbers.pop()
    stripped: list[str] = []
    for line, number in zip(lines, numbers, strict=False):
        if number is None:
            return None
        stripped.append(line[number.end() :])
    return "\n".join([*stripped, *lines[len(numbers) :]])


def _character_patterns(text: str) -> Iterator[str]:
    """Yield for each character what it may be in a file, with what can't be seen between two."""
    for index, piece in enumerate(re.findall(r"\r\n|[\s\S]", text)):
        if index:
            yield f"[{_INVISIBLE}]*"
        if piece in ("\n", "\r\n", "\r"):
            yield r"(?:\r\n|\n|\r)"
        else:
            yield _pattern_of(piece)


def _pattern_of(character: str) -> str:
    for pattern, character_class in _CLASSES:
        if pattern.match(character):
            return character_class
    decomposed = unicodedata.normalize("NFD", character)
    if decomposed == character:
        return re.escape(character)
    return f"(?:{re.escape(character)}|{re.escape(decomposed)})"


def _first_difference(match: str, searched: str) -> tuple[int, str]:
    """Return where two texts that look the same differ first, and what the second has there."""
    offset = 0
    while offset < len(match) and offset < len(searched) and match[offset] == searched[offset]:
        offset += 1
    expected = searched[offset : offset + 1]
    if _INVISIBLE_CHARACTER.match(match[offset : offset + 1]):
        expected = ""
    return min(offset, len(match) - 1), expected


def _name_character(character: str) -> str:
    name = unicodedata.name(character, "a control character").lower()
    if character.isprintable() and not character.isspace() and not unicodedata.combining(character):
        return f"{quote(character)} (U+{ord(character):04X} {name})"
    return f"U+{ord(character):04X} ({name})"
