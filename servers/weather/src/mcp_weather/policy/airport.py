"""Decides what may be the code of an airport."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Container
from dataclasses import dataclass

from mcp_weather.policy.place import Place

__all__ = ["AirportCode", "NamedAirport", "is_iata_code", "looks_like_airport_code", "parse_airport_code"]

_ICAO_CODE = re.compile("[A-Z]{4}")
# As on luggage.
_IATA_CODE = re.compile("[A-Za-z]{3}")
_ANY_CODE = re.compile("[A-Z]{3,4}")


@dataclass(frozen=True)
class AirportCode:
    """The ICAO code of an airport."""

    code: str


@dataclass(frozen=True)
class NamedAirport:
    """An airport by its code, or the nearest to a place: a text of four letters may be either.

    Attributes:
        code: that of the text, if it is written like one.
        code_in_small_letters: that of the text if no place has this name; None if it can be none.
        is_short_code: whether the text is written like an IATA code, by which no report can be had.
        find_place: looks up the place that the text means.
    """

    code: AirportCode | None
    code_in_small_letters: AirportCode | None
    is_short_code: bool
    find_place: Callable[[], Awaitable[Place]]


def parse_airport_code(text: str, aliases: Container[str]) -> AirportCode | None:
    """Return the airport whose code `text` may be; None if it must be a place.

    Args:
        aliases: of saved places, in lower case.
    """
    code = text.strip()
    if not _ICAO_CODE.fullmatch(code) or code.casefold() in aliases:
        return None
    return AirportCode(code)


def looks_like_airport_code(text: str) -> bool:
    """Return whether `text` is written like an ICAO or IATA code in capitals, as few names are."""
    return _ANY_CODE.fullmatch(text.strip()) is not None


def is_iata_code(text: str) -> bool:
    """Return whether `text` is written like an IATA code."""
    return _IATA_CODE.fullmatch(text.strip()) is not None
