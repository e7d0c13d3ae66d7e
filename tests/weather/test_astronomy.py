"""Sun and moon where and when they do something unusual; the times are those of the library PyEphem."""

from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_weather.engine.computed.astronomy import compute_astronomy
from mcp_weather.models import Astronomy
from mcp_weather.policy.days import Day
from mcp_weather.policy.place import point_at


def seen(latitude: float, longitude: float, day: date, zone: tzinfo | None = None) -> Astronomy:
    zone = zone or timezone(timedelta(hours=round(longitude / 15)))
    return compute_astronomy(point_at(latitude, longitude, resolved="test"), Day(day), zone, ())


@pytest.mark.parametrize(
    ("latitude", "longitude", "day", "name", "at"),
    [
        (32.4628, -34.3962, "2053-09-03", "moonrise", "22:05"), (56.1484, -68.2691, "1978-05-22", "moonrise", "19:52"),
        (-54.1411, -147.81, "1966-03-28", "moonrise", "14:06"), (65.3446, 108.6575, "1968-05-05", "moonrise", "06:43"),
        (-33.6228, 110.491, "2004-07-02", "moonset", "06:33"), (74.2788, 134.6191, "1977-04-15", "civil_dawn", "00:39"),
        (67.2804, 72.8151, "1974-08-07", "civil_dawn", "00:34"), (47.37, 8.55, "2024-06-21", "sunset", "20:26"),
    ],
)  # fmt: skip
def test_what_happens_is_told(latitude: float, longitude: float, day: str, name: str, at: str) -> None:
    found = seen(latitude, longitude, date.fromisoformat(day))
    told = dict(zip(found.names, found.times, strict=True))[name]
    assert told is not None
    zone = datetime.fromisoformat(told).tzinfo
    off = datetime.fromisoformat(told) - datetime.fromisoformat(f"{day}T{at}").replace(tzinfo=zone)
    assert abs(off) <= timedelta(minutes=4)


@pytest.mark.parametrize(
    ("day", "phase", "age"),
    [
        ("2024-01-11", "new moon", 0.0), ("2024-01-18", "first quarter", 7.0), ("2024-01-25", "full moon", 14.0),
        ("2024-02-02", "last quarter", 22.0), ("2024-04-08", "new moon", 29.2), ("2019-01-21", "full moon", 15.4),
        ("1950-01-04", "full moon", 15.7), ("2099-12-27", "full moon", 15.54),
    ],
)  # fmt: skip
def test_the_moon_is_as_old_as_it_is(day: str, phase: str, age: float) -> None:
    found = seen(51.5, 0.0, date.fromisoformat(day))
    assert found.moon_phase == phase and abs(found.moon_age_days - age) < 0.3


@pytest.mark.slow
@given(st.floats(-90, 90), st.floats(-180, 180), st.dates(date(1900, 1, 1), date(2099, 12, 31)))
def test_a_day_is_as_long_as_its_events_say(latitude: float, longitude: float, day: date) -> None:
    found = seen(latitude, longitude, day)
    times = dict(zip(found.names, found.times, strict=True))
    assert all(time is None or time.startswith(day.isoformat()) for time in times.values())
    assert (times["sunrise"] is None and times["sunset"] is None) == (found.sun != "rises and sets")
    length = found.day_length_s
    assert length is not None and 0 <= length <= 86_400
    assert {"polar day": 86_400, "polar night": 0}.get(found.sun, length) == length
    if times["sunrise"] and times["sunset"] and times["sunrise"] < times["sunset"]:
        spent = datetime.fromisoformat(times["sunset"]) - datetime.fromisoformat(times["sunrise"])
        assert length >= spent.total_seconds() - 120


@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25)])
def test_the_polar_day_lasts_as_long_as_the_day(day: str, hours: int) -> None:
    oslo, pole = ZoneInfo("Europe/Oslo"), -90.0 if day > "2026-09" else 90.0
    found = seen(pole, 0.0, date.fromisoformat(day), oslo)
    assert (found.sun, found.day_length_s) == ("polar day", hours * 3600)


@pytest.mark.share(2)
@pytest.mark.parametrize("zone", ["Pacific/Apia", "Pacific/Kiritimati", "Asia/Kathmandu", "America/St_Johns"])
def test_noon_is_of_the_day_that_is_asked_for(zone: str) -> None:
    for number in range(0, 730, 73):
        day = date(2026, 1, 1) + timedelta(days=number)
        found = seen(0.0, 0.0, day, ZoneInfo(zone))
        noon = dict(zip(found.names, found.times, strict=True))["noon"]
        assert noon is not None and noon.startswith(day.isoformat())
        assert 11 <= datetime.fromisoformat(noon).astimezone(UTC).hour <= 12
