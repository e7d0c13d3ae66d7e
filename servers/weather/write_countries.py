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

from mcp_weather.geography.countries import COMMON, fold  # noqa: E402

LANGUAGES = (
    "en", *COMMON, "zh", "ja", "ko", "ru", "uk", "ar", "fa", "he", "el", "hi", "th", "sv", "da", "nb", "fi", "cs", "sk",
    "hu", "ro", "bg", "sr", "hr", "sl", "lt", "lv", "et", "id", "vi", "ca",
)  # fmt: skip
"""In which countries are known by name."""


def main() -> None:
    iso: dict[str, list[dict[str, str]]] = json.load(sys.stdin)
    countries: dict[str, str] = {item["alpha3"].casefold(): item["alpha2"] for item in iso["iso31661"]}
    for language in LANGUAGES:
        names: Any = Locale(language).territories
        here = {fold(name): code for code, name in names.items() if len(code) == 2}
        countries = {**here, **countries}
    official = {code: get_official_languages(code, de_facto=True) for code in countries.values()}
    spoken = {code: [language for language in found if len(language) == 2] for code, found in official.items()}
    territories: Any = get_global("zone_territories")
    known = {zone: code for zone, code in territories.items() if code not in ("ZZ", "001")}
    aliases: Any = get_global("zone_aliases")
    zones = known | {alias: known[zone] for alias, zone in aliases.items() if zone in known}
    regions = {item["code"]: fold(item["name"]) for item in iso["iso31662"]}
    told = {"countries": countries, "spoken": spoken, "zones": zones, "regions": regions}
    packed = json.dumps(told, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
    (SOURCE / "mcp_weather/geography/countries.json.gz").write_bytes(gzip.compress(packed, 9, mtime=0))


if __name__ == "__main__":
    main()
