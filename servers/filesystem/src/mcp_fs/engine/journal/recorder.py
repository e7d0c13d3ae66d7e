"""Records what calls change, so that it can be taken back."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.server.declaration.call_origin import CallOrigin
from mcp_fs.engine.journal.journal import Change, JournalEntry
from mcp_fs.engine.journal.store import JournalStore
from mcp_fs.models import BatchResult, EditResult, MoveResult, ReplaceResult, WriteResult

__all__ = ["ChangeRecorder"]

_Result = TypeVar("_Result", bound=EditResult | MoveResult | BatchResult | ReplaceResult | WriteResult)


class ChangeRecorder:
    """Gives each call an entry of the journal.

    Args:
        store: where old contents are kept; None keeps nothing.
    """

    def __init__(self, store: JournalStore | None = None) -> None:
        self._store = store

    def record(self, origin: CallOrigin, cancel: CancelToken, change: Change[_Result]) -> _Result:
        """Run a change with what was there before kept; the result says what can't be taken back."""
        if self._store is None:
            return change(cancel=cancel, journal_entry=None)
        with JournalEntry(self._store, origin, cancel) as journal_entry:
            result = change(cancel=cancel, journal_entry=journal_entry)
        if not journal_entry.notes:
            return result
        return replace(result, notes=[*result.notes, *journal_entry.notes])
