"""Copies entries, and lines of text files."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, Problem, quote
from mcp_fs.engine.changing.atomic_write import prepare_write, set_new_folder_mode
from mcp_fs.engine.changing.binary_formats import check_text_for
from mcp_fs.engine.changing.entries.entry_checks import describe_link, name_taken_error, read_status_if_exists
from mcp_fs.engine.changing.entries.entry_copy import TreePlacement, prepare_file_copy, prepare_tree_copy
from mcp_fs.engine.changing.targets import check_renamed_text, read_head, read_regular_status, resolve_for_writing
from mcp_fs.engine.handles.locks import lock_names
from mcp_fs.engine.handles.named_entries import CopySource, Packing
from mcp_fs.engine.handles.path_opening import (
    ResolvedPath,
    open_file,
    read_status,
    resolve,
    translate_errors,
)
from mcp_fs.engine.handles.temp_files import mark_in_use, remove_quietly, temporary_name
from mcp_fs.engine.journal.journal import JournalEntry
from mcp_fs.engine.journal.operations import apply
from mcp_fs.engine.packing.unzip import Archive, open_archive
from mcp_fs.engine.packing.zip_files import ZipWriter
from mcp_fs.engine.reading.line_range import open_lines
from mcp_fs.engine.text.encodings import SAMPLE_BYTES
from mcp_fs.models import MoveResult, escape_line_breaks, pluralize
from mcp_fs.policy import ReadablePath, WritablePath
from mcp_fs.policy.path_arguments import ArchivePart, LineRange

__all__ = ["copy_entry"]

_MAX_NAMED = 5


def copy_entry(
    source: CopySource,
    target: WritablePath,
    *,
    overwrite: bool,
    cancel: CancelToken,
    journal_entry: JournalEntry | None = None,
) -> MoveResult:
    """Copy a file, a folder with all that is in it, lines of a text file, or what is in an archive.

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
    if isinstance(source, ArchivePart):
        return _unpack(source, target, cancel=cancel, journal_entry=journal_entry)
    if isinstance(source, Packing):
        return _pack(source, target, overwrite=overwrite, cancel=cancel, journal_entry=journal_entry)
    link = describe_link(source)
    follows = link is not None and _is_served_file(source)
    with (
        resolve(source, follow=follows) as resolved_source,
        resolve_for_writing(target, follow=False) as resolved_target,
        lock_names([resolved_target], cancel),
    ):
        with translate_errors(source):
            status = resolved_source.folder.stat(resolved_source.name)
        # Told before anything is copied; the kernel has the last word.
        _refuse_taken(source, status, resolved_target, target, overwrite=overwrite)
        if stat.S_ISREG(status.st_mode):
            check_renamed_text(resolved_source, resolved_target, target)
            preparation = prepare_file_copy(
                resolved_source, source, resolved_target, target, overwrite=overwrite, cancel=cancel
            )
        else:
            preparation = prepare_tree_copy(resolved_source, source, resolved_target, target, status, cancel)
        with preparation as copied:
            apply([copied], journal_entry)
    notes = copied.notes
    if follows:
        notes = [f"contents of what it links to, {resolved_source.path.display}", *notes]
    elif link is not None:
        notes = [*link.describe_at(target), *notes]
    return MoveResult("copied", source.display, target.display, notes)


def _refuse_taken(
    source: ReadablePath,
    status: os.stat_result,
    resolved_target: ResolvedPath[WritablePath],
    target: WritablePath,
    *,
    overwrite: bool,
) -> None:
    """Check that a copy may get its name.

    Raises:
        Invalid: it is that of the source itself.
        Conflict: something is there, and not a file that a file may replace.
    """
    target_status = read_status_if_exists(resolved_target)
    if target_status is None:
        return
    _refuse_same(source, status, target, target_status)
    is_file = stat.S_ISREG(status.st_mode)
    may_replace = is_file and overwrite and not stat.S_ISDIR(target_status.st_mode)
    if not may_replace:
        raise name_taken_error(target, target_status, "nothing was copied", overwrite=not is_file)


def _unpack(
    source: ArchivePart, target: WritablePath, *, cancel: CancelToken, journal_entry: JournalEntry | None
) -> MoveResult:
    """Unpack what is in an archive under a temporary name, so that it appears in one step."""
    with ExitStack() as stack:
        archive = open_archive(
            stack.enter_context(open_file(source.place)), source.display, source.inner, cancel, stack
        )
        resolved_target = stack.enter_context(resolve_for_writing(target, follow=False))
        stack.enter_context(lock_names([resolved_target], cancel))
        target_status = read_status_if_exists(resolved_target)
        if target_status is not None:
            raise name_taken_error(target, target_status, "nothing was unpacked", overwrite=True)
        if archive.is_file():
            unpacked = stack.enter_context(
                prepare_write(resolved_target, archive.write_file, None, target, verb="unpacked to")
            )
            notes: list[str] = []
        else:
            unpacked, count = stack.enter_context(_prepare_unpacked_folder(archive, resolved_target, target))
            notes = ["1 file" if count == 1 else f"{count:,} files"]
        apply([unpacked], journal_entry)
    return MoveResult("unpacked", source.display, target.display, [*notes, *archive.notes()])


@contextmanager
def _prepare_unpacked_folder(
    archive: Archive, resolved_target: ResolvedPath[WritablePath], target: WritablePath
) -> Generator[tuple[TreePlacement, int]]:
    """Unpack a folder under a temporary name; yield how many files it holds beside it."""
    temporary = temporary_name()
    parent = resolved_target.folder
    with ExitStack() as stack:
        stack.callback(remove_quietly, parent, temporary)
        with translate_errors(target, "nothing was unpacked"):
            parent.make_folder(temporary, 0o700)
            with parent.open_folder(temporary) as folder:
                mark_in_use(folder.fd)
                # What may lie in the folder goes by the name that it will have.
                folder.path = resolved_target.path
                count = archive.unpack(folder)
                set_new_folder_mode(folder)
        yield TreePlacement(resolved_target, target, temporary, "nothing was unpacked", verb="unpacked to"), count


def _pack(
    source: Packing, target: WritablePath, *, overwrite: bool, cancel: CancelToken, journal_entry: JournalEntry | None
) -> MoveResult:
    """Write a new archive of files and folders; with `overwrite` in the place of an old one."""
    with (
        resolve_for_writing(target, follow=False) as resolved_target,
        lock_names([resolved_target], cancel),
    ):
        old_status = read_regular_status(resolved_target, target)
        if old_status is not None and not overwrite:
            raise name_taken_error(target, old_status, "nothing is added to an archive", overwrite=False)
        writer = ZipWriter(source, resolved_target.path, cancel)
        preparation = prepare_write(
            resolved_target, writer.write, old_status, target, verb="packed to", overwrite=overwrite
        )
        with preparation as write:
            apply([write], journal_entry)
    names = source.display
    if len(source.entries) > _MAX_NAMED:
        names = pluralize(len(source.entries), "source")
    notes = [_describe_contents(writer), *writer.notes(), *write.notes]
    return MoveResult("packed", names, target.display, notes)


def _describe_contents(writer: ZipWriter) -> str:
    """Say how many files are in a new archive, and under which names at its top."""
    files = pluralize(writer.count, "file")
    if writer.hidden_count:
        files += f" ({writer.hidden_count:,} hidden)"
    names = [escape_line_breaks(name) for name in writer.top_names()]
    if not names:
        return files
    if len(names) > _MAX_NAMED:
        names = [*names[:_MAX_NAMED], "..."]
    return f"{files}, at its top {', '.join(names)}"


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
        target_status = read_status_if_exists(resolved_target)
        if target_status is not None:
            _refuse_same(source.place, excerpt.lines.status, target, target_status)
        old_status = read_regular_status(resolved_target, target)
        if old_status is not None and not overwrite:
            raise name_taken_error(target, old_status, "nothing was copied", overwrite=False)
        text = excerpt.lines.read_at(excerpt.begin, min(SAMPLE_BYTES, excerpt.end - excerpt.begin))
        old_head = b""
        if old_status is not None:
            old_head = read_head(resolved_target)
        check_text_for(target, text, old_head)
        numbers = excerpt.describe_numbers()
        # What was to be read by few stays so.
        with prepare_write(
            resolved_target,
            excerpt.write,
            old_status,
            target,
            verb="copied to",
            overwrite=overwrite,
            template_fd=excerpt.lines.file.fileno(),
        ) as write:
            apply([write], journal_entry)
    return MoveResult("copied", source.display, target.display, [*numbers, *write.notes])


def _refuse_same(
    source: ReadablePath, source_status: os.stat_result, target: WritablePath, target_status: os.stat_result
) -> None:
    if os.path.samestat(source_status, target_status):
        kind = "folder" if stat.S_ISDIR(source_status.st_mode) else "file"
        raise Invalid(
            f"{quote(source.display)} and {quote(target.display)} are one {kind}; nothing was copied.",
            "Choose another name.",
        )
