"""GitHub's endpoints of the device flow, as its documentation says: codes, `slow_down` for who asks too early."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Devices"]


@dataclass
class _Login:
    user_code: str
    asked: float
    state: str = "authorization_pending"


@dataclass
class Devices:
    """The logins of an oracle.

    Attributes:
        client_id: of the one app there is.
        web: where people go.
        lasts: seconds that a token lasts; None for tokens without an end.
    """

    client_id: str
    web: str
    interval: float = 0.05
    lasts: float | None = None
    broken: dict[str, Any] | None = None
    logins: dict[str, _Login] = field(default_factory=dict[str, _Login])
    tokens: list[str] = field(default_factory=list[str])
    refreshes: set[str] = field(default_factory=set[str])
    early: int = 0
    """Questions that came before their time."""
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def enter(self, user_code: str, state: str = "entered") -> None:
        """What a person does on the page."""
        next(login for login in self.logins.values() if login.user_code == user_code).state = state

    def answer(self, path: str, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if form.get("client_id") != self.client_id:
            return 404, {"error": "Not Found"}
        if self.broken is not None:
            return 200, self.broken
        if path == "/login/device/code":
            number = next(self._numbers)
            self.logins[f"device-secret-{number}"] = login = _Login(f"WDJB-MJH{number}", time.monotonic())
            return 200, {
                "device_code": f"device-secret-{number}", "user_code": login.user_code, "expires_in": 899,
                "verification_uri": f"{self.web}/login/device", "interval": self.interval,
            }  # fmt: skip
        if form.get("grant_type") == "refresh_token":
            if form.get("refresh_token") not in self.refreshes:
                return 200, {"error": "bad_refresh_token"}
            self.refreshes.discard(form["refresh_token"])
            return 200, self._token()
        login = self.logins.get(form.get("device_code", ""))
        if form.get("grant_type") != "urn:ietf:params:oauth:grant-type:device_code" or login is None:
            return 200, {"error": "incorrect_device_code"}
        if time.monotonic() - login.asked < self.interval:
            self.early += 1
            return 200, {"error": "slow_down", "interval": self.interval * 2}
        login.asked = time.monotonic()
        if login.state != "entered":
            return 200, {"error": login.state}
        login.state = "expired_token"
        return 200, self._token()

    def _token(self) -> dict[str, Any]:
        number = next(self._numbers)
        self.tokens.append(f"gho_loggedInTokenThatMustNeverBeSeen{number}")
        made: dict[str, Any] = {"access_token": self.tokens[-1], "token_type": "bearer", "scope": "repo,read:org"}
        if self.lasts is not None:
            self.refreshes.add(f"ghr_refresh{number}")
            made |= {"expires_in": self.lasts, "refresh_token": f"ghr_refresh{number}"}
        return made
