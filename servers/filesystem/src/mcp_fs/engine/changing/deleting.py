"""Deletes entries: checks all of a call before it moves the first to the old contents or to the trash."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, Problem, Unavailable, quote
from mcp_fs.engine.changing.entry_copy import absolute_names
from mcp_fs.engine.changing.moving import refuse_served_folder, relocate
from mcp_fs.engine.changing.operations import fsync_folder
from mcp_fs.engine.handles.locks import lock_names
from mcp_fs.engine.handles.path_opening import ResolvedPath, open_tree, resolve, to_problem, translate_errors
from mcp_fs.engine.handles.temp_files import remove_all
from mcp_fs.engine.journal.journal import JournalEntry
from mcp_fs.engine.journal.states import PlannedChange
from mcp_fs.engine.listing.tree_size import DeletionSize
from mcp_fs.models import BatchResult, MoveResult, pluralize
from mcp_fs.paths import to_system_path
from mcp_fs.policy import WritablePath

__all__ = ["delete_all"]

_MAX_NAMED = 5


def delete_all(
    paths: Sequence[WritablePath],
    *,
    recursive: bool,
    trash: bool,
    cancel: CancelToken,
    journal_entry: JournalEntry | None = None,
) -> BatchResult:
    """Delete files, links (never what they point to) and folders; what lies in another of them goes with that.

    All are looked at before the first goes.

    Args:
        recursive: whether a folder that is not empty goes with all that is in it.
        trash: whether they go to the desktop's trash instead, from where a person can bring them back.

    Raises:
        Conflict: a folder is not empty.
        Refused: one is a served folder itself, or holds a protected folder, such as `.ssh`.
        TooLarge: a folder has more than 200 levels.
        Unavailable: some went, and the next could not; both are named.
    """
    with ExitStack() as stack:
        targets = _resolve_outermost(paths, stack)
        stack.enter_context(lock_names([target.resolved for target in targets], cancel))
        pending_deletes = [_inspect(target.path, target.resolved, recursive, cancel) for target in targets]
        content_paths: Sequence[WritablePath | None] = [None] * len(pending_deletes)
        if journal_entry is not None and not trash:
            content_paths = journal_entry.record([pending.plan_change() for pending in pending_deletes])
        results = _delete_each(pending_deletes, content_paths, trash, cancel, journal_entry)
        if not trash:
            _fsync_folders(pending_deletes)
    parents = [one.resolved.path.parent for one in pending_deletes if len(one.resolved.path.parts) > 1]
    return BatchResult(results, _describe_emptied(parents))


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


def _delete_each(
    pending_deletes: Sequence[_PendingDelete],
    content_paths: Sequence[WritablePath | None],
    trash: bool,
    cancel: CancelToken,
    journal_entry: JournalEntry | None,
) -> list[MoveResult]:
    """Delete one after the other.

    Raises:
        Unavailable: some went, and the next could not; both are named.
        Problem: the first could not.
    """
    results: list[MoveResult] = []
    is_only = len(pending_deletes) == 1
    for pending, content_path in zip(pending_deletes, content_paths, strict=True):
        try:
            results.append(_delete_one(pending, content_path, trash, cancel, journal_entry, is_only=is_only))
        except Problem as failure:
            if not results:
                raise
            did = results[0].verb.rstrip(":")
            gone = ", ".join(quote(moved.path) for moved in results)
            raise Unavailable(
                f"{len(results)} of {len(pending_deletes)} were {did}: {gone}. The next was not: {failure.failure}",
                failure.fix,
            ) from failure
    return results


def _fsync_folders(pending_deletes: Sequence[_PendingDelete]) -> None:
    """Make durable each folder in which something was deleted."""
    last_of_folder = {pending.resolved.folder.path: pending for pending in pending_deletes}
    for pending in last_of_folder.values():
        fsync_folder(pending.resolved.folder, pending.path, "deleted")


def _describe_emptied(folders: Iterable[WritablePath]) -> list[str]:
    """Which of the folders have nothing in them any more, in words: nobody has to look what is left."""
    empty: list[str] = []
    for path in dict.fromkeys(folders):
        with (
            suppress(OSError, Problem),
            resolve(path, follow=False) as resolved,
            resolved.folder.open_folder(resolved.name) as folder,
        ):
            if next(folder.scan(), None) is None:
                empty.append(path.display)
    names = ", ".join(empty[:_MAX_NAMED])
    more = f" and {len(empty) - _MAX_NAMED} more"
    verb = "is" if len(empty) == 1 else "are"
    return [f"{names}{more * (len(empty) > _MAX_NAMED)} {verb} empty now"] if empty else []


@dataclass(frozen=True, slots=True)
class _PendingDelete:
    """What is to be deleted: its path, the bytes it takes, and what is said of it."""

    path: WritablePath
    resolved: ResolvedPath[WritablePath]
    total_bytes: int
    notes: Sequence[str]

    def plan_change(self) -> PlannedChange:
        return PlannedChange(self.resolved.path, self.resolved.folder, None, handover_bytes=self.total_bytes)


def _inspect(
    path: WritablePath, resolved: ResolvedPath[WritablePath], recursive: bool, cancel: CancelToken
) -> _PendingDelete:
    refuse_served_folder(resolved.path)
    with translate_errors(path):
        status = resolved.folder.stat(resolved.name)
    if not stat.S_ISDIR(status.st_mode):
        return _PendingDelete(path, resolved, status.st_size, ())
    with open_tree(resolved.folder, resolved.name) as folder:
        if not recursive and any(True for _ in folder.scan()):
            raise Conflict(
                f"{quote(path.display)} is a folder that is not empty.",
                "Set `recursive` to delete it with all that is in it.",
            )
        size = DeletionSize(cancel)
        size.count(folder)
    notes = [f"with {pluralize(size.entry_count, 'entry')}"] if size.entry_count else []
    if size.protected_count:
        notes.append(f"{size.protected_count:,} of them protected")
    return _PendingDelete(path, resolved, size.total_bytes, notes)


def _delete_one(
    pending: _PendingDelete,
    content_path: WritablePath | None,
    trash: bool,
    cancel: CancelToken,
    journal_entry: JournalEntry | None,
    *,
    is_only: bool,
) -> MoveResult:
    path = pending.path
    resolved = pending.resolved
    if trash:
        with translate_errors(path):
            _move_to_trash(resolved, path)
        return MoveResult("moved to the trash:", path.display, notes=pending.notes)
    try:
        if (
            journal_entry is None
            or content_path is None
            or not _hand_over(journal_entry, resolved, path, content_path, cancel, is_only=is_only)
        ):
            remove_all(resolved.folder, resolved.name, cancel)
    except OSError as error:
        raise to_problem(error, path, "part of it is gone" if pending.notes else "") from error
    return MoveResult("deleted", path.display, notes=pending.notes)


def _hand_over(
    journal_entry: JournalEntry,
    resolved: ResolvedPath[WritablePath],
    path: WritablePath,
    content_path: WritablePath,
    cancel: CancelToken,
    *,
    is_only: bool,
) -> bool:
    """Move what is to be deleted to `kept`, where old contents are; False when it can't be and is still there."""
    try:
        with resolve(content_path, follow=False) as store_target:
            relocate(resolved, path, store_target, content_path, overwrite=False, cancel=cancel)
    except (OSError, Problem) as failure:
        if not journal_entry.has_received(content_path):
            journal_entry.drop(failure) if is_only else journal_entry.note_not_kept(path, failure)
        return False
    return True


def _move_to_trash(resolved: ResolvedPath[WritablePath], place: WritablePath) -> None:
    from send2trash import send2trash  # loads a desktop's libraries where there are any

    # The library takes nothing but a path. It is the one that was resolved, and it is looked at once more: who
    # swaps a folder on the way in this very moment can have another file trashed, from where it can be fetched.
    path = os.path.join(resolved.folder.path.root.real_path, *resolved.folder.path.parts, resolved.name)
    if not os.path.samestat(os.lstat(to_system_path(path)), resolved.folder.stat(resolved.name)):
        raise Conflict(f"{quote(place.display)} is being moved by somebody else.", "Try again.")
    try:
        send2trash(path)
    except OSError as error:
        raise Unavailable(
            f"{quote(place.display)} can't be put into the trash here.", "Delete it without `trash`."
        ) from error
