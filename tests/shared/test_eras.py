"""What one request of 2026-07-28 leaves to the next: what its client said of itself, and nothing else."""

from __future__ import annotations

from typing import Any, cast

import pytest
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.dispatcher import DispatchContext, Outbound
from mcp.shared.transport_context import TransportContext
from mcp_types import RequestParams

from mcp_batteries.sdk import connection_of
from mcp_batteries.transports.stdio import protocol_generations

pytestmark = pytest.mark.anyio
_PREFIX = "io.modelcontextprotocol/"
ASKS: dict[str, Any] = {"elicitation": {}}
CLIENTS: list[tuple[str | None, dict[str, Any]]] = [("a", {}), ("a", {}), ("b", {}), ("b", ASKS), (None, {}), ("a", {})]


class Call:
    """Of a request's way back no more than is looked at."""

    transport = TransportContext(kind="stdio", can_send_request=False)
    message_metadata = None
    request_id = 1


async def test_each_request_has_a_connection_of_its_own() -> None:
    seen: list[Connection] = []
    left: list[int] = []

    async def look(ctx: ServerRequestContext[Any], params: RequestParams) -> dict[str, Any]:
        connection = connection_of(ctx.session)
        seen.append(connection)
        assert connection.state == {}, "another request's state"
        connection.state["met"] = True
        connection.exit_stack.callback(left.append, len(seen))
        return {}

    server = Server[Any]("toy")
    server.add_request_handler("toy/look", RequestParams, look)
    calls = cast("DispatchContext[TransportContext]", Call())
    async with protocol_generations.serve_stateless(
        server, cast("Outbound", None), None, server.create_initialization_options()
    ) as (
        ask,
        _,
    ):
        for name, capabilities in CLIENTS:
            envelope: dict[str, Any] = {"protocolVersion": "2026-07-28", "clientCapabilities": capabilities}
            if name is not None:
                envelope["clientInfo"] = {"name": name, "version": "1"}
            await ask(calls, "toy/look", {"_meta": {_PREFIX + key: value for key, value in envelope.items()}})
            client, said = seen[-1].client_params, seen[-1].client_capabilities
            assert (client.client_info.name if client else None) == name
            assert said is not None and (said.elicitation is not None) == bool(capabilities)
            assert seen[-1].initialized.is_set()
            assert left == list(range(1, len(seen) + 1)), "what a request leaves is undone with its end"
    assert len({id(connection) for connection in seen}) == len(seen)
