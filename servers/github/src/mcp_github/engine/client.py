"""One PyGithub object per worker, and our own policy around each request.

A PyGithub object shared between threads can hand one call another's answer (its connection keeps verb and URL in
attributes between two steps), so each is used by one worker at a time. Its own retries repeat writes and its limits
sleep: both are switched off. What is tried again, waited for or followed is decided here.
"""

from __future__ import annotations

import json
import logging
import random
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qsl, urljoin, urlsplit

import anyio

from mcp_batteries.errors import Conflict, Problem, Refused, Unavailable
from mcp_batteries.limits import Stop, in_thread
from mcp_github.engine import failures
from mcp_github.engine.gate import Gate
from mcp_github.engine.response import VERSION, Reply
from mcp_github.engine.tokens import Credentials, TokenSettings
from mcp_github.policy import Policy

if TYPE_CHECKING:
    from github import Github

    from mcp_github.engine.connection import Connection

__all__ = ["Client", "ClientSettings", "Request"]

_TRIES = 3
_REDIRECTS = 3
_MAX_BYTES = 8_000_000
_JSON = "application/vnd.github+json"


class ClientSettings(TokenSettings, Protocol):
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

    @property
    def resource(self) -> str:
        """The rate limit it counts against."""
        if self.path.startswith("/search/"):
            return "code_search" if self.path == "/search/code" else "search"
        return "graphql" if self.path == "/graphql" else "core"


class Client:
    """Requests to GitHub as the one identity of this server.

    Args:
        pause: seconds before the second try; the third waits three times that.
    """

    def __init__(self, settings: ClientSettings, policy: Policy, *, pause: float = 0.4) -> None:
        self._settings, self._policy, self._pause = settings, policy, pause
        self.credentials = Credentials(settings, policy.api)
        self.gate = Gate(settings.write_interval / 1000)
        self._workers = anyio.CapacityLimiter(settings.workers)
        self._idle: list[_Worker] = []
        self._lock = threading.Lock()

    async def send(self, request: Request) -> Reply:
        """The reply to `request`, of a status below 400.

        Raises:
            Problem: GitHub refused or failed, a limit is in force, or a redirect leads where it may not.
        """
        if request.reads:
            return await self._with_tries(request)
        async with self.gate.write():
            try:
                return await self._once(request)
            except Unavailable as problem:
                if problem.retry_after is not None:
                    raise
                # Sent once, and nobody knows what became of it.
                raise Unavailable(
                    problem.what, "It may have been done all the same: look before you try again."
                ) from None

    async def _with_tries(self, request: Request) -> Reply:
        with anyio.move_on_after(self._settings.timeout * 1.5):
            for left in reversed(range(_TRIES)):
                try:
                    return await self._once(request)
                except Unavailable as problem:
                    # A limit says when; anything else may pass.
                    if not left or problem.retry_after is not None:
                        raise
                await anyio.sleep(self._pause * 3 ** (_TRIES - 1 - left) * (0.5 + random.random()))
        raise Unavailable(f"GitHub did not answer for {request.what} in time.", "Try again in a moment.")

    async def _once(self, request: Request) -> Reply:
        for _ in range(_REDIRECTS + 1):
            self.gate.pass_or_raise(request.resource)
            async with self._workers:
                reply = await in_thread(lambda stop, request=request: self._blocking(request, stop))
            if reply.status >= 400:
                token = self.credentials.source != ""
                raise failures.problem(reply, request.what, self.gate, token=token)
            if reply.status == 202 and request.reads:
                raise Unavailable(f"GitHub is still working on {request.what}.", "Try again in 3 s.", retry_after=3.0)
            if reply.status < 300 or reply.status == 304:
                return reply
            if request.accept == "location":
                return reply
            request = await self._redirected(request, reply)
        raise Unavailable(f"GitHub redirects {request.what} in circles.")

    async def _redirected(self, request: Request, reply: Reply) -> Request:
        if not request.reads:
            raise Conflict(
                f"GitHub redirects this write to {request.what}: it was renamed or moved. Nothing was changed.",
                "Look the repository up and use its new name.",
            )
        base = urlsplit(self._policy.api.base)
        target = urlsplit(urljoin(f"{self._policy.api.base}{request.path}", reply.headers.get("location", "")))
        if (target.scheme, target.netloc.lower()) != (base.scheme, base.netloc.lower()):
            raise Refused(f"GitHub redirects {request.what} to another host, where the token is not sent.")
        if not target.path.startswith(f"{base.path}/"):
            raise Refused(f"GitHub redirects {request.what} to where there is no API.")
        path = target.path[len(base.path) :]
        if ".." in path.split("/"):
            raise Refused(f"GitHub redirects {request.what} to where there is no API.")
        if self._policy.allowed:
            await self._check_moved(path, request.what)
        # GitHub's redirects after a rename come without the query.
        params = dict(parse_qsl(target.query)) or request.params
        return replace(request, path=path, params=params)

    async def _check_moved(self, path: str, what: str) -> None:
        owner, name = "", ""
        if found := re.fullmatch(r"/repositories/(\d+)(?:/.*)?", path):
            reply = await self._once(Request("GET", f"/repositories/{found[1]}", what, True, accept="location"))
            if reply.status < 300:
                full = json.loads(reply.body).get("full_name", "")
                owner, _, name = str(full).partition("/")
        elif found := re.fullmatch(r"/repos/([^/]+)/([^/]+)(?:/.*)?", path):
            owner, name = found[1], found[2]
        if not name or not self._policy.permits(owner, name):
            raise Refused(f"GitHub redirects {what} to a repository that is not served here.")

    def _blocking(self, request: Request, stop: Stop) -> Reply:
        worker = self._take()
        whole = False
        try:
            reply = worker.exchange(request, stop)
            whole = True
            return reply
        finally:
            # What broke off may have left half an answer on the connection.
            if whole:
                with self._lock:
                    self._idle.append(worker)
            else:
                worker.close()

    def _take(self) -> _Worker:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return _Worker(self._policy.api.base, self.credentials, self._settings.timeout)

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, *_: object) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.close()


class _Worker:
    """A PyGithub object and the connection it sends through; for one thread at a time."""

    def __init__(self, base: str, credentials: Credentials, seconds: float) -> None:
        # Half a second of imports, paid by the first call and not by the start.
        from github import Github

        from mcp_github.engine.connection import Connection

        quiet = logging.getLogger("github")
        quiet.handlers.clear()
        quiet.setLevel(logging.WARNING)
        self._credentials = credentials
        self.github: Github = Github(
            auth=credentials.auth(), base_url=base, timeout=int(seconds), retry=None, lazy=True,
            user_agent="mcp-github", seconds_between_requests=0, seconds_between_writes=0,
        )  # fmt: skip
        parts = urlsplit(base)
        self.connection: Connection = Connection(f"{parts.scheme}://{parts.netloc}", seconds=seconds)

    def exchange(self, request: Request, stop: Stop) -> Reply:
        import requests

        from mcp_github.engine.connection import Early, Stalled

        stop.check()
        auth = self._credentials.auth()
        connection = self.connection
        connection.max_bytes, connection.check, connection.last = request.max_bytes, stop.check, None
        accept = _JSON if request.accept == "location" else request.accept
        headers = {"Accept": accept, "X-GitHub-Api-Version": VERSION, **request.headers}
        params = {name: _plain(value) for name, value in request.params.items() if value is not None}
        try:
            requester = self.github.requester
            path = requester.graphql_url if request.path == "/graphql" else request.path
            requester.requestJson(request.verb, path, params, headers, request.body, cnx=connection)  # pyright: ignore
        except Early as early:
            return early.reply
        except (requests.Timeout, Stalled):
            raise Unavailable(f"GitHub took too long over {request.what}.", "Try again in a moment.") from None
        except requests.exceptions.SSLError:
            raise Unavailable(
                "GitHub's certificate can't be verified.", "The operator can look at --api-url."
            ) from None
        except (requests.RequestException, OSError):
            raise Unavailable(
                f"The connection to GitHub broke on the way to {request.what}.", "Try again in a moment."
            ) from None
        except Problem:
            raise
        reply = connection.last
        assert reply is not None
        # Whoever echoes the token, or has it in a file: no answer shows it.
        token = auth.token.encode() if auth is not None else b""
        return replace(reply, body=reply.body.replace(token, b"[token]")) if token and token in reply.body else reply

    def close(self) -> None:
        self.connection.close()
        self.github.close()


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
