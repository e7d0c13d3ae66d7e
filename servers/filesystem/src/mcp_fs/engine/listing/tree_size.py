"""Counts what is in a folder before it is copied, moved or deleted."""

from __future__ import annotations

import stat

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import TooLarge, quote
from mcp_batteries.progress import report_progress
from mcp_fs.engine.handles.path_opening import Folder, ResolvedPath, open_tree
from mcp_fs.policy import ReadablePath, WritablePath

__all__ = ["DeletionSize", "TreeSize", "measure_bytes"]

# Entries that one call copies.
MAX_ENTRIES = 100_000
# Levels of folders, for each of which one descriptor is open.
MAX_DEPTH = 200
_ENTRY_BYTES = 512  # bytes that a name and an inode take, about


class TreeSize:
    """Counts what is in a folder, up to the limit of one call, and refuses protected secrets."""

    def __init__(self, cancel: CancelToken) -> None:
        self.cancel = cancel
        self.entry_count = 0

    def count(self, folder: Folder[WritablePath], depth: int = 0) -> int:
        for entry in folder.scan():
            self.count_entry(folder.path, depth)
            child = folder.path / entry.name
            if entry.is_dir(follow_symlinks=False):
                with folder.open_folder(child.name) as subfolder:
                    self.count(subfolder, depth + 1)
        return self.entry_count

    def count_entry(self, path: ReadablePath, depth: int) -> None:
        self.cancel.check()
        self.entry_count += 1
        report_progress(self.entry_count, None, f"{self.entry_count:,} entries")
        if self.entry_count > MAX_ENTRIES or depth > MAX_DEPTH:
            raise TooLarge(
                f"{quote(path.display)} is part of more than {MAX_ENTRIES:,} entries or {MAX_DEPTH} levels.",
                "Do its subfolders one by one.",
            )


class DeletionSize(TreeSize):
    """Counts what is to be deleted, whatever its number. A protected file protects nobody from deletion: packages
    bring certificates with them."""

    protected_count = 0
    total_bytes = 0

    def count(self, folder: Folder[WritablePath], depth: int = 0) -> int:
        for entry in folder.scan():
            self.cancel.check()
            self.entry_count += 1
            report_progress(self.entry_count, None, f"{self.entry_count:,} entries")
            self.protected_count += folder.path.policy.is_protected((*folder.path.parts, entry.name))
            self.total_bytes += entry.stat(follow_symlinks=False).st_size + _ENTRY_BYTES
            if entry.is_dir(follow_symlinks=False):
                if depth > MAX_DEPTH:
                    raise TooLarge(f"{quote(folder.path.display)} has more than {MAX_DEPTH} levels below it.")
                with folder.open_folder(entry.name) as subfolder:
                    self.count(subfolder, depth + 1)
        return self.entry_count


def measure_bytes(resolved: ResolvedPath[WritablePath], cancel: CancelToken) -> int:
    """Return the bytes of an entry, with all that is in it."""
    status = resolved.folder.stat(resolved.name)
    if not stat.S_ISDIR(status.st_mode):
        return status.st_size
    with open_tree(resolved.folder, resolved.name) as folder:
        size = DeletionSize(cancel)
        size.count(folder)
    return size.total_bytes
