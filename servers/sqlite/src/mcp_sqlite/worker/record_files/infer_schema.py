"""The table that a file of records would fill: its columns, of types that keep every value."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from mcp_batteries.sql.identifiers import identifier
from mcp_batteries.sql.records import kinds_of
from mcp_sqlite.worker.language.failure import Failure

__all__ = ["find_numeric_texts", "infer_table"]

_MOST_COLUMNS = 500
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
"""Without leading zeros: those are codes, and would be lost."""
_REAL = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+(?:[eE][-+]?[0-9]+)?")
_EXACT = 15
"""Digits that a real keeps, whatever they are."""
_LIKE_A_NUMBER = re.compile(
    r"[-(]?[$€£¥]?(?:[0-9]{1,3}(?:[.,' \u00a0\u202f][0-9]{3})+|[0-9]+)(?:[.,][0-9]+)? ?[$€£¥%]?\)?-?"
)
"""As people write it."""
_CODE = re.compile(r"0[0-9]+")


def infer_table(
    table: str, records: Iterator[list[Any]], *, typed: bool, types: Sequence[str] = ()
) -> tuple[list[Any], list[str], str]:
    """The fields of `records`, whose names come first, the columns for them, and the CREATE TABLE.

    Args:
        typed: whether a text is a text, and not what a format without types makes of a number.
        types: where the format tells them.

    Raises:
        Failure: the fields have no usable names.
    """
    if types:
        fields, kinds = next(records, list[Any]()), []
    else:
        fields, kinds = kinds_of(records, _kind if typed else _kind_of_text)
    names = [str(name).strip() for name in fields]
    if (
        not names
        or len(names) > _MOST_COLUMNS
        or len({name.casefold() for name in names}) < len(names)
        or any(not name or "\0" in name for name in names)
    ):
        raise Failure(
            "invalid",
            "The fields can't name the columns of a new table.",
            f"Give each a name of its own, {_MOST_COLUMNS} at most.",
        )
    types = types or [_type(seen, typed=typed) for seen in kinds]
    columns = [f"{identifier(name)} {kind}".rstrip() for name, kind in zip(names, types, strict=True)]
    return fields, columns, f"CREATE TABLE {identifier(table)} (\n    " + ",\n    ".join(columns) + "\n)"


def find_numeric_texts(columns: Sequence[str], sample: Sequence[Sequence[str]]) -> list[int]:
    """Places of the text columns that hold numbers for the most part, and no codes with leading zeros.

    Args:
        columns: as `created` gives them.
        sample: some records.
    """
    found: list[int] = []
    for place, column in enumerate(columns):
        values = [row[place] for row in sample if row[place]] if column.endswith(" TEXT") else []
        like = sum(bool(_LIKE_A_NUMBER.fullmatch(value.strip())) for value in values)
        if like * 2 > len(values) and not any(map(_CODE.fullmatch, values)):
            found.append(place)
    return found


def _type(kinds: Collection[str], *, typed: bool) -> str:
    """The type of a column for values of these kinds; none where each value has to stay as it is."""
    kinds = {*kinds} - {""}
    if kinds <= {"INTEGER", "LONG"}:
        return "INTEGER" if kinds else "TEXT"
    if kinds <= {"INTEGER", "REAL"}:
        return "REAL"
    return "" if typed and len(kinds) > 1 else "BLOB" if kinds == {"BLOB"} else "TEXT"


def _kind_of_text(value: str) -> str:
    """`LONG` is an integer that a real does not keep."""
    if not value:
        return ""
    if _INTEGER.fullmatch(value):
        return "INTEGER" if len(value.lstrip("-")) <= _EXACT else "LONG"
    if _REAL.fullmatch(value):
        digits = value.lower().partition("e")[0].lstrip("-0.").replace(".", "")
        return "REAL" if len(digits) <= _EXACT and (not digits or _is_usual(float(value))) else "TEXT"
    return "TEXT"


def _is_usual(value: float) -> bool:
    return math.isfinite(value) and abs(value) > 1e-300


def _kind(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool() | int():
            return "INTEGER" if abs(value) <= 10**_EXACT else "LONG" if -(2**63) <= value < 2**63 else "TEXT"
        case float():
            return "REAL"
        case {"base64": str()}:
            return "BLOB"
        case _:
            return "TEXT"
