"""Down a folder in one fixed order, by handles: the files of a folder by name, then its folders by name.

One thread: the interpreter's lock makes several slower. A folder is read whole before anything in it is opened, and
closed before its folders are, so that neither depth nor width costs descriptors. Each is opened by its whole path: a
folder above it that is held open could be moved out of the served one meanwhile, and what is in it be read there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field

from mcp_batteries.errors import Problem, reason
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, Stop
from mcp_fs.engine.handles.file_attributes import away_among, hidden_among
from mcp_fs.engine.handles.path_opening import Folder, open_folder
from mcp_fs.engine.patterns.ignore import Rules
from mcp_fs.models import is_one_line
from mcp_fs.paths import split
from mcp_fs.policy import Readable

__all__ = [
    "AWAY",
    "WALK_SECONDS",
    "Filter",
    "Sight",
    "Skipped",
    "Visit",
    "order",
    "page_bytes",
    "shown",
    "spoken",
    "visited",
    "walk",
    "walked_apart",
    "without",
]

WALK_SECONDS = 30.0
"""After which an answer tells what was found so far: half of what a call may take."""
AWAY = "not downloaded yet, so not searched; `read_text` fetches it"
_MOST_NAMED = 5
_USUAL = 200
_NO_RULES = Rules(((),) * 4, False)


@dataclass(frozen=True, slots=True)
class Filter:
    """What a walk leaves out.

    Attributes:
        hidden: whether names that begin with a dot are walked too.
        ignored: whether ignored entries are walked too.
    """

    hidden: bool = False
    ignored: bool = False


@dataclass(slots=True)
class Skipped:
    """What was not looked into, so that no answer seems complete that is not.

    Attributes:
        until: when, by `time.monotonic`, a walk ends with what it has found; None for a walk that must be complete.
        concerns: whether what was left out matters, by its path below the start, which ends in a slash for a folder.
    """

    until: float | None = None
    reasons: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    hidden: int = 0
    ignored: int = 0
    named: list[str] = field(default_factory=list[str])
    concerns: Callable[[str], bool] | None = None

    @classmethod
    def soon(cls) -> Skipped:
        """For walks that end after `WALK_SECONDS`."""
        return cls(time.monotonic() + WALK_SECONDS)

    def is_late(self) -> bool:
        return self.until is not None and time.monotonic() > self.until

    @staticmethod
    def late() -> str:
        """The reason for what was left when time was up."""
        return f"not reached within {WALK_SECONDS:g} s"

    def add(self, reason: str, path: str) -> None:
        paths = self.reasons.setdefault(reason, [])
        if not paths or paths[-1] != path:  # a file that is searched and then counted comes twice
            paths.append(path)

    def leave_out(self, visit: Visit) -> None:
        """Count the hidden and ignored entries of a folder; a folder among them counts once, with all that is in it."""
        for name, is_folder in visit.left_out:
            if self.concerns is not None and not self.concerns("/".join((*visit.parts, name)) + "/" * is_folder):
                continue
            if name in visit.hidden:
                self.hidden += 1
            else:
                self.ignored += 1
            if len(self.named) < _MOST_NAMED:
                self.named.append(shown(visit.folder.place, name) + "/" * is_folder)

    def left_out(self, *, named: bool) -> list[str]:
        """One phrase about hidden and ignored entries, the first few named; none when nothing was left out."""
        kinds = [(number, kind) for number, kind in ((self.hidden, "hidden"), (self.ignored, "ignored")) if number]
        if not kinds:
            return []
        said = "left out " + " and ".join(f"{number:,} {kind}" for number, kind in kinds)
        if named:
            more = ", ..." if self.hidden + self.ignored > len(self.named) else ""
            flags = " and ".join(f"include_{kind}" for _, kind in kinds)
            said += f" ({', '.join(self.named)}{more}); set {flags}"
        return [said]

    def notes(self) -> list[str]:
        """One phrase for each reason, the first few paths named."""
        notes: list[str] = []
        for why, paths in self.reasons.items():
            named = ", ".join(paths[:_MOST_NAMED])
            more = f" and {len(paths) - _MOST_NAMED:,} more" if len(paths) > _MOST_NAMED else ""
            notes.append(f"{why}: {named}{more}")
        return notes


@dataclass(slots=True)
class Visit:
    """One folder on the way, open while it is the latest.

    Attributes:
        folder: its handle.
        parts: names from the start of the walk down to it.
        files: names of what is not a folder, sorted.
        links: those of `files` that are symbolic links.
        others: those of `files` that are neither regular files nor links.
        folders: names of the folders that are walked next, sorted; take names out to leave them out.
        left_out: hidden and ignored entries.
        hidden: names of the hidden entries, where they are not wanted.
        away: those of `files` that reading would fetch from elsewhere; their names are known, their contents are not.
    """

    folder: Folder[Readable]
    parts: tuple[str, ...]
    files: list[str]
    links: frozenset[str]
    others: frozenset[str]
    folders: list[str]
    left_out: list[tuple[str, bool]]
    hidden: Set[str]
    away: Set[str]


def walk(
    start: Readable,
    wanted: Filter,
    stop: Stop,
    skipped: Skipped,
    after: tuple[str, ...] | None = None,
) -> Iterator[Visit]:
    """Visit `start` and the folders below it.

    Args:
        wanted: what is left out; `start` itself never is. Links are named and not followed.
        skipped: learns of folders that can't be opened.
        after: names (below `start`) of a file: only what comes after it in `order` is visited.

    Raises:
        Problem: `start` can't be opened.
    """
    folder, parts = open_folder(start.to_read()), tuple[str, ...]()
    todo: list[tuple[Readable, tuple[str, ...], Rules | None]] = []
    rules: Rules | None = None
    while True:
        with folder:
            stop.check()
            if not parts and not wanted.ignored:
                rules = Rules.above(folder.place)
            try:
                visit, inner = visited(folder, parts, wanted, rules)
            except OSError as error:
                if not parts:
                    raise
                skipped.add(_reason(error), shown(folder.place.parent, folder.place.name))
            else:
                skipped.leave_out(visit)
                if after is not None:
                    _cut(visit, after)
                yield visit
                for name in reversed(visit.folders):
                    try:
                        todo.append((folder.place / name, (*parts, name), inner))
                    except Problem:
                        skipped.add("protected", shown(folder.place, name))
        if todo and skipped.is_late():
            skipped.reasons[skipped.late()] = [spoken(place) for place, _, _ in reversed(todo)]
            return
        following = _next(todo, skipped)
        if following is None:
            return
        folder, parts, rules = following


def without(visit: Visit, apart: Set[tuple[str, ...]]) -> Visit:
    """`visit`, after which the folders `apart`, by their names below the start, are not walked."""
    if apart:
        visit.folders = [name for name in visit.folders if (*visit.parts, name) not in apart]
    return visit


def walked_apart(starts: Sequence[Readable], start: Readable) -> frozenset[tuple[str, ...]]:
    """Those of `starts` that lie below `start`, by their names below it: what is in them would be told twice."""
    above = split(os.path.join(start.root.real, *start.parts))
    paths = [split(os.path.join(other.root.real, *other.parts)) for other in starts]
    return frozenset(path[len(above) :] for path in paths if len(path) > len(above) and path[: len(above)] == above)


def order(parts: tuple[str, ...]) -> tuple[tuple[bool, str], ...]:
    """The sort key of a file's names below the start, in the order of `walk`."""
    return (*((True, part) for part in parts[:-1]), (False, parts[-1]))


def page_bytes(limit: int) -> int:
    """Bytes that a page of `limit` paths may take: the usual ones, and more for who asks for more than 200 paths."""
    return DEFAULT_PAGE_BYTES * max(limit, _USUAL) // _USUAL


def shown(folder: Readable, name: str) -> str:
    """The path of an entry as tools take it, on one line: its URI where the text would not do."""
    display = folder.display
    if name.isprintable() and display.isprintable() and not display.startswith("file://"):
        return name if display == "." else f"{display}/{name}"
    path = name if display == "." else f"{display}/{name}"
    return path if is_one_line(path) and not display.startswith("file://") else folder.uri_of(name)


def spoken(place: Readable) -> str:
    """The path of `place` as tools take it, on one line: its URI where the text would not do."""
    return place.display if is_one_line(place.display) else place.uri


class Sight:
    """Whether a walk from `start` would come to a file, told without walking."""

    def __init__(self, start: Readable, wanted: Filter) -> None:
        self._start, self._wanted = start, wanted
        above = None if wanted.ignored else Rules.above(start)
        self._above = above
        self._seen: dict[tuple[str, ...], Rules | None] = {}
        self.may_bring_back = above is not None and above.brings_back
        """True when rules above `start` may show what those below it alone would leave out."""

    def sees(self, parts: tuple[str, ...]) -> bool:
        """True when the file `parts` below the start would be visited now."""
        if self._wanted.hidden and self._wanted.ignored:
            return True
        for depth in range(len(parts)):
            rules = self._rules(parts[:depth])
            prefix = "/".join((*self._start.parts, *parts[:depth], ""))
            name = parts[depth]
            hidden = {name} if name.startswith(".") and not self._wanted.hidden else set[str]()
            if rules.left_out(prefix, [name], depth < len(parts) - 1, hidden):
                return False
        return True

    def _rules(self, parts: tuple[str, ...]) -> Rules:
        if self._wanted.ignored:
            return _NO_RULES
        rules = self._seen.get(parts)
        if rules is None:
            above = self._rules(parts[:-1]) if parts else self._above
            place = self._start.at(self._start.root, (*self._start.parts, *parts))
            rules = self._seen[parts] = Rules.in_folder(place, above)
        return rules


def _next(
    todo: list[tuple[Readable, tuple[str, ...], Rules | None]], skipped: Skipped
) -> tuple[Folder[Readable], tuple[str, ...], Rules | None] | None:
    while todo:
        place, parts, rules = todo.pop()
        try:
            return open_folder(place), parts, rules
        except Problem:
            skipped.add("could not be opened", shown(place.parent, place.name))
    return None


def visited(
    folder: Folder[Readable], parts: tuple[str, ...], wanted: Filter, above: Rules | None
) -> tuple[Visit, Rules | None]:
    """What is directly in a folder that is reached as `parts`, and the rules that hold in it."""
    folders: list[str] = []
    links: set[str] = set()
    others: set[str] = set()
    entries = folder.entries()
    files = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
    for entry in entries if len(files) < len(entries) else ():
        if entry.is_dir(follow_symlinks=False):
            folders.append(entry.name)
        elif not entry.is_file(follow_symlinks=False):
            files.append(entry.name)
            (links if entry.is_symlink() else others).add(entry.name)
    files.sort()
    folders.sort()
    dotted = hidden_among(entries, files, folders)
    hidden = set[str]() if wanted.hidden else dotted
    rules = None if wanted.ignored else Rules.of(folder, dotted, above)
    left_out: list[tuple[str, bool]] = []
    if rules is not None or not wanted.hidden:
        prefix = "/".join((*folder.place.parts, ""))
        for names, are_folders in ((files, False), (folders, True)):
            gone = (rules or _NO_RULES).left_out(prefix, names, are_folders, hidden)
            if gone:
                left_out += ((name, are_folders) for name in sorted(gone))
                names[:] = [name for name in names if name not in gone]
    return Visit(
        folder, parts, files, frozenset(links), frozenset(others), folders, left_out, hidden, away_among(entries)
    ), rules


def _cut(visit: Visit, after: tuple[str, ...]) -> None:
    depth = len(visit.parts)
    if visit.parts != after[:depth]:
        return
    if depth == len(after) - 1:
        visit.files = [name for name in visit.files if name > after[-1]]
    else:
        visit.files = []
        visit.folders = [name for name in visit.folders if name >= after[depth]]


def _reason(error: OSError) -> str:
    return "could not be read" if error.strerror is None else reason(error).lower()
