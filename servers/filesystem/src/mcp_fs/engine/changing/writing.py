"""Creates and replaces text files, and adds to them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import BinaryIO

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, Invalid, quote
from mcp_fs.engine.changing.atomic_write import prepare_write
from mcp_fs.engine.changing.binary_formats import check_text_for, is_text_file, other_form_error, suggest_text_file
from mcp_fs.engine.changing.edit_errors import not_text_error, notebook_end_error
from mcp_fs.engine.changing.folders import with_missing_folders
from mcp_fs.engine.changing.targets import open_locked, read_head, read_regular_status, resolve_for_writing
from mcp_fs.engine.document_kinds import HEAD_BYTES, RAW_MEMBERS, kind_of
from mcp_fs.engine.documents.formats.notebook import notebook_cells
from mcp_fs.engine.handles.locks import lock_names
from mcp_fs.engine.handles.path_opening import exists, to_problem
from mcp_fs.engine.handles.syscalls import copy_blocks, write_all
from mcp_fs.engine.journal.journal import JournalEntry
from mcp_fs.engine.journal.operations import apply
from mcp_fs.engine.journal.states import MAX_HASHED_BYTES
from mcp_fs.engine.text import edit
from mcp_fs.engine.text.encodings import (
    MAX_EDIT_BYTES,
    NEWLINE_NAMES,
    SAMPLE_BYTES,
    Decoded,
    encode,
    read_text_form,
    uniform_newline,
)
from mcp_fs.models import WriteResult
from mcp_fs.policy import WritablePath

__all__ = ["append_text", "write_file"]

# Of the end of a text, to see how its last line ends.
_ENDING_BYTES = 65_536


def write_file(
    path: WritablePath,
    content: str | bytes,
    *,
    overwrite: bool,
    cancel: CancelToken,
    journal_entry: JournalEntry | None = None,
) -> WriteResult:
    """Create the file at `path`, or with `overwrite` replace what it holds.

    A new text is written as UTF-8; one that replaces another keeps its encoding, byte order mark and line ends where
    it can, and the answer tells both. A link is followed beneath the served folders and stays a link.

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
        form_notes: list[str] = []
        if isinstance(content, str) and content:
            data, form_notes = _encode_like(content, data, head)
            form_notes += _note_written_out_line_ends(content)
        with prepare_write(resolved, data, old_status, path, overwrite=overwrite, locked_file=locked_file) as write:
            apply([write], journal_entry)
        real_path = resolved.path  # an existing name may be spelled another way
    verb = "created" if old_status is None else "replaced"
    return WriteResult(real_path.display, verb, len(data), (*form_notes, *write.notes))


def _encode_like(content: str, data: bytes, old: bytes) -> tuple[bytes, list[str]]:
    """Return new content in the form of the old, and what is told of that.

    Args:
        data: the new content as UTF-8.
        old: how the old content begins.
    """
    form = read_text_form(old)
    if not old or form is None:
        return data, []
    kept_forms: list[str] = []
    notes: list[str] = []
    newline = uniform_newline(content)
    if newline == "\n" and form.newline in ("\r\n", "\r"):
        content = content.replace("\n", form.newline)
        kept_forms.append(f"{NEWLINE_NAMES[form.newline]} line ends")
    elif newline and form.newline != newline and form.newline != "":
        notes.append(f"line ends are {NEWLINE_NAMES[newline]} now, were {NEWLINE_NAMES[form.newline]}")
    if form.encoding.bom:
        content = content.removeprefix("\ufeff")
    try:
        data = form.encode(content)
    except UnicodeEncodeError as error:
        character = quote(content[error.start])
        notes.append(f"it is UTF-8 now, was {form.encoding}, which has no {character}")
        return content.encode(), notes
    if form.encoding.bom or data != content.encode():
        kept_forms.append(str(form.encoding))
    if kept_forms:
        notes.insert(0, f"kept {' and '.join(kept_forms)}")
    return data, notes


def _note_written_out_line_ends(content: str) -> list[str]:
    """Say that each `\\n` of a text is two characters, where line ends may be meant: it has several and no line end.

    What begins as JSON or a quoted text does has them rightly.
    """
    count = content.count("\\n")
    if count < 2 or "\n" in content.rstrip("\n") or content.startswith(("{", "[", '"', "'")):
        return []
    return [f"it is one line, in which \\n stands {count} times as two characters"]


def append_text(
    path: WritablePath, content: str, cancel: CancelToken, journal_entry: JournalEntry | None = None
) -> WriteResult:
    """Add text to the end of a file, in its encoding; create it, with the folders to it, when there is none.

    It begins a new line. Of the old content only both ends are looked at, whatever its size.

    Raises:
        Refused: the file is not text, or a notebook.
        Invalid: its encoding has no bytes for some character.
    """
    if not exists(path):
        write = partial(write_file, path, content, overwrite=False)
        return with_missing_folders([path], write, cancel=cancel, journal_entry=journal_entry)
    with ExitStack() as stack:
        resolved = stack.enter_context(resolve_for_writing(path))
        locked_file = stack.enter_context(lock_names([resolved], cancel)).get(resolved)
        old_status = read_regular_status(resolved, path, locked_file)
        if old_status is None:
            raise to_problem(FileNotFoundError(2, ""), path)
        with open_locked(resolved, locked_file, path) as file:  # Windows replaces no file that is open.
            addition, notes = _encode_addition(path, content, file, old_status.st_size)
            data: bytes | Callable[[int], None] = partial(_copy_and_append, file, addition, cancel)
            if old_status.st_size <= MAX_HASHED_BYTES:
                data = _read_all(file) + addition
            write = stack.enter_context(
                prepare_write(resolved, data, old_status, path, checks_old=True, locked_file=locked_file)
            )
        apply([write], journal_entry)
        real_path = resolved.path
    verb = f"added {len(addition):,} bytes to"
    return WriteResult(real_path.display, verb, old_status.st_size + len(addition), (*notes, *write.notes))


def _encode_addition(path: WritablePath, content: str, file: BinaryIO, size: int) -> tuple[bytes, list[str]]:
    """Return the bytes to put behind those of an open file, and what is told of them."""
    file.seek(0)
    head = file.read(SAMPLE_BYTES)
    kind = kind_of(path.name, head[:HEAD_BYTES])
    if kind == "notebook" and (size > MAX_EDIT_BYTES or notebook_cells(_read_all(file)) is not None):
        raise notebook_end_error(path)
    if kind not in (None, "notebook"):
        raise other_form_error(path, kind)
    form = read_text_form(head)
    if form is None:
        raise not_text_error(path, head)
    if not head:
        check_text_for(path, content.encode("utf-8", "surrogateescape"), head)
    unit = form.encoding.unit_bytes
    file.seek(max(len(form.encoding.bom), size - _ENDING_BYTES // unit * unit - size % unit))
    ending = file.read().decode(form.encoding.name, "ignore")
    notes = _note_written_out_line_ends(content)
    if edit.has_open_line(ending, content):
        notes.append("on a new line: the last one had no end")
    addition = encode(edit.continue_text(ending, content), Decoded("", form.encoding.name, bom=False, newline=""))
    return addition, notes


def _read_all(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()


def _copy_and_append(file: BinaryIO, addition: bytes, cancel: CancelToken, fd: int) -> None:
    """Write what an open file holds to a descriptor, then the addition; the disk shares the old blocks if it can."""
    file.seek(0)
    copy_blocks(file.fileno(), fd, cancel.check)
    write_all(fd, addition)


def _already_exists_error(path: WritablePath, head: bytes) -> Conflict:
    failure = f"{quote(path.display)} exists already."
    is_written_as_text = kind_of(path.name, head[:HEAD_BYTES]) in RAW_MEMBERS
    if head and not is_written_as_text and not is_text_file(path.name, head):
        return Conflict(failure, f"It is not text, which would be lost: {_lower_first(suggest_text_file(path))}")
    return Conflict(failure, "Change it with `edit_file`, or set `overwrite` to replace all of it.")


def _lower_first(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]
