"""The geocoder's hits for a name: which place each hit is, in all languages that it was returned in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mcp_weather.geography.countries import fold, lies_in

__all__ = ["Hit", "fitting", "full_name", "is_place", "listed", "merged", "population"]

_SHOWN = 8


@dataclass(frozen=True)
class Hit:
    """One place from the geocoder, perhaps in several languages."""

    told: tuple[Mapping[str, Any], ...]

    @property
    def first(self) -> Mapping[str, Any]:
        return self.told[0]

    @property
    def country(self) -> str:
        return str(self.first.get("country_code") or "").upper()

    def is_called(self, name: str) -> bool:
        return any(fold(str(hit.get("name", ""))) == fold(name) for hit in self.told)

    def lies_in(self, part: str) -> bool:
        return any(lies_in(hit, part) for hit in self.told)


def is_place(hit: Mapping[str, Any]) -> bool:
    """Whether `hit` is a point on the globe; an answer may contain other things."""
    latitude, longitude = hit.get("latitude"), hit.get("longitude")
    numbers = all(isinstance(item, int | float) for item in (latitude, longitude))
    return numbers and abs(cast("float", latitude)) <= 90 and abs(cast("float", longitude)) <= 180


def population(hit: Mapping[str, Any]) -> int:
    """Its population; 0 if unknown."""
    told = hit.get("population")
    return int(told) if isinstance(told, int) or (isinstance(told, float) and math.isfinite(told)) else 0


def full_name(hit: Mapping[str, Any]) -> str:
    """Its name, region and country."""
    parts = [hit.get("name"), hit.get("admin1"), hit.get("country") or hit.get("country_code")]
    return ", ".join(dict.fromkeys(str(part) for part in parts if part))


def listed(hits: Sequence[Mapping[str, Any]]) -> str:
    """The first of them, in words that work as `place`."""
    names = [full_name(hit) for hit in hits]
    shown: list[str] = []
    for hit, name in zip(hits[:_SHOWN], names, strict=False):
        # Two of one name, state and country can only be told apart by where they are.
        shown.append(
            f"`{hit['latitude']:.2f},{hit['longitude']:.2f}` ({name})" if names.count(name) > 1 else f"`{name}`"
        )
    more = f" and {len(hits) - _SHOWN} more" if len(hits) > _SHOWN else ""
    return "; ".join(shown) + more


def merged(known: Sequence[Hit], answers: Sequence[Sequence[Mapping[str, Any]]]) -> list[Hit]:
    """`known` and the geocoder's answers in several languages, each place once."""
    found: dict[Any, list[Mapping[str, Any]]] = {_key(hit.first): list(hit.told) for hit in known}
    for hit in (hit for hits in answers for hit in hits):
        found.setdefault(_key(hit), []).append(hit)
    return [Hit(tuple(told)) for told in found.values()]


def _key(hit: Mapping[str, Any]) -> Any:
    known = hit.get("id")
    return known if isinstance(known, int) else (hit["latitude"], hit["longitude"])


def fitting(within: Sequence[str], hits: Sequence[Hit]) -> list[Hit]:
    """Those of `hits` that are in every part of `within`."""
    return [hit for hit in hits if all(hit.lies_in(part) for part in within)]
