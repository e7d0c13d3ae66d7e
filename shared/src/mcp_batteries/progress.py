"""What a long call tells while it runs: what its work counts, or else that it still runs.

A host that hears of progress waits on, where it would give up a silent call after a minute. So every tool call tells,
and no tool has to think of it; one that can count says more by `tell`.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar

import anyio

from mcp_batteries.errors import well_formed

__all__ = ["Report", "reported", "tell"]

Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""(done, total, message) -> told; `ctx.report_progress` is one."""

_Told = tuple[float, float | None, str | None]

_LOOK_SECONDS = 0.1
_SILENT_SECONDS = 2.0
_STEP = 0.001
"""Each notification has to exceed the one before, and no count of work is as small."""


class _Call:
    """What was told last of one call; set on whatever thread works for it."""

    __slots__ = ("told",)

    def __init__(self) -> None:
        self.told: _Told | None = None


_call: ContextVar[_Call | None] = ContextVar("call", default=None)


def tell(done: float, total: float | None = None, message: str | None = None) -> None:
    """Say how far the call is for which this is done; from any of its threads, and as often as is convenient."""
    call = _call.get()
    if call is not None:
        call.told = (done, total, message)


@asynccontextmanager
async def reported(report: Report, name: str) -> AsyncGenerator[None]:
    """Report what is told within, at most ten times a second; after two seconds of silence, that `name` still runs."""
    call, failure = _Call(), None
    token = _call.set(call)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_relay, call, report, name)
            try:
                yield
            except (Exception, SystemExit) as error:  # noqa: BLE001 - raised again below, outside the group that would wrap it
                failure = error
            tasks.cancel_scope.cancel()
    finally:
        _call.reset(token)
    if failure is not None:
        raise failure


async def _relay(call: _Call, report: Report, name: str) -> None:
    told: _Told | None = None
    done, began = 0.0, time.monotonic()
    spoke = began
    while True:
        await anyio.sleep(_LOOK_SECONDS)
        now = time.monotonic()
        if call.told is not None and call.told != told:
            told = call.told
        elif now - spoke < _SILENT_SECONDS:
            continue
        total, message = (told[1], told[2]) if told else (None, f"{name} has run for {now - began:.0f} s")
        done = max(done + _STEP, told[0] if told else 0.0)
        # A file name in it may not be UTF-8, which no transport can write.
        try:
            await report(done, total, message and well_formed(message))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return  # whoever would hear of it has gone, which ends the call by other means
        spoke = now
