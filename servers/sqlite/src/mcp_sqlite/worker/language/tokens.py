"""How SQLite reads the text of a statement: its tokens, and the meaningless text between them."""

from __future__ import annotations

import re
import sqlite3

__all__ = ["BLANK", "EMPTY_STATEMENT", "EXPLAIN_PREFIX", "TOKEN", "list_checks", "terminate"]

TOKEN = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|(?>/\*.*?\*/))|(?P<text>[xX]?'(?:[^']|'')*')"""
    r"""|(?P<name>"(?:[^"]|"")*"|\[[^]]*\]|`(?:[^`]|``)*`)|(?P<word>[^\W\d]\w*)|(?P<value>\d[\w.]*|[?:@$][\w:]*)"""
    r"""|(?P<sign><=|>=|<>|!=|==|\|\||->>|->|<<|>>|.)""",
    re.DOTALL,
)
BLANK = r"(?s:[\s\ufeff]|--[^\n]*(?:\n|\Z)|(?>/\*.*?(?:\*/|\Z)))*"
_LEADING_TEXT = f"(?>(?:{BLANK};)*{BLANK})"
# What stands before a statement, or in place of one.
EMPTY_STATEMENT = re.compile(_LEADING_TEXT)
EXPLAIN_PREFIX = re.compile(rf"\A{_LEADING_TEXT}EXPLAIN\b(?:{BLANK}QUERY\b{BLANK}PLAN\b)?", re.IGNORECASE)


def terminate(sql: str) -> str:
    """Return a statement of the schema with its `;`, also where SQLite keeps a comment as its end."""
    for terminator in (";", "\n;", "*/;"):
        if sqlite3.complete_statement(sql + terminator):
            return sql + terminator
    return f"{sql};"


def list_checks(sql: str) -> list[str]:
    """Return the CHECK constraints of a CREATE TABLE, each in one line."""
    checks: list[str] = []
    start: int | None = None
    depth = 0
    for token in TOKEN.finditer(sql):
        word = token[0]
        if start is None and token["word"] is not None and word.upper() == "CHECK":
            start = token.start()
            depth = 0
        elif start is not None and word == "(":
            depth += 1
        elif start is not None and word == ")":
            depth -= 1
            if depth == 0:
                checks.append(" ".join(sql[start : token.end()].split()))
                start = None
    return checks
