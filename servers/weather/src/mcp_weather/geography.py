"""Names of countries and regions in the languages of those who type them, from Unicode's CLDR and ISO 3166."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

__all__ = ["COMMON", "countries", "fold", "languages_of", "lies_in", "spoken_in"]

COMMON = ("de", "fr", "es", "it", "pt", "pl", "nl", "tr")
"""Languages of places whose own names are in Latin letters, tried when a name is known in no other way."""

_SCRIPTS = {
    "CJK": ("zh", "ja"), "HIRAGANA": ("ja",), "KATAKANA": ("ja",), "HANGUL": ("ko",), "CYRILLIC": ("ru", "uk"),
    "ARABIC": ("ar", "fa"), "HEBREW": ("he",), "GREEK": ("el",), "DEVANAGARI": ("hi",), "THAI": ("th",),
    "GEORGIAN": ("ka",), "ARMENIAN": ("hy",), "BENGALI": ("bn",), "TAMIL": ("ta",),
}  # fmt: skip
"""By the first word of a letter's name in Unicode: the languages that write a name so."""
_LANGUAGES = (
    "en", *COMMON, "zh", "ja", "ko", "ru", "uk", "ar", "fa", "he", "el", "hi", "th", "sv", "da", "nb", "fi", "cs", "sk",
    "hu", "ro", "bg", "sr", "hr", "sl", "lt", "lv", "et", "id", "vi", "ca",
)  # fmt: skip
_SHORT = {"uk": "GB", "great britain": "GB", "britain": "GB", "america": "US", "holland": "NL", "korea": "KR"}
"""What people write and neither CLDR nor ISO 3166 lists."""
_LETTERS = str.maketrans({"ø": "o", "đ": "d", "ł": "l", "æ": "ae", "œ": "oe", "ı": "i", "þ": "th", "ð": "d"})
_PLACES = ("country", "country_code", "admin1", "admin2", "admin3", "admin4")


def fold(text: str) -> str:
    """`text` without what people leave out: capitals, accents, full stops, apostrophes, doubled spaces."""
    plain = unicodedata.normalize("NFKD", text.casefold()).translate(_LETTERS)
    kept = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return " ".join(re.sub(r"[.'’`]", "", kept).replace("-", " ").split())


def languages_of(name: str) -> tuple[str, ...]:
    """The languages that `name` may be in by its letters; none for Latin ones."""
    words = (unicodedata.name(letter, "").split(" ")[0] for letter in name)
    return tuple(dict.fromkeys(language for word in words for language in _SCRIPTS.get(word, ())))


def spoken_in(countries: Sequence[str]) -> tuple[str, ...]:
    """The official languages of `countries`, which are ISO 3166-1 codes."""
    from babel.languages import get_official_languages

    found = [language for country in countries for language in get_official_languages(country, de_facto=True)]
    return tuple(dict.fromkeys(language for language in found if len(language) == 2))


def lies_in(hit: Mapping[str, Any], part: str) -> bool:
    """Whether a geocoder's `hit` lies in the country, region or postal code that `part` names in whichever language."""
    wanted = fold(part)
    names = {fold(str(hit.get(key) or "")) for key in _PLACES} - {""}
    if wanted in names or wanted in map(fold, map(str, hit.get("postcodes") or ())):
        return True
    country = str(hit.get("country_code") or "").upper()
    return bool(country) and (_subdivision(country, wanted) in names or country in countries(wanted))


@cache
def countries(wanted: str) -> frozenset[str]:
    """The countries called `wanted`, which is folded, in any of the languages; ISO 3166-1 codes of two letters."""
    import pycountry

    if wanted in _SHORT:
        return frozenset({_SHORT[wanted]})
    listed: Any = pycountry.countries  # Its types leave half of it unknown.
    if len(wanted) == 3 and (known := listed.get(alpha_3=wanted.upper())):
        return frozenset({str(known.alpha_2)})
    for language in _LANGUAGES:
        if code := _countries_in(language).get(wanted):
            return frozenset({code})
    return frozenset()


@cache
def _countries_in(language: str) -> dict[str, str]:
    from babel import Locale

    names: Any = Locale(language).territories
    return {fold(name): code for code, name in names.items() if len(code) == 2}


@cache
def _subdivision(country: str, code: str) -> str | None:
    """The folded name of what ISO 3166-2 calls `code` in `country`, such as the state that people write as `VA`."""
    import pycountry

    if not 1 <= len(code) <= 3 or not code.isascii():
        return None
    listed: Any = pycountry.subdivisions
    known = listed.get(code=f"{country}-{code.upper()}")
    return fold(str(known.name)) if known else None
