"""What users reported of weather services and of programs that ask them, tried on mcp-weather with our own places."""

import json
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from weather import upstream as imitation
from weather.conftest import upstream
from weather.serving import World, client, text
from weather.upstream import Upstream, place

__all__ = ["upstream"]
pytestmark = pytest.mark.anyio

_BIRMINGHAM = "Birmingham, Alabama"
_RU: dict[str, Any] = {"country": "Russia", "country_code": "RU"}
_NO: dict[str, Any] = {"country": "Norway", "country_code": "NO"}


@pytest.fixture
def more_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Places whose usual spelling the geocoder does not find, or finds another place by."""
    monkeypatch.setattr(
        imitation,
        "GAZETTEER",
        [
            *imitation.GAZETTEER,
            place("Saint-Pétersbourg", 59.93863, 30.31413, "Europe/Moscow", 5351935, admin1="Saint Petersburg", **_RU),
            place("Tromsø", 69.6489, 18.95508, "Europe/Oslo", 38980, admin1="Troms", **_NO),
            place("Tromsøysund", 69.7, 19.1, "Europe/Oslo", None, admin1="Troms", **_NO),
        ],
    )


async def forecast(upstream: Upstream, **arguments: Any) -> tuple[bool, str]:
    """Return whether the call failed, and what it says."""
    async with client(upstream) as found:
        result = await found.call_tool("get_forecast", {"days": 2, **arguments})
        return bool(result.is_error), text(result)


@pytest.mark.reported("open-meteo/geocoding-api#20")
async def test_the_capital_comes_before_a_hamlet_of_its_name(upstream: Upstream) -> None:
    failed, said = await forecast(upstream, place="北京")
    assert not failed and "39.9075,116.3972" in said and "others:" in said


@pytest.mark.reported("open-meteo/geocoding-api#34")
@pytest.mark.reported("Orinks/AccessiWeather#488")
@pytest.mark.usefixtures("more_places")
@pytest.mark.parametrize("spelling", ["Tromsø", "Tromso", "Tromsoe"])
async def test_a_place_typed_without_its_accents_is_found_or_asked_back(spelling: str, upstream: Upstream) -> None:
    failed, said = await forecast(upstream, place=spelling)
    assert failed and "No place is called" in said if "ø" not in spelling else "69.6489,18.9551" in said


@pytest.mark.reported("open-meteo/geocoding-api#10")
@pytest.mark.usefixtures("more_places")
async def test_a_hyphen_is_a_space(upstream: Upstream) -> None:
    for spelling in ("Saint Pétersbourg", "saint petersbourg", "Saint Pétersbourg, Russia"):
        failed, said = await forecast(upstream, place=spelling)
        assert not failed and "59.9386,30.3141" in said and "taken as `" in said, spelling
    failed, said = await forecast(upstream, place="São-Paulo")
    assert not failed and "-23.5475,-46.6361" in said


@pytest.mark.reported("open-meteo/open-meteo#791")
async def test_a_country_behind_the_name_decides(upstream: Upstream) -> None:
    for spelling, where in (("Berlin, US", "44.4687"), ("Berlin, DE", "52.5244"), ("London CA", "42.9834")):
        failed, said = await forecast(upstream, place=spelling)
        assert not failed and where in said, spelling


@pytest.mark.reported("open-meteo/open-meteo#1790")
@pytest.mark.reported("open-meteo/open-meteo#512")
async def test_a_zone_that_the_service_does_not_know_is_said(upstream: Upstream) -> None:
    upstream.fail("/v1/forecast", 400, b'{"reason":"Invalid timezone","error":true}')
    failed, said = await forecast(upstream, place="36.55,26.35")
    assert failed and "`Invalid timezone`" in said


def alert(identifier: str, **more: Any) -> dict[str, Any]:
    properties = {"id": identifier, "status": "Actual", "messageType": "Alert", "event": "Wind Advisory", **more}
    return {"properties": {"severity": "Moderate", "sent": "2026-09-01T10:00:00-05:00", **properties}}


async def told(upstream: Upstream, *alerts: dict[str, Any]) -> tuple[list[str], str]:
    """Return the identifiers of the alerts that are told of such a list of the Service, and the explanation."""
    body = json.dumps({"type": "FeatureCollection", "features": alerts})
    upstream.fail("/alerts/active", 200, body.encode())
    async with World(upstream) as world:
        found = await world.engine.alerts.fetch(await world.place(_BIRMINGHAM))
    return [item.id for item in found.alerts], found.explanation


@pytest.mark.reported("open-meteo/open-meteo#1545")
@pytest.mark.reported("breezy-weather/breezy-weather#543")
@pytest.mark.reported("Pirate-Weather/pirateweather#114")
@pytest.mark.reported("ossappscollective/oss-weather#368")
@pytest.mark.parametrize("day", ["2026-03-28", "2026-10-24"])
async def test_no_day_comes_twice_or_is_called_as_the_one_before(upstream: Upstream, day: str) -> None:
    noon = datetime.fromisoformat(day).replace(hour=12, tzinfo=ZoneInfo("Europe/Zurich"))
    async with World(upstream, now=noon.timestamp()) as world:
        place = await world.place("Zurich")
        answer = await world.engine.open_meteo.fetch_days(place, ("basic",), 5, "best_match", "metric")
    assert answer.table.time == [f"{noon.date() + timedelta(days=number)}" for number in range(5)]


@pytest.mark.reported("mt-empty/pi-inky-weather-epd#36")
@pytest.mark.reported("home-assistant/core#79064")
@pytest.mark.reported("home-assistant/core#167013")
async def test_a_day_is_that_of_the_place(upstream: Upstream) -> None:
    # In Zürich the next day has begun; in UTC it has not.
    late = datetime(2026, 7, 2, 0, 30, tzinfo=ZoneInfo("Europe/Zurich"))
    async with World(upstream, now=late.timestamp()) as world:
        place = await world.place("Zurich")
        answer = await world.engine.open_meteo.fetch_days(place, ("basic",), 2, "best_match", "metric")
    assert answer.table.time == ["2026-07-02", "2026-07-03"]
    asked = [request for request in upstream.requests if "daily=" in request]
    assert asked and all("timezone=auto" in request or "timezone=Europe" in request for request in asked)


@pytest.mark.reported("home-assistant/core#160330")
async def test_a_clear_night_is_not_called_sunny(upstream: Upstream) -> None:
    def night(document: dict[str, Any]) -> None:
        document["current"] |= {"weather_code": 0, "is_day": 0}

    upstream.fail("current=", change=night, times=99)
    async with client(upstream) as found:
        said = text(await found.call_tool("get_weather", {"place": "Zurich"}))
    assert "weather clear" in said and "sun" not in said.partition("Source:")[0].lower()


@pytest.mark.reported("finity69x2/nws_alerts#8")
@pytest.mark.reported("finity69x2/nws_alerts#45")
async def test_an_alert_that_another_updates_is_told_once(upstream: Upstream) -> None:
    sent = "2026-09-01T12:00:00-05:00"
    expired = {"expiredReferences": ["w-nws.webmaster@noaa.gov,urn:oid:old,2026-09-01T10:00:00-05:00"]}
    newer = alert("urn:oid:new", messageType="Update", sent=sent, parameters=expired)
    assert (await told(upstream, alert("urn:oid:old"), newer))[0] == ["urn:oid:new"]


@pytest.mark.reported("vbguyny/ws4kp#132")
async def test_an_update_of_what_is_no_longer_listed_is_told(upstream: Upstream) -> None:
    gone = [{"identifier": "urn:oid:gone", "sender": "w-nws.webmaster@noaa.gov", "sent": "2026-09-01T09:00:00-05:00"}]
    assert (await told(upstream, alert("urn:oid:new", messageType="Update", references=gone)))[0] == ["urn:oid:new"]


@pytest.mark.reported("Pirate-Weather/pirateweather#545")
@pytest.mark.reported("custom-components/weatheralerts#71")
async def test_the_same_alert_is_told_once_and_one_that_only_sounds_alike_too(upstream: Upstream) -> None:
    same = alert("urn:oid:a", areaDesc="Door")
    other = alert("urn:oid:b", areaDesc="Kewaunee")
    assert sorted((await told(upstream, same, same, other, same))[0]) == ["urn:oid:a", "urn:oid:b"]


@pytest.mark.reported("JulianNorton/weather-10kb-wxkb#97")
async def test_an_alert_that_is_over_is_told_as_that(upstream: Upstream) -> None:
    _, explanation = await told(upstream, alert("urn:oid:a", ends="2026-09-01T11:00:00-05:00"))
    assert "Of 1 the end has passed" in explanation


@pytest.mark.reported("CherryHQ/cherry-studio#11404")
async def test_no_alerts_and_no_answer_are_two_things(upstream: Upstream) -> None:
    assert (await told(upstream))[1].startswith("None in effect")
    upstream.fail("/alerts/active", 503, times=99)
    async with World(upstream) as world:
        found = await world.engine.alerts.fetch(await world.place(_BIRMINGHAM))
    assert found.status == "unavailable" and found.explanation.startswith("Not known")


@pytest.mark.reported("Pirate-Weather/pirateweather#67")
@pytest.mark.reported("skyderby/skyderby#68")
@pytest.mark.parametrize("written", ["-31.9535,-70.8571", "31.9535S 70.8571W", "31.9535° S, 70.8571° W"])
async def test_south_and_west_stay_south_and_west(upstream: Upstream, written: str) -> None:
    failed, said = await forecast(upstream, place=written)
    assert not failed and "(-31.9535,-70.8571" in said
    assert any("latitude=-31.9535&longitude=-70.8571" in request for request in upstream.requests)


@pytest.mark.reported("open-meteo/open-meteo#1245")
@pytest.mark.reported("profullstack/mcp-server#14")
async def test_coordinates_in_the_wrong_order_or_form_are_noticed(upstream: Upstream) -> None:
    failed, said = await forecast(upstream, place="139.69,35.68")
    assert failed and "swapped: try `35.68,139.69`" in said
    failed, said = await forecast(upstream, place="40abc,10")
    assert failed and "`40abc,10`" in said
    # Where both orders are on the globe, the answer says where it is of, and in which unit.
    failed, said = await forecast(upstream, place="9.1,55.5")
    assert not failed and "9.1,55.5" in said.splitlines()[0] and "°C" in said


@pytest.mark.reported("mschneider82/mcp-openweather#3")
async def test_units_that_were_left_empty_are_the_usual_ones(upstream: Upstream) -> None:
    failed, said = await forecast(upstream, place="Zurich", units="")
    assert not failed and "°C" in said
