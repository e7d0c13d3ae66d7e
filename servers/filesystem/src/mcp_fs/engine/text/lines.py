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

from mcp_batteries.errors import Invalid, quote
from mcp_batteries.limits import Stop
from mcp_fs.engine.text.encodings import SAMPLE_BYTES, Encoding, sniff
from mcp_fs.policy import Readable

__all__ = ["LONGEST_CHARACTER", "Lines"]

LONGEST_CHARACTER = 4
"""Bytes of one character in any of the encodings."""

_BLOCK = 1024 * 1024
_COUNTED = 1024 * 1024  # counting the lines of a file up to this size takes well below a millisecond
_NEAR = 4096
_FAR = 64 * _BLOCK


class Lines:
    """The lines of one open file.

    Attributes:
        opened_ns: a time of the clock before anything was read of it.
        start: where its first line begins, behind a byte order mark.
        binary: whether it is not text as a whole; a page of it may be.
        taken: what its text was taken out of, if it was: then it is not a file that could be edited.

    Raises:
        Invalid: no part of it is text.
    """

    def __init__(self, place: Readable, file: BinaryIO, stop: Stop, taken: str | None = None) -> None:
        self.path, self.file, self.stop, self.taken = place.display, file, stop, taken
        self.place = place
        self.opened_ns = time.time_ns()
        self.status = os.fstat(file.fileno())
        sample = self.at(0, SAMPLE_BYTES)
        encoding = sniff(sample)
        self.binary = encoding is None
        if encoding is None and b"\0" not in sample:
            raise self.is_binary()
        # With NUL bytes in it, what is asked for may be text all the same: the page tells.
        self.encoding: Encoding = encoding or Encoding("utf-8")
        self.start = len(self.encoding.bom)
        # Files of /proc and the like say 0 and have contents; a file may grow while it is read.
        self.size = max(self.status.st_size, len(sample))

    @property
    def spelling(self) -> str:
        """What is shown, for people: the encoding, or what the text was taken out of."""
        if self.taken is None or self.taken.startswith("unpacked"):
            return ", ".join(filter(None, (self.taken, str(self.encoding))))
        return self.taken

    def is_binary(self) -> Invalid:
        return Invalid(f"{quote(self.path)} is binary, {self.status.st_size:,} bytes.", "Use `read_media`.")

    @cached_property
    def total(self) -> int | None:
        """Lines in it; None when counting them would mean reading a large file."""
        return self.count(self.start, self.size) if self.size <= _COUNTED else None

    def at(self, offset: int, length: int) -> bytes:
        """The bytes from `offset` on, fewer than `length` only where the file ends."""
        self.file.seek(offset)
        # As much memory as there is to read: for more than that the system would clear all of it each time.
        data = self.file.read(min(length, max(self.status.st_size - offset, 0) + _NEAR))
        while data and len(data) < length and (more := self.file.read(length - len(data))):
            data += more
        return data

    # Ends of lines in one block, which begins at `base` in the file; all offsets lie just behind a line feed

    def held(self, block: bytes, base: int, limit: int) -> int:
        """How many lines end in the first `limit` bytes of `block`."""
        if self.encoding.unit == 1:
            return block.count(b"\n", 0, limit)
        return sum(1 for _ in self._wide(block, base, limit))

    def nth_end(self, block: bytes, base: int, number: int) -> int:
        """Where the line `number`, of those that end in `block`, ends in it."""
        if self.encoding.unit > 1:
            return next(end for count, end in enumerate(self._wide(block, base, len(block)), 1) if count == number)
        low, high = 0, len(block)
        while high - low > _NEAR:
            middle = (low + high) // 2
            before = block.count(b"\n", low, middle)
            if before >= number:
                high = middle
            else:
                low, number = middle, number - before
        for _ in range(number):
            low = block.find(b"\n", low) + 1
        return low

    def first_end(self, block: bytes, base: int) -> int:
        """Where the first line that ends in `block` ends; 0 when none does."""
        return block.find(b"\n") + 1 if self.encoding.unit == 1 else next(self._wide(block, base, len(block)), 0)

    def last_end(self, block: bytes, base: int, limit: int) -> int:
        """Where the last line that ends in the first `limit` bytes of `block` ends; 0 when none does."""
        if self.encoding.unit == 1:
            return block.rfind(b"\n", 0, limit) + 1
        return next(self._ends_backwards(block, base, limit), 0)

    def _wide(self, block: bytes, base: int, limit: int) -> Iterator[int]:
        feed, unit = self.encoding.newline, self.encoding.unit
        found = block.find(feed, 0, limit)
        while found >= 0:
            whole = not (base + found - self.start) % unit
            if whole:
                yield found + unit
            found = block.find(feed, found + (unit if whole else 1), limit)

    def _ends_backwards(self, block: bytes, base: int, limit: int) -> Iterator[int]:
        feed, unit = self.encoding.newline, self.encoding.unit
        found = block.rfind(feed, 0, limit)
        while found >= 0:
            whole = not (base + found - self.start) % unit
            if whole:
                yield found + unit
            found = block.rfind(feed, 0, found if whole else found + unit - 1)

    # Lines over the whole file

    def skip(self, offset: int, lines: int) -> tuple[int, int]:
        """(lines skipped, offset behind them), `lines` of them from `offset` unless the file ends."""
        done = 0
        while done < lines:
            self.stop.check()
            block = self.at(offset, _BLOCK)
            if not block:
                break
            held = self.held(block, offset, len(block))
            if done + held >= lines:
                return lines, offset + self.nth_end(block, offset, lines - done)
            done, offset = done + held, offset + len(block)
        return done, offset

    def count(self, begin: int, end: int) -> int:
        """Lines that begin in [begin, end); the last one need not end."""
        held, last, offset = 0, begin, begin
        while offset < end:
            self.stop.check()
            block = self.at(offset, min(_BLOCK, end - offset))
            if not block:
                break
            held += self.held(block, offset, len(block))
            if ended := self.last_end(block, offset, len(block)):
                last = offset + ended
            offset += len(block)
        return held + (last < offset)

    def line_end(self, offset: int, until: int) -> int | None:
        """Where the line at `offset` ends, if it does before `until`."""
        while offset < until:
            self.stop.check()
            block = self.at(offset, min(_BLOCK, until - offset))
            if not block:
                break
            if end := self.first_end(block, offset):
                return offset + end
            offset += len(block)
        return None

    def goes_on(self, offset: int) -> bool:
        """Whether a line begins behind the one that `offset` lies in, and not too far to look."""
        end = self.line_end(offset, offset + _FAR)
        return end is not None and end < self.size

    def backwards(self) -> Iterator[tuple[int, bool]]:
        """Offsets from the end of the file to its beginning, and whether a line begins there; each of those is told."""
        offset = self.size
        while offset > self.start:
            self.stop.check()
            base = max(self.start, offset - SAMPLE_BYTES)
            base += -(base - self.start) % self.encoding.unit
            block = self.at(base, offset - base)
            for end in self._ends_backwards(block, base, len(block)):
                # A line feed at the very end closes the last line and opens none.
                if base + end != self.size:
                    yield base + end, True
            offset = base
            yield base, base == self.start
        if self.size <= self.start:
            yield self.start, True

    # Characters

    def whole_characters(self, data: bytes, limit: int) -> int:
        """How many bytes at the beginning of `data` are whole characters: at most `limit`, but one at least."""
        decoder = codecs.getincrementaldecoder(self.encoding.name)("replace")
        decoder.decode(data[:limit])
        whole = limit - len(decoder.getstate()[0])
        while not whole and limit < len(data):
            decoder.decode(data[limit : limit + 1])
            limit += 1
            whole = limit - len(decoder.getstate()[0])
        return whole or len(data)

    def boundary(self, begin: int, at: int) -> int:
        """The first beginning of a character at or behind `at`, in a line that begins at or before `begin`."""
        at += -(at - self.start) % self.encoding.unit
        decoder = codecs.getincrementaldecoder(self.encoding.name)("replace")
        offset = self._certain(begin, at)
        while offset < at:
            self.stop.check()
            block = self.at(offset, min(_BLOCK, at - offset))
            if not block:
                return at
            decoder.decode(block)
            offset += len(block)
        begun = decoder.getstate()[0]
        data = begun + self.at(at, LONGEST_CHARACTER) if begun else b""
        # What is begun may be damaged, and the next character begin before it would have ended.
        ends = range(len(begun), len(data) + 1, self.encoding.unit)
        return at + next((end for end in ends if self._parts(data, end)), len(data)) - len(begun)

    def _parts(self, data: bytes, at: int) -> bool:
        """Whether a character begins at `at`, given that one begins where `data` does."""
        texts = [part.decode(self.encoding.name, "replace") for part in (data[:at], data[at:], data)]
        return texts[0] + texts[1] == texts[2]

    def _certain(self, begin: int, at: int) -> int:
        """A place at or before `at` where a character is known to begin."""
        if self.encoding.name == "utf-8":
            near = self.at(max(begin, at - 3), at - max(begin, at - 3))
            return at - next((back for back, byte in enumerate(reversed(near), 1) if not 0x80 <= byte < 0xC0), 0)
        if self.encoding.unit > 1:
            return max(begin, at - self.encoding.unit)
        while at > begin:
            base = max(begin, at - _NEAR)
            block = self.at(base, at - base)
            # No second byte of any encoding of two or four is below that of `0`.
            for back, byte in enumerate(reversed(block)):
                if byte < 0x30:
                    return at - back
            at = base
        return begin
