"""The files with rows in the operator's folder, as the first list of the tables names them."""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, BinaryIO

from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import describe_os_error
from mcp_batteries.sql.results.rows import format_count, format_size, to_one_line
from mcp_batteries.sql.transfer.column_summary import ColumnSummary, summarize_fields
from mcp_batteries.sql.transfer.csv_detection import detect_dialect
from mcp_batteries.sql.transfer.csv_records import read_csv_records
from mcp_batteries.sql.transfer.files import READ_FILE_SUFFIXES, list_files, open_served_file
from mcp_batteries.sql.transfer.json_records import build_record, read_json_records

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
# Bytes of a file whose fields are described, and the seconds that all such files together may take.
_MAX_DESCRIBED_BYTES = 400_000
_DESCRIPTION_SECONDS = 0.6
_MAX_DESCRIBED_FIELDS = 30
# Characters of all descriptions together; of further files the first lines are shown.
_MAX_DESCRIPTION_CHARACTERS = 5000
_MAX_FIELD_CHARACTERS = 300
# The first lines of a file show so few rows themselves.
_MAX_HEAD_ROWS = _MAX_HEAD_LINES - 1
# Of a file with more fields the first lines are shown: each field costs memory and time.
_MAX_READ_FIELDS = 200


class _UnreadableFile(Exception):
    """Says that a file can't be opened; the list then has only its name."""


@dataclass(frozen=True)
class RowFile:
    """A file with rows.

    Attributes:
        size: in bytes.
        facts: what is known of its text, such as the number of lines.
        head: its first lines; of long ones the beginning.
        fields: instead, what the values of each field are like.
    """

    name: str
    size: int
    facts: Sequence[str] = ()
    head: Sequence[str] = ()
    fields: Sequence[str] = ()

    @property
    def description_length(self) -> int:
        """How many characters describe the fields, about."""
        return sum(min(len(text), _MAX_FIELD_CHARACTERS) for text in self.fields[:_MAX_DESCRIBED_FIELDS])

    def lines(self) -> list[str]:
        """Return a line for the file, and one for each field or line of its head."""
        line = f"- {self.name}: {', '.join([format_size(self.size), *self.facts])}"
        fields = [f"  {to_one_line(_clip_field(text))}" for text in self.fields[:_MAX_DESCRIBED_FIELDS]]
        if len(self.fields) > _MAX_DESCRIBED_FIELDS:
            fields.append(f"  … {len(self.fields) - _MAX_DESCRIBED_FIELDS} more fields")
        return [to_one_line(line), *fields, *(f"  |{to_one_line(text)}" for text in self.head)]


def _clip_field(text: str) -> str:
    return text if len(text) <= _MAX_FIELD_CHARACTERS else f"{text[:_MAX_FIELD_CHARACTERS]}…"


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
            with_lines: describe the fields of few files, or show their first lines.
        """
        if folder is None:
            return None
        names = [name for name in list_files(folder) if name.lower().endswith(READ_FILE_SUFFIXES)]
        deadline = time.monotonic() + _DESCRIPTION_SECONDS
        files: list[RowFile] = []
        characters_left = _MAX_DESCRIPTION_CHARACTERS
        for name in names[:_MAX_NAMED_FILES]:
            try:
                size = os.lstat(os.path.join(folder, name)).st_size
            except OSError:
                continue
            file = RowFile(name, size)
            if with_lines and len(names) <= _MAX_SHOWN_FILES and name.lower().endswith(_TEXT_SUFFIXES):
                described = _with_fields(folder, file, deadline)
                if described is None or described.description_length > characters_left:
                    file = _with_head(folder, file)
                else:
                    file = described
                    characters_left -= described.description_length
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


def _with_fields(folder: str, file: RowFile, deadline: float) -> RowFile | None:
    """Return a file with what its fields are like; None where its first lines say more, or can be had sooner."""
    if file.size > _MAX_DESCRIBED_BYTES:
        return None
    summary = ColumnSummary()
    try:
        with open_served_file(folder, file.name, _make_unreadable, describe_os_error) as raw:
            # It may grow meanwhile.
            content = raw.read(_MAX_DESCRIBED_BYTES + 1)
        if len(content) > _MAX_DESCRIBED_BYTES:
            return None
        reader = _RecordReader(io.BytesIO(content), file.name.lower(), deadline)
        fields = reader.describe_fields(summary)
    except (_UnreadableFile, OSError):
        return None
    if summary.records <= _MAX_HEAD_ROWS:
        return None
    facts = [format_count(summary.records, "row"), *reader.facts]
    return replace(file, size=len(content), facts=facts, fields=fields)


class _RecordReader:
    """Reads the records of a file until a deadline.

    Attributes:
        facts: what is unusual in the file.
    """

    def __init__(self, raw: BinaryIO, name: str, deadline: float) -> None:
        self._raw = raw
        self._name = name
        self._deadline = deadline
        self.facts: list[str] = []

    def describe_fields(self, summary: ColumnSummary) -> list[str]:
        """Return a line on each field."""
        if self._name.endswith((".json", ".jsonl")):
            records = read_json_records(self._raw, _make_unreadable, _parse_json)
            return summarize_fields(self._until_deadline(records), summary)
        dialect = detect_dialect(
            self._raw, _make_unreadable, tabs=self._name.endswith(".tsv"), pass_on=self._until_deadline
        )
        records = read_csv_records(self._raw, _make_unreadable, dialect)
        names = next(records, list[str]())
        fields = summarize_fields(self._until_deadline(chain([names], records)), summary)
        blank_line_count = self._count_blank_lines(summary.records)
        if blank_line_count:
            self.facts.append(format_count(blank_line_count, "blank line"))
        self.facts += filter(None, [dialect.describe(list(names))])
        return fields

    def _until_deadline(self, records: Iterator[list[Any]]) -> Iterator[list[Any]]:
        for record in records:
            if len(record) > _MAX_READ_FIELDS:
                raise _UnreadableFile("it has too many fields")
            if time.monotonic() > self._deadline:
                raise _UnreadableFile("there was no time to read it")
            yield record

    def _count_blank_lines(self, row_count: int) -> int:
        """Return how many lines hold nothing; 0 where some of these are rows, or parts of one."""
        self._raw.seek(0)
        lines = self._raw.readlines()
        blank_line_count = sum(not line.strip() for line in lines)
        header_count = 1
        is_apart_from_rows = len(lines) == header_count + row_count + blank_line_count
        return blank_line_count if is_apart_from_rows else 0


def _parse_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=build_record)


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
