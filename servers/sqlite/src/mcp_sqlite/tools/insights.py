"""A tool to note findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from mcp.server.mcpserver import Context
from pydantic import Field

from mcp_batteries.server.declaration.decorators import tool
from mcp_sqlite.engine.insights import Insights
from mcp_sqlite.resources import MEMO

__all__ = ["InsightTools"]


@dataclass(frozen=True)
class InsightTools:
    insights: Insights

    @tool("Note an insight", effect="write")
    async def create_insight(
        self, ctx: Context, text: Annotated[str, Field(min_length=1, max_length=2000, description="One finding.")]
    ) -> str:
        """Add a finding that is worth keeping to the memo that the user reads as memo://insights.

        Nothing in a database is changed; a note cannot be edited or removed.
        """
        number = await self.insights.add(text)
        await ctx.notify_resource_updated(MEMO)
        return f"Noted as number {number} in memo://insights."
