"""Parts of text files of any size, in memory that does not grow with the file.

Lines are found as bytes, in blocks, and only what goes into the answer is decoded. A page ends between lines;
a line longer than a page is cut between characters, and the answer names the column where it goes on.
"""

from __future__ import annotations

import os
import re
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from mcp_batteries.errors import Invalid, Problem, TooLarge, quote
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, Stop
from mcp_fs.engine.documents.content import open_content
from mcp_fs.engine.text.encodings import content_hash, is_text
from mcp_fs.engine.text.lines import LONGEST_CHARACTER, Lines
from mcp_fs.models import FileSlices, TextSlice, counted
from mcp_fs.policy import Readable

__all__ = ["MAX_PAGE_BYTES", "LineIndex", "Named", "Part", "read_part", "read_parts"]

_MOST_HASHED = 8 * 1024 * 1024  # takes about as many milliseconds, once for each version of a file
_QUICK = 64 * 1024  # hashed in less time than it takes to be sure of a hash that is known
_TICK_NS, _LONG_TICK_NS = 20_000_000, 2_000_000_000
_NULS = re.compile("\0+")
_MOST_FILES, _MOST_MARKS = 64, 1024
"""Files whose lines are known, and places known in one of them."""
MAX_PAGE_BYTES = 16 * 1024 * 1024


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
        hashed: whether the answer tells the hash of the whole file.
    """

    start_line: int = 1
    start_column: int = 1
    end_line: int | None = None
    tail: int | None = None
    max_bytes: int = DEFAULT_PAGE_BYTES
    numbers: bool = False
    hashed: bool = True


class Named(NamedTuple):
    """One of several files to read.

    Attributes:
        name: as the caller spells it.
        place: what that names, or why it names nothing; None when it can only be `lines`.
        lines: what else it may mean, as `a.py:10-40` does: a file, the first line of it (negative: so many last lines),
            the last.
    """

    name: str
    place: Readable | Problem | None
    lines: tuple[Readable, int, int | None] | None = None


class LineIndex:
    """Where lines begin in files read lately, so that the next page of a large file is found at once.

    A file that was changed has other times or another size and is counted anew. The hash of one that was changed just
    now is not remembered: it may change again within the same tick of its clock. Thread-safe.
    """

    def __init__(self) -> None:
        self._files: OrderedDict[tuple[int, ...], list[tuple[int, int]]] = OrderedDict()
        self._hashes: OrderedDict[tuple[int, ...], str] = OrderedDict()
        self._lock = threading.Lock()

    def before(self, status: os.stat_result, line: int) -> tuple[int, int] | None:
        """The nearest known (line, byte offset) at or before `line`."""
        with self._lock:
            marks = self._files.get(_version(status), [])
            index = bisect_right(marks, (line, 1 << 62))
            return marks[index - 1] if index else None

    def hash_of(self, lines: Lines, whole: bytes | None = None) -> str | None:
        """The hash of the whole file, so that a page of it can be edited; None for one too large for that.

        None also when it has changed meanwhile, or was taken out of another: the page is not of what would be hashed.

        Args:
            whole: what was read of it, if that is all.
        """
        if lines.taken is not None or (whole is None and lines.size > _MOST_HASHED):
            return None
        if whole is not None and len(whole) <= _QUICK:
            return content_hash(whole)
        version, now = _version(lines.status), os.fstat(lines.file.fileno())
        with self._lock:
            known = self._hashes.get(version)
        if known is None or _version(now) != version:
            known = content_hash(lines.at(0, _MOST_HASHED + 1) if whole is None else whole)
            if _version(os.fstat(lines.file.fileno())) != version:
                return None if whole is None else known
            if not _is_settled(lines.status, lines.opened_ns):
                return known
            with self._lock:
                self._hashes[version] = known
                while len(self._hashes) > _MOST_FILES:
                    self._hashes.popitem(last=False)
        return known

    def learn(self, status: os.stat_result, line: int, offset: int) -> None:
        with self._lock:
            marks = self._files.setdefault(_version(status), [])
            self._files.move_to_end(_version(status))
            index = bisect_right(marks, (line, offset))
            if not index or marks[index - 1] != (line, offset):
                marks.insert(index, (line, offset))
            if len(marks) > _MOST_MARKS:
                del marks[::2]
            while len(self._files) > _MOST_FILES:
                self._files.popitem(last=False)


def read_part(place: Readable, part: Part, index: LineIndex, stop: Stop) -> TextSlice:
    """The wanted lines of the text file at `place`, or of the text of a document, at most a page of them.

    Raises:
        Invalid: the file is binary.
        Problem: it can't be opened.
    """
    with open_content(place, stop) as (file, taken):
        lines = Lines(place, file, stop, taken)
        return _page(lines, part, index) if part.tail is None else _tail(lines, part, part.tail, index)


def read_parts(files: Sequence[Named], part: Part, index: LineIndex, stop: Stop) -> FileSlices:
    """The beginnings of several files, or lines of them, each with its own outcome, within one page altogether.

    What a short file leaves of its share goes to those after it.
    """
    left, outcomes = part.max_bytes, list[tuple[str, TextSlice | Problem]]()
    for number, file in enumerate(files):
        stop.check()
        share = left // (len(files) - number)
        try:
            if not share:
                raise TooLarge(f"`max_bytes` leaves nothing for {quote(file.name)}.", "Raise it, or name fewer files.")
            piece = _read_named(file, Part(max_bytes=share, numbers=part.numbers, hashed=False), index, stop)
        except Problem as problem:
            outcomes.append((file.name, problem))
            continue
        left = max(0, left - piece.bytes_shown)
        outcomes.append((file.name, piece))
    return FileSlices(tuple(outcomes))


def _read_named(file: Named, part: Part, index: LineIndex, stop: Stop) -> TextSlice:
    try:
        if isinstance(file.place, Problem):
            raise file.place
        if file.place is not None:
            return read_part(file.place, part, index, stop)
    except Problem:
        if file.lines is None:
            raise
    assert file.lines is not None
    place, first, last = file.lines
    wanted = replace(part, tail=-first) if first < 0 else replace(part, start_line=first, end_line=last)
    return read_part(place, wanted, index, stop)


def _page(lines: Lines, part: Part, index: LineIndex) -> TextSlice:
    line, offset = index.before(lines.status, part.start_line) or (1, lines.start)
    skipped, offset = lines.skip(offset, part.start_line - line)
    has_line = offset < lines.size or part.start_line == 1
    if line + skipped < part.start_line or not has_line:
        total = lines.total if lines.total is not None else lines.count(lines.start, lines.size)
        return _beyond(lines, part, total, index)
    if part.end_line is not None and part.end_line < part.start_line:
        raise Invalid("`end_line` lies before `start_line`.", "Leave it out to read on from `start_line`.")
    begin = _column(lines, offset, part) if part.start_column > 1 else offset
    piece = _taken(lines, begin, begin - offset + 1, part.start_line, part, index)
    if piece.next_line is not None:
        index.learn(lines.status, piece.next_line, begin + piece.bytes_shown)
    index.learn(lines.status, part.start_line, offset)
    return piece


def _beyond(lines: Lines, part: Part, total: int, index: LineIndex) -> TextSlice:
    """The answer for a line that is not there, as in a log that may grow."""
    return TextSlice(
        path=lines.path,
        body="",
        encoding=lines.spelling,
        first=part.start_line,
        last=None,
        total=total,
        size=lines.size,
        bytes_shown=0,
        column=1,
        end_line=part.end_line,
        next_line=None,
        next_column=None,
        following=None,
        lines_shown=0,
        lines_asked=None,
        replaced=False,
        unterminated=False,
        hash=index.hash_of(lines) if part.hashed else None,
    )


def _column(lines: Lines, offset: int, part: Part) -> int:
    """Where the part's first column lies, in the line at `offset`."""
    begin = offset + part.start_column - 1
    end = lines.line_end(offset, min(begin, lines.size))
    if end is None and begin < lines.size:
        return lines.boundary(offset, begin)
    end = lines.size if end is None else end
    after = f", or `start_line={part.start_line + 1}`" if end < lines.size else ""
    raise Invalid(
        f"Line {part.start_line} of {quote(lines.path)} has {counted(end - offset, 'byte')}.",
        f"Use a smaller `start_column`{after}.",
    )


def _tail(lines: Lines, part: Part, wanted: int, index: LineIndex) -> TextSlice:
    """The last lines; when they are more than a page, the last of them, and of one line its end."""
    begin, held = lines.size, 0
    numbered = lines.total is not None or part.numbers
    for at, begins in lines.backwards():
        # Where a line of more than a page begins matters only to who can tell its number.
        if lines.size - at > part.max_bytes and (held or not (begins or numbered)):
            break
        if begins:
            begin, held = at, held + 1
            if held == wanted:
                break
    first = lines.count(lines.start, begin) + 1 if numbered else None
    part = replace(part, end_line=None)
    if held and lines.size - begin <= part.max_bytes:
        return _taken(lines, begin, 1, first, part, index, None if held == wanted or begin == lines.start else wanted)
    cut = lines.boundary(begin if held else lines.start, lines.size - part.max_bytes)
    return _taken(lines, cut, cut - begin + 1 if held else None, first, part, index, wanted)


def _taken(
    lines: Lines,
    begin: int,
    column: int | None,
    first: int | None,
    part: Part,
    index: LineIndex,
    asked: int | None = None,
) -> TextSlice:
    """A page from `begin` on: the byte `column` of the line `first`, as far as they are known."""
    data = lines.at(begin, part.max_bytes + LONGEST_CHARACTER)
    limit = min(len(data), part.max_bytes)
    if 0 < limit < LONGEST_CHARACTER:
        limit = lines.whole_characters(data, limit)
    at_end = limit == len(data) < part.max_bytes + LONGEST_CHARACTER
    ended = lines.held(data, begin, limit)
    wanted = None if part.end_line is None else part.end_line - part.start_line + 1
    complete, more = True, False
    if wanted is not None and ended >= wanted:
        shown, ended = lines.nth_end(data, begin, wanted), wanted
    elif at_end:
        shown = limit
    else:
        shown, more = lines.last_end(data, begin, limit), True
        if not shown:
            shown, complete = lines.whole_characters(data, limit), False
    page = data if shown == len(data) else data[:shown]
    if lines.binary and not is_text(page):
        raise lines.is_binary()
    text = page.decode(lines.encoding.name, "replace")
    held = ended + (bool(text) and not text.endswith("\n"))
    to_end = at_end and shown == len(data)
    last = None if first is None else first + max(held, 1) - 1
    total = last if to_end and text and last is not None else lines.total
    whole = to_end and begin == lines.start
    following = None
    if not complete and last is not None and wanted != 1 and lines.goes_on(begin + shown):
        following = last + 1
    if lines.binary:
        text = _NULS.sub(lambda found: f"[{len(found[0]):,} NUL bytes]", text)
    return TextSlice(
        path=lines.path,
        body=_numbered(text, first) if part.numbers and first is not None else text,
        encoding=lines.spelling,
        first=first,
        last=last,
        total=total,
        size=lines.size,
        bytes_shown=shown,
        column=column,
        end_line=part.end_line,
        next_line=last + 1 if more and complete and last is not None else None,
        next_column=None if complete or column is None else column + shown,
        following=following,
        lines_shown=held,
        lines_asked=asked,
        replaced="\ufffd" in text and "\ufffd".encode(lines.encoding.name, "replace") not in data,
        unterminated=to_end and bool(text) and not text.endswith("\n"),
        hash=index.hash_of(lines, lines.at(0, lines.start) + data if whole else None) if part.hashed else None,
    )


def _version(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _is_settled(status: os.stat_result, opened_ns: int) -> bool:
    """Whether a change after `opened_ns` would show in the times: kernels stamp by ticks, some file systems by 2 s."""
    changed = max(status.st_mtime_ns, status.st_ctime_ns)
    return opened_ns - changed > (_TICK_NS if changed % 1_000_000_000 else _LONG_TICK_NS)


def _numbered(text: str, first: int) -> str:
    # Not splitlines: form feeds and the like are not line ends here, as for every editor.
    return "".join(f"{number}\t{line}" for number, line in enumerate(_split(text), first))


def _split(text: str) -> list[str]:
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]
