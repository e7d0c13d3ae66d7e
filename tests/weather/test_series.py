"""Times, units and gaps: where a wrong number is easiest."""

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, Literal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_weather.engine.computed.summary import summarize
from mcp_weather.engine.computed.timestamps import format_timestamp, zone_of
from mcp_weather.engine.computed.unit_conversion import convert_values
from mcp_weather.engine.computed.weather_codes import describe_weather
from mcp_weather.engine.services.open_meteo_documents import label_days, read_table
from mcp_weather.models import Origin, Table
from mcp_weather.policy.units import parse_units

FROM = Origin(source="test", licence="none", fetched_at="2026-01-01T00:00+00:00", age_s=0, stale=False)


def document(zone: str, first: datetime, step: str, count: int, length: int = 3600) -> dict[str, Any]:
    begin = int(first.replace(tzinfo=ZoneInfo(zone)).timestamp())
    offset = first.replace(tzinfo=ZoneInfo(zone)).utcoffset()
    assert offset is not None
    return {
        "timezone": zone,
        "utc_offset_seconds": int(offset.total_seconds()),
        f"{step}_units": {"time": "unixtime", "t": "°C"},
        step: {"time": [begin + index * length for index in range(count)], "t": list(range(count))},
    }


def test_the_night_of_25_hours_has_25_rows_that_differ() -> None:
    shown = read_table(document("Europe/Zurich", datetime(2026, 10, 25), "hourly", 25), "hourly", "metric", FROM)
    assert len(shown.time) == len(set(shown.time)) == 25
    assert shown.time[2:4] == ["2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00"]
    assert shown.time[-1] == "2026-10-25T23:00+01:00"


def test_the_night_of_23_hours_has_no_hour_that_never_was() -> None:
    shown = read_table(document("Europe/Zurich", datetime(2026, 3, 29), "hourly", 23), "hourly", "metric", FROM)
    assert shown.time[1:3] == ["2026-03-29T01:00+01:00", "2026-03-29T03:00+02:00"]
    assert shown.time[-1].startswith("2026-03-29T23")


@pytest.mark.parametrize("first", [date(2026, 3, 27), date(2026, 10, 23)])
@pytest.mark.parametrize("truly", [True, False])
def test_days_over_a_change_of_clocks_are_each_told_once(first: date, truly: bool) -> None:
    """Whether the upstream's days begin at the real midnights or at those of one fixed offset."""
    zone = ZoneInfo("Europe/Zurich")
    days = [first + timedelta(days=number) for number in range(5)]
    midnights = [datetime(day.year, day.month, day.day, tzinfo=zone) for day in days]
    begin = midnights[0].timestamp()
    seconds = [day.timestamp() if truly else begin + 86_400 * number for number, day in enumerate(midnights)]
    for offset in {int(day.utcoffset().total_seconds()) for day in midnights}:  # pyright: ignore
        assert label_days(seconds, {"utc_offset_seconds": offset}) == [day.isoformat() for day in days]


def test_two_days_that_are_one_are_one() -> None:
    found = document("UTC", datetime(2026, 1, 1), "daily", 3, 86_400)
    found["daily"]["time"][1] = found["daily"]["time"][0]
    shown = read_table(found, "daily", "metric", FROM)
    assert (shown.time, shown.values) == (["2026-01-01", "2026-01-03"], [[0, 2]])


def test_a_row_without_a_time_says_nothing() -> None:
    found = document("UTC", datetime(2026, 1, 1), "hourly", 3)
    found["hourly"]["time"][1] = None
    assert read_table(found, "hourly", "metric", FROM).values == [[0, 2]]


def test_west_and_east_of_the_date_line_a_day_is_the_local_one() -> None:
    for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago", "Asia/Kathmandu"):
        assert read_table(document(zone, datetime(2026, 5, 1), "daily", 2, 86_400), "daily", "metric", FROM).time == [
            "2026-05-01",
            "2026-05-02",
        ]


def test_an_unknown_zone_keeps_its_offset() -> None:
    assert (
        format_timestamp(0, zone_of({"timezone": "Mars/Olympus", "utc_offset_seconds": 5400}))
        == "1970-01-01T01:30+01:30"
    )
    assert format_timestamp(0, zone_of({})) == "1970-01-01T00:00+00:00"


@pytest.mark.parametrize(
    ("unit", "metric", "name", "imperial"),
    [
        ("°C", 0, "°F", 32), ("°C", -40, "°F", -40), ("°C", 37.5, "°F", 99.5), ("km/h", 100, "mph", 62.14),
        ("mm", 25.4, "inch", 1), ("cm", 2.54, "inch", 1), ("m", 1000, "ft", 3280.84), ("%", 50, "%", 50),
        ("hPa", 1013.25, "inHg", 29.92), ("°", 350, "°", 350), ("μg/m³", 7, "μg/m³", 7),
    ],
)  # fmt: skip
def test_units_are_converted_by_what_the_upstream_says_they_are(
    unit: str, metric: float, name: str, imperial: float
) -> None:
    assert convert_values("x", [metric], unit, "metric") == (unit, [metric])
    assert convert_values("x", [metric, None], unit, "imperial") == (name, [imperial, None])


def test_snow_in_centimetres_is_not_taken_for_millimetres() -> None:
    assert convert_values("snowfall", [10], "cm", "imperial") == ("inch", [3.94])
    assert convert_values("precipitation", [10], "mm", "imperial") == ("inch", [0.39])


@given(st.lists(st.none() | st.sampled_from([-999, -9999.0, float("nan"), float("inf"), True, "12", [], {}])))
def test_what_is_no_number_is_missing_and_stays_missing(values: list[Any]) -> None:
    for units in ("metric", "imperial"):
        assert convert_values("x", values, "°C", units)[1] == [None] * len(values)
        assert convert_values("weather_code", values, "wmo code", units)[1] == [None] * len(values)


@given(st.lists(st.floats(-500, 5000)))
def test_numbers_survive(values: list[float]) -> None:
    _, shown = convert_values("x", values, "°C", "imperial")
    back = [(value - 32) / 1.8 for value in shown if isinstance(value, int | float)]
    assert back == pytest.approx(values, abs=0.01)


@given(
    st.datetimes(datetime(1990, 1, 1), datetime(2040, 1, 1)),
    st.sampled_from(["Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "Asia/Tehran"]),
)
def test_a_moment_keeps_its_moment(at: datetime, zone: str) -> None:
    seconds = int(at.replace(tzinfo=UTC).timestamp()) // 60 * 60
    assert datetime.fromisoformat(format_timestamp(seconds, ZoneInfo(zone))).timestamp() == seconds


def test_weather_is_words() -> None:
    assert convert_values("weather_code", [0, 95, 42, None], "wmo code", "metric") == (
        "",
        ["clear", "thunderstorm", "code 42", None],
    )
    assert describe_weather(3) == "overcast"
    assert (describe_weather(57), describe_weather(67)) == ("dense freezing drizzle", "heavy freezing rain")


class _AsOnWindows(datetime):
    """`datetime` where the system knows no time before 1970."""

    @classmethod
    def fromtimestamp(cls, timestamp: float, tz: tzinfo | None = None) -> datetime:  # pyright: ignore
        if timestamp < 0:
            raise OSError(22, "Invalid argument")
        return datetime.fromtimestamp(timestamp, tz)


def test_days_before_1970_are_days_on_every_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_weather.engine.computed.timestamps.datetime", _AsOnWindows)
    seconds = [datetime(1945, 5, day, tzinfo=UTC).timestamp() for day in (7, 8)]
    assert label_days(seconds, {"utc_offset_seconds": 0}) == ["1945-05-07", "1945-05-08"]
    assert format_timestamp(seconds[1], ZoneInfo("Europe/Berlin")) == "1945-05-08T02:00+02:00"


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "Asia/Kathmandu", "Australia/Eucla", "Europe/Zurich"])
@pytest.mark.parametrize("minutes", [0, 1, 29, 30, 31, 44, 45, 59])
def test_the_hour_that_it_is_is_the_first_in_every_zone(zone: str, minutes: int) -> None:
    """Whether the upstream's hours begin at the full ones of the place or of the world."""
    now = datetime(2026, 7, 1, 15, tzinfo=ZoneInfo(zone)) + timedelta(minutes=minutes)
    local = document(zone, datetime(2026, 7, 1), "hourly", 24)
    world = document("UTC", datetime(2026, 6, 30, 12), "hourly", 48)
    for found in (local, world):
        shown = read_table(found, "hourly", "metric", FROM, now=now.timestamp())
        first = datetime.fromisoformat(shown.time[0])
        assert timedelta(0) <= now - first < timedelta(hours=1)


@given(st.lists(st.sampled_from([0, 0.1, 0.2, 0.3, 0.7, 1.4, 12.5]), min_size=1, max_size=168), st.booleans())
def test_a_sum_is_the_same_rain_in_both_systems(amounts: list[float], snow: bool) -> None:
    """Rounded hour by hour to hundredths of an inch, a day of drizzle came to nothing."""
    name, unit, per_inch = ("snowfall", "cm", 2.54) if snow else ("precipitation", "mm", 25.4)
    times = [f"{number:03}" for number in range(len(amounts))]

    def told(system: Literal["metric", "imperial"]) -> tuple[float, str]:
        shown, values = convert_values(name, amounts, unit, system)
        lines = summarize(Table(time=times, names=[name], units=[shown], values=[values], origin=FROM))
        found = re.fullmatch(rf"{name}: sum (\S+) {shown}(.*)", lines[0])
        assert found is not None
        return float(found[1]), found[2]

    (metric, when), (imperial, same) = told("metric"), told("imperial")
    assert same == when
    # Two digits of each hour, then two decimals of the sum.
    assert abs(imperial - metric / per_inch) <= 0.02 * metric / per_inch + 0.006


@pytest.mark.parametrize(
    ("name", "said", "value", "shown"),
    [
        ("visibility", "imperial", 24140, ("mi", 15)), ("visibility", "metric", 24140, ("m", 24140)),
        ("visibility", "distance=km", 45, ("km", 0.045)), ("visibility", "imperial,distance=ft", 100, ("ft", 328.08)),
        ("wave_height", "distance=km", 1.5, ("m", 1.5)), ("wind_wave_height", "distance=mi", 1.5, ("ft", 4.92)),
        ("swell_wave_height", "imperial", 1.5, ("ft", 4.92)), ("snow_depth", "distance=mi", 0.35, ("ft", 1.15)),
        ("snow_depth", "metric", 0.35, ("cm", 35)), ("snow_depth", "imperial,wind=kn", 0.35, ("inch", 13.78)),
    ],
)  # fmt: skip
def test_a_height_is_no_distance(name: str, said: str, value: float, shown: tuple[str, float]) -> None:
    assert convert_values(name, [value], "m", parse_units(said, "metric")) == (shown[0], [shown[1]])
