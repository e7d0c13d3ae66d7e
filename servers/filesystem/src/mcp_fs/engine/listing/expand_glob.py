"""Finds the entries that a path with `*` or `{a,b}` means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, NotFound, Problem, TooLarge, quote
from mcp_fs.engine.handles.path_opening import exists, refuse_archived
from mcp_fs.engine.listing.selection import (
    Chooser,
    choose_in_any_case,
    compile_relative_chooser,
    compile_relevance,
    refuse_part_of_matches,
)
from mcp_fs.engine.listing.walk import FolderEntries, Skipped, WalkFilter, entry_display_path, walk
from mcp_fs.engine.patterns.glob import expand_braces, names_hidden
from mcp_fs.policy import ReadablePath, WritablePath
from mcp_fs.policy.path_arguments import PathGlob

__all__ = ["ExpandedGlob", "expand_glob"]

_P = TypeVar("_P", bound=ReadablePath)

# That braces may name: each that nothing fits is told.
_MAX_CHOICES = 200
_MAX_NAMED_CHOICES = 10
_WILDCARD = re.compile(r"[*?\[\\]")


@dataclass(frozen=True, slots=True)
class ExpandedGlob(Generic[_P]):
    """What a glob means, and what is left out."""

    paths: Sequence[_P]
    skipped: Skipped


def expand_glob(
    path_glob: PathGlob[_P], limit: int, cancel: CancelToken, *, for_change: bool = False, ignore_case: bool = False
) -> ExpandedGlob[_P]:
    """Return the files that a glob means, or folders where it ends in a slash; and what is left out.

    Without a slash it is a name at any depth, as in every glob of these tools. Hidden ones are meant if the glob spells
    their dot, as in a shell: `.*`, `{.a,b}`. An entry with `*` in its name that is there, be it a link to nowhere, is
    that one. What nothing fits of the choices in braces is told as left out too, and what fits in another case.

    Args:
        limit: of paths.
        for_change: whether they are to be changed: then a glob is refused that a shell would read in another way, or
            that means more than `limit`; else the first are returned, and a note says so.
        ignore_case: whether names may be spelled in another case.

    Raises:
        NotFound: there are none, without hidden and git-ignored ones; or nothing fits a choice in braces that is a
            whole name, and they are to be changed.
        TooLarge: there are more than `limit`, and they are to be changed; or there are too many choices.
        Invalid: a name is meant at any depth, and is to be changed; or nothing, but a part of what the glob means is.
        Refused: what may be changed is meant in an archive.
        Problem: the start can't be opened, or the glob can't be read.
    """
    if path_glob.literal is not None and exists(path_glob.literal, follow=False):
        return ExpandedGlob([path_glob.literal], Skipped())
    if isinstance(path_glob.start, WritablePath):
        refuse_archived(path_glob.start)
    is_any_depth = not path_glob.is_anchored and "/" not in path_glob.glob.rstrip("/")
    expansion = _start_expansion(path_glob, is_any_depth=is_any_depth, ignore_case=ignore_case)
    is_cut = False
    for entries in walk(path_glob.start, WalkFilter(hidden=expansion.is_hidden), cancel, expansion.skipped):
        count_before = len(expansion.paths)
        expansion.add(entries)
        if for_change and is_any_depth and entries.parts and len(expansion.paths) > count_before:
            raise _ambiguous_depth_error(path_glob, expansion.paths[count_before])
        if len(expansion.paths) <= limit:
            continue
        if for_change:
            raise TooLarge(f"{quote(path_glob.text)} means more than {limit:,}.", "Narrow it, or do a part at a time.")
        del expansion.paths[limit:]
        expansion.skipped.add(f"the rest was not read, only the first {limit:,}", path_glob.text)
        is_cut = True
        break
    if not expansion.paths:
        refuse_part_of_matches(path_glob.text, for_change=isinstance(path_glob.start, WritablePath))
        raise _nothing_fits_error(path_glob, expansion.skipped)
    if not is_cut:
        _note_unmatched_choices(expansion, path_glob, for_change=for_change)
    return ExpandedGlob(expansion.paths, expansion.skipped)


def _start_expansion(path_glob: PathGlob[_P], *, is_any_depth: bool, ignore_case: bool) -> _Expansion[_P]:
    """Return the expansion of a glob, to which no folder was added.

    Raises:
        Invalid: the glob can't be read.
        TooLarge: there are too many choices in its braces.
    """
    anchor = "" if is_any_depth else "/"
    choices = _list_choices(path_glob)
    is_hidden = any(map(names_hidden, choices))
    choosers: dict[str, Chooser] = {}
    blind_choosers: dict[str, Chooser] = {}
    for choice in choices:
        choosers[choice] = compile_relative_chooser(anchor + choice, dots_are_spelled=is_hidden)
        if any(map(str.isalpha, choice)):
            lower_chooser = compile_relative_chooser((anchor + choice).lower(), dots_are_spelled=is_hidden)
            blind_choosers[choice] = choose_in_any_case(lower_chooser)
    if ignore_case:
        choosers |= blind_choosers
        blind_choosers = {}
    expansion = _Expansion(path_glob, choosers, blind_choosers, is_hidden=is_hidden)
    expansion.skipped.tells_links = is_any_depth or "/" in path_glob.glob.rstrip("/")
    glob = anchor + path_glob.glob
    is_relevant = compile_relevance([path_glob.start], path_glob.start, glob, expansion.chooses)
    if ignore_case:
        lower_relevance = compile_relevance([path_glob.start], path_glob.start, glob.lower(), expansion.chooses)
        is_relevant = choose_in_any_case(lower_relevance)
    expansion.skipped.is_relevant = is_relevant
    return expansion


def _nothing_fits_error(path_glob: PathGlob[_P], skipped: Skipped) -> NotFound:
    notes = "".join(f"; {note}" for note in (*skipped.notes(), *skipped.describe_links()))
    return NotFound(
        f"{quote(path_glob.text)} means no file that is not hidden or git-ignored{notes}.",
        "Hidden ones are meant if their dot is spelled, as in `.*`; name git-ignored ones one by one. `**/*.x` is "
        "at any depth, `x/` a folder.",
    )


def _note_unmatched_choices(expansion: _Expansion[_P], path_glob: PathGlob[_P], *, for_change: bool) -> None:
    """Note the choices in braces that nothing fits.

    Raises:
        NotFound: one of them is a whole name, and files are to be changed.
    """
    prefix = path_glob.text.removesuffix(path_glob.glob)
    unmatched_choices = [prefix + choice for choice in expansion.find_unmatched_choices()]
    if for_change and not all(map(_WILDCARD.search, unmatched_choices)):
        raise _missing_choices_error(quote(path_glob.text), unmatched_choices)
    for choice in unmatched_choices:
        expansion.skipped.add("nothing fits", choice)


def _ambiguous_depth_error(path_glob: PathGlob[_P], example: ReadablePath) -> Invalid:
    text = path_glob.text
    return Invalid(
        f"{quote(text)} is a name at any depth, such as {quote(example.display)}; nothing was done.",
        f"Write {quote('./' + text)} for those in the folder itself, {quote('**/' + text)} for all.",
    )


def _list_choices(path_glob: PathGlob[_P]) -> list[str]:
    """Return what braces name; without braces the glob itself.

    Raises:
        TooLarge: these are too many.
    """
    choices = list(islice(expand_braces(path_glob.glob), _MAX_CHOICES + 1))
    if len(choices) > _MAX_CHOICES:
        raise TooLarge(f"{quote(path_glob.text)} has more than {_MAX_CHOICES} choices.", "Name fewer at a time.")
    return [choice for choice in choices if choice.strip("/")]


def _missing_choices_error(name: str, choices: Sequence[str]) -> NotFound:
    names = ", ".join(map(quote, choices[:_MAX_NAMED_CHOICES]))
    if len(choices) > _MAX_NAMED_CHOICES:
        names += f" and {len(choices) - _MAX_NAMED_CHOICES:,} more"
    return NotFound(
        f"Nothing fits {names} of {name}; nothing was done.",
        "Leave that out. A git-ignored file is named by itself, a folder as `x/`.",
    )


class _Expansion(Generic[_P]):
    """What a glob means, folder by folder.

    Args:
        choosers: of each choice in its braces.
        blind_choosers: the same in any case, where they choose more.

    Attributes:
        is_hidden: whether hidden names are meant.
        paths: what it means.
        chosen_names: the same below the start, with what is left out.
        skipped: what is left out.
    """

    def __init__(
        self,
        path_glob: PathGlob[_P],
        choosers: Mapping[str, Chooser],
        blind_choosers: Mapping[str, Chooser],
        *,
        is_hidden: bool,
    ) -> None:
        self.is_hidden = is_hidden
        self.paths: list[_P] = []
        self.chosen_names: list[str] = []
        self.skipped = Skipped()
        self._start = path_glob.start
        self._choosers = choosers
        self._blind_choosers = blind_choosers
        self._folders = path_glob.glob.endswith("/")

    def chooses(self, path: str) -> bool:
        return any(fits(path) for fits in self._choosers.values())

    def find_unmatched_choices(self) -> list[str]:
        """Return the choices in braces that fit nothing that was found, which is not empty."""
        return [choice for choice, fits in self._choosers.items() if not any(map(fits, self.chosen_names))]

    def add(self, entries: FolderEntries) -> None:
        """Add what is meant in one folder."""
        folder = entries.folder.path
        prefix = "".join(part + "/" for part in entries.parts)
        for name, is_folder in entries.excluded:
            if is_folder == self._folders and self.chooses(prefix + name):
                self.chosen_names.append(prefix + name)
                self.skipped.add(_describe_exclusion(entries, name), entry_display_path(folder, name))
        names = entries.files
        if self._folders:
            names = entries.folders
        for name in names:
            if self.chooses(prefix + name):
                self.chosen_names.append(prefix + name)
                self._add_path(folder, name)
            elif any(fits(prefix + name) for fits in self._blind_choosers.values()):
                self.skipped.add("left out, in another case", entry_display_path(folder, name))

    def _add_path(self, folder: ReadablePath, name: str) -> None:
        try:
            self.paths.append(self._start.at(folder.root, (*folder.parts, name)))
        except Problem:
            self.skipped.add("protected", entry_display_path(folder, name))


def _describe_exclusion(entries: FolderEntries, name: str) -> str:
    """Return why an entry is left out."""
    folder = entries.folder.path
    if folder.policy.is_protected((*folder.parts, name)):
        return "protected"
    if name in entries.hidden:
        return "left out, as hidden"
    return "left out, as git-ignored"
