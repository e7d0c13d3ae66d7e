"""What the tools answer: complete twice, in the promised shape, within the promised size."""

import base64
import json
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from jsonschema import Draft202012Validator

from mcp_weather.engine.answers.forecasts import ForecastQuery, fetch_day, fetch_forecast
from mcp_weather.engine.answers.history import (
    _ReferenceValues,  # pyright: ignore[reportPrivateUsage]
    fetch_history,
)
from mcp_weather.engine.answers.local_time import find_local_time
from mcp_weather.engine.answers.overview import fetch_overview
from mcp_weather.engine.computed.astronomy import EVENTS
from mcp_weather.policy.days import WrittenDay
from mcp_weather.server import build
from tools.docs import snapshot
from weather.serving import World, client, settings, text
from weather.upstream import Upstream

pytestmark = pytest.mark.anyio

ALL = ["basic", "wind", "precipitation", "sky", "comfort", "soil"]
SOME = ["best_match", "ecmwf_ifs025", "icon_seamless", "ncep_gfs_seamless"]
OTHERS = ["meteofrance_seamless", "cmc_gem_seamless", "ukmo_seamless", "jma_seamless"]
PAST = {"start": "2024-02-28", "end": "2024-03-01", "normals": True}
CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("get_weather", {"place": "Birmingham, Alabama", "days": 16}, "Observed at station KBHM"),
    ("get_weather", {"place": "Zurich", "units": "imperial"}, "temperature 50 °F"),
    ("get_forecast", {"place": "Zurich", "hours": 168, "variables": ALL}, "dew_point_2m"),
    ("get_forecast", {"place": "Zurich", "step": "daily", "days": 16, "variables": ALL}, "uv_index_max"),
    ("get_forecast", {"place": "Zurich", "models": SOME}, "Model ncep_gfs_seamless"),
    ("get_forecast", {"place": "Zurich", "models": OTHERS}, "Model jma_seamless"),
    ("get_forecast", {"place": "Birmingham", "source": "nws"}, "US National Weather Service"),
    ("get_forecast", {"place": "Birmingham", "source": "nws", "step": "daily", "units": "imperial"}, "°F"),
    ("get_alerts", {"place": "Birmingham"}, "Blizzard Warning"),
    ("get_alerts", {"place": "Zurich"}, "None in effect, says MeteoAlarm"),
    ("get_alerts", {"place": "Toronto"}, "freezing rain warning"),
    ("get_alerts", {"place": "Cairo"}, "Not known"),
    ("get_air_quality", {"place": "Zurich", "pollen": True, "hours": 168}, "birch_pollen"),
    ("get_marine", {"place": "-16.8,180", "river": True, "units": "imperial"}, "ft³/s"),
    ("get_history", {"place": "Zurich", **PAST}, "Normal (1991-2020)"),
    ("get_astronomy", {"place": "Zurich"}, "sunrise"),
    ("get_forecast", {"place": "Zurich", "step": "15-minute"}, "precipitation: sum"),
    ("get_forecast", {"place": "Zurich", "hours": 30, "spread": True}, "temperature_2m_p90"),
    ("get_metar", {"place": "Zurich"}, "METAR: LSMD 221450Z"),
    ("get_metar", {"place": "KBHM", "units": "imperial"}, "TAF: TAF KBHM"),
    ("find_place", {"query": "Paris"}, "Texas"),
    ("find_place", {"query": "Munchen"}, "Bayern"),
    ("find_place", {"query": "47.37,8.55", "language": "de"}, "coordinates"),
    ("find_place", {}, "0 places"),
]


@pytest.mark.share(8)
@pytest.mark.parametrize(
    ("name", "arguments", "words"), CALLS, ids=lambda value: value if isinstance(value, str) else None
)
async def test_an_answer_is_complete_as_data_and_as_text(
    name: str, arguments: dict[str, Any], words: str, upstream: Upstream
) -> None:
    async with client(upstream) as found:
        tool = next(item for item in (await found.list_tools()).tools if item.name == name)
        result = await found.call_tool(name, arguments)
        assert not result.is_error, text(result)
        assert words in text(result)
        assert tool.output_schema is not None
        validator: Any = Draft202012Validator(tool.output_schema)
        validator.validate(result.structured_content)
        for origin in origins(result.structured_content):
            assert {"source", "licence", "fetched_at", "age_s", "stale"} <= origin.keys()
            assert datetime.fromisoformat(origin["fetched_at"]).tzinfo is not None


def origins(node: Any) -> list[Any]:
    if isinstance(node, dict):
        here = [node["origin"]] if "origin" in node else []
        return here + [found for value in node.values() for found in origins(value)]
    if isinstance(node, list):
        return [found for value in node for found in origins(value)]
    return []


async def test_every_value_has_a_name_a_unit_and_a_time_with_its_zone(upstream: Upstream) -> None:
    async with World(upstream) as world:
        zurich = await world.place("Zurich")
        found = await fetch_overview(world.engine, zurich, "metric", 3)
        assert found.now is not None and found.now.observed_at is not None
        assert (
            datetime.fromisoformat(found.now.observed_at).utcoffset()
            == datetime.now(ZoneInfo("Europe/Zurich")).replace(month=7).utcoffset()
        )
        assert len(found.now.names) == len(found.now.units) == len(found.now.values)
        hourly = (await fetch_forecast(world.engine, ForecastQuery(zurich, "hourly", ("basic",), 5, "metric"))).tables[
            "best_match"
        ]
        assert len(hourly.time) == 5 and all(datetime.fromisoformat(time).tzinfo for time in hourly.time)
        assert all(len(values) == 5 for values in hourly.values)
        assert hourly.units[hourly.names.index("temperature_2m")] == "°C"


async def test_hours_begin_with_this_one_and_days_with_today_also_after_midnight(upstream: Upstream) -> None:
    at = datetime(2026, 9, 21, 23, 50, tzinfo=ZoneInfo("Europe/Zurich")).timestamp()
    async with World(upstream, now=at) as world:
        zurich = await world.place("Zurich")

        async def first(step: str) -> str:
            found = await fetch_forecast(world.engine, ForecastQuery(zurich, step, ("basic",), 3, "metric"))
            return found.tables["best_match"].time[0]

        assert await first("hourly") == "2026-09-21T23:00+02:00"
        assert await first("daily") == "2026-09-21"
        world.now += 20 * 60
        # The document is from before midnight, its upstream is down: what is past is left out all the same.
        upstream.fail("/v1/forecast", 500, times=99)
        assert await first("hourly") == "2026-09-22T00:00+02:00"
        assert await first("daily") == "2026-09-22"


async def test_less_is_served_from_what_more_was_asked_for(upstream: Upstream) -> None:
    async with World(upstream) as world:
        zurich = await world.place("Zurich")
        for hours in (48, 24, 1):
            await fetch_forecast(world.engine, ForecastQuery(zurich, "hourly", ("basic",), hours, "metric"))
            await fetch_forecast(world.engine, ForecastQuery(zurich, "hourly", ("basic",), hours, "imperial"))
        assert upstream.count("/v1/forecast") == 1


async def test_normals_are_means_of_the_same_days_of_thirty_years(upstream: Upstream) -> None:
    async with World(upstream) as world:
        start, end = "2024-02-28", "2024-03-01"
        zurich = await world.place("Zurich")
        here = await find_local_time(world.engine, zurich)
        days = WrittenDay(start).until(WrittenDay(end), today=here.today, max_days=14)
        found = await fetch_history(world.engine, zurich, days, here, "metric", normals=True)
        assert found.normals is not None
        assert found.normals.time == ["02-28", "02-29", "03-01"]
        # In the years without a leap day the first of March is the second day, in the eight with one the third.
        expected = [10.0, 10.1, round((22 * 10.1 + 8 * 10.2) / 30, 3)]
        assert found.normals.values[0] == expected
        assert upstream.count("/v1/archive") == 31
        assert not any("30 years" in note for note in found.notes)


def test_means_of_fewer_years_are_counted() -> None:
    values = {("rain", "02-28"): [1.0] * 30, ("rain", "02-29"): [1.0] * 8, ("rain", "03-01"): [1.0] * 12}
    reference = _ReferenceValues(values)
    assert reference.count_fewest_years(["02-28", "02-29"]) == 30
    assert reference.count_fewest_years(["02-28", "03-01"]) == 12


@pytest.mark.parametrize(
    ("place", "day", "sun"),
    [
        ("Longyearbyen", "2026-06-21", "polar day"), ("Longyearbyen", "2026-12-21", "polar night"),
        ("Longyearbyen", "2026-09-21", "rises and sets"), ("90,0", "2026-06-21", "polar day"),
        ("-90,0", "2026-06-21", "polar night"), ("Zurich", "2026-06-21", "rises and sets"),
        ("0,180", "2026-03-20", "rises and sets"), ("Somewhere", "2026-01-01", "rises and sets"),
    ],
)  # fmt: skip
async def test_polar_day_and_night_are_said_as_such(place: str, day: str, sun: str, upstream: Upstream) -> None:
    async with World(upstream) as world:
        found = await world.sky(place, day)
        assert found.sun == sun
        times = dict(zip(found.names, found.times, strict=True))
        assert tuple(times) == EVENTS
        assert (times["sunrise"] is None) == (sun != "rises and sets")
        # Whatever happens, happens on that day of the place's own.
        assert all(time is None or time.startswith(day) for time in times.values())
        assert found.day_length_s == {"polar day": 86_400, "polar night": 0}.get(sun, found.day_length_s)


async def test_sun_and_moon_agree_with_an_almanac(upstream: Upstream) -> None:
    """Zurich on 21 June 2024: sunrise 5:29, sunset 21:26; full moon on 22 June at 01:08 UTC."""
    async with World(upstream) as world:
        found = await world.sky("Zurich", "2024-06-21")
        times = dict(zip(found.names, found.times, strict=True))
        for name, expected in (("sunrise", "2024-06-21T05:29+02:00"), ("sunset", "2024-06-21T21:26+02:00")):
            off = datetime.fromisoformat(str(times[name])) - datetime.fromisoformat(expected)
            assert abs(off.total_seconds()) <= 180
        assert found.moon_phase == "waxing gibbous"
        assert (await world.sky("Zurich", "2024-06-22")).moon_phase == "full moon"


async def test_the_picture_is_a_png_with_a_text_beside_it(upstream: Upstream) -> None:
    async with client(upstream) as found:
        result = await found.call_tool("plot_forecast", {"place": "Zurich", "units": "imperial"})
        kinds = [block.type for block in result.content]
        assert kinds == ["text", "image"]
        image: Any = result.content[1]
        data = base64.b64decode(image.data)
        assert image.mime_type == "image/png" and data.startswith(b"\x89PNG") and 10_000 < len(data) < 300_000
        width, height = int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
        assert (width, height) == (1000, 700)


def test_the_list_of_tools_costs_3700_tokens_at_most(upstream: Upstream) -> None:
    seen = snapshot(build(settings(upstream, "--cache", "memory")))
    # Of them 400 are `call_tools` and `list_changes`, which every server has.
    assert seen["bytes"]["tools_list"] / 4 <= 3700
    assert seen["bytes"]["name_description_input_schema"] / 4 <= 2080
    for tool in seen["tools"]:
        if tool["name"] in ("call_tools", "list_changes"):
            continue
        assert tool["outputSchema"]["type"] == "object" and tool["annotations"]["readOnlyHint"]


async def test_resources_say_until_when_a_second_read_is_pointless(upstream: Upstream) -> None:
    async with client(upstream) as found:
        for kind in ("now", "hourly", "daily", "alerts", "air"):
            read = await found.read_resource(f"weather://33.521,-86.812/{kind}")
            assert read.ttl_ms and read.ttl_ms > 0 and read.cache_scope == "public"
            content: Any = read.contents[0]
            assert json.loads(content.text)["place"]["timezone"] == "America/Chicago"
        upstream.fail("current=", 500, times=9)


async def test_names_are_completed(upstream: Upstream, tmp_path: Any) -> None:
    path = tmp_path / "places.toml"
    path.write_text("[spring_house]\nlatitude = 1\nlongitude = 1\n", "utf-8")
    async with World(upstream, "--places", path) as world:
        from mcp_weather.completions import Completions

        rooms = Completions(world.policy, "en")
        assert await rooms.complete_place("spring", {}) == ["spring_house"]
        assert await rooms.complete_place("springf", {}) == [
            "Springfield, Missouri, United States",
            "Springfield, Illinois, United States",
            "Springfield, Massachusetts, United States",
        ]
        assert await rooms.complete_place("xy", {}) == []
        upstream.fail("/v1/search", 500, times=9)
        assert await rooms.complete_place("nothing at all", {}) == []


def test_paying_users_have_hosts_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from mcp_batteries.settings import load
    from mcp_weather.settings import Settings

    found = load(Settings, ["--open-meteo-key", "k", "--marine-url", "https://marine.example.org/"])
    assert found.forecast_url == "https://customer-api.open-meteo.com"
    assert found.marine_url == "https://marine.example.org"
    assert found.nws_url == "https://api.weather.gov"
    with pytest.raises(SystemExit):
        load(Settings, ["--nws-url", "api.weather.gov"])
    monkeypatch.setenv("MCP_WEATHER_OPEN_METEO_KEY", "k")
    assert load(Settings, found.arguments()) == found
    assert "k" not in found.arguments()


@pytest.mark.parametrize(
    ("span", "step", "rows"),
    [
        ({}, "hourly", 24),
        ({"hours": 3}, "hourly", 3),
        ({"days": 3}, "daily", 3),
        ({"step": "daily"}, "daily", 7),
        ({"step": "Daily", "hours": 30}, "daily", 2),
        ({"step": "hourly", "days": 3}, "hourly", 72),
        ({"step": "hourly", "days": 16}, "hourly", 168),
    ],
)
async def test_a_span_is_taken_in_the_step_it_is_told_in(
    upstream: Upstream, span: dict[str, Any], step: str, rows: int
) -> None:
    async with client(upstream) as found:
        data = (await found.call_tool("get_forecast", {"place": "Zurich", **span})).structured_content
        assert data is not None
        assert data["step"] == step and len(data["tables"]["best_match"]["time"]) == rows


@pytest.mark.parametrize(
    ("tool", "more", "most"),
    [
        ("get_forecast", {"step": "hourly", "days": 8}, "168 hours, as many as there can be here, of the 192"),
        ("get_forecast", {"step": "15-minute", "hours": 30}, "24 hours, as many as there can be here, of the 30"),
        ("get_air_quality", {"hours": 168}, "144 hours, as many as there can be here, of the 168"),
        ("get_marine", {"hours": 168}, "144 hours, as many as there can be here, of the 168"),
    ],
)
async def test_a_span_that_is_cut_is_told(upstream: Upstream, tool: str, more: dict[str, Any], most: str) -> None:
    async with client(upstream) as found:
        assert most in text(await found.call_tool(tool, {"place": "Zurich", **more}))
        less = {"hours": 24} if "hours" in more else {"step": "hourly", "days": 7}
        assert "as many as" not in text(await found.call_tool(tool, {"place": "Zurich", **more, **less}))


@pytest.mark.parametrize("query", ["Paris, Texas", "Paris Texas", "Paris TX"])
async def test_a_place_is_found_where_it_is_said_to_be(upstream: Upstream, query: str) -> None:
    async with client(upstream) as found:
        listed: Any = (await found.call_tool("find_place", {"query": query})).structured_content
        assert [row[0] for row in listed["rows"]] == ["Paris, Texas, United States"]
        everywhere: Any = (await found.call_tool("find_place", {"query": "Paris, Atlantis"})).structured_content
        assert len(everywhere["rows"]) == 2


async def test_one_source_is_told_once(upstream: Upstream) -> None:
    async with client(upstream) as found:
        said = text(await found.call_tool("get_air_quality", {"place": "Zurich", "hours": 2}))
        assert said.count("Source: ") == 1 and "pm2.5" in said


async def test_days_are_told_in_words(upstream: Upstream) -> None:
    async with client(upstream) as found:
        past = (await found.call_tool("get_history", {"place": "Zurich", "start": "yesterday"})).structured_content
        sky = (await found.call_tool("get_astronomy", {"place": "Zurich", "date": "tomorrow"})).structured_content
        assert past is not None and sky is not None and past["daily"]["time"][0] < sky["date"]


@pytest.mark.parametrize(
    ("day", "now", "hours"),
    [
        ("2026-10-25", "2026-10-25T00:00", 25), ("2026-10-25", "2026-10-24T00:30", 25),
        ("2026-10-26", "2026-10-25T00:00", 24), ("2026-03-29", "2026-03-29T00:00", 23),
        ("2026-03-30", "2026-03-29T00:59", 24), ("2026-10-25", "2026-10-20T12:00", 25),
        ("2026-10-25", "2026-10-25T04:30", 20), ("2026-12-31", "2026-12-31T23:59", 1),
        ("2027-01-01", "2026-12-31T00:00", 24),
    ],
)  # fmt: skip
async def test_a_day_has_all_of_its_hours(day: str, now: str, hours: int, upstream: Upstream) -> None:
    at = datetime.fromisoformat(now).replace(tzinfo=ZoneInfo("Europe/Zurich")).timestamp()
    async with World(upstream, now=at) as world:
        zurich = await world.place("Zurich")
        found = await fetch_day(world.engine, zurich, ("basic",), WrittenDay(day), "metric")
        times = found.tables["best_match"].time
        assert len(times) == hours and times[-1].startswith(f"{day}T23:00")


async def test_days_that_the_archive_does_not_have_yet_are_the_forecasts(upstream: Upstream) -> None:
    def late(document: dict[str, Any]) -> None:
        for name, values in document["daily"].items():
            if name != "time":
                values[2:] = [None] * len(values[2:])
        rain = document["hourly"]["precipitation"]
        rain[48:] = [None] * len(rain[48:])

    async with client(upstream) as found:
        upstream.fail("/v1/archive", change=late, times=9)
        answer = await found.call_tool("get_history", {"place": "Zurich", "start": "4 days ago", "end": "yesterday"})
        data = answer.structured_content
        assert data is not None
        shown = dict(zip(data["daily"]["names"], data["daily"]["values"], strict=True))
        assert shown["temperature_2m_max"] == [10, 10.1, 10, 10.1] and shown["temperature_2m_mean"][2:] == [None, None]
        days = ", ".join(data["daily"]["time"][2:])
        assert f"[From the forecasts' models: the archive does not have {days} yet.]" in data["notes"]
        # What is missing of an old day is not asked for there: it would not be known.
        old = await found.call_tool("get_history", {"place": "Zurich", "start": "2020-05-01", "end": "2020-05-04"})
        assert "forecasts' models" not in text(old) and "null are not known" in text(old)
        upstream.fail("daily=weather_code,temperature_2m_max", 500, times=9)
        gone = await found.call_tool("get_history", {"place": "Zurich", "start": "9 days ago", "end": "7 days ago"})
        assert not gone.is_error and "yet. Open-Meteo answered 500" in text(gone)
