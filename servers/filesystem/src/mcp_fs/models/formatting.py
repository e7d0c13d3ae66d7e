"""Text helpers for answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from mcp_batteries.server.calling.results import group_by_folder, is_answering_script

__all__ = [
    "common_time_prefix",
    "describe_common_time",
    "escape_line_breaks",
    "format_size",
    "is_one_line",
    "list_paths",
    "pluralize",
]

# Fewer times cost less than to tell once what is the same in them.
_MIN_TIMES = 3
_TIME = re.compile(r"\d{4}-\d\d-\d\dT.*Z")

# Folders of paths that are only counted.
_MAX_FOLDERS = 30

# Surrogates stand for bytes that are not UTF-8, which no answer can carry.
_LINE_BREAKING = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def is_one_line(text: str) -> bool:
    """Return False for text that could pass for the end of a line of an answer."""
    return _LINE_BREAKING.search(text) is None


def escape_line_breaks(text: str) -> str:
    """Return `text` with what could pass for the end of a line escaped."""
    return _LINE_BREAKING.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def format_size(size: int) -> str:
    """Return a number of bytes in a column."""
    return str(size) if is_answering_script() else f"{size:,}"


def pluralize(count: int, noun: str) -> str:
    """Return `1 file`, `2,000 files`, `3 entries`, `2 matches`."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y"):
        plural = noun[:-1] + "ies"
    elif noun.endswith("ch"):
        plural = f"{noun}es"
    else:
        plural = f"{noun}s"
    return f"{count:,} {plural}"


def describe_common_time(prefix: str, *, is_page: bool) -> str:
    """Return that entries have a common time of change: all that there are, or those of one page of them."""
    return f"{'those shown' if is_page else 'all'} changed {prefix}"


def common_time_prefix(times: Sequence[str]) -> str:
    """Return the common time (UTC, ISO 8601) or day of all `times`; empty if they differ or are not worth it."""
    if is_answering_script() or len(times) < _MIN_TIMES or not all(map(_TIME.fullmatch, times)):
        return ""
    first = times[0]
    for prefix in (first, first[:10]):
        if all(time.startswith(prefix) for time in times):
            return prefix
    return ""


def list_paths(rows: Sequence[tuple[str, str]], limit: int) -> list[str]:
    """Return the lines of paths, grouped by folder; of more than `limit` how many each folder has.

    Args:
        rows: paths, each with its line.
    """
    lines = list(group_by_folder(("", line, ()) for _, line in rows[:limit]))
    other_paths = [path for path, _ in rows[limit:]]
    if other_paths:
        lines.append(f"and {len(other_paths):,} more: {_count_by_folder(other_paths)}")
    return lines


def _count_by_folder(paths: Iterable[str]) -> str:
    folders = Counter(path.rstrip("/").rpartition("/")[0] for path in paths)
    counts = [f"{number:,} in {folder}/" if folder else f"{number:,} at the top" for folder, number in folders.items()]
    if len(counts) > _MAX_FOLDERS:
        counts = [*counts[:_MAX_FOLDERS], f"others in {len(counts) - _MAX_FOLDERS:,} more folders"]
    return ", ".join(counts)
