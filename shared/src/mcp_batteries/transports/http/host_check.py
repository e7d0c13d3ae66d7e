"""Answers only requests that name this server: a web page may send others (DNS rebinding)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_batteries.errors import Invalid, quote
from mcp_batteries.settings import Settings
from mcp_batteries.transports.http.rejections import set_reason

__all__ = ["LOOPBACK", "HostCheck", "allowed_hosts", "allowed_origins", "split_authority"]

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""The names of this machine that no name server can point elsewhere, as they stand in a Host header."""

_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?)(?::(\d{1,5}))?")
_LOOPBACK_ORIGIN = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?")


def split_authority(text: str) -> tuple[str, str] | None:
    """(host, port) of `host[:port]` (RFC 9110, section 7.2), lower case, port empty if absent; None if malformed."""
    found = _AUTHORITY.fullmatch(text.lower())
    return (found[1], found[3] or "") if found else None


def allowed_hosts(settings: Settings) -> list[str]:
    """The names accepted in Host, each `name` (any port) or `name:port`.

    Raises:
        Invalid: A setting holds something else.
    """
    hosts = [*LOOPBACK]
    for text in settings.allowed_host:
        authority = split_authority(text)
        if authority is None:
            raise Invalid(
                f"{quote(text)} is not a host name.", "--allowed-host takes `name` or `name:port`, no scheme."
            )
        hosts.append(":".join(filter(None, authority)))
    if settings.public_url:
        hosts.append(_host_in(settings.public_url))
    return hosts


def allowed_origins(settings: Settings) -> list[str]:
    """The values accepted in Origin, besides those of loopback.

    Raises:
        Invalid: A setting holds something else.
    """
    origins: list[str] = []
    for text in settings.allowed_origin:
        scheme, _, authority = text.rstrip("/").partition("://")
        if not (scheme and scheme.isascii() and split_authority(authority)):
            raise Invalid(
                f"{quote(text)} is not an origin.", "--allowed-origin takes `https://app.example.org`, no path."
            )
        origins.append(f"{scheme}://{authority}".lower())
    return origins


def _host_in(url: str) -> str:
    scheme, _, rest = url.partition("://")
    authority = split_authority(rest.partition("/")[0])
    if scheme not in ("http", "https") or authority is None or "?" in url or "#" in url:
        raise Invalid(f"{quote(url)} is not a server's URL.", "--public-url takes https://files.example.org/mcp.")
    return authority[0]


class HostCheck:
    """Rejects requests for foreign names.

    Args:
        hosts: names accepted in Host, each `name` (any port) or `name:port`.
        origins: values accepted in Origin, besides those of loopback. A client without an Origin is not a browser.
    """

    def __init__(self, app: ASGIApp, *, hosts: Sequence[str], origins: Sequence[str]) -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._origins = frozenset(origins)
        self._named: str | None = None
        """How the last request that may pass names this server: most say the same."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # White space around a value is not part of it (RFC 9110, section 5.5); httptools leaves it there. Host has no
        # capitals, the SDK's second look at it does not know.
        hosts: list[str] = []
        origins: list[str] = []
        headers: list[tuple[bytes, bytes]] = []
        for name, value in scope["headers"]:
            value = value.strip()
            if name == b"host":
                value = value.lower()
                hosts.append(value.decode("latin-1"))
            elif name == b"origin":
                origins.append(value.decode("latin-1"))
            headers.append((name, value))
        scope["headers"] = headers
        rejection = self._rejection(hosts, origins)
        if rejection is None:
            await self._app(scope, receive, send)
            return
        set_reason(scope, "origin" if rejection.status_code == 403 else "host")
        await rejection(scope, receive, send)

    def _rejection(self, hosts: Sequence[str], origins: Sequence[str]) -> Response | None:
        if len(hosts) != 1:
            return _text(400, "A request names its host exactly once (RFC 9112, section 3.2).")
        if hosts[0] != self._named:
            authority = split_authority(hosts[0])
            if authority is None or not {authority[0], ":".join(authority)} & self._hosts:
                return _text(421, f"Not served under the host name {quote(hosts[0])}; --allowed-host NAME adds a name.")
            self._named = hosts[0]
        if origins and (len(origins) > 1 or not self._knows(origins[0])):
            return _text(403, f"Refused to the origin {quote(origins[0])}; --allowed-origin ORIGIN adds one.")
        return None

    def _knows(self, origin: str) -> bool:
        return origin in self._origins or _LOOPBACK_ORIGIN.fullmatch(origin) is not None


def _text(status: int, line: str) -> Response:
    return PlainTextResponse(line + "\n", status, {"x-content-type-options": "nosniff"})
