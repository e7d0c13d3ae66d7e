"""The caller whose limits count for a request."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.types import Scope

from mcp_batteries.observability.audit import local_user, token_owner

__all__ = ["caller_of", "network_of"]

# One customer of a provider has at least this, so all its addresses cost it nothing.
_IPV6_PREFIX = 64


def caller_of(scope: Scope) -> str:
    """Return the owner of the token, or if no token is required, the user of a Unix socket or the address."""
    user = scope.get("user")
    if isinstance(user, AuthenticatedUser):
        return f"token {token_owner(user.access_token)}"
    local = local_user(scope)
    if local:
        return local
    client = scope.get("client")
    if not client:
        return "address "
    return f"address {network_of(client[0])}"


@lru_cache(1024)
def network_of(host: str) -> str:
    """Return the address `host` if it is IPv4, its /64 if it is IPv6, otherwise `host` itself."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _IPV6_PREFIX), strict=False))
