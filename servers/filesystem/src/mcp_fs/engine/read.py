"""Parts of text files of any size, in memory that does not grow with the file.

Lines are found as bytes, in blocks, and only what goes into the answer is decoded. A page ends between lines;
a line longer than a page is cut between characters, and the answer names the column where it goes on.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from mcp_batteries.errors import Invalid, Problem, quote
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, Stop
from mcp_fs.engine.handles import open_file
from mcp_fs.engine.text import SAMPLE_BYTES, Encoding, content_hash, sniff
from mcp_fs.models import FileSlices, TextSlice
from mcp_fs.policy import Readable

__all__ = ["MAX_PAGE_BYTES", "LineIndex", "Part", "read_part", "read_parts"]

MAX_PAGE_BYTES = 16 * 1024 * 1024
_BLOCK = 1024 * 1024
_COUNTED = 1024 * 1024  # counting the lines of a file up to this size takes well below a millisecond


@dataclass(frozen=True, slots=True)
class Part:
    """Which lines of a file are wanted.

    Attributes:
        start_line: first line, from 1.
        start_column: byte of that line to begin with, from 1.
        end_line: last line, included; None for as many as fit.
        tail: this many last lines instead.
        max_bytes: bytes of the file in one answer.
        numbers: whether each line begins with its number and a tab.
    """

    start_line: int = 1
    start_column: int = 1
    end_line: int | None = None
    tail: int | None = None
    max_bytes: int = DEFAULT_PAGE_BYTES
    numbers: bool = False


class LineIndex:
    """Where lines begin in files read lately, so that the next page of a large file is found at once.

    A file that was changed has another modification time or size and is counted anew. Thread-safe.
    """

    def __init__(self, files: int = 64, marks: int = 1024) -> None:
        self._files: OrderedDict[tuple[int, ...], list[tuple[int, int]]] = OrderedDict()
        self._most_files, self._most_marks = files, marks
        self._lock = threading.Lock()

    def before(self, status: os.stat_result, line: int) -> tuple[int, int] | None:
        """The nearest known (line, byte offset) at or before `line`."""
        with self._lock:
            marks = self._files.get(_version(status), [])
            index = bisect_right(marks, (line, 1 << 62))
            return marks[index - 1] if index else None

    def learn(self, status: os.stat_result, line: int, offset: int) -> None:
        with self._lock:
            marks = self._files.setdefault(_version(status), [])
            self._files.move_to_end(_version(status))
            index = bisect_right(marks, (line, offset))
            if not index or marks[index - 1] != (line, offset):
                marks.insert(index, (line, offset))
            if len(marks) > self._most_marks:
                del marks[::2]
            while len(self._files) > self._most_files:
                self._files.popitem(last=False)


def read_part(place: Readable, part: Part, index: LineIndex, stop: Stop) -> TextSlice:
    """The wanted lines of the text file at `place`, at most a page of them.

    Raises:
        Invalid: the file is binary, or has fewer lines.
        Problem: it can't be opened.
    """
    with open_file(place) as file:
        status = os.fstat(file.fileno())
        lines = _Lines(place, file, status, stop)
        if part.tail is not None:
            return lines.tail(part)
        return lines.page(part, index)


def read_parts(places: list[tuple[str, Readable | Problem]], part: Part, index: LineIndex, stop: Stop) -> FileSlices:
    """The beginnings of several files, each with its own outcome, within one page altogether.

    What a short file leaves of its share goes to those after it.

    Args:
        places: for each file the caller's spelling and the place, or why there is none.
    """
    left, outcomes = part.max_bytes, list[tuple[str, TextSlice | Problem]]()
    for number, (name, place) in enumerate(places):
        stop.check()
        if isinstance(place, Problem):
            outcomes.append((name, place))
            continue
        share = max(200, left // (len(places) - number))
        try:
            piece = read_part(place, Part(max_bytes=share, numbers=part.numbers), index, stop)
        except Problem as problem:
            outcomes.append((name, problem))
            continue
        left -= piece.bytes_shown
        outcomes.append((name, piece))
    return FileSlices(tuple(outcomes))


class _Lines:
    """The lines of one open file."""

    def __init__(self, place: Readable, file: BinaryIO, status: os.stat_result, stop: Stop) -> None:
        self.path = place.display
        self.file, self.status, self.stop = file, status, stop
        sample = self.at(0, SAMPLE_BYTES)
        encoding = sniff(sample)
        if encoding is None:
            raise Invalid(f"{quote(self.path)} is binary, {status.st_size:,} bytes.", "Use `read_media`.")
        self.encoding: Encoding = encoding
        self.start = len(encoding.bom)
        # Files of /proc and the like say 0 and have contents; a file may grow while it is read.
        self.size = max(status.st_size, len(sample))
        self.total: int | None = None
        if self.size <= _COUNTED:
            self.total = self.count(self.start, self.size)

    def at(self, offset: int, length: int) -> bytes:
        self.file.seek(offset)
        return self.file.read(length)

    def feeds(self, block: bytes, base: int) -> Iterator[int]:
        """Where lines end in `block`, which begins at `base` in the file: offsets just behind the line feed."""
        feed, unit = self.encoding.newline, self.encoding.unit
        found = block.find(feed)
        while found >= 0:
            if (base + found - self.start) % unit:
                found = block.find(feed, found + 1)
            else:
                yield base + found + unit
                found = block.find(feed, found + unit)

    def skip(self, offset: int, lines: int) -> tuple[int, int]:
        """(lines skipped, offset behind them), `lines` of them from `offset` unless the file ends."""
        done = 0
        while done < lines:
            self.stop.check()
            block = self.at(offset, _BLOCK)
            if not block:
                break
            if self.encoding.unit == 1:
                held = block.count(b"\n")
                if done + held < lines:
                    done, offset = done + held, offset + len(block)
                    continue
            for end in self.feeds(block, offset):
                done += 1
                if done == lines:
                    return done, end
            offset += len(block)
        return done, offset

    def count(self, begin: int, end: int) -> int:
        """Lines that begin in [begin, end); the last one need not end."""
        held, last, offset = 0, begin, begin
        while offset < end:
            self.stop.check()
            block = self.at(offset, min(_BLOCK, end - offset))
            if not block:
                break
            if self.encoding.unit == 1:
                held += block.count(b"\n")
                last = offset + block.rfind(b"\n") + 1 if b"\n" in block else last
            else:
                for last in self.feeds(block, offset):  # noqa: B007 - the last one is wanted
                    held += 1
            offset += len(block)
        return held + (last < offset)

    def page(self, part: Part, index: LineIndex) -> TextSlice:
        line, offset = index.before(self.status, part.start_line) or (1, self.start)
        skipped, offset = self.skip(offset, part.start_line - line)
        has_line = offset < self.size or part.start_line == 1
        if line + skipped < part.start_line or not has_line:
            total = self.total if self.total is not None else self.count(self.start, self.size)
            raise Invalid(f"{quote(self.path)} has {total:,} lines.", f"Use a `start_line` up to {max(total, 1)}.")
        if part.end_line is not None and part.end_line < part.start_line:
            raise Invalid("`end_line` lies before `start_line`.", "Leave it out to read on from `start_line`.")
        wanted = None if part.end_line is None else part.end_line - part.start_line + 1
        piece = self.take(offset, part.start_line, part, wanted)
        if piece.next_line is not None and piece.next_column is None:
            index.learn(self.status, piece.next_line, offset + part.start_column - 1 + piece.bytes_shown)
        index.learn(self.status, part.start_line, offset)
        return piece

    def tail(self, part: Part) -> TextSlice:
        """The last lines; when they are more than a page, the last of them."""
        wanted = part.tail or 1
        begin, held = self.size, 0
        for end in self.ends_backwards():
            if self.size - end > part.max_bytes and held:
                break
            begin, held = end, held + 1
            if held == wanted:
                break
        whole = self.size - begin <= part.max_bytes
        known = self.total is not None or part.numbers or not whole
        first = self.count(self.start, begin) + 1 if known else None
        asked = None if held == wanted or begin == self.start else wanted
        return self.take(begin, first, Part(max_bytes=part.max_bytes, numbers=part.numbers), None, asked)

    def ends_backwards(self) -> Iterator[int]:
        """Where lines begin, from the last one to the first."""
        offset, final = self.size, True
        while offset > self.start:
            self.stop.check()
            begin = max(self.start, offset - SAMPLE_BYTES)
            for end in reversed(list(self.feeds(self.at(begin, offset - begin), begin))):
                # A line feed at the very end closes the last line and opens none.
                if not (final and end == self.size):
                    yield end
                final = False
            offset = begin
        yield self.start

    def take(
        self, offset: int, first: int | None, part: Part, wanted: int | None, asked: int | None = None
    ) -> TextSlice:
        """A page from the line `first` at `offset` on."""
        begin, cut = self.column(offset, part, wanted)
        data = self.at(begin, part.max_bytes + 1)
        at_end = len(data) <= part.max_bytes
        ends = [end - begin for end in self.feeds(data, begin)]
        if wanted is not None and len(ends) >= wanted:
            shown, complete, more = ends[wanted - 1], True, False
        elif at_end:
            shown, complete, more = len(data), True, False
        else:
            fitting = [end for end in ends if end <= part.max_bytes]
            complete, more = bool(fitting), True
            shown = fitting[-1] if fitting else self.whole_characters(data[: part.max_bytes])
        text = data[:shown].decode(self.encoding.name, "replace")
        held = text.count("\n") + (not text.endswith("\n") and bool(text))
        to_end = begin + shown >= self.size and at_end
        last = None if first is None else first + max(held, 1) - 1
        total = last if self.total is None and to_end and not (text == "" and first == 1) else self.total
        whole = to_end and begin == self.start
        return TextSlice(
            path=self.path,
            body=_numbered(text, first) if part.numbers and first is not None else text,
            encoding=str(self.encoding),
            first=first,
            last=last,
            total=total,
            size=self.size,
            bytes_shown=shown,
            column=part.start_column,
            next_line=None if not more or last is None else last + complete,
            next_column=None if complete else part.start_column + cut + shown,
            lines_shown=held,
            lines_asked=asked,
            replaced="\ufffd" in text and "\ufffd".encode(self.encoding.name, "replace") not in data,
            unterminated=to_end and bool(text) and not text.endswith("\n"),
            hash=content_hash(self.at(0, self.start) + data[:shown]) if whole else None,
        )

    def column(self, offset: int, part: Part, wanted: int | None) -> tuple[int, int]:
        """(offset of the part's first column, bytes moved on to the next character's beginning)."""
        if part.start_column == 1:
            return offset, 0
        begin = offset + part.start_column - 1
        begin += -(begin - self.start) % self.encoding.unit
        _, end = self.skip(offset, 1)
        if begin >= end:
            raise Invalid(
                f"Line {part.start_line} of {quote(self.path)} has {end - offset:,} bytes.",
                f"Use a smaller `start_column`, or `start_line={part.start_line + 1}`.",
            )
        if self.encoding.name == "utf-8":
            while (byte := self.at(begin, 1)) and 0x80 <= byte[0] < 0xC0:
                begin += 1
        return begin, begin - offset - part.start_column + 1

    def whole_characters(self, data: bytes) -> int:
        """How many bytes of `data` are whole characters; a character in two parts stays whole."""
        import codecs

        decoder = codecs.getincrementaldecoder(self.encoding.name)("replace")
        decoder.decode(data)
        return len(data) - len(decoder.getstate()[0]) or len(data)


def _version(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _numbered(text: str, first: int) -> str:
    # Not splitlines: form feeds and the like are no line ends here, as for every editor.
    return "".join(f"{number}\t{line}" for number, line in enumerate(_split(text), first))


def _split(text: str) -> list[str]:
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]
