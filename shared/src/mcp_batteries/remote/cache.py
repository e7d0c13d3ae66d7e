"""What was fetched, how old it is, when to check again and who may check."""

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

from mcp_batteries.errors import NotFound, Problem, Unavailable, reason
from mcp_batteries.remote.entry import Entry, Store

__all__ = ["Cache", "Failed", "Fetch", "Fresh", "NotModified", "Outcome", "Snapshot", "Validators"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

_BUSY_SECONDS = 0.1
"""Between two tries for a lock that another process holds."""
_BACKOFF_SECONDS = (5.0, 900.0)
"""Until a failed look is repeated: doubled with each failure, up to the second number."""
_PATIENCE = 2
"""Failures in a row after which callers are answered from the cache at once until the next look is due."""
_CLOCK_SECONDS = 60.0
"""What was fetched further in the future was fetched under a clock that was wrong."""
_THREADS = 8
_LONGEST_POLL = 86_400.0


@dataclass(frozen=True)
class Validators:
    """What a fetcher sends along so that the upstream can say "not modified"."""

    etag: str | None = None
    last_modified: str | None = None
    unchanged: int = 0
    """Looks in a row that found nothing new, for a cadence that slows down."""


@dataclass(frozen=True)
class Fresh:
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


Outcome = Fresh | NotModified | Failed
Fetch = Callable[[str, Validators], Awaitable[Outcome]]
"""Fetch one resource. A `Problem` raised here is final for the caller; `NotFound` also drops what was kept."""


@dataclass(frozen=True)
class Snapshot:
    """An answer: the last good content, and how reliable it is."""

    body: bytes
    digest: str
    fetched_at: float
    changed_at: float
    next_poll_at: float
    error: str | None
    """Why nothing newer could be had; None when it is as fresh as the upstream allows."""
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
        return 0.0 if self.stale else max(0.0, self.next_poll_at - self.now)

    def json(self) -> Any:
        return json.loads(self.body)


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
        self._turns: dict[str, tuple[anyio.Lock, int]] = {}

    async def __aenter__(self) -> Cache:
        try:
            await self.do(self.store.tidy)
        except OSError as error:
            logger.warning("The cache could not be tidied: %s", reason(error))
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def get(self, key: str, *, max_age: float = math.inf) -> Snapshot:
        """The content of `key`: kept, fetched, or the last good one if nothing newer is available.

        Args:
            max_age: seconds; older content is fetched again even if it is not due. 0 always fetches.

        Raises:
            Unavailable: nothing was ever fetched, and nothing can be fetched now.
            Problem: what the fetcher raised.
        """
        asked = self.clock()

        def answers(entry: Entry) -> bool:
            now = self.clock()
            if entry.error is not None:
                waits = entry.body is not None and entry.failures >= _PATIENCE and now < entry.next_poll_at
                return waits or now < entry.retry_at or entry.failed_at >= asked
            if entry.body is None or now >= entry.next_poll_at or entry.fetched_at > now + _CLOCK_SECONDS:
                return False
            return entry.fetched_at >= asked or now - entry.fetched_at < max_age

        entry = await self.do(lambda: self.store.read(key))
        if not answers(entry):
            async with self._turn(key):
                # Whoever had the turn before may have brought the answer, in this process or in another.
                while not answers(entry := await self.do(lambda: self.store.read(key))):
                    release = await self.do(lambda: self.store.lock(key))
                    if release is None:
                        await self.sleep(_BUSY_SECONDS)
                        continue
                    try:
                        entry = await self.do(lambda: self.store.read(key))
                        if not answers(entry):
                            entry = await self._look(key, entry)
                        break
                    finally:
                        release()
        return self._snapshot(entry)

    async def ttl(self, key: str) -> float:
        """Seconds for which the kept content of `key` cannot be outdated; 0 if there is none, or it is stale."""
        entry = await self.do(lambda: self.store.read(key))
        if entry.body is None or entry.error is not None:
            return 0.0
        return max(0.0, entry.next_poll_at - self.clock())

    async def poll(self, key: str) -> float:
        """Check `key` if that is due and nobody else does; returns seconds until the next check.

        Raises:
            NotFound: the upstream has nothing there.
        """
        entry = await self.do(lambda: self.store.read(key))
        if self.clock() >= entry.next_poll_at:
            release = await self.do(lambda: self.store.lock(key))
            if release is None:
                return 5 * _BUSY_SECONDS
            try:
                entry = await self.do(lambda: self.store.read(key))
                if self.clock() >= entry.next_poll_at:
                    try:
                        entry = await self._look(key, entry)
                    except NotFound:
                        raise
                    except Problem as problem:
                        logger.info("Not polled: %s", problem)
                        return _BACKOFF_SECONDS[1]
            finally:
                release()
        return min(max(entry.next_poll_at - self.clock(), 0.0), _LONGEST_POLL)

    async def do(self, work: Callable[[], T]) -> T:
        """Run `work` on the store, on a worker thread if it may block."""
        if not self.store.blocks:
            return work()
        # Short, and not abandoned by a cancelled call: nobody would release a lock it takes.
        return await anyio.to_thread.run_sync(work, limiter=self._threads)

    async def _look(self, key: str, entry: Entry) -> Entry:
        """Ask the upstream and keep its answer; the caller holds the lock."""
        scope = "pause " + self._scope(key)
        pause = await self.do(lambda: self.store.state(scope))
        left = float(pause.get("until", 0.0)) - self.clock()
        if left > 0:
            outcome: Outcome = Failed(str(pause["reason"]), left)
        else:
            # Without a body there is nothing that "not modified" could confirm.
            known = Validators(entry.etag, entry.last_modified, entry.unchanged) if entry.body else Validators()
            try:
                outcome = await self._fetch(key, known)
            except NotFound:
                await self.do(lambda: self.store.drop(key))
                raise
        now = self.clock()
        if isinstance(outcome, Failed) and outcome.everything and left <= 0:
            until = {"until": now + (outcome.retry_after or _BACKOFF_SECONDS[0]), "reason": outcome.reason}
            with contextlib.suppress(Unavailable):
                await self.do(lambda: self.store.update(scope, lambda _: until))
        after = _after(entry, outcome, now)
        changed = after.digest != entry.digest
        try:
            await self.do(lambda: self.store.write(key, after, body=changed))
        except OSError as error:
            # A full disk is not a reason to keep an answer from the caller.
            logger.warning("What was fetched could not be kept: %s", reason(error))
        return after

    def _snapshot(self, entry: Entry) -> Snapshot:
        now = self.clock()
        if entry.body is None:
            reason = entry.error or "Nothing was fetched."
            wait = max(0.0, entry.retry_at - now)
            again = f"Try again in {math.ceil(wait)} s." if wait else "Try again in a moment."
            raise Unavailable(reason, again, retry_after=wait or None)
        return Snapshot(
            entry.body, entry.digest, entry.fetched_at, entry.changed_at, entry.next_poll_at, entry.error, now
        )

    @asynccontextmanager
    async def _turn(self, key: str) -> AsyncGenerator[None]:
        lock, users = self._turns.get(key, (anyio.Lock(), 0))
        self._turns[key] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            lock, users = self._turns[key]
            if users > 1:
                self._turns[key] = lock, users - 1
            else:
                del self._turns[key]


def _after(entry: Entry, outcome: Outcome, now: float) -> Entry:
    """What is known once `outcome` came at `now`."""
    match outcome:
        case Fresh():
            digest = outcome.digest or hashlib.blake2b(outcome.body, digest_size=20).hexdigest()
            same = entry.body is not None and digest == entry.digest
            return Entry(
                body=entry.body if same else outcome.body,
                digest=digest,
                changed_at=entry.changed_at if same else now,
                fetched_at=now,
                next_poll_at=now + outcome.poll_after,
                etag=outcome.etag,
                last_modified=outcome.last_modified,
                unchanged=entry.unchanged + 1 if same else 0,
            )
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
            first, longest = _BACKOFF_SECONDS
            wait = max(min(first * 2 ** min(entry.failures, 20), longest), outcome.retry_after or 0.0)
            return replace(
                entry,
                error=outcome.reason,
                failed_at=now,
                failures=entry.failures + 1,
                next_poll_at=now + wait,
                retry_at=now + outcome.retry_after if outcome.retry_after else 0.0,
            )
