"""Prepares changes whose command or undo depends on the state of the repository at their turn."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_batteries.errors import Conflict, Invalid, NotFound, quote
from mcp_batteries.limits import Stop
from mcp_git.engine.operation.operation import Change, refuse_steps
from mcp_git.engine.operation.undo import refuse_in_the_way, untracked_of
from mcp_git.engine.program.git import Failed, Git
from mcp_git.engine.program.revisions import commits_of, oid
from mcp_git.engine.work_tree.in_progress import under_way
from mcp_git.engine.work_tree.status import look
from mcp_git.path_quoting import one_line
from mcp_git.policy import NewName, Policy, Repository, Revision
from mcp_git.repository_paths import small_file
from mcp_git.tool_calls import call

__all__ = ["Prepare"]

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
class Prepare:
    """Says what a change is; every method blocks."""

    git: Git
    policy: Policy
    repository: Repository
    stop: Stop

    def switch(self, revision: Revision) -> Change:
        """To a branch, or to a commit that has none."""
        branch = not revision.text.startswith("@") and bool(self._oid(f"refs/heads/{revision.text}"))
        way = [] if branch else ["--detach"]
        words = ["switch", "--quiet", "--no-guess", *way, revision.text]
        undo = self._back(revision.text if branch else "")
        return Change(words, named=revision, undo=undo, back="carried", loses=["."])

    def branch(self, new: NewName, start: Revision, switch: bool, upstream: Revision | None) -> Change:
        """A new one."""
        words = ["switch", "--quiet", "--no-track", "--create"] if switch else ["branch", "--no-track"]
        follows = self._upstream(upstream) if upstream else ()

        def follow() -> Sequence[str]:
            for key, value in zip(("remote", "merge"), follows, strict=False):
                self.git.configure(self.repository, ["--replace-all", f"branch.{new.text}.{key}", value])
            return [f"it follows {upstream.text}"] if upstream else []

        undo = [*(self._back(new.text) if switch else ()), call("delete_ref", name=new.text, force=True)]
        loses = ["."] if switch else []
        words += [new.text, self._exact(start)]
        return Change(words, named=start, undo=undo, back="carried", files=switch, loses=loses, then=follow)

    def restore(self, source: Revision, places: Sequence[str]) -> Change:
        """Of files, as a commit has them."""
        words = ["restore", f"--source={self._exact(source)}", "--staged", "--worktree", "--", *places]
        return Change(words, named=source, back="files", loses=places, source=source)

    def delete(self, name: NewName, kind: str, force: bool) -> Change:
        """Of a branch or a tag, with what is configured for the branch."""
        found = self._oid(f"refs/{'tags' if kind == 'tag' else 'heads'}/{name.text}")
        if kind == "tag":
            undo = [call("create_tag", name=name.text, rev=found)]
            return Change(["tag", "--delete", name.text], files=False, undo=undo)
        self._refuse_rebased(name.text)
        entries = self.git.own_entries(self.repository, f"branch.{name.text}.")
        followed = self._followed(dict(entries))
        upstream = {"upstream": followed} if followed else {}
        undo = [call("create_branch", name=name.text, rev=found, **upstream)]

        def forget() -> Sequence[str]:
            if entries:
                self.git.configure(self.repository, ["--remove-section", f"branch.{name.text}"])
            lost = [key for key, _ in entries if not (followed and key in ("remote", "merge"))]
            return [f"forgotten: branch.{one_line(name.text)}.{one_line(key)}" for key in lost]

        words = ["branch", "--quiet", "-D" if force else "-d", name.text]
        return Change(words, files=False, undo=undo, then=forget)

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
                begun = (small_file(os.path.join(folder, *name)) or "").splitlines()
                if f"refs/heads/{branch}" in begun or (what == "bisected" and branch in begun):
                    here = folder == layout.git_dir
                    fix = "End that first, with `run_step`." if here and what == "rebased" else "End that first."
                    where = "" if here else " in another worktree"
                    raise Conflict(f"The branch {quote(branch)} is being {what}{where}.", fix)

    def stash(self, action: str, revision: Revision, message: str, index: bool) -> Change:
        """Bring one back, drop it, or put one back that was dropped."""
        found = commits_of(self.git, self.repository, revision, self.stop)
        oid = found[0][:_HASH] if found else ""
        if action == "store":
            words = ["stash", "store", "--quiet", *(["--message", message] if message else []), oid or revision.text]
            return Change(words, named=revision, undo=[call("run_stash", action="drop")], moves="refs/stash")
        again = call("run_stash", action="store", rev=oid, message=self._said(revision)) if oid else ""
        if again and oid != self._oid("refs/stash"):
            again += " (as the first of the stashes then)"
        if action == "drop":
            return Change(["stash", "drop", "--quiet", revision.text], named=revision, undo=[again], files=False)
        refuse_in_the_way(self.git, self.repository, self.git.layout(self.repository), revision.text, self.stop)
        words = ["stash", action, "--quiet", *(["--index"] if index else []), revision.text]
        before = self._oid("refs/stash"), self._number()

        def dropped() -> Sequence[str]:
            gone = (self._oid("refs/stash"), self._number()) != before
            return [f"undo: {again}"] if gone else []

        brings = untracked_of(self.git, self.repository, revision.text, self.stop)
        return Change(words, named=revision, back="files", loses=["."], then=dropped, brings=brings)

    def step(
        self, action: str, first: Sequence[tuple[Sequence[str], bytes]] = (), resolves: Sequence[str] = ()
    ) -> Change:
        """Continue, skip or abort what is under way; to continue, `first` stages what is resolved."""
        layout = self.git.layout(self.repository)
        doing = under_way(self.git, self.repository, layout, self.stop)
        if not doing or doing[0].startswith("bisect"):
            raise Conflict("Nothing is `under way` in this repository.", "`get_status` has its state.")
        if action == "abort":
            return Change([doing[0].split(" ")[0], "--abort"], undo=())
        refuse_steps(layout)
        begun = [
            small_file(os.path.join(layout.git_dir, name, "orig-head")) for name in ("rebase-merge", "rebase-apply")
        ]
        start = next((oid for oid in begun if oid), "") or look(self.git, self.repository, self.stop).oid
        undo = [f"{call('run_reset', rev=start[:_HASH], mode='keep')} (to before it began)"]
        words, way = [doing[0].split(" ")[0], f"--{action}"], []
        if _CUT.search(small_file(os.path.join(layout.git_dir, "MERGE_MSG")) or ""):
            one = not os.path.lexists(os.path.join(layout.git_dir, "sequencer"))
            if action == "continue" and words[0] == "cherry-pick" and one:
                words = ["commit", "--quiet", "--no-verify", "--no-gpg-sign"]  # which `--continue` does its own way
            way = _CUTS
        return Change(words, undo=undo, first=first, resolves=resolves, way=way)

    def pick(
        self, words: Sequence[str], revision: Revision, span: Sequence[str], into: Revision | None = None
    ) -> Change:
        """Make commits once more; after a conflict too, lines of their messages that begin with `#` stay.

        Args:
            span: which commits.
        """
        marked = ["log", "--max-count=1", "--format=%H", "--grep=^#", *span, "--"]
        way = _CUTS if self.git.run(self.repository, marked, self.stop, fine=(0, 128)).out else []
        return Change([*words, revision.text], named=revision, into=into, way=way)

    def _back(self, to: str) -> Sequence[str]:
        """The call that leads to where HEAD is now; none if it is there already, or at no commit."""
        before = look(self.git, self.repository, self.stop)
        if before.oid[:1] == "(" or before.head == to:
            return ()
        return [call("run_switch", rev=before.oid[:_HASH] if before.head == "(detached)" else before.head)]

    def _oid(self, ref: str) -> str:
        return oid(self.git, self.repository, ref, self.stop)[:_HASH]

    def _exact(self, revision: Revision) -> str:
        """What stands for `revision` in every command: some of git's take the branch of that name for it, where there
        is a tag as well, or HEAD."""
        meant = self._oid(revision.text)
        return meant if meant and self._oid(f"refs/heads/{revision.text}") not in ("", meant) else revision.text

    def _number(self) -> int:
        try:
            words = ["rev-list", "--walk-reflogs", "--count", "refs/stash", "--"]
            return int(self.git.run(self.repository, words, self.stop).text)
        except Failed:
            return 0

    def _said(self, revision: Revision) -> str:
        """With which message a stash was made."""
        words = ["log", "--walk-reflogs", "--max-count=1", "--format=%gs", revision.text, "--"]
        try:
            return self.git.run(self.repository, words, self.stop).text.removesuffix("\n")
        except Failed:
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
            return name if self._upstream(self.policy.ref(name)) == (remote, entries.get("merge")) else ""
        except (NotFound, Invalid):
            return ""

    def _remotes(self) -> list[str]:
        found = (re.fullmatch(r"remote\.(.+)\.url", key, re.S) for key, _ in self.git.configuration(self.repository))
        return sorted({each[1] for each in found if each}, key=len, reverse=True)
