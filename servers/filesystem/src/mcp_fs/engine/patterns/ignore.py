"""Decides which entries a search leaves out, by ripgrep's rules.

`.rgignore`, `.ignore`, `.gitignore` and `.git/info/exclude`, in that order of precedence; within one of them the
deeper folder decides, and within a file the last rule that matches. A rule can bring back what is hidden. Rules
reach into a repository that lies inside, as in ripgrep 15, and files outside the served folder have no say.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Set
from dataclasses import dataclass
from functools import lru_cache

from mcp_batteries.errors import Problem
from mcp_fs.engine.handles.path_opening import Folder, open_file, open_folder, open_regular
from mcp_fs.engine.patterns.glob import GlobError, translate
from mcp_fs.engine.patterns.regex import compile_path_prefilter, compile_path_set
from mcp_fs.policy import ReadablePath

__all__ = ["IGNORE_FILES", "Rules"]

IGNORE_FILES = (".rgignore", ".ignore", ".gitignore")
_MAX_BYTES = 1024 * 1024
_ERRORS = sys.getfilesystemencodeerrors()

_Chain = tuple[tuple["_RuleFile", int], ...]


class _RuleFile:
    """The rules of one file, over paths relative to the folder they hold for."""

    def __init__(self, content: bytes) -> None:
        self._kinds: list[tuple[bool, bool]] = []  # (brings back, folders only) for each glob
        globs: list[bytes] = []
        for line in content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").split("\n"):
            rule = _parse_rule(line)
            if rule is not None:
                globs.append(rule[0])
                self._kinds.append(rule[1:])
        self._match = compile_path_set(globs)
        if globs:
            self.may_apply = compile_path_prefilter(globs)
        else:
            self.may_apply = _never_applies
        self.brings_back = any(brings_back for brings_back, _ in self._kinds)

    def decide(self, path: bytes, is_folder: bool) -> bool | None:
        """True when the path is left out, False when it is brought back, None when no rule speaks of it."""
        matching = self._match(path)
        if not matching:
            return None
        for index in sorted(matching, reverse=True):
            brings_back, folders_only = self._kinds[index]
            if is_folder or not folders_only:
                return not brings_back
        return None


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that hold in one folder: its own and those of the folders above.

    Attributes:
        chains: for each kind of file, the nearest first, the rules and the length of the path above them.
        brings_back: whether some rule brings back what another leaves out.
    """

    chains: tuple[_Chain, ...]
    brings_back: bool

    @classmethod
    def load(cls, folder: Folder[ReadablePath], names: Collection[str], parent: Rules | None) -> Rules:
        """Return the rules in an open folder.

        Args:
            names: its entries; those that hold rules are enough.
            parent: the rules of the folder above.
        """
        own_files = [_load_rule_file(folder, name) if name in names else None for name in IGNORE_FILES]
        own_files.append(_load_git_exclude(folder) if ".git" in names else None)
        if parent is not None and own_files == [None] * 4:
            return parent
        if parent is not None:
            above = parent.chains
        else:
            above = ((), (), (), ())
        length = sum(len(os.fsencode(part)) + 1 for part in folder.path.parts)
        chains: list[_Chain] = []
        for number, rules in enumerate(own_files):
            chains.append(above[number] if rules is None else ((rules, length), *above[number]))
        brings_back = any(rules is not None and rules.brings_back for rules in own_files)
        return cls(tuple(chains), brings_back or (parent is not None and parent.brings_back))

    @classmethod
    def load_above(cls, place: ReadablePath) -> Rules | None:
        """The rules in the folder above `place`, from the served folder down; None for the served folder itself."""
        rules: Rules | None = None
        for depth in range(len(place.parts)):
            rules = cls.load_in_folder(place.at(place.root, place.parts[:depth]), rules)
        return rules

    @classmethod
    def load_in_folder(cls, place: ReadablePath, outer: Rules | None) -> Rules:
        """Return the rules in the folder `place`, which is not listed for them."""
        with open_folder(place) as folder:
            names = [name for name in (".git", *IGNORE_FILES) if _exists(folder, name)]
            return cls.load(folder, names, outer)

    def exclude(self, folder: str, names: list[str], are_folders: bool, hidden: Set[str]) -> set[str]:
        """Return which of `names` are ignored, or hidden and not brought back.

        Args:
            folder: path below the served folder of where they lie, empty or with a slash at its end.
            hidden: names that are hidden, unless they are wanted.
        """
        path = folder.encode("utf-8", _ERRORS)
        lines = dict[bytes, bytes]()
        deciders: list[tuple[_RuleFile, bytes]] = []
        for chain in self.chains if names else ():
            for rules, length in chain:
                above = path[length:]
                if above not in lines:
                    start = above.decode("utf-8", _ERRORS)
                    lines[above] = (start + f"\n{start}".join(names)).encode("utf-8", _ERRORS)
                if rules.may_apply(lines[above]):
                    deciders.append((rules, above))
        if not deciders:
            if hidden:
                return set(names) & hidden
            return set()
        excluded: set[str] = set()
        for name in names:
            for rules, above in deciders:
                decision = rules.decide(above + name.encode("utf-8", _ERRORS), are_folders)
                if decision is not None:
                    if decision:
                        excluded.add(name)
                    break
            else:
                if name in hidden:
                    excluded.add(name)
        return excluded


def _never_applies(_: bytes) -> bool:
    return False


@lru_cache(maxsize=256)
def _parse_rule_file(content: bytes) -> _RuleFile:
    return _RuleFile(content)


def _load_rule_file(folder: Folder[ReadablePath], name: str) -> _RuleFile | None:
    try:
        with open_file(folder.path / name) as file:
            return _parse_rule_file(file.read(_MAX_BYTES))
    except (OSError, Problem):
        return None


def _load_git_exclude(folder: Folder[ReadablePath]) -> _RuleFile | None:
    try:
        with open_folder(folder.path / ".git" / "info") as info, open_regular(info, "exclude") as file:
            return _parse_rule_file(file.read(_MAX_BYTES))
    except (OSError, Problem):
        return None


def _exists(folder: Folder[ReadablePath], name: str) -> bool:
    try:
        folder.stat(name)
    except OSError:
        return False
    return True


def _parse_rule(line: str) -> tuple[bytes, bool, bool] | None:
    """(expression, brings back, folders only) of a line of rules; gitignore(5) as ripgrep reads it."""
    if line.startswith("#"):
        return None
    if not line.endswith("\\ "):
        line = line.rstrip()
    brings_back = anchored = False
    if line.startswith(("\\!", "\\#")):
        line = line[1:]
    else:
        if line.startswith("!"):
            line = line[1:]
            brings_back = True
        if line.startswith("/"):
            line = line[1:]
            anchored = True
    folders_only = line.endswith("/")
    line = line.removesuffix("/")
    if not line:
        return None
    if not anchored and "/" not in line and line != "**":
        line = "**/" + line
    if line.endswith("/**"):
        line += "/*"  # what lies in the folder, not the folder
    try:
        return translate(line), brings_back, folders_only
    except GlobError:
        return None
