"""Creating, moving and deleting entries: by handle at both ends, links as the links they are.

Nothing is ever replaced by accident: whether a name is free is decided by the kernel in the same step that takes
it, so of two moves to one name one fails.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from mcp_batteries.errors import Conflict, Invalid, Problem, Refused, TooLarge, Unavailable, quote, reason
from mcp_batteries.limits import Stop
from mcp_batteries.progress import tell
from mcp_fs.engine.files.belongings import Belongings
from mcp_fs.engine.files.copying import MOST_DEPTH, Census, copy_file, copy_other, status_at, steps_to, taken
from mcp_fs.engine.files.handles import Folder, Spot, is_held_open, problem, resolve, told
from mcp_fs.engine.files.locks import locked
from mcp_fs.engine.files.temp_files import remove_all, temporary_name
from mcp_fs.engine.files.write import (
    Unconfirmed,
    confirm,
    refuse_read_only,
    writing_to,
)
from mcp_fs.engine.names import folded
from mcp_fs.engine.undo.states import MADE, state_of
from mcp_fs.engine.undo.step import Arrival, Intent, Step
from mcp_fs.models import Moved, MovedAll, counted
from mcp_fs.paths import for_system
from mcp_fs.policy import Readable, Writable

__all__ = ["create_folder", "delete", "delete_all", "folders_to", "move", "refuse_move", "relocate", "weight"]

_OTHER = "Choose another path."
_MOST_NAMED = 5
_ENTRY = 512  # bytes that a name and an inode take, about


def create_folder(place: Writable, stop: Stop, step: Step | None = None) -> Moved:
    """Create the folder at `place` and those above it that are missing; one that exists is fine.

    Raises:
        Conflict: something else has the name.
    """
    with folders_to(place, stop, step) as (there, made):
        return Moved("created" if made else "already there:", there.display)


@contextmanager
def folders_to(place: Writable, stop: Stop, step: Step | None = None) -> Generator[tuple[Writable, Sequence[Writable]]]:
    """The folder at `place`, and which of it and those above it are new; these go again after a failure.

    What is recorded inside is one step with them.
    """
    made: list[Writable] = []
    there = place
    try:
        for depth in range(1, len(place.parts) + 1):
            stop.check()
            level = place.at(place.root, place.parts[:depth])
            with writing_to(level) as spot:
                there = spot.place  # an existing name may be spelled another way
                if step is not None and not made and state_of(spot.folder, spot.name) is None:
                    rest = [place.parts[depth:end] for end in range(depth, len(place.parts) + 1)]
                    below = [there.at(there.root, (*there.parts, *parts)) for parts in rest]
                    step.begin([Intent(new, None, MADE) for new in below])
                try:
                    spot.folder.make_folder(spot.name)
                except FileExistsError:
                    if not stat.S_ISDIR(spot.folder.stat(spot.name).st_mode):
                        raise Conflict(f"{quote(level.display)} exists and is not a folder.", _OTHER) from None
                else:
                    made.append(there)
                    try:
                        spot.folder.sync()
                    except OSError as error:
                        raise problem(error, level, "it was not created") from error
        yield there, made
    except BaseException:
        for new in reversed(made):
            with suppress(OSError, Problem), resolve(new, follow=False) as spot:
                spot.folder.remove_folder(spot.name)
        raise


def move(source: Writable, target: Writable, *, overwrite: bool, stop: Stop, step: Step | None = None) -> Moved:
    """Rename a file, a folder or a link, also to another served folder or file system.

    Args:
        overwrite: whether a file may be replaced; a folder only when it is empty.

    Raises:
        Conflict: the target exists.
        Refused: the source is a served folder itself, or a folder whose name is what protects secrets in it.
    """
    refuse_move(source, target)
    with resolve(source, follow=False) as start, writing_to(target, follow=False) as end, locked([start, end], stop):
        _refuse_root(start.place)
        with told(source):
            found = start.folder.stat(start.name)
        notes: list[str] = []
        try:
            if _is_same(start, end):
                start.folder.rename(start.name, end.folder, target.name)
            else:
                _refuse_root(end.place)
                if not overwrite and (there := status_at(end)) is not None:
                    raise taken(target, there, "nothing was moved", overwrite=False)
                if overwrite:
                    refuse_read_only(end, target)
                notes = relocate(start, source, end, target, overwrite, stop, Arrival(end, step, start))
        except OSError as error:
            raise _move_problem(error, source, target, found, end, overwrite) from error
        for folder in (end.folder, start.folder):
            confirm(folder, target, "moved to")
    return Moved("moved", source.display, target.display, notes)


def refuse_move(source: Readable, target: Writable) -> None:
    """Return when the name of `source` protects nothing, or stays.

    Raises:
        Refused: secrets in it are known by it.
    """
    if source.policy.shelters(source.parts) and source.name != target.name:
        raise Refused(
            f"{quote(source.display)} may hold credentials, which are known by the folder's name.",
            "Only the operator can rename it.",
        )


def relocate(
    start: Spot[Writable],
    source: Writable,
    end: Spot[Writable],
    target: Writable,
    overwrite: bool,
    stop: Stop,
    arrival: Arrival | None = None,
) -> list[str]:
    """Rename, or between file systems copy and delete, what is at `start`; what could not be kept, in words.

    Raises:
        OSError: as rename(2).
    """
    if _are_apart(start, end):
        return _move_across(start, source, end, target, overwrite, stop, arrival)
    try:
        if arrival is not None:
            arrival.expect(start.folder, start.name)
        if overwrite:
            start.folder.rename(start.name, end.folder, end.name)
        else:
            start.folder.rename_new(start.name, end.folder, end.name)
    except OSError as error:
        if error.errno != errno.EXDEV:  # what is mounted twice is one file system and yet two
            raise
        return _move_across(start, source, end, target, overwrite, stop, arrival)
    return []


def _are_apart(start: Spot[Writable], end: Spot[Writable]) -> bool:
    return start.folder.stat(".").st_dev != end.folder.stat(".").st_dev


def delete(place: Writable, *, recursive: bool, trash: bool, stop: Stop, step: Step | None = None) -> Moved:
    """`delete_all` of one."""
    (deleted,) = delete_all([place], recursive=recursive, trash=trash, stop=stop, step=step).entries
    return deleted


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


@dataclass(frozen=True, slots=True)
class _Going:
    """What is to be deleted: where it is, the bytes it takes, and what is said of it."""

    place: Writable
    spot: Spot[Writable]
    size: int
    notes: Sequence[str]


def _look(place: Writable, spot: Spot[Writable], recursive: bool, stop: Stop) -> _Going:
    _refuse_root(spot.place)
    with told(place):
        found = spot.folder.stat(spot.name)
    if not stat.S_ISDIR(found.st_mode):
        return _Going(place, spot, found.st_size, ())
    with spot.folder.folder(spot.name) as folder:
        if not recursive and any(True for _ in folder.scan()):
            raise Conflict(
                f"{quote(place.display)} is a folder that is not empty.",
                "Set `recursive` to delete it with all that is in it.",
            )
        doomed = _Doomed(stop)
        doomed.count(folder)
    notes = [f"with {counted(doomed.seen, 'entry')}"] if doomed.seen else []
    if doomed.protected:
        notes.append(f"{doomed.protected:,} of them protected")
    return _Going(place, spot, doomed.size, notes)


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


def weight(spot: Spot[Writable], stop: Stop) -> int:
    """Bytes of what is at a spot, with all that is in it."""
    found = spot.folder.stat(spot.name)
    if not stat.S_ISDIR(found.st_mode):
        return found.st_size
    with spot.folder.folder(spot.name) as folder:
        doomed = _Doomed(stop)
        doomed.count(folder)
    return doomed.size


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


def _refuse_root(place: Readable) -> None:
    above = steps_to(place)
    for root in place.policy.roots:
        if steps_to(place.policy.top(root))[: len(above)] == above:
            what = "is a served folder itself" if root.real == place.root.real and not place.parts else None
            raise Refused(
                f"{quote(place.display)} {what or f'holds the served folder {quote(root.name)}'}.",
                "Name something in it.",
            )


def _is_same(start: Spot[Writable], end: Spot[Writable]) -> bool:
    """Whether both are one entry, found by two spellings of its name."""
    try:
        one, other = start.folder.stat(start.name), end.folder.stat(end.name)
    except FileNotFoundError:
        return False
    above, below = start.folder.stat("."), end.folder.stat(".")
    alike = folded(start.name).casefold() == folded(end.name).casefold()
    return alike and os.path.samestat(one, other) and os.path.samestat(above, below)


def _move_problem(
    error: OSError, source: Writable, target: Writable, found: os.stat_result, end: Spot[Writable], overwrite: bool
) -> Exception:
    if error.errno == errno.EINVAL and stat.S_ISDIR(found.st_mode):
        return Invalid(f"{quote(source.display)} can't be moved into itself.", "Choose a place outside of it.")
    if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.EISDIR):
        with suppress(OSError):
            return taken(target, end.folder.stat(end.name), "nothing was moved", overwrite=overwrite)
    if error.errno == errno.ENOTDIR and stat.S_ISDIR(found.st_mode):
        return Conflict(
            f"{quote(target.display)} is a file, which a folder can't replace; nothing was moved.",
            "Choose another name, or delete the file first.",
        )
    # Of two names Windows tells when the first is held; that the second is has been found out.
    about_source = error.errno == errno.ENOENT or (is_held_open(error) and error.filename2 is not None)
    return problem(error, source if about_source else target, "nothing was moved")


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


def _move_across(
    start: Spot[Writable],
    source: Writable,
    end: Spot[Writable],
    target: Writable,
    overwrite: bool,
    stop: Stop,
    arrival: Arrival | None,
) -> list[str]:
    """Move between file systems: copy all of it as mv(1) does, then delete the old one; what was not kept, in words."""
    found = start.folder.stat(start.name)
    belongings = Belongings()
    if stat.S_ISREG(found.st_mode):
        copy_file(start, source, end, target, overwrite, stop, arrival, belongings)
    else:
        if stat.S_ISDIR(found.st_mode):
            with start.folder.folder(start.name) as folder:
                Census(stop).count(folder)  # refuses what would be left out of the copy, and lost
        if skipped := copy_other(start, source, end, target, found, stop, arrival, belongings):
            remove_all(end.folder, end.name)
            raise Refused(f"{quote(source.display)} holds entries that can't be copied: {', '.join(skipped[:5])}.")
    try:
        confirm(end.folder, target, "copied to")
    except Unconfirmed as failure:  # it was not moved
        raise Unavailable(failure.what, failure.fix) from failure
    doomed = temporary_name()
    try:
        start.folder.rename(start.name, start.folder, doomed)  # from here on it is there no more, whatever happens
        try:
            remove_all(start.folder, doomed, stop)
        except BaseException:
            with suppress(OSError):
                start.folder.rename_new(doomed, start.folder, start.name)
            raise
    except OSError as error:
        raise Unavailable(
            f"{quote(source.display)} was copied to {quote(target.display)}, but not all of it could be removed: "
            f"{reason(error)}.",
            "Delete the rest of it when nothing uses it.",
        ) from error
    return belongings.notes


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
