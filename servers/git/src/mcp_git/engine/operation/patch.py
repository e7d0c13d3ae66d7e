"""Reads patches as callers write them, so that git stages all of their lines.

Git reads as many lines of a hunk as its header counts, and silently ignores those behind them. Who writes a patch by
hand miscounts, and leaves out the carriage returns, which no answer shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, quote
from mcp_git.engine.program.git import Git
from mcp_git.engine.program.output import split_names
from mcp_git.policy import Repository

__all__ = ["encode_patch"]

# What an answer shows in the place of bytes that are no UTF-8.
_REPLACEMENT = "\ufffd"
_HUNK = re.compile(
    r"@@ -(?P<old>[0-9]{1,9})(?:,(?P<old_count>[0-9]{1,9}))? \+(?P<new>[0-9]{1,9})(?:,(?P<new_count>[0-9]{1,9}))? @@"
)
# The last lines of a patch that was mailed: this sign, then mostly the version of the git that wrote it.
_SIGNATURE = "-- "
_VERSION = re.compile(r"[0-9]+\.[0-9]")
# How lines begin that end a hunk, as something else begins there.
_HEADERS = re.compile(r"@@ |diff -|From [0-9a-f]{40} |commit [0-9a-f]{7}")
# The end of a block of code in Markdown, from which the patch may have been copied.
_FENCE = "```"
# Systems bound the length of a command.
_MAX_NAMES_OF_COMMAND = 200
_BODY_SIGNS = ("", " ", "+", "-", "\\")
_OLD_SIGNS = (" ", "-", "")
_NEW_SIGNS = (" ", "+", "")


class _Hunk(NamedTuple):
    """A hunk of a patch.

    Attributes:
        names: those of its file before and after the change.
        start: the position of the first line behind its header.
        end: the position of the line behind its last one.
    """

    header: re.Match[str]
    names: frozenset[str]
    start: int
    end: int


def encode_patch(git: Git, repository: Repository, text: str, cancel: CancelToken) -> bytes:
    """Return a patch as git is to read it: its hunks count their lines, and these end as those of its files do.

    Raises:
        Invalid: it has a sign in the place of bytes, or in a hunk a line that can't belong to it.
    """
    if _REPLACEMENT in text:
        raise Invalid(
            f"The `patch` has {quote(_REPLACEMENT)}, which stands for bytes that are no UTF-8.",
            "Stage the whole file: name it in `paths`.",
        )
    lines = text.removesuffix("\n").split("\n")
    hunks = _read_hunks(lines)
    for hunk in hunks:
        lines[hunk.start - 1] = _count_lines(hunk, lines)
        for position in range(hunk.start, hunk.end):
            # An empty line may have lost the space before it.
            if lines[position] == "\r":
                lines[position] = " \r"
    if "\r" not in text:
        files = _list_crlf_files(git, repository, hunks, cancel)
        lines = _restore_carriage_returns(lines, hunks, files)
    return _join(lines)


def _join(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _read_hunks(lines: Sequence[str]) -> list[_Hunk]:
    """Return the hunks of a patch: each as long as its header says or, if that is wrong, as far as its lines go.

    Raises:
        Invalid: a hunk has a line that can't belong to it.
    """
    hunks: list[_Hunk] = []
    names: frozenset[str] = frozenset()
    for position, line in enumerate(lines):
        header = _HUNK.match(line)
        if header is None:
            continue
        start = position + 1
        names = _read_names(lines, position) or names
        end = _find_counted_end(header, lines, start)
        is_counted_well = end is not None and _is_end(lines, end)
        if end is None or not is_counted_well:
            end = _find_uncounted_end(lines, start)
        _refuse_torn_hunk(lines, end, is_counted_well)
        hunks.append(_Hunk(header, names, start, end))
    return hunks


def _read_names(lines: Sequence[str], header: int) -> frozenset[str]:
    """Return how the two lines above the header of a hunk name its file; nothing if it is not the first of the file."""
    pair = lines[max(0, header - 2) : header]
    if [line[:4] for line in pair] != ["--- ", "+++ "]:
        return frozenset()
    old, new = (line[4:].split("\t")[0] for line in pair)
    return frozenset({old.removeprefix("a/"), new.removeprefix("b/")} - {"/dev/null"})


def _count_lines(hunk: _Hunk, lines: Sequence[str]) -> str:
    """Return the header of a hunk with the numbers of its lines."""
    signs = [_read_sign(line) for line in lines[hunk.start : hunk.end]]
    old = sum(sign in _OLD_SIGNS for sign in signs)
    new = sum(sign in _NEW_SIGNS for sign in signs)
    header = hunk.header
    return f"@@ -{header['old']},{old} +{header['new']},{new} @@{header.string[header.end() :]}"


def _read_sign(line: str) -> str:
    """Return the first character of a line of a hunk; empty if it has none before its carriage return."""
    return line.removesuffix("\r")[:1]


def _find_counted_end(header: re.Match[str], lines: Sequence[str], start: int) -> int | None:
    """Return the position at which a hunk ends by its header; None if the header does not fit the lines."""
    old = int(header["old_count"] or 1)
    new = int(header["new_count"] or 1)
    position = start
    while old > 0 or new > 0:
        if position == len(lines) or _read_sign(lines[position]) not in _BODY_SIGNS or _names_one_file(lines, position):
            return None
        old -= _read_sign(lines[position]) in _OLD_SIGNS
        new -= _read_sign(lines[position]) in _NEW_SIGNS
        position += 1
    if old or new:
        return None
    while position < len(lines) and lines[position].startswith("\\"):
        position += 1
    return position


def _is_end(lines: Sequence[str], position: int) -> bool:
    """Whether no more lines of a hunk come at a position, where it ends by its header."""
    remaining = [line.removesuffix("\r") for line in lines[position : _find_end(lines, position)]]
    return not any(remaining) or remaining == [_SIGNATURE]


def _find_uncounted_end(lines: Sequence[str], start: int) -> int:
    """Return the position behind the last line of a hunk that is not empty."""
    end = _find_end(lines, start)
    while end > start and not _read_sign(lines[end - 1]):
        end -= 1
    return end


def _refuse_torn_hunk(lines: Sequence[str], end: int, is_counted_well: bool) -> None:
    """Check that behind the end of a hunk there are no more lines of it, which git would ignore.

    Raises:
        Invalid: there are, or there may be, since its header counts another number of lines.
    """
    following = end
    while following < len(lines) and not _read_sign(lines[following]):
        following += 1
    if following == len(lines) or lines[following].removesuffix("\r") == _SIGNATURE:
        return
    is_doubtful = not is_counted_well and following == end and not lines[following].startswith(_FENCE)
    position = following
    while position < len(lines) and not _is_header(lines, position):
        if is_doubtful or _read_sign(lines[position]) in ("+", "-"):
            raise Invalid(
                f"Line {following + 1} of the `patch` begins with none of a space, `+` and `-`.",
                "Put a space before each line that stays as it is.",
            )
        position += 1


def _find_end(lines: Sequence[str], start: int) -> int:
    """Return the position of the first line that can't belong to the hunk whose lines begin at `start`."""
    end = start
    while end < len(lines) and _read_sign(lines[end]) in _BODY_SIGNS and not _is_header(lines, end):
        end += 1
    return end


def _is_header(lines: Sequence[str], position: int) -> bool:
    """Whether the next file, hunk or commit begins at a position, or the signature.

    The names of a file and a signature begin like changed lines: what follows them tells.
    """
    names = [line[:4] for line in lines[position : position + 2]]
    if names == ["--- ", "+++ "]:
        return position + 2 < len(lines) and bool(_HUNK.match(lines[position + 2]))
    if lines[position].removesuffix("\r") == _SIGNATURE:
        return position + 1 < len(lines) and bool(_VERSION.match(lines[position + 1]))
    return bool(_HEADERS.match(lines[position]))


def _names_one_file(lines: Sequence[str], position: int) -> bool:
    """Whether two lines name one file before and after a change, and are not changed lines that look like it."""
    if not _is_header(lines, position) or not lines[position].startswith("--- "):
        return False
    old, new = (line[4:].rstrip("\r").split("\t")[0] for line in lines[position : position + 2])
    return "/dev/null" in (old, new) or old.removeprefix("a/") == new.removeprefix("b/")


def _list_crlf_files(git: Git, repository: Repository, hunks: Iterable[_Hunk], cancel: CancelToken) -> Set[str]:
    """Return those files of some hunks whose lines all end with a carriage return in the index."""
    names: set[str] = set()
    for hunk in hunks:
        # No name of a file has a NUL, and no command can.
        names.update(name for name in hunk.names if "\0" not in name)
    if not 0 < len(names) <= _MAX_NAMES_OF_COMMAND:
        return frozenset()
    output = git.run(repository, ["ls-files", "--eol", "-z", "--", *sorted(names)], cancel, exit_codes=(0, 128))
    entries = [entry.split("\t", 1) for entry in split_names(output.stdout)]
    return {name for description, name in entries if description.startswith("i/crlf ")}


def _restore_carriage_returns(lines: Sequence[str], hunks: Iterable[_Hunk], files: Set[str]) -> list[str]:
    """Return the lines of a patch, those of some files with a carriage return before each line end."""
    restored = list(lines)
    for hunk in hunks:
        if hunk.names.isdisjoint(files):
            continue
        for position in range(hunk.start, hunk.end):
            has_line_end = not "".join(lines[position + 1 : position + 2]).startswith("\\")
            if has_line_end and not lines[position].startswith("\\"):
                restored[position] += "\r"
    return restored
