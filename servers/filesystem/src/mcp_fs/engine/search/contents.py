"""Lines of files that match, complete and in one order.

The walk searches the first files itself: common words fill a page there, within milliseconds. When they did
not, ripgrep, if there is one, says which of the remaining files are worth opening.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from mcp_batteries.errors import Invalid, NotFound, Problem
from mcp_batteries.limits import Cursor, Stop
from mcp_fs.engine.files.handles import Folder, open_file, open_folder, status
from mcp_fs.engine.filetypes import globs_of
from mcp_fs.engine.search import ripgrep
from mcp_fs.engine.search.grep import Hits, grep
from mcp_fs.engine.search.prefilter import byte_pattern, wide_pattern
from mcp_fs.engine.search.regex import LineSearch, byte_search, line_search
from mcp_fs.engine.search.selection import Chooser, bare_names, chooser, choosers
from mcp_fs.engine.walk import Filter, Sight, Skipped, Visit, order, page_bytes, shown, spoken, walk
from mcp_fs.models import Match, Matches
from mcp_fs.policy import Readable

__all__ = ["Query", "search"]

_OWN_FILES = 400
_BYTES_PER_MATCH = 100
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
# What may hold the letters of a line break without asking for one: a class, a backslash that is itself escaped.
_CLASS = re.compile(r"\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|\\[^nx0]", re.DOTALL)
_LINE_BREAK = re.compile(r"\\(?:n|x0[aA]|x\{0*[aA]\}|012)")


@dataclass(slots=True)  # not frozen: there is one for every file, and freezing trebles its price
class _File:
    """A file to search.

    Attributes:
        parts: names below the start.
        place: the folder it lies in, or the file itself when `name` is empty.
        folder: the same, open; None when it is to be opened anew.
    """

    parts: tuple[str, ...]
    place: Readable
    name: str = ""
    folder: Folder[Readable] | None = None

    @property
    def path(self) -> str:
        return shown(self.place, self.name) if self.name else spoken(self.place)

    def open(self) -> int:
        if self.folder is not None:
            return self.folder.open(self.name, _READ)
        with open_file(self.place / self.name if self.name else self.place) as file:
            return os.dup(file.fileno())


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched for.

    Attributes:
        pattern: RE2 syntax, or the text itself when `literal`.
        context: lines shown before and after each match.
        glob: paths to search; without a slash names; a `!` in front leaves out instead.
        file_type: name of a kind of file (`filetypes`).
        max_per_file: matching lines shown of one file.
        limit: matching lines, or files when `files_only`, in one answer.
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
    wanted: Filter = field(default_factory=Filter)


@dataclass(frozen=True, slots=True)
class _Resume:
    """Where a page ended.

    Attributes:
        number: of the start.
        names: of the file, below the start.
        line: last line shown when there are more in the file, else 0.
        before: matches shown of that file.
    """

    number: int
    names: list[str]
    line: int
    before: int

    def lies_in(self, number: int, file: _File) -> bool:
        return self.line > 0 and (number, [*file.parts]) == (self.number, self.names)


def search(
    starts: Sequence[Readable], query: Query, cursor: str | None, stop: Stop, program: str | None = None
) -> Matches:
    """A page of the lines that match in files at or below `starts`.

    Args:
        cursor: where the page before ended.
        program: ripgrep, to be faster in large folders.

    Raises:
        Invalid: the pattern, a glob or the cursor can't be read.
        Problem: a start can't be opened.
    """
    return _Search(starts, query, stop, program).page(cursor)


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
        self.skipped = Skipped()
        self.searched = 0
        self.of_type = globs_of(query.file_type) if query.file_type else []
        self.by_glob = self.chosen_by_glob()
        self.chosen: list[Chooser] = []
        self.scope = [[start.uri for start in starts], *map(str, (query.pattern, query.literal, query.ignore_case))]
        self.scope += [str(value) for value in (query.glob, query.file_type, query.files_only, query.wanted)]

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
        room, size = query.limit, page_bytes(query.limit) if query.files_only else query.limit * _BYTES_PER_MATCH
        end: list[object] | None = None
        for number, file in self.files(resume):
            line, before = (resume.line, resume.before) if resume and resume.lies_in(number, file) else (0, 0)
            found = self.hits(file, line, before)
            if not found.lines:
                continue
            if end is not None:
                # Only now is it sure that there is more.
                return Matches(tuple(files), self.skipped.notes(), Cursor.encode("search", end, self.scope))
            lines: Sequence[Match] = list[Match]()
            taken, cut, more = 1, False, False
            if not query.files_only:
                lines, taken, cut = found.first(room, size)
                more = found.more and not cut
            files.append((file.path, lines, more))
            room -= taken
            size -= _bytes(file.path, lines)
            if cut:
                end = [number, file.parts, lines[-1].line, before + taken]
                return Matches(tuple(files), self.skipped.notes(), Cursor.encode("search", end, self.scope))
            if room <= 0 or size <= 0:
                end = [number, file.parts, 0, 0]
        notes = self.skipped.notes()
        if not self.searched and resume is None and (query.glob or query.file_type):
            notes = [
                *notes,
                "no file fits `glob` or `file_type`: a glob is a whole name or path, as `*.py` or `src/**`",
            ]
        return Matches(tuple(files), notes, None)

    def hits(self, file: _File, after_line: int, before: int) -> Hits:
        self.stop.check()
        self.searched += 1
        if not self.searched % 100:
            self.stop.progress = (self.searched, None, f"{self.searched:,} files searched")
        most = 1 if self.query.files_only else self.query.max_per_file - before
        try:
            fd = file.open()
            try:
                found = grep(fd, self.find, self.query.context, most, after_line, self.stop, self.may_match)
            finally:
                os.close(fd)
        except (FileNotFoundError, NotFound):
            return Hits()  # removed since it was listed
        except (OSError, Problem) as error:
            self.skipped.add((getattr(error, "strerror", None) or "could not be opened").lower(), file.path)
            return Hits()
        if found.too_long:
            self.skipped.add("line too long to search", file.path)
        if found.binary and not file.parts:
            self.skipped.add("binary, not searched: use read_media", file.path)
        return found

    def files(self, resume: _Resume | None) -> Iterator[tuple[int, _File]]:
        """The files to search, in order, behind that of `resume`; that one too when part of it is left."""
        for number, start in enumerate(self.starts):
            self.chosen = [*self.by_glob[number], *([chooser(self.of_type)] if self.of_type else [])]
            if resume is None or number > resume.number:
                for file in self.below(start, None):
                    yield number, file
            elif number == resume.number:
                after = tuple(resume.names)
                if resume.line:
                    above = start.at(start.root, (*start.parts, *after[:-1]))
                    yield number, _File(after, above, after[-1]) if after else _File((), start)
                for file in self.below(start, after):
                    yield number, file

    def below(self, start: Readable, after: tuple[str, ...] | None) -> Iterator[_File]:
        if stat.S_ISREG(status(start).st_mode):
            if after is None:
                yield _File((), start)
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

    def visited(self, visit: Visit) -> Iterator[_File]:
        prefix = "".join(part + "/" for part in visit.parts)
        place = visit.folder.place
        for name in visit.files:
            if name in visit.links or name in visit.others or not self.chooses(prefix + name):
                continue
            if place.policy.protected((*place.parts, name)):
                self.skipped.add("protected", shown(place, name))
                continue
            yield _File((*visit.parts, name), place, name, visit.folder)

    def chooses(self, path: str) -> bool:
        return not self.chosen or all(choose(path) for choose in self.chosen)

    def hinted(self, start: Readable, begin: tuple[str, ...]) -> Iterator[_File] | None:
        """The files from `begin` on that ripgrep takes for matching; None when it can't tell."""
        query = self.query
        with open_folder(start) as folder:
            top = folder.place
            sight = Sight(top, query.wanted)
            if self.bytes is None or self.program is None or sight.may_bring_back:
                return None
            hint = ripgrep.Hint(self.bytes, self.wide, query.ignore_case, query.wanted, self.names)
            told = ripgrep.candidates(self.program, folder.fd, hint, self.stop)
        if told is None:
            return None
        found, unread = told
        for path in unread:
            self.skipped.add("permission denied", shown(top, path))
        return self.opened(top, sorted((p for p in found if order(p) >= order(begin)), key=order), sight)

    def opened(self, top: Readable, found: list[tuple[str, ...]], sight: Sight) -> Iterator[_File]:
        for parts in found:
            if self.chooses("/".join(parts)):
                with suppress(Problem):  # removed or protected since
                    if sight.sees(parts):
                        yield _File(parts, top.at(top.root, (*top.parts, *parts[:-1])), parts[-1])


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
