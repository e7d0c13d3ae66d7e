"""Checks whether what somebody follows has changed: one conditional request for all processes of a user.

`mcp_batteries.remote` has the cache and its files; this module adds what is specific to GitHub: which request, when to
repeat it, and which part of the answer counts. An answer of 304 has no body and does not count against the limit.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any

import anyio.to_thread

from mcp_batteries.errors import NotFound, Problem, Unavailable
from mcp_batteries.remote import Cache, Failed, Fresh, NotModified, Outcome, Validators, open_store
from mcp_github.client.api import Api
from mcp_github.client.http import Request
from mcp_github.client.response import Reply
from mcp_github.listing.pages import pick
from mcp_github.watch.followed_uris import Subject

__all__ = ["Remote"]

logger = logging.getLogger(__name__)

_SLOWEST = 4
"""Times the interval, for what has not changed for long."""
_RUNNING_SECONDS = 10.0
_MANY = 3
"""From so many issues and pull requests of a repository on, one list tells which of them to look at."""


class Remote:
    """What is followed, and the cache of it, which exists from the first subscription on.

    Args:
        seconds: between two looks at something that changes.
        where: folder of the cache, `memory`, or None for the user's own.
    """

    def __init__(self, api: Api, *, seconds: float, where: str | None, command: str) -> None:
        self._api, self._seconds, self._where, self._command = api, seconds, where, command
        self._cache: Cache | None = None
        self._followed: set[str] = set()
        self._numbered: Counter[str] = Counter()
        self._hinted: set[str] = set()
        api.follows(self._kept)

    async def aclose(self) -> None:
        """Let go of the cache, which may be asked for again."""
        cache, self._cache = self._cache, None
        if cache is not None:
            await cache.__aexit__(None, None, None)

    async def cache(self) -> Cache:
        """The cache of this identity. The first call may have to find the token."""
        if self._cache is None:
            identity = await anyio.to_thread.run_sync(self._identity)
            store = await anyio.to_thread.run_sync(lambda: open_store(self._where, self._command, identity))
            cache = Cache(store, self.fetch, scope=lambda key: "github")
            await cache.__aenter__()
            self._cache = self._cache or cache
        return self._cache

    def _identity(self) -> list[str]:
        credentials = self._api.client.credentials
        return [self._api.policy.api_url.base, credentials.fingerprint(b"mcp-github")]

    def follow(self, subject: Subject, *, more: int) -> None:
        """Somebody follows `subject` now (`more` is 1), or nobody does any more (-1)."""
        if more > 0:
            self._followed.add(subject.key)
        else:
            self._followed.discard(subject.key)
        place, _, _ = subject.path.rpartition("/")
        if place.endswith(("/issues", "/pulls")):
            self._numbered[place.rpartition("/")[0]] += more

    async def look(self, subject: Subject, *, since: float) -> None:
        """Look at what is followed now, unless anybody did after `since` (seconds since the epoch)."""
        cache = await self.cache()
        self._hinted.add(subject.key)
        try:
            await cache.get(subject.key, max_age=max(0.0, cache.clock() - since))
        except Problem as problem:
            logger.info("Not looked at: %s", problem)
        finally:
            self._hinted.discard(subject.key)

    async def _kept(self, path: str, params: Mapping[str, Any], accept: str) -> bytes | None:
        """What a subscriber reads after a notice, from the cache; None for what nobody follows."""
        key = Subject("", path, "all", accept, {name: value for name, value in params.items() if value is not None}).key
        if self._cache is None or key not in self._followed:
            return None
        return (await self._cache.get(key)).body

    async def fetch(self, key: str, validators: Validators) -> Outcome:
        """Look at what `key` names; see `mcp_batteries.remote.Fetch`."""
        path, params, accept, what = json.loads(key)
        headers = {"If-None-Match": validators.etag} if validators.etag else {}
        if validators.last_modified:
            # The tags of answers to an App change with its token, every hour.
            headers["If-Modified-Since"] = validators.last_modified
        try:
            if what == "all" and headers and key not in self._hinted and await self._listed_unchanged(path):
                return NotModified(self._again(None, validators.unchanged))
            request = Request("GET", path, "what is followed", True, params=params, accept=accept, headers=headers)
            reply = await self._api.client.send(request)
        except NotFound:
            raise
        except Unavailable as problem:
            return Failed(problem.what, problem.retry_after, everything=problem.retry_after is not None)
        except Problem as problem:
            return Failed(problem.what)
        if reply.status == 304:
            return NotModified(self._again(reply, validators.unchanged))
        etag, modified = reply.headers.get("etag"), reply.headers.get("last-modified")
        return Fresh(reply.body, self._again(reply, 0), etag, modified, _digest(reply.body, what))

    def _again(self, reply: Reply | None, unchanged: int) -> float:
        """Seconds until another look makes sense."""
        wait = min(self._seconds * 2**unchanged, self._seconds * _SLOWEST)
        if reply is not None:
            wait = max(wait, float(reply.headers.get("x-poll-interval") or 0))
            if b'"in_progress"' in reply.body or b'"queued"' in reply.body:
                wait = min(wait, max(_RUNNING_SECONDS, min(self._seconds, _RUNNING_SECONDS)))
        return wait

    async def _listed_unchanged(self, path: str) -> bool:
        """Whether the list of what changed last in the repository says that this issue or pull request did not."""
        place, _, number = path.rpartition("/")
        repo, _, kind = place.rpartition("/")
        if kind not in ("issues", "pulls") or self._numbered[repo] < _MANY or self._cache is None:
            return False
        params = {"state": "all", "sort": "updated", "direction": "desc", "per_page": 100}
        probe = Subject("", f"{repo}/issues", "probe", params=params)
        listed = (await self._cache.get(probe.key)).json()
        known = await self._cache.do(lambda: self._cache.store.read(_key_of(path)) if self._cache else None)
        if known is None or known.body is None:
            return False
        if not all(listed):
            # GitHub has listed null among issues: it may stand for this one.
            return False
        before = str(json.loads(known.body).get("updated_at"))
        for item in listed:
            if str(item["number"]) == number:
                return item["updated_at"] == before
        # Not among the hundred last changed, so older than all of them.
        return len(listed) == 100 and before <= min(str(item["updated_at"]) for item in listed)


def _key_of(path: str) -> str:
    return Subject("", path).key


def _digest(body: bytes, what: str) -> str | None:
    if what in ("all", "probe"):
        return None
    data = json.loads(body)
    if what == "head":
        counted: Any = [pick(data, "head.sha"), pick(data, "base.sha"), pick(data, "base.ref")]
    else:
        counted = [data.get(name) for name in ("status", "conclusion", "run_attempt", "updated_at")]
    return hashlib.blake2b(json.dumps(counted).encode(), digest_size=20).hexdigest()
