"""Sun and moon, computed here; where the sun does not rise or set, that is the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Literal

from mcp_weather.models import Astronomy
from mcp_weather.policy import Day, Place

__all__ = ["NAMES", "sky"]

NAMES = (
    "astronomical_dawn", "nautical_dawn", "civil_dawn", "sunrise", "noon", "sunset", "civil_dusk", "nautical_dusk",
    "astronomical_dusk", "moonrise", "moonset",
)  # fmt: skip

_TWILIGHT = {"civil": 6.0, "nautical": 12.0, "astronomical": 18.0}
"""Degrees of the sun below the horizon."""
_HORIZON = -0.833
"""Degrees at which the sun's upper limb is on the horizon, refraction included."""
_POLE = 89.8
"""Degrees of latitude beyond which the hour angle means nothing to the library."""
_PHASES = (
    "new moon", "waxing crescent", "first quarter", "waxing gibbous", "full moon", "waning gibbous", "last quarter",
    "waning crescent",
)  # fmt: skip
_MONTH = 29.530588853


def sky(place: Place, wanted: Day, zone: tzinfo, notes: Sequence[str]) -> Astronomy:
    """Sun, twilight and moon of a local day."""
    day = wanted.date
    from astral import Observer, moon
    from astral import sun as sun_

    latitude = max(-_POLE, min(_POLE, place.latitude))
    here = Observer(latitude, place.longitude)

    def at(work: Callable[[], datetime | None]) -> str | None:
        try:
            when = work()
        except ValueError:
            return None
        # A day near a pole or the date line can have an event of the day beside it.
        return (
            None
            if when is None or when.astimezone(zone).date() != day
            else when.astimezone(zone).isoformat(timespec="minutes")
        )

    found: dict[str, str | None] = dict.fromkeys(NAMES)
    for name, degrees in _TWILIGHT.items():
        found[f"{name}_dawn"] = at(
            lambda degrees=degrees: _near(lambda on: sun_.dawn(here, on, degrees, zone), day, zone)
        )
        found[f"{name}_dusk"] = at(
            lambda degrees=degrees: _near(lambda on: sun_.dusk(here, on, degrees, zone), day, zone)
        )
    found["sunrise"] = at(lambda: _near(lambda on: sun_.sunrise(here, on, zone), day, zone))
    found["sunset"] = at(lambda: _near(lambda on: sun_.sunset(here, on, zone), day, zone))
    found["noon"] = at(lambda: _near(lambda on: sun_.noon(here, on, zone), day, zone))
    found["moonrise"] = at(lambda: moon.moonrise(here, day, zone))
    found["moonset"] = at(lambda: moon.moonset(here, day, zone))

    heights = [sun_.elevation(here, _hour(day, zone, hour)) for hour in range(25)]
    kind: Literal["rises and sets", "polar day", "polar night"] = "rises and sets"
    length: int | None = None
    if found["sunrise"] is None and found["sunset"] is None:
        kind = "polar day" if min(heights) > _HORIZON else "polar night"
        length = 86_400 if kind == "polar day" else 0
    elif found["sunrise"] and found["sunset"]:
        length = round(
            (datetime.fromisoformat(found["sunset"]) - datetime.fromisoformat(found["sunrise"])).total_seconds()
        )
        length = length if length >= 0 else None
    # The library counts the phase in 28 parts of the month.
    age = moon.phase(day) / 28 * _MONTH
    return Astronomy(
        place=place.info(str(zone)),
        date=day.isoformat(),
        sun=kind,
        names=list(NAMES),
        times=[found[name] for name in NAMES],
        day_length_s=length,
        moon_phase=_PHASES[round(age / _MONTH * 8) % 8],
        moon_age_days=round(age, 1),
        source="Computed here with astral, to about a minute",
        licence="Apache-2.0",
        notes=notes,
    )


def _near(work: Callable[[date], datetime], day: date, zone: tzinfo) -> datetime | None:
    """The event of the local `day`: the library counts days by UTC, which far from Greenwich is the one beside it."""
    failure: ValueError | None = None
    for on in (day, day - timedelta(days=1), day + timedelta(days=1)):
        try:
            if (when := work(on)).astimezone(zone).date() == day:
                return when
        except ValueError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return None


def _hour(day: date, zone: tzinfo, hour: int) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC) + timedelta(hours=hour)
