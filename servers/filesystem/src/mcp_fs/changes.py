"""Says which URIs to refresh: one watcher over the folders of subscribed paths."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from mcp_batteries.errors import Problem, Refused
from mcp_batteries.subscriptions.file_watcher import FileWatcher
from mcp_fs.engine.handles.file_attributes import is_hidden
from mcp_fs.engine.handles.path_opening import read_status, spell_names
from mcp_fs.engine.name_folding import may_have_another_spelling
from mcp_fs.paths import file_uri, to_system_path
from mcp_fs.policy import Policy
from mcp_fs.settings import Settings

__all__ = ["demonstration", "folder_watcher"]


def folder_watcher(policy: Policy, settings: Settings) -> FileWatcher:
    """The source for `file://` URIs beneath the served folders; the folders themselves are in the list of resources."""
    watched = _WatchedPaths(policy)
    return FileWatcher(
        [root.path for root in policy.roots],
        locate=watched.locate,
        probe=watched.probe,
        poll={"auto": None, "poll": True}[settings.watch],
    )


@dataclass(frozen=True)
class _WatchedPaths:
    policy: Policy

    def locate(self, uri: str) -> str | None:
        """Return the path of `uri`, as spelled in it; None for another scheme.

        Raises:
            Problem: the policy refuses it, or it can never change: a link that leads outside, a glob.
        """
        if not uri.lower().startswith("file:"):
            return None
        place = self.policy.readable(uri)
        try:
            read_status(place)
        except Refused:
            raise
        except Problem:  # it may come, or become better
            pass
        path = os.path.join(place.root.path, *place.parts)
        if any(map(may_have_another_spelling, place.parts)) and not os.path.lexists(to_system_path(path)):
            return os.path.join(place.root.path, *spell_names(place))
        return path

    def probe(self, path: str) -> Hashable | None:
        """Return a value that changes with the thing at `path`; None if nothing is there."""
        readable_path = self.policy.readable(path)
        try:
            status = read_status(readable_path)
        except Problem:
            return None
        return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev, status.st_mode


def demonstration(settings: Settings) -> tuple[str, Callable[[], None]] | None:
    """For `--check`: setting a folder's times to their current values is noticed, but people see no change.

    Windows has no time of that change itself: there the folder gets the next time that NTFS can tell, 100 ns on. And it
    tells at once of what is in a watched folder, not of that folder: a folder in the served one shows what users see.
    """
    path = Policy(settings).roots[0].path
    if sys.platform == "win32":
        path = _find_visible_folder(path) or path
    times = os.stat(path)
    step = 100 if sys.platform == "win32" else 0

    def touch() -> None:
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns + step))

    try:
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    except PermissionError:
        return None
    return file_uri(path), touch


def _find_visible_folder(path: str) -> str | None:
    """Return a visible folder that is not a link or junction."""
    with os.scandir(path) as entries:
        folders = (entry.path for entry in entries if not is_hidden(entry) and entry.is_dir(follow_symlinks=False))
        return next((folder for folder in folders if os.path.realpath(folder) == folder), None)
