"""Finds the few elements of a large part that matter by their bytes, because parsing all of them takes long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from mcp_fs.engine.documents.formats.archives import Unreadable
from mcp_fs.engine.documents.formats.markup.package import read_blocks

__all__ = ["find_elements"]

# Of what stands before the first element, and of a tag that is cut off.
_MAX_BEGINNING_BYTES = 8 * 1024 * 1024
_MAX_TAG_BYTES = 1000


def find_elements(stream: BinaryIO | None, name: bytes, pattern: re.Pattern[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the elements in which a pattern matches, each with its number among all of its name, from 0.

    First comes what stands before all of them, with -1, so that a parser knows the namespaces.

    Args:
        stream: XML; no element of the name lies in another.
        name: without a prefix.

    Raises:
        Unreadable: the last element does not end.
    """
    finder = _ElementFinder(name, pattern)
    for block in read_blocks(stream):
        yield from finder.feed(block)
        if finder.is_lost():
            return
    if finder.is_within_element():
        raise Unreadable(f"is damaged: its last element `{name.decode()}` has no end")


class _ElementFinder:
    def __init__(self, name: bytes, pattern: re.Pattern[bytes]) -> None:
        self._opening = re.compile(rb"<((?:\w+:)?)" + name + rb"(?=[\s/>])")
        self._name = name
        self._pattern = pattern
        self._data = b""
        self._start_tag = b""
        self._end_tag = b""
        self._count = 0

    def is_lost(self) -> bool:
        """Return whether there is no element where there should be one."""
        return not self._start_tag and len(self._data) > _MAX_BEGINNING_BYTES

    def is_within_element(self) -> bool:
        return bool(self._start_tag) and self._opening.match(self._data) is not None

    def feed(self, block: bytes) -> Iterator[tuple[int, bytes]]:
        self._data += block
        if not self._start_tag:
            first = self._opening.search(self._data)
            if first is None:
                return
            self._start_tag = first[0]
            self._end_tag = b"</" + first[1] + self._name + b">"
            yield -1, self._data[: first.start()]
            self._data = self._data[first.start() :]
        last_end = self._find_last_end()
        yield from self._find_matching(last_end)
        self._count += len(self._opening.findall(self._data, 0, last_end))
        self._data = self._data[last_end:]
        if not self.is_within_element():
            # There is no element in it, but it may end in half a tag.
            self._data = self._data[-_MAX_TAG_BYTES:]

    def _find_last_end(self) -> int:
        """Return where the last element ends that is complete, or the next begins; 0 without one."""
        last_start = self._find_last_start(len(self._data))
        if last_start < 0:
            return 0
        last_end = self._find_end(last_start)
        if last_end < 0:
            return last_start
        return last_end

    def _find_matching(self, last_end: int) -> Iterator[tuple[int, bytes]]:
        position = 0
        number = self._count
        for match in self._pattern.finditer(self._data, 0, last_end):
            start = self._find_last_start(match.end())
            end = self._find_end(start)
            if start < position or end <= match.start():
                continue  # in the element before, or in none
            number += len(self._opening.findall(self._data, position, start))
            yield number, self._data[start:end]
            number += 1
            position = end

    def _find_last_start(self, end: int) -> int:
        """Return where the last element begins before an offset; -1 if there is none."""
        start = self._data.rfind(self._start_tag, 0, end)
        while start >= 0 and not self._opening.match(self._data, start):
            start = self._data.rfind(self._start_tag, 0, start)
        return start

    def _find_end(self, start: int) -> int:
        """Return where an element ends; -1 if that has not come yet."""
        tag_end = self._data.find(b">", start)
        if tag_end < 0:
            return -1
        if self._data[tag_end - 1 : tag_end] == b"/":
            return tag_end + 1
        end = self._data.find(self._end_tag, tag_end)
        if end < 0:
            return -1
        return end + len(self._end_tag)
