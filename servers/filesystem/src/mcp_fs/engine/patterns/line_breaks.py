"""Tells whether an expression asks for line breaks: only then does a match go over several lines."""

from __future__ import annotations

import re

__all__ = [
    "ALL_BRANCHES_HINT",
    "LINE_BREAK_HINT",
    "asks_for_line_breaks",
    "leaves_line_in_branch",
    "may_mean_line_breaks",
    "remove_classes",
    "spans_brackets",
]

LINE_BREAK_HINT = "a match stays in one line: write `\\n` where it goes over several"
ALL_BRANCHES_HINT = "`\\s`, `\\W` and `[^x]` match line ends in all branches, as one of them asks for line ends"

# What may hold the letters of a line break without asking for one: a class, a backslash that is itself escaped.
_CHARACTER_CLASS = re.compile(r"\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|\\[^nx0]", re.DOTALL)
_LINE_BREAK = re.compile(r"\\(?:n|x0[aA]|x\{0*[aA]\}|012)|\(\?[imU]*s")
_CLASS_WITH_LINE_BREAK = re.compile(r"\[(?!\^)(?:[^\\\n]|\\[^nx]|\\x(?!0[aA]))*(?:\n|\\n|\\x0[aA])", re.DOTALL)
_EVERY_CHARACTER = frozenset({r"[\s\S]", r"[\S\s]", r"[\d\D]", r"[\D\d]", r"[\w\W]", r"[\W\w]"})
# What stands for blanks, or for all but some characters, and could go on in the next line.
_OPEN_ENDED = re.compile(r"\\s|\[\^")
_MATCHES_LINE_END = re.compile(r"\\[sWD]|\[\^")
# The bar between two branches is a group; one in a class or behind a backslash is none.
_BAR = re.compile(rf"(?:{_CHARACTER_CLASS.pattern})|\\.|(\|)", re.DOTALL)
# Blanks behind an opening bracket, a comma or a semicolon, or before a closing bracket, and all up to a bracket.
_BRACKETS = re.compile(r"(?:\\[(\[{]|[,;])\\s|\\s[*+]\??\\[)\]}]|\[\^(?:\\?[()\[\]{}<>])+\]")


def asks_for_line_breaks(pattern: str) -> bool:
    """Return whether a match may go over several lines: by `\\n`, `(?s)`, or a class such as `[\\s\\S]`."""
    outside_classes = remove_classes(pattern)
    if "\n" in outside_classes or _LINE_BREAK.search(outside_classes) is not None:
        return True
    classes = [match[0] for match in _CHARACTER_CLASS.finditer(pattern)]
    return any(text in _EVERY_CHARACTER or _CLASS_WITH_LINE_BREAK.match(text) for text in classes)


def may_mean_line_breaks(pattern: str) -> bool:
    """Return whether who wrote an expression may have meant more than one line, though it does not ask for that."""
    return not asks_for_line_breaks(pattern) and _OPEN_ENDED.search(pattern) is not None


def spans_brackets(pattern: str) -> bool:
    """Return whether an expression that stays in a line goes into brackets or past a comma: `f\\(\\s*x`, `a,\\s*b`.

    What is in brackets is often written on several lines, so it misses some also where it has matches.
    """
    return not asks_for_line_breaks(pattern) and _BRACKETS.search(pattern) is not None


def leaves_line_in_branch(pattern: str) -> bool:
    """Return whether only some branches of an expression ask for line breaks, and another can match a line end too.

    Branches of groups count as well, with what stands around the group.
    """
    branches: list[str] = []
    start = 0
    for match in _BAR.finditer(pattern):
        if match[1]:
            branches.append(pattern[start : match.start()])
            start = match.end()
    branches.append(pattern[start:])
    in_line = [branch for branch in branches if not asks_for_line_breaks(branch)]
    return len(in_line) < len(branches) and any(map(_MATCHES_LINE_END.search, in_line))


def remove_classes(pattern: str) -> str:
    """Return an expression without its classes, and without escapes that are no line breaks."""
    return _CHARACTER_CLASS.sub("", pattern)
