"""Finds other programs that a server starts, and spells commands."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence

__all__ = ["NO_WINDOW", "find_executable", "quote_command"]

# Every process gets this for `creationflags`. A server that a window's program started has no console, so Windows would
# open one for each of its children, for everybody to see.
NO_WINDOW = 0x0800_0000 if sys.platform == "win32" else 0  # CREATE_NO_WINDOW


def find_executable(name: str, folders: Iterable[str] | None = None, *, scripts: bool = False) -> str | None:
    """Return the absolute path of the program `name` in the first of `folders` (default: those of PATH) that has it.

    Never uses the current folder, where Windows and `shutil.which` look first: hosts start servers in folders with
    untrusted files.

    Args:
        scripts: whether to accept a batch file on Windows, whose arguments cmd.exe parses once more.
    """
    if folders is None:
        folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    files = [name]
    if sys.platform == "win32":
        endings = [".exe"]
        if scripts:
            endings += [".cmd", ".bat"]
        files = [f"{name}{ending}" for ending in endings]
    for folder in folders:
        if not os.path.isabs(folder):
            continue
        for file in files:
            path = os.path.join(folder, file)
            if shutil.which(path):
                return path
    return None


def quote_command(words: Sequence[str]) -> str:
    """Return a command as a person types it: words with blanks stand in quotes."""
    if sys.platform == "win32":
        from subprocess import list2cmdline

        return list2cmdline(words)
    from shlex import join

    return join(words)
