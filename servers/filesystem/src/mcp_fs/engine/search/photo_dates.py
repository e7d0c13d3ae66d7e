"""When photos were taken, to sort them by."""

from __future__ import annotations

from datetime import datetime, timedelta

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Problem
from mcp_fs.engine.handles.path_opening import open_regular
from mcp_fs.engine.listing.walk import NOT_DOWNLOADED, FolderEntries, Skipped, entry_display_path
from mcp_fs.engine.mime_types import mime_type
from mcp_fs.engine.reading.photos import read_photo
from mcp_fs.engine.text.encodings import SAMPLE_BYTES

__all__ = ["clock_seconds", "format_photo_date", "read_photo_date"]

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def read_photo_date(entries: FolderEntries, name: str, skipped: Skipped, cancel: CancelToken) -> int:
    """Return when a photo was taken, by the clock of its camera, in microseconds since 1970; 0 where nothing says so.

    Args:
        skipped: learns of files that can't be read.
    """
    folder = entries.folder
    if name in entries.links or name in entries.special_files:
        return 0
    if name in entries.not_downloaded:
        skipped.add(NOT_DOWNLOADED, entry_display_path(folder.path, name))
        return 0
    try:
        path = folder.path / name
        with open_regular(folder, name) as file:
            kind = mime_type(file.read(SAMPLE_BYTES), name)
            photo = read_photo(file, path, kind, cancel)
    except (OSError, Problem):
        skipped.add("could not be read", entry_display_path(folder.path, name))
        return 0
    if photo is None or not photo.taken_at:
        return 0
    return (datetime.fromisoformat(photo.taken_at) - _EPOCH) // _MICROSECOND


def clock_seconds(date: int) -> float:
    """Return such a time in seconds since the epoch, as if the camera's clock were in this machine's time zone."""
    try:
        return (_EPOCH + date * _MICROSECOND).timestamp()
    except (OSError, OverflowError, ValueError):  # a year that no clock here has
        return date / 1e6


def format_photo_date(date: int) -> str:
    """Return such a time in ISO 8601, without a time zone; for 0 an empty text."""
    if not date:
        return ""
    return (_EPOCH + date * _MICROSECOND).isoformat()
