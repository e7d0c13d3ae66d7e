"""Results of changes and dry runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.server.calling.results import TextResult, group_by_folder
from mcp_fs.models.formatting import list_paths, pluralize

__all__ = ["BatchResult", "EditResult", "MoveResult", "ReplaceResult", "ReplacedFile", "WriteResult", "clip_diff"]

_MAX_NAMED = 20
# Of those that were changed as asked: the first line has their number.
_MAX_EXAMPLES = 5
# Of those whose encoding is guessed, because each may be guessed wrongly.
_MAX_GUESSES = 100
_MAX_ENTRIES = 50
_HUNK = re.compile(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@")
_MAX_PLACES = 20
# Of a diff that a view gets beyond those of the answer.
_MAX_VIEW_CHARACTERS = 1_000_000


@dataclass(frozen=True, slots=True)
class WriteResult(TextResult):
    """A file that was created, replaced or added to.

    Attributes:
        verb: in the past tense, such as `created`.
        size: bytes of the new content.
        notes: properties of the old file that could not be kept, or were kept and are not those of any text; and what
            may not be meant so in the new one.
    """

    path: str
    verb: str
    size: int
    notes: Sequence[str]

    def text(self) -> str:
        facts = [f"{self.verb} {self.path}", f"{self.size:,} bytes", *self.notes]
        return ", ".join(facts)


@dataclass(frozen=True, slots=True)
class EditResult(TextResult):
    """What an edit changed, or would change, in one file or several.

    The caller knows the old and new text, so a real edit only says where it is; a dry run shows the diff.

    Attributes:
        files: for each file its path, and what happened to it.
        diffs: their unified diffs, in the same order.
        dry_run: whether nothing was written.
        notes: what could not be kept.
        old_hash: the hash of the file as it was, where it is one file.
    """

    files: Sequence[tuple[str, str]]
    diffs: Sequence[str]
    dry_run: bool
    notes: Sequence[str] = ()
    old_hash: str | None = None

    @property
    def diff(self) -> str:
        """All diffs, complete."""
        return "\n".join(self.diffs)

    @property
    def for_views(self) -> dict[str, str]:
        """What a person must see but a model need not: all lines, and the content that an approval is for."""
        contents: dict[str, str] = {}
        diff = self.diff
        if not diff.endswith("\n"):
            # As the text of a dry run ends: a view compares what it approved with what was then written.
            diff += "\n"
        is_all_shown = self.dry_run and all(len(one) <= DEFAULT_PAGE_BYTES for one in self.diffs)
        if not is_all_shown and len(diff) <= _MAX_VIEW_CHARACTERS:
            contents["diff"] = diff
        if self.dry_run and self.old_hash:
            contents["hash"] = self.old_hash
        return contents

    def text(self) -> str:
        if self.dry_run:
            plans = [f"would be {verb}: {path}" for path, verb in self.files]
            return "\n".join(["[dry run: nothing was written]", *plans, *self.notes, *map(clip_diff, self.diffs)])
        lines: list[str] = []
        for (path, verb), diff in zip(self.files, self.diffs, strict=True):
            line = f"{verb} {path}"
            places = ""
            if verb == "edited":
                places = _describe_places(diff)
            if places:
                line += f", {places}"
            lines.append(line)
        return "\n".join([*lines, *self.notes])


def _describe_places(diff: str) -> str:
    """Say where lines were added and removed, by the new line numbers: `line 7 (+1), lines 20-22 (+3 -1)`."""
    _, _, *lines = diff.rstrip("\n").split("\n")
    if lines and not _HUNK.match(lines[0]):
        return lines[0]
    reader = _PlaceReader()
    for line in lines:
        reader.add(line)
    reader.end_place()
    places = reader.places[:_MAX_PLACES]
    if len(reader.places) > _MAX_PLACES:
        places.append(f"{len(reader.places) - _MAX_PLACES:,} places more")
    return ", ".join(places)


@dataclass(slots=True)
class _PlaceReader:
    """Finds the lines that a unified diff changes, line by line of its hunks.

    Attributes:
        places: those that are complete.
        number: of the line in the new file that comes next.
        added_count: lines added at the current place.
        removed_count: lines removed there.
    """

    places: list[str] = field(default_factory=list[str])
    number: int = 0
    added_count: int = 0
    removed_count: int = 0

    def add(self, line: str) -> None:
        match line[:1]:
            case "+":
                self.added_count += 1
                self.number += 1
            case "-":
                self.removed_count += 1
            case "\\":
                pass
            case _:
                self.end_place()
                self.move_past(line)

    def end_place(self) -> None:
        if self.added_count or self.removed_count:
            self.places.append(f"{self._describe_lines()} ({self._describe_counts()})")
        self.added_count = 0
        self.removed_count = 0

    def move_past(self, line: str) -> None:
        """Follow a line of context, or the head of a hunk."""
        hunk = _HUNK.match(line)
        if hunk is None:
            self.number += 1
            return
        self.number = int(hunk[1])
        if hunk[2] == "0":
            self.number += 1

    def _describe_lines(self) -> str:
        match self.added_count:
            case 0:
                return f"line {self.number}"
            case 1:
                return f"line {self.number - 1}"
            case count:
                return f"lines {self.number - count}-{self.number - 1}"

    def _describe_counts(self) -> str:
        signs: list[str] = []
        if self.added_count:
            signs.append(f"+{self.added_count:,}")
        if self.removed_count:
            signs.append(f"-{self.removed_count:,}")
        return " ".join(signs)


def clip_diff(diff: str) -> str:
    """Return as much of a diff as one answer may contain, after a line that says so."""
    if len(diff) <= DEFAULT_PAGE_BYTES:
        return diff
    return f"[diff cut to {DEFAULT_PAGE_BYTES:,} of {len(diff):,} characters]\n{diff[:DEFAULT_PAGE_BYTES]}"


@dataclass(frozen=True, slots=True)
class ReplacedFile:
    """A file that a replacement changed, or would change.

    Attributes:
        count: replacements in it; none where only its encoding changed.
        old_encoding: what it was written in; empty if that stays.
        example: a word of it, where `old_encoding` is a guess.
    """

    path: str
    count: int
    old_encoding: str = ""
    example: str = ""

    @property
    def line(self) -> str:
        line = self.path
        if self.count > 1:
            line += f" {self.count}"
        if self.old_encoding:
            line += f" from {self.old_encoding}"
        if self.example:
            line += f" ({self.example})"
        return line


@dataclass(frozen=True, slots=True)
class ReplaceResult(TextResult):
    """What a replacement over many files changed, or would change.

    Attributes:
        files: all of them.
        page: of some of them the path, lines that differ, and whether these are all of it.
        dry_run: whether nothing was written.
        encoding: what files were converted to; empty if each kept its own.
        file_count: files that were looked at.
    """

    files: Sequence[ReplacedFile]
    page: Sequence[tuple[str, Sequence[str], bool]]
    dry_run: bool
    notes: Sequence[str] = ()
    encoding: str = ""
    file_count: int = 0

    def text(self) -> str:
        complete_files = {path for path, _, is_complete in self.page if is_complete}
        others = [(file.path, file.line) for file in self.files if file.path not in complete_files or file.old_encoding]
        partial_count = sum(file.count > 0 and file.path not in complete_files for file in self.files)
        lines = [self._head(partial_count), *list_paths(others, self._max_named)]
        return "\n".join([*lines, *group_by_folder(("", path, changed_lines) for path, changed_lines, _ in self.page)])

    @property
    def _max_named(self) -> int:
        """How many files are named; of others how many each folder has."""
        if self._has_guesses:
            return _MAX_GUESSES
        if self.dry_run:
            return _MAX_NAMED
        return _MAX_EXAMPLES

    @property
    def _has_guesses(self) -> bool:
        return any(file.example for file in self.files)

    def _head(self, partial_count: int) -> str:
        """Return the first line, where so many files are not on the page with all their lines."""
        facts: list[str] = []
        counts = [file.count for file in self.files if file.count]
        if counts or not self.encoding:
            verb = "would replace" if self.dry_run else "replaced"
            facts.append(f"{verb} {pluralize(sum(counts), 'place')} in {pluralize(len(counts), 'file')}")
        if self.encoding:
            facts += self._describe_conversion()
        if not self.files and not self.encoding:
            facts.append(f"{pluralize(self.file_count, 'file')} looked at")
        facts += self.notes
        if self.dry_run and self.files:
            facts.append("nothing was written: repeat with dry_run=false")
        if partial_count and self.page:
            facts.append(f"the lines of {pluralize(partial_count, 'file')} are not all shown")
        return f"[{'; '.join(facts)}]"

    def _describe_conversion(self) -> list[str]:
        """Say how many files get another encoding, and what is not certain of their old ones."""
        verb = "would convert" if self.dry_run else "converted"
        converted_count = sum(bool(file.old_encoding) for file in self.files)
        facts = [f"{verb} {converted_count:,} of {pluralize(self.file_count, 'file')} to {self.encoding}"]
        if converted_count > self._max_named:
            facts.append(f"from {self._describe_old_encodings()}")
        if self._has_guesses:
            facts.append("old encodings are guessed: look whether the words in brackets are right")
            if self.dry_run:
                facts.append(f'a wrong one can be named, as encoding="cp1250>{self.encoding}"')
        return facts

    def _describe_old_encodings(self) -> str:
        """Say how many files had which encoding, the most frequent first."""
        counts = Counter(file.old_encoding for file in self.files if file.old_encoding)
        return ", ".join(f"{encoding} ({count:,})" for encoding, count in counts.most_common())


@dataclass(frozen=True, slots=True)
class MoveResult(TextResult):
    """What happened to an entry of the tree, in one line.

    Attributes:
        verb: in the past tense, such as `moved`.
        path: what it was done to, as tools take it.
        target: where it is now, when it has moved or was copied.
        notes: what else the caller should know.
    """

    verb: str
    path: str
    target: str | None = None
    notes: Sequence[str] = ()

    def text(self) -> str:
        head = f"{self.verb} {self.path}"
        if self.target is not None:
            head += f" to {self.target}"
        return ", ".join([head, *self.notes])


@dataclass(frozen=True, slots=True)
class BatchResult(TextResult):
    """What happened to several entries; for a single one, its line.

    Attributes:
        notes: what the caller should know about all of them.
        names_all: whether the caller named each of them, and where it goes.
    """

    entries: Sequence[MoveResult]
    notes: Sequence[str] = ()
    names_all: bool = True

    def text(self) -> str:
        if not self.entries:
            return "; ".join(["[nothing to do", *self.notes]) + "]"
        first, *others = self.entries
        if not others:
            return replace(first, notes=[*first.notes, *self.notes]).text()
        head = "; ".join([f"[{first.verb.rstrip(':')} {len(self.entries):,}", *self.notes]) + "]"
        noted = [entry for entry in self.entries if entry.notes]
        plain: list[MoveResult] = []
        if not self.names_all:
            plain = [entry for entry in self.entries if not entry.notes]
        rows = [(entry.path, ", ".join([entry.path, *entry.notes])) for entry in (*noted, *plain)]
        return "\n".join([head, *list_paths(rows, min(len(noted), _MAX_ENTRIES) + _MAX_EXAMPLES)])
