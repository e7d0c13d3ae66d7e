"""How every transport handles a request of either era, and what its handler raises."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, cast

from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import ServerRunner, aclose_shielded
from mcp.shared.dispatcher import DispatchContext, Outbound
from mcp.shared.inbound import InboundModernRoute
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data
from mcp.shared.transport_context import TransportContext
from mcp_types.jsonrpc import INTERNAL_ERROR, ErrorData

__all__ = ["Exchanges", "error_data"]

_log = logging.getLogger(__name__)


def error_data(raised: Exception, method: str) -> ErrorData:
    """The error that a handshake-era client gets for a handler's exception; defects go to the log."""
    known = handler_exception_to_error_data(raised)
    if known is None:
        _log.error("the handler of %r raised", method, exc_info=raised)
        return ErrorData(code=INTERNAL_ERROR, message="Internal server error")
    return known


class _Exchange(Connection):
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
        """Ignored: the stack that each connection is created with is made when needed."""

    @property
    def has_stack(self) -> bool:
        return self._stack is not None

    def anew(self) -> _Exchange:
        """A copy for the same client's next request."""
        other = object.__new__(_Exchange)  # an eighth of what `copy` takes
        other.__dict__ |= {**self.__dict__, "state": {}}
        return other


class Exchanges:
    """Answers requests of 2026-07-28, each on a connection of its own.

    Args:
        state: what the server's lifespan gave.
        outbound: where notices without a request go, if anywhere.
    """

    def __init__(self, server: Server[Any], state: Any, outbound: Outbound | None = None) -> None:
        self._server = server
        self._state = state
        self._outbound: dict[str, Any] = {} if outbound is None else {"outbound": outbound}
        self._last: tuple[InboundModernRoute, _Exchange] | None = None

    async def answer(
        self,
        route: InboundModernRoute,
        context: DispatchContext[TransportContext],
        method: str,
        params: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        """The result of `method`, asked for by `route`.

        Raises:
            Exception: whatever the server raises.
        """
        if self._last is None or self._last[0] != route:
            known = _Exchange.from_envelope(
                route.protocol_version, route.client_info, route.client_capabilities, **self._outbound
            )
            self._last = route, cast("_Exchange", known)
        connection = self._last[1].anew()
        try:
            return await ServerRunner(self._server, connection, self._state).on_request(context, method, params)
        finally:
            if connection.has_stack:
                await aclose_shielded(connection)
