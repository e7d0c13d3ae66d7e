"""Reads the requested lines from more text than should be in memory."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_github.models import Text
from mcp_github.safety.scrub import scrub_text

__all__ = ["LineWindow"]

# A page of text, with the timestamps and colours that are taken out of it, and more.
_MAX_BLOCK_BYTES = 128_000
# What is taken at once.
_PIECE_BYTES = 65_536
_MAX_LINE_CHARACTERS = 2000
_LINE_NUMBER_BYTES = 8
_LINES_AFTER_ERROR = 10
_COLOUR_CODES = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]")
_TIMESTAMP = re.compile(rb"^(?:\xef\xbb\xbf)?\d{4}-\d\d-\d\dT[\d:.]+Z ?")
_ERROR_MARK = b"##[error]"


class _Block(NamedTuple):
    """Whole lines.

    Attributes:
        first: the number of the first line.
    """

    first: int
    data: bytes


class _Line(NamedTuple):
    number: int
    text: str


@dataclass(frozen=True)
class _Lines:
    """Lines as they are shown, and how many invisible characters were taken out of them."""

    lines: list[_Line]
    removed: int


class LineWindow:
    """Takes text piece by piece and keeps one page of it.

    Args:
        start_line: the page begins there; without it the page is the end, or of a job's log the last error with what
            led to it: what follows is only cleaning up.
        pattern: only lines that contain it.
        is_log: it is a job's, with a timestamp at each line.
    """

    def __init__(self, *, start_line: int | None, pattern: str | None, is_log: bool = True) -> None:
        self._start_line = start_line
        self._is_log = is_log
        self._pattern = b""
        if pattern:
            self._pattern = pattern.encode("utf-8", "surrogatepass")
        self._unfinished_line = b""
        self._line_count = 0
        self._blocks: deque[_Block] = deque()
        self._block_bytes = 0
        self._has_dropped = False
        self._is_full = False
        self._error_line: int | None = None
        self._has_error_mark = False
        self._blocks_at_error: list[_Block] = []

    def feed(self, data: bytes) -> bool:
        """Take what comes next; return True once nothing more is needed."""
        for start in range(0, len(data), _PIECE_BYTES):
            text = self._unfinished_line + data[start : start + _PIECE_BYTES]
            lines, newline, unfinished = text.rpartition(b"\n")
            if newline:
                self._add_lines(lines + newline)
            # Of a line without end, its beginning will do.
            self._unfinished_line = unfinished[:_PIECE_BYTES]
            if self._is_full:
                return True
        return False

    def render(self, description: str, max_bytes: int = DEFAULT_PAGE_BYTES) -> Text:
        """Return the page, once everything was taken; its head says what it is and how to go on."""
        if self._unfinished_line and not self._is_full:
            self._add_lines(self._unfinished_line + b"\n")
            self._unfinished_line = b""
        window = self._lines_of_window()
        fitting = _fitting_lines(window.lines, max_bytes, from_end=self._start_line is None)
        head = [description]
        if not self._is_full:
            head.append(f"{self._line_count} lines")
        if window.removed:
            head.append(f"{window.removed} invisible characters removed")
        if fitting:
            head += self._continuations(fitting, is_cut=len(fitting) < len(window.lines))
        body = "\n".join(f"{line.number}: {line.text}" for line in fitting)
        return Text("; ".join(head), body or "No such lines.")

    @property
    def has_error(self) -> bool:
        """Whether an error was among what the page is taken from."""
        return self._error_line is not None or self._has_error_mark

    def _continuations(self, fitting: Sequence[_Line], *, is_cut: bool) -> list[str]:
        """Return how to read what is not shown."""
        hints: list[str] = []
        last = fitting[-1].number
        if self._start_line is not None:
            if self._is_full or is_cut:
                hints.append(f"truncated, continue with start_line={last + 1}")
        elif self._has_dropped or is_cut:
            hints.append(f"truncated, the end from line {fitting[0].number} on; start_line reads from elsewhere")
        if self._error_line is not None and last < self._line_count:
            hints.append(f"after the last error {self._line_count - last} lines more, start_line={last + 1}")
        return hints

    def _lines_of_window(self) -> _Lines:
        removed = 0
        lines: list[_Line] = []
        for number, raw in self._raw_lines():
            if number < (self._start_line or 0):
                continue
            if self._error_line is not None and number > self._error_line + _LINES_AFTER_ERROR:
                continue
            text, count = self._clean(raw)
            removed += count
            lines.append(_Line(number, text))
        return _Lines(lines, removed)

    def _raw_lines(self) -> Iterator[tuple[int, bytes]]:
        for block in self._blocks_at_error or self._blocks:
            yield from enumerate(block.data.removesuffix(b"\n").split(b"\n"), block.first)

    def _add_lines(self, data: bytes) -> None:
        first = self._line_count + 1
        self._line_count += data.count(b"\n")
        if self._line_count < (self._start_line or 0):
            return
        if self._pattern:
            self._has_error_mark = self._has_error_mark or _ERROR_MARK in data
            self._add_matches(_Block(first, data))
            return
        block = _Block(first, data)
        self._keep(block)
        if self._start_line is None and self._is_log:
            self._mark_error(block)

    def _add_matches(self, block: _Block) -> None:
        """Keep the lines of `block` with the pattern, each as a block of its own."""
        data = block.data
        if b"\x1b" in data:
            data = _COLOUR_CODES.sub(b"", data)
        if self._pattern not in data:
            return
        for number, line in enumerate(data.split(b"\n"), block.first):
            if self._pattern in line and number >= (self._start_line or 0):
                self._keep(_Block(number, line))

    def _mark_error(self, block: _Block) -> None:
        """Put down where the last error is, and keep what led to it, whatever follows."""
        if _ERROR_MARK in block.data:
            self._error_line = block.first + block.data.count(b"\n", 0, block.data.rfind(_ERROR_MARK))
            self._blocks_at_error = list(self._blocks)
        elif self._error_line is not None and block.first <= self._error_line + _LINES_AFTER_ERROR:
            self._blocks_at_error.append(block)

    def _keep(self, block: _Block) -> None:
        self._blocks.append(block)
        self._block_bytes += len(block.data)
        if self._start_line is not None:
            self._is_full = self._block_bytes > _MAX_BLOCK_BYTES
            return
        while self._block_bytes - len(self._blocks[0].data) > _MAX_BLOCK_BYTES:
            self._block_bytes -= len(self._blocks.popleft().data)
            self._has_dropped = True

    def _clean(self, raw: bytes) -> tuple[str, int]:
        raw = _COLOUR_CODES.sub(b"", raw)
        if self._is_log:
            raw = _TIMESTAMP.sub(b"", raw)
        # Of what a carriage return overwrote, a terminal would have been left with the end.
        visible = raw.rstrip(b"\r").rpartition(b"\r")[2]
        return scrub_text(visible.decode("utf-8", "replace"), code=True)


def _fitting_lines(lines: Sequence[_Line], max_bytes: int, *, from_end: bool) -> list[_Line]:
    """Return as many of `lines` as fit into `max_bytes`, or one, long ones cut: the first, or `from_end` the last."""
    candidates: Iterator[_Line] = iter(lines)
    if from_end:
        candidates = reversed(lines)
    fitting: list[_Line] = []
    size = 0
    for number, line in candidates:
        text = line
        if len(line) > _MAX_LINE_CHARACTERS:
            text = f"{line[:_MAX_LINE_CHARACTERS]}… [line cut]"
        size += len(text.encode("utf-8", "surrogatepass")) + _LINE_NUMBER_BYTES
        if size > max_bytes and fitting:
            break
        fitting.append(_Line(number, text))
    if from_end:
        fitting.reverse()
    return fitting
