"""A folder's tree, folded to a size."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Problem
from mcp_batteries.progress import report_progress
from mcp_fs.engine.handles.path_opening import Folder, open_folder, translate_errors
from mcp_fs.engine.listing.walk import Skipped, WalkFilter, display_path, entry_display_path, read_entries
from mcp_fs.engine.patterns.ignore import Rules
from mcp_fs.models import Tree, pluralize
from mcp_fs.policy import ReadablePath

__all__ = ["list_tree"]

_MAX_NAMED = 10
_MAX_SUFFIXES = 3
# Files with numbers in their names of which only the first and the last are named.
_MIN_SEQUENCE = 6
_NUMBER = re.compile(r"[0-9]+")
# As in `.mp3`; one of digits alone numbers files, as logs that were rotated.
_SUFFIX = re.compile(r"\.(?=[0-9]*[A-Za-z])\w{1,5}\Z")


@dataclass(frozen=True, slots=True)
class _Row:
    """A file, or several whose names differ in their numbers only."""

    first: str
    last: str
    file_count: int = 1
    note: str = ""


def list_tree(
    path: ReadablePath,
    cancel: CancelToken,
    *,
    depth: int = 3,
    walk_filter: WalkFilter | None = None,
    max_bytes: int = 10_000,
) -> Tree:
    """Return the folder's tree within `max_bytes`: level by level until they are spent, the rest folded.

    A folder that is folded is listed, so that it says what is directly in it, and never walked: a tree costs what it
    shows. Hidden and ignored entries that are not wanted are named and marked.

    Raises:
        Problem: the folder can't be opened.
    """
    builder = _TreeBuilder(walk_filter or WalkFilter(), depth, max_bytes, cancel)
    with open_folder(path) as folder:
        top = _Branch(folder.path, (), display_path(path).rstrip("/") + "/")
        outer_rules = None
        if not builder.walk_filter.ignored:
            outer_rules = Rules.load_above(folder.path)
        with translate_errors(path):
            builder.read_branch(top, folder, outer_rules)
    builder.expand(top)
    lines = tuple(_render(top))
    branches = list(_iterate_shown(top))
    return Tree(
        display_path(path),
        lines,
        sum(branch.file_count for branch in branches),
        sum(len(branch.folder_names) for branch in branches),
        sum(branch.is_folded for branch in branches),
        is_whole=not builder.skipped.reasons and all(branch.has_all_folders for branch in branches),
        notes=builder.skipped.notes(),
    )


@dataclass(slots=True)
class _Branch:
    """A folder of a tree.

    Attributes:
        place: where it is; None where that is protected.
        parts: names from the start down to it.
        label: its path, with a slash.
        rows: its files; `links` are those that are links.
        folder_names: those directly in it.
        branches: the first of them, as many as are drawn.
        file_count: files directly in it; `files_label` tells their endings.
        is_expanded: whether its contents are drawn.
        shown_rows: how many of the rows are drawn.
        excluded_count: hidden and ignored entries directly in it; `excluded_line` names the first.
        failure: why it is not known what is in it.
    """

    place: ReadablePath | None
    parts: tuple[str, ...]
    label: str
    rows: list[_Row] = field(default_factory=list[_Row])
    links: frozenset[str] = frozenset()
    folder_names: list[str] = field(default_factory=list[str])
    branches: list[_Branch] = field(default_factory=list["_Branch"])
    rules: Rules | None = None
    file_count: int = 0
    files_label: str = ""
    is_expanded: bool = False
    shown_rows: int = 0
    excluded_count: int = 0
    excluded_line: str = ""
    failure: str = ""

    def row_label(self, row: _Row) -> str:
        assert self.place is not None
        label = _label(self.place, row.first, self.links)
        if row.file_count == 1:
            return label
        return f"{label} ... {_label(self.place, row.last, self.links)} ({row.file_count:,} files{row.note})"

    @property
    def entry_count(self) -> int:
        return self.file_count + len(self.folder_names)

    @property
    def is_folded(self) -> bool:
        return not self.is_expanded and self.entry_count > 0

    @property
    def has_all_folders(self) -> bool:
        return len(self.branches) == len(self.folder_names)

    @property
    def folded_line(self) -> str:
        facts: list[str] = []
        if self.file_count:
            facts.append(self.files_label)
        if self.folder_names:
            facts.append(pluralize(len(self.folder_names), "folder"))
        if self.excluded_count:
            facts.append(f"{self.excluded_count:,} left out")
        if self.failure:
            facts.append(self.failure)
        if not facts:
            return self.label
        return f"{self.label} ({'; '.join(facts)})"


class _TreeBuilder:
    """Opens folders, level by level, as long as their lines fit; half of what is left each time is for their files."""

    def __init__(self, walk_filter: WalkFilter, depth: int, max_bytes: int, cancel: CancelToken) -> None:
        self.walk_filter = walk_filter
        self.skipped = Skipped.with_deadline()
        self._depth = depth
        self._cancel = cancel
        self._remaining_bytes = max_bytes
        self._max_branches = max_bytes
        self._listed_count = 0

    def expand(self, top: _Branch) -> None:
        self._remaining_bytes -= _line_bytes(top.folded_line) + 200  # for the first line
        level: list[_Branch] = [top]
        expanded_branches: list[_Branch] = []
        while level:
            expanded = [branch for branch in level if self._expand_branch(branch, always=branch is top)]
            level = list(chain.from_iterable(branch.branches for branch in expanded))
            expanded_branches += expanded
            self._show_files(expanded, self._remaining_bytes // 2)
        self._show_files(expanded_branches, self._remaining_bytes)

    def _expand_branch(self, branch: _Branch, *, always: bool) -> bool:
        """Draw what is in a folder where there is room for it, at least folded; return whether there was."""
        if branch.failure or len(branch.parts) >= self._depth:
            return False
        inner_branches = [self._create_branch(branch, name) for name in branch.folder_names[: self._max_branches]]
        own_bytes = _line_bytes(_more_line(branch.file_count, "file")) + _line_bytes(branch.excluded_line) + 2
        label_bytes = sum(_line_bytes(inner.label) for inner in inner_branches)
        if own_bytes + label_bytes > self._remaining_bytes and not always:
            return False
        self._remaining_bytes -= own_bytes
        for inner in inner_branches:
            self._read_inner(inner, branch.rules)
            cost = _line_bytes(inner.folded_line)
            if cost > self._remaining_bytes:
                self._remaining_bytes -= _line_bytes(_more_line(len(inner_branches), "folder"))
                break
            self._remaining_bytes -= cost
            branch.branches.append(inner)
        branch.is_expanded = True
        return True

    def _show_rows(self, branch: _Branch, max_bytes: int) -> int:
        """Show as many rows of a folder as fit; return the bytes that they take."""
        shown_bytes = 0
        for row in branch.rows[branch.shown_rows :]:
            cost = _line_bytes(branch.row_label(row)) + 2
            if shown_bytes + cost > max_bytes:
                break
            shown_bytes += cost
            branch.shown_rows += 1
            if branch.shown_rows == len(branch.rows):  # there are no more to tell of
                self._remaining_bytes += _line_bytes(_more_line(branch.file_count, "file"))
        self._remaining_bytes -= shown_bytes
        return shown_bytes

    def _show_files(self, branches: list[_Branch], max_bytes: int) -> None:
        """Show the files of folders, of each as many as fit into its share; what some don't need, others get."""
        for number, branch in enumerate(sorted(branches, key=_hidden_row_bytes)):
            max_bytes -= self._show_rows(branch, max_bytes // (len(branches) - number))

    def read_branch(self, branch: _Branch, folder: Folder[ReadablePath], above: Rules | None) -> None:
        self._cancel.check()
        self._listed_count += 1
        report_progress(self._listed_count, None, f"{self._listed_count:,} folders seen")
        entries = read_entries(folder, branch.parts, self.walk_filter, above)
        branch.rules = entries.rules
        branch.file_count = len(entries.files)
        branch.files_label = _count_suffixes(entries.files)
        branch.excluded_count = len(entries.excluded)
        branch.folder_names = entries.folders
        if len(branch.parts) < self._depth:
            branch.rows = _group_numbered(entries.files, entries.links)
            branch.links = entries.links
            if entries.excluded:
                branch.excluded_line = _describe_excluded(folder.path, entries.excluded)

    def _create_branch(self, above: _Branch, name: str) -> _Branch:
        assert above.place is not None
        label = entry_display_path(above.place, name) + "/"
        parts = (*above.parts, name)
        try:
            return _Branch(above.place / name, parts, label)
        except Problem:
            return _Branch(None, parts, label, failure="protected")

    def _read_inner(self, branch: _Branch, rules: Rules | None) -> None:
        if branch.place is None:
            self.skipped.add("protected", branch.label.rstrip("/"))
            return
        if self.skipped.is_late():
            branch.failure = "not reached"
            self.skipped.add(self.skipped.late_reason(), branch.label.rstrip("/"))
            return
        try:
            with open_folder(branch.place) as folder:
                self.read_branch(branch, folder, rules)
        except (OSError, Problem):
            branch.failure = "could not be opened"
            self.skipped.add(branch.failure, branch.label.rstrip("/"))


def _hidden_row_bytes(branch: _Branch) -> int:
    """Return about how much the rows take that are not drawn yet."""
    return sum(len(row.first) for row in branch.rows[branch.shown_rows :])


def _more_line(number: int, noun: str) -> str:
    return f"  ({pluralize(number, f'more {noun}')})"


def _label(above: ReadablePath, name: str, links: frozenset[str]) -> str:
    label = name
    if not name.isprintable():
        label = entry_display_path(above, name)
    if name in links:
        label += " (link)"
    return label


def _group_numbered(names: Sequence[str], links: Set[str]) -> list[_Row]:
    """Return a row for each file, and one for many files whose names differ in their numbers only; a link has its own.

    A row stands where the first of its files does.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        groups.setdefault(_group_key(name, links), []).append(name)
    rows: list[_Row] = []
    for name in names:
        group = groups[_group_key(name, links)]
        if len(group) < _MIN_SEQUENCE:
            rows.append(_Row(name, name))
        elif name == group[0]:
            rows.append(_sequence_row(group))
    return rows


def _group_key(name: str, links: Set[str]) -> tuple[str, ...]:
    """Return what stands between the numbers of a name."""
    if name in links:
        return (name,)
    stem, suffix = _split_suffix(name)
    return (*_NUMBER.split(stem), suffix)


def _sequence_row(names: Sequence[str]) -> _Row:
    """Return the row of files whose names differ in their numbers."""
    in_order = sorted(names, key=lambda name: (_numbers_of(name), name))
    first = in_order[0]
    last = in_order[-1]
    columns = zip(*map(_numbers_of, names), strict=True)
    ranges = [max(column) - min(column) + 1 for column in columns if max(column) > min(column)]
    note = ""
    if len(ranges) != 1:
        note = " like these"
    elif ranges[0] > len(names):
        note = ", with gaps"
    return _Row(first, last, len(names), note)


def _numbers_of(name: str) -> list[int]:
    stem, _ = _split_suffix(name)
    return [int(number) for number in _NUMBER.findall(stem)]


def _split_suffix(name: str) -> tuple[str, str]:
    match = _SUFFIX.search(name)
    if match is None:
        return name, ""
    return name[: match.start()], match[0]


def _count_suffixes(names: Sequence[str]) -> str:
    """Return how many files there are, and of few endings how many of each."""
    counts = Counter(_split_suffix(name.lstrip("."))[1].lower() for name in names)
    if len(counts) == 1:
        (suffix,) = counts
        return pluralize(len(names), f"{suffix} file".lstrip())
    files = pluralize(len(names), "file")
    if not counts or len(counts) > _MAX_SUFFIXES:
        return files
    kinds = [f"{count:,} {suffix or 'others'}" for suffix, count in counts.most_common()]
    return f"{files}: {', '.join(kinds)}"


def _describe_excluded(above: ReadablePath, entries: list[tuple[str, bool]]) -> str:
    named = [_label(above, name, frozenset()) + "/" * is_folder for name, is_folder in entries[:_MAX_NAMED]]
    more = ""
    if len(entries) > _MAX_NAMED:
        more = f" and {len(entries) - _MAX_NAMED:,} more"
    return f"(left out: {', '.join(named)}{more})"


def _render(branch: _Branch) -> Iterator[str]:
    if not branch.is_expanded:
        yield branch.folded_line
        return
    yield branch.label
    rows = branch.rows[: branch.shown_rows]
    for row in rows:
        yield f"  {branch.row_label(row)}"
    hidden_files = branch.file_count - sum(row.file_count for row in rows)
    if hidden_files:
        yield _more_line(hidden_files, "file")
    if branch.excluded_line:
        yield f"  {branch.excluded_line}"
    if not branch.has_all_folders:
        yield _more_line(len(branch.folder_names) - len(branch.branches), "folder")
    for inner in branch.branches:
        yield from _render(inner)


def _iterate_shown(branch: _Branch) -> Iterator[_Branch]:
    """Yield a folder and those below it that are drawn."""
    yield branch
    if branch.is_expanded:
        for inner in branch.branches:
            yield from _iterate_shown(inner)


def _line_bytes(line: str) -> int:
    return len(line.encode("utf-8", "replace")) + 1
