"""Suggestions while a person fills in a place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mcp_batteries.errors import Problem
from mcp_batteries.server.declare import completes
from mcp_weather.policy import Policy

__all__ = ["Completions"]

_LEAST = 3
"""Letters from which the geocoder is asked: with fewer it finds only places of that very name."""


@dataclass(frozen=True)
class Completions:
    policy: Policy
    language: str

    @completes("place", of="prompt")
    async def place(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Saved aliases, then names the geocoder knows."""
        wanted = typed.strip().casefold()
        found = [alias for alias in self.policy.saved() if alias.startswith(wanted)]
        if not found and len(wanted) >= _LEAST and not any(letter.isdigit() for letter in wanted):
            try:
                found = [at.name for at, _ in await self.policy.places(typed, self.language)]
            except Problem:
                found = []
        return list(dict.fromkeys(found))

    @completes("place", of="resource")
    async def place_in_uri(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """The same."""
        return await self.place(typed, others)
