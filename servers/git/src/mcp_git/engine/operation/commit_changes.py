"""Says what an operation did to the commits of the branch: which it made, brought, took off or left out."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_git.engine.history.commit_rows import abbreviation
from mcp_git.engine.history.cut_history import list_boundary
from mcp_git.engine.history.line_origins import choose_origins
from mcp_git.engine.history.patch_lines import PatchLines, name_lines, read_patch_lines, stream_patch_lines
from mcp_git.engine.operation.operation import CommitOperation, Operation, PickOperation
from mcp_git.engine.operation.untracked_files import name_some
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import Output, clip, split_lines
from mcp_git.engine.undo.earlier_state import Snapshot
from mcp_git.engine.work_tree.status import Status
from mcp_git.models import count
from mcp_git.path_quoting import escape_line_breaks, quote_path
from mcp_git.policy import Range, Repository

__all__ = ["CommitChanges"]

_MAX_LISTED = 20
_MAX_ROW_BYTES = 120
# Commands that make one commit with the caller's own subject, or none: of others the new commits of HEAD are listed.
_COMMANDS_WITHOUT_NEWS = frozenset({"commit", "switch"})
# Commands whose commits are to be compared with those that they repeat.
_COMMANDS_WITH_COUNTS = frozenset({"cherry-pick", "revert"})
# The mark is before each commit, so that no subject is taken for counts.
_COMMIT_MARK = "\x01"
_COMMIT_FORMAT = "%x01%H%x00%h%x00%an %at%x00%s"
_SHORT_COUNTS = re.compile(
    r" (?P<files>\d+) files? changed(?:, (?P<added>\d+) insertions?\(\+\))?(?:, (?P<removed>\d+) deletions?\(-\))?"
)
# How many lines are shown of those that the branch of a picked commit had already.
_MAX_LINES_OF_SOURCE = 2
# The search for the commits with which they came: how many are searched, and how many bytes of their patches.
_MAX_SEARCHED = 1000
_MAX_SEARCHED_BYTES = 4_000_000
# How many of these commits are named.
_MAX_ORIGINS = 3
_MAX_ORIGIN_BYTES = 70


class _ListedCommit(NamedTuple):
    """A commit as an answer lists it.

    Attributes:
        origin: what stays as it is where a commit is made once more: its author, when that was, and its subject.
        counts: how much it changes; empty where that is not told.
    """

    oid: str
    short_hash: str
    subject: str
    origin: str
    counts: str = ""


@dataclass(frozen=True)
class CommitChanges:
    """The commits of the branch before and after an operation.

    Attributes:
        before: the state before the operation.
        after: the state after it.
    """

    git: Git
    repository: Repository
    operation: Operation
    before: Snapshot
    after: Status
    cancel: CancelToken

    def describe_new(self) -> list[str]:
        """Return a line for each new commit of the branch, with how much it changes where it repeats another one."""
        has_moved = self.after.has_commit and self.after.oid != self.before.status.oid
        if not has_moved or self.operation.command in _COMMANDS_WITHOUT_NEWS:
            return []
        span = self.after.oid
        start = self._find_start()
        if start:
            span = f"{start}..{self.after.oid}"
        revisions = [span]
        if isinstance(self.operation, CommitOperation | PickOperation) and self.operation.base:
            revisions.append(f"^{self.operation.base}")
        sources = self._list_sources()
        return [self._describe_new_commit(commit, sources) for commit in self._list_commits(revisions)]

    def _describe_new_commit(self, commit: _ListedCommit, sources: Mapping[str, _ListedCommit]) -> str:
        line = clip(escape_line_breaks(f"{commit.short_hash} {commit.subject}"), _MAX_ROW_BYTES)
        source = sources.get(commit.origin)
        # Of a merge git does not tell counts.
        if source is not None and source.counts not in ("", commit.counts):
            return f"{line} ({commit.counts or 'nothing'}; {self._compare_with_source(commit, source)})"
        if commit.counts:
            return f"{line} ({commit.counts})"
        return line

    def _compare_with_source(self, commit: _ListedCommit, source: _ListedCommit) -> str:
        """Return how much the source of a picked commit changes, and what of that the branch had already.

        Git leaves out of a commit that is picked without a conflict only what the branch had.
        """
        numbers = _list_counts(commit)
        source_numbers = _list_counts(source)
        if any(number > limit for number, limit in zip(numbers, source_numbers, strict=True)):
            return f"{source.counts} in {source.short_hash}"
        text = f"the rest of {source.short_hash} ({source.counts}) was here already"
        files = _SmallerFiles(self._count_lines_of_files(commit), self._count_lines_of_files(source))
        if files.paths:
            text += f": {files.describe()}"
        patches = read_patch_lines(self.git, self.repository, [commit.oid, source.oid], self.cancel)
        source_lines = patches.get(source.oid, PatchLines())
        # A commit without a change has no patch.
        lines = patches.get(commit.oid, PatchLines())
        missing_lines = source_lines - lines
        if missing_lines and lines <= source_lines:
            text += f": {name_lines(missing_lines, _MAX_LINES_OF_SOURCE)}"
            origins = self._find_origins(missing_lines, [f"{commit.oid}^", f"^{source.oid}"], files.all_paths)
            if origins:
                text += f", came with {', '.join(origins)}"
        return text

    def _find_origins(self, lines: PatchLines, span: Sequence[str], paths: Sequence[str]) -> list[str]:
        """Return hash and subject of the commits with which lines came, newest first; nothing if that is uncertain.

        Args:
            span: the revisions between which these commits are.
            paths: the files that may have the lines.
        """
        rows = self._list_changes_of_files(span, paths)
        options = ["--", *paths]
        patches = dict(
            stream_patch_lines(self.git, self.repository, list(rows), self.cancel, _MAX_SEARCHED_BYTES, options)
        )
        if len(patches) < len(rows):
            return []  # For the patch of one there was no room.
        origins = choose_origins(lines, patches)
        # Lines of a renamed file are not new, but git sees a rename only among all files of a commit.
        whole_patches = read_patch_lines(self.git, self.repository, origins, self.cancel)
        for oid in origins:
            if not patches[oid] <= whole_patches.get(oid, PatchLines()):
                return []
        names = [clip(escape_line_breaks(rows[oid]), _MAX_ORIGIN_BYTES) for oid in origins[:_MAX_ORIGINS]]
        if len(origins) > len(names):
            names.append(f"{len(origins) - len(names):,} more")
        return names

    def _list_changes_of_files(self, span: Sequence[str], paths: Sequence[str]) -> Mapping[str, str]:
        """Return by its hash a row for each commit that changed some files.

        There is none if the commits are too many, or if the first of a shallow clone is one of them.
        """
        options = [*abbreviation(), "--no-merges", "--topo-order", f"--max-count={_MAX_SEARCHED + 1}"]
        arguments = ["log", "--format=%H%x00%h %s", *options, *span, "--", *paths]
        output = self.git.run(self.repository, arguments, self.cancel, exit_codes=(0, 128))
        rows = dict(line.split("\0", 1) for line in split_lines(output))
        boundary = list_boundary(self.git.layout(self.repository))
        if len(rows) > _MAX_SEARCHED or not rows.keys().isdisjoint(boundary):
            return {}
        return rows

    def _count_lines_of_files(self, commit: _ListedCommit) -> Mapping[bytes, bytes]:
        """Return by its path how many lines a commit adds to each file and removes from it, as git prints that."""
        arguments = ["diff-tree", "-r", "--root", "--no-commit-id", "--no-renames", "--numstat", "-z"]
        output = self.git.run(self.repository, [*arguments, commit.short_hash, "--"], self.cancel, exit_codes=(0, 128))
        counts: dict[bytes, bytes] = {}
        for record in output.stdout.split(b"\0")[:-1]:
            lines, _, name = record.rpartition(b"\t")
            counts[name] = lines
        return counts

    def _find_start(self) -> str:
        """Return the commit since which commits are news; empty if HEAD had none.

        What ends an operation in progress tells all that came of it.
        """
        operation = self.operation
        if isinstance(operation, CommitOperation) and operation.start and not self.after.in_progress:
            return operation.start
        return self.before.status.oid if self.before.head else ""

    def describe_brought(self) -> list[str]:
        """Return how much a merge changed here, which its commits do not tell."""
        start = self._find_start()
        is_done = not self.after.in_progress and self.after.has_commit and self.after.oid != start
        if self.operation.command != "merge" or not is_done or not start:
            return []
        arguments = ["diff", "--shortstat", "--no-ext-diff", "--no-textconv", start, self.after.oid, "--"]
        try:
            counts = _SHORT_COUNTS.fullmatch(self.git.run(self.repository, arguments, self.cancel).text.rstrip("\n"))
        except GitFailed:
            return []  # Of a partial clone the contents are not here.
        return [f"brought {_format_counts(counts)}"] if counts else []

    def describe_reset(self) -> list[str]:
        """Return at which commit a branch is that was moved back, and how many it has no longer."""
        before = self.before.status
        if self.operation.command != "reset" or not before.has_commit or self.after.oid == before.oid:
            return []
        arguments = ["rev-list", "--count", f"{self.after.oid}..{before.oid}", "--"]
        removed_count = int(self.git.run(self.repository, arguments, self.cancel).text)
        if not removed_count:
            return []
        tip = self.describe(self.after.oid, "%h %s")
        return [f"{count(removed_count, 'commit')} taken off, now at {tip}"]

    def describe_abandoned(self) -> list[str]:
        """Return the commits of a detached HEAD that are on no branch once it has gone to one."""
        before = self.before.status
        has_left = before.is_detached and before.has_commit and self.after.oid != before.oid
        if self.operation.command != "switch" or not has_left:
            return []
        # A stash keeps them too, but only until it is popped.
        commits = self._list_commits([before.oid, "--not", "--branches", "--tags", "--remotes"])
        if not commits:
            return []
        tip = clip(escape_line_breaks(f"{commits[0].short_hash} {commits[0].subject}"), _MAX_ROW_BYTES)
        if len(commits) > 1:
            tip += " and others before it"
        return [f"on no branch now: {tip}; `create_branch` with rev={commits[0].short_hash} makes one"]

    def _list_commits(self, revisions: Sequence[str]) -> list[_ListedCommit]:
        """Return commits; of those that were made once more also how much they change."""
        arguments = ["log", *abbreviation(), f"--format={_COMMIT_FORMAT}", f"--max-count={_MAX_LISTED}", *revisions]
        if self.operation.command in _COMMANDS_WITH_COUNTS:
            try:
                return _parse_commits(self.git.run(self.repository, [*arguments, "--shortstat", "--"], self.cancel))
            except GitFailed:
                pass  # Of a partial clone the contents are not here.
        return _parse_commits(self.git.run(self.repository, [*arguments, "--"], self.cancel))

    def _list_sources(self) -> Mapping[str, _ListedCommit]:
        """Return by their origin the commits that a cherry-pick was given.

        What a branch has already falls away from a commit without a word of git, and its counts tell.
        """
        revision = self.operation.revision
        if self.operation.command != "cherry-pick" or revision is None:
            return {}
        revisions = revision.arguments
        if not isinstance(revision, Range):
            revisions = ["--no-walk", *revisions]
        try:
            commits = self._list_commits(revisions)
        except GitFailed:
            return {}  # It named a commit by where HEAD was.
        return {commit.origin: commit for commit in commits}

    def describe_left_out(self) -> list[str]:
        """Return which commits of the branch a rebase that is done has not put on the new base."""
        operation = self.operation
        if operation.command != "rebase" or self.after.in_progress:
            return []
        if not isinstance(operation, CommitOperation | PickOperation) or not operation.base:
            return []
        old_head = self.before.status.oid
        if isinstance(operation, CommitOperation):
            old_head = operation.start
        merge_count = self._count_commits("--merges", f"{operation.base}..{old_head}")
        lines: list[str] = []
        if merge_count:
            lines.append(f"left out: {count(merge_count, 'merge')}, with what was changed in it alone")
        old_count = self._count_commits("--no-merges", f"{operation.base}..{old_head}")
        if old_count > self._count_commits("--no-merges", f"{operation.base}..{self.after.oid}"):
            lines += self._describe_left_out_commits(operation.base, old_head)
        return lines

    def describe_passed(self, reasons: Mapping[str, str]) -> list[str]:
        """Return the commits that a cherry-pick or revert passed over, each with the reason."""
        lines = [
            f"left out, {reason}: {self.describe(oid, '%h %s')}" for oid, reason in list(reasons.items())[:_MAX_LISTED]
        ]
        if len(reasons) > _MAX_LISTED:
            lines.append(f"left out: {len(reasons) - _MAX_LISTED:,} more")
        return lines

    def _count_commits(self, option: str, span: str) -> int:
        return int(self.git.run(self.repository, ["rev-list", "--count", option, span, "--"], self.cancel).text)

    def _describe_left_out_commits(self, base: str, old_head: str) -> list[str]:
        """Return the commits whose change the new base has already, and the others that were not made once more."""
        log = ["log", "--no-merges", *abbreviation()]
        new = self.git.run(
            self.repository, [*log, f"--format={_COMMIT_FORMAT}", f"{base}..{self.after.oid}"], self.cancel
        )
        new_origins = {commit.origin for commit in _parse_commits(new)}
        compare = [*log, "--cherry-mark", "--right-only", f"--format=%m{_COMMIT_FORMAT}", f"{base}...{old_head}"]
        reason_of_others = "nothing of it was left"
        if self.operation.ends_in_progress:
            reason_of_others += ", or it was skipped or joined with another"
        lines: list[str] = []
        for line in split_lines(self.git.run(self.repository, compare, self.cancel)):
            mark, _, details = line.partition(_COMMIT_MARK)
            commit = _parse_commit(details)
            if mark == "=":
                reason = "the new base has this change already"
            elif commit.origin not in new_origins:
                reason = reason_of_others
            else:
                continue
            row = clip(escape_line_breaks(f"{commit.short_hash} {commit.subject}"), _MAX_ROW_BYTES)
            lines.append(f"left out, {reason}: {row}")
        if len(lines) > _MAX_LISTED:
            return [*lines[:_MAX_LISTED], f"left out: {len(lines) - _MAX_LISTED:,} more"]
        return lines

    def describe(self, oid: str, line_format: str) -> str:
        """Return one commit in a format of `git log`, cut to a row."""
        arguments = ["log", *abbreviation(), f"--format={line_format}", "--max-count=1", oid, "--"]
        line = self.git.run(self.repository, arguments, self.cancel).text.rstrip("\n")
        return clip(escape_line_breaks(line), _MAX_ROW_BYTES)


def _parse_commits(output: Output) -> list[_ListedCommit]:
    """Return the commits that git printed in `_COMMIT_FORMAT`, each with its counts if these follow it."""
    commits: list[_ListedCommit] = []
    for line in split_lines(output):
        counts = _SHORT_COUNTS.fullmatch(line)
        if counts is not None:
            commits[-1] = commits[-1]._replace(counts=_format_counts(counts))
        elif line:
            commits.append(_parse_commit(line.removeprefix(_COMMIT_MARK)))
    return commits


def _parse_commit(line: str) -> _ListedCommit:
    """Return the commit of a line in `_COMMIT_FORMAT`, without the mark."""
    oid, short_hash, author, subject = line.split("\0", 3)
    return _ListedCommit(oid, short_hash, subject, f"{author} {subject}")


def _format_counts(counts: re.Match[str]) -> str:
    """Return how much a commit changes."""
    files = count(int(counts["files"]), "file")
    return f"{files}, +{counts['added'] or 0} -{counts['removed'] or 0}"


class _SmallerFiles:
    """The files of which a commit that was picked changes less than its source.

    Args:
        counts, source_counts: how many lines the two commits add to each file and remove from it.

    Attributes:
        paths: the files as the source has them.
    """

    def __init__(self, counts: Mapping[bytes, bytes], source_counts: Mapping[bytes, bytes]) -> None:
        self.paths = [path for path, lines in source_counts.items() if counts.get(path) != lines]
        self._new_paths = counts.keys() - source_counts.keys()
        self._moved = _pair_moved(source_counts.keys() - counts.keys(), self._new_paths)

    @property
    def all_paths(self) -> list[str]:
        """The files as the source has them, and those that only the picked commit has, which may be the same."""
        return [os.fsdecode(path) for path in (*self.paths, *sorted(self._new_paths))]

    def describe(self) -> str:
        return name_some([self._name(path) for path in self.paths])

    def _name(self, path: bytes) -> str:
        """Return the path of a file, and behind it the one that it has on the branch, if that is another."""
        if path not in self._moved:
            return quote_path(path)
        return f"{quote_path(path)} (here {quote_path(self._moved[path])})"


def _pair_moved(source_paths: Collection[bytes], branch_paths: Collection[bytes]) -> Mapping[bytes, bytes]:
    """Return by the path of a file in a picked commit where the branch has it, if one file there has its name."""
    moved: dict[bytes, bytes] = {}
    for path in source_paths:
        candidates = [other for other in branch_paths if os.path.basename(other) == os.path.basename(path)]
        if len(candidates) == 1:
            moved[path] = candidates[0]
    return moved


def _list_counts(commit: _ListedCommit) -> list[int]:
    """Return how many files, added and removed lines a commit has."""
    if not commit.counts:
        return [0, 0, 0]
    return [int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", commit.counts)]
