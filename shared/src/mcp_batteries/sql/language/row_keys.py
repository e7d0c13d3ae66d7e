"""The key of a row as it stands in a URI. This module imports nothing, for processes that have to stay small."""

from __future__ import annotations

from urllib.parse import unquote

__all__ = ["KEY_FORMAT", "parse_row_key"]

KEY_FORMAT = "Separate them by commas; a comma inside of one is `%252C` in the URI."


def parse_row_key(key: str, columns: int) -> list[str]:
    """Return the values in the last segment of a URI, decoded once.

    Commas separate them only where there are several columns.
    """
    if columns <= 1:
        return [key]
    return [unquote(value) for value in key.split(",")]
