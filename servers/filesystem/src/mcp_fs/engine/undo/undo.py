"""Lists and undoes the steps of one caller: only what is still as the step left it, never later changes."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, Unavailable, describe_os_error, quote
from mcp_batteries.server.declaration.call_origin import CallOrigin
from mcp_fs.engine.changing.entries.all_or_none import describe_next_failure
from mcp_fs.engine.changing.entries.moving import Deletion, relocate
from mcp_fs.engine.changing.entries.renames import read_moved_state
from mcp_fs.engine.changing.folders import create_missing_folders
from mcp_fs.engine.changing.targets import resolve_for_writing
from mcp_fs.engine.handles.locks import lock_names
from mcp_fs.engine.handles.path_opening import Folder, ResolvedPath, open_file, open_folder, resolve, translate_errors
from mcp_fs.engine.handles.temp_files import mark_in_use, remove_all
from mcp_fs.engine.journal.entry_state import NEW_FOLDER, EntryState
from mcp_fs.engine.journal.journal import JournalEntry
from mcp_fs.engine.journal.operations import Journal, Operation, PlannedChange, apply, fsync_folder
from mcp_fs.engine.journal.states import read_state
from mcp_fs.engine.journal.store import EntryId, EntryRecord, JournalStore
from mcp_fs.engine.listing.tree_size import measure_bytes
from mcp_fs.engine.listing.walk import display_path
from mcp_fs.engine.text.edit import unified_diff
from mcp_fs.engine.text.encodings import MAX_EDIT_BYTES, decode, replace_undecodable
from mcp_fs.engine.undo.undoable import UndoableChange, is_absent
from mcp_fs.models import UndoResult, UndoStep, UndoStepPage
from mcp_fs.policy import Policy, WritablePath

__all__ = ["list_undoable_entries", "undo_entries"]

_log = logging.getLogger(__name__)

_MAX_LISTED = 50
_VERB = "taken back"
_MAX_NAMED = 3
# A step whose change has not happened may still be about to for so long.
_PENDING_SECONDS = 60.0


@dataclass(frozen=True)
class _UndoEntry:
    """A step of the caller, with what it changed.

    Attributes:
        changes: in the order in which they were made.
    """

    record: EntryRecord
    changes: Sequence[UndoableChange]

    @property
    def id(self) -> str:
        """By which callers name the step."""
        return self.record.entry_id.id

    @property
    def label(self) -> str:
        if self.record.is_undo:
            return f"undo of {self.record.tool}"
        return self.record.tool

    @property
    def summary(self) -> UndoStep:
        paths: dict[str, None] = {}
        for change in self.changes:
            paths.update((display_path(path), None) for path in reversed(change.paths))
        return UndoStep(self.id, self.record.entry_id.time, self.label, list(paths))

    def meets(self, paths: _ChangedPaths) -> bool:
        return any(paths.meets(change.paths) for change in self.changes)


class _ChangedPaths:
    """Paths that later steps have changed: how those left what is there, in it or around it is not known."""

    def __init__(self, paths: Iterable[WritablePath] = ()) -> None:
        self._paths: set[tuple[str, ...]] = set()
        self._parents: set[tuple[str, ...]] = set()
        for path in paths:
            self.add(path)

    def add(self, path: WritablePath) -> None:
        names = _full_names(path)
        if names not in self._paths:
            self._paths.add(names)
            self._parents.update(names[:depth] for depth in range(len(names)))

    def add_all(self, changes: Iterable[UndoableChange]) -> None:
        for change in changes:
            for path in change.paths:
                self.add(path)

    def has(self, path: WritablePath) -> bool:
        return _full_names(path) in self._paths

    def meets(self, paths: Iterable[WritablePath]) -> bool:
        """Whether one of the paths, something in it or a folder on the way to it was changed."""
        return any(_full_names(path) in self._parents or self.covers(path) for path in paths)

    def covers(self, path: WritablePath) -> bool:
        """Whether a path itself was changed, or a folder on the way to it."""
        names = _full_names(path)
        return any(names[:depth] in self._paths for depth in range(len(names) + 1))


def _full_names(path: WritablePath) -> tuple[str, ...]:
    return (path.root.real_path, *path.parts)


def list_undoable_entries(policy: Policy, store: JournalStore, caller: str, cancel: CancelToken) -> UndoStepPage:
    """List the caller's steps that can be taken back in what is served now, the newest first."""
    unreadable: list[EntryId] = []
    entries = _list_own_entries(policy, store, caller, cancel, unreadable)
    summaries = [entry.summary for entry in entries[:_MAX_LISTED]]
    return UndoStepPage(summaries, len(entries), len(unreadable))


def undo_entries(
    policy: Policy,
    store: JournalStore,
    origin: CallOrigin,
    entry_id: str,
    *,
    later: bool,
    dry_run: bool,
    cancel: CancelToken,
) -> UndoResult:
    """Take back one step, or all of the caller's from that one on; that is a step too, and can be taken back.

    Raises:
        NotFound: there is no such step.
        Conflict: something is no longer as the step left it; what is told in the message was not touched.
    """
    entries = _list_own_entries(policy, store, origin.caller, cancel, [])
    index = _find_index(entries, entry_id)
    chosen = [entries[index]]
    if later:
        # What was taken back in between has cancelled itself out.
        chosen = [*(entry for entry in entries[:index] if not entry.record.is_undo), entries[index]]
    chosen = _without_kept_folders_of_all(chosen)
    paths_of_later_steps = _ChangedPaths()
    for entry in chosen:
        _refuse_changed(entry.changes, paths_of_later_steps, entries[:index])
    _refuse_changed_between(chosen)
    notes: list[str] = []
    diffs: list[str] = []
    if dry_run:
        diffs = _preview_diffs(chosen, cancel)
    else:
        notes = _undo_each(chosen, store, origin, cancel)
    lines: list[str] = []
    for entry in chosen:
        lines.extend(f"{entry.id} {entry.label}: {change.description}" for change in entry.changes)
    return UndoResult(lines, dry_run, notes, diffs)


def _find_index(entries: Sequence[_UndoEntry], entry_id: str) -> int:
    for index, entry in enumerate(entries):
        if entry.id == entry_id:
            return index
    raise NotFound(f"There is no step {quote(entry_id)} to take back.", "Call without `step` for the list.")


def _undo_each(chosen: Sequence[_UndoEntry], store: JournalStore, origin: CallOrigin, cancel: CancelToken) -> list[str]:
    """Take back the steps, the newest first; return what could not be kept of it.

    Raises:
        Conflict: some were taken back, and the next was not.
        Problem: the first was not.
    """
    notes: list[str] = []
    # What is written down for the first may not make room by forgetting the others.
    with store.protect([entry.record.entry_id for entry in chosen]):
        for count, entry in enumerate(chosen):
            undone_tool = None
            if not entry.record.is_undo:
                undone_tool = entry.record.tool
            with JournalEntry(store, origin, cancel, undone_tool) as journal_entry:
                try:
                    _undo_entry(entry, store, journal_entry, cancel)
                except Problem as failure:
                    if not count:
                        raise
                    done = f"{count} of {len(chosen)} steps were taken back."
                    raise Conflict(describe_next_failure(done, failure), failure.fix) from failure
            notes += journal_entry.notes
    return notes


def _without_kept_folders_of_all(chosen: Sequence[_UndoEntry]) -> list[_UndoEntry]:
    all_paths = _ChangedPaths()
    for entry in chosen:
        all_paths.add_all(entry.changes)
    return [_without_kept_folders(entry, all_paths) for entry in chosen]


def _without_kept_folders(undo_entry: _UndoEntry, removed_paths: _ChangedPaths) -> _UndoEntry:
    """Return the step without folders that were made for a file in them and hold others by now: those stay."""
    if all(change.makes_folder for change in undo_entry.changes):
        return undo_entry
    changes: list[UndoableChange] = []
    for change in undo_entry.changes:
        if not change.makes_folder or not _has_other_entries(change.path, removed_paths):
            changes.append(change)
    return replace(undo_entry, changes=changes)


def _preview_diffs(chosen: Sequence[_UndoEntry], cancel: CancelToken) -> list[str]:
    """Diff what undoing steps, the newest first, does to text files."""
    oldest_changes: dict[WritablePath, UndoableChange] = {}
    for entry in chosen:
        oldest_changes.update((change.path, change) for change in entry.changes if change.source is None)
    diffs: list[str] = []
    for change in oldest_changes.values():
        cancel.check()
        diff = _preview_diff(change)
        if diff is not None:
            diffs.append(diff)
        if sum(map(len, diffs)) > DEFAULT_PAGE_BYTES:
            break
    return diffs


def _preview_diff(change: UndoableChange) -> str | None:
    """Diff what undoing a change does to a text file; None for what is no text, or stays as it is."""
    if change.content_path is not None and is_absent(change.content_path):
        return None  # back already
    before = None
    try:
        now = _read_text(change.path)
        if change.content_path is not None:
            before = _read_text(change.content_path)
    except (OSError, Problem):
        return None
    if now == before:
        return None
    name = display_path(change.path)
    return unified_diff(now or "", before or "", name, created=now is None, deleted=before is None)


def _read_text(path: WritablePath) -> str | None:
    """Return the text of a file, None for nothing.

    Raises:
        Problem: it is not text, or too large.
    """
    try:
        with open_file(path) as file:
            data = file.read(MAX_EDIT_BYTES + 1)
    except NotFound:
        return None
    decoded = None
    if len(data) <= MAX_EDIT_BYTES:
        decoded = decode(data)
    if decoded is None:
        raise Invalid(f"{quote(display_path(path))} is not text.")
    return replace_undecodable(decoded.text)


def _list_own_entries(
    policy: Policy, store: JournalStore, caller: str, cancel: CancelToken, unreadable: list[EntryId]
) -> list[_UndoEntry]:
    """List the steps of the caller, the newest first, whose entries are all served and not all back."""
    try:
        return list(_iterate_own_entries(policy, store, caller, cancel, unreadable))
    except OSError as error:
        raise Unavailable(f"The old contents that are kept can't be read: {describe_os_error(error)}.") from error


def _iterate_own_entries(
    policy: Policy, store: JournalStore, caller: str, cancel: CancelToken, unreadable: list[EntryId]
) -> Iterator[_UndoEntry]:
    store.enforce_limits()
    paths_of_later_steps = _ChangedPaths()
    for entry_id in store.list_entries():
        cancel.check()
        record = _read_record(store, entry_id, unreadable)
        if record is None or record.caller != caller:
            continue
        try:
            changes = [UndoableChange.parse(policy, store, record, item) for item in record.changes]
        except Problem:
            continue  # outside of what this server serves, or protected
        entry = _UndoEntry(record, changes)
        if not entry.meets(paths_of_later_steps) and all(change.status == "back already" for change in changes):
            if time.time() - entry_id.time > _PENDING_SECONDS:
                store.remove_entry(entry_id, only_idle=True)
            continue
        paths_of_later_steps.add_all(changes)
        yield entry


def _read_record(store: JournalStore, entry_id: EntryId, unreadable: list[EntryId]) -> EntryRecord | None:
    """Read what a step did; return None for one that is gone, or can't be read and is added to `unreadable`."""
    try:
        return store.read_entry(entry_id)
    except (NotFound, FileNotFoundError):  # another process has forgotten it
        return None
    except (OSError, Problem, ValueError, TypeError, KeyError) as damage:
        _log.warning("a step that could be taken back can't be read: %s: %r", entry_id.name, damage)
        unreadable.append(entry_id)
        return None


def _has_other_entries(path: WritablePath, removed_paths: _ChangedPaths) -> bool:
    """Whether there is anything in a folder but what will have gone by then."""
    try:
        with open_folder(path) as folder:
            return any(not removed_paths.has(folder.path / entry.name) for entry in folder.scan())
    except NotFound:
        return False
    except Problem:
        return True


def _refuse_changed(
    changes: Sequence[UndoableChange],
    paths_of_later_steps: _ChangedPaths,
    later_entries: Sequence[_UndoEntry] = (),
) -> None:
    """Raise Conflict if something is not as the step left it.

    Args:
        paths_of_later_steps: which are taken back first: what is there then is not known yet. This step adds its own.
        later_entries: the steps of the caller since then.
    """
    changed_paths: list[WritablePath] = []
    for change in reversed(changes):
        if _is_changed_since(change, paths_of_later_steps):
            changed_paths.append(change.path)
        paths_of_later_steps.add_all([change])
    if changed_paths:
        raise _changed_since_error(changed_paths, later_entries)


def _is_changed_since(change: UndoableChange, unknown_paths: _ChangedPaths) -> bool:
    """Whether something is not as a change left it, as far as that is known now."""
    if change.makes_folder:
        return not unknown_paths.covers(change.path) and _has_other_entries(change.path, unknown_paths)
    return not unknown_paths.meets(change.paths) and change.status == "changed since"


def _changed_since_error(changed_paths: Sequence[WritablePath], later_entries: Sequence[_UndoEntry]) -> Conflict:
    names = ", ".join(quote(display_path(path)) for path in changed_paths[:_MAX_NAMED])
    if len(changed_paths) > _MAX_NAMED:
        names += f" and {len(changed_paths) - _MAX_NAMED} more"
    fix = "Move what is there to another name first; then this brings back what was there before."
    later_ids = [entry.id for entry in later_entries if entry.meets(_ChangedPaths(changed_paths))]
    if later_ids:
        fix = f"Step {later_ids[0]} came later: take that back first, or set `later`."
    return Conflict(f"{names} changed since that step; nothing was taken back.", fix)


def _refuse_changed_between(chosen: Sequence[_UndoEntry]) -> None:
    """Raise Conflict if somebody else changed a file between two of the steps, the newest first.

    The older of them could not be taken back when the newer one has brought back what somebody else had written.
    """
    # What is at a path once the steps so far are taken back, and the step that brings it back.
    restored: dict[WritablePath, tuple[EntryState, str]] = {}
    for entry in chosen:
        for change in reversed(entry.changes):
            if change.path in restored:
                state, newer_id = restored.pop(change.path)
                if not state.is_same_as(change.recorded.after):
                    raise Conflict(
                        f"{quote(display_path(change.path))} was changed by somebody else between these steps; "
                        "nothing was taken back.",
                        f"Take back from step {newer_id} on: that brings back what they wrote.",
                    )
            if not change.is_of_file:
                restored.clear()  # where files are then is found out when it is their turn
            elif change.recorded.before is not None:
                restored[change.path] = change.recorded.before, entry.id


def _undo_entry(undo_entry: _UndoEntry, store: JournalStore, journal_entry: JournalEntry, cancel: CancelToken) -> None:
    """Apply the inverse of each change of a step that is not back already, the last first."""
    with translate_errors(undo_entry.changes[0].path), ExitStack() as stack:
        mark_in_use(stack.enter_context(open_file(store.path_of(undo_entry.record.entry_id.name))).fileno())
        changes = [change for change in undo_entry.changes if change.status != "back already"]
        removed_folders = [change.path for change in changes if change.removes_folder]
        removed_folders.sort(key=lambda path: len(path.parts), reverse=True)  # the lowest bring those above with them
        stack.enter_context(create_missing_folders(removed_folders, cancel, journal_entry))
        changes = [change for change in changes if not change.removes_folder]
        opened_changes = [_OpenedChange.open(change, stack) for change in reversed(changes)]
        resolved_paths: list[ResolvedPath[WritablePath]] = []
        for opened_change in opened_changes:
            resolved_paths.extend(opened_change.resolved_paths)
        stack.enter_context(lock_names(resolved_paths, cancel))
        _refuse_changed(changes, _ChangedPaths())
        inverses = [opened_change.invert(cancel) for opened_change in opened_changes]
        apply(inverses, journal_entry, one_by_one=True)
    with suppress(OSError):  # it is not listed any more in any case
        store.remove_entry(undo_entry.record.entry_id)


@dataclass(frozen=True, slots=True)
class _OpenedChange:
    """A change with the open folders that it is about.

    Attributes:
        target: what it changed.
        source: where that was moved from.
        content: what was there before, where it is kept.
    """

    change: UndoableChange
    target: ResolvedPath[WritablePath]
    source: ResolvedPath[WritablePath] | None
    content: ResolvedPath[WritablePath] | None

    @classmethod
    def open(cls, change: UndoableChange, stack: ExitStack) -> _OpenedChange:
        """Open the folders until `stack` ends; not those of folders that go, of which a step makes any number."""
        if change.makes_folder:
            with resolve_for_writing(change.path, follow=False) as closed_target:
                return cls(change, closed_target, None, None)
        target = stack.enter_context(resolve_for_writing(change.path, follow=False))
        source = None
        if change.source is not None:
            source = stack.enter_context(resolve_for_writing(change.source, follow=False))
        content = None
        if change.content_path is not None:
            content = stack.enter_context(resolve(change.content_path, follow=False))
        return cls(change, target, source, content)

    @property
    def resolved_paths(self) -> list[ResolvedPath[WritablePath]]:
        if self.change.makes_folder:
            return []
        if self.source is None:
            return [self.target]
        return [self.target, self.source]

    def invert(self, cancel: CancelToken) -> Operation:
        """Return the operation that takes the change back; a folder that was removed is there again already."""
        path = self.change.path
        if self.source is not None:
            return MoveBack(self.target, path, self.change, self.source, self.content, cancel, verb=_VERB)
        if self.change.makes_folder:
            return FolderRemoval(self.target, path, verb=_VERB)
        if self.content is not None:
            return PutBack(self.target, path, self.change, self.content, cancel, verb=_VERB)
        return Deletion(self.target, path, measure_bytes(self.target, cancel), cancel, None, verb=_VERB)


@dataclass(eq=False)
class FolderRemoval(Operation):
    """The inverse of making a folder; one that is not empty stays. It finds the folder itself."""

    @property
    def changed_folders(self) -> Sequence[Folder[WritablePath]]:
        """None: the one that it lies in is durable and closed at once."""
        return []

    def plan_changes(self, journal_entry: Journal) -> Sequence[PlannedChange]:
        return [PlannedChange(self.resolved.path, None, None, before=NEW_FOLDER)]

    def apply(self, content_path: WritablePath | None) -> None:
        path = self.resolved.path
        with translate_errors(self.display_path), resolve(path, follow=False) as resolved:
            resolved.folder.remove_folder(resolved.name)
            fsync_folder(resolved.folder, self.display_path, self.verb)


@dataclass(eq=False)
class PutBack(Operation):
    """The inverse of a change or a deletion: what was there before takes the place of what is there now.

    Attributes:
        content: what was there before, where it is kept.
    """

    change: UndoableChange
    content: ResolvedPath[WritablePath]
    cancel: CancelToken

    def plan_changes(self, journal_entry: Journal) -> Sequence[PlannedChange]:
        restored = read_state(self.content.folder, self.content.name, thorough=True)
        return [PlannedChange(self.resolved.path, self.folder, restored)]

    def apply(self, content_path: WritablePath | None) -> None:
        with translate_errors(self.display_path):
            _put_back(self.change, self.content, self.resolved, self.cancel)


@dataclass(eq=False)
class MoveBack(Operation):
    """The inverse of a move; what that replaced comes back with it.

    Attributes:
        content: what the move replaced, where it is kept.
    """

    change: UndoableChange
    resolved_source: ResolvedPath[WritablePath]
    content: ResolvedPath[WritablePath] | None
    cancel: CancelToken

    @property
    def changed_folders(self) -> Sequence[Folder[WritablePath]]:
        return [self.folder, self.resolved_source.folder]

    def plan_changes(self, journal_entry: Journal) -> Sequence[PlannedChange]:
        source = self.resolved_source
        moved = read_moved_state(self.folder, self.name, journal_entry)
        left_at_source = None
        if self.content is not None:
            left_at_source = read_state(self.content.folder, self.content.name, thorough=True)
        source_folder = None
        if self.change.recorded.left_at_source:
            source_folder = source.folder  # what has come to stand there is replaced, and kept
        planned_change = PlannedChange(
            source.path, source_folder, moved, source=self.resolved.path, left_at_source=left_at_source
        )
        return [planned_change]

    def apply(self, content_path: WritablePath | None) -> None:
        with translate_errors(self.display_path):
            self._move_back()
            if self.content is not None:
                _put_back(self.change, self.content, self.resolved, self.cancel)

    def _move_back(self) -> None:
        change = self.change
        if change.was_never_moved():
            remove_all(self.folder, self.name, self.cancel)
            return
        if change.source is None or read_state(self.folder, self.name) is None or self._has_both_names():
            return
        overwrite = change.recorded.left_at_source is not None
        relocate(self.resolved, change.path, self.resolved_source, change.source, overwrite, self.cancel)

    def _has_both_names(self) -> bool:
        """Give what is moved back its old name beside the new one, which what it had replaced takes in one step."""
        if self.content is None:
            return False
        source = self.resolved_source
        try:
            self.folder.add_name(self.name, source.folder, source.name)
        except FileExistsError:
            return True
        except OSError:  # a folder, or another file system
            return False
        return True


def _put_back(
    change: UndoableChange,
    content: ResolvedPath[WritablePath],
    target: ResolvedPath[WritablePath],
    cancel: CancelToken,
) -> None:
    assert change.content_path is not None
    relocate(content, change.content_path, target, change.path, overwrite=True, cancel=cancel)
