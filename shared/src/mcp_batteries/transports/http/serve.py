"""Streamable HTTP as a transport one can deploy: bound with care, guarded, and gone soon after it is told to go.

The SDK serves the protocol, uvicorn HTTP (with httptools when the extra `http` is installed). This module owns
what lies between them and the operating system: the socket, the signals, the end.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, closing, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR
from mcp_types.jsonrpc import JSONRPCMessage
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Scope

from mcp_batteries.errors import Invalid, quote, well_formed
from mcp_batteries.observability.logs import RateLimitFilter
from mcp_batteries.sdk import Sessions, lowlevel, tool_table
from mcp_batteries.server.assemble import Assembled
from mcp_batteries.server.results import clean
from mcp_batteries.transports.http.auth import Access
from mcp_batteries.transports.http.body_check import Asked, BodyCheck
from mcp_batteries.transports.http.host_check import LOOPBACK, HostCheck, split_authority
from mcp_batteries.transports.http.json_replies import answers_deferred
from mcp_batteries.transports.http.quota import Quota
from mcp_batteries.transports.http.rejections import Rejections
from mcp_batteries.transports.http.uvicorn_server import Listener, bind

if TYPE_CHECKING:
    from mcp_batteries.observability.prometheus import Prometheus

__all__ = ["HttpOptions", "options", "serve"]

_PATH = "/mcp"
_SSE_PATH = "/sse"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HttpOptions:
    """Where and for whom to serve. Sizes are bytes, times seconds."""

    host: str = "127.0.0.1"
    port: int = 8000
    """0 takes a free one."""
    transport: Literal["http", "sse"] = "http"
    allow_anonymous: bool = False
    """Without it, and without `access`, only addresses of this machine's loopback can be listened on."""
    access: Access | None = None
    """Whose tokens are asked for; None asks nobody."""
    public_url: str | None = None
    """The endpoint as clients know it, where that is not the address listened on."""
    tls: tuple[str, str] | None = None
    """Files of the certificate with its chain and of its key."""
    trusted_proxies: Sequence[str] = ()
    """Addresses and networks whose word on the client's address and scheme is taken."""
    allowed_hosts: Sequence[str] = ()
    """Accepted in Host beside the loopback names and `host`: `name` for any port, or `name:port`."""
    allowed_origins: Sequence[str] = ()
    """Accepted in Origin beside those of loopback; pages from there may read the answers (CORS)."""
    json_response: bool = False
    max_body: int = 4 * 1024 * 1024
    head_seconds: float = 20
    body_seconds: float = 30
    drain_seconds: float = 1
    """For calls in flight at SIGTERM."""
    metrics: bool = False
    """Serve figures for Prometheus at `/metrics`."""
    rate_calls: int = 0
    """Per minute and caller, as are `rate_bytes`; 0 is no limit."""
    rate_bytes: int = 0
    max_parallel: int = 32
    """Calls of one caller at work at once; more of them wait."""
    max_streams_each: int = 256
    """Streams of notices that one caller may hold open, and sessions of older clients."""
    max_sessions: int = 1_000
    idle_seconds: float = 30 * 60
    max_connections: int = 4_096


class Settings(Protocol):
    """What `options` needs of a server's settings."""

    @property
    def transport(self) -> Literal["stdio", "http", "sse"]: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def allow_anonymous(self) -> bool: ...
    @property
    def auth_file(self) -> str | None: ...
    @property
    def auth_tokens(self) -> str | None: ...
    @property
    def auth_issuer(self) -> str | None: ...
    @property
    def auth_audience(self) -> str | None: ...
    @property
    def auth_algorithm(self) -> Sequence[str]: ...
    @property
    def auth_scope_prefix(self) -> str: ...
    @property
    def public_url(self) -> str | None: ...
    @property
    def tls_certificate(self) -> str | None: ...
    @property
    def tls_key(self) -> str | None: ...
    @property
    def trusted_proxy(self) -> Sequence[str]: ...
    @property
    def metrics(self) -> bool: ...
    @property
    def rate_calls(self) -> int: ...
    @property
    def rate_bytes(self) -> int: ...
    @property
    def max_parallel(self) -> int: ...
    @property
    def drain_seconds(self) -> int: ...
    @property
    def max_streams_each(self) -> int: ...
    @property
    def max_sessions(self) -> int: ...
    @property
    def session_seconds(self) -> int: ...
    @property
    def allowed_host(self) -> Sequence[str]: ...
    @property
    def allowed_origin(self) -> Sequence[str]: ...
    @property
    def json_response(self) -> bool: ...


def options(settings: Settings) -> HttpOptions:
    """The options that a server's settings ask for.

    Raises:
        Invalid: They contradict each other.
    """
    if bool(settings.tls_certificate) != bool(settings.tls_key):
        raise Invalid("https needs a certificate and its key.", "Give both --tls-certificate and --tls-key.")
    access = Access(
        file=settings.auth_file,
        lines=settings.auth_tokens,
        issuer=settings.auth_issuer,
        audience=settings.auth_audience,
        algorithms=settings.auth_algorithm,
        scope_prefix=settings.auth_scope_prefix,
    )
    return HttpOptions(
        host=settings.host,
        port=settings.port,
        transport="sse" if settings.transport == "sse" else "http",
        allow_anonymous=settings.allow_anonymous,
        access=access if access.file or access.lines or access.issuer else None,
        public_url=settings.public_url,
        tls=(settings.tls_certificate, settings.tls_key) if settings.tls_certificate and settings.tls_key else None,
        trusted_proxies=settings.trusted_proxy,
        max_streams_each=settings.max_streams_each,
        max_sessions=settings.max_sessions,
        idle_seconds=settings.session_seconds,
        drain_seconds=settings.drain_seconds,
        metrics=settings.metrics,
        rate_calls=settings.rate_calls,
        rate_bytes=settings.rate_bytes,
        max_parallel=settings.max_parallel,
        allowed_hosts=settings.allowed_host,
        allowed_origins=settings.allowed_origin,
        json_response=settings.json_response,
    )


async def serve(server: MCPServer[Any], options: HttpOptions, on_shutdown: Callable[[], None] = lambda: None) -> int:
    """Serve `server` until SIGTERM (returns 143) or SIGINT (130).

    Says `listening on URL` on standard error once it does. At the signal no more connections are taken and
    `on_shutdown` is called; calls in flight have `drain_seconds` to be answered, then streams end and the lifespan
    is left. The process is gone 0.9 s later whatever happens, and at once at a second signal.

    A server made with `auth` and `token_verifier` asks for tokens here without further ado: `MCPServer` hands
    both to the application it makes.

    Args:
        on_shutdown: ends listen streams gracefully, so that their clients get the result that says so.

    Raises:
        Invalid: An allowed host or origin cannot be one.
        Refused: The address can be reached from other machines, and nobody is asked for a token.
        Unavailable: The address cannot be listened on.
    """
    hosts = [*LOOPBACK, *map(_allowed_host, options.allowed_hosts)]
    origins = [_allowed_origin(origin) for origin in options.allowed_origins]
    if options.public_url:
        hosts.append(_public_host(options.public_url))
    knows = options.access is not None or server.settings.auth is not None
    with (
        answers_deferred(),
        closing(bind(options.host, options.port, public=knows or options.allow_anonymous)) as listener,
    ):
        address, port = listener.getsockname()[:2]
        name = f"[{address}]" if ":" in address else address
        hosts.append(name)
        _warn(address, port, options, knows=knows)
        # The SDK's rules, which a wildcard makes a test of prefixes, stay on behind ours whatever the address.
        security = TransportSecuritySettings(
            allowed_hosts=[form for host in hosts for form in (host, f"{host}:*")],
            allowed_origins=[
                *origins,
                *(
                    f"{scheme}://{host}{port}"
                    for scheme in ("http", "https")
                    for host in LOOPBACK
                    for port in ("", ":*")
                ),
            ],
        )
        path = _SSE_PATH if options.transport == "sse" else _PATH
        url = f"{'https' if options.tls else 'http'}://{name}:{port}{path}"
        guard, follow = None, None
        if options.access is not None:
            from mcp_batteries.transports.http.auth.build import door

            guard, follow = door(server, options.access, options.public_url or url)
        _keep_logs_short()
        server.middleware.insert(0, _encodable)
        make = _sse_app if options.transport == "sse" else _http_app
        application = make(server, options, security, asked=guard.asked if guard else _everybody)
        app: ASGIApp = application
        figures = _figures(server) if options.metrics else None
        if figures is not None:
            app = figures.beside(app)
        if guard is not None:
            app = guard.before(app)
        if figures is not None:
            app = figures.counting(app)
        if origins:
            app = CORSMiddleware(
                app,
                allow_origins=origins,
                allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["*"],
                expose_headers=["mcp-session-id", "www-authenticate"],
            )
        audit = server.audit if isinstance(server, Assembled) else None
        refusals = Rejections(audit.refused) if audit is not None else Rejections()
        gate = HostCheck(app, hosts=hosts, origins=origins, refusals=refusals)
        running = Listener(
            gate,
            url,
            on_shutdown,
            max_connections=options.max_connections,
            head_seconds=options.head_seconds,
            drain_seconds=options.drain_seconds,
            app=_behind_proxies(gate, options.trusted_proxies),
            tls=options.tls,
        )
        async with application.router.lifespan_context(application), anyio.create_task_group() as tasks:
            if follow is not None:
                tasks.start_soon(follow)
            if options.tls is not None:
                tasks.start_soon(running.follow_certificate)
            try:
                await running.serve([listener])
            finally:
                refusals.end()
                tasks.cancel_scope.cancel()
                for asyncio_server in running.servers:
                    asyncio_server.close()
            if options.transport == "http":
                with anyio.CancelScope(shield=True):
                    await Sessions(server).end()
        return running.status


def _keep_logs_short() -> None:
    # What these say of requests `refusals` says too, and not once for each. An id opens its session to who reads it.
    for name in ("streamable_http_manager", "streamable_http", "sse", "transport_security"):
        logging.getLogger(f"mcp.server.{name}").setLevel(logging.ERROR)
    for name in ("uvicorn.error", "mcp.server.runner", "mcp.server.request_state", "mcp.server.subscriptions"):
        logging.getLogger(name).addFilter(RateLimitFilter())


def _figures(server: MCPServer[Any]) -> Prometheus:
    from mcp_batteries.observability.metrics import Metrics
    from mcp_batteries.observability.prometheus import Prometheus

    gauges: dict[str, tuple[str, Callable[[], float]]] = {
        "mcp_sessions": ("Sessions of older clients that are open.", lambda: len(Sessions(server).ids)),
        "mcp_tasks": ("Tasks of the event loop.", lambda: len(asyncio.all_tasks())),
    }
    if isinstance(server, Assembled):
        gauges["mcp_subscriptions"] = ("What somebody wants to hear of.", lambda: server.changes.subscriptions)
        gauges["mcp_streams"] = ("Streams of notices that are open.", lambda: server.changes.streams)
    prometheus = Prometheus(gauges)
    server.middleware.append(Metrics(lambda: tool_table(server), [prometheus]))
    return prometheus


def _everybody(scope: Scope, message: JSONRPCMessage) -> None:
    return None


def _warn(address: str, port: int, options: HttpOptions, *, knows: bool) -> None:
    if ipaddress.ip_address(address).is_loopback:
        return
    if not knows:
        _log.warning("whoever can reach %s, port %d, can use this server: it asks nobody for a token", address, port)
    elif options.tls is None and not options.trusted_proxies:
        _log.warning("tokens can be read on their way to %s: give --tls-certificate, or --trusted-proxy", address)


def _behind_proxies(app: ASGIApp, trusted: Sequence[str]) -> ASGIApp:
    if not trusted:
        return app
    for text in trusted:
        try:
            ipaddress.ip_network(text)
        except ValueError:
            raise Invalid(f"{quote(text)} is no address or network.", "Write 10.0.0.7 or 10.0.0.0/8.") from None
    from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

    return cast("ASGIApp", ProxyHeadersMiddleware(cast("Any", app), trusted_hosts=list(trusted)))


def _public_host(url: str) -> str:
    scheme, _, rest = url.partition("://")
    authority = split_authority(rest.partition("/")[0])
    if scheme not in ("http", "https") or authority is None or "?" in url or "#" in url:
        raise Invalid(f"{quote(url)} is no URL of a server.", "--public-url takes https://files.example.org/mcp.")
    return authority[0]


def _http_app(
    server: MCPServer[Any], options: HttpOptions, security: TransportSecuritySettings, *, asked: Asked
) -> Starlette:
    application = server.streamable_http_app(
        streamable_http_path=_PATH,
        json_response=options.json_response,
        max_request_body_size=options.max_body,
        session_idle_timeout=options.idle_seconds,
        max_sessions=options.max_sessions,
        transport_security=security,
    )
    manager = server.session_manager
    # In the place of the SDK's own limit for bodies.
    manager.asgi_app = BodyCheck(
        manager.asgi_app.app,
        max_body=options.max_body,
        seconds=options.body_seconds,
        json_response=options.json_response,
        asked=asked,
        sessions=Sessions(server),
        sessions_each=options.max_streams_each,
        quota=Quota(
            calls=options.rate_calls,
            size=options.rate_bytes,
            parallel=options.max_parallel,
            streams=options.max_streams_each,
        ),
    )
    return application


def _sse_app(
    server: MCPServer[Any], options: HttpOptions, security: TransportSecuritySettings, *, asked: Asked
) -> Starlette:
    application = server.sse_app(
        sse_path=_SSE_PATH, max_request_body_size=options.max_body, transport_security=security
    )
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


def _allowed_host(text: str) -> str:
    authority = split_authority(text)
    if authority is None:
        raise Invalid(f"{quote(text)} is no host name.", "--allowed-host takes `name` or `name:port`, no scheme.")
    return ":".join(filter(None, authority))


def _allowed_origin(text: str) -> str:
    scheme, separator, authority = text.rstrip("/").partition("://")
    if not (separator and scheme.isascii() and scheme and split_authority(authority)):
        raise Invalid(f"{quote(text)} is no origin.", "--allowed-origin takes `https://app.example.org`, no path.")
    return f"{scheme}://{authority}".lower()


async def _encodable(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Answers that can be written: a lone surrogate in one ends its stream with no answer at all.

    What tools say meanwhile cannot hold one either: progress passes `limits`, and the URIs in notices come
    from parsed messages.
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
