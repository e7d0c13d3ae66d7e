"""`get_alerts` never says "none" unless the service that covers the place has just said so."""

from datetime import UTC
from typing import Any

import pytest

from mcp_weather.engine.services.nws_documents import read_alerts
from mcp_weather.engine.services.service_alerts import ServiceAlerts
from weather.faults import Trial
from weather.serving import World, client, text
from weather.upstream import BIRMINGHAM, Upstream

pytestmark = pytest.mark.anyio


@pytest.mark.slow
async def test_no_fault_makes_none_of_what_is_not_known(upstream: Upstream) -> None:
    trial = Trial(upstream, seed=7)
    assert await trial.run(250) == []
    assert min(trial.said["alerts"], trial.said["none"], trial.said["unavailable"]) > 0


@pytest.mark.slow
async def test_the_faults_find_a_planted_false_none(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ServiceAlerts, "is_confirmed", property(lambda answer: answer.origin is not None))
    assert await Trial(upstream, seed=7).run(250) != []


async def test_none_that_the_service_can_no_longer_confirm_is_not_none(upstream: Upstream) -> None:
    async with World(upstream) as world:
        birmingham = await world.place("Birmingham")
        upstream.alerts = False
        assert (await world.engine.alerts.fetch(birmingham)).status == "none"
        world.now += 3600
        upstream.fail("/alerts", 500, times=2)
        failed = await world.engine.alerts.fetch(birmingham)
        assert failed.status == "unavailable" and "last looked at 2026-" in failed.explanation
        assert "None" not in failed.text() and "500" in failed.explanation
        upstream.alerts = True
        assert (await world.engine.alerts.fetch(birmingham)).status == "alerts"


async def test_alerts_stay_when_the_service_fails_and_say_how_old_they_are(upstream: Upstream) -> None:
    async with World(upstream) as world:
        birmingham = await world.place("Birmingham")
        await world.engine.alerts.fetch(birmingham)
        world.now += 7200
        upstream.fail("/alerts", 503, times=2)
        stale = await world.engine.alerts.fetch(birmingham)
        assert stale.status == "alerts" and len(stale.alerts) == 4
        assert "last looked at" in stale.explanation and stale.origin is not None and stale.origin.stale


@pytest.mark.parametrize("ends", [None, "date:now -3 hour"])
async def test_the_services_own_list_decides_and_not_when_a_message_expires(
    upstream: Upstream, ends: str | None
) -> None:
    def one(document: dict[str, Any]) -> None:
        document["features"] = document["features"][:1]
        document["features"][0]["properties"] |= {"ends": None, "expires": "2026-01-01T00:00:00+00:00"}
        if ends:
            document["features"][0]["properties"]["ends"] = "2026-01-01T00:00:00+00:00"

    async with World(upstream) as world:
        upstream.fail("/alerts", change=one)
        found = await world.engine.alerts.fetch(await world.place("Birmingham"))
        assert found.status == "alerts" and found.alerts[0].event == "Wind Advisory"


@pytest.mark.parametrize("status", ["Test", "Exercise", "System", "Draft"])
async def test_what_is_not_meant_for_the_public_is_not_told(upstream: Upstream, status: str) -> None:
    def tried(document: dict[str, Any]) -> None:
        for feature in document["features"]:
            feature["properties"]["status"] = status

    async with World(upstream) as world:
        upstream.fail("/alerts", change=tried)
        assert (await world.engine.alerts.fetch(await world.place("Birmingham"))).status == "none"


async def test_a_point_that_is_missing_for_a_moment_is_not_called_uncovered(upstream: Upstream) -> None:
    async with World(upstream) as world:
        place = await world.place(BIRMINGHAM)
        upstream.alerts = False
        upstream.fail("/points", 404, b'{"type":"https://api.weather.gov/problems/NotFound","status":404}')
        assert (await world.engine.alerts.fetch(place)).status == "unavailable"
        world.now += 3600
        assert (await world.engine.alerts.fetch(place)).status == "none"


async def test_a_question_that_the_service_refuses_harms_nothing_else(upstream: Upstream) -> None:
    async with client(upstream) as found:
        upstream.fail(
            "/alerts", 400, b'{"title":"Bad Request","detail":"Parameter point is invalid","status":400}', times=9
        )
        result = await found.call_tool("get_weather", {"place": "Birmingham"})
        assert not result.is_error and result.structured_content is not None
        assert result.structured_content["alerts"]["status"] == "unavailable"
        assert result.structured_content["now"]["values"] and "could not be asked" in text(result)
        alone = await found.call_tool("get_alerts", {"place": "Birmingham"})
        assert "Parameter point is invalid" in text(alone)


def chain(**more: Any) -> dict[str, Any]:
    """A list of two alerts, of which the second is later."""
    base = {"status": "Actual", "messageType": "Alert", "event": "Flood Watch", "severity": "Severe"}
    old = base | {"id": "urn:oid:old.001.1", "sent": "2026-11-20T10:00:00-06:00"}
    new = base | {"id": "urn:oid:new.001.1", "sent": "2026-11-20T12:00:00-06:00", "messageType": "Update"}
    changed = {"old": old, "new": new}
    for path, value in more.items():
        which, _, name = path.partition("_")
        changed[which][name] = value
    return {"type": "FeatureCollection", "features": [{"properties": old}, {"properties": new}]}


REFERENCE = {"identifier": "urn:oid:old.001.1", "sender": "noaa.gov", "sent": "2026-11-20T10:00:00-06:00"}
EXPIRED = "w-nws.webmaster@noaa.gov,urn:oid:x,- w-nws.webmaster@noaa.gov,urn:oid:old.001.1,2026-11-20T10:00:00-06:00"
SUCCESSOR = "https://api.weather.gov/alerts/urn:oid:new.001.1"


@pytest.mark.parametrize(
    ("changes", "counted"),
    [
        ({}, ["old", "new"]),
        ({"new_references": [REFERENCE]}, ["new"]),
        ({"new_parameters": {"expiredReferences": [EXPIRED]}}, ["new"]),
        ({"old_replacedBy": SUCCESSOR}, ["new"]),
        ({"old_replacedBy": SUCCESSOR, "new_messageType": "Alert"}, ["new"]),
        ({"new_references": [REFERENCE], "new_messageType": "Cancel"}, []),
        # What replaces it is not for this point, is no real alert, is older, or no answer at all.
        ({"old_replacedBy": SUCCESSOR.replace("new", "elsewhere")}, ["old", "new"]),
        ({"new_references": [REFERENCE], "new_status": "Test"}, ["old"]),
        ({"new_references": [REFERENCE], "new_sent": "2026-11-20T09:00:00-06:00"}, ["old", "new"]),
        ({"new_references": [REFERENCE], "new_sent": None}, ["old", "new"]),
        ({"new_references": [REFERENCE], "new_messageType": "Alert"}, ["old", "new"]),
        ({"new_references": ["old", None, {"identifier": None}]}, ["old", "new"]),
        ({"new_references": "urn:oid:old.001.1", "new_parameters": {"expiredReferences": "?"}}, ["old", "new"]),
        ({"old_replacedBy": SUCCESSOR, "new_replacedBy": SUCCESSOR.replace("new", "old")}, ["new"]),
        ({"old_id": None, "new_references": [{"identifier": "None"}]}, ["without an identifier 0", "new"]),
    ],
)  # fmt: skip
def test_what_another_alert_of_the_list_replaces_is_not_counted(changes: dict[str, Any], counted: list[str]) -> None:
    found = read_alerts(chain(**changes), UTC)
    assert [alert.id.removeprefix("urn:oid:").removesuffix(".001.1") for alert in found] == counted
