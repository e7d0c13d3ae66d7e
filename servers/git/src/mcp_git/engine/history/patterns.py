"""Refuses regular expressions of other languages than POSIX."""

from __future__ import annotations

import re

from mcp_batteries.errors import Invalid

__all__ = ["refuse_foreign_syntax"]

# A bracket expression, in which a group is not a group, or what stands outside of one.
_TOKEN = re.compile(r"\[\^?\]?(?:\[([:.=]).*?\1\]|[^\]])*\]|\\.|\(\?|.", re.DOTALL)
_FOREIGN = re.compile(r"\(\?|\[?(?:\\\\|[^\\]|\\[^dD])*?(\\[dD])")


def refuse_foreign_syntax(pattern: str) -> None:
    """Refuse a pattern that has what other languages know: for git it would be another character, and find nothing.

    Raises:
        Invalid: it has.
    """
    for token in _TOKEN.finditer(pattern):
        foreign = _FOREIGN.match(token[0])
        if foreign:
            fix = "Write `[0-9]` for a digit, and groups without `?`."
            raise Invalid(f"A POSIX regular expression has no `{foreign[1] or foreign[0]}`.", fix)
