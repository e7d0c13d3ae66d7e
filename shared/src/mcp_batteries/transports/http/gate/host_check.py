"""Answers only requests that name this server: a web page may send others (DNS rebinding).

A page of `evil.example.org` reaches this server without asking anybody if a name server says that its name is this
address; the browser then sends that name as Host. No name server is asked about an address, so a Host that is one was
not rebound, whichever it is, and the page would be of another origin, which is checked.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_batteries.errors import Invalid, quote
from mcp_batteries.settings import Settings
from mcp_batteries.transports.http.refusals import set_reason

__all__ = ["CrossOrigin", "HostCheck", "allowed_hosts", "allowed_origins", "split_authority"]

_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?)(?::(\d{1,5}))?")
_LOOPBACK_ORIGIN = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?")


def split_authority(text: str) -> tuple[str, str] | None:
    """Return (host, port) of `host[:port]` in lower case (RFC 9110, section 7.2), or None if it is malformed.

    The port is empty if there is none.
    """
    match = _AUTHORITY.fullmatch(text.lower())
    if match is None:
        return None
    return match[1], match[3] or ""


def allowed_hosts(settings: Settings) -> list[str]:
    """Return the names accepted in Host beside addresses, each `name` (any port) or `name:port`.

    Raises:
        Invalid: A setting holds something else.
    """
    # Browsers ask no name server about this one.
    hosts = ["localhost"]
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
    """Return the values accepted in Origin, besides those of loopback.

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
    """Return the host of the server's own `url`."""
    scheme, _, location = url.partition("://")
    authority = split_authority(location.partition("/")[0])
    if scheme not in ("http", "https") or authority is None or "?" in url or "#" in url:
        raise Invalid(f"{quote(url)} is not a server's URL.", "--public-url takes https://files.example.org/mcp.")
    host, _ = authority
    return host


class HostCheck:
    """Rejects requests for foreign names.

    Args:
        hosts: names accepted in Host beside addresses, each `name` (any port) or `name:port`.
        origins: values accepted in Origin, besides those of loopback. A client without an Origin is not a browser.
    """

    def __init__(self, app: ASGIApp, *, hosts: Sequence[str], origins: Sequence[str]) -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._origins = frozenset(origins)
        # Most requests name this server as the last one did, so that name need not be parsed again.
        self._last_host: str | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # White space around a value is not part of it (RFC 9110, section 5.5), but httptools leaves it there. Capitals
        # mean nothing in Host, but the SDK compares it as it is.
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
        refusal = self._refuse(scope, hosts, origins)
        if refusal is None:
            await self._app(scope, receive, send)
            return
        await refusal(scope, receive, send)

    def _refuse(self, scope: Scope, hosts: Sequence[str], origins: Sequence[str]) -> Response | None:
        """Return the answer to a request that may not pass, or None if it may."""
        if len(hosts) != 1:
            set_reason(scope, "host")
            return _text(400, "A request names its host exactly once (RFC 9112, section 3.2).")
        host = hosts[0]
        if host != self._last_host:
            if not self._is_allowed_host(host):
                set_reason(scope, "host")
                return _text(421, f"Not served under the host name {quote(host)}; --allowed-host NAME adds a name.")
            self._last_host = host
        if origins and (len(origins) > 1 or not self._is_allowed_origin(origins[0])):
            set_reason(scope, "origin")
            return _text(403, f"Refused to the origin {quote(origins[0])}; --allowed-origin ORIGIN adds one.")
        return None

    def _is_allowed_host(self, host: str) -> bool:
        authority = split_authority(host)
        if authority is None:
            return False
        name, port = authority
        return name in self._hosts or f"{name}:{port}" in self._hosts or _is_address(name)

    def _is_allowed_origin(self, origin: str) -> bool:
        return origin in self._origins or _LOOPBACK_ORIGIN.fullmatch(origin) is not None


class CrossOrigin:
    """Lets pages of allowed origins, those of loopback among them, read answers; others `HostCheck` has refused.

    Args:
        origins: values accepted in Origin, besides those of loopback.
    """

    def __init__(self, app: ASGIApp, *, origins: Sequence[str]) -> None:
        self._app = app
        self._app_for_pages = CORSMiddleware(
            app,
            allow_origins=origins,
            allow_origin_regex=_LOOPBACK_ORIGIN.pattern,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=["mcp-session-id", "www-authenticate"],
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if any(name == b"origin" for name, _ in scope.get("headers", ())):
            await self._app_for_pages(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _is_address(name: str) -> bool:
    """Tell whether the host `name` of an authority is an IP address, which stands in brackets if it is IPv6."""
    try:
        if name.startswith("["):
            ipaddress.IPv6Address(name[1:-1])
        else:
            ipaddress.IPv4Address(name)
    except ValueError:
        return False
    return True


def _text(status: int, line: str) -> Response:
    return PlainTextResponse(line + "\n", status, {"x-content-type-options": "nosniff"})
