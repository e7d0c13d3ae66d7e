"""The fields of a file of records, as the columns of a new table: their names, and the kinds of their values.

This module imports nothing of the common package but `sql.transfer.files`, so that a small process can import it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mcp_batteries.sql.transfer.files import Fails

__all__ = ["infer_column_kinds", "refuse_unusable_names"]

_MAX_SHOWN_NAME = 100


def refuse_unusable_names(names: Sequence[str], max_columns: int, fails: Fails, *, ignores_case: bool) -> None:
    """Raise a failure if fields can't name the columns of a new table.

    Args:
        ignores_case: whether two names that differ in case alone are one to the database.
    """
    if not names:
        raise fails("invalid", "The file has no fields.", "The first line of a .csv names the columns.")
    unnamed = [number for number, name in enumerate(names, 1) if not name]
    if len(unnamed) * 2 > len(names):
        failure = f"The first line does not name the columns: {len(unnamed)} of its {len(names)} fields are empty."
        raise fails("invalid", failure, "Remove what stands above the line with the names.")
    if unnamed:
        raise fails("invalid", f"{_describe_position(names, unnamed[0])} has values and no name.", "Name it.")
    if len(names) > max_columns:
        failure = f"The file has {len(names):,} fields, a new table {max_columns} columns at most."
        raise fails("invalid", failure, "Create the table for the fields that you need, and leave out the others.")
    keys: set[str] = set()
    for name in names:
        if "\0" in name:
            raise fails("invalid", "The name of a field has a zero byte.", "Write it without.")
        key = name.casefold() if ignores_case else name
        if key in keys:
            failure = f"Two fields have one name, `{name[:_MAX_SHOWN_NAME]}`."
            raise fails("invalid", failure, "Give each a name of its own.")
        keys.add(key)


def _describe_position(names: Sequence[str], number: int) -> str:
    """Return which field it is by the one before it, as the fields that are left out have no number."""
    if number == 1:
        return "The first field"
    return f"A field behind `{names[number - 2][:_MAX_SHOWN_NAME]}`"


def infer_column_kinds(records: Iterator[list[Any]], kind: Callable[[Any], str]) -> tuple[list[Any], list[set[str]]]:
    """Return the names of the fields, and the kinds of each field's values."""
    names = next(records, list[Any]())
    kinds: list[set[str]] = []
    _add_fields(kinds, names)
    for row in records:
        _add_fields(kinds, row)
        for field_kinds, value in zip(kinds, row, strict=False):
            if "TEXT" not in field_kinds or not isinstance(value, str):  # nothing that a text is makes it less
                field_kinds.add(kind(value))
    return names, kinds


def _add_fields(kinds: list[set[str]], row: Sequence[Any]) -> None:
    """Give each field of a record a set of kinds."""
    while len(kinds) < len(row):
        kinds.append(set())
