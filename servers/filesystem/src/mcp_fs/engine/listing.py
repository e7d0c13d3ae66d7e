"""What is in a folder: one page of it, or a tree folded to a size.

A page is chosen by a heap, so that a folder of a million entries is never sorted nor held; by name only the
entries shown are looked at more closely.
"""

from __future__ import annotations

import heapq
import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from mcp_batteries.errors import Problem
from mcp_batteries.limits import Cursor, Stop
from mcp_batteries.progress import tell
from mcp_fs.engine.files.handles import Folder, open_folder, status
from mcp_fs.engine.names import folded
from mcp_fs.engine.search.ignore import IGNORE_FILES, Rules
from mcp_fs.engine.walk import Filter, Skipped, Visit, page_bytes, shown, spoken, walk
from mcp_fs.models import Entry, FolderPage, Tree, counted
from mcp_fs.policy import Readable

__all__ = ["Sort", "list_folder", "list_roots", "list_tree", "moment", "names_in"]

Sort = Literal["name", "size", "modified"]

_CHECKED = 1000
_MOST_NAMED = 10
_MOST_COMPLETED = 1000
_KINDS = {stat.S_IFDIR: "folder", stat.S_IFREG: "file", stat.S_IFLNK: "link"}


def list_folder(
    place: Readable,
    stop: Stop,
    *,
    sort: Sort = "name",
    wanted: Filter | None = None,
    sums: bool = False,
    limit: int = 200,
    cursor: str | None = None,
) -> FolderPage:
    """A page of the folder's entries: by name, or the largest or newest first.

    Args:
        sums: whether a folder has the size of all that is in it.

    Raises:
        Invalid: the cursor is none of this listing.
        Problem: the folder can't be opened.
    """
    wanted = wanted or Filter(hidden=True, ignored=True)
    scope = [place.uri, sort, str(wanted), sums]
    after = None if cursor is None else _Key(*Cursor.decode("folder", cursor, scope))
    with open_folder(place) as folder:
        sizes = _Sizes(folder.place, wanted, stop) if sums else None
        seen = _Names(folder, sort, wanted, stop, sizes)
        keys = (key for key in seen if after is None or key > after)
        page = heapq.nsmallest(limit + 1, keys)
        entries = _fitting((_entry(folder, key.name, sizes) for key in page[:limit]), page_bytes(limit))
    last = page[len(entries) - 1] if len(page) > len(entries) else None
    return FolderPage(
        spoken(place),
        entries,
        seen.total,
        sort,
        seen.left_out,
        None if last is None else Cursor.encode("folder", [last.rank, last.name], scope),
    )


def list_roots(places: Sequence[Readable]) -> FolderPage:
    """The served folders, as entries."""
    entries = tuple(Entry(spoken(place), "folder", None, moment(status(place).st_mtime)) for place in places)
    return FolderPage("served folders", entries, len(entries), "name", 0, None)


def names_in(place: Readable, start: str, stop: Stop) -> list[tuple[str, Readable]]:
    """The names in a folder that begin with `start`, as a shell completes them, a slash behind those of folders.

    None of a folder that can't be listed; at most 1,000.
    """
    found: list[tuple[str, Readable]] = []
    with suppress(Problem), open_folder(place) as listed:
        for entry in listed.scan():
            stop.check()
            name = entry.name
            if not folded(name).startswith(folded(start)) or (name.startswith(".") and not start):
                continue
            if not place.policy.protected((*listed.place.parts, name)):
                found.append((name + "/" * entry.is_dir(), listed.place / name))
                if len(found) == _MOST_COMPLETED:
                    break
    return found


def _fitting(entries: Iterable[Entry], left: int) -> tuple[Entry, ...]:
    """The first of `entries` that take at most `left` bytes, but one at least."""
    fit: list[Entry] = []
    for entry in entries:
        left -= _bytes(entry.line())
        if fit and left < 0:
            break
        fit.append(entry)
    return tuple(fit)


@dataclass(frozen=True, slots=True, order=True)
class _Key:
    """Where an entry stands in a listing: by rank, the same rank by name."""

    rank: int
    name: str


@dataclass
class _Names:
    """The keys of a folder's entries, unsorted, counted on the way."""

    folder: Folder[Readable]
    sort: Sort
    wanted: Filter
    stop: Stop
    sizes: _Sizes | None = None
    total: int = 0
    left_out: int = 0

    def __iter__(self) -> Iterator[_Key]:
        rules = None if self.wanted.ignored else _rules(self.folder)
        prefix = b"".join(os.fsencode(part) + b"/" for part in self.folder.place.parts)
        for number, entry in enumerate(self.folder.scan()):
            if not number % _CHECKED:
                self.stop.check()
            if rules is not None and rules.left_out(
                prefix, [entry.name], entry.is_dir(follow_symlinks=False), self.wanted.hidden
            ):
                self.left_out += 1
                continue
            self.total += 1
            yield _Key(self._rank(entry), entry.name)

    def _rank(self, entry: os.DirEntry[str]) -> int:
        if self.sort == "name":
            return 0
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError:
            return 1  # removed since
        if self.sort == "size" and self.sizes is not None and entry.is_dir(follow_symlinks=False):
            return -self.sizes.of(entry.name)[0]
        return -found.st_size if self.sort == "size" else -found.st_mtime_ns


class _Sizes:
    """The bytes of the files in folders, at any depth; a file with several names counts once."""

    def __init__(self, above: Readable, wanted: Filter, stop: Stop) -> None:
        self._above, self._wanted, self._stop = above, wanted, stop
        self._skipped = Skipped.soon()
        self._known: dict[str, tuple[int, bool]] = {}

    def of(self, name: str) -> tuple[int, bool]:
        """(bytes of a folder, whether that is all of them)."""
        if name not in self._known:
            size, seen = 0, set[tuple[int, int]]()
            self._skipped.reasons.clear()
            try:
                for visit in walk(self._above / name, self._wanted, self._stop, self._skipped):
                    size += self._visited(visit, seen)
                whole = not self._skipped.reasons
            except Problem:
                whole = False
            self._known[name] = size, whole
        return self._known[name]

    def _visited(self, visit: Visit, seen: set[tuple[int, int]]) -> int:
        tell(len(self._known), None, f"{len(self._known):,} folders summed up")
        size = 0
        for name in visit.files:
            try:
                found = visit.folder.stat(name)
            except OSError:
                continue  # removed since
            if found.st_nlink > 1:
                if (found.st_dev, found.st_ino) in seen:
                    continue
                seen.add((found.st_dev, found.st_ino))
            size += found.st_size
        return size


def list_tree(
    place: Readable, stop: Stop, *, depth: int = 3, wanted: Filter | None = None, max_bytes: int = 10_000
) -> Tree:
    """The folder's tree within `max_bytes`: level by level until they are spent, the rest folded to counts.

    Hidden and ignored entries that are not wanted are named and marked, never walked.

    Raises:
        Problem: the folder can't be opened.
    """
    skipped = Skipped.soon()
    top = _grown(place, wanted or Filter(), depth, max_bytes, stop, skipped)
    _unfold(top, depth, max_bytes)
    lines = tuple(_drawn(top))
    folded = sum(1 for branch in _all_drawn(top) if not branch.open and branch.size)
    return Tree(spoken(place), lines, top.files, top.folders, folded, skipped.notes())


@dataclass(slots=True)
class _Branch:
    """A folder of a tree.

    Attributes:
        label: its path, with a slash.
        names: labels of its files, as many as could ever be shown.
        own: files directly in it.
        files: files in all of it; `folders` likewise.
        open: whether its contents are drawn.
        shown: how many of `own` are among the names drawn.
        left_out: hidden and ignored entries directly in it.
    """

    label: str
    names: list[str] = field(default_factory=list[str])
    branches: list[_Branch] = field(default_factory=list["_Branch"])
    own: int = 0
    files: int = 0
    folders: int = 0
    open: bool = False
    shown: int = 0
    left_out: int = 0

    @property
    def size(self) -> int:
        return self.files + self.folders

    @property
    def folded_line(self) -> str:
        below = f" in {self.folders + 1:,} folders" if self.folders else ""
        facts = [f"{counted(self.files, 'file')}{below}"] if self.size else []
        if self.left_out:
            facts.append(f"{self.left_out:,} left out")
        return f"{self.label} ({', '.join(facts)})" if facts else self.label


def _grown(place: Readable, wanted: Filter, depth: int, max_bytes: int, stop: Stop, skipped: Skipped) -> _Branch:
    branches: dict[tuple[str, ...], _Branch] = {}
    for visit in walk(place, wanted, stop, skipped):
        tell(len(branches), None, f"{len(branches):,} folders seen")
        above = visit.folder.place
        branch = branches.get(visit.parts)
        if branch is None:
            branch = branches[visit.parts] = _Branch(spoken(place).rstrip("/") + "/")
        branch.own, branch.left_out = len(visit.files), len(visit.left_out)
        for name in visit.folders:
            inner = branches[(*visit.parts, name)] = _Branch(shown(above, name) + "/")
            branch.branches.append(inner)
        if len(visit.parts) < depth:
            branch.names = [_label(above, name, visit.links) for name in visit.files[:max_bytes]]
            if visit.left_out:
                branch.names += [_left_out(above, visit.left_out)]
    for parts in sorted(branches, key=len, reverse=True):
        branch = branches[parts]
        branch.files += branch.own
        if parts:
            outer = branches[parts[:-1]]
            outer.files += branch.files
            outer.folders += branch.folders + 1
    return branches[()]


def _label(above: Readable, name: str, links: frozenset[str]) -> str:
    text = name if name.isprintable() else shown(above, name)
    return f"{text} (link)" if name in links else text


def _left_out(above: Readable, entries: list[tuple[str, bool]]) -> str:
    named = [_label(above, name, frozenset()) + "/" * is_folder for name, is_folder in entries[:_MOST_NAMED]]
    more = f" and {len(entries) - _MOST_NAMED:,} more" if len(entries) > _MOST_NAMED else ""
    return f"(left out: {', '.join(named)}{more})"


def _unfold(top: _Branch, depth: int, max_bytes: int) -> None:
    """Open folders, level by level, as long as their lines fit; then as many of their files as fit."""
    left = max_bytes - _bytes(top.folded_line) - 200  # for the first line
    todo = deque([(top, 0)])
    while todo:
        branch, level = todo.popleft()
        cost = sum(_bytes(inner.folded_line) for inner in branch.branches) + 30  # for the line about more files
        if level >= depth or cost > left:
            continue
        left -= cost
        branch.open = True
        for inner in branch.branches:
            todo.append((inner, level + 1))
        for number, name in enumerate(branch.names):
            left -= _bytes(name) + 2
            if left < 0:
                left += _bytes(name) + 2
                del branch.names[number:]
                break
        branch.shown = min(branch.own, len(branch.names))


def _bytes(line: str) -> int:
    return len(line.encode("utf-8", "replace")) + 1


def _drawn(branch: _Branch) -> Iterator[str]:
    if not branch.open:
        yield branch.folded_line
        return
    yield branch.label
    for name in branch.names:
        yield f"  {name}"
    if branch.own > branch.shown:
        yield f"  ({counted(branch.own - branch.shown, 'more file')})"
    for inner in branch.branches:
        yield from _drawn(inner)


def _all_drawn(branch: _Branch) -> Iterator[_Branch]:
    yield branch
    for inner in branch.branches if branch.open else ():
        yield from _all_drawn(inner)


def _entry(folder: Folder[Readable], name: str, sizes: _Sizes | None) -> Entry:
    place = folder.place
    path = shown(place, name)
    try:
        found = folder.stat(name)
    except OSError:
        return Entry(path, "gone", None, "", "removed just now")
    kind = _KINDS.get(stat.S_IFMT(found.st_mode), "special")
    note = "protected" if place.policy.protected((*place.parts, name)) else ""
    if kind == "link":
        note = _link_note(folder, name, note)
    elif kind == "special":
        note = "no regular file"
    size = found.st_size if kind == "file" else None
    if kind == "folder" and sizes is not None:
        size, whole = sizes.of(name)
        note = note if whole else ", ".join(filter(None, ("at least", note)))
    return Entry(path, kind, size, moment(found.st_mtime), note)


def _link_note(folder: Folder[Readable], name: str, note: str) -> str:
    if note:
        return f"link, {note}"
    try:
        target = folder.read_link(name)
        status(folder.place / name)
    except Problem as problem:
        why = "leads outside or to something protected" if "outside" in problem.what else "dangling"
        return f"link, {why}"
    except OSError:
        return "link, unreadable"
    return "link" if target.startswith("/") else f"link to {ascii(target)[1:-1]}"


def moment(seconds: float) -> str:
    """A time of the file system as UTC, to the second."""
    return f"{datetime.fromtimestamp(int(seconds), UTC).replace(tzinfo=None).isoformat()}Z"


def _rules(folder: Folder[Readable]) -> Rules:
    names: list[str] = []
    for name in (".git", *IGNORE_FILES):
        try:
            folder.stat(name)
            names.append(name)
        except OSError:
            continue
    return Rules.of(folder, names, Rules.above(folder.place))
