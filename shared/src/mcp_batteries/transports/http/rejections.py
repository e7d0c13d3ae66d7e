"""Records who was rejected over HTTP, from where and why: in the log and in the audit, without floods.

The first refusal of a kind is reported at once, others of the same kind and caller as one count per minute. Values that
a client made up (a host, an origin, a token, a path) are left out.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Scope

from mcp_batteries.observability.audit import caller_in
from mcp_batteries.transports.http.auth.callers import network_of

__all__ = ["Rejections", "set_reason"]

_TOLD = {
    401: "token",
    403: "scope",
    408: "time",
    413: "size",
    421: "host",
    429: "limit",
    503: "sessions",
}
"""Statuses that are refusals, with the reason where nobody says more. Others are mistakes in what was asked."""
_SECONDS = 60.0
_MOST_KINDS = 24
"""Told apart within a minute, in two lines each: the log grows by less than 10 kB. Beyond it callers are not."""

_REASON = "refusal"

_log = logging.getLogger(__name__)

Line = dict[str, Any]
_Kind = tuple[tuple[tuple[str, str], ...], int, str]


def set_reason(scope: Scope, reason: str) -> None:
    """Record why the request `scope` is refused, in this server's own words."""
    scope.setdefault("state", {})[_REASON] = reason


class Rejections:
    """Reports refusals.

    Args:
        tell: receives each line: the caller's `identity` (where it is known) and `address`, `status`, `reason`,
            `times`.
        seconds: the interval with at most one line for each caller, status and reason.
    """

    def __init__(self, tell: Callable[[Line], None] = lambda line: None, seconds: float = _SECONDS) -> None:
        self._tell = tell
        self._seconds = seconds
        self._untold: Counter[_Kind] = Counter()
        self._began = -float("inf")
        self._timer: asyncio.TimerHandle | None = None

    def note(self, scope: Scope, status: int) -> None:
        """Record that the request `scope` was answered with `status`, if that is a refusal."""
        reason = scope.get("state", {}).get(_REASON) or _TOLD.get(status)
        if status == 404 and "mcp-session-id" in Headers(scope=scope):
            reason = "session"  # Over, never there, or another caller's.
        if reason is None:
            return
        if time.monotonic() - self._began >= self._seconds:
            self.end()
            self._began = time.monotonic()
        who = caller_in(scope)
        if "address" in who:
            who["address"] = network_of(who["address"])
        kind = (tuple(who.items()), status, reason)
        if kind not in self._untold and len(self._untold) >= _MOST_KINDS:
            kind = ((), status, reason)
        if kind in self._untold:
            self._untold[kind] += 1
            if self._timer is None:
                left = self._began + self._seconds - time.monotonic()
                self._timer = asyncio.get_running_loop().call_later(left, self.end)
        else:
            self._untold[kind] = 0
            self._line(dict(kind[0]), status, reason, 1)

    def end(self) -> None:
        """Report what is still pending."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        untold = self._untold
        self._untold = Counter()
        for (who, status, reason), times in untold.items():
            if times:
                self._line(dict(who), status, reason, times)

    def _line(self, who: Mapping[str, str], status: int, reason: str, times: int) -> None:
        self._tell({**who, "status": status, "reason": reason, "times": times})
        named = " at ".join(word for word in (who.get("identity"), who.get("address")) if word) or "many"
        _log.warning("refused with %d (%s): %s, %d times", status, reason, ascii(named)[1:-1], times)
