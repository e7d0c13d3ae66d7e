"""Guesses what was meant where an SQL parser gave up: another SQL word, a similar name, or a quoted one."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["KEYWORDS", "NO_COMMAND", "RESERVED", "explain_parameter_style", "explain_syntax_error", "suggest_similar"]

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


def explain_syntax_error(word: str, sql: str, tables: Sequence[str], columns: Sequence[str]) -> str:
    """Say in a sentence what was meant at `word`, where a parser gave up; empty if unknown.

    Args:
        sql: the statement, without comments and the insides of texts, or with blanks in their places.
        columns: of the tables that the statement names.
    """
    match = re.search(rf"(\w+)\s+{re.escape(word)}(?!\w)", sql)
    # An unknown word before a name was taken for one, and the name is where the parser gave up.
    previous = match[1] if match else ""
    unquoted = _explain_unquoted_name((word, previous), (*tables, *columns))
    if unquoted:
        return unquoted
    if word.upper() not in RESERVED:
        return _explain_unreserved(word, previous, sql)
    if re.search(rf"\b(?:FROM|JOIN|INTO|UPDATE|TABLE)\s+{re.escape(word)}(?!\w)", sql, re.IGNORECASE):
        return suggest_similar(word, tables, 0.7)
    if re.search(rf",\s*{re.escape(word)}(?!\w)", sql):
        return "There is a comma too many before it."
    if previous.upper() in RESERVED:
        return ""
    return suggest_similar(previous, KEYWORDS, 0.7)


def _explain_unquoted_name(words: Sequence[str], names: Sequence[str]) -> str:
    """Explain a reserved word that is the name of a table or column; empty if there is none."""
    for word in words:
        if word.upper() not in RESERVED:
            continue
        for name in names:
            if name.casefold() == word.casefold():
                return f'`{word}` is a word of SQL; the name stands in quotes: `"{name}"`.'
    return ""


def _explain_unreserved(word: str, previous: str, sql: str) -> str:
    """Explain a word that is none of SQL's: it, or the one before it, may be misspelt."""
    suggestion = suggest_similar(word, KEYWORDS, 0.65)
    if not suggestion and previous.upper() not in KEYWORDS:
        suggestion = suggest_similar(previous, KEYWORDS, 0.65)
    if suggestion:
        return suggestion
    if word and re.match(rf"\s*{re.escape(word)}(?!\w)", sql):
        return NO_COMMAND
    return ""


def explain_parameter_style(sql: str, own: str, name: str = "") -> str:
    """Return the first placeholder in `sql` that another dialect would use; empty if there is none.

    Args:
        sql: the statement, without comments and the insides of texts, or with blanks in their places.
        own: a pattern of this dialect's placeholders.
        name: text that one of the placeholders must contain, in any case.
    """
    placeholders = [match["written"] for match in _PARAMETER.finditer(sql)]
    foreign = [placeholder for placeholder in placeholders if not re.fullmatch(own, placeholder)]
    if not any(name.lower() in placeholder.lower() for placeholder in foreign):
        return ""
    return re.sub("' *'", "'…'", foreign[0])


def suggest_similar(word: str, known: Sequence[str], cutoff: float = 0.5) -> str:
    """Return a question with at most three words similar to `word`, ignoring case; empty if there are none."""
    import difflib

    by_fold = {item.casefold(): item for item in known}
    similar = difflib.get_close_matches(word.casefold(), by_fold, n=3, cutoff=cutoff)
    if not similar:
        return ""
    return f"Did you mean {' or '.join(f'`{by_fold[item]}`' for item in similar)}?"
