"""Answers stay small whatever happens out there, and say in numbers what a model would have to work out."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mcp_weather.engine.computed.summary import summarize
from mcp_weather.engine.computed.unit_conversion import convert_values
from mcp_weather.engine.services import nws_documents
from mcp_weather.models import Origin, Table
from weather.serving import client, text
from weather.upstream import Upstream, recording

pytestmark = pytest.mark.anyio
ORIGIN = Origin(source="test", licence="test", fetched_at="2026-01-01T00:00+00:00", age_s=0, stale=False)


def many(count: int, letter: str) -> Any:
    def change(document: dict[str, Any]) -> None:
        [first, *_] = document["features"]
        document["features"] = [
            {
                "properties": {
                    **first["properties"],
                    "id": f"urn:oid:{number}",
                    "severity": ["Minor", "Extreme", "Moderate", "Severe", None][number % 5],
                    "description": letter * 2000,
                    "instruction": letter * 2000,
                    "areaDesc": letter * 1500,
                    "headline": letter * 1500,
                }
            }
            for number in range(count)
        ]

    return change


@pytest.mark.parametrize("letter", ["a", "雪"])
@pytest.mark.parametrize("count", [1, 7, 30])
async def test_alerts_come_worst_first_in_pages_of_ten_kilobytes(upstream: Upstream, count: int, letter: str) -> None:
    upstream.fail("/alerts", times=10**6, change=many(count, letter))
    async with client(upstream) as found:
        cursor: dict[str, str] = {}
        seen: list[tuple[str | None, str]] = []
        for _ in range(count):
            result = await found.call_tool("get_alerts", {"place": "Birmingham", **cursor})
            assert len(result.model_dump_json().encode()) <= 10_000
            data = result.structured_content
            assert data is not None and data["total"] == count
            seen += [(alert.get("severity"), alert["id"]) for alert in data["alerts"]]
            if "next_cursor" not in data:
                break
            assert "[more: `get_alerts` with `cursor`" in text(result)
            cursor = {"cursor": data["next_cursor"]}
        assert len(set(seen)) == len(seen) == count
        ranks = ["Extreme", "Severe", "Moderate", "Minor", None]
        assert [severity for severity, _ in seen] == sorted((item[0] for item in seen), key=ranks.index)
        whole = await found.call_tool("get_weather", {"place": "Birmingham", "days": 3})
        assert len(whole.model_dump_json().encode()) <= 12_000
        other = await found.call_tool("get_alerts", {"place": "47.37,8.55", "cursor": "bm8"})
        assert other.is_error and "was not issued" in text(other)


def test_no_number_is_minus_zero_and_none_is_without_its_unit() -> None:
    for units in ("metric", "imperial", "nautical"):
        for unit in ("°C", "km/h", "mm", "cm", "m"):
            _, values = convert_values("x", [-0.0, -0.0001, -17.77778], unit, units)
            assert all(str(value) not in ("-0", "-0.0") for value in values), (units, unit, values)
    assert convert_values("x", [1.0], "undefined", "metric") == ("", [None])
    assert convert_values("wind_speed_10m", [18.52], "km/h", "nautical") == ("kn", [10.0])
    assert convert_values("temperature_2m", [20.0], "°C", "nautical") == ("°C", [20])


@pytest.mark.parametrize(
    ("said", "speed"),
    [("10 mph", 16.1), ("5 to 10 mph", 16.1), ("9 km/h", 9.0), ("10 kt", 18.5), ("10 furlongs", None)],
)
def test_a_speed_in_a_unit_that_is_not_known_is_not_known(said: str, speed: float | None) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    document = recording("hourly", now.timestamp())
    for period in document["properties"]["periods"]:
        period["windSpeed"] = said
        period["temperatureUnit"] = "R"
    found = nws_documents.read_forecast(document, "metric", ORIGIN, UTC, 2, now=now)
    columns = dict(zip(found.names, found.values, strict=True))
    assert set(columns["wind_speed"]) == {speed} and set(columns["temperature"]) == {None}


def test_a_summary_adds_up_and_says_what_is_missing() -> None:
    table = Table(
        time=["00:00", "01:00", "02:00", "03:00"],
        names=["temperature_2m", "precipitation", "weather", "wind_speed_10m"],
        units=["°C", "mm", "", "km/h"],
        values=[[4, -1.5, 9, None], [0, 0.05, 0.4, 1.1], ["fog", "fog", "rain", "rain"], [None] * 4],
        origin=ORIGIN,
    )
    assert summarize(table) == [
        "temperature_2m: -1.5 (01:00) to 9 °C (02:00); 1 of 4 hours unknown",
        "precipitation: sum 1.55 mm, first 02:00, 2 hours",
    ]


async def test_a_day_is_asked_for_in_words(upstream: Upstream) -> None:
    async with client(upstream) as found:
        result = await found.call_tool("get_forecast", {"place": "Zurich", "day": "tomorrow"})
        data = result.structured_content
        assert data is not None and not result.is_error
        times = data["tables"]["best_match"]["time"]
        day = datetime.fromisoformat(times[0])
        assert len(times) in (23, 24, 25) and {time[:10] for time in times} == {day.date().isoformat()}
        assert any(line.startswith("precipitation: sum ") for line in data["summary"])
        past = await found.call_tool("get_forecast", {"place": "Zurich", "day": "yesterday"})
        assert past.is_error and "Use `get_history`" in text(past)
        late = await found.call_tool(
            "get_forecast", {"place": "Zurich", "day": (day + timedelta(days=20)).date().isoformat()}
        )
        assert late.is_error and "Ask for an earlier day" in text(late)
        both = await found.call_tool("get_forecast", {"place": "Zurich", "day": "today", "hours": 3})
        assert both.is_error and "goes with" in text(both)
        both = await found.call_tool("get_forecast", {"place": "Zurich", "days": 2, "hours": 3})
        assert both.is_error and "can't be used together" in text(both)


async def test_hours_and_days_that_agree_are_one_span(upstream: Upstream) -> None:
    """A model in a strict mode fills both."""
    async with client(upstream) as found:
        both = await found.call_tool("get_forecast", {"place": "Zurich", "days": 2, "hours": 48})
        hours = await found.call_tool("get_forecast", {"place": "Zurich", "hours": 48})
        assert not both.is_error and text(both) == text(hours)


async def test_the_weather_names_where_the_air_is(upstream: Upstream) -> None:
    async with client(upstream) as found:
        assert "`get_air_quality`" in text(await found.call_tool("get_weather", {"place": "Zurich"}))
