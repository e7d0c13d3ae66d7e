"""Streamable HTTP as a deployable transport: carefully bound, guarded, and quick to shut down.

The SDK serves the protocol, uvicorn with httptools serves HTTP. This module builds the layers between them.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, closing, nullcontext
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, cast

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_batteries.errors import Invalid, quote, well_formed
from mcp_batteries.observability.logs import RateLimitFilter
from mcp_batteries.sdk import Sessions, lowlevel, tool_table
from mcp_batteries.server.assemble import Assembled
from mcp_batteries.server.results import clean
from mcp_batteries.server.verifier import Verifier
from mcp_batteries.settings import Settings
from mcp_batteries.transports.http.body_check import BodyCheck
from mcp_batteries.transports.http.certificate import try_out
from mcp_batteries.transports.http.host_check import LOOPBACK, HostCheck, allowed_hosts, allowed_origins
from mcp_batteries.transports.http.in_flight import InFlight
from mcp_batteries.transports.http.json_replies import json_replies
from mcp_batteries.transports.http.rejections import Rejections
from mcp_batteries.transports.http.sessions import straight_sessions
from mcp_batteries.transports.http.unix_socket import UnixListener
from mcp_batteries.transports.http.uvicorn_server import BACKLOG, UvicornServer, bind

if TYPE_CHECKING:
    from mcp_batteries.observability.prometheus import Prometheus
    from mcp_batteries.observability.wire_log import WireLog
    from mcp_batteries.transports.http.auth.guard import Guard

__all__ = ["Limits", "serve"]

_PATH = "/mcp"
_SSE_PATH = "/sse"

Layer = Callable[[ASGIApp], ASGIApp]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """Limits without a setting. Sizes are bytes, times seconds."""

    max_body: int = 4 * 1024 * 1024
    head_seconds: float = 20
    """Within which the headers of a request have to arrive."""
    body_seconds: float = 30
    max_connections: int = 4_096


async def serve(
    server: MCPServer[Any],
    settings: Settings,
    on_shutdown: Callable[[], None] = lambda: None,
    limits: Limits | None = None,
) -> int:
    """Serve `server` until SIGTERM (returns 143) or SIGINT (130).

    Writes `listening on URL` to standard error once it listens. At SIGTERM `/readyz` fails first, and every answer
    closes its connection; after half of `settings.drain_seconds`, 2 s at most, it accepts no more connections and calls
    `on_shutdown`. Calls in flight have the rest of `drain_seconds`; then the remaining ones are stopped, which their
    clients learn, and the lifespan ends. The process exits 0.9 s later whatever happens, and immediately at a second
    signal. Times count as in `Patience`.

    A server made with `auth` and `token_verifier` requires tokens here automatically, because `MCPServer` passes both
    to its application.

    Args:
        on_shutdown: ends listen streams gracefully, so that their clients get the result that says so.

    Raises:
        Invalid: A setting cannot be used, or two contradict each other.
        Refused: The address can be reached from other machines, and no token is required.
        Unavailable: It cannot listen on the address.
    """
    limits = limits or Limits()
    tls = _certificate_and_key(settings)
    hosts = allowed_hosts(settings)
    origins = allowed_origins(settings)
    verifier = server.verifier if isinstance(server, Assembled) else None
    guarded = bool(settings.auth_file or settings.auth_tokens or settings.auth_issuer or verifier)
    asks = guarded or server.settings.auth is not None
    with (
        json_replies(server.hub.stream_opened if isinstance(server, Assembled) else lambda _: None),
        straight_sessions(server),
        closing(_listener(settings, public=asks or settings.allow_anonymous)) as listener,
    ):
        _keep_logs_short()
        path = _SSE_PATH if settings.transport == "sse" else _PATH
        scheme = "https" if tls else "http"
        if settings.socket_url is not None:
            url = f"{scheme}://localhost{path}"
            place = settings.socket_url
        else:
            address, port = listener.getsockname()[:2]
            _warn(address, port, settings, asks=asks)
            name = f"[{address}]" if ":" in address else address
            hosts.append(name)
            url = f"{scheme}://{name}:{port}{path}"
            place = url
        server.middleware.insert(0, _encodable)
        guard = _guard(server, settings, settings.public_url or url, verifier) if guarded else None
        metrics = _metrics(server) if settings.metrics else None
        wire = _wire_log(settings)
        rejections = (
            Rejections(server.audit.refused) if isinstance(server, Assembled) and server.audit else Rejections()
        )
        in_flight = InFlight(rejections)
        # What a request passes, in this order.
        layers: list[Layer | None] = [
            _trusted_proxies(settings.trusted_proxy),
            in_flight.tracking,
            _server_card(server, settings),
            partial(HostCheck, hosts=hosts, origins=origins),
            partial(_without_slash, path=path),
            _cross_origin(origins),
            metrics and metrics.counting,
            guard and guard.before,
            metrics and metrics.page,
            wire and wire.layer,
        ]
        # And behind the SDK's own routes.
        body_check = partial(
            BodyCheck,
            server=server,
            settings=settings,
            max_body=limits.max_body,
            seconds=limits.body_seconds,
            authorize=guard and guard.authorize,
        )
        security = _sdk_security(hosts, origins)
        if settings.transport == "sse":
            application = _sse_app(server, security, limits)
        else:
            application = _http_app(server, settings, security, limits, body_check)
        running = UvicornServer(
            reduce(lambda app, layer: layer(app) if layer else app, reversed(layers), _straight(application, path)),
            place,
            in_flight,
            on_shutdown,
            max_connections=limits.max_connections,
            head_seconds=limits.head_seconds,
            drain_seconds=settings.drain_seconds,
            tls=tls,
            proxies=settings.trusted_proxy,
        )
        application.router.redirect_slashes = False
        async with application.router.lifespan_context(application), anyio.create_task_group() as tasks:
            if guard is not None:
                tasks.start_soon(guard.follow)
            if tls is not None:
                tasks.start_soon(running.follow_certificate)
            try:
                await running.serve([listener])
            finally:
                rejections.end()
                tasks.cancel_scope.cancel()
            if settings.transport != "sse":
                with anyio.CancelScope(shield=True):
                    await Sessions(server).end()
        return running.status


def _listener(settings: Settings, *, public: bool) -> socket.socket:
    if settings.socket is None:
        return bind(settings.host, settings.port, public=public)
    return UnixListener(settings.socket, BACKLOG)


def _certificate_and_key(settings: Settings) -> tuple[str, str] | None:
    if settings.tls_certificate and settings.tls_key:
        try_out(settings.tls_certificate, settings.tls_key)
        return settings.tls_certificate, settings.tls_key
    if settings.tls_certificate or settings.tls_key:
        raise Invalid("https needs a certificate and its key.", "Give both --tls-certificate and --tls-key.")
    return None


def _guard(server: MCPServer[Any], settings: Settings, resource: str, verifier: Verifier | None) -> Guard:
    from mcp_batteries.transports.http.auth.guard import build_guard

    return build_guard(server, settings, resource, verifier)


def _server_card(server: MCPServer[Any], settings: Settings) -> Layer | None:
    if not settings.server_card or settings.public_url is None or not isinstance(server, Assembled):
        return None
    from mcp_batteries.transports.http.server_card import ServerCard, card_and_catalog

    token = bool(settings.auth_file or settings.auth_tokens) and not settings.auth_issuer
    card, catalog = card_and_catalog(server, settings.public_url, token=token)
    return partial(ServerCard, card=card, catalog=catalog, url=settings.public_url)


def _wire_log(settings: Settings) -> WireLog | None:
    if settings.wire_log is None:
        return None
    from mcp_batteries.observability.wire_log import wire_log

    return wire_log(settings)


def _keep_logs_short() -> None:
    # What these say of requests `rejections` says too, and not once for each. A session's id opens it to who reads it.
    for name in ("streamable_http_manager", "streamable_http", "sse", "transport_security"):
        logging.getLogger(f"mcp.server.{name}").setLevel(logging.ERROR)
    for name in (
        "asyncio",
        "uvicorn.error",
        "mcp.server.runner",
        "mcp.server.request_state",
        "mcp.server.subscriptions",
    ):
        logging.getLogger(name).addFilter(RateLimitFilter())


def _metrics(server: MCPServer[Any]) -> Prometheus:
    from mcp_batteries.observability.metrics import Metrics
    from mcp_batteries.observability.prometheus import Prometheus

    gauges: dict[str, tuple[str, Callable[[], float]]] = {
        "mcp_sessions": ("Sessions of older clients that are open.", lambda: len(Sessions(server).ids)),
        "mcp_tasks": ("Tasks of the event loop.", lambda: len(asyncio.all_tasks())),
    }
    if isinstance(server, Assembled):
        gauges["mcp_subscriptions"] = ("What somebody wants to hear of.", lambda: server.hub.subscriptions)
        gauges["mcp_streams"] = ("Streams of notices that are open.", lambda: server.hub.streams)
    prometheus = Prometheus(gauges)
    server.middleware.append(Metrics(lambda: tool_table(server), [prometheus]))
    return prometheus


def _warn(address: str, port: int, settings: Settings, *, asks: bool) -> None:
    if ipaddress.ip_address(address).is_loopback:
        return
    if not asks:
        _log.warning("anybody who can reach %s, port %d, can use this server: it requires no token", address, port)
    elif not settings.tls_certificate and not settings.trusted_proxy:
        _log.warning("tokens can be read on their way to %s: give --tls-certificate, or --trusted-proxy", address)


def _trusted_proxies(trusted: Sequence[str]) -> Layer | None:
    for text in trusted:
        try:
            ipaddress.ip_network(text)
        except ValueError:
            raise Invalid(f"{quote(text)} is not an address or network.", "Write 10.0.0.7 or 10.0.0.0/8.") from None
    if not trusted:
        return None
    from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

    return partial(cast("Any", ProxyHeadersMiddleware), trusted_hosts=list(trusted))


def _without_slash(app: ASGIApp, path: str) -> ASGIApp:
    """Wraps `app` and serves its endpoint under `path/` too: a redirect would name http behind a proxy that ends
    TLS."""

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == f"{path}/":
            scope = {**scope, "path": path, "raw_path": path.encode()}
        await app(scope, receive, send)

    return served


def _straight(application: Starlette, path: str) -> ASGIApp:
    """Wraps `application` and calls its endpoint at `path` directly, without its router, if nothing else is in
    between."""
    routes = [route for route in application.routes if isinstance(route, Route) and route.path == path]
    if application.user_middleware or len(routes) != 1 or routes[0].methods:
        return application
    endpoint = routes[0].app

    async def reached(scope: Scope, receive: Receive, send: Send) -> None:
        await (endpoint if scope.get("path") == path else application)(scope, receive, send)

    return reached


def _cross_origin(origins: Sequence[str]) -> Layer | None:
    if not origins:
        return None
    return partial(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=["mcp-session-id", "www-authenticate"],
    )


def _sdk_security(hosts: Sequence[str], origins: Sequence[str]) -> TransportSecuritySettings:
    # The SDK's rules, which a wildcard makes a test of prefixes, stay on behind ours whatever the address.
    loopback = [f"{scheme}://{host}{port}" for scheme in ("http", "https") for host in LOOPBACK for port in ("", ":*")]
    return TransportSecuritySettings(
        allowed_hosts=[form for host in hosts for form in (host, f"{host}:*")], allowed_origins=[*origins, *loopback]
    )


def _http_app(
    server: MCPServer[Any],
    settings: Settings,
    security: TransportSecuritySettings,
    limits: Limits,
    body_check: Layer,
) -> Starlette:
    application = server.streamable_http_app(
        streamable_http_path=_PATH,
        json_response=settings.json_response,
        max_request_body_size=limits.max_body,
        session_idle_timeout=settings.session_seconds,
        max_sessions=settings.max_sessions,
        transport_security=security,
    )
    manager = server.session_manager
    # In the place of the SDK's own limit for bodies.
    manager.asgi_app = cast("Any", body_check(manager.asgi_app.app))
    return application


def _sse_app(server: MCPServer[Any], security: TransportSecuritySettings, limits: Limits) -> Starlette:
    application = server.sse_app(sse_path=_SSE_PATH, max_request_body_size=limits.max_body, transport_security=security)
    low = lowlevel(server)
    lifespan = low.lifespan

    # The SDK enters the lifespan anew for every client here; the rest of a server relies on once.
    @asynccontextmanager
    async def once(_: Starlette) -> AsyncGenerator[None]:
        async with lifespan(low) as state:

            def entered(_: object) -> nullcontext[Any]:
                return nullcontext(state)

            low.lifespan = entered
            yield

    application.router.lifespan_context = once
    return application


async def _encodable(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Makes answers encodable: a lone surrogate would end the stream without any answer.

    Notices cannot contain one either: progress passes `limits`, and the URIs in notices come from parsed messages.
    """
    try:
        return clean(await call_next(ctx))
    except MCPError as exc:
        raise MCPError(exc.code, well_formed(exc.message), clean(exc.data)) from exc
    except ValidationError:
        raise
    except Exception as exc:
        # The words of any other exception are for the log alone, in every revision.
        _log.exception("%s failed", ctx.method)
        raise MCPError(INTERNAL_ERROR, "Internal server error") from exc
