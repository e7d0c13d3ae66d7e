"""What the server does by itself: removing what a crash of an earlier process left behind."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from mcp_batteries.errors import Problem
from mcp_batteries.limits import in_thread
from mcp_fs.engine.files.leftovers import clean_leftovers
from mcp_fs.policy import Policy

__all__ = ["tidied"]

_log = logging.getLogger(__name__)


@asynccontextmanager
async def tidied(policy: Policy) -> AsyncGenerator[None]:
    """Clean the served folders beside the first requests, for a minute at most; not when nothing may change."""
    async with anyio.create_task_group() as tasks:
        if not policy.read_only:
            tasks.start_soon(_clean, policy)
        yield
        tasks.cancel_scope.cancel()


async def _clean(policy: Policy) -> None:
    try:
        removed = await in_thread(lambda stop: clean_leftovers(policy, stop), seconds=60, what="Cleaning", long=True)
    except Problem as problem:
        _log.warning("leftovers were not looked for everywhere: %s", problem)
    else:
        if removed:
            _log.warning("removed %d temporary entries that an earlier process had left", removed)
