"""Progress of a long call: what its work counts, or otherwise that it still runs.

A host gives up a silent call after a minute, but keeps waiting if it hears of progress. So every tool call reports it,
without the tool's help; a tool that can count reports more with `report_progress`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from types import TracebackType
from typing import NamedTuple
from weakref import WeakKeyDictionary

import anyio

from mcp_batteries.concurrency.timeout_queue import TimeoutQueue
from mcp_batteries.errors import well_formed

__all__ = ["ProgressReporter", "SendProgress", "report_progress"]

# Sends (done, total, message) to the client; `ctx.report_progress` is one.
SendProgress = Callable[[float, float | None, str | None], Awaitable[None]]

_LOOK_SECONDS = 0.1
_SILENT_SECONDS = 2.0
# Each notification has to exceed the one before, and no count of work is as small.
_STEP = 0.001


class _Progress(NamedTuple):
    done: float
    total: float | None
    message: str | None


class _Call:
    """The latest progress of one call; set on every thread that works for it."""

    __slots__ = ("latest",)

    def __init__(self) -> None:
        self.latest: _Progress | None = None


_timeout_queues: WeakKeyDictionary[asyncio.AbstractEventLoop, TimeoutQueue] = WeakKeyDictionary()
_call: ContextVar[_Call | None] = ContextVar("call", default=None)


def report_progress(done: float, total: float | None = None, message: str | None = None) -> None:
    """Report how far the current call is, from any of its threads and as often as is convenient."""
    call = _call.get()
    if call is not None:
        call.latest = _Progress(done, total, message)


class ProgressReporter:
    """A block that reports what its code tells, at most ten times a second.

    After two silent seconds it reports that it still runs. Most calls end before there is anything to report, or any
    deadline is near: until then this costs almost nothing. Inside another such block it reports through the outer one.

    Args:
        report: sends the progress to the client.
        name: of what runs.
        seconds: how long the block may take; then it is cancelled, and `TimeoutError` is raised.
    """

    __slots__ = (
        "_began",
        "_call",
        "_late",
        "_loop",
        "_name",
        "_outer",
        "_relays",
        "_report",
        "_scope",
        "_seconds",
        "_token",
    )

    def __init__(self, report: SendProgress, name: str, seconds: float = math.inf) -> None:
        self._report = report
        self._name = name
        self._seconds = seconds
        self._outer = _call.get()
        self._relays: list[asyncio.Task[None]] = []
        self._call = self._outer or _Call()
        self._scope = anyio.CancelScope()
        self._loop = asyncio.get_running_loop()

    async def __aenter__(self) -> None:
        self._began = self._loop.time()
        self._scope.__enter__()
        self._token = _call.set(self._call)
        if self._seconds < _LOOK_SECONDS:
            self._late = self._loop.call_later(self._seconds, self._begin)
            return
        look = _timeout_queues.get(self._loop)
        if look is None:
            look = TimeoutQueue(_LOOK_SECONDS)
            _timeout_queues[self._loop] = look
        self._late = look.begin(self._begin)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _call.reset(self._token)
        self._late.cancel()
        try:
            for relay in self._relays:
                relay.cancel()
                with anyio.CancelScope(shield=True):
                    await asyncio.wait((relay,))
                if not relay.cancelled():
                    relay.result()
        finally:
            self._scope.__exit__(kind, error, trace)
        if self._scope.cancelled_caught:
            raise TimeoutError

    def _begin(self) -> None:
        self._scope.deadline = self._began + self._seconds
        if self._outer is not None:
            return
        relay = _relay(self._call, self._report, self._name, self._began)
        self._relays.append(self._loop.create_task(relay))


async def _relay(call: _Call, report: SendProgress, name: str, began: float) -> None:
    """Send the progress of `call`, and that it still runs when it is silent."""
    reported: _Progress | None = None
    done = 0.0
    sent_at = began
    while True:
        await anyio.sleep(_LOOK_SECONDS)
        now = asyncio.get_running_loop().time()
        if call.latest is not None and call.latest != reported:
            reported = call.latest
        elif now - sent_at < _SILENT_SECONDS:
            continue
        progress = reported or _Progress(0.0, None, f"{name} has run for {now - began:.0f} s")
        done = max(done + _STEP, progress.done)
        message = progress.message
        if message:
            # A file name in it may not be UTF-8, which no transport can write.
            message = well_formed(message)
        try:
            await report(done, progress.total, message)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return  # The client has gone, which ends the call by other means.
        sent_at = now
