"""Requests as the engine makes them: JSON with nothing invisible in it, pages, GraphQL, raw bytes.

Every answer is recorded as seen for flow control, unless the caller says that nobody sees it.
"""

from __future__ import annotations

import json
import logging
import re
import traceback
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

from mcp_batteries.errors import Conflict, NotFound, Problem, Unavailable
from mcp_github.call_context import Caller, EachCaller
from mcp_github.client.credentials import Credentials
from mcp_github.client.device_login import DeviceLogin
from mcp_github.client.http import GRAPHQL, Client, ClientSettings, Connections, Request
from mcp_github.policy import Policy, Repo, WriteRepo
from mcp_github.safety.lockdown import hidden, is_outsiders
from mcp_github.safety.scrub import scrub
from mcp_github.safety.taint import Flow

__all__ = ["Answer", "Api", "after", "from_cache", "paging"]

from_cache: ContextVar[bool] = ContextVar("from_cache", default=False)
"""Set while a resource is read: what its subscriber is told of is what they then get, without another request."""

_notes: ContextVar[list[str] | None] = ContextVar("notes", default=None)
_wrote: ContextVar[bool] = ContextVar("wrote", default=False)
"""Whether a write of this message was answered with success."""

_MAYBE_DONE = "It may have been done all the same: look before you try again."

# An exception that passed through one of these came of an answer that nobody foresaw.
_ANSWER_ROOMS = tuple(f"mcp_github.{room}." for room in ("client", "listing", "requests", "safety", "watch"))

logger = logging.getLogger(__name__)

_Kept = Callable[[str, Mapping[str, Any], str], Awaitable[bytes | None]]

_PAGING = ("page", "after", "before", "cursor", "since")
_CACHED, _CACHED_BYTES = 200, 300_000


@dataclass(frozen=True)
class Answer:
    """What GitHub answered, scrubbed.

    Attributes:
        removed: characters taken out because nobody could have seen them.
        following: the parameters of the next page; empty on the last.
        pages: how many there are, where GitHub tells.
    """

    data: Any
    removed: int = 0
    following: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def pages(self) -> int | None:
        last = _linked(self.headers.get("link", ""), "last").get("page", "")
        return int(last) if last.isdecimal() else None


async def _nothing_kept(path: str, params: Mapping[str, Any], accept: str) -> bytes | None:
    return None


@dataclass
class _Side:
    """What one identity has of its own.

    Attributes:
        kept: answers that may still be true, with their tags.
        followed: see `Api.follows`.
    """

    client: Client
    kept: OrderedDict[str, tuple[str, Answer]] = field(default_factory=OrderedDict[str, "tuple[str, Answer]"])
    followed: _Kept = _nothing_kept


class Api:
    """What the engine's parts share: the client, flow control, answers that may still be true."""

    def __init__(self, settings: ClientSettings, policy: Policy, *, alone: bool = True) -> None:
        self.policy = policy
        self.flow = Flow(policy, self._is_public, alone=alone)
        self._settings, self._connections = settings, Connections(settings)
        self.login = DeviceLogin(settings, policy.api_url, self._connections) if settings.auth == "login" else None
        """Where people log in, if they do."""
        self._sides = EachCaller(lambda who: _Side(self._client_of(who)))

    @property
    def client(self) -> Client:
        """The client of whose call is answered."""
        return self._sides.own.client

    def follows(self, kept: _Kept) -> None:
        """Have answers to the caller taken from what is looked at for them anyway, with `kept`.

        It gives the body of what is followed, of a path, its parameters and media type; None for what nobody follows.
        """
        self._sides.own.followed = kept

    async def whose(self, token: str) -> Answer:
        """Who `token` belongs to; nothing of it is remembered.

        Raises:
            Problem: GitHub takes no such token, or can't say now.
        """
        reply = await self._client_of(Caller(token)).send(Request("GET", "/user", "the owner of a token", True))
        return Answer(_parsed(reply.body, "the owner of a token"), headers=reply.headers)

    def _client_of(self, who: Caller) -> Client:
        credentials = Credentials(self._settings, self.policy.api_url, sent=who.token or None, login=self.login)
        return Client(self._settings, self.policy, self._connections, credentials)

    async def __aenter__(self) -> Api:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connections.aclose()

    async def get(
        self, path: str, what: str, params: Mapping[str, Any] | None = None, *, repo: Repo | None = None,
        quiet: bool = False, accept: str = "application/vnd.github+json", hint: str = "",
    ) -> Answer:  # fmt: skip
        """What is at `path`. An unchanged answer costs GitHub no body and no limit.

        Args:
            repo: whose text it is, for flow control and redirects.
            quiet: nobody will be shown it.
            hint: what to try if it is not there.
        """
        if repo is not None and not quiet:
            self.flow.saw(repo.key)
        side = self._sides.own
        if from_cache.get() and (body := await side.followed(path, params or {}, accept)) is not None:
            data, removed = self._shown(_parsed(body, what))
            return Answer(data, removed)
        key = json.dumps([path, params, accept], sort_keys=True)
        kept = side.kept.get(key)
        headers = {"If-None-Match": kept[0]} if kept else {}
        request = Request("GET", path, what, True, params=params or {}, accept=accept, headers=headers)
        try:
            reply = await side.client.send(request)
        except NotFound as problem:
            raise NotFound(problem.what, problem.fix or hint, status=problem.status) from None
        self._tell_rename(repo, what, reply.instead)
        if reply.status == 304 and kept is not None:
            side.kept.move_to_end(key)
            return kept[1]
        data, removed = self._shown(_parsed(reply.body, what))
        answer = Answer(data, removed, _linked(reply.headers.get("link", ""), "next"), reply.headers)
        if (etag := reply.headers.get("etag")) and len(reply.body) <= _CACHED_BYTES:
            side.kept[key] = (etag, answer)
            if len(side.kept) > _CACHED:
                side.kept.popitem(last=False)
        return answer

    async def write(
        self, verb: str, path: str, what: str, body: Any = None, *, repo: WriteRepo | None = None
    ) -> Answer:
        """Have something changed. It is sent once, whatever comes of it."""
        reply = await self.client.send(Request(verb, path, what, False, body=body))
        self._tell_rename(repo)
        _wrote.set(True)
        parsed = _parsed(reply.body, what, wrote=True) if reply.body.strip() else None
        data, removed = self._shown(parsed)
        return Answer(data, removed, headers=reply.headers)

    async def graphql(
        self, query: str, variables: Mapping[str, Any], what: str, *, repo: Repo | None = None,
        writes: bool = False, quiet: bool = False,
    ) -> Answer:  # fmt: skip
        """The data a GraphQL query or, with `writes`, a mutation gives."""
        if repo is not None and not (quiet or writes):
            self.flow.saw(repo.key)
        body = {"query": query, "variables": dict(variables)}
        reply = await self.client.send(Request("POST", GRAPHQL, what, not writes, body=body))
        if writes:
            _wrote.set(True)
        parsed = _parsed(reply.body, what)
        if not isinstance(parsed, dict):
            raise Unavailable(f"GitHub's answer for {what} can't be understood.", "Try again in a moment.")
        parsed = cast("dict[str, Any]", parsed)
        data = parsed.get("data")
        errors = cast("list[Any]", parsed.get("errors") or [])
        if data is None and not errors:
            # Also limits are told so, with status 200.
            if not (said := parsed.get("message")):
                fix = _MAYBE_DONE if writes else "Try again in a moment."
                raise Unavailable(f"GitHub sent no data for {what}.", fix)
            errors = [{"message": said}]
        if errors and (not isinstance(data, dict) or _misses_all(cast("dict[str, Any]", data), errors)):
            problem = errors.graphql_problem(errors, reply, what, self.client.limits)
            if writes and isinstance(problem, Unavailable) and problem.retry_after is None:
                raise Unavailable(problem.what, _MAYBE_DONE)
            raise problem
        if writes and not _did(data):
            raise Conflict(
                f"GitHub answered without an error and changed nothing: {what}.",
                "See what is there now, and whether what you named is a part of it.",
            )
        if errors and not quiet:
            self._tell(f"GitHub leaves out a part of {what}.{errors.graphql_words(errors)}")
        data, removed = self._shown(_without_gaps(data))
        return Answer(data, removed, headers=reply.headers)

    async def raw(
        self, path: str, what: str, accept: str, params: Mapping[str, Any] | None = None, *, repo: Repo,
        max_bytes: int = 8_000_000, quiet: bool = False,
    ) -> bytes:  # fmt: skip
        """The bytes at `path`, as they are."""
        if not quiet:
            self.flow.saw(repo.key)
        if from_cache.get() and (body := await self._sides.own.followed(path, params or {}, accept)) is not None:
            return body
        request = Request("GET", path, what, True, params=params or {}, accept=accept, max_bytes=max_bytes)
        return (await self.client.send(request)).body

    async def download(
        self, path: str, what: str, *, repo: Repo, max_bytes: int, take: Callable[[bytes], bool]
    ) -> None:  # fmt: skip
        """Hand the bytes `path` redirects to, on whatever host, to `take`, until it says True or there are no more.

        They are fetched without the token.

        Raises:
            Refused: the other host is not one GitHub would send anybody to.
        """
        self.flow.saw(repo.key)
        reply = await self.client.send(Request("GET", path, what, True, max_bytes=max_bytes, follows=False))
        if reply.status < 300:
            take(reply.body)
            return
        url = self.policy.api_url.download(reply.headers.get("location", ""), what)
        await self.client.download(url, what, max_bytes=max_bytes, take=take)

    async def meant_login(self, name: str) -> str:
        """`name` without the sign before it; `@me` is the user of the token, where GitHub itself takes logins only."""
        if name.lower() != "@me":
            return name.removeprefix("@")
        return str((await self.get("/user", "the user of this token", quiet=True)).data.get("login", ""))

    @contextmanager
    def told(self) -> Generator[list[str]]:
        """What the caller of one message has to be told besides its answer."""
        notes: list[str] = []
        before, wrote = _notes.set(notes), _wrote.set(False)
        try:
            yield notes
        finally:
            _notes.reset(before)
            _wrote.reset(wrote)

    def _shown(self, data: Any) -> tuple[Any, int]:
        """What is shown of an answer, and how many characters nobody could have seen were taken out of it."""
        data, removed = scrub(data)
        return (hidden(data) if self.policy.lockdown else data), removed

    async def require_insiders(self, path: str, what: str) -> None:
        """Raise `Refused` with `--lockdown` for the changes of the pull request at `path` if it is an outsider's."""
        if self.policy.lockdown:
            found = await self.get(path, what, quiet=True)
            self.policy.require_insider(what, outsider=is_outsiders(found.data))

    def _tell_rename(self, repo: Repo | None, what: str = "", instead: str = "") -> None:
        if instead:
            note = f"{what[:1].upper()}{what[1:]} {instead}."
        elif repo is not None and repo.key in self.client.renamed:
            note = f"`{repo.full}` is `{self.client.renamed[repo.key]}` by now: use that name."
        else:
            return
        self._tell(note)

    @staticmethod
    def _tell(note: str) -> None:
        if (notes := _notes.get()) is not None and note not in notes:
            notes.append(note)

    def explained(self, error: Exception) -> Problem | None:
        """What an exception stands for that came of an answer nobody foresaw; None for any other."""
        if not isinstance(error, LookupError | TypeError | AttributeError | ValueError):
            return None
        modules = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
        if not any(str(name).startswith(_ANSWER_ROOMS) for name in modules):
            return None
        logger.error("An answer of GitHub's was not understood", exc_info=error)
        fix = _MAYBE_DONE if _wrote.get() else "Try again in a moment, or ask for it in another way."
        return Unavailable("GitHub's answer can't be understood.", fix)

    async def _is_public(self, key: str) -> bool:
        found = await self.get(self.policy.repo(key).path, f"the repository `{key}`", quiet=True)
        return not found.data.get("private", False)


@contextmanager
def after(done: str, fix: str) -> Generator[None]:
    """What goes wrong within is told with what was `done` before: another try of the whole would do that twice."""
    try:
        yield
    except Problem as problem:
        raise Conflict(f"{done}, the rest is not: {problem.what}", fix, status=problem.status) from problem


def _did(data: Any) -> bool:
    """Whether a mutation's answer names what it made or changed; what it deleted need not be named."""
    made = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    return bool(made) and all(
        isinstance(what, dict) and (name.startswith("delete") or any(cast("dict[str, Any]", what).values()))
        for name, what in made.items()
    )


def _without_gaps(data: Any) -> Any:
    """GraphQL's `data` without the nulls that stand in lists for what GitHub does not show."""
    if isinstance(data, list):
        return [_without_gaps(item) for item in cast("list[Any]", data) if item is not None]
    if isinstance(data, dict):
        return {name: _without_gaps(value) for name, value in cast("dict[str, Any]", data).items()}
    return data


def _misses_all(data: Mapping[str, Any], errors: list[Any]) -> bool:
    """Whether the very thing that was asked for is missing, and not only something inside it."""
    found = [cast("dict[str, Any]", error).get("path") for error in errors if isinstance(error, dict)]
    paths = [cast("list[Any]", path) for path in found if isinstance(path, list)]
    return not any(data.values()) or any(0 < len(path) <= 2 for path in paths)


def _parsed(body: bytes, what: str, *, wrote: bool = False) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        fix = _MAYBE_DONE if wrote else "Try again in a moment."
        raise Unavailable(f"GitHub's answer for {what} is not JSON.", fix) from None


def paging(position: Mapping[str, Any]) -> dict[str, str]:
    """Of a cursor's parameters those that turn pages; a cursor can be made up, and must not ask for more."""
    return {name: str(position[name]) for name in _PAGING if name in position}


def _linked(link: str, rel: str) -> dict[str, str]:
    """The paging parameters of the address that a `Link` header calls `rel`."""
    # An address may have commas of its own.
    for found in re.finditer("<([^>]*)>([^<]*)", link):
        if f'rel="{rel}"' in found[2]:
            return paging(dict(parse_qsl(urlsplit(found[1]).query)))
    return {}
