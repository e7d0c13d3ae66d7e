"""Several requests at once, each of which may fail separately, even with an unforeseen answer."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio

from mcp_batteries.errors import Problem, Unavailable

__all__ = ["attempt", "explained", "together"]

T = TypeVar("T")

_log = logging.getLogger(__name__)


def explained(error: Exception) -> Problem | None:
    """What an exception stands for that came of a service's answer; None for one that did not."""
    if isinstance(error, Problem):
        return error
    if not isinstance(error, LookupError | TypeError | AttributeError | ValueError | ArithmeticError):
        return None
    modules = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not any(str(name).startswith(__package__ or "") for name in modules):
        return None
    _log.error("an answer of a weather service was not understood", exc_info=error)
    return Unavailable("A weather service's answer can't be understood.", "Try again later, or ask for other values.")


async def attempt(work: Callable[[], Awaitable[T]]) -> T | Problem:
    """What `work` returns, or the problem that it raises."""
    try:
        return await work()
    except Exception as error:
        if (known := explained(error)) is None:
            raise
        return known


async def together(*work: Callable[[], Awaitable[Any]]) -> list[Any]:
    """The results of all; the first failure ends the others and is raised as it is."""
    results: list[Any] = [None] * len(work)
    failures: list[Problem] = []

    async def run(index: int, one: Callable[[], Awaitable[Any]]) -> None:
        try:
            results[index] = await one()
        except Exception as error:
            if (known := explained(error)) is None:
                raise
            failures.append(known)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for index, one in enumerate(work):
            tasks.start_soon(run, index, one)
    if failures:
        raise failures[0]
    return results
