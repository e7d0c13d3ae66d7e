"""Copies entries, and lines of text files."""

from __future__ import annotations

import os
import stat

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, Problem, quote
from mcp_fs.engine.changing.atomic_write import (
    check_renamed_text,
    fsync_folder,
    prepare_write,
    read_head,
    read_regular_status,
    resolve_for_writing,
)
from mcp_fs.engine.changing.binary_formats import check_text_for
from mcp_fs.engine.changing.entry_copy import (
    copy_file,
    copy_link_or_folder,
    describe_link,
    name_taken_error,
    read_status_if_exists,
)
from mcp_fs.engine.handles.locks import lock_names
from mcp_fs.engine.handles.path_opening import (
    exists,
    read_status,
    resolve,
    translate_errors,
)
from mcp_fs.engine.journal.journal import ExpectedState, JournalEntry
from mcp_fs.engine.reading.line_range import open_lines
from mcp_fs.engine.text.encodings import SAMPLE_BYTES
from mcp_fs.models import MoveResult
from mcp_fs.policy import ReadablePath, WritablePath
from mcp_fs.policy.path_arguments import FileName, LineRange

__all__ = ["copy_entry", "find_source"]


def find_source(name: FileName) -> ReadablePath | LineRange:
    """Return what a name is of: the entry that has it if there is one, else lines if it names some.

    Raises:
        Problem: it can be neither.
    """
    if isinstance(name.entry, ReadablePath) and (name.lines is None or exists(name.entry, follow=False)):
        return name.entry
    if isinstance(name.lines, LineRange):
        return name.lines
    refusal = name.lines or name.entry
    assert isinstance(refusal, Problem)
    raise refusal


def copy_entry(
    source: ReadablePath | LineRange,
    target: WritablePath,
    *,
    overwrite: bool,
    cancel: CancelToken,
    journal_entry: JournalEntry | None = None,
) -> MoveResult:
    """Copy a file, a folder with all that is in it, or lines of a text file.

    A folder appears whole or not at all. Protected secrets in it are left out, and the answer says so. Of a link to a
    served file the file is copied, as by cp(1); any other link is copied as a link, and the answer says where it leads.

    Args:
        overwrite: whether a file may be replaced; a folder never is.

    Raises:
        Conflict: the target exists.
        TooLarge: the folder has more than 100,000 entries.
    """
    if isinstance(source, LineRange):
        return _copy_lines(source, target, overwrite=overwrite, cancel=cancel, journal_entry=journal_entry)
    link = describe_link(source)
    follows = link is not None and _is_served_file(source)
    with (
        resolve(source, follow=follows) as resolved_source,
        resolve_for_writing(target, follow=False) as resolved_target,
        lock_names([resolved_target], cancel),
    ):
        with translate_errors(source):
            status = resolved_source.folder.stat(resolved_source.name)
        is_file = stat.S_ISREG(status.st_mode)
        # Told before anything is copied; the kernel has the last word.
        if (target_status := read_status_if_exists(resolved_target)) is not None:
            _refuse_same(source, status, target, target_status)
            if not (is_file and overwrite) or stat.S_ISDIR(target_status.st_mode):
                raise name_taken_error(target, target_status, "nothing was copied", overwrite=not is_file)
        if is_file:
            check_renamed_text(resolved_source, resolved_target, target)
            notes = copy_file(
                resolved_source,
                source,
                resolved_target,
                target,
                overwrite,
                cancel,
                ExpectedState(resolved_target, journal_entry).expect,
            )
        else:
            skipped = copy_link_or_folder(
                resolved_source,
                source,
                resolved_target,
                target,
                status,
                cancel,
                ExpectedState(resolved_target, journal_entry).expect,
            )
            remainder = f" and {len(skipped) - 10} more" if len(skipped) > 10 else ""
            notes = [f"without {', '.join(skipped[:10])}{remainder}"] if skipped else []
        fsync_folder(resolved_target.folder, target, "copied to")
    if follows:
        notes = [f"contents of what it links to, {resolved_source.path.display}", *notes]
    elif link is not None:
        notes = [*link.describe_at(target), *notes]
    return MoveResult("copied", source.display, target.display, notes)


def _is_served_file(path: ReadablePath) -> bool:
    try:
        return stat.S_ISREG(read_status(path).st_mode)
    except Problem:
        return False


def _copy_lines(
    source: LineRange, target: WritablePath, *, overwrite: bool, cancel: CancelToken, journal_entry: JournalEntry | None
) -> MoveResult:
    with (
        open_lines(source, cancel) as excerpt,
        resolve_for_writing(target, follow=False) as resolved_target,
        lock_names([resolved_target], cancel),
    ):
        if (target_status := read_status_if_exists(resolved_target)) is not None:
            _refuse_same(source.place, excerpt.lines.status, target, target_status)
        old_status = read_regular_status(resolved_target, target)
        if old_status is not None and not overwrite:
            raise name_taken_error(target, old_status, "nothing was copied", overwrite=False)
        text = excerpt.lines.read_at(excerpt.begin, min(SAMPLE_BYTES, excerpt.end - excerpt.begin))
        check_text_for(target, text, b"" if old_status is None else read_head(resolved_target))
        numbers = excerpt.describe_numbers()
        # What was to be read by few stays so.
        with prepare_write(
            resolved_target, excerpt.write, old_status, target, template_fd=excerpt.lines.file.fileno()
        ) as write:
            ExpectedState(resolved_target, journal_entry).expect(resolved_target.folder, write.temporary)
            write.rename_into_place(replace=overwrite)
        fsync_folder(resolved_target.folder, target, "copied to")
    return MoveResult("copied", source.display, target.display, [*numbers, *write.notes])


def _refuse_same(
    source: ReadablePath, source_status: os.stat_result, target: WritablePath, target_status: os.stat_result
) -> None:
    if os.path.samestat(source_status, target_status):
        both = f"{quote(source.display)} and {quote(target.display)}"
        kind = "folder" if stat.S_ISDIR(source_status.st_mode) else "file"
        raise Invalid(f"{both} are one {kind}; nothing was copied.", "Choose another name.")
