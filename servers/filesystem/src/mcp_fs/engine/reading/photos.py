"""What photos say of themselves: their size, their camera, and when they were taken."""

from __future__ import annotations

import json
from typing import BinaryIO

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Problem
from mcp_batteries.media.pictures import MOST_FILE_BYTES, PhotoFacts
from mcp_fs.engine.documents.converter import extract
from mcp_fs.policy import ReadablePath

__all__ = ["read_photo"]

_SVG = "image/svg+xml"


def read_photo(file: BinaryIO, path: ReadablePath, mime_type: str, cancel: CancelToken) -> PhotoFacts | None:
    """Return what the photo in an open file says of itself; None of any other file, and where nothing can read it.

    The process that decodes pictures reads it.
    """
    if not mime_type.startswith("image/") or mime_type == _SVG or file.seek(0, 2) > MOST_FILE_BYTES:
        return None
    try:
        extracted = extract(file, path.name, (), "photo", path.display, cancel, mime_type=mime_type)
    except Problem:
        return None
    facts = json.loads(extracted.label)
    if not facts:
        return None
    return PhotoFacts(**facts)
