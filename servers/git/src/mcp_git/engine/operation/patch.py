"""Reads patches as callers write them, so that git stages all of their lines.

Git takes as many lines of a hunk as its header counts, and passes over those behind them without a word. Who writes a
patch by hand miscounts, and leaves out the carriage returns that no answer shows.
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
# What stands before the name of whoever made a mail of the patch, and mostly the version of their git.
_SIGNATURE = "-- "
_VERSION = re.compile(r"[0-9]+\.[0-9]")
# With what something begins that is no line of a hunk, and ends it.
_HEADERS = re.compile(r"@@ |diff -|From [0-9a-f]{40} |commit [0-9a-f]{7}")
# With what a block of code ends where it is quoted.
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
        start: the number of the first line behind its header.
        end: the number of the line behind its last one.
    """

    header: re.Match[str]
    names: frozenset[str]
    start: int
    end: int


def encode_patch(git: Git, repository: Repository, text: str, cancel: CancelToken) -> bytes:
    """Return a patch as git is to read it: with the numbers of its lines, and the line ends of its files.

    Raises:
        Invalid: it has a sign in the place of bytes, or a line in a hunk that is none.
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
        for number in range(hunk.start, hunk.end):
            # An empty line may have lost the space before it.
            if lines[number] == "\r":
                lines[number] = " \r"
    if "\r" not in text:
        files = _list_crlf_files(git, repository, hunks, cancel)
        lines = _return_carriages(lines, hunks, files)
    return _join(lines)


def _join(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _read_hunks(lines: Sequence[str]) -> list[_Hunk]:
    """Return the hunks of a patch, each as long as its header says, or else as its lines go on.

    Raises:
        Invalid: a line that is none of a hunk stands in one.
    """
    hunks: list[_Hunk] = []
    names: frozenset[str] = frozenset()
    for number, line in enumerate(lines):
        header = _HUNK.match(line)
        if header is None:
            continue
        start = number + 1
        names = _read_names(lines, number) or names
        end = _find_counted_end(header, lines, start)
        is_counted_well = end is not None and _is_end(lines, end)
        if end is None or not is_counted_well:
            end = _find_last_end(lines, start)
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
    """Return with what a line of a hunk begins; empty for one of which nothing is left but its end."""
    return line.removesuffix("\r")[:1]


def _find_counted_end(header: re.Match[str], lines: Sequence[str], start: int) -> int | None:
    """Return where a hunk ends if its header counts its lines; None if so many are not there."""
    old = int(header["old_count"] or 1)
    new = int(header["new_count"] or 1)
    number = start
    while old > 0 or new > 0:
        if number == len(lines) or _read_sign(lines[number]) not in _BODY_SIGNS or _names_one_file(lines, number):
            return None
        old -= _read_sign(lines[number]) in _OLD_SIGNS
        new -= _read_sign(lines[number]) in _NEW_SIGNS
        number += 1
    if old or new:
        return None
    while number < len(lines) and lines[number].startswith("\\"):
        number += 1
    return number


def _is_end(lines: Sequence[str], number: int) -> bool:
    """Whether no more lines of a hunk stand where its header lets it end."""
    remaining = [line.removesuffix("\r") for line in lines[number : _find_end(lines, number)]]
    return not any(remaining) or remaining == [_SIGNATURE]


def _find_last_end(lines: Sequence[str], start: int) -> int:
    """Return where the lines of a hunk end, without the empty ones behind it."""
    end = _find_end(lines, start)
    while end > start and not _read_sign(lines[end - 1]):
        end -= 1
    return end


def _refuse_torn_hunk(lines: Sequence[str], end: int, is_counted_well: bool) -> None:
    """Check that behind the end of a hunk there are no more lines of it, which git would pass over.

    Raises:
        Invalid: there are, or may be, as its header counts others.
    """
    torn = end
    while torn < len(lines) and not _read_sign(lines[torn]):
        torn += 1
    if torn == len(lines) or lines[torn].removesuffix("\r") == _SIGNATURE:
        return
    is_doubtful = not is_counted_well and torn == end and not lines[torn].startswith(_FENCE)
    number = torn
    while number < len(lines) and not _is_header(lines, number):
        if is_doubtful or _read_sign(lines[number]) in ("+", "-"):
            raise Invalid(
                f"Line {torn + 1} of the `patch` begins with none of a space, `+` and `-`.",
                "Put a space before each line that stays as it is.",
            )
        number += 1


def _find_end(lines: Sequence[str], start: int) -> int:
    """Return the number of the first line that is not in the hunk whose lines begin at `start`."""
    end = start
    while end < len(lines) and _read_sign(lines[end]) in _BODY_SIGNS and not _is_header(lines, end):
        end += 1
    return end


def _is_header(lines: Sequence[str], number: int) -> bool:
    """Whether something else than a line of a hunk begins: names of files begin like lines that were changed."""
    names = [line[:4] for line in lines[number : number + 2]]
    if names == ["--- ", "+++ "]:
        return number + 2 < len(lines) and bool(_HUNK.match(lines[number + 2]))
    if lines[number].removesuffix("\r") == _SIGNATURE:
        return number + 1 < len(lines) and bool(_VERSION.match(lines[number + 1]))
    return bool(_HEADERS.match(lines[number]))


def _names_one_file(lines: Sequence[str], number: int) -> bool:
    """Whether two lines name a file before and after a change, rather than be changed themselves."""
    if not _is_header(lines, number) or not lines[number].startswith("--- "):
        return False
    old, new = (line[4:].rstrip("\r").split("\t")[0] for line in lines[number : number + 2])
    return "/dev/null" in (old, new) or old.removeprefix("a/") == new.removeprefix("b/")


def _list_crlf_files(git: Git, repository: Repository, hunks: Iterable[_Hunk], cancel: CancelToken) -> Set[str]:
    """Return the files of some hunks all of whose lines end with a carriage return in the index."""
    names: set[str] = set()
    for hunk in hunks:
        # No name of a file has a NUL, and no command can.
        names.update(name for name in hunk.names if "\0" not in name)
    if not 0 < len(names) <= _MAX_NAMES_OF_COMMAND:
        return frozenset()
    output = git.run(repository, ["ls-files", "--eol", "-z", "--", *sorted(names)], cancel, exit_codes=(0, 128))
    entries = [entry.split("\t", 1) for entry in split_names(output.stdout)]
    return {name for description, name in entries if description.startswith("i/crlf ")}


def _return_carriages(lines: Sequence[str], hunks: Iterable[_Hunk], files: Set[str]) -> list[str]:
    """Return the lines of a patch, those of some files with a carriage return unless no line end follows them."""
    returned = list(lines)
    for hunk in hunks:
        if hunk.names.isdisjoint(files):
            continue
        for number in range(hunk.start, hunk.end):
            has_line_end = not "".join(lines[number + 1 : number + 2]).startswith("\\")
            if has_line_end and not lines[number].startswith("\\"):
                returned[number] += "\r"
    return returned
