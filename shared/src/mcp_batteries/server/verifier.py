"""Whose a token is, where a server knows a service that can say: its callers bring that service's own tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from mcp.server.auth.provider import AccessToken

__all__ = ["AccessToken", "Verifier"]


class Verifier(Protocol):
    """Asked about each token that comes over HTTP, after the operator's own tokens and issuer."""

    @property
    def issuers(self) -> Sequence[str]:
        """Authorization servers that a client without a token is sent to."""
        ...

    @property
    def asks(self) -> Sequence[str]:
        """The scopes that such a client should ask there for, in the service's own words."""
        ...

    async def verify_token(self, token: str) -> AccessToken | None:
        """What `token` stands for; None if it is good for nothing here.

        Raises:
            Unavailable: that can't be found out now.
        """
        ...

    async def follow(self, changed: Callable[[], Awaitable[None]]) -> None:
        """Await `changed` whenever tokens may have ended before their time; until cancelled."""
        ...
