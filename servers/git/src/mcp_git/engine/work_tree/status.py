"""The state of a work tree: the branch, operations in progress, and differences, folded if there are many."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mcp_batteries.limits import Stop
from mcp_git.engine.history.missing_paths import refuse_missing_path
from mcp_git.engine.program.git import Git
from mcp_git.engine.program.output import split_records
from mcp_git.engine.work_tree.in_progress import find_operations_in_progress
from mcp_git.models import Answer, count
from mcp_git.path_quoting import escape_line_breaks, quote_path
from mcp_git.policy import Repository, RepositoryPath
from mcp_git.repository_paths import Layout

__all__ = ["Status", "describe_status", "is_conflict", "read_status"]

_FOLDED_LINES = 60


@dataclass(slots=True)
class Status:
    """What `git status` says.

    Attributes:
        head: the branch, or the hash of a detached HEAD.
        entries: the two letters of `git status --short`, and the path, behind an earlier path and ` -> `.
        compared: whether there is a commit of the upstream.
        doing: what is under way.
    """

    oid: str = ""
    head: str = ""
    upstream: str = ""
    ahead: int = 0
    behind: int = 0
    has_upstream_commit: bool = False
    stashes: int = 0
    entries: list[tuple[str, bytes, bytes]] = field(default_factory=list[tuple[str, bytes, bytes]])
    in_progress: Sequence[str] = ()

    @property
    def branch(self) -> str:
        """One phrase for where HEAD is."""
        if self.oid == "(initial)":
            return f"{escape_line_breaks(self.head)}, no commits yet"
        where = (
            f"detached at {self.oid[:9]}"
            if self.head == "(detached)"
            else f"{escape_line_breaks(self.head)} {self.oid[:9]}"
        )
        if not self.upstream:
            return where
        if not self.has_upstream_commit:
            return f"{where}, {escape_line_breaks(self.upstream)} is gone"
        parts = [f"{self.ahead} ahead"] * bool(self.ahead) + [f"{self.behind} behind"] * bool(self.behind)
        return f"{where}, {', '.join(parts) or 'even with'} {escape_line_breaks(self.upstream)}"


def read_status(
    git: Git, repository: Repository, stop: Stop, place: RepositoryPath | None = None, layout: Layout | None = None
) -> Status:
    """Run `git status`, and see meanwhile what is under way."""
    layout = layout or git.layout(repository)
    words = ["status", "--porcelain=v2", "--branch", "--show-stash", "-z", "--ignore-submodules=dirty"]
    state = Status()
    words += ["--", *([place.text] if place and place.text else [])]
    with git.stream(repository, words, stop, layout=layout, is_repeated=place is None or not place.text) as pieces:
        state.in_progress = find_operations_in_progress(git, repository, layout, stop)
        listed = split_records(pieces)
        for item in listed:
            _take(state, item, listed)
    return state


def _take(state: Status, item: bytes, following: Iterator[bytes]) -> None:
    kind = item[:1]
    if kind == b"#":
        _, what, *values = item.decode("utf-8", "replace").split(" ")
        match what:
            case "branch.oid":
                state.oid = values[0]
            case "branch.head":
                state.head = values[0]
            case "branch.upstream":
                state.upstream = values[0]
            case "branch.ab":
                state.has_upstream_commit = True
                state.ahead, state.behind = abs(int(values[0])), abs(int(values[1]))
            case "stash":
                state.stashes = int(values[0])
            case _:
                pass
    elif kind == b"1":
        letters, path = item.split(b" ", 8)[1:9:7]
        state.entries.append((_letters(letters), path, b""))
    elif kind == b"2":
        letters, path = item.split(b" ", 9)[1:10:8]
        state.entries.append((_letters(letters), path, next(following, b"")))
    elif kind == b"u":
        letters, path = item.split(b" ", 10)[1:11:9]
        state.entries.append((_letters(letters), path, b""))
    elif kind == b"?":
        state.entries.append(("??", item[2:], b""))


def _letters(two: bytes) -> str:
    return two.decode("ascii", "replace").replace(".", " ")


def describe_status(git: Git, repository: Repository, place: RepositoryPath, limit: int, stop: Stop) -> Answer:
    """The state in one answer: each file, or from `limit` files on the folders with their numbers."""
    layout = git.layout(repository)
    if layout.work_tree is None:
        head = git.run(repository, ["symbolic-ref", "--short", "HEAD"], stop, exit_codes=(0, 1, 128)).text.strip()
        configured = " by `core.bare` or `core.worktree`" if layout.git_dir != repository.path else ""
        where = f"bare repository{configured}, HEAD is {escape_line_breaks(head) or 'detached'}"
        return Answer([where, "there is no work tree here"])
    state = read_status(git, repository, stop, place, layout)
    if not state.entries:
        refuse_missing_path(git, repository, place, (), stop)
    facts = [state.branch, *state.in_progress]
    numbers = _numbers(entry[0] for entry in state.entries)
    clean = f"{place.display} is clean" if place.text else "clean"
    facts.append(", ".join(f"{number:,} {what}" for what, number in numbers.items()) or clean)
    if "in conflict" in numbers and any(what.startswith("rebase") for what in state.in_progress):
        facts.append("there rev=`:2` is the new base and `:3` the commit put on it")
    if state.stashes:
        facts.append(count(state.stashes, "stash"))
    if len(state.entries) <= limit:
        return Answer(facts, [_line(entry) for entry in state.entries])
    facts.append(f"folded: name a folder as `path`, or a `limit` of {len(state.entries)}, for the files")
    return Answer(facts, _folded(state.entries, place))


def is_conflict(letters: str) -> bool:
    """Whether the two letters of a file say that it has sides."""
    return "U" in letters or letters in ("AA", "DD")


def _numbers(letters: Sequence[str] | Iterator[str]) -> Counter[str]:
    """How many are staged, changed and so on; one file can be both."""
    found: Counter[str] = Counter()
    for two in letters:
        if two == "??":
            found["untracked"] += 1
        elif is_conflict(two):
            found["in conflict"] += 1
        else:
            found["staged"] += two[0] != " "
            found["changed"] += two[1] != " "
    return +found


def _line(entry: tuple[str, bytes, bytes]) -> str:
    letters, path, before = entry
    return f"{letters} {quote_path(before)} -> {quote_path(path)}" if before else f"{letters} {quote_path(path)}"


def _folded(entries: Sequence[tuple[str, bytes, bytes]], place: RepositoryPath) -> list[str]:
    """A line for each folder, opened as deep as there is room for."""
    above = os.fsencode(place.text).strip(b"/")
    groups = _grouped(entries, above + b"/" if above else b"")
    opened = True
    while opened:
        opened = False
        for name, inside in sorted(groups.items(), key=lambda item: -len(item[1])):
            if not name.endswith(b"/") or len(inside) < 2:
                continue
            smaller = _grouped(inside, name)
            if len(groups) + len(smaller) - 1 <= _FOLDED_LINES:
                del groups[name]
                groups |= smaller
                opened = True
                break
    lines: list[str] = []
    for name, inside in sorted(groups.items()):
        if len(inside) == 1 and not name.endswith(b"/"):
            lines.append(_line(inside[0]))
        else:
            numbers = _numbers(letters for letters, _, _ in inside)
            lines.append(f"{quote_path(name)} {', '.join(f'{number:,} {what}' for what, number in numbers.items())}")
    return lines if len(lines) <= 4 * _FOLDED_LINES else [*lines[: 4 * _FOLDED_LINES], f"… {len(lines)} lines in all"]


def _grouped(entries: Sequence[tuple[str, bytes, bytes]], above: bytes) -> dict[bytes, list[tuple[str, bytes, bytes]]]:
    groups: dict[bytes, list[tuple[str, bytes, bytes]]] = {}
    for entry in entries:
        name, slash, _ = entry[1][len(above) :].partition(b"/")
        groups.setdefault(above + name + slash, []).append(entry)
    return groups
