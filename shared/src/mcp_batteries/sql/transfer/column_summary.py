"""Summarizes what the values of each field of a file are like, for whoever imports it.

This module imports nothing of the common package, so that a small process can import it alone.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

__all__ = ["ColumnSummary", "describe_file", "summarize_fields"]

# So many values are shown that keep a column from a type.
_MAX_EXAMPLES = 3
# They are looked for among so many values of a kind.
_MAX_SEARCHED_EXAMPLES = 100
# The values of so many records are described.
_MAX_DESCRIBED_RECORDS = 100_000
# So many different values of a field are counted.
_MAX_DIFFERENT_VALUES = 1000
# A value of at most so many characters is counted by itself, a longer one by its hash.
_MAX_KEY_CHARACTERS = 200
# A field with so few different values has each listed, if none has more characters than this.
_MAX_LISTED_VALUES = 8
_MAX_SHOWN_CHARACTERS = 24
# Python reads integers of at most so many digits.
_MAX_INTEGER_DIGITS = 4000
# A form that so many more values lack than have is not looked for any longer.
_MAX_MORE_EXCEPTIONS = 50


class _Form(NamedTuple):
    """A way in which numbers or dates are written.

    Attributes:
        name: how a description calls it.
        rank: orders texts of this form by what they mean.
    """

    name: str
    pattern: re.Pattern[str]
    rank: Callable[[str], Any] = str


def _rank_number(text: str) -> Any:
    """Return where a number stands; as databases order them, NaN comes last."""
    number = _parse_number(text)
    return (False, number, text) if number == number else (True, 0, text)


def _parse_number(text: str) -> int | float:
    """Return the number in `text`; as an integer if it is one, which Python compares exactly."""
    if len(text) < _MAX_INTEGER_DIGITS and text.removeprefix("-").isdecimal():
        return int(text)
    return float(text)


def _rank_with_commas(text: str) -> float:
    return float(text.replace(",", ""))


def _rank_with_decimal_comma(text: str) -> float:
    return float(text.replace(".", "").replace(",", "."))


def _rank_day_first(text: str) -> list[int]:
    return [int(part) for part in reversed(text.split("."))]


_NUMBERS = _Form("numbers", re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"), _rank_number)
# A field that has one of these has no numbers.
_CODE = re.compile(r"0[0-9]+")
_FORMS = (
    _NUMBERS,
    _Form(
        "numbers as 1,234.50",
        re.compile(r"-?(?:0|[1-9][0-9]{0,2}(?:,[0-9]{3})+|[1-9][0-9]*)(?:\.[0-9]+)?"),
        _rank_with_commas,
    ),
    _Form(
        "numbers as 1.234,50",
        re.compile(r"-?(?:0|[1-9][0-9]{0,2}(?:\.[0-9]{3})+|[1-9][0-9]*)(?:,[0-9]+)?"),
        _rank_with_decimal_comma,
    ),
    _Form("dates as 2026-12-31", re.compile(r"[0-9]{4}-[01][0-9]-[0-3][0-9]")),
    _Form("times as 2026-12-31 23:59", re.compile(r"[0-9]{4}-[01][0-9]-[0-3][0-9][ T][0-2][0-9]:[0-9:.Z+-]+")),
    _Form(
        "dates as 31.12.2026",
        re.compile(r"[0-3]?[0-9]\.[01]?[0-9]\.[0-9]{4}"),
        _rank_day_first,
    ),
    _Form("dates with slashes", re.compile(r"[0-3]?[0-9]/[0-3]?[0-9]/(?:[0-9]{2}){1,2}")),
)


class ColumnSummary:
    """Summarizes what the values of each field are like: all of them, or their number and range.

    Args:
        kind: returns the kind of a value, as that of a column is inferred.
        related: kinds of which a column can have several, and still has a type.
    """

    def __init__(self, kind: Callable[[Any], str] = lambda value: "", related: Sequence[frozenset[str]] = ()) -> None:
        self.records = 0
        self._values: list[_ValueCounts] = []
        self._kinds: list[_KindCounts] = []
        self._kind = kind
        self._related = related
        self._is_complete = True

    def pass_on(self, records: Iterator[list[Any]]) -> Iterator[list[Any]]:
        """Pass `records` on unchanged, names first, and examine the first values on the way."""
        yield from itertools.islice(records, 1)
        for row in itertools.islice(records, _MAX_DESCRIBED_RECORDS):
            self.records += 1
            self._add_record(row)
            yield row
        for row in records:
            self._is_complete = False
            yield row

    def _add_record(self, row: list[Any]) -> None:
        while len(self._values) < len(row):
            self._values.append(_ValueCounts())
            self._kinds.append(_KindCounts())
        for values, kinds, value in zip(self._values, self._kinds, row, strict=False):
            values.add(value, self.records)
            kinds.add(self._kind(value), value, self.records)

    def describe(self) -> list[str]:
        """Return a line for each field."""
        scope = "" if self._is_complete else f"of the first {self.records:,} rows "
        lines: list[str] = []
        for values, kinds in zip(self._values, self._kinds, strict=True):
            lines.append(scope + values.describe(self.records, kinds.describe_exceptions(self._related)))
        return lines


def describe_file(records: Iterator[list[Any]], summary: ColumnSummary) -> str:
    """Return what the values of each field of a file are like, in lines that end a message."""
    return "\n".join(["\nIn the file:", *summarize_fields(records, summary)])


def summarize_fields(records: Iterator[list[Any]], summary: ColumnSummary) -> list[str]:
    """Read the records of a file, and return a line on each field with its name."""
    summarized = summary.pass_on(records)
    names = next(summarized, list[Any]())
    deque(summarized, maxlen=0)
    lines = [f"{name}: {line}" for name, line in zip(names, summary.describe(), strict=False)]
    return [" ".join(line.splitlines()) for line in lines]


class _KindCounts:
    """Counts the values of a field by their kinds, and keeps the first of each."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._examples: dict[str, dict[str, int]] = {}

    def add(self, kind: str, value: Any, record: int) -> None:
        if not kind:
            return
        self._counts[kind] = self._counts.get(kind, 0) + 1
        examples = self._examples.setdefault(kind, {})
        # Most kinds have many values, and only few of them are of interest where there are few.
        if len(examples) < _MAX_EXAMPLES and self._counts[kind] <= _MAX_SEARCHED_EXAMPLES:
            examples.setdefault(_to_example(value), record)

    def describe_exceptions(self, related: Sequence[frozenset[str]]) -> str:
        """Return how many values keep the field from the kind that most of them have; empty where none does."""
        if not self._counts:
            return ""
        kind = max(self._counts, key=lambda name: self._counts[name])
        others = self._find_exceptions(kind, related)
        count = self._count(others)
        if not others or kind.lower() == "text" or 2 * count > self._count(self._counts):
            return ""
        examples: list[str] = []
        for name in others:
            examples += [f"{value} in record {record:,}" for value, record in self._examples[name].items()]
        return f"; {kind.lower()} but for {count:,}: {', '.join(examples[:_MAX_EXAMPLES])}"

    def _find_exceptions(self, kind: str, related: Sequence[frozenset[str]]) -> list[str]:
        """Return the kinds that do not go with `kind`, by the group of related kinds that leaves the fewest values."""
        groups = [kinds for kinds in related if kind in kinds] or [frozenset((kind,))]
        exceptions = [[name for name in self._counts if name not in group] for group in groups]
        return min(exceptions, key=self._count)

    def _count(self, kinds: Iterable[str]) -> int:
        """Return how many values are of these kinds."""
        return sum(self._counts[name] for name in kinds)


class _FormMatches:
    """The values of a field that are written in one form, and the first that are not."""

    def __init__(self, form: _Form) -> None:
        self.form = form
        self.count = 0
        self.exception_count = 0
        self._exceptions: dict[str, int] = {}
        self._least: Any = None
        self._most: Any = None

    @property
    def is_hopeless(self) -> bool:
        return self.exception_count > self.count + _MAX_MORE_EXCEPTIONS

    def add(self, value: Any, text: str, record: int) -> None:
        if not self._matches(value, text):
            self.exception_count += 1
            if len(self._exceptions) < _MAX_EXAMPLES:
                self._exceptions.setdefault(_to_example(value), record)
            return
        self.count += 1
        rank = (self.form.rank(text), text)
        self._least = min(rank, self._least or rank)
        self._most = max(rank, self._most or rank)

    def _matches(self, value: Any, text: str) -> bool:
        if isinstance(value, str):
            return self.form.pattern.fullmatch(text) is not None
        return self.form is _NUMBERS and isinstance(value, int | float)

    @property
    def range(self) -> tuple[str, str]:
        """The least and the greatest of the values."""
        return self._least[-1], self._most[-1]

    def describe_exceptions(self) -> str:
        """Return how many values are not written so, and the first of them."""
        examples = [f"{value} in record {record:,}" for value, record in self._exceptions.items()]
        return f" but for {self.exception_count:,}: {', '.join(examples)}"


def _to_example(value: Any) -> str:
    """Return a value as JSON; of a long one the beginning."""
    if isinstance(value, str):
        value = value[:_MAX_SHOWN_CHARACTERS]
    return json.dumps(value, ensure_ascii=False, default=repr)[:_MAX_SHOWN_CHARACTERS]


class _ValueCounts:
    """Counts the different values of a field, and keeps the least and the greatest."""

    def __init__(self) -> None:
        self._times: dict[Any, int] = {}
        self._count = 0
        self._has_texts = False
        self._texts: list[str] = []
        self._forms = [_FormMatches(form) for form in _FORMS]

    def add(self, value: Any, record: int) -> None:
        if value is None or value == "":
            return
        self._count += 1
        if isinstance(value, str):
            self._has_texts = True
        if isinstance(value, bool | dict | list | bytes):
            value = json.dumps(value, ensure_ascii=False, default=repr)
            self._forms = []
        text = str(value)
        self._add_to_forms(value, text, record)
        key = _value_key(value)
        if key in self._times:
            self._times[key] += 1
            return
        if len(self._times) <= _MAX_DIFFERENT_VALUES:
            self._times[key] = 1
        if self._texts:
            self._texts = [min(text, *self._texts), max(text, *self._texts)]
        else:
            self._texts = [text, text]

    def _add_to_forms(self, value: Any, text: str, record: int) -> None:
        """Compare a value with the forms that the field may still have, and drop those that it rules out."""
        if _CODE.fullmatch(text):
            self._forms = []
        for matches in self._forms:
            matches.add(value, text, record)
        if any(matches.is_hopeless for matches in self._forms):
            self._forms = [matches for matches in self._forms if not matches.is_hopeless]

    def describe(self, records: int, kind_exceptions: str = "") -> str:
        """Return what the values are like, in a few words.

        Args:
            records: how many values there could be.
            kind_exceptions: which of them keep the field from a type.
        """
        if not self._times:
            return "empty"
        empty = ""
        if records > self._count:
            empty = f", {records - self._count:,} empty"
        if self._has_few_values():
            ranked = sorted(self._times.items(), key=lambda item: -item[1])
            return ", ".join(f"{self._format(str(key))}:{times}" for key, times in ranked) + empty + kind_exceptions
        form = self._find_form()
        least, most = form.range if form else self._texts
        values = f"{self._describe_number()} different, {self._format(least)} to {self._format(most)}{empty}"
        return values + (kind_exceptions or self._describe_form(form))

    def _describe_form(self, matches: _FormMatches | None) -> str:
        """Return how the values are written; empty where that is plain."""
        if matches is None:
            return ""
        if matches.exception_count:
            return f"; {matches.form.name}{matches.describe_exceptions()}"
        if matches.form is _NUMBERS:
            return ""
        return f"; {matches.form.name}"

    def _find_form(self) -> _FormMatches | None:
        """Return the form of at least half of the values; None if none is, or if two may be."""
        if not self._forms:
            return None
        best = max(self._forms, key=lambda matches: matches.count)
        if 2 * best.exception_count > self._count:
            return None
        # 1,234 may be either.
        is_ambiguous = [matches.count for matches in self._forms].count(best.count) > 1
        if is_ambiguous and best.form is not _NUMBERS:
            return None
        return best

    def _are_numbers(self) -> bool:
        form = self._find_form()
        return form is not None and form.form is _NUMBERS and not form.exception_count

    def _describe_number(self) -> str:
        """Return how many different values there are."""
        different = len(self._times)
        if different == self._count:
            return "all"
        if different <= _MAX_DIFFERENT_VALUES:
            return f"{different:,}"
        return f"more than {_MAX_DIFFERENT_VALUES:,}"

    def _has_few_values(self) -> bool:
        different = len(self._times)
        if different > _MAX_LISTED_VALUES or 2 * different > self._count:
            return False
        return all(len(str(key)) <= _MAX_SHOWN_CHARACTERS for key in self._times)

    def _format(self, text: str) -> str:
        if len(text) > _MAX_SHOWN_CHARACTERS:
            text = f"{text[: _MAX_SHOWN_CHARACTERS - 1]}…"
        if self._has_texts and not self._are_numbers():
            return json.dumps(text, ensure_ascii=False)
        return text


def _value_key(value: Any) -> Any:
    """Return a key for counting a value: the value itself, or a hash, because long ones would fill the memory."""
    if isinstance(value, str) and len(value) > _MAX_KEY_CHARACTERS:
        return hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()
    if value != value:  # NaN equals nothing, not even itself.
        return "nan"
    return value
