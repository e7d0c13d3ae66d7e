"""Reads the requested lines from more text than should be in memory."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

from mcp_batteries.limits import DEFAULT_PAGE_BYTES
from mcp_github.models import Text
from mcp_github.safety.scrub import scrub_text

__all__ = ["Window"]

_KEPT, _PIECE = 128_000, 65_536
"""Bytes: a page of text, with the timestamps and colours that are taken out of it and more; and taken at once."""
_LINE = 2000
_AFTER = 10
"""Lines shown after the last error."""
_CODES = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]")
_STAMP = re.compile(rb"^(?:\xef\xbb\xbf)?\d{4}-\d\d-\d\dT[\d:.]+Z ?")
_ERROR = b"##[error]"


class Window:
    """Takes text piece by piece and keeps one page of it.

    Args:
        start_line: the page begins there; without it the page is the end, or of a job's log the last error with what
            led to it: what follows is only cleaning up.
        pattern: only lines that contain it.
        log: it is a job's, with a timestamp at each line.
    """

    def __init__(self, *, start_line: int | None, pattern: str | None, log: bool = True) -> None:
        self._start, self._log = start_line, log
        self._needle = pattern.encode("utf-8", "surrogatepass") if pattern else b""
        self._rest = b""
        self._count, self._size, self._dropped, self._over = 0, 0, False, False
        self._kept: deque[tuple[int, bytes]] = deque()
        self._error: int | None = None
        self._before_error: list[tuple[int, bytes]] = []

    def take(self, data: bytes) -> bool:
        """Take what comes next; True once nothing more is needed."""
        for at in range(0, len(data), _PIECE):
            whole, newline, rest = (self._rest + data[at : at + _PIECE]).rpartition(b"\n")
            if newline:
                self._lines(whole + newline)
            # Of a line without end, its beginning will do.
            self._rest = rest[:_PIECE]
            if self._over:
                return True
        return False

    def page(self, what: str, max_bytes: int = DEFAULT_PAGE_BYTES) -> Text:
        """The page, once everything was taken; its head says what it is and how to go on."""
        if self._rest and not self._over:
            self._lines(self._rest + b"\n")
        removed, lines = 0, list[tuple[int, str]]()
        for first, block in self._before_error or self._kept:
            for number, raw in enumerate(block.removesuffix(b"\n").split(b"\n"), first):
                if number >= (self._start or 0) and (self._error is None or number <= self._error + _AFTER):
                    text, count = self._clean(raw)
                    removed += count
                    lines.append((number, text))
        shown = _fitting(lines, max_bytes, from_end=self._start is None)
        head = [what, *([] if self._over else [f"{self._count} lines"])]
        head += [f"{removed} invisible characters removed"] if removed else []
        if self._start is not None:
            if shown and (self._over or len(shown) < len(lines)):
                head.append(f"truncated, continue with start_line={shown[-1][0] + 1}")
        elif shown and (self._dropped or len(shown) < len(lines)):
            head.append(f"truncated, the end from line {shown[0][0]} on; start_line reads from elsewhere")
        if self._error is not None and shown and shown[-1][0] < self._count:
            head.append(f"after the last error {self._count - shown[-1][0]} lines more, start_line={shown[-1][0] + 1}")
        return Text("; ".join(head), "\n".join(f"{number}: {line}" for number, line in shown) or "No such lines.")

    def _lines(self, block: bytes) -> None:
        first = self._count + 1
        self._count += block.count(b"\n")
        if self._count < (self._start or 0):
            return
        if self._needle:
            block = _CODES.sub(b"", block) if b"\x1b" in block else block
            if self._needle in block:
                for number, line in enumerate(block.split(b"\n"), first):
                    if self._needle in line and number >= (self._start or 0):
                        self._keep(number, line)
            return
        self._keep(first, block)
        if self._start is None and self._log:
            if _ERROR in block:
                self._error = first + block.count(b"\n", 0, block.rfind(_ERROR))
                self._before_error = list(self._kept)
            elif self._error is not None and first <= self._error + _AFTER:
                self._before_error.append((first, block))

    def _keep(self, first: int, block: bytes) -> None:
        self._kept.append((first, block))
        self._size += len(block)
        if self._start is not None:
            self._over = self._size > _KEPT
            return
        while self._size - len(self._kept[0][1]) > _KEPT:
            self._size -= len(self._kept.popleft()[1])
            self._dropped = True

    def _clean(self, raw: bytes) -> tuple[str, int]:
        raw = _CODES.sub(b"", raw)
        raw = _STAMP.sub(b"", raw) if self._log else raw
        # What a terminal would have been left with.
        return scrub_text(raw.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace"), code=True)


def _fitting(lines: Sequence[tuple[int, str]], max_bytes: int, *, from_end: bool) -> list[tuple[int, str]]:
    shown: list[tuple[int, str]] = []
    size = 0
    for number, line in reversed(lines) if from_end else lines:
        cut = line if len(line) <= _LINE else f"{line[:_LINE]}… [line cut]"
        size += len(cut.encode("utf-8", "surrogatepass")) + 8
        if size > max_bytes:
            break
        shown.append((number, cut))
    return shown[::-1] if from_end else shown
