"""Units by quantity, quarters of an hour, how sure a forecast is, airports, heights."""

from typing import Any, get_args

import pytest

from mcp_batteries.errors import Invalid
from mcp_weather.engine.computed.ensemble import compute_percentiles, count_fewest_members
from mcp_weather.engine.computed.unit_conversion import convert_values
from mcp_weather.engine.services.open_meteo_documents import read_table
from mcp_weather.models import Origin
from mcp_weather.policy.units import CustomUnits, System, parse_aviation_units, parse_units
from weather.serving import client, text
from weather.upstream import MEMBERS, Upstream

pytestmark = pytest.mark.anyio

FROM = Origin(source="s", licence="l", fetched_at="2026-01-01T00:00+00:00", age_s=0, stale=False)


@pytest.mark.parametrize(
    ("said", "unit", "value", "shown"),
    [
        ("metric,wind=kn", "km/h", 18.52, ("kn", 10)), ("metric,wind=kn", "°C", 20, ("°C", 20)),
        ("imperial, temperature=C", "°C", 20, ("°C", 20)), ("imperial, temperature=C", "km/h", 100, ("mph", 62.14)),
        ("wind=m/s", "km/h", 36, ("m/s", 10)), ("WIND = Knots", "km/h", 18.52, ("kn", 10)),
        ("pressure=inHg", "hPa", 1013.25, ("inHg", 29.92)), ("pressure=mmhg", "hPa", 1013.25, ("mmHg", 760)),
        ("temperature=K", "°C", -273.15, ("K", 0)), ("precipitation=inch", "mm", 25.4, ("inch", 1)),
        ("precipitation=mm", "cm", 3, ("cm", 3)), ("imperial,precipitation=mm", "mm", 3, ("mm", 3)),
        ("distance=km", "m", 1500, ("km", 1.5)), ("distance=mi", "m", 1609.344, ("mi", 1)),
        ("wind=bft", "km/h", 40, ("Bft", 6)), ("metric,Beaufort", "km/h", 5, ("Bft", 1)),
        ("nautical,temperature=F", "km/h", 18.52, ("kn", 10)), ("wind=kn,metric", "km/h", 10, ("km/h", 10)),
    ],
)  # fmt: skip
def test_each_quantity_has_the_unit_that_is_asked_for(said: str, unit: str, value: float, shown: Any) -> None:
    name, values = convert_values("x", [value, None], unit, parse_units(said, "metric"))
    assert (name, values) == (shown[0], [shown[1], None])


def test_the_force_of_a_wind_changes_at_the_limits_of_the_scale() -> None:
    """WMO, Manual on Codes: the mean winds of each force in metres a second, to a tenth."""
    upper = [0.2, 1.5, 3.3, 5.4, 7.9, 10.7, 13.8, 17.1, 20.7, 24.4, 28.4, 32.6]
    units = parse_units("wind=bft", "metric")
    for force, limit in enumerate(upper):
        winds = [limit * 3.6, (limit + 0.1) * 3.6, None]
        assert convert_values("wind_speed_10m", winds, "km/h", units) == ("Bft", [force, force + 1, None])
    # A current is no wind.
    assert convert_values("ocean_current_velocity", [1.5], "km/h", units) == ("km/h", [1.5])


@pytest.mark.parametrize("units", ["metric", "imperial"])
@pytest.mark.parametrize(
    "name", ["precipitation", "rain_sum", "snowfall", "showers_sum", "precipitation_probability", "rain_member03"]
)
def test_less_than_no_rain_is_none(name: str, units: Any) -> None:
    _, values = convert_values(name, [-0.1, -1e-9, 0, -0.0, 0.3, None, -999], "mm", units)
    assert values[:4] == [0] * 4 and [str(value)[0] for value in values[:4]] == ["0"] * 4
    assert values[4] and values[5:] == [None, None]
    assert convert_values("temperature_2m", [-3], "°C", "metric")[1] == [-3]


@pytest.mark.parametrize(
    ("said", "default", "unit"),
    [
        ("", "metric", "kn"), ("metric", "metric", "kn"), ("imperial", "metric", "kn"), ("", "imperial", "kn"),
        ("pressure=inHg", "metric", "kn"), ("wind=m/s", "metric", "m/s"), ("metric,wind=km/h", "metric", "km/h"),
    ],
)  # fmt: skip
def test_aviation_has_knots_unless_another_unit_of_wind_is_named(said: str, default: System, unit: str) -> None:
    units = parse_aviation_units(said, default)
    assert convert_values("wind_speed", [18.52], "km/h", units)[0] == unit
    temperature = "°F" if "imperial" in (said, default) else "°C"
    assert convert_values("temperature", [1], "°C", units)[0] == temperature


async def test_a_picture_and_a_text_are_of_one_document(upstream: Upstream) -> None:
    """They were of two, which could be of different runs of a model."""
    async with client(upstream) as found:
        arguments = {"place": "Zurich", "hours": 24}
        forecast: Any = (await found.call_tool("get_forecast", arguments)).structured_content
        upstream.shift = 30
        asked = upstream.count("/v1/forecast")
        await found.call_tool("plot_forecast", arguments)
        again: Any = (await found.call_tool("get_forecast", {**arguments, "variables": ["wind"]})).structured_content
        assert upstream.count("/v1/forecast") == asked
        one, other = forecast["tables"]["best_match"], again["tables"]["best_match"]
        speeds = [table["values"][table["names"].index("wind_speed_10m")] for table in (one, other)]
        assert speeds[0] == speeds[1]
        assert other["names"] == ["wind_speed_10m", "wind_direction_10m", "wind_gusts_10m"]
        assert "wind_gusts_10m" not in one["names"]


def test_units_that_are_none_are_refused_with_those_there_are() -> None:
    for said, words in (("furlongs", "metric"), ("wind=furlongs", "km/h"), ("wind", "km/h"), ("mood=good", "pressure")):
        with pytest.raises(Invalid, match=words):
            parse_units(said, "metric")
    own = parse_units("imperial,wind=kn", "metric")
    assert isinstance(own, CustomUnits) and parse_units("", own) == own
    # What is asked for one call changes what the server says, one by one.
    assert parse_units("pressure=inHg", own) == CustomUnits("imperial", (("wind", "kn"), ("pressure", "inHg")))
    assert all(parse_units(system, own) == system for system in get_args(System))


async def test_quarters_of_an_hour_begin_now_and_are_summed_up(upstream: Upstream) -> None:
    async with client(upstream) as found:
        result = await found.call_tool("get_forecast", {"place": "Zurich", "step": "15-minute", "hours": 3})
        data: Any = result.structured_content
        shown = data["tables"]["best_match"]
        assert data["step"] == "15-minute" and len(shown["time"]) == 12 and "12 quarters of an hour" in text(result)
        assert {time[14:16] for time in shown["time"]} == {"00", "15", "30", "45"}
        assert data["place"]["elevation_m"] == 408
        others: list[dict[str, Any]] = [
            {"models": ["icon_seamless"]}, {"source": "nws"}, {"days": 2}, {"day": "today"}
        ]  # fmt: skip
        for more in others:
            refused = await found.call_tool("get_forecast", {"place": "Zurich", "step": "15-minute", **more})
            assert refused.is_error and "Pass `hours` alone" in text(refused)


async def test_how_sure_a_forecast_is_comes_beside_it_and_harms_nothing(upstream: Upstream) -> None:
    async with client(upstream) as found:
        asked = {"place": "Zurich", "hours": 30, "spread": True}
        data: Any = (await found.call_tool("get_forecast", asked)).structured_content
        one, many = data["tables"]["best_match"], data["tables"]["ensemble"]
        assert one["time"] == many["time"] and len(one["time"]) == 30
        first = dict(zip(many["names"], (values[0] for values in many["values"]), strict=True))
        low, middle, high = (first[f"temperature_2m_{part}"] for part in ("p10", "median", "p90"))
        assert high - middle == pytest.approx(0.4 * (MEMBERS - 1)) == pytest.approx(middle - low)
        upstream.fail("/v1/ensemble", times=9)
        result = await found.call_tool("get_forecast", {**asked, "place": "Paris, France"})
        assert not result.is_error and "[The ensemble is missing: " in text(result)
        data = result.structured_content
        assert list(data["tables"]) == ["best_match"]
        others: list[dict[str, Any]] = [{"step": "daily"}, {"step": "15-minute"}, {"source": "nws"}]
        for more in others:
            refused = await found.call_tool("get_forecast", {**asked, "hours": None, **more})
            assert refused.is_error and "by hour only" in text(refused)


@pytest.mark.parametrize(
    ("arguments", "hours"), [({"day": "tomorrow"}, 24), ({"day": "tonight"}, 12), ({"days": 2}, 48), ({}, 24)]
)
async def test_how_sure_it_is_comes_with_a_day_and_with_days(
    arguments: dict[str, Any], hours: int, upstream: Upstream
) -> None:
    async with client(upstream) as found:
        asked = {"place": "Zurich", "spread": True, **arguments}
        data: Any = (await found.call_tool("get_forecast", asked)).structured_content
        times = data["tables"]["best_match"]["time"]
        assert data["tables"]["ensemble"]["time"] == times and 0 < len(times) <= hours


async def test_a_day_behind_the_end_of_the_ensemble_says_so(upstream: Upstream) -> None:
    async with client(upstream) as found:
        far = await found.call_tool("get_forecast", {"place": "Zurich", "spread": True, "day": "in 12 days"})
        assert not far.is_error and "[The ensemble is missing: It ends at " in text(far)


async def test_one_day_is_compared_by_several_models(upstream: Upstream) -> None:
    async with client(upstream) as found:
        asked = {"place": "Zurich", "day": "tomorrow", "models": ["icon_seamless", "ncep_gfs_seamless"]}
        data: Any = (await found.call_tool("get_forecast", asked)).structured_content
        assert [len(table["time"]) for table in data["tables"].values()] == [24, 24]


def test_few_members_say_nothing_of_how_sure_it_is() -> None:
    names = [f"rain_member{number:02}" for number in range(1, 7)]
    hours: dict[str, Any] = {name: [0.0, 1.0, None if number else 2.0] for number, name in enumerate(names)}
    document: dict[str, Any] = {
        "timezone": "UTC", "hourly": {"time": [0, 3600, 7200], **hours}, "hourly_units": dict.fromkeys(names, "mm")
    }  # fmt: skip
    shown = compute_percentiles(read_table(document, "hourly", "metric", FROM, now=0))
    assert shown.names == ["rain_p10", "rain_median", "rain_p90"] and shown.units == ["mm"] * 3
    assert shown.values == [[1, None], [1, None], [1, None]]


async def test_the_nearest_airport_is_told_as_issued_and_decoded(upstream: Upstream) -> None:
    async with client(upstream) as found:
        result = await found.call_tool("get_metar", {"place": "47.42,8.6", "units": "wind=kn"})
        data: Any = result.structured_content
        decoded = dict(zip(data["decoded"]["names"], data["decoded"]["values"], strict=True))
        assert data["metar"].startswith("LSMD") and "taf" not in data and "no TAF" in text(result)
        assert decoded["wind_direction"] == "variable" and decoded["wind_speed"] == 2
        # Not unknown: the report would have them.
        assert not decoded.keys() & {"wind_gusts", "weather"} and "unknown" not in text(result)
        assert decoded["visibility"] == "10000+" and data["beside"][0].startswith("LSZH 8 km")
        assert 1 < data["distance_km"] < 6 and data["place"]["elevation_m"] == 424
        assert not any("47.42" in request for request in upstream.requests)
        result = await found.call_tool("get_metar", {"place": "LSZH"})
        small = await found.call_tool("get_metar", {"place": "lszh"})
        assert small.structured_content and small.structured_content["metar"].startswith("LSZH")
        assert "wind speed 8 kn" in text(result)
        assert "TAF LSZH" in text(result) and "METAR: LSZH 221450Z 24008KT" in text(result)
        assert "NOAA Aviation Weather Center, public domain" in text(result)
        for arguments, words in (
            ({"place": "XXXX"}, "no report of an airport `XXXX`"), ({"place": "0,-140"}, "No airport near"),
        ):  # fmt: skip
            refused = await found.call_tool("get_metar", arguments)
            assert refused.is_error and words in text(refused), text(refused)


async def test_gusts_and_weather_of_a_report_are_told_where_it_has_them(upstream: Upstream) -> None:
    upstream.fail("/api/data/metar", change=lambda found: found["reports"][0].update(wgst=20, wxString="-SN"))
    upstream.fail("/api/data/metar", change=lambda found: found["reports"][0].update(wgst="many"))
    async with client(upstream) as found:
        for place, gusts in (("KBHM", 20), ("LSZH", None)):
            data: Any = (await found.call_tool("get_metar", {"place": place, "units": "nautical"})).structured_content
            decoded = dict(zip(data["decoded"]["names"], data["decoded"]["values"], strict=True))
            assert decoded["wind_gusts"] == gusts and decoded.get("weather") == ("-SN" if gusts else None)


async def test_reports_that_are_old_or_broken_are_never_shown_as_new(upstream: Upstream) -> None:
    def change(document: dict[str, Any]) -> None:
        first, second, *_ = document["reports"]
        first["lat"] = None
        second["obsTime"] -= 5 * 3600
        document["reports"] += ["nothing", {}, {**second, "obsTime": second["obsTime"] - 60, "rawOb": "older"}]

    upstream.fail("/api/data/metar", change=change)
    async with client(upstream) as found:
        result = await found.call_tool("get_metar", {"place": "Zurich"})
        assert "[OLD: 5 h ago.]" in text(result) and "METAR: LSMD 221450Z VRB02KT" in text(result)


@pytest.mark.parametrize("body", [b"{}", b'{"error": "x"}', b"null", b"<html>"])
async def test_an_answer_that_is_no_list_of_reports_is_no_report(body: bytes, upstream: Upstream) -> None:
    upstream.fail("/api/data/metar", 200, body, times=9)
    async with client(upstream) as found:
        result = await found.call_tool("get_metar", {"place": "LSZH"})
        assert result.is_error and "no report of an airport" not in text(result)


async def test_heights_are_told_where_they_are_known(upstream: Upstream) -> None:
    async with client(upstream) as found:
        weather: Any = (await found.call_tool("get_weather", {"place": "Zurich"})).structured_content
        assert weather["place"]["elevation_m"] == 408
        listed: Any = (await found.call_tool("find_place", {"query": "Zurich"})).structured_content
        assert listed["columns"][-1] == "elevation_m" and listed["rows"][0][-1] == 408


async def test_the_date_line_hides_no_airport(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    report = "NFNM 221450Z 12008KT 9999 FEW020 29/24 Q1010"
    monkeypatch.setattr("weather.upstream.AIRPORTS", [("NFNM", "Matei, FJ", -16.69, -179.877, report, "VFR")])
    async with client(upstream) as found:
        for place in ("-16.8,179.9", "-16.8,180", "-16.8,-179.2"):
            data: Any = (await found.call_tool("get_metar", {"place": place})).structured_content
            assert data["metar"] == report and data["distance_km"] < 80


def test_of_how_many_members_a_percentile_is() -> None:
    names = [f"temperature_2m_member{number:02}" for number in range(1, 9)]
    hours: dict[str, Any] = {name: [0.0, 1.0 if number < 6 else None, None] for number, name in enumerate(names)}
    document: dict[str, Any] = {
        "timezone": "UTC", "hourly": {"time": [0, 3600, 7200], **hours}, "hourly_units": dict.fromkeys(names, "°C")
    }  # fmt: skip
    members = read_table(document, "hourly", "metric", FROM, now=0)
    assert count_fewest_members(members, members.time[0], members.time[0]) == (8, 8)
    # Of the last hour, which nobody knows, there is no percentile.
    assert count_fewest_members(members, members.time[0], members.time[2]) == (6, 8)
