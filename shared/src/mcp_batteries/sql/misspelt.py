"""Guesses what was meant where an SQL parser gave up: another SQL word, a similar name, or a quoted one."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["KEYWORDS", "NO_COMMAND", "RESERVED", "near", "other_parameter", "where_it_stopped"]

# These words are misspelt often enough to be worth a suggestion.
KEYWORDS = (
    "SELECT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "UNION", "INSERT", "INTO", "VALUES",
    "UPDATE", "SET", "DELETE", "CREATE", "TABLE", "INDEX", "VIEW", "TRIGGER", "ALTER", "DROP", "PRAGMA", "WITH",
    "RECURSIVE", "JOIN", "LEFT", "INNER", "CROSS", "EXPLAIN", "BETWEEN", "DISTINCT", "RETURNING", "CONFLICT",
)  # fmt: skip
NO_COMMAND = "A statement begins with a command, such as SELECT."
# SQLite (https://sqlite.org/lang_keywords.html) or PostgreSQL (appendix C) reserves these words, and people name things
# by them.
RESERVED = frozenset(
    (
        *KEYWORDS, "ADD", "ALL", "AND", "AS", "BY", "CASE", "CHECK", "COLLATE", "COMMIT", "CONSTRAINT", "DEFAULT",
        "DESC", "ELSE", "END", "ESCAPE", "EXCEPT", "EXISTS", "FOREIGN", "IN", "INTERSECT", "IS", "ISNULL", "LIKE",
        "NOT", "NOTNULL", "NULL", "ON", "OR", "PRIMARY", "REFERENCES", "THEN", "TO", "TRANSACTION", "UNIQUE", "USER",
        "USING", "WHEN", "WINDOW",
    )
)  # fmt: skip
# A placeholder of one dialect, driver or template where a value stands; elsewhere most of these are operators.
_PARAMETER = re.compile(
    r"""(?:[-=<>(,+*/|~]|\b(?:AND|BETWEEN|BY|ELSE|FETCH|FIRST|FROM|IN|I?LIKE|INTERVAL|INTO|LIMIT|NEXT|NOT|OFFSET|OR|SELECT
    |SET|THEN|TOP|WHEN|WHERE|RETURNING))\s*
    (?P<written>[$#]?\{\{?\s*\w+\s*\}?\}|%\(\w+\)[sd]|%[sd]\b|\?\d*(?![|&?])|:(?:\w+|'\x20*'|"\w+")|[@&]\w+|\$[^\W\d]\w*(?![\w$]))""",
    re.IGNORECASE | re.VERBOSE,
)


def where_it_stopped(word: str, sql: str, tables: Sequence[str], columns: Sequence[str]) -> str:
    """A sentence on what was meant at `word`, where a parser gave up; empty if unknown.

    Args:
        sql: the statement, without comments and the insides of texts, or with blanks in their places.
        columns: of the tables that the statement names.
    """
    before = re.search(rf"(\w+)\s+{re.escape(word)}(?!\w)", sql)
    # An unknown word before a name was taken for one, and the name is where the parser gave up.
    taken = before[1] if before else ""
    for met in (word, taken):
        if met.upper() in RESERVED:
            for name in (*tables, *columns):
                if name.casefold() == met.casefold():
                    return f'`{met}` is a word of SQL; the name stands in quotes: `"{name}"`.'
    if word.upper() not in RESERVED:
        meant = near(word, KEYWORDS, 0.65) or ("" if taken.upper() in KEYWORDS else near(taken, KEYWORDS, 0.65))
        first = re.match(rf"\s*{re.escape(word)}(?!\w)", sql) if word else None
        return meant or (NO_COMMAND if first else "")
    if re.search(rf"\b(?:FROM|JOIN|INTO|UPDATE|TABLE)\s+{re.escape(word)}(?!\w)", sql, re.IGNORECASE):
        return near(word, tables, 0.7)
    if re.search(rf",\s*{re.escape(word)}(?!\w)", sql):
        return "There is a comma too many before it."
    return "" if taken.upper() in RESERVED else near(taken, KEYWORDS, 0.7)


def other_parameter(sql: str, own: str, name: str = "") -> str:
    """The first placeholder in `sql` that another dialect would use; empty if there is none.

    Args:
        sql: the statement, without comments and the insides of texts, or with blanks in their places.
        own: a pattern of this dialect's placeholders.
        name: text that one of the placeholders must contain, in any case.
    """
    written = [found["written"] for found in _PARAMETER.finditer(sql) if not re.fullmatch(own, found["written"])]
    return re.sub("' *'", "'…'", written[0]) if any(name.lower() in item.lower() for item in written) else ""


def near(word: str, known: Sequence[str], cutoff: float = 0.5) -> str:
    """A question with at most three words similar to `word`, ignoring case; empty if there are none."""
    import difflib

    by_fold = {item.casefold(): item for item in known}
    found = [by_fold[item] for item in difflib.get_close_matches(word.casefold(), by_fold, n=3, cutoff=cutoff)]
    return f"Did you mean {' or '.join(f'`{item}`' for item in found)}?" if found else ""
