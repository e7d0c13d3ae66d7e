"""fastmcp's client, and what it is told."""

import os
from typing import Any

import anyio
import fastmcp
import mcp_types
from fastmcp.client.messages import MessageHandler
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError

__all__ = ["ToolError", "Updates", "connect"]


class Updates(MessageHandler):
    """The URIs of update notices, as they come."""

    def __init__(self) -> None:
        self.heard: set[str] = set()
        self._more = anyio.Event()

    async def on_resource_updated(self, message: mcp_types.ResourceUpdatedNotification) -> None:
        self.heard.add(str(message.params.uri))
        self._more.set()

    async def about(self, uri: str) -> None:
        with anyio.fail_after(20):
            while uri not in self.heard:
                self._more = anyio.Event()
                await self._more.wait()


def connect(target: str | list[str], mode: Any, updates: Updates) -> fastmcp.Client[Any]:
    """Return a client of a server at a URL, or that a command starts."""
    if isinstance(target, str):
        return fastmcp.Client(target, mode=mode, message_handler=updates, timeout=30)
    # It otherwise hands its own standard error on, and keeps the process beyond the block.
    stdio = StdioTransport(target[0], target[1:], env=dict(os.environ), keep_alive=False)
    return fastmcp.Client(stdio, mode=mode, message_handler=updates, timeout=30)
