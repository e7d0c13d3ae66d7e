"""Down a folder in one fixed order, by handles: the files of a folder by name, then its folders by name.

One thread: the interpreter's lock makes several slower. A folder is read whole before anything in it is opened, and
closed before its folders are, so that neither depth nor width costs descriptors. Each is opened by its whole path: a
folder above it that is held open could be moved out of the served one meanwhile, and what is in it be read there.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import NotFound, Problem, describe_os_error
from mcp_fs.engine.handles.file_attributes import hidden_among, placeholders_among
from mcp_fs.engine.handles.path_opening import Folder, open_folder, read_status, to_problem
from mcp_fs.engine.patterns.ignore import Rules
from mcp_fs.models import is_one_line
from mcp_fs.policy import ReadablePath

__all__ = [
    "NOT_DOWNLOADED",
    "WALK_SECONDS",
    "FolderEntries",
    "Skipped",
    "Visibility",
    "WalkFilter",
    "display_path",
    "entry_display_path",
    "exclude_folders",
    "page_byte_limit",
    "read_entries",
    "walk",
    "walk_order",
]

# After which an answer tells what was found so far: half of what a call may take.
WALK_SECONDS = 30.0
NOT_DOWNLOADED = "not downloaded yet, so not searched; `read_text` fetches it"
_MAX_NAMED = 5
# Of one walk; each takes as long as a path is deep.
_MAX_CHECKED_LINKS = 200
_USUAL_PATHS = 200
_NO_RULES = Rules(((),) * 4, False)


@dataclass(frozen=True, slots=True)
class WalkFilter:
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
        deadline: when, by `time.monotonic`, a walk ends with what it has found; None for a walk that must be complete.
        is_relevant: whether what was left out matters, by its path below the start, which ends in a slash for a folder.
        excluded_secrets: hidden and ignored entries that are protected too.
        reads_contents: whether contents were wanted, so that entries are told as protected that no flag brings.
        linked_folders: links to served folders, which no walk follows.
        tells_links: whether such links are looked for.
        unread_folders: folders that are there and could not be read, by their names from the start on.
    """

    deadline: float | None = None
    reasons: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    hidden: int = 0
    ignored: int = 0
    excluded_examples: list[str] = field(default_factory=list[str])
    excluded_secrets: list[str] = field(default_factory=list[str])
    reads_contents: bool = False
    linked_folders: list[str] = field(default_factory=list[str])
    tells_links: bool = False
    unread_folders: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])
    _checked_links: int = 0
    is_relevant: Callable[[str], bool] | None = None

    @classmethod
    def with_deadline(cls) -> Skipped:
        """Return one for walks that end after `WALK_SECONDS`."""
        return cls(time.monotonic() + WALK_SECONDS)

    def is_late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    @staticmethod
    def late_reason() -> str:
        """Return the reason for what was left when time was up."""
        return f"not reached within {WALK_SECONDS:g} s"

    def add(self, reason: str, path: str) -> None:
        paths = self.reasons.setdefault(reason, [])
        if not paths or paths[-1] != path:  # a file that is searched and then counted comes twice
            paths.append(path)

    def merge(self, other: Skipped) -> None:
        """Add what another walk did not look into, for its reasons."""
        for reason, paths in other.reasons.items():
            self.reasons[reason] = list(dict.fromkeys([*self.reasons.get(reason, ()), *paths]))
        self.linked_folders = list(dict.fromkeys([*self.linked_folders, *other.linked_folders]))

    def drop(self, paths: Set[str]) -> None:
        """Forget what is one of `paths`, or lies in one: it was not left out after all."""
        for reason, skipped_paths in list(self.reasons.items()):
            self.reasons[reason] = [path for path in skipped_paths if not _is_or_lies_in(path, paths)]
            if not self.reasons[reason]:
                del self.reasons[reason]

    def count_excluded(self, entries: FolderEntries) -> None:
        """Count the hidden and ignored entries of a folder; a folder among them counts once, with all that is in it."""
        for name, is_folder in entries.excluded:
            slash = "/" if is_folder else ""
            if self.is_relevant is not None and not self.is_relevant("/".join((*entries.parts, name)) + slash):
                continue
            folder = entries.folder.path
            if self.reads_contents and folder.policy.is_protected((*folder.parts, name)):
                self.excluded_secrets.append(entry_display_path(folder, name) + slash)
                continue
            if name in entries.hidden:
                self.hidden += 1
            else:
                self.ignored += 1
            if len(self.excluded_examples) < _MAX_NAMED:
                self.excluded_examples.append(entry_display_path(folder, name) + slash)

    def forget_excluded(self) -> None:
        """Forget what a walk of a part has counted, before another walk counts all."""
        self.hidden = 0
        self.ignored = 0
        self.excluded_examples.clear()
        self.excluded_secrets.clear()
        self.linked_folders.clear()

    def count_links(self, entries: FolderEntries) -> None:
        """Count the links of a folder that lead to served folders; of very many, all that could."""
        for name in sorted(entries.links.intersection(entries.files)):
            path = "/".join((*entries.parts, name, ""))
            if self.is_relevant is not None and not self.is_relevant(path):
                continue
            self._checked_links += 1
            if self._checked_links <= _MAX_CHECKED_LINKS and not _leads_to_folder(entries.folder.path, name):
                continue
            self.linked_folders.append(entry_display_path(entries.folder.path, name))

    def describe_links(self) -> list[str]:
        """Return one phrase about links to folders, the first few named; none without any."""
        if not self.linked_folders:
            return []
        examples = _join_first(self.linked_folders)
        count = len(self.linked_folders)
        links = "1 link to a folder" if count == 1 else f"{count:,} links to folders"
        return [f"did not follow {links} ({examples}): a link named as path is followed"]

    def describe_excluded(self, *, named: bool) -> list[str]:
        """Return phrases about hidden and ignored entries, the first few named; none when nothing was left out."""
        phrases = self._describe_hidden(named=named)
        if self.excluded_secrets:
            phrase = f"left out {len(self.excluded_secrets):,} protected"
            if named:
                phrase += f" ({_join_first(self.excluded_secrets)})"
            phrases.append(phrase)
        return phrases

    def _describe_hidden(self, *, named: bool) -> list[str]:
        counts: list[str] = []
        flags: list[str] = []
        for number, kind in ((self.hidden, "hidden"), (self.ignored, "ignored")):
            if number:
                counts.append(f"{number:,} {kind}")
                flags.append(f"include_{kind}")
        if not counts:
            return []
        phrase = "left out " + " and ".join(counts)
        if named:
            examples = list(self.excluded_examples)
            if self.hidden + self.ignored > len(examples):
                examples.append("...")
            phrase += f" ({', '.join(examples)}); set {' and '.join(flags)}"
        return [phrase]

    def notes(self) -> list[str]:
        """Return one phrase for each reason, the first few paths named."""
        notes: list[str] = []
        for failure, paths in self.reasons.items():
            named = ", ".join(paths[:_MAX_NAMED])
            more = ""
            if len(paths) > _MAX_NAMED:
                more = f" and {len(paths) - _MAX_NAMED:,} more"
            notes.append(f"{failure}: {named}{more}")
        return notes


@dataclass(slots=True)
class FolderEntries:
    """One folder on the way, open while it is the latest.

    Attributes:
        folder: its handle.
        parts: names from the start of the walk down to it.
        files: names of what is not a folder, sorted.
        links: those of `files` that are symbolic links.
        special_files: those of `files` that are neither regular files nor links.
        folders: names of the folders that are walked next, sorted; take names out to leave them out.
        excluded: hidden and ignored entries.
        hidden: names of the hidden entries, where they are not wanted.
        not_downloaded: those of `files` that reading would fetch from elsewhere; only their names are known.
        rules: those that hold in the folder, where ignored entries are left out.
    """

    folder: Folder[ReadablePath]
    parts: tuple[str, ...]
    files: list[str]
    links: frozenset[str]
    special_files: frozenset[str]
    folders: list[str]
    excluded: list[tuple[str, bool]]
    hidden: Set[str]
    not_downloaded: Set[str]
    rules: Rules | None = None


def walk(
    start: ReadablePath,
    walk_filter: WalkFilter,
    cancel: CancelToken,
    skipped: Skipped,
    after: tuple[str, ...] | None = None,
) -> Iterator[FolderEntries]:
    """Visit `start` and the folders below it.

    Args:
        walk_filter: what is left out; `start` itself never is. Links are named and not followed.
        skipped: learns of folders that can't be opened.
        after: names (below `start`) of a file: only what comes after it in `walk_order` is visited.

    Raises:
        Problem: `start` can't be opened.
    """
    folder: Folder[ReadablePath] | None = open_folder(start.to_readable())
    pending = _PendingFolder(folder.path, (), None)
    todo: list[_PendingFolder] = []
    while folder is not None:
        with folder:
            cancel.check()
            entries = _read_pending(folder, pending, walk_filter, skipped)
            if entries is not None:
                skipped.count_excluded(entries)
                if skipped.tells_links:
                    skipped.count_links(entries)
                if after is not None:
                    _skip_until(entries, after)
                yield entries
                _add_inner_folders(todo, entries, skipped)
        if todo and skipped.is_late():
            skipped.reasons[skipped.late_reason()] = [display_path(path) for path, _, _ in reversed(todo)]
            return
        folder = None
        while todo and folder is None:
            pending = todo.pop()
            folder = _open_pending(pending, skipped)


class _PendingFolder(NamedTuple):
    """A folder that a walk has not come to yet.

    Attributes:
        parts: names from the start of the walk down to it.
        rules: those of the folder above.
    """

    place: ReadablePath
    parts: tuple[str, ...]
    rules: Rules | None


def _read_pending(
    folder: Folder[ReadablePath], pending: _PendingFolder, walk_filter: WalkFilter, skipped: Skipped
) -> FolderEntries | None:
    """Return what is in an open folder; None if it can't be read.

    Raises:
        Problem: it is the start of the walk, and can't be read.
    """
    rules = pending.rules
    if not pending.parts and not walk_filter.ignored:
        rules = Rules.load_above(folder.path)
    try:
        return read_entries(folder, pending.parts, walk_filter, rules)
    except OSError as error:
        if not pending.parts:
            raise to_problem(error, folder.path) from error
        skipped.add(_describe_read_error(error), entry_display_path(folder.path.parent, folder.path.name))
        skipped.unread_folders.add(pending.parts)
        return None


def _add_inner_folders(todo: list[_PendingFolder], entries: FolderEntries, skipped: Skipped) -> None:
    """Put the folders of a folder on top of what is to do, the first of them last."""
    path = entries.folder.path
    for name in reversed(entries.folders):
        try:
            todo.append(_PendingFolder(path / name, (*entries.parts, name), entries.rules))
        except Problem:
            skipped.add("protected", entry_display_path(path, name))


def _open_pending(pending: _PendingFolder, skipped: Skipped) -> Folder[ReadablePath] | None:
    try:
        return open_folder(pending.place)
    except Problem as problem:
        skipped.add("could not be opened", entry_display_path(pending.place.parent, pending.place.name))
        if not isinstance(problem, NotFound):
            skipped.unread_folders.add(pending.parts)
        return None


def exclude_folders(entries: FolderEntries, nested_starts: Set[tuple[str, ...]]) -> FolderEntries:
    """Keep the walk from the folders `nested_starts`, which are named from the start on."""
    if nested_starts:
        entries.folders = [name for name in entries.folders if (*entries.parts, name) not in nested_starts]
    return entries


def walk_order(parts: tuple[str, ...]) -> tuple[tuple[bool, str], ...]:
    """Return the sort key of a file's names below the start, in the order of `walk`."""
    return (*((True, part) for part in parts[:-1]), (False, parts[-1]))


def page_byte_limit(limit: int) -> int:
    """Return the bytes that a page of `limit` paths may take: the usual ones, and more for more than 200 paths."""
    return DEFAULT_PAGE_BYTES * max(limit, _USUAL_PATHS) // _USUAL_PATHS


def entry_display_path(folder: ReadablePath, name: str) -> str:
    """Return the path of an entry as tools take it, on one line: its URI where the text would not do."""
    display = folder.display
    path = f"{display}/{name}"
    if display == ".":
        path = name
    if display.startswith("file://"):
        return folder.uri_of(name)
    if path.isprintable() or is_one_line(path):
        return path
    return folder.uri_of(name)


def _leads_to_folder(folder: ReadablePath, name: str) -> bool:
    try:
        return stat.S_ISDIR(read_status(folder / name).st_mode)
    except Problem:
        return False


def _join_first(paths: Sequence[str]) -> str:
    examples = ", ".join(paths[:_MAX_NAMED])
    if len(paths) > _MAX_NAMED:
        examples += ", ..."
    return examples


def _is_or_lies_in(path: str, folders: Set[str]) -> bool:
    while path and path not in folders:
        path = path.rpartition("/")[0]
    return path != ""


def display_path(path: ReadablePath) -> str:
    """Return `path` as tools take it, on one line: its URI where the text would not do."""
    if is_one_line(path.display):
        return path.display
    return path.uri


class Visibility:
    """Whether a walk from `start` would come to a file, told without walking.

    Attributes:
        may_bring_back: whether rules above `start` may show what those below it alone would leave out.
    """

    def __init__(self, start: ReadablePath, walk_filter: WalkFilter) -> None:
        self._start = start
        self._walk_filter = walk_filter
        self._outer_rules: Rules | None = None
        if not walk_filter.ignored:
            self._outer_rules = Rules.load_above(start)
        self._rules_by_folder: dict[tuple[str, ...], Rules] = {}
        self.may_bring_back = self._outer_rules is not None and self._outer_rules.brings_back

    def is_visible(self, parts: tuple[str, ...]) -> bool:
        """Return whether the file `parts` below the start would be visited now."""
        if self._walk_filter.hidden and self._walk_filter.ignored:
            return True
        for depth in range(len(parts)):
            rules = self._rules_of(parts[:depth])
            prefix = "/".join((*self._start.parts, *parts[:depth], ""))
            name = parts[depth]
            hidden = set[str]()
            if name.startswith(".") and not self._walk_filter.hidden:
                hidden = {name}
            if rules.exclude(prefix, [name], depth < len(parts) - 1, hidden):
                return False
        return True

    def _rules_of(self, parts: tuple[str, ...]) -> Rules:
        if self._walk_filter.ignored:
            return _NO_RULES
        rules = self._rules_by_folder.get(parts)
        if rules is None:
            outer_rules = self._outer_rules
            if parts:
                outer_rules = self._rules_of(parts[:-1])
            path = self._start.at(self._start.root, (*self._start.parts, *parts))
            rules = Rules.load_in_folder(path, outer_rules)
            self._rules_by_folder[parts] = rules
        return rules


def read_entries(
    folder: Folder[ReadablePath], parts: tuple[str, ...], walk_filter: WalkFilter, outer_rules: Rules | None
) -> FolderEntries:
    """Return what is directly in a folder that is reached as `parts`.

    Args:
        outer_rules: those of the folder above.
    """
    dir_entries = folder.list_entries()
    names = _sort_by_kind(dir_entries)
    hidden_names = hidden_among(dir_entries, names.files, names.folders)
    hidden = set[str]()
    if not walk_filter.hidden:
        hidden = hidden_names
    rules = None
    if not walk_filter.ignored:
        rules = Rules.load(folder, hidden_names, outer_rules)
    entries = FolderEntries(
        folder,
        parts,
        names.files,
        frozenset(names.links),
        frozenset(names.special_files),
        names.folders,
        [],
        hidden,
        placeholders_among(dir_entries),
        rules,
    )
    if rules is not None or not walk_filter.hidden:
        _exclude(entries, rules or _NO_RULES)
    return entries


class _NamesByKind(NamedTuple):
    """The names in a folder; links and special files are among the files too."""

    files: list[str]
    folders: list[str]
    links: set[str]
    special_files: set[str]


def _sort_by_kind(dir_entries: Sequence[os.DirEntry[str]]) -> _NamesByKind:
    try:
        files = [entry.name for entry in dir_entries if entry.is_file(follow_symlinks=False)]
    except OSError:
        files = [entry.name for entry in dir_entries if _may_be_file(entry)]
    names = _NamesByKind(files, [], set(), set())
    if len(files) < len(dir_entries):
        for entry in dir_entries:
            _add_other_kind(names, entry)
    names.files.sort()
    names.folders.sort()
    return names


def _may_be_file(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a regular file; of one whose kind can't be read, whoever opens it hears why."""
    try:
        return entry.is_file(follow_symlinks=False)
    except OSError:
        return True


def _add_other_kind(names: _NamesByKind, entry: os.DirEntry[str]) -> None:
    """Add the name of what is not a regular file."""
    if _may_be_file(entry):
        return
    if entry.is_dir(follow_symlinks=False):
        names.folders.append(entry.name)
        return
    names.files.append(entry.name)
    if entry.is_symlink():
        names.links.add(entry.name)
    else:
        names.special_files.add(entry.name)


def _exclude(entries: FolderEntries, rules: Rules) -> None:
    """Take the hidden and ignored entries out of a folder's names."""
    prefix = "/".join((*entries.folder.path.parts, ""))
    for names, are_folders in ((entries.files, False), (entries.folders, True)):
        excluded_names = rules.exclude(prefix, names, are_folders, entries.hidden)
        if excluded_names:
            entries.excluded += ((name, are_folders) for name in sorted(excluded_names))
            names[:] = [name for name in names if name not in excluded_names]


def _skip_until(entries: FolderEntries, after: tuple[str, ...]) -> None:
    depth = len(entries.parts)
    if entries.parts != after[:depth]:
        return
    if depth == len(after) - 1:
        entries.files = [name for name in entries.files if name > after[-1]]
    else:
        entries.files = []
        entries.folders = [name for name in entries.folders if name >= after[depth]]


def _describe_read_error(error: OSError) -> str:
    if error.strerror is None:
        return "could not be read"
    return describe_os_error(error).lower()
