"""The caller whose limits count for a request."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.types import Scope

from mcp_batteries.observability.audit import identity, local_user

__all__ = ["caller_of", "network_of"]

_IPV6_PREFIX = 64
"""What one customer of a provider has at least: all its addresses cost it nothing."""


def caller_of(scope: Scope) -> str:
    """The owner of the token; if no token is required, the user at the other end of a Unix socket, or the address."""
    user = scope.get("user")
    if isinstance(user, AuthenticatedUser):
        return f"token {identity(user.access_token)}"
    return local_user(scope) or f"address {network_of(scope['client'][0]) if scope.get('client') else ''}"


@lru_cache(1024)
def network_of(host: str) -> str:
    """The address `host` if it is IPv4, its /64 if it is IPv6, otherwise `host` itself."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _IPV6_PREFIX), strict=False))
