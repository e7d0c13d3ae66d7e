"""Suggestions while a person fills in a place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mcp_batteries.errors import Problem
from mcp_batteries.server.declaration.decorators import completes
from mcp_weather.policy.policy import Policy

__all__ = ["Completions"]

# The geocoder finds only places of that very name for fewer letters.
_MIN_GEOCODED_LETTERS = 3


@dataclass(frozen=True)
class Completions:
    """Completes the arguments that name a place.

    Attributes:
        language: of the names that the geocoder suggests.
    """

    policy: Policy
    language: str

    @completes("place", of="prompt")
    async def complete_place(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Return saved aliases, else names the geocoder knows."""
        prefix = typed.strip().casefold()
        aliases = [alias for alias in self.policy.saved_places() if alias.startswith(prefix)]
        if aliases or len(prefix) < _MIN_GEOCODED_LETTERS or any(letter.isdigit() for letter in prefix):
            return aliases
        try:
            matches = await self.policy.find_places(typed, self.language)
        except Problem:
            return []
        return list(dict.fromkeys(match.place.name for match in matches))

    @completes("place", of="resource")
    async def complete_place_in_uri(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Return the same for a URI."""
        return await self.complete_place(typed, others)
