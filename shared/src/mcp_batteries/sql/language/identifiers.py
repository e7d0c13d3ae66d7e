"""Names as SQL spells them: of tables, columns, schemas and roles."""

from __future__ import annotations

__all__ = ["quote_identifier", "spell_identifier", "unquote_identifier"]

# Words that are no names in SQLite, nor in most of SQL (https://sqlite.org/lang_keywords.html).
_RESERVED_WORDS = {
    "ADD", "ALL", "ALTER", "AND", "AS", "AUTOINCREMENT", "BETWEEN", "CASE", "CHECK", "COLLATE", "COMMIT", "CONSTRAINT",
    "CREATE", "DEFAULT", "DEFERRABLE", "DELETE", "DISTINCT", "DROP", "ELSE", "ESCAPE", "EXISTS", "FOREIGN", "FROM",
    "GROUP", "HAVING", "IN", "INDEX", "INSERT", "INTERSECT", "INTO", "IS", "ISNULL", "JOIN", "LIMIT", "NOT", "NOTHING",
    "NOTNULL", "NULL", "ON", "OR", "ORDER", "PRIMARY", "REFERENCES", "RETURNING", "SELECT", "SET", "TABLE", "THEN",
    "TO", "TRANSACTION", "UNION", "UNIQUE", "UPDATE", "USING", "VALUES", "WHEN", "WHERE",
}  # fmt: skip


def quote_identifier(name: str) -> str:
    """Return `name` in double quotes, which keep every letter of it."""
    return '"' + name.replace('"', '""') + '"'


def spell_identifier(name: str) -> str:
    """Return `name` as SQL takes it: in double quotes where it is none by itself."""
    if name.isidentifier() and name.upper() not in _RESERVED_WORDS:
        return name
    return quote_identifier(name)


def unquote_identifier(word: str) -> str:
    """Return the name in `word`, which may stand in double quotes."""
    return word[1:-1].replace('""', '"') if word.startswith('"') else word
