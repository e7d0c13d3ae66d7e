"""Applies unified diffs strictly: the old text of a hunk must match exactly.

Only two things are forgiven, because models can't count: the lengths in a hunk's header, and its line number as
long as its text is at one place only, or at one in the class or function that it names. No context is ever skipped. A
patch in which some lines end in CRLF and others in LF means what it says of them; any other says nothing of line ends,
and they stay as they are in the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcp_batteries.errors import Conflict, Invalid, NotFound
from mcp_batteries.limits import Stop
from mcp_fs.engine.text.edit import describe_nearest, restore_undecodable, split_lines
from mcp_fs.engine.text.encodings import replace_undecodable as readable

if TYPE_CHECKING:
    from unidiff.patch import Line

__all__ = ["FilePatch", "apply_hunks", "parse"]

_BARE_HEADER = re.compile(r"@@(?! -\d).*", re.DOTALL)
_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)", re.DOTALL)
_GIT = re.compile(r"^(?=diff --git )", re.MULTILINE)
_NAMES = re.compile(r"^--- .*\n\+\+\+ ", re.MULTILINE)
_EMPTY = re.compile(
    r"^diff --git (?P<old>(?P<quote>\"?)(?:[ab]/)?(?P<name>.{1,4096})) (?P<new>(?P=quote)(?:[ab]/)?(?P=name))\n"
    r"(?P<mode>new|deleted) file mode \d+\n(?:index .*\n?)?\s*\Z"
)
_MODE = re.compile(r"^new (?:file )?mode (\d+)$", re.MULTILINE)
_NONE = "/dev/null"
_GOES_ON = (")", "]", "}", "{", "else", "elif", "except", "finally", "catch", "end")
_HOW = "Send a unified diff with its `---` and `+++` lines, as `diff -u` and git write it."


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines without their ends; `line` is where they should begin, from 1, or 0 when only the text tells.

    `old_open` and `new_open` tell that the last line has no end, in the old text and in the new.
    """

    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    old_open: bool
    new_open: bool
    old_ends: tuple[str, ...] = ()
    new_ends: tuple[str, ...] | None = None
    """Of each line; None where the patch says nothing of them."""
    inside: tuple[str, ...] = ()
    """Lines of the file that stand behind `@@`, outermost first: what begins with them holds the hunk."""


@dataclass(frozen=True, slots=True)
class FilePatch:
    """What a diff does to one file.

    Attributes:
        path: without the `a/` or `b/` of git.
        written: as the diff has it.
        whole: whether it deletes the file whatever is in it.
        mode: as git names it, if it is a new one.
    """

    path: str
    written: str
    creates: bool
    deletes: bool
    hunks: tuple[Hunk, ...]
    whole: bool = False
    mode: str | None = None


def parse(patch: str) -> list[FilePatch]:
    """The files of a unified diff, in order.

    Raises:
        Invalid: it is none, or does what text can't: renames, modes, binary contents.
    """
    if envelope := _ENVELOPE.search(patch):
        return _parse_envelope(_one_end(patch[envelope.end() :]).split("\n"))
    # Half of its cost is compiling its expressions: paid by the first patch, not by every start.
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    try:
        files = [(file, mode) for part, mode in _by_file(_recounted(patch)) for file in PatchSet(part)]
    except UnidiffParseError as error:
        raise Invalid(f"The patch can't be read: {error}.", _HOW) from None
    if not files:
        raise Invalid("The patch names no file.", _HOW)
    patches: list[FilePatch] = []
    for file, mode in files:
        path = _unquoted(file.path)
        if mode is not None and not mode.startswith("100"):
            raise Invalid(f"The patch makes `{path}` a link or a submodule, not a text file.", "Leave it out.")
        if file.is_rename:
            fix = f"Use `move_file` or `copy_file`; what changes then goes with `{path}` as `---` and as `+++`."
            raise Invalid(f"The patch makes `{path}` of another file.", fix)
        if file.is_binary_file:
            raise Invalid(f"The patch changes `{path}` as binary.", "Leave it out.")
        if not (file or file.is_added_file or file.is_removed_file):
            what = "only the mode of" if mode else "nothing in"
            raise Invalid(f"The patch changes {what} `{path}`.", "Leave it out.")
        hunks: list[Hunk] = []
        parts = [(hunk, _side(hunk, " -"), _side(hunk, " +")) for hunk in file]
        says_ends = any("\r" in _end(line) for _, old, new in parts for line in (*old, *new))
        for hunk, old, new in parts:
            inside = () if hunk.source_start or not hunk.section_header else (hunk.section_header.strip(),)
            hunks.append(_hunk(hunk.source_start, old, new, (_is_open(old), _is_open(new)), says_ends, inside))
        written = _unquoted(file.target_file if file.source_file == _NONE else file.source_file)
        creates, deletes = file.source_file == _NONE, file.target_file == _NONE
        patches.append(FilePatch(path, written, creates, deletes, tuple(hunks), mode=mode))
    return patches


def apply_hunks(text: str, patch: FilePatch, shown: str, stop: Stop) -> str:
    """`text` with the hunks applied, its line ends kept.

    Raises:
        NotFound: what a hunk expects is not there; quotes the nearest.
        Conflict: it is at several places and at none of them by its line number.
        Invalid: a hunk expects nothing, so that it could go anywhere.
    """
    if patch.whole:
        return ""
    lines, shift, after = split_lines(text), 0, 0
    bare = [readable(_bare(line)) for line in lines]
    for number, hunk in enumerate(patch.hunks, 1):
        stop.check()
        which = f"Hunk {number} of {shown}"
        if not hunk.old and lines:
            raise Invalid(f"{which} has no context.", "Make the diff with at least one unchanged line.")
        line = max(after, hunk.line - 1 + shift) if hunk.line else None
        start = _position(bare, hunk, line, after, which, stop)
        end = start + len(hunk.old)
        if hunk.old and end == len(lines) and hunk.old_open and _end(lines[-1]) not in ("", *hunk.old_ends[-1:]):
            raise NotFound(f"{which}: its last line has a line end in the file and none in the patch.")
        new = _undamaged(_ended(hunk, lines, start, end), lines[start:end])
        lines[start:end] = new
        bare[start:end] = hunk.new
        after = start + len(new)
        shift += len(hunk.new) - len(hunk.old)
    return "".join(lines)


def _position(bare: list[str], hunk: Hunk, line: int | None, after: int, which: str, stop: Stop) -> int:
    size, old = len(hunk.old), list(hunk.old)
    if not old:
        return after
    if line is not None and bare[line : line + size] == old:
        return line
    places = [
        start
        for start in range(after, len(bare) - size + 1)
        if bare[start] == old[0] and bare[start : start + size] == old
    ]
    if hunk.inside and len(places) > 1:
        first, last = _block(bare, hunk.inside)
        places = [place for place in places if first <= place < last] or places
    if len(places) == 1:
        return places[0]
    if places:
        found = ", ".join(str(place + 1) for place in places[:10])
        if line is None:
            raise Conflict(f"{which}: its lines are at {found}.", "Quote more lines around it, or its line number.")
        raise Conflict(f"{which}: its lines are at {found}, not at line {hunk.line}.", "Correct the line number.")
    raise NotFound(f"{which}: its lines are not in the file.", describe_nearest("\n".join(bare), "\n".join(old), stop))


def _block(bare: list[str], inside: Sequence[str]) -> tuple[int, int]:
    """Where the innermost of nested blocks begins and ends; nothing where that can't be told."""
    first, last = 0, len(bare)
    for number, head in enumerate(inside):
        found = [index for index in range(first, last) if bare[index].strip() == head]
        if not found or (len(found) > 1 and not number):
            return 0, 0
        first, last = found[0], _end_of_block(bare, found[0], last)
    return first, last


def _end_of_block(bare: list[str], first: int, last: int) -> int:
    """The line behind a block: the next that is indented no deeper than its first and does not go on with it.

    Where nothing is indented, as under a heading, the next that begins with the same word.
    """
    depth, word = _depth(bare[first]), bare[first].split()[0]
    rest = [index for index in range(first + 1, last) if bare[index].strip()]
    is_indented = bool(rest) and _depth(bare[rest[0]]) > depth
    for index in rest:
        line = bare[index].strip()
        begins = line.split()[0] == word or (is_indented and not line.startswith(_GOES_ON))
        if _depth(bare[index]) < depth or (_depth(bare[index]) == depth and begins):
            return index
    return last


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _ended(hunk: Hunk, lines: Sequence[str], start: int, end: int) -> list[str]:
    """The new lines with the ends of the old ones they stand for, else those of their neighbours; where the patch
    says what ends there are, those that it says."""
    if hunk.new_ends is not None and tuple(map(_end, lines[start:end])) == hunk.old_ends:
        return [line + mark for line, mark in zip(hunk.new, hunk.new_ends, strict=True)]
    near = [_end(line) for line in (*lines[start:end], *lines[max(0, start - 1) : start], *lines[:1])]
    usual = next((mark for mark in near if mark), "\n")
    kept = {readable(_bare(line)): _end(line) or usual for line in reversed(lines[start:end])}
    new = [line + kept.get(line, usual) for line in hunk.new]
    at_end = end == len(lines)
    was_open = at_end and bool(lines) and lines[-1] == _bare(lines[-1]) and not hunk.old_open
    if new and at_end and (hunk.new_open or was_open):
        new[-1] = hunk.new[-1] + (hunk.new_ends[-1] if hunk.new_open and hunk.new_ends else "")
    return new


def _undamaged(new: Sequence[str], old: Sequence[str]) -> list[str]:
    """`new` with the bytes of `old` that do not decode, line by line in order; both show them as U+FFFD."""
    damaged = [line for line in old if readable(line) != line]
    if not damaged:
        return list(new)
    kept: list[str] = []
    for line in new:
        if "\ufffd" not in line:
            kept.append(line)
            continue
        same = next((was for was in damaged if _bare(readable(was)) == _bare(line)), None)
        was = same or next(
            (was for was in damaged if readable(was).count("\ufffd") == line.count("\ufffd")), "".join(old)
        )
        if was in damaged:
            damaged.remove(was)
        kept.append(restore_undecodable(line, was))
    return kept


def _hunk(
    line: int,
    old: Sequence[str],
    new: Sequence[str],
    are_open: tuple[bool, bool],
    says_ends: bool,
    inside: Iterable[str],
) -> Hunk:
    """A hunk of lines with their ends, which it keeps if the patch says something of them."""
    return Hunk(
        line,
        tuple(map(_bare, old)),
        tuple(map(_bare, new)),
        *are_open,
        tuple(map(_end, old)) if says_ends else (),
        tuple(map(_end, new)) if says_ends else None,
        tuple(inside),
    )


def _side(hunk: Iterable[Line], kinds: str) -> list[str]:
    """The lines of one side of a hunk, with the ends that they have in the file: a carriage return is one there."""
    lines: list[str] = []
    before = ""
    for line in hunk:
        if line.line_type in kinds:
            lines += split_lines(line.value)
        elif line.line_type == "\\" and before in kinds and lines:
            lines[-1] = lines[-1].removesuffix("\n")  # a carriage return before it is in the file
        before = line.line_type
    return lines


def _is_open(lines: Sequence[str]) -> bool:
    return any(not line.endswith("\n") for line in lines)


def _bare(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def _end(line: str) -> str:
    return line[len(_bare(line)) :]


def _unquoted(path: str) -> str:
    """A path as git writes it: names with special characters in quotes, their bytes as in C."""
    if len(path) > 1 and path[0] == path[-1] == '"':
        return os.fsdecode(path[1:-1].encode("ascii", "replace").decode("unicode_escape").encode("latin-1"))
    return path


def _one_end(patch: str) -> str:
    """`patch` with line feeds alone where all its lines end in CRLF, which then says nothing of the files."""
    return patch.replace("\r\n", "\n") if patch.count("\n") == patch.count("\r\n") else patch


def _recounted(patch: str) -> str:
    """`patch` with the lengths in its hunk headers set to what follows them."""
    lines = _one_end(patch).removesuffix("\n").split("\n")
    result: list[str] = []
    index = 0
    while index < len(lines):
        lines[index] = lines[index].removesuffix("\r")
        if index and _BARE_HEADER.fullmatch(lines[index]):
            # Models can't count: the text tells where it belongs.
            lines[index] = f"@@ -0,0 +0,0 @@ {_inside(lines[index])}"
        header = _HEADER.fullmatch(lines[index])
        if header is None:
            result.append(lines[index])
            index += 1
            continue
        end = index + 1
        while end < len(lines) and not _ends_hunk(lines, end):
            end += 1
        body = lines[index + 1 : end]
        told = (int(header[2] or 1), int(header[4] or 1))
        while body and not body[-1].removesuffix("\r") and (_count(body, " -"), _count(body, " +")) != told:
            body.pop()  # blank lines behind a diff are not context
        if body and body[-1].rstrip() == "--" and (_count(body[:-1], " -"), _count(body[:-1], " +")) == told:
            body.pop()  # so a mail's signature begins, behind what `git format-patch` writes
        start = f"@@ -{header[1]},{_count(body, ' -')} +{header[3]},{_count(body, ' +')} @@{header[5]}"
        result += [start, *(" " + line if line in ("", "\r") else line for line in body)]
        index = end
    return "\n".join([*result, ""])


_ENVELOPE = re.compile(
    r"\A(?:(?!--- |\+\+\+ |@@ -|diff ).*\n)*?(?=\*\*\* (?:Begin Patch|(?:Add|Update|Delete) File: ))"
)
"""What may stand before it: a fence of Markdown, a shell's command."""
_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")


def _parse_envelope(lines: Sequence[str]) -> list[FilePatch]:
    """The files of a patch as several models write it: `*** Update File:`, hunks behind `@@` without numbers."""
    patches: list[FilePatch] = []
    body: list[str] = []
    did = path = ""

    def close() -> None:
        if not did:
            return
        parts = _hunks(body)
        says_ends = any("\r" in line for lines, _ in parts for line in lines)
        hunks = [_unnumbered(*part, says_ends) for part in parts]
        if did == "Update" and not hunks:
            raise Invalid(f"The patch changes nothing in `{path}`.", _HOW)
        patches.append(FilePatch(path, path, did == "Add", did == "Delete", tuple(hunks), did == "Delete"))

    for line in lines:
        if line.startswith(("*** End Patch", "```")):
            break
        if (found := _FILE.fullmatch(line.removesuffix("\r"))) is not None:
            close()
            (did, path), body = found.groups(), []
        elif line.startswith("*** Move to:"):
            raise Invalid(f"The patch renames `{path}`.", "Use `move_file` to rename.")
        elif did and not line.startswith("*** End"):
            body.append(line)
    close()
    if not patches:
        raise Invalid("The patch names no file.", _HOW)
    return patches


def _hunks(body: Sequence[str]) -> list[tuple[list[str], list[str]]]:
    """The lines of each hunk, and those that stand behind its `@@`."""
    parts: list[tuple[list[str], list[str]]] = [([], [])]
    for line in body:
        if line.startswith("@@"):
            if parts[-1][0]:
                parts.append(([], []))
            parts[-1][1].extend(filter(None, (_inside(line),)))
        else:
            parts[-1][0].append(line)
    for part, _ in parts:
        while part and part[-1] in ("", "\r"):
            part.pop()  # blank lines between hunks and files are no context
    return [([" " + line if line in ("", "\r") else line for line in part], inside) for part, inside in parts if part]


def _inside(header: str) -> str:
    """What stands behind the `@@` of a hunk without numbers."""
    return header.removeprefix("@@").rstrip().removesuffix("@@").strip()


def _unnumbered(body: Sequence[str], inside: Sequence[str], says_ends: bool) -> Hunk:
    if wrong := next((line for line in body if line[0] not in " +-"), None):
        raise Invalid(f"The patch can't be read: {wrong[:60]!r} must begin with ` `, `+` or `-`.", _HOW)
    old, new = (
        [part for line in body if line[0] in kinds for part in split_lines(f"{line[1:]}\n")] for kinds in (" -", " +")
    )
    return _hunk(0, old, new, (False, False), says_ends, inside)


def _by_file(patch: str) -> list[tuple[str, str | None]]:
    """Parts of `patch`, each with at most one line of git's that names two files, which then has to name them; and
    the mode that it gives the file.

    Where `---` and `+++` do, it is left out: it does not say where a name with blanks ends.
    """
    parts: list[tuple[str, str | None]] = []
    for part in _GIT.split(patch):
        names = _NAMES.search(part)
        mode = _MODE.search(part, 0, names.start() if names else len(part))
        parts.append((part[names.start() :] if names else _EMPTY.sub(_named, part), mode and mode[1]))
    return parts


def _named(empty: re.Match[str]) -> str:
    """The lines that name an empty file that comes or goes, which git writes on none of their own."""
    old, new = (_NONE, empty["new"]) if empty["mode"] == "new" else (empty["old"], _NONE)
    return f"--- {old}\n+++ {new}\n"


def _ends_hunk(lines: Sequence[str], index: int) -> bool:
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


def _count(body: Sequence[str], marks: str) -> int:
    return sum(1 for line in body if (line[:1].strip("\r") or " ") in marks)
