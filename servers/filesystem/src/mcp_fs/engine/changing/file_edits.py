"""Edits text files: one or several under their locks, all or nothing.

Everything that can fail by itself, reading, matching, encoding, writing the new contents to disk, is done for
all files before the first is replaced. A crash between two renames leaves some files new and the others old, each
whole: no file system offers more.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, Invalid, NotFound, TooLarge, quote
from mcp_fs.engine.changing import notebook_edit
from mcp_fs.engine.changing.atomic_write import FileRemoval, FileWrite, prepare_write
from mcp_fs.engine.changing.binary_formats import (
    check_text_for,
    is_text_file,
    other_form_error,
)
from mcp_fs.engine.changing.edit_errors import (
    MAX_TOTAL_BYTES,
    not_text_error,
    notebook_end_error,
    too_large_error,
    too_much_error,
)
from mcp_fs.engine.changing.notebook_edit import Notebook
from mcp_fs.engine.changing.targets import open_locked, read_regular_status, resolve_for_writing
from mcp_fs.engine.document_kinds import HEAD_BYTES, kind_of
from mcp_fs.engine.handles.locks import LockedFile, lock_names
from mcp_fs.engine.handles.path_opening import ResolvedPath, open_file, to_problem
from mcp_fs.engine.journal.journal import JournalEntry
from mcp_fs.engine.journal.operations import apply
from mcp_fs.engine.text import edit
from mcp_fs.engine.text.edit import Replacement, unified_diff
from mcp_fs.engine.text.encodings import (
    MAX_EDIT_BYTES,
    Decoded,
    Encoding,
    content_hash,
    decode,
    encode,
)
from mcp_fs.engine.text.encodings import replace_undecodable as readable
from mcp_fs.models import EditResult
from mcp_fs.policy import WritablePath

__all__ = [
    "FileChange",
    "change_files",
    "keep_text",
    "replace_pieces",
]

_HASH_PREFIX = re.compile("[0-9a-fA-F]{8,64}")
_EMPTY_TEXT = Decoded("", "utf-8", bom=False, newline="\n")


@dataclass(frozen=True, slots=True)
class FileChange:
    """What is to become of one file.

    Attributes:
        revise: its text to its new text.
        revise_notebook: the same of a notebook; None where that can't be edited in its cells.
        creates: whether the file must not exist yet, or be empty.
        deletes: whether the file goes when the new text is empty.
        executable: whether a new file can be run.
        expected_hash: the SHA-256 that the file must have, or its first digits.
        renamed_from: the file whose contents and attributes it gets; another change deletes that.
        is_renamed: whether the file goes because another change puts it under its new path.
        encoding: what it is written in from now on; None for the encoding that it has.
        old_encoding: what it is read in if its encoding would be a guess; None for the guess.
    """

    path: WritablePath
    revise: Callable[[str], str]
    revise_notebook: Callable[[Notebook], Notebook] | None = None
    creates: bool = False
    deletes: bool = False
    executable: bool = False
    expected_hash: str | None = None
    renamed_from: WritablePath | None = None
    is_renamed: bool = False
    encoding: Encoding | None = None
    old_encoding: Encoding | None = None


@dataclass(slots=True)
class _PreparedChange:
    """A change whose new contents are computed and not yet written.

    Attributes:
        old_status: of the file before it; None if there is none yet.
        hash: of the contents before it, as reading the file shows it.
        data: the new contents; None if the file goes.
    """

    change: FileChange
    old_status: os.stat_result | None
    hash: str | None
    data: bytes | None
    diff: str

    @property
    def outcome(self) -> tuple[str, str]:
        path = self.change.path.display
        if self.change.renamed_from is not None:
            return f"{self.change.renamed_from.display} to {path}", "renamed"
        return path, self._verb

    @property
    def _verb(self) -> str:
        if self.data is None:
            return "deleted"
        if self.old_status is None:
            return "created"
        return "edited"


@dataclass(frozen=True, slots=True)
class _OldContents:
    """What a file holds before the change; the defaults are those of a file that does not exist.

    Attributes:
        hash: as reading the file shows it.
    """

    status: os.stat_result | None = None
    data: bytes = b""
    decoded: Decoded = _EMPTY_TEXT
    hash: str | None = None


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


def change_files(
    changes: Sequence[FileChange],
    *,
    dry_run: bool,
    shows_diffs: bool = True,
    cancel: CancelToken,
    journal_entry: JournalEntry | None = None,
) -> EditResult:
    """Make all changes or none.

    Args:
        shows_diffs: whether the result has the diffs, which take most of the time; else they are empty.
        journal_entry: is told what changes before it does, so that it can be undone.

    Raises:
        Conflict: a hash differs, a file exists that is to be created, or one changed while it was edited.
        Refused: a file is not text in any known encoding.
        TooLarge: a file is, or would be, larger than is edited; or all together.
        Problem: whatever `revise` raises; nothing was written.
    """
    _refuse_below(changes)
    with ExitStack() as stack:
        resolved_changes = [_resolve(change, stack, dry_run) for change in changes]
        resolved_paths = [resolved for resolved in resolved_changes if resolved is not None]
        locks = stack.enter_context(lock_names(resolved_paths, cancel))
        prepared: list[_PreparedChange] = []
        for change, resolved in zip(changes, resolved_changes, strict=True):
            locked_file = None if resolved is None else locks.get(resolved)
            prepared.append(_prepare(change, resolved, locked_file, cancel, shows_diffs=shows_diffs))
        _refuse_too_much(prepared)
        _refuse_same_file(prepared, resolved_changes)
        notes: list[str] = []
        if not dry_run:
            operations: list[FileWrite | FileRemoval] = []
            for item, resolved in zip(prepared, resolved_paths, strict=True):
                operations.append(_prepare_operation(item, resolved, locks.get(resolved), stack))
            cancel.check()
            apply(operations, journal_entry)
            notes = _prefixed_notes(operations)
    reported = [item for item in prepared if not item.change.is_renamed]
    outcomes = [item.outcome for item in reported]
    diffs = [item.diff for item in reported]
    old_hash = None
    if len(prepared) == 1:
        old_hash = prepared[0].hash
    return EditResult(outcomes, diffs, dry_run, notes, old_hash)


def _refuse_too_much(prepared: Sequence[_PreparedChange]) -> None:
    if sum(len(item.data or b"") for item in prepared) > MAX_TOTAL_BYTES:
        raise too_much_error()


def _refuse_same_file(
    prepared: Sequence[_PreparedChange], resolved_changes: Sequence[ResolvedPath[WritablePath] | None]
) -> None:
    """Raise Invalid where two changes are of one file, by its path or by another name of it."""
    paths = {(resolved or item.change).path for item, resolved in zip(prepared, resolved_changes, strict=True)}
    statuses = [item.old_status for item in prepared if item.old_status is not None]
    file_ids = {(status.st_dev, status.st_ino) for status in statuses}
    if len(paths) < len(prepared) or len(file_ids) < len(statuses):
        raise Invalid("One file is named twice.", "Put all of its changes into one.")


def _prefixed_notes(operations: Sequence[FileWrite | FileRemoval]) -> list[str]:
    """Return the notes of all writes, each with the path that it is about."""
    notes: list[str] = []
    for operation in operations:
        if isinstance(operation, FileWrite):
            notes.extend(f"{operation.display_path.display}: {note}" for note in operation.notes)
    return notes


def _refuse_below(changes: Sequence[FileChange]) -> None:
    """Raise Invalid if a file is to be made where another of the call would be its folder."""
    files = {(change.path.root, change.path.parts): change.path for change in changes}
    for change in changes:
        root = change.path.root
        parts = change.path.parts
        for depth in range(1, len(parts)):
            parent = files.get((root, parts[:depth]))
            if parent is not None:
                raise Invalid(
                    f"{quote(change.path.display)} can't be made below {quote(parent.display)}, which is a file."
                )


def _prepare_operation(
    prepared: _PreparedChange,
    resolved: ResolvedPath[WritablePath],
    locked_file: LockedFile | None,
    stack: ExitStack,
) -> FileWrite | FileRemoval:
    """Write the new contents beside the file, where `stack` removes them unless they get its name."""
    change = prepared.change
    if prepared.data is None:
        return FileRemoval(resolved, change.path, prepared.old_status, locked_file=locked_file, checks_old=True)
    with ExitStack() as template_stack:  # Windows removes no file that is open
        template_fd = None
        if change.renamed_from is not None:
            template_fd = template_stack.enter_context(open_file(change.renamed_from)).fileno()
        write = prepare_write(
            resolved,
            prepared.data,
            prepared.old_status,
            change.path,
            checks_old=True,
            locked_file=locked_file,
            template_fd=template_fd,
            executable=change.executable,
        )
        return stack.enter_context(write)


def _resolve(change: FileChange, stack: ExitStack, dry_run: bool) -> ResolvedPath[WritablePath] | None:
    """Resolve the path of a file; return None for one in a folder that a dry run does not make."""
    try:
        return stack.enter_context(resolve_for_writing(change.path))
    except NotFound:
        if not dry_run or (not change.creates and change.renamed_from is None):
            raise
        return None


def _prepare(
    change: FileChange,
    resolved: ResolvedPath[WritablePath] | None,
    locked_file: LockedFile | None,
    cancel: CancelToken,
    *,
    shows_diffs: bool,
) -> _PreparedChange:
    """Read the file and compute its new contents."""
    cancel.check()
    if change.renamed_from is not None:
        return _prepare_rename(change, change.renamed_from, resolved, locked_file)
    if change.is_renamed and resolved is not None:
        return _PreparedChange(change, read_regular_status(resolved, change.path, locked_file), None, None, "")
    old = _read_old_contents(change, resolved, locked_file)
    try:
        old_text, new_text, stored_text = _revise(change, old.decoded, old.data)
    except OverflowError:
        raise too_large_error(change.path) from None
    data = _encode_new(change, stored_text, old)
    if not shows_diffs:
        return _PreparedChange(change, old.status, old.hash, data, "")
    diff = unified_diff(
        readable(old_text),
        readable(new_text),
        change.path.display,
        created=old.status is None,
        deleted=data is None,
    )
    return _PreparedChange(change, old.status, old.hash, data, diff)


def _prepare_rename(
    change: FileChange,
    source: WritablePath,
    resolved: ResolvedPath[WritablePath] | None,
    locked_file: LockedFile | None,
) -> _PreparedChange:
    """Read the file under its old path and compute what it holds under the new one."""
    path = change.path
    if resolved is not None and read_regular_status(resolved, path, locked_file) is not None:
        raise Conflict(f"{quote(path.display)} exists already; nothing was renamed.", "Choose another name.")
    with open_file(source) as file:
        _refuse_too_large(source, os.fstat(file.fileno()))
        data = file.read()
    if change.revise is keep_text:
        if is_text_file("", data):
            check_text_for(path, data, b"")
        diff = f"rename from {source.display}\nrename to {path.display}\n"
        return _PreparedChange(change, None, None, data, diff)
    decoded = decode(data)
    if decoded is None:
        raise not_text_error(source, data)
    old_text, new_text, stored_text = _revise(change, decoded, data)
    new_data = encode(stored_text, decoded)
    if len(new_data) > MAX_EDIT_BYTES:
        raise too_large_error(path)
    check_text_for(path, new_data, b"")
    diff = unified_diff(readable(old_text), readable(new_text), source.display, to=path.display)
    return _PreparedChange(change, None, None, new_data, diff)


def keep_text(text: str) -> str:
    """Return the text of a file whose name changes and nothing else."""
    return text


def _refuse_too_large(path: WritablePath, status: os.stat_result) -> None:
    if status.st_size > MAX_EDIT_BYTES:
        raise TooLarge(
            f"{quote(path.display)} has {status.st_size:,} bytes; up to {MAX_EDIT_BYTES:,} can be edited.",
            "`write_file` with `append` adds to a file of any size, and `copy_file` takes lines out of it, such as "
            f"{quote(path.display + ':1-5000')}.",
        )


def _read_old_contents(
    change: FileChange, resolved: ResolvedPath[WritablePath] | None, locked_file: LockedFile | None
) -> _OldContents:
    """Read the file and check that it is what the change expects."""
    path = change.path
    status = None
    if resolved is not None:
        status = read_regular_status(resolved, path, locked_file)
    if resolved is None or status is None:
        if not change.creates:
            raise to_problem(FileNotFoundError(2, ""), path)
        return _OldContents()
    _refuse_too_large(path, status)
    with open_locked(resolved, locked_file, path) as file:
        status = os.fstat(file.fileno())
        data = file.read()
    if change.creates and data:
        raise Conflict(f"{quote(path.display)} exists already.", "Edit it, or choose another name.")
    digest = content_hash(data)
    _check_expected_hash(change, data, digest)
    decoded = decode(data, change.old_encoding)
    if decoded is None:
        raise not_text_error(path, data)
    return _OldContents(status, data, decoded, digest)


def _check_expected_hash(change: FileChange, data: bytes, digest: str) -> None:
    expected = change.expected_hash
    if expected is None:
        return
    if not _HASH_PREFIX.fullmatch(expected):
        raise Invalid(
            f"`expected_hash` {quote(expected)} is not a hash.",
            "Give at least 8 of the hexadecimal digits that reading the file shows.",
        )
    if not hashlib.sha256(data).hexdigest().startswith(expected.lower()):
        raise Conflict(
            f"{quote(change.path.display)} has changed: its hash is `{digest}`.",
            "Read it again, then repeat the edit.",
        )


def _encode_new(change: FileChange, text: str, old: _OldContents) -> bytes | None:
    """Encode the new contents like the old; return None if the file goes."""
    if change.deletes and not text:
        return None
    path = change.path
    if change.deletes:
        raise Conflict(
            f"{quote(path.display)} holds more than the patch removes.", "Read it again, then make the patch anew."
        )
    if change.encoding is not None and old.decoded.undecodable:
        raise Conflict(f"{quote(path.display)} was changed by somebody else.", "Read it again, then repeat the change.")
    if old.decoded.bom and not old.decoded.text.startswith("\ufeff"):
        # Who edits the first line may quote the mark of the file, which it has already.
        text = text.removeprefix("\ufeff")
    data = encode(text, old.decoded.in_encoding(change.encoding))
    if len(data) > MAX_EDIT_BYTES:
        raise too_large_error(path)
    if data and not old.data:
        check_text_for(path, data, old.data)
    return data


def _revise(change: FileChange, decoded: Decoded, data: bytes) -> tuple[str, str, str]:
    """Return the text as it is read, before the change and after it, and what is to be stored.

    Raises:
        Refused: it is read in another form than it is stored, and can't be edited in that.
    """
    path = change.path
    text = decoded.text
    kind = None
    if not change.creates and not change.deletes:
        kind = kind_of(path.name, data[:HEAD_BYTES])
    notebook = None
    if kind == "notebook":
        notebook = Notebook.parse(data, text)
    if notebook is not None:
        if change.revise_notebook is None:
            raise notebook_end_error(path)
        changed = change.revise_notebook(notebook)
        return notebook.text, changed.text, changed.json
    if kind not in (None, "notebook"):
        raise other_form_error(path, kind)
    new = change.revise(text)
    return text, new, new
