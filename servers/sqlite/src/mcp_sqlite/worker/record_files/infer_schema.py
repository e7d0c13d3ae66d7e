"""The table that a file of records would fill: its columns, of types that keep every value."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_batteries.sql.transfer.record_fields import infer_column_kinds, refuse_unusable_names
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.values import LongDecimal, parse_blob_literal

__all__ = [
    "NUMBER_KINDS",
    "InferredTable",
    "choose_classifier",
    "find_merged_numbers",
    "find_numeric_texts",
    "infer_table",
]

# Kinds that a column of numbers can have together.
NUMBER_KINDS = (frozenset(("INTEGER", "LONG")), frozenset(("INTEGER", "REAL")))
_MAX_COLUMNS = 500
# Without leading zeros: those are codes, and would be lost.
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_REAL = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+(?:[eE][-+]?[0-9]+)?")
# Digits that a real keeps, whatever they are.
_EXACT_DIGITS = 15
_MIN_NORMAL_REAL = 1e-300
# A number as people write it.
_WRITTEN_NUMBER = re.compile(
    r"[-(]?[$€£¥]?(?:[0-9]{1,3}(?:[.,' \u00a0\u202f][0-9]{3})+|[0-9]+)(?:[.,][0-9]+)? ?[$€£¥%]?\)?-?"
)
_CODE = re.compile(r"0[0-9]+")
_DECIMAL = re.compile(r"[0-9]+\.[0-9]+", re.ASCII)


class InferredTable(NamedTuple):
    """The table for a file of records.

    Attributes:
        fields: the names in the file.
        columns: the definition of each column.
        ddl: the CREATE TABLE.
    """

    fields: list[Any]
    columns: list[str]
    ddl: str


def infer_table(table: str, records: Iterator[list[Any]], *, typed: bool, types: Sequence[str] = ()) -> InferredTable:
    """Return the table `table` for `records`, whose names come first.

    Args:
        typed: whether a text is a text, and not what a format without types makes of a number.
        types: the columns' types, where the format has them.

    Raises:
        Failure: the fields have no usable names.
    """
    if types:
        fields = next(records, list[Any]())
    else:
        fields, kinds = infer_column_kinds(records, choose_classifier(typed=typed))
        types = [_choose_type(column_kinds, typed=typed) for column_kinds in kinds]
    names = [str(name).strip() for name in fields]
    refuse_unusable_names(names, _MAX_COLUMNS, Failure, ignores_case=True)
    columns = [f"{quote_identifier(name)} {type_name}".rstrip() for name, type_name in zip(names, types, strict=True)]
    return InferredTable(
        fields, columns, f"CREATE TABLE {quote_identifier(table)} (\n    " + ",\n    ".join(columns) + "\n)"
    )


def choose_classifier(*, typed: bool) -> Callable[[Any], str]:
    """Return what tells the kind of a value."""
    if typed:
        return _classify_value
    return _classify_text


def find_numeric_texts(columns: Sequence[str], sample: Sequence[Sequence[str]]) -> list[int]:
    """Return the positions of text columns that hold numbers for the most part, and no codes with leading zeros.

    Args:
        columns: as `infer_table` defines them.
        sample: some records.
    """
    positions: list[int] = []
    for position, column in enumerate(columns):
        values: list[str] = []
        if column.endswith(" TEXT"):
            values = [record[position] for record in sample if record[position]]
        number_count = sum(bool(_WRITTEN_NUMBER.fullmatch(value.strip())) for value in values)
        if number_count * 2 > len(values) and not any(map(_CODE.fullmatch, values)):
            positions.append(position)
    return positions


def find_merged_numbers(columns: Sequence[str], sample: Sequence[Sequence[str]]) -> dict[int, tuple[str, str]]:
    """Return by the position of a column two of its texts that are one number: `1.1` and `1.10` are two versions.

    Args:
        columns: as `infer_table` defines them.
        sample: some records.
    """
    merged: dict[int, tuple[str, str]] = {}
    for position, column in enumerate(columns):
        if not column.endswith(" REAL"):
            continue
        spellings: dict[str, str] = {}
        for value in (record[position].strip() for record in sample):
            if _DECIMAL.fullmatch(value):
                spelling = spellings.setdefault(value.rstrip("0"), value)
                if spelling != value:
                    merged[position] = (spelling, value)
                    break
    return merged


def _choose_type(kinds: Collection[str], *, typed: bool) -> str:
    """Return the type of a column for values of these kinds; none where each value has to stay as it is."""
    kinds = {*kinds} - {""}
    if not kinds:
        return "TEXT"
    if kinds <= {"INTEGER", "LONG"}:
        return "INTEGER"
    if kinds <= {"INTEGER", "REAL"}:
        return "REAL"
    if typed and len(kinds) > 1:
        return ""
    return "BLOB" if kinds == {"BLOB"} else "TEXT"


def _classify_text(value: str) -> str:
    """Return the kind of a text; `LONG` is an integer that a real does not keep."""
    if not value:
        return ""
    if _INTEGER.fullmatch(value):
        return "INTEGER" if len(value.lstrip("-")) <= _EXACT_DIGITS else "LONG"
    if _REAL.fullmatch(value) and _is_kept_by_real(value):
        return "REAL"
    return "TEXT" if parse_blob_literal(value) is None else "BLOB"


def _is_kept_by_real(text: str) -> bool:
    digits = text.lower().partition("e")[0].lstrip("-0.").replace(".", "")
    if not digits:
        return True
    value = float(text)
    return len(digits) <= _EXACT_DIGITS and math.isfinite(value) and abs(value) > _MIN_NORMAL_REAL


def _classify_value(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool() | int():
            if abs(value) <= 10**_EXACT_DIGITS:
                return "INTEGER"
            return "LONG" if -(2**63) <= value < 2**63 else "TEXT"
        case LongDecimal() if value.is_whole_part_rounded:
            return "TEXT"
        case float():
            return "REAL"
        case {"base64": str()}:
            return "BLOB"
        case _:
            return "TEXT"
