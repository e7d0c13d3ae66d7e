"""Folds many changes below one folder into one line, so that what one program did does not hide what a person did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from mcp_batteries.subscriptions.journal import ChangeKind, JournalEntry

__all__ = ["FoldedChanges", "fold_changes"]

# Things below one folder that appeared, or disappeared, and are still told one by one.
_MAX_SEPARATE = 20
_MAX_EXAMPLES = 3


@dataclass(slots=True)
class FoldedChanges:
    """Many things of a folder that appeared, disappeared or came with it from another.

    Attributes:
        kind: what happened to them.
        folder: path of the folder.
        origin: path that it had before, of a renamed one.
        at: when the last of them changed, in seconds since the epoch.
        examples: the first few by name, below the folder.
    """

    kind: ChangeKind
    folder: str
    origin: str = ""
    count: int = 0
    at: float = 0.0
    examples: list[str] = field(default_factory=list[str])

    def add(self, entry: JournalEntry) -> None:
        self.count += 1
        self.at = max(self.at, entry.at)
        name = entry.change.name.removeprefix(self.folder + "/")
        self.examples = sorted([*self.examples, name])[:_MAX_EXAMPLES]


def fold_changes(entries: Sequence[JournalEntry]) -> list[JournalEntry | FoldedChanges]:
    """Return `entries` with those of large and of renamed folders as one each, which come last.

    What was renamed is not told as deleted too.
    """
    origins = {entry.change.origin for entry in entries if entry.change.origin}
    entries = [entry for entry in entries if entry.change.kind != "deleted" or entry.change.name not in origins]
    renamed_counts = Counter(_renamed_folder(entry) for entry in entries)
    folder_counts = _count_by_folder(entries)
    separate: list[JournalEntry | FoldedChanges] = []
    folded: dict[tuple[ChangeKind, str, str], FoldedChanges] = {}
    for entry in entries:
        kind = entry.change.kind
        origin, folder = _renamed_folder(entry) or ("", "")
        if renamed_counts[origin, folder] < 2:
            origin = ""
            folder = _large_folder(entry, folder_counts)
        if not folder:
            separate.append(entry)
            continue
        folded.setdefault((kind, origin, folder), FoldedChanges(kind, folder, origin)).add(entry)
    return [*separate, *folded.values()]


def _renamed_folder(entry: JournalEntry) -> tuple[str, str] | None:
    """Return the old and the new path of the folder that was renamed with a thing in it; None for any other change."""
    change = entry.change
    if not change.origin or change.note or change.before != change.after or change.added:
        return None
    old_names = change.origin.split("/")
    new_names = change.name.split("/")
    shared_count = 0
    for old_name, new_name in zip(old_names[:0:-1], new_names[:0:-1], strict=False):
        if old_name != new_name:
            break
        shared_count += 1
    if not shared_count:
        return None
    return "/".join(old_names[:-shared_count]), "/".join(new_names[:-shared_count])


def _is_foldable(entry: JournalEntry) -> bool:
    change = entry.change
    return change.kind != "changed" and not change.origin and not change.note and "://" not in change.name


def _folders_of(entry: JournalEntry) -> list[str]:
    """Return the folders that a thing lies in, the outermost first."""
    names = entry.change.name.split("/")
    return ["/".join(names[:depth]) for depth in range(1, len(names))]


def _count_by_folder(entries: Sequence[JournalEntry]) -> Counter[tuple[ChangeKind, str]]:
    """Return how many things of each kind of change lie in each folder, at any depth."""
    counts = Counter[tuple[ChangeKind, str]]()
    for entry in entries:
        if _is_foldable(entry):
            counts.update((entry.change.kind, folder) for folder in _folders_of(entry))
    return counts


def _large_folder(entry: JournalEntry, counts: Counter[tuple[ChangeKind, str]]) -> str:
    """Return the folder that a change is told with; empty for one that is told by itself.

    It is the outermost one with many, and of folders with the same things the innermost.
    """
    if not _is_foldable(entry):
        return ""
    chosen = ""
    for folder in _folders_of(entry):
        count = counts[entry.change.kind, folder]
        if count <= _MAX_SEPARATE:
            continue
        if chosen and count < counts[entry.change.kind, chosen]:
            break
        chosen = folder
    return chosen
