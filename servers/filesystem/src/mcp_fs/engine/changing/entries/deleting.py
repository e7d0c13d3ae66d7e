"""Deletes entries: checks all of a call before it moves the first to the old contents or to the trash."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, Problem, Unavailable, quote
from mcp_fs.engine.changing.entries.all_or_none import all_or_none, describe_next_failure
from mcp_fs.engine.changing.entries.entry_checks import absolute_names, refuse_served_folder
from mcp_fs.engine.changing.entries.moving import Deletion
from mcp_fs.engine.changing.entries.remaining import describe_emptied, describe_remaining
from mcp_fs.engine.handles.locks import lock_names
from mcp_fs.engine.handles.path_opening import Folder, ResolvedPath, open_tree, resolve, translate_errors
from mcp_fs.engine.journal.journal import JournalEntry
from mcp_fs.engine.journal.operations import Operation, apply
from mcp_fs.engine.listing.tree_size import DeletionSize
from mcp_fs.models import BatchResult, MoveResult, pluralize
from mcp_fs.paths import to_system_path
from mcp_fs.policy import ReadablePath, WritablePath

__all__ = ["delete_all"]


def delete_all(
    paths: Sequence[WritablePath],
    *,
    recursive: bool,
    trash: bool,
    tells_rest: bool = False,
    cancel: CancelToken,
    journal_entry: JournalEntry | None = None,
) -> BatchResult:
    """Delete files, links (never what they point to) and folders; what lies in another of them goes with that.

    All are looked at before the first goes.

    Args:
        recursive: whether a folder that is not empty goes with all that is in it.
        trash: whether they go to the desktop's trash instead, from where a person can bring them back.
        tells_rest: whether the answer says what is left in their folders.

    Raises:
        Conflict: a folder is not empty.
        Refused: one is a served folder itself, or holds a protected folder, such as `.ssh`.
        TooLarge: a folder has more than 200 levels.
        Unavailable: some went, and the next could not; both are named.
    """
    with ExitStack() as stack:
        with all_or_none(len(paths), "deleted"):
            targets = _resolve_outermost(paths, stack)
            stack.enter_context(lock_names([target.resolved for target in targets], cancel))
            operations = [_prepare(target, recursive, trash, cancel, journal_entry) for target in targets]
        _apply_all(operations, None if trash else journal_entry)
    results = [
        MoveResult(operation.verb, operation.display_path.display, notes=operation.notes) for operation in operations
    ]
    parents = [one.resolved.path.parent for one in operations if len(one.resolved.path.parts) > 1]
    notes = describe_emptied(parents)
    if tells_rest:
        notes += describe_remaining(parents)
    return BatchResult(results, notes)


@dataclass(frozen=True, slots=True)
class _DeleteTarget:
    """An entry that a call names.

    Attributes:
        path: as the call names it.
        stack: holds the open folder of `resolved`.
    """

    path: WritablePath
    resolved: ResolvedPath[WritablePath]
    stack: ExitStack


def _resolve_outermost(paths: Sequence[WritablePath], stack: ExitStack) -> list[_DeleteTarget]:
    """Resolve each path, once, that lies in no other of them; `stack` holds their folders open."""
    # A served folder may lie in another: which file is meant, only the whole path tells.
    targets: dict[tuple[str, ...], _DeleteTarget] = {}
    for path in paths:
        target_stack = stack.enter_context(ExitStack())
        resolved = target_stack.enter_context(resolve(path, follow=False))
        names = tuple(absolute_names(resolved.path))
        if names in targets:
            target_stack.close()
        else:
            targets[names] = _DeleteTarget(path, resolved, target_stack)
    outermost: list[_DeleteTarget] = []
    for names, target in targets.items():
        if any(names[:depth] in targets for depth in range(len(names))):
            target.stack.close()  # Windows removes no folder that is open.
        else:
            outermost.append(target)
    return outermost


def _apply_all(operations: Sequence[Deletion | TrashMove], journal_entry: JournalEntry | None) -> None:
    """Delete one after the other.

    Raises:
        Unavailable: some went, and the next could not; both are named.
        Problem: the first could not.
    """
    try:
        apply(operations, journal_entry)
    except Problem as failure:
        completed = [operation for operation in operations if operation.is_done]
        if not completed or len(completed) == len(operations):
            raise
        names = ", ".join(quote(operation.display_path.display) for operation in completed)
        done = f"{len(completed)} of {len(operations)} were {completed[0].verb.rstrip(':')}: {names}."
        raise Unavailable(describe_next_failure(done, failure), failure.fix) from failure


@dataclass(eq=False)
class TrashMove(Operation):
    """A move to the desktop's trash."""

    notes: Sequence[str] = ()

    @property
    def changed_folders(self) -> Sequence[Folder[WritablePath]]:
        return []

    def apply(self, content_path: WritablePath | None) -> None:
        with translate_errors(self.display_path):
            _move_to_trash(self.resolved, self.display_path)


def _prepare(
    target: _DeleteTarget, recursive: bool, trash: bool, cancel: CancelToken, journal_entry: JournalEntry | None
) -> Deletion | TrashMove:
    """Return the operation that deletes an entry.

    Raises:
        Conflict: it is a folder that is not empty.
        Refused: it is a served folder itself, or holds one.
    """
    path = target.path
    resolved = target.resolved
    refuse_served_folder(resolved.path)
    with translate_errors(path):
        status = resolved.folder.stat(resolved.name)
    total_bytes = status.st_size
    notes: list[str] = []
    if stat.S_ISDIR(status.st_mode):
        size = _measure_folder(path, resolved, recursive, cancel)
        total_bytes = size.total_bytes
        if size.entry_count:
            notes.append(f"with {pluralize(size.entry_count, 'entry')}")
        if size.protected_count:
            notes.append(f"{size.protected_count:,} of them protected")
    if trash:
        return TrashMove(resolved, path, notes, verb="moved to the trash:")
    return Deletion(resolved, path, total_bytes, cancel, journal_entry, notes, verb="deleted")


def _measure_folder(
    path: WritablePath, resolved: ResolvedPath[WritablePath], recursive: bool, cancel: CancelToken
) -> DeletionSize:
    size = DeletionSize(cancel)
    with open_tree(resolved.folder, resolved.name) as folder:
        if not recursive and any(True for _ in folder.scan()):
            raise Conflict(
                f"{quote(path.display)} is a folder that is not empty.",
                "Set `recursive` to delete it with all that is in it.",
            )
        size.count(folder)
    return size


def _move_to_trash(resolved: ResolvedPath[WritablePath], path: ReadablePath) -> None:
    from send2trash import send2trash  # loads a desktop's libraries where there are any

    # The library takes nothing but a path. It is the one that was resolved, and it is looked at once more: who
    # swaps a folder on the way in this very moment can have another file trashed, from where it can be fetched.
    system_path = os.path.join(resolved.folder.path.root.real_path, *resolved.folder.path.parts, resolved.name)
    if not os.path.samestat(os.lstat(to_system_path(system_path)), resolved.folder.stat(resolved.name)):
        raise Conflict(f"{quote(path.display)} is being moved by somebody else.", "Try again in a moment.")
    try:
        send2trash(system_path)
    except OSError as error:
        raise Unavailable(
            f"{quote(path.display)} can't be put into the trash here.", "Delete it without `trash`."
        ) from error
