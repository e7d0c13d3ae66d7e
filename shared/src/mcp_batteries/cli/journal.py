"""Notes on what `--install` wrote, in a private folder of the user.

They help to give back the same bytes. Nothing depends on them: entries are found in the hosts' files themselves.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote as urlquote

from filelock import FileLock, Timeout

from mcp_batteries.cli.config_file import Changed, ConfigFile, NewFile, give_to_owner, make_folders
from mcp_batteries.errors import Problem, Unavailable
from mcp_batteries.hosts import HOST_NAMES

__all__ = [
    "JOURNAL",
    "ORIGINAL",
    "Installed",
    "Journal",
    "NoteFiles",
    "backup_of",
    "backups_of",
    "folder_of",
    "folders",
    "lock_host",
]

# The files in the folder for one file of a host: the notes, and that file as it was before the first installation.
JOURNAL = "journal.json"
ORIGINAL = "original"

# Copies of a host's file for one entry.
_MAX_BACKUPS = 10
_LOCK_SECONDS = 30.0


@dataclass
class Installed:
    """What one server's `--install` has written into the file of a host.

    Attributes:
        command: of the server.
        entry: the values of the entry, without what a person has added.
        inputs: the ids of the values that VS Code asks for, as far as they were not there before.
    """

    command: str = ""
    entry: dict[str, Any] = field(default_factory=dict[str, Any])
    inputs: list[str] = field(default_factory=list[str])


@dataclass
class Journal:
    """The notes on one file of a host.

    Attributes:
        file: its path.
        workspace: whether it is the file of a project.
        written: a digest of the file as we left it; if it still fits, nobody else has changed the file.
        made_file: whether the file was not there before.
        made_keys: what had to be added to the file to hold entries, such as `mcpServers`.
        entries: by the name of the entry.
    """

    host: str = ""
    file: str = ""
    workspace: bool = False
    written: str = ""
    made_file: bool = False
    made_keys: list[str] = field(default_factory=list[str])
    entries: dict[str, Installed] = field(default_factory=dict[str, Installed])

    @classmethod
    def load(cls, notes: Path, host: str, file: Path) -> Journal:
        """Return the notes on a file; empty ones if there are none that can be used."""
        journal = cls._read(folder_of(notes, host, file))
        if journal is None or journal.host != host or journal.file != str(file):
            return cls(host, str(file))
        return journal

    @classmethod
    def all(cls, notes: Path) -> list[Journal]:
        """Return the notes on every file, in the order of their folders."""
        journals: list[Journal] = []
        for folder in folders(notes):
            journal = cls._read(folder)
            if journal is not None and journal.host in HOST_NAMES:
                journals.append(journal)
        return journals

    @classmethod
    def is_damaged(cls, folder: Path) -> bool:
        """Return whether no version of this program can use the notes in a folder; others may know more of them."""
        return not cls._parse(folder)

    @classmethod
    def _read(cls, folder: Path) -> Journal | None:
        document = cls._parse(folder)
        try:
            entries = {name: Installed(**entry) for name, entry in document.pop("entries").items()}
            journal = cls(**document, entries=entries)
            Path(journal.file)
            return journal
        except (ValueError, TypeError, AttributeError, KeyError):
            # Somebody else's, damaged, or of another version.
            return None

    @classmethod
    def _parse(cls, folder: Path) -> dict[str, Any]:
        """Return the notes in a folder as they were written; empty if they are not whole."""
        try:
            document: Any = json.loads(_read(folder / JOURNAL) or b"")
        except (ValueError, RecursionError):
            return {}
        if not isinstance(document, dict):
            return {}
        return cast("dict[str, Any]", document)

    def is_current(self, contents: bytes | None) -> bool:
        """Return whether the file has these contents since we wrote it."""
        return self.written == _digest(contents)

    def note_written(self, contents: bytes | None) -> None:
        self.written = _digest(contents)

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()


def _read(path: Path) -> bytes | None:
    try:
        return ConfigFile.read(path).contents
    except Problem:
        return None


def _digest(contents: bytes | None) -> str:
    if contents is None:
        return ""
    return hashlib.sha256(contents).hexdigest()


def folder_of(notes: Path, host: str, file: Path) -> Path:
    """Return the folder for notes on one file of a host: a host can have one for each project."""
    return notes / f"{host}-{_digest(str(file).encode())[:16]}"


def folders(notes: Path) -> list[Path]:
    """Return every folder with notes on a file of a host."""
    return sorted(path for path in notes.glob("*-*") if path.is_dir())


def backup_of(name: str, number: int = 1) -> str:
    """Return the name of a copy of the host's file as it was before a change of an entry, counted from the first."""
    # A person may have given it any name; in what is left of it after this there is no plus.
    quoted = urlquote(name, safe="")
    if number == 1:
        return f"{quoted}.backup"
    return f"{quoted}+{number}.backup"


def backups_of(folder: Path, name: str) -> dict[int, Path]:
    """Return the copies that are kept for an entry, by their numbers, the oldest first."""
    quoted = urlquote(name, safe="")
    backups: dict[int, Path] = {}
    for path in folder.glob("*.backup"):
        entry, plus, number = path.name.removesuffix(".backup").partition("+")
        if entry != quoted:
            continue
        if not plus:
            backups[1] = path
        elif number.isdecimal():
            backups[int(number)] = path
    return dict(sorted(backups.items()))


class NoteFiles:
    """The files with notes on one file of a host, changed all together and after the host's own file.

    Args:
        folder: where they are.
    """

    @property
    def folder(self) -> Path:
        return self._folder

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._new: dict[str, bytes] = {}
        self._doomed: list[str] = []

    def read(self, name: str) -> bytes | None:
        """Return the contents of a file; None if it is not there or cannot be read."""
        return _read(self._folder / name)

    def put(self, name: str, contents: bytes) -> None:
        """Have a file written."""
        self._new[name] = contents

    def remove(self, name: str) -> None:
        """Have a file removed."""
        self._doomed.append(name)

    def keep_backup(self, name: str, contents: bytes) -> Path:
        """Have a copy of the host's file kept for an entry; returns where it will be, or is.

        The oldest may be what a person wrote, and stays; of the others the oldest goes when there are too many.
        """
        backups = backups_of(self._folder, name)
        for path in backups.values():
            if _read(path) == contents:
                return path
        if len(backups) >= _MAX_BACKUPS:
            _, second, *_ = backups.values()
            self.remove(second.name)
        new = backup_of(name, max(backups, default=0) + 1)
        self.put(new, contents)
        return self._folder / new

    @contextmanager
    def stage(self) -> Generator[list[str]]:
        """Write the new notes beside the old ones; when the block ends without an error, put them in their places.

        Yields:
            Why they cannot be kept, if so: what is installed does not depend on them.
        """
        problems: list[str] = []
        new_files: list[NewFile] = []
        with ExitStack() as stack:
            try:
                for name, contents in self._new.items():
                    file = ConfigFile.read(self._folder / name)
                    new_files.append(stack.enter_context(file.stage(contents)))
            except Problem as problem:
                problems.append(problem.failure)
            yield problems
            with suppress(Problem, Changed):
                for new in new_files:
                    new.commit()
            for name in self._doomed:
                with suppress(OSError):
                    os.unlink(self._folder / name)
            with suppress(OSError):
                # Only if nothing is left in it.
                self._folder.rmdir()


@contextmanager
def lock_host(folder: Path, host: str) -> Generator[None]:
    """Let only one process at a time change the file of a host, as far as the folder for notes can be used.

    Raises:
        Unavailable: another process is at it for too long.
    """
    path = folder / f"{host}.lock"
    lock = FileLock(path, timeout=_LOCK_SECONDS, mode=0o600)
    try:
        make_folders(folder)
        lock.acquire()
        give_to_owner(path, os.stat(folder))
    except Timeout:
        raise Unavailable(
            f"Another process has been changing the file of {host} for {_LOCK_SECONDS:g} s.", "Try again in a moment."
        ) from None
    except OSError:
        # Without a lock the file is still compared before it is replaced.
        pass
    try:
        yield
    finally:
        lock.release()
