"""The state of a work tree: where HEAD is, and the paths that differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mcp_git.engine.history.commit_rows import shorten_hash
from mcp_git.path_quoting import escape_line_breaks, quote_path

__all__ = ["Status", "StatusEntry", "count_kinds", "describe_counts", "is_conflict"]

# What git prints in the place of a branch where HEAD is none.
_DETACHED = "(detached)"
_NO_COMMIT = "(initial)"
# What it prints where it can't read the branch that HEAD names.
_UNKNOWN = "(unknown)"


class StatusEntry(NamedTuple):
    """A path that differs from what is committed.

    Attributes:
        letters: the two of `git status --short`.
        renamed_from: its earlier path; empty if it has none.
    """

    letters: str
    path: bytes
    renamed_from: bytes = b""

    @property
    def line(self) -> str:
        if self.renamed_from:
            return f"{self.letters} {quote_path(self.renamed_from)} -> {quote_path(self.path)}"
        return f"{self.letters} {quote_path(self.path)}"

    @property
    def values(self) -> list[str]:
        """What a row for a script has."""
        renamed_from = quote_path(self.renamed_from) if self.renamed_from else ""
        return [self.letters, quote_path(self.path), renamed_from]


@dataclass(slots=True)
class Status:
    """What `git status` says.

    Attributes:
        oid: the hash of the commit, or `(initial)`.
        head: the branch, or `(detached)`.
        has_upstream_commit: whether there is a commit of the upstream, so that `ahead` and `behind` are known.
        in_progress: the operations in progress, each as a phrase.
    """

    oid: str = ""
    head: str = ""
    upstream: str = ""
    ahead: int = 0
    behind: int = 0
    has_upstream_commit: bool = False
    stashes: int = 0
    entries: list[StatusEntry] = field(default_factory=list[StatusEntry])
    in_progress: Sequence[str] = ()

    @property
    def has_commit(self) -> bool:
        return not self.oid.startswith("(")

    @property
    def is_detached(self) -> bool:
        return self.head == _DETACHED

    @property
    def branch(self) -> str:
        """One phrase for where HEAD is."""
        if self.head == _UNKNOWN:
            return "`HEAD` or its branch is damaged: `.git/logs/HEAD` has which commit it was at"
        if self.oid == _NO_COMMIT:
            return f"{escape_line_breaks(self.head)}, no commits yet"
        if self.is_detached:
            position = f"detached at {shorten_hash(self.oid)}"
        else:
            position = f"{escape_line_breaks(self.head)} {shorten_hash(self.oid)}"
        if not self.upstream:
            return position
        upstream = escape_line_breaks(self.upstream)
        if not self.has_upstream_commit:
            return f"{position}, {upstream} is gone"
        return f"{position}, {self._distance} {upstream}"

    def list_staged(self) -> list[bytes]:
        """Return the paths that are staged, other than those in conflict."""
        return [entry.path for entry in self.entries if entry.letters[0] not in " ?" and not is_conflict(entry.letters)]

    @property
    def _distance(self) -> str:
        """How far the branch is from its upstream."""
        distances: list[str] = []
        if self.ahead:
            distances.append(f"{self.ahead} ahead")
        if self.behind:
            distances.append(f"{self.behind} behind")
        return ", ".join(distances) or "even with"


def is_conflict(letters: str) -> bool:
    """Whether the two letters of a file say that it has sides."""
    return "U" in letters or letters in ("AA", "DD")


def count_kinds(entries: Sequence[StatusEntry]) -> Counter[str]:
    """Count what is staged, changed and so on; one file can be both."""
    counts: Counter[str] = Counter()
    for entry in entries:
        # The order in which the kinds appear first is that in which an answer has them.
        if entry.letters == "??":
            counts["untracked"] += 1
        elif is_conflict(entry.letters):
            counts["in conflict"] += 1
        else:
            counts["staged"] += entry.letters[0] != " "
            counts["changed"] += entry.letters[1] != " "
    return +counts


def describe_counts(counts: Counter[str]) -> str:
    """Return how many files are of each kind, as every answer says it; empty if none is."""
    return ", ".join(f"{number:,} {kind}" for kind, number in counts.items())
