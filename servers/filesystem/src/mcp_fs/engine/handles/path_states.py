"""What the watchers ask about a path, which need not be there."""

from __future__ import annotations

import stat
from collections.abc import Hashable

from mcp_batteries.errors import Problem
from mcp_fs.engine.handles.path_opening import read_status, resolve
from mcp_fs.policy import ReadablePath

__all__ = ["check_reachable", "is_folder", "read_version", "resolve_links"]


def check_reachable(path: ReadablePath) -> None:
    """Check that there is something at a path that can be reached.

    Raises:
        NotFound: there is nothing yet.
        Refused: a link leads outside, or to a protected secret.
    """
    read_status(path)


def is_folder(path: ReadablePath) -> bool:
    """Return whether a path leads to a folder, or a link to one.

    Raises:
        Problem: as `check_reachable`.
    """
    return stat.S_ISDIR(read_status(path).st_mode)


def resolve_links(path: ReadablePath) -> ReadablePath:
    """Return where the links on the way to a path lead.

    Raises:
        Refused: as `check_reachable`.
    """
    with resolve(path) as resolved:
        return resolved.path


def read_version(path: ReadablePath) -> Hashable | None:
    """Return a value that differs whenever the thing at `path` does; None when there is nothing."""
    try:
        status = read_status(path)
    except Problem:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev, status.st_mode
