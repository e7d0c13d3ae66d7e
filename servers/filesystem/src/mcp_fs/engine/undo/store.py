"""Where old contents are kept: a private folder of the user, one folder in it for each step.

    TIME-BYTES-ID/step.json   who did what with which tool, and each entry's state before and after
    TIME-BYTES-ID/0, 1, ...   what was there before: the same files by another name, or copies
    new-*                     a step that is being written down; it becomes real by being renamed

A step is real before anything changes. What it cost and how old it is stands in its name, so that keeping within the
bounds means reading one folder.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from typing import Any

from mcp_batteries.errors import Problem, Refused
from mcp_fs.engine.files.handles import Folder, open_folder, open_regular
from mcp_fs.engine.files.syscalls import write_all
from mcp_fs.engine.files.temp_files import is_held, remove_quietly
from mcp_fs.engine.undo.states import State
from mcp_fs.policy import Policy, Writable

__all__ = ["Item", "Kept", "Record", "Store"]

_STEP = "step.json"
_NEW = "new-"
_MOST_STEPS = 1000
_LOOK_SECONDS = 60.0
_DAY = 86_400.0


@dataclass(frozen=True)
class _Where:
    """What the policy of the store needs to be told: everything in it is ours."""

    folders: tuple[str, ...]
    read_only: bool = False
    allow_secrets: tuple[str, ...] = ("*",)


@dataclass(frozen=True, slots=True)
class Item:
    """One entry that a step changed.

    Attributes:
        uri: where it is, links resolved.
        kept: the name under which what was there before is kept in the step's folder.
        source: where what is there now was moved from.
        origin: what was at `source`, if it was copied from there to be deleted then.
    """

    uri: str
    before: State | None
    after: State | None
    kept: str | None = None
    source: str | None = None
    origin: State | None = None


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
        self._opened: Policy | None = None
        self._seen_at, self._seen_bytes = 0.0, 0
        self._spared: list[Sequence[Kept]] = []

    def place(self, path: str = ".") -> Writable:
        """A place in the store.

        Raises:
            Refused: others can look into the folder.
            OSError: it can't be made.
        """
        if self._opened is None:
            os.makedirs(self._where, mode=0o700, exist_ok=True)
            found = os.lstat(self._where)
            if sys.platform != "win32" and (found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077):
                raise Refused("The folder for old contents is not private to this user.")
            self._opened = Policy(_Where((self._where,)))
        return self._opened.writable(path)

    def top(self) -> Folder[Writable]:
        """The store's folder, open for listing; one that was removed meanwhile is made anew."""
        try:
            return open_folder(self.place())
        except Problem:
            self._opened = None
            return open_folder(self.place())

    def draft(self, top: Folder[Writable]) -> str:
        """Make a folder for a step that is being written down; its name."""
        name = f"{_NEW}{secrets.token_hex(8)}"
        top.make_folder(name, 0o700)
        return name

    def publish(self, top: Folder[Writable], draft: Folder[Writable], record: Record) -> Kept:
        """Make a draft a step; on Windows that closes it. The record's `kept` tells no more than the size."""
        items = [
            [item.uri, _told(item.before), _told(item.after), item.kept, item.source, _told(item.origin)]
            for item in record.items
        ]
        text = json.dumps({"tool": record.tool, "by": record.by, "undoes": record.undoes, "items": items})
        fd = draft.open(_STEP, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        try:
            write_all(fd, text.encode())
        finally:
            os.close(fd)
        self.tidy(record.kept.size)
        moment, size, mark = time.time_ns(), record.kept.size, secrets.token_hex(4)
        kept = Kept(f"{moment:020}-{size}-{mark}", moment / 1e9, size, mark)
        if sys.platform == "win32":
            draft.close()  # what is open can't be renamed
        top.rename_new(record.kept.name, top, kept.name)
        self._seen_bytes += size
        return kept

    def steps(self) -> list[Kept]:
        """All steps, the newest first."""
        with self.top() as top:
            found = [kept for name in top.names() if (kept := _kept(name)) is not None]
        return sorted(found, key=lambda kept: kept.name, reverse=True)

    def read(self, kept: Kept) -> Record:
        """What a step did.

        Raises:
            NotFound: it is gone.
            OSError: it can't be read; ValueError, TypeError or KeyError: nor understood.
        """
        with open_folder(self.place(kept.name)) as folder, open_regular(folder, _STEP) as file:
            told = json.loads(file.read())
        items = [
            Item(uri, _state(before), _state(after), name, source, _state(origin))
            for uri, before, after, name, source, origin in told["items"]
        ]
        return Record(kept, told["tool"], told["by"], told["undoes"], items)

    def remove(self, kept: Kept, *, idle: bool = False) -> None:
        """Forget a step and what it keeps; with `idle`, only if nobody is at work on it."""
        with self.top() as top:
            if not (idle and is_held(top, kept.name)):
                _forget(top, kept.name)

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
            for number, kept in enumerate(self.steps()):
                too_much = too_much or left + kept.size > self.most_bytes or number >= _MOST_STEPS
                is_due = (too_much or now - kept.time > self._age) and kept.name not in spared
                if is_due and not is_held(top, kept.name):
                    _forget(top, kept.name)
                else:
                    left += kept.size
            for name in top.names():
                if name.startswith(_NEW) and now - top.stat(name).st_mtime > _DAY and not is_held(top, name):
                    remove_quietly(top, name)
        self._seen_at, self._seen_bytes = now, left - (more or 0)


def _forget(top: Folder[Writable], name: str) -> None:
    doomed = f"{_NEW}{secrets.token_hex(8)}"
    with suppress(OSError):
        top.rename_new(name, top, doomed)  # a step is there whole or not at all
        remove_quietly(top, doomed)


def _told(state: State | None) -> Any:
    return None if state is None else astuple(state)


def _state(told: Any) -> State | None:
    return None if told is None else State(*told)


def _kept(name: str) -> Kept | None:
    try:
        moment, size, mark = name.split("-")
        return Kept(name, int(moment) / 1e9, int(size), mark)
    except ValueError:
        return None
