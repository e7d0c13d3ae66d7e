"""A change that a step made, with trusted paths, and whether it can still be undone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mcp_batteries.errors import NotFound, Problem
from mcp_fs.engine.handles.path_opening import resolve
from mcp_fs.engine.journal.entry_state import NEW_FOLDER, EntryState
from mcp_fs.engine.journal.states import is_unchanged, read_state
from mcp_fs.engine.journal.store import EntryRecord, JournalStore, RecordedChange
from mcp_fs.engine.listing.walk import display_path
from mcp_fs.policy import Policy, WritablePath

__all__ = ["UndoableChange", "is_absent"]

_UndoStatus = Literal["as it was left", "back already", "changed since"]


@dataclass(frozen=True)
class UndoableChange:
    """What a step did to one entry, with trusted paths.

    Attributes:
        source: where what is at `path` now was moved from.
        content_path: where what was at `path` before is kept.
    """

    recorded: RecordedChange
    path: WritablePath
    source: WritablePath | None
    content_path: WritablePath | None

    @property
    def paths(self) -> list[WritablePath]:
        return [self.path] if self.source is None else [self.path, self.source]

    @property
    def description(self) -> str:
        """Say what undoing it does."""
        name = display_path(self.path)
        if self.source is not None:
            text = f"move {name} back to {display_path(self.source)}"
            if self.content_path is not None:
                text += ", put back what it replaced"
            return text
        if self.recorded.before is None:
            return f"delete {name}"
        if self.recorded.after is None:
            return f"bring back {name}"
        return f"restore {name}"

    @classmethod
    def parse(
        cls, policy: Policy, store: JournalStore, record: EntryRecord, recorded: RecordedChange
    ) -> UndoableChange:
        """Return a change of a step.

        Raises:
            Problem: it is outside of what this server serves, or protected.
        """
        source = None if recorded.source is None else policy.writable(recorded.source)
        content_path = None
        if recorded.content_name is not None:
            content_path = store.path_of(f"{record.entry_id.name}.{recorded.content_name}")
        return cls(recorded, policy.writable(recorded.uri), source, content_path)

    @property
    def is_of_file(self) -> bool:
        """Whether the step made, changed or removed a file, and moved nothing."""
        states = (self.recorded.before, self.recorded.after)
        return self.source is None and all(state is None or state.kind == "file" for state in states)

    @property
    def makes_folder(self) -> bool:
        """Whether the step made a folder here."""
        return self.recorded.after == NEW_FOLDER

    @property
    def removes_folder(self) -> bool:
        """Whether the step removed an empty folder here."""
        return self.recorded.before == NEW_FOLDER

    @property
    def status(self) -> _UndoStatus:
        """What is there, compared with what the step left and with what was there before it."""
        try:
            if self.source is not None:
                return self._read_move_status(self.source)
            return self._read_content_status()
        except Problem:
            return "changed since"

    def was_never_moved(self) -> bool:
        """Whether something was copied to be deleted then, and never was."""
        origin = self.recorded.copied_source
        return self.source is not None and origin is not None and _is_unchanged(self.source, origin)

    def _read_move_status(self, source: WritablePath) -> _UndoStatus:
        recorded = self.recorded
        if _is_unchanged(self.path, recorded.after):
            return "as it was left" if self._can_move_back(source) else "changed since"
        if not (_is_unchanged(source, recorded.after) or self.was_never_moved()):
            return "changed since"
        if self.content_path is None or is_absent(self.content_path) or _is_unchanged(self.path, recorded.before):
            return "back already"
        return "as it was left" if is_absent(self.path) else "changed since"

    def _can_move_back(self, source: WritablePath) -> bool:
        """Whether nothing has come to the old path of something that is still where it was moved."""
        recorded = self.recorded
        has_content = self.content_path is not None and not is_absent(self.content_path)
        if has_content and _is_unchanged(source, recorded.after):
            return True  # with both names there, undoing has begun
        if recorded.left_at_source is not None and _is_unchanged(source, recorded.left_at_source):
            return True
        return is_absent(source) or self.was_never_moved()

    def _read_content_status(self) -> _UndoStatus:
        recorded = self.recorded
        if self.content_path is not None and is_absent(self.content_path):
            return "back already"  # or it never went
        if self.removes_folder:
            return "as it was left" if is_absent(self.path) else "back already"
        # A file that took the place of one of equal content is another file, and later steps know it as that.
        if recorded.after is not None and _is_same_entry(self.path, recorded.after):
            return "as it was left"
        if _is_unchanged(self.path, recorded.before):
            return "back already"
        if is_absent(self.path):
            return "as it was left"  # nothing is overwritten
        return "as it was left" if _is_unchanged(self.path, recorded.after) else "changed since"


def is_absent(path: WritablePath) -> bool:
    """Return whether there is nothing at a path."""
    return _is_unchanged(path, None)


def _is_same_entry(path: WritablePath, state: EntryState) -> bool:
    """Return whether the very file of a state stands at a path, unmodified; a copy of it does not count."""
    try:
        with resolve(path, follow=False) as resolved:
            current = read_state(resolved.folder, resolved.name)
            return current is not None and current.kind == "file" and current.identity == state.identity
    except NotFound:
        return False


def _is_unchanged(path: WritablePath, state: EntryState | None) -> bool:
    try:
        with resolve(path, follow=False) as resolved:
            return is_unchanged(resolved.folder, resolved.name, state)
    except NotFound:
        return state is None
