"""Records what calls change, so that it can be taken back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.server.declaration.call_origin import CallOrigin
from mcp_fs.engine.journal.journal import JournalEntry
from mcp_fs.engine.journal.store import JournalStore
from mcp_fs.models import BatchResult, EditResult, MoveResult, ReplaceResult, WriteResult

__all__ = ["ChangeRecorder"]

_Result = TypeVar("_Result", EditResult, MoveResult, BatchResult, ReplaceResult, WriteResult, EditResult | WriteResult)


class ChangeRecorder:
    """Gives each call an entry of the journal.

    Args:
        store: where old contents are kept; None keeps nothing.
    """

    def __init__(self, store: JournalStore | None = None) -> None:
        self._store = store

    def record(
        self, origin: CallOrigin, cancel: CancelToken, change: Callable[[JournalEntry | None], _Result]
    ) -> _Result:
        """Run a change with what was there before kept; the result says what can't be taken back.

        Args:
            change: takes the entry to which it tells each step before it happens, if there is one.
        """
        if self._store is None:
            return change(None)
        with JournalEntry(self._store, origin, cancel) as journal_entry:
            result = change(journal_entry)
        if not journal_entry.notes:
            return result
        return replace(result, notes=[*result.notes, *journal_entry.notes])
