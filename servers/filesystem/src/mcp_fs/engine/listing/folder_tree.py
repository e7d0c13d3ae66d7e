"""A folder's tree, folded to a size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field

from mcp_batteries.errors import Problem
from mcp_batteries.limits import Stop
from mcp_batteries.progress import tell
from mcp_fs.engine.handles.path_opening import Folder, open_folder
from mcp_fs.engine.listing.walk import Filter, Skipped, shown, spoken, visited
from mcp_fs.engine.patterns.ignore import Rules
from mcp_fs.models import Tree, counted
from mcp_fs.policy import Readable

__all__ = ["list_tree"]

_MOST_NAMED = 10
_LEAST_RUN = 11
"""Numbered files of which only the first and the last are named. Counted without zeros in front, no ten more follow."""
_NUMBERED = re.compile(r"(.*?)([0-9]+)([^0-9]*(?:\.\w{1,5})?)", re.DOTALL)
_Row = tuple[str, str, int]
"""A file's name twice, and 1; or the first and the last of a run, and how many there are."""


def list_tree(
    place: Readable, stop: Stop, *, depth: int = 3, wanted: Filter | None = None, max_bytes: int = 10_000
) -> Tree:
    """The folder's tree within `max_bytes`: level by level until they are spent, the rest folded.

    A folder that is folded is listed, so that it says what is directly in it, and never walked: a tree costs what it
    shows. Hidden and ignored entries that are not wanted are named and marked.

    Raises:
        Problem: the folder can't be opened.
    """
    grower = _Grower(wanted or Filter(), depth, max_bytes, stop)
    with open_folder(place) as folder:
        top = _Branch(folder.place, (), spoken(place).rstrip("/") + "/")
        grower.list(top, folder, None if grower.wanted.ignored else Rules.above(folder.place))
    grower.grow(top)
    lines, branches = tuple(_drawn(top)), list(_all_drawn(top))
    folded = [branch for branch in branches if not branch.open and branch.size]
    return Tree(
        spoken(place),
        lines,
        sum(branch.own for branch in branches),
        sum(len(branch.names_of_folders) for branch in branches),
        len(folded),
        is_whole=all(len(branch.branches) == len(branch.names_of_folders) for branch in branches)
        and not grower.skipped.reasons,
        notes=grower.skipped.notes(),
    )


@dataclass(slots=True)
class _Branch:
    """A folder of a tree.

    Attributes:
        place: where it is; None where that is protected.
        parts: names from the start down to it.
        label: its path, with a slash.
        rows: its files; `links` are those that are links.
        names_of_folders: those directly in it.
        branches: the first of them, as many as are drawn.
        own: files directly in it.
        open: whether its contents are drawn.
        shown: how many of the rows are drawn.
        left_out: hidden and ignored entries directly in it; `said_left_out` names the first.
        unseen: why it is not known what is in it.
    """

    place: Readable | None
    parts: tuple[str, ...]
    label: str
    rows: list[_Row] = field(default_factory=list[_Row])
    links: frozenset[str] = frozenset()
    names_of_folders: list[str] = field(default_factory=list[str])
    branches: list[_Branch] = field(default_factory=list["_Branch"])
    rules: Rules | None = None
    own: int = 0
    open: bool = False
    shown: int = 0
    left_out: int = 0
    said_left_out: str = ""
    unseen: str = ""

    def label_of(self, row: _Row) -> str:
        assert self.place is not None
        first, last, number = row
        label = _label(self.place, first, self.links)
        return label if number == 1 else f"{label} ... {_label(self.place, last, self.links)} ({number:,} files)"

    @property
    def size(self) -> int:
        return self.own + len(self.names_of_folders)

    @property
    def folded_line(self) -> str:
        numbers = ((self.own, "file"), (len(self.names_of_folders), "folder"))
        facts = [counted(number, what) for number, what in numbers if number]
        if self.left_out:
            facts.append(f"{self.left_out:,} left out")
        facts += [self.unseen] if self.unseen else []
        return f"{self.label} ({', '.join(facts)})" if facts else self.label


class _Grower:
    """Opens folders, level by level, as long as their lines fit; half of what is left each time is for their files."""

    def __init__(self, wanted: Filter, depth: int, max_bytes: int, stop: Stop) -> None:
        self.wanted, self.skipped = wanted, Skipped.soon()
        self._depth, self._stop = depth, stop
        self._left, self._most, self._listed = max_bytes, max_bytes, 0

    def grow(self, top: _Branch) -> None:
        self._left -= _bytes(top.folded_line) + 200  # for the first line
        level, drawn = [top], list[_Branch]()
        while level:
            opened = [branch for branch in level if self._open(branch, always=branch is top)]
            level = [inner for branch in opened for inner in branch.branches]
            drawn += opened
            self._fill(opened, self._left // 2)
        self._fill(drawn, self._left)

    def _open(self, branch: _Branch, *, always: bool) -> bool:
        if branch.unseen or len(branch.parts) >= self._depth:
            return False
        inner = [self._branch(branch, name) for name in branch.names_of_folders[: self._most]]
        own = _bytes(_more(branch.own, "file")) + _bytes(branch.said_left_out) + 2
        if own + sum(_bytes(one.label) for one in inner) > self._left and not always:
            return False
        self._left -= own
        for one in inner:
            self._look(one, branch.rules)
            if (cost := _bytes(one.folded_line)) > self._left:
                self._left -= _bytes(_more(len(inner), "folder"))
                break
            self._left -= cost
            branch.branches.append(one)
        branch.open = True
        return True

    def _fill(self, branches: list[_Branch], left: int) -> None:
        """Show the files of folders, of each as many as fit into its share; what some don't need, others get."""
        wants = [(sum(len(row[0]) for row in branch.rows[branch.shown :]), branch) for branch in branches]
        for number, (_, branch) in enumerate(sorted(wants, key=lambda want: want[0])):
            share = left // (len(wants) - number)
            for row in branch.rows[branch.shown :]:
                if (cost := _bytes(branch.label_of(row)) + 2) > share:
                    break
                share, left, self._left = share - cost, left - cost, self._left - cost
                branch.shown += 1
                if branch.shown == len(branch.rows):  # there are no more to tell of
                    self._left += _bytes(_more(branch.own, "file"))

    def list(self, branch: _Branch, folder: Folder[Readable], above: Rules | None) -> None:
        self._stop.check()
        self._listed += 1
        tell(self._listed, None, f"{self._listed:,} folders seen")
        visit, branch.rules = visited(folder, branch.parts, self.wanted, above)
        branch.own, branch.left_out, branch.names_of_folders = len(visit.files), len(visit.left_out), visit.folders
        if len(branch.parts) < self._depth:
            branch.rows, branch.links = _rows(visit.files, visit.links), visit.links
            if visit.left_out:
                branch.said_left_out = _left_out(folder.place, visit.left_out)

    def _branch(self, above: _Branch, name: str) -> _Branch:
        assert above.place is not None
        label, parts = shown(above.place, name) + "/", (*above.parts, name)
        try:
            return _Branch(above.place / name, parts, label)
        except Problem:
            return _Branch(None, parts, label, unseen="protected")

    def _look(self, branch: _Branch, rules: Rules | None) -> None:
        if branch.place is None:
            self.skipped.add("protected", branch.label.rstrip("/"))
            return
        if self.skipped.is_late():
            branch.unseen = "not reached"
            self.skipped.add(self.skipped.late(), branch.label.rstrip("/"))
            return
        try:
            with open_folder(branch.place) as folder:
                self.list(branch, folder, rules)
        except (OSError, Problem):
            branch.unseen = "could not be opened"
            self.skipped.add(branch.unseen, branch.label.rstrip("/"))


def _more(number: int, noun: str) -> str:
    return f"  ({counted(number, f'more {noun}')})"


def _label(above: Readable, name: str, links: frozenset[str]) -> str:
    text = name if name.isprintable() else shown(above, name)
    return f"{text} (link)" if name in links else text


def _rows(names: Sequence[str], links: Set[str]) -> list[_Row]:
    """Files, of which those that are numbered in turn, none left out, are one row."""
    runs: list[list[str]] = []
    for name in names:
        before = runs[-1][-1] if runs else ""
        if len(name) == len(before) and name == _following(before) and not links & {name, before}:
            runs[-1].append(name)
        else:
            runs.append([name])
    return [
        row
        for run in runs
        for row in ([(run[0], run[-1], len(run))] if len(run) >= _LEAST_RUN else [(name, name, 1) for name in run])
    ]


def _following(name: str) -> str | None:
    """The name whose number is one more."""
    if (found := _NUMBERED.fullmatch(name)) is None:
        return None
    before, number, after = found.groups()
    return f"{before}{int(number) + 1:0{len(number)}}{after}"


def _left_out(above: Readable, entries: list[tuple[str, bool]]) -> str:
    named = [_label(above, name, frozenset()) + "/" * is_folder for name, is_folder in entries[:_MOST_NAMED]]
    more = f" and {len(entries) - _MOST_NAMED:,} more" if len(entries) > _MOST_NAMED else ""
    return f"(left out: {', '.join(named)}{more})"


def _drawn(branch: _Branch) -> Iterator[str]:
    if not branch.open:
        yield branch.folded_line
        return
    yield branch.label
    for row in branch.rows[: branch.shown]:
        yield f"  {branch.label_of(row)}"
    if more := branch.own - sum(number for _, _, number in branch.rows[: branch.shown]):
        yield _more(more, "file")
    if branch.said_left_out:
        yield f"  {branch.said_left_out}"
    if more := len(branch.names_of_folders) - len(branch.branches):
        yield _more(more, "folder")
    for inner in branch.branches:
        yield from _drawn(inner)


def _all_drawn(branch: _Branch) -> Iterator[_Branch]:
    yield branch
    for inner in branch.branches if branch.open else ():
        yield from _all_drawn(inner)


def _bytes(line: str) -> int:
    return len(line.encode("utf-8", "replace")) + 1
