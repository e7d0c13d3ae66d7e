"""Moves or copies several entries in one call, after checking all of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeVar

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, Problem, Unavailable, quote
from mcp_fs.engine.changing.entries.all_or_none import all_or_none, describe_next_failure
from mcp_fs.engine.changing.entries.copying import copy_entry
from mcp_fs.engine.changing.entries.destinations import Destinations
from mcp_fs.engine.changing.entries.entry_checks import (
    absolute_names,
    name_taken_error,
    read_status_if_exists,
    refuse_renaming_secret_folder,
)
from mcp_fs.engine.changing.entries.moving import move_entry, rename_all
from mcp_fs.engine.changing.entries.remaining import describe_contents, describe_emptied, describe_remaining
from mcp_fs.engine.changing.folders import with_missing_folders
from mcp_fs.engine.handles.named_entries import CopySource, Packing
from mcp_fs.engine.handles.path_opening import exists, read_status, resolve, translate_errors
from mcp_fs.engine.journal.journal import JournalEntry
from mcp_fs.engine.journal.operations import NotDurable
from mcp_fs.engine.reading.line_range import open_lines
from mcp_fs.models import BatchResult, MoveResult
from mcp_fs.policy import ReadablePath, WritablePath
from mcp_fs.policy.path_arguments import ArchivePart, LineRange

__all__ = ["copy_all", "copy_pairs", "move_all", "move_pairs"]

_SEPARATE_CALLS_FIX = "Use one call after the other."

_P = TypeVar("_P", bound=CopySource)
_P_contra = TypeVar("_P_contra", bound=CopySource, contravariant=True)


class PutOperation(Protocol[_P_contra]):
    """`moving.move_entry` or `copying.copy_entry`."""

    def __call__(
        self,
        source: _P_contra,
        target: WritablePath,
        *,
        overwrite: bool,
        cancel: CancelToken,
        journal_entry: JournalEntry | None = None,
    ) -> MoveResult: ...


def copy_all(
    destinations: Destinations[CopySource],
    *,
    overwrite: bool,
    cancel: CancelToken,
    journal_entry: JournalEntry | None = None,
) -> BatchResult:
    """Copy files, folders, links and lines of files to their targets, with the folders to these."""
    put = partial(copy_pairs, destinations.pairs, overwrite=overwrite)
    return _with_folders(put, destinations, cancel, journal_entry)


def move_all(
    destinations: Destinations[WritablePath],
    *,
    overwrite: bool,
    cancel: CancelToken,
    journal_entry: JournalEntry | None = None,
) -> BatchResult:
    """Rename files, folders and links, with the folders to their targets."""
    put = partial(move_pairs, destinations.pairs, overwrite=overwrite)
    result = _with_folders(put, destinations, cancel, journal_entry)
    folders = [source.parent for source, _ in destinations.pairs if len(source.parts) > 1]
    notes = [*result.notes, *describe_emptied(folders)]
    if destinations.has_globs:
        notes += describe_remaining(folders)
    return replace(result, notes=notes)


class _PutPairs(Protocol):
    """`copy_pairs` or `move_pairs` of some pairs."""

    def __call__(self, *, cancel: CancelToken, journal_entry: JournalEntry | None = None) -> BatchResult: ...


def _with_folders(
    put: _PutPairs, destinations: Destinations[_P], cancel: CancelToken, journal_entry: JournalEntry | None
) -> BatchResult:
    """Make the folders of the targets, put the sources there, and tell what their globs left out."""
    targets = [target for _, target in destinations.pairs]
    # What is in a new one is told by what went there.
    old_folders = [folder for folder in dict.fromkeys(target.parent for target in targets) if exists(folder)]
    result = with_missing_folders(targets, put, cancel=cancel, journal_entry=journal_entry)
    notes = [*result.notes, *destinations.notes]
    if destinations.has_globs:
        notes += describe_contents(old_folders)
    return replace(result, notes=notes, names_all=not destinations.has_globs)


def copy_pairs(
    pairs: Sequence[tuple[CopySource, WritablePath]],
    *,
    overwrite: bool,
    cancel: CancelToken,
    journal_entry: JournalEntry | None = None,
) -> BatchResult:
    """Copy each source to its target, one after another.

    Raises:
        Invalid: an entry is named twice, or with a folder that it is in.
        Problem: as `copy_entry`; of several, what can be told before is told before the first is copied.
        Unavailable: some were copied, and the next could not; both are named.
    """
    replaced_bytes = 0
    if len(pairs) > 1:
        with all_or_none(len(pairs), "done"):
            replaced_bytes = _check_pairs(pairs, overwrite, cancel)
    return _put_each(copy_entry, "copied", pairs, replaced_bytes, overwrite, cancel, journal_entry)


def move_pairs(
    pairs: Sequence[tuple[WritablePath, WritablePath]],
    *,
    overwrite: bool,
    cancel: CancelToken,
    journal_entry: JournalEntry | None = None,
) -> BatchResult:
    """Move each source to its target, one after another; to free names of one disk all or none.

    Raises:
        Invalid: an entry is named twice, or with a folder that it is in.
        Problem: as `move_entry`; of several, what can be told before is told before the first goes.
        Unavailable: some went, and the next could not; both are named.
    """
    replaced_bytes = 0
    if len(pairs) > 1:
        with all_or_none(len(pairs), "done"):
            for source, target in pairs:
                refuse_renaming_secret_folder(source, target)
            replaced_bytes = _check_pairs(pairs, overwrite, cancel)
        results = rename_all(pairs, cancel=cancel, journal_entry=journal_entry)
        if results is not None:
            return BatchResult(results)
    return _put_each(move_entry, "moved", pairs, replaced_bytes, overwrite, cancel, journal_entry)


def _put_each(
    put: PutOperation[_P],
    verb: str,
    pairs: Sequence[tuple[_P, WritablePath]],
    replaced_bytes: int,
    overwrite: bool,
    cancel: CancelToken,
    journal_entry: JournalEntry | None,
) -> BatchResult:
    """Move or copy pairs that were checked, one after another; a single one checks itself."""
    if len(pairs) == 1:
        ((source, target),) = pairs
        return BatchResult([put(source, target, overwrite=overwrite, cancel=cancel, journal_entry=journal_entry)])
    if journal_entry is not None:
        journal_entry.reserve_bytes(replaced_bytes)
    progress = _Progress(verb, len(pairs))
    for source, target in pairs:
        if journal_entry is not None:
            journal_entry.start_part(quote(target.display))
        try:
            result = put(source, target, overwrite=overwrite, cancel=cancel, journal_entry=journal_entry)
        except NotDurable as failure:
            progress.add(source.display, failure)
        except Problem as failure:
            if not progress.labels:
                raise
            raise progress.stopped_error(failure) from failure
        else:
            progress.results.append(result)
            progress.add(source.display)
    if progress.not_durable:
        raise progress.not_durable_error(progress.not_durable) from progress.not_durable
    return BatchResult(progress.results)


@dataclass(slots=True)
class _Progress:
    """What has been put so far.

    Attributes:
        verb: `moved` or `copied`.
        count: of all that are to be put.
        labels: the sources that were put, quoted.
        not_durable: what the disk said of the first that it did not confirm.
    """

    verb: str
    count: int
    labels: list[str] = field(default_factory=list[str])
    results: list[MoveResult] = field(default_factory=list[MoveResult])
    not_durable: NotDurable | None = None

    def add(self, source: str, not_durable: NotDurable | None = None) -> None:
        self.labels.append(quote(source))
        self.not_durable = self.not_durable or not_durable

    def stopped_error(self, failure: Problem) -> Unavailable:
        doubt = f" {self.not_durable.failure}" if self.not_durable else ""
        done = f"{len(self.labels)} of {self.count} were {self.verb}: {', '.join(self.labels)}.{doubt}"
        return Unavailable(describe_next_failure(done, failure), failure.fix)

    def not_durable_error(self, failure: NotDurable) -> Unavailable:
        return Unavailable(f"All {self.count} were {self.verb}. {failure.failure}", failure.fix)


def _check_pairs(pairs: Sequence[tuple[CopySource, WritablePath]], overwrite: bool, cancel: CancelToken) -> int:
    """Return the bytes of what is replaced, when nothing is known that would stop any of them.

    Raises:
        NotFound: a source, lines of one, or the folder of a target, is not there.
    """
    replaced_bytes = 0
    names = _PairNames()
    for source, target in pairs:
        cancel.check()
        source_status = _check_source(source, names, cancel)
        target_status = _check_target(target, names)
        if target_status is None:
            continue
        if not overwrite and not os.path.samestat(source_status, target_status):
            raise name_taken_error(target, target_status, "nothing was done", overwrite=False)
        replaced_bytes += target_status.st_size
    names.refuse_read_and_changed()
    names.refuse_nested()
    return replaced_bytes


def _check_source(source: CopySource, names: _PairNames, cancel: CancelToken) -> os.stat_result:
    """Return the status of a source that is there, and add it to the names."""
    if isinstance(source, Packing):
        for entry in source.entries:
            names.add_read(entry.path, entry.path)
        return read_status(source.entries[0].path)
    if isinstance(source, LineRange):
        with open_lines(source, cancel) as lines, resolve(source.place) as resolved:
            names.add_read(resolved.path, source.place)
            return lines.lines.status
    if isinstance(source, ArchivePart):
        with resolve(source.place) as resolved, translate_errors(source.place):
            names.add_read(resolved.path, source.place)
            return resolved.folder.stat(resolved.name)
    with resolve(source, follow=False) as resolved, translate_errors(source):
        status = resolved.folder.stat(resolved.name)
    names.add_changed(resolved.path, source)
    return status


def _check_target(target: WritablePath, names: _PairNames) -> os.stat_result | None:
    """Return the status of what a target replaces, None for nothing, and add it to the names."""
    with resolve(target, follow=False) as resolved:
        status = read_status_if_exists(resolved)
    names.add_changed(resolved.path, target)
    return status


class _PairNames:
    """The entries that pairs name, by their absolute names: no two of them may be the same or lie in each other.

    What is only read, as lines of a file, may be named by several sources.
    """

    def __init__(self) -> None:
        self._changed_paths: dict[tuple[str, ...], ReadablePath] = {}
        self._read_paths: dict[tuple[str, ...], ReadablePath] = {}

    def add_read(self, real_path: ReadablePath, path: ReadablePath) -> None:
        self._read_paths[tuple(absolute_names(real_path))] = path

    def add_changed(self, real_path: ReadablePath, path: ReadablePath) -> None:
        """Add a target, or a source that is copied or moved as an entry of a folder.

        Raises:
            Invalid: another path names the same entry.
        """
        if self._changed_paths.setdefault(tuple(absolute_names(real_path)), path) is not path:
            raise _named_twice_error(path)

    def refuse_read_and_changed(self) -> None:
        """Raise Invalid if something is read that a pair changes."""
        repeated_names = self._read_paths.keys() & self._changed_paths.keys()
        if repeated_names:
            raise _named_twice_error(self._read_paths[min(repeated_names)])

    def refuse_nested(self) -> None:
        """Raise Invalid if an entry lies in another."""
        for names, path in self._changed_paths.items():
            for depth in range(len(names)):
                parent = self._changed_paths.get(names[:depth])
                if parent is not None:
                    raise Invalid(
                        f"{quote(path.display)} lies in {quote(parent.display)}; nothing was done.",
                        _SEPARATE_CALLS_FIX,
                    )


def _named_twice_error(path: ReadablePath) -> Invalid:
    return Invalid(f"{quote(path.display)} is named twice; nothing was done.", _SEPARATE_CALLS_FIX)
