"""The URIs of the resources: `weather://`, a place, and what they show of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote as percent_encode

__all__ = ["RESOURCE_KINDS", "RESOURCE_URI", "ResourceUri", "resource_uri"]

# What there is of each place as a resource.
RESOURCE_KINDS = ("now", "hourly", "daily", "alerts", "air")

RESOURCE_URI = re.compile(r"weather://(?P<place>[^/?#]+)/(?P<kind>[a-z]+)")


@dataclass(frozen=True)
class ResourceUri:
    """A `weather://` URI in canonical form.

    Attributes:
        place: the text of the place, as callers write it.
        kind: one of `RESOURCE_KINDS`.
    """

    uri: str
    place: str
    kind: str


def resource_uri(place: str, kind: str) -> str:
    """Return the URI of the resource that shows `kind` of a place, which is its alias or its coordinates."""
    return f"weather://{percent_encode(place, safe=',')}/{kind}"
