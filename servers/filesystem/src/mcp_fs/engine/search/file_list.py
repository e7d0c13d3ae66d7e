"""Chooses the files to search, in one order.

The walk brings the first files itself: common words fill a page there, within milliseconds. When they did not,
ripgrep, if there is one, says which of the remaining files are worth opening.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from mcp_batteries.errors import Problem
from mcp_batteries.limits import Stop
from mcp_fs.engine.document_kinds import SUFFIXES
from mcp_fs.engine.documents.content import is_inside, members
from mcp_fs.engine.handles.path_opening import open_folder, status
from mcp_fs.engine.listing.selection import Chooser, bare_names, chooser, choosers, leaving_out, of_files
from mcp_fs.engine.listing.walk import (
    AWAY,
    Sight,
    Skipped,
    Visit,
    order,
    shown,
    spoken,
    walk,
    walked_apart,
    without,
)
from mcp_fs.engine.patterns.prefilter import byte_pattern, wide_pattern
from mcp_fs.engine.search import ripgrep
from mcp_fs.engine.search.file_types import globs_of
from mcp_fs.engine.search.query import Query
from mcp_fs.engine.search.sources import File
from mcp_fs.policy import Readable

__all__ = ["Candidates", "Position"]

_OWN_FILES = 400


@dataclass(frozen=True, slots=True)
class Position:
    """A file among the candidates.

    Attributes:
        number: of the start.
        names: of the file, below the start.
        unfinished: whether part of it is left to search.
    """

    number: int
    names: tuple[str, ...]
    unfinished: bool


class Candidates:
    """The files at or below `starts` that `query` may match in.

    Args:
        skipped: learns what can't be searched.
        program: ripgrep, to be faster in large folders.

    Attributes:
        bytes: a pattern that fits what `query` fits, and perhaps more, in bytes; None if there is none.
    """

    def __init__(
        self, starts: Sequence[Readable], query: Query, stop: Stop, skipped: Skipped, program: str | None
    ) -> None:
        self._starts, self._query, self._stop, self._skipped, self._program = starts, query, stop, skipped, program
        over_lines, ignore_case = query.several, query.ignore_case
        self.bytes = None if over_lines else byte_pattern(query.pattern, literal=query.literal, ignore_case=ignore_case)
        self._wide = wide_pattern(query.pattern, literal=query.literal, ignore_case=query.ignore_case)
        self._of_type = globs_of(query.file_type) if query.file_type else []
        self._by_glob = self._chosen_by_glob()
        self._chosen: list[Chooser] = []
        self._hinted_at = False

    def files(self, begin: Position | None) -> Iterator[tuple[int, File]]:
        """The files to search, in order, behind `begin`; that one too when part of it is left."""
        for number, start in enumerate(self._starts):
            self._chosen = [*self._by_glob[number], *([chooser(self._of_type)] if self._of_type else [])]
            if begin is None or number > begin.number:
                for file in self._below(start, None):
                    yield number, file
            elif number == begin.number:
                after = begin.names
                if begin.unfinished and is_inside(start):
                    for file in self._archived(start, after, again=True):
                        yield number, file
                    continue
                if begin.unfinished:
                    above = start.at(start.root, (*start.parts, *after[:-1]))
                    yield number, File(after, above, after[-1]) if after else File((), start)
                for file in self._below(start, after):
                    yield number, file

    def leave_out(self) -> None:
        """Learn what was left out where ripgrep did the walking."""
        if not self._hinted_at:
            return
        self._skipped.hidden = self._skipped.ignored = 0
        self._skipped.named.clear()
        for start in self._starts:
            if stat.S_ISDIR(status(start).st_mode):
                for _ in walk(start, self._query.wanted, self._stop, self._skipped):
                    pass

    def _below(self, start: Readable, after: tuple[str, ...] | None) -> Iterator[File]:
        if is_inside(start):
            yield from self._archived(start, after)
            return
        if stat.S_ISREG(status(start).st_mode):
            if after is None:
                yield File((), start)
            return
        own = _OWN_FILES if self._program else None
        apart = walked_apart(self._starts, start)
        for visit in walk(start, self._query.wanted, self._stop, self._skipped, after):
            without(visit, apart)
            for file in self._visited(visit):
                if own is not None and (own := own - 1) < 0:
                    hinted = self._hinted(start, file.parts)
                    if hinted is not None:
                        yield from hinted
                        return
                    own = None
                yield file

    def _archived(self, start: Readable, after: tuple[str, ...] | None, *, again: bool = False) -> Iterator[File]:
        """The files in an archive, in order; behind `after`, or from there on."""
        inside, cut = members(start, self._stop)
        if cut:
            self._skipped.add(f"searched in part, {cut}", spoken(start))
        found = {item.place.parts[len(start.parts) :] or (item.place.name,): item for item in inside}
        for parts, member in sorted(found.items(), key=lambda item: order(item[0])):
            is_next = after is None or order(parts) > order(after) or (again and parts == after)
            if is_next and self._chooses("/".join(parts)):
                yield File(parts, member.place, data=member.data)

    def _visited(self, visit: Visit) -> Iterator[File]:
        prefix = "".join(part + "/" for part in visit.parts)
        place = visit.folder.place
        for name in visit.files:
            if name in visit.links or name in visit.others or not self._chooses(prefix + name):
                continue
            if place.policy.protected((*place.parts, name)):
                self._skipped.add("protected", shown(place, name))
                continue
            if name in visit.away:
                self._skipped.add(AWAY, shown(place, name))
                continue
            yield File((*visit.parts, name), place, name, visit.folder)

    def _chooses(self, path: str) -> bool:
        return not self._chosen or all(choose(path) for choose in self._chosen)

    def _hinted(self, start: Readable, begin: tuple[str, ...]) -> Iterator[File] | None:
        """The files from `begin` on that ripgrep takes for matching; None when it can't tell."""
        query = self._query
        with open_folder(start) as folder:
            top = folder.place
            sight = Sight(top, query.wanted)
            if self.bytes is None or self._program is None or sight.may_bring_back:
                return None
            hint = ripgrep.Hint(self.bytes, self._wide, query.ignore_case, query.wanted, self._names)
            told = ripgrep.candidates(self._program, folder.fd, hint, self._stop)
            # What is in documents ripgrep can't tell.
            by_name = hint.for_all(SUFFIXES)
            if told is not None and by_name is not None:
                documents = ripgrep.candidates(self._program, folder.fd, by_name, self._stop)
                told = documents and ([*{*told[0], *documents[0]}], told[1])
        if told is None:
            return None
        self._hinted_at = True
        found, unread = told
        for path in unread:
            self._skipped.add("permission denied", shown(top, path))
        apart = walked_apart(self._starts, start)
        found = [p for p in found if order(p) >= order(begin) and not any(p[: len(a)] == a for a in apart)]
        return self._opened(top, sorted(found, key=order), sight)

    def _opened(self, top: Readable, found: list[tuple[str, ...]], sight: Sight) -> Iterator[File]:
        for parts in found:
            if self._chooses("/".join(parts)):
                with suppress(Problem):  # removed or protected since
                    if sight.sees(parts):
                        yield File(parts, top.at(top.root, (*top.parts, *parts[:-1])), parts[-1])

    @property
    def _names(self) -> list[str]:
        """Globs of the names of all files that are searched; none when they may have any."""
        glob = self._query.glob or "!"
        return self._of_type or ([] if glob.startswith("!") else bare_names(glob))

    def _chosen_by_glob(self) -> list[list[Chooser]]:
        """For each start, what a path must fit."""
        if self._query.glob is None:
            return [[] for _ in self._starts]
        glob = self._query.glob.removeprefix("!")
        if glob == self._query.glob:
            return [[choose] for choose in choosers(self._starts, of_files(glob))]
        return [[leaving_out(choose, folders=glob.endswith("/"))] for choose in choosers(self._starts, glob)]
