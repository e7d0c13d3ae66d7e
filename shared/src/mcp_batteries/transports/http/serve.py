"""Streamable HTTP as a deployable transport: carefully bound, guarded, and quick to shut down.

The SDK serves the protocol, uvicorn with httptools serves HTTP. This module builds the layers between them.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, closing, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_batteries.errors import Invalid, quote, well_formed
from mcp_batteries.observability.logs import RateLimitFilter
from mcp_batteries.sdk import Sessions, lowlevel, tool_table
from mcp_batteries.server.assemble import Assembled
from mcp_batteries.server.calling.results import clean
from mcp_batteries.settings import Settings
from mcp_batteries.transports.http.event_lines import escape_line_ends
from mcp_batteries.transports.http.gate.host_check import CrossOrigin, HostCheck, allowed_hosts, allowed_origins
from mcp_batteries.transports.http.gate.message_gate import BodyCheck
from mcp_batteries.transports.http.gate.sse_messages import SseMessages, answer_refused, find_endpoint
from mcp_batteries.transports.http.listener.certificate import validate_pair
from mcp_batteries.transports.http.listener.unix_socket import UnixListener
from mcp_batteries.transports.http.listener.uvicorn_server import BACKLOG, UvicornServer, listen_on
from mcp_batteries.transports.http.refusals import Refusals
from mcp_batteries.transports.http.requests.in_flight import InFlight
from mcp_batteries.transports.http.requests.json_replies import json_replies
from mcp_batteries.transports.http.requests.sessions import answer_sessions_directly

if TYPE_CHECKING:
    from mcp_batteries.observability.prometheus import Prometheus
    from mcp_batteries.observability.wire_log import WireLog
    from mcp_batteries.transports.http.auth.guard import Guard

__all__ = ["Limits", "serve"]

_PATH = "/mcp"
_SSE_PATH = "/sse"
_SSE_MESSAGES_PATH = "/messages"

Layer = Callable[[ASGIApp], ASGIApp]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """Limits without a setting. Sizes are bytes, times seconds.

    Attributes:
        head_seconds: the time within which the headers of a request have to arrive.
        body_seconds: the time within which its body has to arrive.
    """

    max_body: int = 4 * 1024 * 1024
    head_seconds: float = 20
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
    signal. Times count as in `ShutdownBudget`.

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
    is_guarded = _is_guarded(server, settings)
    requires_token = is_guarded or server.settings.auth is not None
    with (
        json_replies(_stream_listener(server)),
        answer_sessions_directly(server),
        closing(_listener(settings, public=requires_token or settings.allow_anonymous)) as listener,
    ):
        _keep_logs_short()
        endpoint = _endpoint(listener, settings, tls)
        if settings.socket is None:
            _warn_of_exposure(listener, settings, requires_token=requires_token)
        server.middleware.insert(0, _make_encodable)
        guard = None
        if is_guarded:
            guard = _guard(server, settings, settings.public_url or endpoint.url)
        gate = _Gate(hosts, origins, guard, _metrics(server, settings), _wire_log(settings), _rejections(server))
        application = _application(server, settings, limits, gate)
        in_flight = InFlight(gate.rejections)
        layers = _layers(server, settings, gate, in_flight, endpoint.path)
        running = UvicornServer(
            _wrap(application, layers),
            endpoint.label,
            in_flight,
            on_shutdown,
            max_connections=limits.max_connections,
            head_seconds=limits.head_seconds,
            drain_seconds=settings.drain_seconds,
            tls=tls,
            proxies=settings.trusted_proxy,
        )
        application.router.redirect_slashes = False
        application.router.default = _not_found(settings, endpoint.path)
        async with application.router.lifespan_context(application), anyio.create_task_group() as tasks:
            if guard is not None:
                tasks.start_soon(guard.follow)
            if tls is not None:
                tasks.start_soon(running.follow_certificate)
            try:
                await running.serve([listener])
            finally:
                gate.rejections.flush()
                tasks.cancel_scope.cancel()
            if settings.transport != "sse":
                with anyio.CancelScope(shield=True):
                    await Sessions(server).end()
        return running.status


@dataclass(frozen=True)
class _Endpoint:
    """The address at which the server is reached.

    Attributes:
        path: of the URL.
        url: as a client on this machine writes it.
        label: what the log says of it.
    """

    path: str
    url: str
    label: str


@dataclass(frozen=True)
class _Gate:
    """What each request passes before the SDK gets it.

    Attributes:
        hosts: names accepted in Host.
        origins: values accepted in Origin.
        guard: requires tokens.
        metrics: counts requests and answers.
        wire: records every message.
        rejections: reports refusals.
    """

    hosts: list[str]
    origins: list[str]
    guard: Guard | None
    metrics: Prometheus | None
    wire: WireLog | None
    rejections: Refusals


def _endpoint(listener: socket.socket, settings: Settings, tls: tuple[str, str] | None) -> _Endpoint:
    """Return the address at which clients reach `listener`."""
    path = _SSE_PATH if settings.transport == "sse" else _PATH
    scheme = "https" if tls else "http"
    if settings.socket_url is not None:
        return _Endpoint(path, f"{scheme}://localhost{path}", settings.socket_url)
    address, port = listener.getsockname()[:2]
    host = f"[{address}]" if ":" in address else address
    url = f"{scheme}://{host}:{port}{path}"
    return _Endpoint(path, url, url)


def _layers(
    server: MCPServer[Any], settings: Settings, gate: _Gate, in_flight: InFlight, path: str
) -> Sequence[Layer | None]:
    """Return the layers in the order in which a request passes them."""
    layers: list[Layer | None] = [
        _trusted_proxies(settings.trusted_proxy),
        escape_line_ends,
        in_flight.track_requests,
        _server_card(server, settings),
        partial(HostCheck, hosts=gate.hosts, origins=gate.origins),
        partial(_without_slash, path=path),
        partial(CrossOrigin, origins=gate.origins),
    ]
    if gate.metrics is not None:
        layers.append(gate.metrics.counting)
    if gate.guard is not None:
        layers.append(gate.guard.protect)
    if gate.metrics is not None:
        layers.append(gate.metrics.page)
    if gate.wire is not None:
        layers.append(gate.wire.layer)
    # Those before it know the other paths, such as that of the metrics, without a prefix.
    layers.append(_message_path(settings))
    return layers


def _wrap(app: ASGIApp, layers: Sequence[Layer | None]) -> ASGIApp:
    """Return `app` behind `layers`, the first one outermost."""
    for layer in reversed(layers):
        if layer is not None:
            app = layer(app)
    return app


def _stream_listener(server: MCPServer[Any]) -> Callable[[str], None]:
    """Return what is called with the session of each stream of changes that opens."""
    if isinstance(server, Assembled):
        return server.hub.stream_opened
    return lambda _: None


def _rejections(server: MCPServer[Any]) -> Refusals:
    if isinstance(server, Assembled) and server.audit:
        return Refusals(server.audit.record_refusal)
    return Refusals()


def _listener(settings: Settings, *, public: bool) -> socket.socket:
    if settings.socket is None:
        return listen_on(settings.host, settings.port, public=public)
    return UnixListener(settings.socket, BACKLOG)


def _certificate_and_key(settings: Settings) -> tuple[str, str] | None:
    if settings.tls_certificate and settings.tls_key:
        validate_pair(settings.tls_certificate, settings.tls_key)
        return settings.tls_certificate, settings.tls_key
    if settings.tls_certificate or settings.tls_key:
        raise Invalid("https needs a certificate and its key.", "Give both --tls-certificate and --tls-key.")
    return None


def _is_guarded(server: MCPServer[Any], settings: Settings) -> bool:
    """Return whether requests need a token that this package checks."""
    if settings.auth_file or settings.auth_tokens or settings.auth_issuer:
        return True
    return isinstance(server, Assembled) and server.verifier is not None


def _guard(server: MCPServer[Any], settings: Settings, resource: str) -> Guard:
    from mcp_batteries.transports.http.auth.guard import build_guard

    if isinstance(server, Assembled):
        return build_guard(server, settings, resource, server.verifier, server.resolve_tool)
    return build_guard(server, settings, resource)


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
    from mcp_batteries.observability.wire_log import WireLog

    return WireLog(settings.wire_log)


def _keep_logs_short() -> None:
    """Silence loggers that any client can make write as often as it likes."""
    # `refusals` reports the same refusals, and not once for each. A session's id opens it to every reader of the log.
    for name in ("streamable_http_manager", "streamable_http", "transport_security"):
        logging.getLogger(f"mcp.server.{name}").setLevel(logging.ERROR)
    # What is no message is an error to it, which quotes the message; its sender reads that it was refused.
    logging.getLogger("mcp.server.sse").setLevel(logging.CRITICAL)
    for name in (
        "asyncio",
        "uvicorn.error",
        "mcp.server.runner",
        "mcp.server.request_state",
        "mcp.server.subscriptions",
    ):
        logging.getLogger(name).addFilter(RateLimitFilter())


def _metrics(server: MCPServer[Any], settings: Settings) -> Prometheus | None:
    if not settings.metrics:
        return None
    from mcp_batteries.observability.metrics import Metrics
    from mcp_batteries.observability.prometheus import Prometheus

    gauges: dict[str, tuple[str, Callable[[], float]]] = {
        "mcp_sessions": ("Sessions of older clients that are open.", lambda: len(Sessions(server).ids)),
        "mcp_tasks": ("Tasks of the event loop.", lambda: len(asyncio.all_tasks())),
    }
    if isinstance(server, Assembled):
        gauges["mcp_subscriptions"] = ("What somebody wants to hear of.", lambda: server.hub.subscriptions)
        gauges["mcp_streams"] = (
            "Open `subscriptions/listen`; older clients have sessions.",
            lambda: server.hub.streams,
        )
    prometheus = Prometheus(gauges)
    server.middleware.append(Metrics(lambda: tool_table(server), [prometheus]))
    return prometheus


def _warn_of_exposure(listener: socket.socket, settings: Settings, *, requires_token: bool) -> None:
    """Warn if strangers can use this server, or read tokens on their way to it."""
    address, port = listener.getsockname()[:2]
    if ipaddress.ip_address(address).is_loopback:
        return
    if not requires_token:
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
    """Wrap `app` to serve its endpoint under `path/` too.

    A redirect would name http behind a proxy that ends TLS.
    """

    async def strip_slash(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == f"{path}/":
            scope = {**scope, "path": path, "raw_path": path.encode()}
        await app(scope, receive, send)

    return strip_slash


def _message_path(settings: Settings) -> Layer | None:
    """Return the layer that tells older clients where messages go, if a proxy removes the beginning of each path."""
    public_path = urlsplit(settings.public_url or "").path.rstrip("/")
    prefix = public_path.removesuffix(_SSE_PATH)
    if settings.transport != "sse" or prefix in ("", public_path):
        return None
    return partial(_with_prefix, prefix=prefix)


def _with_prefix(app: ASGIApp, prefix: str) -> ASGIApp:
    """Wrap `app` to name its paths with `prefix`, and to serve them with it and without, as a proxy leaves them."""

    async def move(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path = scope["path"]
            if not path.startswith(f"{prefix}/"):
                path = prefix + path
            scope = {**scope, "path": path, "raw_path": path.encode(), "root_path": prefix}
        await app(scope, receive, send)

    return move


def _not_found(settings: Settings, path: str) -> ASGIApp:
    """Return what answers under every other path: people leave the path out, or take it from another server."""
    transport = "the older SSE transport" if settings.transport == "sse" else "Streamable HTTP"
    place = settings.public_url or path
    return PlainTextResponse(f"Nothing is served under this path. This server speaks {transport}, at {place}.\n", 404)


def _application(server: MCPServer[Any], settings: Settings, limits: Limits, gate: _Gate) -> Starlette:
    """Return the SDK's application with our check of each message."""
    # `HostCheck` does it before, and the SDK can't be told that every address is right.
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    if settings.transport == "sse":
        return _sse_app(server, security, limits, gate.rejections)
    application = server.streamable_http_app(
        streamable_http_path=_PATH,
        json_response=settings.json_response,
        max_request_body_size=limits.max_body,
        session_idle_timeout=settings.session_seconds,
        max_sessions=settings.max_sessions,
        transport_security=security,
    )
    manager = server.session_manager
    authorize = None
    if gate.guard is not None:
        authorize = gate.guard.authorize
    # In the place of the SDK's own limit for bodies.
    body_check = BodyCheck(
        manager.asgi_app.app,
        server,
        settings,
        max_body=limits.max_body,
        seconds=limits.body_seconds,
        authorize=authorize,
        refusals=gate.rejections,
    )
    manager.asgi_app = cast("Any", body_check)
    return application


def _sse_app(
    server: MCPServer[Any], security: TransportSecuritySettings, limits: Limits, refusals: Refusals
) -> Starlette:
    application = server.sse_app(
        sse_path=_SSE_PATH,
        message_path=f"{_SSE_MESSAGES_PATH}/",
        # `SseMessages` limits what a client sends. The SDK would count the bytes of the form in which it is passed on.
        max_request_body_size=sys.maxsize,
        transport_security=security,
    )
    endpoint = find_endpoint(application, _SSE_MESSAGES_PATH)
    endpoint.app = SseMessages(endpoint.app, max_body=limits.max_body, seconds=limits.body_seconds, refusals=refusals)
    server.middleware.insert(0, answer_refused)
    low = lowlevel(server)
    lifespan = low.lifespan

    # The SDK enters the lifespan anew for every client here, but a server relies on entering it once.
    @asynccontextmanager
    async def enter_once(_: Starlette) -> AsyncGenerator[None]:
        async with lifespan(low) as state:

            def reuse(_: object) -> nullcontext[Any]:
                return nullcontext(state)

            low.lifespan = reuse
            yield

    application.router.lifespan_context = enter_once
    return application


async def _make_encodable(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Make answers encodable: a lone surrogate would end the stream without any answer.

    Notices cannot contain one either: reports of progress are cleaned, and the URIs in notices come from parsed
    messages.
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
