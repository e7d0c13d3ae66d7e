# /// script
# requires-python = ">=3.11"
# dependencies = ["babel==2.18.0"]
# ///
"""Write src/mcp_weather/geography/countries.json.gz: names of countries and regions, their languages and time zones.

    npm install iso-3166@4.4.0
    node -e 'import("iso-3166").then((all) => console.log(JSON.stringify(all)))' |
        uv run servers/weather/write_countries.py

Countries, languages and time zones are from Unicode's CLDR, which Babel brings along, regions from ISO 3166-2, as the
package from npm has it. Installed they are 30 MB and more; this is what we read of them. Unicode License v3, copyright
1991-2026 Unicode, Inc.; MIT, copyright 2014 Titus Wormer.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent / "src"
sys.path.insert(0, str(SOURCE))

from babel import Locale  # noqa: E402
from babel.core import get_global  # noqa: E402
from babel.languages import get_official_languages  # noqa: E402

from mcp_weather.geography.countries import COMMON_LANGUAGES, fold_name  # noqa: E402

# Countries are known by their names in these languages.
LANGUAGES = (
    "en", *COMMON_LANGUAGES, "zh", "ja", "ko", "ru", "uk", "ar", "fa", "he", "el", "hi", "th", "sv", "da", "nb", "fi",
    "cs", "sk", "hu", "ro", "bg", "sr", "hr", "sl", "lt", "lv", "et", "id", "vi", "ca",
)  # fmt: skip
# CLDR's codes of an unknown country and of the world.
NO_COUNTRY = ("ZZ", "001")


def main() -> None:
    iso: dict[str, list[dict[str, str]]] = json.load(sys.stdin)
    countries = name_countries(iso["iso31661"])
    tables = {
        "countries": countries,
        "spoken": {code: list_languages(code) for code in countries.values()},
        "zones": place_zones(),
        "regions": {item["code"]: fold_name(item["name"]) for item in iso["iso31662"]},
    }
    packed = json.dumps(tables, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
    (SOURCE / "mcp_weather/geography/countries.json.gz").write_bytes(gzip.compress(packed, 9, mtime=0))


def name_countries(iso_countries: list[dict[str, str]]) -> dict[str, str]:
    """Return the codes of two letters by those of three, and by names; the name of the first language wins."""
    countries = {item["alpha3"].casefold(): item["alpha2"] for item in iso_countries}
    for language in LANGUAGES:
        territories: Any = Locale(language).territories
        codes = {fold_name(name): code for code, name in territories.items() if len(code) == 2}
        countries = {**codes, **countries}
    return countries


def list_languages(country: str) -> list[str]:
    """Return the official languages of a country that have a code of two letters."""
    return [language for language in get_official_languages(country, de_facto=True) if len(language) == 2]


def place_zones() -> dict[str, str]:
    """Return the country of each time zone, also by the zone's other names."""
    zone_territories: Any = get_global("zone_territories")
    zones = {zone: code for zone, code in zone_territories.items() if code not in NO_COUNTRY}
    aliases: Any = get_global("zone_aliases")
    return zones | {alias: zones[zone] for alias, zone in aliases.items() if zone in zones}


if __name__ == "__main__":
    main()
