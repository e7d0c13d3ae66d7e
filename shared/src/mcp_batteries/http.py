"""Streamable HTTP as a transport one can deploy: bound with care, guarded, and gone soon after it is told to go.

The SDK serves the protocol, uvicorn HTTP (with httptools when the extra `http` is installed). This module owns
what lies between them and the operating system: the socket, the signals, the end.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, closing, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from mcp_batteries.errors import Invalid, quote, well_formed
from mcp_batteries.gates import LOOPBACK, FrontGate, MessageGate, split_authority
from mcp_batteries.listener import Listener, bind
from mcp_batteries.results import clean
from mcp_batteries.sdk import end_sessions, lowlevel

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
    allow_remote: bool = False
    """Without it only addresses of this machine's loopback can be listened on."""
    allowed_hosts: Sequence[str] = ()
    """Accepted in Host beside the loopback names and `host`: `name` for any port, or `name:port`."""
    allowed_origins: Sequence[str] = ()
    """Accepted in Origin beside those of loopback; pages from there may read the answers (CORS)."""
    json_response: bool = False
    max_body: int = 4 * 1024 * 1024
    body_seconds: float = 30
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
    def allow_remote(self) -> bool: ...
    @property
    def allowed_host(self) -> Sequence[str]: ...
    @property
    def allowed_origin(self) -> Sequence[str]: ...
    @property
    def json_response(self) -> bool: ...


def options(settings: Settings) -> HttpOptions:
    """The options that a server's settings ask for."""
    return HttpOptions(
        host=settings.host,
        port=settings.port,
        transport="sse" if settings.transport == "sse" else "http",
        allow_remote=settings.allow_remote,
        allowed_hosts=settings.allowed_host,
        allowed_origins=settings.allowed_origin,
        json_response=settings.json_response,
    )


async def serve(server: MCPServer[Any], options: HttpOptions, on_shutdown: Callable[[], None] = lambda: None) -> int:
    """Serve `server` until SIGTERM (returns 143) or SIGINT (130).

    Says `listening on URL` on standard error once it does. At the signal no more connections are taken and
    `on_shutdown` is called; calls in flight have 0.8 s to be answered, then streams end and the lifespan is
    left. The process is gone after 2 s whatever happens, and at once at a second signal.

    A server made with `auth` and `token_verifier` asks for tokens here without further ado: `MCPServer` hands
    both to the application it makes.

    Args:
        on_shutdown: ends listen streams gracefully, so that their clients get the result that says so.

    Raises:
        Invalid: An allowed host or origin cannot be one.
        Refused: The address can be reached from other machines, and `allow_remote` is not set.
        Unavailable: The address cannot be listened on.
    """
    hosts = [*LOOPBACK, *map(_allowed_host, options.allowed_hosts)]
    origins = [_allowed_origin(origin) for origin in options.allowed_origins]
    with closing(bind(options.host, options.port, allow_remote=options.allow_remote)) as listener:
        address, port = listener.getsockname()[:2]
        name = f"[{address}]" if ":" in address else address
        hosts.append(name)
        if not ipaddress.ip_address(address).is_loopback and server.settings.auth is None:
            _log.warning("whoever can reach %s, port %d, can use this server: it asks nobody for a token", name, port)
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
        server.middleware.insert(0, _encodable)
        make = _sse_app if options.transport == "sse" else _http_app
        application, path = make(server, options, security)
        app: ASGIApp = application
        if origins:
            app = CORSMiddleware(
                app,
                allow_origins=origins,
                allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["*"],
                expose_headers=["mcp-session-id", "www-authenticate"],
            )
        gate = FrontGate(app, hosts=hosts, origins=origins)
        running = Listener(gate, f"http://{name}:{port}{path}", on_shutdown, max_connections=options.max_connections)
        async with application.router.lifespan_context(application):
            try:
                await running.serve([listener])
            finally:
                for asyncio_server in running.servers:
                    asyncio_server.close()
            if options.transport == "http":
                await end_sessions(server.session_manager)
        return running.status


def _http_app(
    server: MCPServer[Any], options: HttpOptions, security: TransportSecuritySettings
) -> tuple[Starlette, str]:
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
    manager.asgi_app = MessageGate(
        manager.asgi_app.app,
        max_body=options.max_body,
        seconds=options.body_seconds,
        json_response=options.json_response,
    )
    return application, _PATH


def _sse_app(
    server: MCPServer[Any], options: HttpOptions, security: TransportSecuritySettings
) -> tuple[Starlette, str]:
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
    return application, _SSE_PATH


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
