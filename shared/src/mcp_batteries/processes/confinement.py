"""What a confined process may do, in words that every system's sandbox can enforce."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Confinement", "everything_but", "real_paths"]


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a process, and everything that it starts, may do. The kernel refuses anything else.

    A folder stands for all that is below it. Paths are real paths: a path that has become a symbolic link by the time
    the process starts gives no access, and neither does a path that does not exist. The null device may always be used.

    Attributes:
        executable: Programs that may be executed, their loaders, or folders of them. They may be read too.
        readable: Files and folders that may be read.
        writable: Files and folders that may be read and changed.
        network: Whether connections may be made, and the sockets of other processes be reached.
    """

    executable: frozenset[str]
    readable: frozenset[str]
    writable: frozenset[str]
    network: bool = False


def real_paths(paths: Iterable[str]) -> frozenset[str]:
    """Return the real paths of those `paths` that exist."""
    return frozenset(os.path.realpath(path) for path in paths if os.path.exists(path))


def everything_but(folders: Iterable[str], top: str = os.sep) -> frozenset[str]:
    """Return paths that together cover all below `top` except the `folders`.

    A sandbox only knows what is allowed, so the siblings of each folder, and of the folders above it, are listed.

    Args:
        folders: Real paths.
        top: A real path.
    """
    excluded = [folder for folder in folders if _is_inside(folder, top)]
    if not excluded:
        return frozenset([top])
    if top in excluded:
        return frozenset()
    covered: set[str] = set()
    try:
        names = os.listdir(top)
    except OSError:
        return frozenset()
    for name in names:
        path = os.path.join(top, name)
        # What a link leads to is listed where it is.
        if not os.path.islink(path):
            covered |= everything_but(excluded, path)
    return frozenset(covered)


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
