"""Notices where letters beyond ASCII are compared as if case did not matter: to SQLite it does, in those."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.tokens import TOKEN

__all__ = ["may_miss_other_case"]

_COMPARISON = re.compile(r"\b(?:LIKE|NOCASE)\b", re.IGNORECASE)


def may_miss_other_case(database: Database, sql: str, parameters: Any) -> bool:
    """Return whether a statement compares letters of which SQLite finds one case only, as a reader may not expect."""
    if _COMPARISON.search(sql) is None:
        return False
    tokens = list(TOKEN.finditer(sql))
    if not any(_COMPARISON.fullmatch(token["word"] or "") for token in tokens):
        return False
    texts = [token["text"] or "" for token in tokens]
    if not any(map(_has_cased_letter, [*texts, *_list_values(parameters)])):
        return False
    # A build with ICU knows all letters.
    return not database.read_internal("SELECT 'ä' LIKE 'Ä'")


def _list_values(parameters: Any) -> list[str]:
    values: Iterable[Any] = cast("Iterable[Any]", parameters or ())
    if isinstance(parameters, Mapping):
        values = cast("Mapping[str, Any]", parameters).values()
    return [value for value in values if isinstance(value, str)]


def _has_cased_letter(text: str) -> bool:
    return not text.isascii() and any(letter > "\x7f" and letter.lower() != letter.upper() for letter in text)
