"""Finds bytes that may match an expression in any encoding, to see without decoding what is worth decoding.

An expression in RE2's syntax becomes one over bytes, in what RE2 and Rust's engine have in common. It matches at
least where the first would in UTF-8 and in every encoding that keeps ASCII's bytes; it may match elsewhere too.
"""

from __future__ import annotations

import re

from mcp_fs.engine.text.encodings import ASCII_ENCODINGS

__all__ = ["byte_pattern", "wide_pattern"]

# A character beyond ASCII: one to four bytes, the first of them high.
_NON_ASCII = r"[\x80-\xff][^\n]{0,3}"

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
    begin = _PLAIN.match(pattern)
    run = ""
    if begin:
        run = begin[0]
    if not literal:
        if "|" in pattern:
            return r"\x00"
        # The last one may be repeated, or not be there at all.
        if len(run) == len(pattern):
            run = run
        else:
            run = run[:-1]
    if ignore_case:
        run = re.split("[kKsS]", run, maxsplit=1)[0]
    # Two texts as they stand: what an engine finds fastest.
    if not (len(run) > 1):
        return r"\x00"
    return "|".join(gap.join(run) for gap in (r"\x00", r"\x00\x00\x00"))


class _NoEquivalent(Exception):
    """Raised when a part of a pattern has no twin."""


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
                return r"[^\n]" if self.lookahead.startswith(("*", "+")) else r"(?:[^\n]{1,4})"
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
        """One that stands for itself, in every way it is spelled."""
        if not char.isascii():
            if self.ignore_case:
                return f"(?:{_NON_ASCII}|[kKsS])"
            return _encode_in_all(char)
        if char in _META:
            plain = "\\" + char
        else:
            plain = char
        folded = None
        if self.ignore_case:
            folded = _FOLDED.get(char.lower())
        if folded is None:
            return plain
        return f"(?:{plain}|{_encode_in_all(folded)})"

    def translate_escape(self) -> str:
        begin = self.position == 1
        char = self.next_character()
        if char in "bB":
            if self.lookahead.startswith(_QUANTIFIERS):
                raise _NoEquivalent
            # The second byte of a character may look like a letter, which hides a boundary.
            is_certain = begin and char == "b" and _PLAIN.match(self.lookahead)
            return r"(?:\b|[\x80-\xff][^\n]{1,3})" if is_certain else ""
        if char in "dws":
            return f"(?:[{_DIGITS[char]}]|{_NON_ASCII})"
        if char in "DWS":
            return rf"(?:[^{_DIGITS[char.lower()]}\n]|{_NON_ASCII})"
        return self.translate_escaped(char)

    def translate_escaped(self, char: str) -> str:
        if char in _SAME:
            return "\\" + char
        if char.isalnum() or not char.isascii() or char == "_":
            raise _NoEquivalent
        return self.translate_character(char)

    def translate_bracket(self) -> str:
        negated = self.lookahead.startswith("^")
        self.position += negated
        members: list[str] = []
        beyond = negated
        first = True
        while (char := self.next_character()) != "]" or first:
            first = False
            member, foreign = self.member(char)
            beyond = beyond or foreign
            members.append(member)
        inner = "".join(members)
        if negated:
            return rf"(?:[^{inner}\n]|{_NON_ASCII})"
        if not inner:
            return f"(?:{_NON_ASCII})"
        if beyond or self.ignore_case:
            return f"(?:[{inner}]|{_NON_ASCII})"
        return f"[{inner}]"

    def member(self, char: str) -> tuple[str, bool]:
        """(ASCII members, whether there are others) of one item of a class that begins with `char`."""
        if char == "[" and self.lookahead.startswith(":"):
            end = self.pattern.find(":]", self.position)
            if end < 0:
                raise _NoEquivalent
            name = self.pattern[self.position - 1 : end + 2]
            self.position = end + 2
            return name, "^" in name
        if char == "\\" and self.lookahead[:1] in tuple("dws"):
            return _DIGITS[self.next_character()], True
        if char == "\\" and self.lookahead[:1] in tuple("DW"):
            return "\\" + self.next_character(), True
        if char == "\\" and self.lookahead[:1] == "S":
            self.next_character()
            return r"\S\x0b", True
        low = self.class_character(char)
        if not self.lookahead.startswith("-") or self.lookahead in ("-", "-]"):
            if low.isascii():
                return (_hex_escape(low), False)
            return ("", True)
        self.next_character()
        high = self.class_character(self.next_character())
        if low > high or not low.isascii():
            return "", True
        return f"{_hex_escape(low)}-{_hex_escape(min(high, chr(127)))}", not high.isascii()

    def class_character(self, char: str) -> str:
        if char != "\\":
            return char
        char = self.next_character()
        if char in "tfvran":
            return {"t": "\t", "f": "\f", "v": "\v", "r": "\r", "a": "\a", "n": "\n"}[char]
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
