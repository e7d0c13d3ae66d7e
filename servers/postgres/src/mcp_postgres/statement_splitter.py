"""Splits statements by PostgreSQL's lexical rules.

It decides nothing: each part goes to PostgreSQL by the protocol that takes only one statement, so a mistake here is a
syntax error there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["begin_of", "split"]

_TOKEN = re.compile(
    r"""(?P<blank>\s+|--[^\n]*)
    | (?P<comment>/\*)
    | (?:[eE]'(?:[^'\\]|\\.|'')*(?:'|\Z))
    | (?:'(?:[^']|'')*(?:'|\Z))
    | (?:"(?:[^"]|"")*(?:"|\Z))
    | (?P<dollar>\$(?:[^\W\d]\w*)?\$)
    | (?P<word>[^\W\d][\w$]*)
    | (?:\d[\w$]*)
    | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*|\*/")


def split(sql: str) -> list[str]:
    """The statements in `sql`; the text after the last semicolon is one only if it is more than a comment."""
    if ";" not in sql:  # most of them, and long ones take a while
        return [sql.strip()] if begin_of(sql) else []
    parts: list[str] = []
    start, depth, blocks, empty = 0, 0, 0, True
    words: list[str] = []
    for kind, text, place in _tokens(sql):
        if kind in ("blank", "comment"):
            continue
        if kind == "sign" and text == ";" and depth <= 0 and blocks == 0:
            parts += [] if empty else [sql[start:place].strip()]
            start, depth, empty, words = place + 1, 0, True, []
            continue
        empty = False
        if kind == "sign":
            depth += (text == "(") - (text == ")")
        elif kind == "word" and depth == 0:
            # The body of CREATE FUNCTION ... BEGIN ATOMIC holds semicolons of its own.
            word = text.lower()
            words = words if len(words) > 4 else [*words, word]
            if words[0] == "create" and {"function", "procedure"} & {*words}:
                blocks += (word == "begin") or (word == "case" and blocks > 0)
                blocks -= word == "end" and blocks > 0
    return parts if empty else [*parts, sql[start:].strip()]


def begin_of(sql: str) -> str:
    """`sql` without the comments before it."""
    for kind, _, place in _tokens(sql):
        if kind not in ("blank", "comment"):
            return sql[place:]
    return ""


def _tokens(sql: str) -> Iterator[tuple[str, str, int]]:
    """Kind, text and place of each token."""
    place = 0
    while found := _TOKEN.match(sql, place):
        kind, end = found.lastgroup or "", found.end()
        if kind == "comment":
            end = _behind_comment(sql, end)
        elif kind == "dollar":
            closing = sql.find(found[0], end)
            end = len(sql) if closing < 0 else closing + len(found[0])
        yield kind, sql[place:end], place
        place = end


def _behind_comment(sql: str, place: int) -> int:
    depth = 1
    while depth and (found := _COMMENT.search(sql, place)):
        depth += 1 if found[0] == "/*" else -1
        place = found.end()
    return len(sql) if depth else place
