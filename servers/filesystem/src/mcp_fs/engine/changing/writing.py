"""Creates and replaces text files."""

from __future__ import annotations

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, Invalid, quote
from mcp_fs.engine.changing.atomic_write import prepare_write, read_head, read_regular_status, resolve_for_writing
from mcp_fs.engine.changing.binary_formats import check_text_for, is_text_file, suggest_text_file
from mcp_fs.engine.document_kinds import HEAD_BYTES, kind_of
from mcp_fs.engine.handles.locks import lock_names
from mcp_fs.engine.journal.journal import JournalEntry
from mcp_fs.models import WriteResult
from mcp_fs.policy import WritablePath

__all__ = ["write_file"]


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


def _already_exists_error(path: WritablePath, head: bytes) -> Conflict:
    failure = f"{quote(path.display)} exists already."
    is_written_as_text = kind_of(path.name, head[:HEAD_BYTES]) in ("mail", "notebook")
    if head and not is_written_as_text and not is_text_file(path.name, head):
        return Conflict(failure, f"It is not text, which would be lost: {_lower_first(suggest_text_file(path))}")
    return Conflict(failure, "Change it with `edit_file`, or set `overwrite` to replace all of it.")


def _lower_first(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]
