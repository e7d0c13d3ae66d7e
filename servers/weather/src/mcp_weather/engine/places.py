"""The file of saved places: read again when it changes, and never worse than its last good version."""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Mapping
from typing import Any, cast

from mcp_batteries.errors import Problem
from mcp_weather.policy import Place, Policy

__all__ = ["SavedPlaces"]

logger = logging.getLogger(__name__)


class SavedPlaces:
    """The places in the TOML file `path`, one table each: `[home]` with `latitude`, `longitude` and perhaps `name`.

    Attributes:
        problem: why the file as it is now cannot be used; None if it can.
    """

    def __init__(self, path: str | None) -> None:
        self.path = path
        self.problem: str | None = None
        self._found: dict[str, Place] = {}
        self._policy = Policy(dict)
        self.refresh()

    def all(self) -> Mapping[str, Place]:
        return self._found

    def refresh(self) -> bool:
        """Read the file again; whether anything a client can see has changed. Blocks for a moment."""
        if self.path is None:
            return False
        before = (self._found, self.problem)
        try:
            with open(self.path, "rb") as file:
                entries = tomllib.load(file)
            self._found, self.problem = (
                {alias.casefold(): self._place(alias, entry) for alias, entry in entries.items()},
                None,
            )
        except FileNotFoundError:
            self.problem = "it does not exist."
        except OSError as error:
            self.problem = f"it cannot be read: {error.strerror}."
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            self.problem = f"it is not TOML: {error}."
        except ValueError as error:
            self.problem = str(error)
        changed = (self._found, self.problem) != before
        if changed and self.problem:
            logger.warning("The places file is not used: %s", self.problem)
        return changed

    def _place(self, alias: str, entry: Any) -> Place:
        if not isinstance(entry, dict):
            raise ValueError(f"`{alias}` is no table with latitude and longitude.")
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
            return self._policy.point(
                *degrees,
                name=str(given.get("name") or alias),
                timezone=given.get("timezone"),
                country=given.get("country"),
                resolved=f"saved as {alias}",
            )
        except Problem as problem:
            raise ValueError(f"`{alias}`: {problem}") from problem
