"""The only place that says no: what is a place, a day, a span. Makes what the engine takes."""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Literal
from urllib.parse import quote as percent
from urllib.parse import unquote

from mcp_batteries.errors import Invalid, NotFound, Unavailable, quote
from mcp_batteries.limits import Cursor
from mcp_weather.coordinates import Twofold, degrees
from mcp_weather.geography import COMMON, countries, fold, languages_of, spoken_in
from mcp_weather.hits import Hit, fitting, full_name, listed, merged, population
from mcp_weather.models import PlaceInfo

__all__ = [
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

System = Literal["metric", "imperial", "nautical"]
"""Nautical is metric with knots."""

_SYSTEMS: dict[str, System] = {"metric": "metric", "imperial": "imperial", "nautical": "nautical"}
_UNITS = {
    "temperature": {"c": "°C", "°c": "°C", "celsius": "°C", "f": "°F", "°f": "°F", "fahrenheit": "°F", "k": "K"},
    "wind": {
        "km/h": "km/h", "kmh": "km/h", "m/s": "m/s", "ms": "m/s", "mph": "mph", "kn": "kn", "kt": "kn", "knots": "kn",
    },
    "precipitation": {"mm": "mm", "in": "inch", "inch": "inch"},
    "pressure": {"hpa": "hPa", "mbar": "hPa", "inhg": "inHg", "mmhg": "mmHg"},
    "distance": {"m": "m", "ft": "ft", "km": "km", "mi": "mi"},
}  # fmt: skip

LookUp = Callable[[str, Sequence[str | None]], Awaitable[Sequence[Sequence[Mapping[str, Any]]]]]
"""The geocoder: what it has for a name in each of some languages of two letters; None is the server's own."""

KINDS = ("now", "hourly", "daily", "alerts", "air")
"""What there is of each place as a resource."""

FOUND = "found"
"""How a place is resolved that was one of many hits."""

FIRST_DAY = date(1940, 1, 1)
"""The first day of the reanalysis behind past weather."""

FORECAST_DAYS = 15
"""Whole days for which there is a forecast by hour, today included."""

FIRST_SKY, LAST_SKY = date(1900, 1, 1), date(2099, 12, 31)
"""The years for which the formulas of NOAA's solar calculator are made."""

_DIAGONAL = math.sqrt(0.5)
DIRECTIONS = {
    "north": (1.0, 0.0), "north-east": (_DIAGONAL, _DIAGONAL), "east": (0.0, 1.0),
    "south-east": (-_DIAGONAL, _DIAGONAL), "south": (-1.0, 0.0), "south-west": (-_DIAGONAL, -_DIAGONAL),
    "west": (0.0, -1.0), "north-west": (_DIAGONAL, -_DIAGONAL),
}  # fmt: skip
"""How far north and east each of them goes."""
_KM = 111.2
"""Kilometres of a degree of latitude."""

_POSTAL_CODE = re.compile(r"\d[\d -]{1,10}\d")
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ].*)?|(\d{4})(\d\d)(\d\d)", re.DOTALL)
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_URI = re.compile(r"weather://([^/?#]+)/([a-z]+)")
_DOMINANT = 20
"""How many times as many people must live in the one meant, for a name that several places have."""
_KNOWN = 50_000
"""People in a place that is meant by its name alone, whatever else has the same name in other languages."""


@dataclass(frozen=True)
class Place:
    """A point on the globe: latitude within 90, longitude within 180 degrees, four decimals, named."""

    name: str
    latitude: float
    longitude: float
    timezone: str | None
    country: str | None
    """ISO 3166-1 code in capitals, if known."""
    resolved: str
    elevation: float | None = None
    """Metres above the sea, if known."""

    @property
    def point(self) -> str:
        """`lat,lon` as the National Weather Service wants it: at most four decimals, no trailing zeros."""
        return f"{_plain(self.latitude)},{_plain(self.longitude)}"

    def info(self, timezone: str | None = None, *, elevation: Any = None) -> PlaceInfo:
        """The place as results tell it; `elevation` is what a service says of it."""
        known = isinstance(elevation, int | float) and math.isfinite(elevation)
        return PlaceInfo(
            name=self.name,
            latitude=self.latitude,
            longitude=self.longitude,
            timezone=timezone or self.timezone,
            elevation_m=self.elevation if self.elevation is not None or not known else elevation,
            resolved=self.resolved,
        )

    def beside(self, km: float, direction: str) -> Place:
        """The point so far away; `direction` is one of `DIRECTIONS`."""
        north, east = DIRECTIONS[direction]
        latitude = max(-89.0, min(89.0, self.latitude + km * north / _KM))
        longitude = self.longitude + km * east / _KM / math.cos(math.radians(latitude))
        longitude = (longitude + 180) % 360 - 180
        return point_at(latitude, longitude, name=self.name, country=self.country, resolved=self.resolved)

    def uri(self, kind: str) -> str:
        """The URI of the resource that shows `kind` of this place."""
        return _uri(self.point, kind)


@dataclass(frozen=True)
class Name:
    """A name to be looked up, and what narrows it down."""

    name: str
    within: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class After:
    """The position of the last alert that was shown; empty before the first page."""

    position: tuple[Any, ...]


@dataclass(frozen=True)
class Day:
    """One day of the calendar, of those for which there can be an answer."""

    date: date


@dataclass(frozen=True)
class Days:
    """A span of whole days, the first not after the last."""

    first: date
    last: date

    def starting(self, year: int) -> Days:
        """The same days of the calendar, the first of them in `year`; without a leap day, the day before it."""
        return Days(_in_year(self.first, year), _in_year(self.last, year + self.last.year - self.first.year))


@dataclass(frozen=True)
class Station:
    """The code of an airport, as the International Civil Aviation Organization gives them."""

    code: str


@dataclass(frozen=True)
class OwnUnits:
    """A system of units, and quantities that have another than it: pairs of the quantity and the unit."""

    system: System
    own: tuple[tuple[str, str], ...]


Units = System | OwnUnits


@dataclass(frozen=True)
class Subject:
    """What a `weather://` URI shows."""

    uri: str
    place: str
    kind: str


def point_at(
    latitude: float,
    longitude: float,
    *,
    name: str | None = None,
    timezone: str | None = None,
    country: str | None = None,
    elevation: float | None = None,
    resolved: str,
) -> Place:
    """The place at these degrees.

    Raises:
        Invalid: they are out of range, perhaps because they are the other way round.
    """
    if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
        swapped = -90 <= longitude <= 90 and -180 <= latitude <= 180
        fix = (
            f"They look swapped: try `{longitude:g},{latitude:g}`."
            if swapped
            else "Latitude is within 90, longitude within 180 degrees."
        )
        raise Invalid(f"`{latitude:g},{longitude:g}` is not on the globe.", fix)
    latitude, longitude = round(latitude, 4) + 0.0, round(longitude, 4) + 0.0
    if longitude == -180:
        longitude = 180.0  # The date line has one name, so that it has one cache entry.
    if abs(latitude) == 90:
        longitude = 0.0  # So has each pole.
    return Place(name or f"{latitude:g},{longitude:g}", latitude, longitude, timezone, country, resolved, elevation)


class Policy:
    """What may be asked.

    Args:
        saved: the saved places by alias, in lower case; called each time, since they may be edited.
        look_up: the geocoder's hits for a name.
    """

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
                "Pass coordinates such as `47.37,8.55` until then.",
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
        hits = merged([], await self._look_up(named.name, (language, *languages_of(named.name))))
        return [(self.of(hit.first, FOUND), population(hit.first) or None) for hit in hits]

    def parse(self, text: str) -> Place | Name:
        """What `text` names: a saved alias, coordinates, or something to be looked up.

        Raises:
            Invalid: it is none of them, or no point on the globe.
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
        if _POSTAL_CODE.fullmatch(wanted):
            return Name(wanted, (), wanted)
        if len(wanted) < 2 or not any(letter.isalpha() for letter in wanted):
            raise Invalid(
                f"{quote(text)} is no place.",
                "Pass a name such as `Zurich`, coordinates such as `47.37,8.55`, or a saved alias.",
            )
        name, *within = (part.strip() for part in wanted.split(","))
        if len(name) < 2:
            raise Invalid(f"{quote(text)} is no place.", "Pass the name first, as in `Springfield, Illinois`.")
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
            exactly: only those of that very name.

        Raises:
            Invalid: several do; names them in words that can be passed on.
        """
        candidates, note = fitting(wanted.within, hits), ""
        if not candidates and len(wanted.within) > 1:
            # One part too many is no obstacle if the others say which place it is.
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
        """The place a geocoder's hit is."""
        zone, country, height = hit.get("timezone"), hit.get("country_code"), hit.get("elevation")
        return point_at(
            float(hit["latitude"]),
            float(hit["longitude"]),
            name=full_name(hit),
            timezone=str(zone) if zone else None,
            country=str(country).upper() if country else None,
            # Its source writes -9999 where it knows nothing.
            elevation=float(height) if isinstance(height, int | float) and height > -500 else None,
            resolved=resolved,
        )

    def alerts_after(self, cursor: str | None, place: Place) -> After:
        """Where the next page of the alerts of `place` begins.

        Raises:
            Invalid: the cursor is of another place, or was not made here.
        """
        scope = place_scope(place.latitude, place.longitude)
        return After(tuple(Cursor.decode("alerts", cursor, scope)) if cursor else ())

    def units(self, text: str | None, default: Units) -> Units:
        """The units that `text` asks for: a system, quantities with a unit of their own, or both.

        Raises:
            Invalid: a quantity or a unit is not known.
        """
        if text is None:
            return default
        system: System = default.system if isinstance(default, OwnUnits) else default
        own = dict(default.own) if isinstance(default, OwnUnits) else dict[str, str]()
        for part in filter(None, (item.strip().casefold() for item in text.split(","))):
            quantity, _, unit = (word.strip() for word in part.partition("="))
            if part in _SYSTEMS:
                system, own = _SYSTEMS[part], {}
            elif quantity not in _UNITS:
                raise Invalid(
                    f"{quote(part)} is no system of units and no quantity.",
                    f"Pass {', '.join(_SYSTEMS)}, or {', '.join(_UNITS)} with a unit: `metric,wind=kn`.",
                )
            elif unit not in _UNITS[quantity]:
                known = ", ".join(dict.fromkeys(_UNITS[quantity].values()))
                raise Invalid(f"{quote(unit)} is no unit of {quantity} here.", f"It can be {known}.")
            else:
                own[quantity] = _UNITS[quantity][unit]
        return OwnUnits(system, tuple(own.items())) if own else system

    def station(self, text: str) -> Station | None:
        """The airport whose code `text` may be; None where it must be a place."""
        code = text.strip()
        return Station(code) if re.fullmatch("[A-Z]{4}", code) and code.casefold() not in self.saved() else None

    def forecast_day(self, text: str, today: date) -> Day:
        """The day of the next two weeks that `text` means.

        Raises:
            Invalid: it means none, or one for which there is no forecast by hour.
        """
        day = self._day(text, today)
        last = today + timedelta(days=FORECAST_DAYS - 1)
        if not today <= day <= last:
            raise Invalid(
                f"There is a forecast by hour from {today} to {last}, not for {day}.",
                "Use `get_history` for days that are past." if day < today else "Ask for an earlier day.",
            )
        return Day(day)

    def sky_day(self, text: str | None, today: date) -> Day:
        """The day whose sun and moon can be computed; `today` without `text`.

        Raises:
            Invalid: it means none, or one for which the formulas are not made.
        """
        day = today if text is None else self._day(text, today)
        if not FIRST_SKY.year <= day.year <= LAST_SKY.year:
            raise Invalid(f"Sun and moon are computed from {FIRST_SKY} to {LAST_SKY}, not for {day}.")
        return Day(day)

    def past_days(self, start: str, end: str | None, *, today: date, most: int) -> Days:
        """The past days from `start` to `end`, both included; without `end` that one day.

        Raises:
            Invalid: they mean no days, are not past, the wrong way round, too many, or before the records begin.
        """
        first = self._day(start, today)
        last = first if end is None else self._day(end, today)
        if last < first:
            raise Invalid(f"`end` {last} is before `start` {first}.", "Swap them.")
        if last > today:
            raise Invalid(
                f"{last} is not past yet at the place, where it is {today}.", "Use `get_forecast` for days to come."
            )
        if first < FIRST_DAY:
            raise Invalid(f"Records begin on {FIRST_DAY}, `start` is {first}.", f"Start on {FIRST_DAY} or later.")
        if (last - first).days >= most:
            fits = first + timedelta(days=most - 1)
            raise Invalid(
                f"{(last - first).days + 1} days are more than the {most} of one call.",
                f"Ask for {first} to {fits} first.",
            )
        return Days(first, last)

    def _day(self, text: str, today: date) -> date:
        """The day that `text` means where it is `today`: YYYY-MM-DD, yesterday, today or tomorrow.

        Raises:
            Invalid: it means none.
        """
        if (offset := _DAYS.get(text.strip().casefold())) is not None:
            return today + timedelta(days=offset)
        found = _DATE.fullmatch(text.strip())
        if found is None:
            raise Invalid(f"{quote(text)} is no day.", f"Pass it as YYYY-MM-DD, such as {today}, or as `yesterday`.")
        try:
            return date(*map(int, filter(None, found.groups())))
        except ValueError:
            raise Invalid(f"{quote(text)} is no day of the calendar.", "Pass it as YYYY-MM-DD.") from None

    def subject(self, uri: str) -> Subject | None:
        """What `uri` shows, in its one spelling; None if it is of another kind.

        Raises:
            Problem: there can't be such a place.
        """
        found = _URI.fullmatch(uri)
        if found is None or found[2] not in KINDS:
            return None
        match self.parse(unquote(found[1])):
            case Place() as place if place.resolved == "coordinates":
                text = place.point
            case _:
                text = " ".join(unquote(found[1]).split()).casefold()
        return Subject(_uri(text, found[2]), text, found[2])

    def uri(self, alias: str, kind: str) -> str:
        """The URI of the resource that shows `kind` of the saved place `alias`."""
        return _uri(alias, kind)


def place_scope(latitude: float, longitude: float) -> str:
    """What a cursor of a place's alerts is good for."""
    return f"{latitude:.4f},{longitude:.4f}"


def _uri(place: str, kind: str) -> str:
    return f"weather://{percent(place, safe=',')}/{kind}"


def _in_year(day: date, year: int) -> date:
    try:
        return day.replace(year=year)
    except ValueError:
        return date(year, 2, 28)


def _plain(degrees: float) -> str:
    return f"{degrees:.4f}".rstrip("0").rstrip(".")


def _shorter(wanted: Name) -> list[Name]:
    """`wanted` with its last words as the region: `Arlington VA`, `Portland Oregon USA`, `Albany New York`."""
    words = wanted.name.split()
    return [
        Name(" ".join(words[:cut]), (*region, *wanted.within), wanted.text)
        for cut in range(len(words) - 1, max(0, len(words) - 3), -1)
        for region in dict.fromkeys([(" ".join(words[cut:]),), tuple(words[cut:])])
        if len(" ".join(words[:cut])) > 1
    ]
