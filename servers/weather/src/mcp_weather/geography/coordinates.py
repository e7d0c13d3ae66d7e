"""Parses the ways in which people and models write coordinates. Lexical only: no range is checked here."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

__all__ = ["AmbiguousHemisphere", "Coordinates", "parse_coordinates"]

_NUMBER = r"[+-]?\d{1,3}(?:\.\d*)?"
_DECIMAL = r"[+-]?\d{1,3}\.\d+"

# The place that a link means: a pin of Google Maps or of OpenStreetMap.
_MAP_PINS = (re.compile(rf"!3d({_DECIMAL})!4d({_DECIMAL})"), re.compile(rf"\bmlat=({_DECIMAL})&mlon=({_DECIMAL})"))
# Without a pin it is what the link searches for, or the middle of the map.
_MAP_LINK = re.compile(rf"(?:https?://.*?)?[@=/]({_DECIMAL})[,/]({_DECIMAL})(?:[,&?/( ].*)?", re.IGNORECASE)
_ISO_6709 = re.compile(r"([+-]\d{1,2}(?:\.\d+)?)([+-]\d{1,3}(?:\.\d+)?)/?")
# RFC 5870 allows a height and parameters after the two numbers.
_GEO_URI = re.compile(rf"geo:\s*({_NUMBER}),({_NUMBER})(?:,{_NUMBER})?(?:[;?].*)?", re.IGNORECASE)
# Well-known text writes the longitude first.
_WKT_POINT = re.compile(rf"POINT\s*\(\s*({_NUMBER})\s+({_NUMBER})\s*\)", re.IGNORECASE)

_INTRODUCTION = re.compile(r"^\s*(?:coordinates|coords|gps)\s*:?", re.IGNORECASE)
_LOOKALIKES = str.maketrans(
    {"−": "-", "–": "-", "º": "°", "˚": "°", "/": ",", "|": ",", "，": ",", "、": ",", "；": ";", "．": "."}
)

_LABELLED_NUMBER = re.compile(
    rf"(lat|lon|lng|long)(?:itude)?[\"']?\s*[:=]?\s*[\"']?({_NUMBER})(?![\d.])", re.IGNORECASE
)
_LABEL = re.compile(r"\b(?:lat|lon|lng|long)(?:itude)?\b\.?\s*[:=]?\s*", re.IGNORECASE)
_LABEL_PUNCTUATION = " ,;&{}()[]\"'"
_LINK_START = re.compile(r"\s*https?:", re.IGNORECASE)

_AXIS = re.compile(
    rf"(?P<degrees>{_NUMBER})\s*(?:°|deg\b)?\s*"
    r"(?:(?P<minutes>\d{1,2}(?:\.\d*)?)\s*['′’]\s*(?:(?P<seconds>\d{1,2}(?:\.\d*)?)\s*(?:[\"″”]|'')\s*)?)?"
    r"(?P<direction>[NSEW])?\s*",
    re.IGNORECASE,
)
_AXIS_MARK = re.compile(r"[.°NSEW]", re.IGNORECASE)
_DECIMAL_COMMAS = re.compile(r"\s*([+-]?\d{1,3}),(\d+)\s*(?:;\s*|\s)([+-]?\d{1,3}),(\d+)\s*")

_DIRECTION_NAME = re.compile(r"\b(north|south|east|west)\b", re.IGNORECASE)
# Of Chinese, Japanese, Korean and Russian, without the full stops and spaces of abbreviations.
_TRANSLATIONS = {
    "北纬": "N", "北緯": "N", "南纬": "S", "南緯": "S", "东经": "E", "東經": "E", "東経": "E", "西经": "W", "西經": "W",
    "西経": "W", "북위": "N", "남위": "S", "동경": "E", "서경": "W", "сш": "N", "юш": "S", "вд": "E", "зд": "W",
    "度": "°", "分": "'", "도": "°", "분": "'", "秒": '"', "초": '"',
}  # fmt: skip
_TRANSLATED = re.compile(
    r"[北南][纬緯]|[东東西][经經経]|[북남]위|[동서]경|[сю]\.?\s?ш\.?|[вз]\.?\s?д\.?|[度分秒도분초]", re.I
)
_UNIT_NAME = re.compile(r"\b(?:degrees?|deg|minutes?|min|seconds?|sec)\b\.?", re.IGNORECASE)
_UNIT_LETTERS = re.compile(r"(?<=\d)\s*d\s*(\d+)\s*m\s*(\d+(?:\.\d*)?)\s*s(?!outh)", re.IGNORECASE)
_UNIT_MARKS = re.compile(r"[\s°'′’´`\"″”:,;/|]*")
_DIRECTION_PAIRS = frozenset({"NE", "NW", "SE", "SW", "EN", "WN", "ES", "WS"})
_WITH_BRACKETS = re.compile(r"(?P<outside>[^()]+)\((?P<inside>[^()]+)\)")
_WITH_HEIGHT = re.compile(
    rf"(?P<point>.*\d\.\d.*?(?:[°NSEW]|,\s*{_DECIMAL}))\s*,\s*[+-]?\d{{1,5}}(?:\.\d+)?\s*(?:m|ft)?", re.IGNORECASE
)


class AmbiguousHemisphere(ValueError):
    """Raised when a number has both a sign and a direction."""


class Coordinates(NamedTuple):
    """A latitude and a longitude in degrees, as they were written."""

    latitude: float
    longitude: float


def parse_coordinates(text: str) -> Coordinates | None:
    """Return the coordinates in `text`, whichever of the two comes first; None if it is something else.

    `47.37,8.55`, `47.37 8.55`, `(47.37; 8.55)`, `47,37; 8,55`, `geo:47.37,8.55`, `8.55E 47.37N`, `47°22'N 8°33'E`,
    `lat=47.37, lon=8.55`, `{"latitude": 47.37, "longitude": 8.55}`, `N 47 22 12, E 8 33 0`, `POINT(8.55 47.37)`,
    `北纬47.37度 东经8.55度`, links to maps. A height may follow, and a name or the same in another form in brackets.

    Raises:
        AmbiguousHemisphere: a number has both a sign and a direction.
    """
    if _LINK_START.match(text):
        text = unquote(text)
    point = _parse_point(text)
    if point is not None:
        return point
    if match := _WITH_HEIGHT.fullmatch(text.strip()):
        return _parse_point(match["point"])
    if match := _WITH_BRACKETS.fullmatch(text.strip()):
        return _parse_point_with_mark(match["outside"]) or _parse_point_with_mark(match["inside"])
    return None


def _parse_point_with_mark(text: str) -> Coordinates | None:
    """Return the coordinates in a part of a text; two whole numbers may be anything else there."""
    if not _AXIS_MARK.search(text):
        return None
    return _parse_point(text)


def _parse_point(text: str) -> Coordinates | None:
    """Return the coordinates in `text`, around which there is nothing else; None if it is something else.

    Raises:
        AmbiguousHemisphere: a number has both a sign and a direction.
    """
    for pin in _MAP_PINS:
        if pins := pin.findall(text):
            # Before the pin itself a link may have the place that its address is of.
            latitude, longitude = pins[-1]
            return Coordinates(float(latitude), float(longitude))
    if point := _WKT_POINT.fullmatch(text.strip()):
        return Coordinates(latitude=float(point[2]), longitude=float(point[1]))
    for notation in (_MAP_LINK, _ISO_6709, _GEO_URI):
        if match := notation.fullmatch(text.strip()):
            return Coordinates(latitude=float(match[1]), longitude=float(match[2]))
    plain = _INTRODUCTION.sub("", _TRANSLATED.sub(_translate, text).translate(_LOOKALIKES))
    abbreviated = _abbreviate(plain)
    directions = "".join(filter(str.isalpha, abbreviated))
    if directions in _DIRECTION_PAIRS:
        return _parse_directed(abbreviated, directions)
    return _parse_labelled(plain) or _parse_pair(plain.strip("()[]{} "))


def _translate(word: re.Match[str]) -> str:
    """Return the letter of a direction, or the mark of a unit."""
    return _TRANSLATIONS[re.sub(r"[.\s]", "", word[0].lower())]


def _abbreviate(text: str) -> str:
    """Return `text` in capitals, with directions as letters and units as marks, without names of the axes."""
    lettered = _DIRECTION_NAME.sub(lambda name: name[0][0], _LABEL.sub("", text))
    marked = _UNIT_LETTERS.sub(r"°\1'\2'", lettered)
    return _UNIT_NAME.sub("'", marked).upper().strip("()[] ")


def _parse_directed(text: str, directions: str) -> Coordinates | None:
    """Return the coordinates of two numbers with a direction each, which stands before both or after both.

    Args:
        directions: the letters of the two, in the order of the text.
    """
    before, between, after = re.split("[NSEW]", text)
    if _UNIT_MARKS.fullmatch(before):
        axes = (between, after)
    elif _UNIT_MARKS.fullmatch(after):
        axes = (before, between)
    else:
        return None
    values: list[float] = []
    for axis, direction in zip(axes, directions, strict=True):
        value = _parse_sexagesimal(axis)
        if value is None:
            return None
        if direction in "SW":
            value = -value
        values.append(value)
    first, second = values
    if directions[0] in "EW":
        return Coordinates(latitude=second, longitude=first)
    return Coordinates(latitude=first, longitude=second)


def _parse_sexagesimal(axis: str) -> float | None:
    """Return degrees, minutes and seconds as degrees; the last of them may have decimals. None if it is something else.

    Raises:
        AmbiguousHemisphere: there is a sign.
    """
    # Only one axis is in the text, so a comma between two digits is a decimal comma.
    numbers: list[str] = re.findall(r"[+-]?\d+(?:\.\d*)?", re.sub(r"(?<=\d),(?=\d)", ".", axis))
    if not numbers:
        return None
    if numbers[0].startswith(("+", "-")):
        raise AmbiguousHemisphere
    if len(numbers) > 3 or not all(number.isdigit() for number in numbers[:-1]):
        return None
    if not all(float(number) < 60 for number in numbers[1:]):
        return None
    if not _UNIT_MARKS.fullmatch(re.sub(r"[\d.]", "", axis)):
        return None
    return sum(float(number) / 60**power for power, number in enumerate(numbers))


def _parse_labelled(text: str) -> Coordinates | None:
    """Return the coordinates of two numbers that are called latitude and longitude."""
    numbers: dict[str, float] = {}
    for label, number in _LABELLED_NUMBER.findall(text):
        numbers[label[:2].lower()] = float(number)
    latitude = numbers.pop("la", None)
    if latitude is None or len(numbers) != 1:
        return None
    if not _LINK_START.match(text) and _LABELLED_NUMBER.sub("", text).strip(_LABEL_PUNCTUATION):
        return None
    (longitude,) = numbers.values()
    return Coordinates(latitude, longitude)


def _parse_pair(text: str) -> Coordinates | None:
    """Return the coordinates of two numbers, the latitude first unless directions say otherwise."""
    axes = _match_axes(text)
    if axes is None:
        return None
    first, second = axes
    first_direction = (first["direction"] or "").upper()
    second_direction = (second["direction"] or "").upper()
    if first_direction in ("E", "W") and second_direction in ("", "N", "S"):
        return Coordinates(latitude=_axis_value(second), longitude=_axis_value(first))
    if first_direction in ("", "N", "S") and second_direction in ("", "E", "W"):
        return Coordinates(latitude=_axis_value(first), longitude=_axis_value(second))
    return None


def _match_axes(text: str) -> tuple[re.Match[str], re.Match[str]] | None:
    """Return the two numbers of which a text consists, as `_AXIS` matches them; None if it is something else."""
    if commas := _DECIMAL_COMMAS.fullmatch(text):
        text = "{}.{}, {}.{}".format(*commas.groups())
    first = _AXIS.match(text)
    if first is None:
        return None
    remainder = text[first.end() :]
    # Two numbers with nothing between them and nothing to show what they are may be a postal code.
    if not remainder.startswith((",", ";")) and not _AXIS_MARK.search(text):
        return None
    second = _AXIS.fullmatch(remainder.lstrip(",; "))
    if second is None:
        return None
    if remainder == second[0] and not text[: first.end()].endswith((" ", *"NSEWnsew")):
        return None
    return first, second


def _axis_value(axis: re.Match[str]) -> float:
    """Return the degrees of one axis, negative in the south and the west.

    Raises:
        AmbiguousHemisphere: it has both a sign and a direction.
    """
    degrees: str = axis["degrees"]
    direction: str = axis["direction"] or ""
    if direction and degrees.startswith(("-", "+")):
        raise AmbiguousHemisphere
    value = abs(float(degrees)) + float(axis["minutes"] or 0) / 60 + float(axis["seconds"] or 0) / 3600
    if degrees.startswith("-") or direction.upper() in ("S", "W"):
        return -value
    return value
