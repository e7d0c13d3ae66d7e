"""Plans what creates, renames and deletes branches and tags, and finds what a branch follows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from mcp_batteries.errors import Conflict, Invalid, NotFound, quote
from mcp_git import git_config
from mcp_git.engine.history.commit_rows import abbreviation
from mcp_git.engine.operation.operation import GitInput, RefOperation
from mcp_git.engine.operation.planning.planner import OperationPlanner
from mcp_git.engine.program.output import clip
from mcp_git.engine.undo.later_state import branch_of
from mcp_git.engine.undo.undo_kind import HASH_LENGTH, UndoKind
from mcp_git.engine.work_tree.status_reader import read_status
from mcp_git.path_quoting import escape_line_breaks
from mcp_git.policy import (
    Expectation,
    Message,
    NewName,
    RemoteName,
    Revision,
    expect,
    parse_ref,
    parse_remote_name,
    parse_revision,
)
from mcp_git.repository_paths import Layout, read_small_file
from mcp_git.tool_calls import ToolCall, format_call

__all__ = ["RefPlanner", "Upstream"]

_MAX_ROW_BYTES = 120


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


class _ConfiguredUpstream(NamedTuple):
    """What a branch follows: a remote, `.` for none, and a ref there."""

    remote: str
    ref: str


class Upstream(NamedTuple):
    """What a branch follows: a remote, None if it is a branch here, and the name that has here."""

    remote: RemoteName | None
    name: Revision


class RefPlanner(OperationPlanner):
    """Plans operations on branches and tags."""

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
            return self._delete_tag(short_name)
        return self._delete_branch(short_name, force)

    def _delete_tag(self, name: str) -> RefOperation:
        """Plan to delete a tag."""
        target = self._find_hash(f"refs/tags/{name}")
        undo_calls = [format_call("create_tag", name=name, rev=target)]
        deleted = self._describe_ref(f"deleted tag {name}, which was", f"refs/tags/{name}")
        return RefOperation(["tag", "--delete", name], undo_calls=lambda: undo_calls, after=lambda: deleted)

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
            lost_keys = [f"branch.{name}.{key}" for key, _ in entries if key not in restored_keys]
            return [*deleted, *(f"forgotten: {escape_line_breaks(key)}" for key in lost_keys)]

        arguments = ["branch", "--quiet", "-D" if force else "-d", name]
        return RefOperation(arguments, undo_calls=lambda: [undo_call], after=forget)

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

    def _configure_branch(self, branch: str, key: str, value: str) -> None:
        self.git.configure(self.repository, ["--replace-all", f"branch.{branch}.{key}", value])

    def _describe_ref(self, start: str, ref: str) -> list[str]:
        """Return a line that says at which commit a branch or tag is, or other object; none if there is no such ref."""
        arguments = ["log", *abbreviation(), "--max-count=1", "--format=%h %s", ref, "--"]
        commit = self.git.run(self.repository, arguments, self.cancel, exit_codes=(0, 128)).text.rstrip("\n")
        target = commit or self._find_hash(ref)
        if not target:
            return []
        return [f"{escape_line_breaks(start)} at {clip(escape_line_breaks(target), _MAX_ROW_BYTES)}"]

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


def _list_git_dirs(layout: Layout) -> list[str]:
    """Return the git directories of a repository and of its worktrees."""
    worktrees = os.path.join(layout.common_dir, "worktrees")
    folders = [layout.common_dir]
    if os.path.isdir(worktrees):
        folders += [os.path.join(worktrees, name) for name in os.listdir(worktrees)]
    return folders
