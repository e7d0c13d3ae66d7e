"""The file of saved places."""

from __future__ import annotations

from typing import Any, cast

from mcp_batteries.errors import Problem
from mcp_batteries.subscriptions.config_file import ConfigFile
from mcp_weather.geography.countries import country_called, zone_named
from mcp_weather.policy import Place, point_at

__all__ = ["SavedPlaces"]


class SavedPlaces(ConfigFile[Place]):
    """The places in the TOML file `path`, one table each: `[home]` with `latitude`, `longitude` and perhaps `name`."""

    def __init__(self, path: str | None) -> None:
        super().__init__(path, "The places file")

    def entries(self, given: dict[str, Any]) -> dict[str, Place]:
        return {alias.casefold(): self._place(alias, entry) for alias, entry in given.items()}

    def _place(self, alias: str, entry: Any) -> Place:
        if not isinstance(entry, dict):
            raise ValueError(f"`{alias}` is not a table with latitude and longitude.")
        given = cast("dict[str, Any]", entry)
        if unknown := sorted(given.keys() - {"latitude", "longitude", "name", "timezone", "country"}):
            raise ValueError(f"`{alias}` has an unknown key `{unknown[0]}`.")
        if not alias.strip() or "/" in alias:
            raise ValueError(f"`{alias}` cannot be an alias.")
        degrees: list[float] = []
        for key in ("latitude", "longitude"):
            value = given.get(key)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueError(f"`{alias}` needs `{key}` as a number.")
            degrees.append(float(value))
        zone, country = given.get("timezone"), given.get("country")
        if zone is not None and (not isinstance(zone, str) or zone_named(zone) is None):
            raise ValueError(f"`{alias}` has an unknown `timezone`: it is written as `Europe/Zurich`.")
        # Who warns there is found by it: under any other spelling nobody would.
        code = None if country is None else country_called(str(country))
        if country is not None and code is None:
            raise ValueError(f"`{alias}` has an unknown `country`: it is written as `CH`.")
        try:
            return point_at(
                *degrees,
                name=str(given.get("name") or alias),
                timezone=zone,
                country=code,
                resolved=f"saved as {alias}",
            )
        except Problem as problem:
            raise ValueError(f"`{alias}`: {problem}") from problem
