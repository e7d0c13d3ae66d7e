"""How a worker starts, and what the kernel lets it reach.

A worker opens files that somebody else has made, and one of them may be made to break SQLite. Where Linux has Landlock,
such a file reaches the folders of the served databases and of `--files`, and nothing else: SQLite makes and removes
files beside a database, so the folder has to be open to it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from mcp_batteries.processes.python_child import child_environment, python_command
from mcp_batteries.processes.sandbox import NoSandbox, find_sandbox
from mcp_batteries.scratch import Scratch

__all__ = ["FolderIdentity", "WorkerLauncher", "describe_confinement", "identify_folders"]

_MODULE = "mcp_sqlite.worker.__main__"
# Where SQLite puts what does not fit into memory (https://sqlite.org/tempfiles.html).
_TEMPORARY_FOLDER = "SQLITE_TMPDIR"
# The time zone, which SQL asks for as `localtime`; the encoding of the names of files; and the SQLite that somebody has
# put before the system's.
_PASSED_VARIABLES = ("TZ", "LANG", "LC_ALL", "LC_CTYPE", "LD_PRELOAD")


class FolderIdentity(NamedTuple):
    """What tells a folder from another that has its path later."""

    path: str
    device: int
    inode: int


@dataclass(frozen=True)
class WorkerLauncher:
    """Starts workers that reach what is served.

    Attributes:
        databases: the addresses of the served databases.
        scratch: where workers put copies, rows of later pages, and what does not fit into memory.
        options: what each worker knows before any request, as `worker_options` returns it.
        files: the folder of files that are read and written, None where there is none.
    """

    databases: Sequence[str]
    scratch: Scratch
    options: Sequence[str] = ()
    files: str | None = None

    def command(self) -> list[str]:
        """Return the words that start a worker."""
        if sys.platform != "linux":
            # -P: no module of the folder the host started us in.
            return [sys.executable, "-P", "-m", _MODULE, *self.options]
        return python_command(_MODULE, self.options, writable=self._writable_folders())

    def environment(self) -> Mapping[str, str] | None:
        """Return the variables of a worker; None for those of this process."""
        if sys.platform != "linux":
            return None
        inherited = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
        return {**child_environment(), **inherited, _TEMPORARY_FOLDER: self._temporary_folder()}

    def _writable_folders(self) -> list[str]:
        folders = [*sorted(set(map(_folder_of, self.databases))), self.scratch.path, self._temporary_folder()]
        if self.files is not None:
            folders.append(self.files)
        return folders

    def _temporary_folder(self) -> str:
        return os.environ.get(_TEMPORARY_FOLDER) or self.scratch.path


def identify_folders(databases: Iterable[str]) -> frozenset[FolderIdentity]:
    """Return the folders that a worker which starts now can reach, of those that hold `databases`.

    A worker reaches the folders that had these paths when it started. Where a link leads elsewhere since, or a folder
    was replaced, only a new worker can open the database.
    """
    if sys.platform != "linux":
        return frozenset()
    return frozenset(_identify({_folder_of(address) for address in databases}))


def describe_confinement() -> str:
    """Return what the kernel lets workers reach here, in one line."""
    if sys.platform != "linux":
        return "none on this system: SQLite's processes reach what you do"
    try:
        return f"{find_sandbox().name}: SQLite's processes reach the folders of what is served, and no network"
    except NoSandbox as reason:
        return f"none: {reason}; SQLite's processes reach what you do, but no network"


def _folder_of(address: str) -> str:
    """Return the folder of a database's file; SQLite puts what it needs beside the file that a link leads to."""
    path = os.path.realpath(address) if os.path.islink(address) else address
    return os.path.dirname(path)


def _identify(folders: Iterable[str]) -> Iterable[FolderIdentity]:
    for folder in folders:
        with suppress(OSError):
            status = os.stat(folder)
            yield FolderIdentity(folder, status.st_dev, status.st_ino)
