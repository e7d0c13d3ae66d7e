"""Open-Meteo's forecasts, models and geocoder, fetched through the cache."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, NamedTuple

from mcp_batteries.remote import Cache, Snapshot
from mcp_weather.engine.computed.series import require_rows, rows_from, select_columns, take_rows
from mcp_weather.engine.computed.timestamps import current_day, zone_of
from mcp_weather.engine.json_values import as_objects
from mcp_weather.engine.requests import queries
from mcp_weather.engine.requests.queries import Group, Model
from mcp_weather.engine.services.open_meteo_documents import OPEN_METEO, Step, read_present, read_table
from mcp_weather.engine.services.source import origin_of
from mcp_weather.geography.geocoder_results import has_coordinates
from mcp_weather.models import Reading, Table
from mcp_weather.policy.place import Place
from mcp_weather.policy.units import Units

__all__ = ["LocalTable", "OpenMeteo", "Present", "days_covering"]

# Days of a document of air quality or of the sea.
_MIN_DAYS = 2
_MAX_DAYS = 7


class LocalTable(NamedTuple):
    """A table and the zone of its times."""

    table: Table
    zone: tzinfo


class Present(NamedTuple):
    """The present values at a place.

    Attributes:
        elevation: of the model's ground there, as the document has it.
    """

    reading: Reading
    zone: tzinfo
    elevation: Any


@dataclass(frozen=True)
class OpenMeteo:
    """Asks Open-Meteo, with an answer of the cache where it has one."""

    cache: Cache

    async def fetch_results(self, name: str, language: str) -> list[dict[str, Any]]:
        """Return the geocoder's results for `name`, which it knows in `language` only (open-meteo/geocoding-api)."""
        document = (await self.cache.get(queries.geocoding_key(name, language))).json()
        # The answer for a name without a match has no results.
        return [result for result in as_objects(document.get("results") or []) if has_coordinates(result)]

    async def fetch_zone(self, place: Place) -> tzinfo:
        """Return the time zone of `place`, which also tells its country."""
        if place.timezone:
            return zone_of({"timezone": place.timezone})
        return zone_of((await self.cache.get(queries.current_key(place))).json())

    async def fetch_present(self, place: Place, units: Units) -> Present:
        """Return the present values."""
        snapshot = await self.cache.get(queries.current_key(place))
        document = snapshot.json()
        reading = read_present(document, units, origin_of(snapshot, OPEN_METEO))
        return Present(reading, zone_of(document), document.get("elevation"))

    async def fetch_hours(
        self, place: Place, groups: Sequence[Group], hours: int, model: Model, units: Units
    ) -> LocalTable:
        """Return the next hours of one model."""
        snapshot = await self.cache.get(queries.hourly_key(place, groups, hours, model))
        table = self.read_rows_to_come(snapshot, "hourly", hours, units)
        return LocalTable(select_columns(table, queries.hourly_variables(groups)), zone_of(snapshot.json()))

    async def fetch_days(
        self, place: Place, groups: Sequence[Group], days: int, model: Model, units: Units
    ) -> LocalTable:
        """Return the next days of one model."""
        snapshot = await self.cache.get(queries.daily_key(place, groups, days, model))
        return LocalTable(take_rows(self.read_days_to_come(snapshot, units), days), zone_of(snapshot.json()))

    def read_rows_to_come(self, snapshot: Snapshot, step: Step, count: int, units: Units) -> Table:
        """Return the next rows of a document.

        Raises:
            Unavailable: all of its rows are past.
        """
        origin = origin_of(snapshot, OPEN_METEO)
        table = read_table(snapshot.json(), step, units, origin, now=self.cache.clock())
        return take_rows(require_rows(table, snapshot), count)

    def read_days_to_come(self, snapshot: Snapshot, units: Units) -> Table:
        """Return the days to come of a document: one from before midnight begins with what is yesterday by now.

        Raises:
            Unavailable: all of its days are past.
        """
        document = snapshot.json()
        table = read_table(document, "daily", units, origin_of(snapshot, OPEN_METEO))
        today = current_day(self.cache.clock(), zone_of(document))
        return require_rows(rows_from(table, today.isoformat()), snapshot)


def days_covering(hours: int) -> int:
    """Return the days of a document that has the next hours, of which the first day may be nearly over."""
    return min(_MAX_DAYS, max(_MIN_DAYS, math.ceil(hours / 24) + 1))
