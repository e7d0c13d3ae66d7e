"""Names of database objects, as an operator writes them in options: `schema.table`, `shop=schema."Odd name"`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mcp_batteries.errors import Unavailable, quote
from mcp_batteries.sql.language.database_names import NAME_PATTERN, fold_name
from mcp_batteries.sql.language.identifiers import unquote_identifier

__all__ = ["QUALIFIED_NAME_FORMAT", "parse_qualified_names"]

QUALIFIED_NAME_FORMAT = (
    "Write names with dots between their parts, quoted as in SQL where they need it, behind `database=` if need be."
)
_PART = r'(?:"(?:[^"]|"")+"|[^\s",.=]+)'
_NAME = re.compile(rf"(?:(?P<database>{NAME_PATTERN})=)?(?P<name>{_PART}(?:\.{_PART})*)(?=[\s,]|$)")
_SEPARATORS = re.compile(r"[\s,]*")


def parse_qualified_names(flag: str, values: Sequence[str]) -> list[tuple[str | None, tuple[str, ...]]]:
    """Return the parts of each name, with its database; commas or spaces may separate names.

    Raises:
        Unavailable: one is not understood.
    """
    names: list[tuple[str | None, tuple[str, ...]]] = []
    for value in values:
        position = _skip_separators(value, 0)
        while position < len(value):
            match = _NAME.match(value, position)
            if match is None:
                raise Unavailable(f"{quote(value)} can't be the value of `{flag}`.", QUALIFIED_NAME_FORMAT)
            database = match["database"] and fold_name(match["database"])
            words: list[str] = re.findall(_PART, match["name"])
            names.append((database, tuple(map(unquote_identifier, words))))
            position = _skip_separators(value, match.end())
    return names


def _skip_separators(text: str, position: int) -> int:
    match = _SEPARATORS.match(text, position)
    assert match is not None, "the pattern matches nothing, too"
    return match.end()
