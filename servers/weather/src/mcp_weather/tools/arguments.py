"""Arguments that several tools share, described in the same words everywhere, with the parser of each."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import Field

from mcp_batteries.server.declaration.fields import in_header
from mcp_batteries.server.declaration.trusted import trusted
from mcp_weather.engine.requests.queries import Group, Model
from mcp_weather.models import AirQuality, Forecast, Marine
from mcp_weather.policy.airport import NamedAirport
from mcp_weather.policy.days import WrittenDay
from mcp_weather.policy.place import Place
from mcp_weather.policy.place_text import MAX_PLACE_CHARACTERS
from mcp_weather.policy.policy import Policy
from mcp_weather.policy.units import Units

__all__ = [
    "AirportOrPlace",
    "AviationUnits",
    "DayText",
    "Groups",
    "Hours",
    "Models",
    "SomePlace",
    "SomeUnits",
    "note_limit",
]

_PLACE = Field(
    min_length=1,
    max_length=MAX_PLACE_CHARACTERS,
    description="Name (`Springfield, Illinois`), `lat,lon` or alias.",
    json_schema_extra=in_header("Place"),
)
_UNITS = Field(description="metric, imperial, nautical or `metric,wind=kn`.")

SomePlace = Annotated[Place, trusted(Policy.resolve_place), _PLACE]
AirportOrPlace = Annotated[NamedAirport, trusted(Policy.parse_airport), _PLACE]
# Left out, each is the server's own: `default("")`.
SomeUnits = Annotated[Units, trusted(Policy.parse_units), _UNITS]
AviationUnits = Annotated[Units, trusted(Policy.parse_aviation_units), _UNITS]
DayText = Annotated[
    WrittenDay,
    trusted(WrittenDay.parse),
    Field(max_length=40, description="YYYY-MM-DD, `yesterday` or `today`."),
]
Hours = Annotated[int, Field(ge=1, le=168)]
Groups = Annotated[list[Group], Field(min_length=1, description="Groups of columns.")]
Models = Annotated[list[Model], Field(min_length=1, max_length=4, description="Several are compared.")]

T = TypeVar("T", Forecast, AirQuality, Marine)


def note_limit(result: T, hours: int, max_hours: int, fix: str = "") -> T:
    """Return `result`, with a note if more hours were asked for than there can be.

    Args:
        hours: how many were asked for.
        fix: what the caller can do, with a space before it.
    """
    if hours <= max_hours:
        return result
    note = f"[These are {max_hours} hours, as many as there can be here, of the {hours} asked for.{fix}]"
    return result.model_copy(update={"notes": [*result.notes, note]})
