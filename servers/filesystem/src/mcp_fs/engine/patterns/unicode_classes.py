"""Letters, digits and blanks of all scripts in an expression, as in ripgrep and Python; RE2's are ASCII's.

`\\w`, `\\d`, `\\s` and their opposites become classes that RE2 has. `\\b` has no such twin: where an expression begins
or ends with one, beside what can only be part of a word, the character before or behind it is asked for instead.
"""

from __future__ import annotations

import re

__all__ = ["classes", "with_edges"]

_WORD, _DIGIT, _BLANK = r"\pL\pM\p{Nd}\p{Nl}\p{Pc}", r"\p{Nd}", r"\s\x{85}\pZ"
_INSIDE = {r"\w": _WORD, r"\d": _DIGIT, r"\s": _BLANK, r"\D": r"\P{Nd}"}
_ALONE = {r"\W": f"[^{_WORD}]", r"\S": f"[^{_BLANK}]", **{name: f"[{inside}]" for name, inside in _INSIDE.items()}}
_ALONE[r"\D"] = r"\P{Nd}"
_TOKEN = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|.", re.DOTALL)
_FLAGS = re.compile(r"(?:\(\?[imsU-]+\))?")
_SURE = r"(?:\w|\\[wd]|\[(?:\w|-|\\[wd])+\]|\((?:\?:)?\w+(?:\|\w+)*\))"
"""One character of a word, a class of them, or some words to choose from."""
_MAYBE = rf"(?:{_SURE}(?:[*?]|\{{0(?:,\d*)?\}})\??)*"
_BEGINS = re.compile(rf"{_MAYBE}{_SURE}(?![*?]|\{{[0,])")
_ENDS = re.compile(rf"(?<!\\){_SURE}(?:(?:\+|\{{[1-9]\d*(?:,\d*)?\}})\??)?{_MAYBE}\Z")
_NAMED_FIRST = re.compile(r"\A\(\?P?<\w+>([^()|]*)\)(?![*?{])")
_NAMED_LAST = re.compile(r"\(\?P?<\w+>([^()|]*)\)\Z")
"""A named group without choices, which changes nothing of what it begins or ends with."""
_BY_CODE = re.compile(r"\\[xpPQ0-7]")


def classes(pattern: str) -> str:
    """`pattern` with classes of all scripts."""
    return _TOKEN.sub(lambda found: _class(found[0]), pattern)


def with_edges(pattern: str) -> tuple[str, int]:
    """(`pattern` with classes of all scripts, and with such boundaries at its ends; the group that is its match)."""
    begin = _FLAGS.match(pattern)
    flags = begin[0] if begin else ""
    body, before, behind = pattern.removeprefix(flags), "", ""
    if _BY_CODE.search(body):
        return classes(pattern), 0
    depth = 0
    for token in _TOKEN.findall(body):
        depth += (token == "(") - (token == ")")
        if token == "|" and not depth:
            return classes(pattern), 0
    if body.startswith(r"\b") and _BEGINS.match(_NAMED_FIRST.sub(r"\1", body[2:])):
        body, before = body[2:], f"(?:^|[^{_WORD}])"
    if body.endswith(r"\b") and not body.endswith(r"\\b") and _ENDS.search(_NAMED_LAST.sub(r"\1", body[:-2])):
        body, behind = body[:-2], f"(?:$|[^{_WORD}])"
    whole = f"{flags}{classes(body)}"
    return (f"{before}({whole}){behind}", 1) if before or behind else (whole, 0)


def _class(token: str) -> str:
    if token.startswith("["):
        return token[0] + re.sub(r"\\.", lambda found: _INSIDE.get(found[0], found[0]), token[1:], flags=re.DOTALL)
    return _ALONE.get(token, token)
