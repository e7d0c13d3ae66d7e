"""Pages of rows: what holds for them whichever database they come from."""

from __future__ import annotations

from typing import Protocol

from mcp_batteries.errors import Invalid, quote

__all__ = ["check_same"]


class _Named(Protocol):
    @property
    def name(self) -> str: ...


def check_same(of: _Named, wanted: _Named | None) -> None:
    """Let a cursor of the database `of` pass where no other one is `wanted`.

    Raises:
        Invalid: another one is.
    """
    if wanted is not None and wanted.name != of.name:
        raise Invalid(
            f"The `cursor` belongs to a result of the database {quote(of.name)}, not of {quote(wanted.name)}.",
            "Pass the `cursor` alone, or run the query again.",
        )
