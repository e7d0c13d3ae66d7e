"""Fetches what a remote has that is not here."""

from __future__ import annotations

from collections.abc import Mapping

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import clip, select_options
from mcp_git.engine.remote.exchange import exchange, list_remarks, resolve_remote
from mcp_git.models import Answer, count
from mcp_git.path_quoting import escape_line_breaks
from mcp_git.policy import FetchableRepository, NewName, Policy, Remote, RemoteName, Repository

__all__ = ["fetch"]

_MAX_COMPARED = 20
_MAX_ROWS = 200
_MAX_ROW_BYTES = 120


def fetch(
    git: Git,
    policy: Policy,
    fetchable: FetchableRepository,
    name: RemoteName,
    branch: NewName | None,
    *,
    all_tags: bool,
    prune: bool,
    cancel: CancelToken,
) -> Answer:
    """Fetch the branches of a remote as `refs/remotes/`, and the tags of what comes.

    Args:
        branch: the only one to fetch.

    Raises:
        Problem: the remote or git refused.
    """
    repository = fetchable.repository
    remote = resolve_remote(git, policy, repository, name)
    refspecs: list[str] = []
    if branch is not None:
        refspecs.append(f"+refs/heads/{branch.text}:refs/remotes/{remote.name}/{branch.text}")
    arguments = ["fetch", "--progress", "--atomic", "--no-recurse-submodules", "--no-auto-maintenance"]
    arguments += select_options({"--tags": all_tags, "--prune": prune})
    before = _list_refs(git, repository, remote, cancel)
    output = exchange(git, repository, remote, arguments, "upload-pack", refspecs, cancel)
    after = _list_refs(git, repository, remote, cancel)
    rows = _describe_moves(git, repository, before, after, cancel)
    facts = [f"fetched from {remote.name}, {remote.address.display}"]
    facts.append(f"{count(len(rows), 'ref')} changed" if rows else "nothing new")
    if len(rows) > _MAX_ROWS:
        rows = [*rows[:_MAX_ROWS], f"… and {len(rows) - _MAX_ROWS:,} more"]
    return Answer(facts, [*rows, *list_remarks(output.stderr)])


def _list_refs(git: Git, repository: Repository, remote: Remote, cancel: CancelToken) -> dict[str, str]:
    """Return the hashes of the remote's branches, as they are known here, and of all tags, by their whole names."""
    arguments = ["for-each-ref", "--format=%(objectname) %(refname)", f"refs/remotes/{remote.name}", "refs/tags"]
    output = git.run(repository, arguments, cancel).stdout.decode("utf-8", "surrogateescape")
    hashes: dict[str, str] = {}
    for line in output.split("\n"):
        oid, _, name = line.partition(" ")
        if name:
            hashes[name] = oid
    return hashes


def _describe_moves(
    git: Git, repository: Repository, before: Mapping[str, str], after: Mapping[str, str], cancel: CancelToken
) -> list[str]:
    rows: list[str] = []
    for ref in sorted(before.keys() | after.keys()):
        old = before.get(ref, "")
        new = after.get(ref, "")
        if old == new or ref.endswith("/HEAD"):
            continue
        row = _describe_move(ref, old, new)
        # A git for each ref takes its time, so only the first ones are compared.
        is_compared = old and new and len(rows) < _MAX_COMPARED
        if is_compared and not _is_ancestor(git, repository, old, new, cancel):
            row += " (rewritten)"
        rows.append(clip(row, _MAX_ROW_BYTES))
    return rows


def _describe_move(ref: str, old: str, new: str) -> str:
    name = escape_line_breaks(ref.removeprefix("refs/").removeprefix("remotes/"))
    if not old:
        return f"new {name} {new[:9]}"
    if not new:
        return f"gone {name}, was {old[:9]}"
    return f"{name} {old[:9]}..{new[:9]}"


def _is_ancestor(git: Git, repository: Repository, old: str, new: str, cancel: CancelToken) -> bool:
    try:
        git.run(repository, ["merge-base", "--is-ancestor", old, new], cancel)
    except GitFailed:
        return False
    return True
