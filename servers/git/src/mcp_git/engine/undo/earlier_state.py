"""The state before an operation, and the calls that restore it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_git.engine.program.git import Git
from mcp_git.engine.program.output import split_names
from mcp_git.engine.undo.later_state import LaterState, Trees, name_position
from mcp_git.engine.undo.undo_kind import HASH_LENGTH, UndoKind
from mcp_git.engine.work_tree.status import Status, is_conflict
from mcp_git.path_quoting import quote_paths
from mcp_git.policy import Repository
from mcp_git.repository_paths import Layout
from mcp_git.tool_calls import ToolCall, format_call

__all__ = ["Snapshot", "list_staged_since"]

_MAX_PATHS = 20
_WITHOUT_CONFLICT = " (the files; not that they were in conflict)"
_WHOLE_TREE = (".",)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state before an operation.

    Attributes:
        index_tree: the tree of what was staged; empty where that was what HEAD has, or in a conflict.
        files_tree: the tree of the tracked files; empty where none differed, or where they can't be lost.
    """

    status: Status
    index_tree: str = ""
    files_tree: str = ""
    _folder: str = field(default="", repr=False)

    @property
    def head(self) -> str:
        """The commit; empty if there was none."""
        return self.status.oid[:HASH_LENGTH] if self.status.has_commit else ""

    @property
    def is_in_conflict(self) -> bool:
        return any(is_conflict(entry.letters) for entry in self.status.entries)

    @property
    def trees(self) -> Trees:
        """What a later call compares with."""
        index = ""
        if not self.is_in_conflict:
            index = self.index_tree or self.head
        return Trees(self.files_tree or self.head, index)

    def store(self, layout: Layout) -> None:
        """Copy the trees into the repository, for the calls that name them."""
        if not self._folder:
            return
        source = os.path.join(self._folder, "objects")
        for folder, _, names in os.walk(source):
            target = os.path.join(layout.objects, os.path.relpath(folder, source))
            # Git takes a pack for whole once its index is there.
            for name in sorted(names, key=lambda name: name.endswith(".idx")):
                _copy_object(os.path.join(folder, name), target)

    def undo_calls(self, kind: UndoKind, after: LaterState, paths: Sequence[str] = _WHOLE_TREE) -> list[ToolCall]:
        """Return the calls that lead back to this state, in their order.

        The first of them expects the state `after`, and the others what the one before them leads to, so that none
        undoes what somebody did since.

        Args:
            after: the state after the operation.
            paths: whose files were written, or what of the index was.
        """
        if kind == UndoKind.INDEX:
            return self._undo_staging_calls(after, paths)
        if not self.head:
            return []
        if kind == UndoKind.FILES:
            return self._restore_calls([], after, paths)
        if after.status.oid == self.status.oid and after.status.entries == self.status.entries:
            return []
        if kind == UndoKind.UNCOMMIT_ALL:
            return self._uncommit_calls(after, paths)
        return self._undo_move_calls(kind, after, paths)

    def _undo_staging_calls(self, after: LaterState, paths: Sequence[str]) -> list[ToolCall]:
        if self.is_in_conflict or not paths:
            return []
        return [self._unstage_call(paths).expecting(after.expect(index=True))]

    def _undo_move_calls(self, kind: UndoKind, after: LaterState, paths: Sequence[str]) -> list[ToolCall]:
        """Return the calls that lead back where HEAD was, and restore what that does not bring along."""
        restores_files = self._has_to_restore_files(kind, after.status)
        calls: list[ToolCall] = []
        if after.status.oid != self.status.oid and kind.is_reset:
            overwrites_files = restores_files or kind == UndoKind.HARD
            expectation = after.expect(head=True, files=overwrites_files, index=kind != UndoKind.SOFT)
            calls.append(self._reset_call(kind).expecting(expectation))
        if restores_files:
            return self._restore_calls(calls, after, paths, is_led_back=kind == UndoKind.CARRIED)
        if calls and kind == UndoKind.MIXED and self.is_in_conflict:
            return [calls[0].with_remark(_WITHOUT_CONFLICT)]
        if self.index_tree and kind in (UndoKind.KEEP, UndoKind.MIXED):
            expectation = after.expect(head=True, index=True)
            if calls:
                # Such a reset leaves nothing staged.
                expectation = name_position(self.status, index=self.head)
            calls.append(self._unstage_call(paths).expecting(expectation))
        return calls

    def _has_to_restore_files(self, kind: UndoKind, after: Status) -> bool:
        match kind:
            case UndoKind.HARD:
                return bool(self.files_tree)
            case UndoKind.KEEP | UndoKind.CARRIED:
                return bool(self.files_tree) and after.entries != self.status.entries
            case _:
                return False

    def _uncommit_calls(self, after: LaterState, paths: Sequence[str]) -> list[ToolCall]:
        expectation = after.expect(head=True, index=True)
        if self.index_tree:
            reset = self._reset_call(UndoKind.SOFT).expecting(expectation)
            position = name_position(self.status, index=after.trees.index)
            return [reset, self._unstage_call(paths).expecting(position)]
        reset = self._reset_call(UndoKind.MIXED).expecting(expectation)
        if self.is_in_conflict:
            reset = reset.with_remark(_WITHOUT_CONFLICT)
        return [reset]

    def _restore_calls(
        self, calls: Sequence[ToolCall], after: LaterState, paths: Sequence[str], *, is_led_back: bool = False
    ) -> list[ToolCall]:
        """Return the calls that write files again, behind `calls`.

        Args:
            is_led_back: whether a call before these has led HEAD back.
        """
        expectation = after.expect(files=True)
        if is_led_back:
            expectation = name_position(self.status)
        elif calls:
            # The reset before it leaves nothing staged.
            expectation = name_position(self.status, index=self.head)
        conflicts = [entry.path for entry in after.status.entries if is_conflict(entry.letters)]
        if conflicts and tuple(paths) == _WHOLE_TREE:
            calls = [self._end_conflict_call(conflicts, after)]
            if not self.status.in_progress:
                expectation = f"files {self.head}"
        files_tree = self.files_tree or self.head
        if not (calls or is_led_back or self.is_in_conflict) and files_tree == after.trees.files:
            # Only the index differs, and git restores no path that neither has.
            return [self._unstage_call(paths).expecting(expectation)]
        restore = format_call("run_restore", paths=_quote_paths(paths), rev=files_tree).expecting(expectation)
        if self.is_in_conflict:
            return [*calls, restore.with_remark(_WITHOUT_CONFLICT)]
        if self.files_tree:
            return [*calls, restore, self._unstage_call(paths).expecting(f"files {files_tree}")]
        return [*calls, restore]

    def _end_conflict_call(self, conflicts: Sequence[bytes], after: LaterState) -> ToolCall:
        """Return the call after which files are in conflict no more: one that is would not be written over."""
        if self.status.in_progress:
            # A reset would end that too.
            return format_call("stage_files", paths=quote_paths(conflicts))
        return self._reset_call(UndoKind.HARD).expecting(after.expect(head=True, files=True))

    def _reset_call(self, kind: UndoKind) -> ToolCall:
        if kind == UndoKind.KEEP:
            return format_call("run_reset", rev=self.head)
        return format_call("run_reset", rev=self.head, mode=kind.value)

    def _unstage_call(self, paths: Sequence[str]) -> ToolCall:
        if self.index_tree:
            return format_call("stage_files", paths=_quote_paths(paths), unstage=True, rev=self.index_tree)
        return format_call("stage_files", paths=_quote_paths(paths), unstage=True)


def _copy_object(path: str, folder: str) -> None:
    """Copy a file of the object database into a folder, unless it is there."""
    os.makedirs(folder, exist_ok=True)
    name = os.path.basename(path)
    if not os.path.lexists(os.path.join(folder, name)):
        temporary = os.path.join(folder, f"tmp_obj_{name}")
        shutil.copy2(path, temporary)
        os.replace(temporary, os.path.join(folder, name))


def _quote_paths(paths: Sequence[str]) -> list[str]:
    if len(paths) > _MAX_PATHS:
        return ["."]
    return quote_paths(map(os.fsencode, paths))


def list_staged_since(git: Git, repository: Repository, before: Snapshot, cancel: CancelToken) -> list[str]:
    """Return the paths that are staged in another form than before."""
    tree = before.index_tree or before.head
    arguments = ["ls-files", "-z"]
    if tree:
        arguments = ["diff-index", "--cached", "--ita-invisible-in-index", "--name-only", "--no-renames", "-z", tree]
        arguments.append("--")
    return split_names(git.run(repository, arguments, cancel).stdout)
