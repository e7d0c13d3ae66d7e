"""Searches the changes of commits for a text, a batch of commits after the other, for as long as a caller waits.

`git log -S` tells nothing of how far it came, and begins again for each page. Here one git lists the commits, and
others look through them: where the time is over, what was found so far is an answer, and a cursor goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_git.engine.program.git import Git
from mcp_git.engine.program.output import split_lines, split_records
from mcp_git.policy import Repository

__all__ = ["ChangeSearch", "SearchedCommits"]

_MAX_SECONDS = 10.0
# A batch takes about so long, so that the search ends in time.
_BATCH_SECONDS = 1.0
_FIRST_BATCH = 200
_MAX_BATCH = 20_000


@dataclass
class SearchedCommits:
    """The commits that were looked through.

    Attributes:
        rows: what git printed of those that match.
        count: how many were looked through.
        back_to: the date of the last of them.
        is_complete: whether there are no others.
    """

    rows: list[bytes] = field(default_factory=list[bytes])
    count: int = 0
    back_to: str = ""
    is_complete: bool = False


@dataclass(frozen=True)
class ChangeSearch:
    """What is searched.

    Attributes:
        walk: the arguments of `git log` that list the commits, up to the options of their format.
        paths: what follows the `--`.
        options: those that say what a change has to have.
        row_format: how a commit that matches is printed, with its hash first behind a byte of 1.
    """

    walk: Sequence[str]
    paths: Sequence[str]
    options: Sequence[str]
    row_format: str

    def run(self, git: Git, repository: Repository, limit: int, cancel: CancelToken) -> SearchedCommits:
        """Return the first `limit` matches, or as many as were found in the time there is."""
        searched = SearchedCommits()
        start = _read_clock()
        end = start + _MAX_SECONDS
        if cancel.deadline is not None:
            end = min(end, (start + cancel.deadline) / 2)
        size = _FIRST_BATCH
        with git.stream(repository, ["log", "--format=%H %cs", *self.walk, "--", *self.paths], cancel) as pieces:
            commits = split_records(pieces, b"\n")
            while len(searched.rows) < limit and _read_clock() < end:
                batch_start = _read_clock()
                batch = list(islice(commits, size))
                self._search_batch(git, repository, batch, limit, searched, cancel)
                if len(batch) < size:
                    searched.is_complete = len(searched.rows) < limit or not batch
                    break
                size = _choose_size(size, _read_clock() - batch_start)
        return searched

    def _search_batch(
        self,
        git: Git,
        repository: Repository,
        batch: Sequence[bytes],
        limit: int,
        searched: SearchedCommits,
        cancel: CancelToken,
    ) -> None:
        """Look through some commits, and stop behind the match that is the last of the page."""
        if not batch:
            return
        hashes = [line.partition(b" ")[0] for line in batch]
        arguments = ["diff-tree", "--stdin", "--no-patch", "--root", "--find-renames", "--abbrev"]
        arguments += [f"--format={self.row_format}", *self.options, "--", *self.paths]
        output = git.run(repository, arguments, cancel, stdin=b"\n".join(hashes) + b"\n")
        rows = _list_rows(split_lines(output))
        room = limit - len(searched.rows)
        searched.rows += rows[:room]
        looked_at = len(batch)
        if len(rows) >= room:
            last = rows[room - 1][1:].partition(b"\0")[0]
            looked_at = hashes.index(last) + 1
        searched.count += looked_at
        searched.back_to = batch[looked_at - 1].partition(b" ")[2].decode()


def _read_clock() -> float:
    """Return the time in seconds, from the clock by which a token ends."""
    return time.monotonic()


def _list_rows(lines: Sequence[str]) -> list[bytes]:
    return [line.encode("utf-8", "surrogateescape") for line in lines if line.startswith("\x01")]


def _choose_size(size: int, seconds: float) -> int:
    if seconds > 2 * _BATCH_SECONDS:
        return max(_FIRST_BATCH // 10, size // 2)
    if seconds < _BATCH_SECONDS / 2:
        return min(_MAX_BATCH, size * 2)
    return size
