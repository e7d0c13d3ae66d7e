"""Reads numbers as people and programs write them: `1,892.28`, `1.892,28`, `€ 12`, `(12.50)`, `1'234.50-`."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Context, Decimal
from enum import Enum

__all__ = ["ARITHMETIC", "DecimalMark", "WrittenNumber", "format_sum", "read_number"]

# What programs write; the exponent is bounded, because a sum is written out.
_UNSIGNED = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,2})?")
_SIMPLE = re.compile(r"([-+]?)(\d+(?:\.\d+)?)")
# Three digits behind the only mark can be thousands or decimals, unless a zero stands before it.
_AMBIGUOUS = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")
_SPACES_AND_APOSTROPHES = re.compile(r"(?<=\d)(['’\s])(?=\d{3}(?:\1|[.,]|$))")
# What is longer is no number that anybody adds up.
_MAX_NUMBER_LENGTH = 100
# With its exponent a number has at most 200 digits before its point, its product with another twice as many.
ARITHMETIC = Context(prec=500)
# As many as a program tells apart: what stands behind them comes from how it wrote its numbers.
_SIGNIFICANT_DIGITS = 15
# Behind the point people write as many, of any number: bitcoins have eight.
_EXACT_FRACTION_DIGITS = 8
_CURRENCY_CODE = re.compile(r"^[A-Z]{3}(?![A-Za-z])|(?<![A-Za-z])[A-Z]{3}$")
_MINUS_SIGNS = "-−–"


class DecimalMark(Enum):
    """What parts the whole of a number from its fraction; the other one parts thousands."""

    POINT = "."
    COMMA = ","

    @property
    def thousands_mark(self) -> str:
        if self is DecimalMark.POINT:
            return ","
        return "."


@dataclass(frozen=True, slots=True)
class WrittenNumber:
    """A number as it is written, if it is one.

    Attributes:
        text: all of it.
        digits: without its sign, its currency and the spaces in it.
        mark: the decimal mark that it tells; None of one without marks, and of an ambiguous one.
        is_ambiguous: whether it can be read with either mark, as `1,892` can.
    """

    text: str
    digits: str
    is_negative: bool
    mark: DecimalMark | None
    is_ambiguous: bool

    def value(self, mark: DecimalMark = DecimalMark.POINT) -> Decimal | None:
        """Return its value; None if it is no number.

        Args:
            mark: what an ambiguous one is read with.
        """
        plain = _without_thousands(self.digits, self.mark or mark)
        if plain is None or len(plain) > _MAX_NUMBER_LENGTH:
            return None
        number = Decimal(plain)
        if self.is_negative:
            return -number
        return number


def format_sum(number: Decimal) -> str:
    """Return a sum with all digits before its point; behind it without the noise of what programs compute."""
    fraction_digits = -int(number.as_tuple().exponent)
    kept_digits = max(_SIGNIFICANT_DIGITS - 1 - number.adjusted(), _EXACT_FRACTION_DIGITS)
    if fraction_digits <= kept_digits:
        return f"{number:f}"
    rounded = number.quantize(Decimal(1).scaleb(-kept_digits), context=ARITHMETIC)
    return f"{rounded:f}".rstrip("0").rstrip(".")


def read_number(text: str) -> WrittenNumber:
    """Read a number, with or without a currency.

    A minus may stand in front or behind, and brackets around a number make it negative, as accounts have it.
    """
    simple = _SIMPLE.fullmatch(text)
    if simple is not None:
        sign, digits = simple.groups()
        is_negative = sign == "-"
    else:
        digits, is_negative = _split_sign(text)
    if _AMBIGUOUS.fullmatch(digits):
        return WrittenNumber(text, digits, is_negative, None, is_ambiguous=True)
    mark = _mark_of(digits)
    if mark is not None and _without_thousands(digits, mark) is None:
        mark = None
    return WrittenNumber(text, digits, is_negative, mark, is_ambiguous=False)


def _split_sign(text: str) -> tuple[str, bool]:
    """Return a number without its currency, quotes and spaces in it, and whether it is negative."""
    text = text.strip().strip('"').strip()
    is_negative = False
    if text.startswith("(") and text.endswith(")"):
        is_negative = True
        text = text[1:-1].strip()
    text = _without_currency(text)
    if text[:1] and text[0] in _MINUS_SIGNS:
        is_negative = not is_negative
        text = text[1:]
    elif text[-1:] and text[-1] in _MINUS_SIGNS:
        is_negative = not is_negative
        text = text[:-1]
    elif text.startswith("+"):
        text = text[1:]
    text = _without_currency(text.strip())
    return _SPACES_AND_APOSTROPHES.sub("", text), is_negative


def _without_currency(text: str) -> str:
    """Return a text without a sign or code of a currency at its ends."""
    for position in (0, -1):
        if text and unicodedata.category(text[position]) == "Sc":
            text = text.replace(text[position], "", 1)
    return _CURRENCY_CODE.sub("", text.strip()).strip()


def _mark_of(digits: str) -> DecimalMark | None:
    """Return what a number, which is not ambiguous, tells of its decimal mark; None of one without marks."""
    last = max(digits.rfind("."), digits.rfind(","))
    if last < 0:
        return None
    is_comma = digits[last] == ","
    if digits.count(digits[last]) > 1:
        # What stands more than once parts thousands.
        is_comma = not is_comma
    if is_comma:
        return DecimalMark.COMMA
    return DecimalMark.POINT


def _without_thousands(digits: str, mark: DecimalMark) -> str | None:
    """Return a number as programs write it; None for what is no number with this mark."""
    whole, _, fraction = digits.partition(mark.value)
    if mark.thousands_mark in whole:
        groups = whole.split(mark.thousands_mark)
        has_groups = 1 <= len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:])
        if not has_groups:
            return None
        whole = "".join(groups)
    plain = whole
    if fraction:
        plain = f"{whole}.{fraction}"
    if _UNSIGNED.fullmatch(plain) is None:
        return None
    return plain
