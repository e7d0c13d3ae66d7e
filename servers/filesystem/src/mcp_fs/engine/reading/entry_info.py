"""What is known of one entry without reading all of it."""

from __future__ import annotations

import os
import stat

from mcp_batteries.errors import Problem, Refused
from mcp_fs.engine.handles.path_opening import open_file, open_folder, read_link, status
from mcp_fs.engine.listing.folder_page import moment
from mcp_fs.engine.mime_types import mime_type
from mcp_fs.engine.text.encodings import SAMPLE_BYTES, content_hash, sniff
from mcp_fs.models import FileInfo
from mcp_fs.paths import is_absolute
from mcp_fs.policy import Readable

__all__ = ["info"]

_HASHED = 16 * 1024 * 1024


def info(place: Readable) -> FileInfo:
    """Kind, size, times and more of `place`; of a link, what it leads to and how.

    Raises:
        Problem: it does not exist or can't be reached.
    """
    found = status(place, follow=False)
    link_to = None
    if stat.S_ISLNK(found.st_mode):
        link_to = read_link(place)
        try:
            found = status(place)
        except Problem as problem:
            return _facts(place, found, "link", link_to=f"{_within(link_to)}: {problem.what}")
    target = None if link_to is None else _within(link_to)
    kind = {stat.S_IFDIR: "folder", stat.S_IFREG: "file"}.get(stat.S_IFMT(found.st_mode), "special")
    if kind == "special":
        return _facts(place, found, kind, link_to=target)
    try:
        inside = _folder(place) if kind == "folder" else _file(place, found.st_size)
    except Refused as problem:
        inside = {"unreadable": problem.what}  # its mode says why, so it is told all the same
    return _facts(place, found, kind, link_to=target, **inside)


def _folder(place: Readable) -> dict[str, str | int | None]:
    with open_folder(place) as folder:
        return {"entries": len(folder.names())}


def _file(place: Readable, size: int) -> dict[str, str | int | None]:
    with open_file(place) as file:
        head = file.read(SAMPLE_BYTES)
        encoding = sniff(head)
        content = None
        if size <= _HASHED:
            content = content_hash(head + file.read(_HASHED))
    return {
        "mime_type": mime_type(head, place.name),
        "encoding": None if encoding is None else str(encoding),
        "hash": content,
    }


def _facts(place: Readable, found: os.stat_result, kind: str, **more: str | int | None) -> FileInfo:
    born = getattr(found, "st_birthtime", None)
    return FileInfo.model_validate(
        {
            "path": place.display,
            "uri": place.uri,
            "kind": kind,
            "size": found.st_size,
            "modified": moment(found.st_mtime),
            "created": None if born is None else moment(born),
            "mode": stat.filemode(found.st_mode),
            **more,
        }
    )


def _within(target: str) -> str:
    """A link's text; of an absolute one only that it is one, since it may name a place that is not served."""
    return "an absolute path" if is_absolute(target) else target
