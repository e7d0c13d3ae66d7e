"""Plans pushes, from what is known here: what goes where, what is new there, and what the remote would lose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, Invalid, NotFound, Refused, quote
from mcp_git.engine.history.commit_rows import abbreviation
from mcp_git.engine.program.git import Git
from mcp_git.engine.program.output import clip, split_lines
from mcp_git.engine.program.revisions import find_commits
from mcp_git.engine.remote.planned_push import PlannedPush
from mcp_git.models import count
from mcp_git.path_quoting import escape_line_breaks
from mcp_git.policy import NewName, PushableRepository, Remote, Repository, Revision, parse_new_name

__all__ = ["PushPlanner"]

_MAX_ROWS = 20
_MAX_ROW_BYTES = 120


class _Source(NamedTuple):
    """What is pushed.

    Attributes:
        name: what it is called here.
        branch: the branch that it is; empty if it is none.
        commit: its hash.
    """

    name: str
    branch: str
    commit: str


@dataclass
class PushPlanner:
    """Plans one push.

    Attributes:
        revision: None for the current branch.
        target: the name that it gets there; None for its own.
        is_tag: whether it is a tag.
        force: whether it may replace what the remote has, if that is what was fetched last.
        sets_upstream: whether the branch is to follow it from now on.
        delete: whether the remote is to have it no longer.
    """

    git: Git
    pushable: PushableRepository
    remote: Remote
    revision: Revision | None
    target: NewName | None
    is_tag: bool
    force: bool
    sets_upstream: bool
    delete: bool
    cancel: CancelToken

    @property
    def repository(self) -> Repository:
        return self.pushable.repository

    @property
    def ref_prefix(self) -> str:
        """What stands before the name there in its ref."""
        return "refs/tags/" if self.is_tag else "refs/heads/"

    def plan(self) -> PlannedPush:
        """Return what the push would be.

        Raises:
            Problem: it can't be made so.
        """
        if self.delete:
            return self._plan_deletion()
        return self._plan_update()

    def _plan_update(self) -> PlannedPush:
        source = self._find_source()
        self._refuse_large_files(source.commit)
        self._refuse_wrong_source(source)
        target = self._choose_target(source)
        known_commit = ""
        if not self.is_tag:
            known_commit = self._find_hash(f"refs/remotes/{self.remote.name}/{target}")
        if self.force and not known_commit:
            raise self._unknown_target(target)
        lost_commits: list[str] = []
        new_commits = self._list_commits("New there", [source.commit, "--not", f"--remotes={self.remote.name}"])
        if self.force:
            lost_commits = self._list_commits("Lost there", [known_commit, "--not", source.commit])
        return PlannedPush(
            pushable=self.pushable,
            remote=self.remote,
            source=source.name,
            following_branch=source.branch if self.sets_upstream else "",
            commit=source.commit,
            target_ref=f"{self.ref_prefix}{target}",
            known_commit=known_commit,
            force=self.force,
            new_commits=new_commits,
            lost_commits=lost_commits,
        )

    def _refuse_wrong_source(self, source: _Source) -> None:
        """Check that what is pushed has a name there, and is a branch where one is needed."""
        if source.branch:
            return
        if self.target is None and not self.is_tag:
            raise Invalid(f"{quote(source.name)} is not a branch, so it needs a name there.", "Give it as `to`.")
        if self.sets_upstream:
            message = f"Only a branch can follow another, and {quote(source.name)} is none."
            raise Invalid(message, "Leave `upstream` out.")

    def _unknown_target(self, target: str) -> Conflict:
        if self.is_tag:
            return Conflict("A tag is not replaced.", "Use another name.")
        message = f"What the remote has as {quote(target)} is not known."
        return Conflict(message, "`run_fetch` first, or leave `force` out.")

    def _choose_target(self, source: _Source) -> str:
        if self.target is not None:
            return self.target.text
        if source.branch:
            return self._find_usual_target(source.branch)
        return source.name

    def _find_usual_target(self, branch: str) -> str:
        """Return where a branch goes if nothing is said: to what it follows there, or else to its own name."""
        entries = dict(self.git.read_allowed_configuration(self.repository))
        if entries.get(f"branch.{branch}.remote") == self.remote.name:
            followed = entries.get(f"branch.{branch}.merge", "")
            if followed.startswith("refs/heads/"):
                return parse_new_name(followed.removeprefix("refs/heads/")).text
        return branch

    def _plan_deletion(self) -> PlannedPush:
        if self.force or self.sets_upstream:
            raise Invalid("`delete` goes with neither `force` nor `upstream`.", "Leave them out.")
        name = self._choose_deleted()
        remote_branch = f"{self.remote.name}/{name}"
        target_ref = f"{self.ref_prefix}{name}"
        known_commit = self._find_hash(target_ref if self.is_tag else f"refs/remotes/{remote_branch}")
        if not known_commit:
            fix = "`run_fetch` with `tags` first." if self.is_tag else "`run_fetch` first."
            raise Conflict(f"What the remote {quote(self.remote.name)} has as {quote(name)} is not known here.", fix)
        lost_commits: list[str] = []
        if not self.is_tag:
            span = [known_commit, "--not", f"--exclude={remote_branch}", f"--remotes={self.remote.name}"]
            lost_commits = self._list_commits("In no other branch there", span)
        return PlannedPush(
            pushable=self.pushable,
            remote=self.remote,
            source=name,
            following_branch="",
            commit="",
            target_ref=target_ref,
            known_commit=known_commit,
            force=False,
            new_commits=[],
            lost_commits=lost_commits,
        )

    def _choose_deleted(self) -> str:
        if self.target is not None:
            return self.target.text
        if self.revision is not None:
            folder = "tags" if self.is_tag else "heads"
            name = self.git.shorten_ref(self.repository, self.revision.text, folder, self.cancel)
            return parse_new_name(name).text
        raise Invalid("It is not said what is to be deleted there.", "Name it as `to`.")

    def _find_source(self) -> _Source:
        revision = self.revision
        if self.is_tag:
            return self._find_tag(revision)
        if revision is None:
            return self._find_current_branch()
        branch = self.git.shorten_ref(self.repository, revision.text, "heads", self.cancel)
        commit = self.git.find_branch(self.repository, branch, self.cancel)
        if commit:
            return _Source(branch, branch, commit)
        commits = find_commits(self.git, self.repository, revision, self.cancel)
        if len(commits) != 1:
            raise _missing_source("revision", revision.text)
        return _Source(revision.text, "", commits[0])

    def _find_tag(self, revision: Revision | None) -> _Source:
        if revision is None:
            raise _unnamed_source()
        tag = self.git.shorten_ref(self.repository, revision.text, "tags", self.cancel)
        commit = self._find_hash(f"refs/tags/{tag}")
        if not commit:
            raise _missing_source("tag", tag)
        return _Source(tag, "", commit)

    def _find_current_branch(self) -> _Source:
        # With `--short` it would be `heads/main` where a tag is called `main` too.
        arguments = ["symbolic-ref", "--quiet", "HEAD"]
        ref = self.git.run(self.repository, arguments, self.cancel, exit_codes=(0, 1, 128)).text.strip()
        if not ref:
            raise _unnamed_source()
        name = ref.removeprefix("refs/heads/")
        commit = self._find_hash(f"refs/heads/{name}")
        if not commit:
            raise _missing_source("commit of the branch", name)
        return _Source(name, name, commit)

    def _find_hash(self, ref: str) -> str:
        arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", ref]
        return self.git.run(self.repository, arguments, self.cancel, exit_codes=(0, 1, 128)).text.strip()

    def _list_commits(self, title: str, span: Sequence[str]) -> list[str]:
        """Return how many commits a span has, and a line for each of the first ones."""
        number = int(self.git.run(self.repository, ["rev-list", "--count", *span, "--"], self.cancel).text)
        rows = [f"{title}: {count(number, 'commit')}"]
        if number:
            arguments = ["log", *abbreviation(), "--format=%h %s", f"--max-count={_MAX_ROWS}", *span, "--"]
            lines = split_lines(self.git.run(self.repository, arguments, self.cancel))
            rows += [f"| {clip(escape_line_breaks(line), _MAX_ROW_BYTES)}" for line in lines]
        if number > _MAX_ROWS:
            rows.append(f"| … and {number - _MAX_ROWS:,} more")
        return rows

    def _refuse_large_files(self, commit: str) -> None:
        """Check that no file of a commit is in Git LFS, whose hook does not run.

        Raises:
            Refused: one is.
        """
        pathspec = ":(top,glob)**/.gitattributes"
        arguments = ["grep", "-l", "--no-color", "-E", "-e", "(^|[[:space:]])filter=lfs", commit, "--", pathspec]
        output = self.git.run(self.repository, arguments, self.cancel, exit_codes=(0, 1, 128), literal_paths=False)
        if output.stdout:
            raise Refused(
                "Files of this repository are in Git LFS, which a hook would upload, and none is run here.",
                "Use `git` itself for this push.",
            )


def _unnamed_source() -> Invalid:
    return Invalid("It is not said what is to be pushed.", "Name it as `rev`.")


def _missing_source(kind: str, name: str) -> NotFound:
    return NotFound(f"There is no {kind} {quote(name)}.", "`list_refs` has branches and tags.")
