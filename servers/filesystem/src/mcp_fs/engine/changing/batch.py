"""Moves or copies several entries in one call, after checking all of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol, TypeVar

from mcp_batteries.errors import Invalid, Problem, Unavailable, quote
from mcp_batteries.limits import Stop
from mcp_fs.engine.changing.atomic_write import Unconfirmed
from mcp_fs.engine.changing.copying import status_at, steps_to, taken
from mcp_fs.engine.changing.moving import move, refuse_move
from mcp_fs.engine.handles.path_opening import resolve, told
from mcp_fs.engine.journal.journal import Step
from mcp_fs.engine.reading.line_range import LineRange
from mcp_fs.models import Moved, MovedAll
from mcp_fs.policy import Readable, Writable

__all__ = ["Put", "put_all"]

_P = TypeVar("_P", bound=Readable | LineRange)
_P_contra = TypeVar("_P_contra", bound=Readable | LineRange, contravariant=True)


class Put(Protocol[_P_contra]):
    """`tree.move` or `copying.copy`."""

    def __call__(
        self, source: _P_contra, target: Writable, *, overwrite: bool, stop: Stop, step: Step | None = None
    ) -> Moved: ...


def put_all(
    put: Put[_P], pairs: Sequence[tuple[_P, Writable]], *, overwrite: bool, stop: Stop, step: Step | None = None
) -> MovedAll:
    """Move or copy each source to its target, one after another.

    Raises:
        Invalid: an entry is named twice, or with a folder that it is in.
        Problem: as `put`; of several, what can be told before is told before the first goes.
        Unavailable: some went, and the next could not; both are named.
    """
    if len(pairs) == 1:
        ((source, target),) = pairs
        return MovedAll([put(source, target, overwrite=overwrite, stop=stop, step=step)])
    did = "moved" if put is move else "copied"
    if put is move:
        for source, target in pairs:
            if not isinstance(source, LineRange):
                refuse_move(source, target)
    size = _look(pairs, overwrite, stop)
    if step is not None:
        step.reserve(size)
    done: list[str] = []
    moved: list[Moved] = []
    unconfirmed: Unconfirmed | None = None
    for source, target in pairs:
        if step is not None:
            step.part(quote(target.display))
        try:
            moved.append(put(source, target, overwrite=overwrite, stop=stop, step=step))
        except Unconfirmed as failure:
            unconfirmed = unconfirmed or failure
        except Problem as failure:
            if not done:
                raise
            doubt = f" {unconfirmed.what}" if unconfirmed else ""
            raise Unavailable(
                f"{len(done)} of {len(pairs)} were {did}: {', '.join(done)}.{doubt} The next was not: {failure.what}",
                failure.fix,
            ) from failure
        done.append(quote(source.display))
    if unconfirmed:
        raise Unavailable(f"All {len(pairs)} were {did}. {unconfirmed.what}", unconfirmed.fix) from unconfirmed
    return MovedAll(moved)


def _look(pairs: Sequence[tuple[Readable | LineRange, Writable]], overwrite: bool, stop: Stop) -> int:
    """The bytes of what is replaced, when nothing is known that would stop any of them.

    Raises:
        NotFound: a source, lines of one, or the folder of a target, is not there.
    """
    size = 0
    named: dict[tuple[str, ...], Readable] = {}
    read: dict[tuple[str, ...], Readable] = {}
    for source, target in pairs:
        stop.check()
        ends: list[tuple[Readable, Readable]] = []
        if isinstance(source, LineRange):
            with source.open_lines(stop) as lines, resolve(source.place) as start:
                found = lines.lines.status
            read[tuple(steps_to(start.place))] = source.place
        else:
            with resolve(source, follow=False) as start, told(source):
                found = start.folder.stat(start.name)
            ends = [(source, start.place)]
        with resolve(target, follow=False) as end:
            there = status_at(end)
        for place, real in (*ends, (target, end.place)):
            if named.setdefault(tuple(steps_to(real)), place) is not place:
                raise Invalid(f"{quote(place.display)} is named twice; nothing was done.", _ONE_BY_ONE)
        if there is not None:
            if not overwrite and not os.path.samestat(found, there):
                raise taken(target, there, "nothing was done", overwrite=False)
            size += there.st_size
    if twice := read.keys() & named.keys():
        raise Invalid(f"{quote(read[min(twice)].display)} is named twice; nothing was done.", _ONE_BY_ONE)
    for steps, place in named.items():
        for depth in range(len(steps)):
            if (above := named.get(steps[:depth])) is not None:
                raise Invalid(f"{quote(place.display)} lies in {quote(above.display)}; nothing was done.", _ONE_BY_ONE)
    return size


_ONE_BY_ONE = "Use one call after the other."
