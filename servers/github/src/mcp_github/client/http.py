"""The one client of GitHub: httpx2 sends, and our own policy decides what to retry, wait for and follow.

The library repeats, follows or reads nothing beyond a limit: a write is sent once, a redirect is checked before
anything is sent to its target, and a body is cut off at the requested size.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import anyio
import httpx2

from mcp_batteries.errors import Conflict, NotFound, Problem, Refused, TooLarge, Unavailable
from mcp_batteries.remote.connection_errors import explain_connection_error
from mcp_batteries.remote.http_client import open_http_client
from mcp_github.call_context import current_call
from mcp_github.client import errors
from mcp_github.client.credentials import Credentials, RequestSigner, TokenSettings
from mcp_github.client.device_login import LoginSettings
from mcp_github.client.rate_limits import RateLimits
from mcp_github.client.repository_names import RepositoryNames
from mcp_github.client.response import API_VERSION, Response
from mcp_github.policy import DownloadUrl, Policy

__all__ = ["GRAPHQL", "JSON_TYPE", "MAYBE_DONE", "Client", "ClientSettings", "ConnectionPool", "Request"]

# The path of GraphQL requests; the policy knows where that is on each kind of server.
GRAPHQL = "/graphql"
JSON_TYPE = "application/vnd.github+json"
# The next move after a write that ended without an answer.
MAYBE_DONE = "It may have been done all the same: look before you try again."

# A write that has less of a call's time than this share is not begun: it could end without an answer, and nobody would
# know what became of it.
_LEAST_SHARE_OF_A_WRITE = 0.25
_MAX_TRIES = 3
_MAX_REDIRECTS = 3
# How a limit refuses; None is one that was known before anything was sent.
_REFUSED_BY_LIMIT = (None, 403, 429)
# A limit that ends sooner is waited for.
_MAX_WAIT_SECONDS = 5.0
_MAX_BODY_BYTES = 8_000_000
_REPO_PATH = re.compile(r"/repositories/[0-9]+|/repos/[^/]+/[^/]+")
_NUMBER_IN_PATH = re.compile(rf"(?:{_REPO_PATH.pattern})/(?:issues|pulls)/([0-9]+)(?:/.*)?")


class ClientSettings(TokenSettings, LoginSettings, Protocol):
    """The settings that the client needs."""

    @property
    def workers(self) -> int: ...
    @property
    def write_interval(self) -> int: ...


@dataclass(frozen=True)
class Request:
    """One request.

    Attributes:
        path: below the API's base, made of trusted parts only.
        description: what it asks for, in words for messages.
        is_read: whether it may be repeated and may follow a redirect.
        follows_redirects: whether a redirect is followed; else the redirect is the response.
        redirect_note: see `Response`.
    """

    method: str
    path: str
    description: str
    is_read: bool
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    body: Any = None
    accept: str = JSON_TYPE
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    max_bytes: int = _MAX_BODY_BYTES
    follows_redirects: bool = True
    redirect_note: str = ""

    @property
    def rate_limit(self) -> str:
        """The rate limit that the request counts against."""
        if self.path == "/search/code":
            return "code_search"
        if self.path.startswith("/search/"):
            return "search"
        if self.path == GRAPHQL:
            return "graphql"
        return "core"


class ConnectionPool:
    """The connections to GitHub, opened when they are first needed. They know no token: each request brings its own."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._client: httpx2.AsyncClient | None = None

    async def aclose(self) -> None:
        client = self._client
        self._client = None
        if client is not None:
            await client.aclose()

    def get_client(self) -> httpx2.AsyncClient:
        """Return the one client of the library, made at the first call."""
        if self._client is None:
            self._client = open_http_client(
                headers={"User-Agent": "mcp-github"},
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
                timeout=self._settings.timeout,
                follow_redirects=False,
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=self._settings.workers),
            )
        return self._client


class Client:
    """Requests to GitHub as one identity: the server's, or that of a caller with a token of their own.

    Args:
        credentials: of that identity.
        retry_seconds: before the second try; the third waits three times that.

    Attributes:
        renamed: the name that a repository has by now, by the one that was asked for.
    """

    def __init__(
        self, settings: ClientSettings, policy: Policy, connections: ConnectionPool, credentials: Credentials, *,
        retry_seconds: float = 0.4,
    ) -> None:  # fmt: skip
        self.credentials = credentials
        self.limits = RateLimits(settings.write_interval / 1000)
        self.renamed = RepositoryNames()
        self._settings = settings
        self._policy = policy
        self._connections = connections
        self._retry_seconds = retry_seconds
        self._request_slots = anyio.CapacityLimiter(settings.workers)
        self._names_by_number = RepositoryNames()

    async def send(self, request: Request) -> Response:
        """Return the response to `request`, of a status below 400.

        Raises:
            Problem: GitHub refused or failed, a limit is in force, or a redirect leads where it may not.
        """
        old_name = _repo_of_path(request.path)
        new_name = self.renamed.get(old_name)
        if new_name:
            # The new name was found out and judged at an earlier request.
            subpath = request.path.removeprefix(f"/repos/{old_name}")
            request = replace(request, path=f"/repos/{new_name}{subpath}")
        if request.is_read:
            return await self._send_read(request)
        return await self._send_write(request)

    async def download(
        self, url: DownloadUrl, description: str, *, max_bytes: int, feed: Callable[[bytes], bool]
    ) -> None:
        """Hand the bytes at `url` to `feed` until it returns True or there are no more. They go without the token."""
        with self._take_time(description):
            await self._download(url, description, max_bytes=max_bytes, feed=feed)

    async def _download(
        self, url: DownloadUrl, description: str, *, max_bytes: int, feed: Callable[[bytes], bool]
    ) -> None:
        size = 0
        try:
            async with self._connections.get_client().stream("GET", url.url) as stream:
                if stream.status_code in (404, 410):
                    raise NotFound(f"GitHub has no {description} any more.", "They are kept for some weeks only.")
                if stream.status_code != 200:
                    raise Unavailable(
                        f"The download of {description} failed (status `{stream.status_code}`).",
                        "Try again in a moment.",
                    )
                async for chunk in stream.aiter_bytes():
                    size += len(chunk)
                    if size > max_bytes:
                        raise TooLarge(f"There are more than `{max_bytes:,}` bytes of {description}.")
                    if feed(chunk):
                        return
        except (httpx2.HTTPError, httpx2.InvalidURL):
            raise Unavailable(f"The download of {description} broke off.", "Try again in a moment.") from None

    async def _send_read(self, request: Request) -> Response:
        """Send a read, again after failures that may pass and limits that end soon, as long as there is time."""
        with self._take_time(request.description):
            for tries_before in range(_MAX_TRIES):
                try:
                    return await self._follow(request)
                except Unavailable as problem:
                    # A limit says when it ends; anything else may pass.
                    wait = problem.retry_after
                    if wait is None:
                        wait = self._retry_seconds * 3**tries_before * (0.5 + random.random())
                    is_last_try = tries_before == _MAX_TRIES - 1
                    if is_last_try or wait > _wait_limit():
                        raise
                await anyio.sleep(wait)
        raise AssertionError("The last try returns or raises.")

    async def _send_write(self, request: Request) -> Response:
        """Send a write once: of one that failed, nobody knows what became of it."""
        self._policy.require_token(await self.credentials.get_signer() is not None)
        async with self.limits.write_slot():
            if current_call().github_seconds > self._settings.timeout * (1 - _LEAST_SHARE_OF_A_WRITE):
                limit = f"`{self._settings.timeout} s` of a call"
                raise Unavailable(
                    f"Too little is left of the {limit} to change {request.description}; it was not changed.",
                    "Ask for the change alone; the operator can raise --timeout.",
                )
            try:
                with self._take_time(request.description):
                    return await self._send_again_after_limit(request)
            except Unavailable as problem:
                if problem.retry_after is not None and problem.status in _REFUSED_BY_LIMIT:
                    raise
                raise Unavailable(problem.failure, MAYBE_DONE) from None

    @contextmanager
    def _take_time(self, description: str) -> Generator[None]:
        """Give the block what is left of the time that the call may wait for GitHub.

        Raises:
            Unavailable: that time is over.
        """
        call = current_call()
        start = anyio.current_time()
        try:
            with anyio.move_on_after(self._settings.timeout - call.github_seconds):
                yield
                return
        finally:
            call.github_seconds += anyio.current_time() - start
        raise self._out_of_time(description)

    def _out_of_time(self, description: str) -> Unavailable:
        return Unavailable(
            f"GitHub took longer than `{self._settings.timeout} s`, the time of a call, over {description}.",
            "Try again in a moment, or ask for less; the operator can raise --timeout.",
        )

    async def _send_again_after_limit(self, request: Request) -> Response:
        """Send a write, and once more after a limit that ends soon: what a limit refused was not done."""
        try:
            return await self._follow(request)
        except Unavailable as problem:
            was_refused = problem.status in _REFUSED_BY_LIMIT
            if problem.retry_after is None or problem.retry_after > _wait_limit() or not was_refused:
                raise
            await anyio.sleep(problem.retry_after)
        return await self._follow(request)

    async def _follow(self, request: Request) -> Response:
        """Send `request` to where its redirects lead, and raise for a status that is a failure."""
        for _ in range(_MAX_REDIRECTS + 1):
            self.limits.check(request.rate_limit)
            async with self._request_slots:
                response = await self._exchange(request)
            if response.status >= 400:
                has_token = self.credentials.source != ""
                raise errors.problem_of(response, request.description, self.limits, has_token=has_token)
            if response.status == 202 and request.is_read:
                raise Unavailable(
                    f"GitHub is still working on {request.description}.", "Try again in 3 s.", retry_after=3.0
                )
            if response.status < 300 or response.status == 304 or not request.follows_redirects:
                return response
            request = await self._redirect(request, response)
        # Not `Unavailable`: another try would go round once more.
        raise Conflict(f"GitHub redirects {request.description} in circles.", "A person can look at it on GitHub.")

    async def _redirect(self, request: Request, response: Response) -> Request:
        """Return the request that the redirect in `response` asks for, once its target has been judged."""
        target = urljoin(f"{self._policy.api_url.base}{request.path}", response.headers.get("location", ""))
        if not request.is_read:
            raise await self._redirected_write(request, target)
        path = self._policy.api_url.redirect(target, request.description)
        note = await self._follow_move(request, path)
        # GitHub's redirects after a rename come without the query.
        params = dict(parse_qsl(urlsplit(target).query)) or request.params
        return replace(request, path=path, params=params, redirect_note=note)

    async def _redirected_write(self, request: Request, target: str) -> Conflict:
        """Return the problem of a write that GitHub redirects, with the new name of its repository if it is served."""
        fix = "Look the repository up and use its new name."
        try:
            path = self._policy.api_url.redirect(target, request.description)
            new_name = await self._find_repo_name(path)
            if self._policy.allow_list:
                self._policy.require_redirect_served(new_name, request.description)
        except Problem:
            pass
        else:
            fix = _name_new_place(request.path, new_name, path) or fix
        return Conflict(
            f"GitHub redirects this write to {request.description}: it was renamed or moved. Nothing was changed.", fix
        )

    async def _follow_move(self, request: Request, path: str) -> str:
        """Return what the client is told of a redirect to `path`, and remember the new name of a repository.

        Raises:
            Refused: it leads to a repository that is not served.
        """
        note = request.redirect_note
        if path.endswith("/public_members"):
            note = "shows this token only its public members"
        old_name = _repo_of_path(request.path)
        if not self._policy.allow_list and not (old_name and path.startswith("/repositories/")):
            return note
        new_name = await self._find_repo_name(path)
        if self._policy.allow_list:
            self._policy.require_redirect_served(new_name, request.description)
        if not old_name or not new_name or new_name.lower() == old_name.lower():
            return note
        if await self._is_repo_renamed(old_name, request):
            self.renamed.put(old_name, new_name)
            return note
        return f"was moved: this is `{new_name}{_REPO_PATH.sub('', path)}`"

    async def _is_repo_renamed(self, repo: str, request: Request) -> bool:
        """Return whether the repository itself has another name, and not only an issue of it moved."""
        path = f"/repos/{repo}"
        if path == request.path:
            return True
        probe = Request("GET", path, request.description, True, follows_redirects=False)
        try:
            response = await self._follow(probe)
        except (NotFound, Refused):
            return False
        return response.status >= 300

    async def _find_repo_name(self, path: str) -> str:
        """Return the `owner/name` of the repository that the API's `path` belongs to; empty if it belongs to none."""
        match = re.fullmatch(r"/repositories/(\d+)(?:/.*)?", path)
        if match is None:
            return _repo_of_path(path)
        known_name = self._names_by_number.get(match[1])
        if known_name is not None:
            return known_name
        request = Request("GET", f"/repositories/{match[1]}", "the repository", True, follows_redirects=False)
        response = await self._follow(request)
        if response.status >= 300:
            return ""
        full_name = str(json.loads(response.body)["full_name"])
        self._names_by_number.put(match[1], full_name)
        return full_name

    async def _exchange(self, request: Request) -> Response:
        """Send `request` once; whatever status comes back is the response."""
        signer = await self.credentials.get_signer()
        headers, content = _headers_and_content(request, signer)
        try:
            client = self._connections.get_client()
            async with client.stream(request.method, self._url_of(request), headers=headers, content=content) as stream:
                body = await _read_body(stream, request.max_bytes)
        except httpx2.TimeoutException:
            raise Unavailable(f"GitHub took too long over {request.description}.", "Try again in a moment.") from None
        except httpx2.InvalidURL:
            raise TooLarge(f"GitHub takes no request of that size for {request.description}.", "Send less.") from None
        except httpx2.HTTPError as error:
            reason = explain_connection_error(self._policy.api_url.base, error)
            fix = "Try again in a moment; if that ends alike, the operator can check network, proxy and --api-url."
            raise Unavailable(f"GitHub can't be reached for {request.description}: {reason}.", fix) from None
        if stream.status_code == 401:
            self.credentials.reject(signer)
        if signer is not None and signer.token:
            # Whoever echoes the token, or has it in a file: no answer shows it.
            body = body.replace(signer.token.encode(), b"[token]")
        response_headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in stream.headers.raw
        }
        return Response(stream.status_code, response_headers, body, request.redirect_note)

    def _url_of(self, request: Request) -> str:
        """Return the whole address of `request`, its parameters in a fixed order."""
        api_url = self._policy.api_url
        url = f"{api_url.base}{request.path}"
        if request.path == GRAPHQL:
            url = api_url.graphql
        params = sorted((name, _to_text(value)) for name, value in request.params.items() if value is not None)
        if not params:
            return url
        return f"{url}?{urlencode(params)}"


def _wait_limit() -> float:
    """Return for how many seconds a limit or another try is waited for: never beyond the time of the request."""
    return min(_MAX_WAIT_SECONDS, anyio.current_effective_deadline() - anyio.current_time())


def _headers_and_content(
    request: Request, signer: RequestSigner | None
) -> tuple[list[tuple[bytes, bytes]], bytes | None]:
    headers = {"Accept": request.accept, "X-GitHub-Api-Version": API_VERSION, **request.headers}
    if signer is not None:
        headers["Authorization"] = f"{signer.token_type} {signer.token}"
    content = None
    if request.body is not None:
        headers["Content-Type"] = "application/json"
        content = json.dumps(request.body).encode()
    return [(name.encode(), value.encode()) for name, value in headers.items()], content


def _name_new_place(old_path: str, new_repo: str, new_path: str) -> str:
    """Return the next move after a write to `old_path` that belongs to `new_path` now; empty if nobody knows.

    An issue that was moved to another repository has another number there.
    """
    if not new_repo or new_repo.lower() == _repo_of_path(old_path).lower():
        return ""
    old_number = _number_of_path(old_path)
    new_number = _number_of_path(new_path)
    if new_number == old_number:
        return f"Call again with `{new_repo}`, its name by now."
    if not new_number:
        return f"It is in `{new_repo}` by now, under another number: look there."
    return f"It is #{new_number} of `{new_repo}` by now: call again with both, if that one is meant."


def _repo_of_path(path: str) -> str:
    """Return the `owner/name` in the API's `path`; empty if it has none."""
    match = re.fullmatch(r"/repos/([^/]+/[^/]+)(?:/.*)?", path)
    if match is None:
        return ""
    return match[1]


def _number_of_path(path: str) -> str:
    """Return the number of the issue or pull request in the API's `path`; empty if it has none."""
    match = _NUMBER_IN_PATH.fullmatch(path)
    if match is None:
        return ""
    return match[1]


async def _read_body(stream: httpx2.Response, max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in stream.aiter_bytes():
        body += chunk
        if len(body) > max_bytes:
            raise TooLarge(f"GitHub's answer has more than `{max_bytes:,}` bytes.", "Ask for less at once.")
    return bytes(body)


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
