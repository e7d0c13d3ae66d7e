"""The door for one server, as its settings describe it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from mcp.server.auth.provider import TokenVerifier
from mcp.server.mcpserver import MCPServer

from mcp_batteries.sdk import tool_table
from mcp_batteries.transports.http.auth import Access
from mcp_batteries.transports.http.auth.guard import Guard
from mcp_batteries.transports.http.auth.scopes import Scopes
from mcp_batteries.transports.http.auth.tokens import Tokens

__all__ = ["door"]

Follow = Callable[[], Coroutine[Any, Any, None]]


def door(server: MCPServer[Any], access: Access, resource: str) -> tuple[Guard, Follow | None]:
    """The guard, and what to run beside it so that it knows of changes; `server` keeps the same rules inside.

    Args:
        resource: this server's URL as clients know it.

    Raises:
        Problem: `access` cannot be used.
    """
    scopes = Scopes(lambda: tool_table(server), access.scope_prefix)
    tokens = Tokens(access.file, access.lines) if access.file or access.lines else None
    verifiers: list[TokenVerifier] = [tokens] if tokens else []
    if access.issuer:
        # Cryptography costs memory and time to import.
        from mcp_batteries.transports.http.auth.issuer import ALGORITHMS, Issuer

        verifiers.append(Issuer(access.issuer, access.audience or resource, access.algorithms or ALGORITHMS))
    guard = Guard(
        verifiers,
        scopes,
        resource=resource,
        issuers=[access.issuer] if access.issuer else [],
        title=server.title or server.name,
    )
    server.middleware.append(scopes)

    async def follow() -> None:
        if tokens is not None:
            await tokens.follow(guard.recheck)

    return guard, follow if access.file else None
