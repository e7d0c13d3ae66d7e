"""Shows what changed about a text file: the lines that were added, or a diff."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mcp_batteries.subscriptions.journal import Change
from mcp_fs.engine.text.edit import unified_diff
from mcp_fs.engine.text.encodings import NEWLINE_NAMES, uniform_newline
from mcp_fs.models import clip_diff, pluralize

__all__ = ["describe_change"]

# Of one change, some less than an answer takes.
_MAX_SHOWN_CHARACTERS = 2600


def describe_change(change: Change) -> str:
    """Return a change of a text file in lines: what was added at its end, else a diff; nothing if that is not known."""
    if change.kind == "created" and not change.origin:
        if change.after is None:
            return ""
        return pluralize(len(change.after.splitlines()), "line")
    if change.kind == "deleted":
        return ""
    path = change.name
    if change.before is None or change.after is None:
        return _as_added_lines(path, change.added or "", None)
    if change.before == change.after:
        return ""
    line_ends = _describe_line_ends(change.before, change.after)
    if change.before.replace("\r\n", "\n") == change.after.replace("\r\n", "\n"):
        return line_ends
    if change.after.startswith(change.before) and change.before[-1:] in ("", "\n"):
        first_line = change.before.count("\n") + 1
        return _as_added_lines(path, change.after[len(change.before) :], first_line)
    diff = clip_diff(unified_diff(change.before, change.after, change.name))
    _, _, hunks = diff.partition("\n+++ ")
    return hunks.partition("\n")[2]


def _describe_line_ends(before: str, after: str) -> str:
    """Say how the line ends of a text changed; nothing if they did not."""
    newline = uniform_newline(before)
    new_newline = uniform_newline(after)
    if newline == new_newline or newline == "" or new_newline == "":
        return ""
    return f"[line ends {NEWLINE_NAMES[new_newline]}, were {NEWLINE_NAMES[newline]}]"


def _as_added_lines(path: str, text: str, first_line: int | None) -> str:
    """Return lines that were added, of many the first and the last, with the call that reads the others.

    Args:
        first_line: the number of the first; None if that is not known.
    """
    lines = ["+" + line for line in text.splitlines()]
    if sum(map(len, lines)) + len(lines) <= _MAX_SHOWN_CHARACTERS:
        return "\n".join(lines)
    head_count = _count_fitting(lines)
    tail_count = min(_count_fitting(lines[::-1]), len(lines) - head_count)
    omitted_count = len(lines) - head_count - tail_count
    call = f"read_text path={json.dumps(path, ensure_ascii=False)} tail={len(lines)}"
    if first_line is not None:
        first_omitted = first_line + head_count
        call = (
            f"read_text path={json.dumps(path, ensure_ascii=False)} start_line={first_omitted} "
            f"end_line={first_omitted + omitted_count - 1}"
        )
    middle = f"[{pluralize(len(lines), 'line')} added, {omitted_count:,} of them not shown: {call}]"
    return "\n".join([*lines[:head_count], middle, *lines[len(lines) - tail_count :]])


def _count_fitting(lines: Sequence[str]) -> int:
    """Return how many of the first lines fit into half of what is shown of a change."""
    remaining = _MAX_SHOWN_CHARACTERS // 2
    for count, line in enumerate(lines):
        remaining -= len(line) + 1
        if remaining < 0:
            return count
    return len(lines)
