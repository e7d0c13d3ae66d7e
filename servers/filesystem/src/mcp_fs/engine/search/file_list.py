"""Chooses the files to search, in one order.

The walk brings the first files itself: common words fill a page there, within milliseconds. When they did not,
ripgrep, if there is one, says which of the remaining files are worth opening.
"""

from __future__ import annotations

import re
import stat
import unicodedata
from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, Problem, quote
from mcp_fs.engine.document_kinds import SUFFIXES
from mcp_fs.engine.documents.source import is_in_archive, read_members
from mcp_fs.engine.handles.path_opening import Folder, open_folder, read_status
from mcp_fs.engine.listing.selection import (
    Chooser,
    as_file_glob,
    as_name_globs,
    compile_chooser,
    compile_choosers,
    exclude_chosen,
    find_nested_starts,
    is_named_by,
    part_in_archive_error,
)
from mcp_fs.engine.listing.walk import (
    NOT_DOWNLOADED,
    FolderEntries,
    Skipped,
    Visibility,
    display_path,
    entry_display_path,
    exclude_folders,
    walk,
    walk_order,
)
from mcp_fs.engine.patterns.prefilter import byte_pattern, wide_pattern
from mcp_fs.engine.patterns.unicode_classes import expand_compositions
from mcp_fs.engine.search import ripgrep
from mcp_fs.engine.search.file_types import globs_of_type
from mcp_fs.engine.search.query import Query
from mcp_fs.engine.search.sources import SearchedFile, describe_failure
from mcp_fs.policy import ReadablePath

__all__ = ["FileList", "Position"]

_FILES_BEFORE_RIPGREP = 400
# Between the name of an archive and that of a file in it, where these are one name of a position: no name holds it.
_MEMBER_MARK = "\0"


@dataclass(frozen=True, slots=True)
class Position:
    """A file among the candidates.

    Attributes:
        number: of the start.
        parts: of the file, below the start.
        unfinished: whether part of it is left to search.
    """

    number: int
    parts: tuple[str, ...]
    unfinished: bool


class FileList:
    """The files at or below `starts` that `query` may match in.

    Args:
        skipped: learns what can't be searched.
        program: ripgrep, to be faster in large folders.

    Attributes:
        byte_pattern: what fits all that `query` fits, and perhaps more, in bytes; None if there is none.
    """

    def __init__(
        self, starts: Sequence[ReadablePath], query: Query, cancel: CancelToken, skipped: Skipped, program: str | None
    ) -> None:
        self._starts = starts
        self._query = query
        self._cancel = cancel
        self._skipped = skipped
        self._program = program
        pattern = query.pattern
        is_literal = query.literal
        if not pattern.isascii():
            if is_literal:
                pattern = re.escape(pattern)
            pattern = expand_compositions(pattern)
            is_literal = False
        self.byte_pattern: str | None = None
        if not query.is_multiline:
            self.byte_pattern = byte_pattern(pattern, literal=is_literal, ignore_case=query.ignore_case)
        # What is plain at its beginning is so in both forms.
        composed = unicodedata.normalize("NFC", query.pattern)
        self._wide_pattern = wide_pattern(composed, literal=query.literal, ignore_case=query.ignore_case)
        self._type_globs: list[str] = []
        if query.file_type:
            self._type_globs = globs_of_type(query.file_type)
        self._part = _parse_part(starts[0], query.part)
        self._chooses_member: Chooser | None = None
        if query.member_glob:
            self._chooses_member = compile_chooser([as_file_glob(query.member_glob)])
        self._glob_choosers = self._compile_glob_choosers()
        self._choosers: list[Chooser] = []
        self._used_ripgrep = False

    def iterate(self, begin: Position | None) -> Iterator[tuple[int, SearchedFile]]:
        """Yield the files to search, in order, behind `begin`; that one too when part of it is left."""
        for number, start in enumerate(self._starts):
            self._choosers = list(self._glob_choosers[number])
            if self._type_globs:
                self._choosers.append(compile_chooser(self._type_globs))
            if begin is None or number > begin.number:
                files = self._find_below(start, None)
            elif number == begin.number:
                files = self._resume_below(start, begin)
            else:
                continue
            for file in files:
                yield number, file

    def _resume_below(self, start: ReadablePath, begin: Position) -> Iterator[SearchedFile]:
        """Yield the files below one start, behind `begin`; that one too when part of it is left."""
        if not begin.unfinished:
            yield from self._find_below(start, begin.parts)
        elif is_in_archive(start):
            yield from self._find_in_archive(start, begin.parts, again=True)
        elif _names_member(begin.parts):
            yield from self._find_below(start, begin.parts, again=True)
        else:
            yield self._file_below(start, begin.parts)
            yield from self._find_below(start, begin.parts)

    def count_excluded(self) -> None:
        """Learn what was left out where ripgrep did the walking."""
        if not self._used_ripgrep:
            return
        self._skipped.forget_excluded()
        for start in self._starts:
            if stat.S_ISDIR(read_status(start).st_mode):
                for _ in walk(start, self._query.walk_filter, self._cancel, self._skipped):
                    pass

    def _find_below(
        self, start: ReadablePath, after: tuple[str, ...] | None, *, again: bool = False
    ) -> Iterator[SearchedFile]:
        """Yield the files at or below `start`, in order, behind `after`; or from there on, if that is in an archive."""
        if is_in_archive(start):
            yield from self._find_in_archive(start, after)
            return
        if stat.S_ISREG(read_status(start).st_mode):
            if after is None and self._may_search_whole(start):
                yield self._file_below(start, ())
            return
        if after is not None and _names_member(after):
            name, _, member = after[-1].partition(_MEMBER_MARK)
            after = (*after[:-1], name)
            archive = start.at(start.root, (*start.parts, *after))
            yield from self._find_members(archive, after, tuple(member.split("/")), again=again)
        for number, file in enumerate(self._walk_files(start, after)):
            if number == _FILES_BEFORE_RIPGREP and self._program is not None:
                likely_files = self._find_with_ripgrep(start, file.parts)
                if likely_files is not None:
                    yield from likely_files
                    return
            yield file

    def _walk_files(self, start: ReadablePath, after: tuple[str, ...] | None) -> Iterator[SearchedFile]:
        nested_starts = find_nested_starts(self._starts, start)
        for entries in walk(start, self._query.walk_filter, self._cancel, self._skipped, after):
            exclude_folders(entries, nested_starts)
            yield from self._find_in_folder(entries)

    def _find_in_archive(
        self, start: ReadablePath, after: tuple[str, ...] | None, *, again: bool = False
    ) -> Iterator[SearchedFile]:
        """Yield the files in an archive, in order; behind `after`, or from there on."""
        is_chosen = self._is_chosen
        if self._part or self._chooses_member is not None:
            if self._chooses_member is None or not is_named_by(start, self._query.file_glob):
                raise part_in_archive_error()
            is_chosen = self._chooses_member
        members, cut = read_members(start, self._cancel)
        if cut:
            self._skipped.add(f"searched in part, {cut}", display_path(start))
        members_by_parts = {
            member.place.parts[len(start.parts) :] or (member.place.name,): member for member in members
        }
        for parts in sorted(members_by_parts, key=walk_order):
            if _is_reached(parts, after, again=again) and is_chosen("/".join(parts)):
                member = members_by_parts[parts]
                yield SearchedFile(parts, member.place, data=member.data)

    def _may_search_whole(self, path: ReadablePath) -> bool:
        """Return whether a file is searched that is no archive: its parts can be named by `*` alone."""
        if self._query.member_glob.strip("*/"):
            self._skipped.add("no archive, so without files for `*`", display_path(path))
            return False
        return True

    def _find_members(
        self,
        archive: ReadablePath,
        archive_parts: tuple[str, ...],
        after: tuple[str, ...] | None = None,
        *,
        again: bool = False,
    ) -> Iterator[SearchedFile]:
        """Yield the files of an archive that `glob` names behind `!/`, in order; behind `after`, or from there on."""
        assert self._chooses_member is not None
        try:
            members, cut = read_members(archive, self._cancel)
        except Problem as problem:
            self._skipped.add(describe_failure(problem), display_path(archive))
            return
        if cut:
            self._skipped.add(f"searched in part, {cut}", display_path(archive))
        members_by_names = {member.place.parts[len(archive.parts) :]: member for member in members}
        compressed_file = members_by_names.pop((), None)
        if compressed_file is not None and self._may_search_whole(archive):
            yield SearchedFile(archive_parts, archive, data=compressed_file.data)
        for names in sorted(members_by_names, key=walk_order):
            path = "/".join(names)
            if _is_reached(names, after, again=again) and self._chooses_member(path):
                member = members_by_names[names]
                parts = (*archive_parts[:-1], f"{archive_parts[-1]}{_MEMBER_MARK}{path}")
                yield SearchedFile(parts, member.place, data=member.data)

    def _find_in_folder(self, entries: FolderEntries) -> Iterator[SearchedFile]:
        prefix = "".join(part + "/" for part in entries.parts)
        path = entries.folder.path
        for name in entries.files:
            if name in entries.links or name in entries.special_files or not self._is_chosen(prefix + name):
                continue
            if path.policy.is_protected((*path.parts, name)):
                self._skipped.add("protected", entry_display_path(path, name))
                continue
            if name in entries.not_downloaded:
                self._skipped.add(NOT_DOWNLOADED, entry_display_path(path, name))
                continue
            if self._chooses_member is not None:
                if is_in_archive(path / name):
                    yield from self._find_members(path / name, (*entries.parts, name))
                    continue
                if not self._may_search_whole(path / name):
                    continue
            yield SearchedFile((*entries.parts, name), path, name, entries.folder, part=self._part)

    def _file_below(self, start: ReadablePath, parts: tuple[str, ...]) -> SearchedFile:
        """Return the file at `start`, or at its names below it."""
        if not parts:
            return SearchedFile((), start, part=self._part)
        folder = start.at(start.root, (*start.parts, *parts[:-1]))
        return SearchedFile(parts, folder, parts[-1], part=self._part)

    def _is_chosen(self, path: str) -> bool:
        return not self._choosers or all(choose(path) for choose in self._choosers)

    def _find_with_ripgrep(self, start: ReadablePath, begin: tuple[str, ...]) -> Iterator[SearchedFile] | None:
        """Return the files from `begin` on that ripgrep takes for matching; None when it can't tell."""
        with open_folder(start) as folder:
            top = folder.path
            visibility = Visibility(top, self._query.walk_filter)
            if visibility.may_bring_back:
                return None
            listing = self._list_with_ripgrep(folder)
        if listing is None:
            return None
        self._used_ripgrep = True
        paths, unreadable_paths = listing
        for path in unreadable_paths:
            self._skipped.add("permission denied", entry_display_path(top, path))
        nested_starts = find_nested_starts(self._starts, start)
        remaining_paths: list[tuple[str, ...]] = []
        for parts in paths:
            if walk_order(parts) >= walk_order(begin) and not _is_below(parts, nested_starts):
                remaining_paths.append(parts)
        return self._keep_visible(top, sorted(remaining_paths, key=walk_order), visibility)

    def _list_with_ripgrep(self, folder: Folder[ReadablePath]) -> tuple[list[tuple[str, ...]], list[str]] | None:
        """Return the files that ripgrep takes for matching and the paths it can't read; None when it can't tell."""
        query = self._query
        if self.byte_pattern is None or self._program is None or query.part or query.member_glob:
            return None
        hint = ripgrep.RipgrepQuery(
            self.byte_pattern, self._wide_pattern, query.ignore_case, query.walk_filter, self._name_globs
        )
        listing = ripgrep.list_matching_files(self._program, folder.fd, hint, self._cancel)
        # What is in documents ripgrep can't tell.
        document_hint = hint.for_suffixes(SUFFIXES)
        if listing is None or document_hint is None:
            return listing
        documents = ripgrep.list_matching_files(self._program, folder.fd, document_hint, self._cancel)
        if documents is None:
            return None
        return [*{*listing[0], *documents[0]}], listing[1]

    def _keep_visible(
        self, top: ReadablePath, matching_files: list[tuple[str, ...]], visibility: Visibility
    ) -> Iterator[SearchedFile]:
        for parts in matching_files:
            if self._is_chosen("/".join(parts)):
                with suppress(Problem):  # removed or protected since
                    if visibility.is_visible(parts):
                        yield SearchedFile(parts, top.at(top.root, (*top.parts, *parts[:-1])), parts[-1])

    @property
    def _name_globs(self) -> list[str]:
        """Globs of the names of all files that are searched; none when they may have any."""
        if self._type_globs:
            return self._type_globs
        glob = self._query.file_glob
        if not glob or glob.startswith("!"):
            return []
        return as_name_globs(glob)

    def _compile_glob_choosers(self) -> list[list[Chooser]]:
        """For each start, what a path must fit."""
        file_glob = self._query.file_glob
        if file_glob is None:
            return [[] for _ in self._starts]
        glob = file_glob.removeprefix("!")
        if glob == file_glob:
            return [[choose] for choose in compile_choosers(self._starts, as_file_glob(glob))]
        return [[exclude_chosen(choose, folders=glob.endswith("/"))] for choose in compile_choosers(self._starts, glob)]


def _parse_part(start: ReadablePath, part: str) -> tuple[str, ...]:
    """Return the names of a part of each file, which the policy reads as in any path.

    Raises:
        Invalid: it leads elsewhere, or stands for several.
        Problem: it is no path, or protected.
    """
    if not part.strip("/"):
        return ()
    file = start.at(start.root, (*start.parts, "x.zip!"))
    path = start.policy.readable(f"{display_path(file)}/{part}")
    names = path.parts[len(file.parts) :]
    if path.root != start.root or path.parts[: len(file.parts)] != file.parts or not names:
        raise Invalid(
            f"Behind `!/` a glob names one part of each file, not {quote(part)}.",
            "Name a sheet, pages or a file in an archive; search all of one archive by its own `path`, as `a.zip!`.",
        )
    return names


def _names_member(parts: tuple[str, ...]) -> bool:
    """Return whether a position is that of a file in an archive that a walk came by."""
    return bool(parts) and _MEMBER_MARK in parts[-1]


def _is_reached(parts: tuple[str, ...], after: tuple[str, ...] | None, *, again: bool) -> bool:
    """Return whether a file comes behind `after`, or is that one where it is searched again."""
    if after is None or (again and parts == after):
        return True
    return walk_order(parts) > walk_order(after)


def _is_below(parts: tuple[str, ...], folders: Set[tuple[str, ...]]) -> bool:
    return any(parts[: len(folder)] == folder for folder in folders)
