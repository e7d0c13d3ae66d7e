"""Whose limits count for a request."""

from __future__ import annotations

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.types import Scope

from mcp_batteries.observability.audit import identity

__all__ = ["caller_of"]


def caller_of(scope: Scope) -> str:
    """The owner of the token, or the address where no token is asked for."""
    user = scope.get("user")
    if isinstance(user, AuthenticatedUser):
        return f"token {identity(user.access_token)}"
    return f"address {scope['client'][0] if scope.get('client') else ''}"
