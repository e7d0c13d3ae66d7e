"""The skills in the served folders: where hosts look for them, and the files of each."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping, Sequence

from mcp_batteries.errors import Problem
from mcp_batteries.limits import Stop
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
    tops: Sequence[ReadablePath], within_uri: str | None, stop: Stop
) -> list[tuple[ReadablePath, Mapping[str, tuple[str, bytes]]]]:
    """Return each folder with a `SKILL.md`, and the URI and bytes of its files by their paths in it.

    Left out are skills that cannot be told whole: with over 100 files, 4 MiB, folders 8 deep, or a file that may not be
    read. Links inside a skill are not followed. At most 200 skills.

    Args:
        within_uri: read no folder but those that this URI is in.
    """
    skills: list[tuple[ReadablePath, Mapping[str, tuple[str, bytes]]]] = []
    for folder in _list_folders(tops, stop):
        stop.check()
        if within_uri is not None and not f"{within_uri}/".startswith(f"{folder.uri.rstrip('/')}/"):
            continue
        try:
            if not stat.S_ISREG(read_status(folder / _SKILL_FILE).st_mode):
                continue
            files: dict[str, tuple[str, bytes]] = {}
            if _collect_files(folder, "", files, _MOST_BYTES, _MOST_DEPTH, stop) is not None:
                skills.append((folder, files))
        except Problem:  # gone meanwhile, or not to be read
            continue
        if len(skills) == _MOST_SKILLS:
            break
    return skills


def _list_folders(tops: Sequence[ReadablePath], stop: Stop) -> Iterator[ReadablePath]:
    for top in tops:
        yield top
        for parts in _SKILL_FOLDERS:
            place = top
            for part in parts:
                place = place / part
            try:
                with open_folder(place) as open_listing:
                    names = sorted(entry.name for entry in open_listing.scan() if entry.is_dir(follow_symlinks=False))
            except (Problem, OSError):
                continue
            for name in names:
                stop.check()
                yield place / name


def _collect_files(
    folder: ReadablePath, prefix: str, files: dict[str, tuple[str, bytes]], max_bytes: int, depth: int, stop: Stop
) -> int | None:
    """Add the files of `folder` to `files`; how many bytes are left, None if there are too many."""
    with open_folder(folder) as open_listing:
        entries = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in open_listing.scan())
    for name, is_folder in entries:
        stop.check()
        place = folder / name
        path = f"{prefix}{name}"
        if is_folder:
            remaining_bytes = None
            if depth != 0:
                remaining_bytes = _collect_files(place, f"{path}/", files, max_bytes, depth - 1, stop)
        elif not stat.S_ISREG(read_status(place, follow=False).st_mode):
            continue
        else:
            place.policy.check(place)
            contents = read_full_contents(place, stop)
            # The bytes that reading the resource gives, of which clients compare the digest.
            if contents.text is None:
                data = contents.data
            else:
                data = contents.text.encode()
            files[path] = (place.uri, data)
            remaining_bytes = None
            if not (len(data) > max_bytes or len(files) > _MOST_FILES):
                remaining_bytes = max_bytes - len(data)
        if remaining_bytes is None:
            return None
        max_bytes = remaining_bytes
    return max_bytes
