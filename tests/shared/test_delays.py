"""Timers that run equally long and share one of the loop's."""

import asyncio
import gc
import weakref
from contextvars import ContextVar

import anyio
import pytest

from mcp_batteries.concurrency.timeout_queue import TimeoutQueue

pytestmark = pytest.mark.anyio


async def test_who_waits_to_the_end_is_called_in_order_and_no_other() -> None:
    delay, called, done = TimeoutQueue(0.01), list[int](), anyio.Event()
    waits = [delay.begin(lambda number=number: called.append(number)) for number in range(10)]
    for wait in waits[::3]:
        wait.cancel()
    delay.begin(done.set)
    with anyio.fail_after(30):
        await done.wait()
    assert called == [1, 2, 4, 5, 7, 8]


async def test_one_that_is_called_can_cancel_the_next() -> None:
    delay, called, done = TimeoutQueue(0.01), list[str](), anyio.Event()
    delay.begin(lambda: second.cancel())
    second = delay.begin(lambda: called.append("second"))
    delay.begin(done.set)
    with anyio.fail_after(30):
        await done.wait()
    assert not called


async def test_one_that_fails_is_told_and_the_others_are_called() -> None:
    told: list[object] = []
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: told.append(context.get("exception")))
    try:
        delay, done = TimeoutQueue(0.01), anyio.Event()
        delay.begin(lambda: 1 / 0)
        delay.begin(done.set)
        with anyio.fail_after(30):
            await done.wait()
        assert [type(each) for each in told] == [ZeroDivisionError]
    finally:
        loop.set_exception_handler(before)


async def test_it_is_called_in_the_context_of_who_began_and_waits_anew_afterwards() -> None:
    who = ContextVar[str]("who")
    delay, seen = TimeoutQueue(0.01), list[str]()
    for name in ("first", "second"):
        done = anyio.Event()

        async def begin(name: str = name, done: anyio.Event = done) -> None:
            who.set(name)
            delay.begin(lambda: (seen.append(who.get()), done.set()))

        await asyncio.create_task(begin())
        with anyio.fail_after(30):
            await done.wait()
    assert seen == ["first", "second"]


class _Held:
    """Something large that a call has."""


@pytest.mark.slow
async def test_what_a_call_held_goes_with_it() -> None:
    """However long the wait would have been, and whoever waits behind it."""
    what = ContextVar[_Held]("what")
    long, short, fired = TimeoutQueue(3600), TimeoutQueue(0.01), anyio.Event()
    seen = list[weakref.ref[_Held]]()

    async def call() -> None:
        held = _Held()
        seen.append(weakref.ref(held))
        what.set(held)
        long.begin(fired.set).cancel()
        short.begin(lambda: short.begin(fired.set))

    await asyncio.create_task(call())
    with anyio.fail_after(30):
        await fired.wait()
    behind = short.begin(fired.set)
    gc.collect()
    assert seen[0]() is None
    behind.cancel()
