"""Starts and ends with the server: the demo, the connections, and the results that have more pages."""

from __future__ import annotations

import anyio

from mcp_postgres.engine.pools import ConnectionPools
from mcp_postgres.engine.query.pages import ResultPages

__all__ = ["Lifetime"]


class Lifetime:
    """Keeps connections and results while it is entered, by anybody."""

    def __init__(self, pools: ConnectionPools, pages: ResultPages) -> None:
        self._pools = pools
        self._pages = pages
        self._entered = 0

    async def __aenter__(self) -> None:
        # The SDK's SSE transport enters once per connection, and leaves in any order.
        self._entered += 1
        if self._entered == 1:
            self._pools.open()

    async def __aexit__(self, *_: object) -> None:
        self._entered -= 1
        if self._entered:
            return
        with anyio.CancelScope(shield=True):
            self._pages.close()
            await self._pools.close()
