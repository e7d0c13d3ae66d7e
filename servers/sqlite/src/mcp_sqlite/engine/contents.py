"""What resources show, and digests of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_batteries.sql.results.rows import RowPage
from mcp_sqlite.engine.requests import to_content_request
from mcp_sqlite.engine.workers.pool import LONG_OPERATION_LIMITS, WorkerPool
from mcp_sqlite.policy import Database, Request

__all__ = ["digest_subjects", "read_content"]

_POLL_SECONDS = 30.0


async def read_content(pool: WorkerPool, request: Request) -> RowPage | str:
    """Return the content of a resource."""
    answer = await pool.call(to_content_request(request))
    if "sql" in answer:
        return answer["sql"]
    return RowPage(
        columns=answer["columns"],
        lines=answer["lines"],
        start=1,
        rows=answer["shown"],
        cursor=None,
        cut=answer["cut"],
        more=answer["more"],
    )


async def digest_subjects(
    pool: WorkerPool, database: Database, requests: Mapping[str, Request], *, is_new: bool
) -> dict[str, Any]:
    """Return digests of what `requests` show, by their keys; None where nothing was committed since the last time.

    Args:
        is_new: whether somebody has subscribed to these only now.
    """
    return await pool.call_dedicated(
        f"watch {database.name}",
        {
            "do": "watch",
            "path": database.address,
            "subjects": {key: to_content_request(request) for key, request in requests.items()},
            "new": is_new,
        },
        seconds=LONG_OPERATION_LIMITS * pool.seconds if is_new else _POLL_SECONDS,
    )
