"""Values of JSON documents that may be of another kind than they should be, or less than there is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

__all__ = ["as_object", "as_objects", "is_part_of_list", "parse_json"]

# How C writes a number that is none, in the place of a value.
_BARE_NAN = re.compile(rb"(?<=[:,\[])\s*-?(?:nan|inf)\s*(?=[,\]}])")


def parse_json(body: bytes) -> Any:
    """Return what `body` says, with null for each number that is none.

    JSON has no such numbers, but for some points Open-Meteo writes the coordinates as `-nan` beside a good forecast.

    Raises:
        ValueError: it is no JSON otherwise either.
    """
    try:
        return json.loads(body, parse_constant=_read_constant)
    except ValueError:
        return json.loads(_BARE_NAN.sub(b"null", body), parse_constant=_read_constant)


def _read_constant(_: str) -> None:
    """Return null for `NaN` and `Infinity`, which Python takes for numbers."""


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


def is_part_of_list(document: Mapping[str, Any]) -> bool:
    """Return whether a GeoJSON list says that there are features which it does not have."""
    matched = document.get("numberMatched")
    if isinstance(matched, int):
        return matched > len(document["features"])
    return bool(document.get("pagination"))
