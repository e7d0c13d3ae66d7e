"""Decides what may be the code of an airport."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass

__all__ = ["AirportCode", "parse_airport_code"]

_ICAO_CODE = re.compile("[A-Z]{4}")


@dataclass(frozen=True)
class AirportCode:
    """The ICAO code of an airport."""

    code: str


def parse_airport_code(text: str, aliases: Container[str]) -> AirportCode | None:
    """Return the airport whose code `text` may be; None if it must be a place.

    Args:
        aliases: of saved places, in lower case.
    """
    code = text.strip()
    if not _ICAO_CODE.fullmatch(code) or code.casefold() in aliases:
        return None
    return AirportCode(code)
