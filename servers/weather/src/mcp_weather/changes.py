"""Says which URIs to refresh: checks the upstreams for what somebody subscribed to, and the places file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable

import anyio

from mcp_batteries.remote import DiskStore, RemoteSource, open_store
from mcp_batteries.subscriptions.file_watcher import follow_file
from mcp_weather.engine.saved_places import SavedPlaces
from mcp_weather.engine.services.queries import current_key
from mcp_weather.policy import point_at
from mcp_weather.resources import PLACES, PROBLEM, Resources
from mcp_weather.settings import Settings

__all__ = ["PlacesWatcher", "demonstration", "weather_source"]


def weather_source(resources: Resources) -> RemoteSource:
    """The source for data of the upstreams."""

    def locate(uri: str) -> str | None:
        subject = resources.policy.subject(uri)
        return subject.uri if subject else None

    async def keys(uri: str) -> Collection[str]:
        subject = resources.policy.subject(uri)
        assert subject is not None
        return await resources.engine.keys(await resources.where(subject), subject.kind)

    return RemoteSource(resources.engine.cache, locate, keys)


class PlacesWatcher:
    """The source for the places file, which is always followed because it defines names in calls.

    Args:
        remote: has to find out again which place an alias is.
    """

    list_keys: Collection[Hashable] = (PLACES,)

    def __init__(self, saved: SavedPlaces, remote: RemoteSource) -> None:
        self._saved, self._remote = saved, remote

    def key(self, uri: str) -> Hashable | None:
        return PLACES if uri in (PLACES, PROBLEM) else None

    async def add(self, keys: Collection[Hashable]) -> None:
        pass

    def discard(self, keys: Collection[Hashable]) -> None:
        pass

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        async def read_again() -> None:
            if await anyio.to_thread.run_sync(self._saved.refresh):
                changed([PLACES])
                await self._remote.reconsider()

        if self._saved.path is not None:
            await follow_file(self._saved.path, read_again)
        await anyio.sleep_forever()


def demonstration(settings: Settings) -> tuple[str, Callable[[], None]] | None:
    """For `--check`: drop the kept weather of one place, which every process notices."""
    store = open_store(settings.cache, settings.COMMAND, identity(settings))
    if not isinstance(store, DiskStore):
        return None
    saved = SavedPlaces(settings.places)
    place = next(iter(saved.all().values()), None) or point_at(51.4779, -0.0015, resolved="coordinates")
    return place.uri("now"), lambda: store.drop(current_key(place))


def identity(settings: Settings) -> list[str]:
    """What two processes must have in common to share fetched data."""
    return [*settings.bases.values(), settings.open_meteo_key or ""]
