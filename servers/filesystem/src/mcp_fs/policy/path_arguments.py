"""Parses the arguments of tools that name more than one path, or one that need not be there yet.

What a text means can depend on what is there. Parsing does not look, so such a type holds all that it can mean, each
checked, and the engine decides.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from mcp_batteries.errors import Invalid, Problem, quote
from mcp_fs.paths import detect_typo, is_uri
from mcp_fs.policy import Policy, ReadablePath, WritablePath

__all__ = [
    "ArchivePart",
    "CopyPair",
    "FileName",
    "GlobName",
    "LineRange",
    "MovePair",
    "PackTarget",
    "PathArguments",
    "PathGlob",
    "TargetPath",
    "Typo",
]

_P = TypeVar("_P", bound=ReadablePath)

_SEPARATOR = re.compile(r"[/\\]" if os.sep == "\\" else "/")
_ARCHIVE_PART = re.compile(r"(.+\.zip)!(?:[/\\](.*))?", re.DOTALL | re.IGNORECASE)
_ARCHIVE_NAME = re.compile(r".+\.(?:zip|jar|whl|7z|tar|tgz|gz|bz2|xz)!", re.DOTALL | re.IGNORECASE)
_WILDCARD = re.compile(r"\*|\{[^{}]*,[^{}]*\}")
_LINE_RANGE = re.compile(r"(.+):(?:(\d{1,9})(?:-(\d{1,9})?)?|-([1-9]\d{0,8}))", re.DOTALL)


@dataclass(frozen=True)
class Typo:
    """A name that was nearly certainly mistyped.

    Attributes:
        entry: where it is; if something is there, it was meant after all.
        refusal: what the caller is told otherwise.
    """

    entry: ReadablePath
    refusal: Problem


@dataclass(frozen=True)
class TargetPath:
    """Where something may be made.

    Attributes:
        ends_in_slash: whether the caller spells it as a folder.
    """

    path: WritablePath
    typo: Typo | None
    ends_in_slash: bool = False


@dataclass(frozen=True)
class PathGlob(Generic[_P]):
    """A path with `*` or `{a,b}` in it.

    Attributes:
        text: as the caller spells it.
        literal: the entry of that very name, which is meant if it is there; None where no name can hold a `*`.
        start: the folder where the glob begins.
        glob: what fits, below it; without a slash it is a name at any depth, unless `is_anchored`.
        is_anchored: whether the caller names the folder that a name is in, be it as `./`.
    """

    text: str
    literal: _P | None
    start: _P
    glob: str
    is_anchored: bool


@dataclass(frozen=True, slots=True)
class LineRange:
    """What `a.py:10-40` names.

    Attributes:
        first: of its lines, from 1; negative for so many last ones.
        last: included; None for all that follow.
        display: as the caller spells it.
    """

    place: ReadablePath
    first: int
    last: int | None
    display: str


@dataclass(frozen=True, slots=True)
class ArchivePart:
    """What `a.zip!/docs` names.

    Attributes:
        place: the archive.
        inner: names down to what is meant in it; none for all.
        display: as the caller spells it.
    """

    place: ReadablePath
    inner: tuple[str, ...]
    display: str

    @property
    def name(self) -> str:
        """The last name; of all in an archive its own without the ending."""
        if self.inner:
            return self.inner[-1]
        return self.place.name.rpartition(".")[0] or self.place.name


@dataclass(frozen=True, slots=True)
class PackTarget:
    """Where `a.zip!/docs/` puts what is copied: into a new archive.

    Attributes:
        folder: the entry of the very name `a.zip!`; if it is there, it is meant.
        names: down to the name that it gets in the archive, or to the folder it goes into; none for the top.
        is_folder: whether they are those of a folder.
    """

    archive: WritablePath
    folder: ReadablePath
    names: tuple[str, ...]
    is_folder: bool


@dataclass(frozen=True)
class FileName:
    """A file, or if there is none of that name, lines of one or what is in an archive.

    Attributes:
        text: as the caller spells it.
        entry: the file of that very name, or why there can be none.
        lines: None if the name can't be of lines.
        archive_part: None if the name can't be of something in an archive.
    """

    text: str
    entry: ReadablePath | Problem
    lines: LineRange | Problem | None
    archive_part: ArchivePart | None = None


@dataclass(frozen=True)
class GlobName:
    """All files that a glob means, or the same lines of each.

    Attributes:
        text: as the caller spells it.
        glob: or the one file that a URI with `*` names, or why there can be none.
        first: of the lines, from 1; negative for so many last ones.
        last: included; None for all that follow.
    """

    text: str
    glob: PathGlob[ReadablePath] | ReadablePath | Problem
    first: int
    last: int | None


@dataclass(frozen=True)
class CopyPair:
    """What is copied, or all that a glob means, and where to.

    Attributes:
        source_ends_in_slash: whether the caller spells the source as a folder.
        packing: set if the target can lie in an archive.
    """

    source: FileName | PathGlob[ReadablePath]
    target: TargetPath
    source_ends_in_slash: bool = False
    packing: PackTarget | None = None


@dataclass(frozen=True)
class MovePair:
    """What is moved, or all that a glob means, and where to.

    Attributes:
        source_ends_in_slash: whether the caller spells the source as a folder.
    """

    source: WritablePath | PathGlob[WritablePath]
    target: TargetPath
    source_ends_in_slash: bool = False


class PathArguments:
    """The parsers; each refuses what the policy refuses."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def target(self, path: str) -> TargetPath:
        """Parse where something may be made."""
        writable_path = self._policy.writable(path)
        return TargetPath(writable_path, self._find_typo(path, writable_path), _ends_in_slash(path))

    def file_target(self, path: str) -> TargetPath:
        """Parse where a file may be made.

        Raises:
            Invalid: it is spelled like a folder.
        """
        if _ends_in_slash(path):
            raise Invalid(f"{quote(path)} ends as folders do.", "Leave out the last slash, or use `create_directory`.")
        return self.target(path)

    def patch(self, text: str) -> str | ReadablePath:
        """Parse a patch: one line is the path of a file that holds it."""
        path = text.strip()
        if "\n" in path or not path:
            return text
        return self._policy.readable(path)

    def file_names(self, paths: list[str]) -> list[FileName | GlobName]:
        """Parse files and lines of files; one that is refused stops no other."""
        return [self._parse_name(path) for path in paths]

    def copy_pairs(self, targets: dict[str, str]) -> list[CopyPair]:
        """Parse what is copied, files or lines of them, with the target of each."""
        pairs: list[CopyPair] = []
        for source, target in targets.items():
            name = parse_glob(self._policy.readable, source) or self._parse_file_name(source)
            if isinstance(name, FileName) and name.lines is None and isinstance(name.entry, Problem):
                raise name.entry
            packing = self._parse_pack_target(target)
            pairs.append(CopyPair(name, self.target(target), _ends_in_slash(source), packing))
        return pairs

    def move_pairs(self, targets: dict[str, str]) -> list[MovePair]:
        """Parse what is moved, with the target of each."""
        pairs: list[MovePair] = []
        for source, target in targets.items():
            path = parse_glob(self._policy.writable, source) or self._policy.writable(source)
            pairs.append(MovePair(path, self.target(target), _ends_in_slash(source)))
        return pairs

    def deletions(self, paths: list[str]) -> list[WritablePath | PathGlob[WritablePath]]:
        """Parse what is deleted: paths, and all that globs mean."""
        return [parse_glob(self._policy.writable, path) or self._policy.writable(path) for path in paths]

    def _parse_name(self, text: str) -> FileName | GlobName:
        if _WILDCARD.search(text) is None:
            return self._parse_file_name(text)
        file, first, last = _split_line_numbers(text) or (text, 1, None)
        try:
            glob = parse_glob(self._policy.readable, file) or self._policy.readable(file)
        except Problem as problem:
            glob = problem
        return GlobName(text, glob, first, last)

    def _parse_file_name(self, text: str) -> FileName:
        entry = self._parse_readable(text)
        numbers = _split_line_numbers(text)
        if numbers is None:
            return FileName(text, entry, None, self._parse_archive_part(text))
        file, first, last = numbers
        place = self._parse_readable(file)
        if isinstance(place, Problem):
            return FileName(text, entry, place)
        return FileName(text, entry, LineRange(place, first, last, text))

    def _parse_archive_part(self, text: str) -> ArchivePart | None:
        match = _ARCHIVE_PART.fullmatch(text)
        if match is None:
            return None
        place = self._parse_readable(match[1])
        inner = tuple(name for name in _SEPARATOR.split(match[2] or "") if name not in ("", "."))
        if isinstance(place, Problem) or ".." in inner:
            return None
        return ArchivePart(place, inner, text)

    def _parse_pack_target(self, text: str) -> PackTarget | None:
        match = _ARCHIVE_PART.fullmatch(text)
        if match is None:
            return None
        names = tuple(name for name in _SEPARATOR.split(match[2] or "") if name not in ("", "."))
        if ".." in names:
            return None
        archive = self._policy.writable(match[1])
        folder = self._policy.readable(f"{match[1]}!")
        return PackTarget(archive, folder, names, not names or _ends_in_slash(text))

    def _parse_readable(self, path: str) -> ReadablePath | Problem:
        try:
            return self._policy.readable(path)
        except Problem as problem:
            return problem

    def _find_typo(self, path: str, writable_path: WritablePath) -> Typo | None:
        """Find where a mistyped name begins in `path`, which is `writable_path`."""
        if is_uri(path):
            return None
        for depth, name in enumerate(writable_path.parts, 1):
            if _ARCHIVE_NAME.fullmatch(name):
                refusal = Invalid(
                    f"{quote(path)} lies in an archive, into which nothing is written.",
                    "`copy_file` packs files into a new archive, target `a.zip!/`, and unpacks one, source `a.zip!/`.",
                )
                return Typo(
                    ReadablePath(writable_path.root, writable_path.parts[:depth], writable_path.policy), refusal
                )
        mistake = detect_typo(writable_path.parts)
        if mistake is None:
            return None
        depth, description, intended_path = mistake
        root = writable_path.root
        policy = writable_path.policy
        parts = tuple(intended_path.split("/"))
        fix = f"Write the path below {quote(root.path)}"
        if intended_path and detect_typo(parts) is None:
            fix = f"Write {quote(ReadablePath(root, parts, policy).display)}"
        refusal = Invalid(
            f"{quote(path)} would make a name with {description}.",
            f"{fix}, or {quote(writable_path.uri)} if that name is meant.",
        )
        return Typo(ReadablePath(root, writable_path.parts[:depth], policy), refusal)


def parse_glob(parse: Callable[[str], _P], path: str) -> PathGlob[_P] | None:
    """Parse a path with `*` or `{a,b}` in it; None for any other, and for a URI."""
    wildcard = _WILDCARD.search(path)
    if wildcard is None or is_uri(path):
        return None
    literal = None
    if os.name == "posix" or "*" not in path:
        literal = parse(path)
    prefix = path[: wildcard.start()]
    glob_start = max((separator.end() for separator in _SEPARATOR.finditer(prefix)), default=0)
    return PathGlob(path, literal, parse(path[:glob_start] or "."), path[glob_start:], glob_start > 0)


def _ends_in_slash(path: str) -> bool:
    return path.endswith(("/", os.sep))


def _split_line_numbers(path: str) -> tuple[str, int, int | None] | None:
    """Split `path` if it names lines: their file, the first (negative: so many last ones), the last."""
    match = _LINE_RANGE.fullmatch(path)
    if match is None:
        return None
    first = -int(match[4]) if match[4] else max(int(match[2]), 1)
    return match[1], first, int(match[3]) if match[3] else None
