"""The files with rows in the operator's folder, as the first list of the tables names them."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import describe_os_error
from mcp_batteries.sql.results.rows import format_count, format_size, to_one_line
from mcp_batteries.sql.transfer.files import READ_FILE_SUFFIXES, list_files, open_served_file

__all__ = ["RowFileFolder", "RowFiles"]

# Files that are named; more are counted.
_MAX_NAMED_FILES = 20
# Files up to which the first lines of each are shown.
_MAX_SHOWN_FILES = 5
_TEXT_SUFFIXES = (".csv", ".tsv", ".json", ".jsonl")
_MAX_HEAD_BYTES = 4000
_MAX_HEAD_LINES = 3
_MAX_LINE_CHARACTERS = 160
_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# With what indents the next line: no text in JSON has one in it.
_LINE_END = re.compile(r"\s*\n\s*")
# Bytes of a file whose lines are counted.
_MAX_COUNTED_BYTES = 10_000_000


class _UnreadableFile(Exception):
    """Says that a file can't be opened; the list then has only its name."""


@dataclass(frozen=True)
class RowFile:
    """A file with rows.

    Attributes:
        size: in bytes.
        facts: what is known of its text, such as the number of lines.
        head: its first lines; of long ones the beginning.
    """

    name: str
    size: int
    facts: Sequence[str] = ()
    head: Sequence[str] = ()

    def lines(self) -> list[str]:
        """Return a line for the file, and one for each line of its head."""
        line = f"- {self.name}: {', '.join([format_size(self.size), *self.facts])}"
        return [to_one_line(line), *(f"  |{to_one_line(text)}" for text in self.head)]


@dataclass(frozen=True)
class RowFiles:
    """Files with rows.

    Attributes:
        files: the first of them.
        count: how many there are.
    """

    files: Sequence[RowFile]
    count: int

    @classmethod
    def in_folder(cls, folder: str | None, *, with_lines: bool = True) -> RowFiles | None:
        """Return the files with rows in a folder and below it, but those that go away meanwhile; None without one.

        Args:
            with_lines: show the first lines of few files.
        """
        if folder is None:
            return None
        names = [name for name in list_files(folder) if name.lower().endswith(READ_FILE_SUFFIXES)]
        files: list[RowFile] = []
        for name in names[:_MAX_NAMED_FILES]:
            try:
                size = os.lstat(os.path.join(folder, name)).st_size
            except OSError:
                continue
            file = RowFile(name, size)
            if with_lines and len(names) <= _MAX_SHOWN_FILES and name.lower().endswith(_TEXT_SUFFIXES):
                file = _with_head(folder, file)
            files.append(file)
        return cls(files, len(names))

    def text(self) -> str:
        """Return a line for the folder, and some for each file."""
        lines = [f"the folder for files: {format_count(self.count, 'file')} with rows"]
        for file in self.files:
            lines += file.lines()
        if self.count > _MAX_NAMED_FILES:
            lines.append(f"- {self.count - _MAX_NAMED_FILES} more")
        return "\n".join(lines)


@dataclass(frozen=True)
class RowFileFolder:
    """The operator's folder for files.

    Attributes:
        path: None where there is none.
        may_show_lines: tells whether the current caller could read what is in the files anyway.
    """

    path: str | None
    may_show_lines: Callable[[], bool] = lambda: True

    async def list_files(self) -> RowFiles | None:
        """Return its files with rows; None where there is no folder."""
        with_lines = self.may_show_lines()
        return await run_in_thread(lambda _: RowFiles.in_folder(self.path, with_lines=with_lines))


def _with_head(folder: str, file: RowFile) -> RowFile:
    """Return a file with its first lines; as it is where it can't be read."""
    try:
        with open_served_file(folder, file.name, _make_unreadable, describe_os_error) as raw:
            start = raw.read(_MAX_HEAD_BYTES)
            is_whole = file.size <= len(start)
            facts: list[str] = []
            has_lines = not file.name.lower().endswith(".json") and not start.startswith(_UTF_16_MARKS)
            if file.size <= _MAX_COUNTED_BYTES and has_lines:
                facts.append(format_count(_count_lines(raw, start), "line"))
    except (_UnreadableFile, OSError):
        return file
    text = _decode(start)
    if text is None:
        facts.append("not UTF-8")
        text = start.decode("latin-1")
    if file.name.lower().endswith(".json"):
        text = _LINE_END.sub(" ", text)
    return RowFile(file.name, file.size, facts, _find_head(text, is_whole=is_whole))


def _make_unreadable(kind: str, failure: str, fix: str) -> Exception:
    return _UnreadableFile(failure)


def _count_lines(raw: BinaryIO, start: bytes) -> int:
    """Return how many lines a file has, of which `start` was read already."""
    count = 0
    last = b""
    block = start
    while block:
        count += block.count(b"\n")
        last = block[-1:]
        block = raw.read(1 << 20)
    return count if last in (b"\n", b"") else count + 1


def _decode(start: bytes) -> str | None:
    """Return the text of the first bytes of a file, of which the last character may be cut; None if it is another."""
    encoding = "utf-16" if start.startswith(_UTF_16_MARKS) else "utf-8-sig"
    try:
        return codecs.getincrementaldecoder(encoding)().decode(start)
    except UnicodeDecodeError:
        return None


def _find_head(text: str, *, is_whole: bool) -> list[str]:
    """Return the first lines of a text that may go on."""
    head: list[str] = []
    lines = text.split("\n")
    for number, line in enumerate(lines[:_MAX_HEAD_LINES], 1):
        is_cut = number == len(lines) and not is_whole
        line = line.removesuffix("\r")
        if is_cut or len(line) > _MAX_LINE_CHARACTERS:
            line = f"{line[:_MAX_LINE_CHARACTERS]}…"
        head.append(line)
    if is_whole and head and head[-1] == "":
        head.pop()
    return head
