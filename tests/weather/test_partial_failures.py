"""One upstream that is down takes nothing else down, and what is missing is said."""

import pytest

from mcp_batteries.errors import Unavailable
from mcp_weather.engine.answers.forecasts import ForecastQuery, fetch_forecast
from mcp_weather.engine.answers.marine import fetch_marine
from mcp_weather.engine.answers.overview import fetch_overview
from weather.serving import World, client, text
from weather.upstream import Upstream

pytestmark = pytest.mark.anyio


async def test_without_open_meteo_the_us_have_their_own_forecast_and_stations(upstream: Upstream) -> None:
    async with client(upstream) as found:
        upstream.fail("/v1/forecast", 500, times=99)
        result = await found.call_tool("get_weather", {"place": "Birmingham", "days": 2})
        assert not result.is_error and result.structured_content is not None
        assert result.structured_content["daily"]["origin"]["source"] == "US National Weather Service"
        assert result.structured_content["observation"]["station"] == "KBHM"
        assert "now" not in result.structured_content
        said = text(result)
        assert "[The present is missing: Open-Meteo answered 500." in said
        assert "[The days are the National Weather Service's forecast: Open-Meteo answered 500." in said
        hours = await found.call_tool("get_forecast", {"place": "Birmingham", "hours": 3})
        assert hours.structured_content is not None and list(hours.structured_content["tables"]) == ["nws"]
        assert "[This is the National Weather Service's forecast" in text(hours)


async def test_elsewhere_the_failure_is_told_with_what_there_is(upstream: Upstream) -> None:
    async with World(upstream) as world:
        cairo = await world.place("Cairo")
        upstream.fail("daily=", 500, times=99)
        found = await fetch_overview(world.engine, cairo, "metric", 3)
        assert found.now is not None and found.daily is None
        assert len(found.notes) == 1 and "is missing: Open-Meteo answered 500" in found.notes[0]
        world.now += 86_400
        upstream.fail("/v1/forecast", 500, times=99)
        stale = await fetch_overview(world.engine, cairo, "metric", 3)
        assert stale.now is not None and stale.now.origin.stale
    async with World(upstream) as world:
        with pytest.raises(Unavailable, match="Open-Meteo answered 500"):
            await fetch_overview(world.engine, cairo, "metric", 3)
        with pytest.raises(Unavailable, match="Open-Meteo answered 500"):
            await fetch_forecast(world.engine, ForecastQuery(cairo, "hourly", ("basic",), 3, "metric"))


async def test_a_river_that_is_missing_leaves_the_waves(upstream: Upstream) -> None:
    async with World(upstream) as world:
        upstream.fail("/v1/flood", 500, times=2)
        found = await fetch_marine(world.engine, await world.place("Zurich"), "metric", 3, river=True)
        assert found.table is not None and found.river is None and "discharge is missing" in found.text()


async def test_normals_that_are_missing_leave_the_days(upstream: Upstream) -> None:
    async with client(upstream) as found:
        upstream.fail("start_date=2003", 500, times=99)
        result = await found.call_tool("get_history", {"place": "Zurich", "start": "2024-01-01", "normals": True})
        assert not result.is_error and result.structured_content is not None
        assert result.structured_content["daily"]["time"] == ["2024-01-01"]
        assert "[The normal weather is missing: Open-Meteo answered 500." in text(result)


async def test_a_geocoder_that_is_down_says_what_still_works(upstream: Upstream) -> None:
    async with client(upstream) as found:
        upstream.fail("/v1/search", 500, times=99)
        result = await found.call_tool("get_weather", {"place": "Zurich"})
        assert result.is_error and "Pass coordinates such as `47.37,8.55` until then" in text(result)
        assert not (await found.call_tool("get_weather", {"place": "47.37,8.55"})).is_error
    async with client(upstream) as found:
        upstream.faults.clear()
        upstream.fail("/v1/", 429, b'{"reason":"Minutely API request limit exceeded."}', times=99)
        result = await found.call_tool("get_weather", {"place": "Zurich"})
        assert result.is_error and "Try again in 60 s" in text(result) and "Pass" not in text(result)
