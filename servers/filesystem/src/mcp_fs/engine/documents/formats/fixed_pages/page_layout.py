"""Writes the words of a page as lines of text: by their place, as the page shows them.

A line of a table keeps its gaps, so that each figure stands below the head of its column. Lines of a paragraph that
only the width of the page broke become one, and columns of prose are read one after the other.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from mcp_fs.engine.documents.formats.raised import raise_text

__all__ = ["Word", "is_raised", "lay_out"]

# In heights of a line: a gap that is no blank but an empty place, and a margin that is met.
_WIDE_GAP = 0.9
_NO_GAP = 0.06
_TOUCHING = 0.3
_NARROWEST_GUTTER = 0.7
# How many times as high as others a word is whose box can hold several lines of them.
_LARGE = 1.8
# Of what is raised behind a number: how far at least, and how high at most.
_RAISED = 0.2
_RAISED_HEIGHT = 0.85
_MARGIN = 1.2
_MOST_LEADING = 1.9
_MOST_COLUMNS = 400
# Of a column of prose.
_FEWEST_LINES = 4
_FEWEST_WORDS = 3.5
_FEWEST_WORDS_TO_WRAP = 4
# At most three words.
_LABEL = re.compile(r"\w+(?: \w+){0,2}:(?: |\Z)")
_LIST_MARK = re.compile(r"(?:[-–—•‣▪●○◦*·§]|\(?\w{1,3}[.)])$")
# Dots or lines that lead the eye to a number.
_LEADERS = re.compile(r"(?: ?[.…]){4,}|_{4,}|(?: ?\u00b7){4,}")


@dataclass(slots=True)
class Word:
    """A word and its box, in points, the origin at the bottom left of the page as it is seen."""

    text: str
    left: float
    bottom: float
    right: float
    top: float
    height: float = field(init=False)

    def __post_init__(self) -> None:
        self.height = max(self.top - self.bottom, 0.1)


class _Line:
    """Words that stand beside each other, from left to right."""

    def __init__(self, words: Iterable[Word]) -> None:
        self.words = sorted(words, key=lambda word: word.left)
        self.left = self.words[0].left
        self.right = max(word.right for word in self.words)
        self.height = max(word.height for word in self.words)
        self.bottom = max(self.words, key=lambda word: word.height).bottom

    def segments(self) -> list[list[Word]]:
        """Return the words, parted where a gap is wider than a blank."""
        segments = [[self.words[0]]]
        for word in self.words[1:]:
            if word.left - segments[-1][-1].right > _WIDE_GAP * self.height:
                segments.append([])
            segments[-1].append(word)
        return segments

    def gaps(self) -> list[tuple[float, float]]:
        """Return from where to where nothing stands between the first word and the last."""
        gaps: list[tuple[float, float]] = []
        right = self.words[0].right
        for word in self.words[1:]:
            if word.left - right > _NARROWEST_GUTTER * self.height:
                gaps.append((right, word.left))
            right = max(right, word.right)
        return gaps


def lay_out(words: Sequence[Word]) -> Iterator[str]:
    """Yield the lines of a page."""
    lines = _to_lines(words)
    if not lines:
        return
    widths = [(word.right - word.left) / len(word.text) for word in words if len(word.text) > 1]
    grid = _Grid(min(line.left for line in lines), max(median(widths or [5.0]), 0.5))
    for block in _to_blocks(lines):
        yield from _write_block(block, grid)


def _to_lines(words: Iterable[Word]) -> list[_Line]:
    """Return the words as lines, from top to bottom."""
    groups: list[list[Word]] = []
    reference: Word | None = None
    for word in sorted(words, key=lambda word: -(word.top + word.bottom)):
        if reference is None or not _is_beside(word, reference):
            groups.append([])
            reference = word
        elif word.height > reference.height:
            reference = word
        groups[-1].append(word)
    lines: list[_Line] = []
    for group in groups:
        lines += _part_small_lines(group)
    return lines


def _part_small_lines(words: Sequence[Word]) -> list[_Line]:
    """Return words that stand beside each other as one line, unless a large one stands beside several lines of text."""
    tallest = max(word.height for word in words)
    small = [word for word in words if _LARGE * word.height <= tallest]
    lines = []
    if small:
        lines = _to_lines(small)
    if sum(map(_is_text, lines)) < 2:
        return [_Line(words)]
    large = [word for word in words if _LARGE * word.height > tallest]
    return [_Line([*large, *lines[0].words]), *lines[1:]]


def _is_text(line: _Line) -> bool:
    """Return whether a line has words, and not only marks above or below the line as a formula has."""
    return sum(sum(map(str.isalpha, word.text)) > 1 for word in line.words) > 1


def _is_beside(word: Word, other: Word) -> bool:
    overlap = min(word.top, other.top) - max(word.bottom, other.bottom)
    return overlap >= 0.5 * min(word.height, other.height)


def _to_blocks(lines: Sequence[_Line]) -> Iterator[list[_Line]]:
    """Yield lines that belong to each other in the order of reading: a column of prose, or what is not in columns."""
    block: list[_Line] = []
    start = 0
    while start < len(lines):
        columns = _Columns()
        end = start
        while end < len(lines) and columns.add(lines[end]):
            end += 1
        if columns.are_prose():
            yield block
            block = []
            yield from _to_blocks(_to_lines(columns.left))
            yield from _to_blocks(_to_lines(columns.right))
        else:
            end = max(end, start + 1)
            block += lines[start:end]
        start = end
    yield block


class _Columns:
    """Lines that a gutter parts into two columns, as far as they go."""

    def __init__(self) -> None:
        self.left: list[Word] = []
        self.right: list[Word] = []
        self._gutter: tuple[float, float] | None = None
        self._double_lines = 0

    def add(self, line: _Line) -> bool:
        """Take in a line; return whether it leaves a gutter free, and the first one has one."""
        gutter = self._find_gutter(line)
        if gutter is None:
            return False
        left = [word for word in line.words if word.right <= gutter[0] + 0.1]
        right = [word for word in line.words if word.left >= gutter[1] - 0.1]
        if len(left) + len(right) < len(line.words):
            return False
        self._gutter = gutter
        self.left += left
        self.right += right
        self._double_lines += bool(left and right)
        return True

    def _find_gutter(self, line: _Line) -> tuple[float, float] | None:
        """Return what a line leaves free of the gutter."""
        if self._gutter is None:
            return max(line.gaps(), key=lambda gap: gap[1] - gap[0], default=None)
        begin, end = self._gutter
        if line.right <= begin or line.left >= end:
            return self._gutter
        if line.right <= end and line.left < begin:
            begin = line.right
        elif line.left >= begin and line.right > end:
            end = line.left
        else:
            for gap in line.gaps():
                if min(gap[1], end) - max(gap[0], begin) >= _NARROWEST_GUTTER * line.height:
                    return max(gap[0], begin), min(gap[1], end)
            return None
        if end - begin < _NARROWEST_GUTTER * line.height:
            return None
        return begin, end

    def are_prose(self) -> bool:
        """Return whether both columns are to be read from top to bottom, and not line by line as those of a table."""
        return self._double_lines >= _FEWEST_LINES and all(map(_is_prose, (self.left, self.right)))


def _has_letter(word: Word) -> bool:
    return any(character.isalpha() for character in word.text)


def _is_prose(words: Sequence[Word]) -> bool:
    lines = _to_lines(words)
    lettered = sum(_has_letter(word) for word in words)
    return (
        len(lines) >= _FEWEST_LINES
        and len(words) >= _FEWEST_WORDS * len(lines)
        and lettered >= 0.7 * len(words)
        and sum(len(line.segments()) == 1 for line in lines) >= 0.7 * len(lines)
    )


@dataclass(frozen=True, slots=True)
class _Grid:
    """How places on a page become columns of text."""

    left: float
    character_width: float

    def column(self, x: float) -> int:
        return min(round((x - self.left) / self.character_width), _MOST_COLUMNS)


def _write_block(lines: Sequence[_Line], grid: _Grid) -> Iterator[str]:
    """Yield the lines of a block, those of a paragraph as one."""
    if not lines:
        return
    right = max(line.right for line in lines)
    text = ""
    for number, line in enumerate(lines):
        previous = lines[number - 1]
        if number and _wraps(previous, line, right):
            text = f"{text} {_join(line.words)}".rstrip()
            continue
        if number:
            yield text
            if previous.bottom - line.bottom > 2 * _MOST_LEADING * line.height:
                yield ""
        text = _write_line(line, grid)
    yield text


def _wraps(line: _Line, following: _Line, right: float) -> bool:
    """Return whether a line goes on in the next one: its first word would not have fitted."""
    first = following.words[0]
    if not first.text:
        return len(line.segments()) == len(following.segments()) == 1  # the end of a word that begins above
    return (
        len(line.words) >= _FEWEST_WORDS_TO_WRAP
        and abs(line.height - following.height) <= 0.15 * line.height
        and 0 < line.bottom - following.bottom <= _MOST_LEADING * line.height
        and -_MARGIN * 3 * line.height <= following.left - line.left <= _MARGIN * line.height
        and line.right + (first.right - first.left) + 0.25 * line.height > right
        and _LIST_MARK.match(first.text) is None
        and not _has_label(following)
        and _is_sentence(line)
        and len(following.segments()) == 1
    )


def _has_label(line: _Line) -> bool:
    """Return whether a line begins as `Net: 12.50` and `Due date: ...` do, which stand for themselves."""
    text = _join(line.words)
    return text[:1].isupper() and _LABEL.match(text) is not None


def _is_sentence(line: _Line) -> bool:
    """Return whether a line is words of a text, not cells or dots that lead to a number."""
    text = _join(line.words)
    letters = sum(character.isalpha() for character in text)
    return letters >= 0.5 * len(text) and not _LEADERS.search(text) and len(line.segments()) == 1


def _write_line(line: _Line, grid: _Grid) -> str:
    text = ""
    for segment in line.segments():
        begin = grid.column(segment[0].left)
        if text:
            begin = max(begin, len(text) + 2)
        text = text.ljust(begin) + _LEADERS.sub(" ...", _join(segment))
    return text


def _join(words: Iterable[Word]) -> str:
    """Return words that stand beside each other, with blanks between those that do not touch."""
    ordered = [word for word in words if word.text]
    if _is_right_to_left("".join(word.text for word in ordered)):
        ordered.reverse()
    text = ""
    previous: Word | None = None
    for word in ordered:
        if previous is not None and not _touch(previous, word):
            text += " "
        if previous is not None and is_raised(word, previous):
            text += raise_text(text, word.text)
        else:
            text += word.text
        previous = word
    return text


def is_raised(word: Word, other: Word) -> bool:
    """Return whether a word is smaller than another and stands higher, as a mark of a note or an exponent does."""
    return word.height <= _RAISED_HEIGHT * other.height and word.bottom - other.bottom >= _RAISED * other.height


def _touch(one: Word, other: Word) -> bool:
    gap = max(one.left, other.left) - min(one.right, other.right)
    return -_TOUCHING < gap / one.height < _NO_GAP


def _is_right_to_left(text: str) -> bool:
    """Return whether most letters are Hebrew, Arabic or the like."""
    if text.isascii():
        return False
    directions = [unicodedata.bidirectional(character) for character in text if character.isalpha()]
    return 2 * sum(direction in ("R", "AL") for direction in directions) > len(directions)
