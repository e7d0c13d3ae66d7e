"""The inverse of each change: the operation by which undoing takes it back, and which can be undone itself."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_fs.engine.changing.atomic_write import resolve_for_writing
from mcp_fs.engine.changing.deleting import Deletion
from mcp_fs.engine.changing.moving import read_moved_state, relocate
from mcp_fs.engine.changing.operations import Operation
from mcp_fs.engine.handles.path_opening import Folder, ResolvedPath, resolve, translate_errors
from mcp_fs.engine.handles.temp_files import remove_all
from mcp_fs.engine.journal.journal import JournalEntry
from mcp_fs.engine.journal.states import NEW_FOLDER, PlannedChange, read_state
from mcp_fs.engine.listing.tree_size import measure_bytes
from mcp_fs.engine.undo.undoable import UndoableChange
from mcp_fs.policy import WritablePath

__all__ = ["OpenedChange"]

_VERB = "taken back"


@dataclass(frozen=True, slots=True)
class OpenedChange:
    """A change with the open folders that it is about.

    Attributes:
        target: what it changed.
        source: where that was moved from.
        content: what was there before, where it is kept.
    """

    change: UndoableChange
    target: ResolvedPath[WritablePath]
    source: ResolvedPath[WritablePath] | None
    content: ResolvedPath[WritablePath] | None

    @classmethod
    def open(cls, change: UndoableChange, stack: ExitStack) -> OpenedChange:
        """Open the folders until `stack` ends."""
        target = stack.enter_context(resolve_for_writing(change.path, follow=False))
        source = None
        if change.source is not None:
            source = stack.enter_context(resolve_for_writing(change.source, follow=False))
        content = None
        if change.content_path is not None:
            content = stack.enter_context(resolve(change.content_path, follow=False))
        return cls(change, target, source, content)

    @property
    def resolved_paths(self) -> list[ResolvedPath[WritablePath]]:
        return [self.target] if self.source is None else [self.target, self.source]

    def invert(self, cancel: CancelToken) -> Operation:
        """Return the operation that takes the change back; a folder that was removed is there again already."""
        path = self.change.path
        if self.source is not None:
            return MoveBack(self.target, path, self.change, self.source, self.content, cancel, verb=_VERB)
        if self.change.makes_folder:
            return FolderRemoval(self.target, path, verb=_VERB)
        if self.content is not None:
            return PutBack(self.target, path, self.change, self.content, cancel, verb=_VERB)
        return Deletion(self.target, path, measure_bytes(self.target, cancel), cancel, None, verb=_VERB)


@dataclass(eq=False)
class FolderRemoval(Operation):
    """The inverse of making a folder; one that is not empty stays."""

    def plan_changes(self, journal_entry: JournalEntry) -> Sequence[PlannedChange]:
        return [PlannedChange(self.resolved.path, None, None, before=NEW_FOLDER)]

    def apply(self, content_path: WritablePath | None) -> None:
        with translate_errors(self.display_path):
            self.folder.remove_folder(self.name)


@dataclass(eq=False)
class PutBack(Operation):
    """The inverse of a change or a deletion: what was there before takes the place of what is there now.

    Attributes:
        content: what was there before, where it is kept.
    """

    change: UndoableChange
    content: ResolvedPath[WritablePath]
    cancel: CancelToken

    def plan_changes(self, journal_entry: JournalEntry) -> Sequence[PlannedChange]:
        restored = read_state(self.content.folder, self.content.name, thorough=True)
        return [PlannedChange(self.resolved.path, self.folder, restored)]

    def apply(self, content_path: WritablePath | None) -> None:
        with translate_errors(self.display_path):
            _put_back(self.change, self.content, self.resolved, self.cancel)


@dataclass(eq=False)
class MoveBack(Operation):
    """The inverse of a move; what that replaced comes back with it.

    Attributes:
        content: what the move replaced, where it is kept.
    """

    change: UndoableChange
    resolved_source: ResolvedPath[WritablePath]
    content: ResolvedPath[WritablePath] | None
    cancel: CancelToken

    @property
    def changed_folders(self) -> Sequence[Folder[WritablePath]]:
        return [self.folder, self.resolved_source.folder]

    def plan_changes(self, journal_entry: JournalEntry) -> Sequence[PlannedChange]:
        source = self.resolved_source
        moved = read_moved_state(self.folder, self.name, journal_entry)
        left_at_source = None
        if self.content is not None:
            left_at_source = read_state(self.content.folder, self.content.name, thorough=True)
        # What has come to stand at the source is replaced, and kept.
        source_folder = source.folder if self.change.recorded.left_at_source else None
        return [
            PlannedChange(source.path, source_folder, moved, source=self.resolved.path, left_at_source=left_at_source)
        ]

    def apply(self, content_path: WritablePath | None) -> None:
        with translate_errors(self.display_path):
            self._move_back()
            if self.content is not None:
                _put_back(self.change, self.content, self.resolved, self.cancel)

    def _move_back(self) -> None:
        change = self.change
        if change.was_never_moved():
            remove_all(self.folder, self.name, self.cancel)
            return
        if change.source is None or read_state(self.folder, self.name) is None or self._has_both_names():
            return
        overwrite = change.recorded.left_at_source is not None
        relocate(self.resolved, change.path, self.resolved_source, change.source, overwrite, self.cancel)

    def _has_both_names(self) -> bool:
        """Give what is moved back its old name beside the new one, which what it had replaced takes in one step."""
        if self.content is None:
            return False
        source = self.resolved_source
        try:
            self.folder.add_name(self.name, source.folder, source.name)
        except FileExistsError:
            return True
        except OSError:  # a folder, or another file system
            return False
        return True


def _put_back(
    change: UndoableChange,
    content: ResolvedPath[WritablePath],
    target: ResolvedPath[WritablePath],
    cancel: CancelToken,
) -> None:
    assert change.content_path is not None
    relocate(content, change.content_path, target, change.path, overwrite=True, cancel=cancel)
