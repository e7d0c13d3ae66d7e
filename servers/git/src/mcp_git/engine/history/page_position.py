"""Reads the position at which a page of a listing begins from its cursor."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import Invalid

__all__ = ["PagePosition", "decode_position"]

_HASH = re.compile(r"\^?[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class PagePosition:
    """Where a page of a listing begins.

    Attributes:
        skip: how many items the pages before it have.
        offset: how many lines of its first item they have.
        hashes: of the commits from which the first page was made, or a digest of what it showed.
        next_hashes: of the commits from which all items of this page are reached; none where that is not known.
    """

    skip: int = 0
    offset: int = 0
    hashes: Sequence[str] = ()
    next_hashes: Sequence[str] = ()

    @property
    def first_hash(self) -> str:
        """The first of the hashes; empty if there is none."""
        return next(iter(self.hashes), "")

    @property
    def is_valid(self) -> bool:
        hashes = [*self.hashes, *self.next_hashes]
        return self.skip >= 0 and self.offset >= 0 and all(map(_HASH.fullmatch, hashes))


def decode_position(kind: str, cursor: str | None, scope: Any) -> PagePosition:
    """Return the position in a cursor: whoever can read one can make one, so nothing else comes out of it.

    Raises:
        Invalid: it is not of this listing.
    """
    if cursor is None:
        return PagePosition(hashes=[])
    try:
        skip, offset, *hash_lists = cast("list[Any]", Cursor.decode(kind, cursor, scope))
        position = PagePosition(int(skip), int(offset), *([str(item) for item in hashes] for hashes in hash_lists))
    except (TypeError, ValueError):
        position = PagePosition(-1)
    if position.is_valid:
        return position
    raise Invalid("The `cursor` is not one of this listing.", "Call again without `cursor`.")
