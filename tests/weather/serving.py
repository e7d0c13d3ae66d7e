"""The server beside a loopback upstream: in this process or as its own, with a clock of its own where time matters."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client

from e2e.serving import connected
from mcp_batteries.remote import Cache, MemoryStore
from mcp_batteries.settings import load
from mcp_batteries.testing.wire import Wire
from mcp_weather.engine.answers.local_time import find_local_time
from mcp_weather.engine.computed.astronomy import compute_astronomy
from mcp_weather.engine.engine import Engine
from mcp_weather.engine.requests.queries import scope_of
from mcp_weather.engine.requests.upstream import Upstream as Fetcher
from mcp_weather.engine.saved_places import SavedPlaces
from mcp_weather.models import Astronomy
from mcp_weather.policy.days import TODAY, WrittenDay
from mcp_weather.policy.place import Place
from mcp_weather.policy.policy import Policy
from mcp_weather.server import build
from mcp_weather.settings import Settings
from weather.upstream import Upstream

ZURICH = "weather://47.37,8.55/now"


def settings(upstream: Upstream, *arguments: object) -> Settings:
    return load(Settings, [*upstream.arguments, *map(str, arguments)])


@asynccontextmanager
async def client(upstream: Upstream, *arguments: object) -> AsyncGenerator[Client]:
    """An in-memory client; nothing is kept on disk."""
    async with Client(build(settings(upstream, "--cache", "memory", *arguments))) as found:
        yield found


@asynccontextmanager
async def served(
    transport: str, revision: str, upstream: Upstream, cache: Path | str, *more: object
) -> AsyncGenerator[Wire]:
    """A client of a process of its own that looks at the weather once a second."""
    words = [*upstream.arguments, "--cache", str(cache), "--refresh", "1", *map(str, more)]
    async with connected(transport, revision, "mcp_weather", words) as wire:
        yield wire


class World:
    """An engine under a clock that moves when it is told to."""

    def __init__(self, upstream: Upstream, *arguments: object, now: float = 1_790_000_000.0) -> None:
        self.now, self.readings = now, 0
        upstream.now = lambda: self.now
        store = MemoryStore()
        self.settings = settings(upstream, *arguments)
        self.fetcher = Fetcher(self.settings, store, clock=self.clock)
        self.cache = Cache(store, self.fetcher.fetch, scope=scope_of, clock=self.clock)
        self.engine = Engine(self.cache, language="en")
        self.policy = Policy(SavedPlaces(self.settings.places).all, self.engine.geocode)

    def clock(self) -> float:
        # No two readings are the same, as with real ones; all together are far below a second.
        self.readings += 1
        return self.now + self.readings * 1e-6

    async def __aenter__(self) -> "World":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.fetcher.__aexit__()

    async def place(self, text: str) -> Place:
        return await self.policy.resolve_place(text)

    async def sky(self, text: str, day: str | None) -> Astronomy:
        place = await self.place(text)
        here = await find_local_time(self.engine, place)
        wanted = (TODAY if day is None else WrittenDay(day)).in_astronomy(here.today, here.zone)
        return compute_astronomy(place, wanted, here.zone, here.notes)


def text(result: Any) -> str:
    return result.content[0].text
