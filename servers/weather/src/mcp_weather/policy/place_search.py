"""Resolves the name of a place: asks the geocoder in the languages it may be in, and chooses one of the candidates."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from mcp_batteries.errors import Invalid, NotFound, Unavailable, quote
from mcp_weather.geography.chinese_variants import list_chinese_variants
from mcp_weather.geography.countries import (
    COMMON_LANGUAGES,
    find_countries,
    fold_name,
    guess_languages,
    official_languages,
)
from mcp_weather.geography.geocoder_results import (
    Candidate,
    Result,
    distinct_names,
    full_name,
    list_names,
    merge_candidates,
    population,
    select_within,
)
from mcp_weather.geography.time_zones import find_zone
from mcp_weather.policy.airport import looks_like_airport_code
from mcp_weather.policy.place import Place, point_at
from mcp_weather.policy.place_readings import larger_parts, modern_name, other_readings
from mcp_weather.policy.place_text import (
    PlaceName,
    is_code,
    is_district_number,
    is_postal_code,
    read_with_brackets,
    shorten,
)

__all__ = ["GEOCODED", "FoundPlace", "Geocoder", "find_places", "place_from_result", "resolve_name"]

# Returns the results for a name in each of some languages of two letters; None is the server's own language.
Geocoder = Callable[[str, Sequence[str | None]], Awaitable[Sequence[Sequence[Result]]]]

# How a place is resolved that was one of many results.
GEOCODED = "found"

# Of several places with one name, the one that is meant has at least so many times as many people as any other.
_DOMINANT_RATIO = 20
# A place with so many people is meant by its name alone, whatever else has the same name in other languages.
_FAMOUS_POPULATION = 50_000
# The geocoder writes -9999 or 9999 for an elevation that it does not know: no place lies lower or higher than these.
_MIN_ELEVATION_M = -500
_MAX_ELEVATION_M = 8900
_MAX_LISTED_OTHERS = 3
_CHOOSE_ONE = "Call again with one of these as `place`."


class FoundPlace(NamedTuple):
    """A place and how many people live there, if that is known."""

    place: Place
    population: int | None


async def resolve_name(place_name: PlaceName, geocoder: Geocoder) -> Place:
    """Return the place that the name means.

    Raises:
        Invalid: several places have the name.
        NotFound: no place has it.
        Unavailable: names can't be looked up.
    """
    try:
        place, candidates = await _resolve_by_readings(place_name, geocoder)
    except Unavailable as problem:
        fix = "Pass coordinates such as `47.37,8.55` until then."
        if problem.retry_after:
            # Forecasts have the same limit, so coordinates would not help.
            fix = problem.fix
        raise Unavailable(
            f"Names can't be looked up now: {problem.failure}", fix, retry_after=problem.retry_after
        ) from problem
    place = place or _choose(place_name, candidates)
    if place is not None:
        return place
    others = ""
    if candidates:
        others = f" Of that name there are: {list_names([candidate.result for candidate in candidates])}."
    fix = "Check the spelling, or pass coordinates such as `47.37,8.55`; `find_place` searches."
    if looks_like_airport_code(place_name.text):
        fix += " For an airport, `get_metar` tells the coordinates of a code of four letters, as `KJFK`."
    raise NotFound(f"No place is called {quote(place_name.text)}.{others}", fix)


async def _resolve_by_readings(place_name: PlaceName, geocoder: Geocoder) -> tuple[Place | None, list[Candidate]]:
    """Return the place of the first reading of the name that means one, and what has the name itself."""
    place = await _choose_first(_list_first_readings(place_name), geocoder)
    if place is not None:
        return place, []
    candidates = await _find_candidates(place_name, geocoder)
    if place_name.regions or _has_famous(candidates, place_name.name):
        place = _choose_exact(place_name, candidates)
        if place is not None:
            return place, candidates
    shorter = (*shorten(place_name), *_list_other_readings(place_name, candidates))
    place = await _choose_first(shorter, geocoder, needs_fame=_is_bare)
    if place is None:
        place = await _choose_first(larger_parts(place_name), geocoder, needs_fame=lambda reading: True)
    if place is not None:
        return place, candidates
    return await _resolve_in_common_languages(place_name, candidates, geocoder)


async def _choose_first(
    readings: Iterable[PlaceName],
    geocoder: Geocoder,
    needs_fame: Callable[[PlaceName], bool] = lambda reading: False,
) -> Place | None:
    """Return the place of the first reading that means one; where a reading needs fame, a place that many know."""
    for reading in readings:
        candidates = await _find_candidates(reading, geocoder)
        if needs_fame(reading) and not _has_famous(candidates, reading.name):
            continue
        # A postal code is nobody's name.
        choose = _choose if is_postal_code(reading.name) else _choose_exact
        place = choose(reading, candidates)
        if place is not None:
            return place
    return None


async def _resolve_in_common_languages(
    place_name: PlaceName, candidates: list[Candidate], geocoder: Geocoder
) -> tuple[Place | None, list[Candidate]]:
    """Look the name up in other languages too; return the place that it means there, and what has the name itself.

    The geocoder knows a name in its own language only: in English, Warszawa is a part of a town in Ohio.
    """
    if not place_name.regions:
        candidates = merge_candidates(candidates, await geocoder(place_name.name, COMMON_LANGUAGES))
    if _select_called(place_name.name, select_within(candidates, place_name.regions)):
        return None, candidates
    for reading in filter(_is_bare, (*_list_first_readings(place_name), *other_readings(place_name))):
        reading_candidates = await _find_candidates(reading, geocoder)
        results = await geocoder(reading.name, COMMON_LANGUAGES)
        place = _choose_exact(reading, merge_candidates(reading_candidates, results))
        if place is not None:
            return place, candidates
    return None, candidates


async def find_places(place_name: Place | PlaceName, language: str, geocoder: Geocoder) -> list[FoundPlace]:
    """Return all places that the name may mean; one that is known already is the only one."""
    if isinstance(place_name, Place):
        return [FoundPlace(place_name, None)]
    candidates: list[Candidate] = []
    readings = [*_list_first_readings(place_name), place_name, *shorten(place_name), *other_readings(place_name)]
    for reading in readings:
        languages = (language, *guess_languages(reading.name))
        reading_candidates = await _look_up(reading.name, languages, geocoder)
        if not candidates:
            candidates = reading_candidates
        # If nobody knows a region by its name, all places count.
        matching = select_within(reading_candidates, reading.regions)
        if matching:
            candidates = matching
            break
    if not candidates:
        candidates = merge_candidates([], await geocoder(place_name.name, COMMON_LANGUAGES))
    results = [candidate.result for candidate in candidates]
    places: list[FoundPlace] = []
    for result, name in zip(results, distinct_names(results), strict=True):
        place = replace(place_from_result(result, GEOCODED), name=name)
        places.append(FoundPlace(place, population(result) or None))
    return places


def place_from_result(result: Result, resolved: str) -> Place:
    """Return the place of a geocoder's result."""
    timezone = str(result.get("timezone"))
    if find_zone(timezone) is None:
        timezone = None
    country = str(result.get("country_code") or "").upper() or None
    elevation = result.get("elevation")
    elevation_m = None
    if isinstance(elevation, int | float) and _MIN_ELEVATION_M < elevation < _MAX_ELEVATION_M:
        elevation_m = float(elevation)
    return point_at(
        float(result["latitude"]),
        float(result["longitude"]),
        name=full_name(result),
        timezone=timezone,
        country=country,
        elevation=elevation_m,
        resolved=resolved,
    )


async def _find_candidates(place_name: PlaceName, geocoder: Geocoder) -> list[Candidate]:
    """Return the places with the name, looked up in the languages that it may be in."""
    languages = (None, *guess_languages(place_name.name))
    candidates = await _look_up(place_name.name, languages, geocoder)
    if _is_found(place_name, candidates):
        return candidates
    spoken = _regional_languages(place_name, candidates)
    if spoken:
        candidates = merge_candidates(candidates, await geocoder(place_name.name, spoken))
    if _is_foreign(place_name, candidates) and not set(COMMON_LANGUAGES) <= set(spoken):
        candidates = merge_candidates(candidates, await geocoder(place_name.name, COMMON_LANGUAGES))
    return candidates


def _is_foreign(place_name: PlaceName, candidates: Sequence[Candidate]) -> bool:
    """Return whether the name may be neither in English nor in its country's language: `Lissabon, Portugal`."""
    called = _select_called(place_name.name, candidates)
    if not called:
        return bool(place_name.regions)
    countries = [region for region in place_name.regions if find_countries(fold_name(region))]
    return not all(_is_known_region(country, called) for country in countries)


async def _look_up(name: str, languages: Sequence[str | None], geocoder: Geocoder) -> list[Candidate]:
    """Return the places that begin with `name` in some languages, in both ways to write Chinese."""
    candidates = merge_candidates([], await geocoder(name, languages))
    if "zh" in languages:
        for variant in list_chinese_variants(name):
            candidates = merge_candidates(candidates, await geocoder(variant, ("zh",)))
    return candidates


def _is_found(place_name: PlaceName, candidates: Sequence[Candidate]) -> bool:
    """Return whether one of `candidates` may be the place: the geocoder also returns names that only begin like it."""
    if not place_name.regions:
        return bool(candidates)
    called = _select_called(place_name.name, candidates)
    regions = [region for region in place_name.regions if not is_code(region)]
    return bool(called) and all(_is_known_region(region, called) for region in regions)


def _regional_languages(place_name: PlaceName, candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """Return the languages that are spoken where the place may be: its regions, and it, may be named in them."""
    countries: list[str] = []
    for region in place_name.regions:
        countries += find_countries(fold_name(region))
    by_population = sorted(candidates, key=lambda candidate: -population(candidate.result))
    countries += [candidate.country for candidate in by_population if candidate.country][:2]
    languages = official_languages(countries)
    if not languages and place_name.regions and not candidates:
        return COMMON_LANGUAGES
    return languages


def _is_known_region(region: str, candidates: Sequence[Candidate]) -> bool:
    """Return whether any of the candidates lies in `region`."""
    return any(candidate.is_within(region) for candidate in candidates)


def _list_first_readings(place_name: PlaceName) -> list[PlaceName]:
    """Return the readings that are likelier than the plain one: by the name of today, and with brackets in the name."""
    readings: list[PlaceName] = []
    with_brackets = read_with_brackets(place_name)
    if with_brackets is not None:
        readings.append(with_brackets)
    modern = modern_name(place_name)
    if modern is not None and not place_name.regions:
        readings.append(modern)
    return readings


def _is_bare(place_name: PlaceName) -> bool:
    """Return whether it is a name alone, in letters that many languages share: its language is not known."""
    return not place_name.regions and not guess_languages(place_name.name)


def _list_other_readings(place_name: PlaceName, candidates: Sequence[Candidate]) -> list[PlaceName]:
    """Return the other ways to read a name; none if a place is called just that."""
    if not place_name.regions and _select_called(place_name.name, candidates):
        return []
    return other_readings(place_name)


def _select_called(name: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    return [candidate for candidate in candidates if candidate.is_called(name)]


def _has_famous(candidates: Sequence[Candidate], name: str) -> bool:
    """Return whether one of the candidates is so large that its name alone means it.

    Accents may be left out, but who writes `Amã` does not mean Ama in Japan: that is Amman in Portuguese.
    """
    called = _select_called(name, candidates)
    if not name.isascii():
        called = [item for item in called if item.is_spelled(name)]
    return any(population(item.result) >= _FAMOUS_POPULATION for item in called)


def _choose_exact(place_name: PlaceName, candidates: Sequence[Candidate]) -> Place | None:
    """Return the one of `candidates` that has exactly the name; None if none has.

    Raises:
        Invalid: several have it.
    """
    selection = _select(place_name, candidates)
    exact = _select_called(place_name.name, selection.candidates)
    if not exact:
        return None
    return _choose_selected(place_name, exact, selection.ignored)


def _choose(place_name: PlaceName, candidates: Sequence[Candidate]) -> Place | None:
    """Return the one of `candidates` that the name means; None if none does.

    Raises:
        Invalid: several do.
    """
    selection = _select(place_name, candidates)
    chosen = _select_called(place_name.name, selection.candidates) or selection.candidates
    if not chosen:
        return None
    return _choose_selected(place_name, chosen, selection.ignored)


def _choose_selected(place_name: PlaceName, candidates: Sequence[Candidate], ignored: Sequence[str]) -> Place:
    """Return the one of `candidates`, which are not none, that the name means.

    Args:
        ignored: the regions of the name in which no candidate lies. They may be what tells the candidates apart, so
            they are left out only where a single candidate is possible.

    Raises:
        Invalid: several are possible; the error names them in words that work as `place`.
    """
    if not ignored:
        return _choose_largest(place_name, candidates, place_name.note)
    possible = _select_possible(candidates, ignored)
    regions = ", ".join(quote(region) for region in ignored)
    if len(possible) > 1:
        results = [candidate.result for candidate in possible]
        raise Invalid(
            f"{quote(place_name.text)} is ambiguous, and {regions} is not known: {list_names(results)}.", _CHOOSE_ONE
        )
    return _choose_largest(place_name, possible, f"{place_name.note}{regions} is not known there and was ignored; ")


def _select_possible(candidates: Sequence[Candidate], regions: Sequence[str]) -> Sequence[Candidate]:
    """Return those of `candidates` that may lie in `regions`, which are known of none of them; all if none may."""
    possible = candidates
    for code in filter(is_code, regions):
        if is_district_number(code):
            likely = [candidate for candidate in possible if candidate.is_city]
        else:
            likely = [candidate for candidate in possible if candidate.may_have_postal_code(code)]
        possible = likely or possible
    return possible


def _choose_largest(place_name: PlaceName, candidates: Sequence[Candidate], note: str) -> Place:
    """Return the largest of `candidates`, which are not none.

    Raises:
        Invalid: others are nearly as large; the error names them in words that work as `place`.
    """
    results = [candidate.result for candidate in candidates]
    largest = max(results, key=population)
    others = [result for result in results if result is not largest]
    if not others:
        return place_from_result(largest, f"{note}name, the only match for {place_name.text}")
    is_dominant = population(largest) >= _DOMINANT_RATIO * max(1, *map(population, others))
    if not is_dominant or _spans_countries(place_name, candidates):
        raise Invalid(f"{quote(place_name.text)} is ambiguous: {list_names(results)}.", _CHOOSE_ONE)
    other_names = list_names(others[:_MAX_LISTED_OTHERS])
    return place_from_result(largest, f"{note}name, by far the largest of {len(results)} listed; others: {other_names}")


def _spans_countries(place_name: PlaceName, candidates: Sequence[Candidate]) -> bool:
    """Return whether the region or postal code that was to decide is one of several countries, as `IN` and 2452 are.

    Then a large city is meant no more than a village.
    """
    if not place_name.regions and not is_postal_code(place_name.name):
        return False
    return len({candidate.country for candidate in candidates}) > 1


class _Selection(NamedTuple):
    """The candidates that lie in the regions of a name, and the regions in which none of them lies."""

    candidates: Sequence[Candidate]
    ignored: Sequence[str] = ()


def _select(place_name: PlaceName, candidates: Sequence[Candidate]) -> _Selection:
    """Select the candidates in all regions; if there are none, ignore the regions that no candidate lies in.

    One region too many is not an obstacle if the others say which place it is. Nor is a postal code: the geocoder knows
    few of each city.
    """
    matching = select_within(candidates, place_name.regions)
    if matching:
        return _Selection(matching)
    used: list[str] = []
    ignored: list[str] = []
    for region in place_name.regions:
        if _is_known_region(region, candidates):
            used.append(region)
        else:
            ignored.append(region)
    if not used and not all(map(is_code, ignored)):
        return _Selection(matching)
    return _Selection(select_within(candidates, used), ignored)
