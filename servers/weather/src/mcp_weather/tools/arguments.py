"""Arguments that several tools share, described in the same words everywhere."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import Field

from mcp_batteries.server.fields import in_header
from mcp_weather.engine.services.queries import Group, Model
from mcp_weather.models import AirQuality, Forecast, Marine

__all__ = ["Day", "Groups", "Hours", "Models", "PlaceText", "UnitSystem", "at_most"]

PlaceText = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        description="Name (`Springfield, Illinois`), `lat,lon` or alias.",
        json_schema_extra=in_header("Place"),
    ),
]
UnitSystem = Annotated[
    str | None,
    Field(description="metric, imperial, nautical or `metric,wind=kn`."),
]
Hours = Annotated[int, Field(ge=1, le=168)]
Day = Annotated[str, Field(max_length=40, description="YYYY-MM-DD, `yesterday` or `today`.")]
Groups = Annotated[list[Group], Field(min_length=1, description="Groups of columns.")]
Models = Annotated[list[Model], Field(min_length=1, max_length=4, description="Several are compared.")]

T = TypeVar("T", Forecast, AirQuality, Marine)


def at_most(found: T, hours: int, most: int, fix: str = "") -> T:
    """`found` with a note if `hours` were asked for of which there are no more than `most`."""
    if hours <= most:
        return found
    note = f"[These are {most} hours, as many as there can be here, of the {hours} asked for.{fix}]"
    return found.model_copy(update={"notes": [*found.notes, note]})
