"""Requires a bearer token on every request, challenges with the missing scope, and ends streams with their token.

The rules are those of the specification's "Authorization" and of RFC 6750 (bearer tokens) and RFC 9728 (metadata of
protected resources). The SDK's own check names no scopes, and treats a missing token as a wrong one.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable
from urllib.parse import urlsplit

import anyio
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.mcpserver import MCPServer
from mcp_types.jsonrpc import INVALID_REQUEST, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_batteries.errors import Unavailable
from mcp_batteries.sdk import lowlevel, tool_table
from mcp_batteries.server.verifier import Verifier
from mcp_batteries.settings import Settings
from mcp_batteries.transports.http.auth.scopes import Scopes
from mcp_batteries.transports.http.auth.tokens import Tokens
from mcp_batteries.transports.http.in_flight import Answer
from mcp_batteries.transports.http.rejections import set_reason

__all__ = ["Guard", "build_guard"]

_WELL_KNOWN = "/.well-known/oauth-protected-resource"
_MAX_TOKEN = 16 * 1024
_CLIENT_CREDENTIALS = "io.modelcontextprotocol/oauth-client-credentials"
"""SEP-1046: a program may get its token from the issuer for itself. All of that is between the two of them."""

_log = logging.getLogger(__name__)


def build_guard(server: MCPServer[Any], settings: Settings, resource: str, verifier: Verifier | None = None) -> Guard:
    """Build the guard for `settings`; `server` keeps the same rules inside.

    Args:
        resource: this server's URL as clients know it.
        verifier: the server's own verifier, asked last.

    Raises:
        Problem: The settings cannot be used.
    """
    scopes = Scopes(lambda: tool_table(server), settings.auth_scope_prefix)
    verifiers: list[TokenVerifier] = []
    if settings.auth_file or settings.auth_tokens:
        verifiers.append(Tokens(settings.auth_file, settings.auth_tokens))
    if settings.auth_issuer:
        # Cryptography costs memory and time to import.
        from mcp_batteries.transports.http.auth.issuer import ALGORITHMS, Issuer

        audience = settings.auth_audience or resource
        verifiers.append(Issuer(settings.auth_issuer, audience, settings.auth_algorithm or ALGORITHMS))
        lowlevel(server).extensions[_CLIENT_CREDENTIALS] = {}
    server.middleware.append(scopes)
    issuers = [settings.auth_issuer] if settings.auth_issuer else []
    asks: list[str] | None = None
    if verifier is not None:
        verifiers.append(verifier)
        # The scopes of one authorization server mean nothing to another.
        issuers, asks = (issuers, None) if issuers else ([*verifier.issuers], [*verifier.asks])
    title = server.title or server.name
    return Guard(verifiers, scopes, resource=resource, issuers=issuers, title=title, asks=asks)


@runtime_checkable
class Follows(Protocol):
    """A verifier that reports when tokens may have ended early."""

    async def follow(self, changed: Callable[[], Awaitable[None]]) -> None: ...


@dataclass(eq=False)
class _Stream:
    access: AccessToken
    end: anyio.CancelScope


class Guard:
    """Admits requests with a valid token, as its owner.

    Args:
        verifiers: asked in turn about each token.
        resource: this server's URL as clients know it.
        issuers: the issuers of tokens; without any there is no metadata.
        asks: the scopes to request from them, if not this server's own.
    """

    def __init__(
        self,
        verifiers: list[TokenVerifier],
        scopes: Scopes,
        *,
        resource: str,
        issuers: list[str],
        title: str,
        asks: list[str] | None = None,
    ) -> None:
        self._app: ASGIApp = _nothing
        self._verifiers = verifiers
        self._scopes = scopes
        self._resource = resource
        self._issuers = issuers
        self._title = title
        self._asks = asks
        parts = urlsplit(resource)
        path = _WELL_KNOWN + parts.path.rstrip("/")
        self._metadata_paths = {path, _WELL_KNOWN} if issuers else set[str]()
        self._metadata_url = f"{parts.scheme}://{parts.netloc}{path}" if issuers else None
        self._streams: set[_Stream] = set()

    def before(self, app: ASGIApp) -> Guard:
        """Itself, in front of `app`."""
        self._app = AuthContextMiddleware(app)
        return self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] in self._metadata_paths and scope["method"] in ("GET", "HEAD"):
            await self._metadata()(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.getlist("authorization")
        if not given:
            set_reason(scope, "no token")
        try:
            access = await self._who(given)
        except Unavailable as problem:
            set_reason(scope, "issuer")
            access = Response(str(problem), 503, {"retry-after": f"{problem.retry_after or 5:.0f}"})
        if isinstance(access, Response):
            await access(scope, receive, send)
            return
        scope["user"] = AuthenticatedUser(access)
        beside = self._scopes.for_path(scope["path"])
        if beside not in access.scopes if beside else not self._scopes.knows(access.scopes):
            missing = beside or self._scopes.all[0]
            set_reason(scope, f"scope {missing}")
            await self._insufficient(access, missing)(scope, receive, send)
            return
        if scope["method"] == "GET" or headers.get("mcp-method") == "subscriptions/listen":
            await self._stream(access, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def authorize(self, scope: Scope, message: JSONRPCMessage) -> Response | None:
        """The refusal if the caller's scopes do not allow `message`; only an HTTP status makes clients ask for more."""
        user = scope.get("user")
        if not isinstance(user, AuthenticatedUser) or not isinstance(message, JSONRPCRequest | JSONRPCNotification):
            return None
        missing = self._scopes.missing(user.scopes, message.method, message.params)
        if missing is None:
            return None
        set_reason(scope, f"scope {missing}")
        return self._insufficient(user.access_token, missing, message)

    async def follow(self) -> None:
        """Recheck whenever tokens may have ended, until cancelled; return at once if no verifier reports that."""
        async with anyio.create_task_group() as tasks:
            for verifier in self._verifiers:
                if isinstance(verifier, Follows):
                    tasks.start_soon(verifier.follow, self.recheck)

    async def recheck(self) -> None:
        """End the streams whose token changed since they began."""
        for stream in list(self._streams):
            try:
                now = await self._verify(stream.access.token)
            except Unavailable:
                continue  # Nothing is known against it, and its end is set.
            then = stream.access
            if now is None or (now.scopes, now.claims) != (then.scopes, then.claims):
                stream.end.cancel()

    async def _who(self, given: list[str]) -> AccessToken | Response:
        if not given:
            return self._challenge(401, None, "Send a bearer token.", self._wanted)
        scheme, _, token = given[0].partition(" ")
        if len(given) > 1 or scheme.lower() != "bearer" or not token.strip() or len(token) > _MAX_TOKEN:
            return self._challenge(401, "invalid_token", "This is not a bearer token.", self._wanted)
        access = await self._verify(token.strip())
        if access is None:
            said = "The token is unknown, expired, or not for this server."
            return self._challenge(401, "invalid_token", said, self._wanted)
        return access

    @property
    def _wanted(self) -> str:
        return " ".join(self._scopes.all if self._asks is None else self._asks)

    async def _verify(self, token: str) -> AccessToken | None:
        for verifier in self._verifiers:
            access = await verifier.verify_token(token)
            if access is not None and (access.expires_at is None or access.expires_at > time.time()):
                return access
        return None

    async def _stream(self, access: AccessToken, scope: Scope, receive: Receive, send: Send) -> None:
        answer = Answer(send)
        with anyio.CancelScope() as end:
            if access.expires_at is not None:
                end.deadline = anyio.current_time() + access.expires_at - time.time()
            stream = _Stream(access, end)
            self._streams.add(stream)
            try:
                await self._app(scope, receive, answer)
            finally:
                self._streams.discard(stream)
        if end.cancelled_caught:
            _log.info("a stream ended with its token")
            await answer.finish(401)

    def _insufficient(self, access: AccessToken, missing: str, message: JSONRPCMessage | None = None) -> Response:
        # Include the held scopes: a client that requests exactly what it is told would lose them otherwise.
        held = [scope for scope in access.scopes if self._scopes.knows([scope])]
        request_id = message.id if isinstance(message, JSONRPCRequest) else None
        return self._challenge(
            403, "insufficient_scope", f"The scope {missing} is needed.", " ".join([*held, missing]), request_id
        )

    def _challenge(
        self, status: int, error: str | None, words: str, scope: str, request_id: str | int | None = None
    ) -> Response:
        parts = {"error": error, "error_description": words if error else None, "scope": scope}
        parts["resource_metadata"] = self._metadata_url
        said = ", ".join(f'{name}="{_quotable(value)}"' for name, value in parts.items() if value is not None)
        body: Mapping[str, object] = {
            "jsonrpc": "2.0",
            "id": request_id,
            "error": {"code": INVALID_REQUEST, "message": words},
        }
        return Response(
            json.dumps(body),
            status,
            {"www-authenticate": f"Bearer {said}", "cache-control": "no-store"},
            media_type="application/json",
        )

    def _metadata(self) -> Response:
        return JSONResponse(
            {
                "resource": self._resource,
                "authorization_servers": self._issuers,
                "scopes_supported": self._scopes.all if self._asks is None else self._asks,
                "bearer_methods_supported": ["header"],
                "resource_name": self._title,
            },
            headers={"access-control-allow-origin": "*", "cache-control": "max-age=300"},
        )


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    raise RuntimeError("`before` was not called")


def _quotable(value: str) -> str:
    """`value` in a form that RFC 9110, section 5.6.4, allows between quotes."""
    return "".join(char for char in value if " " <= char <= "~" and char not in '"\\')
