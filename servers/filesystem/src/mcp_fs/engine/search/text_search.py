"""Finds matching lines of files, completely and in one order."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import Invalid, NotFound, Problem, describe_os_error
from mcp_batteries.progress import report_progress
from mcp_fs.engine.document_kinds import is_archive
from mcp_fs.engine.listing.walk import Skipped, page_byte_limit
from mcp_fs.engine.patterns.line_breaks import (
    ALL_BRANCHES_HINT,
    LINE_BREAK_HINT,
    leaves_line_in_branch,
    may_mean_line_breaks,
    spans_brackets,
)
from mcp_fs.engine.patterns.regex import LineSearch, compile_byte_filter, compile_group_reader, compile_line_search
from mcp_fs.engine.search.file_list import FileList, Position
from mcp_fs.engine.search.grep import FileMatches, GrepOptions, LineSelection, count_matches, grep
from mcp_fs.engine.search.query import MAX_LAST_MATCHES, Query
from mcp_fs.engine.search.sources import DocumentReader, SearchedFile, describe_failure
from mcp_fs.engine.search.text_counts import TextCounts
from mcp_fs.models import Match, MatchCounts, MatchedFile, Matches, MatchTotal, pluralize
from mcp_fs.policy import ReadablePath

__all__ = ["search_text"]

_BYTES_PER_MATCH_ESTIMATE = 100
# About the bytes of a line's number and end.
_LINE_OVERHEAD_BYTES = 5
# How long what does not fit on a page is counted.
_COUNT_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class _ResumePoint:
    """Where a page ended.

    Attributes:
        number: of the start.
        parts: names of the file, below the start.
        line: last line shown when there are more in the file, else 0.
        shown_matches: matches shown of that file.
        total: matches in all and files that have some, as they were counted for the first page.
    """

    number: int
    parts: list[str]
    line: int
    shown_matches: int
    total: tuple[int, int, bool]

    @property
    def position(self) -> Position:
        return Position(self.number, tuple(self.parts), self.line > 0)

    def is_in(self, number: int, file: SearchedFile) -> bool:
        return self.line > 0 and number == self.number and [*file.parts] == self.parts


@dataclass(slots=True)
class _RunningTotal:
    """What matches on all pages, as far as it was counted."""

    lines: int = 0
    files: int = 0
    at_least: bool = False

    def add(self, lines: int) -> None:
        """Count a file with so many matching lines."""
        self.lines += lines
        self.files += 1

    def freeze(self) -> MatchTotal:
        return MatchTotal(self.lines, self.files, self.at_least)


def search_text(
    starts: Sequence[ReadablePath], query: Query, cursor: str | None, cancel: CancelToken, program: str | None = None
) -> Matches | MatchCounts:
    """Return a page of the lines that match in files at or below `starts`, or of what was counted.

    Args:
        cursor: where the page before ended.
        program: ripgrep, to be faster in large folders.

    Raises:
        Invalid: the pattern, a glob or the cursor can't be read.
        Problem: a start can't be opened.
    """
    if sum((query.count_only, query.only_matching, query.files_only)) > 1:
        raise Invalid("`files_only`, `count_only` and `only_matching` can't be used together.", "Use one of them.")
    text_search = _TextSearch(starts, query, cancel, program)
    page: Matches | MatchCounts
    if query.count_only or query.only_matching:
        page = text_search.count_page(cursor)
        has_matches = page.total[1] > 0
    else:
        page = text_search.find_page(cursor)
        has_matches = page.total.files > 0
    if not has_matches and cursor is None and not query.literal and _SPECIAL.intersection(query.pattern):
        return replace(page, notes=[*page.notes, *_find_as_text(starts, query, cancel, program)])
    return page


def _find_as_text(starts: Sequence[ReadablePath], query: Query, cancel: CancelToken, program: str | None) -> list[str]:
    """Say where a pattern that matches nothing stands as it is written: then it was not meant as an expression."""
    as_text = replace(query, literal=True, files_only=True, count_only=False, only_matching=False, limit=1)
    page = _TextSearch(starts, as_text, cancel, program).find_page(None)
    if not page.files:
        return []
    return [f"as text it is in {page.files[0].path}: set `literal`"]


@dataclass(slots=True)
class _Page:
    """A page of matching lines that is being filled.

    Attributes:
        total: what matches on all pages, as far as it was counted.
        counts: whether what matches is added to the total, as it is for the first page.
        remaining_matches: how many matching lines it has room for.
        remaining_bytes: how many bytes it has room for.
        leaves_out: whether lines are left out that no cursor leads to.
        end: where the next page begins, if there is one: the first fields of a `_ResumePoint`.
    """

    total: _RunningTotal
    counts: bool
    remaining_matches: int
    remaining_bytes: int
    files: list[MatchedFile] = field(default_factory=list[MatchedFile])
    leaves_out: bool = False
    end: list[object] | None = None

    @property
    def is_full(self) -> bool:
        return self.remaining_matches <= 0 or self.remaining_bytes <= 0

    def add(self, file: MatchedFile, match_count: int) -> None:
        self.files.append(file)
        self.remaining_matches -= match_count
        self.remaining_bytes -= _estimate_bytes(file.path, file.lines)
        if self.counts:
            self.total.add(file.match_count or match_count)


# What an expression says by itself and a text does not; a dot means a dot too.
_SPECIAL = frozenset("\\*+?()[]{}^$|")


class _TextSearch:
    """One search in the contents of files."""

    def __init__(self, starts: Sequence[ReadablePath], query: Query, cancel: CancelToken, program: str | None) -> None:
        query.validate()
        self.query = query
        self.cancel = cancel
        self.find: LineSearch = compile_line_search(
            query.lf_pattern, literal=query.literal, ignore_case=query.ignore_case, multiline=query.is_multiline
        )
        self.read_groups = None
        if query.only_matching and not query.literal:
            self.read_groups = compile_group_reader(
                query.lf_pattern, ignore_case=query.ignore_case, multiline=query.is_multiline
            )
        # Worked out once, not for each file.
        self.is_multiline = query.is_multiline
        self.skipped = Skipped.with_deadline()
        self.skipped.tells_links = True
        self.skipped.reads_contents = True
        self.file_list = FileList(starts, query, cancel, self.skipped, program)
        self.may_match = compile_byte_filter(self.file_list.byte_pattern, ignore_case=query.ignore_case)
        self.documents = DocumentReader(self.skipped)
        self.searched_count = 0
        self.binary_paths: list[str] = []
        options = (
            query.pattern,
            query.literal,
            query.ignore_case,
            query.glob,
            query.file_type,
            query.files_only,
            query.count_only,
            query.only_matching,
            query.include_binary,
            query.last_matches,
            query.walk_filter,
        )
        self.scope = [[start.uri for start in starts], *map(str, options)]

    def find_page(self, cursor: str | None) -> Matches:
        """Return the page of matching lines that begins at the cursor."""
        resume = None
        position = None
        total = _RunningTotal()
        if cursor is not None:
            resume = _ResumePoint(*Cursor.decode("search", cursor, self.scope))
            position = resume.position
            total = _RunningTotal(*resume.total)
        page = _Page(total, resume is None, self.query.limit, self.page_bytes())
        remaining_files = self.file_list.iterate(position)
        for number, file in remaining_files:
            after_line = 0
            shown_matches = 0
            if resume is not None and resume.is_in(number, file):
                after_line = resume.line
                shown_matches = resume.shown_matches
            matches = self.grep_file(file, after_line, shown_matches, page.remaining_matches)
            if not matches.lines:
                continue
            if page.end is not None:
                # Only now is it sure that there is more.
                return self.end_page(page, remaining_files, file)
            is_cut = self.add_file(page, number, file, matches, shown_matches)
            if is_cut:
                return self.end_page(page, remaining_files)
        page.end = None
        return self.build_page(page)

    def end_page(
        self, page: _Page, remaining_files: Iterable[tuple[int, SearchedFile]], next_file: SearchedFile | None = None
    ) -> Matches:
        """Return a full page; add to its total the file that did not fit, and what comes behind."""
        if page.counts:
            if next_file is not None:
                self.count_file(next_file, page.total)
            self.count_rest(remaining_files, page.total)
        return self.build_page(page)

    def add_file(self, page: _Page, number: int, file: SearchedFile, matches: FileMatches, shown_matches: int) -> bool:
        """Add what a file holds to a page; return whether some of it is left for the next page.

        Args:
            number: of the start that the file lies below.
            shown_matches: matches of this file on pages before.
        """
        selection = self.select_lines(page, matches)
        goes_on = selection.is_cut and not self.query.last_matches
        leaves_out = self.leaves_out_lines(matches, selection)
        if leaves_out:
            page.leaves_out = True
        # Of a file that goes on from page to page, the first page told it.
        matches_in_file = 0
        if leaves_out or (goes_on and not shown_matches):
            matches_in_file = self.count_in_file(file, None)
        page.add(MatchedFile(file.path, selection.lines, matches_in_file), selection.match_count)
        if goes_on:
            page.end = [number, file.parts, selection.lines[-1].line, shown_matches + selection.match_count]
        elif page.is_full:
            page.end = [number, file.parts, 0, 0]
        return goes_on

    def leaves_out_lines(self, matches: FileMatches, selection: LineSelection) -> bool:
        """Return whether some lines of a file are on no page."""
        if self.query.files_only:
            return False
        if self.query.last_matches:
            return selection.is_cut or matches.has_more
        return matches.has_more and not selection.is_cut

    def select_lines(self, page: _Page, matches: FileMatches) -> LineSelection:
        """Return the lines of a file that a page has room for."""
        if self.query.files_only:
            return LineSelection((), 1, is_cut=False)
        if self.query.last_matches:
            return matches.select_last(page.remaining_bytes, self.query.context)
        return matches.select_first(page.remaining_matches, page.remaining_bytes)

    def page_bytes(self) -> int:
        """Return the bytes that a page may take: enough that the usual limit of lines holds, with context too."""
        if self.query.files_only:
            return page_byte_limit(self.query.limit)
        return max(DEFAULT_PAGE_BYTES, self.query.limit * _BYTES_PER_MATCH_ESTIMATE)

    def build_page(self, page: _Page) -> Matches:
        total = page.total
        cursor = None
        if page.end is not None:
            cursor = Cursor.encode("search", [*page.end, list(total.freeze())], self.scope)
        notes = self.notes(nothing=not total.files)
        bound = ""
        if page.leaves_out:
            bound = "max_per_file"
            if self.query.last_matches and self.query.limit < self.query.max_per_file:
                bound = "limit"
        if bound == "limit" and self.query.limit >= MAX_LAST_MATCHES:
            bound = ""
            notes.append(f"no more than {MAX_LAST_MATCHES:,} last matches of a file are shown; `count_only` counts all")
        return Matches(tuple(page.files), notes, cursor, total.freeze(), bound)

    def count_page(self, cursor: str | None) -> MatchCounts:
        """Return how many lines match in each file, or what matched, each text once.

        All files are searched for each page.
        """
        begin = 0
        if cursor is not None:
            begin = int(Cursor.decode("tally", cursor, self.scope))
        if self.query.only_matching:
            return self.count_texts(begin)
        total = _RunningTotal()
        rows: list[tuple[str, int]] = []
        for _, file in self.file_list.iterate(None):
            lines = self.count_in_file(file, None)
            if lines:
                rows.append((file.path, lines))
                total.add(lines)
        return self.build_counts("file", rows, begin, total, self.notes(nothing=not total.files))

    def count_texts(self, begin: int) -> MatchCounts:
        """Return a page of what matched, each text once, from the row `begin` on."""
        number_count = 0
        if self.read_groups is not None:
            number_count = self.read_groups.number_count
        texts = TextCounts(number_count)
        total = _RunningTotal()
        matches_by_suffix = Counter[str]()
        for _, file in self.file_list.iterate(None):
            texts_of_file = Counter[bytes]()
            lines = self.count_in_file(file, texts_of_file)
            if lines:
                texts.add(texts_of_file)
                matches_by_suffix[os.path.splitext(file.path)[1]] += texts_of_file.total()
                total.add(lines)
        texts.finish()
        rows = [(texts.format(text), number) for text, number in texts.sort()]
        notes = [*self.notes(nothing=not total.files), *texts.notes()]
        return self.build_counts(texts.kind, rows, begin, total, notes, matches_by_suffix.most_common())

    def build_counts(
        self,
        kind: str,
        rows: Sequence[tuple[str, int]],
        begin: int,
        total: _RunningTotal,
        notes: Sequence[str],
        matches_by_suffix: Sequence[tuple[str, int]] = (),
    ) -> MatchCounts:
        """Return the page of `rows` that begins at one of them."""
        page: list[tuple[str, int]] = []
        remaining_bytes = page_byte_limit(self.query.limit)
        for text, number in rows[begin : begin + self.query.limit]:
            remaining_bytes -= len(text.encode("utf-8", "replace")) + 8
            if page and remaining_bytes < 0:
                break
            page.append((text, number))
        end = begin + len(page)
        cursor = None
        if end < len(rows):
            cursor = Cursor.encode("tally", end, self.scope)
        counts = (total.lines, total.files)
        return MatchCounts(tuple(page), kind, len(rows), counts, notes, cursor, matches_by_suffix)

    def notes(self, *, nothing: bool) -> list[str]:
        """Say what could not be searched; when nothing was found also what was left out."""
        notes = self.skipped.notes()
        if not self.query.literal:
            pattern = self.query.pattern
            if spans_brackets(pattern) or (nothing and may_mean_line_breaks(pattern)):
                notes.append(LINE_BREAK_HINT)
            if leaves_line_in_branch(pattern):
                notes.append(ALL_BRANCHES_HINT)
        if not nothing:
            return notes
        self.file_list.count_excluded()
        notes += [
            *self.describe_binary_files(),
            *self.skipped.describe_excluded(named=True),
            *self.skipped.describe_links(),
        ]
        if not self.searched_count and (self.query.glob or self.query.file_type):
            notes.append(
                "no file fits `glob` or `file_type`: a glob is a whole name, as `*.py`, "
                "or a path below `path`, as `src/**`"
            )
        return notes

    def describe_binary_files(self) -> list[str]:
        """Say which files were not searched, as binary ones."""
        archives: list[str] = []
        others: list[str] = []
        for path in self.binary_paths:
            if is_archive(path):
                archives.append(path)
            else:
                others.append(path)
        notes: list[str] = []
        if others:
            notes.append(f"{len(others):,} binary not searched ({_name_some(others)}); set include_binary")
        if archives:
            count = pluralize(len(archives), "archive")
            notes.append(f"{count} not searched ({_name_some(archives)}); name one as `path`")
        return notes

    def count_rest(self, files: Iterable[tuple[int, SearchedFile]], total: _RunningTotal) -> None:
        """Add to `total` what matches in `files`, as far as time goes."""
        deadline = time.monotonic() + _COUNT_SECONDS
        for _, file in files:
            self.count_file(file, total)
            if time.monotonic() > deadline:
                total.at_least = True
                return

    def count_file(self, file: SearchedFile, total: _RunningTotal) -> None:
        lines = self.count_in_file(file, None)
        if lines:
            total.add(lines)

    def count_in_file(self, file: SearchedFile, texts: Counter[bytes] | None) -> int:
        """Return how many lines of a file match; `texts` learns what matched."""
        if self.query.files_only:
            return len(self.grep_file(file, 0, 0, 1).lines)

        def count(fd: int) -> tuple[int, FileMatches]:
            return count_matches(
                fd,
                self.find,
                self.cancel,
                self.may_match,
                search_binary=self.query.include_binary,
                texts=texts,
                read_groups=self.read_groups,
                multiline=self.is_multiline,
            )

        result = self.run_on_file(file, count)
        if result is None:
            return 0
        return result[0]

    def grep_file(self, file: SearchedFile, after_line: int, shown_matches: int, room: int) -> FileMatches:
        """Return the matching lines of a file.

        Args:
            shown_matches: how many were shown on pages before.
            room: how many the page can take.
        """
        options = self.grep_options(after_line, shown_matches, room)

        def search(fd: int) -> tuple[int, FileMatches]:
            return 0, grep(fd, self.find, options, self.cancel, self.may_match)

        result = self.run_on_file(file, search)
        if result is None:
            return FileMatches()
        return result[1]

    def grep_options(self, after_line: int, shown_matches: int, room: int) -> GrepOptions:
        query = self.query
        if query.files_only:
            return GrepOptions(after_line=after_line, search_binary=query.include_binary, multiline=self.is_multiline)
        # Behind a full page one line tells that more match.
        max_matches = min(query.max_per_file - shown_matches, room + 1)
        if query.last_matches:
            # What is left out of the last ones no cursor leads to.
            max_matches = min(max_matches, max(room, 1))
        return GrepOptions(
            context=query.context,
            max_matches=max_matches,
            after_line=after_line,
            search_binary=query.include_binary,
            keep_last=query.last_matches,
            multiline=self.is_multiline,
            max_line_bytes=query.max_line_bytes,
        )

    def run_on_file(
        self, file: SearchedFile, work: Callable[[int], tuple[int, FileMatches]]
    ) -> tuple[int, FileMatches] | None:
        """Return what `work` finds in a file, None where it can't be opened; note what could not be searched."""
        self.cancel.check()
        self.searched_count += 1
        if not self.searched_count % 100:
            report_progress(self.searched_count, None, f"{self.searched_count:,} files searched")
        try:
            fd = file.open(self.documents, self.cancel)
            try:
                count, matches = work(fd)
            finally:
                os.close(fd)
        except (FileNotFoundError, NotFound):
            if file.part:
                self.skipped.add("not there, so not searched", file.path)
            return None  # else removed since it was listed
        except OSError as error:
            self.skipped.add(describe_os_error(error).lower(), file.path)
            return None
        except Problem as error:
            self.skipped.add(describe_failure(error), file.path)
            return None
        if matches.too_long or matches.is_binary:
            self.note_unsearched(file, matches)
        return count, matches

    def note_unsearched(self, file: SearchedFile, matches: FileMatches) -> None:
        if matches.too_long and self.is_multiline:
            self.skipped.add("too large to search over lines", file.path)
        elif matches.too_long:
            self.skipped.add("line too long to search", file.path)
        if matches.is_binary and file.parts:
            self.binary_paths.append(file.path)
        elif matches.is_binary:
            self.skipped.add("binary, not searched: set include_binary, or use read_media", file.path)


def _name_some(paths: Sequence[str]) -> str:
    named = ", ".join(paths[:5])
    if len(paths) <= 5:
        return named
    return f"{named}, ..."


def _estimate_bytes(path: str, lines: Sequence[Match]) -> int:
    """Return about how much of a page a file takes, with its lines or by its path alone."""
    return len(path) + 1 + sum(len(match.text) + _LINE_OVERHEAD_BYTES for match in lines)
