"""Finds the token when it is first needed, and never shows it."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import subprocess
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from mcp_batteries.errors import Problem, Refused, Unavailable
from mcp_batteries.executables import NO_WINDOW, find_executable
from mcp_batteries.limits import in_thread
from mcp_batteries.redaction.own import add_secrets
from mcp_batteries.settings import open_text
from mcp_github.client.device_login import DeviceLogin
from mcp_github.client.response import VERSION
from mcp_github.policy import ApiUrl

__all__ = ["Credentials", "Signs", "TokenSettings"]

_EXAMPLE = "github_pat_..."
"""What `Settings.ASKED` shows in the place of a token."""

_ABSENT_SECONDS = 30.0
"""How long there is no token where none was found: somebody may log in meanwhile."""
_RENEWED = ("--token-file", "gh")
"""Where another token may be after GitHub refused one."""

logger = logging.getLogger(__name__)


class TokenSettings(Protocol):
    """What finding a token needs to be told."""

    @property
    def auth(self) -> Literal["auto", "env", "gh", "none", "caller", "login"]: ...
    @property
    def token_file(self) -> str | None: ...
    @property
    def app_id(self) -> str | None: ...
    @property
    def app_installation(self) -> int: ...
    @property
    def app_key_file(self) -> str | None: ...
    @property
    def timeout(self) -> int: ...


class Signs(Protocol):
    """What signs a request, as PyGithub's tokens do."""

    @property
    def token(self) -> str: ...
    @property
    def token_type(self) -> str: ...


@dataclass(frozen=True)
class _Sent:
    token: str = field(repr=False)
    token_type: str = "Bearer"


class Credentials:
    """One identity towards GitHub: the server's, or a caller's. Its `repr` tells nothing.

    Args:
        sent: the token that a caller brought; no other place is looked in then.
        login: of the server, where people log in; no other place is looked in then.
    """

    def __init__(
        self, settings: TokenSettings, api_url: ApiUrl, *, sent: str | None = None, login: DeviceLogin | None = None
    ) -> None:
        self._settings, self._api_url, self._login = settings, api_url, login
        self._lock = threading.Lock()
        self._looked = 0.0
        self._found: tuple[str, Signs | None] | None = ("the caller", _Sent(sent)) if sent else None

    def auth(self) -> Signs | None:
        """What signs requests; None without a token. Blocks: gh is a program, an App's token a request.

        Raises:
            Unavailable: a source that was named has none.
        """
        with self._lock:
            try:
                if self._found is None or self._may_have_come:
                    self._found, self._looked = self._find(), time.monotonic()
                auth = self._found[1]
                # An App's token is renewed here, once for all requests.
                _ = auth and auth.token
            except Problem:
                raise
            except Exception as error:  # noqa: BLE001
                # Of four libraries' making: a key that is none, a refusal, a broken connection.
                logger.warning("No token: %s", type(error).__name__)
                raise Unavailable(
                    "GitHub gave the App no token.", "The operator can look at --app-id, the key and the installation."
                ) from None
            return auth

    async def current(self) -> Signs | None:
        """What signs the next request; None without a token.

        Raises:
            Unavailable: a source that was named has none.
            Refused: a person has to log in first, or the caller to bring a token.
        """
        if self._login is not None:
            self._found = "a login", await self._login.current()
            return self._found[1]
        if self._found is not None and not self._settings.app_id and not self._may_have_come:
            return self._found[1]
        return await in_thread(lambda stop: self.auth())

    @property
    def _may_have_come(self) -> bool:
        """Whether no token was found so long ago that it is worth another look."""
        absent = self._found is not None and self._found[1] is None and self._settings.auth == "auto"
        return absent and time.monotonic() - self._looked >= _ABSENT_SECONDS

    @property
    def possible(self) -> bool:
        """Whether there may be a token, by a look that costs nothing: `gh` is not asked yet."""
        settings = self._settings
        if settings.app_id or settings.token_file or settings.auth in ("gh", "caller", "login"):
            return True
        named = settings.auth in ("auto", "env") and any(map(_held, self._variables))
        return named or (settings.auth == "auto" and find_executable("gh", scripts=True) is not None)

    @property
    def _variables(self) -> list[str]:
        public = self._api_url.host == "github.com" or self._api_url.host.endswith(".ghe.com")
        return [*([] if public else ["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"]), "GITHUB_TOKEN", "GH_TOKEN"]

    @property
    def looked_in(self) -> str:
        """Where a token is looked for, in words; empty if nowhere."""
        variables = [f"`{name}`" for name in self._variables] if self._settings.auth in ("auto", "env") else []
        programs = ["`gh auth token`"] if self._settings.auth in ("auto", "gh") else []
        return ", ".join([*variables, *programs])

    @property
    def source(self) -> str:
        """Where the token is from, in words; empty before it was needed."""
        return self._found[0] if self._found else ""

    @property
    def kind(self) -> str:
        """What kind of token it is, by how it begins; empty before it was needed."""
        auth = self._found[1] if self._found else None
        if auth is None or (self._settings.app_id and self._settings.auth != "caller"):
            return "of an App's installation" if auth else ""
        kinds = {"github_pat_": "fine-grained", "ghp_": "classic", "gho_": "OAuth", "ghu_": "of a GitHub App's user"}
        return next((kind for start, kind in kinds.items() if auth.token.startswith(start)), "unknown")

    def fingerprint(self, key: bytes) -> str:
        """A name for this identity that tells nothing about the token. Blocks like `auth`."""
        auth = self.auth()
        app = self._settings.app_id if not isinstance(auth, _Sent) else None
        kept = f"{app}/{self._settings.app_installation}" if app else None
        secret = kept or (auth.token if auth else "")
        return hmac.new(key, f"{self._api_url.base}\n{secret}".encode(), hashlib.sha256).hexdigest()[:32]

    def rejected(self, auth: Signs | None) -> None:
        """GitHub takes `auth` no longer."""
        if self._login is not None and auth is not None:
            self._login.forget(auth.token)
        elif self._found is not None and self._found[1] is auth and self._found[0] in _RENEWED:
            self._found = None

    def _find(self) -> tuple[str, Signs | None]:
        if self._settings.auth == "caller":
            raise Refused("This request came without a GitHub token.", "Send one of yours as the bearer token.")
        if self._login is not None:
            raise Refused("Nobody is logged in to GitHub yet.", "Call `get_me` to learn how.")
        # Half a second of imports, paid by the first call and not by the start.
        from github import Auth

        quiet = logging.getLogger("github")
        quiet.handlers.clear()
        quiet.setLevel(logging.WARNING)
        settings = self._settings
        if settings.app_id:
            return "a GitHub App", self._app()
        if settings.token_file:
            return "--token-file", Auth.Token(_read(settings.token_file, "token"))
        if settings.auth in ("auto", "env"):
            for name in self._variables:
                if token := _held(name):
                    return name, Auth.Token(token)
            if settings.auth == "env":
                raise Unavailable("Neither `GITHUB_TOKEN` nor `GH_TOKEN` is set.", "The operator can set one.")
        if settings.auth in ("auto", "gh"):
            if token := _gh(self._api_url.host):
                return "gh", Auth.Token(token)
            if settings.auth == "gh":
                raise Unavailable("The `gh` program has no token for this host.", "The user can run `gh auth login`.")
        return "", None

    def _app(self) -> Signs:
        from github import Auth, GithubIntegration

        settings = self._settings
        if not settings.app_key_file:
            raise Unavailable("A GitHub App needs its key.", "The operator can name it with `--app-key-file`.")
        app = Auth.AppAuth(str(settings.app_id), _read(settings.app_key_file, "key"))
        common: dict[str, Any] = {
            "base_url": self._api_url.base, "retry": None, "timeout": settings.timeout, "api_version": VERSION,
        }  # fmt: skip
        integration = GithubIntegration(auth=app, seconds_between_requests=0, seconds_between_writes=0, **common)
        number = settings.app_installation
        if not number:
            installations = [item.id for item in integration.get_installations()]
            if len(installations) != 1:
                raise Unavailable(
                    f"The App has `{len(installations)}` installations.", "Name one with `--app-installation`."
                )
            number = installations[0]
        return Auth.AppInstallationAuth(app, number, requester=integration.requester)


def _read(path: str, what: str) -> str:
    try:
        with open_text(path) as file:
            text = file.read().strip()
    except (OSError, UnicodeDecodeError):
        text = ""
    if not text:
        raise Unavailable(f"The file of the {what} can't be read or is empty.", "The operator can name another.")
    add_secrets([text])
    return text


def _held(variable: str) -> str:
    """The token in an environment variable; empty also for what an entry shows until somebody puts a token there."""
    token = os.environ.get(variable, "").strip()
    if token == _EXAMPLE:
        return ""
    add_secrets([token])
    return token


def _gh(host: str) -> str | None:
    program = find_executable("gh", scripts=True)
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "auth", "token", "--hostname", host],
            capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL, check=False,
            creationflags=NO_WINDOW,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    token = done.stdout.strip()
    add_secrets([token])
    return token or None
