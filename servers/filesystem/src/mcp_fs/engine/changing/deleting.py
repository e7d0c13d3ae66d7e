"""Deletes entries: checks all of a call before it moves the first to the old contents or to the trash."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from mcp_batteries.errors import Conflict, Problem, TooLarge, Unavailable, quote
from mcp_batteries.limits import Stop
from mcp_batteries.progress import tell
from mcp_fs.engine.changing.atomic_write import confirm
from mcp_fs.engine.changing.copying import MOST_DEPTH, Census, steps_to
from mcp_fs.engine.changing.moving import refuse_root, relocate
from mcp_fs.engine.handles.locks import locked
from mcp_fs.engine.handles.path_opening import Folder, Spot, open_tree, problem, resolve, told
from mcp_fs.engine.handles.temp_files import remove_all
from mcp_fs.engine.journal.journal import Intent, Step
from mcp_fs.models import Moved, MovedAll, pluralize
from mcp_fs.paths import for_system
from mcp_fs.policy import Writable

__all__ = ["delete_all", "weight"]

_MOST_NAMED = 5
_ENTRY = 512  # bytes that a name and an inode take, about


def delete_all(
    places: Sequence[Writable], *, recursive: bool, trash: bool, stop: Stop, step: Step | None = None
) -> MovedAll:
    """Delete files, links (never what they point to) and folders; what lies in another of them goes with that.

    All are looked at before the first goes.

    Args:
        recursive: whether a folder that is not empty goes with all that is in it.
        trash: whether they go to the desktop's trash instead, from where a person can bring them back.

    Raises:
        Conflict: a folder is not empty.
        Refused: one is a served folder itself, or holds a protected folder, such as `.ssh`.
        TooLarge: a folder has more than 200 levels.
        Unavailable: some went, and the next could not; both are named.
    """
    with ExitStack() as stack:
        found: dict[tuple[str, ...], tuple[Writable, Spot[Writable], ExitStack]] = {}
        for place in places:
            held = stack.enter_context(ExitStack())
            spot = held.enter_context(resolve(place, follow=False))
            # A served folder may lie in another: what one file is, its whole path tells.
            if found.setdefault(tuple(steps_to(spot.place)), (place, spot, held))[2] is not held:
                held.close()
        outermost: list[tuple[Writable, Spot[Writable]]] = []
        for steps, (place, spot, held) in found.items():
            if any(steps[:depth] in found for depth in range(len(steps))):
                held.close()  # Windows removes no folder that is open.
            else:
                outermost.append((place, spot))
        stack.enter_context(locked([spot for _, spot in outermost], stop))
        doomed = [_look(place, spot, recursive, stop) for place, spot in outermost]
        intents = [Intent(one.spot.place, one.spot.folder, None, gives=one.size) for one in doomed]
        given = [None] * len(doomed) if trash or step is None else step.record(intents)
        done: list[Moved] = []
        for one, kept in zip(doomed, given, strict=True):
            try:
                done.append(_delete(one, kept, trash, stop, step, alone=len(doomed) == 1))
            except Problem as failure:
                if not done:
                    raise
                did, gone = done[0].did.rstrip(":"), ", ".join(quote(moved.path) for moved in done)
                raise Unavailable(
                    f"{len(done)} of {len(doomed)} were {did}: {gone}. The next was not: {failure.what}",
                    failure.fix,
                ) from failure
        for one in () if trash else {one.spot.folder.place: one for one in doomed}.values():
            confirm(one.spot.folder, one.place, "deleted")
    return MovedAll(done, _emptied([one.spot.place.parent for one in doomed if len(one.spot.place.parts) > 1]))


def _emptied(folders: Iterable[Writable]) -> list[str]:
    """Which of the folders have nothing in them any more, in words: nobody has to look what is left."""
    empty: list[str] = []
    for place in dict.fromkeys(folders):
        with (
            suppress(OSError, Problem),
            resolve(place, follow=False) as spot,
            spot.folder.folder(spot.name) as folder,
        ):
            if next(folder.scan(), None) is None:
                empty.append(place.display)
    names, more = ", ".join(empty[:_MOST_NAMED]), f" and {len(empty) - _MOST_NAMED} more"
    verb = "is" if len(empty) == 1 else "are"
    return [f"{names}{more * (len(empty) > _MOST_NAMED)} {verb} empty now"] if empty else []


def weight(spot: Spot[Writable], stop: Stop) -> int:
    """Bytes of what is at a spot, with all that is in it."""
    found = spot.folder.stat(spot.name)
    if not stat.S_ISDIR(found.st_mode):
        return found.st_size
    with open_tree(spot.folder, spot.name) as folder:
        doomed = _Doomed(stop)
        doomed.count(folder)
    return doomed.size


@dataclass(frozen=True, slots=True)
class _Going:
    """What is to be deleted: where it is, the bytes it takes, and what is said of it."""

    place: Writable
    spot: Spot[Writable]
    size: int
    notes: Sequence[str]


def _look(place: Writable, spot: Spot[Writable], recursive: bool, stop: Stop) -> _Going:
    refuse_root(spot.place)
    with told(place):
        found = spot.folder.stat(spot.name)
    if not stat.S_ISDIR(found.st_mode):
        return _Going(place, spot, found.st_size, ())
    with open_tree(spot.folder, spot.name) as folder:
        if not recursive and any(True for _ in folder.scan()):
            raise Conflict(
                f"{quote(place.display)} is a folder that is not empty.",
                "Set `recursive` to delete it with all that is in it.",
            )
        doomed = _Doomed(stop)
        doomed.count(folder)
    notes = [f"with {pluralize(doomed.seen, 'entry')}"] if doomed.seen else []
    if doomed.protected:
        notes.append(f"{doomed.protected:,} of them protected")
    return _Going(place, spot, doomed.size, notes)


class _Doomed(Census):
    """Counts what is to be deleted, whatever its number. A protected file protects nobody from deletion: packages
    bring certificates with them."""

    protected = 0
    size = 0

    def count(self, folder: Folder[Writable], depth: int = 0) -> int:
        for entry in folder.scan():
            self.stop.check()
            self.seen += 1
            tell(self.seen, None, f"{self.seen:,} entries")
            self.protected += folder.place.policy.protected((*folder.place.parts, entry.name))
            self.size += entry.stat(follow_symlinks=False).st_size + _ENTRY
            if entry.is_dir(follow_symlinks=False):
                if depth > MOST_DEPTH:
                    raise TooLarge(f"{quote(folder.place.display)} has more than {MOST_DEPTH} levels below it.")
                with folder.folder(entry.name) as below:
                    self.count(below, depth + 1)
        return self.seen


def _delete(one: _Going, kept: Writable | None, trash: bool, stop: Stop, step: Step | None, *, alone: bool) -> Moved:
    place, spot = one.place, one.spot
    if trash:
        with told(place):
            _to_trash(spot, place)
        return Moved("moved to the trash:", place.display, notes=one.notes)
    try:
        if step is None or kept is None or not _give(step, spot, place, kept, stop, alone=alone):
            remove_all(spot.folder, spot.name, stop)
    except OSError as error:
        raise problem(error, place, "part of it is gone" if one.notes else "") from error
    return Moved("deleted", place.display, notes=one.notes)


def _give(step: Step, spot: Spot[Writable], place: Writable, kept: Writable, stop: Stop, *, alone: bool) -> bool:
    """Move what is to be deleted to `kept`, where old contents are; False when it can't be and is still there."""
    try:
        with resolve(kept, follow=False) as end:
            relocate(spot, place, end, kept, overwrite=False, stop=stop)
    except (OSError, Problem) as failure:
        if not step.has_taken(kept):
            step.drop(failure) if alone else step.lacks(place, failure)
        return False
    return True


def _to_trash(spot: Spot[Writable], place: Writable) -> None:
    from send2trash import send2trash  # loads a desktop's libraries where there are any

    # The library takes nothing but a path. It is the one that was resolved, and it is looked at once more: who
    # swaps a folder on the way in this very moment can have another file trashed, from where it can be fetched.
    path = os.path.join(spot.folder.place.root.real, *spot.folder.place.parts, spot.name)
    if not os.path.samestat(os.lstat(for_system(path)), spot.folder.stat(spot.name)):
        raise Conflict(f"{quote(place.display)} is being moved by somebody else.", "Try again.")
    try:
        send2trash(path)
    except OSError as error:
        raise Unavailable(
            f"{quote(place.display)} can't be put into the trash here.", "Delete it without `trash`."
        ) from error
