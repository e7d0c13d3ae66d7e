"""The state before an operation, and the calls that restore it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field

from mcp_batteries.limits import Stop
from mcp_git.engine.operation.operation import HASH_LENGTH, UndoKind
from mcp_git.engine.program.git import Git
from mcp_git.engine.work_tree.status import Status, is_conflict
from mcp_git.path_quoting import quote_path
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
                os.makedirs(target, exist_ok=True)
                if not os.path.lexists(os.path.join(target, name)):
                    temporary = os.path.join(target, f"tmp_obj_{name}")
                    shutil.copy2(os.path.join(folder, name), temporary)
                    os.replace(temporary, os.path.join(target, name))

    def undo_calls(self, kind: UndoKind, after: Status, paths: Sequence[str] = _WHOLE_TREE) -> list[str]:
        """Return the calls that lead back to this state, in their order.

        Args:
            after: the state after the operation.
            paths: whose files were written, or what of the index was.
        """
        if kind == UndoKind.INDEX:
            if self.is_in_conflict or not paths:
                return []
            return [self._unstage_call(paths)]
        has_moved = after.oid != self.status.oid
        has_same_entries = after.entries == self.status.entries
        if not self.head:
            return []
        if kind != UndoKind.FILES and not has_moved and has_same_entries:
            return []
        if kind == UndoKind.UNCOMMIT_ALL:
            return self._uncommit_calls(paths)
        calls: list[str] = []
        if has_moved and kind.is_reset:
            calls.append(self._reset_call(kind))
        if self._has_to_restore_files(kind, has_same_entries):
            return self._restore_calls(calls, after, paths)
        if calls and kind == UndoKind.MIXED and self.is_in_conflict:
            return [calls[0] + _WITHOUT_CONFLICT]
        if self.index_tree and kind in (UndoKind.KEEP, UndoKind.MIXED):
            calls.append(self._unstage_call(paths))
        return calls

    def _has_to_restore_files(self, kind: UndoKind, has_same_entries: bool) -> bool:
        match kind:
            case UndoKind.FILES:
                return True
            case UndoKind.HARD:
                return bool(self.files_tree)
            case UndoKind.KEEP | UndoKind.CARRIED:
                return bool(self.files_tree) and not has_same_entries
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
        conflicts = [quote_path(entry.path) for entry in after.entries if is_conflict(entry.letters)]
        if conflicts and tuple(paths) == _WHOLE_TREE:
            # A file that is in conflict is not written over; a reset would end the operation in progress.
            if self.status.in_progress:
                calls = [format_call("edit_index", paths=conflicts)]
            else:
                calls = [self._reset_call(UndoKind.HARD)]
        restore = format_call("run_restore", paths=_quote_paths(paths), rev=self.files_tree or self.head)
        if self.is_in_conflict:
            return [*calls, restore + _WITHOUT_CONFLICT]
        if self.files_tree:
            return [*calls, restore, self._unstage_call(paths)]
        return [*calls, restore]

    def _reset_call(self, kind: UndoKind) -> str:
        return format_call("run_reset", rev=self.head, mode=kind.value)

    def _unstage_call(self, paths: Sequence[str]) -> str:
        if self.index_tree:
            return format_call("edit_index", paths=_quote_paths(paths), unstage=True, rev=self.index_tree)
        return format_call("edit_index", paths=_quote_paths(paths), unstage=True)


def _quote_paths(paths: Sequence[str]) -> list[str]:
    if len(paths) > _MAX_PATHS:
        return ["."]
    return [quote_path(os.fsencode(path)) for path in paths]


def list_staged_since(git: Git, repository: Repository, before: Snapshot, stop: Stop) -> list[str]:
    """Return the paths that are staged in another form than before."""
    tree = before.index_tree or before.head
    arguments = ["ls-files", "-z"]
    if tree:
        arguments = ["diff-index", "--cached", "--ita-invisible-in-index", "--name-only", "--no-renames", "-z", tree]
        arguments.append("--")
    output = git.run(repository, arguments, stop).stdout
    return [os.fsdecode(path) for path in output.split(b"\0")[:-1]]
