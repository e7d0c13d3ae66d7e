"""Copies entries, for a requested copy and as the first half of a move between file systems."""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack
from functools import partial

from mcp_batteries.errors import Conflict, Invalid, TooLarge, quote
from mcp_batteries.limits import Stop
from mcp_batteries.progress import tell
from mcp_fs.engine.changing.atomic_write import (
    check_renamed_text,
    confirm,
    head_of,
    inherit_new,
    regular_status,
    stage,
    sync,
    writing_to,
)
from mcp_fs.engine.changing.binary_formats import check_text_for
from mcp_fs.engine.handles.locks import locked
from mcp_fs.engine.handles.metadata import Belongings
from mcp_fs.engine.handles.path_opening import Folder, Spot, not_a_file, open_regular, open_tree, problem, resolve, told
from mcp_fs.engine.handles.syscalls import copy_blocks
from mcp_fs.engine.handles.temp_files import hold, remove_quietly, temporary_name
from mcp_fs.engine.journal.journal import Arrival, Step
from mcp_fs.engine.reading.line_range import LineRange
from mcp_fs.engine.text.encodings import SAMPLE_BYTES
from mcp_fs.models import Moved
from mcp_fs.policy import Readable, Writable

__all__ = ["MOST_DEPTH", "MOST_ENTRIES", "Census", "copy", "copy_file", "copy_other", "status_at", "steps_to", "taken"]

MOST_ENTRIES = 100_000
"""Entries that one call copies."""
MOST_DEPTH = 200
"""Levels of folders, for each of which one descriptor is open."""


def copy(
    source: Readable | LineRange, target: Writable, *, overwrite: bool, stop: Stop, step: Step | None = None
) -> Moved:
    """Copy a file, a folder with all that is in it, a link as a link, or lines of a text file.

    A folder appears whole or not at all. Protected secrets in it are left out, and the answer says so.

    Args:
        overwrite: whether a file may be replaced; a folder never is.

    Raises:
        Conflict: the target exists.
        TooLarge: the folder has more than 100,000 entries.
    """
    if isinstance(source, LineRange):
        return _copy_lines(source, target, overwrite=overwrite, stop=stop, step=step)
    with resolve(source, follow=False) as start, writing_to(target, follow=False) as end, locked([end], stop):
        with told(source):
            found = start.folder.stat(start.name)
        is_file = stat.S_ISREG(found.st_mode)
        # Told before anything is copied; the kernel has the last word.
        if (there := status_at(end)) is not None:
            _refuse_same(source, found, target, there)
            if not (is_file and overwrite) or stat.S_ISDIR(there.st_mode):
                raise taken(target, there, "nothing was copied", overwrite=not is_file)
        if is_file:
            check_renamed_text(start, end, target)
            notes = copy_file(start, source, end, target, overwrite, stop, Arrival(end, step))
        else:
            skipped = copy_other(start, source, end, target, found, stop, Arrival(end, step))
            more = f" and {len(skipped) - 10} more" if len(skipped) > 10 else ""
            notes = [f"without {', '.join(skipped[:10])}{more}"] if skipped else []
        confirm(end.folder, target, "copied to")
    return Moved("copied", source.display, target.display, notes)


def _copy_lines(source: LineRange, target: Writable, *, overwrite: bool, stop: Stop, step: Step | None) -> Moved:
    with source.open_lines(stop) as found, writing_to(target, follow=False) as end, locked([end], stop):
        if (there := status_at(end)) is not None:
            _refuse_same(source.place, found.lines.status, target, there)
        old = regular_status(end, target)
        if old is not None and not overwrite:
            raise taken(target, old, "nothing was copied", overwrite=False)
        text = found.lines.read_at(found.begin, min(SAMPLE_BYTES, found.end - found.begin))
        check_text_for(target, text, b"" if old is None else head_of(end))
        numbers = found.describe_numbers()
        # What was to be read by few stays so.
        with stage(end, found.write, old, target, like=found.lines.file.fileno()) as staged:
            Arrival(end, step).expect(end.folder, staged.temporary)
            staged.put(replace=overwrite)
        confirm(end.folder, target, "copied to")
    return Moved("copied", source.display, target.display, [*numbers, *staged.notes])


def _refuse_same(source: Readable, found: os.stat_result, target: Writable, there: os.stat_result) -> None:
    if os.path.samestat(found, there):
        both = f"{quote(source.display)} and {quote(target.display)}"
        what = "folder" if stat.S_ISDIR(found.st_mode) else "file"
        raise Invalid(f"{both} are one {what}; nothing was copied.", "Choose another name.")


def copy_file(
    start: Spot[Readable],
    source: Readable,
    end: Spot[Writable],
    target: Writable,
    overwrite: bool,
    stop: Stop,
    arrival: Arrival | None = None,
    belongings: Belongings | None = None,
) -> list[str]:
    old = regular_status(end, target)
    if old is not None and not overwrite:
        raise taken(target, old, "nothing was copied", overwrite=False)
    with told(source):
        opened = open_regular(start.folder, start.name, source)
    with opened as file:
        found = os.fstat(file.fileno())
        fill = partial(_fill, source_fd=file.fileno(), source=source, stop=stop)
        with stage(end, fill, old, target, like=file.fileno()) as staged:
            if belongings is not None:
                belongings.keep(end.folder, staged.temporary, found)
            if arrival is not None:
                arrival.expect(end.folder, staged.temporary)
            staged.put(replace=overwrite)
    return staged.notes


def copy_other(
    start: Spot[Readable],
    source: Readable,
    end: Spot[Writable],
    target: Writable,
    found: os.stat_result,
    stop: Stop,
    arrival: Arrival | None = None,
    belongings: Belongings | None = None,
) -> list[str]:
    """Copy a link or a folder: under a temporary name first, so that it appears in one step."""
    temporary = temporary_name()
    skipped: list[str] = []
    with ExitStack() as stack:
        stack.callback(remove_quietly, end.folder, temporary)
        if stat.S_ISLNK(found.st_mode):
            end.folder.make_link(start.folder.read_link(start.name), temporary)
            if belongings is not None:
                belongings.keep(end.folder, temporary, found)
        elif stat.S_ISDIR(found.st_mode):
            with told(source):
                folder = stack.enter_context(open_tree(start.folder, start.name))
            if steps_to(end.folder.place)[: len(steps_to(folder.place))] == steps_to(folder.place):
                raise Invalid(f"{quote(source.display)} can't be copied into itself.", "Choose a place outside of it.")
            end.folder.make_folder(temporary, 0o700)
            with open_tree(end.folder, temporary) as made:
                hold(made.fd)
                skipped = _Copier(stop, belongings, made).copy(folder, made)
                made.set_mode(stat.S_IMODE(found.st_mode))
            if belongings is not None:
                belongings.keep(end.folder, temporary, found)
        else:
            raise not_a_file(source, stat.S_IFMT(found.st_mode))
        if arrival is not None:
            arrival.expect(end.folder, temporary)
        try:
            end.folder.rename_new(temporary, end.folder, end.name)
        except FileExistsError as error:
            with told(target):
                raise taken(target, end.folder.stat(end.name), "nothing was copied", overwrite=True) from error
        except OSError as error:
            raise problem(error, target, "nothing was copied") from error
    return skipped


class Census:
    """Counts what is in a folder, up to the limit of one call, and refuses protected secrets."""

    def __init__(self, stop: Stop) -> None:
        self.stop, self.seen = stop, 0

    def count(self, folder: Folder[Writable], depth: int = 0) -> int:
        for entry in folder.scan():
            self.note(folder.place, depth)
            inner = folder.place / entry.name
            if entry.is_dir(follow_symlinks=False):
                with folder.folder(inner.name) as below:
                    self.count(below, depth + 1)
        return self.seen

    def note(self, place: Readable, depth: int) -> None:
        self.stop.check()
        self.seen += 1
        tell(self.seen, None, f"{self.seen:,} entries")
        if self.seen > MOST_ENTRIES or depth > MOST_DEPTH:
            raise TooLarge(
                f"{quote(place.display)} is part of more than {MOST_ENTRIES:,} entries or {MOST_DEPTH} levels.",
                "Do its subfolders one by one.",
            )


class _Copier(Census):
    """Copies what is in a folder; what it left out, secrets and what is not a file, link or folder, is in `skipped`."""

    def __init__(self, stop: Stop, belongings: Belongings | None, top: Folder[Writable]) -> None:
        super().__init__(stop)
        self.skipped: list[str] = []
        self._belongings, self._top = belongings, top

    def copy(self, source: Folder[Readable], target: Folder[Writable], depth: int = 0) -> list[str]:
        for entry in source.scan():
            self.note(source.place, depth)
            if source.place.policy.protected((*source.place.parts, entry.name)):
                self.skipped.append(entry.name)
            elif entry.is_symlink():
                target.make_link(source.read_link(entry.name), entry.name)
                self._keep(target, entry)
            elif entry.is_dir():
                target.make_folder(entry.name, 0o700)
                with told(source.place / entry.name):
                    opened = source.folder(entry.name)
                with opened as inner, target.folder(entry.name) as made:
                    self.copy(inner, made, depth + 1)
                    made.set_mode(stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode))
                self._keep(target, entry)
            elif entry.is_file():
                found = entry.stat(follow_symlinks=False)
                if self._belongings is None or not self._belongings.linked(self._top, target, entry.name, found):
                    self.file(source, target, entry.name)
                    self._keep(target, entry)
            else:
                self.skipped.append(entry.name)
        target.sync()
        return self.skipped

    def _keep(self, target: Folder[Writable], entry: os.DirEntry[str]) -> None:
        if self._belongings is not None:
            self._belongings.keep(target, entry.name, entry.stat(follow_symlinks=False))

    def file(self, source: Folder[Readable], target: Folder[Writable], name: str) -> None:
        fd = target.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        try:
            with told(source.place / name):
                opened = open_regular(source, name)
            with opened as file:
                _fill(fd, file.fileno(), source.place / name, self.stop)
                inherit_new(fd, file.fileno())
            sync(fd)
        finally:
            os.close(fd)


def _fill(fd: int, source_fd: int, source: Readable, stop: Stop) -> None:
    copy_blocks(source_fd, fd, stop.check, partial(told, source))  # or else the target would be blamed


def status_at(spot: Spot[Writable]) -> os.stat_result | None:
    """lstat(2) of what is at a spot; None for nothing."""
    try:
        return spot.folder.stat(spot.name)
    except FileNotFoundError:
        return None


def taken(target: Writable, there: os.stat_result, outcome: str, *, overwrite: bool) -> Conflict:
    """The answer when something has the target's name already; `overwrite` when that can't be replaced at all."""
    shown = quote(target.display)
    if stat.S_ISDIR(there.st_mode):
        return Conflict(
            f"{shown} is a folder that exists already; {outcome}.",
            f"Name the place in it, such as `{target.display}/NAME`; a full folder is never replaced.",
        )
    if overwrite:
        return Conflict(f"{shown} exists already; {outcome}.", "Choose another name, or delete that first.")
    return Conflict(f"{shown} exists already; {outcome}.", "Set `overwrite` to replace it, or choose another name.")


def steps_to(place: Readable) -> list[str]:
    return [*place.root.real.split(os.sep), *place.parts] if place.root.real != os.sep else ["", *place.parts]
