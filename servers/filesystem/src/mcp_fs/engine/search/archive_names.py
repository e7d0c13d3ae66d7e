"""Finds names in archives: `a.zip!/**/*.csv`, or below a start that is an archive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import Problem
from mcp_fs.engine.documents.source import is_in_archive, list_members
from mcp_fs.engine.listing.selection import (
    Chooser,
    as_file_glob,
    choose_in_any_case,
    compile_chooser,
    compile_choosers,
    compile_relevance,
    exclude_chosen,
    find_nested_starts,
    is_named_by,
    names_files_with_parts,
    part_in_archive_error,
    refuse_nested_part,
)
from mcp_fs.engine.listing.walk import (
    FolderEntries,
    Skipped,
    WalkFilter,
    display_path,
    entry_display_path,
    exclude_folders,
    page_byte_limit,
    walk,
    walk_order,
)
from mcp_fs.models import FilePage, format_size
from mcp_fs.policy import ReadablePath

__all__ = ["MemberQuery", "find_members", "split_member_glob"]


@dataclass(frozen=True, slots=True)
class MemberQuery:
    """Which files of which archives are meant.

    Attributes:
        archive_glob: of the archives below a start; None where the start is one, or lies in one.
        member_glob: of the files in them.
        by_size: whether the largest come first, with their bytes.
    """

    archive_glob: str | None
    member_glob: str
    ignore_case: bool
    by_size: bool
    walk_filter: WalkFilter


class _Member(NamedTuple):
    """A file in an archive.

    Attributes:
        path: as answers show it.
    """

    path: str
    size: int


def split_member_glob(starts: Sequence[ReadablePath], glob: str) -> tuple[str | None, str] | None:
    """Return the glob of archives and that of the files in them; None where no archive is meant.

    Raises:
        Invalid: an archive in another is meant, not the start itself.
    """
    starts_in_archive = len(starts) == 1 and is_in_archive(starts[0])
    archive_glob, mark, member_glob = glob.partition("!/")
    if mark and names_files_with_parts(archive_glob) and not glob.startswith("!"):
        refuse_nested_part(member_glob)
        member_glob = member_glob or "*"
        if not starts_in_archive:
            return archive_glob, member_glob
        if not is_named_by(starts[0], archive_glob):
            raise part_in_archive_error()
        return None, member_glob
    if starts_in_archive:
        return None, glob
    return None


def find_members(
    starts: Sequence[ReadablePath], query: MemberQuery, limit: int, cursor: str | None, cancel: CancelToken
) -> FilePage:
    """Return a page of the files in archives that a query means.

    Raises:
        Invalid: a glob or the cursor can't be read.
        Problem: a start can't be opened.
    """
    scope = [[start.uri for start in starts], str(query)]
    begin = 0
    if cursor is not None:
        begin = Cursor.decode("members", cursor, scope)
    skipped = Skipped.with_deadline()
    chooses = _compile_member_chooser(query)
    members: list[_Member] = []
    for archive in _find_archives(starts, query, skipped, cancel):
        cancel.check()
        if skipped.is_late():
            skipped.add(skipped.late_reason(), display_path(archive))
            continue
        members += _choose_members(archive, chooses, query, skipped, cancel)
    if query.by_size:
        members.sort(key=lambda member: -member.size)
    notes = [*skipped.notes(), *skipped.describe_excluded(named=not members), *skipped.describe_links()]
    if not members:
        notes.append("behind `!/` a glob is a name in an archive, in its case, or a path from its top")
    page = _fill_page(members[begin : begin + limit], limit)
    end = begin + len(page)
    next_cursor = None
    if end < len(members):
        next_cursor = Cursor.encode("members", end, scope)
    measures: list[str] = []
    if query.by_size:
        measures = [format_size(member.size) for member in page]
    return FilePage([member.path for member in page], len(members), notes, next_cursor, measures)


def _compile_member_chooser(query: MemberQuery) -> Chooser:
    glob = query.member_glob
    if query.ignore_case:
        glob = glob.lower()
    chooses = compile_chooser([as_file_glob(glob)])
    if query.archive_glob is None and glob.startswith("!"):
        chooses = exclude_chosen(compile_chooser([glob.removeprefix("!")]), folders=glob.endswith("/"))
    if query.ignore_case:
        return choose_in_any_case(chooses)
    return chooses


def _find_archives(
    starts: Sequence[ReadablePath], query: MemberQuery, skipped: Skipped, cancel: CancelToken
) -> Iterator[ReadablePath]:
    """Yield the archives that are meant, in the order of a walk."""
    if query.archive_glob is None:
        yield from starts
        return
    archive_glob = query.archive_glob
    if query.ignore_case:
        archive_glob = archive_glob.lower()
    for start, chooses in zip(starts, compile_choosers(starts, archive_glob), strict=True):
        skipped.is_relevant = compile_relevance(starts, start, archive_glob, chooses)
        if query.ignore_case:
            chooses = choose_in_any_case(chooses)
            skipped.is_relevant = choose_in_any_case(skipped.is_relevant)
        nested_starts = find_nested_starts(starts, start)
        for entries in walk(start, query.walk_filter, cancel, skipped):
            exclude_folders(entries, nested_starts)
            yield from _choose_archives(entries, chooses, skipped)


def _choose_archives(entries: FolderEntries, chooses: Chooser, skipped: Skipped) -> Iterator[ReadablePath]:
    """Yield the archives of one folder that are meant."""
    folder = entries.folder.path
    prefix = "".join(part + "/" for part in entries.parts)
    for name in entries.files:
        if name in entries.links or name in entries.special_files or not chooses(prefix + name):
            continue
        if name in entries.not_downloaded:
            skipped.add("not downloaded yet, so not listed", entry_display_path(folder, name))
            continue
        try:
            yield folder / name
        except Problem:
            skipped.add("protected", entry_display_path(folder, name))


def _choose_members(
    archive: ReadablePath, chooses: Chooser, query: MemberQuery, skipped: Skipped, cancel: CancelToken
) -> list[_Member]:
    """Return the files of an archive, or of a folder in one, that are meant."""
    try:
        listing = list_members(archive, cancel)
    except Problem:
        if query.archive_glob is None:
            raise
        skipped.add("could not be listed", display_path(archive))
        return []
    if listing is None:
        skipped.add("no archive", display_path(archive))
        return []
    if not listing.is_complete:
        skipped.add("has more files than are listed", display_path(archive))
    inner = archive.parts[len(listing.archive.parts) :]
    prefix = "".join(part + "/" for part in inner)
    members: list[_Member] = []
    for name in sorted(listing.sizes, key=lambda name: walk_order(tuple(name.split("/")))):
        if chooses(name.removeprefix(prefix)):
            members.append(_Member(entry_display_path(listing.archive, name), listing.sizes[name]))
    return members


def _fill_page(members: Sequence[_Member], limit: int) -> list[_Member]:
    """Return the first members that fit on a page; one at least."""
    page: list[_Member] = []
    remaining_bytes = page_byte_limit(limit)
    for member in members:
        remaining_bytes -= len(member.path.encode("utf-8", "replace")) + 1
        if page and remaining_bytes < 0:
            break
        page.append(member)
    return page
