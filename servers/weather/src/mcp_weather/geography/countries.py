"""Names of countries and regions in many languages, from Unicode's CLDR and ISO 3166.

They are in `countries.json.gz`, which `servers/weather/write_countries.py` writes.
"""

from __future__ import annotations

import gzip
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from functools import cache
from importlib import resources
from typing import Any, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = [
    "COMMON", "countries", "country_called", "country_of", "fold", "languages_of", "lies_in", "spoken_in", "zone_named",
]  # fmt: skip

COMMON = ("de", "fr", "es", "it", "pt", "pl", "nl", "tr")
"""Languages of places whose own names are in Latin letters, tried when a name is known in no other way."""

_SCRIPTS = {
    "CJK": ("zh", "ja"), "HIRAGANA": ("ja",), "KATAKANA": ("ja",), "HANGUL": ("ko",), "CYRILLIC": ("ru", "uk"),
    "ARABIC": ("ar", "fa"), "HEBREW": ("he",), "GREEK": ("el",), "DEVANAGARI": ("hi",), "THAI": ("th",),
    "GEORGIAN": ("ka",), "ARMENIAN": ("hy",), "BENGALI": ("bn",), "TAMIL": ("ta",),
}  # fmt: skip
"""By the first word of a letter's name in Unicode: the languages that write a name so."""
_SHORT = {"uk": "GB", "great britain": "GB", "britain": "GB", "america": "US", "holland": "NL", "korea": "KR"}
"""What people write and neither CLDR nor ISO 3166 lists."""
_LETTERS = str.maketrans({"ø": "o", "đ": "d", "ł": "l", "æ": "ae", "œ": "oe", "ı": "i", "þ": "th", "ð": "d"})
_PLACES = ("country", "country_code", "admin1", "admin2", "admin3", "admin4")


def fold(text: str) -> str:
    """`text` without what people omit: capitals, accents, full stops, apostrophes, doubled spaces."""
    plain = unicodedata.normalize("NFKD", text.casefold()).translate(_LETTERS)
    kept = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return " ".join(re.sub(r"[.'’`]", "", kept).replace("-", " ").split())


def languages_of(name: str) -> tuple[str, ...]:
    """The languages that `name` may be in, judged by its letters; none for Latin ones."""
    words = (unicodedata.name(letter, "").split(" ")[0] for letter in name)
    return tuple(dict.fromkeys(language for word in words for language in _SCRIPTS.get(word, ())))


def spoken_in(countries: Sequence[str]) -> tuple[str, ...]:
    """The official languages of `countries`, which are ISO 3166-1 codes."""
    return tuple(dict.fromkeys(language for country in countries for language in _known("spoken").get(country, ())))


def country_of(zone: tzinfo) -> str | None:
    """The country of a time zone, as an ISO 3166-1 code; None for zones at sea."""
    return _known("zones").get(str(zone))


def lies_in(hit: Mapping[str, Any], part: str) -> bool:
    """Whether a geocoder's `hit` is in the country, region or postal code that `part` names in any language."""
    wanted = fold(part)
    names = {fold(str(hit.get(key) or "")) for key in _PLACES} - {""}
    codes = hit.get("postcodes")
    if wanted in names or wanted in map(fold, map(str, cast("list[Any]", codes) if isinstance(codes, list) else ())):
        return True
    country = str(hit.get("country_code") or "").upper()
    return bool(country) and (_subdivision(country, wanted) in names or country in countries(wanted))


@cache
def countries(wanted: str) -> frozenset[str]:
    """The countries called `wanted`, which is folded, in any of the languages; ISO 3166-1 codes of two letters."""
    code = _SHORT.get(wanted) or _known("countries").get(wanted)
    return frozenset({code} if code else ())


def country_called(text: str) -> str | None:
    """The code of the country that `text` is the name or code of; None if there is none."""
    code = text.strip().upper()
    return code if code in _known("spoken") else next(iter(countries(fold(text))), None)


def zone_named(name: str) -> tzinfo | None:
    """The zone that the IANA calls `name`; None if there is none."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return None  # `America` is a folder of the system's.


def _subdivision(country: str, code: str) -> str | None:
    """The folded name of the subdivision `code` of `country` in ISO 3166-2, such as the state that people write as
    `VA`."""
    return _known("regions").get(f"{country}-{code.upper()}")


def _known(kind: str) -> dict[str, Any]:
    return _names()[kind]


@cache
def _names() -> dict[str, dict[str, Any]]:
    return json.loads(
        gzip.decompress(resources.files("mcp_weather.geography").joinpath("countries.json.gz").read_bytes())
    )
