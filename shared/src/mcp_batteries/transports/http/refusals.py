"""Records who was rejected over HTTP, from where and why: in the log and in the audit, without floods.

The first refusal of a kind is reported at once, others of the same kind and caller as one count per minute. Values that
a client made up (a host, an origin, a token, a path) are left out.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from starlette.datastructures import Headers
from starlette.types import Scope

from mcp_batteries.observability.audit import REFUSED_STATUS, caller_of_scope
from mcp_batteries.transports.http.callers import network_of

__all__ = ["Refusals", "set_reason", "set_refused_status"]

# Statuses that are refusals, with the reason where nobody says more. Other statuses answer mistakes in a request.
_DEFAULT_REASONS = {
    401: "token",
    403: "scope",
    408: "time",
    413: "size",
    421: "host",
    429: "limit",
    503: "sessions",
}
_SECONDS = 60.0
# The kinds that are distinguished within a minute, in two lines each: the log grows by less than 10 kB. Beyond them the
# callers are left out.
_MAX_KINDS = 24

_REASON = "refusal"

_log = logging.getLogger(__name__)

Line = dict[str, Any]


class _Kind(NamedTuple):
    """What refusals have in common that are reported together.

    Attributes:
        caller: the caller's names; empty where there are too many kinds.
    """

    caller: tuple[tuple[str, str], ...]
    status: int
    reason: str


def set_reason(scope: Scope, reason: str) -> None:
    """Record why the request `scope` is refused, in this server's own words."""
    scope.setdefault("state", {})[_REASON] = reason


def set_refused_status(scope: Scope, status: int) -> None:
    """Record the status of the refusal of the request `scope`, whose response has another."""
    scope.setdefault("state", {})[REFUSED_STATUS] = status


class Refusals:
    """Reports refusals.

    Args:
        write: receives each line: the caller's `identity` (where it is known) and `address`, `status`, `reason`,
            `times`.
        seconds: the interval with at most one line for each caller, status and reason.
    """

    def __init__(self, write: Callable[[Line], None] = lambda line: None, seconds: float = _SECONDS) -> None:
        self._write = write
        self._seconds = seconds
        # How often each kind came again after it was reported.
        self._repeats: Counter[_Kind] = Counter()
        self._began = -float("inf")
        self._timer: asyncio.TimerHandle | None = None

    def record(self, scope: Scope, status: int) -> None:
        """Record that the request `scope` was answered with `status`, if that is a refusal."""
        reason = _reason_of(scope, status)
        if reason is None:
            return
        if time.monotonic() - self._began >= self._seconds:
            self.flush()
            self._began = time.monotonic()
        kind = _Kind(_caller_names(scope), status, reason)
        if kind not in self._repeats and len(self._repeats) >= _MAX_KINDS:
            kind = kind._replace(caller=())
        if kind in self._repeats:
            self._repeats[kind] += 1
            self._start_timer()
        else:
            self._repeats[kind] = 0
            self._report(kind, 1)

    def flush(self) -> None:
        """Report what is still pending."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        repeats = self._repeats
        self._repeats = Counter()
        for kind, times in repeats.items():
            if times:
                self._report(kind, times)

    def _start_timer(self) -> None:
        if self._timer is None:
            remaining = self._began + self._seconds - time.monotonic()
            self._timer = asyncio.get_running_loop().call_later(remaining, self.flush)

    def _report(self, kind: _Kind, times: int) -> None:
        caller = dict(kind.caller)
        self._write({**caller, "status": kind.status, "reason": kind.reason, "times": times})
        names = [name for name in (caller.get("identity"), caller.get("address")) if name]
        label = " at ".join(names) or "many"
        _log.warning("refused with %d (%s): %s, %d times", kind.status, kind.reason, ascii(label)[1:-1], times)


def _reason_of(scope: Scope, status: int) -> str | None:
    """Return why the request `scope` was refused, or None if `status` is not a refusal.

    The reason that was set is used up: another message of the same request has its own.
    """
    reason = scope.get("state", {}).pop(_REASON, None)
    if status == 404 and "mcp-session-id" in Headers(scope=scope):
        return "session"  # Over, never there, or another caller's.
    return reason or _DEFAULT_REASONS.get(status)


def _caller_names(scope: Scope) -> tuple[tuple[str, str], ...]:
    """Return the names of the caller; all addresses of one network count as one."""
    names = caller_of_scope(scope)
    if "address" in names:
        names["address"] = network_of(names["address"])
    return tuple(names.items())
