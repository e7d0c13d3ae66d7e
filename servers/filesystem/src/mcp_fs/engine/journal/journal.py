"""Records what one call changes, before each change, together with the old contents.

Old contents are the same file by another name where that costs nothing and nobody can write to it by a third; else a
copy, which shares its blocks with the original where the file system can. Nothing here stops a change: what can't be
kept is said in the answer.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Self

from mcp_batteries.errors import NotFound, Problem, TooLarge, reason
from mcp_batteries.limits import Stop
from mcp_fs.engine.handles.metadata import Belongings, copy_attributes
from mcp_fs.engine.handles.path_opening import Folder, Spot, open_regular, resolve
from mcp_fs.engine.handles.syscalls import copy_blocks
from mcp_fs.engine.journal.states import State, is_still, state_of
from mcp_fs.engine.journal.store import Item, Kept, Record, Store
from mcp_fs.paths import file_uri
from mcp_fs.policy import Readable, Writable

__all__ = ["CALL", "Arrival", "Intent", "Step", "uri_of"]

CALL: ContextVar[tuple[str, str]] = ContextVar("call", default=("", ""))
"""The tool that is being called, and by whom."""


@dataclass(frozen=True, slots=True)
class Intent:
    """What is about to happen to one entry.

    Attributes:
        place: of the entry, links resolved.
        folder: the open folder it is in; None while there is none, nor anything to keep.
        before: what is there, if that is not to be looked at but to be made again by itself.
        source: where what will be there is moved from.
        origin: what is there, if it is copied first and deleted then.
        left: what will then be at the source.
        fd: the file that is there, open for reading, if it is.
        gives: the bytes of what is there, if the caller moves it to the place that `record` returns; else it is
            kept by another name, or copied.
    """

    place: Readable
    folder: Folder[Any] | None
    after: State | None
    before: State | None = None
    source: Readable | None = None
    origin: State | None = None
    left: State | None = None
    fd: int | None = None
    gives: int | None = None


class Step:
    """What one call changes, a context manager; as long as it is open nobody forgets it.

    Args:
        undoes: the tool whose call is being taken back.
    """

    def __init__(self, store: Store, stop: Stop, undoes: str | None = None) -> None:
        self._store, self._stop, self._undoes = store, stop, undoes
        self._stack = ExitStack()
        self._last: Kept | None = None
        self._fd = -1
        self._intents: Sequence[Intent] = ()
        self._items: Sequence[Item] = ()
        self._ahead: Sequence[Intent] = ()
        self._what = "this"
        self._is_off = False
        self._reserved = self._room = self._size = 0
        """Bytes that are kept room for, that this part and those after it may keep, and that this one does."""
        self._start = self._end = self._before_it = 0
        """Where this part stands in what is written down, and how many entries the parts before it have."""
        self.notes: list[str] = []
        """What can't be taken back, and why, for the answer."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        is_idle = failure is not None and self._last is not None and not self.has_taken()
        if is_idle and all(map(_is_as_before, self._intents, self._items)):
            self.withdraw()  # or else it would be one more name of a file, and a step that nobody made
        self._stack.close()

    def is_far(self, folder: Folder[Any]) -> bool:
        """Whether what is in `folder` would have to be copied, and comes back as another file."""
        try:
            with self._store.top() as top:
                return top.stat(".").st_dev != folder.stat(".").st_dev
        except (OSError, Problem):
            return True

    def record(self, intents: Sequence[Intent]) -> Sequence[Writable | None]:
        """Write down what is about to happen, which is one step; for each entry the place for what `gives` tells of."""
        if ahead := self._ahead:
            self.drop()
        if self._is_off:
            return [None] * len(intents)
        try:
            return self._record([*ahead, *intents])[len(ahead) :]
        except (OSError, Problem) as failure:
            self._say(failure)
            return [None] * len(intents)

    def begin(self, intents: Sequence[Intent]) -> None:
        """Record what happens first; what is recorded next is one step with it."""
        self.record(intents)
        self._ahead = [*self._ahead, *intents]

    def reserve(self, size: int) -> None:
        """Tell how many bytes all parts keep together; too many are not kept, which the answer says."""
        self._reserved = size
        if size > self._store.most_bytes:
            with suppress(OSError, Problem):
                self.drop()
            self._is_off = True
            self._say(self._too_large(size))

    def part(self, what: str) -> None:
        """What is recorded from now on is one step with what was: that has happened, and is recorded for good.

        Args:
            what: happens then, in words.
        """
        self._what = what
        if len(self._items) > len(self._ahead):  # what happened first alone is a part with what comes now
            self._room -= self._size
            self._start, self._before_it = self._end, self._before_it + len(self._items)
            self._intents = self._items = self._ahead = ()

    def has_taken(self, kept: Readable | None = None) -> bool:
        """Whether anything that was given, or what was to be at `kept`, is kept, whole; of it some may be gone then."""
        with suppress(OSError, Problem):
            given = [number for number, intent in enumerate(self._intents) if intent.gives is not None]
            if self._last is not None and given:
                names = [self._name(self._last, number) for number in given] if kept is None else [kept.name]
                with self._store.top() as top:
                    return any(state_of(top, name) is not None for name in names)
        return False

    def lacks(self, place: Readable, failure: OSError | Problem) -> None:
        """Say that one of several is not kept."""
        self._say(failure, f"the deletion of {place.display}")

    def withdraw(self) -> None:
        """`drop` what was recorded last, since nothing of it happened; what failed before is what the answer tells."""
        with suppress(OSError, Problem):
            self.drop()

    def drop(self, failure: OSError | Problem | None = None) -> None:
        """Forget what was recorded last, which is not what happens; with a failure, say that nothing can be kept."""
        if not self._start:
            self._stack.close()
            if self._last is not None:
                self._store.remove(self._last)
                self._last = None
        elif self._last is not None and self._items:
            names = [self._name(self._last, number) for number in range(len(self._items))]
            self._store.cut(self._fd, self._start, names)
        self._intents = self._items = ()
        if failure is not None:
            self._say(failure)

    def _say(self, failure: OSError | Problem, what: str | None = None) -> None:
        why = reason(failure) if isinstance(failure, OSError) else failure.what.rstrip(".")
        self.notes.append(f"undo_changes can't take {what or self._what} back: {why}")

    def _too_large(self, size: int) -> TooLarge:
        return TooLarge(f"{size:,} bytes are more than the operator lets it keep")

    def _name(self, kept: Kept, number: int) -> str:
        """The name of what is kept of an entry of this part."""
        return f"{kept.name}.{self._before_it + number}"

    def _record(self, intents: Sequence[Intent]) -> Sequence[Writable | None]:
        found = [self._before(intent) for intent in intents]
        size = sum(bytes_kept for _, bytes_kept in found)
        if size > (self._room if self._start else self._store.most_bytes):
            raise self._too_large(size)
        items: list[Item] = []
        with ExitStack() as stack:
            top = stack.enter_context(self._store.top())
            if self._start and self._last is not None:
                kept, fd = self._last, self._fd
            else:
                self._room = max(self._reserved, size)
                kept, fd = self._store.begin(top, self._room)
                stack.callback(os.close, fd)
            try:
                for number, (intent, (before, _)) in enumerate(zip(intents, found, strict=True)):
                    folder, name = intent.folder, None
                    if before is not None and folder is not None and intent.before is None:
                        name = str(self._before_it + number)
                        if intent.gives is None:
                            self._stop.check()
                            _keep(folder, intent.place.name, before, top, f"{kept.name}.{name}", self._stop)
                    items.append(_item(intent, before, name))
                tool, by = CALL.get()
                record = Record(kept, self._undoes or tool, by, self._undoes is not None, items)
                self._end = self._store.finish(fd, record, self._start)
            except BaseException:
                stack.close()
                if self._start:
                    names = [self._name(kept, number) for number in range(len(found))]
                    self._store.cut(fd, self._start, names)
                else:
                    self._store.remove(kept)
                raise
            self._last, self._fd, self._intents, self._items, self._size = kept, fd, intents, items, size
            if not self._start:
                self._stack.push(stack.pop_all())
        return [
            None if intent.gives is None else self._store.place(self._name(kept, number))
            for number, intent in enumerate(intents)
        ]

    def _before(self, intent: Intent) -> tuple[State | None, int]:
        """What is there, and how many bytes it takes to keep it."""
        if intent.before is not None or intent.folder is None:
            return intent.before, 0
        self._stop.check()
        thorough = intent.gives is None or self.is_far(intent.folder)  # what is copied there is copied back
        before = state_of(intent.folder, intent.place.name, thorough=thorough, fd=intent.fd)
        if before is None:
            return None, 0
        return before, before.size if intent.gives is None else intent.gives


def _is_as_before(intent: Intent, item: Item) -> bool:
    try:
        with resolve(intent.place, follow=False) as spot:
            return is_still(spot.folder, spot.name, item.before)
    except NotFound:
        return item.before is None
    except Problem:
        return False


class Arrival:
    """What tells a step of the one thing that will stand at a spot, as soon as that is known.

    Args:
        source: where it is moved from.
    """

    def __init__(self, end: Spot[Writable], step: Step | None, source: Spot[Writable] | None = None) -> None:
        self._end, self._step, self._source = end, step, source

    def expect(self, folder: Folder[Any], name: str) -> None:
        """Record that it will be what is `name` in `folder` now; in place of what was expected before."""
        step, source = self._step, self._source
        if step is None:
            return
        step.drop()
        place, into = self._end.place, self._end.folder
        if source is None:
            step.record([Intent(place, into, state_of(folder, name, thorough=True))])
            return
        new = state_of(folder, name, thorough=step.is_far(folder))
        if new is not None and new.kind == "folder":
            new = replace(new, kind="tree")
        origin = None if folder is source.folder else state_of(source.folder, source.name, thorough=True)
        step.record([Intent(place, into, new, source=source.place, origin=origin)])


def uri_of(place: Readable) -> str:
    """The URI of a place by the real path of its served folder: how any server of this user finds it."""
    return file_uri(os.path.join(place.root.real, *place.parts))


def _item(intent: Intent, before: State | None, kept: str | None) -> Item:
    source = None if intent.source is None else uri_of(intent.source)
    return Item(uri_of(intent.place), before, intent.after, kept, source, intent.origin, intent.left)


def _keep(folder: Folder[Any], name: str, before: State, into: Folder[Writable], kept: str, stop: Stop) -> None:
    """Keep what is at `name`."""
    found = folder.stat(name)
    if before.kind == "file" and found.st_nlink == 1:
        try:
            folder.add_name(name, into, kept)
        except OSError:  # another file system, or one without such names
            pass
        else:
            return
    if before.kind == "file":
        with open_regular(folder, name) as file:
            fd = into.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
            try:
                copy_blocks(file.fileno(), fd, stop.check)
                copy_attributes(file.fileno(), fd)
            finally:
                os.close(fd)
    elif before.kind == "link":
        into.make_link(folder.read_link(name), kept)
    elif before.kind == "folder":
        into.make_folder(kept, stat.S_IMODE(found.st_mode))
    else:
        raise TooLarge("what was there is not a file, folder or link")
    Belongings().keep(into, kept, found)
