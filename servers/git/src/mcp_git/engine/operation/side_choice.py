"""Resolves files in conflict by a side, or both: the lines that conflict become theirs, all others stay."""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, Invalid, quote
from mcp_git.engine.operation.conflicts import OUTSIDE_TOO, is_at_or_below, list_conflicts
from mcp_git.engine.operation.operation import GitInput
from mcp_git.engine.program.git import Git
from mcp_git.engine.work_tree.status import Status
from mcp_git.path_quoting import quote_path
from mcp_git.policy import Repository, RepositoryPath
from mcp_git.repository_paths import Layout

__all__ = ["SideChoice", "plan_choice"]

# How many signs git makes a mark of where no attribute says it.
_USUAL_MARK_LENGTH = 7
_MAX_MARK_LENGTH = 999
_FILE_MODES = ("100644", "100755")
_SUBMODULE_MODE = "160000"
# Values of the attribute `merge` with which git leaves our file as it is: `-merge`, `binary`.
_WHOLE_MERGES = (b"unset", b"binary")


class Stage(IntEnum):
    """A side of a conflict, by its number in the index."""

    BASE = 1
    OURS = 2
    THEIRS = 3


class Side(Enum):
    """Whose lines a file in conflict gets where both sides changed the same ones; the values are in that order."""

    OURS = (Stage.OURS,)
    THEIRS = (Stage.THEIRS,)
    BOTH = (Stage.OURS, Stage.THEIRS)


@dataclass(frozen=True, slots=True)
class SideChoice:
    """Says of which files in conflict, or folders with such, which side is taken."""

    ours: Sequence[RepositoryPath] = ()
    theirs: Sequence[RepositoryPath] = ()
    both: Sequence[RepositoryPath] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.ours or self.theirs or self.both)

    def find_sides(self, status: Status) -> dict[str, Side]:
        """Return by its path the side of each file in conflict that is named.

        Raises:
            Invalid: a path names none, or one is named for both sides.
        """
        sides: dict[str, Side] = {}
        for side, paths in ((Side.OURS, self.ours), (Side.THEIRS, self.theirs), (Side.BOTH, self.both)):
            for path in paths:
                for name in _list_conflicts_below(status, path):
                    other = sides.setdefault(name, side)
                    if other != side:
                        names = f"`{other.name.lower()}` and in `{side.name.lower()}`"
                        raise Invalid(f"{_quote(name)} is named in {names}.", "Name it in one of them.")
        return sides


class _Marks:
    """Recognizes the marks of a conflict that have a certain length.

    Attributes:
        conflict: a conflict as git writes it, with the lines before both sides where a configuration asks for them.
        mark: the beginning of a line that is one of its marks.
    """

    def __init__(self, length: int) -> None:
        self.length = length
        ours, base, theirs, end = (re.escape(sign * length) for sign in (b"<", b"|", b"=", b">"))
        self.conflict = re.compile(
            rb"^%b [^\n]*\n(?P<OURS>.*?)(?:^%b[^\n]*\n.*?)?^%b\r?\n(?P<THEIRS>.*?)^%b [^\n]*(?:\n|\Z)"
            % (ours, base, theirs, end),
            re.M | re.S,
        )
        self.mark = re.compile(rb"^(?:%b|%b|%b|%b)(?: |\r?$)" % (ours, base, theirs, end), re.M)


class _Entry(NamedTuple):
    """A file as the index has it."""

    mode: str
    oid: str


def plan_choice(
    git: Git, repository: Repository, layout: Layout, sides: Mapping[str, Side], cancel: CancelToken
) -> list[GitInput]:
    """Return the commands that write and stage the files of `sides`; only objects are written yet.

    Raises:
        Conflict: it can't be told which lines of a file conflict, or one that is to get both sides' has no such lines.
    """
    if not sides:
        return []
    names = list(sides)
    entries: list[str] = []
    written: list[str] = []
    deleted: list[str] = []
    with git.copy_index(layout) as folder:
        stages = _read_index(git, repository, names, cancel)
        git.run(repository, [*OUTSIDE_TOO, "add", "--all", "--", *names], cancel, scratch_index=folder)
        files = _read_index(git, repository, names, cancel, folder)
        for name, side in sides.items():
            resolution = _Resolution(git, repository, name, stages[name], side, cancel)
            chosen = resolution.choose(files.get(name, {}).get(0), folder)
            if chosen is None:
                deleted.append(name)
                continue
            written.append(name)
            entries.append(f"{chosen.mode} {chosen.oid}\t{name}\0")
    commands: list[GitInput] = []
    if deleted:
        commands.append(GitInput(["rm", "--quiet", "--force", "--", *deleted]))
    if written:
        stdin = os.fsencode("".join(entries))
        commands.append(GitInput(["update-index", "-z", "--index-info"], stdin))
        commands.append(GitInput(["checkout-index", "--force", "--quiet", "--", *written]))
        # Whether their contents can be staged at all is checked where something is added.
        commands.append(GitInput(["add", "--", *written]))
    return commands


@dataclass(frozen=True)
class _Resolution:
    """How the lines of one file become those of a side."""

    git: Git
    repository: Repository
    name: str
    stages: Mapping[int, _Entry]
    side: Side
    cancel: CancelToken

    def choose(self, file: _Entry | None, scratch_index: str) -> _Entry | None:
        """Return what is to be staged of the file, whose new contents are written; None if the side deleted it.

        Args:
            file: as it is in the work tree, by `scratch_index`; None if it is not there.

        Raises:
            Conflict: as `plan_choice`.
        """
        if file is not None and _has_lines_of_both(self.stages, file):
            text = self.resolve(file, scratch_index)
            if text is not None:
                arguments = ["hash-object", "-w", "--stdin"]
                oid = self.git.run(self.repository, arguments, self.cancel, stdin=text, writes=True)
                return _Entry(file.mode, oid.text.strip())
        if self.side is Side.BOTH:
            raise Conflict(
                f"{_quote(self.name)} does not have lines of both sides.",
                "Nothing was changed. Name it in `ours` or `theirs`, which takes the whole file.",
            )
        return self.stages.get(self.side.value[0])

    def resolve(self, file: _Entry, scratch_index: str) -> bytes | None:
        """Return the text of the file with the side's lines where they conflict; None for one without lines.

        Raises:
            Conflict: it can't be told which these are.
        """
        text = self._read(file.oid, scratch_index)
        versions = {stage: self._read(entry.oid) for stage, entry in self.stages.items()}
        attributes = self._read_attributes()
        if any(b"\0" in version for version in versions.values()) or attributes[b"merge"] in _WHOLE_MERGES:
            return None
        marks = _Marks(_parse_mark_length(attributes[b"conflict-marker-size"]))
        if any(marks.mark.search(version) for version in versions.values()):
            raise Conflict(
                f"{_quote(self.name)} has lines that look like the marks of a conflict.",
                "Nothing was changed. Resolve it in the file, and name it in `paths`.",
            )
        resolved, conflict_count = marks.conflict.subn(self._choose_lines, text)
        if not conflict_count or marks.mark.search(resolved):
            raise Conflict(
                f"{_quote(self.name)} does not have the marks of a conflict that git writes.",
                "Nothing was changed. Name it in `paths` if it is resolved.",
            )
        # Git ends the last line of a side where a mark follows.
        last_line = text.rstrip(b"\r\n").rpartition(b"\n")[2]
        ends_in_conflict = last_line.startswith(b">" * marks.length)
        if ends_in_conflict and not versions[self._find_last_stage(marks, text)].endswith(b"\n"):
            resolved = resolved.removesuffix(b"\n").removesuffix(b"\r")
        return resolved

    def _choose_lines(self, conflict: re.Match[bytes]) -> bytes:
        return b"".join(conflict[stage.name] for stage in self.side.value)

    def _find_last_stage(self, marks: _Marks, text: bytes) -> Stage:
        """Return whose lines are the last ones once the last conflict is resolved."""
        *_, conflict = marks.conflict.finditer(text)
        *others, last = self.side.value
        if others and not conflict[last.name]:
            return others[-1]
        return last

    def _read_attributes(self) -> dict[bytes, bytes]:
        """Return how git merges the file by its attributes, which may have put no lines of the other side into it."""
        arguments = ["check-attr", "-z", "merge", "conflict-marker-size", "--", self.name]
        fields = self.git.run(self.repository, arguments, self.cancel).stdout.split(b"\0")
        return {fields[1]: fields[2], fields[4]: fields[5]}

    def _read(self, oid: str, scratch_index: str = "") -> bytes:
        return self.git.run(self.repository, ["cat-file", "blob", oid], self.cancel, scratch_index=scratch_index).stdout


def _parse_mark_length(value: bytes) -> int:
    """Return how long git makes a mark, by an attribute that may say nothing of it."""
    if value.isdigit() and 0 < int(value) <= _MAX_MARK_LENGTH:
        return int(value)
    return _USUAL_MARK_LENGTH


def _has_lines_of_both(stages: Mapping[int, _Entry], file: _Entry) -> bool:
    """Whether both sides have a file, and git wrote a third one of their lines."""
    entries = [stages.get(Stage.OURS), stages.get(Stage.THEIRS), file]
    return all(entry is not None and entry.mode in _FILE_MODES for entry in entries)


def _list_conflicts_below(status: Status, path: RepositoryPath) -> list[str]:
    folder = os.fsencode(path.pathspec)
    names = [os.fsdecode(name) for name in list_conflicts(status) if is_at_or_below(name, [folder])]
    if not names:
        raise Invalid(f"{quote(path.display)} is not in conflict.", "`get_status` has what is.")
    return names


def _read_index(
    git: Git, repository: Repository, names: Sequence[str], cancel: CancelToken, scratch_index: str = ""
) -> dict[str, dict[int, _Entry]]:
    """Return by path and stage what the index has of some files.

    Raises:
        Conflict: one of them is a submodule.
    """
    arguments = ["ls-files", "-z", "--stage", "--", *names]
    output = git.run(repository, arguments, cancel, scratch_index=scratch_index).stdout
    stages: dict[str, dict[int, _Entry]] = {}
    for name, stage, entry in _split_entries(output):
        if entry.mode == _SUBMODULE_MODE:
            raise Conflict(f"{_quote(name)} is a submodule.", "Nothing was changed. `stage_files` takes it as it is.")
        stages.setdefault(name, {})[stage] = entry
    return stages


def _split_entries(output: bytes) -> Generator[tuple[str, int, _Entry]]:
    for record in output.split(b"\0")[:-1]:
        description, _, name = record.partition(b"\t")
        mode, oid, stage = description.decode().split(" ")
        yield os.fsdecode(name), int(stage), _Entry(mode, oid)


def _quote(name: str) -> str:
    return quote(quote_path(os.fsencode(name)))
