"""Requests to the services: one pooled client that respects their limits and has every answer checked.

A key is `service/path?query`; which host a service is on is a setting, and secrets are added here only, so that no
key, log or message has one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING

import anyio

from mcp_batteries.remote import Failed, Outcome, Store, Validators
from mcp_batteries.remote.connection_errors import explain_connection_error
from mcp_weather.engine.requests.budget import Budget
from mcp_weather.engine.requests.queries import is_open_meteo, service_of
from mcp_weather.engine.requests.response_check import ResponseCheck, RetryableFailure
from mcp_weather.engine.requests.service_response import ServiceResponse, service_name
from mcp_weather.settings import Settings

if TYPE_CHECKING:
    import httpx2

__all__ = ["Upstream"]

logger = logging.getLogger(__name__)

_MAX_BODY_MB = 16
_MAX_BODY_BYTES = _MAX_BODY_MB * 1024 * 1024
_TOO_LARGE_WAIT_SECONDS = 60.0
# A second and last try after a broken connection or a 5xx often works (weather-gov/api 160).
_RETRY_DELAY_SECONDS = 0.3


class _TooLarge(Exception):
    """Raised when a service sends more than anybody asked for."""


class Upstream:
    """The fetcher behind the cache. Enter it while the server serves."""

    def __init__(self, settings: Settings, store: Store, *, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._budget = None if settings.open_meteo_key else Budget(store, clock)
        self._check = ResponseCheck(settings.refresh, clock)
        self._client: httpx2.AsyncClient | None = None

    async def __aenter__(self) -> Upstream:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def fetch(self, key: str, validators: Validators) -> Outcome:
        """Fetch the answer to a key; see `mcp_batteries.remote.Fetch`.

        Raises:
            Invalid: the service says that the query makes no sense.
        """
        if self._budget is not None and is_open_meteo(key):
            wait = await self._budget.spend(key)
            if wait:
                return Failed("The free limit of Open-Meteo is used up.", wait, everything=True)
        try:
            return await self._try_once(key, validators)
        except RetryableFailure:
            await anyio.sleep(_RETRY_DELAY_SECONDS)
        try:
            return await self._try_once(key, validators)
        except RetryableFailure as failure:
            return Failed(str(failure))

    async def _try_once(self, key: str, validators: Validators) -> Outcome:
        """Send one request and judge its response.

        Raises:
            RetryableFailure: a second try may help.
        """
        import httpx2

        service = service_of(key)
        name = service_name(service)
        try:
            with anyio.fail_after(self._settings.timeout):
                response = await self._send(service, key, validators)
        except (TimeoutError, httpx2.TimeoutException):
            # The caller has waited long enough.
            return Failed(f"{name} did not answer within {self._settings.timeout} s.")
        except _TooLarge:
            return Failed(f"{name} sent more than {_MAX_BODY_MB} MB.", _TOO_LARGE_WAIT_SECONDS)
        except httpx2.HTTPError as error:
            logger.info("%s: %r", name, error)
            reason = explain_connection_error(self._settings.bases[service], error)
            raise RetryableFailure(f"{name} cannot be reached: {reason}.") from error
        return self._check.judge(response)

    async def _send(self, service: str, key: str, validators: Validators) -> ServiceResponse:
        """Send one request and read its response.

        Raises:
            _TooLarge: the body is larger than any answer.
        """
        client = self._open_client()
        url = self._url(service, key)
        async with client.stream("GET", url, headers=_conditional_headers(validators)) as response:
            body = b""
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _MAX_BODY_BYTES:
                    raise _TooLarge
        return ServiceResponse(service, key, response.status_code, response.headers, body)

    def _open_client(self) -> httpx2.AsyncClient:
        if self._client is None:
            import httpx2

            from mcp_batteries.remote.http_client import open_http_client

            command = self._settings.COMMAND
            contact = self._settings.contact or "MCP server"
            self._client = open_http_client(
                headers={
                    "User-Agent": f"{command}/{version(command)} ({contact})",
                    "Accept": "application/geo+json, application/json, application/xml",
                },
                timeout=self._settings.timeout,
                limits=httpx2.Limits(max_connections=16, max_keepalive_connections=8),
                follow_redirects=True,
                max_redirects=3,
            )
        return self._client

    def _url(self, service: str, key: str) -> str:
        path = key.partition("/")[2]
        url = f"{self._settings.bases[service]}/{path}"
        if is_open_meteo(key) and self._settings.open_meteo_key:
            separator = "&" if "?" in url else "?"
            url += f"{separator}apikey={self._settings.open_meteo_key}"
        return url


def _conditional_headers(validators: Validators) -> dict[str, str]:
    """Return the headers that ask for an answer only if it differs from the one that is cached."""
    headers: dict[str, str] = {}
    if validators.etag:
        headers["If-None-Match"] = validators.etag
    if validators.last_modified:
        headers["If-Modified-Since"] = validators.last_modified
    return headers
