"""Guesses what was meant where an SQL parser gave up: another SQL word, a similar name, or a quoted one."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

__all__ = [
    "KEYWORDS",
    "MAX_NAMED_TABLES",
    "NO_COMMAND",
    "RESERVED",
    "ask_which",
    "explain_parameter_style",
    "explain_syntax_error",
    "find_similar",
    "join_sentences",
    "name_tables",
    "suggest_similar",
]

# Tables that are told where a name is missing, and the columns of all together.
MAX_NAMED_TABLES = 20
_MAX_NAMED_COLUMNS = 80

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
# A table's name follows these words.
_BEFORE_TABLES = ("FROM", "JOIN", "INTO", "UPDATE", "TABLE")
# A placeholder of one dialect, driver or template where a value stands; elsewhere most of these are operators.
_PARAMETER = re.compile(
    r"""(?:[-=<>(,+*/|~]|\b(?:AND|BETWEEN|BY|ELSE|FETCH|FIRST|FROM|IN|I?LIKE|INTERVAL|INTO|LIMIT|NEXT|NOT|OFFSET|OR|SELECT
    |SET|THEN|TOP|WHEN|WHERE|RETURNING))\s*
    (?P<written>[$#]?\{\{?\s*\w+\s*\}?\}|%\(\w+\)[sd]|%[sd]\b|\?\d*(?![|&?])|:(?:\w+|'\x20*'|"\w+")|[@&]\w+|\$[^\W\d]\w*(?![\w$]))""",
    re.IGNORECASE | re.VERBOSE,
)


def explain_syntax_error(word: str, sql: str, tables: Mapping[str, str], columns: Mapping[str, str]) -> str:
    """Say in a sentence what was meant at `word`, where a parser gave up; empty if unknown.

    Args:
        sql: the statement, without comments and the insides of texts, or with blanks in their places.
        tables: each name, and how SQL spells it.
        columns: the same, of the tables that the statement names.
    """
    match = re.search(rf"(\w+)\s+{re.escape(word)}(?!\w)", sql)
    # An unknown word before a name was taken for one, and the name is where the parser gave up.
    previous = match[1] if match else ""
    names = {**columns, **tables}
    unquoted = _explain_unquoted_blank(word, sql, names) or _explain_unquoted_word(word, previous, names)
    if unquoted:
        return unquoted
    if word.upper() not in RESERVED:
        return _explain_unreserved(word, previous, sql)
    if previous.upper() in _BEFORE_TABLES:
        return suggest_similar(word, list(tables), 0.7)
    if re.search(rf",\s*{re.escape(word)}(?!\w)", sql):
        return "There is a comma too many before it."
    if previous.upper() in RESERVED:
        return ""
    return suggest_similar(previous, KEYWORDS, 0.7)


def _explain_unquoted_blank(word: str, sql: str, names: Mapping[str, str]) -> str:
    """Explain a name of several words that stands without quotes around `word`; empty if there is none."""
    if not word:
        return ""
    for name, spelling in names.items():
        words = name.split()
        if len(words) < 2 or word.casefold() not in map(str.casefold, words):
            continue
        unquoted = r"\s+".join(map(re.escape, words))
        if re.search(rf'(?<![\w"]){unquoted}(?![\w"])', sql, re.IGNORECASE):
            return f"A name of several words stands in quotes: `{spelling}`."
    return ""


def _explain_unquoted_word(word: str, previous: str, names: Mapping[str, str]) -> str:
    """Explain a reserved word that is the name of a table or column; empty if there is none.

    A parser that took such a word for SQL's own gives up at the next one.
    """
    spellings = {name.casefold(): spelling for name, spelling in names.items()}
    candidates = [word]
    if previous.upper() not in _BEFORE_TABLES:
        candidates.append(previous)
    for candidate in candidates:
        spelling = spellings.get(candidate.casefold())
        if spelling and candidate.upper() in RESERVED:
            return f"`{candidate}` is a word of SQL; the name stands in quotes: `{spelling}`."
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


def suggest_similar(word: str, names: Sequence[str], cutoff: float = 0.6) -> str:
    """Return a question with at most three words similar to `word`, ignoring case; empty if there are none."""
    return ask_which(find_similar(word, names, cutoff))


def ask_which(similar: Sequence[str]) -> str:
    """Return the question whether one of the names was meant; empty if there are none."""
    if not similar:
        return ""
    return f"Did you mean {' or '.join(f'`{name}`' for name in similar)}?"


def find_similar(word: str, names: Sequence[str], cutoff: float = 0.6) -> list[str]:
    """Return at most three words similar to `word`, ignoring case, the most similar first."""
    import difflib

    by_fold = {item.casefold(): item for item in names}
    return [by_fold[item] for item in difflib.get_close_matches(word.casefold(), by_fold, n=3, cutoff=cutoff)]


def name_tables(tables: Mapping[str, Sequence[str]], concerned: Collection[str], total: int) -> str:
    """Say which tables there are, those concerned first, with columns: a wrong guess then costs no further look.

    Of tables for whose columns there is no space only the number of these is said.

    Args:
        tables: each name and its columns, as SQL spells them; where they are many, only those concerned.
        concerned: those that a statement names, or may mean.
        total: how many tables there are.
    """
    if not tables:
        return ""
    space = _MAX_NAMED_COLUMNS
    descriptions: list[str] = []
    for table in sorted(tables, key=lambda table: table not in concerned):
        columns = tables[table]
        has_space = len(columns) <= space
        if has_space:
            space -= len(columns)
        descriptions.append(_describe_table(table, columns, has_columns=has_space))
    scope = "Tables of this database" if len(tables) == total else f"Of its {total:,} tables"
    return f"{scope}: {', '.join(descriptions)}."


def join_sentences(*sentences: str) -> str:
    """Return the sentences that are not empty as one text."""
    return " ".join(filter(None, sentences))


def _describe_table(table: str, columns: Sequence[str], *, has_columns: bool) -> str:
    """Return a table with its columns, or their number; a view that can't be read has none."""
    if not columns:
        return f"`{table}`"
    if not has_columns:
        return f"`{table}` ({len(columns)} columns)"
    return f"`{table}` ({', '.join(columns)})"
