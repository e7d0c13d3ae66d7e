"""Tells what an operation did: what happened, what is left to do, and how to undo it."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict
from mcp_batteries.server.calling.results import is_answering_script
from mcp_git.engine.history.commit_rows import abbreviation
from mcp_git.engine.history.diff import read_conflict_sides, summarize_commit
from mcp_git.engine.history.patch_lines import PatchLines, name_lines, read_patch_lines
from mcp_git.engine.operation.conflicts import is_empty_pick, list_conflicts, list_new_conflicts
from mcp_git.engine.operation.operation import (
    CommitOperation,
    FileOperation,
    Operation,
    PickOperation,
    RefOperation,
)
from mcp_git.engine.operation.unheeded import find_unheeded
from mcp_git.engine.operation.untracked_files import (
    describe_remaining_files,
    find_overwritten_untracked,
    list_refused_by_add,
    list_untracked,
    name_some,
)
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import Output, clip, split_lines
from mcp_git.engine.undo.earlier_state import Snapshot, list_staged_since
from mcp_git.engine.undo.later_state import LaterState, Trees, name_position
from mcp_git.engine.undo.snapshot import take_snapshot
from mcp_git.engine.undo.undo_kind import BEFORE_IT_BEGAN, HASH_LENGTH, UndoKind
from mcp_git.engine.work_tree.in_progress import find_picked_commits, find_unmade_commit, list_remaining_commits
from mcp_git.engine.work_tree.status import Status, count_kinds, describe_counts, is_conflict
from mcp_git.engine.work_tree.status_reader import describe_submodules, read_status
from mcp_git.models import Answer, count
from mcp_git.path_quoting import escape_line_breaks, quote_path, quote_paths
from mcp_git.policy import Range, Repository
from mcp_git.repository_paths import Layout
from mcp_git.tool_calls import ToolCall, format_call

__all__ = ["report_operation"]

_MAX_LISTED = 20
_MAX_ROW_BYTES = 120
_MAX_WARNING_BYTES = 300
# Of what is still staged, how much a commit names.
_MAX_STAGED_NAMES = 5
# How many bytes of names one command is given.
_MAX_NAMES_BYTES = 50_000
# Commands after which a caller wants to know which files are staged or changed; of a commit that has its own lines.
_COMMANDS_WITH_STATUS = frozenset({"add", "apply", "cherry-pick", "merge", "mv", "reset", "restore", "revert", "stash"})
_MAX_STATUS_LINES = 10
# Commands that make one commit with the caller's own subject, or none: of others the new commits of HEAD are listed.
_COMMANDS_WITHOUT_NEWS = frozenset({"commit", "switch"})
# Commands that never look at the work tree.
_REF_COMMANDS = frozenset({"branch", "tag"})
# Ways of undoing in which git reads the commit before into the index.
_KINDS_THAT_READ_TREES = frozenset({UndoKind.KEEP, UndoKind.MIXED, UndoKind.HARD, UndoKind.CARRIED})
# Commands whose commits are to be compared with those that they repeat.
_COMMANDS_WITH_COUNTS = frozenset({"cherry-pick", "revert"})
# The mark is before each commit, so that no subject is taken for counts.
_COMMIT_MARK = "\x01"
_COMMIT_FORMAT = "%x01%H%x00%h%x00%an %at%x00%s"
_SHORT_COUNTS = re.compile(
    r" (?P<files>\d+) files? changed(?:, (?P<added>\d+) insertions?\(\+\))?(?:, (?P<removed>\d+) deletions?\(-\))?"
)
# Of what the branch of a picked commit had already.
_MAX_LINES_OF_SOURCE = 2
_LINK_MODE = "120000"
# What the two letters of a conflict say, in git's words; `UU` is the usual one.
_CONFLICT_KINDS = {
    "DD": " (deleted by both)", "AU": " (added by us)", "UD": " (deleted by them)", "UA": " (added by them)",
    "DU": " (deleted by us)", "AA": " (added by both)",
}  # fmt: skip


def report_operation(
    git: Git,
    repository: Repository,
    layout: Layout,
    operation: Operation,
    before: Snapshot,
    picked_commits: Sequence[str],
    left_out: Mapping[str, str],
    warnings: Sequence[str],
    cancel: CancelToken,
) -> Answer:
    """Return what an operation did.

    Args:
        warnings: what git warned of meanwhile.
        before: the state before it.
        picked_commits: the commits at which a cherry-pick and a revert stood before it.
        left_out: the commits of a cherry-pick or revert that it passed over, each with the reason.
    """
    after = read_status(git, repository, cancel, layout=layout)
    picked_after = find_picked_commits(git, repository, layout, cancel)
    report = _Report(
        git, repository, layout, operation, before, picked_commits, after, picked_after, left_out, warnings, cancel
    )
    report.write()
    return Answer(report.facts, report.lines)


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


@dataclass
class _Report:
    """The answer to an operation as it is written.

    Attributes:
        before: the state before the operation.
        after: the state after it.
        facts: the parts of its first line.
        lines: the others.
    """

    git: Git
    repository: Repository
    layout: Layout
    operation: Operation
    before: Snapshot
    picked_before: Sequence[str]
    after: Status
    picked_after: Sequence[str]
    left_out: Mapping[str, str]
    warnings: Sequence[str]
    cancel: CancelToken
    facts: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    _staged_by_undo: Sequence[bytes] = ()

    def write(self) -> None:
        if self._changes_no_head:
            # What was made or deleted is the news, and nothing else can have changed.
            self.facts += self.operation.after() or [self.after.branch]
            self._add_warnings()
            self._add_unheeded()
            self._add_undo()
            return
        self.facts += [self.after.branch, *self.after.in_progress]
        self._add_up_to_date()
        self._add_new_commits()
        self._add_brought_changes()
        self._add_reset()
        self._add_left_out()
        self._add_passed_commits()
        if self._is_commit:
            self._add_commit()
        self._add_conflicts()
        self._add_warnings()
        self._add_unheeded()
        self.lines += self.operation.after()
        self._add_lost_operations()
        self._add_lost_marks()
        self._add_restored_deletions()
        if self.after.in_progress:
            self._add_next_step()
        if not self.after.in_progress or self.operation.undo_kind in (UndoKind.INDEX, UndoKind.FILES):
            self._add_undo()

    def _add_up_to_date(self) -> None:
        if self.operation.command != "merge" or self.operation.ends_in_progress:
            return
        status = self.before.status
        is_same_operation = self.after.in_progress == status.in_progress
        if self.after.oid == status.oid and self.after.entries == status.entries and is_same_operation:
            self.facts.append("already up to date")

    def _add_new_commits(self) -> None:
        has_moved = self.after.has_commit and self.after.oid != self.before.status.oid
        if not has_moved or self.operation.command in _COMMANDS_WITHOUT_NEWS:
            return
        span = self.after.oid
        start = self._find_start()
        if start:
            span = f"{start}..{self.after.oid}"
        revisions = [span]
        if isinstance(self.operation, CommitOperation | PickOperation) and self.operation.base:
            revisions.append(f"^{self.operation.base}")
        commits = self._list_commits(revisions)
        sources = self._list_sources()
        for commit in commits:
            line = clip(escape_line_breaks(f"{commit.short_hash} {commit.subject}"), _MAX_ROW_BYTES)
            source = sources.get(commit.origin)
            # Of a merge git does not tell counts.
            if source is not None and source.counts not in ("", commit.counts):
                line += f" ({commit.counts or 'nothing'}; {self._compare_with_source(commit, source)})"
            elif commit.counts:
                line += f" ({commit.counts})"
            self.lines.append(line)

    def _compare_with_source(self, commit: _ListedCommit, source: _ListedCommit) -> str:
        """Return how much the source of a picked commit changes, and what of that the branch had already.

        Git leaves out of a commit that is picked without a conflict only what the branch had.
        """
        numbers = _list_counts(commit)
        source_numbers = _list_counts(source)
        if any(number > limit for number, limit in zip(numbers, source_numbers, strict=True)):
            return f"{source.counts} in {source.short_hash}"
        text = f"the rest of {source.short_hash} ({source.counts}) was here already"
        names = self._name_smaller_files(commit, source)
        if names:
            text += f": {names}"
        patches = read_patch_lines(self.git, self.repository, [commit.oid, source.oid], self.cancel)
        source_lines = patches.get(source.oid, PatchLines())
        # A commit without a change has no patch.
        lines = patches.get(commit.oid, PatchLines())
        missing_lines = source_lines - lines
        if missing_lines and lines <= source_lines:
            text += f": {name_lines(missing_lines, _MAX_LINES_OF_SOURCE)}"
        return text

    def _name_smaller_files(self, commit: _ListedCommit, source: _ListedCommit) -> str:
        """Return the files of which a commit that was picked changes less than its source."""
        counts = self._count_lines_of_files(commit)
        source_counts = self._count_lines_of_files(source)
        names = [name for name, lines in source_counts.items() if counts.get(name) != lines]
        moved = _pair_moved(source_counts.keys() - counts.keys(), counts.keys() - source_counts.keys())
        return name_some([_name_here(name, moved.get(name)) for name in names])

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

    def _add_brought_changes(self) -> None:
        """Add how much a merge changed here, which its commits do not tell."""
        start = self._find_start()
        is_done = not self.after.in_progress and self.after.has_commit and self.after.oid != start
        if self.operation.command != "merge" or not is_done or not start:
            return
        arguments = ["diff", "--shortstat", "--no-ext-diff", "--no-textconv", start, self.after.oid, "--"]
        try:
            counts = _SHORT_COUNTS.fullmatch(self.git.run(self.repository, arguments, self.cancel).text.rstrip("\n"))
        except GitFailed:
            return  # Of a partial clone the contents are not here.
        if counts is not None:
            self.facts.append(f"brought {_format_counts(counts)}")

    def _add_reset(self) -> None:
        """Add at which commit a branch is that was moved back, and how many it has no longer."""
        before = self.before.status
        if self.operation.command != "reset" or not before.has_commit or self.after.oid == before.oid:
            return
        arguments = ["rev-list", "--count", f"{self.after.oid}..{before.oid}", "--"]
        removed_count = int(self.git.run(self.repository, arguments, self.cancel).text)
        if removed_count:
            tip = self._describe_commit(self.after.oid, "%h %s")
            self.lines.append(f"{count(removed_count, 'commit')} taken off, now at {tip}")

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

    def _add_left_out(self) -> None:
        """Add which commits of the branch a rebase that is done has not put on the new base."""
        operation = self.operation
        if operation.command != "rebase" or self.after.in_progress:
            return
        if not isinstance(operation, CommitOperation | PickOperation) or not operation.base:
            return
        old_head = self.before.status.oid
        if isinstance(operation, CommitOperation):
            old_head = operation.start
        merge_count = self._count_commits("--merges", f"{operation.base}..{old_head}")
        if merge_count:
            self.lines.append(f"left out: {count(merge_count, 'merge')}, with what was changed in it alone")
        old_count = self._count_commits("--no-merges", f"{operation.base}..{old_head}")
        if old_count > self._count_commits("--no-merges", f"{operation.base}..{self.after.oid}"):
            self._add_left_out_commits(operation.base, old_head)

    def _add_passed_commits(self) -> None:
        """Add the commits that a cherry-pick or revert passed over."""
        for oid in list(self.left_out)[:_MAX_LISTED]:
            self.lines.append(f"left out, {self.left_out[oid]}: {self._describe_commit(oid, '%h %s')}")
        if len(self.left_out) > _MAX_LISTED:
            self.lines.append(f"left out: {len(self.left_out) - _MAX_LISTED:,} more")

    def _count_commits(self, option: str, span: str) -> int:
        return int(self.git.run(self.repository, ["rev-list", "--count", option, span, "--"], self.cancel).text)

    def _add_left_out_commits(self, base: str, old_head: str) -> None:
        """Add the commits whose change the new base has already, and the others that were not made once more."""
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
        self.lines += lines[:_MAX_LISTED]
        if len(lines) > _MAX_LISTED:
            self.lines.append(f"left out: {len(lines) - _MAX_LISTED:,} more")

    @property
    def _changes_no_head(self) -> bool:
        """Whether it makes or deletes a branch or tag, and HEAD and all files stay as they are."""
        operation = self.operation
        return operation.command in _REF_COMMANDS and isinstance(operation, RefOperation) and not operation.next_steps

    @property
    def _is_commit(self) -> bool:
        """Whether it made a commit of what is staged or named."""
        return self.operation.command == "commit" and self.after.oid != self.before.status.oid

    @property
    def _is_commit_of_paths(self) -> bool:
        return isinstance(self.operation, CommitOperation) and self.operation.is_of_paths

    def _add_commit(self) -> None:
        """Add what a commit took."""
        files: list[str] = []
        try:
            counts, files = summarize_commit(self.git, self.repository, self.after.oid, self.cancel)
        except GitFailed:
            # Of a partial clone the contents are not here.
            counts = "what can't be compared here"
        self.facts.append(f"committed {counts}")
        self.lines.append(self._describe_commit(self.after.oid, "%h %s"))
        if "--amend" in self.operation.arguments:
            # It may be somebody else's who committed meanwhile.
            replaced = self._describe_commit(self.before.status.oid, "%h %an: %s")
            self.lines.append(f"in place of {replaced}")
        self.lines += files[:_MAX_LISTED]
        if len(files) > _MAX_LISTED:
            self.lines.append("… `read_diff` with rev=HEAD and files_only has the others")

    def _describe_commit(self, oid: str, line_format: str) -> str:
        arguments = ["log", *abbreviation(), f"--format={line_format}", "--max-count=1", oid, "--"]
        line = self.git.run(self.repository, arguments, self.cancel).text.rstrip("\n")
        return clip(escape_line_breaks(line), _MAX_ROW_BYTES)

    def _add_warnings(self) -> None:
        for warning in self.warnings:
            line = f"git: {clip(escape_line_breaks(warning), _MAX_WARNING_BYTES)}"
            if warning.startswith("adding embedded git repository"):
                line += " (of a repository inside this one only the commit is recorded, none of its files)"
            self.lines.append(line)

    def _add_unheeded(self) -> None:
        """Add what git itself would have run here, and for what it would have signed."""
        if self.after.oid == self.before.status.oid and self.operation.command not in ("switch", "tag"):
            return
        hooks, is_unsigned = find_unheeded(self.git, self.repository, self.layout, self.operation.command)
        if hooks:
            self.lines.append(f"not run here: {', '.join(hooks)}")
        disbelieved = self.git.describe_disbelieved(self.repository) if self._is_commit else ""
        if disbelieved:
            arguments = ["log", "--format=%cn <%ce>", "--max-count=1", self.after.oid, "--"]
            committer = self.git.run(self.repository, arguments, self.cancel).text.strip()
            self.lines.append(f"{disbelieved}; committed as {escape_line_breaks(clip(committer, _MAX_ROW_BYTES))}")
        if is_unsigned:
            self.lines.append("not signed, though the configuration asks for it")

    def _add_conflicts(self) -> None:
        conflicts = list_conflicts(self.after)
        if conflicts:
            self._add_conflict_sides(conflicts)
        if self.after.entries:
            self.facts.append(f"{describe_counts(count_kinds(self.after.entries))}{self._describe_staged()}")
        else:
            self.facts.append("clean")
        if len(self.after.entries) > len(conflicts):
            self._add_other_files()
        else:
            self.facts += describe_submodules(self.git, self.layout)

    def _add_other_files(self) -> None:
        """Add the status of the files that are not in conflict, where the command may have changed it.

        A script prints the answers of many steps, and reads the files by `get_status` where it needs them.
        """
        if self.operation.command not in _COMMANDS_WITH_STATUS or is_answering_script():
            return
        entries = [entry for entry in self.after.entries if not is_conflict(entry.letters)]
        # What git does not know is the least of what the command did.
        entries.sort(key=lambda entry: entry.letters == "??")
        self.lines += [entry.line for entry in entries[:_MAX_STATUS_LINES]]
        remaining = len(entries) - _MAX_STATUS_LINES
        if remaining > 0:
            self.lines.append(f"… {remaining:,} more: `get_status` has them")

    def _describe_staged(self) -> str:
        """Return what is still staged after a commit, in brackets."""
        staged = quote_paths(self.after.list_staged()) if self._is_commit else []
        if not staged:
            return ""
        names = ", ".join(staged[:_MAX_STAGED_NAMES])
        if len(staged) > _MAX_STAGED_NAMES:
            names += f" and {len(staged) - _MAX_STAGED_NAMES:,} more"
        return f" (still staged: {names})"

    def _add_conflict_sides(self, conflicts: Sequence[bytes]) -> None:
        sides: dict[str, list[str]] = {}
        new_conflicts = list_new_conflicts(self.after, self.before.status)
        if new_conflicts:
            sides = read_conflict_sides(self.git, self.repository, new_conflicts[:_MAX_LISTED], self.cancel)
        letters = {entry.path: entry.letters for entry in self.after.entries}
        for path in conflicts[:_MAX_LISTED]:
            name = quote_path(path)
            kind = _CONFLICT_KINDS.get(letters[path], "")
            self.lines.append(f"conflict: {name}{kind}")
            self.lines += sides.get(name, ())

    def _add_lost_operations(self) -> None:
        """Add what of operations in progress no undo brings back."""
        if (self.operation.command == "commit" and not self._is_commit_of_paths) or self.operation.ends_in_progress:
            return
        lost = self._list_lost_operations()
        if not lost and self._has_picked_another():
            lost = ["at which commit it stands"]
        self.lines += [f"not brought back by an undo: {phrase}" for phrase in lost]

    def _list_lost_operations(self) -> list[str]:
        commands_after = {phrase.split(" ")[0] for phrase in self.after.in_progress}
        return [phrase for phrase in self.before.status.in_progress if phrase.split(" ")[0] not in commands_after]

    def _has_picked_another(self) -> bool:
        pairs = zip(self.picked_before, self.picked_after, strict=True)
        return any(before and before != after for before, after in pairs)

    def _add_lost_marks(self) -> None:
        lost = _list_intended(self.before.status) - _list_intended(self.after)
        if lost:
            names = ", ".join(sorted(map(quote_path, lost))[:_MAX_LISTED])
            self.lines.append(clip(f"no undo brings back the mark `--intent-to-add` of {names}", 2 * _MAX_ROW_BYTES))

    def _add_restored_deletions(self) -> None:
        """Add what is staged as new and was deleted again, which a stash does not say."""
        if list(self.operation.arguments[:2]) != ["stash", "push"]:
            return
        deleted = {entry.path for entry in self.before.status.entries if entry.letters == "AD"}
        if deleted:
            names = ", ".join(sorted(quote_paths(deleted)))
            self.lines.append(f"the undo brings back these files, which were staged and then deleted: {names}")

    def _add_next_step(self) -> None:
        if self.after.in_progress[0].startswith("bisect"):
            # Only the user ends that one.
            return
        action = "continue"
        if is_empty_pick(self.picked_after, self.after):
            self.facts.append("nothing of the commit at hand is left")
            action = "skip"
        self.facts.append(f"go on with `continue_operation`: {action} or abort")
        remaining = len(list_remaining_commits(self.layout))
        if find_unmade_commit(self.git, self.repository, self.layout, self.cancel):
            remaining += 1
        is_pick = self.after.in_progress[0].startswith(("cherry-pick", "revert"))
        if is_pick and remaining:
            self.facts.append(f"{count(remaining, 'commit')} to come")
        if self.after.in_progress[0].startswith("rebase") and list_conflicts(self.after):
            self.facts.append("its `ours` is the new base")
        self.lines += [f"then {call} leads back" for call in self._return_calls]

    @property
    def _return_calls(self) -> Sequence[ToolCall]:
        if isinstance(self.operation, PickOperation):
            return self.operation.return_calls
        return ()

    def _add_undo(self) -> None:
        if self.operation.undo_kind == UndoKind.INDEX:
            self.before.store(self.layout)  # `list_staged_since` compares with it.
        stage_calls: list[ToolCall] = []
        remaining: list[str] = []
        if isinstance(self.operation, FileOperation) and self.operation.created_files:
            self._staged_by_undo, remaining = self._choose_created_files(self.operation.created_files)
            if self._staged_by_undo:
                stage_calls = [format_call("stage_files", paths=quote_paths(self._staged_by_undo))]
        calls = self._find_undo_calls()
        if calls and self._was_at_refused_link():
            self.lines.append(
                "no undo: the commit before has `.gitmodules` as a link, and git puts no such link into an index"
            )
            return
        if self._names_snapshot(calls):
            self.before.store(self.layout)
        if calls:
            calls = [*stage_calls, *calls]
            if remaining:
                self.lines.append(describe_remaining_files(remaining))
        obstacle = self._find_obstacle(calls)
        if obstacle:
            name = quote_path(obstacle)
            self.lines.append(f"no undo while the untracked {name} is there: move it away first")
        self.lines += [f"undo: {call}" for call in [*calls, *self._return_calls]]

    def _find_obstacle(self, calls: Sequence[ToolCall]) -> bytes:
        """Return an untracked file that lies where the first call that writes files is to write one; empty if none."""
        for call in calls:
            writes = call.tool == "run_restore" or call.arguments.get("mode") == UndoKind.HARD
            if writes:
                paths = self.operation.overwritten_paths
                if call.tool == "run_reset":
                    paths = ["."]
                source = str(call.arguments["rev"])
                return find_overwritten_untracked(
                    self.git, self.repository, self.layout, source, paths, self.cancel, even_same_content=True
                )
        return b""

    def _was_at_refused_link(self) -> bool:
        """Whether HEAD was at a commit to which git goes back no more, as it refuses what that has as `.gitmodules`."""
        has_moved = self.after.oid != self.before.status.oid
        if not has_moved or self.operation.undo_kind not in _KINDS_THAT_READ_TREES:
            return False
        if not any(entry.path == b".gitmodules" for entry in self.before.status.entries):
            return False
        arguments = ["ls-tree", self.before.status.oid, "--", ".gitmodules"]
        return self.git.run(self.repository, arguments, self.cancel).text.startswith(_LINK_MODE)

    def _read_later_trees(self) -> Trees:
        """Return the trees that an undo expects to find, which are stored for it."""
        new_files = self._staged_by_undo
        if not new_files and all(entry.letters == "??" for entry in self.after.entries):
            head = self.after.oid[:HASH_LENGTH] if self.after.has_commit else ""
            return Trees(head, head)
        try:
            with take_snapshot(self.git, self.repository, self.layout, self.after, True, self.cancel, new_files) as now:
                now.store(self.layout)
                return now.trees
        except Conflict:
            return Trees()

    def _names_snapshot(self, calls: Sequence[ToolCall]) -> bool:
        text = "\n".join(map(str, calls))
        return any(tree in text for tree in filter(None, (self.before.index_tree, self.before.files_tree)))

    def _find_undo_calls(self) -> Sequence[ToolCall]:
        operation = self.operation
        after = LaterState(self.after, self._read_later_trees)
        if operation.undo_kind == UndoKind.INDEX:
            staged = list_staged_since(self.git, self.repository, self.before, self.cancel)
            return self.before.undo_calls(UndoKind.INDEX, after, staged)
        calls = self.before.undo_calls(operation.undo_kind, after, operation.overwritten_paths or (".",))
        if operation.undo_calls is not None:
            return self._extend_planned_calls(operation.undo_calls(), calls, after)
        is_commit = operation.undo_kind in (UndoKind.SOFT, UndoKind.UNCOMMIT_ALL)
        if self.before.status.in_progress and is_commit and not self._is_commit_of_paths:
            reset = format_call("run_reset", rev=self.before.head).with_remark(BEFORE_IT_BEGAN)
            return [reset.expecting(name_position(self.after))]
        return calls

    def _extend_planned_calls(
        self, planned: Sequence[ToolCall], calls: Sequence[ToolCall], after: LaterState
    ) -> Sequence[ToolCall]:
        """Return the calls that were planned, with `calls` for what these do not bring back."""
        if not planned:
            return planned
        first, *others = planned
        if calls and self.operation.undo_kind == UndoKind.CARRIED:
            discard_calls = self._discard_calls(after)
            if not discard_calls:
                first = first.expecting(after.expect(head=True, files=True))
            return [*discard_calls, first, *others, *calls]
        if first.tool == "run_reset":
            first = first.expecting(name_position(self.after))
        return [first, *others]

    def _discard_calls(self, after: LaterState) -> list[ToolCall]:
        """Return the call that takes away what was staged as it is here, and changed since.

        It is in the way of going back, and the calls behind that restore it.
        """
        if self.before.index_tree and self.before.files_tree:
            reset = format_call("run_reset", rev=self.after.oid[:HASH_LENGTH], mode="hard")
            return [reset.expecting(after.expect(head=True, files=True))]
        return []

    def _choose_created_files(self, names: Sequence[str]) -> tuple[list[bytes], list[str]]:
        """Return which of the files that it made an undo stages first, and which files stay.

        A restore takes away what is staged.
        """
        created = {os.fsencode(name) for name in names}
        untracked = self._list_untracked(created)
        paths = list(dict.fromkeys(untracked))
        if len(paths) > _MAX_LISTED:
            paths = self._fold_into_folders(untracked, created)
        if len(paths) > _MAX_LISTED:
            paths = []
            untracked = []
        return paths, self._list_existing(created.difference(untracked))

    def _list_untracked(self, created: set[bytes]) -> list[bytes]:
        # More names fit into no command, and nobody reads them one by one.
        if sum(map(len, created)) >= _MAX_NAMES_BYTES:
            return []
        untracked = list_untracked(self.git, self.repository, created, self.cancel)
        refused = set(list_refused_by_add(self.git, self.repository, self.layout, untracked, self.cancel))
        return [path for path in untracked if path not in refused]

    def _list_existing(self, paths: set[bytes]) -> list[str]:
        top = os.fsencode(self.layout.work_tree or "")
        return quote_paths(path for path in sorted(paths) if os.path.lexists(os.path.join(top, path)))

    def _fold_into_folders(self, files: Sequence[bytes], created: set[bytes]) -> list[bytes]:
        """Replace files by the new folders in which they lie, where these hold nothing else."""
        own_folders = self._list_own_folders(created)
        return list(dict.fromkeys(_find_folder(path, own_folders) or path for path in files))

    def _list_own_folders(self, created: set[bytes]) -> list[bytes]:
        """Return the new folders that hold only what the operation made."""
        folders = [entry.path for entry in self.after.entries if entry.letters == "??" and entry.path.endswith(b"/")]
        # Somebody else's file in a folder, seen before the operation or not, is not taken away with it.
        others = set(list_untracked(self.git, self.repository, folders, self.cancel)) - created
        return [folder for folder in folders if not _holds_any(folder, others)]


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


def _pair_moved(source_paths: Collection[bytes], branch_paths: Collection[bytes]) -> Mapping[bytes, bytes]:
    """Return by the path of a file in a picked commit where the branch has it, if one file there has its name."""
    moved: dict[bytes, bytes] = {}
    for path in source_paths:
        candidates = [other for other in branch_paths if os.path.basename(other) == os.path.basename(path)]
        if len(candidates) == 1:
            moved[path] = candidates[0]
    return moved


def _name_here(path: bytes, here: bytes | None) -> str:
    """Return the path of a file, and behind it the one that it has on the branch, if that is another."""
    if here is None:
        return quote_path(path)
    return f"{quote_path(path)} (here {quote_path(here)})"


def _list_counts(commit: _ListedCommit) -> list[int]:
    """Return how many files, added and removed lines a commit has."""
    if not commit.counts:
        return [0, 0, 0]
    return [int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", commit.counts)]


def _holds_any(folder: bytes, paths: Iterable[bytes]) -> bool:
    return any(path.startswith(folder) for path in paths)


def _find_folder(path: bytes, folders: Sequence[bytes]) -> bytes:
    for folder in folders:
        if path.startswith(folder):
            return folder
    return b""


def _list_intended(status: Status) -> set[bytes]:
    """Return what is only meant to be added, which trees can't say."""
    return {entry.path for entry in status.entries if entry.letters == " A"}
