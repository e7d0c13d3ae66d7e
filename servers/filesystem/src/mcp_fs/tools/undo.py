"""Taking back what the other tools changed."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.server.declaration.call_origin import CallOrigin
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.fields import DryRun
from mcp_batteries.server.declaration.trusted import FreeText
from mcp_fs.engine.journal.store import JournalStore
from mcp_fs.engine.undo.undo import list_undoable_entries, undo_entries
from mcp_fs.models import UndoResult, UndoStepPage
from mcp_fs.policy import Policy

__all__ = ["undo_changes"]


@tool("Undo changes", effect="destroy", seconds=3600.0)
def undo_changes(
    policy: Policy,
    store: JournalStore,
    origin: CallOrigin,
    cancel: CancelToken,
    *,
    step: Annotated[FreeText | None, Field(description="Id from the list.")] = None,
    later: Annotated[bool, Field(description="Later ones too.")] = False,
    dry_run: DryRun = True,
) -> UndoStepPage | UndoResult:
    """Undo what one call of these tools changed (`step`); without `step`, list such steps, newest first.

    Refuses files that others changed since. To see what changed use `list_changes`.
    """
    if step is None:
        return list_undoable_entries(policy, store, origin.caller, cancel)
    return undo_entries(policy, store, origin, step, later=later, dry_run=dry_run, cancel=cancel)
