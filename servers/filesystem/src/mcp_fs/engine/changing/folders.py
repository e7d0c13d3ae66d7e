"""Creates folders, and those that are missing above what a change makes."""

from __future__ import annotations

import stat
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, NotFound, Problem, quote
from mcp_fs.engine.changing.targets import resolve_for_writing
from mcp_fs.engine.handles.path_opening import Folder, exists, resolve, translate_errors
from mcp_fs.engine.journal.entry_state import NEW_FOLDER
from mcp_fs.engine.journal.journal import Change, JournalEntry
from mcp_fs.engine.journal.operations import Journal, Operation, PlannedChange, apply
from mcp_fs.engine.journal.states import read_state
from mcp_fs.models import BatchResult, EditResult, MoveResult, WriteResult
from mcp_fs.policy import ReadablePath, WritablePath
from mcp_fs.repositories import COMPLETES_GIT_FOLDER

__all__ = ["create_folder", "create_missing_folders", "with_missing_folders"]

_MAX_NAMED = 5
_Result = TypeVar("_Result", bound=BatchResult | EditResult | WriteResult)


def with_missing_folders(
    paths: Sequence[WritablePath],
    change: Change[_Result],
    *,
    cancel: CancelToken,
    journal_entry: JournalEntry | None,
) -> _Result:
    """Return what `change` does; where it finds that folders above `paths` are missing, they are made first and noted.

    Nobody looks for them before: nearly always they are there.
    """
    try:
        return change(cancel=cancel, journal_entry=journal_entry)
    except NotFound:
        parents = dict.fromkeys(path.parent for path in paths)
        missing = [parent for parent in parents if not exists(parent)]
        if not missing:
            raise
    with create_missing_folders(missing, cancel, journal_entry) as new_folders:
        changed = change(cancel=cancel, journal_entry=journal_entry)
        return replace(changed, notes=[*_describe_highest(new_folders), *changed.notes])


def _describe_highest(new_folders: Sequence[WritablePath]) -> list[str]:
    """Name those of new folders that lie in no other of them."""
    new = {(folder.root, folder.parts) for folder in new_folders}
    highest = [folder.display for folder in new_folders if (folder.root, folder.parts[:-1]) not in new]
    notes = [f"new folder {name}" for name in highest[:_MAX_NAMED]]
    if len(highest) > _MAX_NAMED:
        notes.append(f"{len(highest) - _MAX_NAMED:,} more new folders")
    return notes


def create_folder(path: WritablePath, cancel: CancelToken, journal_entry: JournalEntry | None = None) -> MoveResult:
    """Create the folder at `path` and those above it that are missing; one that exists is fine.

    Raises:
        Conflict: something else has the name.
    """
    with create_missing_folders([path], cancel, journal_entry) as new_folders:
        if new_folders:
            return MoveResult("created", new_folders[-1].display)
        with resolve_for_writing(path) as resolved:
            return MoveResult("already there:", resolved.path.display)


@contextmanager
def create_missing_folders(
    paths: Sequence[WritablePath], cancel: CancelToken, journal_entry: JournalEntry | None = None
) -> Generator[Sequence[WritablePath]]:
    """Make the folders at `paths` and those above them that are missing; the new ones go again after a failure.

    What is recorded inside is one step with them. Yields the new ones, each behind the one that it lies in.
    """
    with ExitStack() as stack:
        operations = _prepare_creations(paths, stack, cancel)
        apply(operations, journal_entry, leads=True)
    try:
        new_folders: list[WritablePath] = []
        for operation in operations:
            new_folders.extend(operation.new_folders)
        yield new_folders
    except BaseException:
        for operation in reversed(operations):
            operation.take_back()
        raise


@dataclass(frozen=True, slots=True)
class _MissingChain:
    """Folders that are missing, each in the one before.

    Attributes:
        display_path: the highest, as the caller spells it.
        highest: the same, links resolved.
        names_below: those below it.
    """

    display_path: WritablePath
    highest: WritablePath
    names_below: Sequence[str]

    @property
    def paths(self) -> list[WritablePath]:
        depths = range(len(self.names_below) + 1)
        highest = self.highest
        return [highest.at(highest.root, (*highest.parts, *self.names_below[:depth])) for depth in depths]


def _find_missing(path: WritablePath, cancel: CancelToken) -> _MissingChain | None:
    """Return what is missing of the folders down to `path`; None if that is a folder.

    Raises:
        Conflict: something else has a name on the way.
        Problem: nothing may be made there.
    """
    if not path.parts:
        return None
    # By halves: looking up a path takes as long as it is deep.
    existing = 0
    missing = len(path.parts) + 1
    while missing - existing > 1:
        cancel.check()
        depth = (existing + missing) // 2
        if exists(path.at(path.root, path.parts[:depth])):
            existing = depth
        else:
            missing = depth
    level = path.at(path.root, path.parts[: min(missing, len(path.parts))])
    with resolve_for_writing(level) as resolved:
        state = read_state(resolved.folder, resolved.name)
        if state is None:
            return _MissingChain(level, resolved.path, path.parts[len(level.parts) :])
        if state.kind != "folder":
            raise _not_a_folder_error(level)
    return None


def _prepare_creations(paths: Sequence[WritablePath], stack: ExitStack, cancel: CancelToken) -> list[FolderCreation]:
    """Return what makes the folders at `paths`; the open folders that are there already close when `stack` ends."""
    operations: list[FolderCreation] = []
    known_paths: set[WritablePath] = set()
    for path in paths:
        chain = _find_missing(path, cancel)
        if chain is None:
            continue
        planned_paths = [new_path for new_path in chain.paths if new_path not in known_paths]
        if not planned_paths:
            continue
        known_paths.update(planned_paths)
        resolved = stack.enter_context(resolve_for_writing(chain.display_path))
        operations.append(FolderCreation(resolved, chain.display_path, chain.names_below, planned_paths, cancel))
    return operations


@dataclass(eq=False)
class FolderCreation(Operation):
    """Makes a folder by its path, and those below it each by the handle of the one above.

    Attributes:
        names_below: of folders, each in the one before.
        planned_paths: those that no operation before it makes.
        new_folders: those that it has made, each behind the one that it lies in.
    """

    names_below: Sequence[str]
    planned_paths: Sequence[WritablePath]
    cancel: CancelToken
    new_folders: list[WritablePath] = field(default_factory=list[WritablePath], init=False)

    @property
    def changed_folders(self) -> Sequence[Folder[WritablePath]]:
        """None: each is durable before the next is made in it, and closed."""
        return []

    def plan_changes(self, journal_entry: Journal) -> Sequence[PlannedChange]:
        return [PlannedChange(path, None, NEW_FOLDER) for path in self.planned_paths]

    def apply(self, content_path: WritablePath | None) -> None:
        try:
            self._make_all()
        except BaseException:
            self.take_back()
            raise

    def _make_all(self) -> None:
        with ExitStack() as stack:
            with translate_errors(self.display_path):
                folder = stack.enter_context(self._make(self.folder, self.name, self.display_path))
            for name in self.names_below:
                self.cancel.check()
                path = folder.path / name
                if name.casefold() in COMPLETES_GIT_FOLDER:  # of what else is new, nothing can be a repository
                    path.policy.check_folders(path)
                with translate_errors(path, "it was not created"):
                    inner = stack.enter_context(self._make(folder, name, path))
                folder.close()
                folder = inner

    def _make(self, folder: Folder[WritablePath], name: str, path: ReadablePath) -> Folder[WritablePath]:
        """Make a folder that is not there yet; return it, open."""
        if _make_folder(folder, name, path):
            self.new_folders.append(folder.path / name)
            with translate_errors(path, "it was not created"):
                folder.sync()
        return folder.open_folder(name)

    def take_back(self) -> None:
        """Remove the new folders again, but for one that holds something by now."""
        for new in reversed(self.new_folders):
            with suppress(OSError, Problem), resolve(new, follow=False) as resolved:
                resolved.folder.remove_folder(resolved.name)
        self.is_done = False


def _make_folder(folder: Folder[WritablePath], name: str, path: ReadablePath) -> bool:
    """Make the folder; return False where there is one.

    Raises:
        Conflict: something else has the name.
    """
    try:
        folder.make_folder(name)
    except FileExistsError:
        if not stat.S_ISDIR(folder.stat(name).st_mode):
            raise _not_a_folder_error(path) from None
        return False
    return True


def _not_a_folder_error(path: ReadablePath) -> Conflict:
    return Conflict(f"{quote(path.display)} exists and is not a folder.", "Choose another path.")
