"""Alerts of Europe and Canada: covered and none, alerts, or not covered, and never none where it is not known."""

import json
from typing import Any

import pytest

from mcp_weather.engine.services.meteoalarm import COUNTRIES
from mcp_weather.engine.services.meteoalarm_areas import area_contains, ring_contains
from weather.serving import World, client, text
from weather.upstream import METEOALARM, Upstream

pytestmark = pytest.mark.anyio
LIST = "/feeds-netherlands"


def warn(area: str | None = None, **more: Any) -> Any:
    """The recorded all-clears turned into warnings; `area` replaces what says where they are."""

    def change(document: dict[str, Any]) -> None:
        for warning in document["warnings"]:
            warning["alert"] |= more
            for info in warning["alert"]["info"]:
                info |= {
                    "severity": "Severe",
                    "event": f"wind {info['language']}",
                    "expires": "2026-01-01T00:00:00+01:00",
                }
                info["parameter"] = [{"valueName": "awareness_level", "value": "3; orange; Severe"}]
                if area is not None:
                    info["area"] = json.loads(area)

    return change


@pytest.mark.parametrize("place", ["Assen", "52.99667,6.5625", "52.9967,6.5625"])
async def test_an_all_clear_is_no_alert_and_a_warning_is_for_its_own_area(upstream: Upstream, place: str) -> None:
    async with World(upstream) as world:
        where = await world.place(place)
        clear = await world.engine.alerts.fetch(where)
        assert clear.status == "none" and clear.covered_by == ["MeteoAlarm (EUMETNET)"]
        world.now += 3600
        upstream.fail(LIST, change=warn())
        found = await world.engine.alerts.fetch(where)
        assert found.status == "alerts" and [alert.area for alert in found.alerts] == ["Drenthe"]
        assert found.alerts[0].event == "wind en-GB" and found.alerts[0].severity == "Severe"
        assert found.origin is not None and found.origin.licence == "CC BY 4.0"


async def test_warnings_come_in_the_language_asked_for(upstream: Upstream) -> None:
    async with client(upstream, "--language", "nl") as found:
        upstream.fail(LIST, change=warn())
        data = (await found.call_tool("get_alerts", {"place": "Assen"})).structured_content
        assert data is not None and [alert["event"] for alert in data["alerts"]] == ["wind nl-NL"]


@pytest.mark.parametrize(
    ("area", "told"),
    [
        ('[{"areaDesc": "A", "geocode": [{"valueName": "EMMA_ID", "value": "NL999"}]}]', True),
        ('[{"areaDesc": "A", "geocode": [{"valueName": "NUTS3", "value": "NL131"}]}]', True),
        ('[{"areaDesc": "A"}]', True), ("[]", True), ("null", True), ('["?"]', True),
        ('[{"areaDesc": "A", "polygon": ["52,6 54,6 54,7 52,7 52,6"]}]', True),
        ('[{"areaDesc": "A", "polygon": "52,6 54,6 54,7 52,7 52,6"}]', True),
        ('[{"areaDesc": "A", "polygon": ["40,6 41,6 41,7 40,7 40,6"]}]', False),
        ('[{"areaDesc": "A", "polygon": ["nowhere"]}]', True),
        ('[{"areaDesc": "A", "geocode": [{"valueName": "EMMA_ID", "value": "NL008"}]}]', False),
    ],
)  # fmt: skip
async def test_what_cannot_be_located_is_told_and_what_is_elsewhere_is_not(
    upstream: Upstream, area: str, told: bool
) -> None:
    async with World(upstream) as world:
        upstream.fail(LIST, change=warn(area))
        found = await world.engine.alerts.fetch(await world.place("Assen"))
        assert found.status == ("alerts" if told else "none"), found.alerts


async def test_canada_is_asked_for_the_point(upstream: Upstream) -> None:
    async with World(upstream) as world:
        for place in ("Toronto", "43.70011,-79.4163"):
            found = await world.engine.alerts.fetch(await world.place(place))
            assert found.status == "alerts" and found.covered_by == ["Environment Canada"]
            assert [alert.event for alert in found.alerts] == ["freezing rain warning"]
            assert found.alerts[0].severity == "Moderate" and found.alerts[0].area == "City of Toronto"
        assert (await world.engine.alerts.fetch(await world.place("London, Ontario"))).status == "none"


@pytest.mark.share(8)
@pytest.mark.parametrize("place", ["Assen", "Toronto"])
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b""), (503, b"{}"), (404, b"<html>"), (404, b"{}"), (400, b'{"title":"no"}'), (200, b"{}"), (200, b"[]"),
        (200, b'{"warnings":null}'), (200, b'{"features":[]}'), (200, b'{"warnings":{},"features":{}}'), (304, b""),
        (200, b'{"type":"FeatureCollection","features":[],"numberMatched":3}'),
    ],
)  # fmt: skip
async def test_a_service_that_fails_is_not_without_alerts(
    upstream: Upstream, place: str, status: int, body: bytes
) -> None:
    async with World(upstream) as world:
        upstream.alerts = False
        where = await world.place(place)
        for path in ("/feeds-", "/collections/"):
            upstream.fail(path, status, body, times=99)
        assert (await world.engine.alerts.fetch(where)).status == "unavailable"
        upstream.faults.clear()
        world.now += 3600
        assert (await world.engine.alerts.fetch(where)).status == "none"
        for path in ("/feeds-", "/collections/"):
            upstream.fail(path, status, body, times=99)
        world.now += 3600
        stale = await world.engine.alerts.fetch(where)
        assert stale.status == ("none" if status == 304 else "unavailable"), stale.explanation


@pytest.mark.parametrize(("place", "path"), [("Toronto", "/collections/"), ("Birmingham, Alabama", "/alerts/active")])
async def test_a_part_of_the_alerts_is_not_told_as_all(upstream: Upstream, place: str, path: str) -> None:
    async with World(upstream) as world:
        found = await world.engine.alerts.fetch(await world.place(place))
        assert found.status == "alerts" and "came in parts" not in found.explanation
        more = {"numberMatched": 9} if path == "/collections/" else {"pagination": {"next": "https://x/?cursor=a"}}
        part = {"type": "FeatureCollection", "features": [{"properties": {"id": "a"}}], **more}
        upstream.fail(path, 200, json.dumps(part).encode(), times=99)
        world.now += 3600
        found = await world.engine.alerts.fetch(await world.place(place))
        assert found.status == "alerts" and "lists more than was read" in found.explanation


async def test_without_a_country_it_is_not_known_who_warns(upstream: Upstream) -> None:
    async with World(upstream) as world:
        upstream.fail("/v1/forecast", 500, times=99)
        found = await world.engine.alerts.fetch(await world.place("52.99667,6.5625"))
        assert found.status == "unavailable" and "country is not known" in found.explanation


async def test_most_of_the_world_is_not_covered(upstream: Upstream) -> None:
    async with client(upstream) as found:
        for place in ("Москва", "北京", "0,0", "Longyearbyen"):
            result = await found.call_tool("get_alerts", {"place": place})
            assert result.structured_content is not None and result.structured_content["status"] == "not_covered"
            assert "None" not in text(result) and len(result.structured_content["not_covered_by"]) == 5


async def test_a_key_of_open_meteo_goes_to_open_meteo_only(upstream: Upstream) -> None:
    async with World(upstream, "--open-meteo-key", "hunter2") as world:
        for place in ("52.99667,6.5625", "43.70011,-79.4163"):
            await world.engine.alerts.fetch(await world.place(place))
    upstream.violations.clear()  # The description of the free service knows no key.
    others = [request for request in upstream.requests if "/feeds-" in request or "/collections/" in request]
    assert len(others) == 2 and not any("hunter2" in request for request in others)


def test_areas_are_where_they_should_be() -> None:
    assert area_contains("NL018", 52.99667, 6.5625) and not area_contains("NL008", 52.99667, 6.5625)
    assert area_contains("NL018", 48.0, 11.0) is False and area_contains("XX000", 52.0, 6.0) is None
    assert set(COUNTRIES.values()) == set(METEOALARM)
    square = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
    assert ring_contains(square, 0.5, 0.5) and ring_contains(square, 1.01, 0.5) and not ring_contains(square, 1.05, 0.5)


SENT = ("2026-03-02T02:00:00+01:00", "2026-03-02T08:00:00+01:00")


@pytest.mark.parametrize(
    ("kind", "more", "told"),
    [
        ("Update", {}, ["new"]), ("Cancel", {}, []), ("Error", {}, []), ("Alert", {}, ["old", "new"]),
        ("Update", {"status": "Test"}, ["old"]), ("Cancel", {"status": "Exercise"}, ["old"]),
        ("Update", {"sent": SENT[0]}, ["old", "new"]), ("Cancel", {"sent": "?"}, ["old"]),
        ("Update", {"references": "a,other,2026-03-02T02:00:00+01:00"}, ["old", "new"]),
        ("Update", {"references": None}, ["old", "new"]), ("Update", {"references": ["?"]}, ["old", "new"]),
        ("Update", {"references": f"a,x,{SENT[0]} knmi,old,{SENT[0]}"}, ["new"]),
    ],
)  # fmt: skip
async def test_what_a_later_message_replaces_is_over(
    upstream: Upstream, kind: str, more: dict[str, Any], told: list[str]
) -> None:
    def change(document: dict[str, Any]) -> None:
        warn()(document)
        warned = [item["alert"] for item in document["warnings"]]
        first = next(item for item in warned if item["info"][0]["area"][0]["areaDesc"] == "Drenthe")
        later = {"identifier": "new", "msgType": kind, "references": f"knmi,old,{SENT[0]}", "sent": SENT[1], **more}
        both = first | {"identifier": "old", "sent": SENT[0]}, first | later
        document["warnings"] = [{"alert": item} for item in both]

    async with World(upstream) as world:
        upstream.fail(LIST, change=change)
        found = await world.engine.alerts.fetch(await world.place("Assen"))
        assert sorted(alert.id for alert in found.alerts) == sorted(told)
        assert found.status == ("alerts" if told else "none")


async def test_two_messages_that_replace_each_other_are_both_told(upstream: Upstream) -> None:
    def change(document: dict[str, Any]) -> None:
        warn(msgType="Update", sent=SENT[0])(document)
        warned = [item["alert"] for item in document["warnings"]]
        first = next(item for item in warned if item["info"][0]["area"][0]["areaDesc"] == "Drenthe")
        both = [first | {"identifier": a, "references": f"x,{b},{SENT[0]}"} for a, b in ("ab", "ba")]
        document["warnings"] = [{"alert": item} for item in both]

    async with World(upstream) as world:
        upstream.fail(LIST, change=change)
        found = await world.engine.alerts.fetch(await world.place("Assen"))
        assert {alert.id for alert in found.alerts} == {"a", "b"}


async def test_a_listed_warning_whose_end_has_passed_is_told_as_such(upstream: Upstream) -> None:
    async with World(upstream) as world:
        upstream.fail(LIST, change=warn())
        found = await world.engine.alerts.fetch(await world.place("Assen"))
        assert found.explanation == (
            "1 in effect or announced, the worst Severe. Of 1 the end has passed, though still listed."
        )
