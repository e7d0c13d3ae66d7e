"""Results of searches."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_batteries.server.results import TextResult, below
from mcp_fs.models.formatting import common_time_prefix, escape_line_breaks, pluralize

__all__ = ["FilePage", "Match", "MatchCounts", "Matches"]

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
        head = f"{self.total:,} found" if self.cursor is None else f"{len(self.paths):,} of {self.total:,}"
        notes = list(self.notes)
        if self.cursor is not None:
            notes.append(f'continue with cursor="{self.cursor}"')
        if time_prefix := common_time_prefix(self.measures):
            notes.append(f"all changed {time_prefix}")
        measures = [measure.removeprefix(time_prefix).removeprefix("T") for measure in self.measures]
        named = itertools.zip_longest(self.paths, measures)
        lines = below(("", f"{path}\t{measure}" if measure else path, ()) for path, measure in named)
        return "\n".join(["; ".join([f"[{head}", *notes]) + "]", *lines])


@dataclass(frozen=True, slots=True)
class Match:
    """One matching line, or one of its neighbours.

    Attributes:
        line: number, from 1.
        text: the line without its end, cut around the match if it is long.
        hit: False for a line of context.
        column: byte where `text` begins if the line was cut, from 1.
        size: bytes of the whole line.
    """

    line: int
    text: str
    is_match: bool = True
    column: int | None = None
    line_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Matches(TextResult):
    """A page of matching lines, file by file.

    Attributes:
        files: for each file its path, its lines and, where not all are here, how many of it match in all; else 0.
        notes: what was not searched.
        cursor: position of the next page; None when the search is complete.
        total: lines that match, files that have some, and whether there are more than were counted. Of a search for
            files only, lines mean nothing.
        bound: the argument that limited the lines of a file, which the cursor does not continue; empty if none did.
    """

    files: Sequence[tuple[str, Sequence[Match], int]]
    notes: Sequence[str]
    cursor: str | None
    total: tuple[int, int, bool]
    bound: str = ""

    def text(self) -> str:
        hits = sum(match.is_match for _, lines, _ in self.files for match in lines)
        lines, files, at_least = self.total
        head = pluralize(len(self.files), "file")
        if hits:
            known = f"{'at least ' * at_least}{lines:,}"
            if hits < lines and len(self.files) == files:
                head = f"{hits:,} of {known} matches in {head}"
            else:
                more_files = f", of {known} in {pluralize(files, 'file')}" if hits < lines else ""
                head = f"{pluralize(hits, 'match')} in {head}{more_files}"
        else:
            head += " matches" if len(self.files) == 1 else " match"
            if len(self.files) < files:
                head += f", of {'at least ' * at_least}{files:,}"
        notes = list(self.notes)
        if self.bound:
            notes.append(f"raise {self.bound} for more")
        if self.cursor is not None:
            notes.append(f'more match: continue with cursor="{self.cursor}"')
        shown = ["; ".join([f"[{head}", *notes]) + "]"]
        # Of a search that found one file alone, the first line has told it.
        tells = files > 1
        lines_of = (
            (path, [*_format_lines(found), *[f"{whole:,} in all"] * (tells and whole > 0)])
            for path, found, whole in self.files
        )
        return "\n".join([*shown, *below(("", path, found) for path, found in lines_of)])


@dataclass(frozen=True, slots=True)
class MatchCounts(TextResult):
    """A page of what was counted.

    Attributes:
        rows: files, by path, with their matching lines; or what matched, the most frequent first.
        of: `file`, `text`, or `sum`: texts that end in the sums of what came with them.
        kinds: rows in all.
        total: lines that match and files that have some.
        matches: of texts, how many in files of each ending, the most first.
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
            sums = " and sum" if self.kind == "sum" else ""
            notes.insert(0, f"{pluralize(self.row_count, 'text')}, each with its number{sums}")
            if (number := sum(number for _, number in self.matches_by_suffix)) > lines or len(
                self.matches_by_suffix
            ) > 1:
                of = ", ".join(
                    f"{one:,} in {escape_line_breaks(ending) or 'others'}"
                    for ending, one in self.matches_by_suffix[:_MOST_ENDINGS]
                )
                notes.insert(0, f"{pluralize(number, 'match')}{f': {of}' if len(self.matches_by_suffix) > 1 else ''}")
        if self.cursor is not None:
            notes.append(f'{len(self.rows):,} of {self.row_count:,}: continue with cursor="{self.cursor}"')
        if self.kind == "file":
            rows = below(("", path, [str(number)]) for path, number in self.rows)
        else:
            rows = [f"{number}\t{text}" for text, number in self.rows]
        return "\n".join(["; ".join([f"[{head}", *notes]) + "]", *rows])


def _format_lines(matches: Sequence[Match]) -> list[str]:
    lines: list[str] = []
    context = any(not match.is_match for match in matches)
    for number, match in enumerate(matches):
        if context and number and match.line > matches[number - 1].line + 1:
            lines.append("--")
        mark = ":" if match.is_match else "-"
        at = "" if match.column is None else f"{match.column}{mark}"
        cut = "" if match.column is None else f" [cut: {match.line_bytes:,} bytes]"
        lines.append(f"{match.line}{mark}{at}{match.text}{cut}")
    return lines
