"""The SDK's private names are still where `mcp_batteries.sdk` finds them."""

import threading
from typing import Any

import pytest
from anyio._core._eventloop import set_current_async_library, threadlocals
from mcp.client import Client
from mcp.server import streamable_http, streamable_http_manager
from mcp.server.connection import Connection
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.mcpserver import Context, MCPServer
from sse_starlette import EventSourceResponse
from watchfiles._rust_notify import RustNotify

from mcp_batteries.sdk import SESSION_TRANSPORT, SSE_RESPONSE, SessionTransport, announce, connection_of, lowlevel


@pytest.mark.anyio
async def test_the_connection_behind_a_session_is_the_same_for_every_request() -> None:
    server: MCPServer[Any] = MCPServer("stock")
    seen: list[Connection] = []

    @server.tool()
    async def look(ctx: Context) -> None:
        seen.append(connection_of(ctx.session))

    async with Client(server, mode="legacy") as client:
        for _ in range(2):
            assert not (await client.call_tool("look")).is_error
    assert isinstance(seen[0], Connection)
    assert seen[0] is seen[1]


def test_announced_notifications_are_the_default_and_may_be_overridden() -> None:
    server: MCPServer[Any] = MCPServer("stock")
    announce(server, NotificationOptions(resources_changed=True))
    low = lowlevel(server)
    assert isinstance(low, Server)

    def announced(*options: NotificationOptions) -> tuple[bool | None, bool | None]:
        capabilities = low.create_initialization_options(*options).capabilities
        assert capabilities.resources
        assert capabilities.tools
        return capabilities.resources.list_changed, capabilities.tools.list_changed

    assert announced() == (True, False)
    assert announced(NotificationOptions(tools_changed=True)) == (False, True)


def test_the_names_that_others_import_are_there() -> None:
    assert getattr(streamable_http, SSE_RESPONSE) is EventSourceResponse
    assert SessionTransport.__base__ is getattr(streamable_http_manager, SESSION_TRANSPORT)
    notify = RustNotify([], False, False, 0, False, False)
    assert callable(notify.watch)
    notify.close()
    assert callable(set_current_async_library)
    assert isinstance(threadlocals, threading.local)
