"""The subscribed paths of a file watcher, by all that an event or a check finds them by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Set

from mcp_batteries.subscriptions.file_state import FileState
from mcp_batteries.subscriptions.folder_watches import FolderWatches
from mcp_batteries.subscriptions.watch_paths import WatchPath, fold

__all__ = ["NEVER_CHECKED", "Entry", "WatchedEntries"]

# The state of an entry before its first check.
NEVER_CHECKED = object()


class Entry:
    """One subscribed path, and its state at the last check.

    Attributes:
        watch_path: where the path led, as far as it is watched by events.
        state: what the watcher's probe returned; None if there was nothing.
        doubted_until: until when an event may be that of a change which left the same state.
        is_fresh: whether a change could follow that leaves the same state.
        file_state: what stat(2) said just before.
    """

    __slots__ = ("doubted_until", "file_state", "is_fresh", "path", "state", "watch_path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.watch_path = WatchPath()
        self.state: Hashable | None = NEVER_CHECKED
        self.doubted_until = 0.0
        self.is_fresh = False
        self.file_state: FileState | None = None


_NO_ENTRIES: frozenset[Entry] = frozenset()


class WatchedEntries:
    """The entries that somebody subscribes to.

    A new one is neither watched by events nor polled, until it is known where its path leads.

    Args:
        folders: needs the folders of each watched entry, once for all entries that share them.

    Attributes:
        polled: the entries that no event tells of.
    """

    def __init__(self, folders: FolderWatches) -> None:
        self._folders = folders
        self._by_key: dict[Hashable, Entry] = {}
        # By folded path: the entries that an event there concerns.
        self._by_name: defaultdict[str, set[Entry]] = defaultdict(set)
        # By the folders in which their names are looked up: the entries that share them.
        self._by_folders: defaultdict[tuple[str, ...], set[Entry]] = defaultdict(set)
        # Those whose paths may lead elsewhere now.
        self._moved: set[Entry] = set()
        self.polled: set[Entry] = set()

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._by_key.values())

    def __contains__(self, entry: Entry) -> bool:
        """Tell whether `entry` is still subscribed to; its key may be that of a later one."""
        return self._by_key.get(entry.path) is entry

    def add(self, key: Hashable) -> Entry:
        """Return the entry of `key`, a new one if there is none."""
        return self._by_key.setdefault(key, Entry(str(key)))

    def remove(self, key: Hashable) -> None:
        """Forget the entry of `key`, if there is one."""
        entry = self._by_key.pop(key, None)
        if entry is not None:
            self.leave(entry)

    def watch(self, entry: Entry, watch_path: WatchPath) -> None:
        """Watch `entry` by the events on `watch_path`; before, it must have been left."""
        entry.watch_path = watch_path
        for name in watch_path.names:
            self._by_name[fold(name)].add(entry)
        if watch_path.folders not in self._by_folders:
            self._folders.need(watch_path.folders)
        self._by_folders[watch_path.folders].add(entry)

    def leave(self, entry: Entry) -> None:
        """Neither watch nor poll `entry` any longer."""
        watch_path = entry.watch_path
        entry.watch_path = WatchPath()
        self.polled.discard(entry)
        self._moved.discard(entry)
        for name in watch_path.names:
            # Two names may fold to one, which is gone at the second.
            folded = fold(name)
            self._by_name[folded].discard(entry)
            if not self._by_name[folded]:
                del self._by_name[folded]
        if watch_path.folders:
            self._by_folders[watch_path.folders].discard(entry)
            if not self._by_folders[watch_path.folders]:
                del self._by_folders[watch_path.folders]
                self._folders.release(watch_path.folders)

    def find(self, folded: str) -> Set[Entry]:
        """Return the entries that an event at this folded path concerns."""
        return self._by_name.get(folded, _NO_ENTRIES)

    def all_watched(self) -> set[Entry]:
        """Return the entries that are watched by events."""
        return set[Entry]().union(*self._by_folders.values())

    @property
    def has_moved(self) -> bool:
        """Whether `take_moved` returns any."""
        return bool(self._moved)

    def mark_moved(self, entries: Collection[Entry]) -> None:
        """Note that the paths of `entries` may lead elsewhere now."""
        self._moved.update(entries)

    def mark_moved_folders(self, folded_paths: set[str]) -> None:
        """Note that these folders were moved or removed, and count them and those after them as not watched.

        Every path that leads through one of them may lead elsewhere now.
        """
        self._folders.move(folded_paths)
        for folders, entries in self._by_folders.items():
            for position, folder in enumerate(folders):
                if fold(folder) in folded_paths:
                    self._moved |= entries
                    self._folders.disarm(folders[position:])
                    break

    def take_moved(self) -> set[Entry]:
        """Return the entries whose paths may lead elsewhere now, and collect those that move from now on anew.

        The returned set stays as it is, whatever is left or moves while its entries are looked at.
        """
        entries = self._moved
        self._moved = set()
        return entries
