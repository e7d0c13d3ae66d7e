"""The geocoder's results for a name: which place each result is, in all languages that it was returned in."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_weather.geography.chinese_variants import simplify_chinese
from mcp_weather.geography.countries import fold_name, is_within
from mcp_weather.geography.place_kinds import drop_kind
from mcp_weather.geography.postal_codes import may_be_postal_code

__all__ = [
    "Candidate", "Result", "distinct_names", "full_name", "has_coordinates", "list_names", "merge_candidates",
    "population", "select_within",
]  # fmt: skip

_MAX_LISTED = 8
# A place with so many people has more postal codes than the geocoder knows, and may have districts with numbers.
_CITY_POPULATION = 50_000

# One place in one language, as the geocoder returns it.
Result = Mapping[str, Any]


@dataclass(frozen=True)
class Candidate:
    """One place that a name may mean.

    Attributes:
        results: the geocoder's results for it, one for each language that it was asked in.
    """

    results: tuple[Result, ...]

    @property
    def result(self) -> Result:
        """The result that stands for all."""
        return self.results[0]

    @property
    def country(self) -> str:
        """Its ISO 3166-1 code in capitals; empty if it is unknown."""
        return str(self.result.get("country_code") or "").upper()

    @property
    def is_city(self) -> bool:
        """Whether many people live there."""
        return population(self.result) >= _CITY_POPULATION

    def may_have_postal_code(self, code: str) -> bool:
        """Return False where it is certain that a code which the geocoder does not know of it is none of its own."""
        if not may_be_postal_code(self.country, code):
            return False
        return self.is_city or not self.result.get("postcodes")

    def is_called(self, name: str) -> bool:
        """Return whether `name` is its name in one of the languages, with the word for its kind or without."""
        folded = simplify_chinese(fold_name(name))
        names = {simplify_chinese(fold_name(str(result.get("name", "")))) for result in self.results}
        return folded in names or drop_kind(folded) in {drop_kind(item) for item in names}

    def is_spelled(self, name: str) -> bool:
        """Return whether `name` is its name in one of the languages with all accents, with its kind or without."""
        spellings = {_normalize(str(result.get("name", ""))) for result in self.results}
        written = _normalize(name)
        return written in spellings or drop_kind(written) in {drop_kind(item) for item in spellings}

    def is_within(self, region: str) -> bool:
        """Return whether it lies in `region`, by its name in one of the languages."""
        return any(is_within(result, region) for result in self.results)

    def is_within_all(self, regions: Sequence[str]) -> bool:
        """Return whether it lies in all of `regions`."""
        return all(self.is_within(region) for region in regions)


def _normalize(name: str) -> str:
    return simplify_chinese(unicodedata.normalize("NFC", name).casefold())


def has_coordinates(result: Result) -> bool:
    """Return whether `result` is a point on the globe; an answer may contain other things."""
    latitude = result.get("latitude")
    longitude = result.get("longitude")
    if not isinstance(latitude, int | float) or not isinstance(longitude, int | float):
        return False
    return abs(latitude) <= 90 and abs(longitude) <= 180


def population(result: Result) -> int:
    """Return the population of a place; 0 if it is unknown."""
    count = result.get("population")
    if isinstance(count, int):
        return int(count)
    if isinstance(count, float) and math.isfinite(count):
        return int(count)
    return 0


def full_name(result: Result) -> str:
    """Return the name, region and country of a place."""
    names = [result.get("name"), result.get("admin1"), result.get("country") or result.get("country_code")]
    return ", ".join(dict.fromkeys(str(name) for name in names if name))


def distinct_names(results: Sequence[Result]) -> list[str]:
    """Return the full names of places, of those with the same also the district and the municipality."""
    names = [full_name(result) for result in results]
    return [
        _longest_name(result) if names.count(name) > 1 else name for result, name in zip(results, names, strict=True)
    ]


def _longest_name(result: Result) -> str:
    names = [result.get(key) for key in ("name", "admin4", "admin3", "admin2", "admin1", "country")]
    return ", ".join(dict.fromkeys(str(name) for name in names if name))


def list_names(results: Sequence[Result]) -> str:
    """Return the first of `results` in words that work as `place`."""
    names = distinct_names(results)
    words: list[str] = []
    for result, name in zip(results[:_MAX_LISTED], names, strict=False):
        if name == full_name(result) and names.count(name) == 1:
            words.append(f"`{name}`")
        else:
            # Only coordinates surely tell two places with the same name, state and country apart.
            words.append(f"`{result['latitude']:.2f},{result['longitude']:.2f}` ({name})")
    text = "; ".join(words)
    if len(results) > _MAX_LISTED:
        text += f" and {len(results) - _MAX_LISTED} more"
    return text


def merge_candidates(candidates: Sequence[Candidate], answers: Sequence[Sequence[Result]]) -> list[Candidate]:
    """Return `candidates` and the geocoder's answers in several languages, each place once."""
    results_of: dict[Any, list[Result]] = {_identity(item.result): list(item.results) for item in candidates}
    for results in answers:
        for result in results:
            results_of.setdefault(_identity(result), []).append(result)
    return [Candidate(tuple(results)) for results in results_of.values()]


def _identity(result: Result) -> Any:
    """Return what is the same for a place in all languages."""
    identifier = result.get("id")
    if isinstance(identifier, int):
        return identifier
    return result["latitude"], result["longitude"]


def select_within(candidates: Sequence[Candidate], regions: Sequence[str]) -> list[Candidate]:
    """Return those of `candidates` that lie in all of `regions`."""
    return [candidate for candidate in candidates if candidate.is_within_all(regions)]
