"""Changes the tools of a running server, for as long as it runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio

from mcp_batteries.server.assemble import Assembled

__all__ = ["DynamicTools"]


class DynamicTools(ABC):
    """Changes the tools while the server runs.

    It is entered with the server, perhaps once per connection, and begins with the first.

    Attributes:
        server: set once it is built.
    """

    def __init__(self) -> None:
        self.server: Assembled | None = None
        self._blocks: list[AbstractAsyncContextManager[None]] = []

    async def __aenter__(self) -> None:
        block = self._running()
        await block.__aenter__()
        self._blocks.append(block)

    async def __aexit__(self, *_: object) -> None:
        await self._blocks.pop().__aexit__(None, None, None)

    @abstractmethod
    async def _begin(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """Do what must come before the server answers; return what runs from then on until it ends."""

    @asynccontextmanager
    async def _running(self) -> AsyncGenerator[None]:
        if self._blocks:
            yield
            return
        work = await self._begin()
        async with anyio.create_task_group() as tasks:
            for task in work:
                tasks.start_soon(task)
            yield
            tasks.cancel_scope.cancel()
