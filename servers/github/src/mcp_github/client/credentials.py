"""Finds the token when it is first needed, and never shows it."""

from __future__ import annotations

import hashlib
import hmac
import importlib
import logging
import os
import subprocess
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import Problem, Refused, Unavailable
from mcp_batteries.executables import NO_WINDOW, find_executable
from mcp_batteries.redaction.own import add_secrets
from mcp_batteries.remote.connection_errors import explain_connection_error
from mcp_batteries.settings import open_text
from mcp_github.client.device_login import DeviceLogin
from mcp_github.client.response import API_VERSION
from mcp_github.policy.addresses import ApiUrl

__all__ = ["Credentials", "RequestSigner", "TokenSettings"]

logger = logging.getLogger(__name__)

# What `Settings.INSTALL_QUESTIONS` and entries of hosts show in the place of a token.
_PLACEHOLDERS = ("github_pat_...", "***")
# As in `${input:token}`, `%TOKEN%` and `{env:TOKEN}`, which hosts replace. No token begins so.
_BEGINNINGS_OF_REFERENCES = ("$", "%", "{")
# Where no token was found, it is looked for again after so long: somebody may log in meanwhile.
_ABSENT_SECONDS = 30.0
# Where another token may be after GitHub refused one.
_RENEWABLE_SOURCES = ("--token-file", "gh")
_GH_TIMEOUT_SECONDS = 10
_KINDS_BY_PREFIX = {
    "github_pat_": "fine-grained", "ghp_": "classic", "gho_": "OAuth", "ghu_": "of a GitHub App's user",
}  # fmt: skip


class TokenSettings(Protocol):
    """The settings that finding a token needs."""

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


class RequestSigner(Protocol):
    """What signs a request, as PyGithub's tokens do."""

    @property
    def token(self) -> str: ...
    @property
    def token_type(self) -> str: ...


@dataclass(frozen=True)
class _CallerToken:
    """A token that came with a request."""

    token: str = field(repr=False)
    token_type: str = "Bearer"


@dataclass(frozen=True)
class _Credential:
    """What was found.

    Attributes:
        source: where the token is from, in words; empty where there is none.
        signer: None where there is no token.
    """

    source: str
    signer: RequestSigner | None


class Credentials:
    """One identity towards GitHub: the server's, or a caller's. Its `repr` tells nothing.

    Args:
        caller_token: that a caller brought; no other place is looked in then.
        login: of the server, where people log in; no other place is looked in then.
    """

    def __init__(
        self, settings: TokenSettings, api_url: ApiUrl, *, caller_token: str | None = None,
        login: DeviceLogin | None = None,
    ) -> None:  # fmt: skip
        self._settings = settings
        self._api_url = api_url
        self._login = login
        self._lock = threading.Lock()
        self._searched_at = 0.0
        self._credential: _Credential | None = None
        if caller_token:
            self._credential = _Credential("the caller", _CallerToken(caller_token))

    def find_signer(self) -> RequestSigner | None:
        """Return what signs requests; None without a token. Blocks: gh is a program, an App's token a request.

        Raises:
            Unavailable: a source that was named has none.
        """
        with self._lock:
            try:
                if self._credential is None or self._is_worth_another_search:
                    self._credential = self._search()
                    self._searched_at = time.monotonic()
                signer = self._credential.signer
                if signer is not None:
                    # An App's token is renewed here, once for all requests.
                    _ = signer.token
            except Problem:
                raise
            except Exception as error:  # noqa: BLE001
                # Of three libraries' making: a refusal, a broken connection, and what nobody thought of.
                logger.warning("No token: %s", type(error).__name__)
                raise _app_failure(error, self._api_url) from None
            return signer

    async def get_signer(self) -> RequestSigner | None:
        """Return what signs the next request; None without a token.

        Raises:
            Unavailable: a source that was named has none.
            Refused: a person has to log in first, or the caller to bring a token.
        """
        if self._login is not None:
            self._credential = _Credential("a login", await self._login.get_token())
            return self._credential.signer
        if self._credential is None or self._settings.app_id or self._is_worth_another_search:
            return await run_in_thread(lambda cancel: self.find_signer())
        return self._credential.signer

    @property
    def may_exist(self) -> bool:
        """Whether there may be a token, by a look that costs nothing: `gh` is not asked yet."""
        settings = self._settings
        if settings.app_id or settings.token_file or settings.auth in ("gh", "caller", "login"):
            return True
        if settings.auth in ("auto", "env") and any(_read_variable(name) for name in self._variables):
            return True
        return settings.auth == "auto" and find_executable("gh", scripts=True) is not None

    @property
    def searched_places(self) -> str:
        """Where a token is looked for, in words; empty if nowhere."""
        places: list[str] = []
        if self._settings.auth in ("auto", "env"):
            places += [f"`{name}`" for name in self._variables]
        if self._settings.auth in ("auto", "gh"):
            places.append("`gh auth token`")
        return ", ".join(places)

    @property
    def source(self) -> str:
        """Where the token is from, in words; empty before it was needed."""
        if self._credential is None:
            return ""
        return self._credential.source

    @property
    def kind(self) -> str:
        """What kind of token it is, by how it begins; empty before it was needed."""
        if self._credential is None or self._credential.signer is None:
            return ""
        if self._settings.app_id and self._settings.auth != "caller":
            return "of an App's installation"
        token = self._credential.signer.token
        for prefix, kind in _KINDS_BY_PREFIX.items():
            if token.startswith(prefix):
                return kind
        return "unknown"

    def fingerprint(self, key: bytes) -> str:
        """Return a name for this identity that tells nothing about the token. Blocks like `find_signer`."""
        signer = self.find_signer()
        settings = self._settings
        secret = ""
        if settings.app_id and not isinstance(signer, _CallerToken):
            secret = f"{settings.app_id}/{settings.app_installation}"
        elif signer is not None:
            secret = signer.token
        return hmac.new(key, f"{self._api_url.base}\n{secret}".encode(), hashlib.sha256).hexdigest()[:32]

    def reject(self, signer: RequestSigner | None) -> None:
        """Give up `signer`, which GitHub takes no longer, if there may be another."""
        if self._login is not None and signer is not None:
            self._login.forget_token(signer.token)
            return
        credential = self._credential
        if credential is not None and credential.signer is signer and credential.source in _RENEWABLE_SOURCES:
            self._credential = None

    @property
    def _is_worth_another_search(self) -> bool:
        """Whether no token was found, so long ago that there may be one by now."""
        is_absent = self._credential is not None and self._credential.signer is None and self._settings.auth == "auto"
        return is_absent and time.monotonic() - self._searched_at >= _ABSENT_SECONDS

    @property
    def _variables(self) -> list[str]:
        """The environment variables that may hold the token, the first wins."""
        variables = ["GITHUB_TOKEN", "GH_TOKEN"]
        host = self._api_url.host
        if host != "github.com" and not host.endswith(".ghe.com"):
            return ["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", *variables]
        return variables

    def _search(self) -> _Credential:
        """Look for the token in the places that the settings name."""
        settings = self._settings
        if settings.auth == "caller":
            raise Refused("This request came without a GitHub token.", "Send one of yours as the bearer token.")
        if self._login is not None:
            raise Refused("Nobody is logged in to GitHub yet.", "Call `get_me` to learn how.")
        _load_library()
        if settings.app_id:
            return _Credential("a GitHub App", self._open_app(settings.app_id))
        if settings.token_file:
            return _token_credential("--token-file", _read_secret_file(settings.token_file, "token"))
        return self._search_variables() or self._search_gh() or _Credential("", None)

    def _search_variables(self) -> _Credential | None:
        """Look for the token in the environment, if the settings allow that."""
        if self._settings.auth not in ("auto", "env"):
            return None
        for name in self._variables:
            token = _read_variable(name)
            if token:
                return _token_credential(name, token)
        if self._settings.auth == "env":
            raise Unavailable("Neither `GITHUB_TOKEN` nor `GH_TOKEN` is set.", "The operator can set one.")
        return None

    def _search_gh(self) -> _Credential | None:
        """Ask the gh program for its token, if the settings allow that."""
        if self._settings.auth not in ("auto", "gh"):
            return None
        try:
            return _token_credential("gh", _ask_gh(self._api_url.host))
        except Unavailable:
            if self._settings.auth == "gh":
                raise
            return None

    def _open_app(self, app_id: str) -> RequestSigner:
        """Return what signs as an installation of a GitHub App: the one that the settings name, or the only one."""
        from github import Auth, GithubIntegration

        settings = self._settings
        assert settings.app_key_file is not None, "the policy refuses an App without a key"
        app = Auth.AppAuth(str(app_id), _read_secret_file(settings.app_key_file, "key"))
        try:
            app.create_jwt()
        except Exception as error:  # noqa: BLE001
            # Of two libraries' making, and of many kinds: no PEM, a public key, a key with a password.
            logger.warning("The key of the App does not sign: %s", type(error).__name__)
            raise Unavailable(
                "The file of `--app-key-file` holds no private key that signs.",
                "The operator can name the PEM file that GitHub gave for the App.",
            ) from None
        options: dict[str, Any] = {
            "base_url": self._api_url.base, "retry": None, "timeout": settings.timeout, "api_version": API_VERSION,
        }  # fmt: skip
        integration = GithubIntegration(auth=app, seconds_between_requests=0, seconds_between_writes=0, **options)
        installation = settings.app_installation
        if not installation:
            installations = [item.id for item in integration.get_installations()]
            if len(installations) != 1:
                raise Unavailable(
                    f"The App has `{len(installations)}` installations.", "Name one with `--app-installation`."
                )
            installation = installations[0]
        return Auth.AppInstallationAuth(app, installation, requester=integration.requester)


def _app_failure(error: Exception, api_url: ApiUrl) -> Unavailable:
    """Return what kept an App from its token: the connection, GitHub's refusal, or what is not known."""
    from github import GithubException
    from requests import RequestException

    if isinstance(error, RequestException):
        reason = explain_connection_error(api_url.base, error)
        return Unavailable(f"GitHub can't be reached for the App's token: {reason}.", "Try again in a moment.")
    if not isinstance(error, GithubException):
        return Unavailable("The App got no token, for a reason that is not known.", "The log names the error.")
    step = "The operator can look at the App and its installation on GitHub."
    if error.status == 401:
        # GitHub says so of a key that is another App's: https://github.com/actions/create-github-app-token/issues/153
        step = "The operator can look whether --app-id and --app-key-file are of one App, and at this machine's clock."
    elif error.status == 404:
        step = "The operator can look at --app-installation: it is an installation of this App."
    return Unavailable(f"GitHub refused the App a token ({error.status}): `{error.message or 'no reason'}`.", step)


def _load_library() -> None:
    """Import PyGithub, and have it log what it warns of by our own handlers.

    That takes half a second, paid by the first call and not by the start.
    """
    importlib.import_module("github")
    library = logging.getLogger("github")
    library.handlers.clear()
    library.setLevel(logging.WARNING)


def _token_credential(source: str, token: str) -> _Credential:
    from github import Auth

    return _Credential(source, Auth.Token(token))


def _read_secret_file(path: str, description: str) -> str:
    try:
        with open_text(path) as file:
            text = file.read().strip()
    except (OSError, UnicodeDecodeError):
        text = ""
    if not text:
        raise Unavailable(f"The file of the {description} can't be read or is empty.", "The operator can name another.")
    add_secrets([text])
    return text


def _read_variable(variable: str) -> str:
    """Return the token in an environment variable; empty also for what an entry holds that nobody filled in."""
    # Docker's `--env-file` and some hosts hand on the quotes around a value, and no token has any.
    token = os.environ.get(variable, "").strip(" \t\r\n\"'")
    if token in _PLACEHOLDERS or token.startswith(_BEGINNINGS_OF_REFERENCES):
        return ""
    add_secrets([token])
    return token


def _ask_gh(host: str) -> str:
    """Return the token of the `gh` program for `host`.

    Raises:
        Unavailable: it is not installed, does not answer, or has none.
    """
    program = find_executable("gh", scripts=True)
    if program is None:
        raise Unavailable(
            "The `gh` program is not in a folder of `PATH`.",
            "The operator can install it, add its folder to `PATH`, or use another `--auth`.",
        )
    try:
        result = subprocess.run(
            [program, "auth", "token", "--hostname", host],
            capture_output=True, text=True, timeout=_GH_TIMEOUT_SECONDS, stdin=subprocess.DEVNULL, check=False,
            creationflags=NO_WINDOW,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(
            f"The `gh` program does not answer ({type(error).__name__}).",
            f"The operator can run `gh auth token --hostname {host}` to see why.",
        ) from None
    token = result.stdout.strip()
    if not token:
        raise Unavailable(
            f"The `gh` program has no token for `{host}`.", f"The user can run `gh auth login --hostname {host}`."
        )
    add_secrets([token])
    return token
