"""Creates and replaces text files, and changes them by replacements, additions and diffs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, Invalid, Problem, quote
from mcp_fs.engine.changing import notebook_edit
from mcp_fs.engine.changing.atomic_write import prepare_write, read_head, read_regular_status, resolve_for_writing
from mcp_fs.engine.changing.binary_formats import check_text_for, is_text_file, suggest_text_file
from mcp_fs.engine.changing.folders import accept_target, with_missing_folders
from mcp_fs.engine.changing.patch import FilePatch, apply_hunks, parse_patch
from mcp_fs.engine.changing.transaction import FileChange, change_files
from mcp_fs.engine.document_kinds import HEAD_BYTES, kind_of
from mcp_fs.engine.handles.locks import lock_names
from mcp_fs.engine.handles.path_opening import exists
from mcp_fs.engine.journal.journal import JournalEntry
from mcp_fs.engine.text import edit
from mcp_fs.engine.text.edit import Replacement
from mcp_fs.models import EditResult, WriteResult
from mcp_fs.policy import WritablePath
from mcp_fs.policy.path_arguments import PathArguments

__all__ = ["append_text", "apply_patch", "replace_pieces", "write_file"]


def write_file(
    path: WritablePath,
    content: str | bytes,
    *,
    overwrite: bool,
    cancel: CancelToken,
    journal_entry: JournalEntry | None = None,
) -> WriteResult:
    """Create the file at `path`, or with `overwrite` replace what it holds; text is written as UTF-8.

    A link is followed beneath the served folders and stays a link.

    Args:
        journal_entry: is told what changes before it does, so that it can be taken back.

    Raises:
        Conflict: the file exists and `overwrite` is not set.
        NotFound: the folder does not exist.
        Refused: something that is not a regular file is there.
    """
    try:
        data = content.encode() if isinstance(content, str) else content
    except UnicodeEncodeError:
        raise Invalid("The content has a lone surrogate, which no text file can hold.") from None
    with resolve_for_writing(path) as resolved, lock_names([resolved], cancel) as locks:
        locked_file = locks.get(resolved)
        old_status = read_regular_status(resolved, path, locked_file)
        head = b"" if old_status is None else read_head(resolved, locked_file)
        if isinstance(content, str):
            check_text_for(path, data, head)
        if old_status is not None and not overwrite:
            raise _already_exists_error(path, head)
        with prepare_write(resolved, data, old_status, path, locked_file=locked_file) as write:
            if journal_entry is not None:
                journal_entry.record([write.plan_change()])
            write.commit(replace=overwrite)
        real_path = resolved.path  # an existing name may be spelled another way
    return WriteResult(real_path.display, old_status is None, len(data), tuple(write.notes))


def replace_pieces(
    path: WritablePath,
    replacements: Sequence[Replacement],
    *,
    dry_run: bool,
    expected_hash: str | None,
    cancel: CancelToken,
    journal_entry: JournalEntry | None = None,
) -> EditResult:
    """Replace pieces of a text file."""
    label = quote(path.display)
    revise = partial(edit.apply_replacements, replacements=replacements, label=label, cancel=cancel)
    in_cells = partial(notebook_edit.replace_in_cells, replacements=replacements, label=label, cancel=cancel)
    change = FileChange(path, revise, in_cells, expected_hash=expected_hash)
    return change_files([change], dry_run=dry_run, cancel=cancel, journal_entry=journal_entry)


def append_text(
    path: WritablePath, content: str, cancel: CancelToken, journal_entry: JournalEntry | None = None
) -> EditResult | WriteResult:
    """Add text to the end of a file, in its encoding; create it, with the folders to it, when there is none."""
    if not exists(path):
        write = partial(write_file, path, content, overwrite=False)
        return with_missing_folders([path], write, cancel=cancel, journal_entry=journal_entry)
    change = FileChange(path, partial(edit.append_text, addition=content))
    return change_files([change], dry_run=False, cancel=cancel, journal_entry=journal_entry)


def apply_patch(
    arguments: PathArguments,
    patch: str,
    *,
    dry_run: bool,
    cancel: CancelToken,
    journal_entry: JournalEntry | None = None,
) -> EditResult:
    """Apply a diff to its files.

    Args:
        arguments: parse the paths in the diff.
    """
    changes: list[FileChange] = []
    new_paths: list[WritablePath] = []
    mode_notes: list[str] = []
    for file in parse_patch(patch):
        path = _find_file(arguments, file)
        changes.append(_plan_change(path, file, cancel))
        if file.creates:
            new_paths.append(path)
        elif file.mode:
            mode_notes.append(f"{path.display}: its mode stays, not {file.mode}")
    if dry_run:
        new_paths = []
    change = partial(change_files, changes, dry_run=dry_run)
    edited = with_missing_folders(new_paths, change, cancel=cancel, journal_entry=journal_entry)
    return replace(edited, notes=[*edited.notes, *mode_notes])


def _already_exists_error(path: WritablePath, head: bytes) -> Conflict:
    failure = f"{quote(path.display)} exists already."
    is_written_as_text = kind_of(path.name, head[:HEAD_BYTES]) in ("mail", "notebook")
    if head and not is_written_as_text and not is_text_file(path.name, head):
        return Conflict(failure, f"It is not text, which would be lost: {_lower_first(suggest_text_file(path))}")
    return Conflict(failure, "Change it with `edit_file`, or set `overwrite` to replace all of it.")


def _lower_first(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


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
