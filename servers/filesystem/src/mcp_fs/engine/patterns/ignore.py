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
from itertools import chain
from typing import NamedTuple

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
        self._rules: list[_Rule] = []
        for line in content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").split("\n"):
            rule = _parse_rule(line)
            if rule is not None:
                self._rules.append(rule)
        expressions = [rule.expression for rule in self._rules]
        self._match = compile_path_set(expressions)
        self.may_apply = _never_applies
        if expressions:
            self.may_apply = compile_path_prefilter(expressions)
        self.brings_back = any(rule.brings_back for rule in self._rules)

    def decide(self, path: bytes, is_folder: bool) -> bool | None:
        """Return True when the path is left out, False when it is brought back, None when no rule speaks of it."""
        matching = self._match(path)
        if not matching:
            return None
        for index in sorted(matching, reverse=True):
            rule = self._rules[index]
            if is_folder or not rule.folders_only:
                return not rule.brings_back
        return None


class _Rule(NamedTuple):
    """One line of a file of rules.

    Attributes:
        expression: what it matches, over the bytes of a path.
        brings_back: whether it brings back what another rule leaves out.
        folders_only: whether it holds for folders only.
    """

    expression: bytes
    brings_back: bool
    folders_only: bool


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
        own_files = _load_rule_files(folder, names)
        if parent is None:
            parent = _NO_RULES
        elif not any(own_files):
            return parent
        length = sum(len(os.fsencode(part)) + 1 for part in folder.path.parts)
        brings_back = parent.brings_back
        chains: list[_Chain] = []
        for rules, outer_chain in zip(own_files, parent.chains, strict=True):
            if rules is None:
                chains.append(outer_chain)
                continue
            chains.append(((rules, length), *outer_chain))
            brings_back = brings_back or rules.brings_back
        return cls(tuple(chains), brings_back)

    @classmethod
    def load_above(cls, path: ReadablePath) -> Rules | None:
        """Return the rules above `path`, from the served folder down; None for the served folder itself."""
        rules: Rules | None = None
        for depth in range(len(path.parts)):
            rules = cls.load_in_folder(path.at(path.root, path.parts[:depth]), rules)
        return rules

    @classmethod
    def load_in_folder(cls, path: ReadablePath, outer: Rules | None) -> Rules:
        """Return the rules in the folder `path`, which is not listed for them."""
        with open_folder(path) as folder:
            names = [name for name in (".git", *IGNORE_FILES) if _exists(folder, name)]
            return cls.load(folder, names, outer)

    def exclude(self, folder: str, names: list[str], are_folders: bool, hidden: Set[str]) -> set[str]:
        """Return which of `names` are ignored, or hidden and not brought back.

        Args:
            folder: path below the served folder of where they lie, empty or with a slash at its end.
            hidden: names that are hidden, unless they are wanted.
        """
        if not names:
            return set()
        deciders = self._find_deciders(folder, names)
        if not deciders:
            if hidden:
                return set(names) & hidden
            return set()
        excluded: set[str] = set()
        for name in names:
            decision = _decide(deciders, name.encode("utf-8", _ERRORS), are_folders)
            if decision is None:
                decision = name in hidden
            if decision:
                excluded.add(name)
        return excluded

    def _find_deciders(self, folder: str, names: list[str]) -> list[tuple[_RuleFile, bytes]]:
        """Return the files of rules that may speak of some of `names`, each with the path of the folder below its own.

        The first that speaks of a name decides.
        """
        path = folder.encode("utf-8", _ERRORS)
        lines = dict[bytes, bytes]()
        deciders: list[tuple[_RuleFile, bytes]] = []
        for rules, length in chain.from_iterable(self.chains):
            above = path[length:]
            if above not in lines:
                start = above.decode("utf-8", _ERRORS)
                lines[above] = (start + f"\n{start}".join(names)).encode("utf-8", _ERRORS)
            if rules.may_apply(lines[above]):
                deciders.append((rules, above))
        return deciders


_NO_RULES = Rules(((),) * (len(IGNORE_FILES) + 1), brings_back=False)


def _decide(deciders: list[tuple[_RuleFile, bytes]], name: bytes, is_folder: bool) -> bool | None:
    for rules, above in deciders:
        decision = rules.decide(above + name, is_folder)
        if decision is not None:
            return decision
    return None


def _load_rule_files(folder: Folder[ReadablePath], names: Collection[str]) -> list[_RuleFile | None]:
    """Return the files of rules in a folder in their precedence; None for each that is not there."""
    files: list[_RuleFile | None] = []
    for name in IGNORE_FILES:
        if name in names:
            files.append(_load_rule_file(folder, name))
        else:
            files.append(None)
    if ".git" in names:
        files.append(_load_git_exclude(folder))
    else:
        files.append(None)
    return files


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


def _parse_rule(line: str) -> _Rule | None:
    """Return a line of rules as gitignore(5) has it and ripgrep reads it; None for a comment or what can't be read."""
    if line.startswith("#"):
        return None
    if not line.endswith("\\ "):
        line = line.rstrip()
    brings_back = False
    is_anchored = False
    if line.startswith(("\\!", "\\#")):
        line = line[1:]
    else:
        brings_back = line.startswith("!")
        line = line.removeprefix("!")
        is_anchored = line.startswith("/")
        line = line.removeprefix("/")
    folders_only = line.endswith("/")
    line = line.removesuffix("/")
    if not line:
        return None
    try:
        expression = translate(_as_path_glob(line, is_anchored=is_anchored))
    except GlobError:
        return None
    return _Rule(expression, brings_back, folders_only)


def _as_path_glob(glob: str, *, is_anchored: bool) -> str:
    """Return the glob of a rule over whole paths: without a slash it is a name at any depth."""
    if not is_anchored and "/" not in glob and glob != "**":
        glob = "**/" + glob
    if glob.endswith("/**"):
        glob += "/*"  # what lies in the folder, not the folder
    return glob
