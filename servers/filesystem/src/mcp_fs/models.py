"""What the tools answer: shapes only, and how each reads as text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from mcp_batteries.errors import Problem
from mcp_batteries.limits import DEFAULT_PAGE_BYTES
from mcp_batteries.server.results import DataResult, TextResult

__all__ = [
    "Compared",
    "Edited",
    "Entry",
    "FileInfo",
    "FileSlices",
    "FolderPage",
    "FoundFiles",
    "Match",
    "Matches",
    "Media",
    "Moved",
    "Replaced",
    "Steps",
    "Tallies",
    "TextSlice",
    "Tree",
    "UndoStep",
    "Undone",
    "Whole",
    "Written",
    "counted",
    "is_one_line",
    "one_line",
]


# Surrogates stand for bytes that are not UTF-8, which no answer can carry.
_BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


_MOST_NAMED = 50
_MOST_PATHS = 3
_MOST_SHOWN = 1_000_000
"""Characters of a diff that a view gets beyond those of the answer."""


def is_one_line(text: str) -> bool:
    """False for text that could pass for the end of a line of an answer."""
    return _BREAKS.search(text) is None


def one_line(text: str) -> str:
    """`text` with what could pass for the end of a line escaped."""
    return _BREAKS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def counted(number: int, noun: str) -> str:
    """`1 file`, `2,000 files`, `3 entries`."""
    if number == 1:
        return f"1 {noun}"
    ending = noun[:-1] + "ies" if noun.endswith("y") else f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{number:,} {ending}"


# Reading


@dataclass(frozen=True, slots=True)
class TextSlice(TextResult):
    """Some lines of a text file.

    Attributes:
        path: as tools take it.
        body: the lines, with numbers when asked for.
        encoding: for people.
        first: number of the first line; None when only the distance from the end is known.
        last: number of the last line; None when the file does not reach `first` yet.
        total: lines in the file; None when counting them would mean reading a large file.
        size: bytes of the file.
        bytes_shown: bytes of the file in `body`.
        column: byte of the first line that `body` begins with, from 1; None within a line whose beginning is far.
        end_line: last line wanted; None for as many as there are.
        next_line: where the next page begins; None when nothing wanted is left.
        next_column: byte where the last line goes on when it was cut, from 1.
        following: the line behind that one, if there is one and it is wanted.
        lines_shown: lines in `body`.
        lines_asked: last lines asked for when they, or the one, are more than a page.
        replaced: whether bytes that do not decode are shown as U+FFFD.
        unterminated: whether the file's last line is shown and has no line end.
        hash: of the whole content, of a file that can be edited.
    """

    path: str
    body: str
    encoding: str
    first: int | None
    last: int | None
    total: int | None
    size: int
    bytes_shown: int
    column: int | None
    end_line: int | None
    next_line: int | None
    next_column: int | None
    following: int | None
    lines_shown: int
    lines_asked: int | None
    replaced: bool
    unterminated: bool
    hash: str | None

    @property
    def status(self) -> str:
        """One line: what is shown, of what, and the exact way on."""
        facts = [self._span(), self.encoding]
        if self.hash is not None:
            facts.append(f"hash {self.hash}")
        if self.replaced:
            facts.append("undecodable bytes shown as \ufffd")
        if self.unterminated:
            facts.append("no line end at the end")
        return ", ".join(facts) + self._way_on()

    def text(self) -> str:
        return f"[{self.status}]\n{self.body}"

    def _span(self) -> str:
        if self.first is not None and self.last is None:
            return f"no line {self.first:,} yet, {counted(self.total or 0, 'line')}"
        if not self.size or self.total == 0:
            return "empty file"
        if self.column is None:
            return f"the end of the last line, {self.bytes_shown:,} of {self.size:,} bytes"
        if self.first is None:
            return f"last {counted(self.lines_shown, 'line')} of {self.size:,} bytes"
        span = f"line {self.first}" if self.first == self.last else f"lines {self.first}-{self.last}"
        if self.column > 1:
            span += f" from column {self.column}"
        return f"{span} of {self.total:,}" if self.total is not None else f"{span} of {self.size:,} bytes"

    def _way_on(self) -> str:
        until = "" if self.end_line is None else f", end_line={self.end_line}"
        if self.next_column is not None:
            line = self.last or 1
            rest = f"; line {line} is cut: its rest is at start_line={line}, start_column={self.next_column}{until}"
            return rest if self.following is None else f"{rest}; the next line at start_line={self.following}{until}"
        if self.lines_asked == 1:
            return "; the line is cut: raise max_bytes for more of it"
        if self.lines_asked is not None:
            return f"; {self.lines_asked:,} lines were asked for: raise max_bytes for more"
        return "" if self.next_line is None else f"; continue with start_line={self.next_line}{until}"


@dataclass(frozen=True, slots=True)
class FileSlices(TextResult):
    """Several files, each with its lines or its failure, in the order asked for."""

    outcomes: Sequence[tuple[str, TextSlice | Problem]]

    def text(self) -> str:
        return "".join(self._one(name, outcome) for name, outcome in self.outcomes)

    @staticmethod
    def _one(name: str, outcome: TextSlice | Problem) -> str:
        name = one_line(name)
        if isinstance(outcome, Problem):
            return f"=== {name}: failed: {outcome}\n"
        end = "" if not outcome.body or outcome.body.endswith("\n") else "\n"
        return f"=== {name} [{outcome.status}]\n{outcome.body}{end}"


@dataclass(frozen=True, slots=True)
class Media:
    """A file, or a page of one, for the eyes and ears of a model.

    Attributes:
        kind: `image` and `audio` are shown, `text` is read, `blob` is handed over.
        path: as tools take it.
        uri: of the file, or of the part of it in `data`.
        mime_type: of `data`, by its first bytes; of the file for `text`.
        note: one line about what it is and what is left out.
        data: bytes to show or hand over.
        body: what there is to read.
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
class Whole:
    """All of a file, or a folder's listing.

    Attributes:
        text: its characters; None when it is no text.
        data: its bytes.
    """

    mime_type: str
    text: str | None
    data: bytes = b""


# Listing


class FileInfo(DataResult):
    """What is known of one entry without reading it all."""

    path: str
    uri: str
    kind: str
    size: int
    modified: str
    created: str | None = None
    mode: str
    entries: int | None = None
    link_to: str | None = None
    mime_type: str | None = None
    encoding: str | None = None
    hash: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a listing.

    Attributes:
        path: as tools take it.
        kind: `file`, `folder`, `link` or what else there is.
        size: bytes; None where it means nothing.
        modified: UTC, to the minute.
        note: where a link leads, or why the entry can't be used.
    """

    path: str
    kind: str
    size: int | None
    modified: str
    note: str = ""

    def line(self) -> str:
        name = self.path + "/" if self.kind == "folder" and not self.path.endswith("/") else self.path
        size = "" if self.size is None else f"{self.size:,}"
        return "\t".join(filter(None, (name, size, self.modified, self.note)))


@dataclass(frozen=True, slots=True)
class FolderPage(TextResult):
    """A page of a folder's entries.

    Attributes:
        total: entries in the folder, left-out ones not counted.
        left_out: hidden and ignored entries that were not wanted.
        cursor: position of the next page; None on the last.
    """

    path: str
    entries: Sequence[Entry]
    total: int
    sort: str
    left_out: int
    cursor: str | None

    def text(self) -> str:
        if self.cursor is None and len(self.entries) == self.total:
            head = f"{self.path}: {counted(self.total, 'entry')}"
        else:
            head = f"{self.path}: {len(self.entries):,} of {counted(self.total, 'entry')} by {self.sort}"
        if self.left_out:
            head += f", {self.left_out:,} hidden or ignored left out"
        if self.cursor is not None:
            head += f'; continue with cursor="{self.cursor}"'
        return "\n".join([f"[{head}]", *(entry.line() for entry in self.entries)])


@dataclass(frozen=True, slots=True)
class Tree(TextResult):
    """A folder's tree, folded where it would be too long.

    Attributes:
        lines: folders by their path, their files indented below them.
        folded: folders whose contents are only counted.
        notes: what could not be looked into.
    """

    path: str
    lines: Sequence[str]
    files: int
    folders: int
    folded: int
    notes: Sequence[str] = ()

    def text(self) -> str:
        head = f"{self.path}: {counted(self.files, 'file')} in {counted(self.folders, 'folder')}"
        if self.folded:
            head += f"; {counted(self.folded, 'folder')} folded: list one by its path, or raise depth or max_bytes"
        return "\n".join(["; ".join([f"[{head}", *self.notes]) + "]", *self.lines])


@dataclass(frozen=True, slots=True)
class Compared(TextResult):
    """Two files or folders side by side.

    Attributes:
        names: both paths.
        head: what came of it, in a few words.
        lines: a diff, or one line for each entry that is not in both alike.
        max_bytes: of the lines, for one answer.
    """

    names: tuple[str, str]
    head: str
    lines: Sequence[str]
    max_bytes: int

    def text(self) -> str:
        head, lines, left = f"{self.names[0]} and {self.names[1]}: {self.head}", list[str](), self.max_bytes
        for line in self.lines:
            left -= len(line.encode("utf-8", "replace")) + 1
            if left < 0:
                head += f"; {len(lines):,} of {len(self.lines):,} lines: raise max_bytes, or compare less"
                break
            lines.append(line)
        return "\n".join([f"[{head}]", *lines])


# Searching


@dataclass(frozen=True, slots=True)
class FoundFiles(TextResult):
    """A page of paths.

    Attributes:
        total: paths that match.
        notes: what could not be searched.
        cursor: position of the next page; None on the last.
        times: of each path when it was changed, if that is what they are sorted by; else empty texts.
    """

    paths: Sequence[str]
    total: int
    notes: Sequence[str]
    cursor: str | None
    times: Sequence[str] = ()

    def text(self) -> str:
        head = f"{self.total:,} found" if self.cursor is None else f"{len(self.paths):,} of {self.total:,}"
        notes = list(self.notes)
        if self.cursor is not None:
            notes.append(f'continue with cursor="{self.cursor}"')
        lines = [f"{path}\t{time}" if time else path for path, time in itertools.zip_longest(self.paths, self.times)]
        return "\n".join(["; ".join([f"[{head}", *notes]) + "]", *lines])


@dataclass(frozen=True, slots=True)
class Match:
    """One matching line, or one of its neighbours.

    Attributes:
        line: number, from 1.
        text: without its line end, cut round the match when it is long.
        hit: False for a line of context.
        column: byte where `text` begins when the line was cut, from 1.
        size: bytes of the whole line.
    """

    line: int
    text: str
    hit: bool = True
    column: int | None = None
    size: int = 0


@dataclass(frozen=True, slots=True)
class Matches(TextResult):
    """A page of matching lines, file by file.

    Attributes:
        files: for each file its path, its lines and whether it has more than were wanted of one file.
        notes: what was not searched.
        cursor: position of the next page; None when the search is complete.
        total: lines that match, files that have some, and whether there are more than were counted. Of a search for
            files only, lines mean nothing.
    """

    files: Sequence[tuple[str, Sequence[Match], bool]]
    notes: Sequence[str]
    cursor: str | None
    total: tuple[int, int, bool]

    def text(self) -> str:
        hits = sum(match.hit for _, lines, _ in self.files for match in lines)
        more = sum(has_more for _, _, has_more in self.files)
        lines, files, at_least = self.total
        head = counted(len(self.files), "file")
        if hits:
            head = f"{counted(hits, 'match')} in {head}"
            if hits < lines:
                head += f", of {'at least ' * at_least}{lines:,} in {counted(files, 'file')}"
        else:
            head += " matches" if len(self.files) == 1 else " match"
            if len(self.files) < files:
                head += f", of {'at least ' * at_least}{files:,}"
        notes = list(self.notes)
        if more:
            have = f"{counted(more, 'file')} {'has' if more == 1 else 'have'}"
            notes.append(f"{have} more, marked +: search one by its path with a higher max_per_file")
        if self.cursor is not None:
            notes.append(f'more match: continue with cursor="{self.cursor}"')
        shown = ["; ".join([f"[{head}", *notes]) + "]"]
        for path, matches, has_more in self.files:
            shown += _match_lines(path, matches)
            if has_more:
                shown.append(f"{path}:+")
            elif not matches:
                shown.append(path)
        return "\n".join(shown)


@dataclass(frozen=True, slots=True)
class Tallies(TextResult):
    """A page of what was counted.

    Attributes:
        rows: files, by path, with their matching lines; or what matched, the most frequent first.
        of: `file` or `text`.
        kinds: rows in all.
        total: lines that match and files that have some.
    """

    rows: Sequence[tuple[str, int]]
    of: str
    kinds: int
    total: tuple[int, int]
    notes: Sequence[str]
    cursor: str | None

    def text(self) -> str:
        lines, files = self.total
        head = f"{counted(lines, 'matching line')} in {counted(files, 'file')}"
        notes = list(self.notes)
        if self.of == "text":
            notes.insert(0, f"{counted(self.kinds, 'text')}, each with its number")
        if self.cursor is not None:
            notes.append(f'{len(self.rows):,} of {self.kinds:,}: continue with cursor="{self.cursor}"')
        if self.of == "file":
            rows = [f"{path}:{number}" for path, number in self.rows]
        else:
            rows = [f"{number}\t{text}" for text, number in self.rows]
        return "\n".join(["; ".join([f"[{head}", *notes]) + "]", *rows])


def _match_lines(path: str, matches: Sequence[Match]) -> list[str]:
    lines: list[str] = []
    context = any(not match.hit for match in matches)
    for number, match in enumerate(matches):
        if context and number and match.line > matches[number - 1].line + 1:
            lines.append("--")
        mark = ":" if match.hit else "-"
        at = "" if match.column is None else f"{match.column}{mark}"
        cut = "" if match.column is None else f" [cut: {match.size:,} bytes]"
        lines.append(f"{path}{mark}{match.line}{mark}{at}{match.text}{cut}")
    return lines


# Writing


@dataclass(frozen=True, slots=True)
class Written(TextResult):
    """A file that was created or replaced.

    Attributes:
        size: bytes of the new content.
        hash: of the new content, as `expected_hash` takes it.
        notes: what could not be kept of the old file.
    """

    path: str
    uri: str
    created: bool
    size: int
    hash: str
    notes: Sequence[str]

    def text(self) -> str:
        did = "created" if self.created else "replaced"
        facts = [f"{did} {self.path}", f"{self.size:,} bytes", f"hash {self.hash}", *self.notes]
        return f"{', '.join(facts)}\n{self.uri}"


@dataclass(frozen=True, slots=True)
class Edited(TextResult):
    """What an edit changed, or would change, in one file or several.

    Attributes:
        files: for each file its path, what happened to it, and the hash of its new content (None when deleted).
        diffs: their unified diffs, in the same order.
        dry_run: whether nothing was written.
        notes: what could not be kept.
        before: the hash of the file as it was, where it is one file.
    """

    files: Sequence[tuple[str, str, str | None]]
    diffs: Sequence[str]
    dry_run: bool
    notes: Sequence[str] = ()
    before: str | None = None

    @property
    def diff(self) -> str:
        """All of the diffs, whole."""
        return "\n".join(self.diffs)

    @property
    def for_views(self) -> dict[str, str]:
        """What a person has to see before approving and a model need not: all lines, and of which content."""
        cut = any(len(diff) > DEFAULT_PAGE_BYTES for diff in self.diffs)
        return {
            **({"diff": self.diff} if cut and len(self.diff) <= _MOST_SHOWN else {}),
            **({"hash": self.before} if self.dry_run and self.before else {}),
        }

    def text(self) -> str:
        lines = ["[dry run: nothing was written]"] if self.dry_run else []
        for path, did, digest in self.files:
            if self.dry_run:
                lines.append(f"would be {did}: {path}")
            else:
                lines.append(f"{did} {path}" + (f", hash {digest}" if digest else ""))
        return "\n".join([*lines, *self.notes, *map(clipped_diff, self.diffs)])


def clipped_diff(diff: str) -> str:
    """As much of a diff as one answer holds, behind a line that says so."""
    if len(diff) <= DEFAULT_PAGE_BYTES:
        return diff
    return f"[diff cut to {DEFAULT_PAGE_BYTES:,} of {len(diff):,} characters]\n{diff[:DEFAULT_PAGE_BYTES]}"


@dataclass(frozen=True, slots=True)
class Replaced(TextResult):
    """What a replacement over many files changed, or would change.

    Attributes:
        files: paths with their number of replacements.
        page: lines before and after, as many as fit.
        dry_run: whether nothing was written.
    """

    files: Sequence[tuple[str, int]]
    page: Sequence[str]
    dry_run: bool
    notes: Sequence[str] = ()

    def text(self) -> str:
        number = sum(count for _, count in self.files)
        did = "would replace" if self.dry_run else "replaced"
        head = [f"{did} {counted(number, 'place')} in {counted(len(self.files), 'file')}", *self.notes]
        if self.dry_run and self.files:
            head.append("nothing was written: repeat with dry_run=false")
        named = ", ".join(f"{path} {count}" for path, count in self.files[:_MOST_NAMED])
        more = f" and {len(self.files) - _MOST_NAMED:,} more" if len(self.files) > _MOST_NAMED else ""
        return "\n".join([f"[{'; '.join(head)}]", *([named + more] if named else []), *self.page])


@dataclass(frozen=True, slots=True)
class Moved(TextResult):
    """What happened to an entry of the tree, in one line.

    Attributes:
        did: past tense, such as `moved`.
        path: what it was done to, as tools take it.
        target: where it is now, when it has moved or was copied.
        notes: what else the caller should know.
    """

    did: str
    path: str
    target: str | None = None
    uri: str | None = None
    notes: Sequence[str] = ()

    def text(self) -> str:
        head = f"{self.did} {self.path}" + ("" if self.target is None else f" to {self.target}")
        return "\n".join([", ".join([head, *self.notes]), *([self.uri] if self.uri else [])])


@dataclass(frozen=True, slots=True)
class UndoStep:
    """What one call changed, as far as that can be taken back.

    Attributes:
        time: when, in seconds since 1970.
        paths: as tools take them.
    """

    id: str
    time: float
    tool: str
    paths: Sequence[str]

    def line(self) -> str:
        moment = datetime.fromtimestamp(int(self.time), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        more = f" and {len(self.paths) - _MOST_PATHS:,} more" if len(self.paths) > _MOST_PATHS else ""
        return "\t".join([self.id, moment, self.tool, ", ".join(self.paths[:_MOST_PATHS]) + more])


@dataclass(frozen=True, slots=True)
class Steps(TextResult):
    """The steps that can be taken back, the newest first.

    Attributes:
        total: of how many these are the newest.
        unread: steps, of whomever, that can't be read.
    """

    steps: Sequence[UndoStep]
    total: int
    unread: int = 0

    def text(self) -> str:
        head = counted(self.total, "step") if self.steps else "no steps that could be taken back"
        if self.total > len(self.steps):
            head = f"{len(self.steps)} of {head}"
        if self.unread:
            head += f", {self.unread:,} more can't be read"
        if self.steps:
            head += ", newest first"
        return "\n".join([f"[{head}]", *(step.line() for step in self.steps)])


@dataclass(frozen=True, slots=True)
class Undone(TextResult):
    """What was taken back, or would be.

    Attributes:
        lines: one for each entry.
        notes: what could not be kept.
    """

    lines: Sequence[str]
    dry_run: bool
    notes: Sequence[str]

    def text(self) -> str:
        head = "nothing was changed: repeat with dry_run=false" if self.dry_run else "taken back"
        cut = self.lines[:_MOST_NAMED]
        more = [f"and {len(self.lines) - len(cut):,} more"] if len(self.lines) > len(cut) else []
        return "\n".join([f"[{'; '.join([head, *self.notes])}]", *cut, *more])
