"""Files written so that every moment of a crash leaves the old content or the new one, whole.

A new content is built beside the file in a private temporary file, given what the old file had (owner, mode,
attributes), made durable and only then renamed over it; the folder is made durable last. Until the rename nothing has
happened; after it everything has. The disk begins with the content while it is written down what is about to happen.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, Refused, Unavailable, quote, reason
from mcp_batteries.limits import Stop
from mcp_fs.engine.changing.binary_formats import binary_format, check_text_for, is_text_file, way_beside
from mcp_fs.engine.document_kinds import HEAD_BYTES, kind_of
from mcp_fs.engine.handles.locks import Held, locked
from mcp_fs.engine.handles.metadata import copy_attributes
from mcp_fs.engine.handles.path_opening import Folder, Spot, not_a_file, open_regular, problem, resolve
from mcp_fs.engine.handles.suggestions import is_in_archive
from mcp_fs.engine.handles.syscalls import begin_flush, write_all
from mcp_fs.engine.handles.temp_files import clean_once, hold, remove_quietly, temporary_name
from mcp_fs.engine.journal.journal import Intent, Step
from mcp_fs.engine.journal.states import HASHED, file_state, hash_of, state_of
from mcp_fs.engine.text.encodings import SAMPLE_BYTES
from mcp_fs.models import Written
from mcp_fs.policy import Readable, Writable

if sys.platform == "darwin":
    # There fsync(2) leaves the data in the drive's own memory.
    from fcntl import F_FULLFSYNC as _FULL_SYNC
    from fcntl import fcntl

__all__ = [
    "Staged",
    "Unconfirmed",
    "check_renamed_text",
    "confirm",
    "head_of",
    "inherit_new",
    "refuse_read_only",
    "regular_status",
    "stage",
    "sync",
    "write_file",
    "writing_to",
]

_UMASK = os.umask(0o077)  # can only be read by setting it, which no thread should meet: done at import
os.umask(_UMASK)
_BINARY = getattr(os, "O_BINARY", 0)
_CREATE_IT = "Create it first, with `create_directory`."


def write_file(
    place: Writable, content: str | bytes, *, overwrite: bool, stop: Stop, step: Step | None = None
) -> Written:
    """Create the file at `place`, or with `overwrite` replace what it holds; text is written as UTF-8.

    A link is followed beneath the served folders and stays a link.

    Args:
        step: is told what changes before it does, so that it can be taken back.

    Raises:
        Conflict: the file exists and `overwrite` is not set.
        NotFound: the folder does not exist.
        Refused: something that is not a regular file is there.
    """
    try:
        data = content.encode() if isinstance(content, str) else content
    except UnicodeEncodeError:
        raise Invalid("The content has a lone surrogate, which no text file can hold.") from None
    with writing_to(place) as spot, locked([spot], stop) as locks:
        held = locks.get(spot)
        old = regular_status(spot, place, held)
        head = b"" if old is None else head_of(spot)
        if isinstance(content, str):
            check_text_for(place, data, head)
        if old is not None and not overwrite:
            raise _exists_already(place, head)
        with stage(spot, data, old, place, held=held) as staged:
            if step is not None:
                step.record([staged.intent()])
            staged.commit(replace=overwrite)
        there = spot.place  # an existing name may be spelled another way
    return Written(there.display, old is None, len(data), tuple(staged.notes))


def head_of(spot: Spot[Writable]) -> bytes:
    """How the file at a spot begins; nothing of one that may not be read."""
    try:
        with open_regular(spot.folder, spot.name) as file:
            return file.read(SAMPLE_BYTES)
    except (OSError, Problem):
        return b""


def _exists_already(place: Writable, head: bytes) -> Conflict:
    what = f"{quote(place.display)} exists already."
    is_written_as_text = kind_of(place.name, head[:HEAD_BYTES]) in ("mail", "notebook")
    if head and not is_written_as_text and not is_text_file(place.name, head):
        return Conflict(what, f"It is not text, which would be lost: {_lower(way_beside(place))}")
    return Conflict(what, "Change it with `edit_file`, or set `overwrite` to replace all of it.")


def _lower(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def check_renamed_text(start: Spot[Readable], end: Spot[Writable], target: Writable) -> None:
    """Check that text does not get a name that promises something else by being copied or moved.

    Raises:
        Refused: it would.
    """
    if binary_format(target.name) is None or binary_format(start.name) == binary_format(target.name):
        return
    try:
        with open_regular(start.folder, start.name) as file:
            head = file.read(SAMPLE_BYTES)
    except (OSError, Problem):
        return
    if is_text_file("", head):
        check_text_for(target, head, head_of(end))


@contextmanager
def writing_to(place: Writable, *, follow: bool = True) -> Generator[Spot[Writable]]:
    """The spot of an entry to be made or changed; as `resolve`, saying which folder is missing."""
    if is_in_archive(place):
        raise Refused(f"{quote(place.display)} is in an archive, which can't be changed.", "Choose a path beside it.")
    with ExitStack() as stack:
        try:
            spot = stack.enter_context(resolve(place, follow=follow, lists=True))
        except NotFound as missing:
            above = _kind(place.parent) if place.parts else stat.S_IFDIR
            if above is not None and above != stat.S_IFDIR:
                raise Conflict(
                    f"{quote(place.parent.display)} is a file; nothing can be made below it.", "Choose another path."
                ) from missing
            if above is None:
                raise NotFound(f"The folder {quote(place.parent.display)} does not exist.", _CREATE_IT) from missing
            raise
        yield spot


def regular_status(spot: Spot[Writable], place: Readable, held: Held | None = None) -> os.stat_result | None:
    """lstat(2) of the regular file at the spot, which may be replaced; None when there is nothing.

    Args:
        held: the file there, if it was locked just now.

    Raises:
        Refused: there is something else, or the file is read-only: a rename over it would need no permission.
    """
    try:
        found = spot.folder.stat(spot.name) if held is None else held.found
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise not_a_file(place, stat.S_IFMT(found.st_mode))
    _refuse_read_only(spot, place, found)
    return found


def refuse_read_only(spot: Spot[Writable], place: Readable) -> None:
    """Return when there is no regular file at the spot, or one that may be written.

    Raises:
        Refused: there is one that may not.
    """
    try:
        found = spot.folder.stat(spot.name)
    except FileNotFoundError:
        return
    if stat.S_ISREG(found.st_mode):
        _refuse_read_only(spot, place, found)


def _refuse_read_only(spot: Spot[Writable], place: Readable, found: os.stat_result) -> None:
    if not (found.st_mode & 0o222 and _may_write(spot)):
        raise Refused(
            f"{quote(place.display)} is read-only ({stat.filemode(found.st_mode)}); nothing was changed.",
            "Write to another name, or ask the person to make it writable.",
        )


def _may_write(spot: Spot[Writable]) -> bool:
    """Whether the kernel would let this process write into the file at the spot."""
    if sys.platform == "win32" or os.access not in os.supports_dir_fd:
        return True  # there the mode says it
    effective = os.access in os.supports_effective_ids
    return os.access(spot.name, os.W_OK, dir_fd=spot.folder.fd, effective_ids=effective)


def same_file(one: os.stat_result, other: os.stat_result) -> bool:
    """Whether nobody has changed or replaced the file between two looks at it."""
    return (one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns) == (
        other.st_dev,
        other.st_ino,
        other.st_size,
        other.st_mtime_ns,
    )


@dataclass
class Staged:
    """A finished temporary file that waits to take the place of `name`.

    Attributes:
        made: its status.
        content: what it holds, if that was at hand as a whole.
        unflushed: its descriptor until it is durable.
        old: what stood there when it was made; None for nothing.
        held: the same, open, if it is.
        notes: what could not be kept, for the answer.
    """

    folder: Folder[Writable]
    name: str
    temporary: str
    made: os.stat_result
    content: bytes | None
    unflushed: int | None
    old: os.stat_result | None
    shown: Readable
    held: Held | None = None
    notes: list[str] = field(default_factory=list[str])
    is_put: bool = False

    def intent(self) -> Intent:
        """What `put` will do, for who writes it down."""
        if self.content is None or sys.platform == "win32":  # where closing a file changes its time
            new = state_of(self.folder, self.temporary, thorough=True)
        else:
            new = file_state(self.made, hash_of(self.content))
        fd = None if self.held is None else self.held.fd
        return Intent(self.folder.place / self.name, self.folder, new, fd=fd)

    def commit(self, *, replace: bool) -> None:
        """Rename over the old file and make the folder durable.

        Args:
            replace: whether a file that has appeared since may be replaced.

        Raises:
            Conflict: the name was taken, or the file changed, after `old` was looked at.
            Unavailable: the rename is done, but the disk does not confirm it.
        """
        self.put(replace=replace)
        self.make_durable()

    def flush(self) -> None:
        """Make the new content durable, if it is not yet.

        Raises:
            Problem: the disk refuses; nothing was changed.
        """
        if self.unflushed is None:
            return
        try:
            sync(self.unflushed)
        except OSError as error:
            raise problem(error, self.shown, "nothing was changed") from error
        self.unflushed = None

    def put(self, *, replace: bool) -> None:
        """The rename alone, once the new content is durable."""
        self.flush()
        try:
            if self.old is None and not replace:
                self.folder.rename_new(self.temporary, self.folder, self.name)
            else:
                self.folder.rename(self.temporary, self.folder, self.name)
        except OSError as error:
            if not self.arrived():
                raise problem(error, self.shown, "nothing was changed") from error
        self.is_put = True

    def check_unchanged(self) -> None:
        """Return when the old file is still the one that was read.

        Raises:
            Conflict: another process has changed, replaced or removed it.
        """
        try:
            now = self.folder.stat(self.name)
        except FileNotFoundError:
            now = None
        if (now is None) != (self.old is None) or (now and self.old and not same_file(now, self.old)):
            raise Conflict(
                f"{quote(self.shown.display)} was changed by somebody else meanwhile; nothing was written.",
                "Read it again, then repeat the change.",
            )

    def arrived(self) -> bool:
        """Whether the rename has happened after all: a failing disk may report either way."""
        with suppress(OSError):
            found = self.folder.stat(self.name)
            return os.path.samestat(found, self.made)
        return False

    def make_durable(self) -> None:
        confirm(self.folder, self.shown, "written")


class Unconfirmed(Unavailable):
    """Raised when all is done, and only the disk does not confirm it."""


def confirm(folder: Folder[Any], shown: Readable, did: str) -> None:
    """Make the entries of a folder durable after a change.

    Args:
        did: what was done to `shown`, for the message.

    Raises:
        Unconfirmed: the disk does not confirm it.
    """
    try:
        folder.sync()
    except OSError as error:
        raise Unconfirmed(
            f"{quote(shown.display)} was {did}, but the disk does not confirm it: {reason(error)}.",
            "Look at what is there now; a power failure may bring the old state back.",
        ) from error


@contextmanager
def stage(
    spot: Spot[Writable],
    data: bytes | Callable[[int], None],
    old: os.stat_result | None,
    shown: Readable,
    *,
    held: Held | None = None,
    like: int | None = None,
    executable: bool = False,
) -> Generator[Staged]:
    """The temporary file for the spot, holding `data`, removed at the end unless it was committed.

    Args:
        data: the content, or what writes it to a descriptor.
        old: status of the file it is to replace, whose owner, mode and attributes it gets; None for a new one.
        shown: how the caller knows the file, for messages.
        held: the old file, if it is open.
        like: descriptor of a file whose mode and attributes a new one gets.
        executable: whether a new one can be run.

    Raises:
        TooLarge: no space.
        Problem: the temporary file can't be written; nothing was changed.
    """
    clean_once(spot.folder)
    temporary, staged = temporary_name(), None

    def clean() -> None:
        if staged is None or not staged.is_put:
            remove_quietly(spot.folder, temporary)

    with ExitStack() as stack:
        try:
            fd = spot.folder.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
            stack.callback(clean)
            closing = stack.enter_context(ExitStack())
            closing.callback(os.close, fd)
            hold(fd)
            if isinstance(data, bytes):
                write_all(fd, data)
            else:
                data(fd)
            notes = _inherit(fd, temporary, spot, old, held, like, 0o777 if executable else 0o666)
            content, unflushed = data if isinstance(data, bytes) else None, None
            if content is None or len(content) > HASHED or sys.platform == "win32":
                sync(fd)  # its time tells later which file it is, and a file server may set that when it has it all
            else:
                unflushed = fd
                begin_flush(fd)
            made = os.fstat(fd)
            if sys.platform == "win32":
                closing.close()  # what is open there can't be renamed
        except OSError as error:
            raise problem(error, shown, "nothing was changed") from error
        staged = Staged(spot.folder, spot.name, temporary, made, content, unflushed, old, shown, held, notes)
        yield staged


def sync(fd: int) -> None:
    """Make an open file durable."""
    if sys.platform == "darwin":
        with suppress(OSError):  # the file system may know no such thing
            fcntl(fd, _FULL_SYNC)
            return
    os.fsync(fd)


def _inherit(
    fd: int,
    temporary: str,
    spot: Spot[Writable],
    old: os.stat_result | None,
    held: Held | None,
    like: int | None,
    new_mode: int,
) -> list[str]:
    """Give the new file what the old one had, on its handle; what could not be kept, in words."""
    notes: list[str] = []
    if old is not None and old.st_nlink > 1:
        notes.append(f"it had {old.st_nlink} hard links; the other names keep the old content")
    if sys.platform == "win32":
        if old is not None and not spot.folder.inherit(temporary, spot.name):
            notes.append("who may read and write it could not be kept")
        return notes
    if old is None:
        inherit_new(fd, like, new_mode)
        return []
    mode = stat.S_IMODE(old.st_mode)
    if (old.st_uid, old.st_gid) != (os.geteuid(), os.fstat(fd).st_gid):
        try:
            os.fchown(fd, old.st_uid, old.st_gid)
        except PermissionError:
            with suppress(PermissionError):
                os.fchown(fd, -1, old.st_gid)
            notes.append("it belongs to another user now: the old owner could not be kept")
            mode &= ~(stat.S_ISUID | stat.S_ISGID)
    if not (_copy_attributes(fd, spot) if held is None else copy_attributes(held.fd, fd)):
        notes.append("some extended attributes could not be kept")
    os.fchmod(fd, mode)
    return notes


def inherit_new(fd: int, like: int | None, mode: int = 0o666) -> None:
    """Give a new file the mode of any new file or, as cp(1) does, mode and attributes of the one it copies."""
    if like is not None:
        copy_attributes(like, fd)
        mode = os.fstat(like).st_mode & 0o777
    if sys.platform != "win32":
        os.fchmod(fd, mode & ~_UMASK)


def _copy_attributes(fd: int, spot: Spot[Writable]) -> bool:
    """Extended attributes, and with them access control lists; False when one is lost."""
    try:
        source = spot.folder.open(spot.name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return False
    try:
        return copy_attributes(source, fd)
    finally:
        os.close(source)


def _kind(place: Readable) -> int | None:
    """File type, as `stat.S_IFMT`, of what is there; None for nothing."""
    try:
        with resolve(place) as spot:
            return stat.S_IFMT(spot.folder.stat(spot.name).st_mode)
    except Problem:
        return None
