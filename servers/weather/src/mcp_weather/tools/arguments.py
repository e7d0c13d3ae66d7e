"""Arguments that several tools share, described in the same words everywhere."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from mcp_batteries.server.fields import in_header
from mcp_weather.engine.queries import Group, Model

__all__ = ["Day", "Groups", "Hours", "Models", "PlaceText", "UnitSystem"]

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
