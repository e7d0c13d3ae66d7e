"""The file of saved places."""

from __future__ import annotations

from typing import Any, cast

from mcp_batteries.errors import Problem
from mcp_batteries.subscriptions.config_file import ConfigFile
from mcp_weather.geography.countries import find_country
from mcp_weather.geography.time_zones import find_zone
from mcp_weather.models import Places
from mcp_weather.policy.place import Place, point_at

__all__ = ["SavedPlaces", "list_saved_places"]

_KEYS = frozenset({"latitude", "longitude", "name", "timezone", "country"})


class SavedPlaces(ConfigFile[Place]):
    """The places in the TOML file `path`, one table each: `[home]` with `latitude`, `longitude` and perhaps `name`."""

    def __init__(self, path: str | None) -> None:
        super().__init__(path, "The places file")

    def entries(self, content: dict[str, Any]) -> dict[str, Place]:
        """Return the places of the file's tables by their aliases in lower case.

        Raises:
            ValueError: a table is not a place.
        """
        return {alias.casefold(): _read_place(alias, table) for alias, table in content.items()}


def list_saved_places(saved_places: SavedPlaces, *, source: str) -> Places:
    """Return the saved places as a result, and what is wrong with their file if anything is.

    Args:
        source: what to say of where they are from.
    """
    return Places(
        columns=["alias", "name", "latitude", "longitude", "timezone"],
        rows=[
            [alias, place.name, place.latitude, place.longitude, place.timezone]
            for alias, place in saved_places.all().items()
        ],
        source=source,
        problem=saved_places.problem,
    )


def _read_place(alias: str, value: Any) -> Place:
    """Return the place of one table.

    Raises:
        ValueError: it is not a place.
    """
    if not isinstance(value, dict):
        raise ValueError(f"`{alias}` is not a table with latitude and longitude.")
    table = cast("dict[str, Any]", value)
    unknown_keys = sorted(table.keys() - _KEYS)
    if unknown_keys:
        raise ValueError(f"`{alias}` has an unknown key `{unknown_keys[0]}`.")
    if not alias.strip() or "/" in alias:
        raise ValueError(f"`{alias}` cannot be an alias.")
    latitude = _read_degrees(alias, table, "latitude")
    longitude = _read_degrees(alias, table, "longitude")
    timezone = _read_timezone(alias, table)
    country = _read_country(alias, table)
    try:
        return point_at(
            latitude,
            longitude,
            name=str(table.get("name") or alias),
            timezone=timezone,
            country=country,
            resolved=f"saved as {alias}",
        )
    except Problem as problem:
        raise ValueError(f"`{alias}`: {problem}") from problem


def _read_degrees(alias: str, table: dict[str, Any], key: str) -> float:
    value = table.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"`{alias}` needs `{key}` as a number.")
    return float(value)


def _read_timezone(alias: str, table: dict[str, Any]) -> str | None:
    zone = table.get("timezone")
    if zone is None:
        return None
    if not isinstance(zone, str) or find_zone(zone) is None:
        raise ValueError(f"`{alias}` has an unknown `timezone`: it is written as `Europe/Zurich`.")
    return zone


def _read_country(alias: str, table: dict[str, Any]) -> str | None:
    """Return the code of the country, by which the service that warns there is found."""
    country = table.get("country")
    if country is None:
        return None
    code = find_country(str(country))
    if code is None:
        raise ValueError(f"`{alias}` has an unknown `country`: it is written as `CH`.")
    return code
