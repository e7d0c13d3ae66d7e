"""Runs an operation on another branch: HEAD goes there first, and back if it fails without a change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, NotFound, quote
from mcp_git.engine.operation.operation import (
    INSPECTION_SECONDS,
    FileOperation,
    Operation,
    PickOperation,
    refuse_in_progress,
)
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.revisions import explain_failure
from mcp_git.engine.work_tree.status import Status
from mcp_git.engine.work_tree.status_reader import read_status
from mcp_git.models import Answer
from mcp_git.policy import Range, Repository, Revision, RevisionList, parse_range, parse_revision
from mcp_git.repository_paths import Layout
from mcp_git.tool_calls import ToolCall, format_call

__all__ = ["run_on_branch"]

# An ignored file that was overwritten would not come back.
_SWITCH = ("switch", "--quiet", "--no-guess", "--no-overwrite-ignore")


def run_on_branch(
    git: Git,
    repository: Repository,
    layout: Layout,
    operation: PickOperation,
    branch: Revision,
    run: Callable[[Operation], Answer],
    cancel: CancelToken,
) -> Answer:
    """Run an operation on a branch; where it fails and changes nothing, HEAD is then where it was.

    Args:
        run: runs an operation where HEAD is.

    Raises:
        NotFound: there is no such branch.
        Conflict: no way to it and back leaves all as it is.
        Problem: what `run` raises.
    """
    before = read_status(git, repository, cancel, layout=layout)
    if before.head == branch.text:
        return run(operation)
    _refuse_leaving(git, repository, branch.text, before, cancel)
    commits = _resolve_commits(git, repository, operation, cancel)
    return_call = format_call("run_switch", rev=before.oid if before.is_detached else before.head)
    tip = git.find_hash(repository, f"refs/heads/{branch.text}", cancel)
    arrival = _Arrival(branch.text, tip, before.entries)
    try:
        run(FileOperation([*_SWITCH, branch.text], revision=branch, undo_calls=tuple, overwritten_paths=["."]))
        arrival.entries = read_status(git, repository, cancel, layout=layout).entries
        revision = _name_commits(git, repository, operation, commits, before, cancel)
        return run(_replace_revision(operation, revision, return_call))
    except BaseException:
        now = read_status(git, repository, CancelToken(INSPECTION_SECONDS), layout=layout)
        if arrival.is_unchanged(now):
            _go_back(git, repository, branch, before, return_call)
        raise


def _resolve_commits(git: Git, repository: Repository, operation: PickOperation, cancel: CancelToken) -> list[str]:
    """Return the hashes of the commits that an operation names, as HEAD is now; of a range those of its two ends.

    Raises:
        Problem: there is no such commit.
    """
    match operation.revision:
        case Range(start=start, end=end):
            names = [start.text, end.text]
        case RevisionList(items=items):
            names = [item.text for item in items]
        case _:
            names = [operation.arguments[-1]]
    commits: list[str] = []
    try:
        for name in names:
            arguments = ["rev-parse", "--verify", f"{name}^{{commit}}"]
            commits.append(git.run(repository, arguments, cancel).text.strip())
    except GitFailed as failure:
        raise explain_failure(failure, git, repository, operation.revision, cancel) from None
    return commits


def _name_commits(
    git: Git,
    repository: Repository,
    operation: PickOperation,
    commits: Sequence[str],
    before: Status,
    cancel: CancelToken,
) -> Range | Revision | RevisionList:
    """Return what names on the branch the commits that were meant before HEAD moved."""
    match operation.revision:
        case RevisionList():
            return RevisionList([parse_revision(commit) for commit in commits])
        case Range():
            return parse_range("..".join(commits))
        case _:
            return parse_range(_name_target(git, repository, operation.arguments[-1], commits[0], before, cancel))


def _replace_revision(
    operation: PickOperation, revision: Range | Revision | RevisionList, return_call: ToolCall
) -> PickOperation:
    """Return an operation with another revision, which is in its last arguments."""
    arguments = operation.arguments[: -len(revision.arguments)]
    return replace(
        operation,
        arguments=[*arguments, *revision.arguments],
        revision=revision,
        return_calls=[return_call],
    )


def _go_back(git: Git, repository: Repository, branch: Revision, before: Status, return_call: ToolCall) -> None:
    """Go back to where HEAD was.

    Raises:
        Conflict: git can't, so HEAD stays on the branch.
    """
    try:
        git.run(repository, _return_arguments(before), CancelToken(INSPECTION_SECONDS), writes=True)
    except GitFailed as failure:
        message = f"{failure} HEAD stays on {quote(branch.text)}."
        raise Conflict(message, f"{return_call} leads back.") from None


@dataclass
class _Arrival:
    """The state in which HEAD is on the branch, and nothing was done there yet."""

    branch: str
    tip: str
    entries: Sequence[object]

    def is_unchanged(self, now: Status) -> bool:
        is_there = now.head == self.branch and now.oid == self.tip
        return is_there and now.entries == self.entries and not now.in_progress


def _return_arguments(before: Status) -> list[str]:
    if before.is_detached:
        return [*_SWITCH, "--detach", before.oid]
    return [*_SWITCH, before.head]


def _name_target(
    git: Git, repository: Repository, target: str, commit: str, before: Status, cancel: CancelToken
) -> str:
    """Return what names the commit that was meant before HEAD moved: by its name, which a merge's message tells, unless
    that is another commit on this branch."""
    name = target
    if not before.is_detached and target in ("HEAD", "@"):
        name = before.head
    if git.find_hash(repository, f"{name}^{{commit}}", cancel) == commit:
        return name
    return commit


def _refuse_leaving(git: Git, repository: Repository, branch: str, status: Status, cancel: CancelToken) -> None:
    """Check that there is such a branch, and a switch to it and back leaves all as it is.

    What is staged as that branch has it would be staged no longer, and what is deleted be written again.

    Raises:
        NotFound: no such branch.
        Conflict: it would not.
    """
    if not git.find_hash(repository, f"refs/heads/{branch}", cancel):
        fix = "`list_refs` has branches; of a remote's `create_branch` makes one here."
        raise NotFound(f"There is no branch {quote(branch)} here.", fix)
    if not status.has_commit:
        raise Conflict("`HEAD` has no commit yet, so no way leads back to it.", "Use `run_switch` first.")
    refuse_in_progress(status.in_progress)
    if any(entry.letters not in ("??", " M", " T") for entry in status.entries):
        fix = "Commit it, or put it aside with `run_stash`, first."
        raise Conflict(f"What is staged or deleted does not come along to {quote(branch)}.", fix)
