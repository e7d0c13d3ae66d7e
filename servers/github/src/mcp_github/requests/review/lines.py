"""Which lines of a pull request a review may comment on: GitHub refuses a whole review for one line, and names none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mcp_batteries.errors import Problem, quote
from mcp_github.client.api import Api
from mcp_github.policy import Repo, ReviewComment, Side

__all__ = ["explain_misplaced"]

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_FILES_PER_PAGE = 100
_MAX_PAGES = 30
_MAX_NAMED = 5
_MAX_RANGES = 8
_MAX_PATH_CHARACTERS = 120

# The first and the last line of each hunk, by side.
_Ranges = Mapping[Side, Sequence[tuple[int, int]]]


async def explain_misplaced(api: Api, repo: Repo, number: int, comments: Sequence[ReviewComment]) -> str:
    """Return which of `comments` are not on lines of the difference and which lines there are; empty if all are."""
    try:
        patches = await _fetch_patches(api, repo, number, {comment.path for comment in comments})
    except Problem:
        # What GitHub says of the review is told without this.
        return ""
    sentences: list[str] = []
    for position, comment in enumerate(comments, 1):
        reason = _misplacement(comment, patches)
        if reason:
            sentences.append(f"Comment {position} of {len(comments)}: {reason}.")
    return " ".join(sentences[:_MAX_NAMED])


async def _fetch_patches(api: Api, repo: Repo, number: int, paths: set[str]) -> dict[str, str | None]:
    """Return the differences of those of `paths` that the pull request changes; None where GitHub shows none."""
    patches: dict[str, str | None] = {}
    params: dict[str, Any] = {"per_page": _FILES_PER_PAGE}
    description = f"the files of #{number} of `{repo.full_name}`"
    for _ in range(_MAX_PAGES):
        response = await api.get(f"{repo.path}/pulls/{number}/files", description, params, internal=True)
        for file in response.data:
            if file.get("filename") in paths:
                patches[file["filename"]] = file.get("patch")
        if not response.next_page or patches.keys() == paths:
            break
        params |= response.next_page
    return patches


def _misplacement(comment: ReviewComment, patches: Mapping[str, str | None]) -> str:
    """Return what is wrong with the place of a comment; empty if nothing is."""
    path = quote(comment.path, _MAX_PATH_CHARACTERS)
    if comment.path not in patches:
        return f"{path} is not a file that this pull request changes"
    patch = patches[comment.path]
    if comment.line is None or patch is None:
        return ""
    ranges = _parse_ranges(patch)
    end = _find_range(ranges[comment.side], comment.line)
    if end is None:
        return f"line {comment.line} of {path} ({comment.side}) is outside the difference, {_describe(ranges)}"
    if not comment.start_line:
        return ""
    side = comment.start_side or comment.side
    start = _find_range(ranges[side], comment.start_line)
    if start is None:
        return f"line {comment.start_line} of {path} ({side}) is outside the difference, {_describe(ranges)}"
    if start != end:
        return f"lines {comment.start_line} and {comment.line} of {path} are of two hunks, {_describe(ranges)}"
    return ""


def _parse_ranges(patch: str) -> dict[Side, list[tuple[int, int]]]:
    ranges: dict[Side, list[tuple[int, int]]] = {"LEFT": [], "RIGHT": []}
    for match in _HUNK.finditer(patch):
        old, old_count, new, new_count = match.groups()
        ranges["LEFT"].append((int(old), int(old) + int(old_count or 1) - 1))
        ranges["RIGHT"].append((int(new), int(new) + int(new_count or 1) - 1))
    return ranges


def _find_range(ranges: Sequence[tuple[int, int]], line: int) -> int | None:
    """Return the number of the hunk that has a line; None if none has."""
    for number, (first, last) in enumerate(ranges):
        if first <= line <= last:
            return number
    return None


def _describe(ranges: _Ranges) -> str:
    """Return the lines that there are, of the new file and of the old one."""
    parts: list[str] = []
    for side in ("RIGHT", "LEFT"):
        texts = [f"{first}-{last}" for first, last in ranges[side] if last >= first]
        if len(texts) > _MAX_RANGES:
            texts[_MAX_RANGES:] = ["…"]
        if texts:
            parts.append(f"{side} {', '.join(texts)}")
    return f"which has {' and '.join(parts) or 'no lines'}"
