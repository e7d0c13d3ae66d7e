"""The one client of GitHub: httpx2 sends, and our own policy decides what to retry, wait for and follow.

The library repeats, follows or reads nothing beyond a limit: a write is sent once, a redirect is checked before
anything is sent to its target, and a body is cut off at the requested size.
"""

from __future__ import annotations

import json
import os
import random
import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import anyio
import httpx2

from mcp_batteries.errors import Conflict, NotFound, Refused, TooLarge, Unavailable
from mcp_batteries.remote.reach import why_unreached
from mcp_github.client import errors
from mcp_github.client.credentials import Credentials, TokenSettings
from mcp_github.client.device_login import LoginSettings
from mcp_github.client.rate_limits import RateLimits
from mcp_github.client.response import VERSION, Reply
from mcp_github.policy import DownloadUrl, Policy

__all__ = ["GRAPHQL", "Client", "ClientSettings", "Connections", "Request"]

GRAPHQL = "/graphql"
"""The path of GraphQL requests; where that is depends on the server."""

_TRIES = 3
_REDIRECTS = 3
_PATIENCE = 5.0
"""Seconds: a limit that ends sooner is waited for."""
_MAX_BYTES = 8_000_000
_JSON = "application/vnd.github+json"
_REPO = re.compile(r"/repositories/[0-9]+|/repos/[^/]+/[^/]+")


class ClientSettings(TokenSettings, LoginSettings, Protocol):
    """What the client needs to be told."""

    @property
    def workers(self) -> int: ...
    @property
    def write_interval(self) -> int: ...


@dataclass(frozen=True)
class Request:
    """One request.

    Attributes:
        path: below the API's base, made of trusted parts only.
        what: it asks for, in words for messages.
        reads: whether it may be repeated and may follow a redirect.
        follows: whether a redirect is followed; else it is the reply.
        instead: see `Reply`.
    """

    verb: str
    path: str
    what: str
    reads: bool
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    body: Any = None
    accept: str = _JSON
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    max_bytes: int = _MAX_BYTES
    follows: bool = True
    instead: str = ""

    @property
    def resource(self) -> str:
        """The rate limit it counts against."""
        if self.path.startswith("/search/"):
            return "code_search" if self.path == "/search/code" else "search"
        return "graphql" if self.path == GRAPHQL else "core"


class Connections:
    """The connections to GitHub, opened when they are first needed. They know no token: each request brings its own."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._http: httpx2.AsyncClient | None = None

    async def aclose(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    def opened(self) -> httpx2.AsyncClient:
        if self._http is None:
            self._http = httpx2.AsyncClient(
                verify=_trusted_certificates(),
                headers={"User-Agent": "mcp-github"},
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
                timeout=self._settings.timeout,
                follow_redirects=False,
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=self._settings.workers),
            )
        return self._http


class Client:
    """Requests to GitHub as one identity: the server's, or that of a caller with a token of their own.

    Args:
        credentials: of that identity.
        pause: seconds before the second try; the third waits three times that.
    """

    def __init__(
        self, settings: ClientSettings, policy: Policy, connections: Connections, credentials: Credentials, *,
        pause: float = 0.4,
    ) -> None:  # fmt: skip
        self._settings, self._policy, self._pause = settings, policy, pause
        self.credentials = credentials
        self.limits = RateLimits(settings.write_interval / 1000)
        self._turns = anyio.CapacityLimiter(settings.workers)
        self._connections = connections
        self._full_names: dict[str, str] = {}
        self.renamed: dict[str, str] = {}
        """The `owner/name` that a repository has by now, by the one in lower case that was asked for."""

    async def send(self, request: Request) -> Reply:
        """The reply to `request`, of a status below 400.

        Raises:
            Problem: GitHub refused or failed, a limit is in force, or a redirect leads where it may not.
        """
        if new := self.renamed.get((old := _repo_in(request.path)).lower()):
            # Found out before, and judged then.
            request = replace(request, path=f"/repos/{new}{request.path.removeprefix(f'/repos/{old}')}")
        if request.reads:
            return await self._with_tries(request)
        self._policy.require_token(await self.credentials.current() is not None)
        async with self.limits.write():
            try:
                return await self._once_or_after_limit(request)
            except Unavailable as problem:
                if problem.retry_after is not None:
                    raise
                # Sent once, and nobody knows what became of it.
                raise Unavailable(
                    problem.what, "It may have been done all the same: look before you try again."
                ) from None

    async def download(self, url: DownloadUrl, what: str, *, max_bytes: int, take: Callable[[bytes], bool]) -> None:
        """Hand the bytes at `url` to `take` until it returns True or there are no more. They go without the token."""
        taken = 0
        try:
            async with self._connections.opened().stream("GET", url.url) as answer:
                if answer.status_code in (404, 410):
                    raise NotFound(f"GitHub has no {what} any more.", "They are kept for some weeks only.")
                if answer.status_code != 200:
                    raise Unavailable(f"The download of {what} failed (status `{answer.status_code}`).", "Try again.")
                async for chunk in answer.aiter_bytes():
                    taken += len(chunk)
                    if taken > max_bytes:
                        raise TooLarge(f"There are more than `{max_bytes:,}` bytes of {what}.")
                    if take(chunk):
                        return
        except (httpx2.HTTPError, httpx2.InvalidURL):
            raise Unavailable(f"The download of {what} broke off.", "Try again in a moment.") from None

    async def _with_tries(self, request: Request) -> Reply:
        with anyio.move_on_after(self._settings.timeout * 1.5):
            for left in reversed(range(_TRIES)):
                try:
                    return await self._once(request)
                except Unavailable as problem:
                    # A limit says when; anything else may pass.
                    if not left or (problem.retry_after or 0.0) > _PATIENCE:
                        raise
                    wait = problem.retry_after
                if wait is None:
                    wait = self._pause * 3 ** (_TRIES - 1 - left) * (0.5 + random.random())
                await anyio.sleep(wait)
        raise Unavailable(f"GitHub did not answer for {request.what} in time.", "Try again in a moment.")

    async def _once_or_after_limit(self, request: Request) -> Reply:
        """Send a write, and once more after a limit that ends soon: what a limit refused was not done."""
        try:
            return await self._once(request)
        except Unavailable as problem:
            refused = problem.status in (None, 403, 429)
            if problem.retry_after is None or problem.retry_after > _PATIENCE or not refused:
                raise
            await anyio.sleep(problem.retry_after)
        return await self._once(request)

    async def _once(self, request: Request) -> Reply:
        for _ in range(_REDIRECTS + 1):
            self.limits.check(request.resource)
            async with self._turns:
                reply = await self._exchange(request)
            if reply.status >= 400:
                token = self.credentials.source != ""
                raise errors.problem(reply, request.what, self.limits, token=token)
            if reply.status == 202 and request.reads:
                raise Unavailable(f"GitHub is still working on {request.what}.", "Try again in 3 s.", retry_after=3.0)
            if reply.status < 300 or reply.status == 304 or not request.follows:
                return reply
            request = await self._redirected(request, reply)
        # Not `Unavailable`: another try would go round once more.
        raise Conflict(f"GitHub redirects {request.what} in circles.", "A person can look at it on GitHub.")

    async def _redirected(self, request: Request, reply: Reply) -> Request:
        target = urljoin(f"{self._policy.api_url.base}{request.path}", reply.headers.get("location", ""))
        if not request.reads:
            raise Conflict(
                f"GitHub redirects this write to {request.what}: it was renamed or moved. Nothing was changed.",
                "Look the repository up and use its new name.",
            )
        path = self._policy.api_url.redirect(target, request.what)
        old = _repo_in(request.path)
        instead = request.instead
        if path.endswith("/public_members"):
            instead = "shows this token only its public members"
        if self._policy.allowed or (old and path.startswith("/repositories/")):
            new = await self._repo_at(path)
            if self._policy.allowed:
                self._policy.redirected_repo(new, request.what)
            if old and new and new.lower() != old.lower():
                if await self._is_gone(old, request):
                    self.renamed[old.lower()] = new
                else:
                    instead = f"was moved: this is `{new}{_REPO.sub('', path)}`"
        # GitHub's redirects after a rename come without the query.
        params = dict(parse_qsl(urlsplit(target).query)) or request.params
        return replace(request, path=path, params=params, instead=instead)

    async def _is_gone(self, repo: str, request: Request) -> bool:
        """Whether the repository itself has another name, by the redirect of `request`; an issue moves alone, too."""
        if (path := f"/repos/{repo}") == request.path:
            return True
        try:
            return (await self._once(Request("GET", path, request.what, True, follows=False))).status >= 300
        except (NotFound, Refused):
            return False

    async def _repo_at(self, path: str) -> str:
        """The `owner/name` of the repository that the API's `path` belongs to; empty if it belongs to none."""
        if found := re.fullmatch(r"/repositories/(\d+)(?:/.*)?", path):
            if found[1] not in self._full_names:
                request = Request("GET", f"/repositories/{found[1]}", "the repository", True, follows=False)
                reply = await self._once(request)
                self._full_names[found[1]] = str(json.loads(reply.body)["full_name"]) if reply.status < 300 else ""
            return self._full_names[found[1]]
        return _repo_in(path)

    async def _exchange(self, request: Request) -> Reply:
        """Send `request` once; whatever status comes back is the reply."""
        auth = await self.credentials.current()
        headers = {"Accept": request.accept, "X-GitHub-Api-Version": VERSION, **request.headers}
        if auth is not None:
            headers["Authorization"] = f"{auth.token_type} {auth.token}"
        content = None
        if request.body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(request.body).encode()
        try:
            with anyio.fail_after(self._settings.timeout):
                raw = [(name.encode(), value.encode()) for name, value in headers.items()]
                http = self._connections.opened()
                stream = http.stream(request.verb, self._url(request), headers=raw, content=content)
                async with stream as answer:
                    body = await _body(answer, request.max_bytes)
        except (TimeoutError, httpx2.TimeoutException):
            raise Unavailable(f"GitHub took too long over {request.what}.", "Try again in a moment.") from None
        except httpx2.InvalidURL:
            raise TooLarge(f"GitHub takes no request of that size for {request.what}.", "Send less.") from None
        except httpx2.HTTPError as error:
            why = why_unreached(self._policy.api_url.base, error)
            fix = "The operator can look at --api-url." if "certificate" in why else "Try again in a moment."
            raise Unavailable(f"GitHub can't be reached for {request.what}: {why}.", fix) from None
        if answer.status_code == 401:
            self.credentials.rejected(auth)
        # Whoever echoes the token, or has it in a file: no answer shows it.
        token = auth.token.encode() if auth is not None else b""
        names = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in answer.headers.raw}
        body = body.replace(token, b"[token]") if token else body
        return Reply(answer.status_code, names, body, request.instead)

    def _url(self, request: Request) -> str:
        params = sorted((name, _plain(value)) for name, value in request.params.items() if value is not None)
        place = self._policy.api_url
        where = place.graphql if request.path == GRAPHQL else f"{place.base}{request.path}"
        return f"{where}?{urlencode(params)}" if params else where


def _repo_in(path: str) -> str:
    """The `owner/name` in the API's `path`; empty if it has none."""
    found = re.fullmatch(r"/repos/([^/]+/[^/]+)(?:/.*)?", path)
    return found[1] if found else ""


async def _body(answer: httpx2.Response, max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in answer.aiter_bytes():
        body += chunk
        if len(body) > max_bytes:
            raise TooLarge(f"GitHub's answer has more than `{max_bytes:,}` bytes.", "Ask for less at once.")
    return bytes(body)


def _trusted_certificates() -> ssl.SSLContext | bool:
    """What the variables of the requests library name, which many set for an authority of their own; else httpx2's."""
    bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or ""
    usable = os.path.isfile(bundle) and "SSL_CERT_FILE" not in os.environ
    return ssl.create_default_context(cafile=bundle) if usable else True


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
