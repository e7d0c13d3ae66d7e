"""What users reported of weather services and of programs that ask them, tried on mcp-weather with our own places."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from mcp_batteries.errors import Unavailable
from mcp_weather.engine.computed.plot import draw_svg
from mcp_weather.engine.services.aviation import fetch_airport
from mcp_weather.engine.services.cap_messages import read_messages
from mcp_weather.engine.services.open_meteo_documents import label_days
from mcp_weather.models import Origin, Table
from mcp_weather.policy.airport import AirportCode
from weather import upstream as imitation
from weather.conftest import upstream
from weather.serving import World, client, text
from weather.upstream import Upstream, place

__all__ = ["upstream"]
pytestmark = pytest.mark.anyio

_BIRMINGHAM = "Birmingham, Alabama"
_RU: dict[str, Any] = {"country": "Russia", "country_code": "RU"}
_NO: dict[str, Any] = {"country": "Norway", "country_code": "NO"}
_US: dict[str, Any] = {"country": "United States", "country_code": "US"}
_GB: dict[str, Any] = {"country": "United Kingdom", "country_code": "GB"}
_AU: dict[str, Any] = {"country": "Australia", "country_code": "AU"}
_CA: dict[str, Any] = {"country": "Canada", "country_code": "CA"}
_BG: dict[str, Any] = {"country": "Bulgaria", "country_code": "BG"}


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
            place("Dallas", 32.78306, -96.80667, "America/Chicago", 1300092, admin1="Texas", **_US),
            place("Dallas", 33.92371, -84.84077, "America/New_York", 12629, admin1="Georgia", **_US),
            place("Whittier", 33.97918, -118.03284, "America/Los_Angeles", 87117, admin1="California", **_US),
            place("Whittier", 60.77305, -148.68386, "America/Anchorage", 214, admin1="Alaska", **_US),
            place("Gloucester", 51.86568, -2.2431, "Europe/London", 136362, admin1="England", **_GB),
            place("Gloucester", 42.61593, -70.66199, "America/New_York", 29546, admin1="Massachusetts", **_US),
            place("Moscow", 46.73239, -117.00017, "America/Los_Angeles", 25060, admin1="Idaho", **_US),
            place("Saint Petersburg", 59.93863, 30.31413, "Europe/Moscow", 5351935, **_RU),
            place("St. Petersburg", 27.77086, -82.67927, "America/New_York", 257083, admin1="Florida", **_US),
            place("Beeston", 52.92, -1.21, "Europe/London", 37000, admin1="England", admin2="Nottinghamshire", **_GB),
            place("Beeston", 53.77, -1.55, "Europe/London", 25000, admin1="England", admin2="Leeds", **_GB),
            place("Coffs Harbour", -30.29, 153.11, "Australia/Sydney", 70000, postcodes=["2452"], **_AU),
            place("Berlinstraße", 49.47605, 10.9714, "Europe/Berlin", None, admin1="Bavaria", country="Germany"),
            place(
                "St. John's", 47.56494, -52.70931, "America/St_Johns", 99182, admin1="Newfoundland and Labrador", **_CA
            ),
            place("L'Aquila", 42.35055, 13.39954, "Europe/Rome", 68503, country="Italy", country_code="IT"),
            place("Xi’an", 34.25833, 108.92861, "Asia/Shanghai", 6501190, country="China", country_code="CN"),
            place("Waitangi", -43.9535, -176.5597, "Pacific/Chatham", 300, country="New Zealand", country_code="NZ"),
            place("Malko", 42.9, 24.1, "Europe/Sofia", 70, postcodes=["2452"], **_BG),
            place("Akureyri", 65.68353, -18.0878, "Atlantic/Reykjavik", 16563, country="Iceland", elevation=9999.0),
            place("Mariehamn", 60.09726, 19.93481, "Europe/Mariehamn", 11461, country="Åland", country_code="AX"),
            place("Pago Pago", -14.27806, -170.7025, "Pacific/Pago_Pago", 11500, country_code="AS"),
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


@pytest.mark.reported("KR8MER/eas-station#2283")
@pytest.mark.reported("jalibu/MMM-NINA#9")
@pytest.mark.parametrize(
    ("change", "is_told"),
    [
        ({"messageType": "Error"}, False), ({"messageType": "Ack"}, False), ({"response": "AllClear"}, False),
        ({"parameters": {"VTEC": ["/O.CAN.KIWX.SV.A.0333.000000T0000Z-260902T0100Z/"]}}, False),
        # The warning that takes the place of a watch cancels it in the same message.
        ({"parameters": {"VTEC": ["/O.CAN.KIWX.SV.A.0333.x/", "/O.NEW.KIWX.SV.W.0100.x/"]}}, True),
        ({"parameters": {"VTEC": ["/O.CON.KIWX.SV.W.0100.x/"]}, "response": "AllClear"}, True),
        ({"parameters": {"VTEC": ["/T.CAN.KIWX.SV.W.0100.x/"]}}, True),
        # Its end is announced before it comes.
        ({"parameters": {"VTEC": ["/O.EXP.KIWX.SV.A.0333.000000T0000Z-260902T0100Z/"]}}, True),
        ({"parameters": {"VTEC": None}, "response": "Monitor"}, True),
    ],
)  # fmt: skip
async def test_a_message_that_only_takes_back_is_no_alert(
    upstream: Upstream, change: dict[str, Any], is_told: bool
) -> None:
    identifiers, _ = await told(upstream, alert("urn:oid:a", **{"messageType": "Update", **change}))
    assert identifiers == ["urn:oid:a"] * is_told


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


@pytest.mark.reported("i-am-bee/beeai-framework#36")
@pytest.mark.reported("chubin/wttr.in#509")
@pytest.mark.reported("chubin/wttr.in#775")
@pytest.mark.usefixtures("more_places")
@pytest.mark.parametrize(
    ("written", "where"),
    [
        ("Dallas GA", "33.9237,-84.8408"), ("Dallas+GA", "33.9237,-84.8408"), ("Whittier,AK", "60.7730,-148.6839"),
        ("Whittier_Alaska", "60.7730,-148.6839"), ("Dallas%20Texas", "32.7831,-96.8067"),
    ],
)  # fmt: skip
async def test_a_state_behind_the_name_decides_however_it_is_parted(
    upstream: Upstream, written: str, where: str
) -> None:
    failed, said = await forecast(upstream, place=written)
    assert not failed and where in said, said


@pytest.mark.reported("chubin/wttr.in#264")
@pytest.mark.usefixtures("more_places")
async def test_saint_may_be_shortened(upstream: Upstream) -> None:
    failed, said = await forecast(upstream, place="St. Petersburg, Russia")
    assert not failed and "59.9386,30.3141" in said and "taken as `Saint Petersburg`" in said
    failed, said = await forecast(upstream, place="St. Petersburg")
    assert not failed and "27.7709,-82.6793" in said


@pytest.mark.reported("felixhageloh/weather-widget#19")
@pytest.mark.reported("datagouv/geo.api.gouv.fr#71")
@pytest.mark.reported("pelias/pelias#931")
@pytest.mark.usefixtures("more_places")
@pytest.mark.parametrize(
    ("written", "where"),
    [
        ("St. John's, Newfoundland", "47.5649,-52.7093"), ("St. John’s, NL", "47.5649,-52.7093"),
        ("Saint John's, Canada", "47.5649,-52.7093"), ("St John’s, Labrador", "47.5649,-52.7093"),
        ("L’Aquila", "42.3505,13.3995"), ("l`aquila, Italy", "42.3505,13.3995"),
        ("Xi'an", "34.2583,108.9286"), ("Xi‘an, China", "34.2583,108.9286"),
    ],
)  # fmt: skip
async def test_an_apostrophe_is_one_however_it_is_written(upstream: Upstream, written: str, where: str) -> None:
    failed, said = await forecast(upstream, place=written)
    assert not failed and where in said, said


@pytest.mark.reported("Surrey-Homeware/Aura#17")
@pytest.mark.reported("breezy-weather/breezy-weather#55")
@pytest.mark.usefixtures("more_places")
async def test_places_of_one_name_and_state_are_told_apart_by_their_district(upstream: Upstream) -> None:
    failed, said = await forecast(upstream, place="Beeston")
    assert failed and "`53.77,-1.55` (Beeston, Leeds, England, United Kingdom)" in said
    failed, said = await forecast(upstream, place="Beeston, Nottinghamshire")
    assert not failed and "52.9200,-1.2100" in said
    async with client(upstream) as found:
        said = text(await found.call_tool("find_place", {"query": "Beeston"}))
    assert "Beeston, Nottinghamshire, England" in said and "Beeston, Leeds, England" in said


@pytest.mark.reported("open-meteo/geocoding-api#8")
@pytest.mark.reported("chubin/wttr.in#1201")
@pytest.mark.reported("JoshDSommer/nativescript-weather#8")
@pytest.mark.usefixtures("more_places")
@pytest.mark.parametrize(
    ("written", "where"),
    [
        ("10115 Berlin", "52.5244,13.4105"), ("Berlin 10115", "52.5244,13.4105"), ("10115, Berlin", "52.5244,13.4105"),
        ("Dallas, GA 30132, USA", "33.9237,-84.8408"), ("London SW1A 1AA", "51.5085,-0.1257"),
        ("2452 AU", "-30.2900,153.1100"), ("2452, Bulgaria", "42.9000,24.1000"),
    ],
)  # fmt: skip
async def test_a_postal_code_helps_and_never_hinders(upstream: Upstream, written: str, where: str) -> None:
    failed, said = await forecast(upstream, place=written)
    assert not failed and where in said, said
    assert "2452" in written or "is not known there and was ignored" in said


@pytest.mark.reported("chubin/wttr.in#773")
@pytest.mark.reported("vejnoe/weather-in-your-calendar#12")
@pytest.mark.usefixtures("more_places")
@pytest.mark.parametrize(
    ("written", "where"),
    [
        ("Gloucester 01930", "42.6159,-70.6620"), ("Gloucester GL1 1AA", "51.8657,-2.2431"),
        ("Moscow 83843", "46.7324,-117.0002"), ("101000 Moscow", "55.7522,37.6156"),
    ],
)  # fmt: skip
async def test_an_unknown_postal_code_is_of_a_country_that_writes_such(
    upstream: Upstream, written: str, where: str
) -> None:
    failed, said = await forecast(upstream, place=written)
    assert not failed and where in said, said


@pytest.mark.reported("chubin/wttr.in#773")
@pytest.mark.usefixtures("more_places")
async def test_a_postal_code_of_two_countries_is_not_that_of_the_larger_place(upstream: Upstream) -> None:
    failed, said = await forecast(upstream, place="2452")
    assert failed and "`2452` is ambiguous: `Coffs Harbour, Australia`; `Malko, Bulgaria`." in said
    failed, said = await forecast(upstream, place="Coffs Harbour, Australia")
    assert not failed and "-30.2900,153.1100" in said


@pytest.mark.reported("schachmat/wego#32")
@pytest.mark.usefixtures("more_places")
@pytest.mark.parametrize("written", ["Whittier 99693", "99693 Whittier", "Whittier, 99693", "Whittier 99693, USA"])
async def test_an_unknown_postal_code_that_may_decide_is_asked_back(upstream: Upstream, written: str) -> None:
    failed, said = await forecast(upstream, place=written)
    assert failed and "ambiguous, and `99693` is not known: " in said, said
    assert "`Whittier, California, United States`; `Whittier, Alaska, United States`." in said


@pytest.mark.reported("weather-gov/api#29")
@pytest.mark.reported("weather-gov/api#11")
async def test_why_an_office_has_no_forecast_is_told_and_another_way(upstream: Upstream) -> None:
    expired = b'{"title": "Forecast Grid Expired", "detail": "The forecast of this grid has expired.", "status": 503}'
    for path, status, why in (
        ("/forecast", 503, "`The forecast of this grid has expired`."),
        ("/forecast", 404, "404"),
    ):
        upstream.fail(path, status, expired, times=2 if status == 503 else 1)
        failed, said = await forecast(upstream, place=_BIRMINGHAM, source="nws")
        assert failed and why in said and said.rstrip().endswith("Open-Meteo has one: leave out `source`."), said
    assert not (await forecast(upstream, place=_BIRMINGHAM))[0]


@pytest.mark.reported("weather-gov/api#71")
@pytest.mark.reported("weather-gov/api#108")
@pytest.mark.reported("weather-gov/api#177")
async def test_a_forecast_that_no_office_has_updated_for_long_is_told_as_old(upstream: Upstream) -> None:
    def age(hours: float) -> Callable[[dict[str, Any]], None]:
        updated = datetime.now(UTC) - timedelta(hours=hours)

        def change(document: dict[str, Any]) -> None:
            document["properties"]["updateTime"] = updated.isoformat(timespec="seconds")

        return change

    for step in ("hourly", "daily"):
        for hours in (13, 44):
            upstream.fail("/gridpoints/BMX/", change=age(hours), times=1)
            failed, said = await forecast(upstream, place=_BIRMINGHAM, source="nws", step=step)
            assert not failed and ("STALE" in said) is (hours == 44)
    assert "the office updated its forecast 44 h ago" in said
    upstream.fail("/v1/forecast", times=99)
    upstream.fail("84/forecast", change=age(44), times=9)
    said = await called(upstream, "get_weather", place=_BIRMINGHAM)
    assert "the office updated its forecast 44 h ago" in said


@pytest.mark.reported("weather-gov/api#10")
@pytest.mark.parametrize(
    ("report", "told", "untold"),
    [
        ("KBHM 211753Z 22012G20KT 2SM TSRA", "wind gusts 37.04 km/h", "unknown: wind gusts"),
        ("KBHM 211753Z 22012KT 10SM", "conditions", "wind gusts"), ("", "unknown: wind gusts", "wind gusts 0"),
    ],
)  # fmt: skip
async def test_gusts_that_only_the_report_of_the_station_has_are_told(
    upstream: Upstream, report: str, told: str, untold: str
) -> None:
    def without_gusts(document: dict[str, Any]) -> None:
        document["properties"] |= {"windGust": {"unitCode": "wmoUnit:km_h-1", "value": None}, "rawMessage": report}

    upstream.fail("/stations/KBHM/", change=without_gusts, times=9)
    async with client(upstream) as found:
        said = text(await found.call_tool("get_weather", {"place": _BIRMINGHAM}))
    (observed,) = [line for line in said.splitlines() if line.startswith("Observed")]
    assert told in observed and untold not in observed, observed


@pytest.mark.reported("open-meteo/open-meteo#2122")
async def test_a_day_without_values_in_the_archive_is_told_as_unknown(upstream: Upstream) -> None:
    def without_a_day(document: dict[str, Any]) -> None:
        for values in [values for name, values in document["daily"].items() if name != "time"]:
            values[1] = None

    upstream.fail("/v1/archive", change=without_a_day, times=9)
    async with client(upstream) as found:
        arguments = {"place": "Zurich", "start": "2026-06-20", "end": "2026-06-22"}
        said = text(await found.call_tool("get_history", arguments))
    assert "2026-06-21 | - | - | - | - |" in said and "null are not known" in said


@pytest.mark.reported("SatAgro/suntime#32")
@pytest.mark.reported("mourner/suncalc#127")
async def test_polar_day_and_polar_night_are_two_things(upstream: Upstream) -> None:
    async with client(upstream) as found:
        for date, what in (("2026-06-21", "polar day; day length 24 h"), ("2026-12-21", "polar night; day length 0 h")):
            said = text(await found.call_tool("get_astronomy", {"place": "Longyearbyen", "date": date}))
            assert what in said and "sunrise does not happen" in said


@pytest.mark.reported("phpvms/phpvms#963")
@pytest.mark.reported("joeyates/metar-parser#36")
@pytest.mark.reported("joeyates/metar-parser#57")
@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"temp": 1, "dewp": 0, "wdir": 0, "wspd": 0}, "dew point 0 °C, wind speed 0 kn"),
        ({"wdir": "VRB", "wspd": 9, "wgst": 23}, "wind gusts 23 kn, wind direction variable; unknown: temperature"),
        ({"temp": 22, "dewp": 10}, "temperature 22 °C, dew point 10 °C; unknown: wind speed"),
    ],
)  # fmt: skip
async def test_what_a_report_lacks_is_neither_nothing_nor_a_reason_to_drop_the_rest(
    upstream: Upstream, fields: dict[str, Any], told: str
) -> None:
    report = {"icaoId": "LTBJ", "name": "Izmir, TR", "lat": 38.29, "lon": 27.16, "rawOb": "LTBJ 200420Z", **fields}
    upstream.fail("/api/data/metar", 200, json.dumps([{**report, "obsTime": upstream.now() - 600}]).encode())
    async with client(upstream) as found:
        said = text(await found.call_tool("get_metar", {"place": "LTBJ"}))
    assert told in said, said


async def called(upstream: Upstream, tool: str, **arguments: Any) -> str:
    """Return the text of an answer that is no failure."""
    async with client(upstream) as found:
        result = await found.call_tool(tool, arguments)
    assert not result.is_error, text(result)
    return text(result)


def present(**values: Any) -> Any:
    """Change the present values of a document."""

    def change(document: dict[str, Any]) -> None:
        document["current"] |= values

    return change


@pytest.mark.reported("mfactory-osaka/ESPTimeCast#2")
@pytest.mark.reported("nextcloud/weather#67")
@pytest.mark.reported("eoin-barr/weatherme#5")
async def test_places_of_one_name_and_country_are_told_apart_by_their_state(upstream: Upstream) -> None:
    failed, said = await forecast(upstream, place="Springfield, US")
    assert failed and "`Springfield, Missouri, United States`; `Springfield, Illinois, United States`" in said
    failed, said = await forecast(upstream, place="Springfield, Illinois, United States")
    assert not failed and "39.8017,-89.6437" in said


@pytest.mark.reported("chubin/wttr.in#1283")
@pytest.mark.usefixtures("more_places")
async def test_a_name_that_only_begins_alike_is_not_taken(upstream: Upstream) -> None:
    for written in ("Berlin, State of Berlin, DE", "Berlin"):
        failed, said = await forecast(upstream, place=written)
        assert not failed and "52.5244,13.4105" in said, said


@pytest.mark.reported("altmenorg/HAsmartirrigation#835")
async def test_a_present_amount_says_of_which_time_it_is(upstream: Upstream) -> None:
    said = await called(upstream, "get_weather", place="Zurich")
    assert "precipitation 10 mm in the last 15 min" in said and "wind gusts 10 km/h in the last 15 min" in said


@pytest.mark.reported("weather-gov/api#94")
@pytest.mark.reported("weather-gov/api#126")
@pytest.mark.parametrize(
    ("quality", "told"),
    [("V", True), ("qc:V", True), ("Q", True), ("X", False), ("qc:X", False), ("B", False), ("qc:B", False)],
)
async def test_what_quality_control_rejected_was_not_measured(upstream: Upstream, quality: str, told: bool) -> None:
    def judged(document: dict[str, Any]) -> None:
        dew_point = {"unitCode": "wmoUnit:degC", "value": 11.5, "qualityControl": quality}
        document["properties"]["dewpoint"] = dew_point

    upstream.fail("/stations/KBHM/", change=judged, times=9)
    said = await called(upstream, "get_weather", place=_BIRMINGHAM)
    assert ("dew point 11.5 °C" in said) == told and ("unknown: dew point" in said) != told


@pytest.mark.reported("weather-gov/api#7")
async def test_only_the_temperature_that_is_felt_is_told(upstream: Upstream) -> None:
    def hot(document: dict[str, Any]) -> None:
        for name, value in (("windChill", None), ("heatIndex", 37.11)):
            document["properties"][name] = {"unitCode": "wmoUnit:degC", "value": value, "qualityControl": "V"}

    upstream.fail("/stations/KBHM/", change=hot, times=9)
    said = await called(upstream, "get_weather", place=_BIRMINGHAM)
    assert "heat index 37.11 °C" in said and "wind chill" not in said


@pytest.mark.reported("weather-gov/weather.gov#1518")
@pytest.mark.reported("uajqq/weewx-belchertown-new#180")
@pytest.mark.reported("mivek/python-metar-taf-parser#61")
async def test_calm_air_has_no_direction(upstream: Upstream) -> None:
    def still(document: dict[str, Any]) -> None:
        for name, unit in (("windSpeed", "km_h-1"), ("windDirection", "degree_(angle)")):
            document["properties"][name] = {"unitCode": f"wmoUnit:{unit}", "value": 0, "qualityControl": "V"}

    upstream.fail("/stations/KBHM/", change=still, times=9)
    upstream.fail("current=", change=present(wind_speed_10m=0.0, wind_direction_10m=45), times=9)
    said = await called(upstream, "get_weather", place=_BIRMINGHAM)
    assert said.count("wind direction calm") == 2 and "0°" not in said
    report = {"icaoId": "LTBJ", "lat": 38.29, "lon": 27.16, "rawOb": "LTBJ 200420Z 00000MPS", "wdir": 0, "wspd": 0}
    upstream.fail("/api/data/metar", 200, json.dumps([report]).encode())
    assert "wind speed 0 kn, wind direction calm" in await called(upstream, "get_metar", place="LTBJ")


@pytest.mark.reported("weather-gov/api#138")
async def test_a_forecast_of_calm_air_has_no_direction(upstream: Upstream) -> None:
    def still(document: dict[str, Any]) -> None:
        # Which of them is the first that is shown depends on the time of day.
        for number, period in enumerate(document["properties"]["periods"]):
            speed = "0 to 5 mph" if number % 2 else "0 mph"
            period |= {"windSpeed": speed, "windDirection": "NW"}

    upstream.fail("/forecast", change=still, times=9)
    said = await called(upstream, "get_forecast", place=_BIRMINGHAM, source="nws", days=1)
    winds = {" | ".join(line.split(" | ")[3:5]) for line in said.splitlines()[-2:]}
    assert winds == {"0 | calm", "8 | NW"}, said


@pytest.mark.reported("weather-gov/api#138")
async def test_calm_hours_have_no_direction(upstream: Upstream) -> None:
    def still_hours(document: dict[str, Any]) -> None:
        series = document["hourly"]
        for number in range(1, len(series["time"]), 2):
            series["wind_speed_10m"][number] = 0.0
            series["wind_direction_10m"][number] = 0

    upstream.fail("hourly=", change=still_hours, times=9)
    said = await called(upstream, "get_forecast", place=_BIRMINGHAM, hours=4, variables=["wind"])
    speeds = [line.split(" | ")[1:3] for line in said.splitlines() if re.match(r"\d{4}-", line)]
    assert [direction == "calm" for _, direction in speeds] == [speed == "0" for speed, _ in speeds], said
    assert any(direction == "calm" for _, direction in speeds), said


@pytest.mark.reported("kalkih/simple-weather-card#52")
@pytest.mark.reported("alexpfau/calendar-card-pro#252")
@pytest.mark.reported("breezy-weather/breezy-weather#2539")
@pytest.mark.reported("inderdhir/DatWeatherDoe#52")
async def test_zero_is_a_value_and_has_no_sign(upstream: Upstream) -> None:
    zeros = present(temperature_2m=-0.0, apparent_temperature=-0.0001, wind_direction_10m=0)
    upstream.fail("current=", change=zeros, times=9)

    def freeze(document: dict[str, Any]) -> None:
        document["daily"]["temperature_2m_min"] = [-0.0] * len(document["daily"]["time"])

    upstream.fail("daily=", change=freeze, times=9)
    said = await called(upstream, "get_weather", place="Zurich", days=1)
    assert ": temperature 0 °C, apparent temperature 0 °C" in said and "wind direction 0°" in said
    assert " | overcast | 10 | 0 | " in said


@pytest.mark.reported("NetTopologySuite/NetTopologySuite#532")
@pytest.mark.parametrize(
    ("point", "warned"),
    [
        ("-43.9535,-176.5597", True), ("-43.5,179.5", True), ("-43.5,180", True), ("-43.5,178", True),
        ("-43.5,176.5", False), ("-43.5,-173.5", False), ("-43.5,0", False),
    ],
)  # fmt: skip
async def test_an_area_may_cross_the_date_line(upstream: Upstream, point: str, warned: bool) -> None:
    for polygon in ("-45,177 -42,177 -42,-174 -45,-174 -45,177", "-45,-174 -45,177 -42,177 -42,-174"):
        area = {"areaDesc": "Chatham Islands", "polygon": polygon}
        message = {
            "identifier": "gale", "status": "Actual", "msgType": "Alert", "info": [{"event": "Gale", "area": [area]}]
        }  # fmt: skip
        async with World(upstream) as world:
            alerts = read_messages([message], await world.place(point), UTC, "en")
        assert bool(alerts) == warned, polygon


@pytest.mark.reported("open-meteo/open-meteo#1364")
@pytest.mark.reported("open-meteo/open-meteo#1524")
@pytest.mark.parametrize("height", [None, 0.0])
async def test_a_harbour_without_waves_is_told_those_off_the_coast(height: float | None, upstream: Upstream) -> None:
    def lose_waves(document: dict[str, Any]) -> None:
        for name, values in document["hourly"].items():
            if name not in ("time", "sea_surface_temperature", "sea_level_height_msl"):
                document["hourly"][name] = [height] * len(values)

    upstream.fail("/v1/marine", change=lose_waves)
    said = await called(upstream, "get_marine", place="Assen", hours=2)
    assert "Waves and currents." in said and "[No waves at the place itself: this is 15 km to the north" in said
    upstream.fail("/v1/marine", change=lose_waves, times=99)
    said = await called(upstream, "get_marine", place="Assen", hours=2)
    assert "The models have no waves here. Pass coordinates off the coast." in said and "sea_surface" in said
    assert "| 0 |" not in said and "wave height 0" not in said and "unknown: wave height" in said


@pytest.mark.reported("aazuspan/wxee#6")
@pytest.mark.reported("Forceh91/retro-env-can-weather-chan#671")
async def test_the_normal_weather_of_a_leap_day_is_that_of_leap_days(upstream: Upstream) -> None:
    def cold_leap_days(document: dict[str, Any]) -> None:
        days = label_days(document["daily"]["time"], document)
        for name in ("temperature_2m_mean", "temperature_2m_max"):
            document["daily"][name] = [-5.0 if str(day).endswith("02-29") else 9.0 for day in days]

    upstream.fail("/v1/archive", change=cold_leap_days, times=99)
    said = await called(upstream, "get_history", place="Zurich", start="2024-02-28", end="2024-02-29", normals=True)
    assert "\n02-28 | 9 | 9 | " in said and "\n02-29 | -5 | -5 | " in said


@pytest.mark.reported("PranshulGG/WeatherMaster#165")
@pytest.mark.reported("PranshulGG/WeatherMaster#371")
@pytest.mark.reported("lmarzen/esp32-weather-epd#31")
@pytest.mark.parametrize(
    ("european", "us", "category", "told"),
    [
        (14, 40, "good", "us aqi 40"), (101, 702, "extremely poor", "us aqi 702"),
        (None, None, "unknown", "unknown: european aqi, us aqi"),
    ],
)  # fmt: skip
async def test_an_index_of_the_air_is_good_only_if_it_is_low(
    upstream: Upstream, european: int | None, us: int | None, category: str, told: str
) -> None:
    upstream.fail("/v1/air-quality", change=present(european_aqi=european, us_aqi=us))
    said = await called(upstream, "get_air_quality", place="Zurich", hours=1)
    assert f"European air quality index: {category}\n" in said and told in said


@pytest.mark.reported("open-meteo/open-meteo#136")
@pytest.mark.reported("woheller69/omweather#5")
async def test_snow_is_told_in_its_own_unit(upstream: Upstream) -> None:
    for units, snow, rain in (("metric", "snowfall [cm]", "rain [mm]"), ("imperial", "snowfall [inch]", "rain [inch]")):
        said = await called(upstream, "get_forecast", place="Zurich", hours=1, variables=["precipitation"], units=units)
        assert snow in said and rain in said
    (row,) = [line for line in said.splitlines() if line.startswith("20")]
    assert float(row.split(" | ")[3]) * 10 == pytest.approx(float(row.split(" | ")[5]), rel=0.03)


@pytest.mark.reported("weather-gov/weather.gov#780")
@pytest.mark.reported("weather-gov/api#192")
async def test_an_alert_is_told_in_the_time_of_the_place(upstream: Upstream) -> None:
    times = {"onset": "2026-09-01T15:00:00+00:00", "ends": "2026-09-02T03:00:00+00:00"}
    upstream.fail(
        "/alerts/active", 200, json.dumps({"type": "FeatureCollection", "features": [alert("a", **times)]}).encode()
    )
    said = await called(upstream, "get_alerts", place=_BIRMINGHAM)
    assert "from 2026-09-01T10:00-05:00 until 2026-09-01T22:00-05:00" in said


@pytest.mark.reported("MrBartusek/MeteoalarmCard#144")
async def test_a_watch_stays_a_watch(upstream: Upstream) -> None:
    watch = alert("a", event="Tornado Watch", severity="Extreme", areaDesc="Jefferson, AL")
    upstream.fail("/alerts/active", 200, json.dumps({"type": "FeatureCollection", "features": [watch]}).encode())
    said = await called(upstream, "get_alerts", place=_BIRMINGHAM)
    assert "Tornado Watch (Extreme)" in said and "Warning" not in said


@pytest.mark.reported("home-assistant/core#56055")
@pytest.mark.reported("home-assistant/core#72151")
@pytest.mark.reported("home-assistant/core#131045")
async def test_all_warnings_of_an_area_are_told_but_the_green_ones(upstream: Upstream) -> None:
    warnings: list[dict[str, Any]] = []
    for event, level in (
        ("Wind", "2; yellow; Moderate"),
        ("Snow and ice", "3; orange; Severe"),
        ("Fog", "1; green; Minor"),
    ):
        info = {
            "language": "en", "event": event, "severity": level.rpartition("; ")[2],
            "parameter": [{"valueName": "awareness_level", "value": level}],
            "area": [{"areaDesc": "Drenthe", "polygon": "52,6 54,6 54,7 52,7 52,6"}],
        }  # fmt: skip
        warnings.append({"alert": {"identifier": event, "status": "Actual", "msgType": "Alert", "info": [info]}})
    upstream.fail("/feeds-netherlands", 200, json.dumps({"warnings": warnings}).encode())
    async with World(upstream) as world:
        found = await world.engine.alerts.fetch(await world.place("Assen"))
    assert [item.event for item in found.alerts] == ["Snow and ice", "Wind"]


@pytest.mark.reported("MagicMirrorOrg/MagicMirror#3449")
@pytest.mark.reported("rinyakok/homeassistant_idokep#7")
@pytest.mark.reported("jdejaegh/irm-kmi-ha#38")
@pytest.mark.parametrize(("clock", "first"), [("23:05", "2026-07-02T23:00+02:00"), ("00:05", "2026-07-02T00:00+02:00")])
async def test_the_hours_to_come_begin_with_the_present_one_around_midnight(
    upstream: Upstream, clock: str, first: str
) -> None:
    now = datetime.fromisoformat(f"2026-07-02T{clock}").replace(tzinfo=ZoneInfo("Europe/Zurich"))
    async with World(upstream, now=now.timestamp()) as world:
        place = await world.place("Zurich")
        answer = await world.engine.open_meteo.fetch_hours(place, ("basic",), 3, "best_match", "metric")
    begin = datetime.fromisoformat(first)
    assert answer.table.time == [(begin + timedelta(hours=hour)).isoformat(timespec="minutes") for hour in range(3)]


@pytest.mark.reported("open-meteo/open-meteo#847")
@pytest.mark.reported("sffjunkie/astral#44")
@pytest.mark.reported("SatAgro/suntime#20")
@pytest.mark.usefixtures("more_places")
@pytest.mark.parametrize(
    ("name", "day", "sunrise", "sunset"),
    [
        ("Waitangi", "2024-06-12", "08:02+12:45", "16:58+12:45"),
        ("Wellington", "2022-09-24", "06:06+12:00", "18:17+12:00"),
        ("Wellington", "2022-09-25", "07:05+13:00", "19:18+13:00"),
    ],
)  # fmt: skip
async def test_the_sun_of_a_day_far_from_greenwich_is_of_that_day(
    upstream: Upstream, name: str, day: str, sunrise: str, sunset: str
) -> None:
    async with World(upstream) as world:
        sky = await world.sky(name, day)
    times = dict(zip(sky.names, sky.times, strict=True))
    for event, expected in (("sunrise", sunrise), ("sunset", sunset)):
        off = datetime.fromisoformat(str(times[event])) - datetime.fromisoformat(f"{day}T{expected}")
        assert abs(off) <= timedelta(minutes=4) and str(times[event]).startswith(day), times


@pytest.mark.reported("aukedejong/lovelace-windrose-card#9")
@pytest.mark.parametrize(
    ("metres", "force"), [(0.2, 0), (0.3, 1), (1.5, 1), (1.6, 2), (7.9, 4), (8.0, 5), (32.6, 11), (32.7, 12)]
)
async def test_the_forces_of_the_wind_begin_where_the_scale_says(upstream: Upstream, metres: float, force: int) -> None:
    upstream.fail("current=", change=present(wind_speed_10m=round(metres * 3.6, 2)), times=9)
    assert f"wind speed {force} Bft" in await called(upstream, "get_weather", place="Zurich", units="wind=bft")


@pytest.mark.reported("home-assistant/core#55041")
@pytest.mark.reported("home-assistant/core#110174")
@pytest.mark.reported("home-assistant/core#153965")
@pytest.mark.reported("openhab/openhab-addons#6571")
@pytest.mark.parametrize(
    ("name", "day", "before", "phase", "after"),
    [
        ("London", "2021-08-22", "waxing gibbous", "full moon", "waning gibbous"),
        ("London", "2019-12-12", "waxing gibbous", "full moon", "waning gibbous"),
        ("London", "2024-02-09", "waning crescent", "new moon", "waxing crescent"),
        # In London the moon was full on the next day.
        ("Washington, DC", "2025-10-06", "waxing gibbous", "full moon", "waning gibbous"),
    ],
)  # fmt: skip
async def test_the_moon_is_full_or_new_on_one_day_and_on_no_day_less(
    upstream: Upstream, name: str, day: str, before: str, phase: str, after: str
) -> None:
    async with World(upstream) as world:
        for offset, expected in ((-1, before), (0, phase), (1, after)):
            shifted = datetime.fromisoformat(day) + timedelta(days=offset)
            assert (await world.sky(name, f"{shifted:%Y-%m-%d}")).moon_phase == expected


@pytest.mark.reported("Yevgenium/weather-chart-card#85")
@pytest.mark.reported("mlamberts78/weather-chart-card#298")
@pytest.mark.parametrize(("unit", "drizzle", "downpour"), [("mm", 0.5, 30.0), ("inch", 0.02, 1.2)])
def test_as_much_rain_is_drawn_as_high_in_each_unit(unit: str, drizzle: float, downpour: float) -> None:
    origin = Origin(source="Open-Meteo", licence="CC BY 4.0", fetched_at="2026-11-22T10:00+00:00", age_s=0, stale=False)
    heights: list[float] = []
    for amount in (drizzle, downpour):
        table = Table(
            time=["2026-11-22T22:00+01:00"], names=["precipitation"], units=[unit], values=[[amount]], origin=origin
        )
        bars = re.findall(r'<rect x="[^"]+" y="[^"]+" width="[^"]+" height="([^"]+)"', draw_svg(table, "Zurich"))
        heights += map(float, bars)
    assert [round(height) for height in heights] == [66, 132]


@pytest.mark.reported("avwx-rest/avwx-api#32")
@pytest.mark.parametrize(
    ("now", "validity", "end"),
    [
        ("2026-12-04T11:28", "0400/0409", "2026-12-04T09:00+00:00"), ("2026-12-04T08:59", "0400/0409", None),
        ("2026-12-01T00:30", "3000/3024", "2026-12-01T00:00+00:00"), ("2026-11-30T23:30", "3018/0124", None),
        ("2027-01-01T05:00", "3112/3118", "2026-12-31T18:00+00:00"), ("2026-12-04T11:28", "", None),
    ],
)  # fmt: skip
async def test_a_forecast_for_an_airport_that_is_over_is_told_as_old(
    upstream: Upstream, now: str, validity: str, end: str | None
) -> None:
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC).timestamp()
    taf = f"TAF LTBJ 010101Z {validity} 24008KT 9999 TEMPO 0102/0103 3000"
    if not validity:
        taf = "TAF LTBJ 24008KT"
    report = {"icaoId": "LTBJ", "lat": 38.29, "lon": 27.16, "rawOb": "LTBJ 200420Z", "obsTime": moment, "rawTaf": taf}
    async with World(upstream, now=moment) as world:
        upstream.fail("/api/data/metar", 200, json.dumps([report]).encode())
        found = await fetch_airport(world.cache, AirportCode("LTBJ"), "metric")
    assert found.notes == ([f"[OLD: the TAF was valid until {end}.]"] if end else [])


@pytest.mark.reported("mivek/python-metar-taf-parser#25")
@pytest.mark.reported("aeharding/metar-taf-parser#16")
@pytest.mark.parametrize(
    ("taf", "note"),
    [
        ("TAF LTBJ 041000Z 0412/0424 CNL=", "[The TAF was cancelled.]"),
        ("TAF AMD LTBJ 041000Z 0412/0424 CNL", "[The TAF was cancelled.]"),
        ("TAF LTBJ 041000Z NIL=", "[This airport has no TAF now.]"),
        ("TAF LTBJ 041000Z COR NIL", "[This airport has no TAF now.]"),
        ("TAF COR LTBJ 041000Z 0412/0424 24008KT CAVOK RMK NIL", None),
        ("TAF LTBJ 041000Z 0412/0424 24008KT CAVOK TAF LTBJ 040400Z 0406/0506 CNL", None),
    ],
)  # fmt: skip
async def test_a_forecast_for_an_airport_that_was_cancelled_is_told_as_that(
    upstream: Upstream, taf: str, note: str | None
) -> None:
    moment = datetime(2026, 12, 4, 11, tzinfo=UTC).timestamp()
    report = {"icaoId": "LTBJ", "lat": 38.29, "lon": 27.16, "rawOb": "LTBJ 041050Z 24008KT", "obsTime": moment}
    async with World(upstream, now=moment) as world:
        upstream.fail("/api/data/metar", 200, json.dumps([{**report, "rawTaf": taf}]).encode())
        found = await fetch_airport(world.cache, AirportCode("LTBJ"), "metric")
    assert found.notes == ([note] if note else [])


@pytest.mark.reported("mivek/python-metar-taf-parser#25")
async def test_a_report_that_there_is_none_does_not_hide_the_one_before(upstream: Upstream) -> None:
    moment = upstream.now()
    place = {"icaoId": "SVMC", "lat": 10.56, "lon": -71.73}
    observed = {**place, "rawOb": "METAR SVMC 211600Z 04006KT 9999 31/24 Q1010", "obsTime": moment - 3600, "temp": 31}
    absent = {**place, "rawOb": "METAR SVMC 211700Z AUTO NIL=", "obsTime": moment}
    upstream.fail("/api/data/metar", 200, json.dumps([absent, observed]).encode())
    assert "temperature 31 °C" in await called(upstream, "get_metar", place="SVMC")
    forecast_only = {**absent, "rawTaf": "TAF SVMC 211700Z 2118/2218 04006KT CAVOK"}
    upstream.fail("/api/data/metar", 200, json.dumps([forecast_only]).encode())
    assert "2118/2218 04006KT CAVOK" in await called(upstream, "get_metar", place="SVMC")
    upstream.fail("/api/data/metar", 200, json.dumps([absent]).encode())
    async with client(upstream) as found:
        result = await found.call_tool("get_metar", {"place": "SVMC"})
    assert result.is_error and "There is no report of an airport `SVMC`." in text(result)


@pytest.mark.reported("open-meteo/open-meteo#2108")
@pytest.mark.reported("open-meteo/open-meteo#314")
@pytest.mark.reported("qdonnars/ohmywind#429")
@pytest.mark.parametrize("number", ["-nan", "nan", "NaN", "-inf", "Infinity"])
async def test_a_number_that_is_none_is_unknown_and_the_rest_is_told(upstream: Upstream, number: str) -> None:
    body = (
        f'{{"latitude":{number},"longitude": {number} ,"elevation":{number},"timezone":"Europe/London",'
        '"current_units":{"temperature_2m":"°C","wind_speed_10m":"km/h"},'
        f'"current":{{"time":1790000000,"interval":900,"temperature_2m":8.4,"wind_speed_10m":{number}}}}}'
    )
    upstream.fail("current=", 200, body.encode(), times=9)
    said = await called(upstream, "get_weather", place="54.8945,-2.503", days=1)
    assert ": temperature 8.4 °C; unknown: wind speed" in said and "The present is missing" not in said


@pytest.mark.reported("open-meteo/open-meteo#869")
@pytest.mark.reported("guidocioni/point_wx#137")
@pytest.mark.usefixtures("more_places")
async def test_no_town_lies_ten_kilometres_high(upstream: Upstream) -> None:
    said = await called(upstream, "get_weather", place="Akureyri")
    assert "38 m above the sea" in said and "9999" not in said


@pytest.mark.reported("itskovacs/trip#7")
@pytest.mark.reported("osmandapp/OsmAnd#12521")
@pytest.mark.reported("osmandapp/OsmAnd#11809")
@pytest.mark.reported("tankaru/OpenSwitchMapsWeb#35")
@pytest.mark.parametrize(
    ("written", "where"),
    [
        ("https://www.google.com/maps/place/Bern/@46.91,7.31,11z/data=!4m6!8m2!3d46.9480!4d7.4474", "46.9480,7.4474"),
        ("https://www.google.com/maps/place/Bundesplatz+3,+3003+Bern,+Switzerland/@46.9465,7.4419,17z/data=!3m1!4b1!4m6!3m5"
         "!1s0x478e39be4e0d1c1b:0x3d0f5b6a7c8d9e0f!8m2!3d46.9480!4d7.4474!16s%2Fg%2F11c43x8qz1?entry=ttu"
         "&g_ep=EgoyMDI2MTEyNC4wIKXMDSoASAFQAw%3D%3D", "46.9480,7.4474"),
        ("https://google.com/maps/@46.91,7.31,11z/data=!8m2!3d46.95!4d7.44!8m2!3d46.9480!4d7.4474", "46.9480,7.4474"),
        ("https://www.google.com/maps/@46.91,7.31,11z", "46.9100,7.3100"),
        ("https://www.google.com/maps/search/?api=1&query=46.9480%2C7.4474", "46.9480,7.4474"),
        ("http://maps.google.com/maps?q=46.9480%2C7.4474%28Meeting+point%29", "46.9480,7.4474"),
        ("https://www.openstreetmap.org/?mlat=46.9480&mlon=7.4474#map=12/46.91/7.31", "46.9480,7.4474"),
    ],
)  # fmt: skip
async def test_a_link_to_a_map_means_its_pin_and_not_its_middle(upstream: Upstream, written: str, where: str) -> None:
    failed, said = await forecast(upstream, place=written)
    assert not failed and f"({where}, " in said, said


@pytest.mark.reported("kadas-albireo/kadas-albireo2#324")
@pytest.mark.reported("kagix/exists#10")
@pytest.mark.parametrize(
    ("written", "where"),
    [
        ("51.4, 0.2 (Zurich)", "51.4000,0.2000"), ("Zurich (51.4, 0.2)", "51.4000,0.2000"),
        ("51.4N 0.2E (51°24'N 0°12'E)", "51.4000,0.2000"), ("51.4,0.2,408", "51.4000,0.2000"),
        ("51.4000°N, 0.2000°E, 408 m", "51.4000,0.2000"), ("lat 33.9 S, lon 18.4 E", "-33.9000,18.4000"),
        ("北纬39.9度 东经116.4度", "39.9000,116.4000"), ("北緯35度42分 東経139度42分", "35.7000,139.7000"),
        ("북위 37도 30분 동경 127도", "37.5000,127.0000"), ("55.75° с. ш. 37.62° в. д.", "55.7500,37.6200"),
    ],
)  # fmt: skip
async def test_coordinates_with_something_beside_them_are_coordinates(
    upstream: Upstream, written: str, where: str
) -> None:
    failed, said = await forecast(upstream, place=written)
    assert not failed and f"({where}, " in said and "coordinates)" in said, said


@pytest.mark.reported("weather-gov/weather.gov#1939")
@pytest.mark.reported("weather-gov/weather.gov#852")
@pytest.mark.reported("weather-gov/api#15")
@pytest.mark.reported("finity69x2/nws_alerts#91")
@pytest.mark.parametrize(
    ("ends", "vtec", "until"),
    [
        (None, None, " until 2026-09-01T14:00-05:00"),
        ("2026-09-01T20:00:00-05:00", None, " until 2026-09-01T20:00-05:00"),
        ("2026-09-01T20:00:00-05:00", ["/O.NEW.KBMX.WI.Y.0001/"], " until 2026-09-01T20:00-05:00"),
        (None, ["/O.EXT.KBMX.FL.W.0013.000000T0000Z-000000T0000Z/"], ""),
    ],
)  # fmt: skip
async def test_an_alert_ends_when_it_says_or_with_its_message_if_it_has_no_code_for_an_event(
    upstream: Upstream, ends: str | None, vtec: list[str] | None, until: str
) -> None:
    item = alert("a", onset="2026-09-01T10:00:00-05:00", expires="2026-09-01T14:00:00-05:00", ends=ends)
    if vtec:
        item["properties"]["parameters"] = {"VTEC": vtec}
    upstream.fail("/alerts/active", 200, json.dumps({"type": "FeatureCollection", "features": [item]}).encode())
    said = await called(upstream, "get_alerts", place=_BIRMINGHAM)
    assert f" from 2026-09-01T10:00-05:00{until}: " in said


@pytest.mark.reported("michaeldavie/env_canada#123")
@pytest.mark.reported("michaeldavie/env_canada#127")
@pytest.mark.parametrize(
    ("colour", "kind", "severity"),
    [
        ("yellow", "warning", "Moderate"), ("orange", "warning", "Severe"), ("red", "warning", "Extreme"),
        ("Red", "advisory", "Extreme"), (None, "warning", "Severe"), (None, "statement", "Minor"),
        (None, None, "severity unknown"),
    ],
)  # fmt: skip
async def test_an_alert_of_canada_is_as_bad_as_its_colour(
    upstream: Upstream, colour: str | None, kind: str | None, severity: str
) -> None:
    def colour_alerts(document: dict[str, Any]) -> None:
        for feature in document["features"]:
            feature["properties"] |= {"risk_colour_en": colour, "alert_type": kind}

    upstream.fail("/collections/", change=colour_alerts)
    said = await called(upstream, "get_alerts", place="Toronto")
    assert f"- freezing rain warning ({severity}) from" in said


@pytest.mark.reported("breezy-weather/breezy-weather#1471")
@pytest.mark.usefixtures("more_places")
@pytest.mark.parametrize(
    ("where", "listed", "code"), [("42.5,1.52", "feeds-france", "FR001"), ("Mariehamn", "feeds-finland", "FI043")]
)
async def test_the_warnings_of_a_neighbour_count_where_its_list_has_an_area(
    upstream: Upstream, where: str, listed: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        imitation, "GAZETTEER", [*imitation.GAZETTEER, place("Andorra", 42.5, 1.52, "Europe/Andorra", 20)]
    )
    area = {"areaDesc": "There", "geocode": [{"valueName": "EMMA_ID", "value": code}]}
    message = {"identifier": "a", "status": "Actual", "msgType": "Alert", "info": [{"event": "Gale", "area": [area]}]}
    upstream.fail(listed, 200, json.dumps({"warnings": [{"alert": message}]}).encode())
    said = await called(upstream, "get_alerts", place=where)
    assert "- Gale" in said and "not known whether" not in said


@pytest.mark.reported("breezy-weather/breezy-weather#1476")
@pytest.mark.usefixtures("more_places")
async def test_an_empty_list_says_nothing_of_islands_that_the_service_has_no_point_for(upstream: Upstream) -> None:
    said = await called(upstream, "get_alerts", place="Pago Pago")
    assert "Not known: no service built in covers this place" in said and "None in effect" not in said


@pytest.mark.reported("netbymatt/ws4kp#230")
async def test_why_there_is_no_forecast_at_sea_is_told(upstream: Upstream) -> None:
    refusal = {"title": "Marine Forecast Not Supported", "detail": "No forecasts for marine areas.", "status": 404}
    upstream.fail("/forecast", 404, json.dumps(refusal).encode())
    failed, said = await forecast(upstream, place=_BIRMINGHAM, source="nws")
    assert failed and "`No forecasts for marine areas`" in said

    def lose_grid(document: dict[str, Any]) -> None:
        document["properties"] |= {"gridId": None, "gridX": None, "gridY": None}

    upstream.fail("/points/", change=lose_grid, times=9)
    failed, said = await forecast(upstream, place=_BIRMINGHAM, source="nws")
    assert failed and "has no forecast and no stations for this point. Call again without `source`." in said
    said = await called(upstream, "get_weather", place=_BIRMINGHAM)
    assert "[Nothing measured: The National Weather Service has no forecast and no stations for this point.]" in said


@pytest.mark.reported("weather-gov/weather.gov#1726")
@pytest.mark.reported("weather-gov/weather.gov#1831")
@pytest.mark.reported("netbymatt/ws4kp#114")
async def test_the_nearest_station_is_asked_and_its_distance_told(upstream: Upstream) -> None:
    def place_stations(document: dict[str, Any]) -> None:
        names = ("KTCL", None, "KXYZ", "KBHM")
        points = ([-87.61, 33.22], [-86.8, 33.5], None, [-86.75, 33.56])
        document["features"] = [
            {"properties": {"stationIdentifier": name}, "geometry": point and {"type": "Point", "coordinates": point}}
            for name, point in zip(names, points, strict=True)
        ]

    upstream.fail("/gridpoints/BMX/", change=place_stations)
    said = await called(upstream, "get_weather", place=_BIRMINGHAM)
    assert "Observed at station KBHM, 7.2 km away, at " in said
    assert not any("/stations/KTCL" in request for request in upstream.requests)


@pytest.mark.reported("amit9838/mousam#172")
@pytest.mark.reported("home-assistant/frontend#3677")
@pytest.mark.reported("cohenadair/anglers-log#656")
@pytest.mark.reported("atareao/my-weather-indicator#44")
async def test_pressure_is_in_inches_where_all_else_is(upstream: Upstream) -> None:
    upstream.fail("current=", change=present(pressure_msl=1013.2), times=9)
    assert "pressure msl 29.92 inHg" in await called(upstream, "get_weather", place=_BIRMINGHAM, units="imperial")
    assert "pressure msl 1013.2 hPa" in await called(upstream, "get_weather", place=_BIRMINGHAM, units="nautical")
    said = await called(upstream, "get_metar", place="KBHM", units="imperial")
    assert "pressure altimeter 30.06 inHg" in said


@pytest.mark.reported("open-meteo/open-meteo#1636")
@pytest.mark.reported("martykan/forecastie#32")
async def test_snow_on_the_ground_is_told_as_snow_that_falls(upstream: Upstream) -> None:
    def little_snow(document: dict[str, Any]) -> None:
        document["hourly"]["snow_depth"] = [0.01] * len(document["hourly"]["time"])

    upstream.fail("hourly=", change=little_snow, times=9)
    for units, title, depth in (("metric", "snow_depth [cm]", "1"), ("imperial", "snow_depth [inch]", "0.39")):
        said = await called(upstream, "get_forecast", place="Zurich", hours=1, variables=["precipitation"], units=units)
        *_, titles, row = said.splitlines()
        assert row.split(" | ")[titles.split(" | ").index(title)] == depth, said


@pytest.mark.reported("ScottSturdivant/rpi_metar#20")
@pytest.mark.reported("joeyates/metar-parser#11")
@pytest.mark.reported("mivek/MetarParser#44")
@pytest.mark.reported("mivek/MetarParser#64")
@pytest.mark.reported("SafranCassiopee/php-metar-decoder#25")
@pytest.mark.reported("aeharding/metar-taf-parser#124")
@pytest.mark.reported("Unidata/MetPy#2807")
@pytest.mark.parametrize(
    ("report", "miles", "metric", "imperial"),
    [
        ("24008KT 9999 FEW030", "6+", "10000+ m", "6.21+ mi"), ("24008KT 210V270 CAVOK", "6+", "10000+ m", "6.21+ mi"),
        ("00000KT 9999NDV BKN060", "6+", "10000+ m", "6.21+ mi"), ("22005KT 4000 HZ", 2.49, "4000 m", "2.49 mi"),
        ("02003MPS 0350 R24L/1100 FG", 0.22, "350 m", "0.22 mi"), ("00000KT 0000 FG", 0.03, "<50 m", "<0.031 mi"),
        ("29007KT 10SM OVC008", "10+", "16093+ m", "10+ mi"), ("18010G20KT 1 1/2SM TS", 1.5, "2414 m", "1.5 mi"),
        ("VRB03KT M1/4SM FG", 0.25, "<402 m", "<0.25 mi"), ("22012KT P6SM SKC", "6+", "9656+ m", "6+ mi"),
        ("07010KT 20KM VCSH", None, "20000 m", "12.43 mi"), ("without wind", 7, "11265 m", "7 mi"),
        ("/////KT //// // //////", None, None, None), ("24008KT //// TEMPO 18010KT 9999", None, None, None),
        ("07004KT 11/2SM BR", 1.5, "2414 m", "1.5 mi"), ("07004KT 3/16SM FG", 0.19, "302 m", "0.19 mi"),
        ("04006KT 4000E -SHRA", None, "4000 m", "2.49 mi"), ("04006KT 1500SW BR", None, "1500 m", "0.93 mi"),
        ("02010KT 1/16SM R35L/1000V1200FT FZFG VV001", 0.06, "101 m", "0.063 mi"),
    ],
)  # fmt: skip
async def test_the_visibility_of_a_report_is_in_the_unit_of_who_asks(
    upstream: Upstream, report: str, miles: object, metric: str | None, imperial: str | None
) -> None:
    fields = {"icaoId": "LTBJ", "lat": 38.29, "lon": 27.16, "obsTime": upstream.now(), "visib": miles}
    body = json.dumps([{**fields, "rawOb": f"METAR LTBJ 200420Z AUTO {report} 09/08 Q1018"}]).encode()
    upstream.fail("/api/data/metar", 200, body, times=2)
    for units, shown in (("metric", metric), ("imperial", imperial)):
        said = await called(upstream, "get_metar", place="LTBJ", units=units)
        if shown is None:
            assert re.search(r"unknown: .*\bvisibility\b", said), said
        else:
            assert f"visibility {shown}" in said, said


@pytest.mark.reported("chubin/wttr.in#952")
@pytest.mark.reported("chubin/wttr.in#836")
async def test_a_code_from_luggage_is_answered_with_the_kind_that_works(upstream: Upstream) -> None:
    async with client(upstream) as found:
        for code in ("JFK", "zrh"):
            result = await found.call_tool("get_metar", {"place": code})
            assert result.is_error and text(result).endswith(
                "Codes of airports have four letters here: `KJFK`, `LSZH`."
            )


@pytest.mark.reported("chubin/wttr.in#818")
@pytest.mark.reported("chubin/wttr.in#1001")
async def test_a_code_of_an_airport_leads_to_its_coordinates(upstream: Upstream) -> None:
    async with client(upstream) as found:
        for code in ("SDF", "KSDF"):
            result = await found.call_tool("get_weather", {"place": code})
            assert result.is_error and "`get_metar` tells the coordinates of a code of four letters" in text(result)
        misspelt = await found.call_tool("get_weather", {"place": "Zurihc"})
        assert "Check the spelling" in text(misspelt)


@pytest.mark.reported("MagicMirrorOrg/MagicMirror#187")
@pytest.mark.reported("QubesOS/qubes-issues#435")
async def test_a_clock_that_is_ahead_is_named_as_a_reason(upstream: Upstream) -> None:
    async with World(upstream) as world:
        place = await world.place("Zurich")
        upstream.now = lambda: world.now - 30 * 86400
        for fetch in (world.engine.open_meteo.fetch_hours, world.engine.open_meteo.fetch_days):
            with pytest.raises(Unavailable, match=r"of times that are past.*check the clock of the machine"):
                await fetch(place, ("basic",), 3, "best_match", "metric")
        upstream.now = lambda: world.now
        world.now += 86400
        assert (await world.engine.open_meteo.fetch_hours(place, ("basic",), 3, "best_match", "metric")).table.time


@pytest.mark.reported("open-meteo/open-meteo#104")
@pytest.mark.reported("open-meteo/open-meteo#1373")
@pytest.mark.reported("mwood77/ws4kp-international#16")
@pytest.mark.parametrize(
    ("levels", "units", "told"),
    [
        ([0, 2, 3.1, 3.1, 1, -2, -2.4, -1, 1], "metric", "high {2} (3.1 m), low {6} (-2.4 m). Above mean sea level"),
        ([0, 2, 3, None, 1, -2, -2.5, -1, 1], "imperial", "low {6} (-8.2 ft). Above"),
        ([0.5, 0.55, 0.6, 0.55, 0.5, 0.55, 0.6, 0.55, 0.5], "metric", None),
        ([1, 2, 3, 4, 5, 6, 7, 8, 9], "metric", None), ([None] * 9, "metric", None),
        # Wind in the Baltic raises the water by and by, and not without setbacks.
        ([0.1, 0.16, 0.15, 0.22, 0.2, 0.28, 0.27, 0.33, 0.34], "metric", None),
        ([0, 0.4] * 9, "metric", "high {1} (0.4 m), low {2} (0 m), high {3} (0.4 m), low {4} (0 m), high {5} (0.4 m), "
         "low {6} (0 m), high {7} (0.4 m), low {8} (0 m); 8 more below, in sea_level_height_msl. Above"),
    ],
)  # fmt: skip
async def test_high_and_low_water_are_told(
    upstream: Upstream, levels: list[float | None], units: str, told: str | None
) -> None:
    def turn_tide(document: dict[str, Any]) -> None:
        hours = document["hourly"]["time"]
        first = next(index for index, moment in enumerate(hours) if moment + 3600 > upstream.now())
        document["hourly"]["sea_level_height_msl"] = (
            [None] * first + levels + [None] * (len(hours) - first - len(levels))
        )

    upstream.fail("/v1/marine", change=turn_tide)
    said = await called(upstream, "get_marine", place="Assen", hours=len(levels), units=units)
    times = [line.partition(" | ")[0] for line in said.splitlines() if re.match(r"\d{4}-", line)]
    if told is None:
        assert "low water" not in said and "sea_level_height_msl" in said
    else:
        assert f"[High and low water to about an hour: {told.format(*times)}" in said, said
