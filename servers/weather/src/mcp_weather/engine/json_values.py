"""Values of JSON documents that may be of another kind than they should be."""

from __future__ import annotations

from typing import Any, cast

__all__ = ["as_object", "as_objects"]


def as_object(value: Any) -> dict[str, Any]:
    """Return `value` if it is an object, else an empty one."""
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    return {}


def as_objects(value: Any) -> list[dict[str, Any]]:
    """Return the items of a list, with an empty object for each that is something else: it may have been an alert."""
    if not isinstance(value, list):
        return []
    return [as_object(item) for item in cast("list[Any]", value)]
