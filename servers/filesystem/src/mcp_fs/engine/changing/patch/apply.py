"""Applies the hunks of a patch to the text of a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, Invalid, NotFound, quote
from mcp_fs.engine.changing.patch.file_patch import FilePatch, Hunk, line_end_of, without_line_end
from mcp_fs.engine.text.edit import describe_nearest, restore_undecodable, split_lines
from mcp_fs.engine.text.encodings import replace_undecodable as readable

__all__ = ["apply_hunks"]

_BLOCK_CONTINUATIONS = (")", "]", "}", "{", "else", "elif", "except", "finally", "catch", "end")


def apply_hunks(text: str, patch: FilePatch, label: str, cancel: CancelToken) -> str:
    """Apply the hunks to `text` and keep its line ends.

    Raises:
        NotFound: what a hunk expects is not there; quotes the nearest.
        Conflict: it is found several times, and not at its line number; or above the hunk before.
        Invalid: a hunk expects nothing, so that it could go anywhere.
    """
    if patch.deletes_any_content:
        return ""
    lines = split_lines(text)
    shift = 0
    min_index = 0
    last_stated_line = 0
    bare_lines = [readable(without_line_end(line)) for line in lines]
    for number, hunk in enumerate(patch.hunks, 1):
        cancel.check()
        hunk_label = f"Hunk {number} of {label}"
        if not hunk.old_lines and lines:
            if not hunk.is_at_end:
                raise Invalid(f"{hunk_label} has no context.", "Make the diff with at least one unchanged line.")
            hunk = hunk.behind(bare_lines[-1])
            min_index = min(min_index, len(lines) - 1)
        if hunk.line:
            if hunk.line < last_stated_line and _find_all(bare_lines[:min_index], list(hunk.old_lines), 0):
                raise Conflict(f"{hunk_label} is above the hunk before.", "Put the hunks in the order of their lines.")
            last_stated_line = hunk.line
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
        Conflict: they are at several places, or at one, and not where the patch says.
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
        if not hunk.line:
            _check_heading(bare_lines, hunk, starts[0], hunk_label)
        return starts[0]
    if starts:
        raise _ambiguous_error(hunk_label, starts, None if line is None else hunk.line)
    raise NotFound(
        f"{hunk_label}: its lines are not in the file.",
        describe_nearest("\n".join(bare_lines), "\n".join(old_lines), cancel),
    )


def _check_heading(bare_lines: list[str], hunk: Hunk, start: int, hunk_label: str) -> None:
    """Check that lines found at one place do not stand above the heading that the patch puts them under.

    Raises:
        Conflict: they do, so others are meant.
    """
    if not hunk.headings:
        return
    heading = hunk.headings[0]
    first = next((index for index, line in enumerate(bare_lines) if line.strip() == heading), 0)
    if first >= start + len(hunk.old_lines):
        raise Conflict(
            f"{hunk_label}: its lines are at line {start + 1}, above {quote(heading)} at line {first + 1}.",
            "Write the line behind `@@` that they stand under.",
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


def _check_final_newline(hunk: Hunk, last_line: str, hunk_label: str) -> None:
    """Check that the last line of a file has no end where the patch says so.

    Raises:
        NotFound: it has one.
    """
    if hunk.old_lacks_final_newline and line_end_of(last_line) not in ("", *hunk.old_line_ends[-1:]):
        raise NotFound(f"{hunk_label}: its last line has a line end in the file and none in the patch.")


def _with_line_ends(hunk: Hunk, lines: Sequence[str], start: int, end: int) -> list[str]:
    """Return the new lines with the ends of the old ones they stand for, else those of their neighbours.

    Where the patch says what ends there are, those that it says.
    """
    old_lines = lines[start:end]
    if hunk.new_line_ends is not None and tuple(map(line_end_of, old_lines)) == hunk.old_line_ends:
        return [line + mark for line, mark in zip(hunk.new_lines, hunk.new_line_ends, strict=True)]
    default_end = _first_line_end((*old_lines, *lines[max(0, start - 1) : start], *lines[:1]))
    ends_by_line = {readable(without_line_end(line)): line_end_of(line) or default_end for line in reversed(old_lines)}
    new_lines = [line + ends_by_line.get(line, default_end) for line in hunk.new_lines]
    if new_lines and end == len(lines) and _leaves_last_line_open(hunk, lines):
        new_lines[-1] = hunk.new_lines[-1]
        if hunk.new_lacks_final_newline and hunk.new_line_ends:
            new_lines[-1] += hunk.new_line_ends[-1]
    return new_lines


def _first_line_end(lines: Iterable[str]) -> str:
    """Return the first line end among the lines; a line feed if none has one."""
    line_ends = (line_end_of(line) for line in lines)
    return next(filter(None, line_ends), "\n")


def _leaves_last_line_open(hunk: Hunk, lines: Sequence[str]) -> bool:
    """Whether the file ends without a line end after a hunk at its end: it says so, or leaves it as it was."""
    if hunk.new_lacks_final_newline:
        return True
    return bool(lines) and not line_end_of(lines[-1]) and not hunk.old_lacks_final_newline


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
        original = _find_original(line, undecodable_lines)
        if original is None:
            original = "".join(old)
        else:
            undecodable_lines.remove(original)
        restored_lines.append(restore_undecodable(line, original))
    return restored_lines


def _find_original(line: str, candidates: Sequence[str]) -> str | None:
    """Return which line a new one stands for: the same, else the first with as many U+FFFD; None if there is none."""
    for candidate in candidates:
        if without_line_end(readable(candidate)) == without_line_end(line):
            return candidate
    for candidate in candidates:
        if readable(candidate).count("\ufffd") == line.count("\ufffd"):
            return candidate
    return None
