"""Several requests at once, each of which may fail separately, even with an unforeseen answer."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio

from mcp_batteries.errors import Problem, Unavailable

__all__ = ["attempt", "gather", "translate_error"]

T = TypeVar("T")

_log = logging.getLogger(__name__)

# The package that reads answers: what fails inside it fails because of one.
_READING_PACKAGE = "mcp_weather.engine"


def translate_error(error: Exception) -> Problem | None:
    """Return what an exception stands for that came of a service's answer; None for one that did not."""
    if isinstance(error, Problem):
        return error
    if not isinstance(error, LookupError | TypeError | AttributeError | ValueError | ArithmeticError):
        return None
    modules = [str(frame.f_globals.get("__name__", "")) for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not any(module.startswith(_READING_PACKAGE) for module in modules):
        return None
    _log.error("an answer of a weather service was not understood", exc_info=error)
    return Unavailable("A weather service's answer can't be understood.", "Try again later, or ask for other values.")


async def attempt(work: Callable[[], Awaitable[T]]) -> T | Problem:
    """Return what `work` returns, or the problem that it raises."""
    try:
        return await work()
    except Exception as error:
        problem = translate_error(error)
        if problem is None:
            raise
        return problem


async def gather(*work: Callable[[], Awaitable[Any]]) -> list[Any]:
    """Return the results of all; the first failure ends the others and is raised as it is."""
    results: list[Any] = [None] * len(work)
    failures: list[Problem] = []

    async def run(index: int, task: Callable[[], Awaitable[Any]]) -> None:
        try:
            results[index] = await task()
        except Exception as error:
            problem = translate_error(error)
            if problem is None:
                raise
            failures.append(problem)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for index, task in enumerate(work):
            tasks.start_soon(run, index, task)
    if failures:
        raise failures[0]
    return results
