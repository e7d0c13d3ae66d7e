"""Makes a change on another branch: HEAD goes there first, and back if nothing comes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mcp_batteries.errors import Conflict, NotFound, quote
from mcp_batteries.limits import Stop
from mcp_git.engine.operation.operation import INSPECTION_SECONDS, Operation, refuse_in_progress
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.revisions import explain_failure, find_hash
from mcp_git.engine.work_tree.status import Status, read_status
from mcp_git.models import Answer
from mcp_git.policy import Repository, Revision
from mcp_git.repository_paths import Layout
from mcp_git.tool_calls import format_call

__all__ = ["run_on_branch"]


def run_on_branch(
    git: Git,
    repository: Repository,
    layout: Layout,
    change: Operation,
    into: Revision,
    make: Callable[[Operation], Answer],
    stop: Stop,
) -> Answer:
    """Make a change on the branch `into`; where nothing comes of it, HEAD is then where it was.

    Args:
        make: makes a change where HEAD is.

    Raises:
        NotFound: there is no such branch.
        Conflict: no way to it and back leaves all as it is.
        Problem: what `make` raises.
    """
    branch = into.text
    was = read_status(git, repository, stop, layout=layout)
    if was.head == branch:
        return make(change)
    _refuse_leaving(git, repository, branch, was, stop)
    try:
        meant = git.run(repository, ["rev-parse", "--verify", f"{change.arguments[-1]}^{{commit}}"], stop).text
    except GitFailed as failure:
        raise explain_failure(failure, git, repository, change.revision, stop) from None
    detached = was.head == "(detached)"
    home = format_call("run_switch", rev=was.oid if detached else was.head)
    # An ignored file that was overwritten would not come back.
    words = ["switch", "--quiet", "--no-guess", "--no-overwrite-ignore"]
    tip, entries = find_hash(git, repository, f"refs/heads/{branch}", stop), was.entries
    try:
        make(Operation([*words, branch], revision=into, undo_calls=(), overwritten_paths=["."]))
        entries = read_status(git, repository, stop, layout=layout).entries
        # By its name, which a merge's message tells, unless that is another commit there.
        name = change.arguments[-1] if detached or change.arguments[-1] not in ("HEAD", "@") else was.head
        if find_hash(git, repository, f"{name}^{{commit}}", stop) != meant.strip():
            name = meant.strip()
        change = replace(change, arguments=[*change.arguments[:-1], name], return_calls=[home])
        return make(change)
    except BaseException:
        now = read_status(git, repository, Stop(INSPECTION_SECONDS), layout=layout)
        if (now.head, now.oid, now.entries) == (branch, tip, entries) and not now.in_progress:
            words += ["--detach", was.oid] if detached else [was.head]
            try:
                git.run(repository, words, Stop(INSPECTION_SECONDS), writes=True)
            except GitFailed as failure:
                raise Conflict(f"{failure} HEAD stays on {quote(branch)}.", f"{home} leads back.") from None
        raise


def _refuse_leaving(git: Git, repository: Repository, branch: str, was: Status, stop: Stop) -> None:
    """Return if there is such a branch, and a switch to it and back leaves all as it is.

    What is staged as that branch has it would be staged no longer, and what is deleted be written again.

    Raises:
        NotFound: no such branch.
        Conflict: it would not.
    """
    if not find_hash(git, repository, f"refs/heads/{branch}", stop):
        fix = "`list_refs` has branches; of a remote's `create_branch` makes one here."
        raise NotFound(f"There is no branch {quote(branch)} here.", fix)
    if was.oid[:1] == "(":
        raise Conflict("`HEAD` has no commit yet, so no way leads back to it.", "Use `run_switch` first.")
    refuse_in_progress(was.in_progress)
    if any(letters not in ("??", " M", " T") for letters, _, _ in was.entries):
        fix = "Commit it, or put it aside with `run_stash`, first."
        raise Conflict(f"What is staged or deleted does not come along to {quote(branch)}.", fix)
