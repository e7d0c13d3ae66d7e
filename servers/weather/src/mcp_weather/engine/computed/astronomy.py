"""Sun and moon, computed here; where the sun does not rise or set, that is the answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from mcp_weather.models import Astronomy
from mcp_weather.policy.days import Day
from mcp_weather.policy.place import Place

if TYPE_CHECKING:
    from astral import Observer

__all__ = ["EVENTS", "compute_astronomy"]

EVENTS = (
    "astronomical_dawn", "nautical_dawn", "civil_dawn", "sunrise", "noon", "sunset", "civil_dusk", "nautical_dusk",
    "astronomical_dusk", "moonrise", "moonset",
)  # fmt: skip

# What rises and sets again between two samples of an altitude is missed.
_SAMPLE_INTERVAL = timedelta(minutes=10)
_PRECISION = timedelta(seconds=1)
# The altitudes in degrees at which the upper limb is on the horizon, with refraction and the moon's mean parallax.
_SUN_HORIZON = -0.833
_MOON_HORIZON = 0.125
_TWILIGHT_ALTITUDES = {"civil": -6.0, "nautical": -12.0, "astronomical": -18.0}

# The moments at which the moon has gained a whole number of right angles on the sun, and the times after each.
_PRINCIPAL_PHASES = ("new moon", "first quarter", "full moon", "last quarter")
_PHASES_BETWEEN = ("waxing crescent", "waxing gibbous", "waning gibbous", "waning crescent")
_SYNODIC_MONTH_DAYS = 29.530588853
_MEAN_ELONGATION_PER_DAY = 12.1907  # degrees that the moon gains on the sun
_AGE_ITERATIONS = 4

SunKind = Literal["rises and sets", "polar day", "polar night"]


def compute_astronomy(place: Place, day: Day, zone: tzinfo, notes: Sequence[str]) -> Astronomy:
    """Return sun, twilight and moon of a local day.

    Args:
        notes: what to say about the zone.
    """
    from astral import Observer, moon, sun

    observer = Observer(place.latitude, place.longitude)
    begin = _midnight(day.date, zone)
    end = _midnight(day.date + timedelta(days=1), zone)
    samples = _sample_times(begin, end)
    sun_curve = _AltitudeCurve(lambda moment: sun.elevation(observer, moment, with_refraction=False), samples)
    moon_curve = _AltitudeCurve(lambda moment: moon.elevation(observer, moment), samples)
    events: dict[str, datetime | None] = {"noon": _find_noon(observer, day.date, begin, end)}
    for name, altitude in _TWILIGHT_ALTITUDES.items():
        events[f"{name}_dawn"] = sun_curve.first_rise(altitude)
        events[f"{name}_dusk"] = sun_curve.last_fall(altitude)
    events["sunrise"] = sun_curve.first_rise(_SUN_HORIZON)
    events["sunset"] = sun_curve.last_fall(_SUN_HORIZON)
    events["moonrise"] = moon_curve.first_rise(_MOON_HORIZON)
    events["moonset"] = moon_curve.last_fall(_MOON_HORIZON)
    middle = begin + (end - begin) / 2
    return Astronomy(
        place=place.to_info(str(zone)),
        date=day.date.isoformat(),
        sun=_classify(sun_curve),
        names=list(EVENTS),
        times=[_format_event(events[name], zone) for name in EVENTS],
        day_length_s=round(sun_curve.seconds_above(_SUN_HORIZON)),
        moon_phase=_name_phase(begin, end),
        moon_age_days=round(_moon_age(middle), 1),
        source="Computed here with astral, to about a minute",
        licence="Apache-2.0",
        notes=notes,
    )


def _midnight(day: date, zone: tzinfo) -> datetime:
    """Return when a local day begins."""
    return datetime.combine(day, time.min, zone).astimezone(UTC)


def _sample_times(begin: datetime, end: datetime) -> list[datetime]:
    """Return the times at which altitudes are sampled, the first and the last included."""
    count = math.ceil((end - begin) / _SAMPLE_INTERVAL)
    return [begin + number * _SAMPLE_INTERVAL for number in range(count)] + [end]


def _find_noon(observer: Observer, day: date, begin: datetime, end: datetime) -> datetime | None:
    """Return the noon between `begin` and `end`.

    astral counts days by UTC, so that far from Greenwich the noon of a local day is that of a day before or after.
    """
    from astral import sun

    for offset in (0, -1, 1):
        noon = sun.noon(observer, day + timedelta(days=offset))
        if begin <= noon < end:
            return noon
    return None


def _classify(sun_curve: _AltitudeCurve) -> SunKind:
    if sun_curve.crossings(_SUN_HORIZON):
        return "rises and sets"
    if sun_curve.starts_above(_SUN_HORIZON):
        return "polar day"
    return "polar night"


def _format_event(moment: datetime | None, zone: tzinfo) -> str | None:
    if moment is None:
        return None
    return moment.astimezone(zone).isoformat(timespec="minutes")


class _AltitudeCurve:
    """How high the sun or the moon is from one midnight to the next.

    Args:
        altitude: returns its degrees above the horizon at a moment.
        samples: moments that are near enough to each other to find all crossings of an altitude.
    """

    def __init__(self, altitude: Callable[[datetime], float], samples: Sequence[datetime]) -> None:
        self._altitude = altitude
        self._samples = samples
        self._altitudes = [altitude(moment) for moment in samples]
        self._crossings: dict[float, list[datetime]] = {}

    def starts_above(self, level: float) -> bool:
        """Return whether it is above `level` degrees at the first midnight."""
        return self._altitudes[0] > level

    def crossings(self, level: float) -> list[datetime]:
        """Return when it passes `level` degrees."""
        if level not in self._crossings:
            self._crossings[level] = self._find_crossings(level)
        return self._crossings[level]

    def _find_crossings(self, level: float) -> list[datetime]:
        crossings: list[datetime] = []
        for index, (before, after) in enumerate(pairwise(self._altitudes)):
            if (before > level) != (after > level):
                crossings.append(self._bisect(self._samples[index], self._samples[index + 1], level))
        return crossings

    def first_rise(self, level: float) -> datetime | None:
        """Return when it comes above `level` for the first time; None if it does not."""
        # Rises and falls alternate: a curve that starts above falls first.
        index_of_first = 1 if self.starts_above(level) else 0
        rises = self.crossings(level)[index_of_first::2]
        if not rises:
            return None
        return rises[0]

    def last_fall(self, level: float) -> datetime | None:
        """Return when it goes below `level` for the last time; None if it does not."""
        index_of_first = 0 if self.starts_above(level) else 1
        falls = self.crossings(level)[index_of_first::2]
        if not falls:
            return None
        return falls[-1]

    def seconds_above(self, level: float) -> float:
        """Return for how many seconds it is above `level`."""
        boundaries = [self._samples[0], *self.crossings(level), self._samples[-1]]
        is_above = self.starts_above(level)
        seconds = 0.0
        for begin, end in pairwise(boundaries):
            if is_above:
                seconds += (end - begin).total_seconds()
            is_above = not is_above
        return seconds

    def _bisect(self, begin: datetime, end: datetime, level: float) -> datetime:
        """Return when it passes `level` between two moments, to a second."""
        starts_above = self._altitude(begin) > level
        while end - begin > _PRECISION:
            middle = begin + (end - begin) / 2
            if (self._altitude(middle) > level) == starts_above:
                begin = middle
            else:
                end = middle
        return begin


def _elongation(moment: datetime) -> float:
    """Return the degrees from the sun to the moon along the ecliptic: 0 at new moon, 180 at full moon."""
    from astral import julian, moon, sun

    century = julian.julianday_to_juliancentury(julian.julianday(moment))
    position = moon.moon_position(julian.julianday_2000(moment))
    obliquity = math.radians(sun.obliquity_correction(century))
    y = math.sin(position.right_ascension) * math.cos(obliquity) + math.tan(position.declination) * math.sin(obliquity)
    moon_longitude = math.degrees(math.atan2(y, math.cos(position.right_ascension)))
    return (moon_longitude - sun.sun_apparent_long(century)) % 360


def _name_phase(begin: datetime, end: datetime) -> str:
    """Return the phase of the moon on a day, as almanacs have it: full moon is the one day on which it becomes full."""
    quarter_before = int(_elongation(begin) // 90)
    quarter = int(_elongation(end) // 90)
    if quarter != quarter_before:
        return _PRINCIPAL_PHASES[quarter]
    return _PHASES_BETWEEN[quarter]


def _moon_age(moment: datetime) -> float:
    """Return the days since the last new moon."""
    age = _elongation(moment) / _MEAN_ELONGATION_PER_DAY
    for _ in range(_AGE_ITERATIONS):
        error = (_elongation(moment - timedelta(days=age)) + 180) % 360 - 180
        age += error / _MEAN_ELONGATION_PER_DAY
    if age < 0:
        return age % _SYNODIC_MONTH_DAYS
    return age
