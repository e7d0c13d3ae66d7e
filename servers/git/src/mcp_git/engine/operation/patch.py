"""Reads patches as callers write them, so that git stages all of their lines.

Git takes as many lines of a hunk as its header counts, and passes over those behind them without a word. Who writes a
patch by hand miscounts, and leaves out the carriage returns that no answer shows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, quote
from mcp_git.engine.program.git import Git
from mcp_git.engine.program.output import split_names
from mcp_git.policy import Repository

__all__ = ["encode_patch"]

# What an answer shows in the place of bytes that are no UTF-8.
_REPLACEMENT = "\ufffd"
_HUNK = re.compile(r"@@ -(?P<old>\d+)(?:,(?P<old_count>\d+))? \+(?P<new>\d+)(?:,(?P<new_count>\d+))? @@")
# What stands before the name of whoever made a mail of the patch.
_SIGNATURE = "-- "
# Systems bound the length of a command.
_MAX_NAMES_OF_COMMAND = 200
_BODY_SIGNS = ("", " ", "+", "-", "\\")
_OLD_SIGNS = (" ", "-", "")
_NEW_SIGNS = (" ", "+", "")


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
    # An empty line may have lost the space before it.
    lines = [" \r" if line == "\r" else line for line in text.removesuffix("\n").split("\n")]
    lines = _correct_counts(lines)
    patch = _join(lines)
    if b"\r" not in patch and _changes_crlf_files(git, repository, patch, cancel):
        return _join(_return_carriages(lines))
    return patch


def _join(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _correct_counts(lines: Sequence[str]) -> list[str]:
    """Return the lines of a patch with headers of hunks that count what follows them."""
    corrected = list(lines)
    for number, line in enumerate(lines):
        header = _HUNK.match(line)
        if header and not _is_counted_well(header, lines, number + 1):
            body = _read_body(lines, number + 1)
            old = sum(line[:1] in _OLD_SIGNS for line in body)
            new = sum(line[:1] in _NEW_SIGNS for line in body)
            corrected[number] = f"@@ -{header['old']},{old} +{header['new']},{new} @@{line[header.end() :]}"
    return corrected


def _is_counted_well(header: re.Match[str], lines: Sequence[str], start: int) -> bool:
    """Whether a hunk ends where its header says."""
    old = int(header["old_count"] or 1)
    new = int(header["new_count"] or 1)
    number = start
    while number < len(lines) and (old > 0 or new > 0):
        old -= lines[number][:1] in _OLD_SIGNS
        new -= lines[number][:1] in _NEW_SIGNS
        number += 1
    if old or new:
        return False
    remaining = lines[number : _find_end(lines, number)]
    return not any(remaining) or remaining[0] == _SIGNATURE


def _read_body(lines: Sequence[str], start: int) -> Sequence[str]:
    """Return the lines of a hunk up to the next header, without the empty ones at its end.

    Raises:
        Invalid: others follow behind a line that is none of a hunk.
    """
    end = _find_end(lines, start)
    is_torn = end < len(lines) and lines[end][:1] not in _BODY_SIGNS and not _HUNK.match(lines[end])
    if is_torn and _is_in_hunk(lines, end + 1) and lines[end + 1]:
        raise Invalid(
            f"Line {end + 1} of the `patch` begins with none of a space, `+` and `-`.",
            "Put a space before each line that stays as it is.",
        )
    while end > start and not lines[end - 1]:
        end -= 1
    return lines[start:end]


def _find_end(lines: Sequence[str], start: int) -> int:
    """Return the number of the first line that is not in the hunk whose lines begin at `start`."""
    end = start
    while _is_in_hunk(lines, end):
        end += 1
    return end


def _is_in_hunk(lines: Sequence[str], number: int) -> bool:
    """Whether a line may be one of a hunk: the names of the next file begin like lines that were changed."""
    if number >= len(lines) or lines[number][:1] not in _BODY_SIGNS:
        return False
    names = [line[:4] for line in lines[number : number + 2]]
    return names != ["--- ", "+++ "] or number + 2 >= len(lines) or not _HUNK.match(lines[number + 2])


def _changes_crlf_files(git: Git, repository: Repository, patch: bytes, cancel: CancelToken) -> bool:
    """Whether all lines of the files of a patch end with a carriage return in the index."""
    output = git.run(repository, ["apply", "--numstat", "-z", "-"], cancel, stdin=patch, exit_codes=(0, 1, 128))
    names = [record.split("\t", 2)[-1] for record in split_names(output.stdout)]
    if not 0 < len(names) <= _MAX_NAMES_OF_COMMAND:
        return False
    listed = git.run(repository, ["ls-files", "--eol", "-z", "--", *names], cancel, exit_codes=(0, 128))
    entries = split_names(listed.stdout)
    return len(entries) == len(set(names)) and all(entry.startswith("i/crlf ") for entry in entries)


def _return_carriages(lines: Sequence[str]) -> list[str]:
    """Return the lines of a patch, those of hunks with a carriage return unless no line end follows them."""
    returned: list[str] = []
    is_in_hunk = False
    for number, line in enumerate(lines):
        is_in_hunk = bool(_HUNK.match(line)) or (is_in_hunk and _is_in_hunk(lines, number))
        has_line_end = not "".join(lines[number + 1 : number + 2]).startswith("\\")
        if is_in_hunk and has_line_end and not line.startswith(("@", "\\")):
            line += "\r"
        returned.append(line)
    return returned
