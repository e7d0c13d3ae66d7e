"""Which time a value is of: amounts, chances and gusts are of the hour that a row begins, whoever told them."""

import json
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any
from xml.etree import ElementTree as Xml
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_weather.engine.computed import plot
from mcp_weather.engine.computed.summary import summarize
from mcp_weather.engine.requests import queries
from mcp_weather.engine.services.nws_documents import read_forecast
from mcp_weather.engine.services.open_meteo_documents import read_present, read_table
from mcp_weather.engine.services.variable_intervals import DAY_VALUES, Interval, interval_of
from mcp_weather.models import Origin, Value
from weather.serving import client, text
from weather.upstream import MATERIAL, Upstream

FROM = Origin(source="test", licence="none", fetched_at="2026-01-01T00:00+00:00", age_s=0, stale=False)
TOLD = json.loads((MATERIAL / "intervals.json").read_text("utf-8"))
KINDS = {
    "sum": Interval.SUM,
    "mean": Interval.MEAN,
    "max": Interval.MAXIMUM,
    "probability": Interval.PROBABILITY,
    "Instant": Interval.INSTANT,
}
ASKED = {
    "hourly": {name for names in queries.HOURLY_VARIABLES.values() for name in names}
    | {name for names in queries.HOURS_OF_DAYS.values() for name in names} | set(queries.ENSEMBLE_VARIABLES),
    "minutely_15": set(queries.QUARTER_HOUR_VARIABLES),
    "current": set(queries.PRESENT_VARIABLES),
    "air": {*queries.AIR_PRESENT_VARIABLES, *queries.AIR_VARIABLES, *queries.POLLEN_VARIABLES},
    "marine": {*queries.SEA_PRESENT_VARIABLES, *queries.SEA_VARIABLES},
}  # fmt: skip
ASKED_BY_DAY = {name for names in queries.DAILY_VARIABLES.values() for name in names}.union(
    queries.PAST_VARIABLES, queries.RECENT_VARIABLES, queries.NORMAL_VARIABLES, queries.RIVER_VARIABLES
)
STEPS = {"hourly": 3600, "minutely_15": 900}


def series(step: str, begin: float, columns: dict[str, list[Any]], zone: str = "UTC") -> dict[str, Any]:
    count = len(next(iter(columns.values())))
    offset = datetime.fromtimestamp(begin, ZoneInfo(zone)).utcoffset()
    assert offset is not None
    return {
        "timezone": zone,
        "utc_offset_seconds": int(offset.total_seconds()),
        f"{step}_units": dict.fromkeys(columns, "mm"),
        step: {"time": [begin + STEPS.get(step, 86_400) * row for row in range(count)], **columns},
    }


@pytest.mark.parametrize("service", ASKED)
def test_every_variable_that_is_asked_for_is_of_the_time_that_its_service_says(service: str) -> None:
    assert ASKED[service] == set(TOLD[service])
    for name, words in TOLD[service].items():
        assert interval_of(name) is KINDS[words.rpartition(" ")[2]], name


def test_every_value_of_days_comes_from_the_hours_that_its_service_says() -> None:
    assert set(TOLD["daily"]) == ASKED_BY_DAY
    for name, words in TOLD["daily"].items():
        variable = words.rpartition(" ")[2]
        # Of what is told at the beginning of an hour the service's own days are from midnight to midnight.
        is_recounted = variable in TOLD["hourly"] and TOLD["hourly"][variable] != "Instant"
        assert (name in DAY_VALUES) == is_recounted, name
        if is_recounted:
            assert DAY_VALUES[name].variable == variable


def test_the_hours_behind_the_values_of_days_are_asked_for() -> None:
    for group, names in queries.DAILY_VARIABLES.items():
        assert {DAY_VALUES[name].variable for name in names if name in DAY_VALUES} == set(queries.HOURS_OF_DAYS[group])
    for past in (queries.PAST_VARIABLES, queries.RECENT_VARIABLES, queries.NORMAL_VARIABLES):
        behind = {DAY_VALUES[name].variable for name in past if name in DAY_VALUES}
        assert behind == set(queries.HOURS_OF_PAST_DAYS)


@pytest.mark.parametrize("step", STEPS)
@given(position=st.integers(0, 20), seconds=st.integers(0, 3599), count=st.integers(2, 25), data=st.data())
def test_a_row_has_what_lies_in_it(step: str, position: int, seconds: int, count: int, data: st.DataObject) -> None:
    """Each value is the row that the service told it at, so what lies between is the difference."""
    names = [name for name in TOLD[step] if name != "weather_code"]
    name = data.draw(st.sampled_from(names))
    length = STEPS[step]
    begin = datetime(2026, 7, 1, tzinfo=UTC).timestamp()
    now = begin + min(position, count - 2) * length + seconds % length
    document = series(step, begin, {name: list(range(count))})
    shown = read_table(document, step, "metric", FROM, now=now)  # pyright: ignore[reportArgumentType]
    moved = interval_of(name) is not Interval.INSTANT
    for time, value in zip(shown.time, shown.values[0], strict=True):
        at = datetime.fromisoformat(time).timestamp()
        assert at + length > now
        assert value == (at - begin) / length + moved
    assert len(shown.time) == count - moved - min(position, count - 2)


def test_a_gap_in_the_hours_is_a_gap_in_the_amounts() -> None:
    document = series("hourly", 0, {"rain": [1, 2, 3, 4], "temperature_2m": [5, 6, 7, 8]})
    document["hourly"]["time"][2] = None
    shown = read_table(document, "hourly", "metric", FROM)
    assert shown.values == [[2, None], [5, 6]]


def test_rain_that_is_over_is_not_in_the_next_hours() -> None:
    nine = datetime(2026, 7, 1, 9, tzinfo=UTC).timestamp()
    document = series("hourly", nine, {"precipitation": [0, 5, 0, 0, 1.5, 0]})
    table = read_table(document, "hourly", "metric", FROM, now=nine + 3900)
    assert summarize(table) == ["precipitation: sum 1.5 mm, first 2026-07-01T12:00+00:00, 1 hours"]


def test_the_services_rows_begin_at_the_same_time() -> None:
    """The Weather Service says the chance of an hour at its beginning, Open-Meteo at its end."""
    ten = datetime(2026, 7, 1, 10, tzinfo=UTC)
    period: dict[str, Any] = {
        "startTime": ten.isoformat(), "endTime": (ten + timedelta(hours=1)).isoformat(), "temperature": 20,
        "temperatureUnit": "C", "probabilityOfPrecipitation": {"unitCode": "wmoUnit:percent", "value": 70},
    }  # fmt: skip
    official = read_forecast({"properties": {"periods": [period]}}, "metric", FROM, UTC, 1, now=ten)
    assert set(official.names) == set(TOLD["nws"])
    document = series("hourly", ten.timestamp(), {"precipitation_probability": [10, 70]})
    model = read_table(document, "hourly", "metric", FROM, now=ten.timestamp())
    assert official.time == model.time
    assert official.values[official.names.index("precipitation_probability")] == model.values[0] == [70]


@pytest.mark.parametrize("day", [date(2026, 3, 29), date(2026, 7, 1), date(2026, 10, 25)])
@pytest.mark.parametrize("name", DAY_VALUES)
def test_a_day_is_from_midnight_to_midnight(day: date, name: str) -> None:
    """In Zürich, where two of these days have 23 and 25 hours; the last hour is told at the beginning of the next."""
    zone = "Europe/Zurich"
    begin = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone)).timestamp()
    end = datetime(day.year, day.month, day.day + 1, tzinfo=ZoneInfo(zone)).timestamp()
    hours = round((end - begin) / 3600)
    variable = DAY_VALUES[name].variable
    amounts: list[Any] = [100, *[1] * hours, 100]
    document: dict[str, Any] = series("hourly", begin, {variable: amounts}, zone) | {
        "daily_units": {name: "mm"}, "daily": {"time": [begin, end], name: [-7, 8]}
    }  # fmt: skip
    expected: float = 1 if name.endswith("_max") else hours
    if name == "shortwave_radiation_sum":
        expected = round(hours * 0.0036, 2)
    shown = read_table(document, "daily", "metric", FROM)
    assert shown.values == [[expected, 8]], "of a day without all its hours the service's own number stands"
    if variable in ("precipitation", "rain", "showers", "snowfall"):
        document["hourly"][variable][2:4] = [-1, -0.5]
        expected = hours - 2
        assert read_table(document, "daily", "metric", FROM).values == [[expected, 8]]
    document["hourly"][variable][5] = None
    document["daily"][name] = [7, 8]
    assert read_table(document, "daily", "metric", FROM).values == [[7, 8]]


def test_present_amounts_say_of_how_many_minutes_they_are() -> None:
    current = {"time": 900, "interval": 900, "precipitation": 0.4, "wind_gusts_10m": 30, "temperature_2m": 4}
    units = {"precipitation": "mm", "wind_gusts_10m": "km/h", "temperature_2m": "°C"}
    reading = read_present({"current": current, "current_units": units}, "metric", FROM)
    assert reading is not None and "precipitation 0.4 mm in the last 15 min, " in reading.text("Now")
    assert reading.periods is not None and set(reading.periods) == {"precipitation", "wind_gusts_10m"}
    reading = read_present({"current": current | {"interval": 3600}, "current_units": units}, "metric", FROM)
    assert reading is not None and reading.periods is not None
    assert reading.periods["precipitation"] == "in the last 60 min"


def test_a_bar_stands_over_its_hour() -> None:
    values: list[Value] = [0, 2, 0]
    document = series("hourly", 0, {"precipitation": [0, 0, 2, 0], "temperature_2m": [1, 2, 3, 4]})
    table = read_table(document, "hourly", "metric", FROM)
    assert table.values[0] == values
    picture = Xml.fromstring(plot.draw_svg(table, "Zürich"))
    rects = [item for item in picture.iter("{http://www.w3.org/2000/svg}rect") if item.get("fill") == "#1d4ed8"]
    (line,) = [item for item in picture.iter("{http://www.w3.org/2000/svg}path") if item.get("stroke") == "#c2410c"]
    points = [float(x) for x in re.findall(r"[ML]([\d.]+)", line.attrib["d"])]
    (bar,) = rects
    left = float(bar.attrib["x"])
    assert points[1] <= left and left + float(bar.attrib["width"]) <= points[2]


@pytest.mark.anyio
async def test_past_days_are_from_midnight_to_midnight(upstream: Upstream) -> None:
    """The service's own days end at 23:00; the rain of the last hour is told at the beginning of the next day."""

    def rain_before_midnight(document: dict[str, Any]) -> None:
        hours = document["hourly"]
        ends = [datetime.fromtimestamp(second, ZoneInfo("Europe/Zurich")) for second in hours["time"]]
        hours["precipitation"] = [5.0 if (end.day, end.hour) == (3, 0) else 0.0 for end in ends]
        document["daily"]["precipitation_sum"] = [0.0, 0.0, 5.0, 0.0][: len(document["daily"]["time"])]

    upstream.fail("/v1/archive", change=rain_before_midnight, times=99)
    async with client(upstream) as found:
        arguments = {"place": "Zurich", "start": "2024-02-01", "end": "2024-02-03"}
        answer = await found.call_tool("get_history", arguments)
    assert answer.structured_content is not None
    days = answer.structured_content["daily"]
    assert days["time"] == ["2024-02-01", "2024-02-02", "2024-02-03"]
    assert days["values"][days["names"].index("precipitation_sum")] == [0, 5, 0]


@pytest.mark.anyio
async def test_a_day_that_is_not_over_is_told(upstream: Upstream) -> None:
    async with client(upstream) as found:
        today = text(await found.call_tool("get_history", {"place": "Zurich", "start": "today"}))
        yesterday = text(await found.call_tool("get_history", {"place": "Zurich", "start": "yesterday"}))
    assert "is not over" in today and "is not over" not in yesterday


@pytest.mark.anyio
async def test_answers_say_what_a_row_means(upstream: Upstream) -> None:
    async with client(upstream) as found:
        for arguments in ({}, {"step": "15-minute"}, {"day": "tomorrow"}):
            result = await found.call_tool("get_forecast", {"place": "Zurich", **arguments})
            assert "Rows begin at their time" in text(result), text(result)
        now = await found.call_tool("get_weather", {"place": "Zurich"})
        assert "mm in the last 15 min" in text(now)
    assert "precipitation" in queries.HOURS_OF_DAYS["basic"]
