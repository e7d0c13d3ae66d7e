"""Names of database objects, as an operator writes them in options: `schema.table`, `shop=schema."Odd name"`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mcp_batteries.errors import Unavailable, quote
from mcp_batteries.sql.identifiers import unquoted

__all__ = ["FORM", "dotted"]

FORM = "Write names with dots between their parts, quoted as in SQL where they need it, behind `database=` if need be."
_PART = r'(?:"(?:[^"]|"")+"|[^\s",.=]+)'
_NAME = re.compile(rf"(?:(?P<database>[\w-]+)=)?(?P<name>{_PART}(?:\.{_PART})*)(?=[\s,]|$)")
_BETWEEN = re.compile(r"[\s,]*")


def dotted(flag: str, values: Sequence[str]) -> list[tuple[str | None, tuple[str, ...]]]:
    """The parts of each name, with its database; commas or spaces may separate names.

    Raises:
        Unavailable: one is not understood.
    """
    found: list[tuple[str | None, tuple[str, ...]]] = []
    for value in values:
        place = 0
        while (rest := _BETWEEN.match(value, place)) and (place := rest.end()) < len(value):
            name = _NAME.match(value, place)
            if name is None:
                raise Unavailable(f"{quote(value)} can't be the value of `{flag}`.", FORM)
            words: list[str] = re.findall(_PART, name["name"])
            found.append((name["database"] and name["database"].lower(), tuple(map(unquoted, words))))
            place = name.end()
    return found
