"""Requests to the upstreams: one pooled client that respects their limits and checks every answer.

A key is `service/path?query`; which host a service is on is a setting, and secrets are added here only, so that no
key, log or message has one.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, cast

import anyio

from mcp_batteries.errors import Invalid, quote
from mcp_batteries.remote import Failed, Fresh, NotModified, Outcome, Store, Validators
from mcp_batteries.remote.reach import why_unreached
from mcp_weather.engine.services.budget import Budget
from mcp_weather.engine.services.queries import is_open_meteo, service_of
from mcp_weather.settings import Settings

if TYPE_CHECKING:
    import httpx2

__all__ = ["NAMES", "Upstream"]

logger = logging.getLogger(__name__)

NAMES = {
    "nws": "The National Weather Service", "canada": "Environment Canada", "meteoalarm": "MeteoAlarm",
    "aviation": "The Aviation Weather Center",
}  # fmt: skip
_OPEN_METEO = "Open-Meteo"

_MOST_BYTES = 16 * 1024 * 1024
_AGAIN_SECONDS = 0.3
"""Until the second and last try after a broken connection or a 5xx, which often works (weather-gov/api 160)."""
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86_400.0
_NWS_LEAST = 30.0
_ALERTS_MOST = 120.0
"""Seconds for which "none in effect" may be repeated, whatever a proxy says of the answer's age."""
_STEPS = {
    "air": _HOUR, "marine": _HOUR, "flood": 6 * _HOUR, "archive": 6 * _HOUR, "geocoding": 30 * _DAY, "canada": 120.0,
    "meteoalarm": 300.0, "aviation": 300.0, "ensemble": _HOUR,
}  # fmt: skip
"""Seconds for which a service is known to have nothing newer; forecasts say their step themselves."""


class _Again(Exception):
    """Raised when the upstream failed in a way that may be gone at once."""


class Upstream:
    """The fetcher behind the cache. Enter it while the server serves."""

    def __init__(self, settings: Settings, store: Store, *, clock: Callable[[], float] = time.time) -> None:
        self._settings, self._clock = settings, clock
        self._budget = None if settings.open_meteo_key else Budget(store, clock)
        self._client: httpx2.AsyncClient | None = None

    async def __aenter__(self) -> Upstream:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def fetch(self, key: str, validators: Validators) -> Outcome:
        """See `mcp_batteries.remote.Fetch`.

        Raises:
            Invalid: the upstream says that the question makes no sense.
        """
        service = service_of(key)
        if is_open_meteo(key) and self._budget is not None and (wait := await self._budget.take(key)):
            return Failed("The free limit of Open-Meteo is used up.", wait, everything=True)
        try:
            return await self._ask(service, key, validators)
        except _Again:
            await anyio.sleep(_AGAIN_SECONDS)
        try:
            return await self._ask(service, key, validators)
        except _Again as failure:
            return Failed(str(failure))

    async def _ask(self, service: str, key: str, validators: Validators) -> Outcome:
        """Ask once. Raises `_Again` where a second try may help."""
        import httpx2

        name = NAMES.get(service, _OPEN_METEO)
        try:
            with anyio.fail_after(self._settings.timeout):
                async with self._http().stream(
                    "GET", self._url(service, key), headers=self._headers(validators)
                ) as answer:
                    body = b""
                    async for chunk in answer.aiter_bytes():
                        body += chunk
                        if len(body) > _MOST_BYTES:
                            return Failed(f"{name} sent more than {_MOST_BYTES // 1024**2} MB.", _MINUTE)
        except (TimeoutError, httpx2.TimeoutException):
            # The caller has waited long enough.
            return Failed(f"{name} did not answer within {self._settings.timeout} s.")
        except httpx2.HTTPError as error:
            logger.info("%s: %r", name, error)
            why = why_unreached(self._settings.bases[service], error)
            raise _Again(f"{name} cannot be reached: {why}.") from error
        return self._judge(service, name, key, answer, body)

    def _judge(self, service: str, name: str, key: str, answer: httpx2.Response, body: bytes) -> Outcome:
        status = answer.status_code
        if status == 304:
            return NotModified(self._pace(service, key, answer, None))
        if status == 429:
            return Failed(
                f"{name} says that its limit is reached.", _retry_after(answer, body, self._clock()), everything=True
            )
        if status >= 500:
            wait = _header_seconds(answer, self._clock())
            if wait is None:
                raise _Again(f"{name} answered {status}.")
            return Failed(f"{name} answered {status}.", wait)
        if status in (401, 403):
            return Failed(f"{name} refuses this server: it answered {status}.", _MINUTE)
        if service == "nws" and status == 404:
            if key.startswith("nws/points/") and b"InvalidPoint" in body:
                # Outside its coverage: an answer, and one that lasts. Any other 404 is one of its bad moments.
                return Fresh(b"null", _DAY)
            return Failed(f"{name} has nothing there just now: it answered 404.", _MINUTE)
        if service == "aviation" and status == 204:
            return Fresh(b'{"reports":[]}', self._pace(service, key, answer, None))
        try:
            found: Any = json.loads(body)
        except (ValueError, RecursionError):
            return Failed(f"{name} sent something that is not JSON.")
        if status >= 400:
            reason = ""
            if isinstance(found, dict):
                said = cast("dict[str, Any]", found)
                reason = str(said.get("reason") or said.get("detail") or said.get("title") or "")
            raise Invalid(
                f"{name} refused the request: {quote(reason or str(status), 300)}.", "Ask for something else."
            )
        if service == "aviation" and isinstance(found, list):
            found = {"reports": cast("list[Any]", found)}
        if status != 200 or not isinstance(found, dict):
            return Failed(f"{name} sent something unexpected.")
        document = cast("dict[str, Any]", found)
        if document.get("error"):
            return Failed(f"{name} sent an error in place of an answer.")
        # How long it took differs each time and is nobody's weather.
        document.pop("generationtime_ms", None)
        content = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
        return Fresh(
            content,
            self._pace(service, key, answer, document),
            etag=answer.headers.get("etag"),
            last_modified=answer.headers.get("last-modified"),
        )

    def _pace(self, service: str, key: str, answer: httpx2.Response, document: dict[str, Any] | None) -> float:
        """Seconds until there can be something new."""
        if service == "nws":
            found = re.search(r"(?:^|[ ,])(?:s-maxage|max-age)=(\d+)", answer.headers.get("cache-control", ""))
            pace = max(float(found[1]) if found else 0.0, _NWS_LEAST)
            if "/points/" in key or key.endswith("/stations"):
                return max(pace, _DAY)
            if "/alerts/" in key:
                pace = min(pace, _ALERTS_MOST)
        elif service == "forecast":
            current: Any = (document or {}).get("current")
            told: Any = cast("dict[str, Any]", current).get("interval") if isinstance(current, dict) else None
            step = (
                (float(told) if isinstance(told, int | float) and 0 < told <= _DAY else 900.0)
                if "current=" in key
                else 900.0
                if "minutely_15=" in key
                else _HOUR
            )
            # The next step begins at a full one.
            pace = step - self._clock() % step + 1
        else:
            pace = _STEPS[service]
            if service == "geocoding":
                return pace
        return min(pace, float(self._settings.refresh or pace))

    def _http(self) -> httpx2.AsyncClient:
        if self._client is None:
            import httpx2

            about = self._settings.contact or "MCP server"
            self._client = httpx2.AsyncClient(
                headers={
                    "User-Agent": f"{self._settings.COMMAND}/{version(self._settings.COMMAND)} ({about})",
                    "Accept": "application/geo+json, application/json",
                },
                timeout=self._settings.timeout,
                limits=httpx2.Limits(max_connections=16, max_keepalive_connections=8),
                follow_redirects=True,
                max_redirects=3,
            )
        return self._client

    def _url(self, service: str, key: str) -> str:
        url = f"{self._settings.bases[service]}/{key.partition('/')[2]}"
        if is_open_meteo(key) and self._settings.open_meteo_key:
            url += f"{'&' if '?' in url else '?'}apikey={self._settings.open_meteo_key}"
        return url

    def _headers(self, validators: Validators) -> dict[str, str]:
        known = {"If-None-Match": validators.etag, "If-Modified-Since": validators.last_modified}
        return {name: value for name, value in known.items() if value}


def _header_seconds(answer: httpx2.Response, now: float) -> float | None:
    """What `Retry-After` says (RFC 9110, 10.2.3), as seconds from now."""
    said = answer.headers.get("retry-after", "").strip()
    if said.isascii() and said.isdigit():
        return float(said)
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - now) if said else None
    except ValueError:
        return None


def _retry_after(answer: httpx2.Response, body: bytes, now: float) -> float:
    """Seconds until a limit ends: as the header says, else by what Open-Meteo's reason names, else a minute."""
    if (said := _header_seconds(answer, now)) is not None:
        return max(said, 1.0)
    reason = body[:2000].decode("utf-8", "replace").lower()
    if "daily" in reason:
        return _DAY - now % _DAY
    if "hourly" in reason:
        return _HOUR - now % _HOUR
    return _MINUTE
