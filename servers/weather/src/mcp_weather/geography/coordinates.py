"""The ways in which people and models write coordinates. Lexical only: no range is checked here."""

from __future__ import annotations

import re

__all__ = ["Twofold", "degrees"]

_NUMBER = r"[+-]?\d{1,3}(?:\.\d*)?"
_LABELS = re.compile(rf"(lat|lon|lng|long)(?:itude)?[\"']?\s*[:=]?\s*[\"']?({_NUMBER})(?![\d.])", re.IGNORECASE)
_PUNCTUATION = " ,;&{}()[]\"'"
_AXIS = re.compile(
    rf"({_NUMBER})\s*(?:°|deg\b)?\s*(?:(\d{{1,2}}(?:\.\d*)?)\s*['′’]\s*(?:(\d{{1,2}}(?:\.\d*)?)\s*(?:[\"″”]|'')\s*)?)?"
    r"([NSEW])?\s*",
    re.IGNORECASE,
)
_DECIMAL = r"[+-]?\d{1,3}\.\d+"
_NAMED = re.compile(r"\b(?:(n)orth|(s)outh|(e)ast|(w)est)\b", re.IGNORECASE)
_WORDS = re.compile(r"\b(?:degrees?|deg|minutes?|min|seconds?|sec)\b\.?", re.IGNORECASE)
_LETTERS = re.compile(r"(?<=\d)\s*d\s*(\d+)\s*m\s*(\d+(?:\.\d*)?)\s*s(?!outh)", re.IGNORECASE)
_MARKS = re.compile(r"[\s°'′’´`\"″”:,;/|]*")
_LINK = re.compile(rf"(?:https?://.*?)?[@=/]({_DECIMAL})[,/]({_DECIMAL})(?:[,&?/].*)?", re.IGNORECASE)
_POINT = re.compile(rf"POINT\s*\(\s*({_NUMBER})\s+({_NUMBER})\s*\)", re.IGNORECASE)
_ISO_6709 = re.compile(r"([+-]\d{1,2}(?:\.\d+)?)([+-]\d{1,3}(?:\.\d+)?)/?")
_GEO = re.compile(rf"geo:\s*({_NUMBER}),({_NUMBER})(?:,{_NUMBER})?(?:[;?].*)?", re.IGNORECASE)
"""RFC 5870: a height and parameters may follow."""
_SAME = str.maketrans(
    {"−": "-", "–": "-", "º": "°", "˚": "°", "/": ",", "|": ",", "，": ",", "、": ",", "；": ";", "．": "."}
)
_DECIMAL_COMMAS = re.compile(r"\s*([+-]?\d{1,3}),(\d+)\s*(?:;\s*|\s)([+-]?\d{1,3}),(\d+)\s*")


class Twofold(ValueError):
    """Raised when a number has both a sign and a direction."""


def degrees(text: str) -> tuple[float, float] | None:
    """Latitude and longitude in `text`, whichever comes first; None if it is something else.

    `47.37,8.55`, `47.37 8.55`, `(47.37; 8.55)`, `47,37; 8,55`, `geo:47.37,8.55`, `8.55E 47.37N`, `47°22'N 8°33'E`,
    `lat=47.37, lon=8.55`, `{"latitude": 47.37, "longitude": 8.55}`, `N 47 22 12, E 8 33 0`, `POINT(8.55 47.37)`, links
    to maps.

    Raises:
        Twofold: a number has both a sign and a direction.
    """
    if found := _POINT.fullmatch(text.strip()):
        return float(found[2]), float(found[1])
    if found := _LINK.fullmatch(text.strip()) or (_ISO_6709.fullmatch(text.strip()) or _GEO.fullmatch(text.strip())):
        return float(found[1]), float(found[2])
    text = re.sub(r"^\s*(?:coordinates|coords|gps)\s*:?", "", text.translate(_SAME), flags=re.IGNORECASE)
    if (point := _directed(text)) is not None:
        return point or None
    labelled = {name[:2].lower(): float(number) for name, number in _LABELS.findall(text)}
    link = re.match(r"\s*https?:", text, re.IGNORECASE)
    if labelled.keys() >= {"la"} and len(labelled) == 2 and (link or not _LABELS.sub("", text).strip(_PUNCTUATION)):
        return labelled.pop("la"), labelled.popitem()[1]
    text = text.strip("()[]{} ")
    if commas := _DECIMAL_COMMAS.fullmatch(text):
        text = "{}.{}, {}.{}".format(*commas.groups())
    first = _AXIS.match(text)
    if first is None:
        return None
    rest = text[first.end() :]
    # Two numbers with nothing between them and nothing to show what they are may be a postal code.
    if rest[:1] not in (",", ";") and not re.search(r"[.°NSEW]", text, re.IGNORECASE):
        return None
    second = _AXIS.fullmatch(rest.lstrip(",; "))
    if second is None or (rest == second[0] and not text[: first.end()].endswith((" ", *"NSEWnsew"))):
        return None
    directions = (first[4] or "").upper(), (second[4] or "").upper()
    if directions[0] in ("E", "W") and directions[1] in ("", "N", "S"):
        return _value(second), _value(first)
    if directions[0] in ("", "N", "S") and directions[1] in ("", "E", "W"):
        return _value(first), _value(second)
    return None


def _directed(text: str) -> tuple[float, float] | tuple[()] | None:
    """Two numbers in `text` with a direction each, before or after both, in up to three parts each.

    Empty if it cannot be read, None if it is not of that kind.
    """
    plain = _LETTERS.sub(r"°\1'\2'", _NAMED.sub(lambda found: next(filter(None, found.groups())), text))
    plain = _WORDS.sub("'", plain).upper().strip("()[] ")
    letters = "".join(filter(str.isalpha, plain))
    if len(letters) != 2 or not any(letters in (a + b, b + a) for a in "NS" for b in "EW"):
        return None
    before, between, behind = re.split("[NSEW]", plain)
    if _MARKS.fullmatch(before):
        written = between, behind
    elif _MARKS.fullmatch(behind):
        written = before, between
    else:
        return ()
    values: list[float] = []
    for part, letter in zip(written, letters, strict=True):
        # Between two digits a comma is that of a decimal: one axis is here alone.
        whole, *finer = re.findall(r"[+-]?\d+(?:\.\d*)?", re.sub(r"(?<=\d),(?=\d)", ".", part)) or ["?"]
        if whole[0] in "+-":
            raise Twofold
        fits = all(number.isdigit() for number in (whole, *finer)[:-1]) and all(float(number) < 60 for number in finer)
        if not fits or len(finer) > 2 or not _MARKS.fullmatch(re.sub(r"[\d.]", "", part)) or whole == "?":
            return ()
        value = sum(float(number) / 60**power for power, number in enumerate((whole, *finer)))
        values.append(-value if letter in "SW" else value)
    return (values[1], values[0]) if letters[0] in "EW" else (values[0], values[1])


def _value(axis: re.Match[str]) -> float:
    whole, minutes, seconds, direction = axis.groups()
    value = abs(float(whole)) + float(minutes or 0) / 60 + float(seconds or 0) / 3600
    if direction and whole.startswith(("-", "+")):
        raise Twofold
    return -value if whole.startswith("-") or (direction or "").upper() in ("S", "W") else value
