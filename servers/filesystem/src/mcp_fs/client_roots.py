"""Older clients' roots: they may narrow what the operator serves, never widen it.

Roots belong to the handshake era and are deprecated since 2026-07-28 (SEP-2577), so nothing here depends on them. With
`--client-roots narrow`, a client that declares them is asked once, and again when it says that they changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import anyio
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import INVALID_PARAMS, CallToolResult, ListRootsRequest, ListRootsResult, TextContent
from pydantic import ValidationError

from mcp_batteries.errors import Refused
from mcp_batteries.sdk import connection_of
from mcp_fs.policy import Policy

__all__ = ["ClientRoots"]

_TIMEOUT_SECONDS = 3.0
_NARROWED_METHODS = ("tools/call", "resources/", "prompts/get", "completion/")


class ClientRoots:
    """Middleware that lets the client's roots narrow the operator's folders for each of its requests.

    A client that declares no roots, sends none, or does not answer within 3 s changes nothing.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._client_states: WeakKeyDictionary[Connection, _ClientState] = WeakKeyDictionary()

    async def __call__(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        if ctx.method == "notifications/roots/list_changed":
            client_state = self._client_state(ctx)
            client_state.roots = None
            client_state.change_count += 1
        if not _narrows(ctx):
            return await call_next(ctx)
        try:
            policy = self._policy.narrow_to_roots(await self._ask_for_roots(ctx))
        except Refused as problem:
            if ctx.method == "tools/call":
                return CallToolResult(content=[TextContent(type="text", text=str(problem))], is_error=True)
            raise MCPError(INVALID_PARAMS, str(problem)) from problem
        with self._policy.use_narrowed(policy):
            return await call_next(ctx)

    async def _ask_for_roots(self, ctx: ServerRequestContext[Any]) -> list[str]:
        client_state = self._client_state(ctx)
        async with client_state.lock:
            if client_state.roots is not None:
                return client_state.roots
            change_count = client_state.change_count
            roots: list[str] = []
            try:
                answer = await ctx.session.send_request(
                    ListRootsRequest(),
                    ListRootsResult,
                    request_read_timeout_seconds=_TIMEOUT_SECONDS,
                    metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
                )
                roots = [str(root.uri) for root in answer.roots]
            except (MCPError, ValidationError):
                pass
            # What changed meanwhile may not be in the answer: the next request asks again.
            if client_state.change_count == change_count:
                client_state.roots = roots
            return roots

    def _client_state(self, ctx: ServerRequestContext[Any]) -> _ClientState:
        return self._client_states.setdefault(connection_of(ctx.session), _ClientState())


def _narrows(ctx: ServerRequestContext[Any]) -> bool:
    """Return whether the client's roots hold for a request, and can be asked for."""
    if not ctx.session.can_send_request or not ctx.method.startswith(_NARROWED_METHODS):
        return False
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and capabilities.roots is not None


@dataclass(eq=False)
class _ClientState:
    """What is known of one client's roots.

    Attributes:
        roots: None until it has told them.
        change_count: how often it has said that they changed.
    """

    roots: list[str] | None = None
    change_count: int = 0
    lock: anyio.Lock = field(default_factory=anyio.Lock)
