"""The only place that refuses: decides what is a place, a day, a span, and makes the engine's types."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from mcp_batteries.errors import Invalid, NotFound, Unavailable, quote
from mcp_batteries.limits import Cursor
from mcp_weather.geography.coordinates import Twofold, degrees
from mcp_weather.geography.countries import COMMON, countries, fold, languages_of, spoken_in, zone_named
from mcp_weather.geography.geocoder_results import Hit, fitting, full_name, listed, merged, population
from mcp_weather.policy.days import Day, Days, forecast_day, past_days, sky_day
from mcp_weather.policy.place import DIRECTIONS, Place, place_uri, point_at
from mcp_weather.policy.units import OwnUnits, System, Units, units

__all__ = [
    "DIRECTIONS",
    "FOUND",
    "KINDS",
    "After",
    "Day",
    "Days",
    "LookUp",
    "Name",
    "OwnUnits",
    "Place",
    "Policy",
    "Station",
    "Subject",
    "System",
    "Units",
    "place_scope",
    "point_at",
]

LookUp = Callable[[str, Sequence[str | None]], Awaitable[Sequence[Sequence[Mapping[str, Any]]]]]
"""The geocoder: what it has for a name in each of some languages of two letters; None is the server's own."""

KINDS = ("now", "hourly", "daily", "alerts", "air")
"""What there is of each place as a resource."""

FOUND = "found"
"""How a place is resolved that was one of many hits."""

_POSTAL_CODE = re.compile(r"\d[\d -]{1,10}\d")
_URI = re.compile(r"weather://([^/?#]+)/([a-z]+)")
_DOMINANT = 20
"""How many times as many people must live in the one meant, for a name that several places have."""
_KNOWN = 50_000
"""People in a place that is meant by its name alone, whatever else has the same name in other languages."""


@dataclass(frozen=True)
class Name:
    """A name to look up, and what narrows it down."""

    name: str
    within: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class After:
    """The position of the last alert that was shown; empty before the first page."""

    position: tuple[Any, ...]


@dataclass(frozen=True)
class Station:
    """The ICAO code of an airport."""

    code: str


@dataclass(frozen=True)
class Subject:
    """What a `weather://` URI shows."""

    uri: str
    place: str
    kind: str


class Policy:
    """Decides what callers may ask.

    Args:
        saved: the saved places by alias, in lower case; called each time, because they may be edited.
        look_up: the geocoder's hits for a name.
    """

    units = staticmethod(units)
    forecast_day = staticmethod(forecast_day)
    sky_day = staticmethod(sky_day)
    past_days = staticmethod(past_days)

    def __init__(self, saved: Callable[[], Mapping[str, Place]], look_up: LookUp) -> None:
        self._saved, self._look_up = saved, look_up

    def saved(self) -> Mapping[str, Place]:
        return self._saved()

    async def place(self, text: str) -> Place:
        """The place that `text` means, looked up if it is a name.

        Raises:
            Invalid: it is not the name of a place, or that of several.
            NotFound: no place has this name.
        """
        named = self.parse(text)
        if isinstance(named, Place):
            return named
        try:
            hits = await self._found(named)
            known = any(population(hit.first) >= _KNOWN for hit in hits if hit.is_called(named.name))
            if (known or named.within) and (place := self._choose(named, hits, exactly=True)):
                return place
            for reading in _shorter(named):
                if place := self._choose(reading, await self._found(reading), exactly=True):
                    return place
            if not named.within:
                # The geocoder knows a name in its own language only: in English, Warszawa is a part of a town in Ohio.
                hits = merged(hits, await self._look_up(named.name, COMMON))
        except Unavailable as problem:
            raise Unavailable(
                f"Names can't be looked up now: {problem.what}",
                # A limit that is used up is that of forecasts too.
                problem.fix if problem.retry_after else "Pass coordinates such as `47.37,8.55` until then.",
                retry_after=problem.retry_after,
            ) from problem
        if place := self._choose(named, hits, exactly=False):
            return place
        others = f" Of that name there are: {listed([hit.first for hit in hits])}." if hits else ""
        raise NotFound(
            f"No place is called {quote(named.text)}.{others}",
            "Check the spelling, or pass coordinates such as `47.37,8.55`; `find_place` searches.",
        )

    async def places(self, text: str, language: str) -> list[tuple[Place, int | None]]:
        """All places that `text` may mean, and how many people live there.

        Raises:
            Invalid: it can't be the name of a place.
        """
        named = self.parse(text)
        if isinstance(named, Place):
            return [(named, None)]
        hits: list[Hit] = []
        for reading in (named, *_shorter(named)):
            told = await self._look_up(reading.name, (language, *languages_of(reading.name)))
            hits = hits or merged([], told)
            # Of a region that nobody knows by that name, all are told.
            if within := fitting(reading.within, merged([], told)):
                hits = within
                break
        if not hits:
            hits = merged(hits, await self._look_up(named.name, COMMON))
        return [(self.of(hit.first, FOUND), population(hit.first) or None) for hit in hits]

    def parse(self, text: str) -> Place | Name:
        """What `text` names: a saved alias, coordinates, or a name to look up.

        Raises:
            Invalid: it is none of them, or not a point on the globe.
        """
        wanted = " ".join(text.split())
        if resource := _URI.fullmatch(wanted):
            wanted = unquote(resource[1])
        if alias := self.saved().get(wanted.casefold()):
            return alias
        try:
            point = degrees(wanted)
        except Twofold:
            raise Invalid(
                f"{quote(text)} has both a sign and a direction.", "Use one of them: `-33.9,18.4` or `33.9S,18.4E`."
            ) from None
        if point is not None:
            return point_at(*point, resolved="coordinates")
        if "°" in wanted:
            raise Invalid(f"{quote(text)} can't be read as coordinates.", "Write them as `47.37,8.55`.")
        if _POSTAL_CODE.fullmatch(wanted):
            return Name(wanted, (), wanted)
        if len(wanted) < 2 or not any(letter.isalpha() for letter in wanted):
            raise Invalid(
                f"{quote(text)} is not a place.",
                "Pass a name such as `Zurich`, coordinates such as `47.37,8.55`, or a saved alias.",
            )
        name, *within = (part.strip() for part in wanted.split(","))
        if len(name) < 2:
            raise Invalid(f"{quote(text)} is not a place.", "Pass the name first, as in `Springfield, Illinois`.")
        return Name(name, tuple(part for part in within if part), wanted)

    async def _found(self, wanted: Name) -> list[Hit]:
        """The geocoder's hits for `wanted`, in the languages that it may be in; each place once."""
        hits = merged([], await self._look_up(wanted.name, (None, *languages_of(wanted.name))))
        if all(any(hit.lies_in(part) for hit in hits) for part in wanted.within) and hits:
            return hits
        # A region may be named in the language that is spoken there, and so may the place.
        named = [code for part in wanted.within for code in countries(fold(part))]
        there = [hit.country for hit in sorted(hits, key=lambda hit: -population(hit.first)) if hit.country][:2]
        spoken = spoken_in([*named, *there]) or (COMMON if wanted.within and not hits else ())
        return merged(hits, await self._look_up(wanted.name, spoken)) if spoken else hits

    def _choose(self, wanted: Name, hits: Sequence[Hit], *, exactly: bool) -> Place | None:
        """The one of `hits` that `wanted` means; None if none does.

        Args:
            exactly: only those with exactly that name.

        Raises:
            Invalid: several do; the error names them in words that work as `place`.
        """
        candidates, note = fitting(wanted.within, hits), ""
        if not candidates and len(wanted.within) > 1:
            # One part too many is not an obstacle if the others say which place it is.
            known = tuple(part for part in wanted.within if any(hit.lies_in(part) for hit in hits))
            if known:
                candidates = fitting(known, hits)
                ignored = ", ".join(quote(part) for part in wanted.within if part not in known)
                note = f"{ignored} is not known there and was ignored; "
        exact = [hit for hit in candidates if hit.is_called(wanted.name)]
        if exactly and not exact:
            return None
        candidates = [hit.first for hit in exact or candidates]
        if not candidates:
            return None
        best = max(candidates, key=population)
        rest = [hit for hit in candidates if hit is not best]
        if rest and population(best) < _DOMINANT * max(1, *map(population, rest)):
            raise Invalid(
                f"{quote(wanted.text)} is ambiguous: {listed(candidates)}.", "Call again with one of these as `place`."
            )
        if rest:
            return self.of(best, f"{note}name, by far the largest of {len(candidates)}; others: {listed(rest[:3])}")
        return self.of(best, f"{note}name, the only match for {wanted.text}")

    def of(self, hit: Mapping[str, Any], resolved: str) -> Place:
        """The place of a geocoder's hit."""
        zone, country, height = hit.get("timezone"), hit.get("country_code"), hit.get("elevation")
        return point_at(
            float(hit["latitude"]),
            float(hit["longitude"]),
            name=full_name(hit),
            timezone=str(zone) if zone_named(str(zone)) else None,
            country=str(country).upper() if country else None,
            # Its source writes -9999 where it knows nothing.
            elevation=float(height) if isinstance(height, int | float) and height > -500 else None,
            resolved=resolved,
        )

    def alerts_after(self, cursor: str | None, place: Place) -> After:
        """Where the next page of the alerts of `place` begins.

        Raises:
            Invalid: the cursor belongs to another place, or was not made here.
        """
        scope = place_scope(place.latitude, place.longitude)
        return After(tuple(Cursor.decode("alerts", cursor, scope)) if cursor else ())

    def station(self, text: str) -> Station | None:
        """The airport whose code `text` may be; None if it must be a place."""
        code = text.strip()
        return Station(code) if re.fullmatch("[A-Z]{4}", code) and code.casefold() not in self.saved() else None

    def station_in_any_case(self, text: str) -> Station | None:
        """The airport whose code `text` may be, if no place has that name."""
        return self.station(text.upper())

    def subject(self, uri: str) -> Subject | None:
        """What `uri` shows, in canonical form; None if it is of another kind.

        Raises:
            Problem: no such place can exist.
        """
        found = _URI.fullmatch(uri)
        if found is None or found[2] not in KINDS:
            return None
        match self.parse(unquote(found[1])):
            case Place() as place if place.resolved == "coordinates":
                text = place.point
            case _:
                text = " ".join(unquote(found[1]).split()).casefold()
        return Subject(place_uri(text, found[2]), text, found[2])

    def uri(self, alias: str, kind: str) -> str:
        """The URI of the resource that shows `kind` of the saved place `alias`."""
        return place_uri(alias, kind)


def place_scope(latitude: float, longitude: float) -> str:
    """The scope of a cursor of a place's alerts."""
    return f"{latitude:.4f},{longitude:.4f}"


def _shorter(wanted: Name) -> list[Name]:
    """`wanted` with its last words as the region: `Arlington VA`, `Portland Oregon USA`, `Albany New York`."""
    words = wanted.name.split()
    return [
        Name(" ".join(words[:cut]), (*region, *wanted.within), wanted.text)
        for cut in range(len(words) - 1, max(0, len(words) - 3), -1)
        for region in dict.fromkeys([(" ".join(words[cut:]),), tuple(words[cut:])])
        if len(" ".join(words[:cut])) > 1
    ]
