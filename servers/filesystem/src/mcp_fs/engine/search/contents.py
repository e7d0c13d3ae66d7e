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
from mcp_fs.engine.listing.walk import Skipped, page_bytes
from mcp_fs.engine.patterns.regex import LineSearch, byte_search, line_search, named_groups
from mcp_fs.engine.search.file_list import Candidates, Position
from mcp_fs.engine.search.grep import Hits, clipped, grep, tally
from mcp_fs.engine.search.query import Query
from mcp_fs.engine.search.sources import Documents, File, why_not
from mcp_fs.models import Match, Matches, Tallies, counted
from mcp_fs.policy import Readable

__all__ = ["search"]

_BYTES_PER_MATCH = 100
_NUMBER = 5
"""About the bytes of a line's number and end."""
_IS_NUMBER = re.compile(rb"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,2})?").fullmatch
_COUNT_SECONDS = 0.5
"""How long what does not fit on a page is counted."""


@dataclass(frozen=True, slots=True)
class _Resume:
    """Where a page ended.

    Attributes:
        number: of the start.
        names: of the file, below the start.
        line: last line shown when there are more in the file, else 0.
        before: matches shown of that file.
        total: matches in all and files that have some, as they were counted for the first page.
    """

    number: int
    names: list[str]
    line: int
    before: int
    total: tuple[int, int, bool]

    @property
    def position(self) -> Position:
        return Position(self.number, tuple(self.names), self.line > 0)

    def lies_in(self, number: int, file: File) -> bool:
        return self.line > 0 and (number, [*file.parts]) == (self.number, self.names)


@dataclass(slots=True)
class _Texts:
    """What matched, how often, and the sums of what the group `sum` held with each.

    Attributes:
        others: texts in that group that are no numbers.
    """

    counts: Counter[bytes] = field(default_factory=Counter[bytes])
    sums: dict[bytes, Decimal] = field(default_factory=dict[bytes, Decimal])
    others: Counter[bytes] = field(default_factory=Counter[bytes])

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
                self.others[held] += number

    def ordered(self) -> list[tuple[bytes, int]]:
        """The largest sums first, or what matched most often."""
        return sorted(self.counts.items(), key=lambda item: (-self.sums.get(item[0], item[1]), item[0]))

    def shown(self, text: bytes) -> str:
        line = clipped(0, text.replace(b"\n", b"\\n"), 0).text
        return "\t".join([*filter(None, (line,)), f"{self.sums[text]:f}"]) if self.sums else line

    def notes(self) -> list[str]:
        if not self.others:
            return []
        such = clipped(0, max(self.others), 0).text
        return [f"{self.others.total():,} of `sum` are no numbers and not added, such as {quote(such)}"]


@dataclass(slots=True)
class _Total:
    """Matching lines in all and the files that have some; `at_least` when the counting was cut."""

    lines: int = 0
    files: int = 0
    at_least: bool = False

    @property
    def as_list(self) -> list[object]:
        return [self.lines, self.files, self.at_least]


def search(
    starts: Sequence[Readable], query: Query, cursor: str | None, stop: Stop, program: str | None = None
) -> Matches | Tallies:
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
    return found.tallied(cursor) if query.count_only or query.only_matching else found.page(cursor)


class _Search:
    def __init__(self, starts: Sequence[Readable], query: Query, stop: Stop, program: str | None) -> None:
        self.query, self.stop = query, stop
        query.check()
        several, ignore_case = query.several, query.ignore_case
        self.find: LineSearch = line_search(
            query.plain, literal=query.literal, ignore_case=ignore_case, several=several
        )
        of_groups = query.only_matching and not query.literal
        self.taken = named_groups(query.plain, ignore_case=ignore_case, several=several) if of_groups else None
        self.several = several
        self.skipped = Skipped.soon()
        self.candidates = Candidates(starts, query, stop, self.skipped, program)
        self.may_match = byte_search(self.candidates.bytes, ignore_case=query.ignore_case)
        self.searched = 0
        self.scope = [[start.uri for start in starts], *map(str, (query.pattern, query.literal, query.ignore_case))]
        modes = (query.files_only, query.count_only, query.only_matching, query.binary, query.last)
        self.scope += [str(value) for value in (query.glob, query.file_type, *modes, query.wanted)]
        self.binaries: list[str] = []
        self.documents = Documents(self.skipped)

    def page(self, cursor: str | None) -> Matches:
        query = self.query
        resume = None if cursor is None else _Resume(*Cursor.decode("search", cursor, self.scope))
        files: list[tuple[str, Sequence[Match], int]] = []
        kept_away = False
        room, size = query.limit, self.room()
        end: list[object] | None = None
        total = _Total() if resume is None else _Total(*resume.total)
        rest = self.candidates.files(resume and resume.position)
        for number, file in rest:
            line, before = (resume.line, resume.before) if resume and resume.lies_in(number, file) else (0, 0)
            found = self.hits(file, line, before, room)
            if not found.lines:
                continue
            if end is not None:
                # Only now is it sure that there is more.
                if resume is None:
                    self.count([(number, file)], total)
                    self.count(rest, total, budget=True)
                return self.answer(files, total, [*end, total.as_list], kept_away)
            lines: Sequence[Match] = list[Match]()
            taken, cut, more = 1, False, False
            if not query.files_only:
                if query.last:
                    lines, taken, more = found.last(size, query.context)
                    more = more or found.more
                else:
                    lines, taken, cut = found.first(room, size)
                    more = found.more and not cut
            # Of a file that goes on from page to page, the first page told it.
            whole = self.count_one(file, None) if more or (cut and not before) else 0
            files.append((file.path, lines, whole))
            kept_away = kept_away or more
            if resume is None:
                total.lines, total.files = total.lines + (whole or taken), total.files + 1
            room -= taken
            size -= _bytes(file.path, lines)
            if cut:
                end = [number, file.parts, lines[-1].line, before + taken]
                if resume is None:
                    self.count(rest, total, budget=True)
                return self.answer(files, total, [*end, total.as_list], kept_away)
            if room <= 0 or size <= 0:
                end = [number, file.parts, 0, 0]
        return self.answer(files, total, None, kept_away)

    def room(self) -> int:
        """Bytes that a page may take: enough that the usual limit of lines holds, with context too."""
        if self.query.files_only:
            return page_bytes(self.query.limit)
        return max(DEFAULT_PAGE_BYTES, self.query.limit * _BYTES_PER_MATCH)

    def answer(
        self,
        files: Sequence[tuple[str, Sequence[Match], int]],
        total: _Total,
        end: list[object] | None,
        kept_away: bool,
    ) -> Matches:
        cursor = None if end is None else Cursor.encode("search", end, self.scope)
        counted = (total.lines, total.files, total.at_least)
        bound = "limit" if self.query.last and self.query.limit < self.query.max_per_file else "max_per_file"
        notes = self.notes(nothing=not total.files)
        return Matches(tuple(files), notes, cursor, counted, bound if kept_away else "")

    def tallied(self, cursor: str | None) -> Tallies:
        """How many lines match in each file, or what matched, each text once; all files are searched for each page."""
        query = self.query
        begin = 0 if cursor is None else int(Cursor.decode("tally", cursor, self.scope))
        texts = _Texts() if query.only_matching else None
        counts: list[tuple[str, int]] = []
        total, kinds = _Total(), Counter[str]()
        for _, file in self.candidates.files(None):
            here = None if texts is None else Counter[bytes]()
            if lines := self.count_one(file, here):
                counts.append((file.path, lines))
                if texts is not None and here is not None:
                    texts.add(here)
                    kinds[os.path.splitext(file.path)[1]] += here.total()
                total.lines, total.files = total.lines + lines, total.files + 1
        if texts is not None:
            counts = [(texts.shown(text), number) for text, number in texts.ordered()]
        page: list[tuple[str, int]] = []
        size = page_bytes(query.limit)
        for text, number in counts[begin : begin + query.limit]:
            size -= len(text.encode("utf-8", "replace")) + 8
            if page and size < 0:
                break
            page.append((text, number))
        end = begin + len(page)
        return Tallies(
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
        self.candidates.leave_out()
        archives = [path for path in self.binaries if is_archive(path)]
        others = [path for path in self.binaries if not is_archive(path)]
        for paths, what, way in (
            (others, f"{len(others):,} binary", "set include_binary"),
            (archives, counted(len(archives), "archive"), "name one as `path`"),
        ):
            if paths:
                named = f"{', '.join(paths[:5])}{', ...' * (len(paths) > 5)}"
                notes.append(f"{what} not searched ({named}); {way}")
        notes += self.skipped.left_out(named=True)
        if not self.searched and (self.query.glob or self.query.file_type):
            notes.append("no file fits `glob` or `file_type`: a glob is a whole name or path, as `*.py` or `src/**`")
        return notes

    def count(self, files: Iterable[tuple[int, File]], total: _Total, *, budget: bool = False) -> None:
        """Add to `total` what matches in `files`; with a `budget` of time, as far as that goes."""
        deadline = time.monotonic() + _COUNT_SECONDS
        for _, file in files:
            if lines := self.count_one(file, None):
                total.lines, total.files = total.lines + lines, total.files + 1
            if budget and time.monotonic() > deadline:
                total.at_least = True
                return

    def count_one(self, file: File, texts: Counter[bytes] | None) -> int:
        if self.query.files_only:
            return len(self.hits(file, 0, 0, 1).lines)

        def work(fd: int) -> tuple[int, Hits]:
            binary, taken, several = self.query.binary, self.taken, self.several
            return tally(
                fd, self.find, self.stop, self.may_match, binary=binary, texts=texts, taken=taken, several=several
            )

        found = self.opened_as(file, work)
        return 0 if found is None else found[0]

    def hits(self, file: File, after_line: int, before: int, room: int) -> Hits:
        self.stop.check()
        self.searched += 1
        if not self.searched % 100:
            tell(self.searched, None, f"{self.searched:,} files searched")
        query, stop = self.query, self.stop
        most = 1 if query.files_only else query.max_per_file - before
        last = query.last and not query.files_only
        # What is left out of the last ones no cursor leads to. Behind a full page one line tells that more match.
        most = min(most, max(room, 1)) if last else most
        context = 0 if query.files_only else query.context

        def work(fd: int) -> tuple[int, Hits]:
            binary, several = query.binary, self.several
            return 0, grep(
                fd,
                self.find,
                context,
                most,
                after_line,
                stop,
                self.may_match,
                binary=binary,
                last=last,
                several=several,
            )

        found = self.opened_as(file, work)
        return Hits() if found is None else found[1]

    def opened_as(self, file: File, work: Callable[[int], tuple[int, Hits]]) -> tuple[int, Hits] | None:
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
            why = reason(error).lower() if isinstance(error, OSError) else why_not(error)
            self.skipped.add(why, file.path)
            return None
        if found.too_long:
            self.skipped.add("too large to search over lines" if self.several else "line too long to search", file.path)
        if found.binary:
            if file.parts:
                self.binaries.append(file.path)
            else:
                self.skipped.add("binary, not searched: set include_binary, or use read_media", file.path)
        return count, found


def _bytes(path: str, lines: Sequence[Match]) -> int:
    """About how much of a page a file takes, with its lines or by its path alone."""
    return len(path) + 1 + sum(len(match.text) + _NUMBER for match in lines)
