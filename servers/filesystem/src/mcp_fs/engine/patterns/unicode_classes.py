"""Letters, digits and blanks of all scripts in an expression, as in ripgrep and Python; RE2's are ASCII's.

`\\w`, `\\d`, `\\s` and their opposites become classes that RE2 has. `\\b` has no such twin: where an expression begins
or ends with one, beside what can only be part of a word, the character before or behind it is asked for instead.
An accented character stands for both of its forms: `é` is one character, or a letter and a mark, as macOS writes names.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby

__all__ = ["expand_boundaries", "expand_classes", "expand_compositions"]

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
_TOKEN = re.compile(r"\\Q.*?(?:\\E|\Z)|\\[pP]\w|\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|.", re.DOTALL)
_FLAGS = re.compile(r"(?:\(\?[imsU-]+\))?")
# One character of a word, a class of them, or some words to choose from.
_WORD_ATOM = r"(?:\w|\\[wd]|\[(?:\w|-|\\[wd])+\]|\((?:\?:)?\w+(?:\|\w+)*\))"
_OPTIONAL_ATOMS = rf"(?:{_WORD_ATOM}(?:[*?]|\{{0(?:,\d*)?\}})\??)*"
_BEGINS_WITH_WORD = re.compile(rf"{_OPTIONAL_ATOMS}{_WORD_ATOM}(?![*?]|\{{[0,])")
_ENDS_WITH_WORD = re.compile(rf"(?<!\\){_WORD_ATOM}(?:(?:\+|\{{[1-9]\d*(?:,\d*)?\}})\??)?{_OPTIONAL_ATOMS}\Z")
_NAMED_FIRST = re.compile(r"\A\(\?P?<\w+>([^()|]*)\)(?![*?{])")
# A named group without choices, which changes nothing of what it begins or ends with.
_NAMED_LAST = re.compile(r"\(\?P?<\w+>([^()|]*)\)\Z")
_ESCAPE = re.compile(r"\\.", re.DOTALL)
_CODE_ESCAPE = re.compile(r"\\[xpPQ0-7]")


def expand_classes(pattern: str) -> str:
    """Return `pattern` with classes of all scripts, and with both forms of accented characters."""
    return _TOKEN.sub(lambda token: _expand_token(token[0]), _compose(pattern))


def expand_compositions(pattern: str) -> str:
    """Return `pattern` with both forms of accented characters."""
    return _TOKEN.sub(lambda token: _expand_composition(token[0]), _compose(pattern))


def _compose(pattern: str) -> str:
    """Return `pattern` with letters and marks composed; characters that NFC replaces, as the ohm sign, stay.

    So do classes and escapes: a mark behind `\\w` belongs to no `w`, and one in `[a-z]` to no `z`.
    """
    pieces: list[str] = []
    for is_composed, tokens in groupby(_TOKEN.findall(pattern), _can_be_composed):
        piece = "".join(tokens)
        if is_composed:
            piece = unicodedata.normalize("NFC", piece)
        pieces.append(piece)
    return "".join(pieces)


def _can_be_composed(token: str) -> bool:
    return len(token) == 1 and unicodedata.is_normalized("NFC", token)


def expand_boundaries(pattern: str) -> tuple[str, int]:
    """Return `pattern` with classes of all scripts, and with such boundaries at its ends; and the group that matches.

    The group is 0 for the whole of it.
    """
    flags = ""
    begin = _FLAGS.match(pattern)
    if begin:
        flags = begin[0]
    body = pattern.removeprefix(flags)
    if _CODE_ESCAPE.search(body) or _has_choices(body):
        return expand_classes(pattern), 0
    before = ""
    behind = ""
    if body.startswith(r"\b") and _BEGINS_WITH_WORD.match(_NAMED_FIRST.sub(r"\1", body[2:])):
        body = body[2:]
        before = f"(?:^|[^{_WORD}])"
    if _ends_at_boundary(body):
        body = body[:-2]
        behind = f"(?:$|[^{_WORD}])"
    expanded = f"{flags}{expand_classes(body)}"
    if before or behind:
        return (f"{before}({expanded}){behind}", 1)
    return (expanded, 0)


def _has_choices(pattern: str) -> bool:
    """Return whether a pattern has `|` outside of all groups."""
    depth = 0
    for token in _TOKEN.findall(pattern):
        if token == "(":
            depth += 1
        elif token == ")":
            depth -= 1
        elif token == "|" and not depth:
            return True
    return False


def _ends_at_boundary(pattern: str) -> bool:
    """Return whether a pattern ends in `\\b` behind what can only be part of a word."""
    if not pattern.endswith(r"\b") or pattern.endswith(r"\\b"):
        return False
    return _ENDS_WITH_WORD.search(_NAMED_LAST.sub(r"\1", pattern[:-2])) is not None


def _expand_token(token: str) -> str:
    if token.startswith("["):
        return token[0] + _ESCAPE.sub(_expand_in_brackets, token[1:])
    return _STANDALONE.get(token) or _expand_composition(token)


def _expand_composition(token: str) -> str:
    if len(token) > 1 or unicodedata.is_normalized("NFD", token):
        return token
    forms = dict.fromkeys([token, unicodedata.normalize("NFC", token), unicodedata.normalize("NFD", token)])
    return f"(?:{'|'.join(forms)})"


def _expand_in_brackets(escape: re.Match[str]) -> str:
    return _IN_BRACKETS.get(escape[0], escape[0])
