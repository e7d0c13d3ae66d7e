"""Moves or copies several entries in one call, after checking all of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol, TypeVar

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, Problem, Unavailable, quote
from mcp_fs.engine.changing.atomic_write import NotDurable
from mcp_fs.engine.changing.copying import absolute_names, name_taken_error, read_status_if_exists
from mcp_fs.engine.changing.moving import move_entry, refuse_renaming_secret_folder
from mcp_fs.engine.handles.path_opening import resolve, translate_errors
from mcp_fs.engine.journal.journal import JournalEntry
from mcp_fs.engine.reading.line_range import LineRange
from mcp_fs.models import BatchResult, MoveResult
from mcp_fs.policy import ReadablePath, WritablePath

__all__ = ["PutOperation", "put_all"]

_P = TypeVar("_P", bound=ReadablePath | LineRange)
_P_contra = TypeVar("_P_contra", bound=ReadablePath | LineRange, contravariant=True)


class PutOperation(Protocol[_P_contra]):
    """`tree.move` or `copying.copy`."""

    def __call__(
        self,
        source: _P_contra,
        target: WritablePath,
        *,
        overwrite: bool,
        cancel: CancelToken,
        journal_entry: JournalEntry | None = None,
    ) -> MoveResult: ...


def put_all(
    put: PutOperation[_P],
    pairs: Sequence[tuple[_P, WritablePath]],
    *,
    overwrite: bool,
    cancel: CancelToken,
    journal_entry: JournalEntry | None = None,
) -> BatchResult:
    """Move or copy each source to its target, one after another.

    Raises:
        Invalid: an entry is named twice, or with a folder that it is in.
        Problem: as `put`; of several, what can be told before is told before the first goes.
        Unavailable: some went, and the next could not; both are named.
    """
    if len(pairs) == 1:
        ((source, target),) = pairs
        return BatchResult([put(source, target, overwrite=overwrite, cancel=cancel, journal_entry=journal_entry)])
    verb = "moved" if put is move_entry else "copied"
    if put is move_entry:
        for source, target in pairs:
            if not isinstance(source, LineRange):
                refuse_renaming_secret_folder(source, target)
    replaced_bytes = _check_pairs(pairs, overwrite, cancel)
    if journal_entry is not None:
        journal_entry.reserve_bytes(replaced_bytes)
    done_labels: list[str] = []
    moved: list[MoveResult] = []
    not_durable: NotDurable | None = None
    for source, target in pairs:
        if journal_entry is not None:
            journal_entry.start_part(quote(target.display))
        try:
            moved.append(put(source, target, overwrite=overwrite, cancel=cancel, journal_entry=journal_entry))
        except NotDurable as failure:
            not_durable = not_durable or failure
        except Problem as failure:
            if not done_labels:
                raise
            doubt = f" {not_durable.failure}" if not_durable else ""
            raise Unavailable(
                f"{len(done_labels)} of {len(pairs)} were {verb}: {', '.join(done_labels)}.{doubt} "
                f"The next was not: {failure.failure}",
                failure.fix,
            ) from failure
        done_labels.append(quote(source.display))
    if not_durable:
        raise Unavailable(f"All {len(pairs)} were {verb}. {not_durable.failure}", not_durable.fix) from not_durable
    return BatchResult(moved)


def _check_pairs(
    pairs: Sequence[tuple[ReadablePath | LineRange, WritablePath]], overwrite: bool, cancel: CancelToken
) -> int:
    """Return the bytes of what is replaced, when nothing is known that would stop any of them.

    Raises:
        NotFound: a source, lines of one, or the folder of a target, is not there.
    """
    size = 0
    paths_by_names: dict[tuple[str, ...], ReadablePath] = {}
    read_paths_by_names: dict[tuple[str, ...], ReadablePath] = {}
    for source, target in pairs:
        cancel.check()
        ends: list[tuple[ReadablePath, ReadablePath]] = []
        if isinstance(source, LineRange):
            with source.open_lines(cancel) as lines, resolve(source.place) as start:
                source_status = lines.lines.status
            read_paths_by_names[tuple(absolute_names(start.path))] = source.place
        else:
            with resolve(source, follow=False) as start, translate_errors(source):
                source_status = start.folder.stat(start.name)
            ends = [(source, start.path)]
        with resolve(target, follow=False) as end:
            target_status = read_status_if_exists(end)
        for path, real in (*ends, (target, end.path)):
            if paths_by_names.setdefault(tuple(absolute_names(real)), path) is not path:
                raise Invalid(f"{quote(path.display)} is named twice; nothing was done.", _SEPARATE_CALLS_FIX)
        if target_status is not None:
            if not overwrite and not os.path.samestat(source_status, target_status):
                raise name_taken_error(target, target_status, "nothing was done", overwrite=False)
            size += target_status.st_size
    if twice := read_paths_by_names.keys() & paths_by_names.keys():
        raise Invalid(
            f"{quote(read_paths_by_names[min(twice)].display)} is named twice; nothing was done.", _SEPARATE_CALLS_FIX
        )
    for names, path in paths_by_names.items():
        for depth in range(len(names)):
            if (parent := paths_by_names.get(names[:depth])) is not None:
                raise Invalid(
                    f"{quote(path.display)} lies in {quote(parent.display)}; nothing was done.", _SEPARATE_CALLS_FIX
                )
    return size


_SEPARATE_CALLS_FIX = "Use one call after the other."
