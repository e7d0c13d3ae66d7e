"""HTTP callers with their own GitHub tokens: GitHub says whose a token is, and their requests use it."""

from __future__ import annotations

import hashlib
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.context import ServerRequestContext
from starlette.requests import Request

from mcp_batteries.errors import Problem, Unavailable
from mcp_batteries.server.token_verifier import AccessToken
from mcp_github.call_context import SERVER, Caller
from mcp_github.client.api import Api, ApiResponse

__all__ = ["GitHubTokenVerifier", "caller_of"]

_TOKEN = re.compile(r"[A-Za-z0-9_.~+/=-]{20,4096}")
# A token counts for so long after GitHub took it; one that was revoked ends its streams within twice that.
_RECHECK_SECONDS = 300.0
_MAX_VERDICTS = 2000
# How many tokens that GitHub refuses are asked about at once, and how soon another may be. GitHub shuts out who tries
# many, and anybody can make some up.
_MAX_REFUSED = 10
_REFILL_SECONDS = 6.0
_EXPIRY_FORMATS = ("%Y-%m-%d %H:%M:%S %z", "%Y-%m-%d %H:%M:%S UTC")


class GitHubToken(AccessToken):
    """A token that GitHub accepted."""


@dataclass(frozen=True)
class _Verdict:
    """What GitHub said of a token.

    Attributes:
        token: None if GitHub refuses it.
        checked_at: by the monotonic clock.
    """

    token: GitHubToken | None
    checked_at: float


class GitHubTokenVerifier:
    """Asks GitHub whose a token is, and caches the answer for some minutes.

    Args:
        prefix: the prefix of this server's scopes.
        asks: GitHub's scopes that clients should request when they log in.
    """

    def __init__(self, api: Api, prefix: str, asks: Sequence[str]) -> None:
        self._api = api
        self.asks = asks
        self.issuers = [f"{api.policy.api_url.web}/login/oauth"]
        # The operator's switches say what may be done, GitHub whether this caller may.
        self._scopes = [f"{prefix}{effect}" for effect in ("read", "write", "destroy")]
        self._verdicts: OrderedDict[bytes, _Verdict] = OrderedDict()
        self._allowance = float(_MAX_REFUSED)
        self._allowance_at = time.monotonic()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access that `token` gives; None if GitHub does not accept it as a person's.

        Raises:
            Unavailable: GitHub cannot be asked now.
        """
        if not _TOKEN.fullmatch(token):
            return None
        digest = hashlib.sha256(token.encode()).digest()
        verdict = self._verdicts.get(digest)
        if verdict is not None and time.monotonic() - verdict.checked_at < _RECHECK_SECONDS:
            return verdict.token
        if verdict is None or verdict.token is None:
            self._require_allowance()
        try:
            response = await self._api.get_token_owner(token)
        except Unavailable:
            raise
        except Problem:
            self._allowance -= 1
            access = None
        else:
            access = self._access_of(token, response)
        self._remember(digest, access)
        return access

    async def follow(self, changed: Callable[[], Awaitable[None]]) -> None:
        """Recheck every open stream's token from time to time."""
        while True:
            await anyio.sleep(_RECHECK_SECONDS)
            await changed()

    def _access_of(self, token: str, response: ApiResponse) -> GitHubToken:
        """Return the access of the user in GitHub's `response`."""
        user: Any = response.data
        if not isinstance(user, dict) or not isinstance(user.get("id"), int) or not user.get("login"):  # pyright: ignore
            raise Unavailable("GitHub's answer about a token can't be understood.", "Try again in a moment.")
        return GitHubToken(
            token=token,
            client_id=str(user["login"]),  # pyright: ignore[reportUnknownArgumentType]
            scopes=self._scopes,
            expires_at=_parse_expiry(response.headers.get("github-authentication-token-expiration")),
            # A login can be given up and taken by somebody else, an id can't.
            subject=f"{user['login']}:{user['id']}",
            claims={"iss": self._api.policy.api_url.web},
        )

    def _remember(self, digest: bytes, token: GitHubToken | None) -> None:
        self._verdicts[digest] = _Verdict(token, time.monotonic())
        self._verdicts.move_to_end(digest)
        if len(self._verdicts) > _MAX_VERDICTS:
            self._verdicts.popitem(last=False)

    def _require_allowance(self) -> None:
        """Raise `Unavailable` if too many tokens were refused lately to ask about another unknown one."""
        now = time.monotonic()
        self._allowance = min(_MAX_REFUSED, self._allowance + (now - self._allowance_at) / _REFILL_SECONDS)
        self._allowance_at = now
        if self._allowance < 1:
            wait = (1 - self._allowance) * _REFILL_SECONDS
            raise Unavailable("No unknown token can be asked about now.", "Try again in a moment.", retry_after=wait)


def caller_of(ctx: ServerRequestContext[Any]) -> Caller:
    """Return the caller whose GitHub token came with a message; `SERVER` for the operator's own tokens, which open
    nothing on GitHub."""
    request: Any = ctx.request
    if not isinstance(request, Request):
        return SERVER
    user = request.scope.get("user")
    if isinstance(user, AuthenticatedUser) and isinstance(user.access_token, GitHubToken):
        return Caller(user.access_token.token)
    return SERVER


def _parse_expiry(text: str | None) -> int | None:
    """Return seconds since the epoch for GitHub's form `2027-01-31 08:00:00 UTC`, or with an offset."""
    for form in _EXPIRY_FORMATS:
        try:
            time_of_expiry = datetime.strptime(text or "", form)
            if time_of_expiry.tzinfo is None:
                time_of_expiry = time_of_expiry.replace(tzinfo=UTC)
            return int(time_of_expiry.timestamp())
        except (ValueError, OverflowError):
            continue
    return None
