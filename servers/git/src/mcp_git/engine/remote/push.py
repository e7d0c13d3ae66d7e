"""Makes a push that the user confirmed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, Problem, Refused, quote
from mcp_git.engine.program.git import Git
from mcp_git.engine.program.output import Output
from mcp_git.engine.remote.exchange import exchange, list_remarks
from mcp_git.engine.remote.planned_push import PlannedPush
from mcp_git.models import Answer
from mcp_git.path_quoting import escape_line_breaks
from mcp_git.policy import Remote, Repository
from mcp_git.remote_addresses import hide_password
from mcp_git.tool_calls import format_call

__all__ = ["push"]

_ACCEPTED = (" ", "+", "*", "=", "-")
_UP_TO_DATE = "="
# What happened to a ref there, by the flag of `git push --porcelain`; its space is the usual one.
_RESULTS = {"*": "new there", _UP_TO_DATE: "was there already", "+": "replaced what was there"}
_MAX_SUMMARY_LENGTH = 300


class _RefResult(NamedTuple):
    """What `git push --porcelain` says of a ref."""

    flag: str
    summary: str


def push(git: Git, plan: PlannedPush, cancel: CancelToken) -> Answer:
    """Make a push that was agreed to.

    Raises:
        Conflict: the remote has something else than was known.
        Problem: the remote or git refused.
    """
    repository = plan.pushable.repository
    arguments = ["push", "--porcelain", "--progress", "--no-verify", "--no-signed", "--no-follow-tags"]
    arguments += ["--no-recurse-submodules", *plan.lease_options]
    refspecs = [f"{plan.commit}:{plan.target_ref}"]
    output = exchange(git, repository, plan.remote, arguments, "receive-pack", refspecs, cancel, exit_codes=(0, 1))
    result = _find_result(output)
    if result.flag not in _ACCEPTED:
        raise _explain_rejection(result.summary, output.stderr, plan.remote)
    remarks = list_remarks(output.stderr)
    if not plan.commit:
        return _describe_deletion(plan, remarks)
    if plan.following_branch:
        _set_upstream(git, repository, plan)
    return _describe_push(plan, result.flag, remarks)


def _find_result(output: Output) -> _RefResult:
    for line in output.text.split("\n"):
        if line.count("\t") == 2:
            flag, _, summary = line.split("\t", 2)
            return _RefResult(flag, summary)
    return _RefResult("", "")


def _set_upstream(git: Git, repository: Repository, plan: PlannedPush) -> None:
    key = f"branch.{plan.following_branch}"
    git.configure(repository, ["--replace-all", f"{key}.remote", plan.remote.name])
    ref = f"refs/heads/{plan.target_ref.removeprefix('refs/heads/')}"
    git.configure(repository, ["--replace-all", f"{key}.merge", ref])


def _describe_deletion(plan: PlannedPush, remarks: Sequence[str]) -> Answer:
    remote = plan.remote
    if plan.kind == "tag":
        undo_call = format_call("run_push", rev=plan.target_name, tag=True, remote=remote.name)
    else:
        undo_call = format_call("run_push", rev=plan.known_commit[:12], to=plan.target_name, remote=remote.name)
    fact = f"deleted the {plan.kind} {plan.target_name} of {remote.name}, {remote.address.display}"
    return Answer([fact], [*plan.lost_commits, *remarks, f"undo: {undo_call}"])


def _describe_push(plan: PlannedPush, flag: str, remarks: Sequence[str]) -> Answer:
    remote = plan.remote
    target = f"{remote.name}/{plan.target_name}, {remote.address.display}"
    facts = [f"pushed {escape_line_breaks(plan.source)} to {target}", _RESULTS.get(flag, "done")]
    if plan.following_branch:
        facts.append(f"{escape_line_breaks(plan.following_branch)} follows it")
    rows: list[str] = []
    if flag != _UP_TO_DATE:
        rows += [*plan.new_commits, *remarks]
    if plan.known_commit and flag in (" ", "+"):
        commit = plan.known_commit[:12]
        undo_call = format_call("run_push", rev=commit, to=plan.target_name, remote=remote.name, force=True)
        rows.append(f"undo: {undo_call}")
    return Answer(facts, rows)


def _explain_rejection(summary: str, stderr: str, remote: Remote) -> Problem:
    words = escape_line_breaks(hide_password(summary))[:_MAX_SUMMARY_LENGTH] or "no answer"
    if "stale info" in summary:
        return Conflict(
            f"The remote {quote(remote.name)} has something else now than at the last fetch; nothing was replaced.",
            "`run_fetch`, look at what came, then push again.",
        )
    is_refused_there = "[remote rejected]" in summary
    if not is_refused_there and ("fetch first" in summary or "non-fast-forward" in summary):
        return Conflict(
            f"The remote {quote(remote.name)} has commits that are not in what was pushed ({words}).",
            "`run_fetch`, then merge or rebase; to replace them, `force`.",
        )
    message = f"The remote {quote(remote.name)} refused: {words}."
    remarks = "; ".join(list_remarks(stderr))
    if remarks:
        message += f" {remarks}"
    return Refused(message, "Ask who runs it.")
