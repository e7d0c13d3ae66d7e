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

from mcp_weather.geography.chinese_variants import simplify_chinese
from mcp_weather.geography.place_kinds import drop_kind
from mcp_weather.geography.postal_codes import bare_postal_code

__all__ = [
    "APOSTROPHES", "COMMON_LANGUAGES", "find_countries", "find_country", "fold_name", "guess_languages", "is_within",
    "official_languages", "zone_country",
]  # fmt: skip

# As people and keyboards write them in names.
APOSTROPHES = "'’‘ʼʻ`"

# Languages of places whose own names are in Latin letters, tried when a name is known in no other way.
COMMON_LANGUAGES = ("de", "fr", "es", "it", "pt", "pl", "nl", "tr")

# The languages that are written in a script, by the first word of its letters' names in Unicode.
_SCRIPT_LANGUAGES = {
    "CJK": ("zh", "ja"), "HIRAGANA": ("ja",), "KATAKANA": ("ja",), "HANGUL": ("ko",), "CYRILLIC": ("ru", "uk"),
    "ARABIC": ("ar", "fa"), "HEBREW": ("he",), "GREEK": ("el",), "DEVANAGARI": ("hi",), "THAI": ("th",),
    "GEORGIAN": ("ka",), "ARMENIAN": ("hy",), "BENGALI": ("bn",), "TAMIL": ("ta",),
}  # fmt: skip
# Latin letters with two marks, as in Hà Nội, are Vietnamese, and so are these.
_VIETNAMESE_LETTERS = "ƠơƯư"
_FIRST_VIETNAMESE_LETTER = "\u1ea0"
_LAST_VIETNAMESE_LETTER = "\u1ef9"
# What people write and neither CLDR nor ISO 3166 lists.
_COLLOQUIAL_COUNTRIES = {
    "uk": "GB", "great britain": "GB", "britain": "GB", "america": "US", "holland": "NL", "korea": "KR",
    "turkey": "TR", "burma": "MM", "macedonia": "MK",
}  # fmt: skip
# Letters that Unicode does not decompose.
_BASE_LETTERS = str.maketrans({"ø": "o", "đ": "d", "ł": "l", "æ": "ae", "œ": "oe", "ı": "i", "þ": "th", "ð": "d"})
# Parts of a country that have a code of their own.
_PARTS_OF = {"HK": "CN", "MO": "CN", "PR": "US", "GU": "US", "VI": "US", "AS": "US", "MP": "US"}
_REGION_KEYS = ("country", "country_code", "admin1", "admin2", "admin3", "admin4")


def fold_name(text: str) -> str:
    """Return `text` without what people omit: capitals, accents, full stops, apostrophes, doubled spaces."""
    decomposed = unicodedata.normalize("NFKD", text.casefold()).translate(_BASE_LETTERS)
    letters = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    return " ".join(re.sub(f"[.{APOSTROPHES}]", "", letters).replace("-", " ").split())


def guess_languages(name: str) -> tuple[str, ...]:
    """Return the languages that `name` may be in, judged by its letters; none for Latin ones but Vietnamese."""
    languages: dict[str, None] = {}
    for letter in unicodedata.normalize("NFC", name):
        if letter in _VIETNAMESE_LETTERS or _FIRST_VIETNAMESE_LETTER <= letter <= _LAST_VIETNAMESE_LETTER:
            languages["vi"] = None
        script = unicodedata.name(letter, "").split(" ")[0]
        languages |= dict.fromkeys(_SCRIPT_LANGUAGES.get(script, ()))
    return tuple(languages)


def official_languages(countries: Sequence[str]) -> tuple[str, ...]:
    """Return the official languages of `countries`, which are ISO 3166-1 codes."""
    languages: dict[str, None] = {}
    for country in countries:
        languages |= dict.fromkeys(_load_names()["spoken"].get(country, ()))
    return tuple(languages)


def zone_country(zone: tzinfo) -> str | None:
    """Return the country of a time zone as an ISO 3166-1 code; None for zones at sea."""
    return _load_names()["zones"].get(str(zone))


def is_within(result: Mapping[str, Any], region: str) -> bool:
    """Return whether a geocoder's `result` lies in the country, region or postal code that `region` names.

    The name may be in any language.
    """
    folded = simplify_chinese(fold_name(region))
    names = {simplify_chinese(fold_name(str(result.get(key) or ""))) for key in _REGION_KEYS} - {""}
    if folded in names or bare_postal_code(region) in _bare_postal_codes(result):
        return True
    if drop_kind(folded) in {drop_kind(name) for name in names}:
        return True
    # Newfoundland is the one of Newfoundland and Labrador.
    if any(folded in name.split(" and ") for name in names):
        return True
    country = str(result.get("country_code") or "").upper()
    if not country:
        return False
    if _find_subdivision(country, folded) in names:
        return True
    countries = find_countries(fold_name(region))
    return country in countries or _PARTS_OF.get(country) in countries


def _bare_postal_codes(result: Mapping[str, Any]) -> list[str]:
    postcodes = result.get("postcodes")
    if not isinstance(postcodes, list):
        return []
    return [bare_postal_code(str(postcode)) for postcode in cast("list[Any]", postcodes)]


@cache
def find_countries(folded_name: str) -> frozenset[str]:
    """Return the countries with a folded name, in any of the languages, as ISO 3166-1 codes of two letters."""
    countries = _load_names()["countries"]
    code = _COLLOQUIAL_COUNTRIES.get(folded_name) or countries.get(folded_name)
    if code is None:
        code = countries.get(simplify_chinese(folded_name)) or _short_country_names().get(folded_name)
    if code is None:
        return frozenset()
    return frozenset({code})


@cache
def _short_country_names() -> dict[str, str]:
    """Return the countries by the parts of names with brackets: `Myanmar (Burma)` is called by either."""
    countries: dict[str, str] = {}
    for name, code in _load_names()["countries"].items():
        if "(" in name:
            for part in re.split(r"[()]", name):
                countries.setdefault(part.strip(), code)
    countries.pop("", None)
    return countries


def find_country(text: str) -> str | None:
    """Return the code of the country that `text` is the name or code of; None if there is none."""
    code = text.strip().upper()
    if code in _load_names()["spoken"]:
        return code
    return next(iter(find_countries(fold_name(text))), None)


def _find_subdivision(country: str, code: str) -> str | None:
    """Return the folded name of a subdivision in ISO 3166-2, such as the state that people write as `VA`."""
    return _load_names()["regions"].get(f"{country}-{code.upper()}")


@cache
def _load_names() -> dict[str, dict[str, Any]]:
    packed = resources.files("mcp_weather.geography").joinpath("countries.json.gz").read_bytes()
    return json.loads(gzip.decompress(packed))
