"""The matching lines of one open file, block by block, whatever encoding it is text in."""

from __future__ import annotations

import codecs
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_fs.engine.patterns.regex import LineSearch
from mcp_fs.engine.text.encodings import (
    SAMPLE_BYTES,
    Encoding,
    detect_encoding,
    encoding_from_bom,
    is_text_with_nuls,
    is_utf8,
)
from mcp_fs.models import Match

__all__ = ["MAX_SHOWN_BYTES", "FileMatches", "GrepOptions", "LineSelection", "clip_line", "count_matches", "grep"]

_BLOCK_BYTES = 4 * 1024 * 1024
_MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_SHOWN_BYTES = 300
_SHOWN_BEFORE_MATCH = 80
_LINE_FEED = ord("\n")
# Lines that are shown of a match behind its first.
_MAX_LINES_OF_MATCH = 50

# (text, offset) -> what counts of each match from the offset on.
GroupReader = Callable[[bytes, int], Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class GrepOptions:
    """What is collected of one file.

    Attributes:
        context: lines before and after each match.
        max_matches: matching lines at most.
        after_line: only lines behind this one.
        search_binary: whether a binary file is searched too, as lines of bytes.
        keep_last: whether it is the last `max_matches` lines that are collected.
        multiline: whether a match may go over several lines, of which those behind the first are context.
        max_line_bytes: to which longer lines are cut.
    """

    context: int = 0
    max_matches: int = 1
    after_line: int = 0
    search_binary: bool = False
    keep_last: bool = False
    multiline: bool = False
    max_line_bytes: int = MAX_SHOWN_BYTES


class LineSelection(NamedTuple):
    """Lines that are chosen for a page.

    Attributes:
        match_count: matching lines among them.
        is_cut: whether some matching lines were left out.
    """

    lines: Sequence[Match]
    match_count: int
    is_cut: bool


@dataclass(slots=True)
class FileMatches:
    """What a file holds of a search.

    Attributes:
        lines: matching lines and their context, in order.
        has_more: whether more lines match than were wanted.
        too_long: whether a line longer than 64 MiB was not searched, or as large a file over several lines.
        is_binary: whether it is not text and was not searched.
    """

    lines: list[Match] = field(default_factory=list[Match])
    has_more: bool = False
    too_long: bool = False
    is_binary: bool = False

    def select_first(self, max_matches: int, max_bytes: int) -> LineSelection:
        """Return the first lines: at most so many matches and bytes, but for one match.

        The context that follows the last match is kept with it.
        """
        match_count = 0
        end = 0
        for index, line in enumerate(self.lines):
            if line.is_match:
                if match_count == max_matches or (match_count and max_bytes < 0):
                    return LineSelection(self.lines[:end], match_count, is_cut=True)
                match_count += 1
                end = index + 1
            elif end == index and match_count and line.line == self.lines[index - 1].line + 1:
                end = index + 1
            max_bytes -= len(line.text)
        return LineSelection(self.lines, match_count, is_cut=False)

    def select_last(self, max_bytes: int, context: int) -> LineSelection:
        """Return the last lines: at most so many bytes, but for one match."""
        match_count = 0
        for line in reversed(self.lines):
            max_bytes -= len(line.text)
            if match_count and max_bytes < 0:
                return LineSelection(_keep_last(self.lines, match_count, context), match_count, is_cut=True)
            if line.is_match:
                match_count += 1
        return LineSelection(self.lines, match_count, is_cut=False)


def grep(
    fd: int,
    find: LineSearch,
    options: GrepOptions,
    cancel: CancelToken,
    may_match: Callable[[bytes], bool] = lambda text: True,
) -> FileMatches:
    """Return the matching lines of an open file; none of a binary one.

    Its first 64 KiB tell what encoding a file is in, as when it is read. NUL bytes of what is text otherwise, as a log
    has where it was cut while a program wrote it, are passed over.

    Args:
        may_match: asked with bytes of a file that is not UTF-8 before its encoding is looked for.

    Raises:
        OSError: it can't be read.
    """
    collector = _LineCollector(find, options, cancel)
    matches = collector.matches
    reader = _BlockReader(fd, matches, cancel, may_match, search_binary=options.search_binary)
    for block in reader.read(as_one_block=options.multiline):
        cancel.check()
        collector.add_block(block)
        if collector.is_full:
            break
    return collector.finish()


class _LineCollector:
    """Collects the matching lines of one file, and the lines around them, block by block.

    Attributes:
        matches: what is collected.
        is_full: whether there are as many matches as were wanted, and one more.
    """

    def __init__(self, find: LineSearch, options: GrepOptions, cancel: CancelToken) -> None:
        self.matches = FileMatches()
        self.is_full = False
        self._find = find
        self._options = options
        self._cancel = cancel
        self._match_count = 0
        self._due_context = 0  # lines to show behind the last match
        self._block_line = 1  # number of the first line of the block
        self._last_block = b""
        self._last_lines: list[tuple[int, bytes]] = []  # the end of the block before, as context of what follows

    def add_block(self, block: bytes) -> None:
        """Search a block of whole lines."""
        options = self._options
        self._block_line += self._last_block.count(b"\n")
        self._last_block = block
        position = 0
        line = self._block_line
        shown_until = 0
        while position < len(block):
            span = self._find(block, position)
            begin = _begin_of_match(block, span)
            if self._due_context:
                shown_until = self._add_context_after(block, position, begin, line, shown_until)
            if span is None or begin == len(block):
                break
            line += block.count(b"\n", position, begin)
            end = _end_of_match(block, span)
            matching_lines = self._split_match(block[begin:end])
            if line > options.after_line:
                self._make_room()
                if self.is_full:
                    return
                if options.context:
                    self._add_context_before(block, begin, line, shown_until)
                self._add_match(line, matching_lines, span[0] - begin)
            line += len(matching_lines)
            position = end + 1
            shown_until = position
        if options.context:
            self._remember_last_lines(block)

    def finish(self) -> FileMatches:
        """Return what was collected, no more than was wanted."""
        options = self._options
        if self._match_count > options.max_matches:
            self.matches.lines = _keep_last(self.matches.lines, options.max_matches, options.context)
            self.matches.has_more = True
        return self.matches

    def _make_room(self) -> None:
        """Note that there is a match too many, or forget the first half where the last ones are wanted."""
        options = self._options
        if self._match_count == options.max_matches and not options.keep_last:
            self.matches.has_more = True
            self.is_full = True
        elif self._match_count == 2 * options.max_matches:
            self.matches.lines = _keep_last(self.matches.lines, options.max_matches, options.context)
            self.matches.has_more = True
            self._match_count = options.max_matches

    def _split_match(self, text: bytes) -> list[bytes]:
        """Return the lines that a match goes over."""
        if not self._options.multiline:
            return [text]
        self._cancel.check()  # a block is the whole file
        return text.split(b"\n")

    def _add_context_after(self, block: bytes, position: int, begin: int, line: int, shown_until: int) -> int:
        """Add the lines behind the last match, up to the next at `begin`; return where they end.

        Args:
            position: an offset in the block that lies in the line number `line`.
        """
        for offset, text in _lines_between(block, shown_until, begin, self._due_context):
            number = line + block.count(b"\n", position, offset)
            self.matches.lines.append(clip_line(number, text, None, self._options.max_line_bytes))
            self._due_context -= 1
            shown_until = offset + len(text) + 1
        return shown_until

    def _remember_last_lines(self, block: bytes) -> None:
        """Keep the end of a block, as context of a match at the beginning of the next."""
        end_line = self._block_line + block.count(b"\n")
        lines = list(self._last_lines)
        for distance, text in _lines_before(block, len(block), 0, self._options.context):
            lines.append((end_line - distance, text))
        self._last_lines = lines[-self._options.context :]

    def _add_context_before(self, block: bytes, begin: int, line: int, shown_until: int) -> None:
        context = self._options.context
        lines: list[tuple[int, bytes]] = []
        if not shown_until:
            lines += self._last_lines
        for distance, text in _lines_before(block, begin, shown_until, context):
            lines.append((line - distance, text))
        known_line = self._options.after_line
        if self.matches.lines:
            known_line = max(self.matches.lines[-1].line, known_line)
        for number, text in lines[-context:]:
            if number > known_line:
                self.matches.lines.append(clip_line(number, text, None, self._options.max_line_bytes))

    def _add_match(self, line: int, matching_lines: list[bytes], offset: int) -> None:
        lines = self.matches.lines
        lines.append(clip_line(line, matching_lines[0], offset, self._options.max_line_bytes))
        following = matching_lines[1:]
        if len(following) > _MAX_LINES_OF_MATCH:
            omitted = len(following) - _MAX_LINES_OF_MATCH
            following = [*following[:_MAX_LINES_OF_MATCH], b"... %d more lines of this match" % omitted]
        for number, text in enumerate(following, line + 1):
            lines.append(clip_line(number, text, None, self._options.max_line_bytes))
        self._match_count += 1
        self._due_context = self._options.context


def _keep_last(lines: Sequence[Match], count: int, context: int) -> list[Match]:
    """Return the last `count` matches with what stands around them; a match before those becomes context."""
    matching_numbers = [line.line for line in lines if line.is_match]
    first = matching_numbers[-count]
    last_lines: list[Match] = []
    for line in lines:
        if line.line >= first:
            last_lines.append(line)
        elif line.line >= first - context:
            last_lines.append(replace(line, is_match=False))
    return last_lines


def count_matches(
    fd: int,
    find: LineSearch,
    cancel: CancelToken,
    may_match: Callable[[bytes], bool] = lambda text: True,
    *,
    search_binary: bool = False,
    texts: Counter[bytes] | None = None,
    read_groups: GroupReader | None = None,
    multiline: bool = False,
) -> tuple[int, FileMatches]:
    """Return how many lines match, and what could not be searched; `texts` learns what matched, each match counted.

    Args:
        read_groups: what counts of matching lines, instead of what matched.
        multiline: whether a match may go over several lines; it counts as one.
    """
    matches = FileMatches()
    match_count = 0
    reader = _BlockReader(fd, matches, cancel, may_match, search_binary=search_binary)
    for block in reader.read(as_one_block=multiline):
        cancel.check()
        position = 0
        while position < len(block):
            span = find(block, position)
            if span is None or span[0] >= len(block):
                break
            match_count += 1
            if multiline:
                cancel.check()  # a block is the whole file
                if texts is not None:
                    texts[_text_of_match(block, span, position, read_groups)] += 1
                position = max(span[1], span[0] + 1)
                continue
            position = min(_end_of_match(block, span) + 1, len(block))
            if texts is not None:
                _count_texts_of_line(block, find, span, position, texts, read_groups)
    return match_count, matches


def _text_of_match(block: bytes, span: tuple[int, int], position: int, read_groups: GroupReader | None) -> bytes:
    """Return what counts of the match at `span`, the first from `position` on."""
    if read_groups is None:
        return block[span[0] : span[1]]
    return next(read_groups(block, position), b"")


def _count_texts_of_line(
    block: bytes,
    find: LineSearch,
    span: tuple[int, int],
    line_end: int,
    texts: Counter[bytes],
    read_groups: GroupReader | None,
) -> None:
    """Count the match at `span`, and those that follow in its line; `line_end` lies behind its line feed."""
    if read_groups is not None:
        line_begin = block.rfind(b"\n", 0, span[0]) + 1
        texts.update(read_groups(block[line_begin:line_end].removesuffix(b"\n"), 0))
        return
    next_span: tuple[int, int] | None = span
    while next_span is not None:
        begin, end = next_span
        texts[block[begin:end]] += 1
        next_span = find(block, max(end, begin + 1))
        if next_span is not None and next_span[0] >= line_end:
            return


def _begin_of_match(block: bytes, span: tuple[int, int] | None) -> int:
    """Return where the first line of a match begins; the end of the block if there is none."""
    if span is None:
        return len(block)
    return block.rfind(b"\n", 0, span[0]) + 1


def _end_of_match(block: bytes, span: tuple[int, int]) -> int:
    """Return where the last line of a match ends."""
    begin, end = span
    if begin < end and block[end - 1] == _LINE_FEED:
        end -= 1
    line_end = block.find(b"\n", end)
    if line_end < 0:
        return len(block)
    return line_end


class _BlockReader:
    """Reads an open file for a search.

    Args:
        matches: learns what can't be searched.
        may_match: asked with all bytes of a short file before its encoding is looked for.
    """

    def __init__(
        self,
        fd: int,
        matches: FileMatches,
        cancel: CancelToken,
        may_match: Callable[[bytes], bool],
        *,
        search_binary: bool,
    ) -> None:
        self._fd = fd
        self._matches = matches
        self._cancel = cancel
        self._may_match = may_match
        self._search_binary = search_binary

    def read(self, *, as_one_block: bool) -> Iterator[bytes]:
        """Yield the file as UTF-8 without its mark, in blocks of whole lines ended by line feeds, or as one block."""
        status = os.fstat(self._fd)
        if not stat.S_ISREG(status.st_mode):
            return
        # Whether it is text at all is told before more of it is read.
        sample_size = min(max(status.st_size, 4096), SAMPLE_BYTES) + 1
        data = self._read_sample(sample_size)
        at_end = len(data) < sample_size
        converter = self._choose_converter(data, status.st_size, is_whole=at_end)
        if converter is None:
            return
        data = converter.convert(converter.without_mark(data), is_last=at_end)
        while not at_end:
            end = 0
            if not as_one_block:
                end = data.rfind(b"\n") + 1
            if end:
                yield _with_line_feeds(data[:end])
            elif len(data) > _MAX_LINE_BYTES:
                self._matches.too_long = True
                return
            self._cancel.check()
            chunk = os.read(self._fd, _BLOCK_BYTES)
            at_end = not chunk
            data = data[end:] + converter.convert(chunk, is_last=at_end)
        if data:
            yield _with_line_feeds(data)

    def _read_sample(self, size: int) -> bytes:
        """Return the first `size` bytes of the file, fewer only of one that is shorter."""
        data = os.read(self._fd, size)
        while len(data) < size and (more := os.read(self._fd, size - len(data))):
            data += more
        return data

    def _choose_converter(self, data: bytes, size: int, *, is_whole: bool) -> _Utf8Converter | None:
        """Return what makes UTF-8 of a file that begins with `data`; None of a binary one.

        Args:
            size: of the file.
            is_whole: whether `data` is all of it.
        """
        encoding = None
        if b"\0" in data or not data.isascii():
            encoding = encoding_from_bom(data) or self._detect_without_bom(data, is_whole=is_whole)
        has_stray_nuls = self._matches.is_binary
        drops_nuls = has_stray_nuls and (self._search_binary or is_text_with_nuls(self._fd, size))
        self._matches.is_binary = has_stray_nuls and not drops_nuls
        if self._matches.is_binary:
            return None
        return _Utf8Converter(encoding, drops_nuls=drops_nuls)

    def _detect_without_bom(self, data: bytes, *, is_whole: bool) -> Encoding | None:
        """Return the encoding to decode a file from; None for one that is searched as it is."""
        sample = data[:SAMPLE_BYTES]
        if b"\0" in sample:
            encoding = detect_encoding(sample)
            self._matches.is_binary = encoding is None
            return encoding
        if is_utf8(sample) or (is_whole and not self._may_match(_with_line_feeds(data))):
            return None
        return detect_encoding(sample)


class _Utf8Converter:
    """Makes UTF-8 of the bytes of a file, piece by piece.

    Args:
        encoding: what the file is in; None where its bytes are searched as they are.
        drops_nuls: whether NUL bytes are passed over.
    """

    def __init__(self, encoding: Encoding | None, *, drops_nuls: bool) -> None:
        self._bom = b""
        self._decoder = None
        if encoding is not None:
            self._bom = encoding.bom
        if encoding is not None and encoding.name != "utf-8":
            self._decoder = codecs.getincrementaldecoder(encoding.name)("replace")
        self._drops_nuls = drops_nuls

    def without_mark(self, data: bytes) -> bytes:
        """Return the beginning of the file without its byte order mark."""
        return data[len(self._bom) :]

    def convert(self, data: bytes, *, is_last: bool) -> bytes:
        if self._decoder is not None:
            data = self._decoder.decode(data, is_last).encode("utf-8", "replace")
        if self._drops_nuls:
            # Seventy times as fast as to replace them, where there is nothing else.
            data = data.translate(None, b"\0")
        return data


def _with_line_feeds(data: bytes) -> bytes:
    # Looking for one byte first is ten times as fast as looking for two.
    if b"\r" not in data:
        return data
    return data.replace(b"\r\n", b"\n")


def _lines_between(block: bytes, begin: int, end: int, count: int) -> Iterator[tuple[int, bytes]]:
    """Give (offset, text) of up to `count` lines in [begin, end)."""
    line_start = begin
    while line_start < end and count:
        line_end = block.find(b"\n", line_start, end)
        if line_end < 0:
            line_end = end
        yield line_start, block[line_start:line_end]
        line_start = line_end + 1
        count -= 1


def _lines_before(block: bytes, line_start: int, min_start: int, count: int) -> list[tuple[int, bytes]]:
    """Return (how many lines back, text) of up to `count` lines before the one at `line_start`, from `min_start` on."""
    lines: list[tuple[int, bytes]] = []
    following_start = line_start
    while following_start > min_start and len(lines) < count:
        start = block.rfind(b"\n", 0, following_start - 1) + 1
        lines.append((len(lines) + 1, block[start : following_start - 1]))
        following_start = start
    lines.reverse()
    return lines


def clip_line(line: int, text: bytes, match_offset: int | None, max_bytes: int = MAX_SHOWN_BYTES) -> Match:
    """Return a line as it is shown: cut around the match when it is long."""
    column = None
    line_bytes = len(text)
    if line_bytes > max_bytes:
        begin = max(0, min((match_offset or 0) - _SHOWN_BEFORE_MATCH, line_bytes - max_bytes))
        while begin and 0x80 <= text[begin] < 0xC0:  # within a character
            begin -= 1
        text = text[begin : begin + max_bytes]
        column = begin + 1
    return Match(line, text.decode("utf-8", "replace"), match_offset is not None, column, line_bytes)
