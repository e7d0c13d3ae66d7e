"""The table of contents: builds the server."""

from __future__ import annotations

from importlib.metadata import version

from mcp_batteries.remote import Cache, open_store
from mcp_batteries.server.assemble import Assembled, assemble
from mcp_batteries.server.list_changes import ChangeFeedConfig
from mcp_batteries.server.skills import PackagedSkills
from mcp_weather.changes import PlacesWatcher, cache_identity, make_weather_source
from mcp_weather.completions import Completions
from mcp_weather.engine.engine import Engine
from mcp_weather.engine.gather import translate_error
from mcp_weather.engine.requests.queries import scope_of
from mcp_weather.engine.requests.upstream import Upstream
from mcp_weather.engine.saved_places import SavedPlaces
from mcp_weather.policy.policy import Policy
from mcp_weather.policy.units import parse_units
from mcp_weather.prompts import Prompts
from mcp_weather.resources import Resources
from mcp_weather.settings import Settings
from mcp_weather.tools import conditions, forecast, places

__all__ = ["build"]


def build(settings: Settings) -> Assembled:
    """Build the server for the services in `settings`.

    Raises:
        Problem: the cache folder cannot be used, or `units` are unknown.
    """
    saved_places = SavedPlaces(settings.places)
    store = open_store(settings.cache, settings.COMMAND, cache_identity(settings))
    upstream = Upstream(settings, store)
    cache = Cache(store, upstream.fetch, scope=scope_of)
    engine = Engine(cache, language=settings.language)
    units = parse_units(settings.units, "metric")
    policy = Policy(saved_places.all, engine.geocode, units)
    resources = Resources(policy, engine, saved_places, units)
    remote = make_weather_source(resources)
    return assemble(
        settings.COMMAND,
        settings,
        rooms=[
            forecast,
            conditions,
            places,
            resources,
            Prompts(),
            Completions(policy, settings.language),
        ],
        dependencies=[policy, engine, saved_places],
        opens=[upstream, cache],
        explains=translate_error,
        sources=[PlacesWatcher(saved_places, remote), remote],
        follows=ChangeFeedConfig(
            "forecasts, present values, alerts or air quality",
            instead="To see the values use `get_weather`.",
            uris="As `weather://47.37,8.54/now`, also /hourly, /daily, /alerts, /air. "
            "Needed unless subscribed to some.",
            open_world=True,
        ),
        skills=[PackagedSkills(settings.COMMAND, __file__)],
        title="Weather",
        version=version(settings.COMMAND),
        instructions=(
            "Weather of any place. Begin with `get_weather`. `place` is a name, `lat,lon` or a saved alias. Times are "
            "in the place's zone; null means unknown, never none; `stale` answers say how old they are and why."
        ),
    )
