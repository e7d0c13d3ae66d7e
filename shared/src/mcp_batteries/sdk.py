"""The SDK's private names we cannot do without, each in one place with its reason.

Everything else in this repository uses the SDK's public surface; `tests/shared/test_sdk.py` fails the day one
of these moves.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver import server as _module

__all__ = ["logging_untouched", "lowlevel"]


def lowlevel(server: MCPServer[Any]) -> Server[Any]:
    """The low-level server inside `server`.

    `MCPServer` has no public hook for list paging, `resources/subscribe` or a transport of one's own; the
    SDK's migration guide names this attribute as the way.
    """
    return server._lowlevel_server  # pyright: ignore[reportPrivateUsage]


def _nothing(level: str) -> None:
    pass


@contextmanager
def logging_untouched() -> Generator[None]:
    """Construct an `MCPServer` inside this block without its logging set-up.

    The constructor imports rich (50 ms of every start) for a root handler that we replace anyway.
    """
    module: Any = _module
    configure = module.configure_logging
    module.configure_logging = _nothing
    try:
        yield
    finally:
        module.configure_logging = configure
