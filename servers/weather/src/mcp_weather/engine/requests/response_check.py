"""Judges what a service answered: what is an answer, what a failure, and when there can be something new."""

from __future__ import annotations

import json
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any, cast

from mcp_batteries.errors import Invalid, quote
from mcp_batteries.remote import Failed, FetchResult, NotModified, Outcome
from mcp_weather.engine.json_values import as_object, parse_json
from mcp_weather.engine.requests.cap_xml import read_cap_xml
from mcp_weather.engine.requests.document_shape import find_defect
from mcp_weather.engine.requests.queries import CAP_SERVICES, is_cap_index
from mcp_weather.engine.requests.refresh_interval import refresh_interval
from mcp_weather.engine.requests.service_response import ServiceResponse

__all__ = ["ResponseCheck", "RetryableFailure"]

_MINUTE = 60.0
_HOUR = 3600.0
_DAY = 86_400.0

_NO_POINT = b"null"
_NO_REPORTS = b'{"reports":[]}'
_REASON_BYTES = 2000


class RetryableFailure(Exception):
    """Raised when a service failed in a way that may be gone at once."""


class ResponseCheck:
    """Judges responses.

    Args:
        max_interval: the most seconds between two checks, if somebody has set them.
    """

    def __init__(self, max_interval: int | None, clock: Callable[[], float]) -> None:
        self._max_interval = max_interval
        self._clock = clock

    def judge(self, response: ServiceResponse) -> Outcome:
        """Return what a response means for the cache.

        Raises:
            Invalid: the service says that the query makes no sense.
            RetryableFailure: a second try may help.
        """
        if response.status == 304:
            return NotModified(self._interval(response, {}))
        failure = self._find_failure(response)
        if failure is not None:
            return failure
        if response.service == "nws" and response.status == 404:
            return _judge_not_found(response)
        if response.service == "aviation" and response.status == 204:
            return FetchResult(_NO_REPORTS, self._interval(response, {}))
        return self._judge_document(response)

    def _find_failure(self, response: ServiceResponse) -> Failed | None:
        """Return the failure that a status tells alone; None if it tells none.

        Raises:
            RetryableFailure: a second try may help.
        """
        if response.status == 429:
            wait = _limit_seconds(response, self._clock())
            return Failed(f"{response.name} says that its limit is reached.", wait, everything=True)
        if response.status >= 500:
            wait = _retry_after_seconds(response, self._clock())
            failure = f"{response.name} answered {response.status}{_quote_reason(response)}."
            if wait is None:
                raise RetryableFailure(failure)
            return Failed(failure, wait)
        if response.status in (401, 403):
            return Failed(f"{response.name} refuses this server: it answered {response.status}.", _MINUTE)
        return None

    def _judge_document(self, response: ServiceResponse) -> Outcome:
        if response.service in CAP_SERVICES:
            return self._judge_cap(response)
        try:
            content = parse_json(response.body)
        except (ValueError, RecursionError):
            return Failed(f"{response.name} sent something that is not JSON.")
        if response.status >= 400:
            reason = _refusal_reason(content) or str(response.status)
            raise Invalid(f"{response.name} refused the request: {quote(reason, 300)}.", "Ask for something else.")
        if response.service == "aviation" and isinstance(content, list):
            content = {"reports": cast("list[Any]", content)}
        if response.status != 200 or not isinstance(content, dict):
            return Failed(f"{response.name} sent something unexpected.")
        document = cast("dict[str, Any]", content)
        if document.get("error"):
            return Failed(f"{response.name} sent an error in place of an answer.")
        defect = find_defect(response.key, document)
        if defect is not None:
            return Failed(f"{response.name} sent {defect}.")
        # The time that an answer took differs each time and is nobody's weather.
        document.pop("generationtime_ms", None)
        return self._accept(response, document)

    def _judge_cap(self, response: ServiceResponse) -> Outcome:
        if response.status != 200:
            return Failed(f"{response.name} answered {response.status}.", _MINUTE)
        document = read_cap_xml(response.body)
        if document is None or ("entries" in document) != is_cap_index(response.key):
            return Failed(f"{response.name} sent something that can't be read.")
        return self._accept(response, document)

    def _accept(self, response: ServiceResponse, document: dict[str, Any]) -> FetchResult:
        return FetchResult(
            json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace"),
            self._interval(response, document),
            etag=response.headers.get("etag"),
            last_modified=response.headers.get("last-modified"),
        )

    def _interval(self, response: ServiceResponse, document: dict[str, Any]) -> float:
        return refresh_interval(response, document, now=self._clock(), max_interval=self._max_interval)


def _judge_not_found(response: ServiceResponse) -> Outcome:
    """Judge a 404 of the Weather Service: outside its coverage it is an answer, and one that lasts."""
    if response.key.startswith("nws/points/") and b"InvalidPoint" in response.body:
        return FetchResult(_NO_POINT, _DAY)
    return Failed(f"{response.name} has nothing there just now: it answered 404{_quote_reason(response)}.", _MINUTE)


def _quote_reason(response: ServiceResponse) -> str:
    """Return the reason of a failure, as the end of a sentence; empty if the service does not say."""
    try:
        reason = _refusal_reason(parse_json(response.body))
    except (ValueError, RecursionError):
        return ""
    if not reason:
        return ""
    return f": {quote(reason.rstrip('.'), 300)}"


def _refusal_reason(content: Any) -> str:
    """Return why a service refused, in its own words; empty if it does not say."""
    document = as_object(content)
    return str(document.get("reason") or document.get("detail") or document.get("title") or "")


def _retry_after_seconds(response: ServiceResponse, now: float) -> float | None:
    """Return what `Retry-After` says (RFC 9110, 10.2.3), as seconds from now; None if it says nothing."""
    value = response.headers.get("retry-after", "").strip()
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except ValueError:
        return None


def _limit_seconds(response: ServiceResponse, now: float) -> float:
    """Return the seconds until a limit ends: by the header, else by what Open-Meteo's reason names, else a minute."""
    wait = _retry_after_seconds(response, now)
    if wait is not None:
        return max(wait, 1.0)
    reason = response.body[:_REASON_BYTES].decode("utf-8", "replace").lower()
    if "daily" in reason:
        return _DAY - now % _DAY
    if "hourly" in reason:
        return _HOUR - now % _HOUR
    return _MINUTE
