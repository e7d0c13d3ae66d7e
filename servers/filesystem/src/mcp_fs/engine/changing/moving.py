"""Creating folders and moving entries: by handle at both ends, links as the links they are.

Nothing is ever replaced by accident: whether a name is free is decided by the kernel in the same step that takes
it, so of two moves to one name one fails.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress

from mcp_batteries.errors import Conflict, Invalid, Problem, Refused, Unavailable, quote, reason
from mcp_batteries.limits import Stop
from mcp_fs.engine.changing.atomic_write import Unconfirmed, check_renamed_text, confirm, refuse_read_only, writing_to
from mcp_fs.engine.changing.copying import Census, copy_file, copy_other, status_at, steps_to, taken
from mcp_fs.engine.handles.locks import locked
from mcp_fs.engine.handles.metadata import Belongings
from mcp_fs.engine.handles.path_opening import Spot, is_held_open, open_tree, problem, resolve, told
from mcp_fs.engine.handles.temp_files import remove_all, temporary_name
from mcp_fs.engine.journal.journal import Arrival, Intent, Step
from mcp_fs.engine.journal.states import MADE, state_of
from mcp_fs.engine.name_folding import fold_name
from mcp_fs.models import Moved
from mcp_fs.policy import Readable, Writable

__all__ = ["create_folder", "folders_to", "move", "refuse_move", "refuse_root", "relocate"]

_OTHER = "Choose another path."


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
        refuse_root(start.place)
        with told(source):
            found = start.folder.stat(start.name)
        notes: list[str] = []
        try:
            if _is_same(start, end):
                start.folder.rename(start.name, end.folder, target.name)
            else:
                refuse_root(end.place)
                if not overwrite and (there := status_at(end)) is not None:
                    raise taken(target, there, "nothing was moved", overwrite=False)
                if overwrite:
                    refuse_read_only(end, target)
                if stat.S_ISREG(found.st_mode):
                    check_renamed_text(start, end, target)
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


def refuse_root(place: Readable) -> None:
    """Return when `place` is not a served folder and holds none.

    Raises:
        Refused: it is, or does.
    """
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
    alike = fold_name(start.name).casefold() == fold_name(end.name).casefold()
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
            with open_tree(start.folder, start.name) as folder:
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
