"""Reads what the catalog says of a table, and suggests another where there is none of the name."""

from __future__ import annotations

import functools
from typing import Any

from mcp_postgres.engine.catalog import description
from mcp_postgres.engine.pools import ConnectionPools
from mcp_postgres.policy import Table

__all__ = ["read_description"]


async def read_description(pools: ConnectionPools, table: Table) -> dict[str, Any]:
    """Return what the catalog says of a table.

    Raises:
        NotFound: there is none.
    """
    described = pools.within(table.database, functools.partial(description.describe, table=table))
    return await pools.run_with_suggestion(table.database, "", described)
