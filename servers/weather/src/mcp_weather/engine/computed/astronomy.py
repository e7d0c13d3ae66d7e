"""Sun and moon, computed here; where the sun does not rise or set, that is the answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, time, timedelta, tzinfo
from itertools import pairwise
from typing import Literal

from mcp_weather.models import Astronomy
from mcp_weather.policy import Day, Place

__all__ = ["NAMES", "sky"]

NAMES = (
    "astronomical_dawn", "nautical_dawn", "civil_dawn", "sunrise", "noon", "sunset", "civil_dusk", "nautical_dusk",
    "astronomical_dusk", "moonrise", "moonset",
)  # fmt: skip

_STEP = timedelta(minutes=10)
"""Between two looks at a height: what rises and sets within it is not told."""
_SUN, _MOON = -0.833, 0.125
"""Degrees at which the upper limb is on the horizon, refraction included, for the moon its mean parallax too."""
_TWILIGHT = {"civil": -6.0, "nautical": -12.0, "astronomical": -18.0}
_PHASES = (
    "new moon", "waxing crescent", "first quarter", "waxing gibbous", "full moon", "waning gibbous", "last quarter",
    "waning crescent",
)  # fmt: skip
_MONTH, _PER_DAY = 29.530588853, 12.1907
"""Days from new moon to new moon, and the degrees that the moon gains on the sun in one of them, in the mean."""


def sky(place: Place, wanted: Day, zone: tzinfo, notes: Sequence[str]) -> Astronomy:
    """Sun, twilight and moon of a local day."""
    from astral import Observer, moon
    from astral import sun as sun_

    day = wanted.date
    here = Observer(place.latitude, place.longitude)
    begin, end = (datetime.combine(on, time.min, zone).astimezone(UTC) for on in (day, day + timedelta(days=1)))
    moments = [begin + number * _STEP for number in range(math.ceil((end - begin) / _STEP))] + [end]
    sun = _Course(lambda at: sun_.elevation(here, at, with_refraction=False), moments)
    found = {
        f"{name}_{what}": at for name, height in _TWILIGHT.items() for what, at in sun.ends(height, "dawn", "dusk")
    }
    found |= dict(sun.ends(_SUN, "sunrise", "sunset"))
    found |= dict(_Course(lambda at: moon.elevation(here, at), moments).ends(_MOON, "moonrise", "moonset"))
    noons = (sun_.noon(here, day + timedelta(days=away)) for away in (0, -1, 1))
    # The library counts days by UTC, which far from Greenwich is the one beside it.
    found["noon"] = next((noon for noon in noons if begin <= noon < end), None)
    kind: Literal["rises and sets", "polar day", "polar night"] = "rises and sets"
    if not sun.crossings(_SUN):
        kind = "polar day" if sun.heights[0] > _SUN else "polar night"
    middle = begin + (end - begin) / 2
    age = _moon_age(middle)
    return Astronomy(
        place=place.info(str(zone)),
        date=day.isoformat(),
        sun=kind,
        names=list(NAMES),
        times=[at and at.astimezone(zone).isoformat(timespec="minutes") for at in (found[name] for name in NAMES)],
        day_length_s=round(sun.above(_SUN)),
        moon_phase=_PHASES[round(_elongation(middle) / 45) % 8],
        moon_age_days=round(age, 1),
        source="Computed here with astral, to about a minute",
        licence="Apache-2.0",
        notes=notes,
    )


class _Course:
    """How high the sun or the moon is from one midnight to the next."""

    def __init__(self, height: Callable[[datetime], float], moments: Sequence[datetime]) -> None:
        self._height, self._moments = height, moments
        self.heights = [height(at) for at in moments]

    def crossings(self, level: float) -> list[datetime]:
        """When it passes `level` degrees."""
        both = zip(self._moments, self._moments[1:], self.heights, self.heights[1:], strict=False)
        return [self._between(one, other, level) for one, other, low, high in both if (low > level) != (high > level)]

    def ends(self, level: float, rise: str, fall: str) -> list[tuple[str, datetime | None]]:
        """The first time that it comes above `level`, and the last that it goes below; None where it does not."""
        found = self.crossings(level)
        rises = found[self.heights[0] > level :: 2]
        falls = found[self.heights[0] <= level :: 2]
        return [(rise, rises[0] if rises else None), (fall, falls[-1] if falls else None)]

    def above(self, level: float) -> float:
        """For how many seconds it is above `level`."""
        found = [self._moments[0], *self.crossings(level), self._moments[-1]]
        spans = [(other - one).total_seconds() for one, other in pairwise(found)]
        return sum(spans[self.heights[0] <= level :: 2])

    def _between(self, one: datetime, other: datetime, level: float) -> datetime:
        starts_above = self._height(one) > level
        while other - one > timedelta(seconds=1):
            middle = one + (other - one) / 2
            one, other = (middle, other) if (self._height(middle) > level) == starts_above else (one, middle)
        return one


def _elongation(at: datetime) -> float:
    """Degrees from the sun to the moon along the ecliptic: 0 at new moon, 180 at full moon."""
    from astral import julian, moon
    from astral import sun as sun_

    century = julian.julianday_to_juliancentury(julian.julianday(at))
    position, tilt = moon.moon_position(julian.julianday_2000(at)), math.radians(sun_.obliquity_correction(century))
    across = math.sin(position.right_ascension) * math.cos(tilt) + math.tan(position.declination) * math.sin(tilt)
    return (
        math.degrees(math.atan2(across, math.cos(position.right_ascension))) - sun_.sun_apparent_long(century)
    ) % 360


def _moon_age(at: datetime) -> float:
    """Days since the last new moon."""
    age = _elongation(at) / _PER_DAY
    for _ in range(4):
        off = (_elongation(at - timedelta(days=age)) + 180) % 360 - 180
        age += off / _PER_DAY
    return age % _MONTH if age < 0 else age
