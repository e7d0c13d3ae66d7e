"""Finds histories in which a commit is dated before its parents, so that git stops at it where a date bounds a walk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_git.engine.program.git import Git
from mcp_git.engine.program.output import split_records
from mcp_git.policy import Repository

__all__ = ["can_filter_by_date", "hides_newer_commits"]

_FIRST_VERSION_WITH_FILTER = (2, 37)


def can_filter_by_date(git: Git) -> bool:
    """Whether this git can look behind commits that are too old."""
    return git.binary.version >= _FIRST_VERSION_WITH_FILTER


def hides_newer_commits(
    git: Git, repository: Repository, since: str, revisions: Sequence[str], max_commits: int, cancel: CancelToken
) -> bool:
    """Whether git would miss some commits since a date, as its walk ends at a child of theirs that is dated before it.

    Args:
        since: a date as git reads it.
        revisions: from where git walks.
        max_commits: how many commits are read.
    """
    output = git.run(repository, ["rev-parse", f"--since={since}"], cancel)
    since_seconds = int(output.text.strip().removeprefix("--max-age="))
    arguments = ["log", "--format=%ct", f"--max-count={max_commits}", *revisions, "--"]
    with git.stream(repository, arguments, cancel) as pieces:
        return _has_newer_behind_old(split_records(pieces, b"\n"), since_seconds)


def _has_newer_behind_old(dates: Iterable[bytes], since_seconds: int) -> bool:
    """Whether a time, in seconds since 1970, that is late enough follows one that is not."""
    is_behind_old = False
    for date in dates:
        is_late_enough = date.isdigit() and int(date) >= since_seconds
        if is_behind_old and is_late_enough:
            return True
        if not is_late_enough:
            is_behind_old = True
    return False
