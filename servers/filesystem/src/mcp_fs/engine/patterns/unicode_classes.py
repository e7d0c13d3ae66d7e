"""Letters, digits and blanks of all scripts in an expression, as in ripgrep and Python; RE2's are ASCII's.

`\\w`, `\\d`, `\\s` and their opposites become classes that RE2 has. `\\b` has no such twin: where an expression begins
or ends with one, beside what can only be part of a word, the character before or behind it is asked for instead.
"""

from __future__ import annotations

import re

__all__ = ["expand_boundaries", "expand_classes"]

_WORD = r"\pL\pM\p{Nd}\p{Nl}\p{Pc}"
_DIGIT = r"\p{Nd}"
_BLANK = r"\s\x{85}\pZ"
_IN_BRACKETS = {r"\w": _WORD, r"\d": _DIGIT, r"\s": _BLANK, r"\D": r"\P{Nd}"}
_STANDALONE = {
    r"\W": f"[^{_WORD}]",
    r"\S": f"[^{_BLANK}]",
    **{name: f"[{inside}]" for name, inside in _IN_BRACKETS.items()},
}
_STANDALONE[r"\D"] = r"\P{Nd}"
_TOKEN = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|.", re.DOTALL)
_FLAGS = re.compile(r"(?:\(\?[imsU-]+\))?")
# One character of a word, a class of them, or some words to choose from.
_WORD_ATOM = r"(?:\w|\\[wd]|\[(?:\w|-|\\[wd])+\]|\((?:\?:)?\w+(?:\|\w+)*\))"
_OPTIONAL_ATOMS = rf"(?:{_WORD_ATOM}(?:[*?]|\{{0(?:,\d*)?\}})\??)*"
_BEGINS_WITH_WORD = re.compile(rf"{_OPTIONAL_ATOMS}{_WORD_ATOM}(?![*?]|\{{[0,])")
_ENDS_WITH_WORD = re.compile(rf"(?<!\\){_WORD_ATOM}(?:(?:\+|\{{[1-9]\d*(?:,\d*)?\}})\??)?{_OPTIONAL_ATOMS}\Z")
_NAMED_FIRST = re.compile(r"\A\(\?P?<\w+>([^()|]*)\)(?![*?{])")
# A named group without choices, which changes nothing of what it begins or ends with.
_NAMED_LAST = re.compile(r"\(\?P?<\w+>([^()|]*)\)\Z")
_CODE_ESCAPE = re.compile(r"\\[xpPQ0-7]")


def expand_classes(pattern: str) -> str:
    """`pattern` with classes of all scripts."""
    return _TOKEN.sub(lambda found: _expand_token(found[0]), pattern)


def expand_boundaries(pattern: str) -> tuple[str, int]:
    """(`pattern` with classes of all scripts, and with such boundaries at its ends; the group that is its match)."""
    begin = _FLAGS.match(pattern)
    flags = ""
    if begin:
        flags = begin[0]
    body = pattern.removeprefix(flags)
    before = ""
    behind = ""
    if _CODE_ESCAPE.search(body):
        return expand_classes(pattern), 0
    depth = 0
    for token in _TOKEN.findall(body):
        depth += (token == "(") - (token == ")")
        if token == "|" and not depth:
            return expand_classes(pattern), 0
    if body.startswith(r"\b") and _BEGINS_WITH_WORD.match(_NAMED_FIRST.sub(r"\1", body[2:])):
        body = body[2:]
        before = f"(?:^|[^{_WORD}])"
    if body.endswith(r"\b") and not body.endswith(r"\\b") and _ENDS_WITH_WORD.search(_NAMED_LAST.sub(r"\1", body[:-2])):
        body = body[:-2]
        behind = f"(?:$|[^{_WORD}])"
    expanded = f"{flags}{expand_classes(body)}"
    if before or behind:
        return (f"{before}({expanded}){behind}", 1)
    return (expanded, 0)


def _expand_token(token: str) -> str:
    if token.startswith("["):
        return token[0] + re.sub(r"\\.", lambda found: _IN_BRACKETS.get(found[0], found[0]), token[1:], flags=re.DOTALL)
    return _STANDALONE.get(token, token)
