"""The ways in which people and models write coordinates. Lexical only: no range is checked here."""

from __future__ import annotations

import re

__all__ = ["Twofold", "degrees"]

_NUMBER = r"[+-]?\d{1,3}(?:\.\d*)?"
_LABELS = re.compile(rf"(lat|lon|lng|long)(?:itude)?[\"']?\s*[:=]?\s*[\"']?({_NUMBER})(?![\d.])", re.IGNORECASE)
_PUNCTUATION = " ,;{}()[]\"'"
_AXIS = re.compile(
    rf"({_NUMBER})\s*(?:°|deg\b)?\s*(?:(\d{{1,2}}(?:\.\d*)?)\s*['′’]\s*(?:(\d{{1,2}}(?:\.\d*)?)\s*(?:[\"″”]|'')\s*)?)?"
    r"([NSEW])?\s*",
    re.IGNORECASE,
)
_DECIMAL_COMMAS = re.compile(r"\s*([+-]?\d{1,3}),(\d+)\s*(?:;\s*|\s)([+-]?\d{1,3}),(\d+)\s*")


class Twofold(ValueError):
    """Raised when a number has both a sign and a direction."""


def degrees(text: str) -> tuple[float, float] | None:
    """Latitude and longitude that `text` writes out, whichever it names first; None when it is something else.

    `47.37,8.55`, `47.37 8.55`, `(47.37; 8.55)`, `47,37; 8,55`, `geo:47.37,8.55`, `8.55E 47.37N`, `47°22'N 8°33'E`,
    `lat=47.37, lon=8.55`, `{"latitude": 47.37, "longitude": 8.55}`.

    Raises:
        Twofold: a number has both a sign and a direction.
    """
    labelled = {name[:2].lower(): float(number) for name, number in _LABELS.findall(text)}
    if labelled.keys() >= {"la"} and len(labelled) == 2 and not _LABELS.sub("", text).strip(_PUNCTUATION):
        return labelled.pop("la"), labelled.popitem()[1]
    text = text.removeprefix("geo:").strip("()[]{} ")
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


def _value(axis: re.Match[str]) -> float:
    whole, minutes, seconds, direction = axis.groups()
    value = abs(float(whole)) + float(minutes or 0) / 60 + float(seconds or 0) / 3600
    if direction and whole.startswith(("-", "+")):
        raise Twofold
    return -value if whole.startswith("-") or (direction or "").upper() in ("S", "W") else value
