"""Tells by which lines the changes of two commits differ, whatever their place, their order and their white space."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import quote
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import split_lines
from mcp_git.path_quoting import escape_line_breaks
from mcp_git.policy import Repository

__all__ = ["PatchLines", "describe_difference", "name_lines", "read_patch_lines"]

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
    """Return by their hashes the lines of commits; without merges, and without those for which there is no room.

    Nothing is returned where contents are not here, as in a partial clone.

    Args:
        commits: their whole hashes.
    """
    stdin = "".join(f"{commit}\n" for commit in commits).encode()
    arguments = ["diff-tree", "--stdin", *_OPTIONS]
    try:
        output = git.run(repository, arguments, cancel, stdin=stdin, max_bytes=_MAX_PATCHES_BYTES)
    except GitFailed:
        return {}
    patches: dict[str, PatchLines] = {}
    commit = ""
    remaining = 0
    for line in split_lines(output):
        if remaining and line.startswith(("+", "-")):
            remaining -= 1
            _add_line(patches[commit], line)
        elif hunk := _HUNK.match(line):
            remaining = int(hunk["removed"] or 1) + int(hunk["added"] or 1)
        elif _COMMIT.fullmatch(line):
            commit = line
            patches[commit] = Counter()
    if output.is_cut:
        patches.pop(commit, None)
    return patches


def _add_line(lines: PatchLines, line: str) -> None:
    text = " ".join(line[1:].split())
    # In the first line of an answer, these would end a fact, or ask for another page.
    text = text.replace("; ", ";").replace("cursor=", "cursor =").replace("start_line=", "start_line =")
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
    names = [quote(escape_line_breaks(line), _MAX_LINE_CHARACTERS) for line in list(lines)[:limit]]
    text = ", ".join(names)
    hidden = lines.total() - sum(list(lines.values())[:limit])
    if hidden:
        text += f" and {hidden:,} more"
    return text
