"""Arguments that several tools share, described in the same words everywhere."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import Field

from mcp_batteries.server.declaration.fields import in_header
from mcp_weather.engine.requests.queries import Group, Model
from mcp_weather.models import AirQuality, Forecast, Marine

__all__ = ["Day", "Groups", "Hours", "Models", "PlaceText", "UnitSystem", "note_limit"]

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
