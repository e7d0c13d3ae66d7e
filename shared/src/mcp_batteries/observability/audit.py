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
from starlette.requests import Request
from starlette.types import Scope

from mcp_batteries.errors import Unavailable, describe_os_error, quote
from mcp_batteries.observability.logs import RateLimitFilter
from mcp_batteries.observability.outcomes import outcome_of
from mcp_batteries.redaction.text import redact_json
from mcp_batteries.sdk import connection_of

__all__ = [
    "REFUSED_STATUS",
    "Audit",
    "caller_key",
    "caller_of_scope",
    "describe_caller",
    "has_token",
    "local_user",
    "token_claim",
    "token_owner",
]

# The key, in the state of a request, of the status that says why it was refused where the response itself has 200.
REFUSED_STATUS = "refused_status"

_AUDITED = frozenset({"tools/call", "resources/read", "resources/subscribe", "subscriptions/listen", "prompts/get"})
_UNKNOWN = "unknown"
_MAX_CLIENT = 100

_log = logging.getLogger(__name__)
_log.addFilter(RateLimitFilter())


class Audit:
    """Middleware that appends a line per audited request to a file, created with mode 0600.

    Each line: `time` (UTC, RFC 3339), over HTTP the caller's `identity` (where tokens are asked for) and `address`,
    `client`, `method`, `name` (tool or prompt), `arguments` (their names), `outcome` ("ok", "error" for a result with
    isError, or the JSON-RPC code), `ms`, `bytes_in`, `bytes_out` (text and blob characters). Names that are not this
    server's are "unknown". Requests that HTTP refused have the outcome "refused" and the details from `refusals`.

    Args:
        path: of the file.
        arguments: of the tool or prompt that a method and a name mean; None if they mean none.

    Raises:
        Unavailable: The file can't be written.
    """

    def __init__(self, path: str, arguments: Callable[[str, str], Collection[str] | None]) -> None:
        self._path = os.path.abspath(path)
        self._arguments = arguments
        self._file: int | None = None
        # Whether the last line is incomplete.
        self._is_torn = False
        try:
            os.close(self._open())
        except OSError as problem:
            raise Unavailable(
                f"The audit file {quote(path)} can't be written: {describe_os_error(problem)}.",
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
            outcome = "ok"
            if isinstance(result, dict) and result.get("isError"):
                outcome = "error"
            return result
        except Exception as error:
            outcome = outcome_of(error)
            raise
        finally:
            self._write(ctx, outcome, (time.perf_counter() - started) * 1000, result)

    def _write(self, ctx: ServerRequestContext[Any], outcome: str | int, ms: float, result: HandlerResult) -> None:
        if self._file is None:
            return
        params = ctx.params or {}
        name = params.get("name")
        arguments = params.get("arguments")
        client: str | None = None
        if ctx.session.client_params:
            client = ctx.session.client_params.client_info.name[:_MAX_CLIENT]
        parameters: Collection[str] | None = None
        if isinstance(name, str):
            parameters = self._arguments(ctx.method, name)
        if name is not None and parameters is None:
            name = _UNKNOWN
        self._append(
            {
                **describe_caller(ctx),
                "client": client,
                "method": ctx.method,
                "name": name,
                "arguments": _argument_names(arguments, parameters or ()),
                "outcome": outcome,
                "ms": round(ms, 1),
                "bytes_in": _size(arguments),
                "bytes_out": _size(result),
            }
        )

    def record_refusal(self, line: Mapping[str, Any]) -> None:
        """Append a refused request that `refusals` reports."""
        self._append({**line, "outcome": "refused"})

    def _append(self, line: Mapping[str, Any]) -> None:
        if self._file is None:
            return
        # Clients and callers chose their own names.
        members = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **redact_json(line)}
        data = json.dumps(members, default=str).encode() + b"\n"
        if self._is_torn:
            data = b"\n" + data
        try:
            self._reopen_if_rotated(self._file)
            # One write per line on an O_APPEND descriptor: lines of several processes do not mix.
            self._is_torn = os.write(self._file, data) < len(data)
            if self._is_torn:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as problem:
            # The call has had its effect, and its caller must get the result.
            _log.error("a line is missing in the audit file: %s", describe_os_error(problem))

    def _reopen_if_rotated(self, file: int) -> None:
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


def _argument_names(arguments: object, parameters: Collection[str]) -> list[str]:
    """Return the names of `arguments`; those that are no parameters are one "unknown"."""
    if not isinstance(arguments, Mapping):
        return []
    names: set[str] = set()
    for name in cast("Mapping[str, Any]", arguments):
        if name in parameters:
            names.add(name)
        else:
            names.add(_UNKNOWN)
    return sorted(names)


def describe_caller(ctx: ServerRequestContext[Any]) -> dict[str, str]:
    """Return who called over HTTP, `identity` by token and `address`; empty on stdio, where it is always the same."""
    request: Any = ctx.request
    if not isinstance(request, Request):
        return {}
    return caller_of_scope(request.scope)


def caller_of_scope(scope: Scope) -> dict[str, str]:
    """Return the same for a request that may not have become a message."""
    user = scope.get("user")
    client = scope.get("client")
    local = local_user(scope)
    names: dict[str, str] = {}
    if isinstance(user, AuthenticatedUser):
        owner = token_owner(user.access_token)
        if owner:
            names["identity"] = owner
        if local and local != owner:
            names["address"] = local
    elif local:
        names["identity"] = local
    if client and not local:
        names["address"] = _address(client[0])
    return names


def local_user(scope: Scope) -> str | None:
    """Return the user at the other end of a Unix socket, such as `uid 1000`, as the system reports it."""
    server = scope.get("server")
    client = scope.get("client")
    if not client or not server:
        return None
    _, port = server
    if port is not None:
        return None
    return str(client[0])


def token_owner(token: AccessToken) -> str:
    """Return the name of `token`'s owner in logs and limits: its subject, at its issuer if it has one."""
    issuer = (token.claims or {}).get("iss")
    if issuer:
        return f"{token.subject}@{issuer}"
    return token.subject or token.client_id


def has_token() -> bool:
    """Return whether the current call came with a token, whose scopes may allow less than the server does."""
    return get_access_token() is not None


def token_claim(name: str) -> str | None:
    """Return the claim `name` in the token of the current call; None without a token, or if it is not text."""
    token = get_access_token()
    if token is None:
        return None
    value: Any = (token.claims or {}).get(name)
    if not isinstance(value, str) or not value:
        return None
    return value


def _address(host: str) -> str:
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return "unknown"  # A proxy wrote it, which may pass on the words of its client.


def caller_key(ctx: ServerRequestContext[Any]) -> str:
    """Return the key of the memory that a call uses.

    It is `token` and its owner, or the user at the other end of a Unix socket, in all revisions and sessions; else an
    older client's `session` and its id; else empty, for all that can't be distinguished.
    """
    token = get_access_token()
    if token is not None:
        return f"token {token_owner(token)}"
    request: Any = ctx.request
    if isinstance(request, Request):
        local = local_user(request.scope)
        if local:
            return local
    session = connection_of(ctx.session).session_id
    if not session:
        return ""
    return f"session {session}"


def _size(value: Any) -> int:
    """Return the number of characters in the texts of `value`."""
    match value:
        case str():
            return len(value)
        case Mapping():
            return sum(_size(item) for item in cast("Mapping[str, Any]", value).values())
        case list() | tuple():
            return sum(_size(item) for item in cast("list[Any]", value))
        case _:
            return 0
