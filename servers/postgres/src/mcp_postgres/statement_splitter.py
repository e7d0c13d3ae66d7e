"""Splits statements by PostgreSQL's lexical rules.

It decides nothing: each part goes to PostgreSQL by the protocol that takes only one statement, so a mistake here is a
syntax error there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["split_statements", "strip_leading_comments"]

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

_MAX_FIRST_WORDS = 5
_ROUTINE_WORDS = frozenset(("function", "procedure"))


class _StatementScanner:
    """Follows the tokens of one statement, to know whether a semicolon ends it.

    Attributes:
        is_empty: whether only blanks and comments came so far.
    """

    def __init__(self) -> None:
        self.is_empty = True
        self._depth = 0
        self._open_blocks = 0
        self._first_words: list[str] = []

    def ends_at(self, kind: str, text: str) -> bool:
        """Return whether a token is the semicolon that ends the statement."""
        return kind == "sign" and text == ";" and self._depth <= 0 and self._open_blocks == 0

    def read(self, kind: str, text: str) -> None:
        """Take in a token of the statement."""
        self.is_empty = False
        if kind == "sign" and text == "(":
            self._depth += 1
        elif kind == "sign" and text == ")":
            self._depth -= 1
        elif kind == "word" and self._depth == 0:
            self._read_word(text.lower())

    def _read_word(self, word: str) -> None:
        if len(self._first_words) < _MAX_FIRST_WORDS:
            self._first_words.append(word)
        # The body of CREATE FUNCTION ... BEGIN ATOMIC holds semicolons of its own.
        if self._first_words[0] != "create" or not _ROUTINE_WORDS.intersection(self._first_words):
            return
        if word == "begin" or (word == "case" and self._open_blocks > 0):
            self._open_blocks += 1
        elif word == "end" and self._open_blocks > 0:
            self._open_blocks -= 1


def split_statements(sql: str) -> list[str]:
    """Return the statements in `sql`; the text after the last semicolon is one only if it is more than a comment."""
    if ";" not in sql:  # most of them, and long ones take a while
        if strip_leading_comments(sql):
            return [sql.strip()]
        return []
    statements: list[str] = []
    start = 0
    scanner = _StatementScanner()
    for kind, text, position in _tokenize(sql):
        if kind in ("blank", "comment"):
            continue
        if not scanner.ends_at(kind, text):
            scanner.read(kind, text)
            continue
        if not scanner.is_empty:
            statements.append(sql[start:position].strip())
        start = position + 1
        scanner = _StatementScanner()
    if not scanner.is_empty:
        statements.append(sql[start:].strip())
    return statements


def strip_leading_comments(sql: str) -> str:
    """Return `sql` without the comments before it."""
    for kind, _, place in _tokenize(sql):
        if kind not in ("blank", "comment"):
            return sql[place:]
    return ""


def _tokenize(sql: str) -> Iterator[tuple[str, str, int]]:
    """Yield kind, text and place of each token."""
    place = 0
    while match := _TOKEN.match(sql, place):
        kind = match.lastgroup or ""
        end = match.end()
        if kind == "comment":
            end = _end_of_comment(sql, end)
        elif kind == "dollar":
            closing = sql.find(match[0], end)
            if closing < 0:
                end = len(sql)
            else:
                end = closing + len(match[0])
        yield kind, sql[place:end], place
        place = end


def _end_of_comment(sql: str, place: int) -> int:
    depth = 1
    while depth and (match := _COMMENT.search(sql, place)):
        depth += 1 if match[0] == "/*" else -1
        place = match.end()
    if depth:
        return len(sql)
    return place
