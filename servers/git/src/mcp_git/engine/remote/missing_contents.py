"""Fetches the contents that a partial clone lacks: for the commits that a caller names, and not one after the other."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import split_lines
from mcp_git.engine.program.revisions import explained_failures
from mcp_git.engine.remote.exchange import exchange
from mcp_git.policy import Range, Remote, Repository, RepositoryPath, Revision

__all__ = ["fetch_contents"]

# What comes of a folder may lead to what is missing below it.
_MAX_ROUNDS = 50
# The mode of a submodule is left out: its commit is in another repository.
_SIDES = re.compile(rb"(?m)^:(?!160000)[0-7]{6} (?!160000)[0-7]{6} ([0-9a-f]+) ([0-9a-f]+) ")
_FETCH = (
    # Who has a commit counts as having its files.
    "-c", "fetch.negotiationAlgorithm=noop",
    "fetch", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance",
    "--filter=blob:none", "--progress", "--stdin",
)  # fmt: skip


def fetch_contents(
    git: Git,
    repository: Repository,
    remote: Remote,
    revision: Revision | Range,
    path: RepositoryPath,
    cancel: CancelToken,
) -> int:
    """Fetch the folders and files of one commit, or of those of a range; return how many objects came.

    Args:
        path: the only one of them; then of all commits from which the revision is reached.

    Raises:
        Conflict: the remote does not have all of it.
        Problem: the remote or git refused.
    """
    fetched = 0
    missing: Sequence[str] = ()
    for _ in range(_MAX_ROUNDS):
        before = missing
        missing = _list_missing(git, repository, revision, path, cancel)
        if not missing:
            return fetched
        if missing == before:
            break
        stdin = "".join(f"{oid}\n" for oid in missing).encode()
        exchange(git, repository, remote, _FETCH, "upload-pack", [], cancel, stdin=stdin)
        fetched += len(missing)
    raise Conflict("The remote did not send all contents.", "Name a smaller part of them, by `path`.")


def _list_missing(
    git: Git, repository: Repository, revision: Revision | Range, path: RepositoryPath, cancel: CancelToken
) -> list[str]:
    """Return the hashes of the objects that are not here: folders first, as these lead to files."""
    options: list[str] = []
    if isinstance(revision, Revision) and not path.text:
        options.append("--no-walk")
    commits = [*options, revision.text, "--"]
    paths = [path.text] if path.text else []
    with explained_failures(git, repository, revision, cancel):
        try:
            return _list_missing_files(git, repository, [*commits, *paths], cancel)
        except GitFailed:
            folders = _list_missing_folders(git, repository, commits, cancel)
            if not folders:
                raise
            return folders


def _list_missing_files(git: Git, repository: Repository, operands: Sequence[str], cancel: CancelToken) -> list[str]:
    """Return what commits have that is not here, with the other side of each change, which a diff compares.

    Raises:
        GitFailed: folders that lead to it are not here.
    """
    missing = _read_missing(git, repository, operands, cancel)
    arguments = ["log", "--format=", "--raw", "-r", "--no-renames", "--no-abbrev", "--diff-merges=first-parent"]
    sides = _SIDES.findall(git.run(repository, [*arguments, *operands], cancel).stdout)
    hashes = itertools.chain.from_iterable(sides)
    stdin = b"".join(b"%s\n" % oid for oid in hashes if oid.strip(b"0"))
    output = git.run(repository, ["cat-file", "--batch-check"], cancel, stdin=stdin)
    missing += [line.removesuffix(" missing") for line in split_lines(output) if line.endswith(" missing")]
    return list(dict.fromkeys(missing))


def _list_missing_folders(git: Git, repository: Repository, commits: Sequence[str], cancel: CancelToken) -> list[str]:
    """Return the folders of commits and of those before them that are not here."""
    hashes = git.run(repository, ["log", "--format=%H %P", *commits], cancel).stdout.split()
    stdin = b"\n".join(dict.fromkeys(hashes)) + b"\n"
    return _read_missing(git, repository, ["--filter=blob:none", "--no-walk", "--stdin"], cancel, stdin)


def _read_missing(
    git: Git, repository: Repository, operands: Sequence[str], cancel: CancelToken, stdin: bytes = b""
) -> list[str]:
    arguments = ["rev-list", "--objects", "--missing=print", *operands]
    output = git.run(repository, arguments, cancel, stdin=stdin)
    return [line.removeprefix("?") for line in split_lines(output) if line.startswith("?")]
