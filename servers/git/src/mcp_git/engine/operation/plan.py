"""Prepares changes whose command or undo depends on the state of the repository at their turn."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_batteries.errors import Conflict, Invalid, NotFound, quote
from mcp_batteries.limits import Stop
from mcp_git.engine.operation.operation import Operation, refuse_program_steps
from mcp_git.engine.operation.undo import list_untracked_of_stash, refuse_obstructed_stash
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.revisions import find_commits, find_hash
from mcp_git.engine.work_tree.in_progress import find_operations_in_progress
from mcp_git.engine.work_tree.status import read_status
from mcp_git.path_quoting import escape_line_breaks
from mcp_git.policy import NewName, Policy, Repository, Revision
from mcp_git.repository_paths import read_small_file
from mcp_git.tool_calls import format_call

__all__ = ["OperationPlanner"]

_HASH = 12
_RETURNS = [
    (("rebase-merge", "head-name"), "rebased"), (("rebase-merge", "update-refs"), "rebased"),
    (("rebase-apply", "head-name"), "rebased"), (("BISECT_START",), "bisected"),
]  # fmt: skip
"""The files in which git notes what branch it moves, or goes back to, at the end."""
_CUT = re.compile(r"(?m)^. -+ >8 -+$")
"""Below it nothing of a message counts; what is above is kept as it is, lines with `#` too."""
_CUTS = ["-c", "commit.cleanup=scissors"]
"""Lets git write it at a conflict, and heed it; else lines with `#` are taken for git's own remarks."""


@dataclass(frozen=True, slots=True)
class OperationPlanner:
    """Says what a change is; every method blocks."""

    git: Git
    policy: Policy
    repository: Repository
    stop: Stop

    def switch(self, revision: Revision) -> Operation:
        """To a branch, or to a commit that has none."""
        branch = not revision.text.startswith("@") and bool(self._oid(f"refs/heads/{revision.text}"))
        way = [] if branch else ["--detach"]
        words = ["switch", "--quiet", "--no-guess", *way, revision.text]
        undo = self._back(revision.text if branch else "")
        return Operation(words, revision=revision, undo_calls=undo, undo_kind="carried", overwritten_paths=["."])

    def branch(self, new: NewName, start: Revision, switch: bool, upstream: Revision | None) -> Operation:
        """A new one."""
        words = ["switch", "--quiet", "--no-track", "--create"] if switch else ["branch", "--no-track"]
        follows = self._upstream(upstream) if upstream else ()

        def follow() -> Sequence[str]:
            for key, value in zip(("remote", "merge"), follows, strict=False):
                self.git.configure(self.repository, ["--replace-all", f"branch.{new.text}.{key}", value])
            return [f"it follows {upstream.text}"] if upstream else []

        undo = [*(self._back(new.text) if switch else ()), format_call("delete_ref", name=new.text, force=True)]
        loses = ["."] if switch else []
        words += [new.text, self._exact(start)]
        return Operation(
            words,
            revision=start,
            undo_calls=undo,
            undo_kind="carried",
            touches_files=switch,
            overwritten_paths=loses,
            after=follow,
        )

    def restore(self, source: Revision, places: Sequence[str]) -> Operation:
        """Of files, as a commit has them."""
        words = ["restore", f"--source={self._exact(source)}", "--staged", "--worktree", "--", *places]
        return Operation(words, revision=source, undo_kind="files", overwritten_paths=places, source=source)

    def delete(self, name: NewName, kind: str, force: bool) -> Operation:
        """Of a branch or a tag, with what is configured for the branch."""
        found = self._oid(f"refs/{'tags' if kind == 'tag' else 'heads'}/{name.text}")
        if kind == "tag":
            undo = [format_call("create_tag", name=name.text, rev=found)]
            return Operation(["tag", "--delete", name.text], touches_files=False, undo_calls=undo)
        self._refuse_rebased(name.text)
        entries = self.git.read_own_entries(self.repository, f"branch.{name.text}.")
        followed = self._followed(dict(entries))
        upstream = {"upstream": followed} if followed else {}
        undo = [format_call("create_branch", name=name.text, rev=found, **upstream)]

        def forget() -> Sequence[str]:
            if entries:
                self.git.configure(self.repository, ["--remove-section", f"branch.{name.text}"])
            lost = [key for key, _ in entries if not (followed and key in ("remote", "merge"))]
            return [f"forgotten: branch.{escape_line_breaks(name.text)}.{escape_line_breaks(key)}" for key in lost]

        words = ["branch", "--quiet", "-D" if force else "-d", name.text]
        return Operation(words, touches_files=False, undo_calls=undo, after=forget)

    def _refuse_rebased(self, branch: str) -> None:
        """Return unless a rebase or bisect under way in any worktree goes back to this branch.

        Git itself does not see that from here.

        Raises:
            Conflict: one does.
        """
        layout = self.git.layout(self.repository)
        trees = os.path.join(layout.common_dir, "worktrees")
        others = [os.path.join(trees, name) for name in (os.listdir(trees) if os.path.isdir(trees) else ())]
        for folder in (layout.common_dir, *others):
            for name, what in _RETURNS:
                begun = (read_small_file(os.path.join(folder, *name)) or "").splitlines()
                if f"refs/heads/{branch}" in begun or (what == "bisected" and branch in begun):
                    here = folder == layout.git_dir
                    fix = "End that first, with `run_step`." if here and what == "rebased" else "End that first."
                    where = "" if here else " in another worktree"
                    raise Conflict(f"The branch {quote(branch)} is being {what}{where}.", fix)

    def stash(self, action: str, revision: Revision, message: str, index: bool) -> Operation:
        """Bring one back, drop it, or put one back that was dropped."""
        found = find_commits(self.git, self.repository, revision, self.stop)
        oid = found[0][:_HASH] if found else ""
        if action == "store":
            words = ["stash", "store", "--quiet", *(["--message", message] if message else []), oid or revision.text]
            return Operation(
                words, revision=revision, undo_calls=[format_call("run_stash", action="drop")], moved_ref="refs/stash"
            )
        again = format_call("run_stash", action="store", rev=oid, message=self._said(revision)) if oid else ""
        if again and oid != self._oid("refs/stash"):
            again += " (as the first of the stashes then)"
        if action == "drop":
            return Operation(
                ["stash", "drop", "--quiet", revision.text], revision=revision, undo_calls=[again], touches_files=False
            )
        refuse_obstructed_stash(self.git, self.repository, self.git.layout(self.repository), revision.text, self.stop)
        words = ["stash", action, "--quiet", *(["--index"] if index else []), revision.text]
        before = self._oid("refs/stash"), self._number()

        def dropped() -> Sequence[str]:
            gone = (self._oid("refs/stash"), self._number()) != before
            return [f"undo: {again}"] if gone else []

        brings = list_untracked_of_stash(self.git, self.repository, revision.text, self.stop)
        return Operation(
            words, revision=revision, undo_kind="files", overwritten_paths=["."], after=dropped, created_files=brings
        )

    def step(
        self, action: str, first: Sequence[tuple[Sequence[str], bytes]] = (), resolves: Sequence[str] = ()
    ) -> Operation:
        """Continue, skip or abort what is under way; to continue, `first` stages what is resolved."""
        layout = self.git.layout(self.repository)
        doing = find_operations_in_progress(self.git, self.repository, layout, self.stop)
        if not doing or doing[0].startswith("bisect"):
            raise Conflict("Nothing is `under way` in this repository.", "`get_status` has its state.")
        if action == "abort":
            return Operation([doing[0].split(" ")[0], "--abort"], undo_calls=())
        refuse_program_steps(layout)
        begun = [
            read_small_file(os.path.join(layout.git_dir, name, "orig-head"))
            for name in ("rebase-merge", "rebase-apply")
        ]
        start = next((oid for oid in begun if oid), "") or read_status(self.git, self.repository, self.stop).oid
        undo = [f"{format_call('run_reset', rev=start[:_HASH], mode='keep')} (to before it began)"]
        words, way = [doing[0].split(" ")[0], f"--{action}"], []
        if _CUT.search(read_small_file(os.path.join(layout.git_dir, "MERGE_MSG")) or ""):
            one = not os.path.lexists(os.path.join(layout.git_dir, "sequencer"))
            if action == "continue" and words[0] == "cherry-pick" and one:
                words = ["commit", "--quiet", "--no-verify", "--no-gpg-sign"]  # which `--continue` does its own way
            way = _CUTS
        return Operation(words, undo_calls=undo, stage_first=first, resolved_paths=resolves, git_options=way)

    def pick(
        self, words: Sequence[str], revision: Revision, span: Sequence[str], into: Revision | None = None
    ) -> Operation:
        """Make commits once more; after a conflict too, lines of their messages that begin with `#` stay.

        Args:
            span: which commits.
        """
        marked = ["log", "--max-count=1", "--format=%H", "--grep=^#", *span, "--"]
        way = _CUTS if self.git.run(self.repository, marked, self.stop, exit_codes=(0, 128)).stdout else []
        return Operation([*words, revision.text], revision=revision, on_branch=into, git_options=way)

    def _back(self, to: str) -> Sequence[str]:
        """The call that leads to where HEAD is now; none if it is there already, or at no commit."""
        before = read_status(self.git, self.repository, self.stop)
        if before.oid[:1] == "(" or before.head == to:
            return ()
        return [format_call("run_switch", rev=before.oid[:_HASH] if before.head == "(detached)" else before.head)]

    def _oid(self, ref: str) -> str:
        return find_hash(self.git, self.repository, ref, self.stop)[:_HASH]

    def _exact(self, revision: Revision) -> str:
        """What stands for `revision` in every command: some of git's take the branch of that name for it, where there
        is a tag as well, or HEAD."""
        meant = self._oid(revision.text)
        return meant if meant and self._oid(f"refs/heads/{revision.text}") not in ("", meant) else revision.text

    def _number(self) -> int:
        try:
            words = ["rev-list", "--walk-reflogs", "--count", "refs/stash", "--"]
            return int(self.git.run(self.repository, words, self.stop).text)
        except GitFailed:
            return 0

    def _said(self, revision: Revision) -> str:
        """With which message a stash was made."""
        words = ["log", "--walk-reflogs", "--max-count=1", "--format=%gs", revision.text, "--"]
        try:
            return self.git.run(self.repository, words, self.stop).text.removesuffix("\n")
        except GitFailed:
            return ""

    def _upstream(self, upstream: Revision) -> tuple[str, str]:
        """The remote and the name there of what a branch is to follow."""
        if self._oid(f"refs/heads/{upstream.text}"):
            return ".", f"refs/heads/{upstream.text}"
        if self._oid(f"refs/remotes/{upstream.text}"):
            for remote in self._remotes():
                if upstream.text.startswith(f"{remote}/"):
                    return remote, f"refs/heads/{upstream.text.removeprefix(f'{remote}/')}"
        fix = "`list_refs` has branches, those of remotes too."
        raise NotFound(f"There is no branch {quote(upstream.text)} to follow.", fix)

    def _followed(self, entries: dict[str, str]) -> str:
        """What a branch of that configuration follows, as `_upstream` takes it; empty for what that can't say."""
        branch = entries.get("merge", "").removeprefix("refs/heads/")
        remote = entries.get("remote", "")
        name = branch if remote == "." else f"{remote}/{branch}"
        try:
            return name if self._upstream(self.policy.parse_ref(name)) == (remote, entries.get("merge")) else ""
        except (NotFound, Invalid):
            return ""

    def _remotes(self) -> list[str]:
        found = (
            re.fullmatch(r"remote\.(.+)\.url", key, re.S)
            for key, _ in self.git.read_allowed_configuration(self.repository)
        )
        return sorted({each[1] for each in found if each}, key=len, reverse=True)
