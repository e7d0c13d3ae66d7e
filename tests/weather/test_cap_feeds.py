"""Warnings of Asia and Oceania from feeds of CAP 1.2: for the place, in force, and never "none" from a copy."""

from datetime import UTC
from typing import Any

import pytest

from mcp_weather.engine.requests.cap_xml import read_cap_xml
from mcp_weather.engine.services.cap_feeds import FEEDS
from mcp_weather.engine.services.cap_messages import read_messages
from weather.serving import World, client, text
from weather.upstream import Upstream

pytestmark = pytest.mark.anyio
OVER_WELLINGTON = {"polygon": "-42,174 -41,174 -41,176 -42,176 -42,174"}
DECLARED = "<!DOCTYPE a [<!ENTITY b 'c'>]><alert>&b;</alert>"
FORBIDDEN = (
    DECLARED.encode(),
    DECLARED.encode("utf-16"),
    b"<!DOCTYPE alert><alert/>",
    b"<html/>",
    b"<alert>",
    b"",
    b"\xff",
    b"{}",
    b"<rss/>",
)


async def fetch(upstream: Upstream, place: str) -> Any:
    async with World(upstream) as world:
        return await world.engine.alerts.fetch(await world.place(place))


async def test_new_zealands_list_is_its_services_own(upstream: Upstream) -> None:
    found = await fetch(upstream, "Wellington")
    assert [alert.id for alert in found.alerts] == ["windy"] and found.status == "alerts"
    assert found.covered_by == ["MetService (New Zealand)"] and found.alerts[0].area == "area of windy"
    assert (await fetch(upstream, "Auckland")).status == "none"
    upstream.alerts = False
    assert (await fetch(upstream, "-41.2866,174.7756")).status == "none"


async def test_a_copy_that_has_no_warning_proves_nothing(upstream: Upstream) -> None:
    found = await fetch(upstream, "Sydney")
    assert [alert.id for alert in found.alerts] == [
        "gale"
    ] and "These are the copies of the Bureau" in found.explanation
    upstream.alerts = False
    for place in ("Sydney", "-33.86785,151.20732"):
        found = await fetch(upstream, place)
        assert found.status == "unavailable" and "None for this place is among the copies" in found.explanation
    async with client(upstream) as asked:
        said = text(await asked.call_tool("get_weather", {"place": "Sydney"}))
        assert "Alerts: Not known" in said


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ({}, True), ({"polygon": "?"}, True), ({"polygon": None}, True), ({"hours": -1}, True), ({"hours": None}, True),
        ({"circle": "-41.3,174.8 5"}, True), ({"polygon": None, "circle": "-41.3,174.8 5"}, True),
        ({"polygon": None, "circle": "-39,174.8 5"}, False), ({"polygon": None, "circle": "-39,174.8 nan"}, True),
        ({"polygon": "nan,174 nan,176 nan,174"}, True), ({"polygon": "-39,nan -38,nan -39,inf"}, True),
        ({"polygon": "-39,174 -38,174 -38,176 -39,176 -39,174"}, False), ({"status": "Test"}, False),
        ({"status": "Exercise"}, False), ({"msgType": "Cancel"}, False), ({"msgType": "Update"}, True),
    ],
)  # fmt: skip
async def test_what_is_told_of_a_message(upstream: Upstream, message: dict[str, Any], told: bool) -> None:
    upstream.caps["metservice"] = [{"identifier": "a", **OVER_WELLINGTON, **message}]
    found = await fetch(upstream, "Wellington")
    assert [alert.id for alert in found.alerts] == (["a"] if told else [])
    assert found.status == ("alerts" if told else "none")


async def test_of_several_areas_the_one_is_named_that_may_hold_the_place(upstream: Upstream) -> None:
    far = {"areaDesc": "far", "polygon": "-39,174 -38,174 -38,176 -39,176 -39,174"}
    near = {"areaDesc": "near", **OVER_WELLINGTON}
    unknown = {"areaDesc": "unknown"}
    async with World(upstream) as world:
        place = await world.place("Wellington")
    for areas, named in (
        ([far, unknown], ["unknown (not known whether the place is in it)"]),
        ([far, unknown, near], ["near"]),
        ([far], []),
    ):
        alerts = read_messages([{"identifier": "a", "info": [{"area": areas}]}], place, UTC, "en")
        assert [alert.area for alert in alerts] == named


async def test_what_a_later_message_replaces_is_over(upstream: Upstream) -> None:
    earlier = {"identifier": "a", "age": 5, **OVER_WELLINGTON}
    later = {"identifier": "b", "msgType": "Update", "references": "x,a,2026-01-01T00:00:00+00:00", **OVER_WELLINGTON}
    upstream.caps["metservice"] = [later, earlier]
    assert [alert.id for alert in (await fetch(upstream, "Wellington")).alerts] == ["b"]
    upstream.caps["metservice"][0] |= {"msgType": "Cancel"}
    assert (await fetch(upstream, "Wellington")).status == "none"


async def test_what_is_over_is_left_out_of_a_copy_and_not_asked_for(upstream: Upstream) -> None:
    everywhere = {"polygon": None}
    upstream.caps["au-bom-en"] = [
        {"identifier": "over", "hours": -1, **everywhere}, {"identifier": "open", "hours": None, **everywhere},
    ]  # fmt: skip
    found = await fetch(upstream, "Sydney")
    assert [alert.id for alert in found.alerts] == ["open"]
    assert "not known whether the place is in it" in (found.alerts[0].area or "")
    assert upstream.count("over.xml") == 0 and upstream.count("open.xml") == 1


@pytest.mark.parametrize("body", FORBIDDEN)
async def test_a_feed_or_message_that_cannot_be_read_is_not_without_warnings(upstream: Upstream, body: bytes) -> None:
    for where in ("/cap/rss", "/cap/alert"):
        upstream.faults.clear()
        upstream.fail(where, 200, body, times=99)
        found = await fetch(upstream, "Auckland")
        assert found.status == "unavailable", found.explanation


@pytest.mark.parametrize("status", [301, 400, 403, 404, 410, 429, 500])
async def test_a_message_that_fails_is_not_a_message_less(upstream: Upstream, status: int) -> None:
    upstream.fail("id=windy", status, b"<html/>", times=99)
    found = await fetch(upstream, "Wellington")
    assert found.status == "unavailable" and "1 of 2 warnings" in found.explanation


async def test_messages_on_other_sites_are_not_asked_for(upstream: Upstream) -> None:
    for link in ("https://example.org/cap/alert?id=a", "http://127.0.0.1:1/a.xml", "file:///etc/passwd", ""):
        upstream.caps["metservice"] = [{"identifier": "a", "link": link or " "}]
        upstream.requests.clear()
        found = await fetch(upstream, "Wellington")
        assert found.status == "unavailable" and "lie elsewhere" in found.explanation
        assert upstream.count("/cap/") == 1


async def test_too_many_messages_are_not_all_read_and_that_is_told(upstream: Upstream) -> None:
    upstream.caps["metservice"] = [{"identifier": f"m{number}", "polygon": "0,0 0,1 1,1 0,0"} for number in range(70)]
    found = await fetch(upstream, "Wellington")
    assert found.status == "unavailable" and "10 of 70 warnings" in found.explanation
    assert upstream.count("/cap/alert") == 60


async def test_messages_are_asked_for_once(upstream: Upstream) -> None:
    async with World(upstream) as world:
        place = await world.place("Wellington")
        for _ in range(3):
            await world.engine.alerts.fetch(place)
            world.now += 600
        assert upstream.count("/cap/rss") == 3 and upstream.count("/cap/alert") == 2
        assert await world.engine.alerts.cache_keys(place) == ["metservice/cap/rss"]


def test_an_atom_feed_is_read_as_well() -> None:
    atom = (
        b'<feed xmlns="http://www.w3.org/2005/Atom"><title>x</title><!-- none --><entry><link href="https://a/b.xml"/>'
        b'<cap:expires xmlns:cap="urn:oasis:names:tc:emergency:cap:1.2">2026-01-01T00:00:00+08:00</cap:expires>'
        b"</entry></feed>"
    )
    entry = {"link": "https://a/b.xml", "expires": "2026-01-01T00:00:00+08:00"}
    assert read_cap_xml(atom) == {"entries": [entry]}
    assert all(read_cap_xml(body) is None for body in FORBIDDEN)


def test_only_a_services_own_list_may_prove_that_there_is_none() -> None:
    assert {country for country, feed in FEEDS.items() if feed.authority is None} == {"NZ"}
    assert all(feed.site.startswith("https://") for feed in FEEDS.values())
