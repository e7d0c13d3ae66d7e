"""Tells by which lines the changes of two commits differ, whatever their place, their order and their white space."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import quote
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import split_records
from mcp_git.path_quoting import escape_line_breaks
from mcp_git.policy import Repository

__all__ = ["PatchLines", "describe_difference", "name_lines", "read_patch_lines", "stream_patch_lines"]

# How often a commit has each line, behind the sign that says whether it adds or removes it.
PatchLines = Counter[str]

_MAX_PATCHES_BYTES = 1_000_000
_MAX_LINE_CHARACTERS = 48
_OPTIONS = (
    "-r", "--root", "--patch", "--unified=0", "--find-renames", "--no-color", "--no-ext-diff", "--no-textconv",
)  # fmt: skip
_COMMIT = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
_HUNK = re.compile(r"@@ -\d+(?:,(?P<removed>\d+))? \+\d+(?:,(?P<added>\d+))? @@")


def read_patch_lines(
    git: Git, repository: Repository, commits: Sequence[str], cancel: CancelToken
) -> Mapping[str, PatchLines]:
    """Return by their hashes the lines of commits; without merges, and as far as `stream_patch_lines` comes."""
    return dict(stream_patch_lines(git, repository, commits, cancel, _MAX_PATCHES_BYTES, ["--"]))


def stream_patch_lines(
    git: Git,
    repository: Repository,
    commits: Sequence[str],
    cancel: CancelToken,
    max_bytes: int,
    options: Sequence[str],
) -> Generator[tuple[str, PatchLines]]:
    """Return hash and lines of each commit, up to the first for which there is no room or whose contents are not here.

    Args:
        commits: their whole hashes.
        max_bytes: how much room there is for what git prints.
        options: more options of `git diff-tree`, and behind a `--` the files whose lines are read.
    """
    if not commits:
        return
    stdin = "".join(f"{commit}\n" for commit in commits).encode()
    arguments = ["diff-tree", "--stdin", *_OPTIONS, *options]
    patch: _Patch | None = None
    try:
        with git.stream(repository, arguments, cancel, stdin=stdin) as pieces:
            for record in split_records(_bound(pieces, max_bytes), b"\n"):
                # What is no UTF-8 stays distinct.
                line = record.decode("utf-8", "backslashreplace")
                if not _COMMIT.fullmatch(line):
                    if patch is not None:
                        patch.read(line)
                    continue
                if patch is not None:
                    yield patch.oid, patch.lines
                patch = _Patch(line)
    except (GitFailed, _NoRoom):
        return  # The last patch is not whole.
    if patch is not None:
        yield patch.oid, patch.lines


class _NoRoom(Exception):
    """Raised where more is printed than is read."""


def _bound(pieces: Iterable[bytes], max_bytes: int) -> Generator[bytes]:
    remaining = max_bytes
    for piece in pieces:
        yield piece[:remaining]
        remaining -= len(piece)
        if remaining < 0:
            raise _NoRoom


@dataclass
class _Patch:
    """The patch of a commit as it is read.

    Attributes:
        unread: how many lines of a hunk are to come.
    """

    oid: str
    lines: PatchLines = field(default_factory=Counter[str])
    unread: int = 0

    def read(self, line: str) -> None:
        if self.unread and line.startswith(("+", "-")):
            self.unread -= 1
            _add_line(self.lines, line)
        elif hunk := _HUNK.match(line):
            self.unread = int(hunk["removed"] or 1) + int(hunk["added"] or 1)


def _add_line(lines: PatchLines, line: str) -> None:
    text = " ".join(line[1:].split())
    if text:
        lines[line[0] + text] += 1


def describe_difference(lines: PatchLines, other_lines: PatchLines) -> str:
    """Return a line of each of two commits that the other one lacks; empty where none has lines, as of pictures."""
    own = lines - other_lines
    others = other_lines - lines
    if own and others:
        return f"{name_lines(own, 1)}, there {name_lines(others, 1)}"
    if own:
        return f"{name_lines(own, 1)} only here"
    if others:
        return f"{name_lines(others, 1)} only there"
    return "the same lines elsewhere" if lines else ""


def name_lines(lines: PatchLines, limit: int) -> str:
    """Return the first of some lines, and how many more there are."""
    text = ", ".join(_quote_line(line) for line in list(lines)[:limit])
    hidden = lines.total() - sum(list(lines.values())[:limit])
    if hidden:
        text += f" and {hidden:,} more"
    return text


def _quote_line(line: str) -> str:
    # In the first line of an answer, these would end a fact, or ask for another page.
    text = line.replace("; ", ";").replace("cursor=", "cursor =").replace("start_line=", "start_line =")
    return quote(escape_line_breaks(text), _MAX_LINE_CHARACTERS)
