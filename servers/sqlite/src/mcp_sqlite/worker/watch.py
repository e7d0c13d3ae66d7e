"""Finds what really changed by digests of what is served; for the worker that follows subscriptions.

The gates stand in the order of their cost: what the file's header and times say of commits (in WAL mode
`data_version`), and then a digest of each thing somebody subscribed to, one at a time.

No commit of another program fails because of a look. In WAL mode readers hold up nobody. In the rollback-journal modes
they do, so there a look takes no lock (`connection.lockless_reader`) and what can't be read while somebody writes is
left for the next look. What takes longer than its budget is left alone for a while. What is left for too long may have
changed: it is told of once, and then again when that long has passed.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.connection.lockless_reader import (
    BeingWritten,
    LocklessReader,
    read_journal_time,
    read_rollback_state,
)
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.query import rows, statements
from mcp_sqlite.worker.schema import definitions, lookup

__all__ = ["poll"]

_SECONDS = 0.05
"""What one subject may take."""
_LOOK_SECONDS = 0.01
"""What a look may take before it tells what it has found, and leaves the rest for the next."""
_LATER_SECONDS = 0.1
"""When to look again for what can't be read now."""
_QUIET_SECONDS = 0.25
"""How long a look waits in all for moments in which nobody writes."""
_LATE_SECONDS = 2.0
"""How long a subject may be left before it is told that it may have changed."""
_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 8.0
"""How long a subject that takes too long is left alone, twice as long each time."""
_FRESH_SECONDS = 0.02
"""A file changed this recently may go on changing without its time telling: clocks of file systems are coarse."""
_EARLY_SECONDS = 0.004
_EARLY_SHARE = 0.2
_LONGEST_EARLY_SECONDS = 1.0
_ABSENT = "absent: "
"""As `mcp_batteries.subscriptions.journal.ABSENT`, which a worker doesn't import."""
_SCHEMA = "schema"
"""Among the subjects: the names of all tables. Keys of others are URIs."""


class _Slow(Exception):
    """Raised when a subject takes longer than its budget."""


@dataclass
class _Pause:
    seconds: float
    until: float


@dataclass
class _Memory:
    """What is remembered of a file between looks.

    Attributes:
        states: subjects, and the file's state when they were read.
        late: subjects that were left, and since when.
        slow: subjects that took too long.
        changed: subjects that differed from the look before, and when: what changes often is read first.
        names: tables looked up, as long as the schema's `layout` is the same.
    """

    states: dict[str, tuple[Any, ...]] = field(default_factory=dict[str, tuple[Any, ...]])
    late: dict[str, float] = field(default_factory=dict[str, float])
    slow: dict[str, _Pause] = field(default_factory=dict[str, _Pause])
    digests: dict[str, str] = field(default_factory=dict[str, str])
    changed: dict[str, float] = field(default_factory=dict[str, float])
    layout: Any = None
    names: dict[str, tuple[str, list[str]]] = field(default_factory=dict[str, tuple[str, list[str]]])


_memories: dict[str, _Memory] = {}


def poll(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Digests of `subjects` (key to request), or None when nothing can have changed since the last look.

    `schema` is a digest of the tables' names, or None where that was not read. `again` is in how many seconds to look
    again, for what this look does not tell; None where it tells all. `early` is the same, where somebody writes who has
    not committed yet.
    """
    path, new = request["path"], request["new"]
    memory = _memories.setdefault(path, _Memory())
    subjects: dict[str, Any] = {_SCHEMA: None, **request["subjects"]}
    try:
        state = read_rollback_state(path)
        if state is None:
            source = _WalReader(connections, path)
            state = source.state()
        else:
            source = LocklessReader(connections, path, _QUIET_SECONDS)
        wanted = {key: item for key, item in subjects.items() if new or memory.states.get(key) != state}
        if not wanted:
            return {"digests": None, "early": None if isinstance(source, _WalReader) else _soon_after(path)}
        with source:
            found, left, again = _read(memory, source, wanted, new=new)
    except (Failure, sqlite3.Error, OSError) as error:
        locked = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        if locked and not new:
            return {"digests": None, "again": _LATER_SECONDS}  # nothing was committed by whoever still holds the lock
        memory.states.clear()
        mark = f"unreadable {type(error).__name__}"
        return {"digests": dict.fromkeys(request["subjects"], mark), "schema": "unreadable"}
    if time.time() - state[-1] / 1e9 > _FRESH_SECONDS:
        memory.states |= dict.fromkeys(found, state)
    if new:
        # Whoever subscribes knows nothing yet: to be told once more than needed does no harm.
        found |= dict.fromkeys(left, f"unknown {time.monotonic()}")
    else:
        memory.states = {key: read for key, read in memory.states.items() if key in subjects and key not in left}
    names = found.pop(_SCHEMA, None)
    return {"digests": found, "schema": names, "again": again}


def _soon_after(path: str) -> float | None:
    """When to look for the end of a transaction that is under way: the longer it lasts, the later."""
    since = read_journal_time(path)
    seconds = 0.0 if since is None else max(_EARLY_SECONDS, _EARLY_SHARE * (time.time() - since))
    return seconds if 0 < seconds < _LONGEST_EARLY_SECONDS else None


def _read(
    memory: _Memory, source: LocklessReader | _WalReader, subjects: dict[str, Any], *, new: bool
) -> tuple[dict[str, str], list[str], float | None]:
    """Digests of what could be read, the keys of what is left, and when to look for them.

    What was left longest comes first, then what changed last.
    """
    found: dict[str, str] = {}
    left: list[str] = []
    until = time.monotonic() + _LOOK_SECONDS
    again: float | None = None
    for key in sorted(subjects, key=lambda key: (memory.late.get(key, float("inf")), -memory.changed.get(key, 0))):
        now = time.monotonic()
        if now > until and found and not new:
            memory.late.setdefault(key, now)  # it comes first then, before what changes all the time
            left.append(key)
            again = 0.0
            continue
        pause = memory.slow.get(key)
        try:
            if pause is not None and now < pause.until and not new:
                raise _Slow
            found[key] = source.read(lambda database, key=key: _digest(memory, source, database, subjects[key]))
            memory.slow.pop(key, None)
            memory.late.pop(key, None)
            if memory.digests.get(key) != found[key]:
                memory.digests[key], memory.changed[key] = found[key], now
            continue
        except BeingWritten:
            pass
        except _Slow:
            if pause is None or now >= pause.until:
                seconds = _PAUSE_SECONDS if pause is None else min(2 * pause.seconds, _LONGEST_PAUSE_SECONDS)
                memory.slow[key] = _Pause(seconds, time.monotonic() + seconds)
        if now - memory.late.setdefault(key, now) > _LATE_SECONDS:
            memory.late.pop(key)
            found[key] = f"unknown {now}"
        left.append(key)
        again = _LATER_SECONDS if again is None else again
    return found, left, again


def _digest(
    memory: _Memory, source: LocklessReader | _WalReader, database: Database, subject: dict[str, Any] | None
) -> str:
    connections = source.connections
    layout = source.layout(database)
    if layout != memory.layout:
        memory.layout, memory.names = layout, {}
    database.key_columns = memory.names
    if subject is None:
        every = database.run_internal("SELECT type, name FROM sqlite_master ORDER BY 1, 2")
        return _hashed(repr(every if database.visible_schema is None else lookup.list_table_names(database)))
    subject = {**subject, "path": source.path}
    try:
        with connections.interrupt.shorten(_SECONDS):
            match subject["do"]:
                case "schema":
                    found = definitions.read_definitions(connections, subject)
                case "row":
                    found = rows.read_row(connections, subject)
                case "rows":
                    found = rows.read_rows(connections, subject)
                case _:
                    found = statements.run_query(connections, subject, lambda _: None)
    except Failure as failure:
        if failure.kind == "stopped":
            raise _Slow from None
        if failure.kind == "locked":
            raise BeingWritten from None
        if failure.kind == "not_found":
            return f"{_ABSENT}{failure.message} {failure.fix}".rstrip()
        found = {"failure": failure.message}
    shown = (
        repr(sorted(found.items())) if "lines" not in found else f"{found['columns']}{found['more']}{found['lines']}"
    )
    return _hashed(shown)


def _hashed(shown: str) -> str:
    return hashlib.blake2b(shown.encode("utf-8", "replace"), digest_size=12).hexdigest()


class _WalReader:
    """Looks at a database whose readers hold up nobody: a short transaction for each subject."""

    def __init__(self, connections: Connections, path: str) -> None:
        self.connections, self.path = connections, path
        self._database = connections.reader(path)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def state(self) -> tuple[Any, ...]:
        version = self._database.run_internal("PRAGMA data_version")[0][0]
        # The time of the last change stands at the end of every state; here versions tell all.
        return (self._database.number, version, self.layout(self._database), 0)

    def layout(self, database: Database) -> Any:
        """What changes with the schema."""
        return (database.identity, database.run_internal("PRAGMA schema_version")[0][0])

    def read(self, read: Callable[[Database], str]) -> str:
        self._database.run_internal("BEGIN")
        try:
            return read(self._database)
        finally:
            if self._database.connection.in_transaction:
                self._database.run_internal("ROLLBACK")
