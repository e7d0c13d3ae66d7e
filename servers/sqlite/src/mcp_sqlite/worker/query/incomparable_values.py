"""Notices conditions that compare a column with a value of another form: SQLite has no type for times.

It compares text by its characters, and takes every number for less than every text. So what `datetime('now')` makes,
with a space, comes before all of its day in a column whose times have a T.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

from mcp_batteries.sql.language.compared_values import (
    COLUMN,
    CONTINUATION,
    LITERAL,
    TEXT_OR_COMMENT,
    Column,
    find_schemas_of,
    read_column,
)
from mcp_batteries.sql.language.identifiers import quote_identifier, spell_identifier
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.schema import lookup

__all__ = ["find_incomparable_values"]

_MAX_SQL_CHARACTERS = 10_000
# How long the columns may be looked at, all together.
_SECONDS = 0.1
_MAX_SAMPLES = 20
_MAX_READ_ROWS = 1000
_MAX_SAMPLED_CHARACTERS = 25
_TEXT = r"'(?:[^']|'')*'"
_CALL = rf"(?:date|datetime|strftime|julianday|unixepoch)\s*\(\s*(?:{_TEXT}(?:\s*,\s*{_TEXT})*)?\s*\)"
_VALUE = rf"(?:{LITERAL}|\?(?!\w)|CURRENT_(?:DATE|TIMESTAMP)\b|{_CALL})(?!{CONTINUATION})"
_CONDITION = re.compile(
    rf"""{TEXT_OR_COMMENT}
    |{COLUMN}(?:NOT\s+)?(?P<operator><=|>=|<>|!=|==?|<|>|BETWEEN\b)\s*(?P<value>{_VALUE})(?:\s*AND\s*(?P<upper>{_VALUE}))?
    |(?P<mark>\?)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_EQUALITIES = ("=", "==", "<>", "!=")
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_FORMS = {
    "T": re.compile(f"{_DAY}T.*", re.DOTALL),
    "space": re.compile(f"{_DAY} .*", re.DOTALL),
    "day": re.compile(_DAY),
    "other day": re.compile(r"[0-9]{1,4}([-/.])[0-9]{1,2}\1[0-9]{1,4}(?: .*)?", re.DOTALL),
    "digits": re.compile(r"-?[0-9]+(?:\.[0-9]+)?"),
}
_TIME_FORMS = ("T", "space", "day")
# From here on, numbers are taken for seconds or milliseconds since 1970, and not for a year.
_MIN_SECONDS = 10**8
_MIN_MILLISECONDS = 10**11


class _Condition(NamedTuple):
    """A comparison of a column with a value.

    Attributes:
        is_upper_bound: whether it holds up to the value, and for the value itself.
        form: the value's, as `_find_form` has it.
    """

    column: Column
    is_range: bool
    is_upper_bound: bool
    value: Any
    form: str

    @property
    def may_mislead(self) -> bool:
        """Whether there are columns that can't be compared with the value."""
        if self.form == "number":
            return self.is_range or self.value >= _MIN_SECONDS
        return self.form in _TIME_FORMS


def find_incomparable_values(database: Database, sql: str, parameters: Any) -> list[str]:
    """Return a note for each column that a statement compares with a value of a form that is not the column's."""
    notes: dict[str, None] = {}
    try:
        conditions = [condition for condition in _find_conditions(database, sql, parameters) if condition.may_mislead]
        if not conditions:
            return []
        with database.interrupt.shorten(_SECONDS):
            for table in lookup.find_named_tables(sql, lookup.list_table_names(database)):
                if not find_schemas_of(table, sql).isdisjoint(("", "main")):
                    notes |= dict.fromkeys(_find_in_table(database, table, sql, conditions))
    except sqlite3.Error:
        # There was no time for more, or a view is broken: the statement does the same without a note.
        pass
    return list(notes)


def _find_conditions(database: Database, sql: str, parameters: Any) -> Iterator[_Condition]:
    """Yield the conditions with a value that stands in a statement or in `parameters`; none of a long statement."""
    if len(sql) > _MAX_SQL_CHARACTERS:
        return
    parameter_values = iter(cast("list[Any]", parameters) if isinstance(parameters, list) else ())
    for match in _CONDITION.finditer(sql):
        texts = [text for text in match.group("value", "upper", "mark") if text]
        values = [_evaluate(database, text, parameter_values) for text in texts]
        column = read_column(match)
        if column is None:
            continue
        is_range = match["operator"] not in _EQUALITIES
        if match["operator"].upper() != "BETWEEN":
            # What follows an AND belongs to another condition.
            del values[1:]
        for position, value in enumerate(values):
            is_upper_bound = match["operator"] == "<=" or position > 0
            yield _Condition(column, is_range, is_upper_bound, value, _find_form(value))


def _evaluate(database: Database, text: str, parameter_values: Iterator[Any]) -> Any:
    """Return the value of a literal or a call, or the next of the parameters' values for `?`."""
    if text == "?":
        return next(parameter_values, None)
    return database.run_internal(f"SELECT {text}")[0][0]


def _find_in_table(database: Database, table: str, sql: str, conditions: Sequence[_Condition]) -> Iterator[str]:
    names = {name.casefold(): name for name in lookup.list_column_names(database, table)}
    for condition in conditions:
        name = names.get(condition.column.name.casefold())
        if name is None or database.is_masked(table, name) or not condition.column.may_be_of(table, sql):
            continue
        sql_name = quote_identifier(name)
        rows = database.run_internal(
            f"SELECT CASE typeof(v) WHEN 'text' THEN substr(v, 1, {_MAX_SAMPLED_CHARACTERS}) ELSE v END"
            f" FROM (SELECT {sql_name} AS v FROM {quote_identifier(table)} LIMIT {_MAX_READ_ROWS})"
            f" WHERE typeof(v) NOT IN ('null', 'blob') LIMIT {_MAX_SAMPLES}"
        )
        note = _describe_mismatch(spell_identifier(name), [sample for (sample,) in rows], condition)
        if note:
            yield f"`{spell_identifier(table)}.{spell_identifier(name)}` {note}"


def _describe_mismatch(column: str, samples: Sequence[Any], condition: _Condition) -> str:
    """Return which values of a column a condition takes for less or more than they are, and what to write instead."""
    if condition.form == "number" and condition.is_range and _has_other_order_as_text([*samples, condition.value]):
        return f"holds numbers as text, by which '10' is before '9': compare CAST({column} AS REAL)"
    for sample in samples:
        match _find_form(sample), condition.form:
            case ("T", "space") | ("space", "T"):
                problem = f"holds times as '{sample}', and a space sorts before T, whatever the time"
                return f"{problem}: compare datetime({column}) with datetime(...)"
            case "number", "T" | "space" | "day":
                return f"holds numbers, and each is less than any text: compare {_convert_number(column, sample)}"
            case (("T" | "space" | "day"), "number") if condition.value >= _MIN_SECONDS:
                return f"holds times as '{sample}', not as a number: compare unixepoch({column})"
            case (("T" | "space"), "day") if condition.is_upper_bound:
                return (
                    f"holds times as '{sample}', and all of '{condition.value}' are beyond it: compare date({column})"
                )
            case "other day", "T" | "space" | "day":
                return f"holds days as '{sample}', by which text does not sort as time does: compare another form"
            case _:
                pass
    return ""


def _find_form(value: Any) -> str:
    """Return a key of `_FORMS`, or `number`; empty for any other value."""
    if isinstance(value, int | float):
        return "number"
    if not isinstance(value, str):
        return ""
    return next((form for form, pattern in _FORMS.items() if pattern.fullmatch(value)), "")


def _has_other_order_as_text(values: Sequence[Any]) -> bool:
    """Return whether all but the last are numbers written as text, and not all as long before the point."""
    if len(values) == 1 or any(_find_form(value) != "digits" for value in values[:-1]):
        return False
    return len({len(str(value).partition(".")[0]) for value in values}) > 1


def _convert_number(column: str, number: float) -> str:
    """Return the time for a number of a column; where it is none, a number it can be compared with."""
    if abs(number) >= _MIN_MILLISECONDS:
        return f"datetime({column} / 1000, 'unixepoch')"
    if abs(number) >= _MIN_SECONDS:
        return f"datetime({column}, 'unixepoch')"
    return "it with a number"
