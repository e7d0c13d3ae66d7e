"""The table that a file of records would fill: its columns, with types guessed from the first records."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from mcp_sqlite.worker.cells import Failure
from mcp_sqlite.worker.schema import quoted

__all__ = ["created"]

_LOOKED_AT = 1000
"""Records that types are guessed from."""
_MOST_COLUMNS = 500
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
"""Without leading zeros: those are codes, and would be lost."""
_REAL = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+(?:[eE][-+]?[0-9]+)?")


def created(table: str, records: Iterator[list[Any]], *, typed: bool, types: Sequence[str] = ()) -> str:
    """The CREATE TABLE for `records`, the names of the fields first.

    Args:
        typed: whether a text is a text, and not what a format without types makes of a number.
        types: where the format tells them.

    Raises:
        Failure: the fields have no usable names.
    """
    names = [str(name).strip() for name in next(records, list[Any]())]
    if not names or len(names) > _MOST_COLUMNS or len({name.casefold() for name in names}) < len(names) or "" in names:
        raise Failure(
            "invalid",
            "The fields can't name the columns of a new table.",
            f"Give each a name of its own, {_MOST_COLUMNS} at most.",
        )
    if not types:
        seen = list(itertools.islice(records, _LOOKED_AT))
        types = [_type([row[number] for row in seen], typed=typed) for number in range(len(names))]
    columns = [f"    {quoted(name)} {kind}".rstrip() for name, kind in zip(names, types, strict=True)]
    return f"CREATE TABLE {quoted(table)} (\n" + ",\n".join(columns) + "\n)"


def _type(values: Sequence[Any], *, typed: bool) -> str:
    kinds = {_kind(value, typed=typed) for value in values} - {""}
    if kinds <= {"INTEGER"}:
        return "INTEGER" if kinds else "TEXT"
    if kinds <= {"INTEGER", "REAL"}:
        return "REAL"
    return kinds.pop() if len(kinds) == 1 else "" if "BLOB" in kinds else "TEXT"


def _kind(value: Any, *, typed: bool) -> str:
    match value:
        case None | "":
            return ""
        case bool() | int():
            return "INTEGER"
        case float():
            return "REAL"
        case str() if not typed:
            return "INTEGER" if _INTEGER.fullmatch(value) else "REAL" if _REAL.fullmatch(value) else "TEXT"
        case str():
            return "TEXT"
        case _:
            return "BLOB"
