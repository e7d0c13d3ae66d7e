"""Requests as the toolsets make them: JSON with nothing invisible in it, pages, GraphQL, raw bytes.

Every answer is recorded as read for taint tracking, unless the caller says that the model never sees it.
"""

from __future__ import annotations

import copy
import json
import logging
import re
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast
from urllib.parse import parse_qsl, urlsplit

from mcp_batteries.errors import Conflict, NotFound, Problem, Unavailable
from mcp_github.call_context import Caller, PerCaller, current_call
from mcp_github.client.blob_cache import BlobCache
from mcp_github.client.credentials import Credentials
from mcp_github.client.device_login import DeviceLogin
from mcp_github.client.errors import graphql_problem_of, hidden_organisations_note, partial_data_note
from mcp_github.client.http import GRAPHQL, JSON_TYPE, MAYBE_DONE, Client, ClientSettings, ConnectionPool, Request
from mcp_github.client.response import Response
from mcp_github.client.write_outcome import ADDED_NAMES, describe_unset, find_unset, is_everything_unset, needs_rights
from mcp_github.policy import Policy, Repo, WriteRepo
from mcp_github.safety.lockdown import hide_outsiders, is_by_outsider
from mcp_github.safety.scrub import scrub
from mcp_github.safety.taint import TaintTracker

__all__ = [
    "NO_CONTENT",
    "Api",
    "ApiResponse",
    "AppliedChanges",
    "CachedAnswer",
    "FollowedAnswers",
    "partial_success",
    "select_paging_params",
]

logger = logging.getLogger(__name__)

# The data of an answer of status 204, which has no body.
NO_CONTENT = ""

# An exception that passed through one of these came of an answer that nobody foresaw.
_ANSWER_ROOMS = tuple(f"mcp_github.{room}." for room in ("client", "listing", "requests", "safety", "tools", "watch"))
_PAGING_PARAMS = ("page", "after", "before", "cursor", "since")
_MAX_CACHED_RESPONSES = 200
_MAX_CACHED_BYTES = 300_000
_MAX_RAW_BYTES = 8_000_000


class FollowedAnswers(Protocol):
    """Answers that are kept because somebody follows what they are of, by path, parameters and media type."""

    async def read(self, path: str, params: Mapping[str, Any], accept: str) -> bytes | None:
        """Return the body of what is followed, checked anew if it is due; None for what nobody follows."""
        ...

    async def find_cached(self, path: str, params: Mapping[str, Any], accept: str) -> CachedAnswer | None:
        """Return the answer that the last check left, without another; None if there is none."""
        ...


@dataclass(frozen=True)
class CachedAnswer:
    """An answer that may still be true, which a read or a check left.

    Attributes:
        fetched_at: when GitHub last said that it is true, in seconds since the epoch.
    """

    etag: str
    body: bytes
    fetched_at: float
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class ApiResponse:
    """What GitHub answered, scrubbed.

    Attributes:
        removed: how many characters were taken out because nobody could have seen them.
        next_page: the parameters of the next page; empty on the last.
    """

    data: Any
    removed: int = 0
    next_page: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def page_count(self) -> int | None:
        """How many pages there are, where GitHub says so."""
        last = _linked_page(self.headers.get("link", ""), "last").get("page", "")
        if not last.isdecimal():
            return None
        return int(last)


class _NothingFollowed:
    """What nobody follows."""

    async def read(self, path: str, params: Mapping[str, Any], accept: str) -> bytes | None:
        return None

    async def find_cached(self, path: str, params: Mapping[str, Any], accept: str) -> CachedAnswer | None:
        return None


@dataclass
class _Identity:
    """What one caller has of their own.

    Attributes:
        cached: what reads left.
        followed: see `Api.serve_followed_by`.
    """

    client: Client
    cached: OrderedDict[str, CachedAnswer] = field(default_factory=OrderedDict[str, CachedAnswer])
    followed: FollowedAnswers = field(default_factory=_NothingFollowed)

    def remember(self, key: str, answer: CachedAnswer) -> None:
        """Keep an answer; the one that was used longest ago makes room."""
        if not answer.etag or len(answer.body) > _MAX_CACHED_BYTES:
            return
        self.cached[key] = answer
        self.cached.move_to_end(key)
        if len(self.cached) > _MAX_CACHED_RESPONSES:
            self.cached.popitem(last=False)


@dataclass(frozen=True)
class _GraphqlAnswer:
    data: Any
    errors: list[Any]

    @property
    def is_missing(self) -> bool:
        """Whether the very thing that was asked for is missing, and not only something inside it."""
        if not self.errors:
            return False
        data: object = self.data
        if not isinstance(data, dict):
            return True
        return not any(cast("dict[str, Any]", data).values()) or any(map(_is_about_top, self.errors))


class Api:
    """What all toolsets share: the client, taint tracking, responses that may still be true.

    Args:
        is_only_process: whether no other process answers the same clients.

    Attributes:
        login: where people log in, if they do.
        blob_cache: of files that take several calls to read.
    """

    def __init__(self, settings: ClientSettings, policy: Policy, *, is_only_process: bool = True) -> None:
        self.policy = policy
        self.taint = TaintTracker(policy, self._is_public, is_only_process=is_only_process)
        self._settings = settings
        self._connections = ConnectionPool(settings)
        self.login: DeviceLogin | None = None
        if settings.auth == "login":
            self.login = DeviceLogin(settings, policy.api_url, self._connections)
        self._identities = PerCaller(lambda caller: _Identity(self._make_client(caller)))
        self.blob_cache = BlobCache()
        self._prefers_followed = False

    @property
    def timeout(self) -> int:
        """The seconds that a call waits for GitHub."""
        return self._settings.timeout

    @property
    def client(self) -> Client:
        """The client of the caller whose call is under way."""
        return self._identities.current.client

    @property
    def is_for_resources(self) -> bool:
        """Whether it reads what is followed, of which nothing else is fetched."""
        return self._prefers_followed

    def for_resources(self) -> Api:
        """Return this API with answers taken from what is followed: what a subscriber is told of is what they then
        get, without another request."""
        api = copy.copy(self)
        api._prefers_followed = True
        return api

    def serve_followed_by(self, followed: FollowedAnswers) -> None:
        """Have what the current caller reads taken from what is checked for them anyway: resources without another
        request, tools with one that costs nothing while the answer is still true."""
        self._identities.current.followed = followed

    def find_read(self, path: str, params: Mapping[str, Any], accept: str) -> CachedAnswer | None:
        """Return the answer that the current caller's last read left, of which a check asks whether it is true."""
        return self._identities.current.cached.get(_cache_key(path, params, accept))

    async def get_token_owner(self, token: str) -> ApiResponse:
        """Return who `token` belongs to; nothing of it is remembered.

        Raises:
            Problem: GitHub takes no such token, or can't say now.
        """
        request = Request("GET", "/user", "the owner of a token", True)
        response = await self._make_client(Caller(token)).send(request)
        return ApiResponse(_parse_json(response.body, request.description), headers=response.headers)

    def _make_client(self, caller: Caller) -> Client:
        credentials = Credentials(
            self._settings, self.policy.api_url, caller_token=caller.token or None, login=self.login
        )
        return Client(self._settings, self.policy, self._connections, credentials)

    async def __aenter__(self) -> Api:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connections.aclose()

    async def get(
        self, path: str, description: str, params: Mapping[str, Any] | None = None, *, repo: Repo | None = None,
        internal: bool = False, accept: str = JSON_TYPE, hint: str = "",
    ) -> ApiResponse:  # fmt: skip
        """Return what is at `path`. An unchanged answer costs GitHub no body and no limit.

        Args:
            repo: whose text it is, for taint tracking and redirects.
            internal: whether the model is never shown it.
            hint: what to try if it is not there.
        """
        if repo is not None and not internal:
            self.taint.record_read(repo.key)
        followed_body = await self._read_followed(path, params, accept)
        if followed_body is not None:
            data, removed = self._clean(_parse_json(followed_body, description))
            return ApiResponse(data, removed)
        request = Request("GET", path, description, True, params=params or {}, accept=accept)
        try:
            return await self._get_unless_cached(request, repo)
        except NotFound as problem:
            raise NotFound(problem.failure, problem.fix or hint, status=problem.status) from None

    async def write(
        self, method: str, path: str, description: str, body: Any = None, *, repo: WriteRepo | None = None
    ) -> ApiResponse:
        """Have something changed, and return what GitHub says of it. It is sent once, whatever comes of it.

        What GitHub left out of `body` the client is told; where that is all, it is a problem.
        """
        response = await self.client.send(Request(method, path, description, False, body=body))
        self._note_rename(repo)
        current_call().has_written = True
        parsed = None
        if response.body.strip():
            parsed = _parse_json(response.body, description, has_written=True)
        _report_unset(body, parsed, description, method)
        data, removed = self._clean(parsed)
        return ApiResponse(data, removed, headers=response.headers)

    async def graphql(
        self, query: str, variables: Mapping[str, Any], description: str, *, repo: Repo | None = None,
        writes: bool = False, internal: bool = False, expects: Mapping[str, Any] | None = None,
    ) -> ApiResponse:  # fmt: skip
        """Return the data that a GraphQL query or, with `writes`, a mutation gives.

        The query of a mutation selects what it makes or changes: an answer in which that is null changed nothing, and
        is a problem. What it selects is compared with the input.

        Args:
            expects: what a mutation makes of what it selects, where its input does not say so.
        """
        if repo is not None and not internal and not writes:
            self.taint.record_read(repo.key)
        response = await self._send_query(query, variables, description, writes=writes)
        answer = _parse_graphql(response.body, description, writes=writes)
        self._judge_repository(answer.data, variables, description)
        if answer.is_missing:
            raise self._graphql_problem(answer.errors, response, description, writes=writes)
        if writes:
            _judge_mutation(answer.data, variables, expects, description)
        if answer.errors and not internal:
            current_call().add_note(partial_data_note(answer.errors, description))
        self._note_rename(repo)
        data, removed = self._clean(_name_bots(_without_gaps(answer.data)))
        return ApiResponse(data, removed, headers=response.headers)

    async def raw(
        self, path: str, description: str, accept: str, *, repo: Repo, max_bytes: int = _MAX_RAW_BYTES,
        internal: bool = False,
    ) -> bytes:  # fmt: skip
        """Return the bytes at `path`, as they are."""
        if not internal:
            self.taint.record_read(repo.key)
        followed_body = await self._read_followed(path, None, accept)
        if followed_body is not None:
            return followed_body
        request = Request("GET", path, description, True, accept=accept, max_bytes=max_bytes)
        response = await self.client.send(request)
        return response.body

    async def download(
        self, path: str, description: str, *, repo: Repo, max_bytes: int, feed: Callable[[bytes], bool]
    ) -> None:
        """Hand the bytes `path` redirects to, on whatever host, to `feed`, until it says True or there are no more.

        They are fetched without the token.

        Raises:
            Refused: the other host is not one GitHub would send anybody to.
        """
        self.taint.record_read(repo.key)
        request = Request("GET", path, description, True, max_bytes=max_bytes, follows_redirects=False)
        response = await self.client.send(request)
        if response.status < 300:
            feed(response.body)
            return
        url = self.policy.api_url.download(response.headers.get("location", ""), description)
        await self.client.download(url, description, max_bytes=max_bytes, feed=feed)

    async def resolve_login(self, name: str) -> str:
        """Return `name` without the sign before it; for `@me` the user of the token, as GitHub takes logins only."""
        if name.lower() != "@me":
            return name.removeprefix("@")
        user = await self.get("/user", "the user of this token", internal=True)
        return str(user.data.get("login", ""))

    async def is_repo(self, repo: Repo, full_name: str) -> bool:
        """Return whether what GitHub calls `full_name` is `repo`, which may have had another name."""
        key = full_name.lower()
        if key == repo.key:
            return True
        try:
            await self.get(repo.path, f"repository `{repo.full_name}`", internal=True)
        except Problem:
            return False
        return self.current_name(repo).lower() == key

    def current_name(self, repo: Repo) -> str:
        """Return the `owner/name` that `repo` has by now, as far as an earlier request told."""
        return self.client.renamed.get(repo.key) or repo.full_name

    async def require_insiders(self, path: str, description: str) -> None:
        """Raise `Refused` with `--lockdown` for the changes of the pull request at `path` if it is an outsider's."""
        if self.policy.lockdown:
            response = await self.get(path, description, internal=True)
            self.policy.require_insider(description, outsider=is_by_outsider(response.data))

    def explain(self, error: Exception) -> Problem | None:
        """Return the problem that an exception stands for if an answer that nobody foresaw caused it, else None."""
        if not isinstance(error, LookupError | TypeError | AttributeError | ValueError):
            return None
        modules = [str(frame.f_globals.get("__name__", "")) for frame, _ in traceback.walk_tb(error.__traceback__)]
        if not any(module.startswith(_ANSWER_ROOMS) for module in modules):
            return None
        logger.error("An answer of GitHub's was not understood", exc_info=error)
        fix = "Try again in a moment, or ask for it in another way."
        if current_call().has_written:
            fix = MAYBE_DONE
        return Unavailable("GitHub's answer can't be understood.", fix)

    async def _send_query(
        self, query: str, variables: Mapping[str, Any], description: str, *, writes: bool
    ) -> Response:
        """Send a query or mutation, and note what GitHub's headers say of its answer."""
        body = {"query": query, "variables": dict(variables)}
        response = await self.client.send(Request("POST", GRAPHQL, description, not writes, body=body))
        if writes:
            current_call().has_written = True
        _note_hidden(response)
        return response

    async def _get_unless_cached(self, request: Request, repo: Repo | None) -> ApiResponse:
        """Return the answer to `request`, or the one that GitHub says is still true."""
        identity = self._identities.current
        key = _cache_key(request.path, request.params, request.accept)
        cached = await self._find_cached(identity, key, request)
        if cached is not None:
            request = replace(request, headers={"If-None-Match": cached.etag})
        response = await identity.client.send(request)
        self._note_redirect(repo, request.description, response)
        _note_hidden(response)
        if response.status == 204:
            return ApiResponse(NO_CONTENT, headers=response.headers)
        if response.status == 304 and cached is not None:
            answer = replace(cached, fetched_at=time.time())
        else:
            answer = CachedAnswer(response.headers.get("etag", ""), response.body, time.time(), response.headers)
        data, removed = self._clean(_parse_json(answer.body, request.description))
        identity.remember(key, answer)
        return ApiResponse(data, removed, _linked_page(answer.headers.get("link", ""), "next"), answer.headers)

    async def _find_cached(self, identity: _Identity, key: str, request: Request) -> CachedAnswer | None:
        """Return the newest answer that may still be true: of an earlier read, or of a check for followers."""
        read = identity.cached.get(key)
        checked = await identity.followed.find_cached(request.path, request.params, request.accept)
        if checked is None or (read is not None and read.fetched_at >= checked.fetched_at):
            return read
        return checked

    async def _read_followed(self, path: str, params: Mapping[str, Any] | None, accept: str) -> bytes | None:
        """Return what somebody follows, for a resource; None for anything else."""
        if not self._prefers_followed:
            return None
        return await self._identities.current.followed.read(path, params or {}, accept)

    def _clean(self, data: Any) -> tuple[Any, int]:
        """Return what of `data` the model is shown, and how many invisible characters were taken out of it."""
        data, removed = scrub(data)
        if self.policy.lockdown:
            data = hide_outsiders(data)
        return data, removed

    def _graphql_problem(
        self, graphql_errors: list[Any], response: Response, description: str, *, writes: bool
    ) -> Problem:
        problem = graphql_problem_of(graphql_errors, response, description, self.client.limits)
        if writes and isinstance(problem, Unavailable) and problem.retry_after is None:
            return Unavailable(problem.failure, MAYBE_DONE)
        return problem

    def _judge_repository(self, data: Any, variables: Mapping[str, Any], description: str) -> None:
        """Remember the new name of a repository that GraphQL found by its old one, as REST does with a redirect.

        Raises:
            Refused: it is a repository that is not served.
        """
        full_name = _repository_name(data)
        old_name = f"{variables.get('owner')}/{variables.get('name')}".lower()
        if full_name is None or full_name.lower() == old_name:
            return
        if self.policy.allow_list:
            self.policy.require_redirect_served(full_name, description)
        self.client.renamed.put(old_name, full_name)

    def _note_redirect(self, repo: Repo | None, description: str, response: Response) -> None:
        """Have the client told where a redirect led, or that the repository has another name."""
        if response.redirect_note:
            note = f"{description[:1].upper()}{description[1:]} {response.redirect_note}."
            current_call().add_note(note)
        else:
            self._note_rename(repo)

    def _note_rename(self, repo: Repo | None) -> None:
        if repo is None:
            return
        new_name = self.client.renamed.get(repo.key)
        if new_name is not None:
            current_call().add_note(f"`{repo.full_name}` is `{new_name}` by now: use that name.")

    async def _is_public(self, key: str) -> bool:
        response = await self.get(self.policy.repo(key).path, f"the repository `{key}`", internal=True)
        return not response.data.get("private", False)


@contextmanager
def partial_success(done: str, fix: str) -> Generator[None]:
    """Have what goes wrong in the block say what was `done` before: another try of the whole would do that twice."""
    try:
        yield
    except Problem as problem:
        if problem.fix == MAYBE_DONE:
            raise Conflict(f"{done}, the rest perhaps not: {problem.failure}", MAYBE_DONE) from problem
        raise Conflict(f"{done}, the rest is not: {problem.failure}", fix, status=problem.status) from problem


@dataclass
class AppliedChanges:
    """What of an edit of several requests is done already, in the words of an error."""

    number: int
    names: list[str] = field(default_factory=list[str])

    @contextmanager
    def step(self, name: str) -> Generator[None]:
        """Have what goes wrong in the block say what was changed before, if anything was; else put down `name`."""
        with self._reported():
            yield
        self.names.append(f"`{name}`")

    @contextmanager
    def _reported(self) -> Generator[None]:
        if not self.names:
            yield
            return
        verb = "is"
        if len(self.names) > 1:
            verb = "are"
        done = f"{', '.join(self.names)} of #{self.number} {verb} changed"
        with partial_success(done, "Call again with what is left."):
            yield


def select_paging_params(position: Mapping[str, Any]) -> dict[str, str]:
    """Return of a cursor's parameters those that turn pages; a cursor can be made up, and must not ask for more."""
    return {name: str(position[name]) for name in _PAGING_PARAMS if name in position}


def _report_unset(requested: Any, answered: Any, description: str, method: str) -> None:
    """Have the client told what GitHub did not set of what was asked for.

    Raises:
        Conflict: it set nothing of it.
    """
    unset = find_unset(requested, answered, method=method)
    if not unset:
        return
    fix = "See what is there now."
    if needs_rights(unset):
        fix = (
            "Labels, assignees, milestones and types take the right to push or triage; `list_issue_options` shows who "
            "can be assigned."
        )
    sentence = describe_unset(unset)
    only_adds = method == "POST" and not set(requested) <= ADDED_NAMES
    if is_everything_unset(requested, unset) and not only_adds:
        raise Conflict(f"GitHub answered without an error and changed nothing: {description}. {sentence}", fix)
    current_call().add_note(f"{sentence} {fix}")


def _judge_mutation(
    data: Any, variables: Mapping[str, Any], expects: Mapping[str, Any] | None, description: str
) -> None:
    """Compare what a mutation answered with what was asked for; have the client told what was not set.

    Raises:
        Conflict: nothing was changed.
    """
    if not _names_what_changed(data):
        raise Conflict(
            f"GitHub answered without an error and changed nothing: {description}.",
            "See what is there now, and whether what you named is a part of it.",
        )
    requested = variables.get("input")
    method = "POST"
    if expects:
        requested = expects
        method = "PATCH"
    for payload in data.values():
        for selected in payload.values():
            _report_unset(requested, selected, description, method)


def _note_hidden(response: Response) -> None:
    """Have the client told that organisations are left out of an answer that looks complete."""
    note = hidden_organisations_note(response.headers)
    if note:
        current_call().add_note(note)


def _parse_json(body: bytes, description: str, *, has_written: bool = False) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        fix = "Try again in a moment."
        if has_written:
            fix = MAYBE_DONE
        raise Unavailable(f"GitHub's answer for {description} is not JSON.", fix) from None


def _parse_graphql(body: bytes, description: str, *, writes: bool) -> _GraphqlAnswer:
    parsed = _parse_json(body, description)
    if not isinstance(parsed, dict):
        raise Unavailable(f"GitHub's answer for {description} can't be understood.", "Try again in a moment.")
    answer = cast("dict[str, Any]", parsed)
    data = answer.get("data")
    errors = cast("list[Any]", answer.get("errors") or [])
    if data is None and not errors:
        # Also limits are said so, with status 200.
        message = answer.get("message")
        if not message:
            fix = "Try again in a moment."
            if writes:
                fix = MAYBE_DONE
            raise Unavailable(f"GitHub sent no data for {description}.", fix)
        errors = [{"message": message}]
    return _GraphqlAnswer(data, errors)


def _is_about_top(error: Any) -> bool:
    """Return whether an error of GraphQL's is about what was asked for, or the object that has it.

    One of several objects that were asked for is only a part of it.
    """
    if not isinstance(error, dict):
        return False
    path = cast("dict[str, Any]", error).get("path")
    if not isinstance(path, list):
        return False
    steps = cast("list[Any]", path)
    return 0 < len(steps) <= 2 and not isinstance(steps[-1], int)


def _names_what_changed(data: Any) -> bool:
    """Return whether a mutation's answer names what it made or changed; what it deleted need not be named."""
    if not isinstance(data, dict) or not data:
        return False
    for name, payload in cast("dict[str, Any]", data).items():
        if not isinstance(payload, dict):
            return False
        if not name.startswith("delete") and not any(cast("dict[str, Any]", payload).values()):
            return False
    return True


def _repository_name(data: Any) -> str | None:
    """Return the name of the repository that a query asked for, which it selects; None for other queries."""
    match data:
        case {"repository": {"nameWithOwner": str(full_name)}}:
            return full_name
        case _:
            return None


def _without_gaps(data: Any) -> Any:
    """Return GraphQL's `data` without the nulls that stand in lists for what GitHub does not show."""
    if isinstance(data, list):
        return [_without_gaps(item) for item in cast("list[Any]", data) if item is not None]
    if isinstance(data, dict):
        return {name: _without_gaps(value) for name, value in cast("dict[str, Any]", data).items()}
    return data


def _name_bots(data: Any) -> Any:
    """Return GraphQL's `data` with the logins of bots as REST has them: GraphQL calls `reviewer[bot]` `reviewer`."""
    if isinstance(data, list):
        return [_name_bots(item) for item in cast("list[Any]", data)]
    if not isinstance(data, dict):
        return data
    named = {name: _name_bots(value) for name, value in cast("dict[str, Any]", data).items()}
    if named.get("__typename") == "Bot" and not str(named["login"]).endswith("[bot]"):
        named["login"] = f"{named['login']}[bot]"
    return named


def _cache_key(path: str, params: Mapping[str, Any], accept: str) -> str:
    """Return the same key for all requests that GitHub gets alike."""
    set_params = {name: value for name, value in params.items() if value is not None}
    return json.dumps([path, set_params, accept], sort_keys=True)


def _linked_page(link: str, rel: str) -> dict[str, str]:
    """Return the paging parameters of the address that a `Link` header calls `rel`."""
    # Addresses are found by their brackets, because one may have commas of its own.
    for match in re.finditer("<([^>]*)>([^<]*)", link):
        if f'rel="{rel}"' in match[2]:
            return select_paging_params(dict(parse_qsl(urlsplit(match[1]).query)))
    return {}
