"""What a server leaves on this machine, and `--purge`, which removes it."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mcp_batteries.cli.host_entry.launch_command import typed_command
from mcp_batteries.cli.journal import ORIGINAL, Journal, backups_of, folder_of, folders, lock_host
from mcp_batteries.cli.places import Places
from mcp_batteries.errors import Problem, describe_os_error
from mcp_batteries.settings import Settings
from mcp_batteries.user_folders import FOLDERS, NOTES, UserFolder

__all__ = ["leftovers", "purge"]

# A folder that is being removed has this in its name.
_GOING = ".going-"


@dataclass(frozen=True)
class _Leftover:
    folder: UserFolder
    path: Path
    files: int
    size: int

    def describe(self) -> str:
        files = "1 file" if self.files == 1 else f"{self.files} files"
        return f"- {self.path}: {self.folder.contents} ({files}, {_in_words(self.size)})"


def _in_words(size: int) -> str:
    if size < 1000:
        return f"{size} bytes"
    if size < 1_000_000:
        return f"{size / 1000:.0f} kB"
    return f"{size / 1_000_000:.1f} MB"


def leftovers(settings: Settings) -> str:
    """Return what is left of a server and how to remove it, for a person; empty if nothing is."""
    remains = _find(settings)
    if not remains:
        return ""
    lines = ["Still on this machine:", *(one.describe() for one in remains)]
    lines += _describe_elsewhere(remains)
    lines.append(f"To remove that too, close the hosts that run it and enter: {typed_command(settings, '--purge')}")
    return "\n".join(lines)


def purge(settings: Settings, places: Places) -> str:
    """Remove the folders of a server; returns the message for the person.

    A server that still runs makes them anew when it needs them, and has forgotten what it could undo.
    """
    removed: list[str] = []
    failures: list[str] = []
    remains = _find(settings)
    for leftover in remains:
        problem = _remove(leftover.path)
        if problem:
            failures.append(f"- {leftover.path}: {problem}")
        else:
            removed.append(leftover.describe())
    removed += _remove_backups(settings, places)
    lines: list[str] = []
    if removed:
        lines += ["Removed:", *removed]
    if failures:
        lines += ["Left alone:", *failures]
    lines += _describe_elsewhere(remains)
    if not lines:
        lines.append(f"{settings.COMMAND} has left nothing on this machine.")
    files = _files_with(settings, places)
    if files:
        lines.append(f"Its entry is still in {', '.join(files)}: --uninstall all takes it out.")
    if removed:
        lines.append("A server that still runs starts such folders anew, and can undo nothing from before.")
    return "\n".join(lines)


def _describe_elsewhere(remains: Sequence[_Leftover]) -> list[str]:
    """Return what stays in other systems, and how a person removes it there."""
    return [one.folder.elsewhere for one in remains if one.folder.elsewhere and one.files]


def _commands(settings: Settings) -> list[str]:
    return [part.COMMAND for part in settings.parts()]


def _find(settings: Settings) -> list[_Leftover]:
    remains: list[_Leftover] = []
    for folder in FOLDERS:
        is_ours = any(folder.is_of(command) for command in _commands(settings))
        path = folder.find()
        if folder is not NOTES and is_ours and os.path.lexists(path):
            files, size = _measure(path)
            remains.append(_Leftover(folder, path, files, size))
    return remains


def _measure(path: Path) -> tuple[int, int]:
    """Return the number of files below a folder and their bytes; no link is followed."""
    files = size = 0
    for folder, _, names in os.walk(path):
        for name in names:
            files += 1
            with suppress(OSError):
                size += os.lstat(os.path.join(folder, name)).st_size
    return files, size


def _remove(path: Path) -> str:
    """Remove a folder with all in it; returns why not, if so. Links in it go, what they point to stays."""
    problem = _why_not_ours(path)
    if problem:
        return problem
    going = path.with_name(f"{path.name}{_GOING}{secrets.token_hex(4)}")
    try:
        # In one step, so that no server meets half of it.
        os.rename(path, going)
    except OSError as error:
        return f"{describe_os_error(error)}; a server may be using it: close its hosts, then try again."
    for remnant in [going, *path.parent.glob(f"{path.name}{_GOING}*")]:
        if not _why_not_ours(remnant):
            shutil.rmtree(remnant, ignore_errors=True)
    if os.path.lexists(going):
        return f"a part could not be removed and is in {going}."
    with suppress(OSError):
        _remove_own_parent(path)
    return ""


def _why_not_ours(path: Path) -> str:
    try:
        status = os.lstat(path)
    except OSError as error:
        return describe_os_error(error)
    # On Windows a junction is a folder for `stat`.
    if not stat.S_ISDIR(status.st_mode) or os.path.realpath(path) != os.path.join(
        os.path.realpath(path.parent), path.name
    ):
        return "it is a link or a file: see yourself what it is for."
    if sys.platform != "win32" and status.st_uid != os.geteuid():
        return "it belongs to another user."
    return ""


def _remove_backups(settings: Settings, places: Places) -> list[str]:
    """Remove hosts' files as they were before this server was installed; they can hold tokens of other servers."""
    removed: list[str] = []
    commands = _commands(settings)
    for journal in Journal.all(places.notes):
        folder = folder_of(places.notes, journal.host, Path(journal.file))
        own = {name for name, installed in journal.entries.items() if installed.command in commands}
        # With these go those that `--uninstall` kept, which are of no entry.
        needed: list[Path] = []
        for name in journal.entries.keys() - own:
            needed.extend(backups_of(folder, name).values())
        doomed = sorted(path.name for path in folder.glob("*.backup") if path not in needed)
        if own == journal.entries.keys():
            doomed.append(ORIGINAL)
        with suppress(Problem), lock_host(places.notes, journal.host):
            removed += _remove_files(folder, doomed, journal.file)
    for folder in folders(places.notes):
        # Notes that nobody can read help nobody, and the file beside them may hold a token. Those of a newer version
        # are for that version to remove.
        if Journal.is_damaged(folder):
            removed += _remove_files(folder, sorted(path.name for path in folder.iterdir()), "a host's file")
            with suppress(OSError):
                folder.rmdir()
    if not any(folders(places.notes)):
        _remove_notes_folder(places.notes)
    return removed


def _remove_notes_folder(notes: Path) -> None:
    """Remove the folder for notes, in which nothing but locks is left."""
    for lock in notes.glob("*.lock"):
        with suppress(OSError):
            lock.unlink()
    with suppress(OSError):
        notes.rmdir()
        _remove_own_parent(notes)


def _remove_own_parent(folder: Path) -> None:
    """Remove the folder round one of ours if nothing is left in it: `mcp-batteries`, or that round Windows' `Cache`.

    Raises:
        OSError: something else is in it.
    """
    if folder.parent.name.startswith("mcp-"):
        folder.parent.rmdir()


def _remove_files(folder: Path, names: Sequence[str], of: str) -> list[str]:
    removed: list[str] = []
    for name in names:
        path = folder / name
        if path.is_file():
            with suppress(OSError):
                path.unlink()
                removed.append(f"- {path}: {of} as it was")
    return removed


def _files_with(settings: Settings, places: Places) -> Sequence[str]:
    """Return the hosts' files in which entries of a server are, as far as notes know."""
    files: list[str] = []
    for journal in Journal.all(places.notes):
        if any(installed.command == settings.COMMAND for installed in journal.entries.values()):
            files.append(journal.file)
    return files
