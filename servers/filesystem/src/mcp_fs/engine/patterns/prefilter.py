"""Finds bytes that may match an expression in any encoding, to see without decoding what is worth decoding.

An expression in RE2's syntax becomes one over bytes, in what RE2 and Rust's engine have in common. It matches at
least where the first would in UTF-8 and in every encoding that keeps ASCII's bytes; it may match elsewhere too.
"""

from __future__ import annotations

import re

from mcp_fs.engine.text.encodings import ASCII_ENCODINGS

__all__ = ["byte_pattern", "wide_pattern"]

_FOREIGN = r"[\x80-\xff][^\n]{0,3}"
"""A character beyond ASCII: one to four bytes, the first of them high."""

_DIGITS = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}
_SAME = frozenset("tfvra")
_META = frozenset("\\.+*?()|[]{}^$#&-~")
_QUANTIFIERS = tuple("*+?{")
_PLAIN = re.compile("[0-9A-Za-z_]{1,6}")
_REPEAT = re.compile(r"\{\d+(?:,\d*)?\}")
_GROUP = re.compile(r"\((?!\?)|\(\?(?:P<\w+>|(?:-?i)?:|-?i\))", re.ASCII)
# What ASCII letters are folded with beyond ASCII (CaseFolding.txt).
_FOLDED = {"k": "\u212a", "s": "\u017f"}


def byte_pattern(pattern: str, *, literal: bool, ignore_case: bool) -> str | None:
    """The expression over bytes for `pattern` (valid RE2); None when there is no certain one."""
    if "\0" in pattern or len(pattern) > 10_000:
        return None
    try:
        return _Translator(pattern, ignore_case or (not literal and "(?" in pattern)).translate(literal=literal)
    except (_Uncertain, UnicodeEncodeError):
        return None


def wide_pattern(pattern: str, *, literal: bool, ignore_case: bool) -> str:
    """The expression over bytes for what holds a match of `pattern` as UTF-16 or UTF-32, either end first.

    It asks for the plain characters that a match begins with, each apart from the next by one NUL or three; for a
    NUL alone where there are fewer than two such characters.
    """
    begin = _PLAIN.match(pattern)
    run = begin[0] if begin else ""
    if not literal:
        if "|" in pattern:
            return r"\x00"
        # The last one may be repeated, or not be there at all.
        run = run if len(run) == len(pattern) else run[:-1]
    if ignore_case:
        run = re.split("[kKsS]", run, maxsplit=1)[0]
    # Two texts as they stand: what an engine finds fastest.
    return "|".join(gap.join(run) for gap in (r"\x00", r"\x00\x00\x00")) if len(run) > 1 else r"\x00"


class _Uncertain(Exception):
    """Raised when a part of a pattern has no twin."""


class _Translator:
    def __init__(self, pattern: str, folds: bool) -> None:
        self.pattern, self.folds, self.at = pattern, folds, 0

    @property
    def rest(self) -> str:
        return self.pattern[self.at : self.at + 2]

    def take(self) -> str:
        if self.at == len(self.pattern):
            raise _Uncertain
        self.at += 1
        return self.pattern[self.at - 1]

    def translate(self, *, literal: bool) -> str:
        if literal:
            return "".join(map(self.character, self.pattern))
        out: list[str] = []
        while self.at < len(self.pattern):
            out.append(self.token())
        return "".join(out)

    def token(self) -> str:
        match self.take():
            case "\\":
                return self.escape()
            case "[":
                return self.bracket()
            case ".":
                return r"[^\n]" if self.rest.startswith(("*", "+")) else r"(?:[^\n]{1,4})"
            case "(":
                return self.whole(_GROUP)
            case "{":
                return self.whole(_REPEAT) if _REPEAT.match(self.pattern, self.at - 1) else r"\{"
            case "^" | "$" | "|" | ")" | "*" | "+" | "?" as char:
                return char
            case char:
                return self.character(char)

    def whole(self, token: re.Pattern[str]) -> str:
        match = token.match(self.pattern, self.at - 1)
        if match is None:
            raise _Uncertain
        self.at = match.end()
        return match[0]

    def character(self, char: str) -> str:
        """One that stands for itself, in every way it is spelled."""
        if not char.isascii():
            return f"(?:{_FOREIGN}|[kKsS])" if self.folds else _spelled(char)
        plain = "\\" + char if char in _META else char
        folded = _FOLDED.get(char.lower()) if self.folds else None
        return plain if folded is None else f"(?:{plain}|{_spelled(folded)})"

    def escape(self) -> str:
        begin = self.at == 1
        char = self.take()
        if char in "bB":
            if self.rest.startswith(_QUANTIFIERS):
                raise _Uncertain
            # The second byte of a character may look like a letter, which hides a boundary.
            told = begin and char == "b" and _PLAIN.match(self.rest)
            return r"(?:\b|[\x80-\xff][^\n]{1,3})" if told else ""
        if char in "dws":
            return f"(?:[{_DIGITS[char]}]|{_FOREIGN})"
        if char in "DWS":
            return rf"(?:[^{_DIGITS[char.lower()]}\n]|{_FOREIGN})"
        return self.escaped(char)

    def escaped(self, char: str) -> str:
        if char in _SAME:
            return "\\" + char
        if char.isalnum() or not char.isascii() or char == "_":
            raise _Uncertain
        return self.character(char)

    def bracket(self) -> str:
        negated = self.rest.startswith("^")
        self.at += negated
        members: list[str] = []
        beyond, first = negated, True
        while (char := self.take()) != "]" or first:
            first = False
            member, foreign = self.member(char)
            beyond = beyond or foreign
            members.append(member)
        inner = "".join(members)
        if negated:
            return rf"(?:[^{inner}\n]|{_FOREIGN})"
        if not inner:
            return f"(?:{_FOREIGN})"
        return f"(?:[{inner}]|{_FOREIGN})" if beyond or self.folds else f"[{inner}]"

    def member(self, char: str) -> tuple[str, bool]:
        """(ASCII members, whether there are others) of one item of a class that begins with `char`."""
        if char == "[" and self.rest.startswith(":"):
            end = self.pattern.find(":]", self.at)
            if end < 0:
                raise _Uncertain
            name = self.pattern[self.at - 1 : end + 2]
            self.at = end + 2
            return name, "^" in name
        if char == "\\" and self.rest[:1] in tuple("dws"):
            return _DIGITS[self.take()], True
        if char == "\\" and self.rest[:1] in tuple("DW"):
            return "\\" + self.take(), True
        if char == "\\" and self.rest[:1] == "S":
            self.take()
            return r"\S\x0b", True
        low = self.single(char)
        if not self.rest.startswith("-") or self.rest in ("-", "-]"):
            return (_member(low), False) if low.isascii() else ("", True)
        self.take()
        high = self.single(self.take())
        if low > high or not low.isascii():
            return "", True
        return f"{_member(low)}-{_member(min(high, chr(127)))}", not high.isascii()

    def single(self, char: str) -> str:
        if char != "\\":
            return char
        char = self.take()
        if char in "tfvran":
            return {"t": "\t", "f": "\f", "v": "\v", "r": "\r", "a": "\a", "n": "\n"}[char]
        if char.isalnum() or not char.isascii() or char == "_":
            raise _Uncertain
        return char


def _member(char: str) -> str:
    return f"\\x{ord(char):02x}"


def _spelled(char: str) -> str:
    """A character beyond ASCII in each encoding that has it."""
    spellings = dict.fromkeys([char.encode()])
    for codec in ASCII_ENCODINGS:
        try:
            spellings[char.encode(codec)] = None
        except UnicodeEncodeError:
            continue
    return "(?:" + "|".join("".join(map("\\x{:02x}".format, spelling)) for spelling in spellings) + ")"
