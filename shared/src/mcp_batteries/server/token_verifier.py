"""Verifies tokens with a service: callers send that service's own tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from mcp.server.auth.provider import AccessToken

__all__ = ["AccessToken", "ServiceTokenVerifier"]


class ServiceTokenVerifier(Protocol):
    """Asked about each token that comes over HTTP, after the operator's own tokens and issuer."""

    @property
    def issuers(self) -> Sequence[str]:
        """Authorization servers to which clients without a token are sent."""
        ...

    @property
    def asks(self) -> Sequence[str]:
        """The scopes that such a client should request there, by the service's names."""
        ...

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access that `token` gives; None if it is not valid here.

        Raises:
            Unavailable: the service cannot be asked now.
        """
        ...

    async def follow(self, changed: Callable[[], Awaitable[None]]) -> None:
        """Await `changed` whenever tokens may have ended before their time; until cancelled."""
        ...
