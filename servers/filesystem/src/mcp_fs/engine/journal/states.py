"""The state of a name, in a form that shows later whether it is still the same."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from typing import Any

from mcp_batteries.errors import Problem
from mcp_fs.engine.handles.path_opening import Folder, open_regular, open_tree

__all__ = ["HASHED", "MADE", "State", "file_state", "hash_of", "is_still", "state_of"]

HASHED = 8 << 20
"""Bytes of a file up to which its content counts, and not only which file it is."""


@dataclass(frozen=True, slots=True)
class State:
    """An entry of a folder.

    Attributes:
        kind: `file`, `link`, `folder`, `tree` for a folder that may have anything in it, `made` for one that has to be
            empty, or what else there is.
        number: of its inode, on its device.
        changed: when its content was, in nanoseconds; 0 for folders.
        text: a file's hash, a link's target, the digest of what is in a folder; empty when it does not matter.
    """

    kind: str
    device: int = 0
    number: int = 0
    size: int = 0
    changed: int = 0
    text: str = ""


MADE = State("made")


def state_of(folder: Folder[Any], name: str, *, thorough: bool = False, fd: int | None = None) -> State | None:
    """What stands at `name` now; None for nothing.

    Args:
        fd: a file that may be it, open for reading.
        thorough: whether to read files and go through folders, within limits, so that a copy is known again.
    """
    try:
        found = folder.stat(name)
    except (FileNotFoundError, NotADirectoryError):
        return None
    device, number = found.st_dev, found.st_ino
    if stat.S_ISREG(found.st_mode):
        if not thorough:
            return file_state(found, "")
        if fd is not None and not os.path.samestat(os.fstat(fd), found):
            fd = None
        return file_state(found, _hash(folder, name, found.st_size, fd))
    if stat.S_ISLNK(found.st_mode):
        return State("link", device, number, text=folder.read_link(name))
    if stat.S_ISDIR(found.st_mode):
        return State("folder", device, number, text=_digest(folder, name) if thorough else "")
    return State("special", device, number)


def is_still(folder: Folder[Any], name: str, state: State | None) -> bool:
    """Whether what stands at `name` is what `state` tells."""
    now = state_of(folder, name)
    if now is None or state is None:
        return now is state
    if state.kind == "made":
        if now.kind != "folder":
            return False
        with folder.folder(name) as inner:
            return not any(True for _ in inner.scan())
    if now.kind != ("folder" if state.kind == "tree" else state.kind):
        return False
    if state.kind == "link":
        return now.text == state.text
    if state.kind == "folder" and state.text:
        return _digest(folder, name) == state.text
    if (now.device, now.number, now.size, now.changed) == (state.device, state.number, state.size, state.changed):
        return True
    if not state.text or now.size != state.size:
        return False
    return (_hash(folder, name, now.size) if state.kind == "file" else _digest(folder, name)) == state.text


def file_state(found: os.stat_result, text: str) -> State:
    """The state of a regular file with this hash."""
    return State("file", found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, text)


def hash_of(data: bytes) -> str:
    """The hash of a file's content; empty for one whose content does not count."""
    return hashlib.sha256(data).hexdigest() if len(data) <= HASHED else ""


def _hash(folder: Folder[Any], name: str, size: int, fd: int | None = None) -> str:
    if size > HASHED:
        return ""
    try:
        if fd is not None:
            return hash_of(os.pread(fd, size + 1, 0))
        with open_regular(folder, name, folder.place) as file:
            return hash_of(file.read(size + 1))
    except (OSError, Problem):
        return ""


def _digest(folder: Folder[Any], name: str) -> str:
    """What is in a folder: names, kinds, sizes and times. Not which inodes: a folder that was copied is known again."""
    digest = hashlib.sha256()
    with open_tree(folder, name) as top:
        _add(digest, top)
    return digest.hexdigest()


def _add(digest: Any, folder: Folder[Any]) -> None:
    for entry in sorted(folder.scan(), key=lambda entry: entry.name):
        found = entry.stat(follow_symlinks=False)
        is_folder = stat.S_ISDIR(found.st_mode)
        facts = () if is_folder else (found.st_size, found.st_mtime_ns)
        digest.update(repr((os.fsencode(entry.name), stat.S_IFMT(found.st_mode), *facts)).encode())
        if is_folder:
            try:
                with folder.folder(entry.name) as inner:
                    _add(digest, inner)
            except Problem:  # protected: what is in it is nobody's business here
                digest.update(b"!")
            digest.update(b")")
