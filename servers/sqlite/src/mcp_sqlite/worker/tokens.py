"""How SQLite reads the text of a statement: its tokens, and what says nothing between them."""

from __future__ import annotations

import re

__all__ = ["BLANK", "EMPTY", "EXPLAIN", "TOKEN"]

TOKEN = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|(?>/\*.*?\*/))|(?P<text>[xX]?'(?:[^']|'')*')"""
    r"""|(?P<name>"(?:[^"]|"")*"|\[[^]]*\]|`(?:[^`]|``)*`)|(?P<word>[^\W\d]\w*)|(?P<value>\d[\w.]*|[?:@$][\w:]*)"""
    r"""|(?P<sign><=|>=|<>|!=|==|\|\||->>|->|<<|>>|.)""",
    re.DOTALL,
)
BLANK = r"(?s:[\s\ufeff]|--[^\n]*(?:\n|\Z)|(?>/\*.*?(?:\*/|\Z)))*"
_BEFORE = f"(?>(?:{BLANK};)*{BLANK})"
EMPTY = re.compile(_BEFORE)
"""What stands before a statement, or in place of one."""
EXPLAIN = re.compile(rf"\A{_BEFORE}EXPLAIN\b(?:{BLANK}QUERY\b{BLANK}PLAN\b)?", re.IGNORECASE)
