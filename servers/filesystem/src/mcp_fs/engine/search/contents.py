"""Lines of files that match, complete and in one order.

The walk searches the first files itself: common words fill a page there, within milliseconds. When they did
not, ripgrep, if there is one, says which of the remaining files are worth opening.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from mcp_batteries.errors import Invalid, NotFound, Problem, reason
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, Cursor, Stop
from mcp_batteries.progress import tell
from mcp_fs.engine.documents.content import is_inside, members
from mcp_fs.engine.documents.kinds import SUFFIXES, is_archive
from mcp_fs.engine.files.handles import open_folder, status
from mcp_fs.engine.filetypes import globs_of
from mcp_fs.engine.search import ripgrep
from mcp_fs.engine.search.grep import Hits, clipped, grep, tally
from mcp_fs.engine.search.opened import Documents, File, why_not
from mcp_fs.engine.search.prefilter import byte_pattern, wide_pattern
from mcp_fs.engine.search.regex import LineSearch, byte_search, line_search
from mcp_fs.engine.search.selection import Chooser, bare_names, chooser, choosers
from mcp_fs.engine.walk import AWAY, Filter, Sight, Skipped, Visit, order, page_bytes, shown, spoken, walk
from mcp_fs.models import Match, Matches, Tallies, counted
from mcp_fs.policy import Readable

__all__ = ["Query", "search"]

_OWN_FILES = 400
_BYTES_PER_MATCH = 100
_COUNT_SECONDS = 0.5
"""How long what does not fit on a page is counted."""
# What may hold the letters of a line break without asking for one: a class, a backslash that is itself escaped.
_CLASS = re.compile(r"\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|\\[^nx0]", re.DOTALL)
_LINE_BREAK = re.compile(r"\\(?:n|x0[aA]|x\{0*[aA]\}|012)")


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched for.

    Attributes:
        pattern: RE2 syntax, or the text itself when `literal`.
        context: lines shown before and after each match.
        glob: paths to search; without a slash names; a `!` in front leaves out instead.
        file_type: name of a kind of file (`filetypes`).
        max_per_file: matching lines shown of one file.
        limit: matching lines in one answer; files when `files_only` or `count_only`, texts when `only_matching`.
        count_only: how many lines match in each file, in place of the lines.
        only_matching: what matched, each text once, in place of the lines.
        binary: whether binary files are searched too.
    """

    pattern: str
    literal: bool = False
    ignore_case: bool = False
    context: int = 0
    glob: str | None = None
    file_type: str | None = None
    max_per_file: int = 20
    limit: int = 100
    files_only: bool = False
    count_only: bool = False
    only_matching: bool = False
    binary: bool = False
    wanted: Filter = field(default_factory=Filter)


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

    def lies_in(self, number: int, file: File) -> bool:
        return self.line > 0 and (number, [*file.parts]) == (self.number, self.names)


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
        raise Invalid("`files_only`, `count_only` and `only_matching` exclude one another.", "Use one of them.")
    found = _Search(starts, query, stop, program)
    return found.tallied(cursor) if query.count_only or query.only_matching else found.page(cursor)


class _Search:
    def __init__(self, starts: Sequence[Readable], query: Query, stop: Stop, program: str | None) -> None:
        self.starts, self.query, self.stop, self.program = starts, query, stop, program
        if not query.pattern:
            raise Invalid("The pattern is empty and would match every line.", "Name some text or expression.")
        _refuse_line_breaks(query)
        self.find: LineSearch = line_search(query.pattern, literal=query.literal, ignore_case=query.ignore_case)
        self.bytes = byte_pattern(query.pattern, literal=query.literal, ignore_case=query.ignore_case)
        self.wide = wide_pattern(query.pattern, literal=query.literal, ignore_case=query.ignore_case)
        self.may_match = byte_search(self.bytes, ignore_case=query.ignore_case)
        self.skipped = Skipped.soon()
        self.searched = 0
        self.hinted_at = False
        self.of_type = globs_of(query.file_type) if query.file_type else []
        self.by_glob = self.chosen_by_glob()
        self.chosen: list[Chooser] = []
        self.scope = [[start.uri for start in starts], *map(str, (query.pattern, query.literal, query.ignore_case))]
        modes = (query.files_only, query.count_only, query.only_matching, query.binary)
        self.scope += [str(value) for value in (query.glob, query.file_type, *modes, query.wanted)]
        self.binaries: list[str] = []
        self.documents = Documents(self.skipped)

    @property
    def names(self) -> list[str]:
        """Globs of the names of all files that are searched; none when they may have any."""
        glob = self.query.glob or "!"
        return self.of_type or ([] if glob.startswith("!") else bare_names(glob))

    def chosen_by_glob(self) -> list[list[Chooser]]:
        """For each start, what a path must fit."""
        if self.query.glob is None:
            return [[] for _ in self.starts]
        glob = self.query.glob.removeprefix("!")
        found = choosers(self.starts, glob)
        if glob == self.query.glob:
            return [[choose] for choose in found]
        return [[lambda path, choose=choose: not choose(path)] for choose in found]

    def page(self, cursor: str | None) -> Matches:
        query = self.query
        resume = None if cursor is None else _Resume(*Cursor.decode("search", cursor, self.scope))
        files: list[tuple[str, Sequence[Match], bool]] = []
        room, size = query.limit, self.room()
        end: list[object] | None = None
        total = _Total() if resume is None else _Total(*resume.total)
        rest = self.files(resume)
        for number, file in rest:
            line, before = (resume.line, resume.before) if resume and resume.lies_in(number, file) else (0, 0)
            found = self.hits(file, line, before)
            if not found.lines:
                continue
            if end is not None:
                # Only now is it sure that there is more.
                if resume is None:
                    self.count([(number, file)], total)
                    self.count(rest, total, budget=True)
                return self.answer(files, total, [*end, total.as_list])
            lines: Sequence[Match] = list[Match]()
            taken, cut, more = 1, False, False
            if not query.files_only:
                lines, taken, cut = found.first(room, size)
                more = found.more and not cut
            files.append((file.path, lines, more))
            if resume is None:
                if more or cut:
                    self.count([(number, file)], total)
                else:
                    total.lines, total.files = total.lines + taken, total.files + 1
            room -= taken
            size -= _bytes(file.path, lines)
            if cut:
                end = [number, file.parts, lines[-1].line, before + taken]
                if resume is None:
                    self.count(rest, total, budget=True)
                return self.answer(files, total, [*end, total.as_list])
            if room <= 0 or size <= 0:
                end = [number, file.parts, 0, 0]
        return self.answer(files, total, None)

    def room(self) -> int:
        """Bytes that a page may take: enough that the usual limit of lines holds, with context too."""
        if self.query.files_only:
            return page_bytes(self.query.limit)
        return max(DEFAULT_PAGE_BYTES, self.query.limit * _BYTES_PER_MATCH)

    def answer(
        self, files: Sequence[tuple[str, Sequence[Match], bool]], total: _Total, end: list[object] | None
    ) -> Matches:
        cursor = None if end is None else Cursor.encode("search", end, self.scope)
        counted = (total.lines, total.files, total.at_least)
        return Matches(tuple(files), self.notes(nothing=not total.files), cursor, counted)

    def tallied(self, cursor: str | None) -> Tallies:
        """How many lines match in each file, or what matched, each text once; all files are searched for each page."""
        query = self.query
        begin = 0 if cursor is None else int(Cursor.decode("tally", cursor, self.scope))
        texts = Counter[bytes]() if query.only_matching else None
        counts: list[tuple[str, int]] = []
        total = _Total()
        for _, file in self.files(None):
            if lines := self.count_one(file, texts):
                counts.append((file.path, lines))
                total.lines, total.files = total.lines + lines, total.files + 1
        if texts is not None:
            ordered = sorted(texts.items(), key=lambda item: (-item[1], item[0]))
            counts = [(clipped(0, text, 0).text, number) for text, number in ordered]
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
            "text" if query.only_matching else "file",
            len(counts),
            (total.lines, total.files),
            self.notes(nothing=not total.files),
            Cursor.encode("tally", end, self.scope) if end < len(counts) else None,
        )

    def notes(self, *, nothing: bool) -> list[str]:
        """What could not be searched; when nothing was found also what was left out."""
        notes = self.skipped.notes()
        if not nothing:
            return notes
        if self.hinted_at:
            self.leave_out()
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

    def leave_out(self) -> None:
        """Learn what was left out where ripgrep did the walking."""
        self.skipped.hidden = self.skipped.ignored = 0
        self.skipped.named.clear()
        for start in self.starts:
            if stat.S_ISDIR(status(start).st_mode):
                for _ in walk(start, self.query.wanted, self.stop, self.skipped):
                    pass

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
            return len(self.hits(file, 0, 0).lines)

        def work(fd: int) -> tuple[int, Hits]:
            return tally(fd, self.find, self.stop, self.may_match, binary=self.query.binary, texts=texts)

        found = self.opened_as(file, work)
        return 0 if found is None else found[0]

    def hits(self, file: File, after_line: int, before: int) -> Hits:
        self.stop.check()
        self.searched += 1
        if not self.searched % 100:
            tell(self.searched, None, f"{self.searched:,} files searched")
        most = 1 if self.query.files_only else self.query.max_per_file - before
        context = 0 if self.query.files_only else self.query.context

        def work(fd: int) -> tuple[int, Hits]:
            found = grep(fd, self.find, context, most, after_line, self.stop, self.may_match, binary=self.query.binary)
            return 0, found

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
            self.skipped.add("line too long to search", file.path)
        if found.binary:
            if file.parts:
                self.binaries.append(file.path)
            else:
                self.skipped.add("binary, not searched: set include_binary, or use read_media", file.path)
        return count, found

    def files(self, resume: _Resume | None) -> Iterator[tuple[int, File]]:
        """The files to search, in order, behind that of `resume`; that one too when part of it is left."""
        for number, start in enumerate(self.starts):
            self.chosen = [*self.by_glob[number], *([chooser(self.of_type)] if self.of_type else [])]
            if resume is None or number > resume.number:
                for file in self.below(start, None):
                    yield number, file
            elif number == resume.number:
                after = tuple(resume.names)
                if resume.line and is_inside(start):
                    for file in self.archived(start, after, again=True):
                        yield number, file
                    continue
                if resume.line:
                    above = start.at(start.root, (*start.parts, *after[:-1]))
                    yield number, File(after, above, after[-1]) if after else File((), start)
                for file in self.below(start, after):
                    yield number, file

    def below(self, start: Readable, after: tuple[str, ...] | None) -> Iterator[File]:
        if is_inside(start):
            yield from self.archived(start, after)
            return
        if stat.S_ISREG(status(start).st_mode):
            if after is None:
                yield File((), start)
            return
        own = _OWN_FILES if self.program else None
        for visit in walk(start, self.query.wanted, self.stop, self.skipped, after):
            for file in self.visited(visit):
                if own is not None and (own := own - 1) < 0:
                    hinted = self.hinted(start, file.parts)
                    if hinted is not None:
                        yield from hinted
                        return
                    own = None
                yield file

    def archived(self, start: Readable, after: tuple[str, ...] | None, *, again: bool = False) -> Iterator[File]:
        """The files in an archive, in order; behind `after`, or from there on."""
        inside, cut = members(start, self.stop)
        if cut:
            self.skipped.add(f"searched in part, {cut}", spoken(start))
        found = {item.place.parts[len(start.parts) :] or (item.place.name,): item for item in inside}
        for parts, member in sorted(found.items(), key=lambda item: order(item[0])):
            is_next = after is None or order(parts) > order(after) or (again and parts == after)
            if is_next and self.chooses("/".join(parts)):
                yield File(parts, member.place, data=member.data)

    def visited(self, visit: Visit) -> Iterator[File]:
        prefix = "".join(part + "/" for part in visit.parts)
        place = visit.folder.place
        for name in visit.files:
            if name in visit.links or name in visit.others or not self.chooses(prefix + name):
                continue
            if place.policy.protected((*place.parts, name)):
                self.skipped.add("protected", shown(place, name))
                continue
            if name in visit.away:
                self.skipped.add(AWAY, shown(place, name))
                continue
            yield File((*visit.parts, name), place, name, visit.folder)

    def chooses(self, path: str) -> bool:
        return not self.chosen or all(choose(path) for choose in self.chosen)

    def hinted(self, start: Readable, begin: tuple[str, ...]) -> Iterator[File] | None:
        """The files from `begin` on that ripgrep takes for matching; None when it can't tell."""
        query = self.query
        with open_folder(start) as folder:
            top = folder.place
            sight = Sight(top, query.wanted)
            if self.bytes is None or self.program is None or sight.may_bring_back:
                return None
            hint = ripgrep.Hint(self.bytes, self.wide, query.ignore_case, query.wanted, self.names)
            told = ripgrep.candidates(self.program, folder.fd, hint, self.stop)
            # What is in documents ripgrep can't tell.
            by_name = hint.for_all(SUFFIXES)
            if told is not None and by_name is not None:
                documents = ripgrep.candidates(self.program, folder.fd, by_name, self.stop)
                told = documents and ([*{*told[0], *documents[0]}], told[1])
        if told is None:
            return None
        self.hinted_at = True
        found, unread = told
        for path in unread:
            self.skipped.add("permission denied", shown(top, path))
        return self.opened(top, sorted((p for p in found if order(p) >= order(begin)), key=order), sight)

    def opened(self, top: Readable, found: list[tuple[str, ...]], sight: Sight) -> Iterator[File]:
        for parts in found:
            if self.chooses("/".join(parts)):
                with suppress(Problem):  # removed or protected since
                    if sight.sees(parts):
                        yield File(parts, top.at(top.root, (*top.parts, *parts[:-1])), parts[-1])


def _bytes(path: str, lines: Sequence[Match]) -> int:
    """About how much of a page a file takes, with its lines or by its path alone."""
    return sum(len(match.text) + len(path) for match in lines) or len(path) + 1


def _refuse_line_breaks(query: Query) -> None:
    """Return for a pattern that can match within one line.

    Raises:
        Invalid: it asks for a line break, or for NUL, which no text holds.
    """
    outside = query.pattern if query.literal else _CLASS.sub("", query.pattern)
    if "\0" in outside:
        raise Invalid("The pattern holds a NUL, which no text file does.", "Leave it out.")
    if "\n" in outside or (not query.literal and _LINE_BREAK.search(outside)):
        raise Invalid(
            "The pattern asks for a line break, and a match lies within one line.",
            "Search for one of the lines; `context` shows those around it.",
        )
