"""Bounds that really hold: time, pages and size.

Blocking work runs in one hop on a limiter of our own (the SDK's transports share anyio's default one) and
carries a `Stop`: when the caller cancels, the deadline passes or the connection ends, the work itself ends,
not only the waiting for it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from mcp_batteries.errors import Invalid, Unavailable

__all__ = ["DEFAULT_PAGE_BYTES", "Cursor", "Stop", "Stopped", "clip", "descriptors", "head", "in_thread"]

T = TypeVar("T")
DEFAULT_PAGE_BYTES = 10_000
"""Text bytes of one answer unless the caller asks otherwise: what every measured host passes on whole."""


class Stopped(Exception):
    """Raised inside blocking work when nobody waits for it any more."""


class Stop:
    """A stop sign for work on another thread: set once, polled by the work.

    Args:
        seconds: also stop this long from now; None for no deadline.
    """

    __slots__ = ("_event", "deadline")

    def __init__(self, seconds: float | None = None) -> None:
        self._event = threading.Event()
        self.deadline = None if seconds is None else time.monotonic() + seconds

    def set(self) -> None:
        self._event.set()

    def is_set(self) -> bool:
        """True once set, or past the deadline."""
        return self._event.is_set() or (self.deadline is not None and time.monotonic() > self.deadline)

    def check(self) -> None:
        """Return at once, or raise `Stopped`. Cheap enough for every few hundred items of a loop."""
        if self.is_set():
            raise Stopped


_limiters: tuple[anyio.CapacityLimiter, anyio.CapacityLimiter] | None = None
_limiters_loop: object | None = None


def _worker_limiter(long: bool) -> anyio.CapacityLimiter:
    # A pair per event loop: a limiter belongs to the loop it first waited on.
    global _limiters, _limiters_loop
    token = anyio.lowlevel.current_token()
    if _limiters is None or _limiters_loop != token:
        each = max(4, min(16, (os.cpu_count() or 1) * 2))
        _limiters, _limiters_loop = (anyio.CapacityLimiter(each), anyio.CapacityLimiter(each)), token
    return _limiters[long]


async def in_thread(
    work: Callable[[Stop], T],
    *,
    seconds: float | None = None,
    what: str = "The call",
    long: bool = False,
) -> T:
    """Run `work(stop)` on a worker thread and return its result.

    Cancelling the awaiting task sets the stop sign and returns at once; the thread ends at its next
    `stop.check()`. Past `seconds` the work is stopped the same way. What the work tells by `progress.tell` reaches
    whoever called the tool. `long` marks work that can take seconds: it has threads of its own, so that quick calls
    find one however much of it there is.

    Raises:
        Unavailable: The deadline passed; `what` names the work in the message.
    """
    stop = Stop(seconds)
    try:
        return await anyio.to_thread.run_sync(work, stop, abandon_on_cancel=True, limiter=_worker_limiter(long))
    except Stopped:
        raise Unavailable(
            f"{what} was stopped after {seconds:g} s, its time limit.",
            "Ask for less: a smaller folder, a narrower filter.",
        ) from None
    finally:
        stop.set()


def clip(text: str, limit: int, how: str) -> str:
    """`text`, or its first `limit` characters behind a line that says so and how to go on.

    The notice stands first because hosts cut the middle and the end of long results.
    """
    if len(text) <= limit:
        return text
    return f"[truncated: {limit} of {len(text)} characters; {how}]\n{text[:limit]}"


def head(text: str, most: int) -> str:
    """As much of `text` as `most` bytes of UTF-8 hold."""
    if len(text) <= most and text.isascii():
        return text
    data = text.encode("utf-8", "replace")
    return text if len(data) <= most else data[:most].decode("utf-8", "ignore")


def descriptors(wanted: int) -> int | None:
    """How many this process may have open, raised to `wanted` where the system lets it be; None where none are counted.

    Terminals of macOS leave a process 256.
    """
    if sys.platform == "win32":
        return None
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    if soft < wanted:
        more = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
            return more
    return soft


class Cursor:
    """Opaque page positions, valid for one listing with one set of arguments.

    A cursor carries its position and a digest over (kind, scope, position): a foreign or edited cursor is
    refused instead of giving a wrong page. The digest is not a secret: every position is one the caller may
    ask for, and replicas of one server accept each other's cursors.
    """

    @classmethod
    def encode(cls, kind: str, position: Any, scope: Any = None) -> str:
        """The cursor for `position` (JSON) in the listing `kind` with the arguments `scope` (JSON)."""
        body = json.dumps(position, separators=(",", ":"))
        digest = cls._digest(kind, scope, body)
        return base64.urlsafe_b64encode(digest + body.encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, kind: str, cursor: str, scope: Any = None) -> Any:
        """The position in `cursor`.

        Raises:
            Invalid: `cursor` was not made here for this listing and these arguments.
        """
        try:
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            body = raw[8:].decode()
            if raw[:8] == cls._digest(kind, scope, body):
                return json.loads(body)
        except ValueError:
            pass
        raise Invalid(
            "The `cursor` was not issued for this listing with these arguments.",
            "Call again without `cursor` to start from the first page.",
        )

    @classmethod
    def _digest(cls, kind: str, scope: Any, body: str) -> bytes:
        message = json.dumps([kind, scope, body], separators=(",", ":"), sort_keys=True).encode(
            "utf-8", "surrogatepass"
        )
        return hashlib.blake2b(message, digest_size=8).digest()
