"""Checks whether what somebody follows has changed: one conditional request for all processes of a user.

`mcp_batteries.remote` has the cache and its files; this module adds what is specific to GitHub: which request, when to
repeat it, and which part of the answer counts. An answer of 304 has no body and does not count against the limit.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import anyio.to_thread

from mcp_batteries.errors import NotFound, Problem, Unavailable
from mcp_batteries.remote import Cache, Failed, FetchResult, NotModified, Outcome, Validators, open_store
from mcp_github.call_context import active_call, current_call
from mcp_github.client.api import Api, CachedAnswer
from mcp_github.client.http import Request
from mcp_github.client.response import Response
from mcp_github.listing.projections import pick
from mcp_github.watch.followed_uris import Digest, FollowedUri

__all__ = ["ConditionalFetcher"]

logger = logging.getLogger(__name__)

# What has not changed for long is checked after so many times the interval.
_MAX_INTERVALS = 4
_RUNNING_SECONDS = 10.0
# From so many issues and pull requests of a repository on, one list tells which of them to check.
_MIN_FOLLOWED_FOR_LIST = 3
_LIST_LENGTH = 100
_LIST_PARAMS = {"state": "all", "sort": "updated", "direction": "desc", "per_page": _LIST_LENGTH}
_RUN_MEMBERS = ("status", "conclusion", "run_attempt", "updated_at")


# Those whose kept bodies are up to date: of the others only what counts is.
_WHOLE_ANSWERS = (Digest.ALL, Digest.RUN)


class _IssuePath(NamedTuple):
    """The parts of an issue's or pull request's path."""

    repo_path: str
    kind: str
    number: str

    @classmethod
    def parse(cls, path: str) -> _IssuePath | None:
        """Return the parts of `path`; None if it is of something else."""
        list_path, _, number = path.rpartition("/")
        repo_path, _, kind = list_path.rpartition("/")
        if kind not in ("issues", "pulls"):
            return None
        return cls(repo_path, kind, number)


class ConditionalFetcher:
    """What is followed, and the cache of it, which exists from the first subscription on.

    Args:
        interval: seconds between two checks of something that changes.
        cache_location: folder of the cache, `memory`, or None for the user's own.
    """

    def __init__(self, api: Api, *, interval: float, cache_location: str | None, command: str) -> None:
        self._api = api
        self._interval = interval
        self._cache_location = cache_location
        self._command = command
        self._cache: Cache | None = None
        self._followed_keys: set[str] = set()
        # How many issues and pull requests are followed, by the path of their repository.
        self._followed_issues: Counter[str] = Counter()
        self._hinted_keys: set[str] = set()
        api.serve_followed_by(self)

    async def aclose(self) -> None:
        """Let go of the cache, which may be asked for again."""
        cache = self._cache
        self._cache = None
        if cache is not None:
            await cache.__aexit__(None, None, None)

    async def cache(self) -> Cache:
        """Return the cache of this identity. The first call may have to find the token."""
        if self._cache is None:
            identity = await anyio.to_thread.run_sync(self._identity)
            store = await anyio.to_thread.run_sync(lambda: open_store(self._cache_location, self._command, identity))
            cache = Cache(store, self.fetch, scope=lambda key: "github")
            await cache.__aenter__()
            self._cache = self._cache or cache
        return self._cache

    def follow(self, followed: FollowedUri) -> None:
        """Put down that somebody follows this now."""
        self._followed_keys.add(followed.key)
        issue = _IssuePath.parse(followed.path)
        if issue is not None:
            self._followed_issues[issue.repo_path] += 1

    def unfollow(self, followed: FollowedUri) -> None:
        """Put down that nobody follows this any more."""
        self._followed_keys.discard(followed.key)
        issue = _IssuePath.parse(followed.path)
        if issue is not None:
            self._followed_issues[issue.repo_path] -= 1

    async def check_now(self, followed: FollowedUri, *, since: float) -> None:
        """Check what is followed now, unless anybody did after `since` (seconds since the epoch)."""
        cache = await self.cache()
        self._hinted_keys.add(followed.key)
        try:
            await cache.get(followed.key, max_age=max(0.0, cache.clock() - since))
        except Problem as problem:
            logger.info("Not looked at: %s", problem)
        finally:
            self._hinted_keys.discard(followed.key)

    async def fetch(self, key: str, validators: Validators) -> Outcome:
        """Fetch what `key` names, unless it is unchanged; see `mcp_batteries.remote.Fetch`."""
        # A check has the time of a call for itself, whoever's task makes it.
        with active_call(replace(current_call(), github_seconds=0.0)):
            return await self._fetch(key, validators)

    async def _fetch(self, key: str, validators: Validators) -> Outcome:
        followed = FollowedUri.from_key(key)
        headers = _conditions(validators)
        try:
            if await self._is_unchanged_by_list(followed, key, headers):
                return NotModified(self._seconds_to_next_check(None, validators.unchanged))
            read = await self._find_newer_read(followed, key, validators)
            if read is not None:
                headers = _conditions(Validators(read.etag, read.headers.get("last-modified")))
            request = Request(
                "GET", followed.path, "what is followed", True, params=followed.params, accept=followed.accept,
                headers=headers,
            )  # fmt: skip
            response = await self._api.client.send(request)
        except NotFound:
            raise
        except Unavailable as problem:
            return Failed(problem.failure, problem.retry_after, everything=problem.retry_after is not None)
        except Problem as problem:
            return Failed(problem.failure)
        if response.status == 304:
            if read is None:
                return NotModified(self._seconds_to_next_check(response, validators.unchanged))
            response = Response(200, read.headers, read.body)
        return FetchResult(
            response.body,
            self._seconds_to_next_check(response, 0),
            response.headers.get("etag"),
            response.headers.get("last-modified"),
            _digest_body(response.body, followed.digest),
        )

    async def _find_newer_read(self, followed: FollowedUri, key: str, validators: Validators) -> CachedAnswer | None:
        """Return the answer that a tool has read since the last check of `key`, if it differs from what that left."""
        read = self._api.find_read(followed.path, followed.params, followed.accept)
        if read is None or read.etag == validators.etag:
            return None
        cache = await self.cache()
        entry = await cache.run_store_work(lambda: cache.store.read(key))
        if read.fetched_at <= entry.fetched_at:
            return None
        return read

    def _identity(self) -> list[str]:
        credentials = self._api.client.credentials
        return [self._api.policy.api_url.base, credentials.fingerprint(b"mcp-github")]

    async def read(self, path: str, params: Mapping[str, Any], accept: str) -> bytes | None:
        """Return what a subscriber reads after a notice, from the cache; None for what nobody follows."""
        for digest in _WHOLE_ANSWERS:
            key = _request_key(path, params, accept, digest)
            if self._cache is not None and key in self._followed_keys:
                entry = await self._cache.get(key)
                return entry.body
        return None

    async def find_cached(self, path: str, params: Mapping[str, Any], accept: str) -> CachedAnswer | None:
        """Return what the last check of something that is followed left, of which a tool asks whether it is true."""
        cache = self._cache
        key = _request_key(path, params, accept, Digest.ALL)
        if cache is None or key not in self._followed_keys:
            return None
        entry = await cache.run_store_work(lambda: cache.store.read(key))
        # A list has further pages, which the check does not look at.
        if entry.body is None or not entry.etag or entry.body.lstrip().startswith(b"["):
            return None
        return CachedAnswer(entry.etag, entry.body, entry.fetched_at)

    def _seconds_to_next_check(self, response: Response | None, unchanged_count: int) -> float:
        """Return when another check makes sense.

        Args:
            unchanged_count: how many checks in a row found nothing new.
        """
        wait = min(self._interval * 2**unchanged_count, self._interval * _MAX_INTERVALS)
        if response is not None:
            wait = max(wait, float(response.headers.get("x-poll-interval") or 0))
            if b'"in_progress"' in response.body or b'"queued"' in response.body:
                wait = min(wait, _RUNNING_SECONDS)
        return wait

    async def _is_unchanged_by_list(self, followed: FollowedUri, key: str, conditions: Mapping[str, str]) -> bool:
        """Return whether the list of what changed last in the repository says that this issue or pull request did
        not. What was hinted at, or was never fetched, is not looked for there."""
        issue = _IssuePath.parse(followed.path)
        if issue is None or followed.digest is not Digest.ALL or not conditions or key in self._hinted_keys:
            return False
        cache = self._cache
        if cache is None or self._followed_issues[issue.repo_path] < _MIN_FOLLOWED_FOR_LIST:
            return False
        probe = FollowedUri("", f"{issue.repo_path}/issues", Digest.PROBE, params=_LIST_PARAMS)
        changed_last = (await cache.get(probe.key)).json()
        cached = await cache.run_store_work(lambda: cache.store.read(FollowedUri("", followed.path).key))
        if cached.body is None:
            return False
        return _is_same_in_list(issue.number, str(json.loads(cached.body).get("updated_at")), changed_last)


def _request_key(path: str, params: Mapping[str, Any], accept: str, digest: Digest) -> str:
    """Return the key of what a request asks for, if it is followed."""
    set_params = {name: value for name, value in params.items() if value is not None}
    return FollowedUri("", path, digest, accept, set_params).key


def _is_same_in_list(number: str, updated_before: str, changed_last: Sequence[Any]) -> bool:
    """Return whether the issues that changed last show that the one with this number did not change."""
    if not all(changed_last):
        # GitHub has listed null among issues: it may stand for this one.
        return False
    for item in changed_last:
        if str(item["number"]) == number:
            return item["updated_at"] == updated_before
    # One that is not among the hundred that changed last is older than all of them.
    if len(changed_last) < _LIST_LENGTH:
        return False
    return updated_before <= min(str(item["updated_at"]) for item in changed_last)


def _conditions(validators: Validators) -> dict[str, str]:
    """Return the headers of a request for what changed since the answer with these validators."""
    headers: dict[str, str] = {}
    if validators.etag:
        headers["If-None-Match"] = validators.etag
    if validators.last_modified:
        # The tags of answers to an App change with its token, every hour.
        headers["If-Modified-Since"] = validators.last_modified
    return headers


def _digest_body(body: bytes, digest: Digest) -> str | None:
    """Return a digest of what counts of an answer; None if all of it does."""
    if digest in (Digest.ALL, Digest.PROBE):
        return None
    data = json.loads(body)
    if digest is Digest.HEAD:
        members: list[Any] = [pick(data, "head.sha"), pick(data, "base.sha"), pick(data, "base.ref")]
    else:
        members = [data.get(name) for name in _RUN_MEMBERS]
    return hashlib.blake2b(json.dumps(members).encode(), digest_size=20).hexdigest()
