"""A tool to note findings."""

from __future__ import annotations

from typing import Annotated

from mcp.server.mcpserver import Context
from pydantic import Field

from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.trusted import FreeText
from mcp_sqlite.engine.insights import Insights
from mcp_sqlite.resources import MEMO

__all__ = ["create_insight"]


@tool("Note an insight", effect="write", warrants_scripts=False)
async def create_insight(
    insights: Insights,
    context: Context,
    *,
    text: Annotated[FreeText, Field(min_length=1, max_length=2000, description="One finding.")],
) -> str:
    """Add a finding that is worth keeping to the memo that the user reads as memo://insights.

    Nothing in a database is changed; a note cannot be edited or removed.
    """
    number = await insights.add(text)
    await context.notify_resource_updated(MEMO)
    return f"Noted as number {number} in memo://insights."
