"""Reads the expressions of plans, as PostgreSQL spells them, token by token."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

__all__ = [
    "NestedToken",
    "Token",
    "flatten",
    "join_tokens",
    "parse_nested",
    "split_at_word",
    "strip_parentheses",
    "token_text",
]

_TOKEN = re.compile(
    r"""(?P<space>\s+)|(?P<text>[eE]?'(?:[^'\\]|''|\\.)*')|(?P<name>"(?:[^"]|"")*")|(?P<word>[^\W\d][\w$]*)"""
    r"""|(?P<value>\d[\w.]*|\$\d+)|(?P<cast>::)|(?P<sign>[-+*/<>=~!@#%^&|`?]+|.)""",
    re.DOTALL,
)
# What `join_tokens` writes without the spaces around it.
_TIGHT_SIGNS = (
    (" ( ", "("),
    ("( ", "("),
    (" )", ")"),
    (" ,", ","),
    (" :: ", "::"),
    (" [ ", "["),
    (" ]", "]"),
)


@dataclass(frozen=True)
class Token:
    """A word, a sign or a literal."""

    kind: str
    text: str

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "name")


NestedToken = Token | list["NestedToken"]


def parse_nested(text: str) -> list[NestedToken]:
    """Return the tokens of an expression; what stands in parentheses is a list."""
    stack: list[list[NestedToken]] = [[]]
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if kind != "space":
            _push(stack, Token(kind, match[0]))
    while len(stack) > 1:
        inner = stack.pop()
        stack[-1].append(inner)
    return stack[0]


def _push(stack: list[list[NestedToken]], token: Token) -> None:
    if token.text == "(":
        stack.append([])
    elif token.text == ")" and len(stack) > 1:
        inner = stack.pop()
        stack[-1].append(inner)
    else:
        stack[-1].append(token)


def strip_parentheses(parts: Sequence[NestedToken]) -> Sequence[NestedToken]:
    """Return what stands in parentheses around the whole."""
    while len(parts) == 1 and isinstance(parts[0], list):
        parts = parts[0]
    return parts


def flatten(parts: Iterable[NestedToken]) -> list[Token]:
    """Return the tokens in a row, parentheses among them."""
    return list(_iterate_tokens(parts))


def _iterate_tokens(parts: Iterable[NestedToken]) -> Iterator[Token]:
    for part in parts:
        if isinstance(part, list):
            yield Token("sign", "(")
            yield from _iterate_tokens(part)
            yield Token("sign", ")")
        else:
            yield part


def token_text(part: NestedToken) -> str:
    """Return the text of a token; empty for parentheses."""
    if isinstance(part, Token):
        return part.text
    return ""


def split_at_word(parts: Sequence[NestedToken], word: str) -> list[list[NestedToken]]:
    """Return what stands between the places of a word; one part where it is not there."""
    operands: list[list[NestedToken]] = [[]]
    for part in parts:
        if token_text(part) == word:
            operands.append([])
        else:
            operands[-1].append(part)
    return operands


def join_tokens(texts: Sequence[str]) -> str:
    """Return tokens as a text of SQL."""
    joined = " ".join(texts)
    for before, after in _TIGHT_SIGNS:
        joined = joined.replace(before, after)
    # A sign before a parenthesis stands apart; a function's name does not.
    return re.sub(r"(?<=[-+*/<>=~|&,])\(", " (", joined)
