"""One JSON line per call, for an operator who must know who did what and when.

It holds names and sizes only: never an argument's value, a result, a secret or a name that a client made up. Off unless
a file is named.
"""

from __future__ import annotations

import errno
import ipaddress
import json
import logging
import os
import time
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, cast

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from starlette.requests import Request
from starlette.types import Scope

from mcp_batteries.errors import Unavailable, quote, reason
from mcp_batteries.observability.logs import RateLimitFilter
from mcp_batteries.redaction.text import redact_json
from mcp_batteries.sdk import connection_of

__all__ = ["Audit", "caller", "caller_in", "claim", "identity", "local_user", "whose"]

_AUDITED = frozenset({"tools/call", "resources/read", "resources/subscribe", "subscriptions/listen", "prompts/get"})
_UNKNOWN = "unknown"
_MAX_CLIENT = 100

_log = logging.getLogger(__name__)
_log.addFilter(RateLimitFilter())


class Audit:
    """Middleware that appends a line per audited request to `path`, created with mode 0600.

    Each line: `time` (UTC, RFC 3339), over HTTP the caller's `identity` (where tokens are asked for) and `address`,
    `client`, `method`, `name` (tool or prompt), `arguments` (their names), `outcome` ("ok", "error" for a result
    with isError, or the JSON-RPC code), `ms`, `bytes_in`, `bytes_out` (text and blob characters). Names that are not
    this server's are "unknown". Requests that HTTP refused have the outcome "refused" and the details from `refusals`.

    Args:
        arguments: of the tool or prompt that a method and a name mean; None if they mean none.

    Raises:
        Unavailable: The file can't be written.
    """

    def __init__(self, path: str, arguments: Callable[[str, str], Collection[str] | None]) -> None:
        self._path = os.path.abspath(path)
        self._arguments = arguments
        self._file: int | None = None
        self._torn = False
        """Whether the last line is not whole."""
        try:
            os.close(self._open())
        except OSError as problem:
            raise Unavailable(
                f"The audit file {quote(path)} can't be written: {reason(problem)}.",
                "Name a file in a folder of yours.",
            ) from None

    async def __aenter__(self) -> Self:
        self._file = self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    async def __call__(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        if ctx.method not in _AUDITED:
            return await call_next(ctx)
        started = time.perf_counter()
        outcome: str | int = "cancelled"
        result: HandlerResult = None
        try:
            result = await call_next(ctx)
            outcome = "error" if isinstance(result, dict) and result.get("isError") else "ok"
            return result
        except MCPError as error:
            outcome = error.error.code
            raise
        except Exception:
            outcome = "failed"
            raise
        finally:
            self._write(ctx, outcome, (time.perf_counter() - started) * 1000, result)

    def _write(self, ctx: ServerRequestContext[Any], outcome: str | int, ms: float, result: HandlerResult) -> None:
        if self._file is None:
            return
        params = ctx.params or {}
        client = ctx.session.client_params
        name = params.get("name")
        arguments = params.get("arguments")
        known = self._arguments(ctx.method, name) if isinstance(name, str) else None
        given = list(cast("Mapping[str, Any]", arguments)) if isinstance(arguments, Mapping) else []
        self._append(
            {
                **caller(ctx),
                "client": client.client_info.name[:_MAX_CLIENT] if client else None,
                "method": ctx.method,
                "name": name if name is None or known is not None else _UNKNOWN,
                "arguments": sorted({key if key in (known or ()) else _UNKNOWN for key in given}),
                "outcome": outcome,
                "ms": round(ms, 1),
                "bytes_in": _size(arguments),
                "bytes_out": _size(result),
            }
        )

    def refused(self, line: Mapping[str, Any]) -> None:
        """Append a refused request that `refusals` reports."""
        self._append({**line, "outcome": "refused"})

    def _append(self, line: Mapping[str, Any]) -> None:
        if self._file is None:
            return
        # The name of a client, and of a caller, is what somebody else wrote.
        told = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **redact_json(line)}
        data = b"\n" * self._torn + json.dumps(told, default=str).encode() + b"\n"
        try:
            self._follow_name(self._file)
            # One write per line on an O_APPEND descriptor: lines of several processes do not mix.
            self._torn = os.write(self._file, data) < len(data)
            if self._torn:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as problem:
            # The call has had its effect, and its caller must get the result.
            _log.error("a line is missing in the audit file: %s", reason(problem))

    def _follow_name(self, file: int) -> None:
        """Continue in a new file if this one was moved away, as log rotation does."""
        try:
            if os.path.samestat(os.stat(self._path), os.fstat(file)):
                return
        except FileNotFoundError:
            pass
        self._file = self._open()
        os.close(file)

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        return os.open(self._path, flags, 0o600)


def caller(ctx: ServerRequestContext[Any]) -> dict[str, str]:
    """Who called over HTTP, `identity` by token and `address`; empty on stdio, where it is always the same."""
    request: Any = ctx.request
    return caller_in(request.scope) if isinstance(request, Request) else {}


def caller_in(scope: Scope) -> dict[str, str]:
    """The same for a request that may not have become a message."""
    user = scope.get("user")
    client = scope.get("client")
    local = local_user(scope)
    named = identity(user.access_token) if isinstance(user, AuthenticatedUser) else local
    address = local if local != named else None
    if client and not local:
        address = _address(client[0])
    return {key: value for key, value in (("identity", named), ("address", address)) if value}


def local_user(scope: Scope) -> str | None:
    """The user at the other end of a Unix socket, such as `uid 1000`, as the system reports it."""
    server = scope.get("server")
    client = scope.get("client")
    return str(client[0]) if client and server and server[1] is None else None


def identity(token: AccessToken) -> str:
    """The name of `token`'s owner in logs and limits: its subject, at its issuer if it has one."""
    issuer = (token.claims or {}).get("iss")
    return f"{token.subject}@{issuer}" if issuer else token.subject or token.client_id


def claim(name: str) -> str | None:
    """The claim `name` in the token of the current call; None without a token, or if it is not text."""
    token = get_access_token()
    found: Any = None if token is None else (token.claims or {}).get(name)
    return found if isinstance(found, str) and found else None


def _address(host: str) -> str:
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return "unknown"  # The word of a proxy, which may pass on what its client said.


def whose(ctx: ServerRequestContext[Any]) -> str:
    """Whose memory a call belongs to: `token` and its owner, or the user at the other end of a Unix socket, in all
    revisions and sessions; else an older client's `session` and its id; else empty, for all that can't be told apart.
    """
    token = get_access_token()
    if token is not None:
        return f"token {identity(token)}"
    request: Any = ctx.request
    if isinstance(request, Request) and (local := local_user(request.scope)):
        return local
    session = connection_of(ctx.session).session_id
    return f"session {session}" if session else ""


def _size(value: Any) -> int:
    match value:
        case str():
            return len(value)
        case Mapping():
            return sum(_size(item) for item in cast("Mapping[str, Any]", value).values())
        case list() | tuple():
            return sum(_size(item) for item in cast("list[Any]", value))
        case _:
            return 0
