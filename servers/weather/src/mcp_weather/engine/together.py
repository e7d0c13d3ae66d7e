"""Several questions at once, each of which may fail alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio

from mcp_batteries.errors import Problem

__all__ = ["attempt", "together"]

T = TypeVar("T")


async def attempt(work: Callable[[], Awaitable[T]]) -> T | Problem:
    """What `work` returns, or the problem that it raises."""
    try:
        return await work()
    except Problem as problem:
        return problem


async def together(*work: Callable[[], Awaitable[Any]]) -> list[Any]:
    """The results of all; the first failure ends the others and is raised as it is."""
    results: list[Any] = [None] * len(work)
    failures: list[Problem] = []

    async def run(index: int, one: Callable[[], Awaitable[Any]]) -> None:
        try:
            results[index] = await one()
        except Problem as problem:
            failures.append(problem)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for index, one in enumerate(work):
            tasks.start_soon(run, index, one)
    if failures:
        raise failures[0]
    return results
