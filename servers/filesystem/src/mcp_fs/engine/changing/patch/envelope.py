"""Reads patches as several models write them: `*** Update File:`, and hunks behind `@@` without numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mcp_batteries.errors import Invalid
from mcp_fs.engine.changing.patch.file_patch import (
    FORMAT_FIX,
    FilePatch,
    Hunk,
    create_hunk,
    create_rename,
    mark_blank_lines,
    normalize_line_ends,
    read_heading,
)
from mcp_fs.engine.text.edit import split_lines

__all__ = ["parse_envelope"]

# Before it may stand a fence of Markdown or a shell's command.
_START = re.compile(r"\A(?:(?!--- |\+\+\+ |@@ -|diff ).*\n)*?(?=\*\*\* (?:Begin Patch|(?:Add|Update|Delete) File: ))")
_FILE_LINE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")
_MOVE_TARGET = "*** Move to:"
_END_OF_FILE = "*** End of File"


def parse_envelope(patch: str) -> list[FilePatch] | None:
    """Return what such a patch does to each file; None if it is written otherwise.

    Raises:
        Invalid: it can't be read.
    """
    start = _START.search(patch)
    if start is None:
        return None
    sections: list[_Section] = []
    for line in normalize_line_ends(patch[start.end() :]).split("\n"):
        if line.startswith(("*** End Patch", "```")):
            break
        header = _FILE_LINE.fullmatch(line.removesuffix("\r"))
        if header is not None:
            sections.append(_Section(header[1], header[2]))
        elif line.startswith(_MOVE_TARGET):
            if sections:
                sections[-1] = sections[-1].renamed_by(line)
        elif sections and (line.startswith(_END_OF_FILE) or not line.startswith("*** End")):
            sections[-1].body.append(line)
    return [section.to_patch() for section in sections]


@dataclass(frozen=True, slots=True)
class _Section:
    """What such a patch does to one file.

    Attributes:
        operation: `Add`, `Update` or `Delete`.
        new_path: that a file gets which is updated; empty where it keeps its own.
    """

    operation: str
    path: str
    body: list[str] = field(default_factory=list[str])
    new_path: str = ""

    def renamed_by(self, line: str) -> _Section:
        """Return the section with what a line says that names the new path."""
        if self.operation != "Update":
            raise Invalid(f"The patch moves `{self.path}`, which it does not update.", FORMAT_FIX)
        if self.new_path:
            raise Invalid(f"The patch moves `{self.path}` twice.", FORMAT_FIX)
        return replace(self, new_path=line.removeprefix(_MOVE_TARGET).strip())

    def to_patch(self) -> FilePatch:
        parts = _split_hunks(self.body)
        states_line_ends = any("\r" in "".join(part.lines) for part in parts)
        hunks = [_create_unnumbered_hunk(part, states_line_ends) for part in parts]
        if self.new_path:
            return replace(create_rename(self.path, self.new_path), hunks=tuple(hunks))
        if self.operation == "Update" and not hunks:
            raise Invalid(f"The patch changes nothing in `{self.path}`.", FORMAT_FIX)
        is_deletion = self.operation == "Delete"
        return FilePatch(self.path, self.path, self.operation == "Add", is_deletion, tuple(hunks), is_deletion)


@dataclass(slots=True)
class _HunkPart:
    """One hunk as it is written.

    Attributes:
        headings: what stands behind its `@@`.
        is_at_end: whether the end of the file is said to follow it.
    """

    lines: list[str] = field(default_factory=list[str])
    headings: list[str] = field(default_factory=list[str])
    is_at_end: bool = False


def _split_hunks(body: Sequence[str]) -> list[_HunkPart]:
    parts = [_HunkPart()]
    for line in body:
        if line.startswith("@@"):
            if parts[-1].lines:
                parts.append(_HunkPart())
            heading = read_heading(line)
            if heading:
                parts[-1].headings.append(heading)
        elif line.startswith(_END_OF_FILE):
            parts[-1].is_at_end = True
        else:
            parts[-1].lines.append(line)
    hunks: list[_HunkPart] = []
    for part in parts:
        while part.lines and part.lines[-1] in ("", "\r"):
            part.lines.pop()  # blank lines between hunks and files are no context
        if part.lines:
            part.lines = mark_blank_lines(part.lines)
            hunks.append(part)
    return hunks


def _create_unnumbered_hunk(part: _HunkPart, states_line_ends: bool) -> Hunk:
    for line in part.lines:
        if line[0] not in " +-":
            raise Invalid(f"The patch can't be read: {line[:60]!r} must begin with ` `, `+` or `-`.", FORMAT_FIX)
    old = _unnumbered_side_lines(part.lines, " -")
    new = _unnumbered_side_lines(part.lines, " +")
    hunk = create_hunk(0, old, new, (False, False), states_line_ends, part.headings)
    return replace(hunk, is_at_end=part.is_at_end)


def _unnumbered_side_lines(body: Sequence[str], line_types: str) -> list[str]:
    """Return the lines of one side of a hunk, with their ends."""
    lines: list[str] = []
    for line in body:
        if line[0] in line_types:
            lines += split_lines(f"{line[1:]}\n")
    return lines
