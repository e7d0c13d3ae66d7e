"""Finds the target of each source of a copy or a move, as cp(1) and mv(1) read them: a slash at the end is a folder."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, Problem, TooLarge, quote
from mcp_fs.engine.document_kinds import is_archive
from mcp_fs.engine.documents.source import is_in_archive
from mcp_fs.engine.handles.named_entries import CopySource, PackedEntry, Packing, accept_target, find_source
from mcp_fs.engine.handles.path_opening import exists, read_status
from mcp_fs.engine.listing.expand_glob import ExpandedGlob, expand_glob
from mcp_fs.engine.listing.walk import Skipped, display_path
from mcp_fs.models import pluralize
from mcp_fs.policy import ReadablePath, WritablePath
from mcp_fs.policy.path_arguments import (
    ArchivePart,
    CopyPair,
    FileName,
    LineRange,
    MovePair,
    PackTarget,
    PathGlob,
    TargetPath,
)

__all__ = ["DestinationRules", "Destinations", "find_copy_destinations", "find_move_destinations"]

_S = TypeVar("_S", bound=CopySource)
_P = TypeVar("_P", bound=ReadablePath)

# Sources whose targets exist that the answer names.
_MAX_EXISTING_NAMED = 50


@dataclass(frozen=True, slots=True)
class DestinationRules:
    """How the sources and targets of a call are read.

    Attributes:
        limit: of sources.
        skip_existing: whether a source whose target exists is left out, instead of failing.
        ignore_case: whether globs mean names in any case.
    """

    limit: int
    skip_existing: bool = False
    ignore_case: bool = False


@dataclass
class Destinations(Generic[_S]):
    """Each source with the path that it is put to.

    Attributes:
        notes: what is left out.
        skipped: what globs leave out.
        has_globs: whether the caller has not named each source.
    """

    pairs: list[tuple[_S, WritablePath]] = field(default_factory=list[tuple[_S, WritablePath]])
    notes: list[str] = field(default_factory=list[str])
    skipped: Skipped = field(default_factory=Skipped)
    has_globs: bool = False

    def add_glob(self, sources: Sequence[_S], folder: WritablePath) -> None:
        """Put all that a glob means into `folder`, without what is in it already, and without the folder itself."""
        already_there = 0
        for source in sources:
            target = folder / _name_of(source)
            if isinstance(source, ReadablePath) and _names(source) in (_names(target), _names(folder)):
                already_there += 1
            else:
                self.pairs.append((source, target))
        if already_there:
            self.notes.append(f"{pluralize(already_there, 'entry')} of {folder.display} already there")

    def expand(self, glob: PathGlob[_P], rules: DestinationRules, cancel: CancelToken) -> Sequence[_P]:
        """Return what a glob means; what it leaves out is told.

        Raises:
            Invalid: it goes into an archive.
            Problem: as `expand_glob`.
        """
        if not isinstance(glob.start, WritablePath) and is_in_archive(glob.start):
            raise Invalid(
                f"{quote(glob.text)} goes into an archive, where only names are taken.",
                "Name its folder, as `a.zip!/b/`, or its files one by one; `find_files` lists them.",
            )
        self.has_globs = True
        expanded: ExpandedGlob[_P] = expand_glob(
            glob, rules.limit, cancel, for_change=True, ignore_case=rules.ignore_case
        )
        self.skipped.merge(expanded.skipped)
        return expanded.paths

    def finish(self, rules: DestinationRules) -> None:
        """Leave out what has its target already, if it may be, tell what is left out, and check the rest.

        Raises:
            Problem: as `_check`.
        """
        if rules.skip_existing:
            self._skip_existing()
        self.skipped.drop({display_path(source) for source, _ in self.pairs if isinstance(source, ReadablePath)})
        self.notes += [*self.skipped.notes(), *self.skipped.describe_links()]
        self._check(rules)

    def _skip_existing(self) -> None:
        existing: list[str] = []
        missing: list[tuple[_S, WritablePath]] = []
        for source, target in self.pairs:
            if exists(target, follow=False):
                existing.append(target.display)
            else:
                missing.append((source, target))
        self.pairs = missing
        if existing:
            names = ", ".join(existing[:_MAX_EXISTING_NAMED])
            more = ""
            if len(existing) > _MAX_EXISTING_NAMED:
                more = f" and {len(existing) - _MAX_EXISTING_NAMED:,} more"
            self.notes.append(f"skipped {len(existing):,} that exist: {names}{more}")

    def _check(self, rules: DestinationRules) -> None:
        """Check that there are some, unless all may exist, not too many, and no two for one name.

        Raises:
            Invalid: there are not, or two.
            TooLarge: there are more than the limit.
        """
        if len(self.pairs) > rules.limit:
            raise TooLarge(f"These are {len(self.pairs):,} sources, more than {rules.limit:,}.", "Do a part at a time.")
        if not self.pairs and not rules.skip_existing:
            raise Invalid(f"There is nothing to do: {'; '.join(self.notes)}.")
        sources: dict[tuple[str, ...], CopySource] = {}
        for source, target in self.pairs:
            other = sources.setdefault(_names(target), source)
            if other is not source:
                raise Invalid(
                    f"{quote(other.display)} and {quote(source.display)} would both be {quote(target.display)}; "
                    "nothing was done.",
                    "Give each a target of its own.",
                )


def find_copy_destinations(
    pairs: Sequence[CopyPair], rules: DestinationRules, cancel: CancelToken
) -> Destinations[CopySource]:
    """Return what is copied, files, folders, links and lines of files, each with its target.

    Raises:
        Problem: one can't be meant.
    """
    destinations = Destinations[CopySource]()
    packed_entries: dict[WritablePath, list[PackedEntry]] = {}
    for pair in pairs:
        if pair.packing is not None and not exists(pair.packing.folder, follow=False):
            entries = packed_entries.setdefault(pair.packing.archive, [])
            entries += _find_packed_entries(pair, pair.packing, destinations, rules, cancel)
        elif isinstance(pair.source, FileName):
            source = find_source(pair.source)
            target = _find_target(source, pair.target, pair.source_ends_in_slash)
            _refuse_folder_as_archive(source, target)
            destinations.pairs.append((source, target))
        else:
            folder = _accept_folder(pair.target, pair.source.text)
            destinations.add_glob(destinations.expand(pair.source, rules, cancel), folder)
    for archive, entries in packed_entries.items():
        _check_packed_names(entries, archive)
        destinations.pairs.append((Packing(entries), archive))
    destinations.finish(rules)
    return destinations


def _refuse_folder_as_archive(source: CopySource, target: WritablePath) -> None:
    """Check that no folder gets the name of an archive by a copy that was meant to make one.

    Raises:
        Invalid: it would.
    """
    if not is_archive(target.name) or not isinstance(source, ReadablePath):
        return
    if _is_folder(source) and not is_archive(source.name):
        stem = target.display.rpartition(".")[0].removesuffix(".tar")
        raise Invalid(
            f"{quote(source.display)} is a folder, and its copy {quote(target.display)} would be no archive.",
            f"Write the target as {quote(stem + '.zip!/')} to pack it; other archives are not made.",
        )


def _find_packed_entries(
    pair: CopyPair,
    target: PackTarget,
    destinations: Destinations[CopySource],
    rules: DestinationRules,
    cancel: CancelToken,
) -> list[PackedEntry]:
    """Return what one source of a copy, or a glob, puts into an archive."""
    if isinstance(pair.source, PathGlob):
        paths = destinations.expand(pair.source, rules, cancel)
        other_paths = [path for path in paths if _names(path) != _names(target.archive)]
        if len(other_paths) < len(paths):
            destinations.notes.append(f"without {target.archive.display} itself")
        return [PackedEntry(path, (*target.names, path.name)) for path in other_paths]
    source = find_source(pair.source)
    if isinstance(source, LineRange | ArchivePart | Packing):
        raise Invalid(
            f"{quote(source.display)} can't go into an archive; nothing was packed.",
            "Copy it to a file, then pack that.",
        )
    if _names(source) == _names(target.archive):
        raise Invalid(
            f"{quote(source.display)} can't be packed into itself; nothing was packed.", "Choose another archive."
        )
    names = target.names
    if target.is_folder and not (pair.source_ends_in_slash and _is_folder(source)):
        names = (*names, source.name)
    return [PackedEntry(source, names)]


def _check_packed_names(entries: Sequence[PackedEntry], archive: WritablePath) -> None:
    """Check that there are some, and no two for one name.

    Raises:
        Invalid: there are not, or two.
    """
    if not entries:
        raise Invalid(f"There is nothing to pack into {quote(archive.display)}.", "Name files or folders beside it.")
    names: dict[tuple[str, ...], PackedEntry] = {}
    for entry in entries:
        other = names.setdefault(entry.names, entry)
        if other is not entry and entry.names:
            raise Invalid(
                f"{quote(other.path.display)} and {quote(entry.path.display)} would both be "
                f"{quote('/'.join(entry.names))} in {quote(archive.display)}; nothing was packed.",
                f"Give each a target of its own, such as {quote(archive.display + '!/b/')}.",
            )


def find_move_destinations(
    pairs: Sequence[MovePair], rules: DestinationRules, cancel: CancelToken
) -> Destinations[WritablePath]:
    """Return what is moved, each with its target; else as `find_copy_destinations`."""
    destinations = Destinations[WritablePath]()
    for pair in pairs:
        if isinstance(pair.source, PathGlob):
            folder = _accept_folder(pair.target, pair.source.text)
            destinations.add_glob(destinations.expand(pair.source, rules, cancel), folder)
        else:
            target = _find_target(pair.source, pair.target, pair.source_ends_in_slash)
            destinations.pairs.append((pair.source, target))
    destinations.finish(rules)
    return destinations


def _accept_folder(target: TargetPath, glob: str) -> WritablePath:
    """Return the folder that all goes to that `glob` means."""
    folder = accept_target(target)
    if not target.ends_in_slash and not _is_folder(folder):
        raise Invalid(
            f"{quote(glob)} can mean several, and {quote(folder.display)} is no folder; nothing was done.",
            f"Write {quote(folder.display + '/')} for a folder, which is made if it is missing.",
        )
    return folder


def _find_target(source: CopySource, target: TargetPath, source_ends_in_slash: bool) -> WritablePath:
    """Return the path that one source gets: in the target if that ends in a slash, else the target itself.

    As in a shell, a folder `old/` that goes to `new/` gets this name, unless it is there.
    """
    path = accept_target(target)
    if not target.ends_in_slash:
        return path
    if source_ends_in_slash and not exists(path, follow=False):
        return path
    return path / _name_of(source)


def _name_of(source: CopySource) -> str:
    if isinstance(source, LineRange):
        return source.place.name
    assert not isinstance(source, Packing)
    return source.name


def _names(path: ReadablePath) -> tuple[str, ...]:
    return (path.root.real_path, *path.parts)


def _is_folder(path: ReadablePath) -> bool:
    try:
        return stat.S_ISDIR(read_status(path).st_mode)
    except Problem:
        return False
