"""Searches commits for an author, a message or a changed text, in batches, for as long as a caller waits.

`git log` with such a condition tells nothing of how far it came, and begins again for each page. Here one git lists
the commits, and others look through them: where the time is over, what was found so far is an answer, and a cursor
goes on from there. The walk of the next page begins where this one ended, as far as a cursor has room to say where.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_git.engine.history.commit_rows import replace_placeholder
from mcp_git.engine.program.git import Git
from mcp_git.engine.program.output import split_lines, split_records
from mcp_git.policy import Repository

__all__ = ["CommitSearch", "SearchedCommits"]

_MAX_SECONDS = 10.0
# A batch takes about so long, so that the search ends in time.
_BATCH_SECONDS = 1.0
_FIRST_BATCH = 200
_MAX_BATCH = 20_000
# Hashes for which a cursor has room.
_MAX_FRONTIER = 50
_WALK_FORMAT = "%H%x00%cs%x00%ct%x00%P"


class _WalkedCommit(NamedTuple):
    """A line of a walk, in the order of `_WALK_FORMAT`.

    Attributes:
        seconds: when it was committed; 0 where it does not say that, as git takes it.
    """

    oid: str
    date: str
    seconds: int
    parents: Sequence[str]

    @classmethod
    def parse(cls, line: bytes) -> _WalkedCommit:
        oid, date, seconds, parents = line.decode().split("\0")
        return cls(oid, replace_placeholder(date), int(seconds) if seconds.isdigit() else 0, parents.split())


@dataclass
class SearchedCommits:
    """The commits that were looked through.

    Attributes:
        rows: what git printed of those that match.
        count: how many were looked through.
        back_to: the date of the last of them.
        is_complete: whether there are no others.
        frontier: from where the walk goes on: commits that it is to list next, each once the one before is listed.
        remarks: what git said besides.
        has_wrong_clocks: whether some are older than their parents, so that a walk from the frontier may list commits
            again.
    """

    rows: list[bytes] = field(default_factory=list[bytes])
    count: int = 0
    back_to: str = ""
    is_complete: bool = False
    frontier: dict[str, None] = field(default_factory=dict[str, None])
    remarks: list[str] = field(default_factory=list[str])
    has_wrong_clocks: bool = False
    _oids: set[str] = field(default_factory=set[str])
    _last_seconds: int | None = None

    def add(self, commits: Sequence[_WalkedCommit]) -> None:
        """Count commits that were looked through."""
        for commit in commits:
            self._oids.add(commit.oid)
            self.frontier.pop(commit.oid, None)
            self.frontier.update(dict.fromkeys(oid for oid in commit.parents if oid not in self._oids))
            self.back_to = commit.date
            if self._last_seconds is not None and commit.seconds > self._last_seconds:
                self.has_wrong_clocks = True
            self._last_seconds = commit.seconds
        self.count += len(commits)

    def add_tips(self, tips: Sequence[str]) -> None:
        """Add the commits at which the walk began, as far as it did not come to them."""
        self.frontier.update(dict.fromkeys(oid for oid in tips if oid not in self._oids))

    @property
    def next_hashes(self) -> list[str]:
        """The commits from which a walk of those that are left begins; none if they are too many for a cursor."""
        return list(self.frontier) if len(self.frontier) <= _MAX_FRONTIER else []


@dataclass(frozen=True)
class CommitSearch:
    """What is searched.

    Attributes:
        walk: the arguments of `git log` that list the commits, up to the options of their format.
        frontier: commits at which an earlier walk ended and this one begins; none if it is the first.
        paths: what follows the `--`.
        literal_paths: whether no path is a glob.
        commit_options: those that say whose a commit is, and what its message has.
        change_options: those that say what a change has to have.
        row_format: how a commit that matches is printed, with its hash first behind a byte of 1.
    """

    walk: Sequence[str]
    paths: Sequence[str]
    commit_options: Sequence[str]
    change_options: Sequence[str]
    row_format: str
    frontier: Sequence[str] = ()
    literal_paths: bool = True

    def run(self, git: Git, repository: Repository, limit: int, cancel: CancelToken) -> SearchedCommits:
        """Return the first `limit` matches, or as many as were found in the time there is.

        Where commits are older than their parents, some that an earlier walk listed may come again.
        """
        searched = SearchedCommits(frontier=dict.fromkeys(self.frontier))
        start = _read_clock()
        end = start + _MAX_SECONDS
        if cancel.deadline is not None:
            end = min(end, (start + cancel.deadline) / 2)
        size = _FIRST_BATCH
        arguments = ["log", "--parents", f"--format={_WALK_FORMAT}", *self.walk, "--", *self.paths]
        with git.stream(
            repository, arguments, cancel, literal_paths=self.literal_paths, remarks=searched.remarks
        ) as pieces:
            commits = map(_WalkedCommit.parse, split_records(pieces, b"\n"))
            while len(searched.rows) < limit and _read_clock() < end:
                batch_start = _read_clock()
                batch = list(islice(commits, size))
                is_searched = self._search_batch(git, repository, batch, limit, searched, cancel)
                if len(batch) < size:
                    searched.is_complete = is_searched
                    break
                size = _choose_size(size, _read_clock() - batch_start)
        return searched

    def _search_batch(
        self,
        git: Git,
        repository: Repository,
        batch: Sequence[_WalkedCommit],
        limit: int,
        searched: SearchedCommits,
        cancel: CancelToken,
    ) -> bool:
        """Look through some commits, and stop behind the match that is the last of the page.

        Returns:
            Whether there is none behind it.
        """
        hashes = [commit.oid for commit in batch]
        rows = self._find_matches(git, repository, hashes, cancel)
        room = limit - len(searched.rows)
        searched.rows += rows[:room]
        if len(rows) <= room:
            searched.add(batch)
            return True
        last = _read_hash(rows[room - 1])
        searched.add(batch[: hashes.index(last) + 1])
        return False

    def _find_matches(
        self, git: Git, repository: Repository, hashes: Sequence[str], cancel: CancelToken
    ) -> list[bytes]:
        """Return what git prints of those that match: authors and messages are looked at first, as that is fast."""
        rows: list[bytes] = []
        if self.commit_options and hashes:
            arguments = ["log", "--no-walk=unsorted", "--stdin", f"--format={self.row_format}", *self.commit_options]
            rows = self._run_on_hashes(git, repository, arguments, hashes, cancel)
            hashes = [_read_hash(row) for row in rows]
        if self.change_options and hashes:
            arguments = ["diff-tree", "--stdin", "--no-patch", "--root", "--find-renames", "--abbrev"]
            arguments += [f"--format={self.row_format}", *self.change_options, "--", *self.paths]
            rows = self._run_on_hashes(git, repository, arguments, hashes, cancel)
        return rows

    def _run_on_hashes(
        self, git: Git, repository: Repository, arguments: Sequence[str], hashes: Sequence[str], cancel: CancelToken
    ) -> list[bytes]:
        """Return the rows that a command prints which reads hashes."""
        stdin = "".join(f"{oid}\n" for oid in hashes).encode()
        output = git.run(repository, arguments, cancel, stdin=stdin, literal_paths=self.literal_paths)
        lines = split_lines(output)
        return [line.encode("utf-8", "surrogateescape") for line in lines if line.startswith("\x01")]


def _read_clock() -> float:
    """Return the time in seconds, from the clock by which a token ends."""
    return time.monotonic()


def _read_hash(row: bytes) -> str:
    return row[1:].partition(b"\0")[0].decode()


def _choose_size(size: int, seconds: float) -> int:
    if seconds > 2 * _BATCH_SECONDS:
        return max(_FIRST_BATCH // 10, size // 2)
    if seconds < _BATCH_SECONDS / 2:
        return min(_MAX_BATCH, size * 2)
    return size
