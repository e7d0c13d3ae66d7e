"""Where an answer comes from: the name of a service and the licence of its data."""

from __future__ import annotations

from typing import NamedTuple

from mcp_batteries.remote import Snapshot
from mcp_weather.engine.computed.timestamps import format_timestamp
from mcp_weather.models import Origin

__all__ = ["Source", "origin_of"]


class Source(NamedTuple):
    """A service and the licence of its data."""

    name: str
    licence: str


def origin_of(snapshot: Snapshot, source: Source) -> Origin:
    """Return where an answer comes from, how old it is, and why there is nothing newer."""
    return Origin(
        source=source.name,
        licence=source.licence,
        fetched_at=format_timestamp(snapshot.fetched_at),
        age_s=round(snapshot.age),
        stale=snapshot.stale,
        reason=snapshot.error,
    )
