"""Finds what really changed by digests of what is served; for the worker that follows subscriptions.

The gates stand in the order of their cost: what the file's header and times say of commits (in WAL mode
`data_version`), and then a digest of each thing somebody subscribed to, one at a time.

No commit of another program fails because of a poll. In WAL mode readers hold up nobody. In the rollback-journal modes
they do, so there a poll takes no lock (`connection.lockless_reader`) and what can't be read while somebody writes is
postponed to the next poll. What takes longer than its budget is not read again for a while. What is postponed for too
long may have changed: this is announced once, and then again when that long has passed.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from dataclasses import dataclass, field
from typing import Any

from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database, TableKey
from mcp_sqlite.worker.connection.lockless_reader import (
    BeingWritten,
    LocklessReader,
    RollbackState,
    read_journal_time,
    read_rollback_state,
)
from mcp_sqlite.worker.connection.wal_reader import WalReader, WalState
from mcp_sqlite.worker.language.failure import Failure, is_locked
from mcp_sqlite.worker.query import rows, statements
from mcp_sqlite.worker.schema import definitions, lookup

__all__ = ["poll"]

# What one subject may take.
_SUBJECT_SECONDS = 0.05
# What a poll may take before it returns what it has found, and postpones the others.
_POLL_SECONDS = 0.01
# When to poll again for what can't be read now.
_RETRY_SECONDS = 0.1
# How long a poll waits in all for moments in which nobody writes.
_PATIENCE_SECONDS = 0.25
# How long a subject may be postponed before it counts as changed.
_MAX_POSTPONED_SECONDS = 2.0
# How long a subject that takes too long is not read again, twice as long each time.
_MIN_PAUSE_SECONDS = 0.5
_MAX_PAUSE_SECONDS = 8.0
# A file changed this recently may go on changing without its time telling: clocks of file systems are coarse.
_RECENT_SECONDS = 0.02
# The end of a transaction under way is expected after this share of the time it has lasted already.
_MIN_EARLY_SECONDS = 0.004
_EARLY_SHARE = 0.2
_MAX_EARLY_SECONDS = 1.0
# As `mcp_batteries.subscriptions.journal.ABSENT`, which a worker doesn't import.
_ABSENT = "absent: "
# Among the subjects: the names of all tables. Keys of others are URIs.
_SCHEMA = "schema"


class _TooSlow(Exception):
    """Raised when a subject takes longer than its budget."""


@dataclass
class _Pause:
    """How long a subject is not read, and until when."""

    seconds: float
    until: float


@dataclass
class _Memory:
    """What is remembered of a file between polls.

    Attributes:
        states: subjects, and the file's state when they were read.
        postponed: subjects that were postponed, and since when.
        pauses: subjects that took too long.
        digests: subjects, and what they were when they were read.
        changed: subjects that differed from the poll before, and when: what changes often is read first.
        table_keys: tables looked up, as long as the schema's `layout` is the same.
    """

    states: dict[str, RollbackState | WalState] = field(default_factory=dict[str, "RollbackState | WalState"])
    postponed: dict[str, float] = field(default_factory=dict[str, float])
    pauses: dict[str, _Pause] = field(default_factory=dict[str, _Pause])
    digests: dict[str, str] = field(default_factory=dict[str, str])
    changed: dict[str, float] = field(default_factory=dict[str, float])
    layout: Any = None
    table_keys: dict[str, TableKey] = field(default_factory=dict[str, TableKey])

    def reading_order(self, key: str) -> tuple[float, float]:
        """Return the place of a subject: what was postponed longest comes first, then what changed last."""
        return (self.postponed.get(key, float("inf")), -self.changed.get(key, 0))

    def remember_digest(self, key: str, digest: str, now: float) -> None:
        """Note that a subject was read."""
        self.pauses.pop(key, None)
        self.postponed.pop(key, None)
        if self.digests.get(key) != digest:
            self.digests[key] = digest
            self.changed[key] = now

    def is_paused(self, key: str, now: float) -> bool:
        """Return whether a subject is not read yet, because it took too long before."""
        pause = self.pauses.get(key)
        return pause is not None and now < pause.until

    def pause(self, key: str, now: float) -> None:
        """Note that a subject took too long, unless it is not read yet because of that."""
        pause = self.pauses.get(key)
        if pause is None:
            seconds = _MIN_PAUSE_SECONDS
        elif now >= pause.until:
            seconds = min(2 * pause.seconds, _MAX_PAUSE_SECONDS)
        else:
            return
        self.pauses[key] = _Pause(seconds, time.monotonic() + seconds)


@dataclass
class _Poll:
    """What a poll has found.

    Attributes:
        digests: subjects that were read, or are announced because they could not be for long.
        postponed: the keys of subjects that were not read.
        retry_seconds: when to poll again for these.
    """

    digests: dict[str, str] = field(default_factory=dict[str, str])
    postponed: list[str] = field(default_factory=list[str])
    retry_seconds: float | None = None


_memories: dict[str, _Memory] = {}


def poll(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Return digests of `subjects` (key to request), or None when nothing can have changed since the last poll.

    `schema` is a digest of the tables' names, or None where that was not read. `again` is in how many seconds to poll
    again, for what this poll does not return; None where it returns all. `early` is the same, where somebody writes
    who has not committed yet.
    """
    path = request["path"]
    is_new = request["new"]
    memory = _memories.setdefault(path, _Memory())
    subjects: dict[str, Any] = {_SCHEMA: None, **request["subjects"]}
    try:
        state = read_rollback_state(path)
        if state is None:
            reader = WalReader(connections, path)
            state = reader.read_state()
        else:
            reader = LocklessReader(connections, path, _PATIENCE_SECONDS)
        unread = {key: subject for key, subject in subjects.items() if is_new or memory.states.get(key) != state}
        if not unread:
            early = None if isinstance(reader, WalReader) else _expect_commit(path)
            return {"digests": None, "early": early}
        with reader:
            result = _read_subjects(memory, reader, unread, is_new=is_new)
    except (Failure, sqlite3.Error, OSError) as error:
        if is_locked(error) and not is_new:
            # Nothing was committed by whoever still holds the lock.
            return {"digests": None, "again": _RETRY_SECONDS}
        memory.states.clear()
        mark = f"unreadable {type(error).__name__}"
        return {"digests": dict.fromkeys(request["subjects"], mark), "schema": "unreadable"}
    _remember_poll(memory, result, state, subjects, is_new=is_new)
    schema = result.digests.pop(_SCHEMA, None)
    return {"digests": result.digests, "schema": schema, "again": result.retry_seconds}


def _remember_poll(
    memory: _Memory, result: _Poll, state: RollbackState | WalState, subjects: dict[str, Any], *, is_new: bool
) -> None:
    """Note which subjects were read in this state of the file."""
    if time.time() - state.modified_ns / 1e9 > _RECENT_SECONDS:
        memory.states |= dict.fromkeys(result.digests, state)
    if is_new:
        # Whoever subscribes knows nothing yet: one notice more than needed does no harm.
        result.digests |= dict.fromkeys(result.postponed, f"unknown {time.monotonic()}")
    else:
        for key in list(memory.states):
            if key not in subjects or key in result.postponed:
                del memory.states[key]


def _expect_commit(path: str) -> float | None:
    """Return when to poll for the end of a transaction that is under way: the longer it lasts, the later."""
    started_at = read_journal_time(path)
    if started_at is None:
        return None
    seconds = max(_MIN_EARLY_SECONDS, _EARLY_SHARE * (time.time() - started_at))
    return seconds if seconds < _MAX_EARLY_SECONDS else None


def _read_subjects(
    memory: _Memory, reader: LocklessReader | WalReader, subjects: dict[str, Any], *, is_new: bool
) -> _Poll:
    """Return digests of what could be read."""
    result = _Poll()
    deadline = time.monotonic() + _POLL_SECONDS
    for key in sorted(subjects, key=memory.reading_order):
        now = time.monotonic()
        if now > deadline and result.digests and not is_new:
            # It comes first then, before what changes all the time.
            memory.postponed.setdefault(key, now)
            result.postponed.append(key)
            result.retry_seconds = 0.0
            continue
        digest: str | None = None
        if is_new or not memory.is_paused(key, now):
            digest = _read_subject(memory, reader, key, subjects[key], now)
        if digest is None:
            _postpone(memory, result, key, now)
        else:
            result.digests[key] = digest
            memory.remember_digest(key, digest, now)
    return result


def _postpone(memory: _Memory, result: _Poll, key: str, now: float) -> None:
    """Leave a subject to a later poll; what was left so for long gets another digest, as it may have changed."""
    if now - memory.postponed.setdefault(key, now) > _MAX_POSTPONED_SECONDS:
        memory.postponed.pop(key)
        result.digests[key] = f"unknown {now}"
    if result.retry_seconds is None:
        result.retry_seconds = _RETRY_SECONDS
    result.postponed.append(key)


def _read_subject(
    memory: _Memory, reader: LocklessReader | WalReader, key: str, subject: dict[str, Any] | None, now: float
) -> str | None:
    """Return the digest of a subject; None where it can't be read now, or takes too long."""
    try:
        return reader.read(lambda database: _digest(memory, reader, database, subject))
    except BeingWritten:
        return None
    except _TooSlow:
        memory.pause(key, now)
        return None


def _digest(
    memory: _Memory, reader: LocklessReader | WalReader, database: Database, subject: dict[str, Any] | None
) -> str:
    layout = reader.layout(database)
    if layout != memory.layout:
        memory.layout = layout
        memory.table_keys = {}
    database.table_keys = memory.table_keys
    if subject is None:
        return _digest_schema(database)
    try:
        with reader.connections.interrupt.shorten(_SUBJECT_SECONDS):
            content = _read_content(reader.connections, {**subject, "path": reader.path})
    except Failure as failure:
        return _digest_failure(failure)
    return _digest_content(content)


def _digest_schema(database: Database) -> str:
    if database.visible_schema is not None:
        return _hash(repr(lookup.list_table_names(database)))
    return _hash(repr(database.run_internal("SELECT type, name FROM sqlite_master ORDER BY 1, 2")))


def _digest_failure(failure: Failure) -> str:
    """Return what stands for a content that can't be read.

    Raises:
        _TooSlow, BeingWritten: it is to be read later.
    """
    match failure.kind:
        case "stopped":
            raise _TooSlow from None
        case "locked":
            raise BeingWritten from None
        case "not_found":
            return f"{_ABSENT}{failure.message} {failure.fix}".rstrip()
        case _:
            return _digest_content({"failure": failure.message})


def _digest_content(content: dict[str, Any]) -> str:
    if "lines" in content:
        return _hash(f"{content['columns']}{content['more']}{content['lines']}")
    return _hash(repr(sorted(content.items())))


def _read_content(connections: Connections, subject: dict[str, Any]) -> dict[str, Any]:
    match subject["do"]:
        case "schema":
            return definitions.read_definitions(connections, subject)
        case "row":
            return rows.read_row(connections, subject)
        case "rows":
            return rows.read_rows(connections, subject)
        case _:
            return statements.run_query(connections, subject, lambda _: None)


def _hash(content: str) -> str:
    return hashlib.blake2b(content.encode("utf-8", "replace"), digest_size=12).hexdigest()
