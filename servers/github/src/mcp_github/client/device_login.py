"""Logs a person in with a code that they enter on a page of GitHub (OAuth device authorization, RFC 8628).

The token stays in this process's memory: docs/decisions say why.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

import anyio
import httpx2
from pydantic_core import from_json

from mcp_batteries.errors import Refused, Unavailable, quote
from mcp_batteries.remote.reach import why_unreached
from mcp_github.policy import ApiUrl

__all__ = ["Code", "DeviceLogin", "LoginSettings"]

logger = logging.getLogger(__name__)

_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_LEAST_INTERVAL, _SLOWER = 1.0, 5.0
"""Seconds: between two questions at least, and how much longer after `slow_down` (RFC 8628, section 3.5)."""
_EARLY = 60.0
"""Seconds before its end from which on a token is renewed."""
_MAX_BYTES = 100_000


class LoginSettings(Protocol):
    """What logging in needs to be told."""

    @property
    def login_client_id(self) -> str | None: ...
    @property
    def login_scope(self) -> tuple[str, ...]: ...
    @property
    def timeout(self) -> int: ...


class Opens(Protocol):
    """What gives a client for requests that carry no token of their own."""

    def opened(self) -> httpx2.AsyncClient: ...


@dataclass
class Code:
    """What a person has to enter, and where.

    Attributes:
        device: what tells GitHub which login is asked about; a secret.
        ends, next: when it counts no longer, and when GitHub may be asked again; of the monotonic clock.
    """

    user: str
    url: str
    device: str = field(repr=False)
    interval: float
    ends: float
    next: float

    @property
    def words(self) -> str:
        minutes = max(1, round((self.ends - time.monotonic()) / 60))
        return f"Open {self.url} and enter the code {self.user} there within {minutes} min"


@dataclass
class Held:
    """A token that somebody logged in for; signs requests as PyGithub's tokens do."""

    token: str = field(repr=False)
    ends: float = float("inf")
    refresh: str = field(default="", repr=False)
    token_type: str = "Bearer"


class DeviceLogin:
    """The one login of a server that has no token. Its `repr` tells nothing."""

    def __init__(self, settings: LoginSettings, api_url: ApiUrl, connections: Opens) -> None:
        self._settings, self._web, self._connections = settings, api_url.web, connections
        self._held: Held | None = None
        self._code: Code | None = None
        self._turn = anyio.Lock()

    @property
    def held(self) -> Held | None:
        """The token, if somebody has logged in and it has not ended."""
        return self._held if self._held is not None and self._held.ends > time.monotonic() else None

    def forget(self, token: str) -> None:
        """Give up a token that GitHub takes no longer."""
        if self._held is not None and self._held.token == token:
            self._held = None

    async def current(self) -> Held:
        """What signs the next request.

        Raises:
            Refused: nobody has logged in yet; the text says where to enter which code.
            Unavailable: GitHub gives no code now.
        """
        async with self._turn:
            await self._renew()
            if self._held is None:
                if self._code is not None:
                    await self._ask(self._code)
                if self._held is None:
                    code = await self._begun()
                    raise Refused("Nobody is logged in to GitHub yet.", f"{code.words}; then call again.")
            return self._held

    async def code(self) -> Code | None:
        """The code to enter now; None if somebody is logged in.

        Raises:
            Unavailable: GitHub gives no code now.
        """
        async with self._turn:
            await self._renew()
            return None if self._held is not None else await self._begun()

    async def entered(self, code: Code) -> None:
        """Return once `code` was entered.

        Raises:
            Refused: the person said no, or its time is over.
        """
        while self.held is None:
            async with self._turn:
                if self._code is not code and self._held is None:
                    raise Refused("The login was not finished.", "Call again for another code.")
                if self._held is None:
                    await self._ask(code)

    async def _begun(self) -> Code:
        if self._code is None or self._code.ends <= time.monotonic():
            asked = {"client_id": self._settings.login_client_id or "", "scope": " ".join(self._settings.login_scope)}
            found = await self._post("/login/device/code", asked)
            url, now = str(found.get("verification_uri")), time.monotonic()
            wants = urlsplit(self._web)
            if found.get("error") or (urlsplit(url).scheme, urlsplit(url).netloc) != (wants.scheme, wants.netloc):
                raise self._broken(found)
            interval = max(_LEAST_INTERVAL, _number(found.get("interval"), 5))
            user, device = str(found.get("user_code")), str(found.get("device_code"))
            if not user.isascii() or not user.replace("-", "").isalnum() or len(user) > 20:
                raise self._broken(found)
            self._code = Code(user, url, device, interval, now + _number(found.get("expires_in"), 900), now + interval)
        return self._code

    async def _ask(self, code: Code) -> None:
        """Ask once, not before GitHub may be asked, whether `code` was entered; afterwards it may be gone."""
        if code.ends <= time.monotonic():
            self._code = None
            return
        await anyio.sleep(max(0.0, code.next - time.monotonic()))
        asked = {"client_id": self._settings.login_client_id or "", "device_code": code.device, "grant_type": _GRANT}
        found = await self._post("/login/oauth/access_token", asked)
        code.next = time.monotonic() + code.interval
        match found.get("error"):
            case "authorization_pending":
                pass
            case "slow_down":
                code.interval = max(code.interval + _SLOWER, _number(found.get("interval"), 0))
                code.next = time.monotonic() + code.interval
            case "access_denied":
                self._code = None
                raise Refused("The user refused the login on GitHub.", "Ask them before you try again.")
            case "expired_token" | "token_expired":
                self._code = None
            case _:
                self._code = None
                self._hold(found)

    async def _renew(self) -> None:
        held = self._held
        if held is None or held.ends - _EARLY > time.monotonic():
            return
        self._held = None
        if held.refresh:
            asked = {"client_id": self._settings.login_client_id or "", "refresh_token": held.refresh}
            found = await self._post("/login/oauth/access_token", {**asked, "grant_type": "refresh_token"})
            if not found.get("error"):
                self._hold(found)

    def _hold(self, found: Mapping[str, Any]) -> None:
        token = found.get("access_token")
        if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token:
            raise self._broken(found)
        lasts = found.get("expires_in")
        ends = time.monotonic() + _number(lasts, 28_800) if lasts is not None else float("inf")
        self._held = Held(token, ends, str(found.get("refresh_token") or ""))
        logger.info("Somebody logged in to GitHub.")

    async def _post(self, path: str, form: Mapping[str, str]) -> Mapping[str, Any]:
        try:
            with anyio.fail_after(self._settings.timeout):
                headers = {"Accept": "application/json"}
                http = self._connections.opened()
                async with http.stream("POST", f"{self._web}{path}", data=dict(form), headers=headers) as answer:
                    body = bytearray()
                    async for chunk in answer.aiter_bytes():
                        body += chunk
                        if len(body) > _MAX_BYTES:
                            raise ValueError("longer than any such answer")
                    if answer.status_code == 404:
                        raise Unavailable(
                            "GitHub does not know the app to log in with.",
                            "The operator can look at --login-client-id.",
                        )
                    found = from_json(bytes(body))
        except (TimeoutError, httpx2.TimeoutException):
            raise Unavailable("GitHub took too long over the login.", "Try again in a moment.") from None
        except httpx2.HTTPError as error:
            raise Unavailable(
                f"GitHub can't be reached for the login: {why_unreached(self._web, error)}.", "Try again in a moment."
            ) from None
        except ValueError:
            raise self._broken({}) from None
        if not isinstance(found, dict):
            raise self._broken({})
        return cast("dict[str, Any]", found)

    def _broken(self, found: Mapping[str, Any]) -> Unavailable:
        error = found.get("error")
        said = f" (`{error}`)" if isinstance(error, str) and error.isidentifier() else ""
        fix = "The operator can look at --login-client-id: the app must allow the device flow." if said else ""
        return Unavailable(f"GitHub gives no login{said}.", fix or f"The operator can look at {quote(self._web)}.")


def _number(value: object, otherwise: float) -> float:
    return float(value) if isinstance(value, int | float) and 0 <= value < 10**8 else otherwise
