"""Finds matching lines of files, completely and in one order."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from mcp_batteries.errors import Invalid, NotFound, Problem, quote, reason
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, Cursor, Stop
from mcp_batteries.progress import tell
from mcp_fs.engine.document_kinds import is_archive
from mcp_fs.engine.listing.walk import Skipped, page_byte_limit
from mcp_fs.engine.patterns.regex import LineSearch, compile_byte_filter, compile_group_reader, compile_line_search
from mcp_fs.engine.search.file_list import FileList, Position
from mcp_fs.engine.search.grep import FileMatches, clip_line, count_matches, grep
from mcp_fs.engine.search.query import Query
from mcp_fs.engine.search.sources import DocumentReader, SearchedFile, describe_failure
from mcp_fs.models import Match, MatchCounts, Matches, pluralize
from mcp_fs.policy import Readable

__all__ = ["search_text"]

_BYTES_PER_MATCH_ESTIMATE = 100
_LINE_OVERHEAD_BYTES = 5
"""About the bytes of a line's number and end."""
_IS_NUMBER = re.compile(rb"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,2})?").fullmatch
_COUNT_SECONDS = 0.5
"""How long what does not fit on a page is counted."""


@dataclass(frozen=True, slots=True)
class _ResumePoint:
    """Where a page ended.

    Attributes:
        number: of the start.
        names: of the file, below the start.
        line: last line shown when there are more in the file, else 0.
        before: matches shown of that file.
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
        return self.line > 0 and (number, [*file.parts]) == (self.number, self.parts)


@dataclass(slots=True)
class _TextCounts:
    """What matched, how often, and the sums of what the group `sum` held with each.

    Attributes:
        others: texts in that group that are no numbers.
    """

    counts: Counter[bytes] = field(default_factory=Counter[bytes])
    sums: dict[bytes, Decimal] = field(default_factory=dict[bytes, Decimal])
    non_numbers: Counter[bytes] = field(default_factory=Counter[bytes])

    def add(self, found: Counter[bytes]) -> None:
        for whole, number in found.items():
            text, mark, held = whole.rpartition(b"\0")
            if not mark:
                self.counts[whole] += number
                continue
            self.counts[text] += number
            self.sums.setdefault(text, Decimal())
            if _IS_NUMBER(held):
                self.sums[text] += Decimal(held.decode()) * number
            else:
                self.non_numbers[held] += number

    def sort(self) -> list[tuple[bytes, int]]:
        """The largest sums first, or what matched most often."""
        return sorted(self.counts.items(), key=lambda item: (-self.sums.get(item[0], item[1]), item[0]))

    def format(self, text: bytes) -> str:
        line = clip_line(0, text.replace(b"\n", b"\\n"), 0).text
        return "\t".join([*filter(None, (line,)), f"{self.sums[text]:f}"]) if self.sums else line

    def notes(self) -> list[str]:
        if not self.non_numbers:
            return []
        such = clip_line(0, max(self.non_numbers), 0).text
        return [f"{self.non_numbers.total():,} of `sum` are no numbers and not added, such as {quote(such)}"]


@dataclass(slots=True)
class _MatchTotal:
    """Matching lines in all and the files that have some; `at_least` when the counting was cut."""

    lines: int = 0
    files: int = 0
    at_least: bool = False

    @property
    def as_list(self) -> list[object]:
        return [self.lines, self.files, self.at_least]


def search_text(
    starts: Sequence[Readable], query: Query, cursor: str | None, stop: Stop, program: str | None = None
) -> Matches | MatchCounts:
    """A page of the lines that match in files at or below `starts`, or of what was counted.

    Args:
        cursor: where the page before ended.
        program: ripgrep, to be faster in large folders.

    Raises:
        Invalid: the pattern, a glob or the cursor can't be read.
        Problem: a start can't be opened.
    """
    if query.count_only + query.only_matching + query.files_only > 1:
        raise Invalid("`files_only`, `count_only` and `only_matching` can't be used together.", "Use one of them.")
    found = _Search(starts, query, stop, program)
    return found.count_page(cursor) if query.count_only or query.only_matching else found.find_page(cursor)


class _Search:
    def __init__(self, starts: Sequence[Readable], query: Query, stop: Stop, program: str | None) -> None:
        self.query, self.stop = query, stop
        query.validate()
        several, ignore_case = query.is_multiline, query.ignore_case
        self.find: LineSearch = compile_line_search(
            query.lf_pattern, literal=query.literal, ignore_case=ignore_case, multiline=several
        )
        of_groups = query.only_matching and not query.literal
        self.read_groups = (
            compile_group_reader(query.lf_pattern, ignore_case=ignore_case, multiline=several) if of_groups else None
        )
        self.multiline = several
        self.skipped = Skipped.with_deadline()
        self.file_list = FileList(starts, query, stop, self.skipped, program)
        self.may_match = compile_byte_filter(self.file_list.byte_pattern, ignore_case=query.ignore_case)
        self.searched_count = 0
        self.scope = [[start.uri for start in starts], *map(str, (query.pattern, query.literal, query.ignore_case))]
        modes = (query.files_only, query.count_only, query.only_matching, query.include_binary, query.last_matches)
        self.scope += [str(value) for value in (query.glob, query.file_type, *modes, query.walk_filter)]
        self.binary_paths: list[str] = []
        self.documents = DocumentReader(self.skipped)

    def find_page(self, cursor: str | None) -> Matches:
        query = self.query
        resume = None if cursor is None else _ResumePoint(*Cursor.decode("search", cursor, self.scope))
        files: list[tuple[str, Sequence[Match], int]] = []
        kept_away = False
        room, size = query.limit, self.page_bytes()
        end: list[object] | None = None
        total = _MatchTotal() if resume is None else _MatchTotal(*resume.total)
        rest = self.file_list.iterate(resume and resume.position)
        for number, file in rest:
            line, before = (resume.line, resume.shown_matches) if resume and resume.is_in(number, file) else (0, 0)
            found = self.grep_file(file, line, before, room)
            if not found.lines:
                continue
            if end is not None:
                # Only now is it sure that there is more.
                if resume is None:
                    self.add_to_total([(number, file)], total)
                    self.add_to_total(rest, total, budget=True)
                return self.build_page(files, total, [*end, total.as_list], kept_away)
            lines: Sequence[Match] = list[Match]()
            taken, cut, more = 1, False, False
            if not query.files_only:
                if query.last_matches:
                    lines, taken, more = found.take_last(size, query.context)
                    more = more or found.has_more
                else:
                    lines, taken, cut = found.take_first(room, size)
                    more = found.has_more and not cut
            # Of a file that goes on from page to page, the first page told it.
            whole = self.count_in_file(file, None) if more or (cut and not before) else 0
            files.append((file.path, lines, whole))
            kept_away = kept_away or more
            if resume is None:
                total.lines, total.files = total.lines + (whole or taken), total.files + 1
            room -= taken
            size -= _estimate_bytes(file.path, lines)
            if cut:
                end = [number, file.parts, lines[-1].line, before + taken]
                if resume is None:
                    self.add_to_total(rest, total, budget=True)
                return self.build_page(files, total, [*end, total.as_list], kept_away)
            if room <= 0 or size <= 0:
                end = [number, file.parts, 0, 0]
        return self.build_page(files, total, None, kept_away)

    def page_bytes(self) -> int:
        """Bytes that a page may take: enough that the usual limit of lines holds, with context too."""
        if self.query.files_only:
            return page_byte_limit(self.query.limit)
        return max(DEFAULT_PAGE_BYTES, self.query.limit * _BYTES_PER_MATCH_ESTIMATE)

    def build_page(
        self,
        files: Sequence[tuple[str, Sequence[Match], int]],
        total: _MatchTotal,
        end: list[object] | None,
        kept_away: bool,
    ) -> Matches:
        cursor = None if end is None else Cursor.encode("search", end, self.scope)
        counted = (total.lines, total.files, total.at_least)
        bound = "limit" if self.query.last_matches and self.query.limit < self.query.max_per_file else "max_per_file"
        notes = self.notes(nothing=not total.files)
        return Matches(tuple(files), notes, cursor, counted, bound if kept_away else "")

    def count_page(self, cursor: str | None) -> MatchCounts:
        """How many lines match in each file, or what matched, each text once; all files are searched for each page."""
        query = self.query
        begin = 0 if cursor is None else int(Cursor.decode("tally", cursor, self.scope))
        texts = _TextCounts() if query.only_matching else None
        counts: list[tuple[str, int]] = []
        total, kinds = _MatchTotal(), Counter[str]()
        for _, file in self.file_list.iterate(None):
            here = None if texts is None else Counter[bytes]()
            if lines := self.count_in_file(file, here):
                counts.append((file.path, lines))
                if texts is not None and here is not None:
                    texts.add(here)
                    kinds[os.path.splitext(file.path)[1]] += here.total()
                total.lines, total.files = total.lines + lines, total.files + 1
        if texts is not None:
            counts = [(texts.format(text), number) for text, number in texts.sort()]
        page: list[tuple[str, int]] = []
        size = page_byte_limit(query.limit)
        for text, number in counts[begin : begin + query.limit]:
            size -= len(text.encode("utf-8", "replace")) + 8
            if page and size < 0:
                break
            page.append((text, number))
        end = begin + len(page)
        return MatchCounts(
            tuple(page),
            "file" if texts is None else "sum" if texts.sums else "text",
            len(counts),
            (total.lines, total.files),
            [*self.notes(nothing=not total.files), *([] if texts is None else texts.notes())],
            Cursor.encode("tally", end, self.scope) if end < len(counts) else None,
            kinds.most_common(),
        )

    def notes(self, *, nothing: bool) -> list[str]:
        """What could not be searched; when nothing was found also what was left out."""
        notes = self.skipped.notes()
        if not nothing:
            return notes
        self.file_list.count_excluded()
        archives = [path for path in self.binary_paths if is_archive(path)]
        others = [path for path in self.binary_paths if not is_archive(path)]
        for paths, what, way in (
            (others, f"{len(others):,} binary", "set include_binary"),
            (archives, pluralize(len(archives), "archive"), "name one as `path`"),
        ):
            if paths:
                named = f"{', '.join(paths[:5])}{', ...' * (len(paths) > 5)}"
                notes.append(f"{what} not searched ({named}); {way}")
        notes += self.skipped.describe_excluded(named=True)
        if not self.searched_count and (self.query.glob or self.query.file_type):
            notes.append("no file fits `glob` or `file_type`: a glob is a whole name or path, as `*.py` or `src/**`")
        return notes

    def add_to_total(
        self, files: Iterable[tuple[int, SearchedFile]], total: _MatchTotal, *, budget: bool = False
    ) -> None:
        """Add to `total` what matches in `files`; with a `budget` of time, as far as that goes."""
        deadline = time.monotonic() + _COUNT_SECONDS
        for _, file in files:
            if lines := self.count_in_file(file, None):
                total.lines, total.files = total.lines + lines, total.files + 1
            if budget and time.monotonic() > deadline:
                total.at_least = True
                return

    def count_in_file(self, file: SearchedFile, texts: Counter[bytes] | None) -> int:
        if self.query.files_only:
            return len(self.grep_file(file, 0, 0, 1).lines)

        def work(fd: int) -> tuple[int, FileMatches]:
            binary, taken, several = self.query.include_binary, self.read_groups, self.multiline
            return count_matches(
                fd,
                self.find,
                self.stop,
                self.may_match,
                search_binary=binary,
                texts=texts,
                read_groups=taken,
                multiline=several,
            )

        found = self.run_on_file(file, work)
        return 0 if found is None else found[0]

    def grep_file(self, file: SearchedFile, after_line: int, before: int, room: int) -> FileMatches:
        self.stop.check()
        self.searched_count += 1
        if not self.searched_count % 100:
            tell(self.searched_count, None, f"{self.searched_count:,} files searched")
        query, stop = self.query, self.stop
        most = 1 if query.files_only else query.max_per_file - before
        last = query.last_matches and not query.files_only
        # What is left out of the last ones no cursor leads to. Behind a full page one line tells that more match.
        most = min(most, max(room, 1)) if last else most
        context = 0 if query.files_only else query.context

        def work(fd: int) -> tuple[int, FileMatches]:
            binary, several = query.include_binary, self.multiline
            return 0, grep(
                fd,
                self.find,
                context,
                most,
                after_line,
                stop,
                self.may_match,
                search_binary=binary,
                keep_last=last,
                multiline=several,
            )

        found = self.run_on_file(file, work)
        return FileMatches() if found is None else found[1]

    def run_on_file(
        self, file: SearchedFile, work: Callable[[int], tuple[int, FileMatches]]
    ) -> tuple[int, FileMatches] | None:
        """What `work` finds in a file, None where it can't be opened; learns what could not be searched."""
        try:
            fd = file.open(self.documents, self.stop)
            try:
                count, found = work(fd)
            finally:
                os.close(fd)
        except (FileNotFoundError, NotFound):
            return None  # removed since it was listed
        except (OSError, Problem) as error:
            why = reason(error).lower() if isinstance(error, OSError) else describe_failure(error)
            self.skipped.add(why, file.path)
            return None
        if found.too_long:
            self.skipped.add(
                "too large to search over lines" if self.multiline else "line too long to search", file.path
            )
        if found.is_binary:
            if file.parts:
                self.binary_paths.append(file.path)
            else:
                self.skipped.add("binary, not searched: set include_binary, or use read_media", file.path)
        return count, found


def _estimate_bytes(path: str, lines: Sequence[Match]) -> int:
    """About how much of a page a file takes, with its lines or by its path alone."""
    return len(path) + 1 + sum(len(match.text) + _LINE_OVERHEAD_BYTES for match in lines)
