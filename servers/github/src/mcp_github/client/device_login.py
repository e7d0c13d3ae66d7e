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
from mcp_batteries.remote.connection_errors import explain_connection_error
from mcp_github.policy.addresses import ApiUrl

__all__ = ["DeviceCode", "DeviceLogin", "LoginSettings"]

logger = logging.getLogger(__name__)

_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_CODE_PATH = "/login/device/code"
_TOKEN_PATH = "/login/oauth/access_token"
# Between two questions at least, and how much longer after `slow_down` (RFC 8628, section 3.5).
_MIN_INTERVAL_SECONDS = 1.0
_SLOW_DOWN_SECONDS = 5.0
_DEFAULT_INTERVAL_SECONDS = 5
_DEFAULT_CODE_SECONDS = 900
_DEFAULT_TOKEN_SECONDS = 28_800
# A token is renewed so long before its end.
_RENEWAL_SECONDS = 60.0
_MAX_CODE_CHARACTERS = 20
_MAX_BODY_BYTES = 100_000


class LoginSettings(Protocol):
    """The settings that logging in needs."""

    @property
    def login_client_id(self) -> str | None: ...
    @property
    def login_scope(self) -> tuple[str, ...]: ...
    @property
    def timeout(self) -> int: ...


class AnonymousClientFactory(Protocol):
    """What gives a client for requests that carry no token of their own."""

    def get_client(self) -> httpx2.AsyncClient: ...


@dataclass
class DeviceCode:
    """What a person has to enter, and where.

    Attributes:
        device: what tells GitHub which login is asked about; a secret.
        interval: seconds between two questions.
        expires_at: when it counts no longer, by the monotonic clock.
        ask_again_at: when GitHub may be asked again, by the monotonic clock.
    """

    user: str
    url: str
    device: str = field(repr=False)
    interval: float
    expires_at: float
    ask_again_at: float

    @property
    def instruction(self) -> str:
        """What the person has to do, in words."""
        minutes = max(1, round((self.expires_at - time.monotonic()) / 60))
        return f"Open {self.url} and enter the code {self.user} there within {minutes} min"


@dataclass
class LoginToken:
    """A token that somebody logged in for; signs requests as PyGithub's tokens do."""

    token: str = field(repr=False)
    expires_at: float = float("inf")
    refresh_token: str = field(default="", repr=False)
    token_type: str = "Bearer"


class DeviceLogin:
    """The one login of a server that has no token. Its `repr` tells nothing."""

    def __init__(self, settings: LoginSettings, api_url: ApiUrl, connections: AnonymousClientFactory) -> None:
        self._settings = settings
        self._web_url = api_url.web
        self._connections = connections
        self._token: LoginToken | None = None
        self._code: DeviceCode | None = None
        self._lock = anyio.Lock()

    @property
    def token(self) -> LoginToken | None:
        """The token, if somebody has logged in and it has not ended."""
        if self._token is None or self._token.expires_at <= time.monotonic():
            return None
        return self._token

    def forget_token(self, token: str) -> None:
        """Give up a token that GitHub takes no longer."""
        if self._token is not None and self._token.token == token:
            self._token = None

    async def get_token(self) -> LoginToken:
        """Return what signs the next request.

        Raises:
            Refused: nobody has logged in yet; the text says where to enter which code.
            Unavailable: GitHub gives no code now.
        """
        async with self._lock:
            await self._renew_token()
            if self._token is None and self._code is not None:
                await self._ask_for_token(self._code)
            if self._token is None:
                code = await self._get_code()
                raise Refused("Nobody is logged in to GitHub yet.", f"{code.instruction}; then call again.")
            return self._token

    async def get_code(self) -> DeviceCode | None:
        """Return the code to enter now; None if somebody is logged in.

        Raises:
            Unavailable: GitHub gives no code now.
        """
        async with self._lock:
            await self._renew_token()
            if self._token is not None:
                return None
            return await self._get_code()

    async def wait_until_entered(self, code: DeviceCode) -> None:
        """Return once `code` was entered.

        Raises:
            Refused: the person said no, or its time is over.
        """
        while self.token is None:
            async with self._lock:
                if self._code is not code and self._token is None:
                    raise Refused("The login was not finished.", "Call again for another code.")
                if self._token is None:
                    await self._ask_for_token(code)

    async def _get_code(self) -> DeviceCode:
        """Return the code that counts; one from GitHub if there is none."""
        if self._code is None or self._code.expires_at <= time.monotonic():
            form = {"client_id": self._client_id, "scope": " ".join(self._settings.login_scope)}
            answer = await self._post(_CODE_PATH, form)
            self._code = self._parse_code(answer)
        return self._code

    def _parse_code(self, answer: Mapping[str, Any]) -> DeviceCode:
        """Return the code in GitHub's answer, unless its page is not GitHub's or it can hold more than a code."""
        url = str(answer.get("verification_uri"))
        page = urlsplit(url)
        web = urlsplit(self._web_url)
        if answer.get("error") or (page.scheme, page.netloc) != (web.scheme, web.netloc):
            raise self._unusable_answer(answer)
        user = str(answer.get("user_code"))
        if not user.isascii() or not user.replace("-", "").isalnum() or len(user) > _MAX_CODE_CHARACTERS:
            raise self._unusable_answer(answer)
        now = time.monotonic()
        interval = max(_MIN_INTERVAL_SECONDS, _parse_seconds(answer.get("interval"), _DEFAULT_INTERVAL_SECONDS))
        return DeviceCode(
            user=user,
            url=url,
            device=str(answer.get("device_code")),
            interval=interval,
            expires_at=now + _parse_seconds(answer.get("expires_in"), _DEFAULT_CODE_SECONDS),
            ask_again_at=now + interval,
        )

    async def _ask_for_token(self, code: DeviceCode) -> None:
        """Ask once, not before GitHub may be asked, whether `code` was entered; afterwards the code may be gone."""
        if code.expires_at <= time.monotonic():
            self._code = None
            return
        await anyio.sleep(max(0.0, code.ask_again_at - time.monotonic()))
        form = {"client_id": self._client_id, "device_code": code.device, "grant_type": _DEVICE_GRANT}
        answer = await self._post(_TOKEN_PATH, form)
        code.ask_again_at = time.monotonic() + code.interval
        match answer.get("error"):
            case "authorization_pending":
                pass
            case "slow_down":
                code.interval = max(code.interval + _SLOW_DOWN_SECONDS, _parse_seconds(answer.get("interval"), 0))
                code.ask_again_at = time.monotonic() + code.interval
            case "access_denied":
                self._code = None
                raise Refused("The user refused the login on GitHub.", "Ask them before you try again.")
            case "expired_token" | "token_expired":
                self._code = None
            case _:
                self._code = None
                self._keep_token(answer)

    async def _renew_token(self) -> None:
        """Exchange a token that ends soon for another, if GitHub gave a way to; else forget it."""
        token = self._token
        if token is None or token.expires_at - _RENEWAL_SECONDS > time.monotonic():
            return
        self._token = None
        if not token.refresh_token:
            return
        form = {
            "client_id": self._client_id, "refresh_token": token.refresh_token, "grant_type": "refresh_token",
        }  # fmt: skip
        answer = await self._post(_TOKEN_PATH, form)
        if not answer.get("error"):
            self._keep_token(answer)

    def _keep_token(self, answer: Mapping[str, Any]) -> None:
        token = answer.get("access_token")
        if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token:
            raise self._unusable_answer(answer)
        expires_at = float("inf")
        if answer.get("expires_in") is not None:
            expires_at = time.monotonic() + _parse_seconds(answer["expires_in"], _DEFAULT_TOKEN_SECONDS)
        self._token = LoginToken(token, expires_at, str(answer.get("refresh_token") or ""))
        logger.info("Somebody logged in to GitHub.")

    @property
    def _client_id(self) -> str:
        return self._settings.login_client_id or ""

    async def _post(self, path: str, form: Mapping[str, str]) -> Mapping[str, Any]:
        """Return GitHub's answer to `form`, which is an object of JSON."""
        try:
            with anyio.fail_after(self._settings.timeout):
                answer = await self._exchange(path, form)
        except (TimeoutError, httpx2.TimeoutException):
            raise Unavailable("GitHub took too long over the login.", "Try again in a moment.") from None
        except httpx2.HTTPError as error:
            raise Unavailable(
                f"GitHub can't be reached for the login: {explain_connection_error(self._web_url, error)}.",
                "Try again in a moment.",
            ) from None
        except ValueError:
            raise self._unusable_answer({}) from None
        if not isinstance(answer, dict):
            raise self._unusable_answer({})
        return cast("dict[str, Any]", answer)

    async def _exchange(self, path: str, form: Mapping[str, str]) -> object:
        headers = {"Accept": "application/json"}
        client = self._connections.get_client()
        async with client.stream("POST", f"{self._web_url}{path}", data=dict(form), headers=headers) as stream:
            body = bytearray()
            async for chunk in stream.aiter_bytes():
                body += chunk
                if len(body) > _MAX_BODY_BYTES:
                    raise ValueError("longer than any such answer")
            if stream.status_code == 404:
                raise Unavailable(
                    "GitHub does not know the app to log in with.", "The operator can look at --login-client-id."
                )
            return from_json(bytes(body))

    def _unusable_answer(self, answer: Mapping[str, Any]) -> Unavailable:
        error = answer.get("error")
        if isinstance(error, str) and error.isidentifier():
            return Unavailable(
                f"GitHub gives no login (`{error}`).",
                "The operator can look at --login-client-id: the app must allow the device flow.",
            )
        return Unavailable("GitHub gives no login.", f"The operator can look at {quote(self._web_url)}.")


def _parse_seconds(value: object, default: float) -> float:
    """Return a number of seconds from GitHub's answer; `default` for anything else."""
    if isinstance(value, int | float) and 0 <= value < 10**8:
        return float(value)
    return default
