"""Finds names that match a glob, in everything that a walk sees."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import Invalid
from mcp_batteries.progress import report_progress
from mcp_fs.engine.listing.folder_page import format_time
from mcp_fs.engine.listing.selection import (
    Chooser,
    choose_in_any_case,
    compile_choosers,
    compile_choosers_or_exclusion,
    compile_relevance,
    find_nested_starts,
    name_ending,
    refuse_excluded_part,
)
from mcp_fs.engine.listing.walk import (
    FolderEntries,
    Skipped,
    WalkFilter,
    entry_display_path,
    exclude_folders,
    page_byte_limit,
    walk,
    walk_order,
)
from mcp_fs.engine.search.archive_names import MemberQuery, find_members, split_member_glob
from mcp_fs.engine.search.duplicates import find_duplicates
from mcp_fs.engine.search.photo_dates import clock_seconds, format_photo_date, read_photo_date
from mcp_fs.engine.search.time_range import TimeRange
from mcp_fs.models import FilePage, format_size
from mcp_fs.policy import ReadablePath

__all__ = ["FindSort", "find_files"]

# In the order of a walk; the newest, the largest or the photo taken last first; only files whose contents others have
# too.
FindSort = Literal["path", "modified", "size", "taken", "duplicates"]
# `{a/,b/}`, which names folders as `{a,b}/` does.
_FOLDER_BRACES = re.compile(r"(?<!\\)\{((?:[^{},/]+/,)*[^{},/]+)/\}\Z")
_SortKey = tuple[int, int, tuple[tuple[bool, str], ...]]


class _Position(NamedTuple):
    """Where a path stands among all that are found.

    Attributes:
        start: number of the start that the path lies below.
        parts: names below the start.
        measure: time of change in nanoseconds, bytes, or when a photo was taken in microseconds; 0 where paths are
            sorted by name.
    """

    start: int
    parts: list[str]
    measure: int

    @property
    def sort_key(self) -> _SortKey:
        return (-self.measure, self.start, walk_order(tuple(self.parts)))


class _FoundPath(NamedTuple):
    """A path that matches, with what it is sorted by first.

    Attributes:
        display: the path as answers show it.
    """

    sort_key: _SortKey
    position: _Position
    display: str


def find_files(
    starts: Sequence[ReadablePath],
    glob: str,
    cancel: CancelToken,
    *,
    sort: FindSort = "path",
    ignore_case: bool = False,
    walk_filter: WalkFilter | None = None,
    changed: TimeRange | None = None,
    limit: int = 200,
    cursor: str | None = None,
) -> FilePage:
    """Return a page of the files below `starts` whose path matches `glob`; of the folders when it ends in a slash.

    A page has `limit` paths, or fewer when they are long. Every call finds all of them, so that their number is known;
    only those of one page are kept.

    Args:
        glob: without a slash in it a name at any depth, else a path below the start; behind `!` what is left out.
        sort: the order of `walk`, or the newest, the largest or the photo taken last first.
        ignore_case: whether names may be spelled in another case.
        changed: when they were changed last, or of photos sorted by it when they were taken; None for any time.

    Raises:
        Invalid: the glob or the cursor can't be read; folders are to be sorted by a size that only their files have.
        Problem: a start can't be opened.
    """
    glob = _FOLDER_BRACES.sub(_with_slash_behind_braces, glob)
    query = _FindQuery(glob, sort, ignore_case, walk_filter or WalkFilter(), changed)
    query.validate()
    member_globs = split_member_glob(starts, glob)
    if member_globs is not None:
        return find_members(starts, query.in_archives(*member_globs), limit, cursor, cancel)
    if sort == "duplicates":
        return find_duplicates(starts, glob, query.walk_filter, limit, cursor, cancel)
    return _find_page(starts, query, limit, cursor, cancel)


@dataclass(frozen=True, slots=True)
class _FindQuery:
    """What is searched for.

    Attributes:
        changed: when it was changed last, or taken; None for any time.
    """

    glob: str
    sort: FindSort
    ignore_case: bool
    walk_filter: WalkFilter
    changed: TimeRange | None

    @property
    def finds_folders(self) -> bool:
        return self.glob.endswith("/") and not self.glob.startswith("!")

    def validate(self) -> None:
        """Check that its parts go together.

        Raises:
            Invalid: they don't.
        """
        refuse_excluded_part(self.glob)
        match self.sort:
            case "taken" if self.finds_folders:
                raise Invalid("Folders are not taken by a camera.", "Name files, such as `*.jpg`.")
            case "size" if self.finds_folders:
                raise Invalid(
                    "Folders are not found by size.",
                    "`list_directory` with `folder_sizes` and `sort=size` sums up a folder's.",
                )
            case "duplicates" if self.changed is not None:
                raise Invalid("Duplicates are found whenever they changed.", "Leave out `since` and `until`.")
            case "duplicates" if self.ignore_case:
                raise Invalid(
                    "Duplicates are found in the case of `glob`.", "Leave out `ignore_case`, or write `*.[jJ][pP][gG]`."
                )
            case _:
                pass

    def in_archives(self, archive_glob: str | None, member_glob: str) -> MemberQuery:
        """Return the same query of names in archives.

        Raises:
            Invalid: it asks for what archives are not searched for.
        """
        if self.changed is not None or self.sort not in ("path", "size"):
            raise Invalid(
                "What is in archives is found by its name alone.",
                "Leave out `since` and `until`; `sort` is `path` or `size`.",
            )
        return MemberQuery(archive_glob, member_glob, self.ignore_case, self.sort == "size", self.walk_filter)

    def scope(self, starts: Sequence[ReadablePath]) -> list[object]:
        """Return what a cursor of this query is good for."""
        uris = [start.uri for start in starts]
        return [uris, self.glob, self.sort, str(self.ignore_case), str(self.walk_filter), str(self.changed)]


def _find_page(
    starts: Sequence[ReadablePath], query: _FindQuery, limit: int, cursor: str | None, cancel: CancelToken
) -> FilePage:
    """Return a page of the paths below `starts` that the query means, in another case if there are none in its own."""
    scope = query.scope(starts)
    after = None
    if cursor is not None:
        after = _Position(*Cursor.decode("find", cursor, scope)).sort_key
    if query.ignore_case:
        finder: _Finder = _CaseBlindFinder(starts, query, cancel, after)
    else:
        finder = _Finder(starts, query, cancel, after)
    paths = finder.find_first(limit + 1)
    if not finder.total and not query.ignore_case and _has_case(query.glob):
        blind_finder = _OtherCaseFinder(starts, query, cancel, after)
        blind_paths = blind_finder.find_first(limit + 1)
        if blind_finder.total:
            finder = blind_finder
            paths = blind_paths
    page = _fill_page(paths, query, limit)
    next_cursor = None
    if len(paths) > len(page.paths):
        next_cursor = Cursor.encode("find", paths[len(page.paths) - 1].position, scope)
    return FilePage(tuple(page.paths), finder.total, finder.notes(), next_cursor, tuple(page.measures))


def _has_case(glob: str) -> bool:
    """Return whether a glob means names that could be spelled in another case."""
    return not glob.startswith("!") and any(map(str.isalpha, glob))


def _with_slash_behind_braces(match: re.Match[str]) -> str:
    return f"{{{match[1].replace('/,', ',')}}}/"


@dataclass(slots=True)
class _OtherCase:
    """Paths that a glob means but for the case of letters."""

    count: int = 0
    example: str = ""

    def add(self, path: str) -> None:
        self.count += 1
        self.example = self.example or path


class _Finder:
    """One search for names.

    Attributes:
        skipped: what the walk could not look into.
        total: how many paths match, on all pages.
        undated: how many of them do not say when they were taken, where they are sorted by it.
        other_case: paths that would match in another case, with the first of them.
    """

    def __init__(
        self,
        starts: Sequence[ReadablePath],
        query: _FindQuery,
        cancel: CancelToken,
        after: _SortKey | None,
    ) -> None:
        glob = query.glob
        self.skipped = Skipped.with_deadline()
        self.skipped.tells_links = True
        self.total = 0
        self.undated = 0
        self.other_case = _OtherCase()
        self._starts = starts
        self._glob = glob
        self._sort: FindSort = query.sort
        self._walk_filter = query.walk_filter
        self._cancel = cancel
        self._after = after
        self._changed = query.changed
        self._choosers = compile_choosers_or_exclusion(starts, glob)
        self._finds_folders = query.finds_folders
        self._name_ending = ""
        if not glob.startswith("!"):
            self._name_ending = name_ending(glob)
        self._blind_choosers: list[Chooser] = []
        if _has_case(glob):
            self._blind_choosers = compile_choosers(starts, glob.lower())

    def notes(self) -> list[str]:
        """Say what was left out; when nothing was found also what a glob is."""
        notes = [
            *self.skipped.notes(),
            *self.skipped.describe_excluded(named=not self.total),
            *self.skipped.describe_links(),
        ]
        if self.total and self.other_case.count:
            notes.append(f"{self.other_case.count:,} more only in another case, such as {self.other_case.example}")
        if self.undated:
            notes.append(f"{self.undated:,} do not say when they were taken and come last")
        if not self.total and self._after is None:
            notes.append(
                "a glob is a whole name, or a path below `path`, in its case: `*part*` fits a part, `name/` a folder"
            )
        return notes

    def find_first(self, count: int) -> list[_FoundPath]:
        """Return the first `count` paths behind the cursor, and count all."""
        if self._sort != "path":
            return heapq.nsmallest(count, self._find_measured())
        # A walk comes by the paths in the order of their keys.
        first: list[_FoundPath] = []
        for start, entries, name in self._match_names():
            if len(first) < count:
                path = _found_path(start, entries, name, 0)
                if self._after is None or path.sort_key > self._after:
                    first.append(path)
        return first

    def _find_measured(self) -> Iterator[_FoundPath]:
        for start, entries, name in self._match_names():
            measure = self._read_measure(entries, name)
            if self._sort == "taken" and not measure:
                self.undated += 1
            path = _found_path(start, entries, name, measure)
            if self._after is None or path.sort_key > self._after:
                yield path

    def _match_names(self) -> Iterator[tuple[int, FolderEntries, str]]:
        """Walk all starts, and give the number of the start, the folder and the name of each path that matches."""
        for number, start in enumerate(self._starts):
            chooses = self._choosers[number]
            if not self._glob.startswith("!"):
                self.skipped.is_relevant = self._compile_relevance(start, chooses)
            nested_starts = find_nested_starts(self._starts, start)
            for entries in walk(start, self._walk_filter, self._cancel, self.skipped):
                report_progress(self.total, None, f"{self.total:,} found")
                names = entries.files
                if self._finds_folders:
                    names = entries.folders
                exclude_folders(entries, nested_starts)
                prefix = "/".join((*entries.parts, ""))
                for name in self._likely_names(names):
                    if self._is_chosen(chooses, prefix + name) and self._is_in_time(entries, name):
                        self.total += 1
                        yield number, entries, name
                if self._blind_choosers:
                    self._count_other_case(number, entries, names)

    def _count_other_case(self, number: int, entries: FolderEntries, names: Sequence[str]) -> None:
        """Count the names of a folder that do not match, and would in another case."""
        ending = self._name_ending.lower()
        prefix = "/".join((*entries.parts, ""))
        lines = "\n".join((*names, prefix))
        folded_lines = lines.lower()
        # Most folders hold none, which is seen in all of their names at once.
        if f"{ending}\n" not in folded_lines or (lines == folded_lines and self._glob.islower()):
            return
        chooses = self._choosers[number]
        chooses_blindly = self._blind_choosers[number]
        for name in names:
            path = prefix + name
            folded_path = path.lower()
            if not folded_path.endswith(ending) or not chooses_blindly(folded_path) or chooses(path):
                continue
            if self._is_in_time(entries, name):
                self.other_case.add(entry_display_path(entries.folder.path, name))

    def _is_chosen(self, chooses: Chooser, path: str) -> bool:
        return chooses(path)

    def _compile_relevance(self, start: ReadablePath, chooses: Chooser) -> Chooser:
        return compile_relevance(self._starts, start, self._glob, chooses)

    def _is_in_time(self, entries: FolderEntries, name: str) -> bool:
        if self._changed is None:
            return True
        if self._sort == "taken":
            photo_time = self._read_measure(entries, name)
            return photo_time != 0 and self._changed.holds(clock_seconds(photo_time))
        try:
            return self._changed.holds(entries.folder.stat(name).st_mtime)
        except OSError:
            return False  # removed since

    def _read_measure(self, entries: FolderEntries, name: str) -> int:
        """Return what a path is sorted by; 0 if it was removed since."""
        if self._sort == "taken":
            return read_photo_date(entries, name, self.skipped, self._cancel)
        try:
            status = entries.folder.stat(name)
        except OSError:
            return 0
        if self._sort == "modified":
            return status.st_mtime_ns
        return status.st_size

    def _likely_names(self, names: Sequence[str]) -> Sequence[str]:
        """Return the names that end as the glob does: nearly all others are told apart without their paths."""
        ending = self._name_ending
        if not ending:
            return names
        # Most folders hold none, which one search in all of their names shows.
        lines = "\n".join((*names, ""))
        if f"{ending}\n" not in lines and lines.isascii():
            return ()
        return [name for name in names if name.endswith(ending) or not name.isascii()]


class _CaseBlindFinder(_Finder):
    """A search for names in any case."""

    def __init__(
        self,
        starts: Sequence[ReadablePath],
        query: _FindQuery,
        cancel: CancelToken,
        after: _SortKey | None,
    ) -> None:
        super().__init__(starts, replace(query, glob=query.glob.lower()), cancel, after)

    def _likely_names(self, names: Sequence[str]) -> Sequence[str]:
        return names

    def _count_other_case(self, number: int, entries: FolderEntries, names: Sequence[str]) -> None:
        pass  # none is missing

    def _is_chosen(self, chooses: Chooser, path: str) -> bool:
        return chooses(path.lower())

    def _compile_relevance(self, start: ReadablePath, chooses: Chooser) -> Chooser:
        return choose_in_any_case(super()._compile_relevance(start, chooses))


class _OtherCaseFinder(_CaseBlindFinder):
    """A search in any case where the case of the glob has nothing."""

    def notes(self) -> list[str]:
        return ["none in this case, but these in another", *super().notes()]


class _PagePaths(NamedTuple):
    """The paths of one page, and what each is sorted by as text."""

    paths: list[str]
    measures: list[str]


def _fill_page(candidates: Sequence[_FoundPath], query: _FindQuery, limit: int) -> _PagePaths:
    """Return the first paths, at most `limit`, that fit on a page; one at least."""
    slash = ""
    if query.finds_folders:
        slash = "/"
    page = _PagePaths([], [])
    remaining_bytes = page_byte_limit(limit)
    for path in candidates[:limit]:
        measure = _format_measure(path.position.measure, query.sort)
        remaining_bytes -= len(path.display.encode("utf-8", "replace")) + len(slash) + len(measure) + 1
        if page.paths and remaining_bytes < 0:
            break
        page.paths.append(path.display + slash)
        page.measures.append(measure)
    return page


def _format_measure(measure: int, sort: FindSort) -> str:
    match sort:
        case "modified":
            return format_time(measure / 1e9)
        case "size":
            return format_size(measure)
        case "taken":
            return format_photo_date(measure)
        case _:
            return ""


def _found_path(start: int, entries: FolderEntries, name: str, measure: int) -> _FoundPath:
    position = _Position(start, [*entries.parts, name], measure)
    return _FoundPath(position.sort_key, position, entry_display_path(entries.folder.path, name))
