"""The state of a work tree: the branch, operations in progress, and differences, folded if there are many."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mcp_batteries.limits import Stop
from mcp_git.engine.history.missing_paths import refuse_missing_path
from mcp_git.engine.program.git import Git
from mcp_git.engine.program.output import split_records
from mcp_git.engine.work_tree.in_progress import find_operations_in_progress
from mcp_git.models import Answer, count
from mcp_git.path_quoting import escape_line_breaks, quote_path
from mcp_git.policy import Repository, RepositoryPath
from mcp_git.repository_paths import Layout

__all__ = ["DETACHED", "Status", "StatusEntry", "describe_status", "is_conflict", "read_status"]

# What git prints in the place of a branch where HEAD is none.
DETACHED = "(detached)"

_NO_COMMIT = "(initial)"
_MAX_FOLDED_LINES = 60
_MAX_LINES = 4 * _MAX_FOLDED_LINES


class StatusEntry(NamedTuple):
    """A path that differs from what is committed.

    Attributes:
        letters: the two of `git status --short`.
        renamed_from: its earlier path; empty if it has none.
    """

    letters: str
    path: bytes
    renamed_from: bytes = b""

    @property
    def line(self) -> str:
        if self.renamed_from:
            return f"{self.letters} {quote_path(self.renamed_from)} -> {quote_path(self.path)}"
        return f"{self.letters} {quote_path(self.path)}"


@dataclass(slots=True)
class Status:
    """What `git status` says.

    Attributes:
        oid: the hash of the commit, or `(initial)`.
        head: the branch, or `(detached)`.
        has_upstream_commit: whether there is a commit of the upstream, so that `ahead` and `behind` are known.
        in_progress: the operations in progress, each as a phrase.
    """

    oid: str = ""
    head: str = ""
    upstream: str = ""
    ahead: int = 0
    behind: int = 0
    has_upstream_commit: bool = False
    stashes: int = 0
    entries: list[StatusEntry] = field(default_factory=list[StatusEntry])
    in_progress: Sequence[str] = ()

    @property
    def has_commit(self) -> bool:
        return not self.oid.startswith("(")

    @property
    def is_detached(self) -> bool:
        return self.head == DETACHED

    @property
    def branch(self) -> str:
        """One phrase for where HEAD is."""
        if self.oid == _NO_COMMIT:
            return f"{escape_line_breaks(self.head)}, no commits yet"
        if self.is_detached:
            position = f"detached at {self.oid[:9]}"
        else:
            position = f"{escape_line_breaks(self.head)} {self.oid[:9]}"
        if not self.upstream:
            return position
        upstream = escape_line_breaks(self.upstream)
        if not self.has_upstream_commit:
            return f"{position}, {upstream} is gone"
        distances: list[str] = []
        if self.ahead:
            distances.append(f"{self.ahead} ahead")
        if self.behind:
            distances.append(f"{self.behind} behind")
        return f"{position}, {', '.join(distances) or 'even with'} {upstream}"


def read_status(
    git: Git, repository: Repository, stop: Stop, path: RepositoryPath | None = None, layout: Layout | None = None
) -> Status:
    """Run `git status`, and find meanwhile which operations are in progress."""
    if layout is None:
        layout = git.layout(repository)
    arguments = ["status", "--porcelain=v2", "--branch", "--show-stash", "-z", "--ignore-submodules=dirty", "--"]
    is_whole_tree = path is None or not path.text
    if path is not None and path.text:
        arguments.append(path.text)
    status = Status()
    with git.stream(repository, arguments, stop, layout=layout, is_repeated=is_whole_tree) as pieces:
        status.in_progress = find_operations_in_progress(git, repository, layout, stop)
        records = split_records(pieces)
        for record in records:
            _add_record(status, record, records)
    return status


def _add_record(status: Status, record: bytes, following: Iterator[bytes]) -> None:
    """Add a record of `git status --porcelain=v2`; the earlier path of a renamed file is the record behind it."""
    match record[:1]:
        case b"#":
            _add_header(status, record.decode("utf-8", "replace"))
        case b"1":
            _, letters, _, _, _, _, _, _, path = record.split(b" ", 8)
            status.entries.append(StatusEntry(_decode_letters(letters), path))
        case b"2":
            _, letters, _, _, _, _, _, _, _, path = record.split(b" ", 9)
            status.entries.append(StatusEntry(_decode_letters(letters), path, next(following, b"")))
        case b"u":
            _, letters, _, _, _, _, _, _, _, _, path = record.split(b" ", 10)
            status.entries.append(StatusEntry(_decode_letters(letters), path))
        case b"?":
            status.entries.append(StatusEntry("??", record[2:]))
        case _:
            pass


def _add_header(status: Status, header: str) -> None:
    _, name, *values = header.split(" ")
    match name:
        case "branch.oid":
            status.oid = values[0]
        case "branch.head":
            status.head = values[0]
        case "branch.upstream":
            status.upstream = values[0]
        case "branch.ab":
            status.has_upstream_commit = True
            status.ahead = abs(int(values[0]))
            status.behind = abs(int(values[1]))
        case "stash":
            status.stashes = int(values[0])
        case _:
            pass


def _decode_letters(letters: bytes) -> str:
    return letters.decode("ascii", "replace").replace(".", " ")


def describe_status(git: Git, repository: Repository, path: RepositoryPath, limit: int, stop: Stop) -> Answer:
    """Return the state in one answer: each file, or the folders with their counts if more than `limit` files differ."""
    layout = git.layout(repository)
    if layout.work_tree is None:
        return _describe_bare(git, repository, layout, stop)
    status = read_status(git, repository, stop, path, layout)
    if not status.entries:
        refuse_missing_path(git, repository, path, (), stop)
    counts = _count_kinds(status.entries)
    facts = [status.branch, *status.in_progress, _describe_counts(counts) or _describe_clean(path)]
    is_rebasing = any(operation.startswith("rebase") for operation in status.in_progress)
    if "in conflict" in counts and is_rebasing:
        facts.append("there rev=`:2` is the new base and `:3` the commit put on it")
    if status.stashes:
        facts.append(count(status.stashes, "stash"))
    if len(status.entries) <= limit:
        return Answer(facts, [entry.line for entry in status.entries])
    facts.append(f"folded: name a folder as `path`, or a `limit` of {len(status.entries)}, for the files")
    return Answer(facts, _fold(status.entries, path))


def _describe_bare(git: Git, repository: Repository, layout: Layout, stop: Stop) -> Answer:
    arguments = ["symbolic-ref", "--short", "HEAD"]
    head = git.run(repository, arguments, stop, exit_codes=(0, 1, 128)).text.strip()
    configured = ""
    if layout.git_dir != repository.path:
        configured = " by `core.bare` or `core.worktree`"
    fact = f"bare repository{configured}, HEAD is {escape_line_breaks(head) or 'detached'}"
    return Answer([fact, "there is no work tree here"])


def _describe_clean(path: RepositoryPath) -> str:
    return f"{path.display} is clean" if path.text else "clean"


def is_conflict(letters: str) -> bool:
    """Whether the two letters of a file say that it has sides."""
    return "U" in letters or letters in ("AA", "DD")


def _count_kinds(entries: Sequence[StatusEntry]) -> Counter[str]:
    """Count what is staged, changed and so on; one file can be both."""
    counts: Counter[str] = Counter()
    for entry in entries:
        # The order in which the kinds appear first is that in which an answer has them.
        if entry.letters == "??":
            counts["untracked"] += 1
        elif is_conflict(entry.letters):
            counts["in conflict"] += 1
        else:
            counts["staged"] += entry.letters[0] != " "
            counts["changed"] += entry.letters[1] != " "
    return +counts


def _describe_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{number:,} {kind}" for kind, number in counts.items())


def _fold(entries: Sequence[StatusEntry], path: RepositoryPath) -> list[str]:
    """Return a line for each folder, opened as deep as there is room for."""
    top = os.fsencode(path.text).strip(b"/")
    if top:
        top += b"/"
    groups = _group_by_name(entries, top)
    while _open_largest_folder(groups):
        pass
    lines: list[str] = []
    for name, group in sorted(groups.items()):
        if len(group) == 1 and not name.endswith(b"/"):
            lines.append(group[0].line)
        else:
            lines.append(f"{quote_path(name)} {_describe_counts(_count_kinds(group))}")
    if len(lines) > _MAX_LINES:
        return [*lines[:_MAX_LINES], f"… {len(lines)} lines in all"]
    return lines


def _open_largest_folder(groups: dict[bytes, list[StatusEntry]]) -> bool:
    """Replace the largest folder that leaves room by what is in it; False if none does."""
    for name, group in sorted(groups.items(), key=lambda item: -len(item[1])):
        if not name.endswith(b"/") or len(group) < 2:
            continue
        subgroups = _group_by_name(group, name)
        if len(groups) + len(subgroups) - 1 <= _MAX_FOLDED_LINES:
            del groups[name]
            groups |= subgroups
            return True
    return False


def _group_by_name(entries: Sequence[StatusEntry], folder: bytes) -> dict[bytes, list[StatusEntry]]:
    """Group entries by the file or folder of `folder` in which they are; the name of a folder ends in a slash."""
    groups: dict[bytes, list[StatusEntry]] = {}
    for entry in entries:
        name, slash, _ = entry.path[len(folder) :].partition(b"/")
        groups.setdefault(folder + name + slash, []).append(entry)
    return groups
