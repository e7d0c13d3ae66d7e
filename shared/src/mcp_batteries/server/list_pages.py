"""Pages of the protocol's lists, with cursors that belong to one list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import Invalid
from mcp_batteries.server.protocol_errors import to_mcp_error

__all__ = ["page_of"]

_PAGE_ENTRIES = 100

T = TypeVar("T")


def page_of(kind: str, items: Sequence[T], cursor: str | None, scope: Any = None) -> tuple[list[T], str | None]:
    """Return the page of `items` that starts at `cursor`, and the cursor of the next one.

    Raises:
        MCPError: the cursor belongs to another list.
    """
    start = 0
    if cursor:
        try:
            start = int(Cursor.decode(kind, cursor, scope))
        except Invalid as problem:
            raise to_mcp_error(problem) from problem
    end = start + _PAGE_ENTRIES
    if end >= len(items):
        return list(items[start:]), None
    return list(items[start:end]), Cursor.encode(kind, end, scope)
