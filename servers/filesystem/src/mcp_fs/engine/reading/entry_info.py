"""What is known of one entry without reading all of it."""

from __future__ import annotations

import os
import stat

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Problem, Refused, Unavailable
from mcp_fs.engine.handles.path_opening import open_file, open_folder, read_link, read_status, translate_errors
from mcp_fs.engine.listing.folder_page import format_time
from mcp_fs.engine.mime_types import mime_type
from mcp_fs.engine.reading.photos import read_photo
from mcp_fs.engine.text.encodings import SAMPLE_BYTES, content_hash, detect_encoding
from mcp_fs.models import FileInfo
from mcp_fs.paths import is_absolute
from mcp_fs.policy import ReadablePath

__all__ = ["read_info"]

_MAX_HASHED_BYTES = 16 * 1024 * 1024
_KINDS = {stat.S_IFDIR: "folder", stat.S_IFREG: "file"}


def read_info(path: ReadablePath, cancel: CancelToken) -> FileInfo:
    """Return kind, size, times and more of `path`; of a link, what it leads to and how; of a photo what it says.

    Raises:
        Problem: it does not exist or can't be reached.
    """
    status = read_status(path, follow=False)
    target = None
    if stat.S_ISLNK(status.st_mode):
        target = _describe_target(read_link(path))
        try:
            status = read_status(path)
        except Problem as problem:
            return _build_info(path, status, "link", link_to=f"{target}: {problem.failure}")
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), "special")
    contents: dict[str, str | int | None] = {}
    try:
        if kind == "folder":
            contents = _describe_folder(path)
        elif kind == "file":
            contents = _describe_file(path, status.st_size, cancel)
    except (Refused, Unavailable) as problem:
        contents = {"unreadable": problem.failure}  # its mode says why, so it is told all the same
    return _build_info(path, status, kind, link_to=target, **contents)


def _describe_folder(path: ReadablePath) -> dict[str, str | int | None]:
    with open_folder(path) as folder, translate_errors(path):
        return {"entries": len(folder.list_names())}


def _describe_file(path: ReadablePath, size: int, cancel: CancelToken) -> dict[str, str | int | None]:
    with open_file(path) as file:
        head = file.read(SAMPLE_BYTES)
        kind = mime_type(head, path.name)
        facts: dict[str, str | int | None] = {"mime_type": kind}
        encoding = detect_encoding(head)
        if encoding is not None:
            facts["encoding"] = str(encoding)
        if size <= _MAX_HASHED_BYTES:
            facts["hash"] = content_hash(head + file.read(_MAX_HASHED_BYTES))
        photo = read_photo(file, path, kind, cancel)
    if photo is not None:
        facts["width"] = photo.width
        facts["height"] = photo.height
        facts["taken"] = photo.taken_at or None
        facts["camera"] = photo.camera or None
    return facts


def _build_info(path: ReadablePath, status: os.stat_result, kind: str, **more: str | int | None) -> FileInfo:
    facts: dict[str, str | int | None] = {
        "path": path.display,
        "uri": path.uri,
        "kind": kind,
        "size": status.st_size,
        "modified": format_time(status.st_mtime),
        "mode": stat.filemode(status.st_mode),
        **more,
    }
    birth_time = getattr(status, "st_birthtime", None)
    if birth_time is not None:
        facts["created"] = format_time(birth_time)
    return FileInfo.model_validate(facts)


def _describe_target(target: str) -> str:
    """Return a link's text; of an absolute one only that it is one, since it may name a path that is not served."""
    if is_absolute(target):
        return "an absolute path"
    return target
