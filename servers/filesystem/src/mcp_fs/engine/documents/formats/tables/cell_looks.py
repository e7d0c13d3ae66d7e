"""What a workbook (ECMA-376) shows of cells otherwise than it stores it, where that changes what they say.

That is zeros before a number, as of a postal code, what is raised in a text, and times below zero.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from xml.parsers import expat

from mcp_fs.engine.documents.formats.archives import Unreadable, Zip
from mcp_fs.engine.documents.formats.markup.package import create_parser, find_related_parts, read_elements
from mcp_fs.engine.documents.formats.office.office_lines import OfficeLines
from mcp_fs.engine.documents.formats.tables.matching_elements import find_elements

__all__ = ["CellLooks", "RaisedText", "format_duration", "is_elapsed_format", "is_time_format", "read_cell_looks"]

# A format of digits only, such as `00000` or `000-00-0000`.
_DIGIT_FORMAT = re.compile(r'(?:0|[-+ ()]|\\.|"[^"]*")*')
_DIGIT_OR_LITERAL = re.compile(r'0|\\(.)|"([^"]*)"|([-+ ()])')
_FEWEST_DIGITS = 2
# Built-in formats of dates and times, as Excel has them in all languages.
_BUILT_IN_TIMES = frozenset(map(str, (*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59))))
_CLOCK_TIMES = frozenset(map(str, (*range(18, 23), 32, 33, *range(45, 48))))
# What a format only shows: texts, single characters, colours and languages, but not `[h]`.
_FORMAT_LITERAL = re.compile(r'"[^"]*"|[\\_*].|\[(?![hms]+\])[^\]]*\]')
_ELAPSED_TIME = re.compile(r"\[(?:h+|m+|s+)\]")
_TIME_LETTERS = frozenset("ymdhs")
_HOUR_LETTERS = frozenset("hs")
_MOST_IN_PATTERN = 10_000
_MARKS_RAISED = b"superscript"


@dataclass(frozen=True, slots=True)
class CellLooks:
    """What changes the text of cells.

    Attributes:
        digit_formats: by the numbers of the styles that have one.
        raised_texts: by their numbers among the texts that cells share.
        times: the styles of dates and times, each with whether it shows hours.
    """

    digit_formats: Mapping[str, str]
    raised_texts: Mapping[str, str]
    times: Mapping[str, bool]

    def pattern(self) -> bytes:
        """Return a regular expression that the XML of each sheet has where a cell looks so."""
        patterns = [_MARKS_RAISED]  # of a text that no other cell shares
        if self.digit_formats:
            numbers = _pattern_of_numbers(self.digit_formats)
            patterns.append(rf"""\bs=["']{numbers}["']""".encode())
        if self.raised_texts:
            numbers = _pattern_of_numbers(self.raised_texts)
            patterns.append(rf"<(?:\w+:)?v>{numbers}</".encode())
        if self.times:
            numbers = _pattern_of_numbers(self.times)
            value = r"(?:<(?:\w+:)?f\b[^>]*/>|<(?:\w+:)?f\b[^>]*>[^<]*</(?:\w+:)?f>)?<(?:\w+:)?v>-"
            patterns.append(rf"""\bs=["']{numbers}["'][^>]*>{value}""".encode())
        return b"|".join(patterns)

    def text_of(self, kind: str, style: str, value: str) -> str | None:
        """Return the text of a cell; None where that is its value.

        Args:
            kind: the type of its value, `n` for a number and `s` for a text that it shares.
        """
        if kind == "s":
            return self.raised_texts.get(value)
        if kind == "n" and style in self.times and value.startswith("-"):
            return _format_negative_time(value, shows_hours=self.times[style])
        digit_format = self.digit_formats.get(style)
        if kind == "n" and digit_format is not None and value.isdecimal():
            return _format_digits(value, digit_format)
        return None


def read_cell_looks(package: Zip, main: str) -> CellLooks:
    """Return how cells look in a workbook.

    Args:
        main: the part that names its sheets.
    """
    parts = find_related_parts(package, main, key="Type")
    formats = _read_formats(package, parts.get("styles", ""))
    return CellLooks(
        {style: code for style, (_, code) in formats.items() if _is_digit_format(code)},
        _read_raised_texts(package, parts.get("sharedStrings", "")),
        {style: _shows_hours(*format_) for style, format_ in formats.items() if _is_time(*format_)},
    )


def _read_formats(package: Zip, part: str) -> Mapping[str, tuple[str, str]]:
    """Return the format of each style: its number, and its code where the workbook has one for it."""
    codes: dict[str, str] = {}
    styles: list[str] = []
    container = ""
    for name, attributes in read_elements(package.member(part)):
        match name:
            case "numFmt":
                codes[attributes.get("numFmtId", "")] = attributes.get("formatCode", "")
            case "cellStyleXfs" | "cellXfs" | "cellStyles" | "dxfs":
                container = name
            case "xf" if container == "cellXfs":
                styles.append(attributes.get("numFmtId", ""))
            case _:
                pass
    return {str(number): (style, codes.get(style, "")) for number, style in enumerate(styles)}


def _is_time(number: str, code: str) -> bool:
    if not code:
        return number in _BUILT_IN_TIMES
    return is_time_format(code)


def is_time_format(code: str) -> bool:
    """Return whether a format shows a date, a time of day or elapsed time."""
    return not _TIME_LETTERS.isdisjoint(_FORMAT_LITERAL.sub("", code.lower()))


def is_elapsed_format(code: str) -> bool:
    """Return whether a format shows more than 24 hours, or minutes and seconds in their place."""
    return _ELAPSED_TIME.search(code.lower()) is not None


def _shows_hours(number: str, code: str) -> bool:
    if not code:
        return number in _CLOCK_TIMES
    return not _HOUR_LETTERS.isdisjoint(_FORMAT_LITERAL.sub("", code.lower()))


def _format_negative_time(value: str, *, shows_hours: bool) -> str | None:
    """Return days below zero as hours, which no clock shows, or as they are where the cell shows a date."""
    if not shows_hours:
        return value
    try:
        return format_duration(timedelta(days=float(value)))
    except (ValueError, OverflowError):
        return value


def _is_digit_format(code: str) -> bool:
    return code.count("0") >= _FEWEST_DIGITS and _DIGIT_FORMAT.fullmatch(code) is not None


def _format_digits(value: str, code: str) -> str:
    """Return a whole number in a format of digits; the first of them takes what is left."""
    tokens = list(_DIGIT_OR_LITERAL.finditer(code))
    places = sum(token[0] == "0" for token in tokens)
    digits = value.zfill(places)
    surplus = len(digits) - places
    text = ""
    for token in tokens:
        if token[0] != "0":
            text += token[1] or token[2] or token[3] or ""
            continue
        text += digits[: surplus + 1]
        digits = digits[surplus + 1 :]
        surplus = 0
    return text


def format_duration(duration: timedelta) -> str:
    """Return hours, minutes and seconds as a workbook shows them: `36:00:00`, `-12:00:00`."""
    sign = ""
    if duration < timedelta():
        sign = "-"
    minutes, seconds = divmod(abs(duration), timedelta(minutes=1))
    hours, minutes = divmod(minutes, 60)
    text = f"{sign}{hours:02}:{minutes:02}:{seconds.seconds:02}"
    if seconds.microseconds:
        text += f".{seconds.microseconds:06}".rstrip("0")
    return text


def _pattern_of_numbers(numbers: Collection[str]) -> str:
    """Return an expression for one of these numbers that takes few steps; where they are too many, for any number."""
    if len(numbers) > _MOST_IN_PATTERN:
        return r"\d+"
    return _pattern_of_endings(sorted(numbers))


def _pattern_of_endings(numbers: Sequence[str]) -> str:
    """Return an expression for the numbers, digit by digit."""
    endings: dict[str, list[str]] = {}
    for number in numbers:
        endings.setdefault(number[:1], []).append(number[1:])
    alternatives: list[str] = []
    for digit, others in endings.items():
        if digit and any(others):
            digit += _pattern_of_endings(others)
        alternatives.append(digit)
    return f"(?:{'|'.join(alternatives)})"


def _read_raised_texts(package: Zip, part: str) -> Mapping[str, str]:
    """Return the texts with raised parts among those that cells share."""
    raised: dict[str, str] = {}
    text = RaisedText()
    parser = create_parser(text)
    try:
        for number, element in find_elements(package.member(part), b"si", re.compile(_MARKS_RAISED)):
            parser.Parse(element)
            if number >= 0 and text.has_raised:
                raised[str(number)] = text.take()
    except (expat.ExpatError, ValueError) as error:
        raise Unreadable(f"is damaged: {error}") from None
    return raised


class RaisedText(OfficeLines):
    """Takes a text of a cell with what is raised in it.

    Attributes:
        has_raised: whether anything is.
    """

    IGNORED = OfficeLines.IGNORED | {"rPh"}

    def __init__(self) -> None:
        super().__init__()
        self.has_raised = False

    def take(self) -> str:
        """Return the text; the next begins anew."""
        text = " ".join("".join(self._line).split())
        self._line = []
        self.has_raised = False
        self._is_raised = False
        return text

    def _write(self, data: str) -> None:
        self.has_raised = self.has_raised or self._is_raised
        super()._write(data)
