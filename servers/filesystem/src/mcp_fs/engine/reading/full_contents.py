"""Whole files and folders, as resources show them."""

from __future__ import annotations

import mimetypes
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Problem, TooLarge, quote
from mcp_fs.engine.handles.file_attributes import is_hidden
from mcp_fs.engine.handles.path_opening import open_file, open_folder, read_status
from mcp_fs.engine.listing.folder_page import list_folder
from mcp_fs.engine.mime_types import UNKNOWN, mime_type
from mcp_fs.engine.reading.media import MAX_RESOURCE_BYTES
from mcp_fs.engine.text.encodings import SAMPLE_BYTES, decode, detect_encoding, replace_undecodable
from mcp_fs.models import FullContents
from mcp_fs.policy import ReadablePath

__all__ = ["FOLDER_MIME_TYPE", "ListedFile", "list_files", "read_full_contents"]

# The MIME type of folders, as desktops name it (shared-mime-info).
FOLDER_MIME_TYPE = "inode/directory"

_MAX_FILES = 1000
_MAX_LISTED_ENTRIES = 1000


def read_full_contents(path: ReadablePath, cancel: CancelToken) -> FullContents:
    """Return the whole file at `path`: text, whatever its encoding, or bytes; of a folder its listing.

    Raises:
        TooLarge: the file has more than 10 MiB.
        Problem: it can't be opened.
    """
    if stat.S_ISDIR(read_status(path).st_mode):
        return FullContents(FOLDER_MIME_TYPE, list_folder(path, cancel, limit=_MAX_LISTED_ENTRIES).text())
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(SAMPLE_BYTES)
        if size > MAX_RESOURCE_BYTES:
            raise _too_large(path, size, head)
        data = head + file.read()
    text = None
    decoded = decode(data)
    if decoded is not None:
        text = replace_undecodable(decoded.text)
    return FullContents(mime_type(head, path.name), text, data)


def _too_large(path: ReadablePath, size: int, head: bytes) -> TooLarge:
    tool = "read_media"
    if detect_encoding(head) is not None:
        tool = "read_text"
    return TooLarge(
        f"{quote(path.display)} has {size:,} bytes; a resource is read whole, up to {MAX_RESOURCE_BYTES:,}.",
        f"Use the tool `{tool}`, which reads it page by page.",
    )


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file as `resources/list` tells of it.

    Attributes:
        modified: seconds since 1970.
    """

    place: ReadablePath
    mime_type: str
    size: int
    modified: float


def list_files(folder: ReadablePath, cancel: CancelToken) -> Sequence[ListedFile]:
    """Return the readable files directly in `folder` that are not hidden, by name; at most 1,000."""
    files: list[ListedFile] = []
    for name in sorted(_list_names(folder, cancel)):
        cancel.check()
        try:
            status = read_status(folder / name)
        except Problem:  # gone meanwhile, or a link that leads nowhere or out
            continue
        if stat.S_ISREG(status.st_mode):
            mime_type = mimetypes.guess_type(name, strict=False)[0] or UNKNOWN
            files.append(ListedFile(folder / name, mime_type, status.st_size, status.st_mtime))
    return files


def _list_names(folder: ReadablePath, cancel: CancelToken) -> list[str]:
    """Return the first names in a folder that are neither hidden nor protected."""
    names: list[str] = []
    with open_folder(folder) as open_listing:
        for entry in open_listing.scan():
            cancel.check()
            if is_hidden(entry) or folder.policy.is_protected((*open_listing.path.parts, entry.name)):
                continue
            names.append(entry.name)
            if len(names) == _MAX_FILES:
                break
    return names
