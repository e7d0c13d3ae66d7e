"""Answers with one part of another kind, by the thousand: none of them may read as a failure of the server's own."""

import json
import random
from collections.abc import Callable
from typing import Any

from mcp import Client, MCPError

from mcp_weather.engine.requests import upstream as asking
from mcp_weather.server import build
from proofs.tally import Tally
from weather.serving import settings, text
from weather.upstream import BIRMINGHAM, Upstream

VALUES: list[Any] = [
    None, True, 0, -1, 1e300, -1e300, 10**30, float("nan"), float("inf"), "", "?", "NaN", "1e5", "America", "Mars/Base",
    [], [None], [[]], {}, {"time": 1}, "\x00", "\u00b2", "0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59-12:00",
]  # fmt: skip
PLACES = ("Zurich", "Birmingham", BIRMINGHAM, "Assen", "Toronto", "-16.8,180", "Berlin, Deutschland", "北京")
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("get_weather", {}), ("get_forecast", {}), ("get_forecast", {"step": "daily"}), ("get_forecast", {"spread": True}),
    ("get_forecast", {"step": "15-minute"}), ("get_forecast", {"day": "tomorrow"}), ("get_forecast", {"source": "nws"}),
    ("get_alerts", {}), ("get_air_quality", {"pollen": True}), ("get_metar", {}), ("get_marine", {"river": True}),
    ("get_history", {"start": "yesterday"}), ("get_history", {"start": "2025-02-27", "normals": True}),
    ("get_astronomy", {}), ("plot_forecast", {}), ("find_place", {}),
]  # fmt: skip
KINDS = ("now", "hourly", "daily", "alerts", "air")
INTERNAL = ("failed inside", "failed on this request")
"""How the server tells of a defect of its own, in a tool's answer and in a resource's."""


class Trial:
    """One server after another, each with a fault in what one service answers."""

    def __init__(self, upstream: Upstream, seed: int) -> None:
        self.upstream, self.random = upstream, random.Random(seed)

    async def run(self, count: int) -> list[str]:
        """Descriptions of all answers that were wrong."""
        asking._RETRY_DELAY_SECONDS = 0.0  # Between two tries, for the sake of a real service.
        wrong: list[str] = []
        for _ in range(0, count, 8):
            async with Client(build(settings(self.upstream, "--cache", "memory"))) as client:
                for _ in range(8):
                    wrong += await self.once(client)
            self.upstream.requests.clear()
        return wrong

    async def once(self, client: Client) -> list[str]:
        told: list[str] = []
        where = self.random.choice(
            ["/v1/", "/v1/search", "/", "/points", "/gridpoints", "/stations", "/alerts", "feeds"]
        )
        self.upstream.faults.clear()
        self.upstream.fail(where, change=self.spoil(told), times=99)
        place, (tool, more) = self.random.choice(PLACES), self.random.choice(CALLS)
        what = {"query": place} if tool == "find_place" else {"place": place, **more}
        uri = f"weather://{place}/{self.random.choice(KINDS)}"
        answers: list[tuple[str, str]] = []
        answers.append((f"{tool} {what}", text(await client.call_tool(tool, what))))
        try:
            await client.read_resource(uri)
        except MCPError as problem:
            answers.append((uri, problem.error.message))
        return [
            f"{asked}: {said[:200]} after {'; '.join(told[:3])}"
            for asked, said in answers
            if any(words in said for words in INTERNAL)
        ]

    def spoil(self, told: list[str]) -> Callable[[dict[str, Any]], None]:
        def change(document: dict[str, Any]) -> None:
            inside: Any = document
            path: list[Any] = []
            while True:
                key = self.random.choice(list(inside) if isinstance(inside, dict) else range(len(inside)))
                path.append(key)
                below = inside[key]
                if not isinstance(below, dict | list) or not below or self.random.random() < 0.25:
                    break
                inside = below
            if isinstance(inside, dict) and self.random.random() < 0.15:
                told.append(f"without {path}")
                del inside[key]
                return
            inside[key] = self.random.choice(VALUES)
            told.append(f"{path} = {json.dumps(inside[key])}")

        return change


async def prove(count: int, seed: int) -> Tally:
    """Ask under so many garbled answers."""
    with Upstream() as upstream:
        wrong = await Trial(upstream, seed).run(count)
    return Tally.of({"garbled answers": count}, wrong)
