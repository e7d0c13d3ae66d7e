"""What is known of one entry without reading all of it."""

from __future__ import annotations

import os
import stat

from mcp_batteries.errors import Problem, Refused
from mcp_fs.engine.handles.path_opening import open_file, open_folder, read_link, read_status
from mcp_fs.engine.listing.folder_page import format_time
from mcp_fs.engine.mime_types import mime_type
from mcp_fs.engine.text.encodings import SAMPLE_BYTES, content_hash, detect_encoding
from mcp_fs.models import FileInfo
from mcp_fs.paths import is_absolute
from mcp_fs.policy import ReadablePath

__all__ = ["read_info"]

_MAX_HASHED_BYTES = 16 * 1024 * 1024


def read_info(place: ReadablePath) -> FileInfo:
    """Kind, size, times and more of `place`; of a link, what it leads to and how.

    Raises:
        Problem: it does not exist or can't be reached.
    """
    status_result = read_status(place, follow=False)
    link_to = None
    if stat.S_ISLNK(status_result.st_mode):
        link_to = read_link(place)
        try:
            status_result = read_status(place)
        except Problem as problem:
            return _build_info(place, status_result, "link", link_to=f"{_describe_target(link_to)}: {problem.what}")
    target = None
    if link_to is not None:
        target = _describe_target(link_to)
    kind = {stat.S_IFDIR: "folder", stat.S_IFREG: "file"}.get(stat.S_IFMT(status_result.st_mode), "special")
    if kind == "special":
        return _build_info(place, status_result, kind, link_to=target)
    try:
        if kind == "folder":
            inside = _describe_folder(place)
        else:
            inside = _describe_file(place, status_result.st_size)
    except Refused as problem:
        inside = {"unreadable": problem.what}  # its mode says why, so it is told all the same
    return _build_info(place, status_result, kind, link_to=target, **inside)


def _describe_folder(place: ReadablePath) -> dict[str, str | int | None]:
    with open_folder(place) as folder:
        return {"entries": len(folder.list_names())}


def _describe_file(place: ReadablePath, size: int) -> dict[str, str | int | None]:
    with open_file(place) as file:
        head = file.read(SAMPLE_BYTES)
        encoding = detect_encoding(head)
        content = None
        if size <= _MAX_HASHED_BYTES:
            content = content_hash(head + file.read(_MAX_HASHED_BYTES))
    return {
        "mime_type": mime_type(head, place.name),
        "encoding": None if encoding is None else str(encoding),
        "hash": content,
    }


def _build_info(place: ReadablePath, status_result: os.stat_result, kind: str, **more: str | int | None) -> FileInfo:
    birth_time = getattr(status_result, "st_birthtime", None)
    return FileInfo.model_validate(
        {
            "path": place.display,
            "uri": place.uri,
            "kind": kind,
            "size": status_result.st_size,
            "modified": format_time(status_result.st_mtime),
            "created": None if birth_time is None else format_time(birth_time),
            "mode": stat.filemode(status_result.st_mode),
            **more,
        }
    )


def _describe_target(target: str) -> str:
    """Return a link's text; of an absolute one only that it is one, since it may name a place that is not served."""
    return "an absolute path" if is_absolute(target) else target
