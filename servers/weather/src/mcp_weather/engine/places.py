"""The file of saved places."""

from __future__ import annotations

from typing import Any, cast

from mcp_batteries.errors import Problem
from mcp_batteries.subscriptions.config_file import ConfigFile
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
        try:
            return point_at(
                *degrees,
                name=str(given.get("name") or alias),
                timezone=given.get("timezone"),
                country=given.get("country"),
                resolved=f"saved as {alias}",
            )
        except Problem as problem:
            raise ValueError(f"`{alias}`: {problem}") from problem
