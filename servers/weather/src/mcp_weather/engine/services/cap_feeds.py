"""Feeds of warnings in CAP 1.2 of Asia and Oceania: an index, which lists messages that are documents of their own.

New Zealand's service has its own. The others are the copies of the WMO's Severe Weather Information Centre, of those
services whose copies are known to be kept and whose messages are few: a copy can be late, so it never proves that there
is no warning. Japan publishes none in CAP; the feeds of China and Macao have hundreds of messages without an end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

import anyio

from mcp_batteries.errors import Problem
from mcp_batteries.remote import Cache, Snapshot
from mcp_weather.engine.computed.timestamps import moment_at, parse_timestamp
from mcp_weather.engine.gather import attempt, gather
from mcp_weather.engine.json_values import as_object, as_objects
from mcp_weather.engine.services.cap_messages import read_messages
from mcp_weather.engine.services.service_alerts import ServiceAlerts
from mcp_weather.engine.services.source import Source, origin_of
from mcp_weather.policy.place import Place

__all__ = ["FEEDS", "METSERVICE", "WMO", "CapFeed", "fetch_alerts"]

METSERVICE = Source("MetService (New Zealand)", "CC BY 4.0")
WMO = Source("WMO Severe Weather Information Centre", "terms of the issuing service")

_MAX_MESSAGES = 60
_MAX_CONCURRENT_MESSAGES = 6


@dataclass(frozen=True)
class CapFeed:
    """A feed of one service.

    Attributes:
        key: of its index.
        site: where its messages are. What lies elsewhere is not asked for.
        authority: whose warnings it copies; None if they are its own.
    """

    source: Source
    key: str
    site: str
    authority: str | None = None

    @property
    def service(self) -> str:
        """The name that begins its cache keys."""
        return self.key.partition("/")[0]

    def message_key(self, link: Any) -> str | None:
        """Return the cache key of a message; None if it lies on another site."""
        if not isinstance(link, str) or not link.startswith(self.site):
            return None
        return f"{self.service}/{link.removeprefix(self.site)}"


def _copy_of(folder: str, authority: str) -> CapFeed:
    site = "https://severeweather.wmo.int/"
    return CapFeed(WMO, f"wmo/v2/cap-alerts/{folder}/rss.xml", site, authority)


# By ISO 3166-1 code.
FEEDS = {
    "NZ": CapFeed(METSERVICE, "metservice/cap/rss", "https://alerts.metservice.com/"),
    "AU": _copy_of("au-bom-en", "the Bureau of Meteorology"),
    "HK": _copy_of("hk-hko-xx", "the Hong Kong Observatory"),
    "IN": _copy_of("in-imd-en", "the India Meteorological Department"),
    "PH": _copy_of("ph-pagasa-en", "PAGASA"),
    "SG": _copy_of("sg-mss-en", "the Meteorological Service Singapore"),
}


@dataclass(frozen=True)
class _FeedContent:
    """The messages of a feed that are not known to be over, and why some are missing, as sentences."""

    messages: Sequence[dict[str, Any]]
    gaps: Sequence[str]


async def fetch_alerts(cache: Cache, feed: CapFeed, place: Place, zone: tzinfo, language: str) -> ServiceAlerts:
    """Return what a feed says for `place`."""
    now = moment_at(cache.clock())
    try:
        index = await cache.get(feed.key)
        content = await _fetch_messages(cache, feed, index, now)
    except Problem as problem:
        return ServiceAlerts(feed.source.name, problem=str(problem))
    # A copy keeps what is over for a while; of the service's own list what it lists counts.
    ended_before = now if feed.authority else None
    alerts = read_messages(content.messages, place, zone, language, now=ended_before)
    gaps = list(content.gaps)
    if feed.authority:
        subject = "These are" if alerts else "None for this place is among"
        gaps.append(f"{subject} the copies of {feed.authority}'s warnings, which may be late or lack some.")
    return ServiceAlerts(feed.source.name, alerts, origin_of(index, feed.source), zone, gap=" ".join(gaps) or None)


async def _fetch_messages(cache: Cache, feed: CapFeed, index: Snapshot, now: datetime) -> _FeedContent:
    """Return the messages that an index lists and that have not expired."""
    live = [entry for entry in as_objects(index.json()["entries"]) if not _has_expired(entry, now)]
    message_keys = [feed.message_key(entry.get("link")) for entry in live]
    keys = [key for key in message_keys if key is not None]
    gaps: list[str] = []
    if len(keys) < len(live):
        gaps.append(f"{len(live) - len(keys)} warnings of {feed.source.name} lie elsewhere and were not read.")
    unread = len(keys) - _MAX_MESSAGES
    if unread > 0:
        gaps.append(f"{unread} of {len(keys)} warnings of {feed.source.name} were not read, they are too many.")
    limiter = anyio.CapacityLimiter(_MAX_CONCURRENT_MESSAGES)

    async def fetch(key: str) -> dict[str, Any]:
        async with limiter:
            snapshot = await cache.get(key)
        return as_object(snapshot.json().get("alert"))

    answers = await gather(*(partial(attempt, partial(fetch, key)) for key in keys[:_MAX_MESSAGES]))
    failures = [answer for answer in answers if isinstance(answer, Problem)]
    if failures:
        count = f"{len(failures)} of {len(answers)} warnings"
        gaps.append(f"{count} of {feed.source.name} could not be read: {failures[0].failure}")
    return _FeedContent([answer for answer in answers if not isinstance(answer, Problem)], gaps)


def _has_expired(entry: dict[str, Any], now: datetime) -> bool:
    """Return whether an entry says that its message is over; one that does not say so may not be."""
    expires = _parse_date(entry.get("expires"))
    return expires is not None and expires <= now


def _parse_date(text: Any) -> datetime | None:
    """Return the moment of an ISO 8601 text, or of a date of mails, as RSS has them; None if it is neither."""
    moment = parse_timestamp(text)
    if moment is not None or not isinstance(text, str):
        return moment
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    return moment
