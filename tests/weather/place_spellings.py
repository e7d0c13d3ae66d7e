"""Places as people write them, by the thousand, of GeoNames' own places and names: found and right, or asked back?

`write_gazetteer.py` writes the file of places; with a larger count it has more of them.
"""

import gzip
import json
import random
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mcp_batteries.errors import Invalid, NotFound
from mcp_weather.policy.policy import Policy
from proofs.tally import Tally

MATERIAL = Path(__file__).parent / "material"
# By language: N is the name, M another form of it that GeoNames has, R the region, C the country.
PATTERNS = {
    "zh": ["N", "M", "RN", "CRN", "CN", "N天气", "N的天气", "明天N天气", "N天气预报", "N今天天气怎么样",
        "R、N", "R，N", "N，C", "N（R）", "【R】N", "R M", "N, C"],
    "ja": ["N", "M", "RN", "R N", "N、R", "N（R）", "Nの天気", "明日のNの天気", "Nの天気予報", "C N",
        "C、R、N", "N（C）"],
    "ko": ["N", "M", "R N", "N, R", "N (R)", "N 날씨", "C R N", "N 오늘 날씨", "내일 N 날씨", "RN", "C N"],
    "ar": ["N", "N، C", "C، N", "طقس N", "الطقس في N", "مدينة N", "N (C)", "حالة الطقس في N", "N - C"],
    "fa": ["N", "N، C", "آب و هوای N", "شهر N", "N (C)", "هوای N", "C، N"],
    "ru": ["N", "N, C", "C, N", "Погода N", "Погода в городе N", "город N", "г. N", "N (C)", "N погода",
        "N, R", "R, N", "N — C"],
    "uk": ["N", "N, C", "C, N", "місто N", "м. N", "N (C)", "погода N", "N, R", "R, N"],
    "el": ["N", "N, C", "C, N", "N (C)", "Δήμος N", "καιρός N", "ο καιρός στην N", "N, R"],
    "hi": ["N", "N, C", "C, N", "N (C)", "N का मौसम", "N मौसम", "N, R", "N शहर"],
    "th": ["N", "N C", "N, C", "N (C)", "อากาศ N", "สภาพอากาศ N", "สภาพอากาศN", "จังหวัดN", "เมืองN"],
    "de": ["N", "N, C", "C, N", "Wetter in N", "Wetter N", "Stadt N", "N - C", "N (C)", "N; C",
        "Wetter morgen in N", "N/C"],
    "fr": ["N", "N, C", "météo à N", "météo N", "ville de N", "C - N", "N (C)", "quel temps fait-il à N"],
    "es": ["N", "N, C", "el tiempo en N", "clima N", "ciudad de N", "C, N", "N (C)", "clima en N, C"],
    "pt": ["N", "N, C", "tempo em N", "previsão do tempo N", "cidade de N", "C, N", "N (C)", "N - C"],
    "it": ["N", "N, C", "meteo N", "che tempo fa a N", "città di N", "C, N", "N (C)", "meteo a N"],
    "pl": ["N", "N, C", "pogoda N", "miasto N", "C, N", "N (C)", "pogoda w N", "N - C"],
    "tr": ["N", "N, C", "N hava durumu", "C, N", "N şehri", "N (C)", "N hava", "N'da hava"],
    "vi": ["N", "N, C", "thời tiết N", "Thành phố N", "C, N", "N (C)", "thời tiết ở N", "TP N"],
    "en": ["N", "N, C", "N (C)", "weather in N, C", "C, N", "N, R, C", "C N", "N weather", "N, R",
        "city of N", "weather N", "N/C"],
}  # fmt: skip
# A place that fewer people live in has to be named with its country.
MIN_FAMOUS = 300_000
MAX_RESULTS = 20
SAME_DEGREES = 0.5


class Spelling(NamedTuple):
    """What is written, in which language and by which pattern, and the place that is meant."""

    text: str
    language: str
    pattern: str
    place: dict[str, Any]


class Gazetteer:
    """Answers as Open-Meteo's geocoder does: by the first name of a place, and by one name for each language.

    (open-meteo/geocoding-api: names of two letters are found whole, longer ones by their beginning.)
    """

    def __init__(self, path: Path) -> None:
        document = json.loads(gzip.decompress(path.read_bytes()))
        self.countries: dict[str, dict[str, str]] = document["countries"]
        self.places: list[dict[str, Any]] = document["places"]
        for identifier, name, region, country, latitude, longitude, people in document["others"]:
            self.places.append(
                {
                    "id": identifier, "name": name, "region": region, "country": country, "names": {}, "regions": {},
                    "point": [latitude, longitude], "people": people, "zone": "UTC",
                }
            )  # fmt: skip
        self.preferred: dict[tuple[int, str], str] = {}
        for number, place in enumerate(self.places):
            for language, names in place["names"].items():
                self.preferred[number, language] = prefer(names, place["id"])
        self.indexes: dict[str, list[tuple[str, int]]] = {}
        self.queries = 0

    def index(self, language: str) -> list[tuple[str, int]]:
        if language not in self.indexes:
            names = [(plain(place["name"]), number) for number, place in enumerate(self.places)]
            names += [(plain(name), number) for (number, known), name in self.preferred.items() if known == language]
            self.indexes[language] = sorted(set(names))
        return self.indexes[language]

    def find(self, text: str, language: str) -> list[dict[str, Any]]:
        """What the geocoder answers in a language."""
        wanted = plain(text.partition(",")[0].strip())
        if len(wanted) < 2:
            return []
        index = self.index(language)
        ranks: dict[int, float] = {}
        at = bisect_left(index, (wanted, -1))
        while at < len(index) and index[at][0].startswith(wanted):
            name, number = index[at]
            if name == wanted or len(wanted) > 2:
                rank = 1.5 / (1 + len(name) - len(wanted)) + min(1.0, self.places[number]["people"] / 200_000)
                ranks[number] = max(rank, ranks.get(number, 0))
            at += 1
        best = sorted(ranks, key=lambda number: (-ranks[number], number))[:MAX_RESULTS]
        return [self.result(number, language) for number in best]

    def result(self, number: int, language: str) -> dict[str, Any]:
        place = self.places[number]
        regions = place["regions"].get(language)
        return {
            "id": place["id"], "name": self.preferred.get((number, language), place["name"]),
            "admin1": prefer(regions, place["id"]) if regions else place["region"],
            "country": self.countries.get(language, self.countries["en"]).get(place["country"], place["country"]),
            "country_code": place["country"], "latitude": place["point"][0], "longitude": place["point"][1],
            "population": place["people"], "timezone": place["zone"],
        }  # fmt: skip

    async def geocode(self, name: str, languages: Sequence[str | None]) -> list[list[dict[str, Any]]]:
        """The gazetteer as the policy asks it."""
        answers = [self.find(name, language) for language in dict.fromkeys(item or "en" for item in languages)]
        self.queries += len(answers)
        return answers


def prefer(names: Sequence[str], seed: int) -> str:
    """The name of a language that the geocoder knows: of those that are alike, any."""
    alike = same_base(names)
    return random.Random(seed).choice(alike)


def same_base(names: Sequence[str]) -> list[str]:
    """The forms of the name that most of `names` are forms of: 上海 and 上海市."""
    groups: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        base = next((other for other in names if other != name and len(other) > 1 and name.startswith(other)), name)
        groups.setdefault(base, []).append(name)
    return max(groups.values(), key=len)


def plain(name: str) -> str:
    decomposed = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


class Trial:
    """Spellings of one gazetteer, drawn by a seed."""

    def __init__(self, gazetteer: Gazetteer, seed: int) -> None:
        self.gazetteer, self.random = gazetteer, random.Random(seed)
        self.policy = Policy(dict, gazetteer.geocode)
        self.counts: Counter[tuple[str, str]] = Counter()
        self.missed: list[str] = []
        self.asked: list[str] = []
        self.wrong: list[str] = []

    async def run(self, count: int) -> None:
        """Try so many spellings, as many in each language."""
        languages = list(PATTERNS)
        named = {
            language: [number for number, known in self.gazetteer.preferred if known == language]
            for language in languages
        }
        for turn in range(count):
            language = languages[turn % len(languages)]
            spelling = self.write(language, self.random.choice(named[language]))
            await self.once(spelling)

    def write(self, language: str, number: int) -> Spelling:
        place = self.gazetteer.places[number]
        name = self.gazetteer.preferred[number, language]
        other = self.random.choice(same_base(place["names"][language]))
        country = self.gazetteer.countries[language].get(place["country"], place["country"])
        regions = place["regions"].get(language) or ([place["region"]] if language in ("en", "de", "fr") else [])
        region = self.random.choice(same_base(regions)) if regions else ""
        patterns = PATTERNS[language]
        if not region or plain(region) in plain(name) or plain(name) in plain(region):
            patterns = [pattern for pattern in patterns if "R" not in pattern]
        if country in (name, other) or plain(country) in plain(name):
            patterns = [pattern for pattern in patterns if "C" not in pattern]
        if place["people"] < MIN_FAMOUS:
            patterns = [pattern for pattern in patterns if "C" in pattern or "R" in pattern] or ["N"]
        pattern = self.random.choice(patterns)
        slots = {"N": name, "M": other, "R": region, "C": country}
        if pattern == "TP N":
            slots.pop("C")
        text = "".join(slots.get(letter, letter) for letter in pattern)
        return Spelling(text, language, pattern, place)

    async def once(self, spelling: Spelling) -> None:
        place = spelling.place
        told = f"{spelling.language}: {spelling.text!r} ({place['name']}, {place['country']})"
        try:
            found = await self.policy.resolve_place(spelling.text)
        except Invalid as problem:
            self.counts[spelling.language, "asked"] += 1
            self.asked.append(f"{told} {str(problem)[:160]}")
            return
        except NotFound as problem:
            self.counts[spelling.language, "missed"] += 1
            self.missed.append(f"{told} {str(problem)[:120]}")
            return
        # GeoNames has a county and its town, and a town twice, each with a point of its own.
        if max(abs(found.latitude - place["point"][0]), abs(found.longitude - place["point"][1])) < SAME_DEGREES:
            self.counts[spelling.language, "right"] += 1
        else:
            self.counts[spelling.language, "wrong"] += 1
            self.wrong.append(f"{told} is {found.name} {found.resolved[:100]}")

    def total(self, kind: str) -> int:
        return sum(count for (_, said), count in self.counts.items() if said == kind)


async def prove(count: int, seed: int) -> Tally:
    """Look up so many spellings, as many in each language."""
    trial = Trial(Gazetteer(MATERIAL / "gazetteer.json.gz"), seed)
    await trial.run(count)
    counts = {kind: trial.total(kind) for kind in ("right", "asked", "missed")}
    tally = Tally.of({**counts, "queries": trial.gazetteer.queries}, trial.wrong)
    tally.odd = trial.missed
    return tally
