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

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, Problem, TooLarge, quote
from mcp_fs.engine.documents.source import open_content
from mcp_fs.engine.text.encodings import content_hash, is_text
from mcp_fs.engine.text.lines import MAX_CHARACTER_BYTES, Lines
from mcp_fs.models import FileSlices, FileTexts, TextSlice, pluralize
from mcp_fs.policy import ReadablePath

__all__ = ["MAX_PAGE_BYTES", "LineIndex", "NamedFile", "PageRequest", "read_page", "read_pages", "read_whole"]

_MAX_HASHED_BYTES = 8 * 1024 * 1024  # takes about as many milliseconds, once for each version of a file
_QUICKLY_HASHED_BYTES = 64 * 1024  # hashed in less time than it takes to be sure of a hash that is known
_TICK_NS = 20_000_000
_LONG_TICK_NS = 2_000_000_000
_NULS = re.compile("\0+")
# Files whose lines are known, and offsets known in one of them.
_MAX_FILES = 64
_MAX_MARKS = 1024
MAX_PAGE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which lines of a file are wanted.

    Attributes:
        start_line: first line, from 1.
        start_column: byte of that line to begin with, from 1.
        end_line: last line, included; None for as many as fit.
        tail: this many last lines instead.
        max_bytes: bytes of the file in one answer.
        line_numbers: whether each line begins with its number and a tab.
        with_hash: whether the answer tells the hash of the whole file.
    """

    start_line: int = 1
    start_column: int = 1
    end_line: int | None = None
    tail: int | None = None
    max_bytes: int = DEFAULT_PAGE_BYTES
    line_numbers: bool = False
    with_hash: bool = True

    @property
    def line_count(self) -> int | None:
        """How many lines are wanted; None for as many as fit."""
        if self.end_line is None:
            return None
        return self.end_line - self.start_line + 1


class NamedFile(NamedTuple):
    """One of several files to read.

    Attributes:
        name: as the caller spells it.
        place: what that names, or why it names nothing; None when it can only be `line_range`.
        line_range: what else it may mean, as `a.py:10-40` does: a file, its first line (negative: so many last lines),
            the last.
    """

    name: str
    place: ReadablePath | Problem | None
    line_range: tuple[ReadablePath, int, int | None] | None = None


class LineIndex:
    """Where lines begin in files read lately, so that the next page of a large file is found at once.

    A file that was changed has other times or another size and is counted anew. The hash of one that was changed just
    now is not remembered: it may change again within the same tick of its clock. Thread-safe.
    """

    def __init__(self) -> None:
        self._files: OrderedDict[tuple[int, ...], list[tuple[int, int]]] = OrderedDict()
        self._hashes: OrderedDict[tuple[int, ...], str] = OrderedDict()
        self._lock = threading.Lock()

    def find_before(self, status: os.stat_result, line: int) -> tuple[int, int] | None:
        """Return the nearest known (line, byte offset) at or before `line`."""
        with self._lock:
            marks = self._files.get(_file_version(status), [])
            index = bisect_right(marks, (line, 1 << 62))
            if not index:
                return None
            return marks[index - 1]

    def hash_of(self, lines: Lines, contents: bytes | None = None) -> str | None:
        """Return the hash of the whole file, so that a page of it can be edited; None for one too large for that.

        None also when it has changed meanwhile, or was taken out of another: the page is not of what would be hashed.

        Args:
            contents: what was read of it, if that is all.
        """
        if lines.extracted_from is not None:
            return None
        if contents is None and lines.size > _MAX_HASHED_BYTES:
            return None
        if contents is not None and len(contents) <= _QUICKLY_HASHED_BYTES:
            return content_hash(contents)
        return self._known_hash(lines) or self._compute_hash(lines, contents)

    def _known_hash(self, lines: Lines) -> str | None:
        version = _file_version(lines.status)
        if not _is_still(lines, version):
            return None
        with self._lock:
            return self._hashes.get(version)

    def _compute_hash(self, lines: Lines, contents: bytes | None) -> str | None:
        """Return the hash of `contents`, or of the file; remember it if the file can't change unseen."""
        version = _file_version(lines.status)
        if contents is None:
            new_hash = content_hash(lines.read_at(0, _MAX_HASHED_BYTES + 1))
            if not _is_still(lines, version):
                return None
        else:
            new_hash = content_hash(contents)
        if _is_still(lines, version) and _is_settled(lines.status, lines.opened_ns):
            self._remember_hash(version, new_hash)
        return new_hash

    def _remember_hash(self, version: tuple[int, ...], new_hash: str) -> None:
        with self._lock:
            self._hashes[version] = new_hash
            while len(self._hashes) > _MAX_FILES:
                self._hashes.popitem(last=False)

    def learn(self, status: os.stat_result, line: int, offset: int) -> None:
        with self._lock:
            marks = self._files.setdefault(_file_version(status), [])
            self._files.move_to_end(_file_version(status))
            index = bisect_right(marks, (line, offset))
            if not index or marks[index - 1] != (line, offset):
                marks.insert(index, (line, offset))
            if len(marks) > _MAX_MARKS:
                del marks[::2]
            while len(self._files) > _MAX_FILES:
                self._files.popitem(last=False)


def read_page(path: ReadablePath, request: PageRequest, index: LineIndex, cancel: CancelToken) -> TextSlice:
    """Return the wanted lines of the text file at `path`, or of the text of a document, at most a page of them.

    Raises:
        Invalid: the file is binary.
        Problem: it can't be opened.
    """
    with open_content(path, cancel) as (file, extracted_from):
        lines = Lines(path, file, cancel, extracted_from)
        if request.tail is None:
            return _read_from_line(lines, request, index)
        return _read_tail(lines, request, request.tail, index)


def read_pages(files: Sequence[NamedFile], request: PageRequest, index: LineIndex, cancel: CancelToken) -> FileSlices:
    """Return the beginnings of several files, or lines of them, each with its own outcome, within one page altogether.

    What a short file leaves of its share goes to those after it.
    """
    remaining_bytes = request.max_bytes
    outcomes = list[tuple[str, TextSlice | Problem]]()
    for number, file in enumerate(files):
        cancel.check()
        share = remaining_bytes // (len(files) - number)
        try:
            if not share:
                raise TooLarge(f"`max_bytes` leaves nothing for {quote(file.name)}.", "Raise it, or name fewer files.")
            page = _read_named(
                file, PageRequest(max_bytes=share, line_numbers=request.line_numbers, with_hash=False), index, cancel
            )
        except Problem as problem:
            outcomes.append((file.name, problem))
            continue
        remaining_bytes = max(0, remaining_bytes - page.bytes_shown)
        outcomes.append((file.name, page))
    return FileSlices(tuple(outcomes))


def read_whole(files: Sequence[NamedFile], line_numbers: bool, index: LineIndex, cancel: CancelToken) -> FileTexts:
    """Return several files, or lines of them, with nothing cut.

    Raises:
        TooLarge: they are more than can be returned.
        Problem: none of them can be read.
    """
    remaining_bytes = MAX_PAGE_BYTES
    texts: list[TextSlice] = []
    failures: list[tuple[str, Problem]] = []
    for file in files:
        cancel.check()
        request = PageRequest(max_bytes=max(remaining_bytes, 1), line_numbers=line_numbers, with_hash=False)
        try:
            page = _read_named(file, request, index, cancel)
        except Problem as problem:
            failures.append((file.name, problem))
            continue
        if page.is_cut:
            raise TooLarge(f"The files have more than {MAX_PAGE_BYTES:,} bytes.", "Read some after the others.")
        remaining_bytes -= page.bytes_shown
        texts.append(page)
    if not texts and failures:
        raise failures[0][1]
    return FileTexts(texts, failures)


def _read_named(file: NamedFile, request: PageRequest, index: LineIndex, cancel: CancelToken) -> TextSlice:
    try:
        if isinstance(file.place, Problem):
            raise file.place
        if file.place is not None:
            return read_page(file.place, request, index, cancel)
    except Problem:
        if file.line_range is None:
            raise
    assert file.line_range is not None
    path, first, last = file.line_range
    if first < 0:
        line_request = replace(request, tail=-first)
    else:
        line_request = replace(request, start_line=first, end_line=last)
    return read_page(path, line_request, index, cancel)


def _read_from_line(lines: Lines, request: PageRequest, index: LineIndex) -> TextSlice:
    """Return the page that begins at the line and the column that were asked for."""
    known_line, offset = index.find_before(lines.status, request.start_line) or (1, lines.start)
    skipped, offset = lines.skip_lines(offset, request.start_line - known_line)
    has_line = offset < lines.size or request.start_line == 1
    if known_line + skipped < request.start_line or not has_line:
        return _missing_line(lines, request, index)
    if request.end_line is not None and request.end_line < request.start_line:
        raise Invalid("`end_line` lies before `start_line`.", "Leave it out to read on from `start_line`.")
    begin = _PageBegin(offset, request.start_line, 1)
    if request.start_column > 1:
        column_offset = _find_column(lines, offset, request)
        begin = _PageBegin(column_offset, request.start_line, column_offset - offset + 1)
    page = _read_lines(lines, begin, request, index)
    if page.next_line is not None:
        index.learn(lines.status, page.next_line, begin.offset + page.bytes_shown)
    index.learn(lines.status, request.start_line, offset)
    return page


def _missing_line(lines: Lines, request: PageRequest, index: LineIndex) -> TextSlice:
    """Return the answer for a line that is not there, as in a log that may grow."""
    total_lines = lines.total_lines
    if total_lines is None:
        total_lines = lines.count_lines(lines.start, lines.size)
    content_digest = None
    if request.with_hash:
        content_digest = index.hash_of(lines)
    return TextSlice(
        path=lines.path,
        body="",
        encoding=lines.encoding_label,
        first_line=request.start_line,
        last_line=None,
        total_lines=total_lines,
        size=lines.size,
        bytes_shown=0,
        column=1,
        end_line=request.end_line,
        next_line=None,
        next_column=None,
        line_after_cut=None,
        lines_shown=0,
        requested_tail=None,
        has_undecodable=False,
        lacks_final_newline=False,
        hash=content_digest,
    )


def _find_column(lines: Lines, offset: int, request: PageRequest) -> int:
    """Return where the part's first column lies, in the line at `offset`."""
    begin = offset + request.start_column - 1
    end = lines.find_line_end(offset, min(begin, lines.size))
    if end is None and begin < lines.size:
        return lines.find_character_boundary(offset, begin)
    if end is None:
        end = lines.size
    next_line = ""
    if end < lines.size:
        next_line = f", or `start_line={request.start_line + 1}`"
    raise Invalid(
        f"Line {request.start_line} of {quote(lines.path)} has {pluralize(end - offset, 'byte')}.",
        f"Use a smaller `start_column`{next_line}.",
    )


def _read_tail(lines: Lines, request: PageRequest, count: int, index: LineIndex) -> TextSlice:
    """Return the last lines; when they are more than a page, the last of them, and of one line its end."""
    is_numbered = lines.total_lines is not None or request.line_numbers
    tail = _find_tail(lines, request, count, is_numbered=is_numbered)
    first_line = None
    if is_numbered:
        first_line = lines.count_lines(lines.start, tail.offset) + 1
    request = replace(request, end_line=None)
    if not tail.line_count:
        cut = lines.find_character_boundary(lines.start, lines.size - request.max_bytes)
        return _read_lines(lines, _PageBegin(cut, first_line, None), request, index, count)
    if lines.size - tail.offset > request.max_bytes:
        cut = lines.find_character_boundary(tail.offset, lines.size - request.max_bytes)
        return _read_lines(lines, _PageBegin(cut, first_line, cut - tail.offset + 1), request, index, count)
    begin = _PageBegin(tail.offset, first_line, 1)
    if tail.line_count == count or tail.offset == lines.start:
        return _read_lines(lines, begin, request, index)
    return _read_lines(lines, begin, request, index, count)


def _find_tail(lines: Lines, request: PageRequest, count: int, *, is_numbered: bool) -> _Tail:
    """Return the last `count` lines, or as many of them as fit on a page."""
    tail = _Tail(lines.size, 0)
    for offset, begins_line in lines.iterate_backwards():
        # Where a line of more than a page begins matters only to who can tell its number.
        is_beyond_page = lines.size - offset > request.max_bytes
        if is_beyond_page and (tail.line_count or not (begins_line or is_numbered)):
            return tail
        if begins_line:
            tail = _Tail(offset, tail.line_count + 1)
            if tail.line_count == count:
                return tail
    return tail


class _Tail(NamedTuple):
    """Lines at the end of a file.

    Attributes:
        offset: byte that the first of them begins at.
        line_count: how many they are; 0 if the last line has no known beginning.
    """

    offset: int
    line_count: int


@dataclass(frozen=True, slots=True)
class _PageBegin:
    """Where a page begins, as far as it is known.

    Attributes:
        offset: byte of the file.
        line: number of the line that this byte lies in; None in a large file that was read from its end.
        column: byte of that line, from 1; None if the beginning of the line is not known.
    """

    offset: int
    line: int | None
    column: int | None


@dataclass(frozen=True, slots=True)
class _Extent:
    """How much of the data that was read goes into a page.

    Attributes:
        size: bytes.
        line_ends: lines that end in them.
        reaches_file_end: whether nothing of the file follows.
        has_more: whether more of what was asked for follows.
        cuts_line: whether the page ends within a line.
    """

    size: int
    line_ends: int
    reaches_file_end: bool = False
    has_more: bool = False
    cuts_line: bool = False


@dataclass(frozen=True, slots=True)
class _NextPage:
    """Where the page after one begins; nothing is known of it by default.

    Attributes:
        line: the line that it begins with; None where the page before ends within a line.
        column: byte of the line that was cut, from 1.
        line_after_cut: the line behind the one that was cut.
    """

    line: int | None = None
    column: int | None = None
    line_after_cut: int | None = None


def _read_lines(
    lines: Lines, begin: _PageBegin, request: PageRequest, index: LineIndex, requested_tail: int | None = None
) -> TextSlice:
    """Return the page that begins at `begin`."""
    data = lines.read_at(begin.offset, request.max_bytes + MAX_CHARACTER_BYTES)
    extent = _measure_page(lines, data, begin.offset, request)
    text = _decode_page(lines, data, extent)
    is_unterminated = bool(text) and not text.endswith("\n")
    line_count = extent.line_ends + is_unterminated
    last_line = None
    if begin.line is not None:
        last_line = begin.line + max(line_count, 1) - 1
    total_lines = lines.total_lines
    if extent.reaches_file_end and text and last_line is not None:
        total_lines = last_line
    following = _find_next_page(lines, begin, extent, request, last_line)
    content_digest = None
    if request.with_hash:
        content_digest = _hash_of_file(lines, begin, extent, data, index)
    return TextSlice(
        path=lines.path,
        body=_format_page(lines, text, begin, request),
        encoding=lines.encoding_label,
        first_line=begin.line,
        last_line=last_line,
        total_lines=total_lines,
        size=lines.size,
        bytes_shown=extent.size,
        column=begin.column,
        end_line=request.end_line,
        next_line=following.line,
        next_column=following.column,
        line_after_cut=following.line_after_cut,
        lines_shown=line_count,
        requested_tail=requested_tail,
        has_undecodable="\ufffd" in text and "\ufffd".encode(lines.encoding.name, "replace") not in data,
        lacks_final_newline=extent.reaches_file_end and is_unterminated,
        hash=content_digest,
    )


def _decode_page(lines: Lines, data: bytes, extent: _Extent) -> str:
    """Return the text of the page that `data` begins with.

    Raises:
        Invalid: it is binary.
    """
    page = data
    if extent.size < len(data):
        page = data[: extent.size]
    if lines.binary and not is_text(page):
        raise lines.binary_error()
    return page.decode(lines.encoding.name, "replace")


def _find_next_page(
    lines: Lines, begin: _PageBegin, extent: _Extent, request: PageRequest, last_line: int | None
) -> _NextPage:
    """Return where the page after this one begins, as far as its lines are numbered."""
    if not extent.cuts_line:
        if last_line is None or not extent.has_more:
            return _NextPage()
        return _NextPage(line=last_line + 1)
    column = None
    if begin.column is not None:
        column = begin.column + extent.size
    is_one_line = request.line_count == 1
    if last_line is None or is_one_line or not lines.has_next_line(begin.offset + extent.size):
        return _NextPage(column=column)
    return _NextPage(column=column, line_after_cut=last_line + 1)


def _hash_of_file(lines: Lines, begin: _PageBegin, extent: _Extent, data: bytes, index: LineIndex) -> str | None:
    """Return the hash of the file that a page is of, from `data` where that is all of it."""
    if not extent.reaches_file_end or begin.offset != lines.start:
        return index.hash_of(lines)
    return index.hash_of(lines, lines.read_at(0, lines.start) + data)


def _format_page(lines: Lines, text: str, begin: _PageBegin, request: PageRequest) -> str:
    """Return the text of a page as it is shown."""
    if lines.binary:
        text = _NULS.sub(lambda match: f"[{len(match[0]):,} NUL bytes]", text)
    if request.line_numbers and begin.line is not None:
        return _number_lines(text, begin.line)
    return text


def _measure_page(lines: Lines, data: bytes, offset: int, request: PageRequest) -> _Extent:
    """Return how much of `data`, which begins at `offset` of the file, is the page that was asked for."""
    limit = min(len(data), request.max_bytes)
    if 0 < limit < MAX_CHARACTER_BYTES:
        limit = lines.count_whole_characters(data, limit)
    reaches_file_end = limit == len(data) < request.max_bytes + MAX_CHARACTER_BYTES
    line_ends = lines.count_ends(data, offset, limit)
    if request.line_count is not None and line_ends >= request.line_count:
        size = lines.nth_end(data, offset, request.line_count)
        return _Extent(size, request.line_count, reaches_file_end=reaches_file_end and size == len(data))
    if reaches_file_end:
        return _Extent(limit, line_ends, reaches_file_end=True)
    size = lines.last_end(data, offset, limit)
    if size:
        return _Extent(size, line_ends, has_more=True)
    return _Extent(lines.count_whole_characters(data, limit), line_ends, has_more=True, cuts_line=True)


def _file_version(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _is_still(lines: Lines, version: tuple[int, ...]) -> bool:
    """Return whether an open file has not changed since it had this version."""
    return _file_version(os.fstat(lines.file.fileno())) == version


def _is_settled(status: os.stat_result, opened_ns: int) -> bool:
    """Return whether a change after `opened_ns` would show in the times.

    Kernels stamp them by ticks, some file systems by two seconds.
    """
    changed = max(status.st_mtime_ns, status.st_ctime_ns)
    tick = _LONG_TICK_NS
    if changed % 1_000_000_000:
        tick = _TICK_NS
    return opened_ns - changed > tick


def _number_lines(text: str, first: int) -> str:
    # Not splitlines: form feeds and the like are not line ends here, as for every editor.
    return "".join(f"{number}\t{line}" for number, line in enumerate(_split_lines(text), first))


def _split_lines(text: str) -> list[str]:
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    if lines[-1]:
        return lines
    return lines[:-1]
