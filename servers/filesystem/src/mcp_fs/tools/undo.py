"""Taking back what the other tools changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from pydantic import Field

from mcp_batteries.observability.audit import describe_caller
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.fields import DryRun
from mcp_fs.engine.journal.journal import CURRENT_CALL
from mcp_fs.engine.service import Engine
from mcp_fs.models import UndoResult, UndoStepPage

__all__ = ["UndoTools", "record_caller"]


@dataclass(frozen=True)
class UndoTools:
    engine: Engine

    @tool("Undo changes", effect="destroy", seconds=3600.0)
    async def undo_changes(
        self,
        step: Annotated[str | None, Field(description="Id from the list.")] = None,
        later: Annotated[bool, Field(description="Later changes too.")] = False,
        dry_run: DryRun = True,
    ) -> UndoStepPage | UndoResult:
        """Undo what one call of these tools changed (`step`); without `step`, list such steps, newest first.

        By default a dry run. Refuses files that others changed since. To see what changed use `list_changes`.
        """
        if step is None:
            return await self.engine.list_steps()
        return await self.engine.undo(step, later=later, dry_run=dry_run)


async def record_caller(ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
    """Middleware that tells the engine whose step a call is: callers over HTTP are kept apart, by token or address."""
    if ctx.method != "tools/call":
        return await call_next(ctx)
    who = describe_caller(ctx)
    kind = "identity" if "identity" in who else "address"
    token = CURRENT_CALL.set((str((ctx.params or {}).get("name", "")), f"{kind} {who[kind]}" if who else ""))
    try:
        return await call_next(ctx)
    finally:
        CURRENT_CALL.reset(token)
