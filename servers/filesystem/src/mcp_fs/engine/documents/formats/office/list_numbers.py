"""The numbers before paragraphs of a Word document, which it counts only when it shows them (ECMA-376, 17.9)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["ListNumbers", "read_list_numbers"]

Elements = Sequence[tuple[str, dict[str, str]]]

_MOST_LEVELS = 9
_MOST_BASES = 10
_PLACE = re.compile(r"%([1-9])")
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
    (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


@dataclass(slots=True)
class _Level:
    """How the paragraphs of one level of a list are counted.

    Attributes:
        text: what stands before them, with `%1` for the number of the first level.
        style: the style of paragraphs that are on this level.
    """

    start: int = 1
    number_format: str = "decimal"
    text: str = ""
    style: str = ""


@dataclass(slots=True)
class _List:
    """A list of the document: one of its kinds, which some may share and count on together.

    Attributes:
        levels: what it has other than its kind.
        starts: where its levels begin anew.
    """

    kind: str = ""
    levels: dict[int, _Level] = field(default_factory=dict[int, _Level])
    starts: dict[int, int] = field(default_factory=dict[int, int])


@dataclass(slots=True)
class _Style:
    base: str = ""
    list_id: str = ""
    level: int | None = None


class ListNumbers:
    """Counts paragraphs in lists, in the order in which they are asked for."""

    def __init__(self, kinds: dict[str, dict[int, _Level]], lists: dict[str, _List], styles: dict[str, _Style]) -> None:
        self._kinds = kinds
        self._lists = lists
        self._styles = styles
        self._counts: dict[str, dict[int, int]] = {}
        self._started_lists: set[str] = set()

    def next(self, list_id: str | None, level: int | None, style: str) -> str:
        """Return what stands before the next paragraph, `-` for any bullet; nothing if it is in no list.

        Args:
            list_id: of its list, `0` for none; None if its style says that.
        """
        if list_id is None:
            list_id, level = self._list_of_style(style, level)
        item = self._lists.get(list_id)
        if item is None:
            return ""
        levels = {**self._kinds.get(item.kind, {}), **item.levels}
        if level is None:
            level = next((number for number, one in levels.items() if one.style == style != ""), 0)
        counts = self._counts.setdefault(item.kind, {})
        if list_id not in self._started_lists:
            self._started_lists.add(list_id)
            for started_level, start in item.starts.items():
                counts[started_level] = start - 1
        own = levels.get(level, _Level(text="-", number_format="bullet"))
        counts[level] = counts.get(level, own.start - 1) + 1
        for deeper in [number for number in counts if number > level]:
            del counts[deeper]
        return self._write(own, levels, counts)

    def _list_of_style(self, name: str, level: int | None) -> tuple[str, int | None]:
        """Return the list that a style puts its paragraphs into, and on which level."""
        for _ in range(_MOST_BASES):
            style = self._styles.get(name)
            if style is None:
                break
            if level is None:
                level = style.level
            if style.list_id:
                return style.list_id, level
            name = style.base
        return "", level

    def _write(self, level: _Level, levels: dict[int, _Level], counts: dict[int, int]) -> str:
        if level.number_format == "bullet":
            return "-"

        def write_number(match: re.Match[str]) -> str:
            number = int(match[1]) - 1
            numbered_level = levels.get(number, _Level())
            return _write_number(counts.get(number, numbered_level.start), numbered_level.number_format)

        return _PLACE.sub(write_number, level.text)


def _write_number(number: int, number_format: str) -> str:
    match number_format:
        case "lowerLetter" | "upperLetter" if number > 0:
            text = chr(ord("a") + (number - 1) % 26) * (1 + (number - 1) // 26)
        case "lowerRoman" | "upperRoman" if 0 < number < 5000:
            text = _to_roman(number)
        case "decimalZero":
            text = f"{number:02}"
        case "none":
            text = ""
        case _:
            text = str(number)
    if number_format.startswith("upper"):
        return text.upper()
    return text


def _to_roman(number: int) -> str:
    text = ""
    for value, letters in _ROMAN:
        text += letters * (number // value)
        number %= value
    return text


def read_list_numbers(numbering: Elements, styles: Elements) -> ListNumbers:
    """Return the lists of a document, by the elements of its parts for numbering and styles."""
    kinds: dict[str, dict[int, _Level]] = {}
    lists: dict[str, _List] = {}
    levels: dict[int, _Level] = {}
    item = _List()
    level = _Level()
    number = 0
    for name, attributes in numbering:
        value = attributes.get("val", "")
        match name:
            case "abstractNum":
                levels = kinds.setdefault(attributes.get("abstractNumId", ""), {})
            case "num":
                item = lists.setdefault(attributes.get("numId", ""), _List())
                levels = item.levels
            case "abstractNumId":
                item.kind = value
            case "lvlOverride":
                number = _to_level(attributes.get("ilvl"))
            case "startOverride":
                item.starts[number] = _to_number(value)
            case "lvl":
                level = levels.setdefault(_to_level(attributes.get("ilvl")), _Level())
            case _:
                _describe_level(level, name, value)
    return ListNumbers(kinds, lists, _read_styles(styles))


def _describe_level(level: _Level, name: str, value: str) -> None:
    match name:
        case "start":
            level.start = _to_number(value)
        case "numFmt":
            level.number_format = value
        case "lvlText":
            level.text = value
        case "pStyle":
            level.style = value
        case _:
            pass


def _read_styles(elements: Elements) -> dict[str, _Style]:
    styles: dict[str, _Style] = {}
    style = _Style()
    for name, attributes in elements:
        value = attributes.get("val", "")
        match name:
            case "style":
                style = styles.setdefault(attributes.get("styleId", ""), _Style())
            case "basedOn":
                style.base = value
            case "numId":
                style.list_id = value
            case "ilvl":
                style.level = _to_level(value)
            case _:
                pass
    return styles


def _to_level(value: str | None) -> int:
    return min(_to_number(value or "0"), _MOST_LEVELS)


def _to_number(value: str) -> int:
    if value.isascii() and value.isdigit():
        return int(value[:9])
    return 0
