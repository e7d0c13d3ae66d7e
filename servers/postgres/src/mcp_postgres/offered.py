"""A tool that would refuse every call is not offered; which one that is, only a look at the databases tells."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio

from mcp_batteries.errors import Problem
from mcp_batteries.server.assemble import Assembled
from mcp_postgres.engine.service import Engine
from mcp_postgres.policy import Policy

__all__ = ["Offered"]

logger = logging.getLogger(__name__)


class Offered:
    """Takes `edit_schema` back where no database's role may use it; entered with the server, which is up meanwhile."""

    def __init__(self, policy: Policy, engine: Engine) -> None:
        self._policy, self._engine = policy, engine
        self.server: Assembled | None = None
        """Set once it is built."""
        self._blocks: list[AbstractAsyncContextManager[None]] = []

    async def __aenter__(self) -> None:
        block = self._running()
        await block.__aenter__()
        self._blocks.append(block)

    async def __aexit__(self, *_: object) -> None:
        await self._blocks.pop().__aexit__(None, None, None)

    @asynccontextmanager
    async def _running(self) -> AsyncGenerator[None]:
        if self._blocks:
            yield
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._look)
            yield
            tasks.cancel_scope.cancel()

    async def _look(self) -> None:
        reasons: list[str] = []
        for database in self._policy.databases.values():
            try:
                why = await self._engine.closed_to_schema(database)
            except Problem:
                return  # it may be up later, or have another role
            if why is None:
                return
            reasons.append(f"the role of `{database.name}` {why}")
        logger.warning("`edit_schema` is not offered without `--admin`: %s.", "; ".join(reasons))
        assert self.server is not None
        await self.server.offer([], {"edit_schema"})
