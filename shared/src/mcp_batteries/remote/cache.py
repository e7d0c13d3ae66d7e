"""Stores what was fetched, how old it is, and when to check again; decides which process may check."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from mcp_batteries.errors import NotFound, Problem, Unavailable, describe_os_error
from mcp_batteries.remote.entry import Entry, Store

__all__ = ["Cache", "Failed", "Fetch", "FetchResult", "NotModified", "Outcome", "Snapshot", "Validators"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

# The time between two tries for a lock that another process holds.
_BUSY_SECONDS = 0.1
# The time until a failed check is repeated doubles with each failure, from the first to the second number.
_BACKOFF_SECONDS = 5.0
_MAX_BACKOFF_SECONDS = 900.0
# After so many failures in a row, callers are answered from the cache at once until the next check is due.
_FAILURES_TO_ANSWER_AT_ONCE = 2
# A time further in the future is from a clock that was wrong.
_CLOCK_SECONDS = 60.0
_THREADS = 8
_MAX_POLL_SECONDS = 86_400.0


@dataclass(frozen=True)
class Validators:
    """What a fetcher sends along so that the upstream can say "not modified".

    Attributes:
        unchanged: checks in a row that found nothing new, for a cadence that slows down.
    """

    etag: str | None = None
    last_modified: str | None = None
    unchanged: int = 0


@dataclass(frozen=True)
class FetchResult:
    """New content, or the same again.

    Attributes:
        poll_after: seconds for which the upstream says, or we know, that it has nothing newer.
        digest: of the relevant content, if `body` has parts that always differ; by default of `body`.
    """

    body: bytes
    poll_after: float
    etag: str | None = None
    last_modified: str | None = None
    digest: str | None = None


@dataclass(frozen=True)
class NotModified:
    """The upstream still has what the validators name."""

    poll_after: float


@dataclass(frozen=True)
class Failed:
    """No usable answer for now.

    Attributes:
        reason: one sentence for people, such as "Open-Meteo answered 503.".
        retry_after: seconds for which the upstream wants no requests; None if it did not say.
        everything: whether the upstream means all keys of the same scope, not only this one.
    """

    reason: str
    retry_after: float | None = None
    everything: bool = False


Outcome = FetchResult | NotModified | Failed
# Fetches one resource. A `Problem` raised here is final for the caller; `NotFound` also drops what was kept.
Fetch = Callable[[str, Validators], Awaitable[Outcome]]


@dataclass(frozen=True)
class Snapshot:
    """An answer: the last good content, and how reliable it is.

    Attributes:
        error: why nothing newer could be had; None when it is as fresh as the upstream allows.
        now: when the answer was given.
    """

    body: bytes
    digest: str
    fetched_at: float
    changed_at: float
    next_poll_at: float
    error: str | None
    now: float

    @property
    def age(self) -> float:
        """Seconds since the upstream last confirmed it."""
        return max(0.0, self.now - self.fetched_at)

    @property
    def stale(self) -> bool:
        return self.error is not None

    @property
    def ttl(self) -> float:
        """Seconds until another check can find something new."""
        if self.stale:
            return 0.0
        return max(0.0, self.next_poll_at - self.now)

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class _Request:
    """What a caller of `Cache.get` accepts as the answer.

    Attributes:
        asked_at: when it called.
        max_age: the age in seconds up to which it accepts content.
    """

    asked_at: float
    max_age: float

    def is_answered_by(self, entry: Entry, now: float) -> bool:
        """Tell whether `entry` need not be fetched again."""
        if entry.error is not None:
            if now < entry.retry_at or entry.failed_at >= self.asked_at:
                return True
            has_failed_often = entry.failures >= _FAILURES_TO_ANSWER_AT_ONCE
            return entry.body is not None and has_failed_often and now < entry.next_poll_at
        if entry.body is None or now >= entry.next_poll_at or entry.fetched_at > now + _CLOCK_SECONDS:
            return False
        return entry.fetched_at >= self.asked_at or now - entry.fetched_at < self.max_age


class _Turn:
    """The lock of one key, and how many tasks have or want it."""

    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self.users = 0


class Cache:
    """Answers from the store while they are fresh, else from the upstream, one fetch at a time for each key.

    It is a context manager: enter it while the server serves, as one of the `opens` of `assemble`.

    Args:
        fetch: see `Fetch`. Keys are strings that it understands; secrets need not be in them.
        scope: the scope of a key, to which the upstream's limits apply; by default one scope for all.
        clock: seconds since the epoch.
        sleep: waits that many seconds.
    """

    def __init__(
        self,
        store: Store,
        fetch: Fetch,
        *,
        scope: Callable[[str], str] = lambda key: "",
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self.store = store
        self.clock = clock
        self.sleep = sleep
        self._fetch = fetch
        self._scope = scope
        self._threads = anyio.CapacityLimiter(_THREADS)
        self._turns: dict[str, _Turn] = {}

    async def __aenter__(self) -> Cache:
        try:
            await self.run_store_work(self.store.tidy)
        except OSError as error:
            logger.warning("The cache could not be tidied: %s", describe_os_error(error))
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def get(self, key: str, *, max_age: float = math.inf) -> Snapshot:
        """Return the content of `key`: kept, fetched, or the last good one if nothing newer is available.

        Args:
            max_age: seconds; older content is fetched again even if it is not due. 0 always fetches.

        Raises:
            Unavailable: nothing was ever fetched, and nothing can be fetched now.
            Problem: what the fetcher raised.
        """
        request = _Request(asked_at=self.clock(), max_age=max_age)
        entry = await self._read(key)
        if not request.is_answered_by(entry, self.clock()):
            async with self._turn(key):
                entry = await self._wait_or_refresh(key, request)
        return self._snapshot(entry)

    async def _wait_or_refresh(self, key: str, request: _Request) -> Entry:
        """Ask the upstream, unless another process does so meanwhile; return an entry that answers `request`."""
        while True:
            # Another task or process that had the turn before may have brought the answer.
            entry = await self._read(key)
            if request.is_answered_by(entry, self.clock()):
                return entry
            release = await self.run_store_work(lambda: self.store.lock(key))
            if release is None:
                await self.sleep(_BUSY_SECONDS)
                continue
            try:
                entry = await self._read(key)
                if not request.is_answered_by(entry, self.clock()):
                    entry = await self._refresh(key, entry)
                return entry
            finally:
                release()

    async def _read(self, key: str) -> Entry:
        return await self.run_store_work(lambda: self.store.read(key))

    async def ttl(self, key: str) -> float:
        """Return the seconds for which the kept content of `key` cannot be outdated.

        That is 0 if there is none, or it is stale.
        """
        entry = await self._read(key)
        if entry.body is None or entry.error is not None:
            return 0.0
        return max(0.0, entry.next_poll_at - self.clock())

    async def poll(self, key: str) -> float:
        """Check `key` if that is due and no other process does; return the seconds until the next check.

        Raises:
            NotFound: the upstream has nothing there.
        """
        entry = await self._read(key)
        if self.clock() >= entry.next_poll_at:
            release = await self.run_store_work(lambda: self.store.lock(key))
            if release is None:
                return 5 * _BUSY_SECONDS
            try:
                entry = await self._read(key)
                if self.clock() >= entry.next_poll_at:
                    entry = await self._refresh(key, entry)
            except NotFound:
                raise
            except Problem as problem:
                logger.info("Not polled: %s", problem)
                return _MAX_BACKOFF_SECONDS
            finally:
                release()
        return min(max(entry.next_poll_at - self.clock(), 0.0), _MAX_POLL_SECONDS)

    async def run_store_work(self, work: Callable[[], T]) -> T:
        """Run `work` on the store, on a worker thread if it may block."""
        if not self.store.blocks:
            return work()
        # The work is short, and a cancelled call does not abandon it: nobody would release a lock that it takes.
        return await anyio.to_thread.run_sync(work, limiter=self._threads)

    async def _refresh(self, key: str, entry: Entry) -> Entry:
        """Ask the upstream and keep its answer; the caller holds the lock."""
        scope = "pause " + self._scope(key)
        pause = await self.run_store_work(lambda: self.store.state(scope))
        remaining = float(pause.get("until", 0.0)) - self.clock()
        if remaining > 0:
            outcome: Outcome = Failed(str(pause["reason"]), remaining)
            now = self.clock()
        else:
            outcome = await self._ask(key, entry)
            now = self.clock()
            if isinstance(outcome, Failed) and outcome.everything:
                await self._pause(scope, outcome, now)
        refreshed = _update_entry(entry, outcome, now)
        has_changed = refreshed.digest != entry.digest
        try:
            await self.run_store_work(lambda: self.store.write(key, refreshed, body=has_changed))
        except OSError as error:
            # A full disk is not a reason to keep an answer from the caller.
            logger.warning("What was fetched could not be kept: %s", describe_os_error(error))
        return refreshed

    async def _ask(self, key: str, entry: Entry) -> Outcome:
        """Ask the upstream."""
        validators = Validators()
        # Without a body there is nothing that "not modified" could confirm.
        if entry.body:
            validators = Validators(entry.etag, entry.last_modified, entry.unchanged)
        try:
            return await self._fetch(key, validators)
        except NotFound:
            await self.run_store_work(lambda: self.store.drop(key))
            raise

    async def _pause(self, scope: str, failure: Failed, now: float) -> None:
        """Ask the upstream for nothing in `scope` until it allows it again."""
        pause = {"until": now + (failure.retry_after or _BACKOFF_SECONDS), "reason": failure.reason}
        with contextlib.suppress(Unavailable):
            await self.run_store_work(lambda: self.store.update(scope, lambda _: pause))

    def _snapshot(self, entry: Entry) -> Snapshot:
        """Return the answer to a caller.

        Raises:
            Unavailable: There is no content.
        """
        now = self.clock()
        if entry.body is None:
            wait = max(0.0, entry.retry_at - now)
            next_move = "Try again in a moment."
            if wait:
                next_move = f"Try again in {math.ceil(wait)} s."
            raise Unavailable(entry.error or "Nothing was fetched.", next_move, retry_after=wait or None)
        return Snapshot(
            body=entry.body,
            digest=entry.digest,
            fetched_at=entry.fetched_at,
            changed_at=entry.changed_at,
            next_poll_at=entry.next_poll_at,
            error=entry.error,
            now=now,
        )

    @asynccontextmanager
    async def _turn(self, key: str) -> AsyncGenerator[None]:
        """Let one task of this process at a time into the block for `key`."""
        turn = self._turns.get(key)
        if turn is None:
            turn = _Turn()
            self._turns[key] = turn
        turn.users += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.users -= 1
            if not turn.users:
                del self._turns[key]


def _update_entry(entry: Entry, outcome: Outcome, now: float) -> Entry:
    """Return what is known once `outcome` came at `now`."""
    match outcome:
        case FetchResult():
            return _after_fetch(entry, outcome, now)
        case NotModified():
            return Entry(
                body=entry.body,
                digest=entry.digest,
                changed_at=entry.changed_at,
                fetched_at=now,
                next_poll_at=now + outcome.poll_after,
                etag=entry.etag,
                last_modified=entry.last_modified,
                unchanged=entry.unchanged + 1,
            )
        case Failed():
            backoff = min(_BACKOFF_SECONDS * 2 ** min(entry.failures, 20), _MAX_BACKOFF_SECONDS)
            retry_after = outcome.retry_after or 0.0
            return replace(
                entry,
                error=outcome.reason,
                failed_at=now,
                failures=entry.failures + 1,
                next_poll_at=now + max(backoff, retry_after),
                retry_at=now + retry_after if retry_after else 0.0,
            )


def _after_fetch(entry: Entry, fetched: FetchResult, now: float) -> Entry:
    digest = fetched.digest or hashlib.blake2b(fetched.body, digest_size=20).hexdigest()
    is_same = entry.body is not None and digest == entry.digest
    return Entry(
        body=entry.body if is_same else fetched.body,
        digest=digest,
        changed_at=entry.changed_at if is_same else now,
        fetched_at=now,
        next_poll_at=now + fetched.poll_after,
        etag=fetched.etag,
        last_modified=fetched.last_modified,
        unchanged=entry.unchanged + 1 if is_same else 0,
    )
