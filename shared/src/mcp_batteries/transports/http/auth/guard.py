"""Requires a bearer token on every request, challenges with the missing scope, and ends streams with their token.

The rules are those of the specification's "Authorization" and of RFC 6750 (bearer tokens) and RFC 9728 (metadata of
protected resources). The SDK's own check names no scopes, and treats a missing token as a wrong one.
"""

from __future__ import annotations

import json
import logging
import re
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
from mcp_types.jsonrpc import INVALID_REQUEST, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, RequestId
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_batteries.errors import Unavailable
from mcp_batteries.sdk import lowlevel, tool_table
from mcp_batteries.server.token_verifier import ServiceTokenVerifier
from mcp_batteries.settings import Settings
from mcp_batteries.transports.http.auth.scopes import ResolveTool, Scopes, resolve_none
from mcp_batteries.transports.http.auth.tokens import Tokens
from mcp_batteries.transports.http.refusals import set_reason
from mcp_batteries.transports.http.requests.in_flight import InterruptibleSend

__all__ = ["Guard", "build_guard"]

_WELL_KNOWN = "/.well-known/oauth-protected-resource"
# RFC 6750, section 2.1. Clients that add the scheme to what has it already write it twice, or quote the token.
_BEARER = re.compile(r"bearer +([\w.~+/-]+=*) *", re.ASCII | re.IGNORECASE)
_MAX_TOKEN = 16 * 1024
# A program may get its token from the issuer for itself (SEP-1046). All of that is between the two of them.
_CLIENT_CREDENTIALS = "io.modelcontextprotocol/oauth-client-credentials"

_log = logging.getLogger(__name__)


def build_guard(
    server: MCPServer[Any],
    settings: Settings,
    resource: str,
    verifier: ServiceTokenVerifier | None = None,
    resolve_tool: ResolveTool = resolve_none,
) -> Guard:
    """Build the guard for `settings`; `server` keeps the same rules inside.

    Args:
        resource: this server's URL as clients know it.
        verifier: the server's own verifier, asked last.
        resolve_tool: as for `Scopes`.

    Raises:
        Problem: The settings cannot be used.
    """
    scopes = Scopes(lambda: tool_table(server), settings.auth_scope_prefix, resolve_tool)
    verifiers: list[TokenVerifier] = []
    issuers: list[str] = []
    requested_scopes: list[str] | None = None
    if settings.auth_file or settings.auth_tokens:
        verifiers.append(Tokens(settings.auth_file, settings.auth_tokens, settings.auth_scope_prefix))
    if settings.auth_issuer:
        # Cryptography costs memory and time to import.
        from mcp_batteries.transports.http.auth.issuer import ALGORITHMS, Issuer

        audience = settings.auth_audience or resource
        verifiers.append(Issuer(settings.auth_issuer, audience, settings.auth_algorithm or ALGORITHMS))
        issuers.append(settings.auth_issuer)
        lowlevel(server).extensions[_CLIENT_CREDENTIALS] = {}
    server.middleware.append(scopes)
    if verifier is not None:
        verifiers.append(verifier)
        # The scopes of one authorization server mean nothing to another.
        if not issuers:
            issuers = [*verifier.issuers]
            requested_scopes = [*verifier.asks]
    title = server.title or server.name
    return Guard(verifiers, scopes, resource=resource, issuers=issuers, title=title, requested_scopes=requested_scopes)


@runtime_checkable
class Follows(Protocol):
    """A verifier that reports when tokens may have ended early."""

    async def follow(self, changed: Callable[[], Awaitable[None]]) -> None: ...


@dataclass(eq=False)
class _Stream:
    """An open stream, the token that it was opened with, and what ends it."""

    access: AccessToken
    end: anyio.CancelScope


class Guard:
    """Admits requests with a valid token, as its owner.

    Args:
        verifiers: asked in turn about each token.
        resource: this server's URL as clients know it.
        issuers: the issuers of tokens; without any there is no metadata.
        title: the server's name for people.
        requested_scopes: the scopes that clients are to request, if not this server's own.
    """

    def __init__(
        self,
        verifiers: list[TokenVerifier],
        scopes: Scopes,
        *,
        resource: str,
        issuers: list[str],
        title: str,
        requested_scopes: list[str] | None = None,
    ) -> None:
        self._app: ASGIApp = _no_app
        self._verifiers = verifiers
        self._scopes = scopes
        self._resource = resource
        self._issuers = issuers
        self._title = title
        self._own_scopes = requested_scopes
        self._metadata_paths: set[str] = set()
        self._metadata_url: str | None = None
        if issuers:
            parts = urlsplit(resource)
            path = _WELL_KNOWN + parts.path.rstrip("/")
            self._metadata_paths = {path, _WELL_KNOWN}
            self._metadata_url = f"{parts.scheme}://{parts.netloc}{path}"
        self._streams: set[_Stream] = set()

    def protect(self, app: ASGIApp) -> Guard:
        """Stand in front of `app`, and return itself."""
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
        access = await self._authenticate(scope, headers.getlist("authorization"))
        if isinstance(access, Response):
            await access(scope, receive, send)
            return
        scope["user"] = AuthenticatedUser(access)
        missing = self._missing_scope(scope["path"], access)
        if missing is not None:
            set_reason(scope, f"scope {missing}")
            await self._refuse_scope(access, missing)(scope, receive, send)
            return
        if scope["method"] == "GET" or headers.get("mcp-method") == "subscriptions/listen":
            await self._serve_stream(access, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _missing_scope(self, path: str, access: AccessToken) -> str | None:
        """Return the scope without which `access` can't use `path` at all; None if it has enough."""
        path_scope = self._scopes.for_path(path)
        if path_scope is not None:
            return None if path_scope in access.scopes else path_scope
        return None if self._scopes.knows(access.scopes) else self._scopes.all[0]

    def authorize(self, scope: Scope, message: JSONRPCMessage) -> Response | None:
        """Return the refusal if the caller's scopes do not allow `message`.

        Only an HTTP status makes clients ask for more.
        """
        user = scope.get("user")
        if not isinstance(user, AuthenticatedUser) or not isinstance(message, JSONRPCRequest | JSONRPCNotification):
            return None
        missing = self._scopes.missing(user.scopes, message.method, message.params)
        if missing is None:
            return None
        set_reason(scope, f"scope {missing}")
        return self._refuse_scope(user.access_token, missing, message)

    async def follow(self) -> None:
        """Recheck whenever tokens may have ended, until cancelled; return at once if no verifier reports that."""
        async with anyio.create_task_group() as tasks:
            for verifier in self._verifiers:
                if isinstance(verifier, Follows):
                    tasks.start_soon(verifier.follow, self.recheck)

    async def recheck(self) -> None:
        """End the streams whose token changed since they began."""
        for stream in list(self._streams):
            before = stream.access
            try:
                now = await self._verify(before.token)
            except Unavailable:
                continue  # Nothing is known against it, and its end is set.
            if now is None or now.scopes != before.scopes or now.claims != before.claims:
                stream.end.cancel()

    async def _authenticate(self, scope: Scope, values: list[str]) -> AccessToken | Response:
        """Return the access that the Authorization headers `values` give, or the answer that refuses the request."""
        if not values:
            set_reason(scope, "no token")
            return self._challenge(401, None, "Send a bearer token.", self._required_scopes)
        bearer = _BEARER.fullmatch(values[0])
        if len(values) > 1 or bearer is None or len(bearer[1]) > _MAX_TOKEN:
            message = "Send `Authorization: Bearer TOKEN`: the word once, no quotes, every variable filled in."
            return self._challenge(401, "invalid_token", message, self._required_scopes)
        try:
            access = await self._verify(bearer[1])
        except Unavailable as problem:
            set_reason(scope, "issuer")
            return Response(str(problem), 503, {"retry-after": f"{problem.retry_after or 5:.0f}"})
        if access is None:
            message = "The token is unknown, expired, or not for this server."
            return self._challenge(401, "invalid_token", message, self._required_scopes)
        return access

    @property
    def _all_scopes(self) -> list[str]:
        if self._own_scopes is not None:
            return self._own_scopes
        return self._scopes.all

    @property
    def _required_scopes(self) -> str:
        return " ".join(self._all_scopes)

    async def _verify(self, token: str) -> AccessToken | None:
        """Return the access that `token` gives; None if no verifier knows it."""
        for verifier in self._verifiers:
            access = await verifier.verify_token(token)
            if access is not None and (access.expires_at is None or access.expires_at > time.time()):
                return access
        return None

    async def _serve_stream(self, access: AccessToken, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a stream, and end it with its token."""
        answer = InterruptibleSend(send)
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

    def _refuse_scope(self, access: AccessToken, missing: str, message: JSONRPCMessage | None = None) -> Response:
        """Return the answer to a caller who lacks the scope `missing`."""
        # Include the scopes it has: a client that requests exactly what it is told would lose them otherwise.
        scopes = [scope for scope in access.scopes if self._scopes.knows([scope])]
        scopes.append(missing)
        request_id: RequestId | None = None
        if isinstance(message, JSONRPCRequest):
            request_id = message.id
        return self._challenge(
            403, "insufficient_scope", f"The scope {missing} is needed.", " ".join(scopes), request_id
        )

    def _challenge(
        self, status: int, error: str | None, message: str, scope: str, request_id: RequestId | None = None
    ) -> Response:
        """Return a refusal that tells the client which token to get (RFC 6750, section 3)."""
        parameters: dict[str, str] = {}
        if error is not None:
            parameters["error"] = error
            parameters["error_description"] = message
        parameters["scope"] = scope
        if self._metadata_url is not None:
            parameters["resource_metadata"] = self._metadata_url
        challenge = ", ".join(f'{name}="{_quotable(value)}"' for name, value in parameters.items())
        body: Mapping[str, object] = {
            "jsonrpc": "2.0",
            "id": request_id,
            "error": {"code": INVALID_REQUEST, "message": message},
        }
        return Response(
            json.dumps(body),
            status,
            {"www-authenticate": f"Bearer {challenge}", "cache-control": "no-store"},
            media_type="application/json",
        )

    def _metadata(self) -> Response:
        return JSONResponse(
            {
                "resource": self._resource,
                "authorization_servers": self._issuers,
                "scopes_supported": self._all_scopes,
                "bearer_methods_supported": ["header"],
                "resource_name": self._title,
            },
            headers={"access-control-allow-origin": "*", "cache-control": "max-age=300"},
        )


async def _no_app(scope: Scope, receive: Receive, send: Send) -> None:
    raise RuntimeError("`before` was not called")


def _quotable(value: str) -> str:
    """Return `value` in a form that RFC 9110, section 5.6.4, allows between quotes."""
    return "".join(char for char in value if " " <= char <= "~" and char not in '"\\')
