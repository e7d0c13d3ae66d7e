"""The state before an operation, and the calls that restore it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_git.engine.operation.operation import HASH_LENGTH, UndoKind
from mcp_git.engine.program.git import Git
from mcp_git.engine.program.output import split_names
from mcp_git.engine.work_tree.status import Status, is_conflict
from mcp_git.path_quoting import quote_paths
from mcp_git.policy import Repository
from mcp_git.repository_paths import Layout
from mcp_git.tool_calls import format_call

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

    def undo_calls(self, kind: UndoKind, after: Status, paths: Sequence[str] = _WHOLE_TREE) -> list[str]:
        """Return the calls that lead back to this state, in their order.

        Args:
            after: the state after the operation.
            paths: whose files were written, or what of the index was.
        """
        if kind == UndoKind.INDEX:
            return self._undo_staging_calls(paths)
        if not self.head:
            return []
        if kind == UndoKind.FILES:
            return self._restore_calls([], after, paths)
        if after.oid == self.status.oid and after.entries == self.status.entries:
            return []
        if kind == UndoKind.UNCOMMIT_ALL:
            return self._uncommit_calls(paths)
        return self._undo_move_calls(kind, after, paths)

    def _undo_staging_calls(self, paths: Sequence[str]) -> list[str]:
        if self.is_in_conflict or not paths:
            return []
        return [self._unstage_call(paths)]

    def _undo_move_calls(self, kind: UndoKind, after: Status, paths: Sequence[str]) -> list[str]:
        """Return the calls that lead back where HEAD was, and restore what that does not bring along."""
        calls: list[str] = []
        if after.oid != self.status.oid and kind.is_reset:
            calls.append(self._reset_call(kind))
        if self._has_to_restore_files(kind, after):
            return self._restore_calls(calls, after, paths)
        if calls and kind == UndoKind.MIXED and self.is_in_conflict:
            return [calls[0] + _WITHOUT_CONFLICT]
        if self.index_tree and kind in (UndoKind.KEEP, UndoKind.MIXED):
            calls.append(self._unstage_call(paths))
        return calls

    def _has_to_restore_files(self, kind: UndoKind, after: Status) -> bool:
        match kind:
            case UndoKind.HARD:
                return bool(self.files_tree)
            case UndoKind.KEEP | UndoKind.CARRIED:
                return bool(self.files_tree) and after.entries != self.status.entries
            case _:
                return False

    def _uncommit_calls(self, paths: Sequence[str]) -> list[str]:
        if self.index_tree:
            return [self._reset_call(UndoKind.SOFT), self._unstage_call(paths)]
        if self.is_in_conflict:
            return [self._reset_call(UndoKind.MIXED) + _WITHOUT_CONFLICT]
        return [self._reset_call(UndoKind.MIXED)]

    def _restore_calls(self, calls: Sequence[str], after: Status, paths: Sequence[str]) -> list[str]:
        """Return the calls that write files again, behind `calls`."""
        conflicts = [entry.path for entry in after.entries if is_conflict(entry.letters)]
        if conflicts and tuple(paths) == _WHOLE_TREE:
            calls = [self._end_conflict_call(conflicts)]
        restore = format_call("run_restore", paths=_quote_paths(paths), rev=self.files_tree or self.head)
        if self.is_in_conflict:
            return [*calls, restore + _WITHOUT_CONFLICT]
        if self.files_tree:
            return [*calls, restore, self._unstage_call(paths)]
        return [*calls, restore]

    def _end_conflict_call(self, conflicts: Sequence[bytes]) -> str:
        """Return the call after which files are in conflict no more: one that is would not be written over."""
        if self.status.in_progress:
            # A reset would end that too.
            return format_call("edit_index", paths=quote_paths(conflicts))
        return self._reset_call(UndoKind.HARD)

    def _reset_call(self, kind: UndoKind) -> str:
        return format_call("run_reset", rev=self.head, mode=kind.value)

    def _unstage_call(self, paths: Sequence[str]) -> str:
        if self.index_tree:
            return format_call("edit_index", paths=_quote_paths(paths), unstage=True, rev=self.index_tree)
        return format_call("edit_index", paths=_quote_paths(paths), unstage=True)


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
