"""The SDK's private names we cannot do without, each in one place with its reason.

Everything else in this repository uses the SDK's public surface; `tests/shared/test_sdk.py` fails the day one
of these moves.
"""

from __future__ import annotations

from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer

__all__ = ["lowlevel"]


def lowlevel(server: MCPServer[Any]) -> Server[Any]:
    """The low-level server inside `server`.

    `MCPServer` has no public hook for list paging, `resources/subscribe` or a transport of one's own; the
    SDK's migration guide names this attribute as the way.
    """
    return server._lowlevel_server  # pyright: ignore[reportPrivateUsage]
