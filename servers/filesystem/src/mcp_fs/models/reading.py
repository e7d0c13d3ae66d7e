"""Results of reading a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_batteries.errors import Problem
from mcp_batteries.server.calling.results import TextResult, to_compact_json
from mcp_fs.models.formatting import escape_line_breaks, pluralize

__all__ = ["FileSlices", "FileTexts", "FullContents", "Media", "TextSlice"]

_MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class TextSlice(TextResult):
    """Some lines of a text file.

    Attributes:
        path: as tools take it.
        body: the lines, with numbers when asked for.
        encoding: told where it is not UTF-8.
        first_line: number of the first line; None when only the distance from the end is known.
        last_line: number of the last line; None when the file does not reach `first_line` yet.
        total_lines: lines in the file; None when counting them would mean reading a large file.
        size: bytes of the file.
        bytes_shown: bytes of the file in `body`.
        column: byte of the first line that `body` begins with, from 1; None within a line whose beginning is far.
        end_line: last line wanted; None for as many as there are.
        next_line: where the next page begins; None if nothing wanted is left.
        next_column: byte where the last line goes on when it was cut, from 1.
        line_after_cut: the line after the one that was cut, if there is one and it is wanted.
        lines_shown: lines in `body`.
        requested_tail: last lines asked for when they, or the one, are more than a page.
        has_undecodable: whether bytes that do not decode are shown as U+FFFD.
        lacks_final_newline: whether the file's last line is shown and has no line end.
        hash: of the whole content, of a file that can be edited.
    """

    path: str
    body: str
    encoding: str
    first_line: int | None
    last_line: int | None
    total_lines: int | None
    size: int
    bytes_shown: int
    column: int | None
    end_line: int | None
    next_line: int | None
    next_column: int | None
    line_after_cut: int | None
    lines_shown: int
    requested_tail: int | None
    has_undecodable: bool
    lacks_final_newline: bool
    hash: str | None

    @property
    def is_cut(self) -> bool:
        """Whether some of the lines that were asked for are missing."""
        return any(place is not None for place in (self.next_line, self.next_column, self.requested_tail))

    @property
    def status(self) -> str:
        """One line: what is shown, of what, and the exact next call."""
        facts = [self._describe_span()]
        if self.encoding != "utf-8":
            facts.append(self.encoding)
        if self.hash is not None:
            facts.append(f"hash {self.hash}")
        if self.has_undecodable:
            facts.append("undecodable bytes shown as \ufffd")
        if self.lacks_final_newline:
            facts.append("no line end at the end")
        if self.total_lines == 1 and "\r" in self.body.rstrip("\r\n"):
            facts.append("lines that end in CR alone are one here")
        return ", ".join(facts) + self._describe_next_call()

    def text(self) -> str:
        return f"[{self.status}]\n{self.body}"

    def _describe_span(self) -> str:
        if self.first_line is not None and self.last_line is None:
            return f"no line {self.first_line:,} yet, {pluralize(self.total_lines or 0, 'line')}"
        if not self.size or self.total_lines == 0:
            return "empty file"
        if self.column is None:
            return f"the end of the last line, {self.bytes_shown:,} of {self.size:,} bytes"
        if self.first_line is None:
            return f"last {pluralize(self.lines_shown, 'line')} of {self.size:,} bytes"
        span = self._describe_lines(self.column)
        if self.total_lines is not None:
            return f"{span} of {self.total_lines:,}"
        return f"{span} of {self.size:,} bytes"

    def _describe_lines(self, column: int) -> str:
        """Say which lines are shown, the first of them from a column on."""
        span = f"lines {self.first_line}-{self.last_line}"
        if self.first_line == self.last_line:
            span = f"line {self.first_line}"
        if column > 1:
            span += f" from column {column}"
        return span

    def _describe_next_call(self) -> str:
        until = ""
        if self.end_line is not None:
            until = f", end_line={self.end_line}"
        if self.next_column is not None:
            return self._describe_cut(self.next_column, until)
        if self.requested_tail == 1:
            return "; the line is cut: raise max_bytes for more of it"
        if self.requested_tail is not None:
            return f"; {self.requested_tail:,} lines were asked for: raise max_bytes for more"
        if self.next_line is not None:
            return f"; continue with start_line={self.next_line}{until}"
        return ""

    def _describe_cut(self, next_column: int, until: str) -> str:
        """Say how to get at the rest of a line that was cut, and at what follows."""
        line = self.last_line or 1
        next_call = f"; line {line} is cut: its rest is at start_line={line}, start_column={next_column}{until}"
        if self.line_after_cut is not None:
            next_call += f"; the next line at start_line={self.line_after_cut}{until}"
        return next_call


@dataclass(frozen=True, slots=True)
class FileSlices(TextResult):
    """Several files, each with its lines or its failure, in the requested order."""

    outcomes: Sequence[tuple[str, TextSlice | Problem]]

    def text(self) -> str:
        return "".join(self._format_outcome(name, outcome) for name, outcome in self.outcomes)

    @staticmethod
    def _format_outcome(name: str, outcome: TextSlice | Problem) -> str:
        name = escape_line_breaks(name)
        if isinstance(outcome, Problem):
            return f"=== {name}: failed: {outcome}\n"
        text = f"=== {name} [{outcome.status}]\n{outcome.body}"
        if outcome.body and not outcome.body.endswith("\n"):
            text += "\n"
        return text


@dataclass(frozen=True, slots=True)
class FileTexts(TextResult):
    """Several files as rows for a script, none of them cut.

    Attributes:
        failures: names of those that could not be read, each with the reason.
    """

    texts: Sequence[TextSlice]
    failures: Sequence[tuple[str, Problem]]

    def text(self) -> str:
        # By this word a script knows a table.
        head = f"rows: {pluralize(len(self.texts), 'file')}"
        if self.failures:
            named = [f"{name}: {problem.failure}" for name, problem in self.failures[:_MAX_NAMED]]
            head += f"; {len(self.failures):,} not read: {escape_line_breaks(' '.join(named))}"
        undecodable = [text.path for text in self.texts if text.has_undecodable]
        if undecodable:
            named = undecodable[:_MAX_NAMED]
            head += f"; {len(undecodable):,} with undecodable bytes as \ufffd: {escape_line_breaks(' '.join(named))}"
        rows = [["path", "encoding", "text"]]
        rows += [[text.path, text.encoding, text.body] for text in self.texts]
        return "\n".join([f"[{head}]", *map(to_compact_json, rows)])


@dataclass(frozen=True, slots=True)
class Media:
    """A file, or a page of one, as an image, a sound or bytes.

    Attributes:
        kind: `image` and `audio` are shown, of `text` there is a note and how the bytes begin, `blob` is returned as
            bytes.
        path: as tools take it.
        uri: of the file, or of the part of it in `data`.
        mime_type: of `data`, by its first bytes; of the file for `text`.
        note: one line about what it is and what is left out.
        data: bytes to show or hand over.
        body: how the bytes of a file begin that is not shown.
    """

    kind: str
    path: str
    uri: str
    mime_type: str
    size: int
    note: str
    data: bytes = b""
    body: str = ""


@dataclass(frozen=True, slots=True)
class FullContents:
    """All of a file, or a folder's listing.

    Attributes:
        text: its characters; None if it is not text.
        data: its bytes.
    """

    mime_type: str
    text: str | None
    data: bytes = b""
