"""Arguments that several servers take, with the same descriptions."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from mcp_batteries.server.declaration.trusted import FreeText

__all__ = ["EMPTY_COUNTS", "IN_HEADER", "Cursor", "DryRun", "EmptyCounts", "Limit", "MaxBytes", "in_header"]

# This key is our own, because the SDK takes its published one for no argument that may be null.
IN_HEADER = "in-header"


class EmptyCounts:
    """Marks, inside `Annotated`, an argument of which an empty value says something: an empty text clears a field."""


EMPTY_COUNTS = EmptyCounts()


def in_header(name: str) -> dict[str, Any]:
    """Return `json_schema_extra` of an argument that a proxy may use to route and authorise.

    With `--param-headers` clients over HTTP repeat it in the header `Mcp-Param-<name>`, and a call whose header differs
    is refused; without the option it has no effect.
    """
    return {IN_HEADER: name}


# A cursor comes from an answer that was cut, which says so.
Cursor = Annotated[FreeText | None, Field()]
Limit = Annotated[int, Field(ge=1, le=5000)]
DryRun = Annotated[bool, Field(description="Only show what it would do.")]
MaxBytes = Annotated[int, Field(ge=1000, le=1_000_000, description="Bytes per answer.")]
