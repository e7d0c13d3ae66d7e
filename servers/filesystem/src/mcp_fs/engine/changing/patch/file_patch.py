"""What a patch does to one file, in whichever form it is written: its hunks, and their lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

__all__ = [
    "FORMAT_FIX",
    "FilePatch",
    "Hunk",
    "create_hunk",
    "create_rename",
    "line_end_of",
    "mark_blank_lines",
    "normalize_line_ends",
    "read_heading",
    "without_line_end",
]

FORMAT_FIX = "Send a unified diff with its `---` and `+++` lines, as `diff -u` and git write it."


@dataclass(frozen=True, slots=True)
class Hunk:
    """The lines of one hunk, without their ends.

    Attributes:
        line: where they should begin, from 1, or 0 when only the text tells.
        old_lacks_final_newline: whether the last line of the old text has no end.
        new_lacks_final_newline: the same of the new text.
        new_line_ends: of each line; None where the patch says nothing of them.
        headings: lines of the file that stand behind `@@`, outermost first: what begins with them holds the hunk.
        is_at_end: whether the patch says that its lines are the last ones.
    """

    line: int
    old_lines: tuple[str, ...]
    new_lines: tuple[str, ...]
    old_lacks_final_newline: bool
    new_lacks_final_newline: bool
    old_line_ends: tuple[str, ...] = ()
    new_line_ends: tuple[str, ...] | None = None
    headings: tuple[str, ...] = ()
    is_at_end: bool = False

    def behind(self, last_line: str) -> Hunk:
        """Return a hunk that adds the same lines behind the last line of a file."""
        return replace(
            self,
            old_lines=(last_line,),
            new_lines=(last_line, *self.new_lines),
            old_line_ends=(),
            new_line_ends=None,
        )


@dataclass(frozen=True, slots=True)
class FilePatch:
    """What a diff does to one file.

    Attributes:
        path: without the `a/` or `b/` of git.
        written_path: as the diff has it.
        deletes_any_content: whether it deletes the file whatever is in it.
        mode: as git names it, if it is a new one.
        renamed_from: the path that it has before; empty where it keeps it.
    """

    path: str
    written_path: str
    creates: bool
    deletes: bool
    hunks: tuple[Hunk, ...]
    deletes_any_content: bool = False
    mode: str | None = None
    renamed_from: str = ""


def create_rename(old: str, new: str, mode: str | None = None) -> FilePatch:
    return FilePatch(new, new, creates=False, deletes=False, hunks=(), mode=mode, renamed_from=old)


def create_hunk(
    line: int,
    old: Sequence[str],
    new: Sequence[str],
    lack_final_newline: tuple[bool, bool],
    states_line_ends: bool,
    headings: Iterable[str],
) -> Hunk:
    """Create a hunk of lines with their ends, which it keeps if the patch says something of them."""
    return Hunk(
        line,
        tuple(map(without_line_end, old)),
        tuple(map(without_line_end, new)),
        *lack_final_newline,
        tuple(map(line_end_of, old)) if states_line_ends else (),
        tuple(map(line_end_of, new)) if states_line_ends else None,
        tuple(headings),
    )


def read_heading(header: str) -> str:
    """Return what stands behind the `@@` of a hunk without numbers."""
    return header.removeprefix("@@").rstrip().removesuffix("@@").strip()


def mark_blank_lines(lines: Iterable[str]) -> list[str]:
    """Return the lines of a hunk with the blank of context before those that are empty."""
    return [" " + line if line in ("", "\r") else line for line in lines]


def normalize_line_ends(patch: str) -> str:
    """Return `patch` with line feeds alone where all its lines end in CRLF, which then says nothing of the files."""
    return patch.replace("\r\n", "\n") if patch.count("\n") == patch.count("\r\n") else patch


def without_line_end(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def line_end_of(line: str) -> str:
    return line[len(without_line_end(line)) :]
