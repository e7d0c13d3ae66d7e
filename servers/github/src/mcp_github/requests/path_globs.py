"""Globs of paths as callers know them from editors and CI: `*` is a part of one name, `**` any number of folders."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from fnmatch import translate

from mcp_batteries.errors import Invalid, quote

__all__ = ["PathGlob"]

_ANY_FOLDERS = "**"
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_MAX_CHOICES = 100


class PathGlob:
    """A glob that was read; one without a slash is that of a name at any depth.

    Raises:
        Invalid: its braces stand for too many globs.
    """

    def __init__(self, glob: str) -> None:
        names_by_folders: dict[tuple[str, ...], list[str]] = {}
        for choice in _expand_braces(glob):
            *folders, name = _split(choice)
            names_by_folders.setdefault(tuple(folders), []).append(name)
        self._parts = [_Part.compile(folders, names) for folders, names in names_by_folders.items()]
        # Many files are in one folder.
        self._names_by_folder: dict[str, list[re.Pattern[str]]] = {}

    def matches(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        names = self._names_by_folder.get(folder)
        if names is None:
            folders = folder.split("/") if folder else []
            names = [part.name for part in self._parts if part.matches_folders(folders)]
            self._names_by_folder[folder] = names
        return any(glob.match(name) for glob in names)


@dataclass(frozen=True)
class _Part:
    """Those of a glob's choices whose folders are alike.

    Attributes:
        folders: what match them one by one, of which None stands for any number.
        name: what matches the name at the end.
    """

    folders: Sequence[re.Pattern[str] | None]
    name: re.Pattern[str]

    @classmethod
    def compile(cls, folders: Sequence[str], names: Sequence[str]) -> _Part:
        folder_globs: list[re.Pattern[str] | None] = []
        for folder in folders:
            if folder == _ANY_FOLDERS:
                folder_globs.append(None)
            else:
                folder_globs.append(re.compile(translate(folder)))
        return cls(folder_globs, re.compile("|".join(map(translate, names))))

    def matches_folders(self, folders: Sequence[str]) -> bool:
        positions = self._pass_any_folders({0})
        for folder in folders:
            following: set[int] = set()
            for position in positions:
                if position == len(self.folders):
                    continue
                glob = self.folders[position]
                if glob is None:
                    following.add(position)
                elif glob.match(folder):
                    following.add(position + 1)
            positions = self._pass_any_folders(following)
        return len(self.folders) in positions

    def _pass_any_folders(self, positions: Set[int]) -> set[int]:
        """Return the positions in the globs that can be reached from others without another folder."""
        reached = set(positions)
        for position, glob in enumerate(self.folders):
            if position in reached and glob is None:
                reached.add(position + 1)
        return reached


def _expand_braces(glob: str) -> list[str]:
    """Return what a glob stands for: for `*.{c,h}` that is `*.c` and `*.h`."""
    expanded: list[str] = []
    pending = [glob]
    while pending:
        if len(expanded) + len(pending) > _MAX_CHOICES:
            raise Invalid(f"The braces of {quote(glob)} stand for more than {_MAX_CHOICES} globs.", "Search in parts.")
        choice = pending.pop()
        braces = _BRACES.search(choice)
        if braces is None:
            expanded.append(choice)
            continue
        pending += [choice[: braces.start()] + text + choice[braces.end() :] for text in braces[1].split(",")]
    return expanded


def _split(glob: str) -> list[str]:
    """Return a glob's names, the folders that may stand before or behind them as `**`."""
    names = glob.strip("/").removeprefix("./").split("/")
    if "/" not in glob.rstrip("/"):
        names.insert(0, _ANY_FOLDERS)
    if names[-1] == _ANY_FOLDERS:
        names.append("*")
    return names
