"""Changes as lists of operations, and `apply`, the one way in which they happen.

An operation is one change of one name. Whoever makes it has done before all that can fail by itself: it has read and
checked, and has written new contents beside the name. What is left is a rename, or little more. Undoing a step is to
apply the inverse of each of its operations, the last first (`engine/undo`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from mcp_batteries.errors import Problem, Unavailable, describe_os_error, quote
from mcp_fs.engine.handles.path_opening import Folder, ResolvedPath
from mcp_fs.engine.journal.entry_state import EntryState
from mcp_fs.policy import ReadablePath, WritablePath

__all__ = ["Journal", "NotDurable", "Operation", "PlannedChange", "apply", "fsync_folder"]


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What is about to happen to one entry.

    Attributes:
        path: of the entry, links resolved.
        folder: the open folder it is in; None while there is none, nor anything to keep.
        before: what is there, if that is not to be looked at but to be made again by itself.
        source: where what will be there is moved from.
        copied_source: what is there, if it is copied first and deleted then.
        left_at_source: what will then be at the source.
        fd: the file that is there, open for reading, if it is.
        handover_bytes: the bytes of what is there, if the caller moves it to the path that `record` returns; else it
            is kept by another name, or copied.
    """

    path: ReadablePath
    folder: Folder[Any] | None
    after: EntryState | None
    before: EntryState | None = None
    source: ReadablePath | None = None
    copied_source: EntryState | None = None
    left_at_source: EntryState | None = None
    fd: int | None = None
    handover_bytes: int | None = None


class Journal(Protocol):
    """What operations are recorded in, an entry of the journal."""

    def record(
        self, planned_changes: Sequence[PlannedChange], *, leads: bool = False
    ) -> Mapping[ReadablePath, WritablePath]:
        """Write down what is about to happen; return by path of an entry where what is there is to be moved."""
        ...

    def withdraw(self) -> None:
        """Forget what was recorded last, since nothing of it happened."""
        ...

    def is_on_other_disk(self, folder: Folder[Any]) -> bool:
        """Whether what is in `folder` would have to be copied to be kept, and comes back as another file."""
        ...


@dataclass(eq=False)
class Operation:
    """One change of one name, which is ready to happen.

    Attributes:
        resolved: the name.
        display_path: how the caller knows it, for messages.
        verb: what will have been done to it, for messages.
        is_done: whether it has happened and was not taken back.
        backup: the name in its folder of the old contents, while they are kept to take it back.
    """

    resolved: ResolvedPath[WritablePath]
    display_path: ReadablePath
    verb: str = field(default="changed", kw_only=True)
    is_done: bool = field(default=False, init=False)
    backup: str | None = field(default=None, init=False)

    @property
    def folder(self) -> Folder[WritablePath]:
        return self.resolved.folder

    @property
    def name(self) -> str:
        return self.resolved.name

    @property
    def changed_folders(self) -> Sequence[Folder[WritablePath]]:
        """The folders whose entries it changes, in the order in which they are made durable."""
        return [self.folder]

    def plan_changes(self, journal_entry: Journal) -> Sequence[PlannedChange]:
        """Return what it will do, for the journal."""
        raise NotImplementedError

    def flush(self) -> None:
        """Make durable what it puts in place, if it is not yet."""

    def check_unchanged(self) -> None:
        """Check that what is there is still what it was made for, where that matters.

        Raises:
            Conflict: it is not.
        """

    def keep_backup(self) -> None:
        """Keep what `take_back` needs, if it can be taken back."""

    def apply(self, content_path: WritablePath | None) -> None:
        """Make the change alone, which nobody has written down or makes durable here.

        Args:
            content_path: where the journal wants what goes; None where it does not.

        Raises:
            Problem: it could not be made.
            OSError: the same, where only the caller can say it in words.
        """
        raise NotImplementedError

    def take_back(self) -> None:
        """Bring back what was there, if it can be taken back.

        Raises:
            OSError: that failed; `backup_note` says where the old contents are.
        """

    @property
    def backup_note(self) -> str:
        """Where the old contents are that it could not bring back, in words."""
        return ""


def apply(
    operations: Sequence[Operation],
    journal_entry: Journal | None,
    *,
    leads: bool = False,
    one_by_one: bool = False,
) -> None:
    """Make all operations in order, which is one step of the journal, then make them durable.

    After a failure those before are taken back that can be; `is_done` tells of each whether it has happened.

    Args:
        leads: whether what is applied next is one step of the journal with it.
        one_by_one: whether each is made durable and its folders are closed before the next, which may remove them:
            Windows removes no folder that is open.

    Raises:
        NotDurable: all have happened, or one by one all up to the one that it names, and only the disk does not confirm
            it.
        Unavailable: one failed, and one before it could not be taken back.
        Problem, OSError: the first that could not be made.
    """
    if not operations:
        return
    content_paths: Mapping[ReadablePath, WritablePath] = {}
    if journal_entry is not None:
        planned_changes: list[PlannedChange] = []
        for operation in operations:
            planned_changes.extend(operation.plan_changes(journal_entry))
        content_paths = journal_entry.record(planned_changes, leads=leads)
    try:
        for operation in operations:
            operation.flush()
        for operation in operations:
            operation.check_unchanged()
    except Problem:
        if journal_entry is not None:
            journal_entry.withdraw()
        raise
    _make_all(operations, content_paths, one_by_one)
    if not one_by_one:
        _fsync_folders(operations)


def _make_all(
    operations: Sequence[Operation], content_paths: Mapping[ReadablePath, WritablePath], one_by_one: bool
) -> None:
    try:
        for operation in operations:
            if len(operations) > 1:
                operation.keep_backup()
            operation.apply(content_paths.get(operation.resolved.path))
            operation.is_done = True
            if one_by_one:
                _fsync_folders([operation])
                _close_folders(operation)
    except Exception:
        _take_back(operations)
        _remove_backups(operations)
        raise
    _remove_backups(operations)


def _take_back(operations: Sequence[Operation]) -> None:
    """Take back, the last first, what has happened.

    Raises:
        Unavailable: not all of it could be; the backups, which are the only copies, stay.
    """
    failures: list[str] = []
    for operation in reversed(operations):
        if not operation.is_done:
            continue
        try:
            operation.take_back()
        except OSError:
            failures.append(quote(operation.display_path.display) + operation.backup_note)
    if failures:
        raise Unavailable(
            f"The change failed half-way and could not be taken back in {', '.join(failures)}.",
            "Read these files first; the old contents stay until somebody moves or deletes them.",
        )


def _remove_backups(operations: Sequence[Operation]) -> None:
    for operation in operations:
        if operation.backup is not None:
            with suppress(OSError):
                operation.folder.remove(operation.backup)


def _fsync_folders(operations: Sequence[Operation]) -> None:
    """Make durable each folder in which something has changed, once."""
    changed_folders: dict[WritablePath, tuple[Folder[WritablePath], Operation]] = {}
    for operation in operations:
        for folder in operation.changed_folders:
            changed_folders[folder.path] = folder, operation
    for folder, operation in changed_folders.values():
        fsync_folder(folder, operation.display_path, operation.verb)


def _close_folders(operation: Operation) -> None:
    for folder in operation.changed_folders:
        folder.close()


class NotDurable(Unavailable):
    """Raised when all is done, and only the disk does not confirm it."""


def fsync_folder(folder: Folder[Any], display_path: ReadablePath, verb: str) -> None:
    """Make the entries of a folder durable after a change.

    Args:
        verb: what was done to `display_path`, for the message.

    Raises:
        NotDurable: the disk does not confirm it.
    """
    try:
        folder.sync()
    except OSError as error:
        raise NotDurable(
            f"{quote(display_path.display)} was {verb}, but the disk does not confirm it: {describe_os_error(error)}.",
            "Look at what is there now; a power failure may bring the old state back.",
        ) from error
