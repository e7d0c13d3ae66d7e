"""Creates folders, and those that are missing above what a change makes."""

from __future__ import annotations

import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TypeVar

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, NotFound, Problem, quote
from mcp_fs.engine.changing.atomic_write import resolve_for_writing
from mcp_fs.engine.handles.path_opening import ResolvedPath, exists, resolve, translate_errors
from mcp_fs.engine.journal.journal import Change, JournalEntry
from mcp_fs.engine.journal.states import NEW_FOLDER, PlannedChange, read_state
from mcp_fs.models import BatchResult, EditResult, MoveResult, WriteResult
from mcp_fs.policy import WritablePath
from mcp_fs.policy.path_arguments import TargetPath

__all__ = ["accept_target", "create_folder", "create_missing_folders", "with_missing_folders"]

_Result = TypeVar("_Result", bound=BatchResult | EditResult | WriteResult)


def accept_target(target: TargetPath) -> WritablePath:
    """Return where something is to be made.

    Raises:
        Invalid: a name on the way was nearly certainly mistyped, and nothing has it.
    """
    if target.typo is not None and not exists(target.typo.entry, follow=False):
        raise target.typo.refusal
    return target.path


def with_missing_folders(
    paths: Sequence[WritablePath],
    change: Change[_Result],
    *,
    cancel: CancelToken,
    journal_entry: JournalEntry | None,
) -> _Result:
    """Return what `change` does; where it finds that folders above `paths` are missing, they are made first and noted.

    Nobody looks for them before: nearly always they are there.
    """
    try:
        return change(cancel=cancel, journal_entry=journal_entry)
    except NotFound:
        missing = next((path.parent for path in paths if not exists(path.parent)), None)
        if missing is None:
            raise
    with create_missing_folders(missing, cancel, journal_entry) as (_, new_folders):
        changed = with_missing_folders(paths, change, cancel=cancel, journal_entry=journal_entry)
        notes = [f"new folder {folder.display}" for folder in new_folders[:1]]
        return replace(changed, notes=[*notes, *changed.notes])


def create_folder(path: WritablePath, cancel: CancelToken, journal_entry: JournalEntry | None = None) -> MoveResult:
    """Create the folder at `path` and those above it that are missing; one that exists is fine.

    Raises:
        Conflict: something else has the name.
    """
    with create_missing_folders(path, cancel, journal_entry) as (real_path, new_folders):
        return MoveResult("created" if new_folders else "already there:", real_path.display)


@contextmanager
def create_missing_folders(
    path: WritablePath, cancel: CancelToken, journal_entry: JournalEntry | None = None
) -> Generator[tuple[WritablePath, Sequence[WritablePath]]]:
    """Make the folder at `path` and those above it that are missing; the new ones go again after a failure.

    What is recorded inside is one step with them.
    """
    new_folders: list[WritablePath] = []
    real_path = path
    try:
        for depth in range(1, len(path.parts) + 1):
            cancel.check()
            level = path.at(path.root, path.parts[:depth])
            with resolve_for_writing(level) as resolved:
                real_path = resolved.path  # an existing name may be spelled another way
                if journal_entry is not None and not new_folders and read_state(resolved.folder, resolved.name) is None:
                    _record_new_folders(journal_entry, real_path, path.parts[depth:])
                if _make_folder(resolved, level):
                    new_folders.append(real_path)
                    with translate_errors(level, "it was not created"):
                        resolved.folder.sync()
        yield real_path, new_folders
    except BaseException:
        for new in reversed(new_folders):
            with suppress(OSError, Problem), resolve(new, follow=False) as resolved:
                resolved.folder.remove_folder(resolved.name)
        raise


def _record_new_folders(journal_entry: JournalEntry, highest: WritablePath, names_below: Sequence[str]) -> None:
    """Record that the folder `highest` is made, and the chain of folders below it."""
    new_paths = [
        highest.at(highest.root, (*highest.parts, *names_below[:depth])) for depth in range(len(names_below) + 1)
    ]
    journal_entry.record_first([PlannedChange(path, None, NEW_FOLDER) for path in new_paths])


def _make_folder(resolved: ResolvedPath[WritablePath], path: WritablePath) -> bool:
    """Make the folder; return False where there is one.

    Raises:
        Conflict: something else has the name.
    """
    try:
        resolved.folder.make_folder(resolved.name)
    except FileExistsError:
        if not stat.S_ISDIR(resolved.folder.stat(resolved.name).st_mode):
            raise Conflict(f"{quote(path.display)} exists and is not a folder.", "Choose another path.") from None
        return False
    return True
