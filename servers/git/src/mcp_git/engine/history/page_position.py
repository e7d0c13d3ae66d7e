"""Reads the position at which a page of a listing begins from its cursor."""

from __future__ import annotations

import re
from typing import Any, cast

from mcp_batteries.errors import Invalid
from mcp_batteries.limits import Cursor

__all__ = ["decode_position"]

_HASH = re.compile(r"\^?[0-9a-f]{40}(?:[0-9a-f]{24})?")


def decode_position(kind: str, cursor: str | None, scope: Any) -> tuple[list[int], list[str]]:
    """The numbers and the hashes in a cursor: whoever can read one can make one, so nothing else comes out of it.

    Raises:
        Invalid: it is not of this listing.
    """
    if cursor is None:
        return [0, 0], []
    try:
        one, other, hashes = cast("list[Any]", Cursor.decode(kind, cursor, scope))
        numbers, words = [int(one), int(other)], [str(item) for item in hashes]
    except (TypeError, ValueError):
        numbers, words = [-1], []
    if min(numbers) >= 0 and all(map(_HASH.fullmatch, words)):
        return numbers, words
    raise Invalid("The `cursor` is not one of this listing.", "Call again without `cursor`.")
