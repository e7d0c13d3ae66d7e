"""The key of a row as it stands in a URI. This module imports nothing, for processes that have to stay small."""

from __future__ import annotations

from urllib.parse import unquote

__all__ = ["FORM", "values_of"]

FORM = "Separate them by commas; a comma inside of one is `%252C` in the URI."


def values_of(key: str, columns: int) -> list[str]:
    """The values in the last segment of a URI, decoded once; commas part them only where there are several columns."""
    return [unquote(value) for value in key.split(",")] if columns > 1 else [key]
