"""Tells what an operation did: what happened, what is left to do, and how to undo it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict
from mcp_batteries.server.calling.results import is_answering_script
from mcp_git.engine.history.diff import read_conflict_sides, summarize_commit
from mcp_git.engine.operation.commit_changes import CommitChanges
from mcp_git.engine.operation.conflicts import is_empty_pick, list_conflicts, list_marked, list_new_conflicts
from mcp_git.engine.operation.operation import (
    CommitOperation,
    FileOperation,
    Operation,
    PickOperation,
    RefOperation,
)
from mcp_git.engine.operation.submodules import describe_left_behind, describe_taken_back
from mcp_git.engine.operation.unheeded import find_unheeded
from mcp_git.engine.operation.untracked_files import (
    describe_remaining_files,
    find_overwritten_untracked,
    list_refused_by_add,
    list_untracked,
    name_some,
)
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import clip
from mcp_git.engine.undo.earlier_state import Snapshot, list_staged_since
from mcp_git.engine.undo.later_state import LaterState, Trees, name_position
from mcp_git.engine.undo.snapshot import take_snapshot
from mcp_git.engine.undo.undo_kind import BEFORE_IT_BEGAN, HASH_LENGTH, UndoKind
from mcp_git.engine.work_tree.in_progress import find_picked_commits, find_unmade_commit, list_remaining_commits
from mcp_git.engine.work_tree.status import Status, count_kinds, describe_counts, is_conflict
from mcp_git.engine.work_tree.status_reader import describe_submodules, read_status
from mcp_git.models import Answer, count
from mcp_git.path_quoting import escape_line_breaks, quote_path, quote_paths
from mcp_git.policy import Repository
from mcp_git.repository_paths import Layout
from mcp_git.tool_calls import ToolCall, format_call

__all__ = ["FinishedOperation", "report_operation"]

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
# Commands that never look at the work tree.
_REF_COMMANDS = frozenset({"branch", "tag"})
# Ways of undoing in which git reads the commit before into the index.
_KINDS_THAT_READ_TREES = frozenset({UndoKind.KEEP, UndoKind.MIXED, UndoKind.HARD, UndoKind.CARRIED})
_LINK_MODE = "120000"
# What the two letters of a conflict say, in git's words; `UU` is the usual one.
_CONFLICT_KINDS = {
    "DD": " (deleted by both)", "AU": " (added by us)", "UD": " (deleted by them)", "UA": " (added by them)",
    "DU": " (deleted by us)", "AA": " (added by both)",
}  # fmt: skip


@dataclass(frozen=True)
class FinishedOperation:
    """An operation that is done, and what is known only from before it and meanwhile.

    Attributes:
        before: the state before it.
        picked_before: the commits at which a cherry-pick and a revert stood before it.
        left_out: the commits of a cherry-pick or revert that it passed over, each with the reason.
        warnings: what git warned of meanwhile.
    """

    operation: Operation
    before: Snapshot
    picked_before: Sequence[str]
    left_out: Mapping[str, str]
    warnings: Sequence[str]


def report_operation(
    git: Git, repository: Repository, layout: Layout, finished: FinishedOperation, cancel: CancelToken
) -> Answer:
    """Return what an operation did."""
    after = read_status(git, repository, cancel, layout=layout)
    commits = CommitChanges(git, repository, finished.operation, finished.before, after, cancel)
    report = _Report(git, repository, layout, finished, after, commits, cancel)
    report.write()
    return Answer(report.facts, report.lines)


@dataclass
class _Report:
    """The answer to an operation as it is written.

    Attributes:
        after: the state after the operation.
        commits: what became of the commits of the branch.
        facts: the parts of its first line.
        lines: the others.
    """

    git: Git
    repository: Repository
    layout: Layout
    finished: FinishedOperation
    after: Status
    commits: CommitChanges
    cancel: CancelToken
    facts: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    _staged_by_undo: Sequence[bytes] = ()

    @property
    def operation(self) -> Operation:
        return self.finished.operation

    @property
    def before(self) -> Snapshot:
        return self.finished.before

    @cached_property
    def picked_after(self) -> Sequence[str]:
        """The commits at which a cherry-pick and a revert stand now."""
        return find_picked_commits(self.git, self.repository, self.layout, self.cancel)

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
        self.lines += self.commits.describe_new()
        self.facts += self.commits.describe_brought()
        self.lines += self.commits.describe_reset()
        self.lines += self.commits.describe_left_out()
        self.lines += self.commits.describe_passed(self.finished.left_out)
        self.lines += self.commits.describe_abandoned()
        if self._is_commit:
            self._add_commit()
        self._add_conflicts()
        self._add_staged_marks()
        self._add_way_to_untrack()
        self._add_submodules()
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
        self.lines.append(self.commits.describe(self.after.oid, "%h %s"))
        if "--amend" in self.operation.arguments:
            # It may be somebody else's who committed meanwhile.
            replaced = self.commits.describe(self.before.status.oid, "%h %an: %s")
            self.lines.append(f"in place of {replaced}")
        self.lines += files[:_MAX_LISTED]
        if len(files) > _MAX_LISTED:
            self.lines.append("… `read_diff` with rev=HEAD and files_only has the others")

    def _add_warnings(self) -> None:
        for warning in self.finished.warnings:
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

    def _add_staged_marks(self) -> None:
        """Add the files that were in conflict and are staged with both sides in them, as nothing else tells them."""
        if self.operation.command != "add":
            return
        unresolved = list_conflicts(self.after)
        resolved = [os.fsdecode(path) for path in list_conflicts(self.before.status) if path not in unresolved]
        marked = list_marked(self.git, self.repository, resolved, self.cancel)
        if marked:
            names = name_some(sorted(quote_paths(marked)))
            self.lines.append(f"staged with the marks of a conflict in it, such as `<<<<<<<`: {names}")

    def _add_way_to_untrack(self) -> None:
        """Add how files are no longer tracked, where nothing was staged that could be unstaged."""
        is_unstaging = self.operation.command == "reset" and self.operation.undo_kind == UndoKind.INDEX
        if not is_unstaging or self.operation.revision is not None or self.after.entries != self.before.status.entries:
            return
        arguments = ["hash-object", "-t", "tree", "--stdin"]
        # Git knows it by its whole hash alone.
        empty_tree = self.git.run(self.repository, arguments, self.cancel).text.strip()
        self.lines.append(
            f"nothing of it was staged; rev={empty_tree} takes what is tracked out, and leaves it on disk"
        )

    def _add_submodules(self) -> None:
        """Add the submodules that did not come along, and those that go back to where they were."""
        before = self.before.status
        command: list[str] = []
        if self.operation.command == "add":
            command = ["diff-index", "--cached", "HEAD"]
        elif self._is_commit:
            command = ["diff-tree", "-r", before.oid, self.after.oid]
        elif self.after.oid != before.oid:
            self.lines += describe_left_behind(self.git, self.layout, before, self.after)
        if command and before.has_commit:
            self.lines += describe_taken_back(self.git, self.repository, self.layout, command, self.cancel)

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
        pairs = zip(self.finished.picked_before, self.picked_after, strict=True)
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
