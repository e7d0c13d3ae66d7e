"""Tells what one side of a range has of commits of the other side that were not picked as they are.

A commit that was picked with a conflict, or together with other changes, has another patch there, but mostly the same
subject. Of a change that came there in another way, other commits have the lines.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.server.calling.results import is_answering_script
from mcp_git.engine.history.commit_rows import SCRIPT_HASH_DIGITS, Commit
from mcp_git.engine.history.patch_lines import (
    PatchLines,
    describe_difference,
    name_lines,
    read_patch_lines,
    stream_patch_lines,
)
from mcp_git.engine.program.git import Git
from mcp_git.engine.program.output import split_lines
from mcp_git.models import count
from mcp_git.path_quoting import escape_line_breaks
from mcp_git.policy import Range, Repository

__all__ = ["describe_other_side"]

# Where commits of one subject are looked for on the other side, and how many such are named.
_MAX_COMPARED_SUBJECTS = 5000
_MAX_NAMESAKES = 10
# In how many commits of the other side lines are looked for.
_MAX_OTHERS = 2000
# The patches of one side are read by several runs of git where one has no room for all.
_MAX_BYTES_OF_RUN = 4_000_000
_MAX_RUNS = 4
# How many commits are named, and for each of them how many that have its lines.
_MAX_NAMED = 5
_MAX_HOLDERS = 3
# A letter or a digit of any script.
_WORD = re.compile(r"[^\W_]")


class _OtherCommit(NamedTuple):
    """A commit of the other side."""

    oid: str
    parents: str
    subject: str

    @property
    def is_merge(self) -> bool:
        return " " in self.parents


def describe_other_side(
    git: Git,
    repository: Repository,
    revision: Range,
    commits: Sequence[Commit],
    boundary: Iterable[str],
    cancel: CancelToken,
) -> list[str]:
    """Return what the start of a range has of some commits of its end: their subjects, and lines of the other ones.

    Args:
        boundary: the first commits of a shallow clone, of which nobody knows what they changed.
    """
    start = revision.start.text.removeprefix("^")
    name = escape_line_breaks(start)
    others = _list_commits(git, repository, f"{revision.end.text}..{start}", cancel)
    namesakes = _find_namesakes(others, commits)
    facts: list[str] = []
    if namesakes:
        pairs = _describe_namesakes(git, repository, namesakes, _count_digits(commits), cancel)
        facts.append(f"not the patch but the subject of one in {name}: {pairs}")
    comparison = _LineComparison(git, repository, _count_digits(commits), cancel)
    first_commits = set(boundary)
    remaining = [commit for commit in commits if commit.oid not in namesakes and commit.oid not in first_commits]
    comparison.read_own([commit.oid for commit in remaining if not commit.is_merge])
    sources = [other.oid for other in others if not other.is_merge]
    comparison.read_others([oid for oid in sources if oid not in first_commits])
    other_count = len(sources)
    if len(others) == _MAX_COMPARED_SUBJECTS:
        # The list ends there, and more commits may follow.
        other_count += 1
    return [*facts, *comparison.describe(name, other_count, "other" if namesakes else "commit")]


def _count_digits(commits: Sequence[Commit]) -> int:
    """Return how many digits of a hash the answer shows."""
    return SCRIPT_HASH_DIGITS if is_answering_script() else len(commits[0].short_hash)


def _list_commits(git: Git, repository: Repository, span: str, cancel: CancelToken) -> list[_OtherCommit]:
    arguments = ["log", "--format=%H%x00%P%x00%s", f"--max-count={_MAX_COMPARED_SUBJECTS}", span, "--"]
    output = git.run(repository, arguments, cancel, exit_codes=(0, 128))
    return [_OtherCommit(*line.split("\0", 2)) for line in split_lines(output)]


def _find_namesakes(others: Iterable[_OtherCommit], commits: Iterable[Commit]) -> Mapping[str, str]:
    """Return by its hash which commit of the other side has the subject of each commit, if any has."""
    hashes: dict[str, str] = {}
    for other in others:
        hashes.setdefault(other.subject, other.oid)
    namesakes: dict[str, str] = {}
    for commit in commits:
        if commit.subject and commit.subject in hashes:
            namesakes[commit.oid] = hashes[commit.subject]
    return namesakes


def _describe_namesakes(
    git: Git, repository: Repository, namesakes: Mapping[str, str], digits: int, cancel: CancelToken
) -> str:
    pairs = dict(list(namesakes.items())[:_MAX_NAMESAKES])
    patches = read_patch_lines(git, repository, [*pairs, *pairs.values()], cancel)
    names = ", ".join(_describe_pair(oid, other, digits, patches) for oid, other in pairs.items())
    if len(namesakes) > _MAX_NAMESAKES:
        names += f" and {len(namesakes) - _MAX_NAMESAKES:,} more"
    return names


def _describe_pair(oid: str, other: str, digits: int, patches: Mapping[str, PatchLines]) -> str:
    """Return the hashes of two commits of one subject, and by which lines they differ if that can be said."""
    pair = f"{oid[:digits]} as {other[:digits]}"
    if oid not in patches or other not in patches:
        return pair
    difference = describe_difference(patches[oid], patches[other])
    return f"{pair} ({difference})" if difference else pair


class _ComparedCommit(NamedTuple):
    """A commit whose lines are looked for.

    Attributes:
        lines: those with a letter or a digit, without their white space.
        shown_lines: its lines as they are shown.
    """

    oid: str
    lines: PatchLines
    shown_lines: PatchLines


@dataclass
class _OtherLines:
    """Which of the lines that are looked for the other commits have: each is kept once, however many look for it.

    Attributes:
        line_counts: by the hash of each other commit, newest first, how many lines it has in all.
    """

    line_counts: dict[str, int] = field(default_factory=dict[str, int])
    _total: PatchLines = field(default_factory=Counter[str])
    _counts_of_line: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])

    def add(self, oid: str, lines: PatchLines, compared_lines: Set[str]) -> None:
        self.line_counts[oid] = lines.total()
        for line in lines.keys() & compared_lines:
            self._total[line] += lines[line]
            self._counts_of_line.setdefault(line, {})[oid] = lines[line]

    def find_common(self, lines: PatchLines) -> PatchLines:
        """Return which of some lines the other commits have together, as often as they have them."""
        return lines & self._total

    def choose_holders(self, lines: PatchLines) -> list[str]:
        """Return the few commits that have most of some lines, and one more if others have what is missing of them."""
        missing = self.find_common(lines)
        chosen: list[str] = []
        while missing and len(chosen) <= _MAX_HOLDERS:
            counts = self._count_held(missing, chosen)
            # Of those that have as many, the newest.
            best = max(filter(counts.__contains__, self.line_counts), key=counts.__getitem__)
            chosen.append(best)
            missing -= Counter({line: self._counts_of_line[line].get(best, 0) for line in missing})
        return chosen

    def has_others(self, oid: str, lines: PatchLines) -> bool:
        """Whether a commit has more lines than its share of these."""
        return self.line_counts[oid] > self._count_held(self.find_common(lines), [])[oid]

    def _count_held(self, lines: PatchLines, passed_over: Sequence[str]) -> Counter[str]:
        """Return by its hash how many of some lines each commit has, except for those passed over."""
        counts: Counter[str] = Counter()
        for line, number in lines.items():
            for oid, other_number in self._counts_of_line[line].items():
                counts[oid] += min(number, other_number)
        for oid in passed_over:
            del counts[oid]
        return counts


@dataclass
class _LineComparison:
    """Looks for the lines of some commits, which are not picked, in the commits of the other side.

    Attributes:
        digits: how many of a hash are shown.
    """

    git: Git
    repository: Repository
    digits: int
    cancel: CancelToken
    _commits: list[_ComparedCommit] = field(default_factory=list[_ComparedCommit])
    _others: _OtherLines = field(default_factory=_OtherLines)
    _unread: int = 0

    def read_own(self, oids: Sequence[str]) -> None:
        """Read the lines to look for, of commits that are not picked; a commit without words has none."""
        self._unread = len(oids)
        for oid, lines in self._stream(oids):
            self._unread -= 1
            words = _select_words(lines)
            if words:
                self._commits.append(_ComparedCommit(oid, words, lines))

    def read_others(self, oids: Sequence[str]) -> None:
        """Look for the lines in commits of the other side, which are given newest first."""
        if not self._commits:
            return
        compared_lines: set[str] = set()
        for commit in self._commits:
            compared_lines.update(commit.lines)
        for oid, lines in self._stream(oids[:_MAX_OTHERS]):
            self._others.add(oid, _select_words(lines), compared_lines)

    def _stream(self, oids: Sequence[str]) -> Iterator[tuple[str, PatchLines]]:
        """Yield hash and lines of each commit, without one for which a whole run of git has no room."""
        for _ in range(_MAX_RUNS):
            read_count = 0
            for oid, lines in self._stream_once(oids):
                read_count += 1
                yield oid, lines
            oids = oids[max(1, read_count) :]

    def _stream_once(self, oids: Sequence[str]) -> Iterator[tuple[str, PatchLines]]:
        # A line of which white space alone changed has not changed, and an empty commit is compared too.
        options = ["--ignore-all-space", "--always", "--"]
        return stream_patch_lines(self.git, self.repository, oids, self.cancel, _MAX_BYTES_OF_RUN, options)

    def describe(self, name: str, other_count: int, noun: str) -> list[str]:
        """Return what the other side has of the lines, and what was not compared; nothing if there are no commits.

        Args:
            name: the revision of the other side.
            other_count: how many commits it has, at least.
            noun: what the commits that are not picked are called.
        """
        facts: list[str] = []
        unread: list[str] = []
        read_count = len(self._others.line_counts)
        if self._commits and read_count:
            facts.append(f"{self._describe_matches(name, noun)} (but for white space, merges and lines without words)")
        if self._unread and other_count:
            unread.append(f"{count(self._unread, 'commit')} here")
        if self._commits and read_count < other_count:
            unread.append(f"all but {count(read_count, 'commit')} of {name}")
        if unread:
            facts.append(f"lines not compared: {', '.join(unread)}")
        return facts

    def _describe_matches(self, name: str, noun: str) -> str:
        commits = f"the {count(len(self._commits), noun)} not picked"
        matches = [commit for commit in self._commits if self._others.find_common(commit.lines)]
        if matches:
            return f"of {commits}, commits of {name} have {self._list_matches(matches)}"
        return f"no commit of {name} adds or removes a line of {commits}"

    def _list_matches(self, matches: Sequence[_ComparedCommit]) -> str:
        """Return how many lines of each commit the others have, beginning with those of which they have most."""
        commits = sorted(matches, key=self._find_share, reverse=True)
        items = [self._describe_commit(commit) for commit in commits[:_MAX_NAMED]]
        hidden = len(commits) - len(items)
        if hidden:
            percent = math.ceil(self._find_share(commits[_MAX_NAMED]) * 100)
            items.append(f"at most {percent} % of the lines of {hidden:,} more")
        without_lines = len(self._commits) - len(commits)
        if without_lines:
            items.append(f"no line of {without_lines:,}")
        return ", ".join(items)

    def _find_share(self, commit: _ComparedCommit) -> Fraction:
        """Return how much of a commit the others have."""
        return Fraction(self._others.find_common(commit.lines).total(), commit.lines.total())

    def _describe_commit(self, commit: _ComparedCommit) -> str:
        """Return how many lines of a commit the others have, and which have them."""
        common = self._others.find_common(commit.lines)
        holders = self._others.choose_holders(commit.lines)
        named_holders = holders[:_MAX_HOLDERS]
        names = ", ".join(oid[: self.digits] for oid in named_holders)
        if len(holders) > len(named_holders):
            names += " and more"
        own_name = commit.oid[: self.digits]
        if common != commit.lines:
            shown_forms = {_remove_space(line): line for line in commit.shown_lines}
            shown_lines = Counter({shown_forms[line]: number for line, number in common.items()})
            total = count(commit.lines.total(), "line")
            return f"{common.total():,} of {total} of {own_name} ({name_lines(shown_lines, 1)} in {names})"
        if any(self._others.has_others(oid, commit.lines) for oid in named_holders):
            names += " beside others"
        lines = "the line" if common.total() == 1 else f"all {common.total():,} lines"
        return f"{lines} of {own_name} (in {names})"


def _select_words(lines: PatchLines) -> PatchLines:
    """Return the lines with a letter or a digit, without their white space."""
    words: PatchLines = Counter()
    for line, number in lines.items():
        if _WORD.search(line):
            words[_remove_space(line)] += number
    return words


def _remove_space(line: str) -> str:
    return line.replace(" ", "")
