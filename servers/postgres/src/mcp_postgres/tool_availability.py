"""Does not offer a tool that would refuse every call, which only a check of the databases shows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from mcp_batteries.errors import Problem
from mcp_batteries.server.dynamic_tools import DynamicTools
from mcp_postgres.engine.change.commit import SCHEMA_FIX, can_reach_server
from mcp_postgres.engine.connection.session import Session
from mcp_postgres.engine.pools import ConnectionPools
from mcp_postgres.policy import Policy

__all__ = ["ToolAvailability"]

logger = logging.getLogger(__name__)


class ToolAvailability(DynamicTools):
    """Withdraws `edit_schema` if no database's role may use it, while the server already runs."""

    def __init__(self, policy: Policy, pools: ConnectionPools) -> None:
        super().__init__()
        self._policy = policy
        self._pools = pools

    async def _begin(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        return [self._check_databases]

    async def _check_databases(self) -> None:
        reasons: list[str] = []
        for database in self._policy.databases.values():
            try:
                reason = await self._pools.within(database, _explain_closed)
            except Problem:
                return  # it may be up later, or have another role
            if reason is None:
                return
            reasons.append(f"the role of `{database.name}` {reason}")
        roles = "; ".join(reasons)
        logger.warning("`edit_schema` is not offered without `--admin`: %s.", roles)
        assert self.server is not None
        reason = f"It could reach files and programs by what it defines, because {roles}. {SCHEMA_FIX}"
        await self.server.offer([], {"edit_schema"}, reason)


async def _explain_closed(session: Session) -> str | None:
    """Return why no change of the schema would be taken from this server's role; None where some would."""
    if can_reach_server(session):
        return session.role.explain_judging()
    return None
