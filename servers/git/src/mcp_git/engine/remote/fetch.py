"""Fetches what a remote has that is not here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, Problem, quote
from mcp_git.engine.history.commit_rows import shorten_hash
from mcp_git.engine.history.cut_history import describe_boundary, list_boundary
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import Output, clip, select_options
from mcp_git.engine.remote.exchange import exchange, list_remarks, resolve_remote
from mcp_git.engine.remote.missing_contents import fetch_contents
from mcp_git.models import Answer, count
from mcp_git.path_quoting import escape_line_breaks
from mcp_git.policy import (
    TOP_FOLDER,
    FetchableRepository,
    NewName,
    Policy,
    Range,
    Remote,
    RemoteName,
    Repository,
    RepositoryPath,
    Revision,
)

__all__ = ["FetchRequest", "fetch"]

_MAX_COMPARED = 20
_MAX_ROWS = 200
_MAX_ROWS_OF_FAILURE = 20
_MAX_ROW_BYTES = 120


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """Says what is fetched.

    Attributes:
        branch: the only one; None for all.
        all_tags: all tags, not only those of what comes.
        prune: whether branches go that the remote no longer has.
        deepen: how many commits a shallow clone gets before its first ones.
        contents: the commits of which a partial clone gets the files.
        path: the only file or folder of these, and then of all commits up to there.
    """

    branch: NewName | None = None
    all_tags: bool = False
    prune: bool = False
    deepen: int | None = None
    contents: Revision | Range | None = None
    path: RepositoryPath = TOP_FOLDER


def fetch(
    git: Git,
    policy: Policy,
    fetchable: FetchableRepository,
    name: RemoteName | None,
    request: FetchRequest,
    cancel: CancelToken,
) -> Answer:
    """Fetch the branches of a remote as `refs/remotes/`, and the tags of what comes.

    Raises:
        Problem: the remote or git refused.
    """
    repository = fetchable.repository
    remote = resolve_remote(git, policy, repository, name, cancel)
    _refuse_needless_options(git, repository, request)
    before = _list_refs(git, repository, remote, cancel)
    try:
        output = _fetch_refs(git, repository, remote, request, cancel)
    except Problem as problem:
        rows = _describe_moves(git, repository, before, _list_refs(git, repository, remote, cancel), cancel)
        if not rows:
            raise
        raise problem.reword(f"{problem.failure} All the same {_join_rows(rows)}.", problem.fix) from None
    after = _list_refs(git, repository, remote, cancel)
    rows = _describe_moves(git, repository, before, after, cancel)
    facts = [f"fetched from {remote.name}, {remote.address.display}"]
    facts.append(f"{count(len(rows), 'ref')} changed" if rows else "nothing new")
    if request.deepen:
        boundary = list_boundary(git.layout(repository))
        facts.append(describe_boundary(boundary, boundary) if boundary else "all of the history is here now")
    if request.contents:
        number = fetch_contents(git, repository, remote, request.contents, request.path, cancel)
        facts.append(f"{count(number, 'missing object')} of {escape_line_breaks(request.contents.text)} fetched")
    if len(rows) > _MAX_ROWS:
        rows = [*rows[:_MAX_ROWS], f"… and {len(rows) - _MAX_ROWS:,} more"]
    return Answer(facts, [*rows, *list_remarks(output.stderr)])


def _refuse_needless_options(git: Git, repository: Repository, request: FetchRequest) -> None:
    """Check that what is asked for can be missing.

    Raises:
        Invalid: it is no shallow clone that is to be deepened, or no partial one whose contents are to come.
    """
    if request.deepen and not list_boundary(git.layout(repository)):
        raise Invalid("This is no shallow clone: its whole history is here.", "Leave `deepen` out.")
    if request.contents and not git.is_partial(repository):
        raise Invalid("This is no partial clone: the contents of its commits are here.", "Leave `contents` out.")
    if request.path.text and not request.contents:
        raise Invalid("`path` limits `contents`, which is left out.", "Name a revision as `contents`.")


def _fetch_refs(git: Git, repository: Repository, remote: Remote, request: FetchRequest, cancel: CancelToken) -> Output:
    refspecs: list[str] = []
    if request.branch is not None:
        refspecs.append(f"+refs/heads/{request.branch.text}:refs/remotes/{remote.name}/{request.branch.text}")
    arguments = ["fetch", "--progress", "--no-recurse-submodules", "--no-auto-maintenance"]
    # At once with others, no branch can come below the name of one that goes.
    is_atomic = not request.prune
    arguments += select_options({"--tags": request.all_tags, "--prune": request.prune, "--atomic": is_atomic})
    if not request.deepen:
        return exchange(git, repository, remote, arguments, "upload-pack", refspecs, cancel)
    arguments.append(f"--deepen={request.deepen}")
    with git.writable_shallow_file(repository, cancel):
        return exchange(git, repository, remote, arguments, "upload-pack", refspecs, cancel)


def _join_rows(rows: Sequence[str]) -> str:
    """Return in one line what a fetch changed that then failed: one that prunes is not atomic."""
    names = ", ".join(quote(row) for row in rows[:_MAX_ROWS_OF_FAILURE])
    if len(rows) > _MAX_ROWS_OF_FAILURE:
        names += f" and {len(rows) - _MAX_ROWS_OF_FAILURE:,} more"
    return f"{count(len(rows), 'ref')} changed: {names}"


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
        return f"new {name} {shorten_hash(new)}"
    if not new:
        return f"gone {name}, was {shorten_hash(old)}"
    return f"{name} {shorten_hash(old)}..{shorten_hash(new)}"


def _is_ancestor(git: Git, repository: Repository, old: str, new: str, cancel: CancelToken) -> bool:
    try:
        git.run(repository, ["merge-base", "--is-ancestor", old, new], cancel)
    except GitFailed:
        return False
    return True
