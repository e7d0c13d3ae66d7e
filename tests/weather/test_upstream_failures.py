"""What goes wrong out there: each has its own outcome, and the next call works."""

import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest
from mcp import MCPError
from pydantic import BaseModel

from mcp_batteries.errors import Invalid, NotFound, Unavailable
from mcp_weather.engine.answers.air_quality import fetch_air_quality
from mcp_weather.engine.answers.forecasts import ForecastQuery, add_spread, fetch_forecast, fetch_quarter_hours
from mcp_weather.engine.answers.local_time import find_local_time
from mcp_weather.engine.answers.marine import fetch_marine
from mcp_weather.engine.answers.overview import fetch_overview
from mcp_weather.engine.engine import Engine
from mcp_weather.engine.gather import attempt
from mcp_weather.models import Forecast, Table
from mcp_weather.policy.place import Place
from weather.garbled import KINDS, Trial
from weather.serving import World, client, text
from weather.upstream import BIRMINGHAM, Upstream

pytestmark = pytest.mark.anyio
ALERTS = f"point={BIRMINGHAM}"


async def test_an_unknown_place_is_no_place_and_not_an_empty_answer(upstream: Upstream) -> None:
    async with World(upstream) as world:
        with pytest.raises(NotFound, match="No place is called `Atlantis`"):
            await world.place("Atlantis")
        with pytest.raises(NotFound, match=r"`Paris, Ohio`.*Of that name there are: .*Texas"):
            await world.place("Paris, Ohio")
        assert (await world.place("Zurich")).country == "CH"


async def test_an_ambiguous_name_lists_its_places_in_words_that_work(upstream: Upstream) -> None:
    async with World(upstream) as world:
        with pytest.raises(Invalid) as caught:
            await world.place("springfield")
        for state in ("Missouri", "Illinois", "Massachusetts"):
            name = f"Springfield, {state}, United States"
            assert f"`{name}`" in str(caught.value)
            assert (await world.place(name)).name == name
        assert (await world.place("springfield, IL")).name == "Springfield, Illinois, United States"
        largest = await world.place("Paris")
        assert largest.country == "FR" and "Texas" in largest.resolved


async def test_poles_and_date_line_are_places(upstream: Upstream) -> None:
    async with World(upstream) as world:
        for words in ("90,0", "-90,135", "0,180", "0,-180", "-16.8,179.99999", "89.99999,20"):
            found = await fetch_overview(world.engine, await world.place(words), "metric", 2)
            assert found.daily is not None and len(found.daily.time) == 2
        assert (await world.place("0,-180")).coordinates == (await world.place("0,180")).coordinates == "0,180"
        assert (await world.place("-90,135")).coordinates == "-90,0"


async def test_outside_its_coverage_the_weather_service_is_not_said_to_have_no_alerts(upstream: Upstream) -> None:
    async with World(upstream) as world:
        # In the sea beside Florida: only the Service itself can tell, and says 404.
        beside = await world.engine.alerts.fetch(await world.place("27.5,-79.0"))
        assert beside.status == "not_covered" and upstream.count("/points/27.5,-79") == 1
        abroad = await world.engine.alerts.fetch(await world.place("Cairo"))
        assert abroad.status == "not_covered" and upstream.count("/points/") == 1
        assert (await world.engine.alerts.fetch(await world.place("Birmingham"))).status == "alerts"
        upstream.alerts = False
        world.now += 3600
        assert (await world.engine.alerts.fetch(await world.place("Birmingham"))).status == "none"
        with pytest.raises(NotFound, match="does not cover"):
            await world.engine.nws.fetch_forecast(await world.place("27.5,-79.0"), "hourly", 3, "metric")


@pytest.mark.parametrize("status", [500, 503])
async def test_a_weather_service_that_fails_is_tried_once_more_then_told_apart_from_no_alerts(
    upstream: Upstream, status: int
) -> None:
    async with World(upstream) as world:
        birmingham = await world.place("Birmingham")
        upstream.fail(ALERTS, status)
        assert (await world.engine.alerts.fetch(birmingham)).status == "alerts"
        assert upstream.count(ALERTS) == 2
    upstream.requests.clear()
    async with World(upstream) as world:
        upstream.fail(ALERTS, status, times=2)
        failed = await world.engine.alerts.fetch(birmingham)
        assert failed.status == "unavailable" and str(status) in failed.explanation
        assert "could not be asked" in failed.text() and "None" not in failed.text()
        assert (await world.engine.alerts.fetch(birmingham)).status == "alerts"


async def test_alerts_that_fail_do_not_take_the_weather_along(upstream: Upstream) -> None:
    async with World(upstream) as world:
        upstream.fail("/points/", 500, times=99)
        found = await fetch_overview(world.engine, await world.place("Birmingham"), "metric", 2)
        assert found.alerts.status == "alerts" and found.observation is None
        assert found.now is not None and found.now.values[0] == 10
        upstream.fail("/alerts/", 500, times=99)
        world.now += 3600
        found = await fetch_overview(world.engine, await world.place("Birmingham"), "metric", 2)
        assert "could not" not in found.alerts.explanation and "last looked at" in found.alerts.explanation


async def test_the_last_good_answer_is_served_stale(upstream: Upstream) -> None:
    async with World(upstream) as world:
        zurich = await world.place("Zurich")
        await world.engine.open_meteo.fetch_present(zurich, "metric")
        world.now += 3600
        upstream.fail("current=", 502, times=2)
        now = (await world.engine.open_meteo.fetch_present(zurich, "metric")).reading
        assert now.origin.stale and now.origin.age_s == 3600 and "502" in (now.origin.reason or "")
        assert "STALE: 3600 s old" in now.text("Now")
        fresh = (await world.engine.open_meteo.fetch_present(zurich, "metric")).reading
        assert not fresh.origin.stale and fresh.origin.age_s == 0


@pytest.mark.parametrize(
    ("headers", "reason", "wait"),
    [
        ((("retry-after", "17"),), "Minutely API request limit exceeded.", 17),
        ((("retry-after", "Mon, 21 Sep 2026 15:13:40 GMT"),), "", 300),
        ((), "Minutely API request limit exceeded. Please try again in one minute.", 60),
        ((), "Hourly API request limit exceeded. Please try again in the next hour.", 3080),
        ((), "Daily API request limit exceeded. Please try again tomorrow.", 31880),
    ],
)
async def test_too_many_requests_stops_all_of_open_meteo_until_then_and_nothing_else(
    upstream: Upstream, headers: tuple[tuple[str, str], ...], reason: str, wait: int
) -> None:
    now = datetime(2026, 9, 21, 15, 8, 40, tzinfo=UTC).timestamp()
    async with World(upstream, now=now) as world:
        zurich = await world.place("Zurich")
        upstream.fail("current=", 429, b'{"error":true,"reason":"%s"}' % reason.encode(), headers=headers)
        for _ in range(3):
            with pytest.raises(Unavailable) as caught:
                await world.engine.open_meteo.fetch_present(zurich, "metric")
            assert round(caught.value.retry_after or 0) == wait
        with pytest.raises(Unavailable):
            await fetch_air_quality(world.engine, zurich, "metric", 24, pollen=False)
        assert upstream.count("/v1/forecast") == 1 and upstream.count("/v1/air") == 0
        assert (await world.engine.alerts.fetch(await world.place(BIRMINGHAM))).status == "alerts"
        world.now += wait
        assert (await world.engine.open_meteo.fetch_present(zurich, "metric")).reading.values[0] == 10


async def test_the_free_limit_is_kept_before_the_upstream_must_say_so(upstream: Upstream) -> None:
    async with World(upstream, now=1_790_000_040.0) as world:
        zurich = await world.place("Zurich")
        world.cache.store.update("open-meteo budget", lambda _: {"60": [1_790_000_040 // 60, 600.0]})
        with pytest.raises(Unavailable, match="free limit") as caught:
            await world.engine.open_meteo.fetch_present(zurich, "metric")
        assert 0 < (caught.value.retry_after or 0) <= 60
        assert upstream.count("/v1/forecast") == 0
        world.now += 60
        assert await world.engine.open_meteo.fetch_present(zurich, "metric")
    async with World(upstream, "--open-meteo-key", "hunter2") as world:
        upstream.violations.clear()
        world.cache.store.update("open-meteo budget", lambda _: {"60": [world.now // 60, 600.0]})
        await world.engine.open_meteo.fetch_present(zurich, "metric")
        assert "apikey=hunter2" in upstream.requests[-1]


async def test_a_time_out_says_so_and_the_next_call_works(upstream: Upstream) -> None:
    async with World(upstream, "--timeout", 1) as world:
        zurich = await world.place("Zurich")
        hold = threading.Event()
        upstream.fail("current=", hold=hold)
        with pytest.raises(Unavailable, match="did not answer within 1 s"):
            await world.engine.open_meteo.fetch_present(zurich, "metric")
        hold.set()
        assert await world.engine.open_meteo.fetch_present(zurich, "metric")


@pytest.mark.parametrize(
    "body",
    [
        b"<html>Bad gateway</html>",
        b"",
        b'{"latitude":',
        b"[]",
        b"null",
        b'{"error":true,"reason":"?"}',
        b"\xff",
        b"[" * 9000,
    ],
)
async def test_what_is_no_answer_is_not_passed_on_as_one(upstream: Upstream, body: bytes) -> None:
    async with World(upstream) as world:
        zurich = await world.place("Zurich")
        upstream.fail("current=", 200, body)
        with pytest.raises(Unavailable, match="Open-Meteo sent"):
            await world.engine.open_meteo.fetch_present(zurich, "metric")
        assert await world.engine.open_meteo.fetch_present(zurich, "metric")


async def test_a_connection_that_breaks_is_tried_once_more(upstream: Upstream) -> None:
    async with World(upstream) as world:
        zurich = await world.place("Zurich")
        upstream.fail("current=", cut=True)
        assert await world.engine.open_meteo.fetch_present(zurich, "metric")
        assert upstream.count("current=") == 2


async def test_an_upstream_that_is_not_there(upstream: Upstream) -> None:
    async with World(upstream, "--forecast-url", "http://127.0.0.1:9") as world:
        with pytest.raises(Unavailable, match=r"Open-Meteo cannot be reached: .*\. Try again in a moment\."):
            await world.engine.open_meteo.fetch_present(await world.place("Zurich"), "metric")


async def test_a_refused_question_is_told_in_the_words_of_the_upstream(upstream: Upstream) -> None:
    async with World(upstream) as world:
        zurich = await world.place("Zurich")
        upstream.fail("current=", 400, b'{"error":true,"reason":"No data is available for this location"}')
        with pytest.raises(Invalid, match="No data is available for this location"):
            await world.engine.open_meteo.fetch_present(zurich, "metric")


def lose(*names: str) -> Any:
    def change(document: dict[str, Any]) -> None:
        for part in ("current", "hourly", "daily"):
            for name in names:
                if name in document.get(part, {}):
                    known = document[part][name]
                    document[part][name] = [None] * len(known) if isinstance(known, list) else None

    return change


async def test_a_missing_value_is_null_and_never_nothing_or_good(upstream: Upstream) -> None:
    async with client(upstream) as found:
        upstream.fail("air-quality", change=lose("european_aqi", "pm10"))
        air = await found.call_tool("get_air_quality", {"place": "Zurich"})
        assert air.structured_content is not None
        now = air.structured_content["now"]
        assert now["values"][now["names"].index("european_aqi")] is None
        assert "category" not in air.structured_content and "index: unknown" in text(air)
        assert "good" not in text(air)
        hourly = air.structured_content["hourly"]
        assert set(hourly["values"][hourly["names"].index("pm10")]) == {None}
        upstream.fail("hourly=temp", change=lose("temperature_2m"))
        forecast = await found.call_tool("get_forecast", {"place": "Zurich", "hours": 3})
        assert "has no temperature_2m here" in text(forecast)
        assert forecast.structured_content is not None
        assert forecast.structured_content["tables"]["best_match"]["values"][0] == [None, None, None]


@pytest.mark.parametrize(
    ("tool", "more", "at", "value"),
    [
        ("get_weather", {}, ("utc_offset_seconds",), "NaN"),
        ("get_weather", {}, ("current", "interval"), "Unknown"),
        ("get_weather", {}, ("current",), -1),
        ("get_forecast", {}, ("hourly", "time", 0), 1e300),
        ("get_history", {"start": "2025-01-01"}, ("daily", "time", 0), float("nan")),
        ("get_marine", {}, ("hourly", "time", 0), float("inf")),
    ],
)
async def test_an_answer_of_another_kind_is_the_service_s_fault(
    tool: str, more: dict[str, Any], at: tuple[Any, ...], value: Any, upstream: Upstream
) -> None:
    def change(document: dict[str, Any]) -> None:
        document["timezone"] = None
        inside: Any = document
        with suppress(KeyError, TypeError):  # Not every answer has it.
            for name in at[:-1]:
                inside = inside[name]
            inside[at[-1]] = value

    async with client(upstream) as found:
        upstream.fail("/v1/", change=change, times=9)
        answer = await found.call_tool(tool, {"place": "47.37,8.55", **more})
        assert "failed inside" not in text(answer)


async def test_a_picture_of_what_is_partly_missing_is_still_one(upstream: Upstream) -> None:
    async with client(upstream) as found:
        upstream.fail("hourly=", change=lose("precipitation", "wind_gusts_10m"))
        drawn = await found.call_tool("plot_forecast", {"place": "Zurich", "hours": 24})
        assert not drawn.is_error, text(drawn)


async def test_series_that_do_not_fit_together_are_refused(upstream: Upstream) -> None:
    def shorten(document: dict[str, Any]) -> None:
        document["hourly"]["temperature_2m"].pop()

    async with World(upstream) as world:
        upstream.fail("hourly=", change=shorten)
        with pytest.raises(Unavailable, match="different lengths"):
            await fetch_forecast(
                world.engine, ForecastQuery(await world.place("Zurich"), "hourly", ("basic",), 3, "metric")
            )


async def test_one_model_that_fails_does_not_take_the_others_along(upstream: Upstream) -> None:
    async with World(upstream) as world:
        upstream.fail("models=icon", 500, times=2)
        zurich = await world.place("Zurich")
        query = ForecastQuery(zurich, "daily", ("basic",), 2, "metric", ("best_match", "icon_seamless"))
        found = await fetch_forecast(world.engine, query)
        assert list(found.tables) == ["best_match"] and "icon_seamless is missing" in found.notes[0]


async def test_an_old_observation_and_one_without_a_time_are_not_the_present(upstream: Upstream) -> None:
    def at(moment: str) -> Any:
        return lambda document: document["properties"].update(timestamp=moment)

    async with World(upstream) as world:
        birmingham = await world.place("Birmingham")
        upstream.fail("KBHM", change=at("0001-01-01T00:00:00+00:00"))
        with pytest.raises(Unavailable, match="KBHM"):
            await world.engine.nws.fetch_observation(birmingham, "metric")
        world.now += 3600
        old = datetime.fromtimestamp(world.now - 5 * 3600, UTC).isoformat()
        upstream.fail("KBHM", change=at(old))
        found = await world.engine.nws.fetch_observation(birmingham, "metric")
        assert found is not None and found.origin.stale and "5 h ago" in (found.origin.reason or "")


async def test_many_callers_at_once_are_one_request(upstream: Upstream) -> None:
    async with client(upstream) as found, anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(found.call_tool, "get_weather", {"place": "47.37,8.55"})
    assert upstream.count("current=") == 1


async def test_sea_and_no_sea(upstream: Upstream) -> None:
    def dry(document: dict[str, Any]) -> None:
        for name in [*document["hourly"], *document["current"]]:
            if name not in ("time", "interval"):
                lose(name)(document)

    async with World(upstream) as world:
        zurich = await world.place("Zurich")
        assert (await fetch_marine(world.engine, zurich, "metric", 3, river=True)).river is not None
        world.now += 86_400
        upstream.fail("/v1/marine", change=dry, times=99)
        found = await fetch_marine(world.engine, zurich, "metric", 3, river=False)
        assert found.table is None and found.now is None and "No sea here" in found.explanation
        assert upstream.count("/v1/marine") == 1 + 1 + 16
        upstream.faults.clear()
        world.now += 86_400
        # What was not looked at may well be sea.
        upstream.fail("/v1/marine", change=dry)
        upstream.fail("/v1/marine", 400, b'{"error":true,"reason":"Not now."}', times=99)
        found = await fetch_marine(world.engine, zurich, "metric", 3, river=False)
        assert "is not known, 16 of 16 points can't be asked" in found.explanation and "Not now" in found.explanation
        upstream.faults.clear()
        world.now += 86_400
        # Only the second ring has sea, and there the nearest in the order of the compass.
        upstream.fail("/v1/marine", change=dry, times=9)
        near = await fetch_marine(world.engine, zurich, "metric", 3, river=False)
        assert near.table is not None and near.now is not None
        assert "this is 40 km to the north" in near.notes[0] and near.place.name.startswith("Z")


@pytest.mark.slow
async def test_no_garbled_answer_is_a_failure_of_the_server_s_own(upstream: Upstream) -> None:
    assert await Trial(upstream, seed=3).run(64) == []


@pytest.mark.parametrize("kind", KINDS)
async def test_a_resource_says_that_an_answer_can_t_be_understood(upstream: Upstream, kind: str) -> None:
    def change(document: dict[str, Any]) -> None:
        document |= {"timezone": None, "utc_offset_seconds": "NaN"}

    async with client(upstream) as found:
        upstream.fail("/v1/", change=change, times=9)
        with pytest.raises(MCPError, match="can't be understood"):
            await found.read_resource(f"weather://52.99667,6.5625/{kind}")


@pytest.mark.parametrize(
    "hit",
    [
        None, "?", {}, {"name": "Nowhere"}, {"latitude": "48", "longitude": 2}, {"latitude": 91, "longitude": 2},
        {"latitude": float("nan"), "longitude": 2},
    ],
)  # fmt: skip
async def test_a_hit_that_is_no_place_is_left_out(upstream: Upstream, hit: Any) -> None:
    def change(document: dict[str, Any]) -> None:
        odd = {"population": "many", "id": ["?"], "postcodes": 8000, "timezone": "America", "elevation": "high"}
        document["results"] = [hit, document["results"][0] | odd]

    async with World(upstream) as world:
        upstream.fail("name=Z", change=change, times=9)
        place = await world.place("Zurich, Switzerland")
        assert (place.coordinates, place.timezone) == ("47.3667,8.55", None)


async def test_an_old_forecast_of_which_nothing_is_left_is_no_dry_one(upstream: Upstream) -> None:
    async with World(upstream) as world:
        zurich = await world.place("Zurich")
        for step in ("hourly", "daily"):
            await fetch_forecast(world.engine, ForecastQuery(zurich, step, ("basic",), 7, "metric"))
        upstream.fail("/v1/forecast", 500, times=999)
        world.now += 9 * 86_400
        for step in ("hourly", "daily"):
            with pytest.raises(Unavailable, match="There is no forecast: Open-Meteo answered 500"):
                await fetch_forecast(world.engine, ForecastQuery(zurich, step, ("basic",), 7, "metric"))


_STALE: dict[str, Callable[[Engine, Place], Awaitable[BaseModel]]] = {
    "hourly": lambda engine, place: fetch_forecast(engine, ForecastQuery(place, "hourly", ("basic",), 24, "metric")),
    "daily": lambda engine, place: fetch_forecast(engine, ForecastQuery(place, "daily", ("basic",), 7, "metric")),
    "quarters": lambda engine, place: fetch_quarter_hours(engine, place, 6, "metric"),
    "official by hour": lambda engine, place: engine.nws.fetch_forecast(place, "hourly", 24, "metric"),
    "official by day": lambda engine, place: engine.nws.fetch_forecast(place, "daily", 7, "metric"),
    "weather": lambda engine, place: fetch_overview(engine, place, "metric", 3),
    "air": lambda engine, place: fetch_air_quality(engine, place, "metric", 24, pollen=False),
    "sea": lambda engine, place: fetch_marine(engine, place, "metric", 24, river=False),
    "river": lambda engine, place: fetch_marine(engine, place, "metric", 24, river=True),
}  # fmt: skip


@pytest.mark.share(12)
@pytest.mark.parametrize("days", [0, 1, 5, 40])
@pytest.mark.parametrize("what", _STALE)
async def test_no_old_answer_shows_a_table_of_the_past_or_of_nothing(upstream: Upstream, what: str, days: int) -> None:
    async with World(upstream) as world:
        place = await world.place("Birmingham")
        ask = _STALE[what]
        await ask(world.engine, place)
        upstream.fail("/", 500, times=999)
        world.now += days * 86_400
        try:
            found = await ask(world.engine, place)
        except Unavailable as problem:
            assert (days and "There is no forecast" in str(problem)) or "answered 500" in str(problem)
            return
        here = (await find_local_time(world.engine, place)).today.isoformat()
        tables = [*tables_in(found)]
        assert tables or getattr(found, "notes", ())
        for table in tables:
            assert table.time and table.time[0][:10] >= here


def tables_in(found: BaseModel) -> Iterator[Table]:
    """All tables of a result."""
    parts = found.tables.values() if isinstance(found, Forecast) else dict(found).values()
    yield from (part for part in parts if isinstance(part, Table))


async def test_the_spread_of_an_old_ensemble_is_missing_and_not_empty(upstream: Upstream) -> None:
    async with World(upstream) as world:
        zurich = await world.place("Zurich")

        async def spread() -> Forecast:
            found = await fetch_forecast(world.engine, ForecastQuery(zurich, "hourly", ("basic",), 3, "metric"))
            return await add_spread(world.engine, found, zurich, "metric")

        assert "ensemble" in (await spread()).tables
        upstream.fail("/v1/ensemble", 500, times=99)
        world.now += 3 * 86_400
        late = await spread()
        assert "ensemble" not in late.tables and "The ensemble is missing: There is no forecast" in late.text()


async def test_a_day_behind_the_end_of_what_stands_in_is_refused_with_that_end(upstream: Upstream) -> None:
    async with client(upstream) as found:
        upstream.fail("/v1/forecast?", 500, times=99)
        near = await found.call_tool("get_forecast", {"place": "Birmingham", "day": "tomorrow"})
        assert not near.is_error and "National Weather Service" in text(near)
        far = await found.call_tool("get_forecast", {"place": "Birmingham", "day": "in 13 days"})
        assert far.is_error and "that of US National Weather Service ends at" in text(far)


async def test_what_stands_in_for_a_forecast_is_drawn_too(upstream: Upstream) -> None:
    async with client(upstream) as found:
        upstream.fail("/v1/forecast?", 500, times=99)
        drawn = await found.call_tool("plot_forecast", {"place": "Birmingham", "hours": 24})
        assert not drawn.is_error and drawn.structured_content is not None, text(drawn)
        assert drawn.structured_content["series"] == ["temperature_2m", "precipitation_probability", "wind_speed_10m"]
        assert "Source: US National Weather Service" in text(drawn)


def _without(member: str) -> Callable[[dict[str, Any]], None]:
    return lambda document: document.pop(member, None)


@pytest.mark.parametrize(
    ("tool", "arguments", "asked", "member"),
    [
        ("get_forecast", {"place": "Zurich", "hours": 5}, "hourly=", "hourly"),
        ("get_forecast", {"place": "Zurich", "days": 5}, "daily=", "daily"),
        ("get_forecast", {"place": "Zurich", "step": "15-minute"}, "minutely_15=", "minutely_15"),
        ("get_forecast", {"place": "Birmingham", "source": "nws"}, "points", "properties"),
        ("get_alerts", {"place": "Birmingham"}, "alerts", "features"),
        ("get_alerts", {"place": "Zurich"}, "warnings", "warnings"),
        ("get_alerts", {"place": "Toronto"}, "weather-alerts", "features"),
        ("get_air_quality", {"place": "Zurich"}, "air-quality", "current"),
        ("get_air_quality", {"place": "Zurich"}, "air-quality", "hourly"),
    ],
)
async def test_an_answer_that_can_not_be_read_is_not_kept(
    upstream: Upstream, tool: str, arguments: dict[str, Any], asked: str, member: str
) -> None:
    """Who tries again in a moment, as the problem says, is answered."""
    async with client(upstream) as found:
        upstream.fail(asked, change=_without(member))
        broken = text(await found.call_tool(tool, arguments))
        assert " sent a" in broken and "Try again" in broken, broken
        again = await found.call_tool(tool, arguments)
        assert not again.is_error and " sent a" not in text(again), text(again)


async def test_what_was_not_understood_is_once_the_service_sends_it_anew(upstream: Upstream) -> None:
    """Who tries later, as the problem says, is answered."""

    def change(document: dict[str, Any]) -> None:
        document |= {"timezone": None, "utc_offset_seconds": "NaN"}

    async with World(upstream) as world:
        place = await world.place("52.99667,6.5625")
        upstream.fail("/v1/forecast", change=change)
        broken = await attempt(lambda: world.engine.open_meteo.fetch_present(place, "metric"))
        assert isinstance(broken, Unavailable) and "can't be understood. Try again later" in str(broken)
        world.now += 3600
        assert (await world.engine.open_meteo.fetch_present(place, "metric")).reading.values


async def test_what_the_weather_service_does_not_cover_is_forecast_without_it(upstream: Upstream) -> None:
    async with client(upstream) as found:
        arguments = {"place": "27.5,-79.0", "hours": 3}
        refused = await found.call_tool("get_forecast", {**arguments, "source": "nws"})
        assert refused.is_error and "Call again without `source`." in text(refused)
        assert not (await found.call_tool("get_forecast", arguments)).is_error
