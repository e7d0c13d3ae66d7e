"""Faults by the thousand: does `get_alerts` ever say "none" where the service has not just said so?"""

import copy
import json
import random
from typing import Any

from mcp_weather.engine.requests import upstream as asking
from mcp_weather.policy.place import Place, point_at
from proofs.tally import Tally
from weather.serving import World
from weather.upstream import BIRMINGHAM, Upstream, recording

ANSWERS = {"alerts", "none", "not_covered", "unavailable"}
BODIES = [
    b"<rss/>", b"<rss><channel/></rss>", b"<rss><channel><item/></channel></rss>", b"<alert/>",
    b"<feed><entry/></feed>", b"<alert><info/></alert>", b"<!DOCTYPE a><rss><channel/></rss>",
    b"", b"null", b"[]", b"{}", b"true", b'"none"', b'{"features":', b"<html>", b"\xff\xfe", b'{"features":[]}',
    b'{"type":"FeatureCollection"}', b'{"type":"FeatureCollection","features":null}', b'{"title":"OK"}',
    b'{"type":"FeatureCollection","features":{}}', b'{"error":true,"reason":"?"}',
    b'{"type":"FeatureCollection","features":[],"pagination":{"next":"https://api.weather.gov/alerts?cursor=a"}}',
]  # fmt: skip
WHERE = ["/alerts", "/alerts", "/alerts", "/points", "", "/cap/", "id=", "/v2/cap-alerts"]
STATUSES = [200, 200, 200, 301, 400, 401, 403, 404, 408, 410, 418, 429, 500, 502, 503, 504]
VALUES: list[Any] = [
    None,
    "",
    0,
    -1,
    True,
    [],
    {},
    "Unknown",
    "0001-01-01T00:00:00Z",
    "2026-01-01T00:00:00",
    "?" * 3000,
]
INSIDE = ("ends", "expires", "onset", "effective", "id", "event", "severity", "headline", "areaDesc", "sent", "urgency")
"""What may be wrong of one alert without making it another: `status` and `messageType` say whether it is one."""


class Trial:
    """One world after another; the truth is what the upstream would answer at a moment if nothing went wrong."""

    def __init__(self, upstream: Upstream, seed: int) -> None:
        self.upstream, self.random = upstream, random.Random(seed)
        self.said: dict[str, int] = dict.fromkeys(ANSWERS, 0)

    async def run(self, count: int) -> list[str]:
        """Descriptions of all answers that were wrong."""
        asking._RETRY_DELAY_SECONDS = 0.0  # Between two tries, for the sake of a real service.
        wrong: list[str] = []
        done = 0
        while done < count:
            self.quiet: list[float] = []
            async with World(self.upstream) as world:
                for _ in range(min(self.random.randrange(1, 60), count - done)):
                    done += 1
                    wrong += await self.once(world)
            self.upstream.requests.clear()
        return wrong

    async def once(self, world: World) -> list[str]:
        roll = self.random
        world.now += roll.choice([0.0, 1.0, 29.0, 31.0, 119.0, 121.0, 3600.0, 90_000.0, -1.0, -45.0])
        truth = roll.random() < 0.8
        self.upstream.alerts = truth
        if not truth:
            self.quiet.append(world.now)
        self.upstream.faults.clear()
        told = self.break_something(world.now)
        place = self.place()
        answer = await world.engine.alerts.fetch(place)
        self.said[answer.status] += 1
        wrong: list[str] = []
        if answer.status == "none":
            origin = answer.origin
            confirmed = origin is not None and not origin.stale
            # What was true a moment ago may be repeated for two minutes; a clock may be set back by one.
            then = world.now - origin.age_s if origin else 0.0
            recent = origin is not None and origin.age_s <= 120 and any(abs(at - then) < 62 for at in self.quiet)
            if not confirmed or not recent:
                wrong.append(f"none: {told}; in effect: {truth}, {world.now}; {answer.explanation} {origin}")
            if place.country == "AU":
                wrong.append(f"none of a copy: {told}; {answer.explanation}")
        if answer.status == "not_covered":
            wrong.append(f"not covered: {told}; {answer.explanation}")
        if (answer.status == "alerts") != bool(answer.alerts) or any(not alert.event for alert in answer.alerts):
            wrong.append(f"{answer.status} with {len(answer.alerts)}: {told}")
        return wrong

    def place(self) -> Place:
        latitude, longitude = map(float, BIRMINGHAM.split(","))
        country = self.random.choice([None, "US", "US", "NZ", "NZ", "AU"])
        if country == "NZ":
            return point_at(-41.2866, 174.7756, country="NZ", timezone="Pacific/Auckland", resolved="test")
        if country == "AU":
            return point_at(-33.8679, 151.2073, country="AU", timezone="Australia/Sydney", resolved="test")
        return point_at(latitude, longitude, country=country, resolved="test")

    def break_something(self, now: float) -> str:
        """Zero to two faults, each for the alerts, the point, or whatever comes first."""
        told: list[str] = []
        for _ in range(self.random.choice([0, 1, 1, 1, 2])):
            where = self.random.choice(WHERE)
            times = self.random.choice([1, 2, 99])
            match self.random.randrange(5):
                case 0:
                    self.upstream.fail(where, cut=True, times=times)
                    told.append(f"{where} broken off")
                case 1 | 2:
                    status, body = self.random.choice(STATUSES), self.random.choice(BODIES)
                    self.upstream.fail(where, status, body, times=times)
                    told.append(f"{where} {status} {body!r}")
                case 3:
                    self.mangle_messages()
                    told.append(f"messages {self.upstream.caps}")
                case _:
                    body = self.mangled(now)
                    self.upstream.fail("/alerts", 200, body, times=times)
                    told.append(f"/alerts with {body[:3000]!r}")
        return " and ".join(told) or "nothing broken"

    def mangle_messages(self) -> None:
        """Messages of CAP feeds without what says where and until when they are; each is still a warning here."""
        roll = self.random
        for messages in self.upstream.caps.values():
            for message in messages:
                message["hours"] = roll.choice([6, None])
                message["link"] = roll.choice([None, None, None, "https://example.org/a.xml", " ", "?"])
                if message["identifier"] != "north":
                    message["polygon"] = roll.choice([None, "?", "1,1", "-45,140 -30,140 -30,180 -45,180 -45,140"])
                message["circle"] = roll.choice([None, None, "?", "nan,nan nan"])

    def mangled(self, now: float) -> bytes:
        """The list of alerts with parts missing or of another kind, each alert still an alert."""
        roll = self.random
        found = copy.deepcopy(recording("alerts", now))
        for feature in found["features"]:
            for name in roll.sample(INSIDE, roll.randrange(len(INSIDE))):
                if roll.random() < 0.4:
                    del feature["properties"][name]
                else:
                    feature["properties"][name] = roll.choice(VALUES)
            if roll.random() < 0.1:
                feature["properties"] = roll.choice([None, [], "?"])
        features: list[Any] = roll.sample(found["features"], roll.randrange(1, len(found["features"]) + 1))
        found["features"] = [roll.choice([None, [], 1]) if roll.random() < 0.05 else item for item in features]
        if roll.random() < 0.1:
            del found[roll.choice(list(found))]
        return json.dumps(found).encode()


async def prove(count: int, seed: int) -> Tally:
    """Ask for alerts under so many faults."""
    with Upstream() as upstream:
        trial = Trial(upstream, seed)
        wrong = await trial.run(count)
    return Tally.of({"faults": count, **trial.said}, wrong)
