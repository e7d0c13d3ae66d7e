"""The lines of one open file as bytes: where they begin and end, and where a character may be cut.

Whole blocks are counted and searched at once, never line by line: that is the difference between a page of ten
megabytes being found in a millisecond and in a hundred.
"""

from __future__ import annotations

import codecs
import os
import time
from collections.abc import Iterator
from functools import cached_property
from typing import BinaryIO

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, quote
from mcp_fs.engine.text.encodings import SAMPLE_BYTES, Encoding, detect_encoding
from mcp_fs.policy import ReadablePath

__all__ = ["MAX_CHARACTER_BYTES", "Lines"]

# Bytes of one character in any of the encodings.
MAX_CHARACTER_BYTES = 4

_BLOCK_BYTES = 1024 * 1024
_MAX_COUNTED_BYTES = 1024 * 1024  # counting the lines of a file up to this size takes well below a millisecond
_SHORT_READ_BYTES = 4096
_MAX_LOOKAHEAD_BYTES = 64 * _BLOCK_BYTES


class Lines:
    """The lines of one open file.

    Attributes:
        opened_ns: a time of the clock before anything was read of it.
        start: where its first line begins, behind a byte order mark.
        binary: whether it is not text as a whole; a page of it may be.
        extracted_from: what its text was taken out of, if it was: then it is not a file that could be edited.

    Raises:
        Invalid: no part of it is text.
    """

    def __init__(
        self, place: ReadablePath, file: BinaryIO, cancel: CancelToken, extracted_from: str | None = None
    ) -> None:
        self.path = place.display
        self.file = file
        self.cancel = cancel
        self.extracted_from = extracted_from
        self.place = place
        self.opened_ns = time.time_ns()
        self.status = os.fstat(file.fileno())
        sample = self.read_at(0, SAMPLE_BYTES)
        encoding = detect_encoding(sample)
        self.binary = encoding is None
        if encoding is None and b"\0" not in sample:
            raise self.binary_error()
        # With NUL bytes in it, what is asked for may be text all the same: the page tells.
        self.encoding: Encoding = encoding or Encoding("utf-8")
        self.start = len(self.encoding.bom)
        # Files of /proc and the like say 0 and have contents; a file may grow while it is read.
        self.size = max(self.status.st_size, len(sample))

    @property
    def encoding_label(self) -> str:
        """What is shown, for people: the encoding, or what the text was taken out of."""
        if self.extracted_from is None or self.extracted_from.startswith("unpacked"):
            return ", ".join(filter(None, (self.extracted_from, str(self.encoding))))
        return self.extracted_from

    def binary_error(self) -> Invalid:
        return Invalid(f"{quote(self.path)} is binary, {self.status.st_size:,} bytes.", "Use `read_media`.")

    @cached_property
    def total_lines(self) -> int | None:
        """Lines in it; None when counting them would mean reading a large file."""
        if self.size > _MAX_COUNTED_BYTES:
            return None
        return self.count_lines(self.start, self.size)

    def read_at(self, offset: int, length: int) -> bytes:
        """Return the bytes from `offset` on, fewer than `length` only where the file ends."""
        self.file.seek(offset)
        # As much memory as there is to read: for more than that the system would clear all of it each time.
        data = self.file.read(min(length, max(self.status.st_size - offset, 0) + _SHORT_READ_BYTES))
        while data and len(data) < length and (more := self.file.read(length - len(data))):
            data += more
        return data

    # Ends of lines in one block, which begins at `base` in the file; all offsets lie just behind a line feed

    def count_ends(self, block: bytes, base: int, limit: int) -> int:
        """Return how many lines end in the first `limit` bytes of `block`."""
        if self.encoding.unit_bytes == 1:
            return block.count(b"\n", 0, limit)
        return sum(1 for _ in self._find_wide_ends(block, base, limit))

    def nth_end(self, block: bytes, base: int, number: int) -> int:
        """Return where the line `number`, of those that end in `block`, ends in it."""
        if self.encoding.unit_bytes > 1:
            return next(
                end for count, end in enumerate(self._find_wide_ends(block, base, len(block)), 1) if count == number
            )
        low = 0
        high = len(block)
        while high - low > _SHORT_READ_BYTES:
            middle = (low + high) // 2
            before = block.count(b"\n", low, middle)
            if before >= number:
                high = middle
            else:
                low = middle
                number = number - before
        for _ in range(number):
            low = block.find(b"\n", low) + 1
        return low

    def first_end(self, block: bytes, base: int) -> int:
        """Return where the first line that ends in `block` ends; 0 when none does."""
        if self.encoding.unit_bytes == 1:
            return block.find(b"\n") + 1
        return next(self._find_wide_ends(block, base, len(block)), 0)

    def last_end(self, block: bytes, base: int, limit: int) -> int:
        """Return where the last line that ends in the first `limit` bytes of `block` ends; 0 when none does."""
        if self.encoding.unit_bytes == 1:
            return block.rfind(b"\n", 0, limit) + 1
        return next(self._find_ends_backwards(block, base, limit), 0)

    def _find_wide_ends(self, block: bytes, base: int, limit: int) -> Iterator[int]:
        feed = self.encoding.newline
        unit = self.encoding.unit_bytes
        position = block.find(feed, 0, limit)
        while position >= 0:
            following = position + 1
            if not (base + position - self.start) % unit:
                following = position + unit
                yield following
            position = block.find(feed, following, limit)

    def _find_ends_backwards(self, block: bytes, base: int, limit: int) -> Iterator[int]:
        feed = self.encoding.newline
        unit = self.encoding.unit_bytes
        position = block.rfind(feed, 0, limit)
        while position >= 0:
            previous_limit = position + unit - 1
            if not (base + position - self.start) % unit:
                previous_limit = position
                yield position + unit
            position = block.rfind(feed, 0, previous_limit)

    # Lines over the whole file

    def skip_lines(self, offset: int, lines: int) -> tuple[int, int]:
        """Return how many lines were skipped from `offset` on, fewer only at the end of the file, and where that is."""
        skipped = 0
        while skipped < lines:
            self.cancel.check()
            block = self.read_at(offset, _BLOCK_BYTES)
            if not block:
                break
            ends = self.count_ends(block, offset, len(block))
            if skipped + ends >= lines:
                return lines, offset + self.nth_end(block, offset, lines - skipped)
            skipped = skipped + ends
            offset = offset + len(block)
        return skipped, offset

    def count_lines(self, begin: int, end: int) -> int:
        """Return how many lines begin in [begin, end); the last one need not end."""
        ends = 0
        last_begin = begin
        offset = begin
        while offset < end:
            self.cancel.check()
            block = self.read_at(offset, min(_BLOCK_BYTES, end - offset))
            if not block:
                break
            ends += self.count_ends(block, offset, len(block))
            if last_end := self.last_end(block, offset, len(block)):
                last_begin = offset + last_end
            offset += len(block)
        return ends + (last_begin < offset)

    def find_line_end(self, offset: int, until: int) -> int | None:
        """Return where the line at `offset` ends, if it does before `until`."""
        while offset < until:
            self.cancel.check()
            block = self.read_at(offset, min(_BLOCK_BYTES, until - offset))
            if not block:
                break
            if end := self.first_end(block, offset):
                return offset + end
            offset += len(block)
        return None

    def has_next_line(self, offset: int) -> bool:
        """Return whether a line begins behind the one that `offset` lies in, and not too far to look."""
        end = self.find_line_end(offset, offset + _MAX_LOOKAHEAD_BYTES)
        return end is not None and end < self.size

    def iterate_backwards(self) -> Iterator[tuple[int, bool]]:
        """Yield offsets from the end of the file to its beginning, and whether a line begins there, none left out."""
        offset = self.size
        while offset > self.start:
            self.cancel.check()
            base = max(self.start, offset - SAMPLE_BYTES)
            base += -(base - self.start) % self.encoding.unit_bytes
            block = self.read_at(base, offset - base)
            for end in self._find_ends_backwards(block, base, len(block)):
                # A line feed at the very end closes the last line and opens none.
                if base + end != self.size:
                    yield base + end, True
            offset = base
            yield base, base == self.start
        if self.size <= self.start:
            yield self.start, True

    # Characters

    def count_whole_characters(self, data: bytes, limit: int) -> int:
        """Return how many bytes at the beginning of `data` are whole characters: at most `limit`, but one at least."""
        decoder = codecs.getincrementaldecoder(self.encoding.name)("replace")
        decoder.decode(data[:limit])
        complete = limit - len(decoder.getstate()[0])
        while not complete and limit < len(data):
            decoder.decode(data[limit : limit + 1])
            limit += 1
            complete = limit - len(decoder.getstate()[0])
        return complete or len(data)

    def find_character_boundary(self, begin: int, at: int) -> int:
        """Return the first beginning of a character at or behind `at`, in a line that begins at or before `begin`."""
        at += -(at - self.start) % self.encoding.unit_bytes
        decoder = codecs.getincrementaldecoder(self.encoding.name)("replace")
        offset = self._find_certain_boundary(begin, at)
        while offset < at:
            self.cancel.check()
            block = self.read_at(offset, min(_BLOCK_BYTES, at - offset))
            if not block:
                return at
            decoder.decode(block)
            offset += len(block)
        pending = decoder.getstate()[0]
        data = b""
        if pending:
            data = pending + self.read_at(at, MAX_CHARACTER_BYTES)
        # What is begun may be damaged, and the next character begin before it would have ended.
        ends = range(len(pending), len(data) + 1, self.encoding.unit_bytes)
        return at + next((end for end in ends if self._is_boundary(data, end)), len(data)) - len(pending)

    def _is_boundary(self, data: bytes, at: int) -> bool:
        """Return whether a character begins at `at`, given that one begins where `data` does."""
        texts = [part.decode(self.encoding.name, "replace") for part in (data[:at], data[at:], data)]
        return texts[0] + texts[1] == texts[2]

    def _find_certain_boundary(self, begin: int, at: int) -> int:
        """Return an offset at or before `at` where a character is known to begin."""
        if self.encoding.name == "utf-8":
            return self._find_utf8_boundary(begin, at)
        if self.encoding.unit_bytes > 1:
            return max(begin, at - self.encoding.unit_bytes)
        while at > begin:
            base = max(begin, at - _SHORT_READ_BYTES)
            block = self.read_at(base, at - base)
            # No second byte of any encoding of two or four is below that of `0`.
            for distance, byte in enumerate(reversed(block)):
                if byte < 0x30:
                    return at - distance
            at = base
        return begin

    def _find_utf8_boundary(self, begin: int, at: int) -> int:
        """Return where the character before `at` begins; `at` itself where that is not near, as in damaged text."""
        base = max(begin, at - (MAX_CHARACTER_BYTES - 1))
        for distance, byte in enumerate(reversed(self.read_at(base, at - base)), 1):
            if not 0x80 <= byte < 0xC0:
                return at - distance
        return at
