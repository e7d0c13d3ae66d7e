"""Shows the lines that differ between an old text and a new one, as much as one answer holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice

from mcp_fs.engine.text.edit import common_prefix_length, split_lines

__all__ = ["LineDifference", "build_page", "find_changed_lines"]

_PAGE_CHARACTERS = 2000
_MAX_LINE_CHARACTERS = 160
# Differences of one file.
_MAX_DIFFERENCES = 50
# Of what goes and of what comes, where the number of lines changes.
_MAX_LINES = 6
# Lines from the first to the last that differ, both sides: comparing them takes the square of that.
_MAX_COMPARED_LINES = 500
_WORD_CHARACTER = re.compile(r"\w", re.ASCII)


@dataclass(frozen=True, slots=True)
class LineDifference:
    """Lines of a new text that stand for others of the old one.

    Attributes:
        number: of the first of them in the new text, from 1.
        removed_lines: those that go, without their ends.
        added_lines: those that come.
    """

    number: int
    removed_lines: Sequence[str]
    added_lines: Sequence[str]

    def format(self) -> list[str]:
        """Format a line as `NUMBER:LINE` where one takes the place of one, else as in a diff."""
        if len(self.removed_lines) == len(self.added_lines) == 1:
            return [f"{self.number}:{_format_word_diff(self.removed_lines[0], self.added_lines[0])}"]
        return [
            f"@@ {self.number}",
            *(f"-{_shorten_line(line)}" for line in self.removed_lines),
            *(f"+{_shorten_line(line)}" for line in self.added_lines),
        ]

    def is_surprising(self, pattern: re.Pattern[str]) -> bool:
        """Return whether the number of lines changes, or one that goes has what the pattern finds."""
        if len(self.removed_lines) != len(self.added_lines):
            return True
        return any(map(pattern.search, self.removed_lines))


def find_changed_lines(old: str, new: str) -> list[LineDifference]:
    """Return the first lines that differ; where their number changes, each run of them."""
    old_lines = _bare_lines(old)
    new_lines = _bare_lines(new)
    if len(old_lines) == len(new_lines):
        return list(islice(_pair_lines(old_lines, new_lines), _MAX_DIFFERENCES + 1))
    prefix_length = common_prefix_length(old_lines, new_lines)
    suffix_length = common_prefix_length(old_lines[prefix_length:][::-1], new_lines[prefix_length:][::-1])
    removed_lines = old_lines[prefix_length : len(old_lines) - suffix_length]
    added_lines = new_lines[prefix_length : len(new_lines) - suffix_length]
    if len(removed_lines) + len(added_lines) > _MAX_COMPARED_LINES:
        return [LineDifference(prefix_length + 1, _shorten_lines(removed_lines), _shorten_lines(added_lines))]
    runs = _find_runs(removed_lines, added_lines, prefix_length)
    return list(islice(runs, _MAX_DIFFERENCES + 1))


def _pair_lines(old_lines: Sequence[str], new_lines: Sequence[str]) -> Iterator[LineDifference]:
    """Iterate the lines that differ of two texts with equally many."""
    for number, (old, new) in enumerate(zip(old_lines, new_lines, strict=True), 1):
        if old != new:
            yield LineDifference(number, [old], [new])


def _find_runs(removed_lines: list[str], added_lines: list[str], prefix_length: int) -> Iterator[LineDifference]:
    """Iterate the runs of lines that differ.

    Args:
        prefix_length: lines of the text before them.
    """
    matcher = SequenceMatcher(None, removed_lines, added_lines, autojunk=False)
    for tag, old_begin, old_end, new_begin, new_end in matcher.get_opcodes():
        if tag == "equal":
            continue
        yield LineDifference(
            prefix_length + new_begin + 1,
            _shorten_lines(removed_lines[old_begin:old_end]),
            _shorten_lines(added_lines[new_begin:new_end]),
        )


def _bare_lines(text: str) -> list[str]:
    return [line.rstrip("\r\n") for line in split_lines(text)]


def _shorten_lines(lines: list[str]) -> list[str]:
    more = len(lines) - _MAX_LINES
    return lines if more <= 1 else [*lines[:_MAX_LINES], f"... {more:,} more lines"]


def _shorten_line(text: str, max_characters: int = _MAX_LINE_CHARACTERS) -> str:
    if len(text) <= max_characters:
        return text
    return text[:max_characters] + "..."


def _format_word_diff(old: str, new: str) -> str:
    """Mark the new line as git's word diff does: `[-old-]{+new+}`; cut a long one to what is about the change."""
    prefix_length = _common_words_length(old, new)
    suffix_length = _common_words_length(old[prefix_length:][::-1], new[prefix_length:][::-1])
    before = new[:prefix_length]
    after = new[len(new) - suffix_length :]
    removed_text = old[prefix_length : len(old) - suffix_length]
    added_text = new[prefix_length : len(new) - suffix_length]
    changed = ""
    if removed_text:
        changed += f"[-{_shorten_line(removed_text)}-]"
    if added_text:
        changed += f"{{+{_shorten_line(added_text)}+}}"
    if prefix_length > _MAX_LINE_CHARACTERS // 2:
        before = f"...{before[-_MAX_LINE_CHARACTERS // 4 :]}"
    remaining_characters = max(_MAX_LINE_CHARACTERS - len(before) - len(changed), _MAX_LINE_CHARACTERS // 4)
    return before + changed + _shorten_line(after, remaining_characters)


def _common_words_length(one: str, other: str) -> int:
    """Count the characters that are the same at the beginning, without part of a word."""
    same = 0
    limit = min(len(one), len(other))
    while same < limit:  # by halves: a line may be a whole file
        middle = (same + limit + 1) // 2
        if one[same:middle] == other[same:middle]:
            same = middle
        else:
            limit = middle - 1
    while same and _is_inside_word(one, same, other):
        same -= 1
    return same


def _is_inside_word(one: str, position: int, other: str) -> bool:
    """Return whether a word that two texts share before a position goes on there in one of them."""
    if not _WORD_CHARACTER.match(one[position - 1]):
        return False
    return any(_WORD_CHARACTER.match(text[position : position + 1]) for text in (one, other))


def build_page(
    differences_by_path: Iterable[tuple[str, Sequence[LineDifference]]], surprising_pattern: re.Pattern[str] | None
) -> list[tuple[str, Sequence[str], bool]]:
    """Return as much of a diff as one page holds: of each file its path, lines, and whether these are all.

    Args:
        surprising_pattern: finds what a line must hold to be shown; of others, their numbers. None shows all lines.
    """
    page: list[tuple[str, Sequence[str], bool]] = []
    remaining_characters = _PAGE_CHARACTERS
    for path, differences in differences_by_path:
        if not differences:
            continue  # only its encoding changes
        shown_lines: list[str] = []
        remaining_characters -= len(path) + 1
        for lines in _group_lines(differences[:_MAX_DIFFERENCES], surprising_pattern):
            remaining_characters -= sum(map(len, lines)) + len(lines)
            if remaining_characters < 0:
                return [*page, (path, shown_lines, False)] if shown_lines else page
            shown_lines += lines
        page.append((path, shown_lines, len(differences) <= _MAX_DIFFERENCES))
    return page


def _group_lines(
    differences: Sequence[LineDifference], surprising_pattern: re.Pattern[str] | None
) -> Iterator[Sequence[str]]:
    """Return the numbers of those that are not surprising, then the others."""
    numbers: list[int] = []
    shown_in_full: list[LineDifference] = []
    for difference in differences:
        if surprising_pattern is None or difference.is_surprising(surprising_pattern):
            shown_in_full.append(difference)
        else:
            numbers.append(difference.number)
    if numbers:
        noun = "line" if len(numbers) == 1 else "lines"
        yield [f" {noun} {', '.join(map(str, numbers))}"]
    for difference in shown_in_full:
        yield difference.format()
