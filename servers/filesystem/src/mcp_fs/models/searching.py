"""Results of searches."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mcp_batteries.server.calling.results import TextResult, group_by_folder, is_answering_script
from mcp_fs.models.formatting import common_time_prefix, describe_common_time, escape_line_breaks, pluralize

__all__ = ["FilePage", "Match", "MatchCounts", "MatchTotal", "MatchedFile", "Matches"]

_MOST_ENDINGS = 8


@dataclass(frozen=True, slots=True)
class FilePage(TextResult):
    """A page of paths.

    Attributes:
        total: paths that match.
        notes: what could not be searched.
        cursor: position of the next page; None on the last.
        measures: the sort key of each, if not the path: its time of change or its bytes; otherwise empty texts.
    """

    paths: Sequence[str]
    total: int
    notes: Sequence[str]
    cursor: str | None
    measures: Sequence[str] = ()

    def text(self) -> str:
        head = f"{self.total:,} found"
        notes = list(self.notes)
        is_page = self.cursor is not None or len(self.paths) < self.total
        if is_page:
            head = f"{len(self.paths):,} of {self.total:,}"
        if self.cursor is not None:
            notes.append(f'continue with cursor="{self.cursor}"')
        time_prefix = common_time_prefix(self.measures)
        if time_prefix:
            notes.append(describe_common_time(time_prefix, is_page=is_page))
        rows: list[tuple[str, str, Sequence[str]]] = []
        for path, measure in itertools.zip_longest(self.paths, self.measures, fillvalue=""):
            row = path
            measure = measure.removeprefix(time_prefix).removeprefix("T")
            if measure:
                row += f"\t{measure}"
            rows.append(("", row, ()))
        return "\n".join([_head_line(head, notes), *group_by_folder(rows)])


@dataclass(frozen=True, slots=True)
class Match:
    """One matching line, or one of its neighbours.

    Attributes:
        line: number, from 1.
        text: the line without its end, cut around the match if it is long.
        is_match: False for a line of context.
        column: byte where `text` begins if the line was cut, from 1.
        line_bytes: size of the whole line.
    """

    line: int
    text: str
    is_match: bool = True
    column: int | None = None
    line_bytes: int = 0


class MatchedFile(NamedTuple):
    """The matching lines of one file.

    Attributes:
        lines: with their context, in order.
        match_count: how many of its lines match in all where not all are in `lines`; else 0.
    """

    path: str
    lines: Sequence[Match]
    match_count: int

    @property
    def shown_match_count(self) -> int:
        return sum(match.is_match for match in self.lines)


class MatchTotal(NamedTuple):
    """What matches on all pages.

    Attributes:
        lines: lines that match; of a search for files only they mean nothing.
        files: files that have some.
        at_least: whether there are more than were counted.
    """

    lines: int
    files: int
    at_least: bool

    @property
    def bound(self) -> str:
        """What stands before a number that is not the whole one."""
        if not self.at_least:
            return ""
        return "at least "


@dataclass(frozen=True, slots=True)
class Matches(TextResult):
    """A page of matching lines, file by file.

    Attributes:
        notes: what was not searched.
        cursor: position of the next page; None when the search is complete.
        bound: the argument that limited the lines of a file, which the cursor does not continue; empty if none did.
    """

    files: Sequence[MatchedFile]
    notes: Sequence[str]
    cursor: str | None
    total: MatchTotal
    bound: str = ""

    def text(self) -> str:
        head = self._head()
        notes = list(self.notes)
        if self.bound:
            notes.append(f"raise {self.bound} for more")
        if self.cursor is not None:
            notes.append(f'more match: continue with cursor="{self.cursor}"')
        rows: list[tuple[str, str, Sequence[str]]] = []
        for file in self.files:
            lines = _format_lines(file.lines)
            # Of a search that found one file alone, the first line has told it.
            # A script reads lines of matches only.
            if self.total.files > 1 and file.match_count and not is_answering_script():
                lines.append(f"{file.match_count:,} in all")
            rows.append(("", file.path, lines))
        return "\n".join([_head_line(head, notes), *group_by_folder(rows)])

    def _head(self) -> str:
        """Say how much matches, and how much of that is here."""
        matches_here = sum(file.shown_match_count for file in self.files)
        if not matches_here:
            return self._head_of_files()
        total = self.total
        head = pluralize(len(self.files), "file")
        if matches_here >= total.lines:
            return f"{pluralize(matches_here, 'match')} in {head}"
        if len(self.files) == total.files:
            return f"{matches_here:,} of {total.bound}{total.lines:,} matches in {head}"
        of_all = f"of {total.bound}{total.lines:,} in {pluralize(total.files, 'file')}"
        return f"{pluralize(matches_here, 'match')} in {head}, {of_all}"

    def _head_of_files(self) -> str:
        """Say how many files match, of a search for files only."""
        file_count = len(self.files)
        verb = "match"
        if file_count == 1:
            verb = "matches"
        head = f"{pluralize(file_count, 'file')} {verb}"
        if file_count < self.total.files:
            head += f", of {self.total.bound}{self.total.files:,}"
        return head


@dataclass(frozen=True, slots=True)
class MatchCounts(TextResult):
    """A page of what was counted.

    Attributes:
        rows: files, by path, with their matching lines; or what matched, the most frequent first.
        kind: what the rows are: `file`, `text`, or texts that end in the sum of what came with them, `sum`, and in
            that of its products, `product`.
        row_count: rows in all.
        total: lines that match and files that have some.
        matches_by_suffix: of texts, how many in files of each ending, the most first.
    """

    rows: Sequence[tuple[str, int]]
    kind: str
    row_count: int
    total: tuple[int, int]
    notes: Sequence[str]
    cursor: str | None
    matches_by_suffix: Sequence[tuple[str, int]] = ()

    def text(self) -> str:
        lines, files = self.total
        head = f"{pluralize(lines, 'matching line')} in {pluralize(files, 'file')}"
        notes = list(self.notes)
        if self.kind != "file":
            notes = [*self._describe_texts(), *notes]
        if self.cursor is not None:
            notes.append(f'{len(self.rows):,} of {self.row_count:,}: continue with cursor="{self.cursor}"')
        if self.kind == "file":
            rows = group_by_folder(("", path, [str(number)]) for path, number in self.rows)
        else:
            rows = [f"{number}\t{text}" for text, number in self.rows]
        return "\n".join([_head_line(head, notes), *rows])

    def _describe_texts(self) -> list[str]:
        """Say how many texts there are, and where they come from if that tells more than the first line."""
        note = f"{pluralize(self.row_count, 'text')}, each with its number"
        match self.kind:
            case "sum":
                note += " and sum"
            case "product":
                note += ", sum, and sum of `sum` times `times`"
            case _:
                pass
        lines, _ = self.total
        match_count = sum(number for _, number in self.matches_by_suffix)
        if match_count <= lines and len(self.matches_by_suffix) <= 1:
            return [note]
        matches = pluralize(match_count, "match")
        if len(self.matches_by_suffix) > 1:
            matches += f": {self._describe_suffixes()}"
        return [matches, note]

    def _describe_suffixes(self) -> str:
        counts: list[str] = []
        for suffix, number in self.matches_by_suffix[:_MOST_ENDINGS]:
            counts.append(f"{number:,} in {escape_line_breaks(suffix) or 'others'}")
        return ", ".join(counts)


def _head_line(head: str, notes: Sequence[str]) -> str:
    """Return the first line of an answer."""
    return f"[{'; '.join([head, *notes])}]"


def _format_lines(matches: Sequence[Match]) -> list[str]:
    """Return lines of a file as they are shown, `--` between those that are apart if there is context."""
    lines: list[str] = []
    has_context = any(not match.is_match for match in matches)
    next_line = None
    for match in matches:
        if has_context and next_line is not None and match.line > next_line:
            lines.append("--")
        next_line = match.line + 1
        lines.append(_format_match(match))
    return lines


def _format_match(match: Match) -> str:
    sign = "-"
    if match.is_match:
        sign = ":"
    if match.column is None:
        return f"{match.line}{sign}{match.text}"
    return f"{match.line}{sign}{match.column}{sign}{match.text} [cut: {match.line_bytes:,} bytes]"
