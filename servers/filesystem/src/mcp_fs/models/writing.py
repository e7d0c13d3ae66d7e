"""Results of changes and dry runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mcp_batteries.limits import DEFAULT_PAGE_BYTES
from mcp_batteries.server.results import TextResult, below
from mcp_fs.models.formatting import pluralize

__all__ = ["BatchResult", "EditResult", "MoveResult", "ReplaceResult", "WriteResult", "clip_diff"]

_MAX_NAMED = 50
_HUNK = re.compile(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@")
_MAX_PLACES = 20
_MAX_VIEW_CHARACTERS = 1_000_000
"""Characters of a diff that a view gets beyond those of the answer."""


@dataclass(frozen=True, slots=True)
class WriteResult(TextResult):
    """A file that was created or replaced.

    Attributes:
        size: bytes of the new content.
        notes: properties of the old file that could not be kept.
    """

    path: str
    created: bool
    size: int
    notes: Sequence[str]

    def text(self) -> str:
        verb = "created" if self.created else "replaced"
        facts = [f"{verb} {self.path}", f"{self.size:,} bytes", *self.notes]
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
        before: the hash of the file as it was, where it is one file.
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
        cut = any(len(diff) > DEFAULT_PAGE_BYTES for diff in self.diffs)
        # As the text of a dry run ends: a view compares what it approved with what was then written.
        diff = self.diff if self.diff.endswith("\n") else f"{self.diff}\n"
        return {
            **({"diff": diff} if (cut or not self.dry_run) and len(diff) <= _MAX_VIEW_CHARACTERS else {}),
            **({"hash": self.old_hash} if self.dry_run and self.old_hash else {}),
        }

    def text(self) -> str:
        if self.dry_run:
            would = [f"would be {did}: {path}" for path, did in self.files]
            return "\n".join(["[dry run: nothing was written]", *would, *self.notes, *map(clip_diff, self.diffs)])
        lines: list[str] = []
        for (path, did), diff in zip(self.files, self.diffs, strict=True):
            where = _describe_places(diff) if did == "edited" else ""
            lines.append(", ".join(filter(None, (f"{did} {path}", where))))
        return "\n".join([*lines, *self.notes])


def _describe_places(diff: str) -> str:
    """Where lines were added and removed, by the new line numbers: `line 7 (+1), lines 20-22 (+3 -1)`."""
    _, _, *lines = diff.rstrip("\n").split("\n")
    if lines and not _HUNK.match(lines[0]):
        return lines[0]
    places: list[str] = []
    number = added_count = removed_count = 0
    for line in [*lines, " "]:
        match line[:1]:
            case "+":
                added_count, number = added_count + 1, number + 1
            case "-":
                removed_count += 1
            case "\\":
                pass
            case _:
                if added_count or removed_count:
                    at = f"line {number - 1}" if added_count == 1 else f"lines {number - added_count}-{number - 1}"
                    signs = [f"+{added_count:,}"] * bool(added_count) + [f"-{removed_count:,}"] * bool(removed_count)
                    places.append(f"{at if added_count else f'line {number}'} ({' '.join(signs)})")
                added_count = removed_count = 0
                hunk = _HUNK.match(line)
                number = number + 1 if hunk is None else int(hunk[1]) + (hunk[2] == "0")
    more = [f"{len(places) - _MAX_PLACES:,} places more"] if len(places) > _MAX_PLACES else []
    return ", ".join([*places[:_MAX_PLACES], *more])


def clip_diff(diff: str) -> str:
    """As much of a diff as one answer may contain, after a line that says so."""
    if len(diff) <= DEFAULT_PAGE_BYTES:
        return diff
    return f"[diff cut to {DEFAULT_PAGE_BYTES:,} of {len(diff):,} characters]\n{diff[:DEFAULT_PAGE_BYTES]}"


@dataclass(frozen=True, slots=True)
class ReplaceResult(TextResult):
    """What a replacement over many files changed, or would change.

    Attributes:
        files: paths with their number of replacements, which is shown if it is more than one.
        page: of some of them the path, lines that differ, and whether these are all of it.
        dry_run: whether nothing was written.
    """

    files: Sequence[tuple[str, int]]
    page: Sequence[tuple[str, Sequence[str], bool]]
    dry_run: bool
    notes: Sequence[str] = ()

    def text(self) -> str:
        number = sum(count for _, count in self.files)
        did = "would replace" if self.dry_run else "replaced"
        head = [f"{did} {pluralize(number, 'place')} in {pluralize(len(self.files), 'file')}", *self.notes]
        if self.dry_run and self.files:
            head.append("nothing was written: repeat with dry_run=false")
        whole = {path for path, _, is_whole in self.page if is_whole}
        others = [path if count == 1 else f"{path} {count}" for path, count in self.files if path not in whole]
        more = [f"and {len(others) - _MAX_NAMED:,} more"] if len(others) > _MAX_NAMED else []
        if others and self.page:
            head.append(f"the lines of {pluralize(len(others), 'file')} are not all shown")
        lines = below(("", path, shown) for path, shown, _ in self.page)
        named = below(("", name, ()) for name in others[:_MAX_NAMED])
        return "\n".join([f"[{'; '.join(head)}]", *named, *more, *lines])


@dataclass(frozen=True, slots=True)
class MoveResult(TextResult):
    """What happened to an entry of the tree, in one line.

    Attributes:
        did: a verb in the past tense, such as `moved`.
        path: what it was done to, as tools take it.
        target: where it is now, when it has moved or was copied.
        notes: what else the caller should know.
    """

    verb: str
    path: str
    target: str | None = None
    notes: Sequence[str] = ()

    def text(self) -> str:
        head = f"{self.verb} {self.path}" + ("" if self.target is None else f" to {self.target}")
        return ", ".join([head, *self.notes])


@dataclass(frozen=True, slots=True)
class BatchResult(TextResult):
    """What happened to several entries; for a single one, its line.

    Attributes:
        notes: what the caller should know about all of them.
        asked: whether the caller named each of them.
    """

    entries: Sequence[MoveResult]
    notes: Sequence[str] = ()
    names_all: bool = False

    def text(self) -> str:
        first, *others = self.entries
        if not others:
            return replace(first, notes=[*first.notes, *self.notes]).text()
        head = "; ".join([f"[{first.verb.rstrip(':')} {len(self.entries):,}", *self.notes]) + "]"
        # Where each is now, the caller has said.
        named = [one for one in self.entries if one.notes or (one.target is None and not self.names_all)]
        return "\n".join([head, *below(("", ", ".join([one.path, *one.notes]), ()) for one in named)])
