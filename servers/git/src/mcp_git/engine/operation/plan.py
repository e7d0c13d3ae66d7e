"""Plans operations whose command or undo depends on the state of the repository at their turn."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, Invalid, NotFound, Refused, quote
from mcp_git import git_config
from mcp_git.engine.history.commit_rows import abbreviation
from mcp_git.engine.operation.conflicts import is_at_or_below, list_conflicts
from mcp_git.engine.operation.operation import (
    CommitOperation,
    FileOperation,
    GitInput,
    Operation,
    PickOperation,
    RefOperation,
    refuse_program_steps,
)
from mcp_git.engine.operation.patch import encode_patch
from mcp_git.engine.operation.side_choice import SideChoice, plan_choice
from mcp_git.engine.operation.untracked_files import (
    describe_sparse_files,
    list_untracked_of_stash,
    name_some,
    refuse_obstructed_stash,
)
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import clip, select_options, split_names
from mcp_git.engine.program.revisions import find_commits
from mcp_git.engine.undo.later_state import branch_of
from mcp_git.engine.undo.undo_kind import BEFORE_IT_BEGAN, HASH_LENGTH, UndoKind
from mcp_git.engine.work_tree.in_progress import (
    find_operations_in_progress,
    find_start,
    find_unmade_commit,
    has_sequence,
    list_sequence_options,
)
from mcp_git.engine.work_tree.overlooked_files import list_assumed_unchanged
from mcp_git.engine.work_tree.status import Status
from mcp_git.engine.work_tree.status_reader import read_status
from mcp_git.models import count
from mcp_git.path_quoting import escape_line_breaks, quote_path, quote_paths
from mcp_git.policy import (
    Expectation,
    Message,
    NewName,
    Range,
    RemoteName,
    Repository,
    RepositoryPath,
    Revision,
    RevisionList,
    expect,
    parse_ref,
    parse_remote_name,
    parse_revision,
)
from mcp_git.repository_paths import Layout, read_small_file
from mcp_git.tool_calls import ToolCall, format_call

__all__ = ["OperationPlanner", "Upstream"]


class _ReturnFile(NamedTuple):
    """A file in which git notes what branch it moves, or goes back to, at the end of an operation in progress."""

    path: tuple[str, ...]
    participle: Literal["rebased", "bisected"]

    def short_names(self, branch: str) -> list[str]:
        """Return how else the file names a branch than by its ref."""
        return [branch] if self.participle == "bisected" else []


_RETURN_FILES = [
    _ReturnFile(("rebase-merge", "head-name"), "rebased"),
    _ReturnFile(("rebase-merge", "update-refs"), "rebased"),
    _ReturnFile(("rebase-apply", "head-name"), "rebased"),
    _ReturnFile(("BISECT_START",), "bisected"),
]
_STASH_MESSAGE = re.compile(r"(?:WIP on|On) ([^:]+): ")
_HASH = re.compile("[0-9a-f]{7,64}")
# Below this line nothing of a message counts; what is above is kept as it is, lines with `#` too.
_SCISSORS = re.compile(r"(?m)^. -+ >8 -+$")
# Lets git write that line at a conflict, and heed it; otherwise it takes lines with `#` for its own remarks.
_SCISSORS_OPTIONS = ["-c", "commit.cleanup=scissors"]
_NO_CHOICE = SideChoice()
# Systems bound the length of a command.
_MAX_NAMES_OF_COMMAND = 200
_MAX_ROW_BYTES = 120


class _ConfiguredUpstream(NamedTuple):
    """What a branch follows: a remote, `.` for none, and a ref there."""

    remote: str
    ref: str


class Upstream(NamedTuple):
    """What a branch follows: a remote, None if it is a branch here, and the name that has here."""

    remote: RemoteName | None
    name: Revision


@dataclass(frozen=True, slots=True)
class OperationPlanner:
    """Says what an operation is; every method blocks."""

    git: Git
    repository: Repository
    cancel: CancelToken

    def switch(self, revision: Revision) -> FileOperation:
        """Plan to switch to a branch, or to a commit that has none."""
        name = self._shorten_ref(revision.text, "heads")
        is_branch = bool(self.git.find_branch(self.repository, name, self.cancel))
        return_calls = self._return_calls(name if is_branch else "")
        arguments = ["switch", "--quiet", "--no-guess"]
        if not is_branch:
            arguments.append("--detach")
        return FileOperation(
            [*arguments, name],
            revision=revision,
            undo_calls=lambda: return_calls,
            undo_kind=UndoKind.CARRIED,
            overwritten_paths=["."],
        )

    def create_branch(self, new: NewName, start: Revision, switches: bool, upstream: Revision | None) -> RefOperation:
        """Plan to create a branch, and to switch to it if asked."""
        followed = self._resolve_upstream(upstream) if upstream else None

        def follow() -> Sequence[str]:
            lines: list[str] = []
            if not switches:
                lines = self._describe_ref(f"{new.text} is", f"refs/heads/{new.text}")
            if upstream is None or followed is None:
                return lines
            self._configure_branch(new.text, "remote", followed.remote)
            self._configure_branch(new.text, "merge", followed.ref)
            return [*lines, f"it follows {upstream.text}"]

        arguments = ["branch", "--no-track"]
        undo_calls: list[ToolCall] = []
        overwritten_paths: list[str] = []
        if switches:
            arguments = ["switch", "--quiet", "--no-track", "--create"]
            undo_calls += self._return_calls(new.text)
            overwritten_paths = ["."]
        delete = format_call("delete_ref", name=new.text, force=True)
        commit = self._find_hash(f"{start.text}^{{commit}}")
        undo_calls.append(delete.expecting(expect(ref=commit).text))
        return RefOperation(
            [*arguments, new.text, self._disambiguate(start)],
            revision=start,
            undo_calls=lambda: undo_calls,
            undo_kind=UndoKind.CARRIED,
            overwritten_paths=overwritten_paths,
            after=follow,
        )

    def rename_branch(self, branch: NewName, new: NewName) -> RefOperation:
        """Plan to rename a branch, with its reflog and what is configured for it.

        Git is shown no worktrees, so it leaves HEAD where it is.

        Raises:
            NotFound: there is no such branch.
            Conflict: another worktree is on it, or an operation in progress goes back to it.
        """
        name = self._shorten_ref(branch.text, "heads")
        if not self._find_hash(f"refs/heads/{name}"):
            raise NotFound(f"There is no branch {quote(name)} here.", "`list_refs` has branches.")
        self._refuse_moving_branch(name)
        self._refuse_used_elsewhere(name)
        entries = self.git.read_own_entries(self.repository, f"branch.{name}.")

        def rename_configuration() -> Sequence[str]:
            if entries:
                words = ["--rename-section", f"branch.{name}", f"branch.{new.text}"]
                self.git.configure(self.repository, words)
            return self._describe_ref(f"{name} is now {new.text},", f"refs/heads/{new.text}")

        next_steps: list[GitInput] = []
        if branch_of(read_status(self.git, self.repository, self.cancel)) == name:
            reason = f"Branch: renamed refs/heads/{name} to refs/heads/{new.text}"
            next_steps.append(GitInput(["symbolic-ref", "-m", reason, "HEAD", f"refs/heads/{new.text}"]))
        undo_calls = [format_call("create_branch", name=name, rename=new.text)]
        return RefOperation(
            ["branch", "--move", name, new.text],
            undo_calls=lambda: undo_calls,
            after=rename_configuration,
            hides_worktrees=True,
            next_steps=next_steps,
        )

    def _refuse_used_elsewhere(self, branch: str) -> None:
        """Refuse a branch on which another worktree is.

        Raises:
            Conflict: one is.
        """
        layout = self.git.layout(self.repository)
        for folder in _list_git_dirs(layout):
            head = read_small_file(os.path.join(folder, "HEAD"))
            if folder != layout.git_dir and head == f"ref: refs/heads/{branch}":
                raise Conflict(
                    f"Another worktree is on the branch {quote(branch)}.",
                    "`list_refs` with kind=worktrees names it: go to another branch there first.",
                )

    def move_path(self, source: RepositoryPath, target: RepositoryPath) -> Operation:
        """Plan to move a tracked file or folder, and to stage that.

        Raises:
            Refused: a link is on the way, which git would follow.
            Conflict: the target is a folder, into which git would move it.
        """
        target_path = os.path.join(self.git.layout(self.repository).work_tree or "", target.text)
        folder = os.path.dirname(target_path)
        if os.path.realpath(folder) != os.path.normpath(folder):
            raise Refused(f"A link leads to {quote(target.display)}.", "Name a `to` without links.")
        if os.path.isdir(target_path) and not os.path.islink(target_path):
            name_inside = quote_path(os.fsencode(os.path.join(target.text, os.path.basename(source.text))))
            raise Conflict(
                f"{quote(target.display)} is a folder that exists.", f"To move into it pass to={quote(name_inside)}."
            )
        undo_calls = [format_call("move_path", path=target.display, to=source.display)]
        return Operation(["mv", "--", source.text, target.text], undo_calls=lambda: undo_calls)

    def find_upstream(self) -> Upstream:
        """Return what the current branch follows.

        Raises:
            Conflict: it follows nothing, or HEAD is on no branch.
        """
        status = read_status(self.git, self.repository, self.cancel)
        entries = dict(self.git.read_own_entries(self.repository, f"branch.{branch_of(status)}."))
        name = self._name_upstream(entries)
        if status.is_detached or not name:
            branch = "HEAD" if status.is_detached else status.head
            raise Conflict(
                f"{quote(branch)} follows no branch of a remote that is here.",
                "`run_fetch` it, then `run_merge` or `run_rebase` names what comes.",
            )
        remote = None if entries["remote"] == "." else parse_remote_name(entries["remote"])
        return Upstream(remote, parse_revision(name))

    def _configure_branch(self, branch: str, key: str, value: str) -> None:
        self.git.configure(self.repository, ["--replace-all", f"branch.{branch}.{key}", value])

    def restore(self, source: Revision, paths: Sequence[str], *, stages: bool = True) -> FileOperation:
        """Plan to write files as a commit has them, and to stage them so unless the index is to stay as it is.

        Of a stash, what it had staged is staged again, and nothing else.
        """
        arguments = ["restore", f"--source={self._disambiguate(source)}", "--worktree", "--", *paths]
        created_files: list[str] = []
        next_steps: list[GitInput] = []
        stash = self._find_hash_of_listed_stash(source)
        if stages and not stash:
            arguments.insert(1, "--staged")
        else:
            created_files = self._list_missing(source, paths)
        if stages and stash:
            names = self._list_staged_of_stash(stash, paths)
            for start in range(0, len(names), _MAX_NAMES_OF_COMMAND):
                part = names[start : start + _MAX_NAMES_OF_COMMAND]
                next_steps.append(GitInput(["reset", "--quiet", f"{stash}^2", "--", *part]))
        unwritten = self._list_unwritten(paths)

        def describe_written() -> Sequence[str]:
            top = self.git.layout(self.repository).work_tree or ""
            names = [name for name in unwritten if os.path.lexists(os.path.join(top, name))]
            return [describe_sparse_files(names)] if names else []

        return FileOperation(
            arguments,
            revision=source,
            undo_kind=UndoKind.FILES,
            overwritten_paths=paths,
            source=source,
            created_files=created_files,
            next_steps=next_steps,
            after=describe_written,
        )

    def _find_hash_of_listed_stash(self, revision: Revision) -> str:
        """Return the hash of a stash of the list; empty for any other commit."""
        oid = self.git.find_hash(self.repository, f"{revision.text}^{{commit}}", self.cancel)
        return oid if oid in self._list_stashes() else ""

    def _list_staged_of_stash(self, stash: str, paths: Sequence[str]) -> list[str]:
        """Return the files below `paths` that a stash had staged."""
        arguments = ["diff-tree", "-r", "--name-only", "--no-renames", "-z", f"{stash}^1", f"{stash}^2", "--", *paths]
        return split_names(self.git.run(self.repository, arguments, self.cancel).stdout)

    def _list_missing(self, source: Revision, paths: Sequence[str]) -> list[str]:
        """Return the files below `paths` that a commit has, and neither the index nor the disk."""
        arguments = ["diff-index", "--cached", "--name-only", "--no-renames", "--diff-filter=D", "-z"]
        arguments += [self._disambiguate(source), "--", *paths]
        output = self.git.run(self.repository, arguments, self.cancel, exit_codes=(0, 128))
        top = self.git.layout(self.repository).work_tree or ""
        return [name for name in split_names(output.stdout) if not os.path.lexists(os.path.join(top, name))]

    def _list_unwritten(self, paths: Sequence[str]) -> list[str]:
        """Return the files below `paths` that a sparse checkout leaves out of the work tree."""
        if not git_config.is_sparse_checkout(self.git.read_allowed_configuration(self.repository)):
            return []
        output = self.git.run(self.repository, ["ls-files", "-t", "-z", "--", *paths], self.cancel)
        return [entry[2:] for entry in split_names(output.stdout) if entry.startswith("S ")]

    def stage_patch(self, patch: str, *, unstages: bool = False) -> GitInput:
        """Plan to stage the hunks of a patch, or to take them out of the index."""
        arguments = ["apply", "--cached", "--whitespace=nowarn"]
        if unstages:
            arguments.append("--reverse")
        return GitInput([*arguments, "-"], encode_patch(self.git, self.repository, patch, self.cancel))

    def commit_as(self, operation: CommitOperation, revision: Revision) -> CommitOperation:
        """Plan to commit by the author of another commit, with the date on which they wrote that.

        Raises:
            NotFound: there is no such commit.
        """
        arguments = ["log", "--max-count=1", "--format=%an <%ae>%x00%ad", "--date=raw", revision.text, "--"]
        output = self.git.run(self.repository, arguments, self.cancel, exit_codes=(0, 128))
        author, _, date = output.text.strip().partition("\0")
        if not date:
            raise NotFound(
                f"{quote(revision.text)} is not an author, and no commit either.",
                "Write the name and the address: `Ada <ada@example.org>`, or name a commit.",
            )
        # Behind the sign, git takes any number for seconds.
        return replace(operation, arguments=[*operation.arguments, f"--author={author}", f"--date=@{date}"])

    def commit_only(self, operation: CommitOperation, paths: Sequence[str], *, has_patch: bool) -> CommitOperation:
        """Plan to commit some paths, and to leave staged what else is; git can't do that with a patch.

        Raises:
            Conflict: with a patch, something else is staged.
        """
        status = read_status(self.git, self.repository, self.cancel)
        is_merge_or_pick = bool(status.in_progress) and status.in_progress[0].startswith(("merge", "cherry-pick"))
        if is_merge_or_pick and "." in paths:
            # Git refuses to commit paths there, even all.
            return operation
        if not has_patch:
            paths = self._without_assumed_unchanged(paths, status)
            return replace(operation, arguments=[*operation.arguments, "--", *paths])
        staged = status.list_staged()
        if staged:
            raise Conflict(
                f"{quote(quote_path(staged[0]))} is staged, and with a `patch` it would be committed as well.",
                "Commit it first, or unstage it with `stage_files`; to commit both, stage `paths` and leave them out.",
            )
        return operation

    def _without_assumed_unchanged(self, paths: Sequence[str], status: Status) -> Sequence[str]:
        """Return the paths, or the changed ones below them if some are marked `--assume-unchanged`.

        `git add` leaves those alone; `git commit` with paths takes their changes, and drops the mark.

        Raises:
            Conflict: there is no other change.
        """
        marked = frozenset(list_assumed_unchanged(self.git, self.repository, paths, self.cancel))
        if not marked:
            return paths
        folders = [os.fsencode(path).rstrip(b"/") for path in paths]
        names = [name for entry in status.entries for name in (entry.path, entry.renamed_from) if name]
        names = [os.fsdecode(name) for name in names if is_at_or_below(name, folders)]
        # One that was staged before it was marked stays staged as it was.
        changed = [name for name in names if name not in marked]
        if not changed:
            raise Conflict(
                "Nothing there has changed but what is marked `--assume-unchanged`, which stays out of commits.",
                "The user can unmark it: `git update-index --no-assume-unchanged`.",
            )
        return changed

    def create_tag(self, name: NewName, revision: Revision, message: Message) -> RefOperation:
        """Plan to create a tag; its undo deletes that one, and no other of its name."""

        def name_undo() -> Sequence[ToolCall]:
            oid = self._find_hash(f"refs/tags/{name.text}")
            return [format_call("delete_ref", name=name.text, kind="tag").expecting(expect(ref=oid).text)]

        arguments = ["tag", "--no-sign"]
        if message.text:
            # Otherwise git takes lines with `#` for remarks of its own.
            arguments += ["--annotate", "--cleanup=whitespace", "--file=-"]
        return RefOperation(
            [*arguments, name.text, revision.text],
            message.text.encode(),
            revision=revision,
            undo_calls=name_undo,
            after=lambda: self._describe_ref(f"tag {name.text} is", f"refs/tags/{name.text}"),
        )

    def delete(
        self, name: NewName, kind: Literal["branch", "tag"], force: bool, only_if: Expectation | None = None
    ) -> RefOperation:
        """Plan to delete a branch or a tag."""
        folder = "tags" if kind == "tag" else "heads"
        short_name = self._shorten_ref(name.text, folder)
        if only_if is not None and only_if.ref:
            # An undo names what it made: once `heads/a` is gone, that is not the branch `a`.
            short_name = name.text
            self._refuse_moved_ref(f"refs/{folder}/{short_name}", only_if.ref)
        if kind == "tag":
            commit = self._find_hash(f"refs/tags/{short_name}")
            undo_calls = [format_call("create_tag", name=short_name, rev=commit)]
            deleted = self._describe_ref(f"deleted tag {short_name}, which was", f"refs/tags/{short_name}")
            return RefOperation(["tag", "--delete", short_name], undo_calls=lambda: undo_calls, after=lambda: deleted)
        return self._delete_branch(short_name, force)

    def _refuse_moved_ref(self, ref: str, expected: str) -> None:
        """Check that a branch or tag is still where an undo expects it.

        Raises:
            Conflict: somebody has moved it.
        """
        oid = self.git.find_hash(self.repository, ref, self.cancel)
        if oid and not oid.startswith(expected):
            name = quote(ref.split("/", 2)[2])
            now = quote(oid[:HASH_LENGTH])
            raise Conflict(
                f"{name} is no longer {quote(expected)}, it is {now}: somebody has moved it since.",
                "It stays. `list_commits` has what came; to delete it all the same leave out `only_if`.",
            )

    def _delete_branch(self, name: str, force: bool) -> RefOperation:
        """Plan to delete a branch, with what is configured for it."""
        commit = self._find_hash(f"refs/heads/{name}")
        self._refuse_moving_branch(name)
        entries = self.git.read_own_entries(self.repository, f"branch.{name}.")
        upstream = self._name_upstream(dict(entries))
        if upstream:
            undo_call = format_call("create_branch", name=name, rev=commit, upstream=upstream)
        else:
            undo_call = format_call("create_branch", name=name, rev=commit)

        deleted = self._describe_ref(f"deleted {name}, which was", f"refs/heads/{name}")

        def forget() -> Sequence[str]:
            if entries:
                self.git.configure(self.repository, ["--remove-section", f"branch.{name}"])
            restored_keys = ("remote", "merge") if upstream else ()
            lost = [key for key, _ in entries if key not in restored_keys]
            return [
                *deleted,
                *(f"forgotten: branch.{escape_line_breaks(name)}.{escape_line_breaks(key)}" for key in lost),
            ]

        arguments = ["branch", "--quiet", "-D" if force else "-d", name]
        return RefOperation(arguments, undo_calls=lambda: [undo_call], after=forget)

    def _refuse_moving_branch(self, branch: str) -> None:
        """Refuse a branch to which a rebase or bisect in progress in any worktree goes back.

        Git itself does not see that from here.

        Raises:
            Conflict: one does.
        """
        layout = self.git.layout(self.repository)
        for folder in _list_git_dirs(layout):
            participle = _find_return(folder, branch)
            if not participle:
                continue
            location = " in another worktree"
            fix = "End that first."
            if folder == layout.git_dir:
                location = ""
                if participle == "rebased":
                    fix = "End that first, with `continue_operation`."
            raise Conflict(f"The branch {quote(branch)} is being {participle}{location}.", fix)

    def merge(
        self, revision: Revision, *, message: str = "", squash: bool = False, on_branch: Revision | None = None
    ) -> PickOperation:
        """Plan to merge a revision.

        Args:
            message: of the merge commit, which there is then in any case.
            squash: whether what it brings is only staged.
        """
        arguments = ["merge", "--quiet", "--no-edit", "--no-verify", "--no-gpg-sign", "--no-autostash"]
        # So that after a conflict lines of a message with `#` are told from git's own.
        arguments.append("--cleanup=scissors")
        if squash:
            arguments.append("--squash")
        if message:
            # `merge` reads no message from a pipe, and leaves one unsaid where it only has to move the branch.
            arguments += ["--no-ff", f"--message={message}"]
        return PickOperation(
            [*arguments, revision.text],
            revision=revision,
            undo_kind=UndoKind.FILES if squash else UndoKind.KEEP,
            overwritten_paths=["."],
            on_branch=self._shorten_branch(on_branch),
        )

    def rebase(self, revision: Revision) -> PickOperation:
        """Plan to put the commits of the current branch on top of a revision."""
        arguments = ["rebase", "--quiet", "--no-verify", "--no-gpg-sign", "--no-autostash", "--no-autosquash"]
        return self.pick(arguments, revision, [f"{revision.text}..HEAD"])

    def pull(self, upstream: Revision) -> PickOperation:
        """Plan to bring what the current branch follows, by a merge or, where both have parted, as is configured.

        Raises:
            Conflict: a merge is configured not to be, or a rebase of another kind is asked for.
        """
        key, value = self._find_pull_setting()
        if not key or not self._has_parted(upstream):
            return self.merge(upstream)
        if value in git_config.TRUE_VALUES:
            return replace(self.rebase(upstream), after=lambda: [f"rebased, as {quote(key)} asks"])
        raise Conflict(
            f"Both sides have commits of their own, and {quote(key)} of the configuration asks for no merge.",
            f"To rebase pass rebase=true; {format_call('run_merge', rev=upstream.text)} merges all the same.",
        )

    def _find_pull_setting(self) -> tuple[str, str]:
        """Return the key by which a pull is to be no merge, and its value; empty if there is none."""
        entries = self.git.read_unheeded_configuration(self.repository)
        branch = branch_of(read_status(self.git, self.repository, self.cancel))
        keys = [key for key in (f"branch.{branch}.rebase", "pull.rebase") if key in entries]
        value = entries[keys[0]].lower() if keys else "false"
        if value not in git_config.FALSE_VALUES:
            return keys[0], value
        for key in ("pull.ff", "merge.ff"):
            if key in entries:
                return (key, "only") if entries[key].lower() == "only" else ("", "")
        return "", ""

    def _has_parted(self, upstream: Revision) -> bool:
        """Whether both the current branch and another one have commits of their own."""
        arguments = ["rev-list", "--left-right", "--count", f"HEAD...{upstream.text}", "--"]
        output = self.git.run(self.repository, arguments, self.cancel, exit_codes=(0, 128))
        return bool(output.text) and "0" not in output.text.split()

    def store_stash(self, revision: Revision, message: Message) -> RefOperation:
        """Plan to put a stash back that was dropped."""
        arguments = ["stash", "store", "--quiet"]
        if message.text:
            arguments.append(f"--message={message.text}")
        oid = self._find_stash(revision)
        arguments.append(oid or revision.text)
        undo_calls = [format_call("run_stash", action="drop", rev=oid)]
        return RefOperation(arguments, revision=revision, undo_calls=lambda: undo_calls, moved_ref="refs/stash")

    def drop_stash(self, revision: Revision) -> RefOperation:
        """Plan to drop a stash."""
        undo_calls = self._store_calls(revision)
        arguments = ["stash", "drop", "--quiet", self._locate_stash(revision)]
        return RefOperation(arguments, revision=revision, undo_calls=lambda: undo_calls)

    def apply_stash(self, action: Literal["apply", "pop"], revision: Revision, restores_index: bool) -> FileOperation:
        """Plan to bring a stash back, and with `pop` to drop it then."""
        store_calls = self._store_calls(revision) if action == "pop" else []
        layout = self.git.layout(self.repository)
        refuse_obstructed_stash(self.git, self.repository, layout, revision.text, self.cancel)
        options = select_options({"--index": restores_index})
        stash_before = self._find_hash("refs/stash")
        number_before = len(self._list_stashes())
        origin = self._describe_stash_of_another(revision)

        def name_undo_if_dropped() -> Sequence[str]:
            if self._find_hash("refs/stash") != stash_before or len(self._list_stashes()) != number_before:
                return [*origin, *(f"undo: {call}" for call in store_calls)]
            if action == "pop":
                return [*origin, "the stash stays: drop it once its changes are resolved"]
            return origin

        stash = revision.text
        if action == "pop":
            stash = self._locate_stash(revision)
        return FileOperation(
            ["stash", action, "--quiet", *options, stash],
            revision=revision,
            undo_kind=UndoKind.FILES,
            overwritten_paths=["."],
            after=name_undo_if_dropped,
            created_files=list_untracked_of_stash(self.git, self.repository, revision.text, self.cancel),
        )

    def _describe_stash_of_another(self, revision: Revision) -> list[str]:
        """Return a line about a stash that was made on another branch, as all worktrees share one list; else none."""
        if _HASH.fullmatch(revision.text):
            return []
        message = self._read_stash_message(revision)
        match = _STASH_MESSAGE.match(message)
        if match is None:
            return []
        status = read_status(self.git, self.repository, self.cancel)
        if match[1] == ("(no branch)" if status.is_detached else status.head):
            return []
        return [f"it was stashed on another branch: {clip(escape_line_breaks(message), _MAX_ROW_BYTES)}"]

    def push_stash(self, message: Message, with_untracked: bool, paths: Sequence[str] = ()) -> RefOperation:
        """Plan to put uncommitted changes aside, all or those below `paths`.

        Its undo brings back that stash, wherever it stands by then.
        """

        def name_undo() -> Sequence[ToolCall]:
            return [format_call("run_stash", action="pop", rev=self._find_hash("refs/stash"), index=True)]

        def name_stashed() -> Sequence[str]:
            names = quote_paths(map(os.fsencode, self._list_stashed()))
            if not names:
                return ["stashed no file: what lies in a repository inside this one stays there"]
            return [f"stashed {count(len(names), 'file')}: {name_some(names)}"]

        arguments = ["stash", "push", "--quiet"]
        if with_untracked:
            arguments.append("--include-untracked")
        if message.text:
            arguments.append(f"--message={message.text}")
        if paths:
            arguments += ["--", *paths]
        return RefOperation(arguments, undo_calls=name_undo, moved_ref="refs/stash", after=name_stashed)

    def _list_stashed(self) -> list[str]:
        """Return the files that the latest stash has: changed ones, staged ones and untracked ones."""
        names = list_untracked_of_stash(self.git, self.repository, "refs/stash", self.cancel)
        for side in ("refs/stash", "refs/stash^2"):
            arguments = ["diff-tree", "-r", "--name-only", "--no-renames", "-z", "refs/stash^1", side]
            names += split_names(self.git.run(self.repository, arguments, self.cancel, exit_codes=(0, 128)).stdout)
        return sorted(set(names))

    def _locate_stash(self, revision: Revision) -> str:
        """Return what names a stash to git that drops it: its position now, if the revision is a hash.

        Raises:
            NotFound: it is not in the list.
        """
        if not _HASH.fullmatch(revision.text):
            return revision.text
        for position, oid in enumerate(self._list_stashes()):
            if oid.startswith(revision.text):
                return f"stash@{{{position}}}"
        raise NotFound(
            f"The stash {quote(revision.text)} is not in the list any more: somebody has popped or dropped it.",
            "`run_stash` with action=apply brings its changes back all the same.",
        )

    def _store_calls(self, revision: Revision) -> list[ToolCall]:
        """Return the call that puts a stash back once it is dropped; none if there is no such stash."""
        oid = self._find_stash(revision)
        if not oid:
            return []
        message = self._read_stash_message(parse_revision(self._locate_stash(revision)))
        call = format_call("run_stash", action="store", rev=oid, message=message)
        if oid != self._find_hash("refs/stash"):
            call = call.with_remark(" (as the first of the stashes then)")
        return [call]

    def _find_stash(self, revision: Revision) -> str:
        commits = find_commits(self.git, self.repository, revision, self.cancel)
        return commits[0][:HASH_LENGTH] if commits else ""

    def step(
        self,
        action: Literal["continue", "skip", "abort"],
        stage_first: Sequence[GitInput] = (),
        resolved_paths: Sequence[str] = (),
        choice: SideChoice = _NO_CHOICE,
    ) -> CommitOperation:
        """Plan to continue, skip or abort what is in progress.

        Args:
            stage_first: to continue: the commands that stage what is resolved.
            resolved_paths: what they stage.
            choice: of other files in conflict, which side is taken.
        """
        layout = self.git.layout(self.repository)
        in_progress = find_operations_in_progress(self.git, self.repository, layout, self.cancel)
        if in_progress and in_progress[0].startswith("bisect"):
            raise Conflict("A bisect is under way, which no tool here ends.", "The user can: `git bisect reset`.")
        if not in_progress:
            raise Conflict("Nothing is `under way` in this repository.", "`get_status` has its state.")
        command = in_progress[0].split(" ")[0]
        unmade_pick = self._list_unmade_pick(layout, command)
        if action == "abort":
            if unmade_pick:
                self._refuse_losing_staged(layout)
            return CommitOperation([command, "--abort"], undo_calls=tuple)
        refuse_program_steps(layout)
        chosen_paths: Sequence[str] = ()
        if not choice.is_empty:
            status = read_status(self.git, self.repository, self.cancel, layout=layout)
            sides = choice.find_sides(status)
            chosen_paths = list(sides)
            stage_first = [*plan_choice(self.git, self.repository, layout, sides, self.cancel), *stage_first]
            resolved_paths = _list_other_conflicts(status, resolved_paths, sides)
        start = find_start(layout) or read_status(self.git, self.repository, self.cancel).oid
        undo_calls = [format_call("run_reset", rev=start[:HASH_LENGTH]).with_remark(BEFORE_IT_BEGAN)]
        arguments = [command, f"--{action}"]
        if action == "skip" and unmade_pick:
            # Git passes over it, and unlike `--skip` takes nothing out of the index.
            arguments = [command, "--continue"]
            unmade_pick = ()
        git_options: Sequence[str] = ()
        if _has_scissors(layout):
            git_options = _SCISSORS_OPTIONS
            if action == "continue" and _is_single_pick(layout, command):
                # `--continue` cleans the message its own way.
                arguments = ["commit", "--quiet", "--no-verify", "--no-gpg-sign"]
        return CommitOperation(
            arguments,
            undo_calls=lambda: undo_calls,
            stage_first=stage_first,
            chosen_paths=chosen_paths,
            resolved_paths=resolved_paths,
            unmade_pick=unmade_pick,
            git_options=git_options,
            base=_find_rebase_base(layout),
            start=start,
        )

    def _refuse_losing_staged(self, layout: Layout) -> None:
        """Check that nothing is staged where git stands before a commit: it is no part of a pick, and would be lost.

        Raises:
            Conflict: something is.
        """
        staged = read_status(self.git, self.repository, self.cancel, layout=layout).list_staged()
        if staged:
            raise Conflict(
                f"{quote(quote_path(staged[0]))} is staged, and would be lost for good.",
                "Nothing was changed. Unstage it with `stage_files`, or put it aside with `run_stash`.",
            )

    def _list_unmade_pick(self, layout: Layout, command: str) -> Sequence[str]:
        """Return the command that makes the commit which `--continue` would pass over; none if there is no such."""
        commit = ""
        if command in ("cherry-pick", "revert"):
            commit = find_unmade_commit(self.git, self.repository, layout, self.cancel)
        if not commit:
            return ()
        return [command, "--no-gpg-sign", *list_sequence_options(layout), commit]

    def pick(
        self,
        arguments: Sequence[str],
        revision: Revision | Range | RevisionList,
        span: Sequence[str],
        on_branch: Revision | None = None,
        mainline: int | None = None,
    ) -> PickOperation:
        """Plan to make commits once more; after a conflict too, lines of their messages that begin with `#` stay.

        Args:
            span: which commits.
            mainline: the parent, from 1 on, from which a merge commit differs.

        Raises:
            Conflict: one of several is a merge, at which git would stop half-way.
        """
        if isinstance(revision, RevisionList) and mainline is None:
            self._refuse_merges(revision)
        search = ["log", "--max-count=1", "--format=%H", "--grep=^#", *span, "--"]
        git_options: Sequence[str] = ()
        if self.git.run(self.repository, search, self.cancel, exit_codes=(0, 128)).stdout:
            git_options = _SCISSORS_OPTIONS
        base = self._find_hash(f"{revision.text}^{{commit}}") if arguments[0] == "rebase" else ""
        options = [f"--mainline={mainline}"] if mainline else []
        return PickOperation(
            [*arguments, *options, *revision.arguments],
            revision=revision,
            # Git itself keeps them, but where it fails half-way a call that leads back writes all files again.
            overwritten_paths=["."],
            on_branch=self._shorten_branch(on_branch),
            git_options=git_options,
            base=base,
            mainline=mainline or 1,
        )

    def _refuse_merges(self, commits: RevisionList) -> None:
        arguments = ["rev-list", "--no-walk=unsorted", "--merges", *commits.arguments, "--"]
        merges = self.git.run(self.repository, arguments, self.cancel, exit_codes=(0, 128)).text.split()
        if merges:
            raise Conflict(
                f"{quote(merges[0][:HASH_LENGTH])} is a merge.",
                "Nothing was changed. Pass `mainline`: 1 for what it brought to its first parent; or leave it out.",
            )

    def _describe_ref(self, start: str, ref: str) -> list[str]:
        """Return a line that says at which commit a branch or tag is, or other object; none if there is no such ref."""
        arguments = ["log", *abbreviation(), "--max-count=1", "--format=%h %s", ref, "--"]
        commit = self.git.run(self.repository, arguments, self.cancel, exit_codes=(0, 128)).text.rstrip("\n")
        target = commit or self._find_hash(ref)
        if not target:
            return []
        return [f"{escape_line_breaks(start)} at {clip(escape_line_breaks(target), _MAX_ROW_BYTES)}"]

    def _return_calls(self, target: str) -> Sequence[ToolCall]:
        """Return the call that leads to where HEAD is now; none if that is `target`, or no commit."""
        status = read_status(self.git, self.repository, self.cancel)
        if not status.has_commit or status.head == target:
            return ()
        position = status.oid[:HASH_LENGTH] if status.is_detached else status.head
        return [format_call("run_switch", rev=position)]

    def _find_hash(self, ref: str) -> str:
        return self.git.find_hash(self.repository, ref, self.cancel)[:HASH_LENGTH]

    def _shorten_ref(self, name: str, folder: Literal["heads", "tags", "remotes"]) -> str:
        return self.git.shorten_ref(self.repository, name, folder, self.cancel)

    def _shorten_branch(self, branch: Revision | None) -> Revision | None:
        return branch and parse_ref(self._shorten_ref(branch.text, "heads"))

    def _disambiguate(self, revision: Revision) -> str:
        """Return what stands for `revision` in every command.

        Some of git's take the branch of that name for it, where there is a tag as well, or HEAD.
        """
        commit = self._find_hash(revision.text)
        if not commit:
            return revision.text
        branch = self._find_hash(f"refs/heads/{revision.text}")
        if branch in ("", commit):
            return revision.text
        return commit

    def _list_stashes(self) -> list[str]:
        """Return the hashes of the stashes, the latest first."""
        arguments = ["log", "--walk-reflogs", "--format=%H", "refs/stash", "--"]
        try:
            return self.git.run(self.repository, arguments, self.cancel).text.split()
        except GitFailed:
            return []

    def _read_stash_message(self, revision: Revision) -> str:
        arguments = ["log", "--walk-reflogs", "--max-count=1", "--format=%gs", revision.text, "--"]
        try:
            return self.git.run(self.repository, arguments, self.cancel).text.removesuffix("\n")
        except GitFailed:
            return ""

    def _resolve_upstream(self, upstream: Revision) -> _ConfiguredUpstream:
        """Return the remote and the name there of what a branch is to follow."""
        branch = self._shorten_ref(upstream.text, "heads")
        if self._find_hash(f"refs/heads/{branch}"):
            return _ConfiguredUpstream(".", f"refs/heads/{branch}")
        tracked = self._shorten_ref(upstream.text, "remotes")
        if self._find_hash(f"refs/remotes/{tracked}"):
            for remote in self._list_remotes():
                if tracked.startswith(f"{remote}/"):
                    return _ConfiguredUpstream(remote, f"refs/heads/{tracked.removeprefix(f'{remote}/')}")
        fix = "`list_refs` has branches, those of remotes too."
        raise NotFound(f"There is no branch {quote(upstream.text)} to follow.", fix)

    def _name_upstream(self, entries: Mapping[str, str]) -> str:
        """Return what a branch of that configuration follows, as `_resolve_upstream` takes it; empty for what that
        can't say."""
        remote = entries.get("remote", "")
        ref = entries.get("merge", "")
        branch = ref.removeprefix("refs/heads/")
        name = branch if remote == "." else f"{remote}/{branch}"
        try:
            upstream = self._resolve_upstream(parse_ref(name))
        except (NotFound, Invalid):
            return ""
        return name if upstream == (remote, ref) else ""

    def _list_remotes(self) -> list[str]:
        """Return the names of the remotes, the longest first."""
        names = git_config.list_remotes(self.git.read_allowed_configuration(self.repository))
        return sorted(names, key=len, reverse=True)


def _find_return(git_dir: str, branch: str) -> str:
    """Return what will have been done to a branch once an operation in progress goes back to it; empty if none will."""
    for file in _RETURN_FILES:
        lines = (read_small_file(os.path.join(git_dir, *file.path)) or "").splitlines()
        names = [f"refs/heads/{branch}", *file.short_names(branch)]
        if not set(names).isdisjoint(lines):
            return file.participle
    return ""


def _list_other_conflicts(status: Status, paths: Sequence[str], chosen: Collection[str]) -> list[str]:
    """Return the files in conflict that are not chosen, all of them at or below some paths.

    Raises:
        Conflict: one of them is not, so that nothing could go on.
    """
    folders = [os.fsencode(path).rstrip(b"/") for path in paths]
    others = [path for path in list_conflicts(status) if os.fsdecode(path) not in chosen]
    for path in others:
        if not is_at_or_below(path, folders):
            raise Conflict(
                f"{quote(quote_path(path))} is still in conflict.",
                "Nothing was changed. Name it too, in `paths`, `ours`, `theirs` or `both`.",
            )
    return [os.fsdecode(path) for path in others]


def _find_rebase_base(layout: Layout) -> str:
    """Return the commit on which a rebase in progress puts others; empty if there is none."""
    text = (read_small_file(os.path.join(layout.git_dir, "rebase-merge", "onto")) or "").strip()
    return text if _HASH.fullmatch(text) else ""


def _has_scissors(layout: Layout) -> bool:
    """Whether the message of the commit at hand has the line below which nothing counts."""
    message = read_small_file(os.path.join(layout.git_dir, "MERGE_MSG")) or ""
    return _SCISSORS.search(message) is not None


def _is_single_pick(layout: Layout, command: str) -> bool:
    """Whether a cherry-pick of one commit is in progress."""
    return command == "cherry-pick" and not has_sequence(layout)


def _list_git_dirs(layout: Layout) -> list[str]:
    """Return the git directories of a repository and of its worktrees."""
    worktrees = os.path.join(layout.common_dir, "worktrees")
    folders = [layout.common_dir]
    if os.path.isdir(worktrees):
        folders += [os.path.join(worktrees, name) for name in os.listdir(worktrees)]
    return folders
