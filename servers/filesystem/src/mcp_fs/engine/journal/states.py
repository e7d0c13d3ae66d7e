"""Reads the state of an entry, and whether what stands there is still the same."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import Any

from mcp_batteries.errors import Problem
from mcp_fs.engine.handles.path_opening import Folder, open_regular, open_tree
from mcp_fs.engine.journal.entry_state import EntryState

__all__ = [
    "MAX_HASHED_BYTES",
    "file_state",
    "hash_content",
    "is_unchanged",
    "read_state",
]

# Bytes of a file up to which its content counts, and not only which file it is.
MAX_HASHED_BYTES = 8 << 20


def read_state(folder: Folder[Any], name: str, *, thorough: bool = False, fd: int | None = None) -> EntryState | None:
    """Read what stands at `name` now; None for nothing.

    Args:
        fd: a file that may be it, open for reading.
        thorough: whether to read files and go through folders, within limits, so that a copy is known again.
    """
    try:
        status = folder.stat(name)
    except (FileNotFoundError, NotADirectoryError):
        return None
    device = status.st_dev
    inode = status.st_ino
    if stat.S_ISREG(status.st_mode):
        if not thorough:
            return file_state(status, "")
        if fd is not None and not os.path.samestat(os.fstat(fd), status):
            fd = None
        return file_state(status, _hash_file(folder, name, status.st_size, fd))
    if stat.S_ISLNK(status.st_mode):
        return EntryState("link", device, inode, fingerprint=folder.read_link(name))
    if stat.S_ISDIR(status.st_mode):
        return EntryState("folder", device, inode, fingerprint=_digest_folder(folder, name) if thorough else "")
    return EntryState("special", device, inode)


def is_unchanged(folder: Folder[Any], name: str, state: EntryState | None) -> bool:
    """Whether what stands at `name` is what `state` tells."""
    current = read_state(folder, name)
    if current is None or state is None:
        return current is state
    if state.kind == "made":
        return current.kind == "folder" and _is_empty(folder, name)
    expected_kind = "folder" if state.kind == "tree" else state.kind
    if current.kind != expected_kind:
        return False
    match state.kind:
        case "link":
            return current.fingerprint == state.fingerprint
        case "folder" if state.fingerprint:
            return _digest_folder(folder, name) == state.fingerprint
        case _:
            return _is_same_or_copy(folder, name, current, state)


def _is_empty(folder: Folder[Any], name: str) -> bool:
    with folder.open_folder(name) as inner:
        return not any(True for _ in inner.scan())


def _is_same_or_copy(folder: Folder[Any], name: str, current: EntryState, state: EntryState) -> bool:
    """Whether it is the same entry as in `state`, unmodified, or holds the same."""
    if current.identity == state.identity:
        return True
    if not state.fingerprint or current.size != state.size:
        return False
    if state.kind == "file":
        return _hash_file(folder, name, current.size) == state.fingerprint
    return _digest_folder(folder, name) == state.fingerprint


def file_state(status: os.stat_result, fingerprint: str) -> EntryState:
    """Return the state of a regular file with this hash."""
    return EntryState("file", status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, fingerprint)


def hash_content(data: bytes) -> str:
    """Hash a file's content; the hash is empty for one whose content does not count."""
    return hashlib.sha256(data).hexdigest() if len(data) <= MAX_HASHED_BYTES else ""


def _hash_file(folder: Folder[Any], name: str, size: int, fd: int | None = None) -> str:
    if size > MAX_HASHED_BYTES:
        return ""
    try:
        if fd is not None:
            return hash_content(os.pread(fd, size + 1, 0))
        with open_regular(folder, name, folder.path) as file:
            return hash_content(file.read(size + 1))
    except (OSError, Problem):
        return ""


def _digest_folder(folder: Folder[Any], name: str) -> str:
    """Digest names, kinds, sizes and times in a folder, not inodes: a folder that was copied is known again."""
    digest = hashlib.sha256()
    with open_tree(folder, name) as top:
        _add_to_digest(digest, top)
    return digest.hexdigest()


def _add_to_digest(digest: Any, folder: Folder[Any]) -> None:
    for entry in sorted(folder.scan(), key=lambda entry: entry.name):
        status = entry.stat(follow_symlinks=False)
        is_folder = stat.S_ISDIR(status.st_mode)
        facts = () if is_folder else (status.st_size, status.st_mtime_ns)
        digest.update(repr((os.fsencode(entry.name), stat.S_IFMT(status.st_mode), *facts)).encode())
        if is_folder:
            try:
                with folder.open_folder(entry.name) as inner:
                    _add_to_digest(digest, inner)
            except Problem:  # protected: what is in it is nobody's business here
                digest.update(b"!")
            digest.update(b")")
