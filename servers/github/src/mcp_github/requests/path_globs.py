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
_MAX_GLOBS = 100


class PathGlob:
    """A glob that was read; one without a slash is that of a name at any depth.

    Raises:
        Invalid: its braces stand for too many globs.
    """

    def __init__(self, glob: str) -> None:
        names_by_folders: dict[tuple[str, ...], list[str]] = {}
        for expansion in _expand_braces(glob):
            *folders, name = _split(expansion)
            names_by_folders.setdefault(tuple(folders), []).append(name)
        self._patterns = [_FolderPattern.compile(folders, names) for folders, names in names_by_folders.items()]
        # Files of one folder share what matches their names, so that each folder is matched once.
        self._names_by_folder: dict[str, list[re.Pattern[str]]] = {}

    def matches(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        names = self._names_by_folder.get(folder)
        if names is None:
            folders = folder.split("/") if folder else []
            names = [pattern.name for pattern in self._patterns if pattern.matches_folders(folders)]
            self._names_by_folder[folder] = names
        return any(pattern.match(name) for pattern in names)


@dataclass(frozen=True)
class _FolderPattern:
    """The names that a glob allows in some folders.

    Attributes:
        folders: what each folder of a path has to match, in their order; None stands for any number of folders.
        name: what the name behind them has to match.
    """

    folders: Sequence[re.Pattern[str] | None]
    name: re.Pattern[str]

    @classmethod
    def compile(cls, folders: Sequence[str], names: Sequence[str]) -> _FolderPattern:
        folder_globs: list[re.Pattern[str] | None] = []
        for folder in folders:
            if folder == _ANY_FOLDERS:
                folder_globs.append(None)
            else:
                folder_globs.append(re.compile(translate(folder)))
        return cls(folder_globs, re.compile("|".join(map(translate, names))))

    def matches_folders(self, folders: Sequence[str]) -> bool:
        """Return whether a path's folders match.

        After each folder, `positions` are those in `self.folders` of what the next one may match.
        """
        positions = self._skip_any_folders({0})
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
            positions = self._skip_any_folders(following)
        return len(self.folders) in positions

    def _skip_any_folders(self, positions: Set[int]) -> set[int]:
        """Return some positions, and those behind each `**` at one, which may stand for no folder."""
        reached = set(positions)
        for position, glob in enumerate(self.folders):
            if position in reached and glob is None:
                reached.add(position + 1)
        return reached


def _expand_braces(glob: str) -> list[str]:
    """Return the globs that a glob with braces stands for: for `*.{c,h}` that is `*.c` and `*.h`."""
    expanded: list[str] = []
    pending = [glob]
    while pending:
        if len(expanded) + len(pending) > _MAX_GLOBS:
            raise Invalid(f"The braces of {quote(glob)} stand for more than {_MAX_GLOBS} globs.", "Search in parts.")
        expansion = pending.pop()
        braces = _BRACES.search(expansion)
        if braces is None:
            expanded.append(expansion)
            continue
        before = expansion[: braces.start()]
        after = expansion[braces.end() :]
        pending += [before + alternative + after for alternative in braces[1].split(",")]
    return expanded


def _split(glob: str) -> list[str]:
    """Return the names in a glob, with `**` where any folders may stand before or behind them."""
    names = glob.strip("/").removeprefix("./").split("/")
    if "/" not in glob.rstrip("/"):
        names.insert(0, _ANY_FOLDERS)
    if names[-1] == _ANY_FOLDERS:
        names.append("*")
    return names
