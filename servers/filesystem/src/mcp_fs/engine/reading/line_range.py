"""Copies some lines of a text file byte for byte, so that encoding and line ends stay."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, Invalid, NotFound, quote
from mcp_fs.engine.documents.source import open_content
from mcp_fs.engine.handles.path_opening import translate_errors
from mcp_fs.engine.handles.syscalls import write_all
from mcp_fs.engine.text.lines import Lines
from mcp_fs.models import pluralize
from mcp_fs.policy.path_arguments import LineRange

__all__ = ["OpenedLines", "open_lines"]

_BLOCK_BYTES = 1024 * 1024


@contextmanager
def open_lines(line_range: LineRange, cancel: CancelToken) -> Generator[OpenedLines]:
    """Yield where the lines are in their file, as long as that is open.

    Raises:
        Invalid: the file is not text, or its text is not what its bytes are.
        NotFound: it has no such lines.
    """
    with open_content(line_range.place, cancel) as (file, extracted_from):
        if extracted_from is not None:
            raise Invalid(
                f"The text of {quote(line_range.place.display)} is taken out of it, so no lines of it can be copied.",
                "Copy the whole file, or write what `read_text` shows to a new text file.",
            )
        lines = Lines(line_range.place, file, cancel)
        if lines.binary:
            raise lines.binary_error()
        yield _locate(line_range, lines)


def _locate(line_range: LineRange, lines: Lines) -> OpenedLines:
    if line_range.first < 0:
        begin = _find_last_lines(lines, -line_range.first)
        return _require_lines(OpenedLines(line_range, lines, begin, lines.size))
    if line_range.last is not None and line_range.last < line_range.first:
        raise Invalid(f"{quote(line_range.display)} ends before it begins.", "Name the first line, then the last.")
    skipped, begin = lines.skip_lines(lines.start, line_range.first - 1)
    end = lines.size
    if skipped < line_range.first - 1:
        begin = end
    if line_range.last is not None and begin < end:
        _, end = lines.skip_lines(begin, line_range.last - line_range.first + 1)
    return _require_lines(OpenedLines(line_range, lines, begin, end))


def _find_last_lines(lines: Lines, count: int) -> int:
    """Return where the last `count` lines begin."""
    begin = lines.size
    remaining_lines = count
    for offset, begins_line in lines.iterate_backwards():
        if begins_line:
            begin = offset
            remaining_lines -= 1
        if not remaining_lines:
            break
    return begin


def _require_lines(opened_lines: OpenedLines) -> OpenedLines:
    if opened_lines.begin < opened_lines.end:
        return opened_lines
    lines = opened_lines.lines
    label = quote(opened_lines.line_range.place.display)
    display = quote(opened_lines.line_range.display)
    total = pluralize(lines.count_lines(lines.start, lines.size), "line")
    raise NotFound(f"{label} has {total}, so there is no {display}.", "Name lines that it has.")


@dataclass(frozen=True, slots=True)
class OpenedLines:
    """Lines in an open file.

    Attributes:
        begin: byte of the file; `end` likewise, not included.
    """

    line_range: LineRange
    lines: Lines
    begin: int
    end: int

    def describe_numbers(self) -> list[str]:
        """Return which lines they are, unless what was asked says it: `a.py:10` is all from there on."""
        if self.line_range.first < 0 and self.begin > self.lines.start:
            return []
        first = max(self.line_range.first, 1)
        last = first - 1 + self.lines.count_lines(self.begin, self.end)
        if last == self.line_range.last:
            return []
        if first < last:
            return [f"lines {first:,}-{last:,}"]
        return [f"line {last:,}"]

    def write(self, fd: int) -> None:
        """Write the bytes of the lines to a new file, behind the mark with which the whole file begins.

        Raises:
            Conflict: the file has become shorter meanwhile.
        """
        lines = self.lines
        offset = self.begin
        write_all(fd, lines.encoding.bom)
        while offset < self.end:
            lines.cancel.check()
            with translate_errors(lines.place):  # or else the target would be blamed
                block = lines.read_at(offset, min(_BLOCK_BYTES, self.end - offset))
            if not block:
                raise Conflict(
                    f"{quote(lines.path)} was changed meanwhile; nothing was copied.",
                    "Read it again, then repeat the change.",
                )
            write_all(fd, block)
            offset += len(block)
