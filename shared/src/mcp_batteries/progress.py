"""What a long call tells while it runs: what its work counts, or else that it still runs.

A host that hears of progress waits on, where it would give up a silent call after a minute. So every tool call tells,
and no tool has to think of it; one that can count says more by `tell`.
"""

from __future__ import annotations

import asyncio
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
    call, relays = _Call(), list[asyncio.Task[None]]()
    loop = asyncio.get_running_loop()
    began = time.monotonic()
    # Most calls are done before there is anything to tell, and a task for each would cost as much as their work.
    late = loop.call_later(_LOOK_SECONDS, lambda: relays.append(loop.create_task(_relay(call, report, name, began))))
    token = _call.set(call)
    try:
        yield
    finally:
        _call.reset(token)
        late.cancel()
        for relay in relays:
            relay.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait((relay,))
            if not relay.cancelled():
                relay.result()


async def _relay(call: _Call, report: Report, name: str, began: float) -> None:
    told: _Told | None = None
    done, spoke = 0.0, began
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
