"""How every transport handles a request of either era, and what its handler raises."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, NamedTuple, cast

from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import ServerRunner, aclose_shielded
from mcp.shared.dispatcher import DispatchContext, Outbound
from mcp.shared.inbound import InboundModernRoute
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data
from mcp.shared.transport_context import TransportContext
from mcp_types.jsonrpc import INTERNAL_ERROR, ErrorData

__all__ = ["StatelessDispatcher", "error_data"]

_log = logging.getLogger(__name__)


def error_data(raised: Exception, method: str) -> ErrorData:
    """Return the error that a handshake-era client gets for a handler's exception, and log it if it is a defect."""
    data = handler_exception_to_error_data(raised)
    if data is None:
        _log.error("the handler of %r raised", method, exc_info=raised)
        return ErrorData(code=INTERNAL_ERROR, message="Internal server error")
    return data


class _RequestConnection(Connection):
    """The connection of one request, which ends with it.

    A client introduces itself identically in each request: that is parsed once, and what few requests need is made
    lazily.
    """

    _stack: AsyncExitStack | None = None

    @property
    def exit_stack(self) -> AsyncExitStack:
        if self._stack is None:
            self._stack = AsyncExitStack()
        return self._stack

    @exit_stack.setter
    def exit_stack(self, stack: AsyncExitStack) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Ignore the stack that each connection is created with: one is made when it is needed."""

    @property
    def has_stack(self) -> bool:
        return self._stack is not None

    def copy_for_next_request(self) -> _RequestConnection:
        """Return a copy for the same client's next request."""
        other = object.__new__(_RequestConnection)  # an eighth of what `copy` takes
        other.__dict__ |= {**self.__dict__, "state": {}}
        return other


class _ParsedRoute(NamedTuple):
    """What a client said of itself, and the connection that was built from it."""

    route: InboundModernRoute
    connection: _RequestConnection


class StatelessDispatcher:
    """Answers requests of 2026-07-28, each on a connection of its own.

    Args:
        state: what the server's lifespan gave.
        outbound: where notices without a request go, if anywhere.
    """

    def __init__(self, server: Server[Any], state: Any, outbound: Outbound | None = None) -> None:
        self._server = server
        self._state = state
        self._outbound: dict[str, Any] = {}
        if outbound is not None:
            self._outbound = {"outbound": outbound}
        self._latest: _ParsedRoute | None = None

    async def answer(
        self,
        route: InboundModernRoute,
        context: DispatchContext[TransportContext],
        method: str,
        params: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        """Return the result of `method`, requested by `route`.

        Raises:
            Exception: whatever the server raises.
        """
        latest = self._latest
        if latest is None or latest.route != route:
            latest = _ParsedRoute(route, self._connect(route))
            self._latest = latest
        connection = latest.connection.copy_for_next_request()
        try:
            return await ServerRunner(self._server, connection, self._state).on_request(context, method, params)
        finally:
            if connection.has_stack:
                await aclose_shielded(connection)

    def _connect(self, route: InboundModernRoute) -> _RequestConnection:
        """Return a connection to the client that `route` introduces."""
        connection = _RequestConnection.from_envelope(
            route.protocol_version, route.client_info, route.client_capabilities, **self._outbound
        )
        return cast("_RequestConnection", connection)
