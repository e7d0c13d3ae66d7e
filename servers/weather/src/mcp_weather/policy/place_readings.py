"""Other ways to read what a caller writes for a place: with the largest part first, and without words around it.

Only lists what the words may mean: which of them it is, the geocoder decides.
"""

from __future__ import annotations

import itertools
import re

from mcp_batteries.errors import quote
from mcp_weather.geography.countries import APOSTROPHES, find_countries, fold_name
from mcp_weather.geography.place_kinds import divide_by_kinds, drop_kind
from mcp_weather.policy.place_text import PlaceName, is_code
from mcp_weather.policy.weather_words import drop_doubtful_weather_words

__all__ = ["larger_parts", "modern_name", "other_readings"]

# By their folded forms: names of which no place of today is known to the geocoder, or only a small one elsewhere.
_OLDER_NAMES = {
    "peking": "Beijing", "pekin": "Beijing", "hongkong": "Hong Kong", "nanking": "Nanjing", "tientsin": "Tianjin",
    "chungking": "Chongqing", "mukden": "Shenyang", "tsingtao": "Qingdao", "hangchow": "Hangzhou", "sian": "Xi'an",
    "soochow": "Suzhou", "foochow": "Fuzhou", "amoy": "Xiamen", "kwangchow": "Guangzhou", "bombay": "Mumbai",
    "calcutta": "Kolkata", "bangalore": "Bengaluru", "poona": "Pune", "saigon": "Ho Chi Minh City", "rangoon": "Yangon",
    "leningrad": "Saint Petersburg", "stalingrad": "Volgograd", "constantinople": "Istanbul", "smyrna": "İzmir",
    "danzig": "Gdańsk", "breslau": "Wrocław", "stettin": "Szczecin", "konigsberg": "Kaliningrad", "lemberg": "Lviv",
    "pressburg": "Bratislava", "agram": "Zagreb", "reval": "Tallinn", "batavia, indonesia": "Jakarta",
    "kiev": "Kyiv", "kharkov": "Kharkiv", "odessa, ukraine": "Odesa", "dacca": "Dhaka", "taipeh": "Taipei",
    "fusan": "Busan", "pusan": "Busan", "taegu": "Daegu", "inchon": "Incheon", "kwangju": "Gwangju",
    "taejon": "Daejeon", "mecka": "Mecca", "frunze": "Bishkek", "alma ata": "Almaty", "godthab": "Nuuk",
}  # fmt: skip
_IDEOGRAPHS = re.compile(r"[\u3400-\u9fff]+|[\uac00-\ud7a3]+")
_CHINESE = re.compile(r"[\u3400-\u9fff]+")
# Kinds that a gazetteer may add to a short name of Chinese.
_ADDED_KINDS = ("区", "县", "新区", "市")
_MAX_DIVISIONS = 4
# First words of names that people shorten, folded.
_ABBREVIATIONS = {"st": "Saint", "ste": "Sainte", "mt": "Mount", "ft": "Fort"}
_MAX_COUNTRY_WORDS = 3
# An accent without a letter is one, too.
_APOSTROPHE = re.compile(f"[{APOSTROPHES}´]")


def modern_name(place_name: PlaceName) -> PlaceName | None:
    """Return the place under the name that it has today; None if that is not known here."""
    today = _OLDER_NAMES.get(fold_name(drop_kind(place_name.name)))
    if today is None:
        return None
    return PlaceName(today, place_name.regions, place_name.text, f"{quote(place_name.name)} is {today} today; ")


def other_readings(place_name: PlaceName) -> list[PlaceName]:
    """Return the other ways to read a name, the likelier first; not the one that it has as it is."""
    parts = [place_name.name, *place_name.regions]
    readings: list[PlaceName] = []
    without_kind = drop_kind(place_name.name)
    if without_kind != place_name.name:
        readings.append(_read(place_name, without_kind, place_name.regions))
    readings += _read_spellings(place_name)
    readings += _read_codes(place_name)
    if "/" in place_name.name:
        readings += _read_slashes(place_name)
    if len(parts) > 1:
        readings += _read_largest_first(place_name, parts)
    elif " " in place_name.name:
        readings += _read_words(place_name)
    elif len(place_name.name) == 2 and _is_chinese(place_name.name):
        readings += [_read(place_name, place_name.name + kind, ()) for kind in reversed(_ADDED_KINDS)]
    elif _IDEOGRAPHS.fullmatch(place_name.name):
        readings += _divide(place_name)
    modern_readings = [modern_name(reading) for reading in (place_name, *readings)]
    readings += [reading for reading in modern_readings if reading is not None]
    return [reading for reading in dict.fromkeys(readings) if len(reading.name) > 1]


def _read_spellings(place_name: PlaceName) -> list[PlaceName]:
    """Return the readings in other spellings of the same name, which the geocoder tells apart."""
    spellings: dict[str, None] = {}
    for name in (place_name.name, *_respell_apostrophes(place_name.name)):
        spellings |= dict.fromkeys([name, *_respell_hyphens(name), *_respell_first_word(name)])
    return [_read(place_name, name, place_name.regions) for name in spellings if name != place_name.name]


def _respell_hyphens(name: str) -> list[str]:
    """Return the name with a hyphen for each space, and the other way round."""
    return sorted({name.replace(" ", "-"), name.replace("-", " ")} - {name})


def _respell_apostrophes(name: str) -> list[str]:
    """Return the name with the apostrophes of a typewriter, and with those of print: GeoNames has `Xi’an`."""
    typed = _APOSTROPHE.sub("'", name)
    return [spelling for spelling in (typed, typed.replace("'", "’")) if spelling != name]


def _respell_first_word(name: str) -> list[str]:
    """Return the name with its first word in full or short: `St. Petersburg` is Saint Petersburg in Russia."""
    first, _, other_words = name.partition(" ")
    if not other_words:
        return []
    folded = fold_name(first)
    spellings: list[str] = []
    for short, full in _ABBREVIATIONS.items():
        if folded in (short, fold_name(full)):
            spellings = [f"{full} {other_words}", f"{short.title()}. {other_words}"]
    return [spelling for spelling in spellings if spelling != name]


def _read_codes(place_name: PlaceName) -> list[PlaceName]:
    """Return the reading with a postal code apart that comes first: `10115 Berlin`."""
    words = place_name.name.split()
    codes = list(itertools.takewhile(is_code, words))
    name = " ".join(words[len(codes) :])
    if not codes or not name:
        return []
    return [_read(place_name, name, (" ".join(codes), *place_name.regions))]


def _read_slashes(place_name: PlaceName) -> list[PlaceName]:
    """Return the readings of `Bonn/Germany`, in either order; as one name, as in `Biel/Bienne`, it is read before."""
    parts = [part.strip() for part in place_name.name.split("/") if part.strip()]
    if len(parts) < 2:
        return []
    smallest_first = _read(place_name, parts[0], (*parts[1:], *place_name.regions))
    return [smallest_first, *_read_largest_first(place_name, parts)]


def _read_words(place_name: PlaceName) -> list[PlaceName]:
    """Return the readings of words of which the first are the larger place."""
    words = place_name.name.split()
    readings: list[PlaceName] = []
    without_weather = drop_doubtful_weather_words(place_name.name)
    if without_weather != place_name.name:
        readings.append(_read(place_name, without_weather, ()))
    for count in range(1, min(len(words) - 1, _MAX_COUNTRY_WORDS) + 1):
        country = " ".join(words[:count])
        if find_countries(fold_name(country)):
            readings.append(_read(place_name, " ".join(words[count:]), (country,)))
    # In Latin letters anything else would be a guess.
    if not place_name.name.isascii():
        readings += _read_largest_first(place_name, words)
    return readings


def _is_chinese(text: str) -> bool:
    """Return whether `text` is in Chinese characters only."""
    return _CHINESE.fullmatch(text) is not None


def _read_largest_first(place_name: PlaceName, parts: list[str]) -> list[PlaceName]:
    """Return the readings in which the last of `parts` lies in those before it, or is one part too many."""
    readings = [_read(place_name, parts[-1], tuple(reversed(parts[:-1])))]
    bare = drop_kind(parts[-1])
    if bare != parts[-1]:
        readings.append(_read(place_name, bare, tuple(reversed(parts[:-1]))))
    if len(parts[-1]) == 2 and _is_chinese(parts[-1]):
        readings += [_read(place_name, parts[-1] + kind, tuple(reversed(parts[:-1]))) for kind in _ADDED_KINDS]
    if len(parts) > 2:
        readings += _read_largest_first(place_name, parts[:-1])
    return readings


def _divide(place_name: PlaceName) -> list[PlaceName]:
    """Return the readings of a name without spaces that begins with the larger place: `广东深圳`."""
    name = place_name.name
    parts = _part_country(divide_by_kinds(name))
    if len(parts) > 1:
        return _read_largest_first(place_name, parts)
    readings: list[PlaceName] = []
    for larger, smaller in _list_divisions(name):
        readings += _read_largest_first(place_name, [larger, smaller])
    return readings


def _part_country(parts: list[str]) -> list[str]:
    """Return `parts` with the country that the first begins with as a part of its own: `中国山西省`."""
    first = parts[0]
    for length in range(len(first) - 2, 1, -1):
        if len(parts) > 1 and find_countries(fold_name(first[:length])):
            return [first[:length], first[length:], *parts[1:]]
    return parts


def _list_divisions(name: str) -> list[tuple[str, str]]:
    """Return the likely divisions of a name into the larger and the smaller place."""
    divisions = [(name[:length], name[length:]) for length in range(2, len(name) - 1)]
    # Where the first part is a country it is no guess.
    divisions.sort(key=lambda division: not find_countries(fold_name(division[0])))
    return divisions[:_MAX_DIVISIONS]


def larger_parts(place_name: PlaceName) -> list[PlaceName]:
    """Return the larger places that a name may begin with, for when nobody knows the smaller one.

    A guess that is right only for a place that everybody knows.
    """
    if place_name.regions or not _IDEOGRAPHS.fullmatch(place_name.name):
        return []
    parts = divide_by_kinds(place_name.name)
    if len(parts) > 1:
        divisions = [(drop_kind(parts[0]), "".join(parts[1:]))]
    else:
        divisions = _list_divisions(place_name.name)
    readings: list[PlaceName] = []
    for larger, smaller in divisions:
        note = f"{quote(smaller)} is not known there and was ignored; "
        readings.append(PlaceName(larger, (), place_name.text, note))
    return readings


def _read(place_name: PlaceName, name: str, regions: tuple[str, ...]) -> PlaceName:
    note = f"taken as {quote(name)}"
    if regions:
        note += f" in {quote(', '.join(regions))}"
    return PlaceName(name, regions, place_name.text, f"{note}; ")
