"""Names as SQL spells them: of tables, columns, schemas and roles."""

from __future__ import annotations

__all__ = ["quote_identifier", "unquote_identifier"]


def quote_identifier(name: str) -> str:
    """`name` in double quotes, which keep every letter of it."""
    return '"' + name.replace('"', '""') + '"'


def unquote_identifier(word: str) -> str:
    """The name in `word`, which may stand in double quotes."""
    return word[1:-1].replace('""', '"') if word.startswith('"') else word
