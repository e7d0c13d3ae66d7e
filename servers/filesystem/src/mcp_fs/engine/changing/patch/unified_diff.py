"""Reads unified diffs, as `diff -u` and git write them, and as models do who miscount their lines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mcp_batteries.errors import Invalid
from mcp_fs.engine.changing.patch.file_patch import (
    FORMAT_FIX,
    FilePatch,
    Hunk,
    create_hunk,
    create_rename,
    line_end_of,
    mark_blank_lines,
    normalize_line_ends,
    read_heading,
)
from mcp_fs.engine.text.edit import split_lines

if TYPE_CHECKING:
    from unidiff.patch import Line, PatchedFile

__all__ = ["parse_unified_diff"]

_NO_FILE = "/dev/null"
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


def parse_unified_diff(patch: str) -> list[FilePatch]:
    """Return what a unified diff does to each file."""
    # Half of its cost is compiling its expressions: paid by the first patch, not by every start.
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    files: list[FilePatch] = []
    try:
        for part in _split_by_file(_fix_hunk_headers(patch)):
            if part.rename is not None and not part.has_names:
                _refuse_binary_contents(part.text, part.rename[1])
                files.append(create_rename(*part.rename, mode=part.mode))
                continue
            for file in PatchSet(part.text):
                files.append(_to_file_patch(file, part))
    except UnidiffParseError as error:
        raise Invalid(f"The patch can't be read: {error}.", FORMAT_FIX) from None
    return files


def _fix_hunk_headers(patch: str) -> str:
    """Set the lengths in the hunk headers of `patch` to what follows them."""
    lines = normalize_line_ends(patch).removesuffix("\n").split("\n")
    result: list[str] = []
    index = 0
    while index < len(lines):
        lines[index] = lines[index].removesuffix("\r")
        if index and _BARE_HEADER.fullmatch(lines[index]):
            # Models can't count: the text tells where it belongs.
            lines[index] = f"@@ -0,0 +0,0 @@ {read_heading(lines[index])}"
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
        result.extend(mark_blank_lines(body))
        index = end
    return "\n".join([*result, ""])


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


def _count_lines(body: Sequence[str], marks: str) -> int:
    return sum(1 for line in body if (line[:1].strip("\r") or " ") in marks)


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
        parts.append(_PatchPart(text, _find_mode(head), _find_rename(head), names is not None))
    return parts


def _find_mode(head: str) -> str | None:
    match = _FILE_MODE.search(head)
    if match is None:
        return None
    return match[1]


def _find_rename(head: str) -> tuple[str, str] | None:
    match = _RENAMED.search(head)
    if match is None:
        return None
    return _unquote_path(match[1]), _unquote_path(match[2])


def _name_empty_file(empty: re.Match[str]) -> str:
    """Return the lines that name an empty file that comes or goes, which git writes on none of their own."""
    if empty["mode"] == "new":
        return f"--- {_NO_FILE}\n+++ {empty['new']}\n"
    return f"--- {empty['old']}\n+++ {_NO_FILE}\n"


def _unquote_path(path: str) -> str:
    """Decode a path as git writes it: names with special characters in quotes, their bytes as in C."""
    if len(path) > 1 and path[0] == path[-1] == '"':
        return os.fsdecode(path[1:-1].encode("ascii", "replace").decode("unicode_escape").encode("latin-1"))
    return path


def _refuse_binary_contents(text: str, path: str) -> None:
    """Raise Invalid if the part of a patch that renames a file changes what is in it too."""
    if _BINARY_CONTENTS.search(text):
        raise Invalid(
            f"The patch renames `{path}` and changes it as binary.",
            "Leave it out; `move_file` renames it with the contents that it has.",
        )


def _to_file_patch(file: PatchedFile, part: _PatchPart) -> FilePatch:
    if part.rename is not None:
        return replace(create_rename(*part.rename, mode=part.mode), hunks=_to_hunks(file))
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
        hunks.append(create_hunk(hunk.source_start, old, new, lack_final_newline, states_line_ends, headings))
    return tuple(hunks)


def _has_carriage_return(lines: Iterable[str]) -> bool:
    """Whether a line ends in one."""
    return any("\r" in line_end_of(line) for line in lines)


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
