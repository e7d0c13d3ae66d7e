"""Records what one call changes, before each change, together with the old contents.

Old contents are the same file by another name where that costs nothing and nobody can write to it by a third; else a
copy, which shares its blocks with the original where the file system can. Nothing here stops a change: what can't be
kept is said in the answer.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any, Protocol, Self, TypeVar

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import NotFound, Problem, TooLarge, describe_os_error
from mcp_batteries.server.declaration.call_origin import CallOrigin
from mcp_fs.engine.handles.metadata import MetadataCopier
from mcp_fs.engine.handles.path_opening import Folder, open_regular, resolve
from mcp_fs.engine.handles.syscalls import copy_attributes, copy_blocks
from mcp_fs.engine.journal.entry_state import EntryState
from mcp_fs.engine.journal.operations import PlannedChange
from mcp_fs.engine.journal.states import is_unchanged, read_state
from mcp_fs.engine.journal.store import EntryId, EntryRecord, JournalStore, RecordedChange
from mcp_fs.models import BatchResult, EditResult, MoveResult, ReplaceResult, WriteResult
from mcp_fs.paths import file_uri
from mcp_fs.policy import ReadablePath, WritablePath

__all__ = ["Change", "ChangeRecorder", "JournalEntry", "real_uri_of"]

_Result = TypeVar("_Result", bound=EditResult | MoveResult | BatchResult | ReplaceResult | WriteResult)
_Result_co = TypeVar("_Result_co", covariant=True)


class Change(Protocol[_Result_co]):
    """Changes something, and tells each step to the entry, if there is one, before it happens."""

    def __call__(self, *, cancel: CancelToken, journal_entry: JournalEntry | None) -> _Result_co: ...


class ChangeRecorder:
    """Gives each call an entry of the journal.

    Args:
        store: where old contents are kept; None keeps nothing.
    """

    def __init__(self, store: JournalStore | None = None) -> None:
        self._store = store

    def record(self, origin: CallOrigin, cancel: CancelToken, change: Change[_Result]) -> _Result:
        """Run a change with what was there before kept; the result says what can't be taken back."""
        if self._store is None:
            return change(cancel=cancel, journal_entry=None)
        with JournalEntry(self._store, origin, cancel) as journal_entry:
            result = change(cancel=cancel, journal_entry=journal_entry)
        if not journal_entry.notes:
            return result
        return replace(result, notes=[*result.notes, *journal_entry.notes])


class JournalEntry:
    """What one call changes, a context manager; as long as it is open nobody forgets it.

    Args:
        undone_tool: the tool whose call is being taken back; None where none is.
    """

    def __init__(
        self, store: JournalStore, origin: CallOrigin, cancel: CancelToken, undone_tool: str | None = None
    ) -> None:
        self._store = store
        self._origin = origin
        self._cancel = cancel
        self._undone_tool = undone_tool
        self._stack = ExitStack()
        self._entry_id: EntryId | None = None
        self._entry_fd = -1
        self._planned_changes: Sequence[PlannedChange] = ()
        self._recorded_changes: Sequence[RecordedChange] = ()
        self._leading_changes: Sequence[PlannedChange] = ()
        self._part_label = "this"
        self._is_disabled = False
        # Bytes that are kept room for, that this part and those after it may keep, and that this one does.
        self._reserved_bytes = self._remaining_bytes = self._part_bytes = 0
        # Where this part stands in what is written down, and how many entries the parts before it have.
        self._part_offset = self._end_offset = self._earlier_change_count = 0
        # What can't be taken back, and why, for the answer.
        self.notes: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        is_idle = failure is not None and self._entry_id is not None and not self.has_received()
        if is_idle and all(map(_has_not_happened, self._planned_changes, self._recorded_changes)):
            self.withdraw()  # or else it would be one more name of a file, and a step that nobody made
        self._stack.close()

    def is_on_other_disk(self, folder: Folder[Any]) -> bool:
        """Whether what is in `folder` would have to be copied, and comes back as another file."""
        try:
            with self._store.open_folder() as top:
                return top.stat(".").st_dev != folder.stat(".").st_dev
        except (OSError, Problem):
            return True

    def record(
        self, planned_changes: Sequence[PlannedChange], *, leads: bool = False
    ) -> Mapping[ReadablePath, WritablePath]:
        """Write down what is about to happen, which is one step; what this part has recorded before is not.

        Args:
            leads: whether it happens first, and what is recorded next is one step with it.

        Returns:
            By path of an entry that is handed over the path to which the caller moves what is there.
        """
        if self._recorded_changes:
            self.drop()
        planned_changes = [*self._leading_changes, *planned_changes]
        if leads:
            self._leading_changes = planned_changes
        if self._is_disabled:
            return {}
        try:
            return self._record(planned_changes)
        except (OSError, Problem) as failure:
            self._note_failure(failure)
            return {}

    def reserve_bytes(self, size: int) -> None:
        """Tell how many bytes all parts keep together; too many are not kept, which the answer says."""
        self._reserved_bytes = size
        if size > self._store.most_bytes:
            with suppress(OSError, Problem):
                self.drop()
            self._is_disabled = True
            self._note_failure(self._too_large(size))

    def start_part(self, label: str) -> None:
        """Begin another part of the same step; what was recorded before has happened, and stays recorded.

        Args:
            label: what happens then, in words.
        """
        self._part_label = label
        # What happened first alone is one part with what comes now.
        if len(self._recorded_changes) > len(self._leading_changes):
            self._remaining_bytes -= self._part_bytes
            self._part_offset = self._end_offset
            self._earlier_change_count += len(self._recorded_changes)
            self._planned_changes = self._recorded_changes = self._leading_changes = ()

    def has_received(self, content_path: ReadablePath | None = None) -> bool:
        """Whether what was handed over is kept, be it a part of it.

        Args:
            content_path: where one of the entries was to be kept; None asks for any of them.
        """
        entry_id = self._entry_id
        if entry_id is None:
            return False
        content_names = [
            self._content_name(entry_id, number)
            for number, planned in enumerate(self._planned_changes)
            if planned.handover_bytes is not None
        ]
        if content_names and content_path is not None:
            content_names = [content_path.name]
        with suppress(OSError, Problem):
            return self._has_any(content_names)
        return False

    def _has_any(self, content_names: Sequence[str]) -> bool:
        if not content_names:
            return False
        with self._store.open_folder() as top:
            return any(read_state(top, name) is not None for name in content_names)

    def note_not_kept(self, path: ReadablePath, failure: OSError | Problem) -> None:
        """Say that what was to be handed over is not kept, though it goes; of several the others are."""
        if len(self._planned_changes) == 1:
            self.drop(failure)
        else:
            self._note_failure(failure, f"the deletion of {path.display}")

    def withdraw(self) -> None:
        """`drop` what was recorded last, since nothing of it happened; what failed before is what the answer tells."""
        with suppress(OSError, Problem):
            self.drop()

    def drop(self, failure: OSError | Problem | None = None) -> None:
        """Forget what was recorded last, which is not what happens; with a failure, say that nothing can be kept."""
        if not self._part_offset:
            self._stack.close()
            if self._entry_id is not None:
                self._store.remove_entry(self._entry_id)
                self._entry_id = None
        elif self._entry_id is not None and self._recorded_changes:
            names = [self._content_name(self._entry_id, number) for number in range(len(self._recorded_changes))]
            self._store.truncate_part(self._entry_fd, self._part_offset, names)
        self._planned_changes = self._recorded_changes = ()
        if failure is not None:
            self._note_failure(failure)

    def _note_failure(self, failure: OSError | Problem, label: str | None = None) -> None:
        cause = describe_os_error(failure) if isinstance(failure, OSError) else failure.failure.rstrip(".")
        self.notes.append(f"undo_changes can't take {label or self._part_label} back: {cause}")

    def _too_large(self, size: int) -> TooLarge:
        return TooLarge(f"{size:,} bytes are more than the operator lets it keep")

    def _content_name(self, entry_id: EntryId, number: int) -> str:
        """Return the name of what is kept of an entry of this part."""
        return f"{entry_id.name}.{self._earlier_change_count + number}"

    def _record(self, planned_changes: Sequence[PlannedChange]) -> Mapping[ReadablePath, WritablePath]:
        old_states = [self._read_old_state(planned) for planned in planned_changes]
        size = sum(bytes_kept for _, bytes_kept in old_states)
        self._refuse_too_large(size)
        with ExitStack() as stack:
            top = stack.enter_context(self._store.open_folder())
            entry_id, fd = self._open_part(top, size, stack)
            try:
                recorded_changes: list[RecordedChange] = []
                for number, (planned, (before, _)) in enumerate(zip(planned_changes, old_states, strict=True)):
                    content_name = self._keep_old_contents(planned, before, top, entry_id, number)
                    recorded_changes.append(_to_recorded_change(planned, before, content_name))
                self._end_offset = self._write_part(fd, entry_id, recorded_changes)
            except BaseException:
                stack.close()
                self._discard_part(fd, entry_id, len(old_states))
                raise
            self._entry_id = entry_id
            self._entry_fd = fd
            self._planned_changes = planned_changes
            self._recorded_changes = recorded_changes
            self._part_bytes = size
            if not self._part_offset:
                self._stack.push(stack.pop_all())
        handover_paths: dict[ReadablePath, WritablePath] = {}
        for number, planned in enumerate(planned_changes):
            if planned.handover_bytes is not None:
                handover_paths[planned.path] = self._store.path_of(self._content_name(entry_id, number))
        return handover_paths

    def _refuse_too_large(self, size: int) -> None:
        """Raise TooLarge if this part would keep more bytes than it may."""
        most_bytes = self._remaining_bytes if self._part_offset else self._store.most_bytes
        if size > most_bytes:
            raise self._too_large(size)

    def _open_part(self, top: Folder[WritablePath], size: int, stack: ExitStack) -> tuple[EntryId, int]:
        """Return the entry and its open file, which is new for the first part and open until `stack` ends."""
        if self._part_offset and self._entry_id is not None:
            return self._entry_id, self._entry_fd
        self._remaining_bytes = max(self._reserved_bytes, size)
        entry_id, fd = self._store.begin_entry(top, self._remaining_bytes)
        stack.callback(os.close, fd)
        return entry_id, fd

    def _keep_old_contents(
        self,
        planned: PlannedChange,
        before: EntryState | None,
        top: Folder[WritablePath],
        entry_id: EntryId,
        number: int,
    ) -> str | None:
        """Keep what is there, unless the caller hands it over; return the name within the entry, None for nothing."""
        if before is None or planned.folder is None or planned.before is not None:
            return None
        if planned.handover_bytes is None:
            self._cancel.check()
            content_name = self._content_name(entry_id, number)
            _keep_contents(planned.folder, planned.path.name, before, top, content_name, self._cancel)
        return str(self._earlier_change_count + number)

    def _write_part(self, fd: int, entry_id: EntryId, recorded_changes: Sequence[RecordedChange]) -> int:
        """Write down the changes of this part; return the offset of its end."""
        origin = self._origin
        is_undo = self._undone_tool is not None
        record = EntryRecord(entry_id, self._undone_tool or origin.tool, origin.caller, is_undo, recorded_changes)
        return self._store.write_part(fd, record, self._part_offset)

    def _discard_part(self, fd: int, entry_id: EntryId, change_count: int) -> None:
        """Remove what was kept and written down of this part, and with the first part the entry."""
        if not self._part_offset:
            self._store.remove_entry(entry_id)
            return
        content_names = [self._content_name(entry_id, number) for number in range(change_count)]
        self._store.truncate_part(fd, self._part_offset, content_names)

    def _read_old_state(self, intent: PlannedChange) -> tuple[EntryState | None, int]:
        """Read what is there, and how many bytes it takes to keep it."""
        if intent.before is not None or intent.folder is None:
            return intent.before, 0
        self._cancel.check()
        # What is copied to another disk is copied back, and comes as another file.
        thorough = intent.handover_bytes is None or self.is_on_other_disk(intent.folder)
        before = read_state(intent.folder, intent.path.name, thorough=thorough, fd=intent.fd)
        if before is None:
            return None, 0
        return before, before.size if intent.handover_bytes is None else intent.handover_bytes


def _has_not_happened(planned: PlannedChange, recorded: RecordedChange) -> bool:
    try:
        with resolve(planned.path, follow=False) as resolved:
            return is_unchanged(resolved.folder, resolved.name, recorded.before)
    except NotFound:
        return recorded.before is None
    except Problem:
        return False


def real_uri_of(path: ReadablePath) -> str:
    """Return the URI of a path by the real path of its served folder: how any server of this user finds it."""
    return file_uri(os.path.join(path.root.real_path, *path.parts))


def _to_recorded_change(planned: PlannedChange, before: EntryState | None, content_name: str | None) -> RecordedChange:
    source = None if planned.source is None else real_uri_of(planned.source)
    return RecordedChange(
        real_uri_of(planned.path),
        before,
        planned.after,
        content_name,
        source,
        planned.copied_source,
        planned.left_at_source,
    )


def _keep_contents(
    folder: Folder[Any],
    name: str,
    before: EntryState,
    store_folder: Folder[WritablePath],
    content_name: str,
    cancel: CancelToken,
) -> None:
    """Keep what is at `name`."""
    status = folder.stat(name)
    if before.kind == "file" and status.st_nlink == 1:
        try:
            folder.add_name(name, store_folder, content_name)
        except OSError:  # another file system, or one without such names
            pass
        else:
            return
    if before.kind == "file":
        with open_regular(folder, name) as file:
            fd = store_folder.open(
                content_name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600
            )
            try:
                copy_blocks(file.fileno(), fd, cancel.check)
                copy_attributes(file.fileno(), fd)
            finally:
                os.close(fd)
    elif before.kind == "link":
        store_folder.make_link(folder.read_link(name), content_name)
    elif before.kind == "folder":
        store_folder.make_folder(content_name, stat.S_IMODE(status.st_mode))
    else:
        raise TooLarge("what was there is not a file, folder or link")
    MetadataCopier().copy_to(store_folder, content_name, status)
