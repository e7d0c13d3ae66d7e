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
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

from mcp_batteries.errors import NotFound, Problem, Refused
from mcp_fs.engine.handles.path_opening import Folder, open_file, open_folder
from mcp_fs.engine.handles.syscalls import write_all
from mcp_fs.engine.handles.temp_files import is_in_use, mark_in_use, remove_quietly
from mcp_fs.engine.journal.entry_state import EntryState
from mcp_fs.policy import Policy, WritablePath

__all__ = ["EntryId", "EntryRecord", "JournalStore", "RecordedChange"]

_MAX_ENTRIES = 1000
# Of a full store this part is made free.
_FREED_SHARE = 16
_CHECK_INTERVAL_SECONDS = 60.0
_DAY_SECONDS = 86_400.0


@dataclass(frozen=True)
class _StorePolicySettings:
    """What the policy of the store needs to be told: everything in it is ours."""

    folders: tuple[str, ...]
    read_only: bool = False
    allow_secrets: tuple[str, ...] = ("*",)
    allow_repository_internals: bool = True


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """One entry that a step changed.

    Attributes:
        uri: where it is, links resolved.
        content_name: the name under which what was there before is kept in the step's folder.
        source: where what is there now was moved from.
        copied_source: what was at `source`, if it was copied from there to be deleted then.
        left_at_source: what came to stand at `source`, if it is to be replaced when this is taken back.
    """

    uri: str
    before: EntryState | None
    after: EntryState | None
    content_name: str | None = None
    source: str | None = None
    copied_source: EntryState | None = None
    left_at_source: EntryState | None = None


@dataclass(frozen=True, slots=True)
class EntryId:
    """A step, as far as its name tells."""

    name: str
    time: float
    size: int
    id: str


@dataclass(frozen=True, slots=True)
class EntryRecord:
    """A step.

    Attributes:
        caller: who called; steps of others are nobody's business.
        is_undo: whether it took back a call of this tool.
    """

    entry_id: EntryId
    tool: str
    caller: str
    is_undo: bool
    changes: Sequence[RecordedChange]


class JournalStore:
    """The steps of all server processes of one user.

    Args:
        folder: the path of the store, which is made when it is first needed.
        most_bytes: of old contents that are kept, all together.
        days: after which they go.
    """

    def __init__(self, folder: str, *, most_bytes: int, days: float) -> None:
        self.most_bytes = most_bytes
        self._folder = folder
        self._max_age_seconds = days * _DAY_SECONDS
        self._opened_path: WritablePath | None = None
        self._checked_at = 0.0
        self._checked_bytes = 0
        self._protected: list[Sequence[EntryId]] = []

    def path_of(self, name: str) -> WritablePath:
        """Return the path of an entry of the store."""
        return self._folder_path() / name

    def _folder_path(self) -> WritablePath:
        """Where the store is.

        Raises:
            Refused: others can look into the folder.
            OSError: it can't be made.
        """
        if self._opened_path is None:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            status = os.lstat(self._folder)
            if sys.platform != "win32" and (status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077):
                raise Refused("The folder for old contents is not private to this user.")
            self._opened_path = Policy(_StorePolicySettings((self._folder,))).writable(".")
        return self._opened_path

    def open_folder(self) -> Folder[WritablePath]:
        """Open the store's folder for listing; one that was removed meanwhile is made anew."""
        try:
            return open_folder(self._folder_path())
        except Problem:
            self._opened_path = None
            return open_folder(self._folder_path())

    def begin_entry(self, top: Folder[WritablePath], size: int) -> tuple[EntryId, int]:
        """Make room for a step and begin to write it down; return it with the open file, which keeps it in use."""
        self.enforce_limits(size)
        moment = time.time_ns()
        token = secrets.token_hex(4)
        entry_id = EntryId(f"{moment:020}-{size}-{token}", moment / 1e9, size, token)
        fd = top.open(
            entry_id.name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600
        )
        mark_in_use(fd)
        return entry_id, fd

    def write_part(self, fd: int, record: EntryRecord, offset: int = 0) -> int:
        """Write down the first part of a step, or its next part from byte `offset` on; return where that ends."""
        items = [
            [
                item.uri,
                *map(_encode_state, (item.before, item.after)),
                item.content_name,
                item.source,
                *map(_encode_state, (item.copied_source, item.left_at_source)),
            ]
            for item in record.changes
        ]
        text = json.dumps({"tool": record.tool, "by": record.caller, "undoes": record.is_undo, "items": items})
        data = f"{text}\n".encode()
        if offset:
            os.ftruncate(fd, offset)
        else:
            self._checked_bytes += record.entry_id.size
        write_all(fd, data)
        return offset + len(data)

    def truncate_part(self, fd: int, offset: int, names: Sequence[str]) -> None:
        """Forget the last part of a step, which was written down from byte `offset` on, with what it keeps."""
        os.ftruncate(fd, offset)
        with self.open_folder() as top:
            for name in names:
                remove_quietly(top, name)

    def list_entries(self) -> list[EntryId]:
        """List all steps, the newest first."""
        with self.open_folder() as top:
            return _sort_names(top.list_names())[0]

    def read_entry(self, entry_id: EntryId) -> EntryRecord:
        """Read what a step did.

        Raises:
            NotFound: it is gone, or not yet there.
            OSError: it can't be read; ValueError, TypeError or KeyError: nor understood.
        """
        with open_file(self.path_of(entry_id.name)) as file:
            text = file.read()
        parts = [json.loads(line) for line in text.split(b"\n")[:-1]]
        if not parts:
            raise NotFound("The step was not written down.")
        header = parts[0]
        changes: list[RecordedChange] = []
        for part in parts:
            changes.extend(_decode_change(*item) for item in part["items"])
        return EntryRecord(entry_id, header["tool"], header["by"], header["undoes"], changes)

    def remove_entry(self, entry_id: EntryId, *, only_idle: bool = False) -> None:
        """Forget a step and what it keeps; with `only_idle`, only if nobody is at work on it."""
        with self.open_folder() as top:
            if not (only_idle and is_in_use(top, entry_id.name)):
                _remove_entry_files(
                    top, entry_id.name, [name for name in top.list_names() if name.startswith(f"{entry_id.name}.")]
                )

    @contextmanager
    def protect(self, entry_ids: Sequence[EntryId]) -> Generator[None]:
        """Forget none of these steps meanwhile, whatever the bounds want."""
        self._protected.append(entry_ids)
        try:
            yield
        finally:
            self._protected.remove(entry_ids)

    def enforce_limits(self, incoming_bytes: int | None = None) -> None:
        """Forget the oldest steps, as far as the bounds want it.

        Args:
            incoming_bytes: those that are to come, if that is why; then nothing is looked at that was just now.
        """
        now = time.time()
        if incoming_bytes is not None and self._has_checked_for(incoming_bytes, now):
            return
        used_bytes = incoming_bytes or 0
        with self.open_folder() as top:
            entry_ids, contents = _sort_names(top.list_names())
            used_bytes = self._remove_due_entries(top, entry_ids, contents, used_bytes, now)
            _remove_orphans(top, contents, now)
        self._checked_at = now
        self._checked_bytes = used_bytes - (incoming_bytes or 0)

    def _remove_due_entries(
        self,
        top: Folder[WritablePath],
        entry_ids: Sequence[EntryId],
        contents: dict[str, list[str]],
        used_bytes: int,
        now: float,
    ) -> int:
        """Remove the entries that are too old or too many; return the bytes that are used then.

        Args:
            contents: by name of an entry what is kept for it; loses what belongs to one of `entry_ids`.
            used_bytes: those that are to come.
        """
        protected_names = {entry_id.name for entry_id in chain.from_iterable(self._protected)}
        max_bytes = self._max_bytes_after_cleaning(used_bytes + sum(entry_id.size for entry_id in entry_ids))
        is_over_limit = False
        for number, entry_id in enumerate(entry_ids):
            content_names = contents.pop(entry_id.name, ())
            is_over_limit = is_over_limit or used_bytes + entry_id.size > max_bytes or number >= _MAX_ENTRIES
            is_due = is_over_limit or now - entry_id.time > self._max_age_seconds
            if is_due and entry_id.name not in protected_names and not is_in_use(top, entry_id.name):
                _remove_entry_files(top, entry_id.name, content_names)
            else:
                used_bytes += entry_id.size
        return used_bytes

    def _has_checked_for(self, incoming_bytes: int, now: float) -> bool:
        """Whether the store was looked at just now, and has room for these bytes."""
        is_recent = now - self._checked_at < _CHECK_INTERVAL_SECONDS
        return is_recent and self._checked_bytes + incoming_bytes <= self.most_bytes

    def _max_bytes_after_cleaning(self, used_bytes: int) -> int:
        """Return how many bytes may stay: of a full store fewer than it may hold.

        Otherwise each step that is recorded from now on would look at the whole store.
        """
        if used_bytes <= self.most_bytes:
            return self.most_bytes
        return self.most_bytes - self.most_bytes // _FREED_SHARE


def _remove_orphans(top: Folder[WritablePath], contents: Mapping[str, Sequence[str]], now: float) -> None:
    """Remove what is kept for entries that are not there, once they are a day old: they were being forgotten."""
    for stem, names in contents.items():
        removed_id = _parse_entry_id(stem)
        if removed_id is not None and now - removed_id.time > _DAY_SECONDS:
            _remove_entry_files(top, stem, names)


def _decode_change(
    uri: str, before: Any, after: Any, content_name: str | None, source: str | None, *states: Any
) -> RecordedChange:
    """Build a change from what was written down; an older version wrote one of the last two states."""
    return RecordedChange(
        uri, _decode_state(before), _decode_state(after), content_name, source, *map(_decode_state, states)
    )


def _sort_names(names: Sequence[str]) -> tuple[list[EntryId], dict[str, list[str]]]:
    """Return the steps among names in the store, the newest first, and by name of a step what is kept for it."""
    contents: dict[str, list[str]] = {}
    entry_ids: list[EntryId] = []
    for name in names:
        stem, dot, _ = name.partition(".")
        if dot:
            contents.setdefault(stem, []).append(name)
        elif (entry_id := _parse_entry_id(name)) is not None:
            entry_ids.append(entry_id)
    return sorted(entry_ids, key=lambda entry_id: entry_id.name, reverse=True), contents


def _remove_entry_files(top: Folder[WritablePath], name: str, contents: Sequence[str]) -> None:
    try:
        top.remove(name)  # a step is there whole or not at all
    except FileNotFoundError:
        pass
    except OSError:  # on Windows somebody is at work on it
        return
    for content_name in contents:
        remove_quietly(top, content_name)


def _encode_state(state: EntryState | None) -> Any:
    if state is None:
        return None
    return state.kind, state.device, state.inode, state.size, state.modified_ns, state.fingerprint


def _decode_state(encoded: Any) -> EntryState | None:
    if encoded is None:
        return None
    return EntryState(*encoded)


def _parse_entry_id(name: str) -> EntryId | None:
    try:
        moment, size, token = name.split("-")
        return EntryId(name, int(moment) / 1e9, int(size), token)
    except ValueError:
        return None
