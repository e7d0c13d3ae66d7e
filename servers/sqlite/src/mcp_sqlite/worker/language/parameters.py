"""The values of a statement's parameters: from JSON, by number or by name."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any, cast

from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.tokens import TOKEN

__all__ = ["explain_parameters", "find_placeholders", "null_parameters", "parse_parameters"]

# The highest number of a parameter that SQLite takes (SQLITE_LIMIT_VARIABLE_NUMBER).
_MAX_PARAMETERS = 32766
_PLACEHOLDER = re.compile(r"\?|[:@$]\w")
_ONE_NAME = "One name takes one value, whatever sign it has: write different names."


def parse_parameters(parameters: Any, sql: str = "") -> list[Any] | dict[str, Any]:
    """Return the values to bind, from JSON; an array becomes an object where `sql` has names or numbers for its values.

    Which values of an array names take differs between versions of Python, and `$2` is the first where it comes first.

    Raises:
        Failure: one is a list, an object other than `{"base64": ...}`, or an integer beyond 64 bits; there are not as
            many as names; a name stands with two signs, or beside `?`, which versions of Python take differently.
    """
    if isinstance(parameters, dict):
        return _parse_named(cast("dict[str, Any]", parameters))
    values = [_parse_value(value, f"number {number}") for number, value in enumerate(parameters or (), 1)]
    if not values:
        return values
    placeholders = find_placeholders(sql)
    if _has_only_marks(placeholders):
        return values
    return _assign_to_names(placeholders, values)


def _parse_named(parameters: dict[str, Any]) -> dict[str, Any]:
    values = {name.lstrip(":@$"): _parse_value(value, f"`{name}`") for name, value in parameters.items()}
    if len(values) < len(parameters):
        raise Failure("invalid", f"`parameters` has a name twice: {', '.join(parameters)}.", _ONE_NAME)
    return values


def _assign_to_names(placeholders: list[str], values: list[Any]) -> dict[str, Any]:
    """Return `values` by the names or numbers that `placeholders` have for them."""
    listing = ", ".join(placeholders)
    if _has_marks(placeholders):
        message = f"The statement has parameters with and without a name: {listing}."
        raise Failure("invalid", message, explain_parameters(placeholders))
    names = [name[1:] for name in placeholders]
    if len(set(names)) < len(names):
        raise Failure("invalid", f"The statement has a name with different signs: {listing}.", _ONE_NAME)
    numbers = _number_names(names)
    if max(numbers) != len(values) or 0 in numbers:
        message = f"The statement has the parameters {listing}, and `parameters` has {len(values)} values."
        raise Failure("invalid", message, explain_parameters(placeholders))
    return {name: values[number - 1] for name, number in zip(names, numbers, strict=True)}


def _number_names(names: Sequence[str]) -> list[int]:
    """Return the positions of the values for names: the numbers that they are, or else in their order."""
    if all(map(str.isdecimal, names)):
        return list(map(int, names))
    return list(range(1, len(names) + 1))


def _has_marks(placeholders: Sequence[str]) -> bool:
    """Return whether something stands for a value without a name."""
    return any(name.startswith("?") for name in placeholders)


def _has_only_marks(placeholders: Sequence[str]) -> bool:
    return all(name.startswith("?") for name in placeholders)


def find_placeholders(sql: str) -> list[str]:
    """Return what stands for values in a statement, as it is written there, each once and the first first."""
    return list(dict.fromkeys(_find_all_placeholders(sql)))


def _find_all_placeholders(sql: str) -> list[str]:
    if not any(sign in sql for sign in "?:@$"):
        return []
    tokens = [match["value"] or "" for match in TOKEN.finditer(sql)]
    return [token for token in tokens if _PLACEHOLDER.match(token)]


def null_parameters(sql: str) -> list[None] | dict[str, None]:
    """Return NULL for whatever stands for a value in a statement that is only planned: values do not matter then."""
    placeholders = _find_all_placeholders(sql)
    if placeholders and not _has_marks(placeholders):
        return dict.fromkeys(placeholders)
    highest = 0
    for name in placeholders:
        if name[1:].isdecimal():
            highest = max(highest, int(name[1:]))
        else:
            highest += 1
    return [None] * min(highest, _MAX_PARAMETERS)


def explain_parameters(placeholders: Sequence[str]) -> str:
    """Return how values are passed for what `find_placeholders` found."""
    if not placeholders:
        return "Write ? where each value of `parameters` stands, without quotes."
    has_only_marks = _has_only_marks(placeholders)
    if _has_marks(placeholders) and not has_only_marks:
        return "Write ? for each of them, or a name for each."
    names = dict.fromkeys(name[1:] for name in placeholders)
    if not has_only_marks and not all(map(str.isdecimal, names)):
        members = ", ".join(f'"{name}": …' for name in names)
        return f"Pass an object as `parameters`: {{{members}}}."
    subject = f"every {placeholders[0]}"
    if len(placeholders) > 1:
        subject = f"each of {', '.join(placeholders)}"
    return f"Pass an array as `parameters`: a value for {subject}."


def _parse_value(value: Any, description: str) -> Any:
    match value:
        case None | float() | str() | bool() | bytes():
            return value
        case int() if -(2**63) <= value < 2**63:
            return value
        case {"base64": str() as encoded}:
            try:
                return base64.b64decode(encoded, validate=True)
            except ValueError:
                pass
        case _:
            pass
    fix = 'A parameter is text, a number of at most 64 bits, true, false, null, or {"base64": "..."} for bytes.'
    if isinstance(value, list):
        fix += " A list as JSON text: `IN (SELECT value FROM json_each(?))`."
    if isinstance(value, dict):
        fix += " An object as JSON text."
    raise Failure("invalid", f"Parameter {description} can't be bound.", fix)
