"""Where old contents are kept: a private folder of the user, in it one file for each step.

    TIME-BYTES-ID               who did what with which tool, and each entry's state before and after, in one line for
                                each part; what stands after the last line end is being written down, or never was
    TIME-BYTES-ID.0, .1, ...    what was there before: the same files by another name, or copies

A step is real before anything changes. What it cost and how old it is stands in its name, so that keeping within the
bounds means reading one folder. There is no folder for each step: to make and to remove one costs more than all else.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

from mcp_batteries.errors import NotFound, Problem, Refused
from mcp_fs.engine.handles.path_opening import Folder, open_file, open_folder
from mcp_fs.engine.handles.syscalls import write_all
from mcp_fs.engine.handles.temp_files import hold, is_held, remove_quietly
from mcp_fs.engine.journal.states import State
from mcp_fs.policy import Policy, Writable

__all__ = ["Item", "Kept", "Record", "Store"]

_MOST_STEPS = 1000
_SPARE = 16
"""Of a full store this part is made free."""
_LOOK_SECONDS = 60.0
_DAY = 86_400.0


@dataclass(frozen=True)
class _Where:
    """What the policy of the store needs to be told: everything in it is ours."""

    folders: tuple[str, ...]
    read_only: bool = False
    allow_secrets: tuple[str, ...] = ("*",)
    allow_repository_internals: bool = True


@dataclass(frozen=True, slots=True)
class Item:
    """One entry that a step changed.

    Attributes:
        uri: where it is, links resolved.
        kept: the name under which what was there before is kept in the step's folder.
        source: where what is there now was moved from.
        origin: what was at `source`, if it was copied from there to be deleted then.
        left: what came to stand at `source`, if it is to be replaced when this is taken back.
    """

    uri: str
    before: State | None
    after: State | None
    kept: str | None = None
    source: str | None = None
    origin: State | None = None
    left: State | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """A step, as far as its name tells."""

    name: str
    time: float
    size: int
    id: str


@dataclass(frozen=True, slots=True)
class Record:
    """A step.

    Attributes:
        by: who called; steps of others are nobody's business.
        undoes: whether it took back a call of this tool.
    """

    kept: Kept
    tool: str
    by: str
    undoes: bool
    items: Sequence[Item]


class Store:
    """The steps of all server processes of one user.

    Args:
        where: the folder, which is made when it is first needed.
        most_bytes: of old contents that are kept, all together.
        days: after which they go.
    """

    def __init__(self, where: str, *, most_bytes: int, days: float) -> None:
        self.most_bytes = most_bytes
        self._where, self._age = where, days * _DAY
        self._opened: Writable | None = None
        self._seen_at, self._seen_bytes = 0.0, 0
        self._spared: list[Sequence[Kept]] = []

    def place(self, name: str) -> Writable:
        """The place of an entry of the store."""
        return self._top() / name

    def _top(self) -> Writable:
        """Where the store is.

        Raises:
            Refused: others can look into the folder.
            OSError: it can't be made.
        """
        if self._opened is None:
            os.makedirs(self._where, mode=0o700, exist_ok=True)
            found = os.lstat(self._where)
            if sys.platform != "win32" and (found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077):
                raise Refused("The folder for old contents is not private to this user.")
            self._opened = Policy(_Where((self._where,))).writable(".")
        return self._opened

    def top(self) -> Folder[Writable]:
        """The store's folder, open for listing; one that was removed meanwhile is made anew."""
        try:
            return open_folder(self._top())
        except Problem:
            self._opened = None
            return open_folder(self._top())

    def begin(self, top: Folder[Writable], size: int) -> tuple[Kept, int]:
        """Make room for a step and begin to write it down; with the file, which keeps it as long as it is open."""
        self.tidy(size)
        moment, mark = time.time_ns(), secrets.token_hex(4)
        kept = Kept(f"{moment:020}-{size}-{mark}", moment / 1e9, size, mark)
        fd = top.open(kept.name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        hold(fd)
        return kept, fd

    def finish(self, fd: int, record: Record, at: int = 0) -> int:
        """Make what was begun a step, or write down its next part from byte `at` on; where that ends."""
        items = [
            [
                item.uri,
                *map(_told, (item.before, item.after)),
                item.kept,
                item.source,
                *map(_told, (item.origin, item.left)),
            ]
            for item in record.items
        ]
        text = json.dumps({"tool": record.tool, "by": record.by, "undoes": record.undoes, "items": items})
        data = f"{text}\n".encode()
        if at:
            os.ftruncate(fd, at)
        else:
            self._seen_bytes += record.kept.size
        write_all(fd, data)
        return at + len(data)

    def cut(self, fd: int, at: int, names: Sequence[str]) -> None:
        """Forget the last part of a step, which was written down from byte `at` on, with what it keeps."""
        os.ftruncate(fd, at)
        with self.top() as top:
            for name in names:
                remove_quietly(top, name)

    def steps(self) -> list[Kept]:
        """All steps, the newest first."""
        with self.top() as top:
            return _sorted(top.names())[0]

    def read(self, kept: Kept) -> Record:
        """What a step did.

        Raises:
            NotFound: it is gone, or not yet there.
            OSError: it can't be read; ValueError, TypeError or KeyError: nor understood.
        """
        with open_file(self.place(kept.name)) as file:
            text = file.read()
        parts = [json.loads(line) for line in text.split(b"\n")[:-1]]
        if not parts:
            raise NotFound("The step was not written down.")
        told = parts[0]
        items = [
            # An older version wrote down one of the last two.
            Item(uri, _state(before), _state(after), name, source, *map(_state, states))
            for uri, before, after, name, source, *states in chain.from_iterable(part["items"] for part in parts)
        ]
        return Record(kept, told["tool"], told["by"], told["undoes"], items)

    def remove(self, kept: Kept, *, idle: bool = False) -> None:
        """Forget a step and what it keeps; with `idle`, only if nobody is at work on it."""
        with self.top() as top:
            if not (idle and is_held(top, kept.name)):
                _forget(top, kept.name, [name for name in top.names() if name.startswith(f"{kept.name}.")])

    @contextmanager
    def sparing(self, steps: Sequence[Kept]) -> Generator[None]:
        """Forget none of these steps meanwhile, whatever the bounds want."""
        self._spared.append(steps)
        try:
            yield
        finally:
            self._spared.remove(steps)

    def tidy(self, more: int | None = None) -> None:
        """Forget the oldest steps, as far as the bounds want it.

        Args:
            more: bytes that are to come, if that is why; then nothing is looked at that was just now.
        """
        now, left = time.time(), more or 0
        if more is not None and now - self._seen_at < _LOOK_SECONDS and self._seen_bytes + more <= self.most_bytes:
            return
        with self.top() as top:
            too_much, spared = False, {kept.name for steps in self._spared for kept in steps}
            steps, contents = _sorted(top.names())
            # More is forgotten than must be, or each step that is recorded from now on would look at the whole store.
            is_full = left + sum(kept.size for kept in steps) > self.most_bytes
            most = self.most_bytes - self.most_bytes // _SPARE * is_full
            for number, kept in enumerate(steps):
                too_much = too_much or left + kept.size > most or number >= _MOST_STEPS
                is_due = (too_much or now - kept.time > self._age) and kept.name not in spared
                kept_for_it = contents.pop(kept.name, ())
                if is_due and not is_held(top, kept.name):
                    _forget(top, kept.name, kept_for_it)
                else:
                    left += kept.size
            for stem, names in contents.items():  # of steps that were being forgotten
                if (gone := _kept(stem)) is not None and now - gone.time > _DAY:
                    _forget(top, stem, names)
        self._seen_at, self._seen_bytes = now, left - (more or 0)


def _sorted(names: Sequence[str]) -> tuple[list[Kept], dict[str, list[str]]]:
    """The steps among names in the store, the newest first, and by name of a step what is kept for it."""
    contents: dict[str, list[str]] = {}
    steps: list[Kept] = []
    for name in names:
        stem, dot, _ = name.partition(".")
        if dot:
            contents.setdefault(stem, []).append(name)
        elif (kept := _kept(name)) is not None:
            steps.append(kept)
    return sorted(steps, key=lambda kept: kept.name, reverse=True), contents


def _forget(top: Folder[Writable], name: str, contents: Sequence[str]) -> None:
    try:
        top.remove(name)  # a step is there whole or not at all
    except FileNotFoundError:
        pass
    except OSError:  # on Windows somebody is at work on it
        return
    for kept in contents:
        remove_quietly(top, kept)


def _told(state: State | None) -> Any:
    if state is None:
        return None
    return state.kind, state.device, state.number, state.size, state.changed, state.text


def _state(told: Any) -> State | None:
    return None if told is None else State(*told)


def _kept(name: str) -> Kept | None:
    try:
        moment, size, mark = name.split("-")
        return Kept(name, int(moment) / 1e9, int(size), mark)
    except ValueError:
        return None
