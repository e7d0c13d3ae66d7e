"""Finds bytes that may match an expression in any encoding, to see without decoding what is worth decoding.

An expression in RE2's syntax becomes one over bytes, in what RE2 and Rust's engine have in common. It matches at
least where the first would in UTF-8 and in every encoding that keeps ASCII's bytes; it may match elsewhere too.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mcp_fs.engine.text.encodings import ASCII_ENCODINGS

__all__ = ["byte_pattern", "wide_pattern"]

# A character beyond ASCII: one to four bytes, the first of them high.
_NON_ASCII = r"[\x80-\xff][^\n]{0,3}"

_DIGITS = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}
_CONTROL_ESCAPES = {"t": "\t", "f": "\f", "v": "\v", "r": "\r", "a": "\a", "n": "\n"}
_CLASS_ESCAPES = tuple("dwsDWS")
_SAME = frozenset("tfvra")
_META = frozenset("\\.+*?()|[]{}^$#&-~")
_QUANTIFIERS = tuple("*+?{")
_PLAIN = re.compile("[0-9A-Za-z_]{1,6}")
_REPEAT = re.compile(r"\{\d+(?:,\d*)?\}")
_GROUP = re.compile(r"\((?!\?)|\(\?(?:P<\w+>|(?:-?i)?:|-?i\))", re.ASCII)
# What ASCII letters are folded with beyond ASCII (CaseFolding.txt).
_FOLDED = {"k": "\u212a", "s": "\u017f"}


def byte_pattern(pattern: str, *, literal: bool, ignore_case: bool) -> str | None:
    """Return the expression over bytes for `pattern` (valid RE2); None when there is no certain one."""
    if "\0" in pattern or len(pattern) > 10_000:
        return None
    try:
        return _Translator(pattern, ignore_case or (not literal and "(?" in pattern)).translate(literal=literal)
    except (_NoEquivalent, UnicodeEncodeError):
        return None


def wide_pattern(pattern: str, *, literal: bool, ignore_case: bool) -> str:
    """Return the expression over bytes for what holds a match of `pattern` as UTF-16 or UTF-32, either end first.

    It asks for the plain characters that a match begins with, each apart from the next by one NUL or three; for a
    NUL alone where there are fewer than two such characters.
    """
    run = _plain_beginning(pattern, literal=literal)
    if ignore_case:
        run = re.split("[kKsS]", run, maxsplit=1)[0]
    if len(run) < 2:
        return r"\x00"
    # Two texts as they stand: what an engine finds fastest.
    one_nul = r"\x00".join(run)
    three_nuls = r"\x00\x00\x00".join(run)
    return f"{one_nul}|{three_nuls}"


def _plain_beginning(pattern: str, *, literal: bool) -> str:
    """Return the plain characters that each match begins with."""
    begin = _PLAIN.match(pattern)
    if begin is None:
        return ""
    run = begin[0]
    if literal or run == pattern:
        return run
    if "|" in pattern:
        return ""
    # The last one may be repeated, or not be there at all.
    return run[:-1]


class _NoEquivalent(Exception):
    """Raised when a part of a pattern has no twin."""


class _ClassMember(NamedTuple):
    """What one item of a class stands for.

    Attributes:
        ascii: the item over ASCII.
        has_foreign: whether it holds other characters too.
    """

    ascii: str
    has_foreign: bool


class _Translator:
    def __init__(self, pattern: str, ignore_case: bool) -> None:
        self.pattern = pattern
        self.ignore_case = ignore_case
        self.position = 0

    @property
    def lookahead(self) -> str:
        return self.pattern[self.position : self.position + 2]

    def next_character(self) -> str:
        if self.position == len(self.pattern):
            raise _NoEquivalent
        self.position += 1
        return self.pattern[self.position - 1]

    def translate(self, *, literal: bool) -> str:
        if literal:
            return "".join(map(self.translate_character, self.pattern))
        out: list[str] = []
        while self.position < len(self.pattern):
            out.append(self.translate_token())
        return "".join(out)

    def translate_token(self) -> str:
        match self.next_character():
            case "\\":
                return self.translate_escape()
            case "[":
                return self.translate_bracket()
            case ".":
                if self.lookahead.startswith(("*", "+")):
                    return r"[^\n]"
                return r"(?:[^\n]{1,4})"
            case "(":
                return self.match_token(_GROUP)
            case "{":
                if not _REPEAT.match(self.pattern, self.position - 1):
                    return r"\{"
                return self.match_token(_REPEAT)
            case "^" | "$" | "|" | ")" | "*" | "+" | "?" as char:
                return char
            case char:
                return self.translate_character(char)

    def match_token(self, token: re.Pattern[str]) -> str:
        match = token.match(self.pattern, self.position - 1)
        if match is None:
            raise _NoEquivalent
        self.position = match.end()
        return match[0]

    def translate_character(self, char: str) -> str:
        """Translate a character that stands for itself, in every way it is spelled."""
        if not char.isascii():
            if self.ignore_case:
                return f"(?:{_NON_ASCII}|[kKsS])"
            return _encode_in_all(char)
        plain = char
        if char in _META:
            plain = "\\" + char
        if not self.ignore_case or char.lower() not in _FOLDED:
            return plain
        return f"(?:{plain}|{_encode_in_all(_FOLDED[char.lower()])})"

    def translate_escape(self) -> str:
        is_at_begin = self.position == 1
        char = self.next_character()
        match char:
            case "b" | "B":
                return self.translate_boundary(char, is_at_begin=is_at_begin)
            case "d" | "w" | "s":
                return f"(?:[{_DIGITS[char]}]|{_NON_ASCII})"
            case "D" | "W" | "S":
                return rf"(?:[^{_DIGITS[char.lower()]}\n]|{_NON_ASCII})"
            case _:
                return self.translate_escaped(char)

    def translate_boundary(self, char: str, *, is_at_begin: bool) -> str:
        if self.lookahead.startswith(_QUANTIFIERS):
            raise _NoEquivalent
        # The second byte of a character may look like a letter, which hides a boundary.
        if is_at_begin and char == "b" and _PLAIN.match(self.lookahead):
            return r"(?:\b|[\x80-\xff][^\n]{1,3})"
        return ""

    def translate_escaped(self, char: str) -> str:
        if char in _SAME:
            return "\\" + char
        if char.isalnum() or not char.isascii() or char == "_":
            raise _NoEquivalent
        return self.translate_character(char)

    def translate_bracket(self) -> str:
        is_negated = self.lookahead.startswith("^")
        self.position += is_negated
        members: list[str] = []
        has_foreign = False
        is_first = True
        while (char := self.next_character()) != "]" or is_first:
            is_first = False
            member = self.translate_member(char)
            members.append(member.ascii)
            has_foreign = has_foreign or member.has_foreign
        inner = "".join(members)
        if is_negated:
            return rf"(?:[^{inner}\n]|{_NON_ASCII})"
        if not inner:
            return f"(?:{_NON_ASCII})"
        if has_foreign or self.ignore_case:
            return f"(?:[{inner}]|{_NON_ASCII})"
        return f"[{inner}]"

    def translate_member(self, char: str) -> _ClassMember:
        """Translate one item of a class, which begins with `char`."""
        if char == "[" and self.lookahead.startswith(":"):
            return self.translate_named_class()
        if char == "\\" and self.lookahead[:1] in _CLASS_ESCAPES:
            return self.translate_class_escape(self.next_character())
        low = self.class_character(char)
        if self.lookahead.startswith("-") and self.lookahead not in ("-", "-]"):
            return self.translate_range(low)
        if low.isascii():
            return _ClassMember(_hex_escape(low), has_foreign=False)
        return _ClassMember("", has_foreign=True)

    def translate_named_class(self) -> _ClassMember:
        end = self.pattern.find(":]", self.position)
        if end < 0:
            raise _NoEquivalent
        name = self.pattern[self.position - 1 : end + 2]
        self.position = end + 2
        return _ClassMember(name, has_foreign="^" in name)

    @staticmethod
    def translate_class_escape(char: str) -> _ClassMember:
        match char:
            case "d" | "w" | "s":
                return _ClassMember(_DIGITS[char], has_foreign=True)
            case "S":
                return _ClassMember(r"\S\x0b", has_foreign=True)
            case _:
                return _ClassMember("\\" + char, has_foreign=True)

    def translate_range(self, low: str) -> _ClassMember:
        """Translate a range that begins with `low`, before its hyphen."""
        self.next_character()
        high = self.class_character(self.next_character())
        if low > high or not low.isascii():
            return _ClassMember("", has_foreign=True)
        last = min(high, chr(127))
        return _ClassMember(f"{_hex_escape(low)}-{_hex_escape(last)}", has_foreign=not high.isascii())

    def class_character(self, char: str) -> str:
        if char != "\\":
            return char
        char = self.next_character()
        control = _CONTROL_ESCAPES.get(char)
        if control is not None:
            return control
        if char.isalnum() or not char.isascii() or char == "_":
            raise _NoEquivalent
        return char


def _hex_escape(char: str) -> str:
    return f"\\x{ord(char):02x}"


def _encode_in_all(char: str) -> str:
    """Return a character beyond ASCII in each encoding that has it."""
    spellings = dict.fromkeys([char.encode()])
    for codec in ASCII_ENCODINGS:
        try:
            spellings[char.encode(codec)] = None
        except UnicodeEncodeError:
            continue
    return "(?:" + "|".join("".join(map("\\x{:02x}".format, spelling)) for spelling in spellings) + ")"
