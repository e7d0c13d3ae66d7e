"""The engine: trusted paths in, results out. Blocking work runs on worker threads, short reads from memory do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from typing import TypeVar

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.descriptors import raise_descriptor_limit
from mcp_batteries.errors import NotFound, Refused, quote
from mcp_fs.engine.changing import copying, deleting, moving
from mcp_fs.engine.changing.batch import PutOperation, put_all
from mcp_fs.engine.changing.notebook_edit import apply_patch, replace_in_cells
from mcp_fs.engine.changing.patch import FilePatch, apply_hunks
from mcp_fs.engine.changing.replace import Substitution, replace_in_files
from mcp_fs.engine.changing.transaction import FileChange, change_files
from mcp_fs.engine.changing.writing import write_file
from mcp_fs.engine.handles import temp_files
from mcp_fs.engine.handles.path_opening import exists
from mcp_fs.engine.journal.journal import JournalEntry
from mcp_fs.engine.journal.store import JournalStore
from mcp_fs.engine.listing.walk import WalkFilter
from mcp_fs.engine.text.edit import Replacement, append_text
from mcp_fs.engine.text.edit import apply_replacements as replace_text
from mcp_fs.engine.undo.undo import list_undoable_entries, undo_entries
from mcp_fs.models import (
    BatchResult,
    EditResult,
    MoveResult,
    ReplaceResult,
    UndoResult,
    UndoStepPage,
    WriteResult,
)
from mcp_fs.policy import Policy, ReadablePath, WritablePath
from mcp_fs.policy.path_arguments import LineRange

__all__ = ["Engine"]

# For a tree of 200 levels and its copy, or 200 files that are deleted, each held with its folder.
_MIN_DESCRIPTORS = 1024
_Result = TypeVar("_Result", EditResult, MoveResult, BatchResult, ReplaceResult, WriteResult, EditResult | WriteResult)
_S = TypeVar("_S", bound=ReadablePath | LineRange)


class Engine:
    """Everything the tools, resources and completions can have done.

    Args:
        policy: names the served folders, for what concerns all of them.
        undo: where old contents are kept; None keeps nothing.
    """

    def __init__(self, policy: Policy, undo: JournalStore | None = None) -> None:
        self._policy = policy
        self._undo = undo
        raise_descriptor_limit(_MIN_DESCRIPTORS)

    def clean_temp_files(self) -> AbstractAsyncContextManager[None]:
        """Remove, beside the first requests, what crashes of earlier processes left in the served folders."""
        return temp_files.clean_in_background(self._policy)

    # Writing

    async def write_file(self, path: WritablePath, content: str, *, overwrite: bool) -> WriteResult:
        """Create or replace a text file, with the folders to it."""

        def work(cancel: CancelToken, step: JournalEntry | None) -> WriteResult:
            write = partial(write_file, path, content, overwrite=overwrite, cancel=cancel, journal_entry=step)
            return _create_missing_folders([path], write, cancel, step)

        return await self._run_change(work, description="Writing", long=False)

    async def edit_file(
        self, path: WritablePath, edits: Sequence[Replacement], *, dry_run: bool, expected_hash: str | None
    ) -> EditResult:
        """Replace pieces of a text file, all or none."""

        def work(cancel: CancelToken, step: JournalEntry | None) -> EditResult:
            revise = partial(replace_text, replacements=edits, label=quote(path.display), cancel=cancel)
            in_cells = partial(replace_in_cells, replacements=edits, label=quote(path.display), cancel=cancel)
            change = FileChange(path, revise, in_cells, expected_hash=expected_hash)
            return change_files([change], dry_run=dry_run, cancel=cancel, journal_entry=step)

        return await self._run_change(work, description="Editing")

    async def apply_patch(self, files: Sequence[tuple[WritablePath, FilePatch]], *, dry_run: bool) -> EditResult:
        """Apply a diff to its files, all or none."""

        def work(cancel: CancelToken, step: JournalEntry | None) -> EditResult:
            changes = [_plan_patch(path, patch, cancel) for path, patch in files]
            modes = [
                f"{path.display}: its mode stays, not {it.mode}" for path, it in files if it.mode and not it.creates
            ]
            new = [path for path, patch in files if patch.creates and not dry_run]
            change = partial(change_files, changes, dry_run=dry_run, cancel=cancel, journal_entry=step)
            edited = _create_missing_folders(new, change, cancel, step)
            return replace(edited, notes=[*edited.notes, *modes])

        return await self._run_change(work, description="Patching")

    async def append_text(self, path: WritablePath, content: str) -> EditResult | WriteResult:
        """Add text to the end of a file, in its encoding; create it, with the folders to it, when there is none."""

        def work(cancel: CancelToken, step: JournalEntry | None) -> EditResult | WriteResult:
            if not exists(path):
                write = partial(write_file, path, content, overwrite=False, cancel=cancel, journal_entry=step)
                return _create_missing_folders([path], write, cancel, step)
            change = FileChange(path, partial(append_text, addition=content))
            return change_files([change], dry_run=False, cancel=cancel, journal_entry=step)

        return await self._run_change(work, description="Writing")

    async def replace_text(
        self, start: WritablePath, glob: str, walk_filter: WalkFilter, substitution: Substitution, *, dry_run: bool
    ) -> ReplaceResult:
        """Replace a text in many files, all or none."""
        return await self._run_change(
            lambda cancel, step: replace_in_files(
                start, glob, walk_filter, substitution, dry_run=dry_run, cancel=cancel, journal_entry=step
            ),
            description="Replacing",
        )

    async def create_folder(self, path: WritablePath) -> MoveResult:
        """Create a folder and those above it."""
        return await self._run_change(
            lambda cancel, step: moving.create_folder(path, cancel, step),
            description="Creating the folder",
            long=False,
        )

    async def copy(
        self, pairs: Sequence[tuple[ReadablePath | LineRange, WritablePath]], *, overwrite: bool
    ) -> BatchResult:
        """Copy files, folders, links and lines of files to their targets, with the folders to these."""
        return await self._run_batch(copying.copy_entry, pairs, overwrite, "Copying")

    async def move(self, pairs: Sequence[tuple[WritablePath, WritablePath]], *, overwrite: bool) -> BatchResult:
        """Rename files, folders and links, with the folders to their targets."""
        return await self._run_batch(moving.move_entry, pairs, overwrite, "Moving")

    async def _run_batch(
        self, put: PutOperation[_S], pairs: Sequence[tuple[_S, WritablePath]], overwrite: bool, description: str
    ) -> BatchResult:
        def work(cancel: CancelToken, step: JournalEntry | None) -> BatchResult:
            do = partial(put_all, put, pairs, overwrite=overwrite, cancel=cancel, journal_entry=step)
            return _create_missing_folders([target for _, target in pairs], do, cancel, step)

        return await self._run_change(work, description=description)

    async def delete(self, paths: Sequence[WritablePath], *, recursive: bool, trash: bool) -> BatchResult:
        """Delete files, folders and links, or put them into the trash."""
        return await self._run_change(
            lambda cancel, step: deleting.delete_all(
                paths, recursive=recursive, trash=trash, cancel=cancel, journal_entry=step
            ),
            description="Deleting",
        )

    async def list_steps(self) -> UndoStepPage:
        """Return what the caller's calls changed, as far as it can be taken back."""
        undo = self._undo
        if undo is None:
            return UndoStepPage((), 0)
        return await run_in_thread(lambda cancel: list_undoable_entries(self._policy, undo, cancel))

    async def undo(self, step: str, *, later: bool, dry_run: bool) -> UndoResult:
        """Take back one of these steps, or all from that one on."""
        undo = self._undo
        if undo is None:
            raise Refused(
                "Old contents are not kept here.", "The operator can start the server with `--undo-megabytes`."
            )
        return await run_in_thread(
            lambda cancel: undo_entries(self._policy, undo, step, later=later, dry_run=dry_run, cancel=cancel),
            description="Taking it back",
            long=True,
        )

    async def _run_change(
        self, work: Callable[[CancelToken, JournalEntry | None], _Result], *, description: str, long: bool = True
    ) -> _Result:
        """Do what changes something, with what was there before kept."""

        def run(cancel: CancelToken) -> _Result:
            if self._undo is None:
                return work(cancel, None)
            with JournalEntry(self._undo, cancel) as step:
                result = work(cancel, step)
            if not step.notes:
                return result
            return replace(result, notes=[*result.notes, *step.notes])

        return await run_in_thread(run, description=description, long=long)


def _plan_patch(path: WritablePath, patch: FilePatch, cancel: CancelToken) -> FileChange:
    """Return what a patch makes of one file."""
    label = quote(path.display)
    apply = partial(apply_hunks, patch=patch, label=label, cancel=cancel)
    return FileChange(
        path,
        apply,
        partial(apply_patch, apply=apply, label=label),
        creates=patch.creates,
        deletes=patch.deletes,
        executable=patch.mode == "100755",
    )


def _create_missing_folders(
    paths: Sequence[WritablePath], change: Callable[[], _Result], cancel: CancelToken, step: JournalEntry | None
) -> _Result:
    """What `change` comes to; where it finds that folders above `paths` are missing, they are made for it and noted.

    Nobody looks for them before: nearly always they are there.
    """
    try:
        return change()
    except NotFound:
        missing = next((path.parent for path in paths if not exists(path.parent)), None)
        if missing is None:
            raise
    with moving.create_missing_folders(missing, cancel, step) as (_, new_folders):
        changed = _create_missing_folders(paths, change, cancel, step)
        return replace(
            changed, notes=[*(f"new folder {new_folders[0].display}" for _ in new_folders[:1]), *changed.notes]
        )
