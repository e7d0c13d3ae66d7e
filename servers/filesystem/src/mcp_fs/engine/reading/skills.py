"""The skills in the served folders: where hosts look for them, and the files of each."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping, Sequence

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Problem
from mcp_fs.engine.handles.path_opening import open_folder, read_status
from mcp_fs.engine.reading.full_contents import read_full_contents
from mcp_fs.policy import ReadablePath

__all__ = ["skill_folders"]

# Folders of skills, below a served folder.
_SKILL_FOLDERS = ((), ("skills",), (".claude", "skills"), (".agents", "skills"), (".github", "skills"))

_SKILL_FILE = "SKILL.md"
_MOST_SKILLS = 200
_MOST_FILES = 100
_MOST_BYTES = 4 * 1024 * 1024
_MOST_DEPTH = 8


def skill_folders(
    tops: Sequence[ReadablePath], within_uri: str | None, cancel: CancelToken
) -> list[tuple[ReadablePath, Mapping[str, tuple[str, bytes]]]]:
    """Return each folder with a `SKILL.md`, and the URI and bytes of its files by their paths in it.

    Left out are skills that cannot be told whole: with over 100 files, 4 MiB, folders 8 deep, or a file that may not be
    read. Links inside a skill are not followed. At most 200 skills.

    Args:
        within_uri: read no folder but those that this URI is in.
    """
    skills: list[tuple[ReadablePath, Mapping[str, tuple[str, bytes]]]] = []
    for folder in _list_folders(tops, cancel):
        cancel.check()
        if within_uri is not None and not f"{within_uri}/".startswith(f"{folder.uri.rstrip('/')}/"):
            continue
        files = _read_skill(folder, cancel)
        if files is not None:
            skills.append((folder, files))
        if len(skills) == _MOST_SKILLS:
            break
    return skills


def _read_skill(folder: ReadablePath, cancel: CancelToken) -> Mapping[str, tuple[str, bytes]] | None:
    """Return the files of a skill; None for a folder that is none, or can't be told whole."""
    collector = _SkillFiles(cancel)
    try:
        if not stat.S_ISREG(read_status(folder / _SKILL_FILE).st_mode):
            return None
        collector.add_folder(folder, "", _MOST_DEPTH)
    except (Problem, _TooMuch):  # gone meanwhile, or not to be read
        return None
    return collector.files


def _list_folders(tops: Sequence[ReadablePath], cancel: CancelToken) -> Iterator[ReadablePath]:
    """Yield the folders that may be skills."""
    for top in tops:
        yield top
        for parts in _SKILL_FOLDERS:
            path = top
            for part in parts:
                path = path / part
            for name in _folder_names(path):
                cancel.check()
                yield path / name


def _folder_names(path: ReadablePath) -> list[str]:
    """Return the names of the folders in a folder; none where it can't be listed."""
    try:
        with open_folder(path) as folder:
            return sorted(entry.name for entry in folder.scan() if entry.is_dir(follow_symlinks=False))
    except (Problem, OSError):
        return []


class _TooMuch(Exception):
    """Raised when a skill has more files, bytes or folders in folders than are told."""


class _SkillFiles:
    """The files of a skill.

    Attributes:
        files: the URI and bytes of each, by its path in the skill.
    """

    def __init__(self, cancel: CancelToken) -> None:
        self.files: dict[str, tuple[str, bytes]] = {}
        self._remaining_bytes = _MOST_BYTES
        self._cancel = cancel

    def add_folder(self, folder: ReadablePath, prefix: str, depth: int) -> None:
        """Add what is in a folder.

        Args:
            prefix: its path in the skill, with a slash.
            depth: how many levels of folders may be in it.

        Raises:
            _TooMuch: the skill can't be told whole.
            Problem: something can't be read.
        """
        with open_folder(folder) as open_listing:
            entries = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in open_listing.scan())
        for name, is_folder in entries:
            self._cancel.check()
            place = folder / name
            path = f"{prefix}{name}"
            if not is_folder:
                self._add_file(place, path)
            elif depth:
                self.add_folder(place, f"{path}/", depth - 1)
            else:
                raise _TooMuch

    def _add_file(self, place: ReadablePath, path: str) -> None:
        if not stat.S_ISREG(read_status(place, follow=False).st_mode):
            return
        place.policy.check(place)
        contents = read_full_contents(place, self._cancel)
        # The bytes that reading the resource gives, of which clients compare the digest.
        data = contents.data
        if contents.text is not None:
            data = contents.text.encode()
        self.files[path] = (place.uri, data)
        self._remaining_bytes -= len(data)
        if self._remaining_bytes < 0 or len(self.files) > _MOST_FILES:
            raise _TooMuch
