"""HTTP callers with their own GitHub tokens: GitHub says whose a token is, and their requests use it."""

from __future__ import annotations

import hashlib
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.context import ServerRequestContext
from starlette.requests import Request

from mcp_batteries.errors import Problem, Unavailable
from mcp_batteries.server.verifier import AccessToken
from mcp_github.call_context import NOBODY, Caller
from mcp_github.client.api import Api

__all__ = ["Callers", "sender"]

_TOKEN = re.compile(r"[A-Za-z0-9_.~+/=-]{20,4096}")
_SECONDS = 300.0
"""For which a token counts that GitHub took; one that was revoked ends its streams within twice that."""
_MOST = 2000
_BAD, _REFILL_SECONDS = 10, 6.0
"""Tokens that GitHub refuses: how many are asked about at once, and how soon another may be. GitHub shuts out who tries
many, and anybody can make some up."""


class GitHubToken(AccessToken):
    """A token that GitHub accepted."""


class Callers:
    """Asks GitHub whose a token is, and caches the answer for some minutes.

    Args:
        prefix: the prefix of this server's scopes.
        asks: GitHub's scopes that clients should request when they log in.
    """

    def __init__(self, api: Api, prefix: str, asks: Sequence[str]) -> None:
        self._api, self.asks = api, asks
        self.issuers = [f"{api.policy.api_url.web}/login/oauth"]
        # The operator's switches say what may be done, GitHub whether this caller may.
        self._scopes = [f"{prefix}{effect}" for effect in ("read", "write", "destroy")]
        self._known: OrderedDict[bytes, tuple[GitHubToken | None, float]] = OrderedDict()
        self._allowance, self._allowance_at = float(_BAD), time.monotonic()

    async def verify_token(self, token: str) -> AccessToken | None:
        """The access that `token` gives; None if GitHub does not accept it as a person's.

        Raises:
            Unavailable: GitHub cannot be asked now.
        """
        if not _TOKEN.fullmatch(token):
            return None
        digest = hashlib.sha256(token.encode()).digest()
        known = self._known.get(digest)
        if known is not None and time.monotonic() - known[1] < _SECONDS:
            return known[0]
        if known is None or known[0] is None:
            self._require_allowance()
        try:
            answer = await self._api.whose(token)
        except Unavailable:
            raise
        except Problem:
            self._allowance -= 1
            return self._remember(digest, None)
        user, until = answer.data, answer.headers.get("github-authentication-token-expiration")
        if not isinstance(user, dict) or not isinstance(user.get("id"), int) or not user.get("login"):  # pyright: ignore
            raise Unavailable("GitHub's answer about a token can't be understood.", "Try again in a moment.")
        found = GitHubToken(
            token=token,
            client_id=str(user["login"]),  # pyright: ignore[reportUnknownArgumentType]
            scopes=self._scopes,
            expires_at=_moment(until),
            # A login can be given up and taken by somebody else, an id can't.
            subject=f"{user['login']}:{user['id']}",
            claims={"iss": self._api.policy.api_url.web},
        )
        return self._remember(digest, found)

    async def follow(self, changed: Callable[[], Awaitable[None]]) -> None:
        """Recheck every open stream's token from time to time."""
        while True:
            await anyio.sleep(_SECONDS)
            await changed()

    def _remember(self, digest: bytes, found: GitHubToken | None) -> GitHubToken | None:
        self._known[digest] = (found, time.monotonic())
        self._known.move_to_end(digest)
        if len(self._known) > _MOST:
            self._known.popitem(last=False)
        return found

    def _require_allowance(self) -> None:
        now = time.monotonic()
        self._allowance = min(_BAD, self._allowance + (now - self._allowance_at) / _REFILL_SECONDS)
        self._allowance_at = now
        if self._allowance < 1:
            wait = (1 - self._allowance) * _REFILL_SECONDS
            raise Unavailable("No unknown token can be asked about now.", "Try again in a moment.", retry_after=wait)


def sender(ctx: ServerRequestContext[Any]) -> Caller:
    """The caller whose GitHub token came with a message; `NOBODY` for the operator's own tokens, which open nothing on
    GitHub."""
    request: Any = ctx.request
    user = request.scope.get("user") if isinstance(request, Request) else None
    if isinstance(user, AuthenticatedUser) and isinstance(user.access_token, GitHubToken):
        return Caller(user.access_token.token)
    return NOBODY


def _moment(text: str | None) -> int | None:
    """Seconds since the epoch for GitHub's form `2027-01-31 08:00:00 UTC`, or with an offset."""
    for form in ("%Y-%m-%d %H:%M:%S %z", "%Y-%m-%d %H:%M:%S UTC"):
        try:
            found = datetime.strptime(text or "", form)
            return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())
        except (ValueError, OverflowError):
            continue
    return None
