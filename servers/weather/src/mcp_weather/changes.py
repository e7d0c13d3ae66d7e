"""Says which URIs to refresh: checks the services for what somebody subscribed to, and the places file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable

import anyio

from mcp_batteries.remote import DiskStore, RemoteSource, open_store
from mcp_batteries.subscriptions.file_watcher import follow_file
from mcp_weather.engine.requests.queries import current_key
from mcp_weather.engine.saved_places import SavedPlaces
from mcp_weather.policy.place import Place, point_at
from mcp_weather.resources import PLACES_PROBLEM_URI, PLACES_URI, Resources
from mcp_weather.settings import Settings

__all__ = ["PlacesWatcher", "cache_identity", "demonstration", "make_weather_source", "probe"]

# Raise it when documents that an older version has kept can't be read any more.
_FORM_OF_DOCUMENTS = "2"


def make_weather_source(resources: Resources) -> RemoteSource:
    """Return the source for data of the services."""

    def locate(uri: str) -> str | None:
        parsed = resources.policy.parse_uri(uri)
        if parsed is None:
            return None
        return parsed.uri

    async def list_cache_keys(uri: str) -> Collection[str]:
        parsed = resources.policy.parse_uri(uri)
        assert parsed is not None
        place = await resources.policy.resolve_place(parsed.place)
        return await resources.engine.cache_keys(place, parsed.kind)

    return RemoteSource(resources.engine.cache, locate, list_cache_keys)


class PlacesWatcher:
    """The source for the places file, which is always followed because it defines names in calls.

    Args:
        remote: has to find out again which place an alias is.
    """

    list_keys: Collection[Hashable] = (PLACES_URI,)

    def __init__(self, saved_places: SavedPlaces, remote: RemoteSource) -> None:
        self._saved_places = saved_places
        self._remote = remote

    def key(self, uri: str) -> Hashable | None:
        if uri in (PLACES_URI, PLACES_PROBLEM_URI):
            return PLACES_URI
        return None

    async def add(self, keys: Collection[Hashable]) -> None:
        pass

    def discard(self, keys: Collection[Hashable]) -> None:
        pass

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        async def refresh() -> None:
            if await anyio.to_thread.run_sync(self._saved_places.refresh):
                changed([PLACES_URI])
                await self._remote.reconsider()

        if self._saved_places.path is not None:
            await follow_file(self._saved_places.path, refresh)
        await anyio.sleep_forever()


def demonstration(settings: Settings) -> tuple[str, Callable[[], None]] | None:
    """Return a URI and how to change what it shows, for `--check`: drop the cached weather of one place."""
    store = open_store(settings.cache, settings.COMMAND, cache_identity(settings))
    if not isinstance(store, DiskStore):
        return None
    place = _tried_place(settings)
    return place.uri("now"), lambda: store.drop(current_key(place))


def probe(settings: Settings) -> tuple[str, dict[str, str]]:
    """Return a call that asks the weather service, for `--check`."""
    place = _tried_place(settings)
    return "get_weather", {"place": place.coordinates}


def _tried_place(settings: Settings) -> Place:
    greenwich = point_at(51.4779, -0.0015, resolved="coordinates")
    return next(iter(SavedPlaces(settings.places).all().values()), greenwich)


def cache_identity(settings: Settings) -> list[str]:
    """Return what two processes must have in common to share fetched data."""
    return [_FORM_OF_DOCUMENTS, *settings.bases.values(), settings.open_meteo_key or ""]
