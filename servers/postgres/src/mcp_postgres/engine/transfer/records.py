"""The table that the records of a file would fill: its columns, of types that keep every value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

from mcp_batteries.errors import Invalid
from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_batteries.sql.transfer.json_records import build_record
from mcp_batteries.sql.transfer.record_fields import infer_column_kinds, refuse_unusable_names

__all__ = ["RELATED_KINDS", "choose_classifier", "column_name", "design_table", "parse_json"]

_MAX_COLUMNS = 500
# Bytes of a name that PostgreSQL keeps.
_MAX_NAME_BYTES = 63

_TIME = r"[12][0-9]{3}-[01][0-9]-[0-3][0-9][ T][0-2][0-9]:[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?"
_KINDS = (
    ("boolean", re.compile(r"true|false", re.I)),
    # Without leading zeros: those are codes, and would be lost.
    ("bigint", re.compile(r"-?(?:0|[1-9][0-9]{0,17})")),
    ("numeric", re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?")),
    ("uuid", re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)),
    ("date", re.compile(r"[12][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])")),
    ("timestamp", re.compile(_TIME)),
    ("timestamptz", re.compile(_TIME + r"(?:Z|[-+][0-9]{2}(?::?[0-9]{2})?)")),
)  # fmt: skip
_TIMES = ("date", "timestamp", "timestamptz")
_WIDER = ({"bigint", "numeric"}, "numeric"), ({"date", "timestamp"}, "timestamp")
# Kinds that a column can have together.
RELATED_KINDS = tuple(frozenset(kinds) for kinds, _ in _WIDER)


class _ExactNumber(float):
    """A number as it stands in the file: PostgreSQL takes more digits than a double has."""

    _text: str

    def __new__(cls, text: str) -> _ExactNumber:
        number = super().__new__(cls, text)
        number._text = text
        return number

    def __repr__(self) -> str:
        return self._text


def parse_json(text: str) -> Any:
    """Return a JSON document, its numbers as they stand there."""
    return _DECODER.decode(text)


def _refuse_constant(word: str) -> str:
    raise ValueError(f"{word} is not JSON")


# json.loads would make one for each record.
_DECODER = json.JSONDecoder(parse_float=_ExactNumber, parse_constant=_refuse_constant, object_pairs_hook=build_record)


def column_name(field: Any) -> str:
    """Return what PostgreSQL calls a column of the name of a field."""
    return str(field).strip().encode(errors="replace")[:_MAX_NAME_BYTES].decode(errors="ignore")


def design_table(
    table: str, records: Iterator[list[Any]], *, typed: bool, types: Sequence[str | None] = ()
) -> tuple[list[Any], list[str], str]:
    """Return the fields of `records`, whose names come first, the columns for them, and the CREATE TABLE.

    Args:
        table: as SQL spells it.
        typed: whether a text is a text, and not what a format without types makes of a number.
        types: of the columns, as far as they are known.

    Raises:
        Invalid: the fields have no usable names.
    """
    fields, kinds_by_field = infer_column_kinds(records, choose_classifier(typed=typed))
    names = [column_name(field) for field in fields]
    refuse_unusable_names(names, _MAX_COLUMNS, lambda _, failure, fix: Invalid(failure, fix), ignores_case=False)
    inferred_types = [_choose_type(kinds) for kinds in kinds_by_field]
    known_types = types or [None] * len(inferred_types)
    kinds = [known_type or inferred_type for known_type, inferred_type in zip(known_types, inferred_types, strict=True)]
    columns = [f"{quote_identifier(name)} {kind}" for name, kind in zip(names, kinds, strict=True)]
    return fields, columns, f"CREATE TABLE {table} (\n    " + ",\n    ".join(columns) + "\n)"


def choose_classifier(*, typed: bool) -> Callable[[Any], str]:
    """Return what tells the kind of a value."""
    if typed:
        return _kind_of_value
    return _kind_of_text


def _choose_type(kinds: Collection[str]) -> str:
    kinds = {*kinds} - {""}
    if len(kinds) == 1:
        return next(iter(kinds))
    return next((wide for narrow, wide in _WIDER if kinds and kinds <= narrow), "text")


def _kind_of_text(value: str) -> str:
    if not value:
        return ""
    for kind, form in _KINDS:
        if form.fullmatch(value):
            return kind if kind not in _TIMES or _is_time(value) else "text"
    return "text"


def _is_time(value: str) -> bool:
    """Return whether the calendar has it, and the clock."""
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _kind_of_value(value: Any) -> str:
    match value:
        case None:
            return ""
        case "":
            return "text"
        case bool():
            return "boolean"
        case int():
            return "bigint" if -(2**63) <= value < 2**63 else "numeric"
        case float():
            return "numeric"
        case str():
            # JSON has numbers and truth values of its own; times it has as text.
            kind = _kind_of_text(value)
            return "text" if kind in ("boolean", "bigint", "numeric") else kind
        case _:
            return "jsonb"
