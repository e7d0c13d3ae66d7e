"""Applies diffs to the files that they name, all or nothing."""

from __future__ import annotations

import stat
from dataclasses import replace
from functools import partial

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, Problem, quote
from mcp_fs.engine.changing import notebook_edit
from mcp_fs.engine.changing.file_edits import FileChange, change_files, keep_text
from mcp_fs.engine.changing.folders import with_missing_folders
from mcp_fs.engine.changing.patch import FilePatch, apply_hunks, parse_patch
from mcp_fs.engine.handles.named_entries import accept_target
from mcp_fs.engine.handles.path_opening import exists, open_file, read_status
from mcp_fs.engine.journal.journal import JournalEntry
from mcp_fs.engine.text.encodings import MAX_EDIT_BYTES, decode
from mcp_fs.models import EditResult
from mcp_fs.policy import ReadablePath, WritablePath
from mcp_fs.policy.path_arguments import PathArguments

__all__ = ["apply_patch"]


def apply_patch(
    arguments: PathArguments,
    patch: str | ReadablePath,
    *,
    dry_run: bool,
    cancel: CancelToken,
    journal_entry: JournalEntry | None = None,
) -> EditResult:
    """Apply a diff to its files.

    Args:
        arguments: parse the paths in the diff.
        patch: the diff, or the file that holds it.
    """
    if isinstance(patch, ReadablePath):
        patch = _read_patch(patch)
    changes: list[FileChange] = []
    new_paths: list[WritablePath] = []
    mode_notes: list[str] = []
    for file in parse_patch(patch):
        if file.renamed_from:
            rename = _plan_rename(arguments, file, cancel)
            path = rename[0].path
            changes += rename
        else:
            path = _find_file(arguments, file)
            changes.append(_plan_change(path, file, cancel))
        if file.creates or file.renamed_from:
            new_paths.append(path)
        if file.mode and not file.creates:
            mode_notes.append(f"{path.display}: its mode stays, not {file.mode}")
    if dry_run:
        new_paths = []
    change = partial(change_files, changes, dry_run=dry_run)
    edited = with_missing_folders(new_paths, change, cancel=cancel, journal_entry=journal_entry)
    return replace(edited, notes=[*edited.notes, *mode_notes])


def _read_patch(path: ReadablePath) -> str:
    """Return the text of a file that holds a diff.

    Raises:
        Invalid: it is not text, or too long.
    """
    with open_file(path) as file:
        data = file.read(MAX_EDIT_BYTES + 1)
    decoded = decode(data)
    if decoded is None or len(data) > MAX_EDIT_BYTES:
        raise Invalid(
            f"{quote(path.display)} is no patch: it is not text, or has more than {MAX_EDIT_BYTES:,} bytes.",
            "Name a file with a unified diff, or send the diff itself.",
        )
    return decoded.text


def _plan_rename(arguments: PathArguments, patch: FilePatch, cancel: CancelToken) -> list[FileChange]:
    """Return what puts a file under its new path, with its hunks, and what takes it away from its old one."""
    source = arguments.target(patch.renamed_from).path
    target = accept_target(arguments.target(patch.path))
    if exists(source, follow=False) and stat.S_ISLNK(read_status(source, follow=False).st_mode):
        raise Invalid(f"The patch renames {quote(source.display)}, which is a link.", "Use `move_file` for it.")
    change = replace(_plan_change(target, patch, cancel), renamed_from=source)
    if not patch.hunks:
        change = replace(change, revise=keep_text)
    return [change, FileChange(source, lambda text: "", deletes=True, is_renamed=True)]


def _find_file(arguments: PathArguments, patch: FilePatch) -> WritablePath:
    """Find the file of a patch: git puts `a/` before its name, other tools do not."""
    if patch.path != patch.written_path and not patch.creates:
        try:
            literal = arguments.target(patch.written_path).path
        except Problem:
            pass
        else:
            if exists(literal, follow=False):
                return literal
    if not patch.path:
        raise Invalid("The patch names no file.")
    target = arguments.target(patch.path)
    return accept_target(target) if patch.creates else target.path


def _plan_change(path: WritablePath, patch: FilePatch, cancel: CancelToken) -> FileChange:
    """Return what a patch makes of one file."""
    label = quote(path.display)
    apply = partial(apply_hunks, patch=patch, label=label, cancel=cancel)
    return FileChange(
        path,
        apply,
        partial(notebook_edit.apply_patch, apply=apply, label=label),
        creates=patch.creates,
        deletes=patch.deletes,
        executable=patch.mode == "100755",
    )
