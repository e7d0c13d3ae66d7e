"""Counts what an expression matched, and adds up the numbers that came with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from mcp_batteries.errors import quote
from mcp_fs.engine.search.grep import clip_line
from mcp_fs.engine.search.numbers import ARITHMETIC, DecimalMark, WrittenNumber, format_sum, read_number
from mcp_fs.models import pluralize

__all__ = ["TextCounts"]


@dataclass(frozen=True, slots=True)
class _NumberedRow:
    """Matches with the same text and the same numbers.

    Attributes:
        numbers: what the groups `sum` and `times` held.
        count: how many matches.
    """

    text: bytes
    numbers: Sequence[WrittenNumber]
    count: int

    @property
    def is_ambiguous(self) -> bool:
        return any(number.is_ambiguous for number in self.numbers)


@dataclass(slots=True)
class _Sums:
    """What was added up for one text.

    Attributes:
        values: of the group `sum`.
        products: of `sum` times `times`.
    """

    values: Decimal = field(default_factory=Decimal)
    products: Decimal = field(default_factory=Decimal)


class TextCounts:
    """What matched, how often, and the sums of what the group `sum` held with each.

    A number such as `1,892` is read as the others of its file are, else as those of all files.

    Args:
        number_count: how many numbers stand behind each text: of the group `sum`, and of `times`.

    Attributes:
        kind: what each text comes with: `text` with its count, `sum` also with a sum, `product` with two.
    """

    def __init__(self, number_count: int) -> None:
        self.kind = ("text", "sum", "product")[number_count]
        self._number_count = number_count
        self._counts = Counter[bytes]()
        self._sums: dict[bytes, _Sums] = {}
        self._non_numbers = Counter[str]()
        self._marks: set[DecimalMark] = set()
        self._undecided: list[_NumberedRow] = []
        self._guessed = Counter[str]()
        self._assumed_mark = DecimalMark.POINT

    def add(self, texts: Counter[bytes]) -> None:
        """Add what matched in one file: texts, with their numbers behind NULs."""
        if not self._number_count:
            self._counts.update(texts)
            return
        rows: list[_NumberedRow] = []
        for text_and_numbers, count in texts.items():
            text, *numbers = text_and_numbers.rsplit(b"\0", self._number_count)
            self._counts[text] += count
            rows.append(
                _NumberedRow(text, [read_number(number.decode("utf-8", "replace")) for number in numbers], count)
            )
        self._add_rows(rows)

    def finish(self) -> None:
        """Add the numbers that no other number of their file explains."""
        self._assumed_mark = _agreed_mark(self._marks) or DecimalMark.POINT
        for row in self._undecided:
            self._note_guess(row)
            self._add_row(row, self._assumed_mark)

    def sort(self) -> list[tuple[bytes, int]]:
        """Return the largest sums first, or what matched most often."""

        def sort_key(item: tuple[bytes, int]) -> tuple[Decimal | int, bytes]:
            text, count = item
            if text not in self._sums:
                return -count, text
            sums = self._sums[text]
            return -(sums.products or sums.values), text

        return sorted(self._counts.items(), key=sort_key)

    def format(self, text: bytes) -> str:
        """Return a text with its sums."""
        fields = [clip_line(0, text.replace(b"\n", b"\\n"), 0).text]
        if self.kind != "text":
            sums = self._sums.get(text, _Sums())
            fields.append(format_sum(sums.values))
            if self.kind == "product":
                fields.append(format_sum(sums.products))
        return "\t".join(filter(None, fields))

    def notes(self) -> list[str]:
        """Say the sums of all texts, which numbers were guessed, and which matches are in no sum."""
        notes: list[str] = []
        if len(self._counts) > 1 and self.kind != "text":
            notes.append(self._describe_totals())
        if self._guessed:
            example = max(self._guessed)
            number = read_number(example).value(self._assumed_mark)
            notes.append(f"{pluralize(self._guessed.total(), 'number')} such as {quote(example)} taken for {number}")
        if self._non_numbers:
            example = clip_line(0, max(self._non_numbers).encode("utf-8", "replace"), 0).text
            groups = "`sum`" if self.kind == "sum" else "`sum` or `times`"
            notes.append(
                f"{self._non_numbers.total():,} of {groups} are no numbers and not added, such as {quote(example)}"
            )
        return notes

    def _describe_totals(self) -> str:
        values = Decimal()
        products = Decimal()
        for sums in self._sums.values():
            values = ARITHMETIC.add(values, sums.values)
            products = ARITHMETIC.add(products, sums.products)
        if self.kind == "sum":
            return f"sum of all {format_sum(values)}"
        return f"sums of all {format_sum(values)} and {format_sum(products)}"

    def _add_rows(self, rows: Sequence[_NumberedRow]) -> None:
        marks: set[DecimalMark] = set()
        for row in rows:
            marks.update(number.mark for number in row.numbers if number.mark is not None)
        self._marks |= marks
        mark = _agreed_mark(marks)
        for row in rows:
            if row.is_ambiguous and mark is None:
                self._undecided.append(row)
            else:
                self._add_row(row, mark or DecimalMark.POINT)

    def _add_row(self, row: _NumberedRow, mark: DecimalMark) -> None:
        sums = self._sums.setdefault(row.text, _Sums())
        product = Decimal(1)
        values: list[Decimal] = []
        for number in row.numbers:
            value = number.value(mark)
            if value is None:
                self._non_numbers[number.text] += row.count
                return
            values.append(value)
            product = ARITHMETIC.multiply(product, value)
        sums.values = ARITHMETIC.fma(values[0], row.count, sums.values)
        sums.products = ARITHMETIC.fma(product, row.count, sums.products)

    def _note_guess(self, row: _NumberedRow) -> None:
        """Remember a number that could be read otherwise."""
        for number in row.numbers:
            if number.is_ambiguous:
                self._guessed[number.text] += row.count


def _agreed_mark(marks: set[DecimalMark]) -> DecimalMark | None:
    if len(marks) != 1:
        return None
    (mark,) = marks
    return mark
