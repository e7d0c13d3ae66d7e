"""The values of a statement's parameters: from JSON, by number or by name."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any

from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.tokens import TOKEN

__all__ = ["explain_parameters", "find_placeholders", "null_parameters", "parse_parameters"]

_MOST_VALUES = 32766

_ONE_NAME = "One name takes one value, whatever sign it has: write different names."


def parse_parameters(given: Any, sql: str = "") -> list[Any] | dict[str, Any]:
    """Values to bind, from JSON; of an array those that `sql` has names or numbers for by these.

    Which values of an array names take differs between versions of Python, and `$2` is the first where it comes first.

    Raises:
        Failure: one is a list, an object other than `{"base64": ...}`, or an integer beyond 64 bits; there are not as
            many as names; a name stands with two signs, or beside `?`, which versions of Python take differently.
    """
    if isinstance(given, dict):
        named: dict[str, Any] = {name.lstrip(":@$"): _bound(value, f"`{name}`") for name, value in given.items()}  # pyright: ignore
        if len(named) < len(given):  # pyright: ignore
            raise Failure("invalid", f"`parameters` has a name twice: {', '.join(given)}.", _ONE_NAME)  # pyright: ignore
        return named
    values = [_bound(value, f"number {number}") for number, value in enumerate(given or (), 1)]
    names = find_placeholders(sql) if values else []
    if not names or all(name.startswith("?") for name in names):
        return values
    if any(name.startswith("?") for name in names):
        what = f"The statement has parameters with and without a name: {', '.join(names)}."
        raise Failure("invalid", what, explain_parameters(names))
    if len({name[1:] for name in names}) < len(names):
        raise Failure("invalid", f"The statement has a name with different signs: {', '.join(names)}.", _ONE_NAME)
    by_number = all(name[1:].isdecimal() for name in names)
    numbers = [int(name[1:]) for name in names] if by_number else [*range(1, len(names) + 1)]
    if max(numbers) != len(values) or not min(numbers):
        what = f"The statement has the parameters {', '.join(names)}, and `parameters` has {len(values)} values."
        raise Failure("invalid", what, explain_parameters(names))
    return {name[1:]: values[number - 1] for name, number in zip(names, numbers, strict=True)}


def find_placeholders(sql: str) -> list[str]:
    """What stands for values in a statement, as it is written there; the first first."""
    return list(dict.fromkeys(_each_placeholder(sql)))


def _each_placeholder(sql: str) -> list[str]:
    if not any(sign in sql for sign in "?:@$"):
        return []
    found = (match["value"] or "" for match in TOKEN.finditer(sql))
    return [item for item in found if re.match(r"\?|[:@$]\w", item)]


def null_parameters(sql: str) -> list[None] | dict[str, None]:
    """NULL for whatever stands for a value in a statement that is only planned: values do not matter then."""
    each = _each_placeholder(sql)
    if each and not any(name.startswith("?") for name in each):
        return dict.fromkeys(each)
    number = 0
    for name in each:
        number = max(number, int(name[1:])) if name[1:].isdecimal() else number + 1
    return [None] * min(number, _MOST_VALUES)


def explain_parameters(names: Sequence[str]) -> str:
    """How values are passed for what `placeholders` found."""
    if not names:
        return "Write ? where each value of `parameters` stands, without quotes."
    if len({name.startswith("?") for name in names}) > 1:
        return "Write ? for each of them, or a name for each."
    if all(name.startswith("?") or name[1:].isdecimal() for name in names):
        each = f"each of {', '.join(names)}" if len(names) > 1 else f"every {names[0]}"
        return f"Pass an array as `parameters`: a value for {each}."
    named = ", ".join(f'"{name}": …' for name in dict.fromkeys(name[1:] for name in names))
    return f"Pass an object as `parameters`: {{{named}}}."


def _bound(value: Any, where: str) -> Any:
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
    raise Failure(
        "invalid",
        f"Parameter {where} can't be bound.",
        'A parameter is text, a number of at most 64 bits, true, false, null, or {"base64": "..."} for bytes.'
        + " A list as JSON text: `IN (SELECT value FROM json_each(?))`." * isinstance(value, list)
        + " An object as JSON text." * isinstance(value, dict),
    )
