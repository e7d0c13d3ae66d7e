"""Applies unified diffs strictly: the old text of a hunk must match exactly.

Only two things are forgiven, because models can't count: the lengths in a hunk's header, and its line number as
long as its text is found once only, or once in the class or function that it names. No context is ever skipped. A
patch in which some lines end in CRLF and others in LF means what it says of them; any other says nothing of line ends,
and they stay as they are in the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, Invalid, NotFound
from mcp_fs.engine.text.edit import describe_nearest, restore_undecodable, split_lines
from mcp_fs.engine.text.encodings import replace_undecodable as readable

if TYPE_CHECKING:
    from unidiff.patch import Line, PatchedFile

__all__ = ["FilePatch", "apply_hunks", "parse_patch"]

_BARE_HEADER = re.compile(r"@@(?! -\d).*", re.DOTALL)
_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)", re.DOTALL)
_GIT_HEADER = re.compile(r"^(?=diff --git )", re.MULTILINE)
_FILE_NAMES = re.compile(r"^--- .*\n\+\+\+ ", re.MULTILINE)
_EMPTY_FILE = re.compile(
    r"^diff --git (?P<old>(?P<quote>\"?)(?:[ab]/)?(?P<name>.{1,4096})) (?P<new>(?P=quote)(?:[ab]/)?(?P=name))\n"
    r"(?P<mode>new|deleted) file mode \d+\n(?:index .*\n?)?\s*\Z"
)
_FILE_MODE = re.compile(r"^new (?:file )?mode (\d+)$", re.MULTILINE)
# Behind the lines that git writes before it: the message of a mail can quote a rename.
_RENAMED = re.compile(
    r"(?:\A|^(?:diff --git|similarity index|dissimilarity index|new mode) .*\n)rename from (.+)\nrename to (.+)$",
    re.MULTILINE,
)
_BINARY_CONTENTS = re.compile(r"^(?:GIT binary patch|Binary files .+ differ)$", re.MULTILINE)
_NO_FILE = "/dev/null"
_BLOCK_CONTINUATIONS = (")", "]", "}", "{", "else", "elif", "except", "finally", "catch", "end")
_FORMAT_FIX = "Send a unified diff with its `---` and `+++` lines, as `diff -u` and git write it."


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


def parse_patch(patch: str) -> list[FilePatch]:
    """Parse a unified diff and return its files in order.

    Raises:
        Invalid: it is none, or does what text can't: copies, modes, binary contents.
    """
    if envelope := _ENVELOPE.search(patch):
        return _parse_envelope(_normalize_line_ends(patch[envelope.end() :]).split("\n"))
    files = _parse_unified_diff(patch)
    if not files:
        raise Invalid("The patch names no file.", _FORMAT_FIX)
    return files


def _parse_unified_diff(patch: str) -> list[FilePatch]:
    """Return what a unified diff does to each file."""
    # Half of its cost is compiling its expressions: paid by the first patch, not by every start.
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    files: list[FilePatch] = []
    try:
        for part in _split_by_file(_fix_hunk_headers(patch)):
            if part.rename is not None and not part.has_names:
                _refuse_binary_contents(part.text, part.rename[1])
                files.append(_to_plain_rename(*part.rename, mode=part.mode))
                continue
            for file in PatchSet(part.text):
                files.append(_to_file_patch(file, part))
    except UnidiffParseError as error:
        raise Invalid(f"The patch can't be read: {error}.", _FORMAT_FIX) from None
    return files


def _to_plain_rename(old: str, new: str, mode: str | None = None) -> FilePatch:
    return FilePatch(new, new, creates=False, deletes=False, hunks=(), mode=mode, renamed_from=old)


def _refuse_binary_contents(text: str, path: str) -> None:
    """Raise Invalid if the part of a patch that renames a file changes what is in it too."""
    if _BINARY_CONTENTS.search(text):
        raise Invalid(
            f"The patch renames `{path}` and changes it as binary.",
            "Leave it out; `move_file` renames it with the contents that it has.",
        )


def _to_file_patch(file: PatchedFile, part: _PatchPart) -> FilePatch:
    if part.rename is not None:
        return replace(_to_plain_rename(*part.rename, mode=part.mode), hunks=_to_hunks(file))
    mode = part.mode
    path = _unquote_path(file.path)
    _refuse_non_text(file, path, mode)
    creates = file.source_file == _NO_FILE
    return FilePatch(
        path,
        _unquote_path(file.target_file if creates else file.source_file),
        creates,
        file.target_file == _NO_FILE,
        _to_hunks(file),
        mode=mode,
    )


def _refuse_non_text(file: PatchedFile, path: str, mode: str | None) -> None:
    """Raise Invalid if the patch does to a file what is not a change of its text."""
    if mode is not None and not mode.startswith("100"):
        raise Invalid(f"The patch makes `{path}` a link or a submodule, not a text file.", "Leave it out.")
    if file.is_rename:
        raise Invalid(
            f"The patch makes `{path}` of another file.",
            f"Use `move_file` or `copy_file`; what changes then goes with `{path}` as `---` and as `+++`.",
        )
    if file.is_binary_file:
        raise Invalid(f"The patch changes `{path}` as binary.", "Leave it out.")
    if not (file or file.is_added_file or file.is_removed_file):
        subject = "only the mode of" if mode else "nothing in"
        raise Invalid(f"The patch changes {subject} `{path}`.", "Leave it out.")


def _to_hunks(file: PatchedFile) -> tuple[Hunk, ...]:
    sides = [(hunk, _side_lines(hunk, " -"), _side_lines(hunk, " +")) for hunk in file]
    states_line_ends = any(_has_carriage_return(old) or _has_carriage_return(new) for _, old, new in sides)
    hunks: list[Hunk] = []
    for hunk, old, new in sides:
        headings: list[str] = []
        if hunk.section_header and not hunk.source_start:
            headings.append(hunk.section_header.strip())
        lack_final_newline = (_lacks_final_newline(old), _lacks_final_newline(new))
        hunks.append(_create_hunk(hunk.source_start, old, new, lack_final_newline, states_line_ends, headings))
    return tuple(hunks)


def _has_carriage_return(lines: Iterable[str]) -> bool:
    """Whether a line ends in one."""
    return any("\r" in _line_end_of(line) for line in lines)


def apply_hunks(text: str, patch: FilePatch, label: str, cancel: CancelToken) -> str:
    """Apply the hunks to `text` and keep its line ends.

    Raises:
        NotFound: what a hunk expects is not there; quotes the nearest.
        Conflict: it is found several times, and not at its line number.
        Invalid: a hunk expects nothing, so that it could go anywhere.
    """
    if patch.deletes_any_content:
        return ""
    lines = split_lines(text)
    shift = 0
    min_index = 0
    bare_lines = [readable(_without_line_end(line)) for line in lines]
    for number, hunk in enumerate(patch.hunks, 1):
        cancel.check()
        hunk_label = f"Hunk {number} of {label}"
        if not hunk.old_lines and lines:
            if not hunk.is_at_end:
                raise Invalid(f"{hunk_label} has no context.", "Make the diff with at least one unchanged line.")
            hunk = hunk.behind(bare_lines[-1])
            min_index = min(min_index, len(lines) - 1)
        line = max(min_index, hunk.line - 1 + shift) if hunk.line else None
        start = _find_position(bare_lines, hunk, line, min_index, hunk_label, cancel)
        end = start + len(hunk.old_lines)
        if hunk.old_lines and end == len(lines):
            _check_final_newline(hunk, lines[-1], hunk_label)
        new = _restore_undecodable_lines(_with_line_ends(hunk, lines, start, end), lines[start:end])
        lines[start:end] = new
        bare_lines[start:end] = hunk.new_lines
        min_index = start + len(new)
        shift += len(hunk.new_lines) - len(hunk.old_lines)
    return "".join(lines)


def _check_final_newline(hunk: Hunk, last_line: str, hunk_label: str) -> None:
    """Check that the last line of a file has no end where the patch says so.

    Raises:
        NotFound: it has one.
    """
    if hunk.old_lacks_final_newline and _line_end_of(last_line) not in ("", *hunk.old_line_ends[-1:]):
        raise NotFound(f"{hunk_label}: its last line has a line end in the file and none in the patch.")


def _find_position(
    bare_lines: list[str], hunk: Hunk, line: int | None, min_index: int, hunk_label: str, cancel: CancelToken
) -> int:
    """Return the index of the line at which a hunk begins.

    Args:
        bare_lines: of the file, without their ends.
        line: the index that the patch says; None if it says none.
        min_index: behind the hunk before.

    Raises:
        NotFound: its lines are not there.
        Conflict: they are at several places, and not where the patch says.
    """
    size = len(hunk.old_lines)
    old_lines = list(hunk.old_lines)
    if not old_lines:
        return min_index
    if line is not None and bare_lines[line : line + size] == old_lines:
        return line
    if hunk.is_at_end and size <= len(bare_lines) - min_index and bare_lines[-size:] == old_lines:
        return len(bare_lines) - size
    starts = _find_all(bare_lines, old_lines, min_index)
    if hunk.headings and len(starts) > 1:
        first, last = _find_block(bare_lines, hunk.headings)
        starts = [start for start in starts if first <= start < last] or starts
    if len(starts) == 1:
        return starts[0]
    if starts:
        raise _ambiguous_error(hunk_label, starts, None if line is None else hunk.line)
    raise NotFound(
        f"{hunk_label}: its lines are not in the file.",
        describe_nearest("\n".join(bare_lines), "\n".join(old_lines), cancel),
    )


def _find_all(bare_lines: list[str], old_lines: list[str], min_index: int) -> list[int]:
    """Return every index from `min_index` on at which the lines are."""
    size = len(old_lines)
    return [
        start
        for start in range(min_index, len(bare_lines) - size + 1)
        if bare_lines[start] == old_lines[0] and bare_lines[start : start + size] == old_lines
    ]


def _ambiguous_error(hunk_label: str, starts: Sequence[int], stated_line: int | None) -> Conflict:
    line_numbers = ", ".join(str(start + 1) for start in starts[:10])
    if stated_line is None:
        return Conflict(
            f"{hunk_label}: its lines are at {line_numbers}.", "Quote more lines around it, or its line number."
        )
    return Conflict(
        f"{hunk_label}: its lines are at {line_numbers}, not at line {stated_line}.", "Correct the line number."
    )


def _find_block(bare_lines: list[str], headings: Sequence[str]) -> tuple[int, int]:
    """Find where the innermost of nested blocks begins and ends; nothing where that can't be told."""
    first = 0
    last = len(bare_lines)
    for number, heading in enumerate(headings):
        matches = [index for index in range(first, last) if bare_lines[index].strip() == heading]
        if not matches or (len(matches) > 1 and not number):
            return 0, 0
        first = matches[0]
        last = _find_end_of_block(bare_lines, matches[0], last)
    return first, last


def _find_end_of_block(bare_lines: list[str], first: int, last: int) -> int:
    """Find the line behind a block: the next that is indented no deeper and does not go on with it.

    Where nothing is indented, as under a heading, the next that begins with the same word.
    """
    depth = _indentation(bare_lines[first])
    word = bare_lines[first].split()[0]
    filled_lines = [index for index in range(first + 1, last) if bare_lines[index].strip()]
    is_indented = bool(filled_lines) and _indentation(bare_lines[filled_lines[0]]) > depth
    for index in filled_lines:
        line = bare_lines[index].strip()
        starts_anew = line.split()[0] == word or (is_indented and not line.startswith(_BLOCK_CONTINUATIONS))
        if _indentation(bare_lines[index]) < depth or (_indentation(bare_lines[index]) == depth and starts_anew):
            return index
    return last


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _with_line_ends(hunk: Hunk, lines: Sequence[str], start: int, end: int) -> list[str]:
    """Return the new lines with the ends of the old ones they stand for, else those of their neighbours.

    Where the patch says what ends there are, those that it says.
    """
    old_lines = lines[start:end]
    if hunk.new_line_ends is not None and tuple(map(_line_end_of, old_lines)) == hunk.old_line_ends:
        return [line + mark for line, mark in zip(hunk.new_lines, hunk.new_line_ends, strict=True)]
    default_end = _first_line_end((*old_lines, *lines[max(0, start - 1) : start], *lines[:1]))
    ends_by_line = {
        readable(_without_line_end(line)): _line_end_of(line) or default_end for line in reversed(old_lines)
    }
    new_lines = [line + ends_by_line.get(line, default_end) for line in hunk.new_lines]
    if new_lines and end == len(lines) and _leaves_last_line_open(hunk, lines):
        new_lines[-1] = hunk.new_lines[-1]
        if hunk.new_lacks_final_newline and hunk.new_line_ends:
            new_lines[-1] += hunk.new_line_ends[-1]
    return new_lines


def _first_line_end(lines: Iterable[str]) -> str:
    """Return the first line end among the lines; a line feed if none has one."""
    line_ends = (_line_end_of(line) for line in lines)
    return next(filter(None, line_ends), "\n")


def _leaves_last_line_open(hunk: Hunk, lines: Sequence[str]) -> bool:
    """Whether the file ends without a line end after a hunk at its end: it says so, or leaves it as it was."""
    if hunk.new_lacks_final_newline:
        return True
    return bool(lines) and not _line_end_of(lines[-1]) and not hunk.old_lacks_final_newline


def _restore_undecodable_lines(new: Sequence[str], old: Sequence[str]) -> list[str]:
    """Return `new` with the bytes of `old` that do not decode, line by line in order; both show them as U+FFFD."""
    undecodable_lines = [line for line in old if readable(line) != line]
    if not undecodable_lines:
        return list(new)
    restored_lines: list[str] = []
    for line in new:
        if "\ufffd" not in line:
            restored_lines.append(line)
            continue
        same_line = next(
            (was for was in undecodable_lines if _without_line_end(readable(was)) == _without_line_end(line)), None
        )
        original = same_line or next(
            (was for was in undecodable_lines if readable(was).count("\ufffd") == line.count("\ufffd")), "".join(old)
        )
        if original in undecodable_lines:
            undecodable_lines.remove(original)
        restored_lines.append(restore_undecodable(line, original))
    return restored_lines


def _create_hunk(
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
        tuple(map(_without_line_end, old)),
        tuple(map(_without_line_end, new)),
        *lack_final_newline,
        tuple(map(_line_end_of, old)) if states_line_ends else (),
        tuple(map(_line_end_of, new)) if states_line_ends else None,
        tuple(headings),
    )


def _side_lines(hunk: Iterable[Line], line_types: str) -> list[str]:
    """Return the lines of one side of a hunk with their ends in the file, where a carriage return is one."""
    lines: list[str] = []
    previous_type = ""
    for line in hunk:
        if line.line_type in line_types:
            lines += split_lines(line.value)
        elif line.line_type == "\\" and previous_type in line_types and lines:
            lines[-1] = lines[-1].removesuffix("\n")  # a carriage return before it is in the file
        previous_type = line.line_type
    return lines


def _lacks_final_newline(lines: Sequence[str]) -> bool:
    return any(not line.endswith("\n") for line in lines)


def _without_line_end(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def _line_end_of(line: str) -> str:
    return line[len(_without_line_end(line)) :]


def _unquote_path(path: str) -> str:
    """Decode a path as git writes it: names with special characters in quotes, their bytes as in C."""
    if len(path) > 1 and path[0] == path[-1] == '"':
        return os.fsdecode(path[1:-1].encode("ascii", "replace").decode("unicode_escape").encode("latin-1"))
    return path


def _normalize_line_ends(patch: str) -> str:
    """Return `patch` with line feeds alone where all its lines end in CRLF, which then says nothing of the files."""
    return patch.replace("\r\n", "\n") if patch.count("\n") == patch.count("\r\n") else patch


def _fix_hunk_headers(patch: str) -> str:
    """Set the lengths in the hunk headers of `patch` to what follows them."""
    lines = _normalize_line_ends(patch).removesuffix("\n").split("\n")
    result: list[str] = []
    index = 0
    while index < len(lines):
        lines[index] = lines[index].removesuffix("\r")
        if index and _BARE_HEADER.fullmatch(lines[index]):
            # Models can't count: the text tells where it belongs.
            lines[index] = f"@@ -0,0 +0,0 @@ {_read_heading(lines[index])}"
        header = _HEADER.fullmatch(lines[index])
        if header is None:
            result.append(lines[index])
            index += 1
            continue
        end = index + 1
        while end < len(lines) and not _is_end_of_hunk(lines, end):
            end += 1
        body = _trim_hunk_body(lines[index + 1 : end], (int(header[2] or 1), int(header[4] or 1)))
        old_count, new_count = _count_sides(body)
        result.append(f"@@ -{header[1]},{old_count} +{header[3]},{new_count} @@{header[5]}")
        result.extend(_mark_blank_lines(body))
        index = end
    return "\n".join([*result, ""])


def _trim_hunk_body(body: Sequence[str], stated_counts: tuple[int, int]) -> list[str]:
    """Return the lines of a hunk without those that follow it and are not counted in its header."""
    lines = list(body)
    while lines and not lines[-1].removesuffix("\r") and _count_sides(lines) != stated_counts:
        lines.pop()  # blank lines behind a diff are not context
    if lines and lines[-1].rstrip() == "--" and _count_sides(lines[:-1]) == stated_counts:
        lines.pop()  # so a mail's signature begins, behind what `git format-patch` writes
    return lines


def _count_sides(body: Sequence[str]) -> tuple[int, int]:
    """Count the lines of the old and of the new text in a hunk."""
    return _count_lines(body, " -"), _count_lines(body, " +")


# Before it may stand a fence of Markdown or a shell's command.
_ENVELOPE = re.compile(
    r"\A(?:(?!--- |\+\+\+ |@@ -|diff ).*\n)*?(?=\*\*\* (?:Begin Patch|(?:Add|Update|Delete) File: ))"
)
_ENVELOPE_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")
_MOVE_TARGET = "*** Move to:"
_END_OF_FILE = "*** End of File"


def _parse_envelope(lines: Sequence[str]) -> list[FilePatch]:
    """Parse a patch as several models write it: `*** Update File:`, hunks behind `@@` without numbers."""
    sections: list[_EnvelopeSection] = []
    for line in lines:
        if line.startswith(("*** End Patch", "```")):
            break
        header = _ENVELOPE_FILE.fullmatch(line.removesuffix("\r"))
        if header is not None:
            sections.append(_EnvelopeSection(header[1], header[2]))
        elif line.startswith(_MOVE_TARGET):
            sections[-1:] = [section.renamed_by(line) for section in sections[-1:]]
        elif sections and (line.startswith(_END_OF_FILE) or not line.startswith("*** End")):
            sections[-1].body.append(line)
    if not sections:
        raise Invalid("The patch names no file.", _FORMAT_FIX)
    return [section.to_patch() for section in sections]


@dataclass(frozen=True, slots=True)
class _EnvelopeSection:
    """What such a patch does to one file.

    Attributes:
        operation: `Add`, `Update` or `Delete`.
        new_path: that a file gets which is updated; empty where it keeps its own.
    """

    operation: str
    path: str
    body: list[str] = field(default_factory=list[str])
    new_path: str = ""

    def renamed_by(self, line: str) -> _EnvelopeSection:
        """Return the section with what a line says that names the new path."""
        if self.operation != "Update":
            raise Invalid(f"The patch moves `{self.path}`, which it does not update.", _FORMAT_FIX)
        if self.new_path:
            raise Invalid(f"The patch moves `{self.path}` twice.", _FORMAT_FIX)
        return replace(self, new_path=line.removeprefix(_MOVE_TARGET).strip())

    def to_patch(self) -> FilePatch:
        parts = _split_hunks(self.body)
        states_line_ends = any("\r" in "".join(part.lines) for part in parts)
        hunks = [_create_unnumbered_hunk(part, states_line_ends) for part in parts]
        if self.new_path:
            return replace(_to_plain_rename(self.path, self.new_path), hunks=tuple(hunks))
        if self.operation == "Update" and not hunks:
            raise Invalid(f"The patch changes nothing in `{self.path}`.", _FORMAT_FIX)
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
            parts[-1].headings.extend(filter(None, (_read_heading(line),)))
        elif line.startswith(_END_OF_FILE):
            parts[-1].is_at_end = True
        else:
            parts[-1].lines.append(line)
    hunks: list[_HunkPart] = []
    for part in parts:
        while part.lines and part.lines[-1] in ("", "\r"):
            part.lines.pop()  # blank lines between hunks and files are no context
        if part.lines:
            part.lines = _mark_blank_lines(part.lines)
            hunks.append(part)
    return hunks


def _mark_blank_lines(lines: Iterable[str]) -> list[str]:
    """Return the lines of a hunk with the blank of context before those that are empty."""
    return [" " + line if line in ("", "\r") else line for line in lines]


def _read_heading(header: str) -> str:
    """Return what stands behind the `@@` of a hunk without numbers."""
    return header.removeprefix("@@").rstrip().removesuffix("@@").strip()


def _unnumbered_side_lines(body: Sequence[str], line_types: str) -> list[str]:
    """Return the lines of one side of a hunk, with their ends."""
    lines: list[str] = []
    for line in body:
        if line[0] in line_types:
            lines += split_lines(f"{line[1:]}\n")
    return lines


def _create_unnumbered_hunk(part: _HunkPart, states_line_ends: bool) -> Hunk:
    body = part.lines
    if invalid_line := next((line for line in body if line[0] not in " +-"), None):
        raise Invalid(f"The patch can't be read: {invalid_line[:60]!r} must begin with ` `, `+` or `-`.", _FORMAT_FIX)
    old = _unnumbered_side_lines(body, " -")
    new = _unnumbered_side_lines(body, " +")
    hunk = _create_hunk(0, old, new, (False, False), states_line_ends, part.headings)
    return replace(hunk, is_at_end=part.is_at_end)


@dataclass(frozen=True, slots=True)
class _PatchPart:
    """What a patch says of one file, or of several where it does not part them.

    Attributes:
        mode: that it gives the file.
        rename: the old path and the new one.
        has_names: whether `---` and `+++` name the file.
    """

    text: str
    mode: str | None
    rename: tuple[str, str] | None
    has_names: bool


def _split_by_file(patch: str) -> list[_PatchPart]:
    """Split `patch` into parts of one file each.

    A part has at most one line of git's that names two files, which then has to name them.

    Where `---` and `+++` do, it is left out: it does not say where a name with blanks ends.
    """
    parts: list[_PatchPart] = []
    for text in _GIT_HEADER.split(patch):
        names = _FILE_NAMES.search(text)
        head = text
        if names is not None:
            head = text[: names.start()]
            text = text[names.start() :]
        else:
            text = _EMPTY_FILE.sub(_name_empty_file, text)
        mode = _FILE_MODE.search(head)
        rename = _RENAMED.search(head)
        parts.append(
            _PatchPart(
                text,
                mode and mode[1],
                rename and (_unquote_path(rename[1]), _unquote_path(rename[2])),
                names is not None,
            )
        )
    return parts


def _name_empty_file(empty: re.Match[str]) -> str:
    """Return the lines that name an empty file that comes or goes, which git writes on none of their own."""
    if empty["mode"] == "new":
        return f"--- {_NO_FILE}\n+++ {empty['new']}\n"
    return f"--- {empty['old']}\n+++ {_NO_FILE}\n"


def _is_end_of_hunk(lines: Sequence[str], index: int) -> bool:
    line = lines[index]
    if line[:1] not in ("", "\r", " ", "+", "-", "\\"):
        return True
    following = lines[index + 1 : index + 3]
    return (
        line.startswith("--- ")
        and len(following) == 2
        and following[0].startswith("+++ ")
        and following[1].startswith("@@ ")
    )


def _count_lines(body: Sequence[str], marks: str) -> int:
    return sum(1 for line in body if (line[:1].strip("\r") or " ") in marks)
