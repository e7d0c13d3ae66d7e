"""Starts and ends with the server: the demo, the workers, and the results that have more pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio

from mcp_sqlite.engine import demo_database
from mcp_sqlite.engine.result_pages import ResultPages
from mcp_sqlite.engine.workers.pool import WorkerPool
from mcp_sqlite.policy import VisibleSchema

__all__ = ["Lifetime", "worker_options"]


class Lifetime:
    """Has workers ready while it is entered, by anybody.

    Args:
        demo: where to make the demo database, if it is served.
    """

    def __init__(self, pool: WorkerPool, pages: ResultPages, demo: str | None = None) -> None:
        self._pool = pool
        self._pages = pages
        self._demo = demo
        self._making_demo = anyio.Lock()
        self._running_pools: list[AbstractAsyncContextManager[None]] = []

    async def __aenter__(self) -> None:
        # The SDK's SSE transport enters once per connection, and leaves in any order.
        async with self._making_demo:
            if self._demo is not None:
                await demo_database.make_demo_database(self._demo)
                self._demo = None
        running_pool = self._pool.running()
        await running_pool.__aenter__()
        self._running_pools.append(running_pool)

    async def __aexit__(self, *_: object) -> None:
        await self._running_pools.pop().__aexit__(None, None, None)
        if not self._running_pools:
            self._pages.close()


def worker_options(parts: Mapping[str, VisibleSchema], folder: str | None, *, has_vectors: bool) -> list[str]:
    """Return what each worker knows before any request, so that none can forget it.

    Args:
        parts: what is served of the databases at these addresses, of others everything.
        folder: whose files statements can read as tables.
        has_vectors: whether sqlite-vec is to be there.
    """
    options: list[str] = []
    if has_vectors:
        options.append("--sqlite-vec")
    if folder:
        options += ["--files", folder]
    visible_names = _describe_parts(parts)
    if visible_names:
        options += ["--parts", json.dumps(visible_names)]
    return options


def _describe_parts(parts: Mapping[str, VisibleSchema]) -> dict[str, Any]:
    """Return what is served of databases, as a worker reads it: tables, and masked columns, by address."""
    visible_names: dict[str, Any] = {}
    for address, part in parts.items():
        if part:
            visible_names[address] = [[table for (table,) in sorted(part.only)], sorted(part.masked)]
    return visible_names
