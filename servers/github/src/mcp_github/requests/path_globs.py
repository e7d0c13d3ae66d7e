"""Globs of paths as callers know them from editors and CI: `*` is a part of one name, `**` any number of folders."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from fnmatch import fnmatchcase

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
        self._globs = [_split(choice) for choice in _expand_braces(glob)]

    def matches(self, path: str) -> bool:
        names = path.split("/")
        return any(_matches(names, names_globs) for names_globs in self._globs)


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
    if len(names) == 1:
        names.insert(0, _ANY_FOLDERS)
    if names[-1] == _ANY_FOLDERS:
        names.append("*")
    return names


def _matches(names: Sequence[str], globs: Sequence[str]) -> bool:
    """Return whether a path's names match the globs, of which the `**` stand for any number of names."""
    positions = _pass_any_folders({0}, globs)
    for name in names:
        following: set[int] = set()
        for position in positions:
            if position == len(globs):
                continue
            if globs[position] == _ANY_FOLDERS:
                following.add(position)
            elif fnmatchcase(name, globs[position]):
                following.add(position + 1)
        positions = _pass_any_folders(following, globs)
    return len(globs) in positions


def _pass_any_folders(positions: Set[int], globs: Sequence[str]) -> set[int]:
    """Return the positions in `globs` that can be reached from others without another name."""
    reached = set(positions)
    for position in range(len(globs)):
        if position in reached and globs[position] == _ANY_FOLDERS:
            reached.add(position + 1)
    return reached
