"""The matching lines of one open file, block by block, whatever encoding it is text in."""

from __future__ import annotations

import codecs
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from mcp_batteries.limits import Stop
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

__all__ = ["FileMatches", "count_matches", "grep"]

_BLOCK_BYTES = 4 * 1024 * 1024
_MAX_LINE_BYTES = 64 * 1024 * 1024
_MAX_SHOWN_BYTES = 300
_SHOWN_BEFORE_MATCH = 80
_LINE_FEED = ord("\n")
_MAX_LINES_OF_MATCH = 50
"""Lines that are shown of a match behind its first."""


@dataclass(slots=True)
class FileMatches:
    """What a file holds of a search.

    Attributes:
        lines: matching lines and their context, in order.
        more: whether more lines match than were wanted.
        too_long: whether a line longer than 64 MiB was not searched, or as large a file over several lines.
        binary: whether it is not text and was not searched.
    """

    lines: list[Match] = field(default_factory=list[Match])
    has_more: bool = False
    too_long: bool = False
    is_binary: bool = False

    def take_first(self, matches: int, size: int) -> tuple[Sequence[Match], int, bool]:
        """(lines, matches among them, whether some were cut): at most so many matches and, but for one, bytes.

        The context that follows the last match is kept with it.
        """
        taken = end = 0
        for index, line in enumerate(self.lines):
            if line.is_match:
                if taken == matches or (taken and size < 0):
                    return self.lines[:end], taken, True
                taken, end = taken + 1, index + 1
            elif end == index and taken and line.line == self.lines[index - 1].line + 1:
                end = index + 1
            size -= len(line.text)
        return self.lines, taken, False

    def take_last(self, size: int, context: int) -> tuple[Sequence[Match], int, bool]:
        """(lines, matches among them, whether some were cut): the last ones, but for one of so many bytes."""
        taken = 0
        for line in reversed(self.lines):
            size -= len(line.text)
            if taken and size < 0:
                return _keep_last(self.lines, taken, context), taken, True
            taken += line.is_match
        return self.lines, taken, False


def grep(
    fd: int,
    find: LineSearch,
    context: int,
    max_matches: int,
    after_line: int,
    stop: Stop,
    may_match: Callable[[bytes], bool] = lambda text: True,
    *,
    search_binary: bool = False,
    keep_last: bool = False,
    multiline: bool = False,
) -> FileMatches:
    """The first `most` lines that match, from behind `after_line` on; none in a binary file.

    Its first 64 KiB tell what encoding a file is in, as when it is read. NUL bytes of what is text otherwise, as a log
    has where it was cut while a program wrote it, are passed over.

    Args:
        binary: whether a binary file is searched too, as lines of bytes.
        last: whether it is the last `most` lines.
        several: whether a match may go over several lines, of which those behind the first are context.
        may_match: asked with bytes of a file that is not UTF-8 before its encoding is looked for.

    Raises:
        OSError: it can't be read.
    """
    hits = FileMatches()
    first, count, owed = 1, 0, 0  # number of the block's first line, matches so far, lines still due after the last
    before: list[tuple[int, bytes]] = []  # the last lines of the block before
    earlier = b""
    for block in _read_blocks(fd, hits, stop, may_match, search_binary, as_one_block=multiline):
        stop.check()
        first += earlier.count(b"\n")
        at, line, shown_to, earlier = 0, first, 0, block
        while at < len(block):
            found = find(block, at)
            begin = len(block) if found is None else block.rfind(b"\n", 0, found[0]) + 1
            for offset, text in _lines_between(block, shown_to, begin, owed):
                hits.lines.append(clip_line(line + block.count(b"\n", at, offset), text, None))
                owed, shown_to = owed - 1, offset + len(text) + 1
            if found is None or begin == len(block):
                break
            line += block.count(b"\n", at, begin)
            if multiline:
                stop.check()  # a block is the whole file
            end = _end_of_match(block, found)
            text, *rest = block[begin:end].split(b"\n") if multiline else [block[begin:end]]
            if line > after_line:
                if count == max_matches and not keep_last:
                    hits.has_more = True
                    return hits
                if count == 2 * max_matches:
                    hits.lines, count = _keep_last(hits.lines, max_matches, context), max_matches
                    hits.has_more = True
                if context:
                    near = [*before] if not shown_to else []
                    near += [(line - back, text) for back, text in _lines_before(block, begin, shown_to, context)]
                    known = max(hits.lines[-1].line if hits.lines else 0, after_line)
                    hits.lines += [clip_line(number, text, None) for number, text in near[-context:] if number > known]
                hits.lines.append(clip_line(line, text, found[0] - begin))
                more = [b"... %d more lines of this match" % (len(rest) - _MAX_LINES_OF_MATCH)] * (
                    len(rest) > _MAX_LINES_OF_MATCH
                )
                below = [*rest[:_MAX_LINES_OF_MATCH], *more]
                hits.lines += [clip_line(number, part, None) for number, part in enumerate(below, line + 1)]
                count, owed = count + 1, context
            line, at = line + 1 + len(rest), end + 1
            shown_to = at
        if context:
            lines = first + block.count(b"\n")
            tail = [(lines - back, text) for back, text in _lines_before(block, len(block), 0, context)]
            before = [*before, *tail][-context:]
    if count > max_matches:
        hits.lines, hits.has_more = _keep_last(hits.lines, max_matches, context), True
    return hits


def _keep_last(lines: Sequence[Match], matches: int, context: int) -> list[Match]:
    """So many matches at the end of `lines`, with what stands round them; a match before those is context too."""
    first = [line.line for line in lines if line.is_match][-matches]
    near = [replace(line, is_match=False) for line in lines if first - context <= line.line < first]
    return [*near, *(line for line in lines if line.line >= first)]


def count_matches(
    fd: int,
    find: LineSearch,
    stop: Stop,
    may_match: Callable[[bytes], bool] = lambda text: True,
    *,
    search_binary: bool = False,
    texts: Counter[bytes] | None = None,
    read_groups: Callable[[bytes, int], Iterator[bytes]] | None = None,
    multiline: bool = False,
) -> tuple[int, FileMatches]:
    """How many lines match, and what could not be searched; `texts` learns what matched, each match counted.

    Args:
        taken: what counts of matching lines in place of what matched.
        several: whether a match may go over several lines; it counts as one.
    """
    hits, lines = FileMatches(), 0
    for block in _read_blocks(fd, hits, stop, may_match, search_binary, as_one_block=multiline):
        stop.check()
        at = 0
        while at < len(block) and (found := find(block, at)) is not None:
            begin, end = found
            if begin >= len(block):
                break
            lines += 1
            if multiline:
                stop.check()  # a block is the whole file
                if texts is not None:
                    texts[next(read_groups(block, at), b"") if read_groups else block[begin:end]] += 1
                at = max(end, begin + 1)
                continue
            at = min(_end_of_match(block, found) + 1, len(block))
            if texts is not None and read_groups is not None:
                texts.update(read_groups(block[block.rfind(b"\n", 0, begin) + 1 : at].removesuffix(b"\n"), 0))
                continue
            while texts is not None:
                texts[block[begin:end]] += 1
                again = find(block, max(end, begin + 1))
                if again is None or again[0] >= at:
                    break
                begin, end = again
    return lines, hits


def _end_of_match(block: bytes, found: tuple[int, int]) -> int:
    """Where the last line of a match ends."""
    begin, end = found
    close = block.find(b"\n", end - (begin < end and block[end - 1] == _LINE_FEED))
    return len(block) if close < 0 else close


def _read_blocks(
    fd: int,
    hits: FileMatches,
    stop: Stop,
    may_match: Callable[[bytes], bool],
    search_binary: bool,
    *,
    as_one_block: bool,
) -> Iterator[bytes]:
    """The file as UTF-8 without its mark, in blocks of whole lines ended by plain line feeds, or as one block."""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        return
    # Whether it is text at all is told before more of it is read.
    wanted = min(max(status.st_size, 4096), SAMPLE_BYTES) + 1
    data = os.read(fd, wanted)
    at_end = len(data) < wanted
    encoding, decoder, drop = None, None, False
    if b"\0" in data or not data.isascii():
        encoding = encoding_from_bom(data) or _detect_without_bom(data, hits, may_match if at_end else None)
    if hits.is_binary and (search_binary or is_text_with_nuls(fd, status.st_size)):
        hits.is_binary, drop = False, True
    if hits.is_binary:
        return
    if encoding is not None:
        data = data[len(encoding.bom) :]
        if encoding.name != "utf-8":
            decoder = codecs.getincrementaldecoder(encoding.name)("replace")
            data = decoder.decode(data, at_end).encode("utf-8", "replace")
    if drop:
        data = data.translate(None, b"\0")
    while not at_end:
        end = 0 if as_one_block else data.rfind(b"\n") + 1
        if end:
            yield _with_line_feeds(data[:end])
        elif len(data) > _MAX_LINE_BYTES:
            hits.too_long = True
            return
        stop.check()
        chunk = os.read(fd, _BLOCK_BYTES)
        at_end = not chunk
        if decoder is not None:
            chunk = decoder.decode(chunk, at_end).encode("utf-8", "replace")
        if drop:
            # Seventy times as fast as to replace them, where there is nothing else.
            chunk = chunk.translate(None, b"\0")
        data = data[end:] + chunk
    if data:
        yield _with_line_feeds(data)


def _detect_without_bom(data: bytes, hits: FileMatches, may_match: Callable[[bytes], bool] | None) -> Encoding | None:
    """The encoding to decode the file that begins with `data` from; None for one that is searched as it is."""
    sample = data[:SAMPLE_BYTES]
    if b"\0" in sample:
        encoding = detect_encoding(sample)
        hits.is_binary = encoding is None
        return encoding
    if is_utf8(sample) or (may_match is not None and not may_match(_with_line_feeds(data))):
        return None
    return detect_encoding(sample)


def _with_line_feeds(data: bytes) -> bytes:
    # Looking for one byte first is ten times as fast as looking for two.
    return data.replace(b"\r\n", b"\n") if b"\r" in data else data


def _lines_between(block: bytes, begin: int, end: int, most: int) -> Iterator[tuple[int, bytes]]:
    """(offset, text) of up to `most` lines in [begin, end)."""
    while begin < end and most:
        close = block.find(b"\n", begin, end)
        close = end if close < 0 else close
        yield begin, block[begin:close]
        begin, most = close + 1, most - 1


def _lines_before(block: bytes, begin: int, end: int, most: int) -> list[tuple[int, bytes]]:
    """(how many lines back, text) of up to `most` lines before the one at `begin`, not before `end`, in order."""
    lines: list[tuple[int, bytes]] = []
    while begin > end and len(lines) < most:
        start = block.rfind(b"\n", 0, begin - 1) + 1
        lines.append((len(lines) + 1, block[start : begin - 1]))
        begin = start
    return lines[::-1]


def clip_line(line: int, text: bytes, match_offset: int | None) -> Match:
    """A line as it is shown: cut round the match when it is long."""
    column, size = None, len(text)
    if size > _MAX_SHOWN_BYTES:
        begin = max(0, min((match_offset or 0) - _SHOWN_BEFORE_MATCH, len(text) - _MAX_SHOWN_BYTES))
        while begin and 0x80 <= text[begin] < 0xC0:
            begin -= 1
        text, column = text[begin : begin + _MAX_SHOWN_BYTES], begin + 1
    return Match(line, text.decode("utf-8", "replace"), match_offset is not None, column, size)
